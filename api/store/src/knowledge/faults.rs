//! Injected bugs of this package, which the crash tests must detect.
//!
//! Invariant: without the feature `faults` each function does nothing.

#[cfg(not(feature = "faults"))]
use std::future::{Ready, ready};

use sqlx::AnyConnection;
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};
use types::unit::UnitScores;
#[cfg(feature = "faults")]
use types::vocabulary::PointsKind;

use super::UnitOutcome;
use crate::Error;
#[cfg(feature = "faults")]
use crate::knowledge::lock;
#[cfg(feature = "faults")]
use crate::points::{self, NewPoints};
#[cfg(feature = "faults")]
use crate::row::Columns;

/// Does nothing. Injected bug: gives the points of a published version again, under a key of its own.
#[cfg(feature = "faults")]
pub(super) async fn may_give_again(
    cx: &mut AnyConnection,
    outcome: &UnitOutcome,
    scores: UnitScores,
) -> Result<(), Error> {
    if !is_injected(InjectedBug::PointsTwice) {
        return Ok(());
    }
    let found = sqlx::query("SELECT agent_id, chain_id FROM units WHERE id = $1 AND number IS NOT NULL")
        .bind(outcome.id.to_string())
        .fetch_optional(&mut *cx)
        .await?;
    let Some(row) = found else { return Ok(()) };
    let Some(chain) = lock(cx, row.parsed("chain_id")?).await? else {
        return Ok(());
    };
    let new = NewPoints {
        agent: row.parsed("agent_id")?,
        operator: chain.operator,
        kind: PointsKind::Published,
        key: format!("{}:again", outcome.id),
        points: i64::from(scores.total),
        subject: outcome.id.to_string(),
        at: outcome.at,
    };
    points::give(cx, &new).await.map(|_| ())
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(super) fn may_give_again(
    _cx: &mut AnyConnection,
    _outcome: &UnitOutcome,
    _scores: UnitScores,
) -> Ready<Result<(), Error>> {
    ready(Ok(()))
}
