//! The `WWW-Authenticate` of a resource (RFC 6750, RFC 9728 section 5.1).
//!
//! Invariant: each challenge names the metadata of the resource that was asked, and the scope that the call needs among
//! others.

use crate::issuer::{Issuer, Resource};
use crate::scope::{Scope, Scopes};

/// Reason for which a resource refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// The call has no token.
    NoToken,
    /// The token is unknown, has ended, or is for another resource.
    InvalidToken,
    /// The token lacks the scope.
    InsufficientScope,
}

impl DenialReason {
    /// Returns the status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::NoToken | Self::InvalidToken => 401,
            Self::InsufficientScope => 403,
        }
    }

    /// Returns the value of `WWW-Authenticate` for a call of a resource that needs this scope. Without a valid token it
    /// names every scope of the resource, and for a token that lacks a scope the needed one and all below.
    pub fn www_authenticate(self, issuer: &Issuer, resource: Resource, needed: Scope) -> String {
        let error = match self {
            // A call without a token gets no error code (RFC 6750 section 3.1).
            Self::NoToken => "",
            Self::InvalidToken => "error=\"invalid_token\", ",
            Self::InsufficientScope => "error=\"insufficient_scope\", ",
        };
        let metadata = issuer.url(&crate::discovery::resource_metadata_path(resource));
        let scopes = match (self, needed) {
            // Clients register and ask with exactly these scopes. Were they those of the first call, an app that reads
            // first could never write; the person takes away what it should not have.
            (Self::NoToken | Self::InvalidToken, _) => resource.scopes(),
            (Self::InsufficientScope, Scope::Read) => Scopes::of(&[Scope::Read]),
            (Self::InsufficientScope, Scope::Write) => Scopes::of(&[Scope::Read, Scope::Write]),
            (Self::InsufficientScope, Scope::Spend) => Scopes::ALL,
        };
        let scopes = scopes.words().collect::<Vec<_>>().join(" ");
        format!("Bearer {error}scope=\"{scopes}\", resource_metadata=\"{metadata}\"")
    }
}
