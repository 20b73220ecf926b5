//! Description of one operation as data, for the dispatcher and every transport.
//!
//! Invariant: a [`Spec`] holds no code, so all of it can be published and tested.

use http::Method;

use crate::answer::JSON;

/// Credentials that an operation accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// No credential. One that is presented is not read.
    Public,
    /// No credential, an agent key or an operator token. A credential makes more visible.
    Optional,
    /// An agent key only.
    Key,
    /// An operator token only.
    Operator,
    /// An agent key or an operator token.
    KeyOrOperator,
}

impl Auth {
    /// Returns true if a call without credential is accepted.
    pub const fn admits_anyone(self) -> bool {
        matches!(self, Self::Public | Self::Optional)
    }

    /// Returns true if an agent key is accepted.
    pub const fn admits_key(self) -> bool {
        matches!(self, Self::Optional | Self::Key | Self::KeyOrOperator)
    }

    /// Returns true if an operator token is accepted.
    pub const fn admits_operator(self) -> bool {
        matches!(self, Self::Optional | Self::Operator | Self::KeyOrOperator)
    }
}

/// Permission that a delegated credential must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Reads what the caller's operator may read.
    Read,
    /// Changes what the caller's operator owns.
    Write,
    /// Spends prepaid credits of the caller's operator.
    Spend,
}

/// Change that a call makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Adds or changes data.
    Write,
    /// Removes data for good.
    Destroy,
    /// Spends the caller's money.
    Spend,
}

/// Rate limit that a call counts toward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// No limit: health checks of the machines that run the service.
    Exempt,
    /// Calls per address and minute.
    Call,
}

/// Limit on the size of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    /// `limits.body_bytes`.
    Ordinary,
    /// `limits.contribution_bytes`.
    Batch,
}

/// Description of one operation.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Unique name, in lower case with underscores. It is the `operationId`, the tool name, and a field of log lines
    /// and metrics.
    pub name: &'static str,
    /// HTTP method of the route.
    pub method: Method,
    /// Path of the route, with `{member}` for each member of the input that is a segment.
    pub path: &'static str,
    /// Members of the input that are query parameters although the method has a body.
    pub query: &'static [&'static str],
    /// Members of the input that are headers, each with the header's name.
    pub headers: &'static [(&'static str, &'static str)],
    /// One line for the list of operations.
    pub summary: &'static str,
    /// Further text for callers; empty if the summary suffices.
    pub description: &'static str,
    /// Resource that groups the operation in the published description.
    pub tag: &'static str,
    /// Credentials that the operation accepts.
    pub auth: Auth,
    /// Permission that a delegated credential must have.
    pub scope: Scope,
    /// Change that the operation makes.
    pub effect: Effect,
    /// Rate limit that a call counts toward.
    pub rate: Rate,
    /// True if the bytes of an answer count toward the egress of the caller's operator. Such answers that are JSON are
    /// whole in memory, so only a few of an operator exist at once.
    pub egress: bool,
    /// Limit on the size of the request body.
    pub body: BodySize,
    /// Media types of the request body. Its content is JSON under each of them.
    pub takes: &'static [&'static str],
    /// Member of the body, an array of objects, that the function reads as text from [`Cx::body`](crate::cx::Cx). The
    /// input contains an outline instead: an array of as many empty objects. Used where the bulk of a body is data that
    /// the API does not interpret.
    pub raw_body_member: Option<&'static str>,
    /// Members that exist but never change. A call that names one is refused with a sentence that says so.
    pub immutable: &'static [&'static str],
    /// Statuses of success, each with its meaning.
    pub success: &'static [(u16, &'static str)],
    /// Statuses of an answer without a body, each with its meaning.
    pub empty: &'static [(u16, &'static str)],
    /// Statuses of failure particular to the operation, each with its meaning. Those that every operation of its kind
    /// shares are not listed.
    pub failure: &'static [(u16, &'static str)],
    /// Example of a request body as JSON; empty for none.
    pub example: &'static str,
}

impl Spec {
    /// A public read. Table entries take from it the fields that they do not set.
    pub const BASE: Self = Self {
        name: "",
        method: Method::GET,
        path: "",
        query: &[],
        headers: &[],
        summary: "",
        description: "",
        tag: "",
        auth: Auth::Public,
        scope: Scope::Read,
        effect: Effect::Read,
        rate: Rate::Call,
        egress: false,
        body: BodySize::Ordinary,
        takes: &[JSON],
        raw_body_member: None,
        immutable: &[],
        success: &[(200, "The answer.")],
        empty: &[],
        failure: &[],
        example: "",
    };

    /// Returns the part of an HTTP request that carries a member of the input.
    pub fn location_of(&self, member: &str) -> ParamLocation {
        // The path decides first, then the headers. So a member has exactly one location.
        let in_path = |segment: &str| segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(member);
        if self.path.split('/').any(in_path) {
            ParamLocation::Path
        } else if let Some((_, header)) = self.headers.iter().find(|(name, _)| *name == member) {
            ParamLocation::Header(header)
        } else if self.method == Method::GET || self.query.contains(&member) {
            // A GET has no body, so every member that is neither in the path nor in a header is in the query.
            ParamLocation::Query
        } else {
            ParamLocation::Body
        }
    }
}

/// Part of an HTTP request that carries a member of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamLocation {
    /// A segment of the path.
    Path,
    /// A parameter of the query.
    Query,
    /// The header of this name.
    Header(&'static str),
    /// A member of the JSON body.
    Body,
}
