//! Reason for which a run failed or is held.
//!
//! Invariant: the code and the message are public. They contain no address, no name of a host and no text of a source.

use std::time::Duration;

use http::StatusCode;

/// Reason for which a run failed or is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Code of the reason, for programs.
    pub code: &'static str,
    /// Explanation of the reason, for people.
    pub message: String,
    /// Time after which the source asks to be tried again.
    pub retry_after: Option<Duration>,
    /// Status of the answer that is the reason.
    pub(crate) status: Option<StatusCode>,
}

impl RunFailure {
    /// Creates a failure without a time to try again.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
            status: None,
        }
    }

    /// Returns the failure of a source that is not what its definition describes.
    pub(crate) fn form(message: impl Into<String>) -> Self {
        Self::new("form", message)
    }

    /// Returns the failure for an error of the client. Its text may name an inner host, so only its kind is kept.
    pub(crate) fn of_fetching(error: &outbound::Error) -> Self {
        use outbound::Error;
        let (code, message) = match error {
            Error::Options(_) | Error::Header(_) | Error::Url(_) => ("address", "the address of the source is refused"),
            Error::RedirectTarget { .. } => ("redirect", "the source redirects to an address that is refused"),
            Error::Redirects { .. } => ("redirect", "the source redirects too often"),
            Error::NotPublic { .. } | Error::Unresolved { .. } => ("address", "the source has no public address"),
            Error::Unreachable { .. } => ("unreachable", "the source cannot be reached, or its answer broke off"),
            Error::Tls { .. } => ("certificate", "the source has no certificate that is trusted"),
            Error::Timeout { .. } => ("timeout", "the source did not answer completely in time"),
            Error::Protocol { .. } => ("protocol", "the answer of the source is not valid HTTP"),
            Error::Headers { .. } | Error::TooLarge { .. } => ("too_large", "the answer of the source is too large"),
            Error::Compressed { .. } => (
                "compressed",
                "the answer of the source is compressed, and none was asked for",
            ),
        };
        Self::new(code, message)
    }
}
