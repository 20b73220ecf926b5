//! Pages about contributions: the list, and one with its verdicts.

use operators::{RowVerdict, Verdict};
use pages::console::{
    ContributionPage, ContributionRow, ContributionState, ContributionsPage, GateTally, VerdictKind, VerdictRow,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{ContributionStatus, ListedContribution, Selection};
use types::ContributionId;

use super::overview::tallies;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::wire::BatchReason;
use crate::error::ApiError;
use crate::ops::contributions::stored_verdicts;
use crate::ops::page_kit::{PAGE_ROWS, id, instant, missing, page, page_layout};
use crate::ops::paging::take_page;

const PATH: &str = "/console/contributions";
/// Verdicts on the page of a contribution.
const MAX_VERDICTS: usize = 200;

pub(super) fn add(table: &mut Operations) {
    table.add(page("contributions_page", PATH, "Contributions"), &[], list);
    let one = page("contribution_page", "/console/contributions/{id}", "A contribution");
    table.add(one, &[], show);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContributionsPageQuery {
    /// Selection by what became of them.
    #[schemars(length(max = 20))]
    state: Option<String>,
    /// Id of the last contribution of the page before.
    #[schemars(length(max = 64))]
    before: Option<String>,
}

async fn list(cx: Cx, input: ContributionsPageQuery) -> Result<PageResponse, ApiError> {
    let state = input.state.as_deref().and_then(ContributionState::of);
    let selection = match state {
        Some(ContributionState::Waiting) => Selection::Submitted,
        Some(ContributionState::Held) => Selection::Waiting,
        Some(ContributionState::Merged) => Selection::Merged,
        Some(ContributionState::Rejected) => Selection::Rejected,
        Some(ContributionState::Dead) => Selection::Dead,
        None => Selection::All,
    };
    let before: Option<ContributionId> = input.before.map(|text| id(&text, "page")).transpose()?;
    let console = cx.app.store.console();
    let mut rows = console
        .contributions_of(cx.the_operator()?, selection, before, PAGE_ROWS + 1)
        .await?;
    let next = take_page(&mut rows, PAGE_ROWS).map(|row| match state {
        Some(state) => format!("{PATH}?state={}&before={}", state.word(), row.id),
        None => format!("{PATH}?before={}", row.id),
    });
    PageResponse::page(&ContributionsPage {
        chrome: page_layout(&cx).await?,
        state,
        rows: rows.iter().map(listed).collect(),
        next,
        is_later: before.is_some(),
    })
}

/// Returns the state that a status and a reject code stand for.
fn state_of(status: ContributionStatus, reject_code: Option<&str>) -> ContributionState {
    match status {
        ContributionStatus::Submitted => ContributionState::Waiting,
        ContributionStatus::Waiting => ContributionState::Held,
        ContributionStatus::Merged => ContributionState::Merged,
        // No gate judged it: the pipeline gave it up, so repairing the records would not help.
        ContributionStatus::Rejected if reject_code == Some("unprocessable") => ContributionState::Dead,
        ContributionStatus::Rejected => ContributionState::Rejected,
    }
}

/// Returns a sentence for the reason of a hold.
fn held(reason: &str) -> String {
    BatchReason::held(reason).message
}

/// Returns the number of records of a contribution: what its first gate saw, because the row of an upload has no count.
pub(in crate::ops) fn records(rows: u32, tallies: Option<&str>) -> u64 {
    let tallies = super::overview::tallies(tallies).unwrap_or_default();
    tallies.first().map_or(rows, |first| first.rows).into()
}

/// Returns the row of a list.
pub(super) fn listed(row: &ListedContribution) -> ContributionRow {
    let reason = row.reject_message.clone();
    ContributionRow {
        id: row.id.to_string(),
        dataset: row.slug.clone(),
        agent: row.agent_name.clone(),
        records: records(row.rows, row.tallies.as_deref()),
        state: state_of(row.status, row.reject_code.as_deref()),
        version: row.version.map(|version| version.0),
        accepted: row.accepted,
        reason: reason.or_else(|| row.waiting_reason.as_deref().map(held)),
        at: instant(row.submitted_at),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContributionPagePath {
    /// Id of the contribution.
    id: String,
}

async fn show(cx: Cx, input: ContributionPagePath) -> Result<PageResponse, ApiError> {
    let contribution: ContributionId = id(&input.id, "contribution")?;
    let operator = cx.the_operator()?;
    let store = &cx.app.store;
    let missing = || missing("contribution");
    let row = store.contribution(contribution).await?.ok_or_else(missing)?;
    let (slug, maintainer) = store.project_owner(row.project).await?.ok_or_else(missing)?;
    // The contributor and the maintainer of the dataset see it, as in the interface for programs.
    if row.operator != operator && maintainer != operator {
        return Err(missing());
    }
    let verdicts = stored_verdicts(&cx, row.id).await?;
    let reason = row.reject_message.clone();
    let lost = row
        .loss
        .map(|loss| format!("Its version was lost later: {}", loss.reason));
    PageResponse::page(&ContributionPage {
        chrome: page_layout(&cx).await?,
        contribution: ContributionRow {
            id: row.id.to_string(),
            dataset: slug,
            agent: row.agent_name,
            records: records(row.rows, row.tallies.as_deref()),
            state: state_of(row.status, row.reject_code.as_deref()),
            version: row.version.map(|version| version.0),
            accepted: row.accepted,
            reason: lost.or(reason).or_else(|| row.waiting_reason.as_deref().map(held)),
            at: instant(row.submitted_at),
        },
        source: row.source_declaration,
        decided_at: row.decided_at.map(instant),
        resumes_at: row.resumes_after.map(instant),
        gates: tallies(row.tallies.as_deref())?.iter().map(tally).collect(),
        hidden_verdicts: verdicts
            .len()
            .saturating_sub(MAX_VERDICTS)
            .try_into()
            .unwrap_or(u64::MAX),
        verdicts: verdicts.into_iter().take(MAX_VERDICTS).map(verdict).collect(),
    })
}

/// Returns the counts of a gate.
pub(super) fn tally(tally: &operators::Tally) -> GateTally {
    GateTally {
        gate: tally.gate.to_string(),
        rows: u64::from(tally.rows),
        passed: u64::from(tally.passed),
        dropped: u64::from(tally.dropped),
        refused: u64::from(tally.refused),
        held: u64::from(tally.held),
    }
}

fn verdict(verdict: RowVerdict) -> VerdictRow {
    let (kind, reason) = match verdict.verdict {
        Verdict::Pass => (VerdictKind::Pass, None),
        Verdict::Drop { reason } => (VerdictKind::Drop, Some(reason)),
        // The first reason decides; the others are at the address for programs.
        Verdict::Refuse { reasons } => (VerdictKind::Refuse, reasons.into_iter().next()),
        Verdict::Hold { reason, .. } => (VerdictKind::Hold, Some(reason)),
    };
    let row = u64::from(verdict.row);
    match reason {
        Some(reason) => VerdictRow {
            row,
            kind,
            gate: reason.gate.to_string(),
            code: reason.code,
            path: reason.path,
            expected: reason.expected,
            found: reason.actual,
        },
        None => VerdictRow {
            row,
            kind,
            gate: String::new(),
            code: String::new(),
            path: String::new(),
            expected: String::new(),
            found: String::new(),
        },
    }
}
