//! `sluice admin faucet`, `facilitator`, `payments` and `payouts`.
//!
//! Invariant: a decision about a payment that is not known is an administrator's, and leaves a row in the audit trail.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use api::payments::{Payouts, Reconciler};
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use store::{AuditEntry, Event, Payment, PaymentState, PayoutRow, PayoutState, Store};
use tokio::net::TcpListener;
use types::vocabulary::ActorKind;
use types::{Clock, PaymentId, Timestamp};
use x402::builtin::BuiltIn;
use x402::{Address, Word, desk};

use crate::assemble::Layout;
use crate::cli::{PaymentDecision, Payments, PayoutCommands};
use crate::config::Config;
use crate::payments;
use crate::signals::Signals;
use crate::terminal;

/// Test USDC that a wallet gets in a UTC day at most.
const FAUCET_PER_DAY: u32 = 10;
/// Rows that are listed at most.
const LISTED: u32 = 1_000;
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
    payments::built_in(config, store, clock).await?;
    let wallet: Address = wallet.parse().with_context(|| format!("ADDRESS: `{wallet}`"))?;
    let now = clock.now();
    // Counted one by one under the counter's lock, so that two commands together stay within the day's
    // limit.
    for _unit in 0..usdc {
        let event = Event {
            rule: "faucet",
            subject: wallet.to_string(),
            window: now.day(),
            ends_at: now.next_day().next_day(),
        };
        let counted = store
            .counter_take(event, |counted| counted.used < FAUCET_PER_DAY)
            .await?;
        if counted.used >= FAUCET_PER_DAY {
            bail!("a wallet gets at most {FAUCET_PER_DAY} test USDC a day; nothing was given");
        }
    }
    let amount = i64::from(usdc) * 1_000_000;
    store.wallets().give(&wallet.to_string(), amount).await?;
    let balance = store.wallets().balance(&wallet.to_string()).await?;
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
    let ledger = Arc::new(payments::built_in(config, store, clock).await?);
    let mut signals = Signals::listen()?;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on `{listen}`"))?;
    terminal::json(&json!({ "facilitator": format!("http://{}", listener.local_addr()?) }))?;
    let answer = move |request: Request| {
        let ledger = Arc::clone(&ledger);
        async move { desk_answer(&ledger, request).await }
    };
    let router = Router::new().fallback(answer);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { signals.asked().await })
        .await?;
    Ok(())
}

async fn desk_answer(ledger: &BuiltIn, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let read = axum::body::to_bytes(body, MAX_BODY).await;
    let (status, body) = match read {
        Ok(body) => desk::answer(ledger, parts.uri.path(), &body).await,
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
    command: Payments,
) -> anyhow::Result<()> {
    match command {
        Payments::List { unknown } => {
            let state = unknown.then_some(PaymentState::Unknown);
            let found = store.payments().listed(state, LISTED).await?;
            let items: Vec<_> = found.iter().map(shown).collect();
            terminal::json(&json!({ "total": items.len(), "items": items }))?;
        }
        Payments::Resolve { id, decision } => resolve(store, clock, config, &id, decision).await?,
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
    let payment = payment.with_context(|| format!("there is no payment `{id}`"))?;
    // Every other state is proved by an answer or by the chain, and must not be overruled by hand.
    if payment.state != PaymentState::Unknown {
        bail!(
            "the payment `{id}` is {}; only one that is unknown is resolved",
            payment.state.as_str()
        );
    }
    let now = clock.now();
    let audited = store.audited(AuditEntry {
        id: PaymentId::new(now).to_string(),
        at: now,
        operator: None,
        actor_kind: ActorKind::Person,
        actor: None,
        operation: "payment_resolve".to_owned(),
        subject: Some(id.to_owned()),
        request_id: "admin".to_owned(),
    });
    if let Some(transaction) = &decision.settled {
        let transaction: Word = transaction
            .parse()
            .with_context(|| format!("--settled: `{transaction}`"))?;
        let layout = Layout::new(&config.data.dir);
        let plane = payments::plane(config, &layout, store, clock).await?;
        let reconciler = Reconciler::new(audited, Arc::new(plane), Arc::clone(clock));
        reconciler
            .settled(&payment, transaction)
            .await
            .map_err(|error| anyhow::anyhow!("{}", error.message()))?;
    } else {
        // It is over, so nobody looks at it again.
        audited
            .payments()
            .fail(id, "resolved", Timestamp::from_micros(i64::MAX))
            .await?;
    }
    let payment = store.payments().get(id).await?;
    terminal::json(&json!({ "payment": payment.as_ref().map(shown) }))?;
    Ok(())
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
            let mut found = store.money().payouts_listed(None, LISTED).await?;
            found.retain(|payout| !open || !matches!(payout.state, PayoutState::Done | PayoutState::Failed));
            let items: Vec<_> = found.iter().map(payout).collect();
            terminal::json(&json!({ "total": items.len(), "items": items }))?;
        }
        PayoutCommands::Retry { id } => {
            if !store.money().payout_retry(&id, clock.now()).await? {
                bail!("there is no payout `{id}` that is not over");
            }
            terminal::json(&json!({ "id": id, "due": true }))?;
        }
        PayoutCommands::Run => {
            let layout = Layout::new(&config.data.dir);
            let plane = payments::plane(config, &layout, store, clock).await?;
            let payouts = Payouts::new(store.clone(), Arc::new(plane), Arc::clone(clock));
            let failed = |error: api::ApiError| anyhow::anyhow!("{}", error.message());
            let picked = payouts.pick().await.map_err(failed)?;
            let sent = payouts.send_due().await.map_err(failed)?;
            terminal::json(&json!({ "picked": picked, "sent": sent }))?;
        }
    }
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
