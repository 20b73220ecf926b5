//! Injected bug of units, which the crash tests must detect.

use sqlx::AnyConnection;
use types::unit::UnitScores;
use types::vocabulary::PointsKind;

use super::UnitOutcome;
use crate::Error;
use crate::knowledge::lock;
use crate::points::{self, NewPoints};
use crate::row::Columns;

/// Gives the points of a published version again, under a key of its own.
pub(super) async fn give_again(cx: &mut AnyConnection, outcome: &UnitOutcome, scores: UnitScores) -> Result<(), Error> {
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
