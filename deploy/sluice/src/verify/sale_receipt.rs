//! Receipts of sales, and offers and receipts of x402, checked offline.
//!
//! Invariant: what is printed was signed. Nothing of a receipt that is not proven is shown.

use std::process::ExitCode;

use proof::terms::{OfferTerms, PaymentReceipt, PaymentTerms, VerifiedTerms};
use proof::{Keys, SaleReceipt, VerifiedStatement};
use serde_json::json;
use types::Timestamp;
use types::money::MicroUsdc;

use crate::terminal;

/// Checks the receipt of a sale with keys that are trusted, which are those of `service`, and prints what it states.
///
/// # Errors
/// A receipt that is forged, cut or revoked.
pub(super) fn run(text: &[u8], keys: &Keys, service: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let verified = VerifiedStatement::<SaleReceipt>::parse(text, keys)?;
    let receipt = verified.statement();
    if is_json {
        let key = verified.key().to_string();
        terminal::json(&json!({ "verified": true, "keyId": key, "service": service, "receipt": receipt }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let content = match (receipt.content_root, receipt.body_sha256) {
        (Some(root), _) => format!("content root {root}"),
        (None, Some(hash)) => format!("SHA-256 of the text {hash}"),
        (None, None) => "a text that was erased".to_owned(),
    };
    let agent = receipt
        .agent
        .map_or_else(|| "no agent".to_owned(), |agent| format!("agent {agent}"));
    let approval = match receipt.approved_by {
        Some(_) => ", approved by a person",
        None => "",
    };
    let paid = receipt.transaction.as_deref();
    let paid = paid.map_or_else(String::new, |transaction| format!(", transaction {transaction}"));
    terminal::line(&terminal::plain(&format!(
        "signed: sale {} of {} version {}, by the key {} on {}",
        receipt.sale_id,
        receipt.item,
        receipt.version,
        verified.key(),
        receipt.issued_at
    )))?;
    for (name, value) in [
        ("sold", receipt.at.to_string()),
        ("content", content),
        (
            "price",
            format!(
                "{} test USDC, of which {} are the fee, paid with {}{paid}",
                amount(receipt.price_micro),
                amount(receipt.fee_micro),
                receipt.paid_with
            ),
        ),
        ("buyer", format!("{}, {agent}{approval}", receipt.buyer)),
        ("licence", receipt.license.clone()),
        ("ledger", format!("event {}", receipt.ledger_event)),
        ("service", service.to_owned()),
    ] {
        terminal::line(&terminal::plain(&format!("  {name:<8} {value}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn amount(micro: u64) -> MicroUsdc {
    MicroUsdc(i64::try_from(micro).unwrap_or(i64::MAX))
}

/// Checks an offer or a receipt of x402 with keys that are trusted, and prints what it states.
///
/// # Errors
/// One that is forged, cut or revoked, or for an address of another service.
pub(super) fn terms(jws: &str, keys: &Keys, service: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let verified = VerifiedTerms::parse(jws, keys)?;
    let key = verified.key();
    if is_json {
        let (name, signed) = match verified.terms() {
            PaymentTerms::Offer(offer) => ("offer", json!(offer)),
            PaymentTerms::Receipt(receipt) => ("receipt", json!(receipt)),
        };
        let key = key.to_string();
        terminal::json(&json!({ "verified": true, "keyId": key, "service": service, name: signed }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = match verified.terms() {
        PaymentTerms::Offer(OfferTerms {
            resource_url,
            scheme,
            network,
            asset,
            pay_to,
            amount,
            valid_until,
            ..
        }) => format!(
            "signed: offer of {resource_url}, by the key {key}\n  terms    {amount} of {asset} on {network} to {pay_to} \
             ({scheme})\n  until    {}",
            second(*valid_until)
        ),
        PaymentTerms::Receipt(PaymentReceipt {
            network,
            resource_url,
            payer,
            issued_at,
            transaction,
            ..
        }) => format!(
            "signed: payment for {resource_url}, by the key {key} on {}\n  payer    {payer} on {network}\n  paid by  {}",
            second(*issued_at),
            transaction.as_deref().unwrap_or("a transaction that is not named")
        ),
    };
    for line in text.lines() {
        terminal::line(&terminal::plain(line))?;
    }
    terminal::line(&terminal::plain(&format!("  service  {service}")))?;
    Ok(ExitCode::SUCCESS)
}

fn second(second: u64) -> Timestamp {
    Timestamp::from_micros(i64::try_from(second).unwrap_or(i64::MAX).saturating_mul(1_000_000))
}
