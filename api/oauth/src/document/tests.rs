use serde_json::{Value, json};

use super::*;
use crate::testing::{KeyPair, KeyType};

const URL: &str = "https://app.example/oauth/client.json";

fn document() -> Value {
    json!({
        "client_id": URL,
        "client_name": "Fathom Desk",
        "redirect_uris": ["https://app.example/cb", "http://127.0.0.1/cb"],
        "token_endpoint_auth_method": "none",
        "logo_uri": "http://169.254.169.254/latest/",
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut document = document();
    document[member] = value;
    document
}

fn read_document(document: &Value) -> Result<OAuthClient, DocumentError> {
    let body = document.to_string();
    let fetched = FetchedDocument {
        status: 200,
        content_type: Some("application/json; charset=utf-8"),
        cache_control: None,
        body: body.as_bytes(),
    };
    read(URL, &fetched, Timestamp::default())
}

#[test]
fn a_document_is_identified_by_a_plain_https_url() {
    let good = "https://app.example/client.json https://app.example/a/ https://app.example:8443/c \
                https://app.example/c?v=1 https://localhost:8443/c";
    for url in good.split(' ') {
        assert!(is_document_url(url), "{url}");
    }
    let bad = "https://app.example https://app.example/ http://app.example/c https://app.example/c# https://app.example/c#a \
               https://user@app.example/c https://user:p@app.example/c https://@app.example/c https://app.example/a/../c \
               https://app.example/./c https://app.example/%2e%2e/c https://app.example/%2E/c https://App.example/c \
               HTTPS://app.example/c https://app.example:443/c https://127.0.0.1/c https://[::1]/c https://0x7f.1/c \
               https://intranet/c https://localhost./c https://app.example./c https:app.example/c https:///app.example/c \
               https://app.example\\c https://b\u{fc}cher.example/c app.example/c file:///c javascript:c app_1 \
               https://a;b.example/c https://a'b.example/c https://a_b.example/c https://*.example/c https://-a.example/c";
    for url in bad
        .split_whitespace()
        .chain(["", " https://app.example/c", "https://app.example/c d"])
    {
        assert!(!is_document_url(url), "{url}");
    }
    assert!(!is_document_url(&format!("https://app.example/{}", "c".repeat(2_048))));
}

#[test]
fn a_document_describes_its_own_url() {
    let client = read_document(&document()).unwrap();
    assert_eq!((client.id.as_str(), client.name.as_deref()), (URL, Some("Fathom Desk")));
    assert_eq!(client.auth, ClientAuth::None);
    assert!(client.may_refresh && client.may_redirect_to("http://127.0.0.1:5000/cb"));
    for other in [
        json!("https://app.example/oauth/client.json/"),
        json!("https://App.example/oauth/client.json"),
        json!("https://app.example/oauth/client.json?"),
        json!("https://evil.example/oauth/client.json"),
    ] {
        assert_eq!(read_document(&with("client_id", other)), Err(DocumentError::ClientId));
    }
    assert_eq!(
        read_document(&with("client_id", Value::Null)),
        Err(DocumentError::ClientId)
    );
    assert_eq!(
        read_document(&with("client_secret", json!("s"))),
        Err(DocumentError::Secret)
    );
    let refused = |member, value| read_document(&with(member, value)).unwrap_err();
    assert_eq!(refused("client_name", Value::Null), MetadataError::Name.into());
    assert_eq!(refused("redirect_uris", json!([])), MetadataError::RedirectUris.into());
    for method in [
        "client_secret_basic",
        "client_secret_post",
        "client_secret_jwt",
        "tls_client_auth",
    ] {
        assert_eq!(
            refused("token_endpoint_auth_method", json!(method)),
            MetadataError::AuthMethod.into()
        );
    }
}

#[test]
fn the_answer_has_to_be_a_small_json_document() {
    let body = document().to_string();
    let good = FetchedDocument {
        status: 200,
        content_type: Some("application/oauth-client+json"),
        cache_control: None,
        body: body.as_bytes(),
    };
    let read = |fetched: FetchedDocument<'_>| read(URL, &fetched, Timestamp::default());
    assert!(read(good).is_ok());
    for status in [201, 204, 206, 301, 302, 304, 404, 500] {
        assert_eq!(
            read(FetchedDocument { status, ..good }),
            Err(DocumentError::Status(status))
        );
    }
    for content_type in [
        None,
        Some(""),
        Some("text/html"),
        Some("text/json"),
        Some("application/jsonp"),
        Some("image/x+json"),
    ] {
        assert_eq!(
            read(FetchedDocument { content_type, ..good }),
            Err(DocumentError::ContentType)
        );
    }
    let padded = |bytes: usize| format!("{body}{}", " ".repeat(bytes - body.len()));
    let (most, more) = (padded(5_120), padded(5_121));
    assert!(
        read(FetchedDocument {
            body: most.as_bytes(),
            ..good
        })
        .is_ok()
    );
    assert_eq!(
        read(FetchedDocument {
            body: more.as_bytes(),
            ..good
        }),
        Err(DocumentError::TooLarge)
    );
    assert_eq!(
        read(FetchedDocument {
            body: b"<html>",
            ..good
        }),
        Err(MetadataError::Json.into())
    );
    let other = super::read("https://app.example/", &good, Timestamp::default());
    assert_eq!(other, Err(DocumentError::Url));
}

#[test]
fn keys_are_inline_or_at_a_url_and_never_both() {
    let key = KeyPair::new(KeyType::P256);
    let jwks = json!({"keys": [key.jwk()]});
    let with_keys = |members: Value| {
        let mut document = with("token_endpoint_auth_method", json!("private_key_jwt"));
        document
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        read_document(&document).map(|client| client.auth)
    };
    assert!(matches!(with_keys(json!({"jwks": jwks})), Ok(ClientAuth::Keys(_))));
    let at = "https://app.example/jwks.json";
    assert_eq!(
        with_keys(json!({"jwks_uri": at})),
        Ok(ClientAuth::KeysAt(at.to_owned()))
    );
    let mut private = key.jwk();
    private["d"] = json!("AA");
    for wrong in [
        json!({}),
        json!({"jwks": jwks, "jwks_uri": at}),
        json!({"jwks_uri": "http://app.example/jwks.json"}),
        json!({"jwks_uri": "https://user@app.example/jwks.json"}),
        json!({"jwks": {"keys": []}}),
        json!({"jwks": {"keys": [private]}}),
        json!({"jwks": {"keys": [{"kty": "oct", "k": "AA"}]}}),
        json!({"jwks": 5}),
    ] {
        assert_eq!(with_keys(wrong.clone()), Err(MetadataError::Keys.into()), "{wrong}");
    }
    let body = jwks.to_string();
    let fetched = FetchedDocument {
        status: 200,
        content_type: Some("application/jwk-set+json"),
        cache_control: None,
        body: body.as_bytes(),
    };
    assert!(read_keys(&fetched).is_ok());
    assert!(read_keys(&FetchedDocument { status: 302, ..fetched }).is_err());
    assert!(read_keys(&FetchedDocument { body: b"{}", ..fetched }).is_err());
}

#[test]
fn an_answer_is_kept_as_long_as_it_says_within_a_day() {
    let cases = [
        (None, 3_600),
        (Some("max-age=60"), 60),
        (Some("public, Max-Age=120"), 120),
        (Some("max-age=60, s-maxage=30"), 30),
        (Some("max-age=0"), 0),
        (Some("max-age=999999999999999999999999"), 86_400),
        (Some("max-age=-5"), 0),
        (Some("max-age=\"60\""), 0),
        (Some("no-store, max-age=60"), 0),
        (Some("no-cache"), 0),
        (Some("private=\"a\""), 0),
        (Some("immutable"), 3_600),
    ];
    for (header, seconds) in cases {
        assert_eq!(freshness(header), Duration::from_secs(seconds), "{header:?}");
    }
}

#[test]
fn a_cache_is_bounded_and_forgets() {
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let seconds = Duration::from_secs;
    let mut cache = DocumentCache::new(2);
    cache.put("a", 1, seconds(100), at(0));
    cache.put("b", 2, seconds(50), at(0));
    assert_eq!((cache.get("a", at(99)), cache.get("a", at(100))), (Some(&1), None));
    cache.put("c", 3, seconds(200), at(1));
    assert_eq!(
        (cache.len(), cache.get("b", at(1))),
        (2, None),
        "the one that ends first makes room"
    );
    cache.put("c", 4, Duration::ZERO, at(2));
    assert_eq!(
        cache.get("c", at(2)),
        None,
        "a newer answer that may not be kept replaces the older one"
    );
    for url in 0..10_000 {
        cache.put(&url.to_string(), url, seconds(100), at(3));
    }
    assert_eq!(cache.len(), 2);
    assert!(!cache.is_empty());
    if let Some(value) = cache.get_mut("9999", at(3)) {
        *value = 7;
    }
    assert_eq!(cache.get("9999", at(3)), Some(&7));
    assert_eq!(cache.get_mut("9999", at(103)), None);
}
