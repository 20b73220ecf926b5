//! Operations of the authorization server: metadata, registration, token, revocation.
//!
//! Invariants:
//! - Parameters that are not known are ignored here, and errors have the form of OAuth (RFC 6749 section 5.2).
//! - No credential but those of OAuth is read: a key in `Authorization` changes nothing.
//! - The document of an app is fetched only for a code or a token that the app was given, so strangers cannot make the
//!   service fetch.

use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use oauth::client::OAuthClient;
use oauth::document::is_document_url;
use oauth::registration;
use oauth::token::{self, Credentials, TokenError};
use oauth::{OAuthSecret, Params, Resource, discovery};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use types::OperatorId;

use crate::call::answer::{JSON, JsonReply, OperationOutput, OperationResult};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{CallLimit, Effect, LimitSubject, Scope, Spec};
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::apps::{ClientError, DocumentAsker, FetchError, OAuthApps};

const TAG: &str = "oauth";
const FORM: &str = "application/x-www-form-urlencoded";
/// The scheme by which a client would send a password.
const BASIC: &str = "basic ";

/// Limit on registrations of clients, whose rows stay.
const REGISTRATIONS: CallLimit = CallLimit {
    // The name is part of the key of the shared counters, so all replicas must use the same.
    name: "app-registrations",
    subject: LimitSubject::Address,
    most: |_| 100,
    window: Duration::from_hours(1),
    code: ErrorCode::RegistrationLimit,
    counted: "attempts to register an app in an hour from this address",
};

/// Returns the fields that the entries of this file share.
fn base() -> Spec {
    Spec {
        tag: TAG,
        opaque: true,
        ..Spec::BASE
    }
}

/// Returns the fields that the endpoints for clients share.
fn endpoint() -> Spec {
    Spec {
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        // Rows about connections are the trail.
        audit: false,
        takes: &[FORM],
        headers: &[("authorization", "Authorization")],
        failure: &[
            (400, "The request is refused; `error` is a code of OAuth."),
            (
                401,
                "The client is not known, or did not prove its identity (`invalid_client`).",
            ),
        ],
        ..base()
    }
}

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "oauth_server_metadata",
            path: discovery::SERVER_METADATA_PATH,
            summary: "Metadata of the authorization server (RFC 8414)",
            ..base()
        },
        &[],
        server_metadata,
    );
    table.add(
        Spec {
            name: "mcp_metadata",
            path: "/.well-known/oauth-protected-resource/mcp",
            summary: "Metadata of the MCP server `/mcp` (RFC 9728)",
            ..base()
        },
        &[],
        |cx, _: NoInput| std::future::ready(Ok(resource_metadata(&cx, Resource::Mcp))),
    );
    table.add(
        Spec {
            name: "mcp_directory_metadata",
            path: "/.well-known/oauth-protected-resource/mcp/directory",
            summary: "Metadata of the MCP server `/mcp/directory` (RFC 9728)",
            ..base()
        },
        &[],
        |cx, _: NoInput| std::future::ready(Ok(resource_metadata(&cx, Resource::Directory))),
    );
    table.add(
        Spec {
            name: "register_app",
            path: discovery::REGISTER_PATH,
            summary: "Registers an app as a public client (RFC 7591)",
            description: "An app that has a metadata document needs no registration: the URL of the document is its \
                          `client_id`.",
            takes: &[JSON],
            headers: &[],
            limits: &[REGISTRATIONS],
            success: &[(201, "The client, with the metadata that are kept.")],
            failure: &[(
                400,
                "The metadata break a rule: `invalid_redirect_uri` or `invalid_client_metadata`, which \
                 `error_description` explains.",
            )],
            example: r#"{"client_name": "Tide desk", "redirect_uris": ["http://127.0.0.1/callback"]}"#,
            ..endpoint()
        },
        &[],
        register,
    );
    table.add(
        Spec {
            name: "oauth_token",
            path: discovery::TOKEN_PATH,
            summary: "Exchanges a code or a refresh token for tokens (RFC 6749, PKCE with S256)",
            description: "An access token lasts an hour, and is renewed for 30 days. A refresh token works once; its \
                          second use ends the connection.",
            success: &[(200, "The tokens.")],
            example: r#"{"grant_type": "refresh_token", "refresh_token": "wtr_…", "client_id": "app_…"}"#,
            ..endpoint()
        },
        &[],
        token_answer,
    );
    table.add(
        Spec {
            name: "oauth_revoke",
            path: discovery::REVOKE_PATH,
            summary: "Ends the connection of a token (RFC 7009)",
            success: &[(200, "The token does not work, whether or not it did before.")],
            example: r#"{"token": "wtr_…", "client_id": "app_…"}"#,
            ..endpoint()
        },
        &[],
        revoke,
    );
}

/// An answer in the form of OAuth.
struct OAuthReply {
    status: u16,
    challenge: Option<&'static str>,
    body: Value,
}

impl OAuthReply {
    const fn of(status: u16, body: Value) -> Self {
        Self {
            status,
            challenge: None,
            body,
        }
    }
}

impl OperationResult for OAuthReply {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema() -> Value {
        json!({"type": "object"})
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        let mut headers: Vec<(HeaderName, HeaderValue)> = token::TOKEN_HEADERS
            .iter()
            .filter_map(|(name, value)| Some((name.parse().ok()?, HeaderValue::from_static(value))))
            .collect();
        headers.extend(
            self.challenge
                .map(|challenge| (header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))),
        );
        Ok(OperationOutput::Whole {
            content_type: JSON,
            status: StatusCode::from_u16(self.status).map_err(ApiError::internal)?,
            headers,
            body: self.body.to_string().into(),
        })
    }
}

/// Refuses a client whose metadata document cannot be used, and says why: only the cause tells its developer what to mend.
fn unusable(cause: &FetchError) -> OAuthReply {
    let unknown = TokenError::UNKNOWN_CLIENT;
    let description = format!("{}: {cause}", unknown.description);
    OAuthReply::of(
        unknown.status(),
        json!({"error": unknown.code, "error_description": description}),
    )
}

/// Puts a refusal into the form of OAuth. A failure of the service keeps its own.
fn refusal(error: oauth::Error) -> Result<OAuthReply, ApiError> {
    match error {
        oauth::Error::Refused(error) => Ok(OAuthReply {
            challenge: error.www_authenticate(),
            ..OAuthReply::of(error.status(), error.body())
        }),
        oauth::Error::Registration(error) => Ok(OAuthReply::of(400, error.body())),
        other => Err(other.into()),
    }
}

async fn server_metadata(cx: Cx, _: NoInput) -> Result<JsonReply<Value>, ApiError> {
    Ok(JsonReply::ok(discovery::server_metadata(cx.app.apps.server().issuer())))
}

fn resource_metadata(cx: &Cx, resource: Resource) -> JsonReply<Value> {
    let issuer = cx.app.apps.server().issuer();
    JsonReply::ok(discovery::resource_metadata(issuer, resource))
}

/// The members are read from the body, where others are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
struct RegisterClientInput {
    /// Addresses that the app may be returned to: `https`, or for native apps loopback `http` and private
    /// schemes. Others are left out, as the answer says.
    #[expect(dead_code, reason = "published only")]
    redirect_uris: Option<Vec<String>>,
    /// Name for people, up to 80 characters.
    #[expect(dead_code, reason = "published only")]
    client_name: Option<String>,
    /// Home page for people.
    #[expect(dead_code, reason = "published only")]
    client_uri: Option<String>,
    /// `native` (the default) or `web`.
    #[expect(dead_code, reason = "published only")]
    application_type: Option<String>,
    /// Scopes that the app may ask for; without it all.
    #[expect(dead_code, reason = "published only")]
    scope: Option<String>,
    /// `authorization_code`, and `refresh_token` for an app that renews its tokens.
    #[expect(dead_code, reason = "published only")]
    grant_types: Option<Vec<String>>,
}

async fn register(cx: Cx, _: RegisterClientInput) -> Result<OAuthReply, ApiError> {
    // The body as it was sent: members that the type does not name are ignored, not refused (RFC 7591
    // section 2).
    let metadata = cx.body.unwrap_or_default();
    match cx.app.apps.server().register(&metadata).await {
        Ok(client) => Ok(OAuthReply::of(
            registration::REGISTRATION_STATUS,
            registration::answer(&client),
        )),
        Err(error) => refusal(error),
    }
}

/// The parameters are read from the body, where others are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
struct TokenForm {
    /// A client has no password here; one is refused.
    authorization: Option<String>,
    /// `authorization_code` or `refresh_token`.
    #[expect(dead_code, reason = "published only")]
    grant_type: Option<String>,
    /// The code of the authorization answer.
    #[expect(dead_code, reason = "published only")]
    code: Option<String>,
    /// Verifier of the challenge (PKCE).
    #[expect(dead_code, reason = "published only")]
    code_verifier: Option<String>,
    /// Redirect URI of the authorization request; may be left out.
    #[expect(dead_code, reason = "published only")]
    redirect_uri: Option<String>,
    /// The refresh token.
    #[expect(dead_code, reason = "published only")]
    refresh_token: Option<String>,
    /// URL of the MCP endpoint (RFC 8707); that of the authorization request if left out.
    #[expect(dead_code, reason = "published only")]
    resource: Option<String>,
    /// Fewer scopes than were agreed to, for a renewed token.
    #[expect(dead_code, reason = "published only")]
    scope: Option<String>,
    /// Identifier of the client.
    #[expect(dead_code, reason = "published only")]
    client_id: Option<String>,
    /// Type of the assertion of a client with keys.
    #[expect(dead_code, reason = "published only")]
    client_assertion_type: Option<String>,
    /// Assertion of a client with keys (`private_key_jwt`).
    #[expect(dead_code, reason = "published only")]
    client_assertion: Option<String>,
}

async fn token_answer(cx: Cx, input: TokenForm) -> Result<OAuthReply, ApiError> {
    let params = Params::parse(cx.body.as_deref().unwrap_or_default());
    let server = cx.app.apps.server();
    let exchanged = async {
        let credentials = credentials(&params, input.authorization.as_deref())?;
        let request = token::request(&params, server.issuer());
        let mut operator = None;
        if is_document_url(&credentials.client_id) {
            let request = request.as_ref().map_err(|error| *error)?;
            operator = giver(&cx.app.apps, &credentials, request.secret()).await?;
            if operator.is_none() {
                return Err(TokenError::NOT_GIVEN.into());
            }
        }
        let client = client(&cx, &credentials, operator).await?;
        Ok(server.token(&client, &request?).await?)
    };
    match exchanged.await {
        Ok(answer) => {
            let body = serde_json::to_value(&answer).map_err(ApiError::internal)?;
            Ok(OAuthReply::of(200, body))
        }
        Err(refused) => OAuthRefusal::into_reply(refused),
    }
}

/// The parameters are read from the body, where others are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
struct RevokeForm {
    /// A client has no password here; one is refused.
    authorization: Option<String>,
    /// The access token or the refresh token.
    #[expect(dead_code, reason = "published only")]
    token: Option<String>,
    /// Identifier of the client.
    #[expect(dead_code, reason = "published only")]
    client_id: Option<String>,
    /// Type of the assertion of a client with keys.
    #[expect(dead_code, reason = "published only")]
    client_assertion_type: Option<String>,
    /// Assertion of a client with keys (`private_key_jwt`).
    #[expect(dead_code, reason = "published only")]
    client_assertion: Option<String>,
}

async fn revoke(cx: Cx, input: RevokeForm) -> Result<OAuthReply, ApiError> {
    let params = Params::parse(cx.body.as_deref().unwrap_or_default());
    let revoked = async {
        let credentials = credentials(&params, input.authorization.as_deref())?;
        let token = token::revocation(&params);
        let mut operator = None;
        if is_document_url(&credentials.client_id) {
            if let Some(token) = token.as_ref().map_err(|error| *error)? {
                operator = giver(&cx.app.apps, &credentials, token).await?;
            }
            // A token that nobody has is revoked already (RFC 7009 section 2.2).
            if operator.is_none() {
                return Ok(());
            }
        }
        let client = client(&cx, &credentials, operator).await?;
        Ok(cx.app.apps.server().revoke(&client, token?.as_ref()).await?)
    };
    match revoked.await {
        Ok(()) => Ok(OAuthReply::of(200, json!({}))),
        Err(refused) => OAuthRefusal::into_reply(refused),
    }
}

/// Reason for which a request is not answered.
enum OAuthRefusal {
    OAuth(oauth::Error),
    /// The metadata document of the client cannot be used.
    Document(FetchError),
    Service(ApiError),
}

impl OAuthRefusal {
    fn into_reply(self) -> Result<OAuthReply, ApiError> {
        match self {
            Self::OAuth(error) => refusal(error),
            Self::Document(cause) => Ok(unusable(&cause)),
            Self::Service(error) => Err(error),
        }
    }
}

impl From<ClientError> for OAuthRefusal {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unregistered => Self::OAuth(TokenError::UNKNOWN_CLIENT.into()),
            ClientError::Document(cause) => Self::Document(cause),
            ClientError::Service(error) => Self::Service(error),
        }
    }
}

impl<E: Into<oauth::Error>> From<E> for OAuthRefusal {
    fn from(error: E) -> Self {
        Self::OAuth(error.into())
    }
}

/// Reads the identity that a request claims.
fn credentials(params: &Params, authorization: Option<&str>) -> Result<Credentials, OAuthRefusal> {
    // Keys and tokens of the service are no passwords of clients, and are not looked at.
    let basic = authorization.and_then(|value| {
        let (scheme, rest) = value.split_at_checked(BASIC.len())?;
        scheme.eq_ignore_ascii_case(BASIC).then_some(rest)
    });
    Ok(token::credentials(params, basic)?)
}

/// Returns the operator that agreed to the code or the token of a request, and `None` if there is none such.
///
/// # Errors
/// `invalid_grant` if it was given to another client, or the database failed.
async fn giver(
    apps: &OAuthApps,
    credentials: &Credentials,
    secret: &OAuthSecret,
) -> Result<Option<OperatorId>, OAuthRefusal> {
    match apps.server().granted(secret).await? {
        None => Ok(None),
        Some(grant) if grant.client_id == credentials.client_id => Ok(Some(grant.operator)),
        Some(_) => Err(TokenError::NOT_GIVEN.into()),
    }
}

/// Returns the client that a request is from, which has proved its identity. `giver` is the operator that agreed to it.
async fn client(cx: &Cx, credentials: &Credentials, giver: Option<OperatorId>) -> Result<OAuthClient, OAuthRefusal> {
    let apps = &cx.app.apps;
    let asker = DocumentAsker {
        address: cx.client.into(),
        operator: giver,
        is_connected: giver.is_some(),
    };
    let client = apps.client(&credentials.client_id, asker).await?;
    let keys = apps.keys(&client, asker).await.map_err(OAuthRefusal::Service)?;
    let authenticated = apps.server().authenticate(credentials, &client, keys.as_ref()).await;
    if let (Err(_), Some(_)) = (&authenticated, &keys) {
        // The client may have new keys, which a later try sees.
        apps.doubt_keys(&client);
    }
    authenticated?;
    Ok(client)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use oauth::{AppBudget, Challenge, Code, Grant, Hash, Scopes, Storage as _};

    use super::*;
    use crate::testing::{Got, Service};

    async fn answered(service: &Service, path: &str, form: &str) -> Got {
        let request = Request::post(path).header("content-type", FORM);
        let request = request.body(axum::body::Body::from(form.to_owned())).unwrap();
        service.send(request).await
    }

    /// Sends a form and returns the status and the error of the answer.
    async fn sent(service: &Service, path: &str, form: &str) -> (u16, Value) {
        let got = answered(service, path, form).await;
        (got.status.as_u16(), got.json()["error"].clone())
    }

    #[tokio::test]
    async fn a_stranger_makes_the_service_fetch_no_document() {
        let service = Service::start().await;
        // The name leads nowhere, so a request that had to fetch the document would be from a client that is not known.
        let app = "client_id=https%3A%2F%2Fapp.invalid%2Fapp.json";
        let verifier = "v".repeat(43);
        let code = format!("grant_type=authorization_code&code=wtg_1&code_verifier={verifier}&{app}");
        let refresh = format!("grant_type=refresh_token&refresh_token=wtr_1&{app}");
        let token = format!("token=wta_1&{app}");
        let invalid = (400, json!("invalid_grant"));
        assert_eq!(sent(&service, "/oauth/token", &code).await, invalid);
        assert_eq!(sent(&service, "/oauth/token", &refresh).await, invalid);
        assert_eq!(sent(&service, "/oauth/revoke", &token).await, (200, Value::Null));

        // The document of an app is fetched for a code that the app was given, and not for one of another app.
        let key = service.operator_at("ada@example.org").await;
        service.agent(&key, "tide-1").await;
        let (store, now) = (&service.app.store, service.app.clock.now());
        let operator = store.operator_by_email("ada@example.org").await.unwrap().unwrap().id;
        let agent = store.accounts().agents_of(operator, now).await.unwrap()[0].id;
        let given = Code {
            grant: Grant {
                client_id: "https://app.invalid/app.json".to_owned(),
                operator,
                agent,
                resource: Resource::Mcp,
                scopes: Scopes::of(&[oauth::Scope::Read]),
            },
            redirect_uri: "https://app.invalid/callback".to_owned(),
            challenge: Challenge::from_bytes([0; 32]),
            budget: AppBudget::default(),
            expires_at: now.plus(Duration::from_mins(1)),
        };
        let hash = Hash(crate::secrets::hash("wtg_1"));
        store.add_code(hash, &given).await.unwrap();
        let unknown = answered(&service, "/oauth/token", &code).await;
        assert_eq!(
            (unknown.status.as_u16(), unknown.json()),
            (
                401,
                json!({
                    "error": "invalid_client",
                    "error_description": "the client is not known: the URL is refused: its host is a name of private networks",
                })
            )
        );
        let other = code.replace("app.json", "other.json");
        assert_eq!(sent(&service, "/oauth/token", &other).await, invalid);
    }
}
