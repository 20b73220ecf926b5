use serde_json::json;

use super::*;
use crate::testing::{KeyPair, KeyType};

const CLIENT: &str = "https://app.example/client.json";
const ISSUER: &str = "https://sluice.example";
/// The present of these tests, in seconds.
const NOW: i64 = 1_795_000_000;

fn issuer() -> Issuer {
    Issuer::new(ISSUER).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_micros(NOW * 1_000_000)
}

fn claims() -> Value {
    json!({"iss": CLIENT, "sub": CLIENT, "aud": ISSUER, "exp": NOW + 60, "iat": NOW, "jti": "a1"})
}

fn keys(pair: &KeyPair) -> JwkSet {
    JwkSet::from_value(json!({"keys": [pair.jwk()]})).unwrap()
}

fn with(mut value: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!() };
    for (member, change) in changes {
        match change {
            Value::Null => drop(value.as_object_mut().unwrap().remove(&member)),
            change => value[member] = change,
        }
    }
    value
}

/// Verifies an assertion whose header and claims differ from good ones by these members; `null` removes one.
fn verified(of: KeyType, header: Value, changes: Value) -> Result<Claims, AssertionError> {
    let pair = KeyPair::new(of);
    let header = with(json!({"alg": pair.algorithm(), "kid": "k1", "typ": "JWT"}), header);
    let assertion = pair.jwt(&header, &with(claims(), changes));
    verify(&assertion, CLIENT, &issuer(), &keys(&pair), now())
}

#[test]
fn each_type_of_key_signs_assertions() {
    for of in [KeyType::P256, KeyType::Rsa, KeyType::Ed25519] {
        let claims = verified(of, json!({}), json!({})).unwrap();
        assert_eq!(claims.jti, "a1");
        assert_eq!(claims.remembered_until, now().plus(Duration::from_secs(90)));
    }
    assert!(verified(KeyType::Ed25519, json!({"alg": "Ed25519"}), json!({})).is_ok());
}

#[test]
fn each_rule_of_an_assertion_holds() {
    use AssertionError::{Algorithm, Audience, Client, Form, Header, Id, Signature, Time};
    let token_endpoint = format!("{ISSUER}/oauth/token");
    let cases = [
        // The algorithm is that of the key, and never symmetric or none.
        (json!({"alg": "none"}), json!({}), Some(Algorithm)),
        (json!({"alg": "None"}), json!({}), Some(Algorithm)),
        (json!({"alg": ""}), json!({}), Some(Algorithm)),
        (json!({"alg": "HS256"}), json!({}), Some(Algorithm)),
        (json!({"alg": "HS512"}), json!({}), Some(Algorithm)),
        (json!({"alg": "PS256"}), json!({}), Some(Algorithm)),
        (json!({"alg": "ES256K"}), json!({}), Some(Algorithm)),
        (json!({"alg": "es256"}), json!({}), Some(Algorithm)),
        (json!({"alg": "RS256"}), json!({}), Some(Signature)),
        (json!({"alg": "EdDSA"}), json!({}), Some(Signature)),
        (json!({"alg": null}), json!({}), Some(Form)),
        (json!({"alg": ["ES256"]}), json!({}), Some(Form)),
        // Keys come from the metadata of the client only.
        (json!({"kid": "k2"}), json!({}), Some(Signature)),
        (
            json!({"kid": "https://evil.example/jwks.json"}),
            json!({}),
            Some(Signature),
        ),
        (json!({"kid": "../../etc/passwd"}), json!({}), Some(Signature)),
        (json!({"kid": 5}), json!({}), Some(Form)),
        (json!({"kid": null}), json!({}), None),
        (
            json!({"jku": "https://evil.example/jwks.json"}),
            json!({}),
            Some(Header),
        ),
        (json!({"x5u": "https://evil.example/cert.pem"}), json!({}), Some(Header)),
        (json!({"x5c": ["AA"]}), json!({}), Some(Header)),
        (
            json!({"jwk": KeyPair::new(KeyType::P256).jwk()}),
            json!({}),
            Some(Header),
        ),
        (json!({"crit": ["exp"]}), json!({}), Some(Header)),
        (json!({"b64": false}), json!({}), Some(Header)),
        (json!({"typ": "at+jwt"}), json!({}), Some(Header)),
        (json!({"typ": "dpop+jwt"}), json!({}), Some(Header)),
        (json!({"typ": "client-authentication+jwt"}), json!({}), None),
        (json!({"typ": null}), json!({}), None),
        // The audience is the issuer, as one string.
        (json!({}), json!({"aud": token_endpoint}), Some(Audience)),
        (json!({}), json!({"aud": [ISSUER]}), Some(Audience)),
        (
            json!({}),
            json!({"aud": [ISSUER, "https://other.example"]}),
            Some(Audience),
        ),
        (json!({}), json!({"aud": format!("{ISSUER}/")}), Some(Audience)),
        (json!({}), json!({"aud": "https://Sluice.example"}), Some(Audience)),
        (json!({}), json!({"aud": null}), Some(Audience)),
        (json!({}), json!({"aud": "https://evil.example"}), Some(Audience)),
        // Issuer and subject are the client.
        (
            json!({}),
            json!({"iss": "https://evil.example/client.json"}),
            Some(Client),
        ),
        (
            json!({}),
            json!({"sub": "https://evil.example/client.json"}),
            Some(Client),
        ),
        (json!({}), json!({"iss": null}), Some(Client)),
        (json!({}), json!({"sub": null}), Some(Client)),
        (json!({}), json!({"sub": 5}), Some(Form)),
        // It ends soon.
        (json!({}), json!({"exp": null}), Some(Time)),
        (json!({}), json!({"exp": "soon"}), Some(Form)),
        (json!({}), json!({"exp": NOW - 29}), None),
        (json!({}), json!({"exp": NOW - 30}), Some(Time)),
        (json!({}), json!({"exp": NOW + 3_630}), None),
        (json!({}), json!({"exp": NOW + 3_631}), Some(Time)),
        (json!({}), json!({"exp": NOW + 315_360_000}), Some(Time)),
        (json!({}), json!({"exp": i64::MAX}), Some(Time)),
        (json!({}), json!({"exp": u64::MAX}), Some(Time)),
        (json!({}), json!({"exp": i64::MIN}), Some(Time)),
        (json!({}), json!({"exp": 1e300}), Some(Time)),
        (json!({}), json!({"exp": 1_795_000_060.5}), None),
        (json!({}), json!({"iat": NOW + 30}), None),
        (json!({}), json!({"iat": NOW + 31}), Some(Time)),
        (json!({}), json!({"nbf": NOW + 31}), Some(Time)),
        (json!({}), json!({"iat": null, "nbf": NOW - 5}), None),
        // It has an identifier.
        (json!({}), json!({"jti": null}), Some(Id)),
        (json!({}), json!({"jti": ""}), Some(Id)),
        (json!({}), json!({"jti": "a".repeat(257)}), Some(Id)),
        (json!({}), json!({"jti": 5}), Some(Form)),
        (json!({}), json!({"unknown": {"a": [1]}}), None),
    ];
    for (header, changes, expected) in cases {
        let found = verified(KeyType::P256, header.clone(), changes.clone()).err();
        assert_eq!(found, expected, "{header} {changes}");
    }
}

#[test]
fn a_text_that_was_changed_or_has_another_form_is_refused() {
    let pair = KeyPair::new(KeyType::P256);
    let header = json!({"alg": "ES256", "kid": "k1"});
    let good = pair.jwt(&header, &claims());
    let refused = |assertion: &str| verify(assertion, CLIENT, &issuer(), &keys(&pair), now()).unwrap_err();
    assert!(verify(&good, CLIENT, &issuer(), &keys(&pair), now()).is_ok());
    let [head, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!()
    };
    let other = pair.jwt(&header, &with(claims(), json!({"jti": "a2"})));
    let other = other.split('.').nth(1).unwrap();
    assert_eq!(
        refused(&format!("{head}.{other}.{signature}")),
        AssertionError::Signature
    );
    assert_eq!(refused(&format!("{head}.{payload}.")), AssertionError::Signature);
    assert_eq!(
        refused(&KeyPair::new(KeyType::P256).jwt(&header, &claims())),
        AssertionError::Signature
    );
    let twice =
        r#"{"iss":"https://app.example/client.json","aud":"https://sluice.example","aud":"https://evil.example"}"#;
    let twice = BASE64URL_NOPAD.encode(twice.as_bytes());
    for form in [
        String::new(),
        "..".to_owned(),
        format!("{head}.{payload}"),
        format!("{good}.{signature}"),
        format!("{head}=.{payload}.{signature}"),
        format!("{head}.{twice}.{signature}"),
        format!(" {good}"),
        format!("{good}\n"),
        format!("e30.{payload}.{signature}"),
        format!("{}.{payload}.{signature}", BASE64URL_NOPAD.encode(b"[]")),
        format!("{}.{payload}.{signature}", BASE64URL_NOPAD.encode(br#"["ES256"]"#)),
        format!("{head}.{}.{signature}", "A".repeat(9_000)),
    ] {
        assert_eq!(refused(&form), AssertionError::Form, "{form}");
    }
    assert_eq!(claimed_client(&good).as_deref(), Some(CLIENT));
    assert_eq!(claimed_client("a.b.c"), None);
}
