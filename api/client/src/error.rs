//! What can go wrong with a call.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::KeyId;
use serde::Deserialize;
use serde_json::{Map, Value};
use types::{Classify, Kind, Retry};

use crate::tls::{self, Hopeless};

/// Why a call gave no result, or a version could not be pulled or verified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The base address is not one this client can call.
    #[error("`{address}` is not an address of the service: {problem}")]
    Address {
        /// The address as given.
        address: String,
        /// The rule that is broken.
        problem: String,
    },
    /// The request did not get through, or its answer broke off. What it asked for may have been done.
    #[error("the service did not answer {method} {path}")]
    Transport {
        /// The HTTP method.
        method: String,
        /// The path called.
        path: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// Whoever answered did not prove to be the service or its store. Nothing was sent.
    #[error(
        "{method} {path}: the server's certificate is not trusted; `SSL_CERT_FILE` names other authorities to trust"
    )]
    Certificate {
        /// The HTTP method.
        method: String,
        /// The path called.
        path: String,
        /// What is wrong with the certificate.
        #[source]
        source: reqwest::Error,
    },
    /// The address is nobody's, or whoever is there does not speak this protocol. Nothing was sent.
    #[error("{method} {path} cannot reach the service: {problem}")]
    Unreachable {
        /// The HTTP method.
        method: String,
        /// The path called.
        path: String,
        /// Why no other try changes that.
        problem: String,
    },
    /// The service refused.
    #[error("{method} {path} was answered {problem}")]
    Refused {
        /// The HTTP method.
        method: String,
        /// The path called.
        path: String,
        /// What the service said.
        problem: Box<Problem>,
    },
    /// The answer does not have the shape that this client knows.
    #[error("the answer to {method} {path} does not have the expected form")]
    Answer {
        /// The HTTP method.
        method: String,
        /// The path called.
        path: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The answer is well signed and is not what was asked for.
    #[error("the service sent another manifest than the one requested: {problem}")]
    OtherManifest {
        /// What differs.
        problem: String,
    },
    /// A part could not be fetched under the address that its manifest gives.
    #[error("the part `{part}` could not be fetched: {problem}")]
    Part {
        /// The part's name.
        part: String,
        /// What went wrong.
        problem: String,
    },
    /// Something is not proven.
    #[error(transparent)]
    Proof(#[from] proof::Error),
    /// A service shows other keys than it did before.
    #[error(
        "the keys of {server} are not trusted; if the service was installed again, remove its entry from `{}`",
        known_keys.display()
    )]
    Untrusted {
        /// The base address of the service.
        server: String,
        /// The file that says which keys it had.
        known_keys: PathBuf,
        /// What is wrong with the keys.
        #[source]
        source: Box<proof::Error>,
    },
    /// Nothing on this machine says whose the keys of a folder are.
    #[error(
        "this machine does not know the first key of the folder, `{first}`; fetch the keys document from the \
         service itself and name it"
    )]
    UnknownService {
        /// The first key.
        first: KeyId,
    },
    /// A file or folder of this machine could not be read or written.
    #[error("`{}` could not be read or written", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file or folder of this machine is not what is needed.
    #[error("`{}` {problem}", path.display())]
    Place {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The process is stopping, so work was not finished.
    #[error("the work was stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

impl Error {
    /// A request that got no answer.
    pub(crate) fn unanswered(method: impl Into<String>, path: String, source: reqwest::Error) -> Self {
        // Why: an address of a part lets whoever reads it read the part.
        let (method, source) = (method.into(), source.without_url());
        match tls::hopeless(&source) {
            Some(Hopeless::Distrust) => Self::Certificate { method, path, source },
            Some(Hopeless::Other(problem)) => Self::Unreachable { method, path, problem },
            None => Self::Transport { method, path, source },
        }
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn place(path: &Path, problem: impl Into<String>) -> Self {
        Self::Place {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// What the service said, where it refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Address { .. }
            | Self::Certificate { .. }
            | Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::UnknownService { .. } => Kind::Invalid,
            Self::Transport { .. } | Self::Part { .. } | Self::File { .. } | Self::Stopped(_) => Kind::Unavailable,
            Self::Answer { .. } | Self::OtherManifest { .. } => Kind::Internal,
            Self::Place { .. } => Kind::Conflict,
            Self::Proof(error) => error.kind(),
            Self::Refused { problem, .. } => match problem.status {
                401 => Kind::Unauthenticated,
                402 => Kind::PaymentRequired,
                403 => Kind::Forbidden,
                404 => Kind::NotFound,
                409 => Kind::Conflict,
                413 => Kind::TooLarge,
                422 => Kind::Unprocessable,
                429 => Kind::Limited,
                408 | 502..=504 => Kind::Unavailable,
                400..=499 => Kind::Invalid,
                _ => Kind::Internal,
            },
        }
    }

    fn retry(&self) -> Retry {
        match self.kind() {
            Kind::Limited | Kind::Unavailable => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}

/// An error answer of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The machine code: the body's `error`, or the `Code` of an object store; empty where the answer had none.
    pub code: String,
    /// The sentence for people: the body's `message`, or that of an object store.
    pub message: String,
    /// What is wrong where, the body's `details`.
    pub details: Vec<Detail>,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
    /// The whole body, with the fields of the case.
    pub body: Map<String, Value>,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Detail {
    /// Where: a JSON pointer, or the name of a parameter.
    pub path: String,
    /// The rule.
    pub problem: String,
}

impl Problem {
    /// Returns true for the statuses after which the same call may succeed a little later.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.status, 408 | 429 | 502..=504)
    }

    pub(crate) fn new(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let document = body;
        let body: Map<String, Value> = serde_json::from_slice(document).unwrap_or_default();
        let text = |name: &str, element: &str| {
            let said = body.get(name).and_then(Value::as_str).map(str::to_owned);
            said.unwrap_or_else(|| element_of(document, element))
        };
        Self {
            status,
            code: text("error", "Code"),
            message: text("message", "Message"),
            details: body
                .get("details")
                .and_then(|details| Vec::deserialize(details).ok())
                .unwrap_or_default(),
            retry_after,
            body,
        }
    }
}

/// What an error document of an object store says (*Error responses*, Amazon S3 API Reference); empty where it is none.
fn element_of(document: &[u8], name: &str) -> String {
    let document = String::from_utf8_lossy(document);
    let begins = document.split_once(&format!("<{name}>"));
    let content = begins.and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    content.map(|(content, _)| content.to_owned()).unwrap_or_default()
}

/// `400 invalid: one sentence (path: rule; path: rule)`.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.code)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if !self.details.is_empty() {
            let details: Vec<_> = self
                .details
                .iter()
                .map(|detail| format!("{}: {}", detail.path, detail.problem))
                .collect();
            write!(f, " ({})", details.join("; "))?;
        }
        Ok(())
    }
}
