use serde_json::json;

use super::*;
use crate::fixture::{Dataset, Service, at, non_canonical};

fn signed(service: &Service) -> Value {
    let manifest = Dataset::with_three_parts().manifest;
    serde_json::to_value(service.sign(manifest, service.keys.len() - 1)).unwrap()
}

fn parse(manifest: &Value, service: &Service) -> Result<VerifiedManifest, Error> {
    VerifiedManifest::parse(manifest.to_string().as_bytes(), &service.keys())
}

fn service() -> Service {
    let mut service = Service::new(1);
    service.rotate(15);
    service
}

#[test]
fn a_manifest_is_read_back_as_it_was_signed() {
    let service = service();
    let verified = parse(&signed(&service), &service).unwrap();
    assert_eq!(verified.key(), service.keys[1].key_id);
    let manifest = Dataset::with_three_parts().manifest;
    assert_eq!(*verified.manifest(), manifest);
    let kept = VerifiedManifest::parse(verified.to_json().as_bytes(), &service.keys()).unwrap();
    assert_eq!(*kept.manifest(), manifest);
}

#[test]
fn addresses_are_not_signed_and_not_kept() {
    let service = service();
    let mut manifest = signed(&service);
    manifest["urlsExpireAt"] = at(900).to_string().into();
    manifest["parts"][1]["url"] = "/parts/1?signature=a".into();
    let verified = parse(&manifest, &service).unwrap();
    assert_eq!(
        verified.manifest().parts[1].url.as_deref(),
        Some("/parts/1?signature=a")
    );
    assert_eq!(verified.manifest().urls_expire_at, Some(at(900)));
    assert!(!verified.to_json().contains("signature=a") && !verified.to_json().contains("urlsExpireAt"));
}

/// The text of a manifest is what is signed, without a tree of values between.
#[test]
fn the_text_of_a_manifest_is_its_canonical_form() {
    let mut manifest = Dataset::with_three_parts().manifest;
    let text = |manifest: &Manifest| String::from_utf8(manifest.signed_bytes().unwrap()).unwrap();
    for slug in [
        "tide-levels",
        "\u{8}\t\n\u{c}\r\u{1}\u{7f}\"\\/ \u{2028}\u{c11c} \u{1f600}",
    ] {
        manifest.slug = slug.to_owned();
        let members = crate::json::members(DOCUMENT_NAME, &manifest).unwrap();
        let canonical = crate::json::signed_bytes(manifest.format.name(), members);
        assert_eq!(text(&manifest), String::from_utf8(canonical).unwrap());
    }
    let signed_before = Service::new(1).sign(manifest.clone(), 0).signature;
    manifest.urls_expire_at = Some(at(900));
    manifest.parts[1].url = Some("/parts/1".to_owned());
    let signed = Service::new(1).sign(manifest.clone(), 0);
    assert_eq!((signed.signature, signed.manifest), (signed_before, manifest));
}

/// Frozen: manifests are kept by others. The parts are not those of a folder, so that no file format is frozen with it.
#[test]
fn golden_vector() {
    let mut manifest = Dataset::with_three_parts().manifest;
    for part in &mut manifest.parts {
        (part.size, part.sha256) = (1_000, FileHash::from_bytes([3; 32]));
    }
    let signed = Service::new(1).sign(manifest, 0);
    assert_eq!(signed.manifest.root.to_string(), GOLDEN_ROOT);
    assert_eq!(signed.signature.value.to_string(), GOLDEN);
}

/// The first manifests name the size of a part `bytes`; they are in folders that were pulled then.
#[test]
fn a_manifest_that_names_the_size_bytes_is_still_proven() {
    let service = Service::new(1);
    let mut manifest = Dataset::with_three_parts().manifest;
    for part in &mut manifest.parts {
        (part.size, part.sha256) = (1_000, FileHash::from_bytes([3; 32]));
    }
    let mut old = serde_json::to_value(service.sign(manifest.clone(), 0)).unwrap();
    old["signature"]["value"] = GOLDEN_BYTES.into();
    for part in old["parts"].as_array_mut().unwrap() {
        let part = part.as_object_mut().unwrap();
        let size = part.remove("size").unwrap();
        part.insert("bytes".to_owned(), size);
    }
    let proven = parse(&old, &service).unwrap();
    assert_eq!(*proven.manifest(), manifest);
    let kept: Value = serde_json::from_str(&proven.to_json()).unwrap();
    assert_eq!(
        (&kept["parts"][0]["bytes"], kept["parts"][0].get("size")),
        (&json!(1_000), None)
    );
    old["parts"][0]["size"] = json!(1_000);
    assert!(
        matches!(parse(&old, &service), Err(Error::Malformed { .. })),
        "both names"
    );
}

const GOLDEN_ROOT: &str = "af70940b2cf50ebf0284216e894e46bb7e053bf4a2a32fa289df53e57135dc5c";
const GOLDEN: &str = "OMIZeh0fXkZpnu9JbMKPc/Ka9fWZ9xkpifWdQ9EGuK79zk8u5v+EEXh496AIP6HD/qTijv1I8M0DPmlpUmc+Cg==";
const GOLDEN_BYTES: &str = "52+RXzVT49dbh3k2d38ihczV+5sEsOAcRpZ4bcBRf6YYF0eGjM2XwmwBEt/JqS9oalzfn70WHvAsFeMvu7XkBA==";

#[test]
fn a_manifest_that_was_changed_is_refused() {
    let service = service();
    let manifest = signed(&service);
    for (pointer, value) in [
        ("/slug", json!("other")),
        ("/version", json!(2)),
        ("/root", json!(Root::from_bytes([1; 32]))),
        ("/parts/0/root", json!(Root::from_bytes([1; 32]))),
        ("/parts/0/sha256", json!(FileHash::from_bytes([1; 32]))),
        ("/parts/0/path", json!("part-9.parquet")),
        ("/parts/0", manifest["parts"][1].clone()),
        ("/parts/0/rows", json!(3)),
        ("/schemaDef/allowExtra", json!(true)),
        ("/license", json!("CC0-1.0")),
        ("/createdAt", json!(at(11).to_string())),
        ("/issuedAt", json!(at(21).to_string())),
        (
            "/signature/value",
            json!(non_canonical(manifest["signature"]["value"].as_str().unwrap())),
        ),
    ] {
        let mut changed = manifest.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let refused = parse(&changed, &service).unwrap_err();
        assert!(
            matches!(refused, Error::Signature { what: "manifest" }),
            "{pointer}: {refused}"
        );
    }
    let mut shorter = manifest.clone();
    shorter["parts"].as_array_mut().unwrap().pop();
    let mut longer = manifest.clone();
    longer["parts"][0]["note"] = "more".into();
    let mut extra = manifest;
    extra["note"] = "more".into();
    for changed in [shorter, longer, extra] {
        assert!(matches!(parse(&changed, &service), Err(Error::Signature { .. })));
    }
}

#[test]
fn members_that_are_not_signed_are_refused() {
    let service = service();
    let mut manifest = signed(&service);
    manifest["signature"]["note"] = "more".into();
    assert!(matches!(parse(&manifest, &service), Err(Error::Malformed { .. })));
    let twice = signed(&service).to_string().replacen('{', r#"{"slug":"other","#, 1);
    let refused = VerifiedManifest::parse(twice.as_bytes(), &service.keys()).unwrap_err();
    assert!(refused.to_string().contains("duplicate member name"), "{refused}");
    let mut unsigned = signed(&service);
    unsigned.as_object_mut().unwrap().remove("signature");
    assert!(matches!(parse(&unsigned, &service), Err(Error::Malformed { .. })));
}

#[test]
fn only_a_key_of_the_document_may_sign() {
    let (ours, theirs) = (service(), Service::new(50));
    assert!(matches!(parse(&signed(&theirs), &ours), Err(Error::UnknownKey { .. })));
    // Signed by another key under our key's name.
    let mut manifest = signed(&theirs);
    manifest["signature"]["keyId"] = json!(ours.keys[1].key_id);
    assert!(matches!(parse(&manifest, &ours), Err(Error::OtherPublicKey { .. })));
    manifest["signature"]["publicKey"] = json!(ours.keys[1].public_key);
    manifest["signature"]["endorsement"] = signed(&ours)["signature"]["endorsement"].clone();
    assert!(matches!(parse(&manifest, &ours), Err(Error::Signature { .. })));
}

#[test]
fn a_retired_key_signs_nothing_issued_later() {
    let mut service = service();
    let manifest = signed(&service);
    service.rotate(20);
    assert!(parse(&manifest, &service).is_ok(), "issued as its key was retired");
    service.keys[1].retired_at = Some(at(19));
    let refused = parse(&manifest, &service).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "the manifest was issued at 2026-11-01T00:00:20Z with the key `{}`, which was retired at \
             2026-11-01T00:00:19Z",
            service.keys[1].key_id
        )
    );
}

#[test]
fn a_revoked_key_proves_nothing_whatever_time_is_claimed() {
    let mut service = service();
    let manifest = signed(&service);
    service.revoke(1, 500);
    let refused = parse(&manifest, &service).unwrap_err();
    assert!(matches!(refused, Error::Revoked { .. }), "{refused}");
    assert!(refused.to_string().contains("the backup was lost"), "{refused}");
}

#[test]
fn an_endorsement_that_is_not_the_documents_is_refused() {
    let service = service();
    let manifest = signed(&service);
    let stranger = SigningKey::from_secret(&[9; 32]).endorse(&service.keys[1].public_key, at(15));
    for (pointer, value) in [
        ("/signature/endorsement", json!(null)),
        ("/signature/endorsement/value", json!(stranger.value)),
        ("/signature/endorsement/by", json!(stranger.by)),
        ("/signature/endorsement/createdAt", json!(at(14).to_string())),
    ] {
        let mut forged = manifest.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        assert!(
            matches!(parse(&forged, &service), Err(Error::Chain { .. })),
            "{pointer}"
        );
    }
}

#[test]
fn parts_that_cannot_be_the_version_are_not_signed() {
    let service = Service::new(1);
    let long = format!("{}.parquet", "a".repeat(200));
    let cases: [(&str, Value, &str); 16] = [
        ("/parts/0/path", json!("../part.parquet"), "plain name"),
        ("/parts/0/path", json!("a/part.parquet"), "plain name"),
        ("/parts/0/path", json!(".parquet"), "plain name"),
        ("/parts/0/path", json!(".a.parquet"), "plain name"),
        ("/parts/0/path", json!("manifest.json"), "plain name"),
        ("/parts/0/path", json!(long), "plain name"),
        ("/parts/0/path", json!("Part-2.parquet"), "is there twice"),
        ("/parts/0/firstVersion", json!(0), "does not follow"),
        ("/parts/1/firstVersion", json!(3), "does not follow"),
        ("/parts/1/lastVersion", json!(1), "is before `firstVersion`"),
        ("/parts/2/lastVersion", json!(4), "is not that of the last part"),
        ("/parts/2/lastVersion", json!(9), "less than one for each version"),
        ("/version", json!(4), "is not that of the last part"),
        ("/root", json!(Root::EMPTY), "is not that of the last part"),
        ("/recordCount", json!(7), "is not the sum"),
        ("/parts", json!([]), "is not that of the last part"),
    ];
    for (pointer, value, rule) in cases {
        let mut manifest = serde_json::to_value(Dataset::with_three_parts().manifest).unwrap();
        *manifest.pointer_mut(pointer).unwrap() = value;
        let manifest: Manifest = serde_json::from_value(manifest).unwrap();
        let refused = manifest.sign(&service.secrets[0], &service.keys[0]).unwrap_err();
        assert!(refused.to_string().contains(rule), "{pointer}: {refused}");
    }
}

#[test]
fn the_halves_of_a_key_belong_together() {
    let service = service();
    let manifest = Dataset::with_three_parts().manifest;
    let refused = manifest.sign(&service.secrets[0], &service.keys[1]).unwrap_err();
    assert!(matches!(refused, Error::OtherPublicKey { .. }), "{refused}");
}
