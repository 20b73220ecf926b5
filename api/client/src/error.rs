//! Errors of the client.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::KeyId;
use serde::Deserialize;
use serde_json::{Map, Value};
use types::{Classify, Kind, Retry};

use crate::tls::{self, Hopeless};

/// An error of a call, of a pull or push, or of a verification.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The base address cannot be called.
    #[error("`{address}` is not an address of the service: {problem}")]
    Address {
        /// The base address as given.
        address: String,
        /// The rule that it breaks.
        problem: String,
    },
    /// The request failed, or its answer broke off. The request may have had its effect.
    #[error("the service did not answer {method} {path}")]
    Transport {
        /// The HTTP method of the call.
        method: String,
        /// The path of the call.
        path: String,
        /// The error of the HTTP library, without the address.
        #[source]
        source: reqwest::Error,
    },
    /// The certificate of the service or its object store is not trusted. Nothing was sent.
    #[error(
        "{method} {path}: the server's certificate is not trusted; `SSL_CERT_FILE` names other authorities to trust"
    )]
    Certificate {
        /// The HTTP method of the call.
        method: String,
        /// The path of the call.
        path: String,
        /// The problem of the certificate.
        #[source]
        source: reqwest::Error,
    },
    /// The host does not exist or does not speak TLS that both sides know. Nothing was sent.
    #[error("{method} {path} cannot reach the service: {problem}")]
    Unreachable {
        /// The HTTP method of the call.
        method: String,
        /// The path of the call.
        path: String,
        /// The reason that no retry can succeed.
        problem: String,
    },
    /// The service answered with an error status.
    #[error("{method} {path} was answered {problem}")]
    Refused {
        /// The HTTP method of the call.
        method: String,
        /// The path of the call.
        path: String,
        /// The error answer.
        problem: Box<ServiceProblem>,
    },
    /// The answer cannot be decoded.
    #[error("the answer to {method} {path} does not have the expected form")]
    Answer {
        /// The HTTP method of the call.
        method: String,
        /// The path of the call.
        path: String,
        /// The error of the decoder.
        #[source]
        source: serde_json::Error,
    },
    /// The manifest is validly signed, but is of another project, version or layout.
    #[error("the service sent another manifest than the one requested: {problem}")]
    OtherManifest {
        /// The difference to the requested manifest.
        problem: String,
    },
    /// A part could not be downloaded from the address in its manifest, or uploaded to its address.
    #[error("the part `{part}` could not be fetched: {problem}")]
    Part {
        /// The name of the part.
        part: String,
        /// The reason of the last failure.
        problem: String,
    },
    /// A signature, a hash or a content root does not hold.
    #[error(transparent)]
    Proof(#[from] proof::Error),
    /// The keys of a service contradict those that are known.
    #[error(
        "the keys of {server} are not trusted; if the service was installed again, remove its entry from `{}`",
        known_keys.display()
    )]
    Untrusted {
        /// The base address of the service.
        server: String,
        /// The file with the keys known before.
        known_keys: PathBuf,
        /// The contradiction between the keys.
        #[source]
        source: Box<proof::Error>,
    },
    /// The keys of a folder belong to a service that this machine has never met.
    #[error(
        "this machine does not know a service with the key `{key}`; fetch the keys document from the \
         service itself and name it"
    )]
    UnknownService {
        /// The first key of the folder's keys document, or the key that signed a receipt.
        key: KeyId,
    },
    /// A local file or folder could not be read or written.
    #[error("`{}` could not be read or written", path.display())]
    File {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A local file or folder is not usable for the operation.
    #[error("`{}` {problem}", path.display())]
    Place {
        /// The path of the file or folder.
        path: PathBuf,
        /// The problem, as the end of a sentence that begins with the path.
        problem: String,
    },
    /// A blocking task was cancelled or panicked, so its work is not finished.
    #[error("the work was stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

impl Error {
    /// Classifies a request without an answer.
    pub(crate) fn unanswered(method: impl Into<String>, path: String, source: reqwest::Error) -> Self {
        // The URL is removed, because the address of a part grants access to the part.
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

    /// Returns the error answer of the service, if there was one.
    pub fn problem(&self) -> Option<&ServiceProblem> {
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
            // Any other error stays the same until the caller changes something.
            _ => Retry::Never,
        }
    }
}

/// An error answer of the service or of its object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceProblem {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The machine-readable code: `error` of the body, or the `Code` of an object store. Empty if the answer has none.
    pub code: String,
    /// The sentence for people: `message` of the body, or the `Message` of an object store.
    pub message: String,
    /// The broken rules: `details` of the body.
    pub details: Vec<Detail>,
    /// The value of the `Retry-After` header, if it is in seconds.
    pub retry_after: Option<Duration>,
    /// The whole body. It is empty if it is no JSON object.
    pub body: Map<String, Value>,
}

/// A broken rule and its place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Detail {
    /// The place: a JSON pointer (RFC 6901), or the name of a parameter.
    pub path: String,
    /// The rule that is broken.
    pub problem: String,
}

impl ServiceProblem {
    /// Returns true for the statuses after which the same call may succeed later.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.status, 408 | 429 | 502..=504)
    }

    pub(crate) fn new(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let document = body;
        let body: Map<String, Value> = serde_json::from_slice(document).unwrap_or_default();
        let text = |name: &str, element: &str| {
            let text = body.get(name).and_then(Value::as_str).map(str::to_owned);
            text.unwrap_or_else(|| element_of(document, element))
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

/// Returns an element of an object store's error document (*Error responses*, Amazon S3 API Reference), or an empty
/// text.
fn element_of(document: &[u8], name: &str) -> String {
    let document = String::from_utf8_lossy(document);
    // The documents are small and flat, so no XML parser is needed.
    let begins = document.split_once(&format!("<{name}>"));
    let content = begins.and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    content.map(|(content, _)| content.to_owned()).unwrap_or_default()
}

/// Formats as `400 invalid: one sentence (path: rule; path: rule)`, with the rules that the sentence does not say.
impl std::fmt::Display for ServiceProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.code)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        // The message often is a detail in words, and a reader needs it once.
        let details = self
            .details
            .iter()
            .filter(|detail| !self.message.contains(&detail.problem));
        let details: Vec<_> = details
            .map(|detail| format!("{}: {}", detail.path, detail.problem))
            .collect();
        if !details.is_empty() {
            write!(f, " ({})", details.join("; "))?;
        }
        Ok(())
    }
}
