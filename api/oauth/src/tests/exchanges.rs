//! Vectors of exchanges of codes, and the form of errors.

use types::{Classify as _, Kind};

use super::{VERIFIER, World, changed, refused};
use crate::Error;
use crate::token;

/// Changes of a good exchange, and its error. None of them uses the code up.
const EXCHANGES: [(&str, &[&str], &str); 33] = [
    ("no grant type", &["-grant_type"], "invalid_request"),
    ("the password grant", &["grant_type=password"], "unsupported_grant_type"),
    (
        "the grant of machines",
        &["grant_type=client_credentials"],
        "unsupported_grant_type",
    ),
    (
        "a token exchange",
        &["grant_type=urn:ietf:params:oauth:grant-type:token-exchange"],
        "unsupported_grant_type",
    ),
    ("two grant types", &["+grant_type=refresh_token"], "invalid_request"),
    ("no code", &["-code"], "invalid_request"),
    ("two codes", &["+code=wtg_b"], "invalid_request"),
    ("another code", &["code=wtg_b"], "invalid_grant"),
    ("no code at all", &["code=hello"], "invalid_grant"),
    ("a key of an agent", &["code=km_b"], "invalid_grant"),
    ("no verifier", &["-code_verifier"], "invalid_request"),
    ("an empty verifier", &["code_verifier="], "invalid_request"),
    (
        "the challenge as verifier",
        &["code_verifier=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"],
        "invalid_grant",
    ),
    (
        "another verifier",
        &["code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXj"],
        "invalid_grant",
    ),
    (
        "a longer verifier",
        &["code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXkk"],
        "invalid_grant",
    ),
    ("a short verifier", &["code_verifier=dBjftJeZ4CVP"], "invalid_request"),
    (
        "a verifier with spaces",
        &["code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEj k"],
        "invalid_request",
    ),
    ("two verifiers", &["+code_verifier=a"], "invalid_request"),
    (
        "another redirect",
        &["redirect_uri=https://app.example/cb"],
        "invalid_grant",
    ),
    (
        "another registered redirect",
        &["redirect_uri=http://127.0.0.1/cb"],
        "invalid_grant",
    ),
    (
        "two redirects",
        &["+redirect_uri=https://app.example/cb"],
        "invalid_request",
    ),
    (
        "the other resource",
        &["resource=https://sluice.example/mcp/directory"],
        "invalid_target",
    ),
    (
        "another resource",
        &["resource=https://evil.example/mcp"],
        "invalid_target",
    ),
    (
        "two resources",
        &["+resource=https://sluice.example/mcp/directory"],
        "invalid_target",
    ),
    ("no client", &["-client_id"], "invalid_client"),
    ("two clients", &["+client_id=app_x"], "invalid_request"),
    ("a client that is another", &["client_id=app_x"], "invalid_client"),
    ("a secret", &["client_secret=s"], "invalid_client"),
    (
        "an assertion without a type",
        &["client_assertion=a.b.c"],
        "invalid_request",
    ),
    (
        "a type without an assertion",
        &["client_assertion_type=a"],
        "invalid_request",
    ),
    (
        "an assertion of SAML",
        &[
            "client_assertion=a",
            "client_assertion_type=urn:ietf:params:oauth:client-assertion-type:saml2-bearer",
        ],
        "invalid_client",
    ),
    (
        "an assertion that is none",
        &[
            "client_assertion=a.b.c",
            "client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ],
        "invalid_client",
    ),
    (
        "a code in the place of a refresh token",
        &["grant_type=refresh_token"],
        "invalid_request",
    ),
];

#[tokio::test]
async fn each_wrong_exchange_has_its_error_and_leaves_the_code_to_its_client() {
    let world = World::new().await;
    let code = world.code(&[]).await;
    for (name, changes, expected) in EXCHANGES {
        assert_eq!(refused(world.exchange(&code, changes).await), expected, "{name}");
    }
    let answer = world.exchange(&code, &[]).await.unwrap();
    assert_eq!(answer["token_type"], "Bearer");
    assert_eq!(answer["expires_in"], 3_600);
    assert_eq!(answer["scope"], "read write");
    assert!(answer["access_token"].as_str().unwrap().starts_with("wta_"));
    assert!(answer["refresh_token"].as_str().unwrap().starts_with("wtr_"));
    assert!(world.works(&answer).await);
}

#[tokio::test]
async fn redirect_and_resource_may_be_left_out_of_an_exchange() {
    let world = World::new().await;
    let code = world.code(&[]).await;
    assert!(world.exchange(&code, &["-redirect_uri", "-resource"]).await.is_ok());
}

#[tokio::test]
async fn a_code_that_is_used_twice_ends_its_connection() {
    let world = World::new().await;
    let code = world.code(&[]).await;
    let answer = world.exchange(&code, &[]).await.unwrap();
    assert!(world.works(&answer).await);
    // The code in the hands of another client says nothing about its owner.
    let form = changed(
        &[
            ("grant_type", "authorization_code"),
            ("client_id", &world.other.id),
            ("code", &code),
            ("code_verifier", VERIFIER),
        ],
        &[],
    );
    assert_eq!(refused(world.post(&world.other, &form).await), "invalid_grant");
    assert!(world.works(&answer).await);
    world.wait(120);
    assert_eq!(refused(world.exchange(&code, &[]).await), "invalid_grant");
    assert!(!world.works(&answer).await, "also after the code has ended");
    assert_eq!(
        refused(world.refresh(&answer["refresh_token"], &[]).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn an_exchange_that_its_client_sends_twice_leaves_the_first_answer_good() {
    let world = World::new().await;
    let code = world.code(&[]).await;
    let answer = world.exchange(&code, &[]).await.unwrap();
    world.wait(29);
    assert_eq!(refused(world.exchange(&code, &[]).await), "invalid_grant");
    assert!(world.works(&answer).await);
    // Who has the code without its verifier is another.
    let wrong = format!("code_verifier={}", "a".repeat(43));
    assert_eq!(refused(world.exchange(&code, &[&wrong]).await), "invalid_grant");
    assert!(!world.works(&answer).await);
}

#[test]
fn basic_credentials_name_a_client_without_a_password() {
    let basic = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
    let read = |params: &[(&str, &str)], text: &str| token::credentials(&changed(params, &[]), Some(&basic(text)));
    assert_eq!(read(&[], "app_x:").unwrap().client_id, "app_x");
    assert_eq!(read(&[("client_id", "app_x")], "app_x:").unwrap().client_id, "app_x");
    let url = read(&[], "https%3A%2F%2Fapp.example%2Fclient:").unwrap();
    assert_eq!(url.client_id, "https://app.example/client");
    for (params, text) in [
        (&[][..], "app_x:secret"),
        (&[], ":"),
        (&[], "app_x"),
        (&[("client_id", "app_y")], "app_x:"),
    ] {
        assert_eq!(read(params, text).unwrap_err().code, "invalid_client", "{text}");
    }
    assert_eq!(
        token::credentials(&changed(&[], &[]), Some("%%")).unwrap_err().code,
        "invalid_client"
    );
}

#[tokio::test]
async fn a_code_ends_after_a_minute() {
    let world = World::new().await;
    let (early, late) = (world.code(&[]).await, world.code(&[]).await);
    world.wait(59);
    assert!(world.exchange(&early, &[]).await.is_ok());
    world.wait(1);
    assert_eq!(refused(world.exchange(&late, &[]).await), "invalid_grant");
}

#[tokio::test]
async fn errors_have_the_form_of_the_rfc() {
    let params = changed(&[("client_id", "app_x")], &[]);
    let error = token::credentials(&params, Some("YXBwX3g6c2VjcmV0")).unwrap_err();
    assert_eq!((error.status(), error.code), (401, "invalid_client"));
    assert_eq!(error.www_authenticate(), Some("Basic realm=\"sluice\""));
    let error = token::credentials(&changed(&[], &[]), None).unwrap_err();
    assert_eq!((error.status(), error.www_authenticate()), (401, None));
    assert_eq!(Error::from(error).kind(), Kind::Unauthenticated);
    let world = World::new().await;
    let code = world.code(&[]).await;
    for (name, changes, _) in EXCHANGES {
        let Err(Error::Refused(error)) = world.exchange(&code, changes).await else {
            panic!()
        };
        let is_text = |byte: u8| matches!(byte, 0x20..=0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        assert!(error.description.bytes().all(is_text), "{name}: {}", error.description);
        assert_eq!(error.status(), if error.code == "invalid_client" { 401 } else { 400 });
        assert_eq!(error.body()["error"], error.code);
    }
    // Secrets do not show.
    let answer = token::request(
        &changed(&[("grant_type", "refresh_token"), ("refresh_token", "wtr_secret")], &[]),
        world.server.issuer(),
    );
    assert!(!format!("{answer:?}").contains("wtr_secret"));
}
