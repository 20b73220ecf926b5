//! The HTTP client for URLs that strangers name: metadata documents of OAuth clients, sources of collectors.
//!
//! Invariants:
//! - A connection goes to an address that was checked just before, and to no other: a name is resolved once per
//!   connection, every address of the answer must be public, and the socket is connected to one of exactly these.
//! - A redirect is refused, or is checked like the first URL. There is no proxy and no cookie, and no credential but
//!   the key that an administrator has for a server that he names.
//! - Time, headers and body of an exchange are bounded. A compressed body is refused, so that the bound counts what
//!   the caller gets.
//! - The text of an [`Error`] contains no address and does not tell a name of a private network from a missing one.

mod address;
mod client;
mod dial;
mod error;
mod options;
mod resolve;
mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;

pub use address::is_public;
pub use client::{NotPosted, OutboundAnswer, OutboundClient, RedirectStep};
pub use dial::Dialer;
pub use error::{Error, UrlRefusal};
pub use options::{ClientOptions, GetRequest, Ports, RequestLimits, Roots};
pub use resolve::{Resolver, SystemResolver};
