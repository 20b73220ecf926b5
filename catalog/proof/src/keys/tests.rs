use serde_json::json;

use super::*;
use crate::Root;
use crate::fixture::{Service, at, non_canonical};

/// A service whose key was rotated twice, the middle one revoked.
fn grown() -> Service {
    let mut service = Service::new(1);
    service.rotate(100);
    service.rotate(200);
    service.revoke(1, 300);
    service
}

fn text(document: &KeysDocument) -> Vec<u8> {
    serde_json::to_vec(document).unwrap()
}

/// The error of a document that was changed so and signed again by the current key.
#[track_caller]
fn signed_again(service: &Service, change: impl FnOnce(&mut Value)) -> Error {
    let mut document = serde_json::to_value(service.document()).unwrap();
    change(&mut document);
    let mut members = document.as_object().unwrap().clone();
    members.remove("signature");
    let value = service
        .secrets
        .last()
        .unwrap()
        .sign(&signed_bytes("sluice-keys-1", members));
    document["signature"]["value"] = value.to_string().into();
    Keys::parse(document.to_string().as_bytes()).unwrap_err()
}

#[test]
fn a_document_is_read_back_as_it_was_signed() {
    let service = grown();
    let keys = service.keys();
    assert_eq!(*keys.document(), service.document());
    assert_eq!(
        Keys::parse(keys.to_json().as_bytes()).unwrap().document(),
        keys.document()
    );
    assert_eq!(keys.first().key_id, service.secrets[0].key_id());
    assert_eq!(keys.begins_with(&service.keys[0].public_key).ok(), Some(()));
    keys.follows(&keys).unwrap();
}

/// Frozen: documents are kept by others.
#[test]
fn golden_vector() {
    let signature = grown().document().signature;
    assert_eq!(signature.key_id.to_string(), "b62e867fa2f33afe");
    assert_eq!(signature.value.to_string(), GOLDEN);
}

const GOLDEN: &str = "nqS4ZWEib5sk0Agqf6u34Q48F7GKKG2/aoab2hC3+nnUrNneJgeNizj3hqSaj5+aF2rxdqlrfqxIPHfM9iZXAg==";

#[test]
fn a_document_that_was_changed_is_refused() {
    let document = serde_json::to_value(grown().document()).unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut document = document.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        Keys::parse(document.to_string().as_bytes()).unwrap_err()
    };
    assert!(matches!(changed("/sequence", 9.into()), Error::Signature { .. }));
    assert!(matches!(
        changed("/keys/1/reason", "none".into()),
        Error::Signature { .. }
    ));
    assert!(matches!(
        changed("/issuedAt", at(1).to_string().into()),
        Error::Signature { .. }
    ));
    let value = document["signature"]["value"].as_str().unwrap();
    assert!(matches!(
        changed("/signature/value", non_canonical(value).into()),
        Error::Signature { .. }
    ));
    let mut extra = document.clone();
    extra["keys"][0]["note"] = "trust me".into();
    assert!(matches!(
        Keys::parse(extra.to_string().as_bytes()),
        Err(Error::Signature { .. })
    ));
}

#[test]
fn what_breaks_a_rule_is_refused_even_if_it_is_signed() {
    let service = grown();
    for (pointer, value, rule) in [
        ("/format", json!("sluice-keys-2"), "unknown variant"),
        ("/keys", json!([]), "there is no key"),
        (
            "/keys/0/keyId",
            json!("0011223344556677"),
            "is not the hash of the public key",
        ),
        (
            "/keys/0/keyId",
            json!("B62E867FA2F33AFE"),
            "16 lower-case hexadecimal digits",
        ),
        ("/keys/0/status", json!("current"), "does not agree"),
        (
            "/keys/0/retiredAt",
            json!("2026-11-01T00:01:40.000Z"),
            "no digit too many",
        ),
        ("/keys/0/retiredAt", json!(null), "does not agree"),
        ("/keys/1/status", json!("retired"), "does not agree"),
        ("/keys/2/status", json!("retired"), "does not agree"),
        ("/keys/2/algorithm", json!("Ed448"), "unknown variant"),
        (
            "/signature/keyId",
            json!(service.keys[0].key_id),
            "is not by the current key",
        ),
        (
            "/signature/publicKey",
            json!(service.keys[0].public_key),
            "is not by the current key",
        ),
    ] {
        let error = signed_again(&service, |document| *document.pointer_mut(pointer).unwrap() = value);
        assert!(error.to_string().contains(rule), "{pointer}: {error}");
    }
    let twice = signed_again(&service, |document| document["keys"][2] = document["keys"][0].clone());
    assert!(twice.to_string().contains("is there twice"), "{twice}");
    let ended = signed_again(&service, |document| {
        document["keys"].as_array_mut().unwrap().pop();
    });
    assert!(ended.to_string().contains("must be current"), "{ended}");
    let extra = signed_again(&service, |document| document["signature"]["more"] = 1.into());
    assert!(matches!(extra, Error::Malformed { .. }), "{extra}");
    for text in [&b""[..], b"[]", br#"{"sequence":1,"sequence":2}"#, b"{} {}"] {
        assert!(matches!(Keys::parse(text), Err(Error::Malformed { .. })));
    }
}

#[test]
fn a_key_that_the_one_before_it_does_not_vouch_for_is_refused() {
    let service = grown();
    let stranger = SigningKey::from_secret(&[9; 32]);
    let problem = |change: &dyn Fn(&mut Vec<Key>)| {
        let mut keys = service.keys.clone();
        change(&mut keys);
        let error = KeysDocument::sign(9, at(1_000), keys, &service.secrets[2]).unwrap_err();
        let Error::Chain { problem, .. } = error else {
            panic!("{error}")
        };
        problem
    };
    let forged = stranger.endorse(&service.keys[1].public_key, at(100));
    assert!(problem(&|keys| keys[1].endorsement = Some(forged)).contains("another key than the one before"));
    let by = service.keys[0].key_id;
    let value = forged.value;
    assert!(problem(&|keys| keys[1].endorsement = Some(Endorsement { by, value })).contains("not a signature"));
    assert!(problem(&|keys| keys[1].created_at = at(101)).contains("not a signature"));
    assert!(problem(&|keys| keys[1].endorsement = None).contains("not endorsed"));
    assert!(problem(&|keys| keys[0].endorsement = Some(forged)).contains("the first and yet endorsed"));
    assert!(problem(&|keys| keys[1].revoked_at = Some(at(199))).contains("was revoked"));
}

#[test]
fn a_key_made_when_the_one_before_it_was_revoked_counts() {
    let mut service = Service::new(1);
    service.revoke(0, 50);
    assert_eq!(service.keys().document().keys[1].created_at, at(50));
}

#[test]
fn a_document_that_takes_something_back_is_refused() {
    let first = Service::new(1);
    let mut second = first.clone();
    second.rotate(100);
    let third = {
        let mut third = second.clone();
        third.revoke(0, 150);
        third
    };
    third.keys().follows(&second.keys()).unwrap();
    third.keys().follows(&first.keys()).unwrap();
    assert!(matches!(
        second.keys().follows(&third.keys()),
        Err(Error::RolledBack { seen: 3, found: 2 })
    ));

    let replayed = |mut service: Service| {
        service.sequence = 9;
        service.keys().follows(&third.keys()).unwrap_err()
    };
    let mut forked = second.clone();
    let stranger = SigningKey::from_secret(&[9; 32]);
    let endorsement = third.secrets[0].endorse(&stranger.public_key(), at(100));
    forked.keys[1] = Key::new(stranger.public_key(), at(100), Some(endorsement));
    forked.keys[0] = third.keys[0].clone();
    forked.secrets[1] = stranger;
    assert!(matches!(replayed(forked), Error::KeyMissing { .. }));
    assert!(replayed(second.clone()).to_string().contains("it counts again"));
    let mut later = third.clone();
    later.keys[0].revoked_at = Some(at(160));
    assert!(replayed(later).to_string().contains("ended at another time"));
    let mut other = first;
    other.rotate(101);
    other.revoke(0, 150);
    other.keys[0].retired_at = Some(at(100));
    assert!(replayed(other).to_string().contains("another time of creation"));
}

#[test]
fn two_documents_of_one_sequence_are_refused() {
    let mut rotated = Service::new(1);
    rotated.rotate(100);
    rotated.sequence = 1;
    assert!(matches!(
        rotated.keys().follows(&Service::new(1).keys()),
        Err(Error::SameSequence { sequence: 1 })
    ));
}

#[test]
fn the_keys_of_another_service_are_refused() {
    let (ours, theirs) = (Service::new(1), Service::new(50));
    let refused = theirs.keys().follows(&ours.keys()).unwrap_err();
    assert!(matches!(refused, Error::OtherFirstKey { .. }), "{refused}");
    assert!(theirs.keys().begins_with(&ours.keys[0].public_key).is_err());
}

#[test]
fn a_secret_is_never_shown() {
    let secret = SigningKey::from_secret(&[0xab; 32]);
    assert_eq!(format!("{secret:?}"), format!("SigningKey({})", secret.key_id()));
    assert!(!Root::EMPTY.to_string().is_empty());
}

#[test]
fn generated_keys_differ() {
    assert_ne!(
        SigningKey::generate().unwrap().public_key(),
        SigningKey::generate().unwrap().public_key()
    );
}

#[test]
fn the_text_of_a_document_is_json_of_one_form() {
    let document = text(&Service::new(1).document());
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["keys"][0]["endorsement"], Value::Null);
    assert_eq!(document["keys"][0]["status"], "current");
    assert!(document["keys"][0].get("retiredAt").is_none());
}
