//! Extensions as the packages of others write and read them.

use super::*;
use crate::extensions::{ChallengeExtensions, SignInChallenge, echoed_challenge, identifier_of, without_challenge};
use crate::sign_in::{SignInProblem, SignedIn, digest, host_of};
use crate::wire::Receipt;

const ORIGIN: &str = "https://sluice.example:8443";
/// Made by `createSIWxPayload` of @x402/extensions 2.27.0 with the wallet of [`key`] 1, at [`NOW`].
const SIGNED_BY_OTHERS: &str = r#"{"domain":"sluice.example:8443","address":"0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1","statement":"Read what this wallet has bought","uri":"https://sluice.example:8443/paid/knowledge?id=1","version":"1","chainId":"eip155:84532","type":"eip191","nonce":"00112233445566778899aabbccddeeff","issuedAt":"2026-05-28T20:26:40Z","expirationTime":"2026-05-28T20:31:40Z","resources":["https://sluice.example:8443/paid/knowledge?id=1"],"signature":"0xec23d5e4128a29768a84c603aaedf5cb15d0614652c4b33fc4cbb675f6575fac09234e66752580de381438530ae2c52083216192e0e9ad18b21f411e88dcbda01c"}"#;

fn now() -> Timestamp {
    Timestamp::from_micros(i64::try_from(NOW * 1_000_000).unwrap())
}

fn later(seconds: u64) -> Timestamp {
    now().plus(std::time::Duration::from_secs(seconds))
}

pub(super) fn challenge() -> ChallengeExtensions {
    ChallengeExtensions {
        offer: format!("{}.{}.{}", "a".repeat(120), "b".repeat(560), "c".repeat(86)),
        query: vec![("id", "019a8d10-4e1c-7c2a-b7f3-0a44c2d19e5b".to_owned())],
        sign_in: Some(SignInChallenge {
            nonce: "00112233445566778899aabbccddeeff".to_owned(),
            issued_at: now(),
            origin: ORIGIN.to_owned(),
        }),
    }
}

fn read_at(value: &Value, at: Timestamp) -> Result<SignedIn, SignInProblem> {
    SignedIn::read(&header(value), ORIGIN, Network::BASE_SEPOLIA, at)
}

fn signed_by_others() -> Value {
    serde_json::from_str(SIGNED_BY_OTHERS).unwrap()
}

/// Signs the message of a header again, after a change.
fn signed_again(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = signed_by_others();
    change(&mut value);
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let message = format!(
        "{} wants you to sign in with your Ethereum account:\n{}\n\n{}\n\nURI: {}\nVersion: 1\nChain ID: 84532\nNonce: {}\nIssued At: {}\n\
         Expiration Time: {}\nResources:\n- {}",
        text("domain"),
        text("address"),
        text("statement"),
        text("uri"),
        text("nonce"),
        text("issuedAt"),
        text("expirationTime"),
        value["resources"][0].as_str().unwrap()
    );
    value["signature"] = key(1).sign(digest(&message)).to_string().into();
    value
}

#[test]
fn a_wallet_signs_in_as_clients_of_others_do() {
    let signed_in = read_at(&signed_by_others(), later(299)).unwrap();
    assert_eq!(signed_in.wallet, key(1).address());
    assert_eq!(signed_in.nonce, "00112233445566778899aabbccddeeff");
    assert_eq!(signed_in.issued_at, now());
    // Members that are absent in the text of some clients and null in that of others.
    let mut with_nulls = signed_by_others();
    with_nulls["notBefore"] = Value::Null;
    with_nulls["signatureScheme"] = "eip191".into();
    read_at(&with_nulls, now()).unwrap();
    let bare = signed_again(|_| ());
    assert_eq!(
        bare["signature"],
        signed_by_others()["signature"],
        "the text is the same"
    );
}

#[test]
fn a_sign_in_that_is_not_for_this_service_now_is_refused() {
    let with = |name: &str, value: &str| {
        let value = value.to_owned();
        signed_again(|signed| signed[name] = value.into())
    };
    for (signed, at, problem) in [
        (with("domain", "sluice.example"), now(), SignInProblem::Domain),
        (with("domain", "evil.example"), now(), SignInProblem::Domain),
        (
            with("uri", "https://evil.example/paid/knowledge?id=1"),
            now(),
            SignInProblem::Uri,
        ),
        (
            with("uri", "https://sluice.example:8443.evil.example/"),
            now(),
            SignInProblem::Uri,
        ),
        (with("uri", "http://sluice.example:8443/"), now(), SignInProblem::Uri),
        (with("chainId", "eip155:8453"), now(), SignInProblem::Chain),
        (with("type", "ed25519"), now(), SignInProblem::Chain),
        (with("version", "2"), now(), SignInProblem::Chain),
        (with("issuedAt", "yesterday"), now(), SignInProblem::IssuedAt),
        (with("expirationTime", "soon"), now(), SignInProblem::IssuedAt),
        (signed_by_others(), later(301), SignInProblem::TooOld),
        (with("issuedAt", "2026-05-28T20:27:40Z"), now(), SignInProblem::Future),
        (
            with("expirationTime", "2026-05-28T20:26:39Z"),
            now(),
            SignInProblem::Expired,
        ),
        // Signed by another wallet, or changed after it was signed.
        (
            with("address", "0x857b06519E91e3A54538791bDbb0E22373e36b66"),
            now(),
            SignInProblem::Signature,
        ),
        (with("address", "somebody"), now(), SignInProblem::Signature),
    ] {
        assert_eq!(read_at(&signed, at), Err(problem), "{signed}");
    }
    for name in ["statement", "nonce", "requestId"] {
        let mut changed = signed_by_others();
        changed[name] = "another".into();
        assert_eq!(read_at(&changed, now()), Err(SignInProblem::Signature), "{name}");
    }
    let mut cut = signed_by_others();
    cut["signature"] = "0xec23d5e4".into();
    assert_eq!(read_at(&cut, now()), Err(SignInProblem::Signature));
    // A member that holds the rest of another message.
    assert_eq!(
        read_at(&with("statement", "a\n\nURI: x"), now()),
        Err(SignInProblem::Header)
    );
    for text in ["", "%%%", "e30", "e30=", "W10="] {
        assert_eq!(
            SignedIn::read(text, ORIGIN, Network::BASE_SEPOLIA, now()),
            Err(SignInProblem::Header),
            "{text}"
        );
    }
    let long = header(&with("statement", &"a".repeat(20_000)));
    assert_eq!(
        SignedIn::read(&long, ORIGIN, Network::BASE_SEPOLIA, now()),
        Err(SignInProblem::Header)
    );
}

#[test]
fn a_domain_is_named_as_browsers_name_it() {
    for (origin, domain) in [
        ("https://sluice.example", "sluice.example"),
        ("https://sluice.example:443", "sluice.example"),
        ("https://sluice.example:80", "sluice.example:80"),
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
    ] {
        assert_eq!(host_of(origin), domain);
    }
}

#[test]
fn a_challenge_has_its_extensions_with_their_schemas() {
    let challenge = challenge();
    let value = challenge.value("https://sluice.example:8443/paid/knowledge?id=1", &asset());
    let names: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["bazaar", "offer-receipt", "payment-identifier", "sign-in-with-x"]
    );
    for (name, extension) in value.as_object().unwrap() {
        assert!(
            extension["info"].is_object() && extension["schema"]["type"] == "object",
            "{name}"
        );
    }
    let sign_in = &value["sign-in-with-x"];
    assert_eq!(sign_in["info"]["domain"], "sluice.example:8443");
    assert_eq!(sign_in["info"]["issuedAt"], "2026-05-28T20:26:40Z");
    assert_eq!(sign_in["info"]["expirationTime"], "2026-05-28T20:31:40Z");
    assert_eq!(sign_in["supportedChains"][0]["chainId"], "eip155:84532");
    assert_eq!(
        value["offer-receipt"]["info"]["offers"][0]["signature"],
        challenge.offer.as_str()
    );
    // A pack of credits is not owned.
    let pack = ChallengeExtensions {
        sign_in: None,
        ..challenge
    };
    assert!(
        pack.value("https://sluice.example:8443/paid/credits", &asset())
            .get("sign-in-with-x")
            .is_none()
    );
}

#[test]
fn an_identifier_has_one_form() {
    let given = |id: Value| json!({"extensions": {"payment-identifier": {"info": {"required": false, "id": id}}}});
    assert_eq!(identifier_of(&json!({})).unwrap(), None);
    assert_eq!(identifier_of(&given(Value::Null)).unwrap(), None);
    for id in [
        "pay_7d5d747be160e280504c099d984bcfe0",
        &"a".repeat(16),
        &"A-_9".repeat(32),
    ] {
        assert_eq!(identifier_of(&given(id.into())).unwrap(), Some(id));
    }
    for id in [
        json!("a".repeat(15)),
        json!("a".repeat(129)),
        json!("pay.7d5d747be160e28"),
        json!("é".repeat(16)),
        json!(7),
    ] {
        assert_eq!(
            identifier_of(&given(id.clone())).unwrap_err().field,
            "payment-identifier",
            "{id}"
        );
    }
}

#[test]
fn a_payment_echoes_the_challenge_and_a_facilitator_never_sees_it() {
    let value = challenge().value("https://sluice.example:8443/paid/knowledge?id=1", &asset());
    let mut message = Buyer::new(500_000, 1, NOW).message(Protocol::V2);
    assert_eq!(echoed_challenge(&message), None);
    message["extensions"] = value;
    let echoed = echoed_challenge(&message).unwrap();
    assert_eq!(echoed, ("00112233445566778899aabbccddeeff", now()));
    let kept = without_challenge(&message);
    assert_eq!((echoed_challenge(&kept), &kept["payload"]), (None, &message["payload"]));
    assert!(kept["extensions"]["offer-receipt"].is_object());
}

#[test]
fn a_receipt_of_a_settlement_has_the_one_that_the_service_signed() {
    let receipt = Receipt {
        protocol: Protocol::V1,
        payer: key(1).address(),
        transaction: Some("0xab"),
        amount: 500_000,
        error: None,
        signed: Some("a.b.c"),
        sale: Some("https://sluice.example/receipts/1"),
    };
    let message = receipt.message(&asset());
    assert_eq!(message["network"], "base-sepolia");
    assert_eq!(message["saleReceipt"], "https://sluice.example/receipts/1");
    let signed = &message["extensions"]["offer-receipt"];
    assert_eq!(
        signed["info"]["receipt"],
        json!({"format": "jws", "signature": "a.b.c"})
    );
    assert_eq!(signed["schema"]["required"], json!(["receipt"]));
}
