//! Front page of the console: what needs the person first, then what happened.

use std::time::Duration;

use operators::Tally;
use pages::console::{Attention, GateTally, OverviewPage};
use store::{ClaimStatus, ContributionStatus, ContributionSum, Selection};
use types::{OperatorId, Timestamp};

use super::{activity, contributions};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::visit::CONSOLE;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, missing, page, page_layout};

/// Days of the chart.
const DAYS: u32 = 14;
/// Sums that the figures of 24 hours are made of, each of contributions with the same tallies. Beyond it the rarest ones
/// are left out.
const MAX_SUMS: u32 = 500;
/// Rows of the lists of latest things.
const LATEST: u32 = 8;
/// Projects that the figures look at.
const MAX_PROJECTS: u32 = 200;

pub(super) fn add(table: &mut Operations) {
    table.add(page("overview_page", CONSOLE, "Overview of the console"), &[], show);
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let (operator, now) = (cx.the_operator()?, cx.now);
    let store = &cx.app.store;
    let (console, accounts) = (store.console(), store.accounts());
    let yesterday = now.minus(Duration::from_hours(24));
    let (projects, agents, days, sums, newest) = tokio::try_join!(
        console.projects_of(operator, MAX_PROJECTS),
        accounts.agents_of(operator, now),
        console.days_of(operator, DAYS, now),
        console.sums_of(operator, yesterday, MAX_SUMS),
        console.contributions_of(operator, Selection::All, None, LATEST)
    )?;
    let active = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    let account = store.operator(operator).await?.ok_or_else(|| missing("account"))?;
    PageResponse::page(&OverviewPage {
        chrome: page_layout(&cx).await?,
        operator: account.display_name,
        since: instant(account.created_at),
        attention: attention(&cx, operator).await?,
        agents: u32::try_from(active).unwrap_or(u32::MAX),
        agent_limit: cx.app.limits.agents_per_operator,
        datasets: u64::try_from(projects.len()).unwrap_or(u64::MAX),
        records: projects.iter().map(|project| project.record_count).sum(),
        contributions: sums.iter().map(|sum| sum.count).sum(),
        flow: flow(&sums)?,
        days: chart(&days, now),
        latest: newest.iter().map(contributions::listed).collect(),
        activity: activity::rows(&cx, operator, LATEST).await?,
    })
}

/// Adds up the rows of contributions, gate by gate.
pub(super) fn flow(sums: &[ContributionSum]) -> Result<pages::RowFlow, ApiError> {
    let mut flow = pages::RowFlow::default();
    let mut gates: Vec<GateTally> = Vec::new();
    for sum in sums {
        let tallies = tallies(sum.tallies.as_deref())?;
        let judged: Vec<GateTally> = tallies
            .into_iter()
            .map(|tally| times(contributions::tally(&tally), sum.count))
            .collect();
        // The first gate sees every record; the row of an upload has no count of its own.
        let came = judged.first().map_or(sum.rows, |first| first.rows);
        flow.rows += came;
        let lost: u64 = judged.iter().map(|gate| gate.dropped + gate.refused + gate.held).sum();
        let left = came.saturating_sub(lost);
        match sum.status {
            ContributionStatus::Submitted | ContributionStatus::Waiting => flow.waiting += left,
            // Not what the last gate passed: the commit may have dropped rows after it. Without tallies no
            // gate saw the rows.
            ContributionStatus::Rejected => flow.rejected += left,
            ContributionStatus::Merged => {}
        }
        add_up(&mut gates, judged);
    }
    flow.gates = gates
        .into_iter()
        .map(|gate| pages::GateLoss {
            name: gate.gate,
            dropped: gate.dropped,
            refused: gate.refused,
            held: gate.held,
        })
        .collect();
    Ok(flow)
}

/// Returns the counts of a gate for as many contributions.
fn times(tally: GateTally, count: u64) -> GateTally {
    GateTally {
        gate: tally.gate,
        rows: tally.rows * count,
        passed: tally.passed * count,
        dropped: tally.dropped * count,
        refused: tally.refused * count,
        held: tally.held * count,
    }
}

/// Adds the counts of the gates of a contribution to those of others. A gate that the others do not have comes before the
/// one that follows it here: uploads are decoded first, batches are not.
pub(super) fn add_up(gates: &mut Vec<GateTally>, tallies: Vec<GateTally>) {
    let mut rest = tallies.into_iter();
    while let Some(tally) = rest.next() {
        if let Some(gate) = gates.iter_mut().find(|gate| gate.gate == tally.gate) {
            gate.rows += tally.rows;
            gate.passed += tally.passed;
            gate.dropped += tally.dropped;
            gate.refused += tally.refused;
            gate.held += tally.held;
            continue;
        }
        let place = |later: &GateTally| gates.iter().position(|gate| gate.gate == later.gate);
        let place = rest.as_slice().iter().find_map(place).unwrap_or(gates.len());
        gates.insert(place, tally);
    }
}

/// Reads the tallies of a contribution.
pub(super) fn tallies(text: Option<&str>) -> Result<Vec<Tally>, ApiError> {
    let parse =
        |text| serde_json::from_str(text).map_err(|error| ApiError::internal(format!("stored tallies: {error}")));
    text.map_or_else(|| Ok(Vec::new()), parse)
}

/// Returns one bar for each of the last days, those without contributions too.
fn chart(days: &[store::Day], now: Timestamp) -> Vec<pages::DayCount> {
    let today = now.day();
    let numbers = (0..i64::from(DAYS)).rev().map(|ago| today - ago);
    numbers
        .map(|number| {
            let found = days.iter().find(|day| day.number == number);
            pages::DayCount {
                day: instant(Timestamp::of_day(number)),
                merged: found.map_or(0, |day| day.merged),
                waiting: found.map_or(0, |day| day.open),
                rejected: found.map_or(0, |day| day.rejected),
            }
        })
        .collect()
}

/// Returns what needs the person, most urgent first.
async fn attention(cx: &Cx, operator: OperatorId) -> Result<Vec<Attention>, ApiError> {
    let (store, now) = (&cx.app.store, cx.now);
    let (console, accounts, flow) = (store.console(), store.accounts(), store.flow());
    let community = store.community();
    let money = store.money();
    let (claims, asked, held, dead, jobs, told) = tokio::try_join!(
        accounts.claims_of(operator, LATEST, now),
        money.approvals_waiting(operator, LATEST, now),
        console.contributions_of(operator, Selection::Waiting, None, LATEST),
        console.contributions_of(operator, Selection::Dead, None, LATEST),
        flow.jobs_of(operator),
        community.told(operator, now, LATEST)
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
    for row in &dead {
        items.push(Attention::dead(
            &row.id.to_string(),
            &row.slug,
            instant(row.submitted_at),
        ));
    }
    for job in &jobs {
        if let Some(failed_at) = job.failed_at {
            let error = job.last_error.as_deref().unwrap_or_default();
            items.push(Attention::letter(error, instant(failed_at)));
        }
    }
    for row in &held {
        let (since, again) = (instant(row.submitted_at), row.resumes_after.map(instant));
        items.push(Attention::held(
            &row.id.to_string(),
            &row.slug,
            row.rows.into(),
            since,
            again,
        ));
    }
    for told in &told {
        items.push(Attention::request(
            &told.request.to_string(),
            &told.title,
            instant(told.at),
        ));
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Contributions of 10 rows of which each gate refuses as many as given.
    fn sum(status: ContributionStatus, gates: &[(&str, u64)], count: u64) -> ContributionSum {
        let mut rows = 10_u64;
        let tallies: Vec<_> = gates
            .iter()
            .map(|(gate, refused)| {
                let before = rows;
                rows -= *refused;
                json!({
                    "gate": gate, "rows": before, "passed": rows, "dropped": 0, "refused": refused, "held": 0,
                })
            })
            .collect();
        ContributionSum {
            status,
            tallies: (!gates.is_empty()).then(|| json!(tallies).to_string()),
            count,
            // An upload has no count of its own.
            rows: if gates.first().is_some_and(|(gate, _)| *gate == "decode") {
                0
            } else {
                10 * count
            },
        }
    }

    #[test]
    fn gates_of_batches_and_uploads_stand_in_their_order() {
        let batch = [("contract", 1), ("dedup", 2), ("personal-data", 0), ("screen", 0)];
        let upload = [
            ("decode", 4),
            ("contract", 1),
            ("dedup", 0),
            ("personal-data", 1),
            ("screen", 0),
        ];
        let merged = ContributionStatus::Merged;
        for sums in [
            [sum(merged, &batch, 2), sum(merged, &upload, 1)],
            [sum(merged, &upload, 1), sum(merged, &batch, 2)],
        ] {
            let flow = flow(&sums).unwrap();
            let gates: Vec<_> = flow
                .gates
                .iter()
                .map(|gate| (gate.name.as_str(), gate.refused))
                .collect();
            let expected = [
                ("decode", 4),
                ("contract", 3),
                ("dedup", 4),
                ("personal-data", 1),
                ("screen", 0),
            ];
            assert_eq!(gates, expected);
            assert_eq!((flow.rows, flow.merged()), (30, 18));
        }
    }

    #[test]
    fn what_is_not_merged_is_counted_once() {
        let sums = [
            sum(ContributionStatus::Merged, &[("contract", 0)], 1),
            sum(ContributionStatus::Rejected, &[("contract", 3)], 1),
            sum(ContributionStatus::Submitted, &[], 1),
        ];
        let flow = flow(&sums).unwrap();
        assert_eq!((flow.rows, flow.waiting, flow.rejected, flow.merged()), (30, 10, 7, 10));
        // A commit that found all rows in the dataset dropped them after the last gate had passed them.
        let mut late = sum(ContributionStatus::Rejected, &[("dedup", 0), ("screen", 0)], 1);
        late.tallies = late
            .tallies
            .map(|text| text.replacen("\"dropped\":0", "\"dropped\":10", 1));
        let flow = super::flow(&[late, sums[0].clone()]).unwrap();
        assert_eq!((flow.rows, flow.rejected, flow.merged()), (20, 0, 10));
    }
}
