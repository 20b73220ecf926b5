//! `sluice admin reports`: lists reports of items, and decides about them.

use std::sync::Arc;

use anyhow::{Context, bail};
use api::rules::letters::{self, LetterPayload};
use serde_json::{Value, json};
use store::{Decided, Report, ReportStatus, Store, Takedown, Uphold};
use types::{Clock, ReportId, TakedownId};

use crate::cli::Reports;
use crate::exit::Missing;
use crate::terminal;

/// Reports that are read at once.
const PER_PAGE: u32 = 500;

/// Runs a command and prints its result.
pub(super) async fn run(store: &Store, clock: &Arc<dyn Clock>, command: Reports) -> anyhow::Result<()> {
    let (moderation, now) = (store.moderation(), clock.now());
    match command {
        Reports::List { status } => list(store, status.as_deref()).await,
        Reports::Uphold { id, note } => {
            let (report, takedown) = (report_id(&id)?, TakedownId::new(now));
            let new = Uphold {
                report,
                takedown,
                note,
                by: None,
                letters: letters::decision(takedown),
                now,
            };
            print(moderation.uphold(new).await?, &format!("report `{id}`"))
        }
        Reports::Dismiss { id, note } => match moderation.dismiss(report_id(&id)?, None, note, now).await? {
            Some(true) => {
                terminal::json(&json!({ "id": id, "status": "dismissed" }))?;
                Ok(())
            }
            Some(false) => bail!("the report `{id}` was decided before"),
            None => bail!(Missing(format!("there is no report `{id}`"))),
        },
        Reports::Restore { id } => {
            let takedown: TakedownId = id
                .parse()
                .with_context(|| format!("`{id}` is not the id of a takedown"))?;
            let payload = letters::input(&LetterPayload::ItemRestored { takedown });
            let letter = (letters::KIND.to_owned(), payload);
            let restored = moderation.restore(takedown, None, None, letter, now).await?;
            print(restored, &format!("takedown `{id}`"))
        }
    }
}

fn report_id(text: &str) -> anyhow::Result<ReportId> {
    text.parse()
        .with_context(|| format!("`{text}` is not the id of a report"))
}

async fn list(store: &Store, status: Option<&str>) -> anyhow::Result<()> {
    let status: Option<ReportStatus> = status.map(str::parse).transpose()?;
    let mut reports: Vec<Report> = Vec::new();
    loop {
        // The pages are read until one is empty, since the total is not known.
        let before = reports.last().map(|report| report.id);
        let page = store.moderation().reports(status, before, PER_PAGE).await?;
        if page.is_empty() {
            break;
        }
        reports.extend(page);
    }
    let items: Vec<Value> = reports.iter().map(shown).collect();
    terminal::json(&json!({ "total": items.len(), "items": items }))?;
    Ok(())
}

fn shown(report: &Report) -> Value {
    json!({
        "id": report.id,
        "kind": report.kind,
        "item": report.named,
        "reason": report.reason,
        "detail": report.detail,
        "agentId": report.agent,
        "email": report.email,
        "status": report.status,
        "at": report.created_at.to_string(),
        "decidedAt": report.decided_at.map(|at| at.to_string()),
        "takedownId": report.takedown,
    })
}

fn print(decided: Decided, what: &str) -> anyhow::Result<()> {
    match decided {
        Decided::Done(takedown) => {
            terminal::json(&of_takedown(&takedown))?;
            Ok(())
        }
        Decided::Unknown => bail!(Missing(format!("there is no {what}"))),
        Decided::Before => bail!("the {what} was decided before, or its item is down already"),
        Decided::Gone => bail!("the item of the {what} does not exist any more"),
    }
}

fn of_takedown(takedown: &Takedown) -> Value {
    json!({
        "takedownId": takedown.id,
        "kind": takedown.kind,
        "item": takedown.named,
        "reason": takedown.reason,
        "down": takedown.restored_at.is_none(),
    })
}
