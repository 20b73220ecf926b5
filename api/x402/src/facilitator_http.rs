//! The built-in ledger as a facilitator over HTTP: what it answers at each path.
//!
//! Invariant: an answer of `/settle` says the truth about the transfer; a database that does not answer is an error of
//! HTTP, never a refusal.

use serde_json::{Value, json};

use super::builtin::BuiltIn;
use super::facilitator::{ExpectedTransfer, SettlementOrder};
use super::wire::Protocol;
use super::{Facilitator as _, PaymentVerdict};

/// Returns status and body of the answer to a request; `body` is empty for GET.
pub async fn answer(ledger: &BuiltIn, path: &str, body: &[u8]) -> (u16, Value) {
    if path == "/supported" {
        let kinds = ledger.supported().await.unwrap_or_default();
        let kinds = kinds
            .into_iter()
            .map(|kind| json!({"x402Version": kind.version, "scheme": kind.scheme, "network": kind.network}));
        return (
            200,
            json!({"kinds": kinds.collect::<Vec<_>>(), "extensions": [], "signers": {}}),
        );
    }
    // Strict JSON here as well: with a duplicate member, the ledger and the signer could read two
    // amounts.
    let order = types::json::parse(body).ok().and_then(order);
    match (path, order) {
        ("/verify" | "/settle", None) => (400, json!({"error": "the body is no order"})),
        ("/verify", Some(order)) => match ledger.verify(&order).await {
            Ok(PaymentVerdict::Valid) => (200, json!({"isValid": true, "payer": order.expected.payer.checksum()})),
            Ok(PaymentVerdict::Invalid(reason)) => (200, json!({"isValid": false, "invalidReason": reason})),
            Err(_unanswered) => (503, json!({"error": "the ledger does not answer"})),
        },
        ("/settle", Some(order)) => match ledger.settle_and_say(&order).await {
            Ok(answer) => (
                200,
                json!({
                    "success": answer.success,
                    "errorReason": answer.error_reason,
                    "transaction": answer.transaction.unwrap_or_default(),
                    "network": answer.network,
                    "payer": order.expected.payer.checksum(),
                    "amount": answer.amount,
                }),
            ),
            Err(_unanswered) => (503, json!({"error": "the ledger does not answer"})),
        },
        _ => (404, json!({"error": "there is nothing at this path"})),
    }
}

/// Reads an order as clients of facilitators send it.
fn order(mut message: Value) -> Option<SettlementOrder> {
    let protocol = Protocol::of(message["x402Version"].as_i64()?)?;
    let requirements = message["paymentRequirements"].take();
    let payment = message["paymentPayload"].take();
    let amount = match protocol {
        Protocol::V1 => "maxAmountRequired",
        Protocol::V2 => "amount",
    };
    let authorization = &payment["payload"]["authorization"];
    let expected = ExpectedTransfer {
        payer: authorization["from"].as_str()?.parse().ok()?,
        pay_to: requirements["payTo"].as_str()?.parse().ok()?,
        amount: requirements[amount].as_str()?.parse().ok()?,
        nonce: authorization["nonce"].as_str()?.parse().ok()?,
        valid_before: authorization["validBefore"].as_str()?.parse().ok()?,
    };
    Some(SettlementOrder {
        protocol,
        payment,
        requirements,
        expected,
    })
}
