use super::*;
use crate::fixture::{Service, at};

const ORIGIN: &str = "https://sluice.example:8443";

fn did() -> ServiceDid {
    ServiceDid::of_origin(ORIGIN)
}

fn second(instant: Timestamp) -> u64 {
    u64::try_from(instant.micros() / 1_000_000).unwrap()
}

fn receipt() -> PaymentReceipt {
    PaymentReceipt {
        version: PaymentReceipt::VERSION,
        network: "eip155:84532".to_owned(),
        resource_url: format!("{ORIGIN}/paid/knowledge?id=1"),
        payer: "0x857b06519E91e3A54538791bDbb0E22373e36b66".to_owned(),
        issued_at: second(at(20)),
        transaction: Some(format!("0x{}", "07".repeat(32))),
    }
}

fn offer() -> OfferTerms {
    OfferTerms {
        version: OfferTerms::VERSION,
        resource_url: format!("{ORIGIN}/paid/knowledge?id=1"),
        scheme: "exact".to_owned(),
        network: "eip155:84532".to_owned(),
        asset: "0x5111cE0000000000000000000000000000000402".to_owned(),
        pay_to: "0x857b06519E91e3A54538791bDbb0E22373e36b66".to_owned(),
        amount: "500000".to_owned(),
        valid_until: second(at(20)) + OFFER_SECONDS,
    }
}

/// Frozen: wallets keep their receipts. The text was made by another program.
#[test]
fn golden_vector() {
    let service = Service::new(1);
    assert_eq!(receipt().sign(&did(), &service.secrets[0]).unwrap(), GOLDEN);
    let verified = VerifiedTerms::parse(GOLDEN, &service.keys()).unwrap();
    assert_eq!(*verified.terms(), PaymentTerms::Receipt(receipt()));
    assert_eq!(verified.key(), service.keys[0].key_id);
}

const GOLDEN: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6ImRpZDp3ZWI6c2x1aWNlLmV4YW1wbGUlM0E4NDQzIzM0NzUwZjk4YmQ1OWZjZmMifQ.\
                      eyJpc3N1ZWRBdCI6MTc5MzQ5MTIyMCwibmV0d29yayI6ImVpcDE1NTo4NDUzMiIsInBheWVyIjoiMHg4NTdiMDY1MTlFOTFlM0E1NDUzODc5MWJEYmIwRTIyMzczZTM2YjY2IiwicmVzb3VyY2VVcmwiOiJodHRwczovL3NsdWljZS5leGFtcGxlOjg0NDMvcGFpZC9rbm93bGVkZ2U_aWQ9MSIsInRyYW5zYWN0aW9uIjoiMHgwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3IiwidmVyc2lvbiI6MX0.\
                      7Sk57px61EWGRRjGwRReP9f5ztFoL3oBqQuugI0lcuaIcYYISNl760xt4HVbpiuw4qJNwC2sCR2KGXgTlTNjDA";

#[test]
fn a_service_signs_for_its_own_addresses_only() {
    let service = Service::new(1);
    let elsewhere = PaymentReceipt {
        resource_url: "https://other.example/paid/knowledge?id=1".to_owned(),
        ..receipt()
    };
    let later = PaymentReceipt {
        version: 2,
        ..receipt()
    };
    for (path, wrong) in [("/resourceUrl", elsewhere), ("/version", later)] {
        let text = wrong.sign(&did(), &service.secrets[0]).unwrap();
        let refused = VerifiedTerms::parse(&text, &service.keys()).unwrap_err();
        assert!(
            matches!(&refused, Error::Malformed { path: at, .. } if at == path),
            "{path}: {refused}"
        );
    }
}

#[test]
fn an_offer_counts_while_its_key_does() {
    let mut service = Service::new(1);
    let text = offer().sign(&did(), &service.secrets[0]).unwrap();
    let verified = VerifiedTerms::parse(&text, &service.keys()).unwrap();
    assert_eq!(*verified.terms(), PaymentTerms::Offer(offer()));
    service.rotate(25);
    VerifiedTerms::parse(&text, &service.keys()).unwrap();
    let late = OfferTerms {
        valid_until: second(at(26)) + OFFER_SECONDS,
        ..offer()
    };
    let late = late.sign(&did(), &service.secrets[0]).unwrap();
    let refused = VerifiedTerms::parse(&late, &service.keys()).unwrap_err();
    assert!(matches!(refused, Error::Retired { what: "offer", .. }), "{refused}");
    service.revoke(0, 40);
    let refused = VerifiedTerms::parse(GOLDEN, &service.keys()).unwrap_err();
    assert!(matches!(refused, Error::Revoked { .. }), "{refused}");
}

#[test]
fn a_payload_has_the_members_of_one_kind() {
    let service = Service::new(1);
    let mut both = members(RECEIPT_NAME, &receipt()).unwrap();
    both.insert("amount".to_owned(), "1".into());
    let mut none = members(OFFER_NAME, &offer()).unwrap();
    none.remove("amount");
    for payload in [both, none, Map::new()] {
        let text = jws::sign(&payload, &did(), &service.secrets[0]);
        let refused = VerifiedTerms::parse(&text, &service.keys()).unwrap_err();
        assert!(matches!(refused, Error::Malformed { .. }), "{payload:?}: {refused}");
    }
}
