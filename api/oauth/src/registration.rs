//! Dynamic registration of public clients (RFC 7591).
//!
//! Invariant: a registered client is public. A method with a shared secret is replaced by `none`, which the answer
//! says; `private_key_jwt` is refused, because a client that relies on its key must not lose it unnoticed.

use serde_json::{Value, json};
use types::Timestamp;

use crate::client::{ClientAuth, Metadata, MetadataError, OAuthClient};

/// Status of the answer to a registration.
pub const REGISTRATION_STATUS: u16 = 201;

/// Refusal of a registration (RFC 7591 section 3.2.2). Its status is 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegistrationError(#[from] pub MetadataError);

impl RegistrationError {
    /// Returns the error code.
    pub const fn code(self) -> &'static str {
        match self.0 {
            MetadataError::RedirectUris => "invalid_redirect_uri",
            _ => "invalid_client_metadata",
        }
    }

    /// Returns the body of the answer.
    pub fn body(self) -> Value {
        json!({"error": self.code(), "error_description": self.to_string().replace('`', "'")})
    }
}

/// Reads the body of a registration and creates the client with this identifier.
///
/// # Errors
/// [`RegistrationError`]
pub fn register(body: &[u8], id: String, now: Timestamp) -> Result<OAuthClient, RegistrationError> {
    let metadata = Metadata::parse(body)?;
    match metadata.token_endpoint_auth_method.as_deref() {
        // Libraries ask for a secret by default, and work without one if the answer says so.
        None | Some("none" | "client_secret_basic" | "client_secret_post") => {}
        Some(_) => return Err(MetadataError::AuthMethod.into()),
    }
    Ok(metadata.into_client(id, ClientAuth::None, now)?)
}

/// Returns the answer to a registration: the metadata as they are kept.
pub fn answer(client: &OAuthClient) -> Value {
    let mut grants = vec!["authorization_code"];
    if client.may_refresh {
        grants.push("refresh_token");
    }
    let mut answer = json!({
        "client_id": client.id,
        "client_id_issued_at": client.registered_at.micros().div_euclid(1_000_000),
        "redirect_uris": client.redirect_uris,
        "application_type": client.application.word(),
        "token_endpoint_auth_method": "none",
        "grant_types": grants,
        "response_types": ["code"],
        "scope": client.scopes.to_string(),
    });
    for (member, value) in [("client_name", &client.name), ("client_uri", &client.uri)] {
        if let Some(value) = value {
            answer[member] = json!(value);
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::Application;
    use crate::scope::{Scope, Scopes};

    fn registered(metadata: &Value) -> Result<OAuthClient, RegistrationError> {
        let now = Timestamp::from_micros(1_795_000_000_500_000);
        register(metadata.to_string().as_bytes(), "app_1".to_owned(), now)
    }

    #[test]
    fn the_answer_states_what_was_kept_and_ignores_the_rest() {
        let client = registered(&json!({
            "redirect_uris": ["http://127.0.0.1:3000/cb", "https://app.example/cb"],
            "client_name": " Fathom Desk ",
            "client_uri": "https://app.example/",
            "logo_uri": "http://169.254.169.254/",
            "jwks_uri": "http://10.0.0.1/",
            "token_endpoint_auth_method": "client_secret_basic",
            "grant_types": ["authorization_code", "refresh_token", "implicit"],
            "response_types": ["code", "token"],
            "scope": "openid read write",
            "client_id": "mine",
            "software_statement": 5,
        }))
        .unwrap();
        assert_eq!(client.auth, ClientAuth::None);
        assert_eq!(
            answer(&client),
            json!({
                "client_id": "app_1",
                "client_id_issued_at": 1_795_000_000,
                "client_name": "Fathom Desk",
                "client_uri": "https://app.example/",
                "redirect_uris": ["http://127.0.0.1:3000/cb", "https://app.example/cb"],
                "application_type": "native",
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "scope": "read write",
            })
        );
        let least = registered(&json!({"redirect_uris": ["https://app.example/cb"]})).unwrap();
        assert_eq!((least.scopes, least.may_refresh), (Scopes::ALL, true));
        let some = json!({"redirect_uris": ["http://app.example/cb", "https://app.example/cb", "javascript:alert(1)"]});
        assert_eq!(registered(&some).unwrap().redirect_uris, ["https://app.example/cb"]);
        let foreign = json!({"redirect_uris": ["https://app.example/cb"], "scope": "openid offline_access"});
        assert_eq!(registered(&foreign).unwrap().scopes, Scopes::ALL);
        let web = registered(&json!({
            "redirect_uris": ["https://app.example/cb"], "application_type": "web",
            "grant_types": ["authorization_code"], "scope": "read",
        }))
        .unwrap();
        assert_eq!((web.application, web.may_refresh), (Application::Web, false));
        assert_eq!(web.scopes, Scopes::of(&[Scope::Read]));
    }

    #[test]
    fn each_rule_has_its_error() {
        let good = json!(["https://app.example/cb"]);
        let many: Vec<String> = (0..21).map(|at| format!("https://app.example/{at}")).collect();
        let cases = [
            (json!({}), "invalid_redirect_uri"),
            (json!({"redirect_uris": []}), "invalid_redirect_uri"),
            (json!({"redirect_uris": many}), "invalid_redirect_uri"),
            (
                json!({"redirect_uris": ["http://app.example/cb", "about:blank"]}),
                "invalid_redirect_uri",
            ),
            (
                json!({"redirect_uris": ["https://app.example/cb#a"]}),
                "invalid_redirect_uri",
            ),
            (
                json!({"redirect_uris": ["javascript:alert(1)"]}),
                "invalid_redirect_uri",
            ),
            (
                json!({"redirect_uris": ["http://localhost/cb"], "application_type": "web"}),
                "invalid_redirect_uri",
            ),
            (
                json!({"redirect_uris": "https://app.example/cb"}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "application_type": "desktop"}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "grant_types": ["client_credentials"]}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "grant_types": []}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "response_types": ["token"]}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "client_name": ""}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "client_name": "a".repeat(81)}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "client_name": "a\nb"}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "client_name": "a\u{202e}b"}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "client_name": 5}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "token_endpoint_auth_method": "private_key_jwt"}),
                "invalid_client_metadata",
            ),
            (
                json!({"redirect_uris": good, "token_endpoint_auth_method": "tls_client_auth"}),
                "invalid_client_metadata",
            ),
            (json!([]), "invalid_client_metadata"),
            (json!("a"), "invalid_client_metadata"),
        ];
        for (metadata, code) in cases {
            let error = registered(&metadata).unwrap_err();
            assert_eq!(error.code(), code, "{metadata}");
            assert_eq!(error.body()["error"], code);
        }
        let twice = br#"{"redirect_uris": ["https://app.example/cb"], "redirect_uris": ["https://evil.example/cb"]}"#;
        let now = Timestamp::default();
        assert!(register(twice, String::new(), now).is_err());
        assert!(register(b"\xff", String::new(), now).is_err());
        // A home page that is no `https` URL is left out.
        let client = registered(&json!({"redirect_uris": good, "client_uri": "javascript:alert(1)"})).unwrap();
        assert_eq!(client.uri, None);
    }
}
