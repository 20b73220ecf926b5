//! What needs the person of an operator, and what goes on without it.
//!
//! Invariant: the number in the rail is the number of lines of "Needs you", because both come from here.

use pages::console::{Attention, GoodToKnow, reason_words};
use store::{ClaimStatus, Selection};
use types::OperatorId;
use types::money::MicroUsdc;

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::page_kit::instant;

/// Matters of a kind that are listed.
const LATEST: u32 = 8;
/// Takedowns, of which those without an answer count.
const TAKEDOWNS: u32 = 50;
/// Days for which a batch that could not be processed is a matter.
const FAILED_DAYS: i64 = 7;

/// Returns the page of each matter that needs the person.
pub(in crate::ops) async fn pages(cx: &Cx, operator: OperatorId) -> Result<Vec<String>, ApiError> {
    let matters = matters(cx, operator).await?;
    Ok(matters.into_iter().map(|matter| matter.href).collect())
}

/// Returns what needs the person, most urgent first.
pub(super) async fn matters(cx: &Cx, operator: OperatorId) -> Result<Vec<Attention>, ApiError> {
    let (store, now) = (&cx.app.store, cx.now);
    let (console, accounts, flow) = (store.console(), store.accounts(), store.flow());
    let (money, moderation) = (store.money(), store.moderation());
    let (claims, asked, dead, jobs, taken, balances, payout, role) = tokio::try_join!(
        accounts.claims_of(operator, LATEST, now),
        money.approvals_waiting(operator, LATEST, now),
        console.contributions_of(operator, Selection::Dead, None, LATEST),
        flow.jobs_of(operator),
        moderation.takedowns_of(operator, TAKEDOWNS),
        money.balances(&cx.app.pay.asset, operator),
        accounts.payout(operator, now),
        moderation.role_of(operator)
    )?;
    let mut items = Vec::new();
    // Claims come first: an agent waits for each, and their time runs out.
    for claim in claims.iter().filter(|claim| claim.status == ClaimStatus::Pending) {
        let (since, end) = (instant(claim.created_at), instant(claim.expires_at));
        items.push(Attention::claim(&claim.name, since, end));
    }
    // An agent waits for each of these, too.
    for row in &asked {
        items.push(Attention::approval(
            row.id,
            &row.agent_name,
            row.title.as_deref().unwrap_or_default(),
            row.price,
            instant(row.asked_at),
            instant(row.expires_at),
        ));
    }
    items.extend(super::disputes::attention(cx, operator).await?);
    let is_due = balances.payable > MicroUsdc(0) && balances.payable >= cx.app.pay.payout_threshold;
    if is_due && payout.address.is_none() && payout.next.is_none() {
        items.push(Attention::payout(balances.payable, instant(now)));
    }
    for found in taken {
        let takedown = found.takedown;
        if takedown.restored_at.is_none() && takedown.answer.is_none() {
            let title = found.title.unwrap_or(takedown.named);
            items.push(Attention::takedown(
                &title,
                reason_words(takedown.reason),
                instant(takedown.at),
            ));
        }
    }
    if role.is_some() {
        let desk = moderation.desk().await?;
        if desk.open + desk.answered > 0 {
            items.push(Attention::reports(desk.open, desk.answered, instant(now)));
        }
    }
    let is_recent = |at: types::Timestamp| now.day() - at.day() < FAILED_DAYS;
    for row in dead.iter().filter(|row| is_recent(row.submitted_at)) {
        let (id, at) = (row.id.to_string(), instant(row.submitted_at));
        items.push(Attention::dead(&id, &row.slug, at));
    }
    for job in &jobs {
        if let Some(failed_at) = job.failed_at {
            let error = job.last_error.as_deref().unwrap_or_default();
            items.push(Attention::letter(error, instant(failed_at)));
        }
    }
    Ok(items)
}

/// Returns what goes on without the person.
pub(super) async fn also(
    cx: &Cx,
    operator: OperatorId,
    egress: &pages::Allowance,
) -> Result<Vec<GoodToKnow>, ApiError> {
    let (store, now) = (&cx.app.store, cx.now);
    let (console, community) = (store.console(), store.community());
    let (held, told) = tokio::try_join!(
        console.contributions_of(operator, Selection::Waiting, None, LATEST),
        community.told(operator, now, LATEST)
    )?;
    let mut items = Vec::new();
    for row in &held {
        let again = row.resumes_after.map(instant);
        items.push(GoodToKnow::held(&row.id.to_string(), &row.slug, row.rows.into(), again));
    }
    if egress.is_nearly_used() {
        items.push(GoodToKnow::downloads(egress));
    }
    for told in &told {
        items.push(GoodToKnow::request(&told.request.to_string(), &told.title));
    }
    Ok(items)
}
