use serde_json::{Value, json};

use super::*;
use crate::fixture::{Service, at, non_canonical};
use crate::{Error, SignedStatement, VerifiedStatement};

fn receipt() -> SaleReceipt {
    SaleReceipt {
        format: SaleFormat::V1,
        sale_id: SaleId::from_bytes([1; 16]),
        item: SaleReceipt::dataset("tide-levels"),
        version: 12,
        content_root: Some(Root::from_bytes([3; 32])),
        body_sha256: None,
        price_micro: 500_000,
        fee_micro: 120_000,
        paid_with: PaidWith::Credits,
        buyer: "02020202-0202-0202-0202-020202020202".to_owned(),
        agent: Some(AgentId::from_bytes([4; 16])),
        approved_by: Some(SaleApprover::Person),
        license: "CC-BY-4.0".to_owned(),
        ledger_event: LedgerEventId::from_bytes([5; 16]),
        transaction: None,
        at: at(10),
        issued_at: at(20),
    }
}

fn sign(receipt: SaleReceipt, service: &Service) -> Result<SignedStatement<SaleReceipt>, Error> {
    let last = service.keys.len() - 1;
    SignedStatement::sign(receipt, &service.secrets[last], &service.keys[last])
}

fn text(service: &Service) -> String {
    sign(receipt(), service).unwrap().text().unwrap()
}

fn parse(text: &str, service: &Service) -> Result<VerifiedStatement<SaleReceipt>, Error> {
    VerifiedStatement::parse(text.as_bytes(), &service.keys())
}

/// Frozen: buyers keep their receipts. The signature was made by another program.
#[test]
fn golden_vector() {
    let service = Service::new(1);
    let signed = sign(receipt(), &service).unwrap();
    assert_eq!(signed.signature.value.to_string(), GOLDEN);
    let verified = parse(&text(&service), &service).unwrap();
    assert_eq!(*verified.statement(), receipt());
    assert_eq!(verified.key(), service.keys[0].key_id);
}

const GOLDEN: &str = "NyEmpufla9cAr6y6QAyds1iMaxul/W1+2FVllh7U6VSG+c89uVLmtoiCvLpMXXCY8/nR+peHsXCGPXuBKd86CQ==";

#[test]
fn a_receipt_that_was_changed_or_cut_is_refused() {
    let service = Service::new(1);
    let signed: Value = serde_json::from_str(&text(&service)).unwrap();
    for (pointer, value) in [
        ("/saleId", json!(SaleId::from_bytes([2; 16]))),
        ("/item", json!("dataset:other")),
        ("/version", json!(13)),
        ("/contentRoot", json!(Root::from_bytes([4; 32]))),
        ("/priceMicro", json!(500_001)),
        ("/feeMicro", json!(0)),
        ("/paidWith", json!("given")),
        ("/buyer", json!("somebody")),
        ("/agent", json!(null)),
        ("/approvedBy", json!(null)),
        ("/license", json!("CC0-1.0")),
        ("/ledgerEvent", json!(LedgerEventId::from_bytes([6; 16]))),
        ("/at", json!(at(11).to_string())),
        ("/issuedAt", json!(at(21).to_string())),
        ("/signature/value", json!(non_canonical(GOLDEN))),
    ] {
        let mut changed = signed.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let refused = parse(&changed.to_string(), &service).unwrap_err();
        assert!(matches!(refused, Error::Signature { .. }), "{pointer}: {refused}");
    }
    let mut extra = signed.clone();
    extra["note"] = "more".into();
    assert!(matches!(
        parse(&extra.to_string(), &service),
        Err(Error::Signature { .. })
    ));
    for member in signed.as_object().unwrap().keys() {
        let mut shorter = signed.clone();
        shorter.as_object_mut().unwrap().remove(member);
        assert!(parse(&shorter.to_string(), &service).is_err(), "without {member}");
    }
    let whole = text(&service);
    for end in 0..whole.len() {
        assert!(parse(&whole[..end], &service).is_err(), "{end} bytes");
    }
}

#[test]
fn a_receipt_keeps_the_rules_of_its_members() {
    let service = Service::new(1);
    let unit = || SaleReceipt {
        item: SaleReceipt::unit("01010101-0101-0101-0101-010101010101"),
        content_root: None,
        body_sha256: Some(FileHash::from_bytes([9; 32])),
        ..receipt()
    };
    sign(unit(), &service).unwrap();
    // The text was erased before the receipt was made.
    sign(
        SaleReceipt {
            body_sha256: None,
            ..unit()
        },
        &service,
    )
    .unwrap();
    let by_wallet = || SaleReceipt {
        paid_with: PaidWith::X402,
        transaction: Some(format!("0x{}", "07".repeat(32))),
        ..unit()
    };
    sign(by_wallet(), &service).unwrap();
    for (path, wrong) in [
        (
            "/item",
            SaleReceipt {
                item: "tide-levels".to_owned(),
                ..receipt()
            },
        ),
        (
            "/contentRoot",
            SaleReceipt {
                content_root: None,
                ..receipt()
            },
        ),
        (
            "/contentRoot",
            SaleReceipt {
                content_root: receipt().content_root,
                ..unit()
            },
        ),
        (
            "/bodySha256",
            SaleReceipt {
                body_sha256: unit().body_sha256,
                ..receipt()
            },
        ),
        (
            "/feeMicro",
            SaleReceipt {
                fee_micro: 500_001,
                ..receipt()
            },
        ),
        (
            "/transaction",
            SaleReceipt {
                transaction: None,
                ..by_wallet()
            },
        ),
        (
            "/transaction",
            SaleReceipt {
                transaction: by_wallet().transaction,
                ..receipt()
            },
        ),
    ] {
        let refused = sign(wrong, &service).unwrap_err();
        assert!(
            matches!(&refused, Error::Malformed { path: at, .. } if at == path),
            "{path}: {refused}"
        );
    }
}

#[test]
fn a_receipt_outlives_the_rotation_of_its_key_and_not_its_revocation() {
    let mut service = Service::new(1);
    let before = text(&service);
    service.rotate(30);
    parse(&before, &service).unwrap();
    // Signed by the retired key, with a time at which it was retired already.
    let late = SaleReceipt {
        issued_at: at(31),
        ..receipt()
    };
    let late = SignedStatement::sign(late, &service.secrets[0], &service.keys[0]).unwrap();
    let refused = parse(&late.text().unwrap(), &service).unwrap_err();
    assert!(matches!(refused, Error::Retired { .. }), "{refused}");
    let after = text(&service);
    service.revoke(0, 40);
    let refused = parse(&before, &service).unwrap_err();
    assert!(refused.to_string().contains("the backup was lost"), "{refused}");
    parse(&after, &service).unwrap();
    let stranger = Service::new(50);
    assert!(matches!(parse(&after, &stranger), Err(Error::UnknownKey { .. })));
}
