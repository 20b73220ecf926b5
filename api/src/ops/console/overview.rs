//! Front page of the console: what needs the person first, then what happened.

use std::time::Duration;

use operators::Tally;
use pages::console::{EventGroup, FirstSteps, GateTally, OverviewPage};
use pages::{Allowance, CreditBalance};
use store::{ContributionStatus, ContributionSum};
use types::Timestamp;

use super::{activity, attention, contributions, money};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::visit::CONSOLE;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::{form, instant, missing, page, page_layout};
use crate::ops::quota;
use crate::rules::storage_quota;

/// Days of the chart.
const DAYS: u32 = 14;
/// Sums that the figures of 24 hours are made of, each of contributions with the same tallies. Beyond it the rarest ones
/// are left out.
const MAX_SUMS: u32 = 500;
/// Rows of the trail that are grouped, and groups that are shown.
const EVENTS: u32 = 60;
const GROUPS: usize = 12;
/// Checks in the order in which rows pass them, for an account without any.
const GATES: [&str; 5] = ["decode", "contract", "dedup", "personal-data", "screen"];
/// Projects that the figures look at.
const MAX_PROJECTS: u32 = 200;

pub(super) fn add(table: &mut Operations) {
    table.add(page("overview_page", CONSOLE, "Overview of the console"), &[], show);
    table.add(
        form("hide_steps_form", "/console/steps/hide", "Hide the first steps"),
        &[],
        hide_steps,
    );
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let (operator, now) = (cx.the_operator()?, cx.now);
    let store = &cx.app.store;
    let (console, accounts, points) = (store.console(), store.accounts(), store.points());
    let yesterday = now.minus(Duration::from_hours(24));
    let (projects, agents, days, sums, points) = tokio::try_join!(
        console.projects_of(operator, MAX_PROJECTS),
        accounts.agents_of(operator, now),
        console.days_of(operator, DAYS, now),
        console.sums_of(operator, yesterday, MAX_SUMS),
        points.of_operator(operator)
    )?;
    let active = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    let active = u64::try_from(active).unwrap_or(u64::MAX);
    let account = store.operator(operator).await?.ok_or_else(|| missing("account"))?;
    let stored = storage_quota::counted(&cx, operator).await?;
    let figures = quota::figures(&cx, stored).await?;
    let egress = super::quota::egress(&figures);
    let balances = store.money().balances(&cx.app.pay.asset, operator).await?;
    let steps = steps(&cx, &account, active > 0, !projects.is_empty()).await?;
    PageResponse::page(&OverviewPage {
        chrome: page_layout(&cx).await?,
        operator: account.display_name,
        since: instant(account.created_at),
        attention: attention::matters(&cx, operator).await?,
        also: attention::also(&cx, operator, &egress).await?,
        steps,
        credits: CreditBalance {
            bought: balances.credits,
            given: balances.given,
        },
        spent: money::spent(&cx, operator).await?,
        earned: money::earned(&cx, operator, &balances).await?,
        egress,
        storage: super::quota::storage(&cx, &figures),
        contributions: super::quota::contributions(&cx, &figures),
        points,
        agents: Allowance {
            used: active,
            allowed: cx.app.limits.agents_per_operator.into(),
        },
        datasets: u64::try_from(projects.len()).unwrap_or(u64::MAX),
        records: projects.iter().map(|project| project.record_count).sum(),
        flow: flow_or_open_gates(&sums)?,
        days: chart(&days, now),
        sales: money::sales_days(&cx, operator, DAYS.into()).await?,
        events: EventGroup::of(activity::rows(&cx, operator, EVENTS).await?, GROUPS),
    })
}

async fn hide_steps(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let accounts = cx.app.store.accounts();
    accounts.hide_first_steps(cx.the_operator()?, cx.now).await?;
    PageResponse::see(CONSOLE)
}

/// Returns the first steps of an account, while those that everybody takes are not done and nobody hid them.
async fn steps(
    cx: &Cx,
    account: &store::Operator,
    has_agent: bool,
    has_dataset: bool,
) -> Result<Option<FirstSteps>, ApiError> {
    let (accounts, money) = (cx.app.store.accounts(), cx.app.store.money());
    let has_item = has_dataset || !money.bought_by(account.id, 1).await?.is_empty();
    if (has_agent && has_item) || accounts.hides_first_steps(account.id).await? {
        return Ok(None);
    }
    let payout = accounts.payout(account.id, cx.now).await?;
    Ok(Some(FirstSteps {
        confirmed_at: account.verified_at.map(instant),
        has_agent,
        has_item,
        has_address: payout.address.is_some() || payout.next.is_some(),
    }))
}

/// Returns the flow of contributions, or of none the checks that there are.
fn flow_or_open_gates(sums: &[ContributionSum]) -> Result<pages::RowFlow, ApiError> {
    let mut flow = flow(sums)?;
    if flow.gates.is_empty() {
        let gate = |name: &str| pages::GateLoss {
            name: name.to_owned(),
            dropped: 0,
            refused: 0,
            held: 0,
        };
        flow.gates = GATES.into_iter().map(gate).collect();
    }
    Ok(flow)
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
