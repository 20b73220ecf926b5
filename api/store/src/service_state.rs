//! State of parts of the service that every process must know, and the numbers that are given in the order of commits.
//!
//! Invariant: a state changes in the transaction of what changed it, and its generation counts the changes. A number of
//! [`next`] is taken under a lock that ends with the transaction, so a reader that sees a number sees all before it.

use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp};

use crate::query::{sql, tx};
use crate::row::{Columns, json, json_text};
use crate::writer::Change;
use crate::{Error, Store};

/// Name of the state of the review of units.
const VALIDATION: &str = "validation";

/// State of the review of units and public datasets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationState {
    /// True while an administrator has paused it.
    pub paused: bool,
    /// The hold that the latest outcome told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Time of the latest decision that a judge took part in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// Time of the latest version that was sent to see if the hold is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed_at: Option<Timestamp>,
}

/// A hold: versions cannot be judged now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// `budget` or `provider`.
    pub reason: String,
    /// Time at which it ends, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_after: Option<Timestamp>,
    /// Time of the outcome that told of it.
    pub since: Timestamp,
}

impl ValidationState {
    /// Returns the reason and the end of the hold that stops reviews at a time, if there is one. A pause outranks what
    /// outcomes told of.
    pub fn held(&self, now: Timestamp) -> Option<(String, Option<Timestamp>)> {
        if self.paused {
            return Some(("paused".to_owned(), None));
        }
        let hold = self.hold.as_ref()?;
        // A budget is there again at its time. A provider has answered only when a decision says so.
        let is_over = hold.reason == "budget" && hold.resumes_after.is_some_and(|until| until <= now);
        (!is_over).then(|| (hold.reason.clone(), hold.resumes_after))
    }
}

impl Store {
    /// Returns the state of the review, and the number of its changes.
    pub async fn validation(&self) -> Result<(ValidationState, u64), Error> {
        self.read(async {
            let row = sql!(
                "SELECT value, generation FROM service_state WHERE name = $1",
                VALIDATION
            )
            .row(&mut self.readers())
            .await?;
            Ok((json("value", row.value("value")?)?, row.get("generation")?))
        })
        .await
    }

    /// Pauses the review, or ends its pause. Returns false if it was so before. When a pause ends, what waits for its
    /// end is due at once.
    pub async fn validation_pause(&self, paused: bool, now: Timestamp) -> Result<bool, Error> {
        self.write_aside(tx!(async move |cx| {
            let before = validation_lock(cx).await?;
            // Without a change the generation must not rise, which would make every process read
            // the state again.
            if before.paused == paused {
                return Ok(Change::Undo(false));
            }
            validation_set(cx, &ValidationState { paused, ..before }, now).await?;
            // Units that waited for the pause are due at once; without this they would go on only at their
            // next sweep.
            if !paused {
                for due in [
                    "UPDATE unit_outbox SET attempts = 0, next_sweep = $1 WHERE unit_id IN
                     (SELECT id FROM units WHERE status = 'waiting' AND waiting_reason = 'paused')",
                    "UPDATE outbox SET attempts = 0, next_sweep = $1 WHERE contribution_id IN
                     (SELECT id FROM contributions WHERE status = 'waiting' AND waiting_reason = 'paused')",
                ] {
                    sql!(due, now).run(cx).await?;
                }
            }
            Ok(Change::Keep(true))
        }))
        .await
    }

    /// Returns true if nobody sent a version in the last `interval` to see if the hold is over, and notes that one is
    /// sent now.
    pub async fn validation_probe(&self, now: Timestamp, interval: std::time::Duration) -> Result<bool, Error> {
        self.write_aside(tx!(async move |cx| {
            let before = validation_lock(cx).await?;
            // One process probes for all: with many replicas, a provider that is down would be
            // asked by each.
            if before.probed_at.is_some_and(|at| at.plus(interval) > now) {
                return Ok(Change::Undo(false));
            }
            let probed_at = Some(now);
            validation_set(cx, &ValidationState { probed_at, ..before }, now).await?;
            Ok(Change::Keep(true))
        }))
        .await
    }
}

/// Locks the state of the review until the transaction ends, and returns it.
pub(crate) async fn validation_lock(cx: &mut AnyConnection) -> Result<ValidationState, Error> {
    // A write that changes nothing locks the row on both engines, so two changes of the state follow
    // each other.
    let row = sql!(
        "UPDATE service_state SET name = name WHERE name = $1 RETURNING value",
        VALIDATION
    )
    .row(cx)
    .await?;
    json("value", row.value("value")?)
}

/// Sets the state of the review. The caller holds its lock.
pub(crate) async fn validation_set(
    cx: &mut AnyConnection,
    state: &ValidationState,
    now: Timestamp,
) -> Result<(), Error> {
    let value = json_text("value", state)?;
    sql!(
        "UPDATE service_state SET value = $2, generation = generation + 1, at = $3 WHERE name = $1",
        VALIDATION,
        value,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Returns the next number of a counter. Numbers become visible in their order.
pub(crate) async fn next(cx: &mut AnyConnection, counter: &'static str) -> Result<i64, Error> {
    // The row is locked until the commit. A sequence would be faster, and its numbers would become
    // visible out of order: a reader could pass one that commits later.
    sql!(
        "UPDATE counters SET value = value + 1 WHERE name = $1 RETURNING value",
        counter
    )
    .row(cx)
    .await?
    .get("value")
}

/// Notes that an index of the search must read an item again. The last statement of a transaction, because it makes
/// other transactions that change the index wait.
pub(crate) async fn search_changed(
    cx: &mut AnyConnection,
    kind: ItemKind,
    item: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let seq = next(cx, "search").await?;
    sql!(
        "INSERT INTO search_changes (seq, kind, item_id, at) VALUES ($1, $2, $3, $4)",
        seq,
        kind,
        item,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Notes that an index of the search must read every published unit of an operator again. The last statement of a
/// transaction, as [`search_changed`] is.
pub(crate) async fn search_changed_of_seller(
    cx: &mut AnyConnection,
    seller: OperatorId,
    now: Timestamp,
) -> Result<(), Error> {
    let units: i64 = sql!(
        "SELECT COUNT(*) AS units FROM chains WHERE operator_id = $1 AND latest_unit IS NOT NULL",
        seller
    )
    .row(cx)
    .await?
    .get("units")?;
    let last: i64 = sql!(
        "UPDATE counters SET value = value + $1 WHERE name = 'search' RETURNING value",
        units
    )
    .row(cx)
    .await?
    .get("value")?;
    // A unit that was published meanwhile has a change of its own, and must not take a number of another.
    sql!(
        "INSERT INTO search_changes (seq, kind, item_id, at)
         SELECT $1 + ROW_NUMBER() OVER (ORDER BY id), 'unit', id, $2
         FROM (SELECT id FROM chains WHERE operator_id = $3 AND latest_unit IS NOT NULL ORDER BY id LIMIT $4) AS shown",
        last - units,
        now,
        seller,
        units
    )
    .run(cx)
    .await?;
    Ok(())
}
