//! `sluice admin credits` and `sluice admin disputes`: money beside a running service. Prints JSON.

use std::sync::Arc;

use anyhow::{Context, bail};
use api::rules::disputes::{ADMIN_ACTOR, refund_of};
use api::rules::letters;
use serde_json::json;
use store::{
    DisputeDecision, DisputeOpened, DisputeResolution, DisputeResolved, Granted, NewDispute, NewGrant, Sale, Store,
};
use types::money::MicroUsdc;
use types::{Clock, DisputeId, LedgerEventId, SaleId};

use crate::admin::operator_id;
use crate::cli::{CreditsCommand, Disputes, RefundTo};
use crate::config::Config;
use crate::exit::Missing;
use crate::terminal;

/// Micro-USDC of a cent.
const CENT_MICRO_USDC: i64 = 10_000;
/// Disputes that are listed at most.
const MAX_LISTED_DISPUTES: u32 = 1_000;

/// Runs a command about credits.
pub async fn credits(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    command: CreditsCommand,
) -> anyhow::Result<()> {
    let CreditsCommand::Grant {
        operator,
        cents,
        given,
        reference,
    } = command;
    let operator = operator_id(&operator)?;
    let now = clock.now();
    let event = LedgerEventId::new(now);
    // Cents of 32 bits, so the product fits.
    let amount = MicroUsdc(i64::from(cents) * CENT_MICRO_USDC);
    // Without a reference every call is a grant of its own. With one, a repeated command grants once.
    let reference = reference.unwrap_or_else(|| event.to_string());
    let new = NewGrant {
        event,
        asset: config.tariff().asset,
        operator,
        amount,
        given,
        reference: reference.clone(),
        now,
    };
    let granted = grant(store, new).await?;
    terminal::json(&json!({
        "operatorId": operator, "amountMicro": amount.0, "given": given, "reference": reference, "new": granted,
    }))?;
    Ok(())
}

/// Grants credits. Returns false if the reference was granted before.
///
/// # Errors
/// An operator that does not exist, a balance that would be too large, or a database that does not answer.
pub(crate) async fn grant(store: &Store, grant: NewGrant) -> anyhow::Result<bool> {
    let operator = grant.operator;
    match store.money().grant(grant).await? {
        Granted::Done => Ok(true),
        Granted::Repeated => Ok(false),
        Granted::NoOperator => bail!(Missing(format!("there is no operator `{operator}`"))),
        Granted::Full => bail!("the balance of the operator `{operator}` would be too large; nothing was granted"),
    }
}

/// Runs a command about disputes.
pub async fn disputes(store: &Store, clock: &Arc<dyn Clock>, command: Disputes) -> anyhow::Result<()> {
    match command {
        Disputes::List => list(store).await,
        Disputes::Open { sale, reason } => open(store, clock, &sale, reason).await,
        Disputes::Resolve {
            id, refund, to, answer, ..
        } => resolve(store, clock, &id, refund, to, &answer).await,
    }
}

async fn list(store: &Store) -> anyhow::Result<()> {
    let disputes = store.money().disputes(MAX_LISTED_DISPUTES).await?;
    let items: Vec<_> = disputes
        .iter()
        .map(|dispute| {
            json!({
                "id": dispute.id, "saleId": dispute.sale, "state": dispute.state, "reason": dispute.reason,
                "openedBy": dispute.opened_by, "openedAt": dispute.opened_at.to_string(),
                "answerDue": dispute.answer_due.map(|at| at.to_string()), "reply": dispute.reply,
                "repliedAt": dispute.replied_at.map(|at| at.to_string()), "resolvedBy": dispute.resolved_by,
                "resolvedAt": dispute.resolved_at.map(|at| at.to_string()), "answer": dispute.answer,
            })
        })
        .collect();
    terminal::json(&json!({ "total": items.len(), "items": items }))?;
    Ok(())
}

async fn open(store: &Store, clock: &Arc<dyn Clock>, sale: &str, reason: String) -> anyhow::Result<()> {
    let id: SaleId = sale
        .parse()
        .with_context(|| format!("`{sale}` is not the id of a sale"))?;
    let now = clock.now();
    let new = NewDispute {
        id: DisputeId::new(now),
        event: LedgerEventId::new(now),
        sale: id,
        reason,
        by: ADMIN_ACTOR.to_owned(),
        opener: None,
        letters: None,
        now,
    };
    let new = NewDispute {
        letters: Some(letters::dispute_opened(new.id)),
        ..new
    };
    let dispute = new.id;
    match store.money().dispute_open(new).await? {
        DisputeOpened::Opened(sale) => Ok(terminal::json(&told(dispute, &sale, "open"))?),
        // Only a buyer is told of an earlier one.
        DisputeOpened::Before(earlier) => bail!("the sale `{id}` has the dispute `{earlier}`"),
        DisputeOpened::Missing => bail!(Missing(format!("there is no sale `{id}`"))),
        DisputeOpened::TooLate { state } => bail!(
            "the sale `{id}` is {state}, or its dispute window is over; only a sale within its window is disputed"
        ),
    }
}

async fn resolve(
    store: &Store,
    clock: &Arc<dyn Clock>,
    id: &str,
    refund: bool,
    to: Option<RefundTo>,
    answer: &str,
) -> anyhow::Result<()> {
    let id: DisputeId = id
        .parse()
        .with_context(|| format!("`{id}` is not the id of a dispute"))?;
    let now = clock.now();
    let Some(dispute) = store.money().dispute(id).await? else {
        bail!(Missing(format!("there is no dispute `{id}`")));
    };
    let resolution = if refund {
        let sale = store.money().sale(dispute.sale).await?;
        let has_buyer = sale.is_some_and(|sale| sale.buyer.is_some());
        let to_wallet = match to {
            Some(to) => to == RefundTo::Wallet,
            // Credits are preferred: a wallet gets its money back by a transfer, which can stay open.
            None => !has_buyer,
        };
        refund_of(to_wallet, now)
    } else {
        DisputeResolution::Release
    };
    let decision = DisputeDecision {
        id,
        resolution,
        event: LedgerEventId::new(now),
        by: ADMIN_ACTOR.to_owned(),
        seller: None,
        answer: answer.to_owned(),
        letters: Some(letters::dispute_decided(id)),
        now,
    };
    match store.money().dispute_resolve(decision).await? {
        DisputeResolved::Resolved(sale) => {
            let state = if refund { "refunded" } else { "released" };
            Ok(terminal::json(&told(id, &sale, state))?)
        }
        DisputeResolved::Missing => bail!(Missing(format!("there is no dispute `{id}`"))),
        DisputeResolved::Ended => bail!("the dispute `{id}` had ended before"),
        DisputeResolved::NowhereToRefund => {
            bail!("the sale was not paid by a wallet, or not bought by an operator; name the other with `--to`")
        }
        DisputeResolved::Short => bail!("the accounts do not cover the refund; run `sluice check`"),
        DisputeResolved::Uncovered => bail!(
            "the treasury does not cover the refund beside what is on its way out of it; the dispute stays open. Refund \
             `--to credits`, or send test USDC to the treasury and book it by `sluice admin payouts deposit`"
        ),
    }
}

fn told(id: DisputeId, sale: &Sale, state: &str) -> serde_json::Value {
    json!({
        "id": id, "state": state, "saleId": sale.id, "saleState": sale.state, "sellerId": sale.seller,
        "buyerId": sale.buyer, "priceMicro": sale.price.0, "shareMicro": sale.share.0,
    })
}
