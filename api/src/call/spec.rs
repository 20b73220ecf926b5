//! Description of one operation as data, for the dispatcher and every transport.
//!
//! Invariant: a [`Spec`] holds no code, so all of it can be published and tested.

use std::time::Duration;

use http::Method;

use crate::call::answer::{FORM, JSON};
use crate::codes::ErrorCode;
use crate::config::Limits;

/// Kind of credential that an operation accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// No credential at all.
    Anonymous,
    /// Key of an agent.
    AgentKey,
    /// Token of an operator.
    OperatorToken,
    /// Key that came with a claim which is not approved.
    ClaimedKey,
    /// Session of a person in the console, by cookie.
    Session,
    /// Token of an app for `/mcp`, which acts as an agent. Tools take it wherever they take an agent key.
    AppToken,
}

/// Door through which an operation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiKind {
    /// Requests of programs, with a credential in the `Authorization` header and a JSON body. No cookie is read.
    Rest,
    /// Pages of a browser, with a session in a cookie and forms as bodies. No header is a credential.
    Page,
}

/// No credential is read, so the answer is the same for all callers.
pub const PUBLIC: &[Credential] = &[];
/// An agent key or an operator token makes more visible; nothing is needed.
pub const OPTIONAL: &[Credential] = &[Credential::Anonymous, Credential::AgentKey, Credential::OperatorToken];
/// An agent key only.
pub const KEY: &[Credential] = &[Credential::AgentKey];
/// An operator token only.
pub const OPERATOR: &[Credential] = &[Credential::OperatorToken];
/// An agent key, or the token of an app for `/mcp`.
pub const KEY_OR_APP: &[Credential] = &[Credential::AgentKey, Credential::AppToken];
/// Nothing is needed; an agent key or the token of an app must be good.
pub const ANYONE_OR_APP: &[Credential] = &[Credential::Anonymous, Credential::AgentKey, Credential::AppToken];
/// An agent key, an operator token, or the token of an app.
pub const KEY_OPERATOR_OR_APP: &[Credential] = &[Credential::AgentKey, Credential::OperatorToken, Credential::AppToken];
/// An agent key or an operator token.
pub const KEY_OR_OPERATOR: &[Credential] = &[Credential::AgentKey, Credential::OperatorToken];

/// A person who is signed in.
pub const SESSION: &[Credential] = &[Credential::Session];
/// Anybody; a person who is signed in is recognised.
pub const ANYBODY: &[Credential] = &[Credential::Anonymous, Credential::Session];

/// Permission that the credential of an app must have. No permission includes another.
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
pub enum CallRate {
    /// No limit: health checks of the machines that run the service.
    Exempt,
    /// Calls per address and minute.
    Call,
}

/// Subject that a limit counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSubject {
    /// Address of the client.
    Address,
    /// Agent that calls; an operator that calls is counted as itself.
    Caller,
    /// Operator of the caller.
    Operator,
    /// Value of this member of the input, whatever its case.
    Member(&'static str),
}

/// Limit on the calls of an operation. A call that is refused later counts too, so that nobody can probe for free.
#[derive(Clone, Copy, Debug)]
pub struct CallLimit {
    /// Name under which calls are counted. Operations that share a name share the count.
    pub name: &'static str,
    /// Subject that the limit counts for.
    pub subject: LimitSubject,
    /// Returns the greatest number of calls in a window.
    pub most: fn(&Limits) -> u32,
    /// Length of the window.
    pub window: Duration,
    /// Code of the refusal.
    pub(crate) code: ErrorCode,
    /// Counted things, for the message "more than N …".
    pub counted: &'static str,
}

/// Item of a call whose visibility, and the right over it, outrank what is wrong with the rest of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedItem {
    /// No item that could be hidden.
    None,
    /// Project whose slug is the member `slug`.
    Project,
    /// The same, for an operation that needs the key of an agent unless its member `limit` is 0.
    Records,
    /// Project whose slug is the member `slug`, for an operation that only its operator may perform.
    OwnProject,
    /// Knowledge unit whose id is the member `id`, for an operation on its discussion.
    Unit,
    /// Knowledge unit whose id is the member `id`, for an operation that only its operator may perform.
    OwnUnit,
    /// Request on the board whose id is the member `id`.
    Request,
    /// The same, for an operation that only its operator may perform.
    OwnRequest,
}

/// Limit on the size of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    /// At most `limits.body` bytes.
    Ordinary,
    /// At most `limits.contribution_body` bytes, for the records of a batch.
    Batch,
    /// At most `limits.file_body` bytes, for a file that is read here.
    File,
}

impl BodySize {
    /// Returns the limit in bytes.
    pub(crate) fn limit(self, limits: &Limits) -> usize {
        match self {
            Self::Ordinary => limits.body.bytes(),
            Self::Batch => limits.contribution_body.bytes(),
            Self::File => limits.file_body.bytes(),
        }
    }
}

/// Description of one operation.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and no two exclude each other"
)]
pub struct Spec {
    /// Unique name, in lower case with underscores. It is the `operationId`, the tool name, and a field of log lines
    /// and metrics.
    pub name: &'static str,
    /// Door through which the operation is called.
    pub surface: ApiKind,
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
    /// Credentials that the operation accepts. If there is none in the list, a credential is not read.
    pub accepts: &'static [Credential],
    /// True if a form counts only if its browser names this service in `Origin`. Elsewhere the statement of a newer browser does,
    /// too: `Sec-Fetch-Site` is not in every one, and a form without `Origin` is not from any of today's.
    pub names_origin: bool,
    /// True if a form that comes without a session, or with the token of an earlier one, reaches the function without a caller,
    /// which shows what was typed once more. Such a form accepts anybody, and a function without a caller changes nothing.
    pub keeps_form: bool,
    /// True if a person is refused with 403 instead of 401 although the credential is valid. The interface wants that
    /// for the writes of the requests board.
    pub forbids_persons: bool,
    /// Permission that the credential of an app must have.
    pub scope: Scope,
    /// True if the credential of an app needs no particular permission.
    pub any_scope: bool,
    /// Change that the operation makes.
    pub effect: Effect,
    /// True if a call that changes something leaves a row in the audit trail. False where rows of its own are the
    /// trail.
    pub audit: bool,
    /// Item that a call is about.
    pub item: GuardedItem,
    /// Rate limit that a call counts toward before its credential is read.
    pub rate: CallRate,
    /// Further limits, by address, caller or a member of the input.
    pub limits: &'static [CallLimit],
    /// True if the bytes of an answer count toward the egress of the caller's operator. Such answers that are JSON are
    /// whole in memory, so only a few of an operator exist at once.
    pub egress: bool,
    /// Limit on the size of the request body.
    pub body: BodySize,
    /// Media types of the request body. Its content is JSON under each of them but `application/octet-stream`: then the function
    /// reads it from [`Cx::body`](crate::call::cx::Cx).
    pub takes: &'static [&'static str],
    /// Member of the body, an array of objects, that the function reads as text from [`Cx::body`](crate::call::cx::Cx). The
    /// input contains an outline instead: an array of as many empty objects. Used where the bulk of a body is data that
    /// the API does not interpret.
    pub raw_body_member: Option<&'static str>,
    /// True if a number in the body of which a double drops digits is refused, instead of rounded.
    pub keeps_digits: bool,
    /// True if the function reads the body itself, from [`Cx::body`](crate::call::cx::Cx). Such a call may have further
    /// parameters, which are ignored: OAuth wants that of its endpoints (RFC 6749 section 3.1).
    pub opaque: bool,
    /// True if an operator has one call in work. Its place is taken before the body is read, which may take minutes.
    pub alone: bool,
    /// True for a document that people share the address of: query parameters that it does not know are ignored, since
    /// such links grow some on the way. Pages ignore them in any case.
    pub lenient: bool,
    /// True if an answer without a credential gets a tag, so that who has it already is not sent it again.
    pub is_validated: bool,
    /// Members that exist but never change. A call that names one is refused with a sentence that says so.
    pub immutable: &'static [&'static str],
    /// Statuses of success, each with its meaning.
    pub success: &'static [(u16, &'static str)],
    /// Statuses of an answer without a body, each with its meaning.
    pub empty: &'static [(u16, &'static str)],
    /// Statuses of failure particular to the operation, each with its meaning. Those that every operation of its kind
    /// shares are not listed.
    pub failure: &'static [(u16, &'static str)],
    /// Headers of answers particular to the operation: the statuses that have it, its name and its meaning.
    pub answer_headers: &'static [(&'static [u16], &'static str, &'static str)],
    /// Example of a request body as JSON; empty for none.
    pub example: &'static str,
}

impl Spec {
    /// Returns true if the operation accepts this kind of credential.
    pub fn accepts(&self, kind: Credential) -> bool {
        self.accepts.contains(&kind)
    }

    /// Returns true if the operation reads a credential.
    pub const fn reads_credential(&self) -> bool {
        !self.accepts.is_empty()
    }

    /// A page that anybody can open. Table entries take from it the fields that they do not set.
    pub const PAGE: Self = Self {
        surface: ApiKind::Page,
        accepts: ANYBODY,
        tag: "pages",
        takes: &[FORM],
        ..Self::BASE
    };

    /// A call that sends records to a dataset, or changes what was sent.
    pub const CONTRIBUTION: Self = Self {
        tag: "datasets",
        accepts: KEY,
        scope: Scope::Write,
        effect: Effect::Write,
        audit: false,
        item: GuardedItem::Project,
        ..Self::BASE
    };

    /// A public read. Table entries take from it the fields that they do not set.
    pub const BASE: Self = Self {
        name: "",
        surface: ApiKind::Rest,
        method: Method::GET,
        path: "",
        query: &[],
        headers: &[],
        summary: "",
        description: "",
        tag: "",
        accepts: PUBLIC,
        names_origin: false,
        keeps_form: false,
        forbids_persons: false,
        scope: Scope::Read,
        any_scope: false,
        effect: Effect::Read,
        audit: true,
        item: GuardedItem::None,
        rate: CallRate::Call,
        limits: &[],
        egress: false,
        body: BodySize::Ordinary,
        takes: &[JSON],
        raw_body_member: None,
        keeps_digits: false,
        opaque: false,
        alone: false,
        lenient: false,
        is_validated: false,
        immutable: &[],
        success: &[(200, "The answer.")],
        empty: &[],
        failure: &[],
        answer_headers: &[],
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
