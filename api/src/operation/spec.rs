//! One operation as data: what every transport and the door read.
//!
//! Invariant: a [`Spec`] holds no code, so whatever it says can be published and tested.

use http::Method;

use crate::answer::JSON;

/// Which credentials an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// None; one that is presented is not looked at.
    Public,
    /// None, an agent key or an operator token: more is visible with one.
    Optional,
    /// An agent key.
    Key,
    /// An operator token.
    Operator,
    /// An agent key or an operator token.
    KeyOrOperator,
}

impl Auth {
    /// Whether a call without credential is let in.
    pub const fn admits_anyone(self) -> bool {
        matches!(self, Self::Public | Self::Optional)
    }

    /// Whether an agent key is let in.
    pub const fn admits_key(self) -> bool {
        matches!(self, Self::Optional | Self::Key | Self::KeyOrOperator)
    }

    /// Whether an operator token is let in.
    pub const fn admits_operator(self) -> bool {
        matches!(self, Self::Optional | Self::Operator | Self::KeyOrOperator)
    }
}

/// What a delegated credential must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Read.
    Read,
    /// Change what the caller's operator owns.
    Write,
    /// Spend prepaid credits.
    Spend,
}

/// What a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Read,
    /// It adds or changes something.
    Write,
    /// It takes something away for good.
    Destroy,
    /// It spends money.
    Spend,
}

/// Which limit on rate a call counts toward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// None: probes of the machines that run the service.
    Exempt,
    /// Calls of an address in a minute.
    Call,
}

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    /// `limits.body_bytes`.
    Ordinary,
    /// `limits.contribution_bytes`.
    Batch,
}

/// One operation as data.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The one name it has everywhere: `operationId`, tool name, log line.
    pub name: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path, with `{member}` for the members of the input that are in it.
    pub path: &'static str,
    /// Members of the input that are in the query although the method has a body.
    pub query: &'static [&'static str],
    /// Members of the input that are in a header, with its name.
    pub headers: &'static [(&'static str, &'static str)],
    /// One line.
    pub summary: &'static str,
    /// What a caller must know beyond the line.
    pub description: &'static str,
    /// The resource it belongs to.
    pub tag: &'static str,
    /// Which credentials it takes.
    pub auth: Auth,
    /// What a delegated credential must be allowed to do.
    pub scope: Scope,
    /// What it changes.
    pub effect: Effect,
    /// Which limit on rate it counts toward.
    pub rate: Rate,
    /// Whether what it answers counts toward the egress of the caller's operator. A few of these that are not made while
    /// they are sent wait in memory at once.
    pub egress: bool,
    /// How large its body may be.
    pub body: BodySize,
    /// The media types that its body may have; it is JSON under each of them.
    pub takes: &'static [&'static str],
    /// The member of the body, an array of objects, that reaches the function as text (see [`Cx::body`](crate::cx::Cx))
    /// and only as an outline otherwise: as many objects, all empty. For bodies whose bulk is not the API's to read.
    pub outlined: Option<&'static str>,
    /// Members that exist but never change: naming one is refused with that sentence.
    pub fixed: &'static [&'static str],
    /// The statuses of success, each with its meaning.
    pub success: &'static [(u16, &'static str)],
    /// The statuses of an answer without a body, each with its meaning.
    pub empty: &'static [(u16, &'static str)],
    /// The statuses of failure of its own, each with its meaning; what every operation of its kind has is not listed.
    pub failure: &'static [(u16, &'static str)],
    /// A body as JSON text; empty for none.
    pub example: &'static str,
}

impl Spec {
    /// A public read, for the fields a table entry does not set.
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
        outlined: None,
        fixed: &[],
        success: &[(200, "The answer.")],
        empty: &[],
        failure: &[],
        example: "",
    };

    /// Where a member of the input travels over HTTP.
    pub fn place(&self, member: &str) -> Place {
        let in_path = |segment: &str| segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(member);
        if self.path.split('/').any(in_path) {
            Place::Path
        } else if let Some((_, header)) = self.headers.iter().find(|(name, _)| *name == member) {
            Place::Header(header)
        } else if self.method == Method::GET || self.query.contains(&member) {
            Place::Query
        } else {
            Place::Body
        }
    }
}

/// Where a member of an input travels over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A segment of the path.
    Path,
    /// A parameter of the query.
    Query,
    /// The header of this name.
    Header(&'static str),
    /// A member of the JSON body.
    Body,
}
