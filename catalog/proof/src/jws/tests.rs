use serde_json::json;

use super::*;
use crate::fixture::{Service, at};

fn did() -> ServiceDid {
    ServiceDid::of_origin("https://sluice.example:8443")
}

fn payload() -> Map<String, Value> {
    let Value::Object(members) = json!({"b": 1, "a": "é"}) else {
        unreachable!()
    };
    members
}

#[test]
fn a_host_and_its_port_name_a_service() {
    for (origin, did) in [
        ("https://sluice.example", "did:web:sluice.example"),
        ("https://Sluice.example/paid/knowledge?id=1", "did:web:sluice.example"),
        ("http://127.0.0.1:8080", "did:web:127.0.0.1%3A8080"),
    ] {
        assert_eq!(ServiceDid::of_origin(origin).as_str(), did);
    }
}

#[test]
fn a_signature_is_read_back_and_belongs_to_its_key() {
    let service = Service::new(1);
    let text = sign(&payload(), &did(), &service.secrets[0]);
    let jws = CompactJws::parse(&text).unwrap();
    assert_eq!(
        (jws.did(), jws.key(), jws.payload()),
        (&did(), service.keys[0].key_id, &payload())
    );
    jws.holds("receipt", at(5), &service.keys()).unwrap();
    let other = Service::new(9);
    let refused = jws.holds("receipt", at(5), &other.keys()).unwrap_err();
    assert!(matches!(refused, Error::UnknownKey { .. }), "{refused}");
}

#[test]
fn a_changed_or_cut_signature_is_refused() {
    let service = Service::new(1);
    let keys = service.keys();
    let text = sign(&payload(), &did(), &service.secrets[0]);
    let holds = |text: &str| CompactJws::parse(text).and_then(|jws| jws.holds("receipt", at(5), &keys));
    holds(&text).unwrap();
    for end in 0..text.len() {
        assert!(holds(&text[..end]).is_err(), "{end} bytes");
    }
    let parts: Vec<&str> = text.split('.').collect();
    let part = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
    let kid = did().key(service.keys[0].key_id);
    for header in [
        format!(r#"{{"alg":"none","kid":"{kid}"}}"#),
        format!(r#"{{"alg":"HS256","kid":"{kid}"}}"#),
        r#"{"alg":"EdDSA"}"#.to_owned(),
        r#"{"alg":"EdDSA","kid":"did:key:z6Mk#a"}"#.to_owned(),
        format!(r#"{{"alg":"EdDSA","jwk":{{}},"kid":"{kid}"}}"#),
        format!(r#"{{"alg":"EdDSA","alg":"EdDSA","kid":"{kid}"}}"#),
    ] {
        let forged = [&part(&header), parts[1], parts[2]].join(".");
        let refused = holds(&forged).unwrap_err();
        assert!(matches!(refused, Error::Malformed { .. }), "{header}: {refused}");
    }
    let other = [parts[0], &part(r#"{"a":"é","b":2}"#), parts[2]].join(".");
    assert!(matches!(holds(&other), Err(Error::Signature { .. })));
    // The same bytes with padding, or with the alphabet of other Base64, are another text.
    for twice in [format!("{text}="), format!("{text}.e30"), text.replace('.', "..")] {
        assert!(holds(&twice).is_err(), "{twice}");
    }
}

#[test]
fn the_document_has_the_keys_that_count() {
    let mut service = Service::new(1);
    service.rotate(10);
    service.revoke(1, 20);
    let document = DidDocument::of_keys(&did(), &service.keys);
    let ids: Vec<_> = document
        .verification_method
        .iter()
        .map(|method| method.id.clone())
        .collect();
    let key = |index: usize| did().key(service.keys[index].key_id);
    assert_eq!(ids, [key(0), key(2)], "the revoked one is left out");
    assert_eq!(document.assertion_method, [key(2)]);
    // The public key of the secret of 32 bytes of 1, by another program.
    assert_eq!(
        document.verification_method[0].public_key_jwk.x,
        "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"
    );
}
