//! Authorization requests and their answers (OAuth 2.1 section 4.1, RFC 8707, RFC 9207).
//!
//! Invariant: until the client and the redirect URI are known to be good, an error is shown to the person. Only after
//! that a browser is redirected, and each redirect has `iss`, so that the client sees which server answered.

use crate::client::OAuthClient;
use crate::issuer::{Issuer, Resource};
use crate::params::{Params, RepeatedParam};
use crate::pkce::Challenge;
use crate::redirect;
use crate::scope::{Scope, Scopes};
use crate::secret::OAuthSecret;

/// Most bytes of a `state`.
const MAX_STATE: usize = 2_048;

/// Scopes of a request that names none.
pub const DEFAULT_SCOPES: Scopes = Scopes::of(&[Scope::Read]);

/// An authorization request that may be put before a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizeRequest {
    /// Identifier of the client.
    pub client_id: String,
    /// Redirect URI, as the request has it.
    pub redirect_uri: String,
    /// Value that the client gets back.
    pub state: Option<String>,
    /// Challenge that the token request has to meet.
    pub challenge: Challenge,
    /// Resource that the token is for.
    pub resource: Resource,
    /// Scopes that the client asks for.
    pub scopes: Scopes,
}

/// Refusal of an authorization request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizeRefusal {
    /// The person is shown the problem. A redirect could lead to an attacker.
    Show(ShownProblem),
    /// The browser is redirected to `to`, which contains the error.
    Redirect {
        /// URL to redirect to.
        to: String,
        /// Error in the URL.
        error: RequestError,
    },
}

/// Problem that is shown to the person, with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShownProblem {
    /// The request has no `client_id`, or several.
    #[error("the request does not say which app it is from: `client_id` is missing or occurs more than once")]
    ClientMissing,
    /// The client is not registered, or its document cannot be used.
    #[error(
        "this app is not known here (any more): remove this service in the app and add it again, so that the app registers anew"
    )]
    ClientUnknown,
    /// The request has no `redirect_uri`, or several.
    #[error("the request does not say where to return to: `redirect_uri` is missing or occurs more than once")]
    RedirectMissing,
    /// The client did not register the redirect URI.
    #[error("the app did not register this `redirect_uri`")]
    RedirectUnknown,
}

/// Error that is sent to the client by a redirect. The texts are constant and have no quotes (RFC 6749 appendix A.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// Error code of RFC 6749 section 4.1.2.1, RFC 8707 or RFC 9101.
    pub code: &'static str,
    /// Text for the developer of the client.
    pub description: &'static str,
}

impl RequestError {
    const fn new(code: &'static str, description: &'static str) -> Self {
        Self { code, description }
    }

    /// The person refused to connect the app.
    pub const DENIED: Self = Self::new("access_denied", "the person did not connect the app");
    /// The service cannot answer now.
    pub const UNAVAILABLE: Self = Self::new("temporarily_unavailable", "the service cannot answer now");
}

/// Returns the client that a request is from, which the caller looks up for [`check`].
///
/// # Errors
/// [`ShownProblem::ClientMissing`]
pub fn client_id(params: &Params) -> Result<&str, ShownProblem> {
    let found = params
        .get("client_id")
        .map_err(|_repeated| ShownProblem::ClientMissing)?;
    found.ok_or(ShownProblem::ClientMissing)
}

/// Checks a request of this client.
///
/// # Errors
/// [`AuthorizeRefusal`]: the transport shows it or redirects.
pub fn check(params: &Params, client: &OAuthClient, issuer: &Issuer) -> Result<AuthorizeRequest, AuthorizeRefusal> {
    let show = |shown| Err(AuthorizeRefusal::Show(shown));
    match client_id(params) {
        Err(shown) => return show(shown),
        // A mistake of the caller would put the request of one app under the name of another.
        Ok(id) if id != client.id => return show(ShownProblem::ClientUnknown),
        Ok(_) => {}
    }
    let Ok(Some(redirect_uri)) = params.get("redirect_uri") else {
        return show(ShownProblem::RedirectMissing);
    };
    // This comes before every error that redirects, so no browser is sent to an address that nobody registered.
    if !client.may_redirect_to(redirect_uri) {
        return show(ShownProblem::RedirectUnknown);
    }
    // A state that occurs twice or is too long is not sent back.
    let state = params.get("state");
    // An error without the state still has `iss`, by which the client sees where it comes from.
    let kept = state
        .as_ref()
        .ok()
        .copied()
        .flatten()
        .filter(|state| state.len() <= MAX_STATE);
    rest(params, client, issuer, redirect_uri, kept).map_err(|error| AuthorizeRefusal::Redirect {
        to: error_url(redirect_uri, kept, issuer, error),
        error,
    })
}

/// Checks the parameters whose errors are sent to the client.
fn rest(
    params: &Params,
    client: &OAuthClient,
    issuer: &Issuer,
    redirect_uri: &str,
    state: Option<&str>,
) -> Result<AuthorizeRequest, RequestError> {
    let invalid = |description| RequestError::new("invalid_request", description);
    let once = |name| {
        params
            .get(name)
            .map_err(|_repeated: RepeatedParam| invalid("a parameter occurs more than once"))
    };
    if once("state")?.is_some() && state.is_none() {
        return Err(invalid("state is longer than 2048 bytes"));
    }
    // Parameters that would change the meaning of the request (RFC 9101, OAuth 2.0 response modes).
    if once("request")?.is_some() {
        return Err(RequestError::new(
            "request_not_supported",
            "request objects are not read",
        ));
    }
    if once("request_uri")?.is_some() {
        return Err(RequestError::new(
            "request_uri_not_supported",
            "request objects are not read",
        ));
    }
    if once("response_mode")?.is_some_and(|mode| mode != "query") {
        return Err(invalid("response_mode can only be query"));
    }
    match once("response_type")? {
        Some("code") => {}
        Some(_) => {
            return Err(RequestError::new(
                "unsupported_response_type",
                "response_type can only be code",
            ));
        }
        None => return Err(invalid("response_type is missing")),
    }
    let challenge = once("code_challenge")?.ok_or_else(|| invalid("code_challenge is missing: PKCE is required"))?;
    // Without a method it is `plain` (RFC 7636 section 4.3).
    if once("code_challenge_method")? != Some("S256") {
        return Err(invalid("code_challenge_method has to be S256"));
    }
    let challenge =
        Challenge::parse(challenge).ok_or_else(|| invalid("code_challenge is not the SHA-256 of a verifier"))?;
    let target = RequestError::new(
        "invalid_target",
        "resource has to be the URL of one MCP endpoint of this server",
    );
    let several = |_repeated: RepeatedParam| target;
    let resource = match params.get("resource").map_err(several)? {
        Some(resource) => issuer.resource(resource).ok_or(target)?,
        // Clients of the MCP revision 2025-03-26 do not send it. RFC 8707 section 2 lets the server choose.
        None => Resource::Mcp,
    };
    // Libraries ask for `openid`, and for every scope of the server at each of its resources. What does not exist here
    // is left out (RFC 6749 section 3.3); the answer with the token says which scopes it has. The registration of a
    // client binds none: it often names only the scopes of the first challenge, and the person decides anyway.
    let known = once("scope")?.map_or(Scopes::NONE, Scopes::known);
    let scopes = match known.both(resource.scopes()) {
        none if none.is_empty() => DEFAULT_SCOPES,
        some => some,
    };
    Ok(AuthorizeRequest {
        client_id: client.id.clone(),
        redirect_uri: redirect_uri.to_owned(),
        state: state.map(str::to_owned),
        challenge,
        resource,
        scopes,
    })
}

impl AuthorizeRequest {
    /// Returns true if a person may agree to these scopes: some of those that the client asks for.
    pub const fn may_grant(&self, scopes: Scopes) -> bool {
        !scopes.is_empty() && scopes.is_subset(self.scopes)
    }

    /// Returns the URL that gives the client its code.
    pub fn code_url(&self, issuer: &Issuer, code: &OAuthSecret) -> String {
        answer_url(
            &self.redirect_uri,
            &[("code", code.reveal())],
            self.state.as_deref(),
            issuer,
        )
    }

    /// Returns the URL that gives the client an error.
    pub fn error_url(&self, issuer: &Issuer, error: RequestError) -> String {
        error_url(&self.redirect_uri, self.state.as_deref(), issuer, error)
    }
}

fn error_url(redirect_uri: &str, state: Option<&str>, issuer: &Issuer, error: RequestError) -> String {
    let parameters = [("error", error.code), ("error_description", error.description)];
    answer_url(redirect_uri, &parameters, state, issuer)
}

/// Returns a redirect URI with the parameters of an answer. Every answer is made here, and has `iss`.
fn answer_url(redirect_uri: &str, parameters: &[(&str, &str)], state: Option<&str>, issuer: &Issuer) -> String {
    let mut all = parameters.to_vec();
    all.extend(state.map(|state| ("state", state)));
    // A client with several servers recognises by it an answer that another one has slipped in (RFC 9207).
    all.push(("iss", issuer.as_str()));
    redirect::with_parameters(redirect_uri, &all)
}
