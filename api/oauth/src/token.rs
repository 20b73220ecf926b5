//! Token and revocation requests, their answers and errors (RFC 6749 section 5, RFC 7009).
//!
//! Invariant: a request is parsed completely before anything is looked up, and no text of an error contains a part of
//! the request.

use data_encoding::BASE64;
use serde::Serialize;
use serde_json::{Value, json};

use crate::assertion;
use crate::issuer::{Issuer, Resource};
use crate::params::{Params, RepeatedParam};
use crate::pkce::is_verifier;
use crate::scope::Scopes;
use crate::secret::{OAuthSecret, OAuthSecretKind};

/// Headers of every answer of the token, revocation and registration endpoints (RFC 6749 section 5.1).
pub const TOKEN_HEADERS: [(&str, &str); 2] = [("Cache-Control", "no-store"), ("Pragma", "no-cache")];

/// Error of the token and revocation endpoints. The texts are constant and have no quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {description}")]
pub struct TokenError {
    /// Error code of RFC 6749 section 5.2 or RFC 8707.
    pub code: &'static str,
    /// Text for the developer of the client.
    pub description: &'static str,
    /// True if the client tried to authenticate by `Authorization`, which the answer has to take up.
    with_challenge: bool,
}

impl TokenError {
    const fn new(code: &'static str, description: &'static str) -> Self {
        Self {
            code,
            description,
            with_challenge: false,
        }
    }

    pub(crate) const fn request(description: &'static str) -> Self {
        Self::new("invalid_request", description)
    }

    pub(crate) const fn client(description: &'static str) -> Self {
        Self::new("invalid_client", description)
    }

    pub(crate) const fn grant(description: &'static str) -> Self {
        Self::new("invalid_grant", description)
    }

    /// The request is from a client that is neither registered nor has a document that can be used.
    pub const UNKNOWN_CLIENT: Self = Self::client("the client is not known");
    /// The code or the token was not given to the client.
    pub const NOT_GIVEN: Self = Self::grant("the code or the token is not valid");
    pub(crate) const TARGET: Self = Self::new("invalid_target", "resource is not the one that was agreed to");
    pub(crate) const SCOPE: Self = Self::new("invalid_scope", "scope has more than was agreed to");
    pub(crate) const NO_REFRESH: Self = Self::new("unauthorized_client", "the client did not register refresh_token");

    /// Returns the status of the answer.
    pub fn status(self) -> u16 {
        if self.code == "invalid_client" { 401 } else { 400 }
    }

    /// Returns the value of `WWW-Authenticate`, if the answer has one.
    pub const fn www_authenticate(self) -> Option<&'static str> {
        if self.with_challenge {
            Some("Basic realm=\"sluice\"")
        } else {
            None
        }
    }

    /// Returns the body of the answer.
    pub fn body(self) -> Value {
        json!({"error": self.code, "error_description": self.description})
    }
}

impl From<RepeatedParam> for TokenError {
    fn from(_repeated: RepeatedParam) -> Self {
        Self::request("a parameter occurs more than once")
    }
}

/// Identity that a request claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Identifier of the client: `client_id`, or the `sub` of the assertion.
    pub client_id: String,
    /// Assertion that proves it, not verified yet.
    pub assertion: Option<String>,
}

/// A token request that was parsed completely.
#[derive(Clone, Debug)]
pub enum TokenRequest {
    /// A code is exchanged for tokens.
    Code {
        /// The code of the authorization answer.
        code: OAuthSecret,
        /// Verifier of the challenge.
        verifier: String,
        /// Redirect URI of the authorization request. OAuth 2.1 clients leave it out; PKCE has taken its place.
        redirect_uri: Option<String>,
        /// Resource, if the request repeats it.
        resource: Option<Resource>,
    },
    /// A refresh token is exchanged for new tokens.
    Refresh {
        /// The refresh token of the connection.
        token: OAuthSecret,
        /// Scopes of the new access token; none for all that were agreed to.
        scopes: Option<Scopes>,
        /// Resource, if the request repeats it.
        resource: Option<Resource>,
    },
}

impl TokenRequest {
    /// Returns the code or the refresh token.
    pub const fn secret(&self) -> &OAuthSecret {
        match self {
            Self::Code { code, .. } => code,
            Self::Refresh { token, .. } => token,
        }
    }
}

/// Reads the identity of the client. `basic` is what follows the scheme `Basic` in the header `Authorization`, if the
/// request has it.
///
/// # Errors
/// [`TokenError`]
pub fn credentials(params: &Params, basic: Option<&str>) -> Result<Credentials, TokenError> {
    let named = basic.map(public_client).transpose()?;
    // A client that sends a secret believes that it is protected by it, and must learn that it is not.
    if params.get("client_secret")?.is_some() {
        return Err(TokenError::client(
            "clients have no secret here: use none or private_key_jwt",
        ));
    }
    let client_id = match (params.get("client_id")?, &named) {
        (Some(client_id), Some(named)) if client_id != named => {
            return Err(TokenError::client("client_id is not the one in Authorization"));
        }
        (client_id, named) => client_id.or(named.as_deref()),
    };
    let assertion = params.get("client_assertion")?;
    let assertion_type = params.get("client_assertion_type")?;
    let claimed = match (assertion, assertion_type) {
        (None, None) => None,
        (Some(assertion), Some(assertion::ASSERTION_TYPE)) => Some(assertion),
        (Some(_), Some(_)) => return Err(TokenError::client("client_assertion_type is not known")),
        // One without the other is a defect of the client, and a guess at the missing one could hide it.
        _ => {
            return Err(TokenError::request(
                "client_assertion and client_assertion_type belong together",
            ));
        }
    };
    let subject = claimed.map(|assertion| {
        assertion::claimed_client(assertion).ok_or(TokenError::client("client_assertion is not a JWT with a sub"))
    });
    let subject = subject.transpose()?;
    // `client_id` is optional beside an assertion, and may then not contradict it (RFC 7521 section 4.2).
    let client_id = match (client_id, subject) {
        (Some(named), Some(subject)) if named != subject => {
            return Err(TokenError::client("client_id is not the sub of client_assertion"));
        }
        (_, Some(subject)) => subject,
        (Some(named), None) => named.to_owned(),
        (None, None) => return Err(TokenError::client("client_id is missing")),
    };
    Ok(Credentials {
        client_id,
        assertion: claimed.map(str::to_owned),
    })
}

/// Returns the client that `Basic` credentials name. Libraries send them for clients without a secret too, with an empty
/// password; both parts are encoded as in a form (RFC 6749 section 2.3.1).
fn public_client(basic: &str) -> Result<String, TokenError> {
    // RFC 6749 section 5.2: an attempt by `Authorization` is answered with a challenge for that scheme.
    let refuse = |description| TokenError {
        with_challenge: true,
        ..TokenError::client(description)
    };
    let decoded = BASE64.decode(basic.trim().as_bytes()).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().and_then(|pair| pair.split_once(':')) {
        Some((client_id, "")) if !client_id.is_empty() => {
            let pair = format!("client_id={client_id}");
            let form = Params::parse(pair.as_bytes());
            Ok(form.get("client_id")?.unwrap_or_default().to_owned())
        }
        Some(_) => Err(refuse("clients have no password here: use none or private_key_jwt")),
        None => Err(refuse("Authorization is not the Base64 of a client_id and a colon")),
    }
}

/// Reads a token request.
///
/// # Errors
/// [`TokenError`]
pub fn request(params: &Params, issuer: &Issuer) -> Result<TokenRequest, TokenError> {
    let grant_type = params.get("grant_type")?;
    let resource = || {
        // Several resources are a valid request of RFC 8707, which no token here can be for.
        let named = params.get("resource").map_err(|_repeated| TokenError::TARGET)?;
        let found = named.map(|named| issuer.resource(named).ok_or(TokenError::TARGET));
        found.transpose()
    };
    match grant_type {
        Some("authorization_code") => {
            let code = params.get("code")?.ok_or(TokenError::request("code is missing"))?;
            // A missing verifier is not taken for one that does not match: the client has to learn of PKCE.
            let verifier = params.get("code_verifier")?;
            let verifier = verifier.ok_or(TokenError::request("code_verifier is missing: PKCE is required"))?;
            // The form is checked before the code is looked up: such a request can never succeed.
            if !is_verifier(verifier) {
                return Err(TokenError::request("code_verifier has 43 to 128 unreserved characters"));
            }
            Ok(TokenRequest::Code {
                code: OAuthSecret::read(OAuthSecretKind::Code, code).ok_or(TokenError::grant("code is not valid"))?,
                verifier: verifier.to_owned(),
                redirect_uri: params.get("redirect_uri")?.map(str::to_owned),
                resource: resource()?,
            })
        }
        Some("refresh_token") => {
            let token = params.get("refresh_token")?;
            let token = token.ok_or(TokenError::request("refresh_token is missing"))?;
            // Unknown words are left out, as in the authorization request.
            let scopes = params.get("scope")?.map(Scopes::known);
            Ok(TokenRequest::Refresh {
                token: OAuthSecret::read(OAuthSecretKind::Refresh, token)
                    .ok_or(TokenError::grant("refresh_token is not valid"))?,
                scopes: scopes.filter(|scopes| !scopes.is_empty()),
                resource: resource()?,
            })
        }
        // Grants without a person, such as `client_credentials`, have nobody who agreed.
        Some(_) => Err(TokenError::new(
            "unsupported_grant_type",
            "grant_type can be authorization_code or refresh_token",
        )),
        None => Err(TokenError::request("grant_type is missing")),
    }
}

/// Reads a revocation request: the token, if it has the form of one. A hint about its kind is not needed.
///
/// # Errors
/// [`TokenError`]
pub fn revocation(params: &Params) -> Result<Option<OAuthSecret>, TokenError> {
    let token = params.get("token")?.ok_or(TokenError::request("token is missing"))?;
    // The prefix of a token says its kind, so that a wrong hint does no harm.
    let read = |kind| OAuthSecret::read(kind, token);
    Ok(read(OAuthSecretKind::Access).or_else(|| read(OAuthSecretKind::Refresh)))
}

/// Answer to a token request. It contains secrets, so that its text is made by serde only.
#[derive(Serialize)]
pub struct TokenAnswer {
    pub(crate) access_token: String,
    pub(crate) token_type: &'static str,
    pub(crate) expires_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    pub(crate) scope: String,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenAnswer")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
