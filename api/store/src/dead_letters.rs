//! Dead letters: messages that could not be processed, stored until an operator deals with them.
//!
//! Invariant: a dead letter is stored once per message and replayed at most once. A replay reopens its contribution
//! under a new generation, so a late outcome of the old one cannot close it.

use sqlx::AnyConnection;
use types::vocabulary::ContributionStatus;
use types::{ContributionId, Timestamp, UnitId};

mod units;

pub use units::UnitReplay;

use crate::contributions::outbox;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, bigint, replace_nul, row};
use crate::writer::Change;
use crate::{Error, Store};

/// A message that could not be processed, with its address in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Id of the dead letter, chosen by the caller.
    pub id: String,
    /// Topic of the message.
    pub topic: String,
    /// Partition within the topic.
    pub partition: u32,
    /// Offset within the partition.
    pub offset: u64,
    /// Contribution of the message, if it could be determined.
    pub contribution: Option<ContributionId>,
    /// Version of a knowledge unit, if the message is of one.
    pub unit: Option<UnitId>,
    /// Bytes of the message.
    pub payload: Vec<u8>,
    /// Reason that processing failed.
    pub reason: String,
    /// Time of the failure.
    pub now: Timestamp,
}

/// The result of [`Store::dead_letter_add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterAdded {
    /// The letter is stored now.
    Added,
    /// The letter was stored before.
    Known,
}

row! {
    /// A dead letter as listed, without its payload.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DeadLetterEntry {
        /// Id of the dead letter.
        pub id: String,
        /// Topic of the message.
        pub topic: String,
        /// Partition within the topic.
        pub partition: u32 = "log_partition",
        /// Offset within the partition.
        pub offset: u64 = "log_offset",
        /// Contribution of the message, if it could be determined.
        pub contribution: Option<ContributionId> = "contribution_id",
        /// Version of a knowledge unit, if the message is of one.
        pub unit: Option<UnitId> = "unit_id",
        /// Reason that processing failed.
        pub reason: String,
        /// Time when it was stored.
        pub created_at: Timestamp,
        /// Time of the replay, if any.
        pub replayed_at: Option<Timestamp>,
    }
}

/// The result of [`Store::dead_letter_replay`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Replay {
    /// Its contribution, rejected as unprocessable, is open again and due.
    Reopened {
        /// Id of the contribution.
        contribution: ContributionId,
        /// Generation of the new submission.
        generation: u32,
    },
    /// Its contribution is open anyway and due now; the letter can be replayed again.
    Requeued {
        /// Id of the contribution.
        contribution: ContributionId,
    },
    /// Its contribution was decided otherwise; nothing changed.
    Decided {
        /// Id of the contribution.
        contribution: ContributionId,
        /// Status that it was decided with.
        status: ContributionStatus,
    },
    /// It is of a version of a knowledge unit.
    Unit(UnitReplay),
    /// The letter belongs to no contribution, so it cannot be replayed; nothing changed.
    NoContribution,
    /// The message cannot be read even now; nothing changed.
    Unreadable,
    /// The letter was replayed before; nothing changed.
    AlreadyReplayed,
    /// No dead letter has this id.
    Unknown,
}

/// The reject code of contributions whose message could not be processed; the only one that a replay reopens.
const UNPROCESSABLE: &str = "unprocessable";

impl Store {
    /// Stores a dead letter. The same message at the same address is stored once, under its first id.
    ///
    /// # Errors
    /// [`Error::Refused`] if the id belongs to another message.
    pub async fn dead_letter_add(&self, letter: DeadLetter) -> Result<DeadLetterAdded, Error> {
        let offset = bigint("log_offset", letter.offset)?;
        self.write_aside(tx!(async move |cx| {
            let inserted = sql!(
                "INSERT INTO dead_letters
                     (id, topic, log_partition, log_offset, payload_hash, contribution_id, reason, created_at,
                      payload, unit_id)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                 ON CONFLICT (topic, log_partition, log_offset, payload_hash) DO NOTHING",
                letter.id,
                letter.topic,
                letter.partition,
                offset,
                // The hash is part of the key, because the same offset of a recreated topic may
                // hold another message.
                blake3::hash(&letter.payload).as_bytes(),
                letter.contribution,
                replace_nul(&letter.reason),
                letter.now,
                letter.payload,
                letter.unit,
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(match inserted {
                0 => DeadLetterAdded::Known,
                _ => DeadLetterAdded::Added,
            }))
        }))
        .await
    }

    /// Returns a page of the dead letters by id, including replayed ones: those after `after`, or the first.
    pub async fn dead_letters(&self, limit: u32, after: Option<&str>) -> Result<Vec<DeadLetterEntry>, Error> {
        self.all(sql!(
            text!(
                "SELECT ",
                DeadLetterEntry::COLUMNS,
                " FROM dead_letters WHERE id > $1 ORDER BY id LIMIT $2"
            ),
            after.unwrap_or_default(),
            limit
        ))
        .await
    }

    /// Replays a dead letter.
    ///
    /// `renew` builds the new submission from the message and its new generation, or returns `None` if the message
    /// cannot be read. It is called only if a contribution rejected as `unprocessable` is reopened, and more than once
    /// if that loses a race with another process.
    pub async fn dead_letter_replay(
        &self,
        id: String,
        renew: impl FnOnce(&[u8], u32) -> Option<Vec<u8>> + Clone + Send + 'static,
        now: Timestamp,
    ) -> Result<Replay, Error> {
        self.write(tx!(async move |cx| {
            let taken = sql!(
                "UPDATE dead_letters SET replayed_at = $2 WHERE id = $1 AND replayed_at IS NULL
                 RETURNING contribution_id, unit_id, payload",
                id.as_str(),
                now
            )
            .row_if_any(cx)
            .await?;
            // The letter is marked as replayed first, so that only one of two concurrent
            // replays continues.
            let Some(letter) = taken else {
                let known = exists(cx, &id).await?;
                return Ok(Change::Undo(if known {
                    Replay::AlreadyReplayed
                } else {
                    Replay::Unknown
                }));
            };
            if let Some(unit) = letter.get("unit_id")? {
                return units::reopen(cx, &id, unit, letter.value("payload")?, renew, now).await;
            }
            let Some(contribution) = letter.get("contribution_id")? else {
                return Ok(Change::Undo(Replay::NoContribution));
            };
            reopen(cx, &id, contribution, letter.value("payload")?, renew, now).await
        }))
        .await
    }
}

async fn reopen(
    cx: &mut AnyConnection,
    letter: &str,
    contribution: ContributionId,
    payload: &[u8],
    renew: impl FnOnce(&[u8], u32) -> Option<Vec<u8>> + Send,
    now: Timestamp,
) -> Result<Change<Replay>, Error> {
    // Writing the row locks it: an outcome that is being applied is waited for, and the status
    // read below stays valid.
    sql!("UPDATE contributions SET status = status WHERE id = $1", contribution)
        .run(cx)
        .await?;
    let reopened = sql!(
        "UPDATE contributions
         SET generation = generation + 1, status = 'submitted', decided_at = NULL, reject_code = NULL,
             reject_message = NULL, tallies = NULL, verdicts = NULL
         WHERE id = $1 AND status = 'rejected' AND reject_code = $2
           AND NOT EXISTS (SELECT 1 FROM projects
                           WHERE projects.id = contributions.project_id AND projects.deleted_at IS NOT NULL)
         RETURNING generation, project_id",
        contribution,
        UNPROCESSABLE
    )
    .row_if_any(cx)
    .await?;
    if let Some(row) = reopened {
        let generation = row.get("generation")?;
        // Undoing the change restores the rejection and the letter.
        let Some(submission) = renew(payload, generation) else {
            return Ok(Change::Undo(Replay::Unreadable));
        };
        outbox::insert(cx, contribution, row.get("project_id")?, submission, now).await?;
        return Ok(Change::Keep(Replay::Reopened {
            contribution,
            generation,
        }));
    }
    if outbox::reschedule(cx, contribution, now).await? {
        // Its rejection may still be on its way, and the letter will be needed to reopen it
        // then.
        sql!("UPDATE dead_letters SET replayed_at = NULL WHERE id = $1", letter)
            .run(cx)
            .await?;
        return Ok(Change::Keep(Replay::Requeued { contribution }));
    }
    // Neither reopened nor open: the contribution was decided in another way.
    let decided = sql!("SELECT status FROM contributions WHERE id = $1", contribution)
        .row_if_any(cx)
        .await?;
    Ok(Change::Undo(match decided {
        Some(row) => Replay::Decided {
            contribution,
            status: row.get("status")?,
        },
        None => Replay::NoContribution,
    }))
}

async fn exists(cx: &mut AnyConnection, id: &str) -> Result<bool, Error> {
    let row = sql!("SELECT id FROM dead_letters WHERE id = $1", id)
        .row_if_any(cx)
        .await?;
    Ok(row.is_some())
}
