//! Credentials: what they look like, whose they are, and what an operation takes.
//!
//! Invariant: the service keeps the SHA-256 of a secret and never the secret. A secret has 256 random bits, so a plain
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

/// How many random bytes a secret has.
const SECRET_BYTES: usize = 32;
/// The longest credential that is looked up.
const LONGEST: usize = 128;

/// What a secret is for, seen from its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// An agent key.
    AgentKey,
    /// An operator token.
    OperatorToken,
}

impl SecretKind {
    /// What the text of such a secret begins with.
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

/// A fresh secret: shown once, kept as its hash.
pub struct Secret {
    text: String,
}

impl Secret {
    /// A secret from the system's randomness, which can be missing.
    pub fn generate(kind: SecretKind) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            text: format!("{}{}", kind.prefix(), BASE64URL_NOPAD.encode(&bytes)),
        })
    }

    /// The secret, for its owner and nobody else.
    pub fn reveal(self) -> String {
        self.text
    }

    /// What is kept of it.
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

/// Finds out who calls and whether an operation takes them. `header` is the value of `Authorization`.
///
/// The database is asked each time, so a suspension holds from the next call on. A credential that is presented must be
/// valid, also where none is needed: an answer to nobody would mislead whoever mistyped it.
pub(crate) async fn authenticate(
    app: &App,
    auth: Auth,
    header: Option<Result<String, ()>>,
) -> Result<Option<Principal>, ApiError> {
    if auth == Auth::Public {
        return Ok(None);
    }
    let Some(header) = header else {
        if auth.admits_anyone() {
            return Ok(None);
        }
        return Err(unauthenticated(app, auth, "a credential is required"));
    };
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
    if SecretKind::of(text).is_none() || text.len() > LONGEST {
        return Err(wrong());
    }
    let principal = app.store.principal_by_hash(&hash(text)).await?.ok_or_else(wrong)?;
    let (suspended, admitted) = match &principal {
        Principal::Operator { suspended, .. } => (*suspended, auth.admits_operator()),
        Principal::Agent { suspended, .. } => (*suspended, auth.admits_key()),
    };
    if suspended {
        return Err(account_suspended(app));
    }
    if !admitted {
        return Err(wrong_kind(auth));
    }
    Ok(Some(principal))
}

/// Whether the caller is an agent, for an operation that needs one for some of its inputs only.
pub(crate) fn require_agent(cx: &Cx) -> Result<(), ApiError> {
    match cx.caller {
        Some(Principal::Agent { .. }) => Ok(()),
        Some(Principal::Operator { .. }) => Err(wrong_kind(Auth::Key)),
        None => Err(unauthenticated(&cx.app, Auth::Key, "a credential is required")),
    }
}

/// The refusal of a valid credential of the other kind.
fn wrong_kind(auth: Auth) -> ApiError {
    let needed = if auth.admits_key() {
        "this needs an agent key (`km_…`); an operator token is a person"
    } else {
        "this needs an operator token (`wto_…`); an agent cannot act for its operator"
    };
    ApiError::new(Kind::Forbidden, "wrong_credential", needed)
}

/// The refusal of a valid credential whose operator is suspended.
fn account_suspended(app: &App) -> ApiError {
    let hint = "no other credential of this operator helps; the operator answers the suspension with whoever runs the \
                service, and the same credentials work again once it ends";
    refused(app, "account_suspended", "the account is suspended", hint, "suspension")
}

/// A 401 that says how to do better.
fn unauthenticated(app: &App, auth: Auth, message: &str) -> ApiError {
    let hint = match (auth.admits_key(), auth.admits_operator()) {
        (true, true) => "send `Authorization: Bearer <agent key or operator token>`",
        (true, false) => "send `Authorization: Bearer <agent key>`; agent keys begin with `km_`",
        _ => "send `Authorization: Bearer <operator token>`; operator tokens begin with `wto_`",
    };
    refused(app, "unauthenticated", message, hint, "keys")
}

/// A 401 (RFC 6750 section 3 for the header) with the section of the guide that helps.
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
