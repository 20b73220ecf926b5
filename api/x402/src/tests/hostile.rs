//! Payments that somebody made up: each is refused for the reason that its payer can act on.

use super::*;

/// Outcome of every check of a payment at a price of 500,000.
fn outcome(protocol: Protocol, message: &Value) -> Result<(), String> {
    let payment = match read_header(protocol, &header(message), &asset()) {
        Ok(payment) => payment,
        Err(PaymentMismatch::Malformed(MalformedField { field, .. })) => return Err(format!("malformed {field}")),
        Err(PaymentMismatch::Refused(reason)) => return Err(reason.word().to_owned()),
    };
    let checked = check::signed(&payment, &asset())
        .and_then(|()| check::priced(&payment, &[500_000, 400_000]))
        .and_then(|()| check::timely(&payment, NOW));
    checked.map_err(|reason| reason.word().to_owned())
}

#[track_caller]
fn refused(protocol: Protocol, message: &Value, word: &str) {
    assert_eq!(outcome(protocol, message), Err(word.to_owned()), "{message}");
}

/// A payment whose authorization or domain was changed before it was signed.
fn signed(change: impl FnOnce(&mut Buyer)) -> Value {
    let mut buyer = Buyer::new(500_000, 1, NOW);
    change(&mut buyer);
    buyer.message(Protocol::V2)
}

/// A good payment that was changed after it was signed, at a JSON pointer.
fn changed(protocol: Protocol, pointer: &str, value: Value) -> Value {
    let mut message = Buyer::new(500_000, 1, NOW).message(protocol);
    *message.pointer_mut(pointer).unwrap() = value;
    message
}

#[test]
fn good_payments_pass_in_both_versions() {
    for protocol in [Protocol::V1, Protocol::V2] {
        assert_eq!(
            outcome(protocol, &Buyer::new(500_000, 1, NOW).message(protocol)),
            Ok(())
        );
    }
    // The lower price that was in force a moment ago.
    assert_eq!(
        outcome(Protocol::V2, &Buyer::new(400_000, 1, NOW).message(Protocol::V2)),
        Ok(())
    );
    assert_eq!(
        outcome(
            Protocol::V2,
            &signed(|buyer| buyer.authorization.nonce = Bytes32([0; 32]))
        ),
        Ok(())
    );
}

#[test]
fn a_header_that_is_no_payment_is_malformed() {
    let good = header(&Buyer::new(500_000, 1, NOW).message(Protocol::V2));
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let twice = r#"{"x402Version":2,"x402Version":2}"#;
    for text in [
        String::new(),
        "%%%".to_owned(),
        format!("{good}\n"),
        format!(" {good}"),
        format!("{good}="),
        good.replace('e', "_"),
        BASE64.encode(b"[]"),
        BASE64.encode(b"1"),
        BASE64.encode(b"null"),
        BASE64.encode(b"\"text\""),
        BASE64.encode(b"{\"x402Version\":2"),
        BASE64.encode(b"\xff\xfe"),
        BASE64.encode(deep.as_bytes()),
        BASE64.encode(twice.as_bytes()),
        "A".repeat(17 << 10),
    ] {
        let read = read_header(Protocol::V2, &text, &asset());
        assert!(matches!(read, Err(PaymentMismatch::Malformed(_))), "{text:.40}");
    }
}

#[test]
fn a_field_of_another_form_is_malformed() {
    let (v1, v2) = (Protocol::V1, Protocol::V2);
    for version in [json!(0), json!(1), json!(3), json!("2"), json!(2.0), json!(null)] {
        refused(v2, &changed(v2, "/x402Version", version), "malformed x402Version");
    }
    refused(v1, &Buyer::new(500_000, 1, NOW).message(v2), "malformed x402Version");
    let authorization = "/payload/authorization";
    for value in [
        "", "-500000", "+500000", "0500000", " 500000", "500000 ", "1e6", "0x7a120", "5.0", "٥",
    ] {
        refused(
            v2,
            &changed(v2, &format!("{authorization}/value"), json!(value)),
            "malformed value",
        );
        refused(v2, &changed(v2, "/accepted/amount", json!(value)), "malformed amount");
        refused(
            v2,
            &changed(v2, &format!("{authorization}/validBefore"), json!(value)),
            "malformed validBefore",
        );
    }
    refused(
        v2,
        &changed(v2, &format!("{authorization}/value"), json!(500_000)),
        "malformed value",
    );
    for nonce in [
        format!("0x{}", "11".repeat(31)),
        format!("0x{}", "11".repeat(33)),
        "11".repeat(32),
        format!("0x{}", "zz".repeat(32)),
    ] {
        refused(
            v2,
            &changed(v2, &format!("{authorization}/nonce"), json!(nonce)),
            "malformed nonce",
        );
    }
    refused(
        v2,
        &changed(v2, &format!("{authorization}/from"), json!("0x12")),
        "malformed from",
    );
    refused(
        v2,
        &changed(v2, "/payload/signature", json!("text")),
        "malformed signature",
    );
    refused(
        v2,
        &changed(v2, "/payload/signature", json!("0xabc")),
        "malformed signature",
    );
    refused(
        v2,
        &changed(v2, "/payload/signature", json!(null)),
        "malformed signature",
    );
    // Permit2 in place of EIP-3009.
    let permit = json!({"permit2Authorization": {}, "signature": "0x"});
    refused(v2, &changed(v2, "/payload", permit), "malformed authorization");
    let mut bare = Buyer::new(500_000, 1, NOW).message(v2);
    bare.as_object_mut().unwrap().remove("accepted");
    refused(v2, &bare, "malformed accepted");
}

#[test]
fn terms_of_another_are_refused() {
    let (v1, v2) = (Protocol::V1, Protocol::V2);
    for (pointer, values, word) in [
        ("/accepted/scheme", vec!["upto", "Exact"], "invalid_scheme"),
        (
            "/accepted/network",
            vec!["eip155:8453", "base-sepolia", "eip155:1"],
            "invalid_network",
        ),
        (
            "/accepted/asset",
            vec!["0x036CbD53842c5426634e7929541eC2318f3dCF7e"],
            "asset_mismatch",
        ),
        (
            "/accepted/payTo",
            vec!["0x1111111111111111111111111111111111111111"],
            "invalid_exact_evm_payload_recipient_mismatch",
        ),
        ("/accepted/extra/name", vec!["USD Coin"], "invalid_payment_requirements"),
        ("/accepted/extra/version", vec!["1"], "invalid_payment_requirements"),
        (
            "/accepted/extra/assetTransferMethod",
            vec!["permit2", "erc7710"],
            "invalid_payment_requirements",
        ),
    ] {
        for value in values {
            refused(v2, &changed(v2, pointer, json!(value)), word);
        }
    }
    refused(v1, &changed(v1, "/network", json!("eip155:84532")), "invalid_network");
    refused(v1, &changed(v1, "/network", json!("base")), "invalid_network");
    refused(v1, &changed(v1, "/scheme", json!("upto")), "invalid_scheme");
    // The payer signs for somebody else, whatever it says that it accepts.
    let other = |buyer: &mut Buyer| buyer.authorization.to = key(7).address();
    refused(v2, &signed(other), "invalid_exact_evm_payload_recipient_mismatch");
    // By meaning, not by bytes.
    assert_eq!(
        outcome(v2, &changed(v2, "/accepted/asset", json!(asset().address.to_string()))),
        Ok(())
    );
    assert_eq!(
        outcome(v2, &changed(v2, "/accepted/maxTimeoutSeconds", json!(60))),
        Ok(())
    );
    let mut bare = Buyer::new(500_000, 1, NOW).message(v2);
    bare["accepted"]["extra"]
        .as_object_mut()
        .unwrap()
        .remove("assetTransferMethod");
    assert_eq!(outcome(v2, &bare), Ok(()));
}

#[test]
fn only_an_exact_price_is_an_amount() {
    let word = "invalid_exact_evm_payload_authorization_value_mismatch";
    for amount in [499_999, 500_001, 0, 1_000_000] {
        refused(Protocol::V2, &Buyer::new(amount, 1, NOW).message(Protocol::V2), word);
        refused(Protocol::V1, &Buyer::new(amount, 1, NOW).message(Protocol::V1), word);
    }
    // The accepted amount and the signed amount are one.
    refused(
        Protocol::V2,
        &changed(Protocol::V2, "/accepted/amount", json!("400000")),
        word,
    );
    for huge in ["18446744073709551616", &format!("1{}", "0".repeat(77))] {
        refused(
            Protocol::V2,
            &changed(Protocol::V2, "/payload/authorization/value", json!(huge)),
            word,
        );
    }
}

#[test]
fn a_signature_is_good_for_what_was_signed() {
    let word = "invalid_exact_evm_payload_signature";
    let v2 = Protocol::V2;
    let changes: [fn(&mut Buyer); 5] = [
        |buyer| buyer.key = key(2),
        |buyer| buyer.domain.network = "eip155:11155111".parse().unwrap(),
        |buyer| buyer.domain.address = key(5).address(),
        |buyer| buyer.domain.name = "USD Coin".to_owned(),
        |buyer| buyer.domain.version = "1".to_owned(),
    ];
    for change in changes {
        refused(v2, &signed(change), word);
    }
    let authorization = "/payload/authorization";
    for (field, value) in [
        ("from", json!(key(2).address().checksum())),
        ("from", json!("0x0000000000000000000000000000000000000000")),
        ("value", json!("400000")),
        ("validAfter", json!((NOW - 2).to_string())),
        ("validBefore", json!((NOW + 301).to_string())),
        ("nonce", json!(Bytes32([2; 32]).to_string())),
    ] {
        refused(v2, &changed(v2, &format!("{authorization}/{field}"), value), word);
    }
    // Letters of another case mean the same.
    let from = key(1).address();
    for spelled in [from.to_string(), format!("0x{}", from.to_string()[2..].to_uppercase())] {
        assert_eq!(
            outcome(v2, &changed(v2, &format!("{authorization}/from"), json!(spelled))),
            Ok(())
        );
    }
    let nonce = format!("0x{}", "AB".repeat(32));
    let buyer = |buyer: &mut Buyer| buyer.authorization.nonce = Bytes32([0xab; 32]);
    let mut upper = signed(buyer);
    *upper.pointer_mut(&format!("{authorization}/nonce")).unwrap() = json!(nonce);
    assert_eq!(outcome(v2, &upper), Ok(()));
}

/// Order of the curve.
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

#[test]
fn one_form_of_a_signature_is_taken() {
    let v2 = Protocol::V2;
    let good = Buyer::new(500_000, 1, NOW).message(v2);
    let text = good["payload"]["signature"].as_str().unwrap().to_owned();
    let (rs, v) = text[2..].split_at(128);
    let (r, s) = rs.split_at(64);
    let with = |signature: String| outcome(v2, &changed(v2, "/payload/signature", json!(signature)));
    let invalid = || Err("invalid_exact_evm_payload_signature".to_owned());
    let parity = u8::from(v == "1c");
    assert_eq!(with(format!("0x{rs}{parity:02x}")), Ok(()));
    for v in ["02", "1a", "1d", "ff"] {
        assert_eq!(with(format!("0x{rs}{v}")), invalid(), "{v}");
    }
    // The other parity is the signature of another wallet.
    assert_eq!(with(format!("0x{rs}{:02x}", 27 + (1 - parity))), invalid());
    let (zero, order) = ("0".repeat(64), ORDER.to_owned());
    for (r, s) in [(&zero, s), (&order, s)] {
        assert_eq!(with(format!("0x{r}{s}{v}")), invalid());
    }
    for s in [&zero, &order, &"f".repeat(64)] {
        assert_eq!(with(format!("0x{r}{s}{v}")), invalid());
    }
    // The twin with the upper `s` and the other parity recovers to the same wallet, and is refused (EIP-2).
    assert_eq!(
        with(format!("0x{r}{}{:02x}", minus(ORDER, s), 27 + (1 - parity))),
        invalid()
    );
    // EIP-2098: the parity in the first bit of `s`.
    let first = u8::from_str_radix(&s[..2], 16).unwrap() | (parity << 7);
    assert_eq!(with(format!("0x{r}{first:02x}{}", &s[2..])), Ok(()));
    for bytes in [0, 63, 66, 5_000] {
        let signature = format!("0x{}", "11".repeat(bytes));
        assert_eq!(with(signature), Err("unsupported_signature".to_owned()), "{bytes}");
    }
    // Each changed byte is another signature.
    for at in 0..64 {
        let mut bytes = data_encoding::HEXLOWER.decode(rs.as_bytes()).unwrap();
        bytes[at] ^= 1;
        let signature = format!("0x{}{v}", data_encoding::HEXLOWER.encode(&bytes));
        assert_eq!(with(signature), invalid(), "byte {at}");
    }
}

/// Subtracts numbers of 64 hexadecimal digits.
fn minus(left: &str, right: &str) -> String {
    let number = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
    let (left, right) = (number(left), number(right));
    let mut result = vec![0; 32];
    let mut borrow = 0;
    for at in (0..32).rev() {
        let difference = i32::from(left[at]) - i32::from(right[at]) - borrow;
        borrow = i32::from(difference < 0);
        result[at] = u8::try_from(difference.rem_euclid(256)).unwrap();
    }
    data_encoding::HEXLOWER.encode(&result)
}

#[test]
fn a_payment_is_valid_now_and_for_a_short_time() {
    let at = |after: u64, before: u64| {
        signed(|buyer| {
            buyer.authorization.valid_after = after;
            buyer.authorization.valid_before = before;
        })
    };
    let (early, late) = (
        "invalid_exact_evm_payload_authorization_valid_after",
        "invalid_exact_evm_payload_authorization_valid_before",
    );
    refused(Protocol::V2, &at(NOW + 60, NOW + 300), early);
    for before in [0, NOW - 1, NOW + 5, NOW + 901, NOW + 31_536_000] {
        refused(Protocol::V2, &at(0, before), late);
    }
    assert_eq!(outcome(Protocol::V2, &at(0, NOW + 6)), Ok(()));
    assert_eq!(outcome(Protocol::V2, &at(NOW, NOW + 900)), Ok(()));
    let endless = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let endless = changed(Protocol::V2, "/payload/authorization/validBefore", json!(endless));
    refused(Protocol::V2, &endless, late);
}

#[test]
fn a_signature_over_another_type_is_of_nobody() {
    // `ReceiveWithAuthorization` has the same fields, so only the name of the type differs.
    let buyer = Buyer::new(500_000, 1, NOW);
    let mut message = buyer.message(Protocol::V2);
    let digest = address::keccak(&[b"ReceiveWithAuthorization", &buyer.authorization.digest(&asset()).0]);
    message["payload"]["signature"] = buyer.key.sign(digest).to_string().into();
    refused(Protocol::V2, &message, "invalid_exact_evm_payload_signature");
}

#[test]
fn what_a_payment_does_not_need_is_not_read() {
    let mut message = Buyer::new(500_000, 1, NOW).message(Protocol::V2);
    message["extensions"] = json!({"anything": [1, 2]});
    message["resource"] = json!({"url": "https://elsewhere.example"});
    assert!(read(Protocol::V2, message.clone(), &asset()).is_ok());
    assert_eq!(outcome(Protocol::V2, &message), Ok(()));
}
