//! `sluice admin faucet`, `facilitator`, `payments` and `payouts`.
//!
//! Invariant: a decision about a payment or payout that is not known, and a deposit, is an administrator's, and leaves a
//! row in the audit trail.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use api::flow::PaymentReconciler;
use api::flow::PayoutTask;
use api::rules::settlement::faucet;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use store::{AuditEntry, NewDeposit, Payment, PaymentState, PayoutRow, PayoutState, Store, WalletGift, WalletGiven};
use tokio::net::TcpListener;
use types::money::MicroUsdc;
use types::vocabulary::ActorKind;
use types::{Clock, LedgerEventId, PaymentId, Timestamp};
use x402::builtin::BuiltIn;
use x402::{Address, Bytes32, facilitator_http};

use crate::cli::{PaymentDecision, PaymentsCommand, PayoutCommands, PayoutDecision};
use crate::config::Config;
use crate::exit::{Missing, WrongUsage};
use crate::layout::DataLayout;
use crate::means_of_payment;
use crate::signals::Signals;
use crate::terminal;

/// Rows that are listed at most.
const MAX_LISTED_PAYMENTS: u32 = 1_000;
/// Micro-USDC of a cent.
const CENT_MICRO_USDC: i64 = 10_000;
/// Most bytes of a request to the facilitator.
const MAX_BODY: usize = 64 << 10;

/// Gives test USDC of the built-in ledger to a wallet.
pub(super) async fn faucet(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    wallet: &str,
    usdc: u32,
) -> anyhow::Result<()> {
    // Checked although the ledger is not needed here: with another facilitator the wallets of the
    // database are on no chain, and the gift would be worth nothing.
    means_of_payment::built_in(config, store, clock).await?;
    let wallet = wallet
        .parse::<Address>()
        .map_err(|error| wrong("ADDRESS", wallet, &error))?;
    let now = clock.now();
    let amount = i64::from(usdc) * faucet::USDC;
    let gift = WalletGift {
        wallet: wallet.to_string(),
        amount,
        // An administrator is bound by the wallet's day alone, which the door for everybody counts too.
        counted: vec![faucet::of_wallet(&wallet, usdc, now)],
    };
    let WalletGiven::Given { balance } = store.wallets().gift(gift).await? else {
        bail!(
            "a wallet gets at most {} test USDC a day; nothing was given",
            faucet::MOST_OF_WALLET
        );
    };
    terminal::json(&json!({ "wallet": wallet.checksum(), "givenMicro": amount, "balanceMicro": balance }))?;
    Ok(())
}

/// Serves the built-in ledger as a facilitator over HTTP until a signal.
pub(super) async fn facilitator(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    listen: SocketAddr,
) -> anyhow::Result<()> {
    let ledger = Arc::new(means_of_payment::built_in(config, store, clock).await?);
    let mut signals = Signals::listen()?;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on `{listen}`"))?;
    terminal::json(&json!({ "facilitator": format!("http://{}", listener.local_addr()?) }))?;
    let answer = move |request: Request| {
        let ledger = Arc::clone(&ledger);
        async move { facilitator_answer(&ledger, request).await }
    };
    let router = Router::new().fallback(answer);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { signals.asked().await })
        .await?;
    Ok(())
}

async fn facilitator_answer(ledger: &BuiltIn, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let read = axum::body::to_bytes(body, MAX_BODY).await;
    let (status, body) = match read {
        Ok(body) => facilitator_http::answer(ledger, parts.uri.path(), &body).await,
        Err(_error) => (413, json!({ "error": "the body is too large" })),
    };
    let status = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let json = [(http::header::CONTENT_TYPE, "application/json")];
    (status, json, Bytes::from(body.to_string())).into_response()
}

/// Lists payments, or decides about one that is not known.
pub(super) async fn payments(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    command: PaymentsCommand,
) -> anyhow::Result<()> {
    match command {
        PaymentsCommand::List { unknown } => {
            let state = unknown.then_some(PaymentState::Unknown);
            let found = store.payments().listed(state, MAX_LISTED_PAYMENTS).await?;
            let items: Vec<_> = found.iter().map(shown).collect();
            terminal::json(&json!({ "total": items.len(), "items": items }))?;
        }
        PaymentsCommand::Resolve { id, decision } => resolve(store, clock, config, &id, decision).await?,
    }
    Ok(())
}

async fn resolve(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    id: &str,
    decision: PaymentDecision,
) -> anyhow::Result<()> {
    let payment = store.payments().get(id).await?;
    let payment = payment.ok_or_else(|| Missing(format!("there is no payment `{id}`")))?;
    // A failed payment may be found on the chain later. Every other state is proved by an answer or by the chain, and must
    // not be overruled by hand.
    let is_settled = decision.settled.is_some();
    if payment.state != PaymentState::Unknown && !(payment.state == PaymentState::Failed && is_settled) {
        bail!(
            "the payment `{id}` is {}; only one that is unknown is resolved, or one that failed is settled",
            payment.state.as_str()
        );
    }
    let audited = audited(store, clock.now(), "payment_resolve", id);
    if let Some(transaction) = &decision.settled {
        let transaction = transaction
            .parse::<Bytes32>()
            .map_err(|error| wrong("--settled", transaction, &error))?;
        let layout = DataLayout::new(&config.data.dir);
        let plane = means_of_payment::plane(config, &layout, store, clock).await?;
        let reconciler = PaymentReconciler::new(audited, Arc::new(plane), Arc::clone(clock));
        reconciler
            .settled(&payment, transaction)
            .await
            .map_err(|error| anyhow::anyhow!("{}", error.message()))?;
    } else {
        // It is over, so nobody looks at it again.
        let never = Timestamp::from_micros(i64::MAX);
        let payments = audited.payments();
        if !payments.fail(id, payment.attempts, "resolved", never).await? {
            bail!("the payment `{id}` was looked at again just now; list it, and decide again");
        }
    }
    let payment = store.payments().get(id).await?;
    terminal::json(&json!({ "payment": payment.as_ref().map(shown) }))?;
    Ok(())
}

/// Returns the store with a row of the audit trail for the next change.
fn audited(store: &Store, now: Timestamp, operation: &str, subject: &str) -> Store {
    store.audited(AuditEntry {
        id: PaymentId::new(now).to_string(),
        at: now,
        operator: None,
        actor_kind: ActorKind::Person,
        actor: None,
        operation: operation.to_owned(),
        subject: Some(subject.to_owned()),
        request_id: "admin".to_owned(),
    })
}

fn shown(payment: &Payment) -> Value {
    json!({
        "id": payment.id,
        "state": payment.state.as_str(),
        "reason": payment.reason,
        "payer": payment.payer,
        "nonce": payment.nonce,
        "item": format!("{}:{}", payment.bound.kind.as_str(), payment.bound.id),
        "version": payment.bound.version,
        "amountMicro": payment.amount,
        "attempts": payment.attempts,
        "transaction": payment.transaction,
        "boundAt": payment.bound_at.to_string(),
        "validBefore": Timestamp::from_micros(payment.valid_before.saturating_mul(1_000_000)).to_string(),
        "settledAt": payment.settled_at.map(|at| at.to_string()),
    })
}

/// Lists payouts, picks them, or makes one due.
pub(super) async fn payouts(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    command: PayoutCommands,
) -> anyhow::Result<()> {
    match command {
        PayoutCommands::List { open } => {
            let mut found = store.money().payouts_listed(None, MAX_LISTED_PAYMENTS).await?;
            found.retain(|payout| match payout.state {
                PayoutState::Done => !open,
                // A refund that was given up is still owed.
                PayoutState::Failed => !open || payout.is_refund,
                PayoutState::Picked | PayoutState::Sending | PayoutState::Unknown => true,
            });
            let items: Vec<_> = found.iter().map(payout).collect();
            terminal::json(&json!({ "total": items.len(), "items": items }))?;
        }
        PayoutCommands::Retry { id } => {
            if !store.money().payout_retry(&id, clock.now()).await? {
                bail!(Missing(format!(
                    "there is no payout `{id}` that is not over, and no refund that was given up"
                )));
            }
            terminal::json(&json!({ "id": id, "due": true }))?;
        }
        PayoutCommands::Run => {
            let layout = DataLayout::new(&config.data.dir);
            let plane = means_of_payment::plane(config, &layout, store, clock).await?;
            let payouts = PayoutTask::new(store.clone(), Arc::new(plane), Arc::clone(clock));
            let failed = |error: api::ApiError| anyhow::anyhow!("{}", error.message());
            let picked = payouts.pick().await.map_err(failed)?;
            let sent = payouts.send_due().await.map_err(failed)?;
            terminal::json(&json!({ "picked": picked, "sent": sent }))?;
        }
        PayoutCommands::Resolve { id, decision } => decide(store, clock, &id, decision).await?,
        PayoutCommands::Deposit { transaction, cents } => deposit(store, clock, config, &transaction, cents).await?,
    }
    Ok(())
}

/// Returns the error for an argument that is not what it must be.
fn wrong(argument: &str, given: &str, problem: &dyn Display) -> WrongUsage {
    WrongUsage(format!("{argument}: `{given}`: {problem}"))
}

/// Ends a payout by the word of an administrator.
async fn decide(store: &Store, clock: &Arc<dyn Clock>, id: &str, decision: PayoutDecision) -> anyhow::Result<()> {
    let found = store.money().payout_row(id).await?;
    let found = found.ok_or_else(|| Missing(format!("there is no payout `{id}`")))?;
    let now = clock.now();
    let audited = audited(store, now, "payout_resolve", id);
    let is_over = if let Some(transaction) = &decision.paid {
        let transaction = transaction
            .parse::<Bytes32>()
            .map_err(|error| wrong("--paid", transaction, &error))?;
        audited.money().payout_done(id, &transaction.to_string(), now).await?
    } else {
        let end = Timestamp::from_micros(found.valid_before.saturating_mul(1_000_000));
        if now < end {
            bail!("the latest attempt of the payout `{id}` is valid until {end}; it may still be paid");
        }
        audited.money().payout_failed(id, found.attempts, now).await?
    };
    if !is_over {
        bail!("the payout `{id}` is over, or was sent again just now");
    }
    let found = store.money().payout_row(id).await?;
    terminal::json(&json!({ "payout": found.as_ref().map(payout) }))?;
    Ok(())
}

/// Books what the platform sent to the treasury. Where the chain can be read, it must have what the books say then.
async fn deposit(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    transaction: &str,
    cents: u32,
) -> anyhow::Result<()> {
    let hash = transaction
        .parse::<Bytes32>()
        .map_err(|error| wrong("TRANSACTION", transaction, &error))?;
    let (now, amount) = (clock.now(), i64::from(cents) * CENT_MICRO_USDC);
    let asset = config.tariff().asset;
    let before = store.money().treasury(&asset).await?;
    if let Some((chain, wallet)) =
        means_of_payment::treasury_on_chain(config, &DataLayout::new(&config.data.dir), store, clock).await?
    {
        let found = chain.balance(wallet).await?;
        let books = before
            .balance
            .0
            .saturating_sub(before.under_way.0)
            .saturating_add(amount);
        if i128::from(found) < i128::from(books) {
            bail!(
                "the treasury has {found} micro-USDC on the chain, and the books would say {books}; nothing was booked"
            );
        }
    }
    let new = NewDeposit {
        transaction: hash.to_string(),
        asset,
        amount: MicroUsdc(amount),
        events: [LedgerEventId::new(now), LedgerEventId::new(now)],
        now,
    };
    let is_new = audited(store, now, "treasury_deposit", &hash.to_string())
        .money()
        .deposit(new)
        .await?;
    terminal::json(&json!({ "transaction": hash.to_string(), "amountMicro": amount, "new": is_new }))?;
    Ok(())
}

fn payout(payout: &PayoutRow) -> Value {
    json!({
        "id": payout.id,
        "kind": if payout.is_refund { "refund" } else { "payout" },
        "state": payout.state.as_str(),
        "operatorId": payout.operator.map(|operator| operator.to_string()),
        "address": payout.address,
        "amountMicro": payout.amount.0,
        "attempts": payout.attempts,
        "transaction": payout.transaction,
        "nextTryAt": payout.next_try_at.to_string(),
        "createdAt": payout.created_at.to_string(),
    })
}
