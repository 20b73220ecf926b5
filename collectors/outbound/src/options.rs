//! Options of a client, and requests with their limits.
//!
//! Invariant: the defaults are the strict ones; each weaker rule is a member that somebody set.

use std::time::Duration;

/// Ports that are connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// The listed ports only.
    Only(Vec<u16>),
    /// Every port: for tests and development.
    Any,
}

impl Default for Ports {
    fn default() -> Self {
        Self::Only(vec![443])
    }
}

impl Ports {
    pub(crate) fn contain(&self, port: u16) -> bool {
        match self {
            Self::Only(ports) => ports.contains(&port),
            // Nobody can listen on port 0.
            Self::Any => port != 0,
        }
    }
}

/// Certificate authorities that are trusted.
#[derive(Clone, Debug, Default)]
pub enum Roots {
    /// The authorities of the operating system; `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
    #[default]
    System,
    /// The certificates of this PEM text.
    Pem(String),
}

/// Options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// URL or mail address at which the owner of a server can ask about the requests. It is part of `User-Agent`.
    pub contact: String,
    /// Allows `http`, names of private networks and addresses that are not public: for tests and development.
    pub allow_private: bool,
    /// Ports that are connected to.
    pub ports: Ports,
    /// Certificate authorities that are trusted.
    pub roots: Roots,
}

impl ClientOptions {
    /// Returns the strict options: `https`, port 443, public addresses, the system's certificate authorities.
    pub fn new(contact: impl Into<String>) -> Self {
        Self {
            contact: contact.into(),
            allow_private: false,
            ports: Ports::default(),
            roots: Roots::default(),
        }
    }
}

/// Limits of one request, with all its redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Longest time from resolving a name until TLS is agreed on, for each connection.
    pub connect: Duration,
    /// Longest time from the call to the last byte of the body.
    pub whole: Duration,
    /// Most bytes of the status line and the headers of an answer.
    pub headers: usize,
    /// Most bytes of the body.
    pub body: u64,
    /// Most redirects that are followed; 0 refuses the first.
    pub redirects: u8,
}

impl RequestLimits {
    /// Returns limits of 3 s to connect, 5 s in all, 16 KiB of headers, `body` bytes and no redirect.
    pub const fn of_body(body: u64) -> Self {
        Self {
            connect: Duration::from_secs(3),
            whole: Duration::from_secs(5),
            headers: 16 * 1024,
            body,
            redirects: 0,
        }
    }
}

/// A GET request.
#[derive(Clone, Copy, Debug)]
pub struct GetRequest<'a> {
    /// Absolute URL. A fragment is not sent.
    pub url: &'a str,
    /// Limits of the exchange.
    pub limits: RequestLimits,
    /// Media types that are accepted.
    pub accept: Option<&'a str>,
    /// Entity tag of the copy that the caller has, as the server sent it (RFC 9110 section 13.1.2).
    pub if_none_match: Option<&'a str>,
    /// `Last-Modified` of the copy that the caller has, as the server sent it (RFC 9110 section 13.1.3).
    pub if_modified_since: Option<&'a str>,
}

impl<'a> GetRequest<'a> {
    /// Creates a request without validators.
    pub const fn new(url: &'a str, limits: RequestLimits) -> Self {
        Self {
            url,
            limits,
            accept: None,
            if_none_match: None,
            if_modified_since: None,
        }
    }
}
