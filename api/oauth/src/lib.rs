//! The rules of the OAuth 2.1 authorization server: requests, answers, clients, tokens. No HTTP and no SQL.
//!
//! A transport parses the [`Params`] of a request, finds the client ([`AuthorizationServer::registered`], or the metadata document
//! of [`document`]) and calls [`authorize::check`], [`AuthorizationServer::grant`], [`AuthorizationServer::token`], [`AuthorizationServer::revoke`] or
//! [`AuthorizationServer::register`].
//!
//! Invariants:
//! - A browser is redirected only to a URI that the client registered, and every such answer has `iss` (RFC 9207).
//! - A code and a refresh token are redeemed once. A second use ends the connection, except for the grace that
//!   [`family`] gives to a lost answer.
//! - A token is bound to one client, one agent and one resource, and has at most the scopes that a person agreed to.
//! - Secrets are stored as SHA-256 only, and no text of an error contains one.

pub mod assertion;
pub mod authorize;
pub mod challenge;
pub mod client;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod discovery;
pub mod document;
pub mod family;
mod issuer;
pub mod jwk;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
mod params;
mod pkce;
pub mod redirect;
pub mod registration;
mod scope;
mod secret;
mod server;
mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod token;

pub use issuer::{Issuer, IssuerError, Resource, UnknownResource};
pub use params::{Params, RepeatedParam};
pub use pkce::Challenge;
pub use scope::{Scope, Scopes, UnknownScope};
pub use secret::{Hash, OAuthSecret, OAuthSecretKind};
pub use server::{ACCESS_TOKEN_LIFE, AuthorizationServer, Error};
pub use storage::{
    Access, AppBudget, Code, Connection, ConnectionId, Grant, Redeemed, Storage, StorageError, StoredCode,
};
