use std::sync::Arc;

use data_encoding::BASE64;
use serde_json::{Value, json};
use types::Timestamp;
use types::clock::ManualClock;

use super::builtin::{BuiltIn, Wallets as _};
use super::chain::{ChainClient as _, NonceStatus};
use super::conformance::{self, Buyer, Memory, Subject, asset, key, offer};
use super::facilitator::{ExpectedTransfer, SettleAnswer, judge};
use super::wire::{PaymentMismatch, Protocol, header, read, read_header};
use super::*;

mod extensions;
mod growth;
mod hostile;
mod remote;

const NOW: u64 = 1_780_000_000;

fn built_in(wallets: &Arc<Memory>) -> BuiltIn {
    let clock = ManualClock::at(Timestamp::from_micros(i64::try_from(NOW * 1_000_000).unwrap()));
    BuiltIn::new(Arc::clone(wallets) as _, asset(), Arc::new(clock))
}

fn subject() -> Subject {
    let wallets = Arc::new(Memory::default());
    Subject {
        facilitator: Arc::new(built_in(&wallets)),
        wallets,
        now: NOW,
    }
}

#[tokio::test]
async fn the_built_in_ledger_passes_the_suite_of_facilitators() {
    conformance::a_payment_moves_once(&subject()).await;
    conformance::an_empty_wallet_pays_nothing(&subject()).await;
    conformance::a_wrong_payment_moves_nothing(&subject()).await;
    conformance::it_settles_both_versions(&subject()).await;
}

/// The example that the documentation of `eth_account` and of contracts share: a key, a digest, an address.
#[test]
fn a_key_has_the_address_of_the_chain() {
    // The first account of the development nodes, whose key is public.
    let secret: Bytes32 = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
        .parse()
        .unwrap();
    let key = WalletKey::from_bytes(&secret.0).unwrap();
    assert_eq!(key.address().checksum(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    let signature = key.sign(sign_in::digest("hello"));
    assert_eq!(sign_in::signer("hello", &signature.to_string()), Some(key.address()));
    assert_ne!(sign_in::signer("hell0", &signature.to_string()), Some(key.address()));
}

#[tokio::test]
async fn a_chain_tells_what_became_of_an_authorization() {
    let wallets = Arc::new(Memory::default());
    let ledger = built_in(&wallets);
    let order = Buyer::new(500_000, 1, NOW).order(Protocol::V2);
    wallets.give(order.expected.payer, 1_000_000);
    assert_eq!(ledger.lookup(&order.expected).await, Ok(NonceStatus::Unused(NOW)));
    let settled = ledger.settle(&order).await;
    let Settlement::Done(transaction) = settled else {
        panic!("{settled:?}");
    };
    assert_eq!(ledger.lookup(&order.expected).await, Ok(NonceStatus::Used(transaction)));
    assert_eq!(ledger.confirms(transaction, &order.expected).await, Ok(true));
    // The same nonce moved the money elsewhere.
    let elsewhere = ExpectedTransfer {
        pay_to: key(8).address(),
        ..order.expected.clone()
    };
    assert_eq!(ledger.lookup(&elsewhere).await, Ok(NonceStatus::UsedOtherwise));
    assert_eq!(ledger.confirms(transaction, &elsewhere).await, Ok(false));
    let other = ExpectedTransfer {
        nonce: Bytes32([9; 32]),
        ..order.expected
    };
    let at = Timestamp::from_micros(0);
    assert!(wallets.cancel(other.payer, other.nonce, at).await.unwrap());
    assert_eq!(ledger.lookup(&other).await, Ok(NonceStatus::Cancelled));
}

#[test]
fn a_challenge_serves_both_versions() {
    let mut offer = offer(500_000);
    offer.description = "Knowledge unit: \"조수\" \n🌊".to_owned();
    let v1 = offer.v1(&asset());
    assert_eq!(v1["network"], "base-sepolia");
    assert_eq!(v1["maxAmountRequired"], "500000");
    assert_eq!(v1["asset"], "0x5111cE0000000000000000000000000000000402");
    let challenge = offer.challenge(
        &asset(),
        "PAYMENT-SIGNATURE header is required",
        &extensions::challenge(),
    );
    let text = header(&challenge);
    assert!(text.is_ascii() && text.len() <= 7_000);
    let decoded: Value = serde_json::from_slice(&BASE64.decode(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(decoded["accepts"][0]["amount"], "500000");
    assert_eq!(decoded["resource"]["description"], "Knowledge unit: \"??\"  ?");
}

#[test]
fn only_a_whole_success_settles() {
    let order = Buyer::new(500_000, 1, NOW).order(Protocol::V2);
    let good = SettleAnswer {
        success: true,
        error_reason: None,
        transaction: Some(format!("0x{}", "ab".repeat(32))),
        network: Some("eip155:84532".to_owned()),
        payer: Some(order.expected.payer.checksum()),
        amount: Some("500000".to_owned()),
    };
    let rule = |answer: &SettleAnswer| judge(answer, Protocol::V2, &order.expected, &asset());
    assert_eq!(rule(&good), Settlement::Done(Bytes32([0xab; 32])));
    let text = |text: &str| Some(text.to_owned());
    let changes: [fn(&mut SettleAnswer, Option<String>); 4] = [
        |answer, text| answer.transaction = text,
        |answer, text| answer.network = text,
        |answer, text| answer.payer = text,
        |answer, text| answer.amount = text,
    ];
    for (change, values) in changes.into_iter().zip([
        vec![None, text(""), text("0xab"), text("pending")],
        vec![None, text(""), text("eip155:8453"), text("base")],
        vec![text("0x0000000000000000000000000000000000000001"), text("somebody")],
        vec![text("499999"), text("0500000"), text("")],
    ]) {
        for value in values {
            let mut answer = good.clone();
            change(&mut answer, value.clone());
            let settled = rule(&answer);
            assert!(
                matches!(&settled, Settlement::Unknown(doubt) if doubt.is_alarming),
                "{value:?}: {settled:?}"
            );
        }
    }
    // Payer and amount may be absent.
    let bare = SettleAnswer {
        payer: None,
        amount: None,
        ..good
    };
    assert_eq!(rule(&bare), Settlement::Done(Bytes32([0xab; 32])));
}

#[test]
fn a_refusal_proves_something_only_by_its_reason_and_without_a_transaction() {
    let order = Buyer::new(500_000, 1, NOW).order(Protocol::V2);
    let refused = |reason: Option<&str>, transaction: &str| {
        let answer = SettleAnswer {
            error_reason: reason.map(str::to_owned),
            transaction: Some(transaction.to_owned()),
            ..SettleAnswer::default()
        };
        judge(&answer, Protocol::V2, &order.expected, &asset())
    };
    for reason in [
        "insufficient_funds",
        "invalid_exact_evm_insufficient_balance",
        "invalid_exact_evm_payload_signature",
        "invalid_exact_evm_payload_authorization_valid_before",
        "invalid_exact_evm_payload_authorization_value",
        "invalid_exact_evm_payload_authorization_value_mismatch",
        "unsupported_scheme",
        "invalid_network",
    ] {
        assert_eq!(refused(Some(reason), ""), Settlement::Refused(reason.to_owned()));
        assert!(matches!(
            refused(Some(reason), &format!("0x{}", "ab".repeat(32))),
            Settlement::Unknown(_)
        ));
    }
    for reason in [
        Some("nonce_already_used"),
        Some("transaction_failed"),
        Some("settlement_pending"),
        Some("unexpected_settle_error"),
        Some("invalid_transaction_state"),
        None,
    ] {
        let settled = refused(reason, "");
        assert!(
            matches!(&settled, Settlement::Unknown(doubt) if !doubt.is_alarming),
            "{reason:?}"
        );
    }
    let pending = refused(Some("settlement_pending"), &format!("0x{}", "cd".repeat(32)));
    assert!(matches!(pending, Settlement::Unknown(doubt) if doubt.transaction == Some(Bytes32([0xcd; 32]))));
}
