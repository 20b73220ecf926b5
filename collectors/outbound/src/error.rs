//! Errors of fetching, which can be shown to the person or agent who named the URL.
//!
//! Invariant: a text names the host as the caller wrote it and nothing that the service learned about its own network.

use std::io;

use types::{Classify, Kind, Retry};

/// Rule that a URL breaks, before anything is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum UrlRefusal {
    /// The URL has more bytes than are read.
    #[error("it is longer than 2,048 bytes")]
    Length,
    /// The text is no absolute URL as RFC 3986 spells it.
    #[error("it is not an absolute URL")]
    Syntax,
    /// The scheme is not `https`.
    #[error("its scheme is not `https`")]
    Scheme,
    /// The URL contains a user name or a password.
    #[error("it contains user information")]
    UserInfo,
    /// The host is spelled in a way that readers may take for another host: as a number, with escapes or a last dot.
    #[error("its host is not spelled plainly")]
    Spelling,
    /// The host is a name of private networks.
    #[error("its host is a name of private networks")]
    PrivateName,
    /// The host is an address that is not public.
    #[error("its host is not a public address")]
    PrivateAddress,
    /// The port is not listed.
    #[error("its port is not allowed")]
    Port,
}

/// Failure to fetch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options of the client cannot be used.
    #[error("the client for outside servers cannot be set up: {0}")]
    Options(String),
    /// A validator or the accepted media type is no value of a header.
    #[error("the value of `{0}` cannot be a header")]
    Header(&'static str),
    /// The URL is refused.
    #[error("the URL is refused: {0}")]
    Url(#[from] UrlRefusal),
    /// A redirect leads to a URL that is refused.
    #[error("`{host}` redirects to a URL that is refused: {refusal}")]
    RedirectTarget {
        /// The host that redirects.
        host: String,
        /// The rule that the next URL breaks.
        refusal: UrlRefusal,
    },
    /// An address of the host is not public. The text is that of [`Unresolved`](Self::Unresolved) on purpose.
    #[error("`{host}` has no public address")]
    NotPublic {
        /// The host of the URL.
        host: String,
    },
    /// The host has no address, or cannot be resolved now.
    #[error("`{host}` has no public address")]
    Unresolved {
        /// The host of the URL.
        host: String,
        /// The resolver's error, if it had one. It is for the log.
        cause: Option<io::Error>,
    },
    /// No address of the host accepts a connection, or the connection ended too early.
    #[error("`{host}` cannot be reached")]
    Unreachable {
        /// The host of the URL.
        host: String,
        /// The error of the connection. It is for the log.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// TLS cannot be agreed on; usually the certificate is not trusted or has another name.
    #[error("`{host}` has no certificate that is trusted")]
    Tls {
        /// The host of the URL.
        host: String,
        /// The error of TLS. It is for the log.
        cause: io::Error,
    },
    /// The exchange took too long.
    #[error("`{host}` did not answer completely in time")]
    Timeout {
        /// The host of the URL.
        host: String,
    },
    /// The answer is not HTTP/1.1.
    #[error("the answer of `{host}` is not valid HTTP")]
    Protocol {
        /// The host of the URL.
        host: String,
    },
    /// The headers of the answer exceed their limit.
    #[error("the answer of `{host}` has more than {limit} bytes of headers")]
    Headers {
        /// The host of the URL.
        host: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The body of the answer exceeds its limit.
    #[error("the answer of `{host}` has more than {limit} bytes")]
    TooLarge {
        /// The host of the URL.
        host: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The body is compressed, although the request asks for a plain one.
    #[error("the answer of `{host}` is compressed")]
    Compressed {
        /// The host of the URL.
        host: String,
    },
    /// The server redirects more often than the request allows.
    #[error("`{host}` redirects, and at most {limit} redirects are followed")]
    Redirects {
        /// The host that redirects.
        host: String,
        /// The limit; 0 if none is followed.
        limit: u8,
    },
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            // The options are those of the service, and no caller can mend them.
            Self::Options(_) => Kind::Internal,
            Self::Unreachable { .. } | Self::Timeout { .. } => Kind::Unavailable,
            // A name that is missing and one of a private network must not differ to the caller.
            _ => Kind::Invalid,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Unresolved { .. } | Self::Unreachable { .. } | Self::Timeout { .. } => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}
