use serde_json::json;

use super::*;
use crate::fixture::{Service, at, non_canonical};
use crate::{SignedStatement, VerifiedStatement};

/// Rows as the service has them.
fn raw(rows: &[&str]) -> Vec<Box<RawValue>> {
    let row = |row: &&str| RawValue::from_string((*row).to_owned()).unwrap();
    rows.iter().map(row).collect()
}

fn hash(columns: &Value, rows: &[&str], truncated: bool) -> Result<AnswerHash, Error> {
    AnswerHash::of(columns, raw(rows).iter().map(AsRef::as_ref), truncated)
}

fn receipt() -> QueryReceipt {
    let columns = json!([{"name": "n", "type": "Int64", "nullable": false}]);
    QueryReceipt {
        format: QueryReceiptFormat::V1,
        dataset: DatasetId::from_bytes([7; 16]),
        slug: "tide-levels".to_owned(),
        version: Version(3),
        root: Root::from_bytes([5; 32]),
        sql: "SELECT count(*) AS n FROM records".to_owned(),
        limit: 200,
        offset: 0,
        next_offset: None,
        now: at(30),
        build: BuildId([0xab; 8]),
        row_count: 1,
        answer: hash(&columns, &["[6]"], false).unwrap(),
        reproducible: true,
        why: Vec::new(),
        issued_at: at(31),
    }
}

fn signed(service: &Service, receipt: QueryReceipt) -> Value {
    let last = service.keys.len() - 1;
    let signed = SignedStatement::sign(receipt, &service.secrets[last], &service.keys[last]).unwrap();
    serde_json::to_value(signed).unwrap()
}

fn parse(receipt: &Value, service: &Service) -> Result<VerifiedStatement<QueryReceipt>, Error> {
    VerifiedStatement::parse(receipt.to_string().as_bytes(), &service.keys())
}

fn service() -> Service {
    let mut service = Service::new(1);
    service.rotate(15);
    service
}

#[test]
fn a_receipt_is_read_back_as_it_was_signed() {
    let service = service();
    let page = QueryReceipt {
        offset: 2,
        next_offset: Some(5),
        row_count: 3,
        reproducible: false,
        why: vec!["order".to_owned(), "a reason of a later build".to_owned()],
        ..receipt()
    };
    for receipt in [receipt(), page] {
        let verified = parse(&signed(&service, receipt.clone()), &service).unwrap();
        assert_eq!(*verified.statement(), receipt);
        assert_eq!(verified.key(), service.keys[1].key_id);
    }
    let plain = signed(&service, receipt());
    assert!(plain.get("offset").is_none() && plain.get("nextOffset").is_none());
}

/// Frozen: receipts are kept by others.
#[test]
fn golden_vector() {
    let signed = signed(&Service::new(1), receipt());
    let text = r#"{"columns":[{"name":"n","nullable":false,"type":"Int64"}],"rows":[[6]],"truncated":false}"#;
    let expected: [u8; 32] = Sha256::digest(text).into();
    assert_eq!(signed["answer"], AnswerHash(expected).to_string());
    assert_eq!(signed["signature"]["value"], GOLDEN);
}

// Made by another implementation (Python's cryptography), so the canonical form is not only this package's.
const GOLDEN: &str = "y8Nn1wLLC0v7l60kw3ULPFMDYzuZxCpNeb0D2gxPLICq/uGnjedy7IZB/9BjfZpwZCLSSg9CCTydfdCv8tJgCw==";

#[test]
fn a_receipt_that_was_changed_is_refused() {
    let service = service();
    let sound = signed(&service, receipt());
    for (member, value) in [
        ("dataset", json!(DatasetId::from_bytes([8; 16]).to_string())),
        ("slug", json!("other")),
        ("version", json!(2)),
        ("root", json!(Root::from_bytes([1; 32]))),
        ("sql", json!("SELECT count(*) AS n FROM records ")),
        ("limit", json!(201)),
        ("offset", json!(1)),
        ("now", json!(at(29).to_string())),
        ("build", json!("00".repeat(8))),
        ("rowCount", json!(2)),
        ("answer", json!("00".repeat(32))),
        ("issuedAt", json!(at(32).to_string())),
        ("note", json!("more")),
    ] {
        let mut changed = sound.clone();
        changed[member] = value;
        let refused = parse(&changed, &service).unwrap_err();
        assert!(
            matches!(refused, Error::Signature { what: "query receipt" }),
            "{member}: {refused}"
        );
    }
    let mut changed = sound.clone();
    (changed["reproducible"], changed["why"]) = (json!(false), json!(["order"]));
    assert!(matches!(parse(&changed, &service), Err(Error::Signature { .. })));
    let mut changed = sound.clone();
    changed["signature"]["value"] = non_canonical(sound["signature"]["value"].as_str().unwrap()).into();
    assert!(matches!(parse(&changed, &service), Err(Error::Signature { .. })));
    // A signature of one kind is none of another, whatever the members are.
    let mut manifest = sound;
    manifest["format"] = "sluice-manifest-1".into();
    assert!(matches!(parse(&manifest, &service), Err(Error::Malformed { .. })));
}

#[test]
fn a_receipt_that_was_cut_is_refused_everywhere() {
    let service = service();
    let text = signed(&service, receipt()).to_string();
    for end in 0..text.len() {
        let cut = VerifiedStatement::<QueryReceipt>::parse(&text.as_bytes()[..end], &service.keys());
        assert!(matches!(cut, Err(Error::Malformed { .. })), "{end}");
    }
    let sound: Value = serde_json::from_str(&text).unwrap();
    for member in sound.as_object().unwrap().keys() {
        let mut lacking = sound.clone();
        lacking.as_object_mut().unwrap().remove(member);
        assert!(parse(&lacking, &service).is_err(), "{member}");
    }
}

#[test]
fn a_retired_key_counts_until_then_and_a_revoked_one_never() {
    let mut service = service();
    let sound = signed(&service, receipt());
    service.rotate(31);
    assert!(
        parse(&sound, &service).is_ok(),
        "issued in the second of the retirement"
    );
    service.keys[1].retired_at = Some(at(30));
    let late = parse(&sound, &service).unwrap_err();
    assert!(
        matches!(
            late,
            Error::Retired {
                what: "query receipt",
                ..
            }
        ),
        "{late}"
    );
    service.keys[1].retired_at = Some(at(31));
    service.revoke(1, 40);
    let revoked = parse(&sound, &service).unwrap_err();
    assert!(
        matches!(
            revoked,
            Error::Revoked {
                what: "query receipt",
                ..
            }
        ),
        "{revoked}"
    );
    let foreign = parse(&sound, &Service::new(9)).unwrap_err();
    assert!(matches!(foreign, Error::UnknownKey { .. }), "{foreign}");
}

#[test]
fn members_that_contradict_each_other_are_not_signed() {
    let key = Service::new(1);
    let refused = |receipt: QueryReceipt| SignedStatement::sign(receipt, &key.secrets[0], &key.keys[0]).is_err();
    assert!(!refused(receipt()));
    assert!(refused(QueryReceipt {
        reproducible: false,
        ..receipt()
    }));
    assert!(refused(QueryReceipt {
        why: vec!["order".to_owned()],
        ..receipt()
    }));
    assert!(refused(QueryReceipt {
        next_offset: Some(2),
        ..receipt()
    }));
}

#[test]
fn a_hash_is_of_what_the_answer_means() {
    let columns = json!([{"type": "Float64", "name": "x", "nullable": true}]);
    let of = |rows: &[&str]| hash(&columns, rows, false).unwrap();
    assert_eq!(of(&["[1.0]", "[ \"\\u00e9\" ]"]), of(&["[1]", "[\"é\"]"]));
    assert_eq!(of(&["[{\"b\":1,\"a\":2}]"]), of(&["[{\"a\":2,\"b\":1.0}]"]));
    let sound = of(&["[1]", "[2]"]);
    for other in [
        &["[2]", "[1]"][..],
        &["[1]"],
        &["[1]", "[2]", "[2]"],
        &["[1,2]"],
        &["[\"1\"]", "[2]"],
    ] {
        assert_ne!(of(other), sound, "{other:?}");
    }
    assert_ne!(hash(&columns, &["[1]", "[2]"], true).unwrap(), sound);
    assert_ne!(hash(&json!([]), &["[1]", "[2]"], false).unwrap(), sound);
    let twice = hash(&columns, &["[1]", "[{\"a\":1,\"a\":2}]"], false).unwrap_err();
    assert!(twice.to_string().contains("/rows/1/0/a"), "{twice}");
}
