//! Vectors of clients: registered ones, and those that prove themselves with keys.

use serde_json::json;
use types::Clock as _;

use super::{World, changed, refused};
use crate::Error;
use crate::assertion;
use crate::client::{ClientAuth, OAuthClient};
use crate::jwk::JwkSet;
use crate::testing::{KeyPair, KeyType};
use crate::token::{self, TokenError};

/// A client with a metadata document and a key.
fn keyed(pair: &KeyPair, world: &World) -> OAuthClient {
    OAuthClient {
        id: "https://app.example/client.json".to_owned(),
        auth: ClientAuth::Keys(JwkSet::from_value(json!({"keys": [pair.jwk()]})).unwrap()),
        ..world.client.clone()
    }
}

fn assertion_of(pair: &KeyPair, world: &World, jti: &str) -> String {
    let now = world.clock.now().micros() / 1_000_000;
    let id = "https://app.example/client.json";
    let claims = json!({"iss": id, "sub": id, "aud": super::ISSUER, "exp": now + 60, "jti": jti});
    pair.jwt(&json!({"alg": pair.algorithm(), "kid": "k1"}), &claims)
}

#[tokio::test]
async fn a_client_with_keys_proves_itself_once_per_assertion() {
    let mut world = World::new().await;
    let pair = KeyPair::new(KeyType::Ed25519);
    let public = world.client.clone();
    world.client = keyed(&pair, &world);
    let code = world.code(&[]).await;
    let with = |jti: &str| {
        let assertion = format!("client_assertion={}", assertion_of(&pair, &world, jti));
        [
            assertion,
            format!("client_assertion_type={}", assertion::ASSERTION_TYPE),
            "-client_id".to_owned(),
        ]
    };
    let exchange = async |changes: &[String]| {
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        world.exchange(&code, &changes).await
    };
    assert_eq!(refused(exchange(&[]).await), "invalid_client", "no assertion");
    assert_eq!(refused(exchange(&with("a")[..1]).await), "invalid_request", "no type");
    let mut named = with("a").to_vec();
    named[2] = "client_id=https://evil.example/client.json".to_owned();
    assert_eq!(refused(exchange(&named).await), "invalid_client", "another client_id");
    let stranger = format!(
        "client_assertion={}",
        assertion_of(&KeyPair::new(KeyType::Ed25519), &world, "a")
    );
    let [_, of_type, without_id] = with("a");
    assert_eq!(
        refused(exchange(&[stranger, of_type, without_id]).await),
        "invalid_client",
        "another key"
    );

    let good = with("a");
    let answer = exchange(&good).await.unwrap();
    assert!(world.works(&answer).await);
    assert_eq!(refused(exchange(&good).await), "invalid_client", "a replayed jti");
    assert!(world.works(&answer).await, "a replay gets no further than its jti");

    let refresh = async |changes: &[String]| {
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        world.refresh(&answer["refresh_token"], &changes).await
    };
    assert_eq!(refused(refresh(&[]).await), "invalid_client");
    assert!(refresh(&with("b")).await.is_ok());

    // A public client has no use for assertions.
    let form = changed(
        &[
            ("client_id", "https://app.example/client.json"),
            ("client_assertion_type", assertion::ASSERTION_TYPE),
        ],
        &[&with("c")[0]],
    );
    let credentials = token::credentials(&form, None).unwrap();
    let public = OAuthClient {
        id: credentials.client_id.clone(),
        ..public
    };
    let outcome = world.server.authenticate(&credentials, &public, None).await;
    assert!(matches!(
        outcome,
        Err(Error::Refused(TokenError {
            code: "invalid_client",
            ..
        }))
    ));
    // Keys at a URL are those that the caller fetched.
    let ClientAuth::Keys(keys) = &world.client.auth else {
        panic!()
    };
    let at = OAuthClient {
        auth: ClientAuth::KeysAt("https://app.example/jwks.json".to_owned()),
        ..world.client.clone()
    };
    assert!(world.server.authenticate(&credentials, &at, None).await.is_err());
    assert!(world.server.authenticate(&credentials, &at, Some(keys)).await.is_ok());
}

#[tokio::test]
async fn clients_are_registered_under_ids_of_the_service() {
    let world = World::new().await;
    assert!(world.client.id.starts_with("app_") && world.client.id != world.other.id);
    let found = world.server.registered(&world.client.id).await.unwrap();
    assert_eq!(found.as_ref(), Some(&world.client));
    for unknown in [
        "app_",
        "",
        "https://app.example/client.json",
        &world.client.id.to_uppercase(),
        &"app_a".repeat(20),
    ] {
        assert_eq!(world.server.registered(unknown).await.unwrap(), None, "{unknown}");
    }
    assert!(matches!(
        world.server.register(b"{}").await,
        Err(Error::Registration(_))
    ));
}
