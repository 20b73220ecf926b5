//! Signed offers and receipts, identifiers of payments, and sign-ins of wallets.

use proof::terms::{PaymentTerms, VerifiedTerms};
use proof::{Keys, SaleReceipt, VerifiedStatement};
use x402::sign_in::digest;

use super::*;
use crate::keys;
use crate::rules::receipts::faults;

const PATH: &str = "/paid/dataset?slug=tides&version=1";
const FROM: &str = "192.0.2.1";

/// A dataset on sale for half a dollar, with one version.
async fn shop(acts: impl IntoIterator<Item = Act>) -> Stage {
    let stage = Stage::with(acts).await;
    paying::tides(&stage).await;
    stage
}

impl Stage {
    async fn terms(&self, path: &str) -> Value {
        let got = self.send("GET", path, &[], FROM).await;
        refused(&got, 402, "payment_required");
        let header = got.headers["payment-required"].to_str().unwrap();
        assert!(header.len() <= 7_000, "{}", header.len());
        message(&got, "payment-required").unwrap()
    }

    async fn keys(&self) -> Keys {
        let got = self.service.get("/.well-known/service-keys", None).await;
        Keys::parse(&got.bytes).unwrap()
    }

    async fn sign_in(&self, path: &str, header: String) -> Got {
        self.send("GET", path, &[("sign-in-with-x", header)], FROM).await
    }

    async fn faults(&self) -> Vec<store::MoneyFault> {
        let app = &self.service.app;
        faults(&app.store, &*app.clock, 9).await.unwrap()
    }
}

/// A payment of half a dollar with these extensions.
fn payment(stage: &Stage, nonce: u8, extensions: &Value) -> Value {
    let mut message = Buyer::new(500_000, nonce, stage.now()).message(Protocol::V2);
    if !extensions.is_null() {
        message["extensions"] = extensions.clone();
    }
    message
}

fn identified(id: &str) -> Value {
    json!({"payment-identifier": {"info": {"required": false, "id": id}}})
}

/// Returns the header of a wallet that signs in by the challenge of some terms.
fn signed_in(terms: &Value, number: u8) -> String {
    let info = &terms["extensions"]["sign-in-with-x"]["info"];
    let text = |name: &str| info[name].as_str().unwrap();
    let wallet = key(number).address().checksum();
    let signed = format!(
        "{} wants you to sign in with your Ethereum account:\n{wallet}\n\n{}\n\nURI: {}\nVersion: 1\nChain ID: 84532\n\
         Nonce: {}\nIssued At: {}\nExpiration Time: {}\nResources:\n- {}",
        text("domain"),
        text("statement"),
        text("uri"),
        text("nonce"),
        text("issuedAt"),
        text("expirationTime"),
        info["resources"][0].as_str().unwrap()
    );
    let mut header = info.clone();
    header["address"] = wallet.into();
    header["chainId"] = "eip155:84532".into();
    header["type"] = "eip191".into();
    header["signature"] = key(number).sign(digest(&signed)).to_string().into();
    wire::header(&header)
}

fn receipt_in(got: &Got, header: &str) -> String {
    let said = message(got, header).unwrap();
    let receipt = &said["extensions"]["offer-receipt"]["info"]["receipt"];
    assert_eq!(receipt["format"], "jws", "{said}");
    receipt["signature"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_challenge_offers_its_terms_signed() {
    let stage = shop([]).await;
    let terms = stage.terms(PATH).await;
    let offer = &terms["extensions"]["offer-receipt"]["info"]["offers"][0];
    assert_eq!((&offer["format"], &offer["acceptIndex"]), (&json!("jws"), &json!(0)));
    let verified = VerifiedTerms::parse(offer["signature"].as_str().unwrap(), &stage.keys().await).unwrap();
    let PaymentTerms::Offer(offer) = verified.terms() else {
        unreachable!("{verified:?}")
    };
    let accepted = &terms["accepts"][0];
    for (name, signed) in [
        ("scheme", &offer.scheme),
        ("network", &offer.network),
        ("asset", &offer.asset),
        ("payTo", &offer.pay_to),
        ("amount", &offer.amount),
    ] {
        assert_eq!(accepted[name], signed.as_str(), "{name}");
    }
    assert_eq!(terms["resource"]["url"], offer.resource_url.as_str());
    assert_eq!(offer.valid_until, stage.now() + 300);
    let names: Vec<_> = terms["extensions"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        names,
        ["bazaar", "offer-receipt", "payment-identifier", "sign-in-with-x"]
    );
    assert_eq!(
        terms["extensions"]["bazaar"]["info"]["input"]["queryParams"],
        json!({"slug": "tides", "version": "1"})
    );
    // A pack is not owned.
    let pack = stage.terms(&stage.pack()).await;
    assert!(pack["extensions"].get("sign-in-with-x").is_none());
    let did = stage.service.get("/.well-known/did.json", None).await.json();
    let method = &did["verificationMethod"][0];
    assert_eq!(did["id"], "did:web:sluice.test");
    assert_eq!(method["id"], format!("did:web:sluice.test#{}", verified.key()));
    assert_eq!(did["assertionMethod"][0], method["id"]);
}

#[tokio::test]
async fn a_settled_payment_has_one_receipt_until_its_key_is_revoked() {
    for (protocol, sent, answered) in [
        (Protocol::V1, "x-payment", "x-payment-response"),
        (Protocol::V2, "payment-signature", "payment-response"),
    ] {
        let stage = shop([]).await;
        let (store, clock) = (&stage.service.app.store, &*stage.service.app.clock);
        let header = wire::header(&Buyer::new(500_000, 1, stage.now()).message(protocol));
        let pay = async || {
            let got = stage.send("GET", PATH, &[(sent, header.clone())], FROM).await;
            assert_eq!(got.status, 200, "{}", got.text());
            got
        };
        let first = pay().await;
        let signed = receipt_in(&first, answered);
        let transaction = message(&first, answered).unwrap()["transaction"].clone();
        let verified = VerifiedTerms::parse(&signed, &stage.keys().await).unwrap();
        let PaymentTerms::Receipt(receipt) = verified.terms() else {
            unreachable!("{verified:?}")
        };
        assert_eq!(receipt.network, "eip155:84532", "whatever the version");
        assert_eq!(receipt.resource_url, format!("http://sluice.test{PATH}"));
        assert_eq!(receipt.payer, key(1).address().checksum());
        assert_eq!(json!(receipt.transaction), transaction);
        assert_eq!(receipt.issued_at, stage.now());
        stage.service.clock.advance(Duration::from_secs(5));
        assert_eq!(receipt_in(&pay().await, answered), signed);
        let changed = keys::rotate(store, clock).await.unwrap();
        assert_eq!(receipt_in(&pay().await, answered), signed, "a retired key counts");
        keys::revoke(store, clock, &changed.before.key_id.to_string(), "stolen")
            .await
            .unwrap();
        let anew = receipt_in(&pay().await, answered);
        let keys = stage.keys().await;
        assert_eq!(
            VerifiedTerms::parse(&anew, &keys).unwrap().key(),
            changed.current.key_id
        );
        let refused = VerifiedTerms::parse(&signed, &keys).unwrap_err();
        assert!(matches!(refused, proof::Error::Revoked { .. }), "{refused}");
        assert_eq!(receipt_in(&pay().await, answered), anew);
        assert_eq!(stage.faults().await, []);
    }
}

#[tokio::test]
pub(super) async fn a_wallet_signs_in_and_reads_what_it_bought() {
    let stage = shop([]).await;
    let terms = stage.terms(PATH).await;
    let stranger = stage.sign_in(PATH, signed_in(&terms, 1)).await;
    refused(&stranger, 402, "payment_required");
    assert_eq!(stranger.json()["reason"], "not_bought");
    let paid = stage.pay(PATH, &payment(&stage, 1, &Value::Null)).await;
    assert_eq!(paid.status, 200, "{}", paid.text());
    // The challenge opened nothing so far, so it is still good.
    let got = stage.sign_in(PATH, signed_in(&terms, 1)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(
        (&got.json()["root"], &got.json()["version"]),
        (&paid.json()["root"], &json!(1))
    );
    assert!(!got.headers.contains_key("payment-response") && !got.headers.contains_key("payment-required"));
    let again = stage.sign_in(PATH, signed_in(&terms, 1)).await;
    refused(&again, 402, "payment_required");
    assert_eq!(again.json()["reason"], "invalid_siwx_nonce");
    // A challenge that somebody made up, signed by the right wallet.
    let mut foreign = stage.terms(PATH).await;
    foreign["extensions"]["sign-in-with-x"]["info"]["nonce"] = "0123456789abcdef0123456789abcdef".into();
    let got = stage.sign_in(PATH, signed_in(&foreign, 1)).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["reason"]),
        (402, &json!("invalid_siwx_nonce"))
    );
    // Another wallet, and a challenge that is too old.
    let terms = stage.terms(PATH).await;
    let got = stage.sign_in(PATH, signed_in(&terms, 2)).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["reason"]),
        (402, &json!("not_bought"))
    );
    let header = signed_in(&terms, 1);
    let head = stage
        .send("HEAD", PATH, &[("sign-in-with-x", header.clone())], FROM)
        .await;
    assert_eq!(head.status, 402, "HEAD asks for the terms only");
    stage.service.clock.advance(Duration::from_secs(301));
    let late = stage.sign_in(PATH, header).await;
    assert_eq!(
        (late.status.as_u16(), &late.json()["reason"]),
        (402, &json!("invalid_siwx_issued_at_too_old"))
    );
    // A sign-in that fails does not stop a payment.
    let both = [
        ("sign-in-with-x", "%%%".to_owned()),
        ("payment-signature", wire::header(&payment(&stage, 2, &Value::Null))),
    ];
    assert_eq!(stage.send("GET", PATH, &both, FROM).await.status, 200);
    assert_eq!(stage.wallet(1).await, 9_500_000);
}

#[tokio::test]
async fn a_wallet_reads_the_receipt_of_what_it_bought() {
    let stage = shop([]).await;
    let paid = stage.pay(PATH, &payment(&stage, 1, &Value::Null)).await;
    assert_eq!(paid.status, 200, "{}", paid.text());
    let said = message(&paid, "payment-response").unwrap();
    let path = said["saleReceipt"]
        .as_str()
        .unwrap()
        .strip_prefix("http://sluice.test")
        .unwrap()
        .to_owned();
    let owned = stage.pay(PATH, &payment(&stage, 2, &Value::Null)).await;
    assert_eq!(
        message(&owned, "payment-response").unwrap()["saleReceipt"],
        said["saleReceipt"]
    );
    refused(&stage.send("GET", &path, &[], FROM).await, 401, "unauthenticated");
    let terms = stage.terms(PATH).await;
    refused(&stage.sign_in(&path, signed_in(&terms, 2)).await, 404, "not_found");
    refused(&stage.sign_in(&path, "%%%".to_owned()).await, 401, "unauthenticated");
    let got = stage.sign_in(&path, signed_in(&terms, 1)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let verified = VerifiedStatement::<SaleReceipt>::parse(&got.bytes, &stage.keys().await).unwrap();
    let receipt = verified.statement();
    assert_eq!(receipt.buyer, format!("eip155:84532:{}", key(1).address().checksum()));
    assert_eq!(json!(receipt.transaction), said["transaction"]);
    assert_eq!((receipt.agent, receipt.fee_micro), (None, 120_000));
    refused(
        &stage.sign_in(&path, signed_in(&terms, 1)).await,
        401,
        "unauthenticated",
    );
    let terms = stage.terms(PATH).await;
    assert_eq!(stage.sign_in(&path, signed_in(&terms, 1)).await.bytes, got.bytes);
    assert_eq!(stage.faults().await, []);
}

#[tokio::test]
async fn an_identifier_belongs_to_one_payment() {
    let stage = shop([]).await;
    let id = "pay_7d5d747be160e280504c099d984bcfe0";
    let first = payment(&stage, 1, &identified(id));
    let got = stage.pay(PATH, &first).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let again = stage.pay_from(PATH, &first, "198.51.100.1").await;
    assert_eq!(
        (again.status.as_u16(), again.headers.get("payment-response")),
        (200, got.headers.get("payment-response"))
    );
    let other = stage.pay(PATH, &payment(&stage, 2, &identified(id))).await;
    refused(&other, 409, "identifier_reused");
    assert!(!other.headers.contains_key("payment-required"));
    for id in ["pay_7d5d747be16", &"a".repeat(129), "pay.7d5d747be160e28"] {
        let got = stage.pay(PATH, &payment(&stage, 3, &identified(id))).await;
        refused(&got, 400, "malformed_payment");
        assert_eq!(got.json()["field"], "payment-identifier");
    }
    // Another payer may have chosen the same one.
    let wallet = key(3).address().to_string();
    stage
        .service
        .app
        .store
        .wallets()
        .give(&wallet, 1_000_000)
        .await
        .unwrap();
    let mut buyer = Buyer::new(500_000, 1, stage.now());
    buyer.key = key(3);
    buyer.authorization.from = key(3).address();
    let mut message = buyer.message(Protocol::V2);
    message["extensions"] = identified(id);
    assert_eq!(stage.pay(PATH, &message).await.status, 200);
    assert_eq!(stage.states().await.len(), 2);
    assert_eq!(stage.wallet(1).await, 9_500_000);
}

#[tokio::test]
pub(super) async fn a_payment_with_a_secret_gets_its_answer_again_from_anywhere_for_a_day() {
    let stage = shop([]).await;
    let terms = stage.terms(PATH).await;
    // Clients of others echo every extension of the challenge.
    let sent = payment(&stage, 1, &terms["extensions"]);
    let first = stage.pay(PATH, &sent).await;
    assert_eq!(first.status, 200, "{}", first.text());
    // The chain has the authorization and its signature, and nobody else has the challenge.
    let rebuilt = payment(&stage, 1, &Value::Null);
    for from in [FROM, "198.51.100.1"] {
        let got = stage.pay_from(PATH, &rebuilt, from).await;
        refused(&got, 409, "payment_used");
        assert_eq!(message(&got, "payment-response").unwrap()["success"], true);
    }
    stage.service.clock.advance(Duration::from_hours(24));
    let again = stage.pay_from(PATH, &sent, "198.51.100.1").await;
    assert_eq!(
        (again.status.as_u16(), again.headers.get("payment-response")),
        (200, first.headers.get("payment-response"))
    );
    stage.service.clock.advance(Duration::from_secs(1));
    refused(&stage.pay(PATH, &sent).await, 409, "payment_used");
}

#[tokio::test]
async fn a_challenge_of_somebody_else_is_no_secret() {
    let stage = shop([]).await;
    let mut terms = stage.terms(PATH).await;
    terms["extensions"]["sign-in-with-x"]["info"]["nonce"] = "0123456789abcdef0123456789abcdef".into();
    let sent = payment(&stage, 1, &terms["extensions"]);
    assert_eq!(stage.pay(PATH, &sent).await.status, 200);
    assert_eq!(
        stage.pay(PATH, &payment(&stage, 1, &Value::Null)).await.status,
        200,
        "the network decides"
    );
    refused(&stage.pay_from(PATH, &sent, "198.51.100.1").await, 409, "payment_used");
}

#[tokio::test]
async fn a_facilitator_is_not_told_the_challenge() {
    let stage = shop([Act::Forget]).await;
    let terms = stage.terms(PATH).await;
    let got = stage.pay(PATH, &payment(&stage, 1, &terms["extensions"])).await;
    refused(&got, 503, "settlement_pending");
    let listed = stage.service.app.store.payments().listed(None, 9).await.unwrap();
    let payload = listed[0].payload.as_ref().unwrap();
    assert!(
        payload.contains("offer-receipt") && !payload.contains("sign-in-with-x"),
        "{payload}"
    );
    assert!(listed[0].has_secret);
}

#[tokio::test]
async fn a_payment_whose_receipt_is_kept_wrong_is_found() {
    let stage = shop([]).await;
    let paid = stage.pay(PATH, &payment(&stage, 1, &Value::Null)).await;
    let kept = receipt_in(&paid, "payment-response");
    let other = Stage::with([]).await;
    let pack = other.pay(&other.pack(), &other.buyer(1).message(Protocol::V2)).await;
    let of_another = receipt_in(&pack, "payment-response");
    let money = stage.service.app.store.money();
    let listed = stage.service.app.store.payments().listed(None, 9).await.unwrap();
    let offer = stage.terms(PATH).await["extensions"]["offer-receipt"]["info"]["offers"][0]["signature"].clone();
    let mut before = kept.clone();
    for wrong in [
        of_another,
        kept[..kept.len() - 1].to_owned(),
        offer.as_str().unwrap().to_owned(),
    ] {
        money
            .keep_payment_receipt(&listed[0].id, &before, &wrong)
            .await
            .unwrap();
        let found = stage.faults().await;
        assert_eq!((found.len(), found[0].rule), (1, "M19"), "{found:?}");
        before = wrong;
    }
}
