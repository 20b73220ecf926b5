//! Client assertions: `private_key_jwt` (RFC 7523) with the issuer as the only audience (RFC 7523bis).
//!
//! Invariant: an assertion that [`verify`] accepts was signed by a key of its client, names this issuer and no other
//! server, and ends soon. The caller uses its `jti` once ([`Storage::use_jti`](crate::Storage::use_jti)).

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Number, Value};
use types::Timestamp;

use crate::client::object;
use crate::issuer::Issuer;
use crate::jwk::{JwkAlgorithm, JwkSet};

/// The `client_assertion_type` of these assertions.
pub const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Longest time until an assertion ends. Libraries for clients use one minute to one hour.
pub const MAX_ASSERTION_LIFE: Duration = Duration::from_hours(1);
/// Difference of clocks that is tolerated.
pub const CLOCK_LEEWAY: Duration = Duration::from_secs(30);
/// Most bytes of an assertion.
const MAX_BYTES: usize = 8 * 1024;
/// Most bytes of a `jti`.
const MAX_JTI: usize = 256;

/// The part of an assertion that its use leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Identifier of the assertion, unique for its client.
    pub jti: String,
    /// Instant until which the identifier has to be remembered.
    pub remembered_until: Timestamp,
}

/// Rule that an assertion breaks. The answer to the client is `invalid_client` for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.description())]
pub enum AssertionError {
    /// The text is not a signed JWT in the compact form.
    Form,
    /// The algorithm is not ES256, RS256 or `EdDSA`.
    Algorithm,
    /// The header names keys, extensions or a type that are not for assertions.
    Header,
    /// No key of the client made the signature.
    Signature,
    /// `iss` or `sub` is another client.
    Client,
    /// `aud` is not the issuer.
    Audience,
    /// The assertion has ended, has not begun, or ends too late.
    Time,
    /// The assertion has no identifier of 1 to 256 bytes.
    Id,
}

impl AssertionError {
    /// Returns a text for the developer of the client, without quotes.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Form => "client_assertion is not a signed JWT",
            Self::Algorithm => "client_assertion is not signed with ES256, RS256 or EdDSA",
            Self::Header => "client_assertion has header members that are not accepted",
            Self::Signature => "client_assertion is not signed by a key of the client",
            Self::Client => "iss and sub of client_assertion have to be the client_id",
            Self::Audience => "aud of client_assertion has to be the issuer, as one string",
            Self::Time => "exp of client_assertion has to be within the next hour, and iat and nbf not in the future",
            Self::Id => "client_assertion needs a jti of 1 to 256 bytes",
        }
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    typ: Option<String>,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<IgnoredAny>,
    #[serde(default)]
    b64: Option<IgnoredAny>,
    #[serde(default)]
    jku: Option<IgnoredAny>,
    #[serde(default)]
    jwk: Option<IgnoredAny>,
    #[serde(default)]
    x5u: Option<IgnoredAny>,
    #[serde(default)]
    x5c: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct AssertionPayload {
    #[serde(default)]
    iss: Option<String>,
    #[serde(default)]
    sub: Option<String>,
    #[serde(default)]
    aud: Option<Value>,
    #[serde(default)]
    exp: Option<Number>,
    #[serde(default)]
    nbf: Option<Number>,
    #[serde(default)]
    iat: Option<Number>,
    #[serde(default)]
    jti: Option<String>,
}

/// Returns the client that an assertion claims to be of. Nothing is verified: the caller looks the client up, then
/// calls [`verify`].
pub fn claimed_client(assertion: &str) -> Option<String> {
    let parts = split(assertion).ok()?;
    parts.payload.sub
}

/// Verifies an assertion of a client.
///
/// # Errors
/// [`AssertionError`]
pub fn verify(
    assertion: &str,
    client_id: &str,
    issuer: &Issuer,
    keys: &JwkSet,
    now: Timestamp,
) -> Result<Claims, AssertionError> {
    let AssertionParts {
        header,
        payload,
        signed,
        signature,
    } = split(assertion)?;
    let algorithm = JwkAlgorithm::parse(&header.alg).ok_or(AssertionError::Algorithm)?;
    // A key comes from the client's metadata only, and an extension that must be understood is not.
    let odd = [header.crit, header.b64, header.jku, header.jwk, header.x5u, header.x5c];
    let is_typed = |typ: &str| ["jwt", "client-authentication+jwt"].contains(&typ.to_ascii_lowercase().as_str());
    if odd.iter().any(Option::is_some) || !header.typ.as_deref().is_none_or(is_typed) {
        return Err(AssertionError::Header);
    }
    // The signature comes before the claims: an error about a claim says something about an assertion of the client.
    if !keys.verify(header.kid.as_deref(), algorithm, signed.as_bytes(), &signature) {
        return Err(AssertionError::Signature);
    }
    // The key may be that of several clients, so the signature alone does not say which of them signed.
    if payload.iss.as_deref() != Some(client_id) || payload.sub.as_deref() != Some(client_id) {
        return Err(AssertionError::Client);
    }
    // A list, even with one member, is refused: the assertion could be for another server too.
    if payload.aud != Some(Value::from(issuer.as_str())) {
        return Err(AssertionError::Audience);
    }
    let expires_at = payload.exp.as_ref().and_then(instant).ok_or(AssertionError::Time)?;
    let begun = |claim: &Option<Number>| match claim {
        None => true,
        Some(claim) => instant(claim).is_some_and(|begin| begin <= now.plus(CLOCK_LEEWAY)),
    };
    // An end far ahead would keep a stolen assertion good, and its `jti` in the database, for as long.
    let ends_soon = expires_at.plus(CLOCK_LEEWAY) > now && expires_at <= now.plus(MAX_ASSERTION_LIFE + CLOCK_LEEWAY);
    if !ends_soon || !begun(&payload.nbf) || !begun(&payload.iat) {
        return Err(AssertionError::Time);
    }
    let jti = payload.jti.filter(|jti| (1..=MAX_JTI).contains(&jti.len()));
    Ok(Claims {
        jti: jti.ok_or(AssertionError::Id)?,
        remembered_until: expires_at.plus(CLOCK_LEEWAY),
    })
}

struct AssertionParts<'a> {
    header: Header,
    payload: AssertionPayload,
    signed: &'a str,
    signature: Vec<u8>,
}

/// Decodes the three parts of a JWT.
fn split(assertion: &str) -> Result<AssertionParts<'_>, AssertionError> {
    let form = AssertionError::Form;
    let decode = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_error| form);
    // Checked before anything is decoded, so a large text costs nothing.
    if assertion.len() > MAX_BYTES {
        return Err(form);
    }
    // A JWT with five parts is encrypted, and its payload is then no Base64url of JSON: the dots are not valid there.
    let (signed, signature) = assertion.rsplit_once('.').ok_or(form)?;
    let (header, payload) = signed.split_once('.').ok_or(form)?;
    Ok(AssertionParts {
        header: object(&decode(header)?).ok_or(form)?,
        payload: object(&decode(payload)?).ok_or(form)?,
        signed,
        signature: decode(signature)?,
    })
}

/// Returns the instant of a `NumericDate`: seconds since 1970, perhaps with a fraction, which is cut off.
fn instant(seconds: &Number) -> Option<Timestamp> {
    let text = seconds.to_string();
    let whole = match seconds.as_i64() {
        Some(whole) => whole,
        // A number with a fraction, unless it is written with an exponent.
        // Libraries write fractions of seconds; floating point could round them to the next second.
        None => text
            .split_once('.')
            .filter(|(_, rest)| rest.bytes().all(|byte| byte.is_ascii_digit()))?
            .0
            .parse()
            .ok()?,
    };
    whole.checked_mul(1_000_000).map(Timestamp::from_micros)
}

#[cfg(test)]
mod tests;
