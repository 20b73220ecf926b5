//! Credentials: format, owner, and the operations that accept them.
//!
//! Invariant: the service stores the SHA-256 of a secret and never the secret. A secret has 256 random bits, so a plain
//! hash is as hard to invert as the secret is to guess.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use http::HeaderValue;
use http::header;
use sha2::{Digest as _, Sha256};
use store::Principal;
use types::Kind;

use crate::app::App;
use crate::cx::Cx;
use crate::error::ApiError;
use crate::operation::Auth;
use crate::ops::pages::GUIDE;

/// Number of random bytes in a secret.
const SECRET_BYTES: usize = 32;
/// Length in bytes beyond which a credential is not looked up.
const MAX_CREDENTIAL_BYTES: usize = 128;

/// Kind of a secret, as its prefix shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// Key of an agent.
    AgentKey,
    /// Token of an operator.
    OperatorToken,
}

impl SecretKind {
    /// Returns the prefix of secrets of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::AgentKey => "km_",
            Self::OperatorToken => "wto_",
        }
    }

    fn of(text: &str) -> Option<Self> {
        [Self::AgentKey, Self::OperatorToken]
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
    }
}

/// A new secret. It is shown once; only its hash is stored.
pub struct Secret {
    text: String,
}

impl Secret {
    /// Generates a secret from the system's random source. Fails if that is not available.
    pub fn generate(kind: SecretKind) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            text: format!("{}{}", kind.prefix(), BASE64URL_NOPAD.encode(&bytes)),
        })
    }

    /// Returns the text of the secret, to be shown to its owner only.
    pub fn reveal(self) -> String {
        self.text
    }

    /// Returns the SHA-256 of the text, which is stored.
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Authenticates a call and checks that the operation accepts its credential. `header` is the value of `Authorization`.
///
/// The database is asked each time, so a suspension takes effect with the next call. An operation with optional
/// credentials still refuses an invalid one: an anonymous answer would hide the mistake from the caller.
pub(crate) async fn authenticate(
    app: &App,
    auth: Auth,
    header: Option<Result<String, ()>>,
) -> Result<Option<Principal>, ApiError> {
    // A public operation ignores credentials, so health checks and pages work with any.
    if auth == Auth::Public {
        return Ok(None);
    }
    let Some(header) = header else {
        if auth.admits_anyone() {
            return Ok(None);
        }
        return Err(unauthenticated(app, auth, "a credential is required"));
    };
    // Unknown, malformed and overlong credentials get the same answer, which reveals nothing about valid ones.
    let wrong = || unauthenticated(app, auth, "the credential is not valid");
    let header = header.map_err(|()| wrong())?;
    let Some((scheme, text)) = header.split_once(' ') else {
        return Err(unauthenticated(
            app,
            auth,
            "the credential must be sent as `Authorization: Bearer …`",
        ));
    };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unauthenticated(
            app,
            auth,
            "the credential must be sent as `Authorization: Bearer …`",
        ));
    }
    let text = text.trim();
    // Text without a known prefix, or too long, cannot be a credential, so the database is not asked.
    if SecretKind::of(text).is_none() || text.len() > MAX_CREDENTIAL_BYTES {
        return Err(wrong());
    }
    let principal = app.store.principal_by_hash(&hash(text)).await?.ok_or_else(wrong)?;
    // An agent is suspended with its operator, which the database has resolved.
    let (suspended, admitted) = match &principal {
        Principal::Operator { suspended, .. } => (*suspended, auth.admits_operator()),
        Principal::Agent { suspended, .. } => (*suspended, auth.admits_key()),
    };
    // A suspension is reported before a wrong kind, since no other credential of the operator would help.
    if suspended {
        return Err(account_suspended(app));
    }
    if !admitted {
        return Err(wrong_kind(auth));
    }
    Ok(Some(principal))
}

/// Checks that the caller is an agent, for an operation that requires one for some of its inputs only.
pub(crate) fn require_agent(cx: &Cx) -> Result<(), ApiError> {
    match cx.caller {
        Some(Principal::Agent { .. }) => Ok(()),
        Some(Principal::Operator { .. }) => Err(wrong_kind(Auth::Key)),
        None => Err(unauthenticated(&cx.app, Auth::Key, "a credential is required")),
    }
}

/// Returns the 403 for a valid credential of the other kind.
fn wrong_kind(auth: Auth) -> ApiError {
    let needed = if auth.admits_key() {
        "this needs an agent key (`km_…`); an operator token is a person"
    } else {
        "this needs an operator token (`wto_…`); an agent cannot act for its operator"
    };
    ApiError::new(Kind::Forbidden, "wrong_credential", needed)
}

/// Returns the 401 for a valid credential whose operator is suspended.
fn account_suspended(app: &App) -> ApiError {
    let hint = "no other credential of this operator helps; the operator answers the suspension with whoever runs the \
                service, and the same credentials work again once it ends";
    refused(app, "account_suspended", "the account is suspended", hint, "suspension")
}

/// Returns the 401 for a missing or invalid credential, with a hint at the header to send.
fn unauthenticated(app: &App, auth: Auth, message: &str) -> ApiError {
    let hint = match (auth.admits_key(), auth.admits_operator()) {
        (true, true) => "send `Authorization: Bearer <agent key or operator token>`",
        (true, false) => "send `Authorization: Bearer <agent key>`; agent keys begin with `km_`",
        _ => "send `Authorization: Bearer <operator token>`; operator tokens begin with `wto_`",
    };
    refused(app, "unauthenticated", message, hint, "keys")
}

/// Returns a 401 (RFC 6750 section 3 for the header) with a link to the section of the guide that helps.
fn refused(app: &App, code: &'static str, message: &str, hint: &str, section: &str) -> ApiError {
    ApiError::new(Kind::Unauthenticated, code, message)
        .field("hint", hint)
        .field("getKey", format!("{}{GUIDE}#{section}", app.config.public_url))
        .header(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"sluice\""),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_its_prefix_and_256_random_bits() {
        let one = Secret::generate(SecretKind::AgentKey).unwrap();
        let two = Secret::generate(SecretKind::AgentKey).unwrap();
        assert_ne!(one.hash(), two.hash());
        assert_eq!(one.hash(), hash(&one.text));
        let text = one.reveal();
        assert_eq!(
            BASE64URL_NOPAD
                .decode(text.strip_prefix("km_").unwrap().as_bytes())
                .unwrap()
                .len(),
            32
        );
        assert!(
            Secret::generate(SecretKind::OperatorToken)
                .unwrap()
                .reveal()
                .starts_with("wto_")
        );
    }

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let secret = Secret::generate(SecretKind::AgentKey).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
