//! `sluice admin operator` and `sluice admin invitations`: accounts are listed, found, looked at and changed.
//!
//! Invariant: an operator is named by its id or its e-mail address; a name names nobody, because two may share it.

use std::sync::Arc;

use anyhow::bail;
use api::rules::letters::{self, LetterPayload};
use serde_json::{Value, json};
use store::{Invitation, StaffAccount, Store};
use types::{Clock, OperatorId, Timestamp};

use super::{check_email, operator_add};
use crate::cli::{InvitationsCommand, OperatorCommand};
use crate::config::Config;
use crate::exit::Missing;
use crate::terminal;

/// Rows that are read at once.
const PER_PAGE: u32 = 500;
/// Operators that a search finds at most.
const MAX_FOUND: u32 = 100;
/// Items, takedowns and reports of an operator that are shown.
const MAX_SHOWN: u32 = 100;

/// Runs a command about operators and prints its result.
pub(super) async fn operator(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    command: OperatorCommand,
) -> anyhow::Result<()> {
    match command {
        OperatorCommand::Add { email, name } => {
            let Some(added) = operator_add(store, clock, config, &email, &name).await? else {
                bail!("the e-mail address `{email}` belongs to an operator already");
            };
            terminal::json(&added)?;
        }
        OperatorCommand::List { limit } => {
            let accounts = listed(store, limit).await?;
            print(&accounts)?;
        }
        OperatorCommand::Find { told } => print(&store.staff().accounts_found(&told, MAX_FOUND).await?)?,
        OperatorCommand::Show { operator } => show(store, clock, &operator).await?,
        OperatorCommand::Role { operator, role } => {
            let operator = named(store, &operator).await?;
            let role = role.stored();
            if !store.moderation().role_set(operator, role).await? {
                bail!(Missing(format!("there is no operator `{operator}`")));
            }
            terminal::json(&json!({ "operatorId": operator, "role": role }))?;
        }
        OperatorCommand::Suspend { operator, reason } => {
            let (operator, now) = (named(store, &operator).await?, clock.now());
            let payload = LetterPayload::Suspended {
                operator,
                reason: reason.clone(),
            };
            let letter = letters::mail(&payload, Some(operator), None, now);
            store
                .operator_suspend_and_tell(operator, reason.clone(), letter, now)
                .await?;
            terminal::json(&json!({ "operatorId": operator, "suspended": true, "reason": reason }))?;
        }
        OperatorCommand::Restore { operator, reason } => {
            let operator = named(store, &operator).await?;
            let payload = LetterPayload::Restored {
                operator,
                reason: reason.clone(),
            };
            let letter = letters::mail(&payload, Some(operator), None, clock.now());
            store.operator_restore_and_tell(operator, letter).await?;
            terminal::json(&json!({ "operatorId": operator, "suspended": false, "reason": reason }))?;
        }
    }
    Ok(())
}

/// Returns the operator with this id or e-mail address.
async fn named(store: &Store, text: &str) -> anyhow::Result<OperatorId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let found = store.operator_by_email(text).await?;
    let found = found.ok_or_else(|| {
        Missing(format!(
            "`{text}` is neither the id nor the e-mail address of an operator; `sluice admin operator find` looks for one"
        ))
    })?;
    Ok(found.id)
}

/// Returns operators, newest first.
async fn listed(store: &Store, limit: u32) -> anyhow::Result<Vec<StaffAccount>> {
    let most = usize::try_from(limit)?;
    let mut accounts: Vec<StaffAccount> = Vec::new();
    while accounts.len() < most {
        let before = accounts.last().map(|account| account.id);
        let page = store.staff().accounts(before, PER_PAGE.min(limit)).await?;
        if page.is_empty() {
            break;
        }
        accounts.extend(page);
    }
    accounts.truncate(most);
    Ok(accounts)
}

fn print(accounts: &[StaffAccount]) -> anyhow::Result<()> {
    let items: Vec<Value> = accounts.iter().map(account).collect();
    terminal::json(&json!({ "total": items.len(), "items": items }))?;
    Ok(())
}

fn account(account: &StaffAccount) -> Value {
    let (suspended_at, reason) = account.suspended.clone().unzip();
    json!({
        "operatorId": account.id,
        "email": account.email,
        "name": account.display_name,
        "createdAt": account.created_at.to_string(),
        "verifiedAt": shown(account.verified_at),
        "suspendedAt": shown(suspended_at),
        "suspendedFor": reason,
        "role": account.role,
        "agents": account.agents,
        "datasets": account.datasets,
        "units": account.units,
        "rejectedUnits": account.rejected,
        "takedowns": account.takedowns,
        "openReports": account.reports,
    })
}

fn shown(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

async fn show(store: &Store, clock: &Arc<dyn Clock>, operator: &str) -> anyhow::Result<()> {
    let operator = named(store, operator).await?;
    let found = store.staff().account(operator).await?;
    let found = found.ok_or_else(|| Missing(format!("there is no operator `{operator}`")))?;
    let agents = store.accounts().agents_of(operator, clock.now()).await?;
    let items = store.staff().items_of(operator, MAX_SHOWN).await?;
    let takedowns = store.moderation().takedowns_of(operator, MAX_SHOWN).await?;
    let reports = store.moderation().reports_of_owner(operator, MAX_SHOWN).await?;
    let agents: Vec<Value> = agents
        .iter()
        .map(|agent| {
            json!({
                "agentId": agent.id,
                "name": agent.name,
                "keys": agent.keys.len(),
                "createdAt": agent.created_at.to_string(),
                "removedAt": shown(agent.removed_at),
            })
        })
        .collect();
    let items: Vec<Value> = items
        .iter()
        .map(|item| {
            json!({
                "kind": item.kind,
                "id": item.place,
                "title": item.title,
                "takenDownAt": shown(item.taken_down_at),
                "endedAt": shown(item.ended_at),
                "private": item.is_private,
                "sold": item.sold,
                "createdAt": item.created_at.to_string(),
            })
        })
        .collect();
    let takedowns: Vec<Value> = takedowns
        .iter()
        .map(|found| {
            json!({
                "takedownId": found.takedown.id,
                "kind": found.takedown.kind,
                "item": found.takedown.named,
                "title": found.title,
                "reason": found.takedown.reason,
                "note": found.takedown.note,
                "at": found.takedown.at.to_string(),
                "answer": found.takedown.answer.as_ref().map(|(_, answer)| answer),
                "restoredAt": shown(found.takedown.restored_at),
            })
        })
        .collect();
    let reports: Vec<Value> = reports
        .iter()
        .map(|report| {
            json!({
                "reportId": report.id,
                "kind": report.kind,
                "item": report.named,
                "reason": report.reason,
                "status": report.status,
                "at": report.created_at.to_string(),
            })
        })
        .collect();
    let mut shown = account(&found);
    shown["termsVersion"] = found.terms_version.into();
    shown["payoutAddress"] = found.payout_address.into();
    shown["payoutProvedAt"] = found.payout_proved_at.map(|at| at.to_string()).into();
    shown["agentList"] = agents.into();
    shown["items"] = items.into();
    shown["takedownList"] = takedowns.into();
    shown["reportList"] = reports.into();
    terminal::json(&shown)?;
    Ok(())
}

/// Runs a command about invitations and prints its result.
pub(super) async fn invitations(store: &Store, command: InvitationsCommand) -> anyhow::Result<()> {
    match command {
        InvitationsCommand::List { limit } => {
            let invited = invited(store, limit).await?;
            let asked = store.accounts().invite_requests(limit).await?;
            let items: Vec<Value> = invited
                .iter()
                .map(|invitation| {
                    json!({
                        "email": invitation.email,
                        "invitedBy": invitation.invited_by,
                        "createdAt": invitation.created_at.to_string(),
                        "usedAt": shown(invitation.used_at),
                    })
                })
                .collect();
            let requests: Vec<Value> = asked
                .iter()
                .map(|request| {
                    json!({
                        "email": request.email,
                        "note": request.note,
                        "createdAt": request.created_at.to_string(),
                    })
                })
                .collect();
            terminal::json(&json!({ "total": items.len(), "items": items, "requests": requests }))?;
        }
        InvitationsCommand::Withdraw { email } => {
            if !store.accounts().invite_withdraw(&email).await? {
                bail!(Missing(format!(
                    "there is no invitation of `{email}` that nobody has used"
                )));
            }
            terminal::json(&json!({ "email": email, "invited": false }))?;
        }
    }
    Ok(())
}

/// Returns invitations, newest first.
async fn invited(store: &Store, limit: u32) -> anyhow::Result<Vec<Invitation>> {
    let most = usize::try_from(limit)?;
    let mut found: Vec<Invitation> = Vec::new();
    while found.len() < most {
        let before = found.last().map(|last| (last.created_at, last.email.clone()));
        let page = store.accounts().invitations(before, PER_PAGE.min(limit)).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    found.truncate(most);
    Ok(found)
}

/// Invites an address. An address that is invited already stays so.
pub(super) async fn invite(store: &Store, clock: &Arc<dyn Clock>, email: &str) -> anyhow::Result<()> {
    check_email("EMAIL", email)?;
    let is_new = store.accounts().invite(email, clock.now()).await?;
    terminal::json(&json!({ "email": email, "invited": true, "new": is_new }))?;
    Ok(())
}
