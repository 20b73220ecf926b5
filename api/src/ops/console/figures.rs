//! Figures of the service for administrators, and the jobs that fail.
//!
//! Invariant: the page reads what the task of the figures counted, so it costs the same however much there is.

use pages::console::{FailingJobRow, FigureBar, FiguresPage};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{FigureDay, Job};
use types::Timestamp;

use super::staff::administrator;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, form, instant, page, page_layout};

const PATH: &str = "/console/figures";
/// Days on the page.
const DAYS: i64 = 30;

pub(super) fn add(table: &mut Operations) {
    table.add(page("figures_page", PATH, "Figures of the service"), &[], show);
    table.add(
        form("retry_job_form", "/console/jobs/{id}/retry", "Try a job again now"),
        &[],
        retry,
    );
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    administrator(&cx).await?;
    let staff = cx.app.store.staff();
    let first = cx.now.day() + 1 - DAYS;
    let (counted, failing, jobs) = tokio::try_join!(
        staff.figures(first),
        staff.jobs_failing_count(),
        staff.jobs_failing(PAGE_ROWS)
    )?;
    let latest = counted.last();
    PageResponse::page(&FiguresPage {
        chrome: page_layout(&cx).await?,
        counted_at: latest.map(|day| instant(day.counted_at)),
        accounts: latest.map_or(0, |day| day.accounts),
        days: (first..first + DAYS).map(|number| bar(number, &counted)).collect(),
        retried: failing.retried,
        given_up: failing.given_up,
        jobs: jobs.into_iter().map(job).collect(),
    })
}

/// Returns the figures of a day; zeros for one that was not counted.
fn bar(number: i64, counted: &[FigureDay]) -> FigureBar {
    let found = counted
        .iter()
        .find(|day| day.day == number)
        .copied()
        .unwrap_or_default();
    FigureBar {
        day: instant(Timestamp::of_day(number)),
        sign_ups: found.sign_ups,
        confirmed: found.confirmed,
        sales: found.sales,
        credit: found.credit,
        wallet: found.wallet,
        fee: found.fee,
        trials: found.trials,
        versions: found.versions,
        rows: found.rows,
        units: found.units,
    }
}

fn job(job: Job) -> FailingJobRow {
    FailingJobRow {
        id: job.id,
        kind: job.kind,
        error: job.last_error.unwrap_or_default(),
        tries: job.attempts,
        since: instant(job.created_at),
        is_given_up: job.failed_at.is_some(),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FailingJobPath {
    /// Id of the job.
    #[schemars(length(max = 100))]
    id: String,
}

async fn retry(cx: Cx, input: FailingJobPath) -> Result<PageResponse, ApiError> {
    administrator(&cx).await?;
    // A job that runs now, or is done by now, needs no other try; the page shows what there is.
    cx.app.store.staff().job_again(&input.id, cx.now).await?;
    PageResponse::see(&format!("{PATH}#jb"))
}
