//! Counts of limits that hold for an hour or longer.
//!
//! Invariant: the decision on an event and its count are one transaction on a locked row, so replicas and restarts
//! admit together what one process would.

use sqlx::AnyConnection;
use types::Timestamp;

use crate::query::{sql, text, tx};
use crate::row::{Row as _, row};
use crate::writer::Change;
use crate::{Error, Store};

/// Event to count, or several of one kind.
#[derive(Clone, Debug)]
pub struct Event {
    /// Name of the limit.
    pub rule: &'static str,
    /// Subject of the limit, as a hash.
    pub subject: String,
    /// Number of the window that contains the event, since 1970.
    pub window: i64,
    /// Instant from which the count no longer matters: the end of the next window.
    pub ends_at: Timestamp,
    /// Number of events, which are counted together or not at all.
    pub count: u32,
}

row! {
    /// Events counted so far.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Counted {
        /// Number of events in the window.
        pub used: u32,
        /// Number of events in the window before.
        pub before: u32 = "used_before",
    }
}

impl Store {
    /// Counts an event if `admit` says so, and returns the counts before it. An event of a window that is over counts
    /// in the one that has begun.
    pub async fn counter_take<F>(&self, event: Event, admit: F) -> Result<Counted, Error>
    where
        F: Fn(Counted) -> bool + Clone + Send + 'static,
    {
        self.write_aside(tx!(async move |cx| {
            let counted = counted(cx, &event).await?;
            // A refused event is not counted: otherwise a caller that goes on trying would never be
            // admitted again.
            if !admit(counted) {
                return Ok(Change::Undo(counted));
            }
            count(cx, &event).await?;
            Ok(Change::Keep(counted))
        }))
        .await
    }

    /// Deletes the counts that no longer matter at `now`, and returns their number.
    pub async fn counters_prune(&self, now: Timestamp) -> Result<u64, Error> {
        self.write_aside(tx!(async move |cx| {
            let deleted = sql!("DELETE FROM limit_counters WHERE ends_at <= $1", now)
                .run(cx)
                .await?;
            Ok(Change::written_if(deleted > 0, deleted))
        }))
        .await
    }
}

/// Locks the row of an event's count and returns what is counted. Call [`count`] to add the event.
pub(crate) async fn counted(cx: &mut AnyConnection, event: &Event) -> Result<Counted, Error> {
    // The row is locked by writing it. Windows that are over become the one before, or nothing. A clock
    // that was set back by more than a window begins anew.
    sql!(
        text!(
            "INSERT INTO limit_counters (rule, subject, number, used, used_before, ends_at)
             VALUES ($1, $2, $3, 0, 0, $4)
             ON CONFLICT (rule, subject) DO UPDATE SET
                 used_before = CASE
                     WHEN limit_counters.number IN (excluded.number, excluded.number + 1)
                         THEN limit_counters.used_before
                     WHEN limit_counters.number = excluded.number - 1 THEN limit_counters.used
                     ELSE 0 END,
                 used = CASE
                     WHEN limit_counters.number IN (excluded.number, excluded.number + 1)
                         THEN limit_counters.used
                     ELSE 0 END,
                 ends_at = CASE
                     WHEN limit_counters.number = excluded.number + 1 THEN limit_counters.ends_at
                     ELSE excluded.ends_at END,
                 number = CASE
                     WHEN limit_counters.number = excluded.number + 1 THEN limit_counters.number
                     ELSE excluded.number END
             RETURNING ",
            Counted::COLUMNS
        ),
        event.rule,
        event.subject.clone(),
        event.window,
        event.ends_at
    )
    .one(cx)
    .await
}

/// Adds an event to its count, whose row [`counted`] has locked.
pub(crate) async fn count(cx: &mut AnyConnection, event: &Event) -> Result<(), Error> {
    sql!(
        "UPDATE limit_counters SET used = used + $3 WHERE rule = $1 AND subject = $2",
        event.rule,
        event.subject.clone(),
        event.count
    )
    .run(cx)
    .await?;
    Ok(())
}
