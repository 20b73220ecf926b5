//! Rules between the rows of published units and the platform's table.
//!
//! Invariant: the rows are counted before the table is read, so work that goes on meanwhile is never a violation. A row
//! of the table without a published version is none: a worker that lost its turn leaves one.

use catalog::check::Report;
use catalog::platform::KNOWLEDGE;
use store::Store;

use super::compare::CheckViolation;
use crate::config::Config;
use crate::layout::DataLayout;
use crate::objects;

/// Versions read at a time.
const VERSIONS_PER_PAGE: u32 = 1_000;

/// Returns the rules that the table breaks.
pub(super) async fn table(config: &Config, layout: &DataLayout, store: &Store) -> anyhow::Result<Vec<CheckViolation>> {
    let (mut published, mut after) = (0, None);
    loop {
        let page = store.knowledge().ever_published(after, VERSIONS_PER_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        published += page.len() as u64;
    }
    let report = match objects::open_to_read(config, layout)? {
        Some(tables) => catalog::check::table(&tables, KNOWLEDGE).await?,
        None => Report::default(),
    };
    let broken = report.violations.iter();
    let mut violations: Vec<_> = broken
        .map(|violation| CheckViolation::new(violation.rule, format!("{}: {}", violation.at, violation.found)))
        .collect();
    if report.records < published {
        let detail = format!("{published} published versions, {} rows in the table", report.records);
        violations.push(CheckViolation::new("unit_without_row", detail));
    }
    Ok(violations)
}
