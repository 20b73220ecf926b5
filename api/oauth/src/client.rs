//! Clients, and the metadata that they state (RFC 7591 section 2) at registration or in a document of their own.
//!
//! Invariant: a client has at least one redirect URI, each of which passed [`redirect::can_be_registered`]. A client
//! never has a shared secret.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use types::Timestamp;
use types::host::is_host_name;
use url::{Host, Url};

use crate::jwk::JwkSet;
use crate::redirect::{self, Application};
use crate::scope::Scopes;

/// Most redirect URIs of a client.
const MAX_REDIRECT_URIS: usize = 20;
/// Most characters of a client's name.
const MAX_NAME: usize = 80;

/// Way in which a client proves its identity at the token endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientAuth {
    /// None: a public client.
    None,
    /// An assertion signed with one of these keys (RFC 7523).
    Keys(JwkSet),
    /// An assertion signed with one of the keys at this `https` URL.
    KeysAt(String),
}

/// An app that asks for tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuthClient {
    /// Identifier: made by the service, or the URL of the client's metadata document.
    pub id: String,
    /// Name for people. It is the client's own claim.
    pub name: Option<String>,
    /// Home page for people, with `https`.
    pub uri: Option<String>,
    /// Redirect URIs, as the client wrote them.
    pub redirect_uris: Vec<String>,
    /// Kind of the client.
    pub application: Application,
    /// Scopes that the client named when it registered; every one if it named none that exists here. They bind nothing:
    /// each authorization request names its own.
    pub scopes: Scopes,
    /// True if the client gets refresh tokens.
    pub may_refresh: bool,
    /// Way in which the client proves its identity.
    pub auth: ClientAuth,
    /// Instant of the registration.
    pub registered_at: Timestamp,
}

impl OAuthClient {
    /// Returns true if the client registered a redirect URI that matches this one and can be registered now: the rules may
    /// have been weaker when it was.
    pub fn may_redirect_to(&self, uri: &str) -> bool {
        let can_be = |known: &str| redirect::can_be_registered(known, self.application);
        self.redirect_uris
            .iter()
            .any(|known| redirect::matches(known, uri) && can_be(known))
    }
}

/// Metadata that a client states. Members that are not listed are ignored, `logo_uri` among them: the service fetches
/// nothing but the document itself and its keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) client_id: Option<String>,
    pub(crate) client_name: Option<String>,
    pub(crate) client_uri: Option<String>,
    pub(crate) client_secret: Option<serde_json::Value>,
    pub(crate) redirect_uris: Option<Vec<String>>,
    pub(crate) application_type: Option<String>,
    pub(crate) token_endpoint_auth_method: Option<String>,
    pub(crate) grant_types: Option<Vec<String>>,
    pub(crate) response_types: Option<Vec<String>>,
    pub(crate) scope: Option<String>,
    pub(crate) jwks: Option<serde_json::Value>,
    pub(crate) jwks_uri: Option<String>,
}

/// Rule that metadata break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A redirect URI is missing or cannot be registered.
    #[error(
        "`redirect_uris` needs 1 to 20 URIs, one of them `https`, or for native apps loopback `http` or a private scheme"
    )]
    RedirectUris,
    /// The text is not a JSON object with members of the right types.
    #[error("the metadata are not a JSON object with the members of RFC 7591")]
    Json,
    /// The name is too long or has characters that a name does not have.
    #[error("`client_name` has 1 to 80 characters without control and direction characters")]
    Name,
    /// The name speaks for the service.
    #[error("`client_name` is a word of the service, or looks like one")]
    ReservedName,
    /// The kind is neither `web` nor `native`.
    #[error("`application_type` is `web` or `native`")]
    ApplicationType,
    /// The client does not use authorization codes.
    #[error("`grant_types` needs `authorization_code`, and `response_types` needs `code`")]
    GrantTypes,
    /// The way of authentication is not offered.
    #[error("`token_endpoint_auth_method` is not offered here")]
    AuthMethod,
    /// The keys are missing or cannot be used.
    #[error("`private_key_jwt` needs either `jwks` with public keys or `jwks_uri` with `https`")]
    Keys,
}

impl Metadata {
    /// Reads metadata from the text of a JSON object.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, MetadataError> {
        object(json).ok_or(MetadataError::Json)
    }

    /// Checks the metadata and creates the client.
    pub(crate) fn into_client(
        self,
        id: String,
        auth: ClientAuth,
        now: Timestamp,
    ) -> Result<OAuthClient, MetadataError> {
        let application = match self.application_type.as_deref() {
            Some("web") => Application::Web,
            // The strict default of OpenID Connect, `web`, would refuse most command-line clients, which do not say.
            Some("native") | None => Application::Native,
            Some(_) => return Err(MetadataError::ApplicationType),
        };
        let mut redirect_uris = self.redirect_uris.unwrap_or_default();
        if redirect_uris.len() > MAX_REDIRECT_URIS {
            return Err(MetadataError::RedirectUris);
        }
        // Apps list the addresses of all their builds. One that cannot be registered is left out, as the answer says.
        redirect_uris.retain(|uri| redirect::can_be_registered(uri, application));
        if redirect_uris.is_empty() {
            return Err(MetadataError::RedirectUris);
        }
        let lists = |list: &Option<Vec<String>>, word: &str| {
            list.as_ref()
                .is_none_or(|list| list.iter().any(|listed| listed == word))
        };
        if !lists(&self.grant_types, "authorization_code") || !lists(&self.response_types, "code") {
            return Err(MetadataError::GrantTypes);
        }
        // Unknown scopes are left out, since libraries ask for `openid` and `offline_access` everywhere.
        let scopes = match self.scope.as_deref().map_or(Scopes::NONE, Scopes::known) {
            none if none.is_empty() => Scopes::ALL,
            some => some,
        };
        // Blanks around a name are invisible to people, and could make two names look the same.
        let name = self.client_name.map(|name| name.trim().to_owned());
        if name.as_deref().is_some_and(|name| !is_name(name)) {
            return Err(MetadataError::Name);
        }
        Ok(OAuthClient {
            id,
            name,
            // The home page is a link for people. A client with a bad one works as well without it.
            uri: self.client_uri.filter(|uri| is_https(uri)),
            redirect_uris,
            application,
            scopes,
            // Without `grant_types` a client gets refresh tokens too, which the answer to a registration says.
            may_refresh: lists(&self.grant_types, "refresh_token"),
            auth,
            registered_at: now,
        })
    }
}

/// Reads a JSON object. Serde would take a list of the members' values for one too.
pub(crate) fn object<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    // Anything else at the front begins a list, or no JSON.
    let is_object = json.trim_ascii_start().starts_with(b"{");
    is_object.then(|| serde_json::from_slice(json).ok()).flatten()
}

/// Returns true if a text is an absolute `https` URL.
pub(crate) fn is_https(text: &str) -> bool {
    let is_plain = text.len() <= 2_048 && text.bytes().all(|byte| byte.is_ascii_graphic());
    // The scheme is compared as text: a parser would also take it in upper case or after blanks.
    let is_safe = |url: Url| {
        let has_plain_host = !matches!(url.host(), Some(Host::Domain(name)) if !is_host_name(name));
        url.username().is_empty() && has_plain_host
    };
    is_plain && text.starts_with("https://") && Url::parse(text).is_ok_and(is_safe)
}

/// Returns true if a text can be shown as a name: no control characters, and none that turns the direction of the
/// text around it or is invisible.
fn is_name(text: &str) -> bool {
    let is_hidden = |letter: char| {
        matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
    };
    (1..=MAX_NAME).contains(&text.chars().count())
        && !text.chars().any(|letter| letter.is_control() || is_hidden(letter))
}
