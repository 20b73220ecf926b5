//! Appeals against rejections: a second judge reviews the same version once.
//!
//! Invariant: a version has at most one appeal, whatever comes of it. While it is open the version is in work, under a new
//! generation, so that no late outcome of the first judge decides it.

use sqlx::AnyConnection;
use types::unit::{Judge, UnitResolution};
use types::vocabulary::{AppealStatus, UnitStatus};
use types::{Timestamp, UnitId};

use super::unit_outcome::{UNPROCESSABLE, UnitOutcome};
use super::{Knowledge, lock};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, json, json_text, length, replace_nul, row};
use crate::writer::Change;

/// Codes of rejections that no judge decided: fixed rules, other texts, and ends of the unit. Another judge finds the same.
const FINAL_CODES: [&str; 7] = [
    "personal_data",
    "duplicate_exact",
    "duplicate_near",
    "duplicate_parts",
    "chain_retired",
    "erased",
    UNPROCESSABLE,
];

/// Returns true if no judge decided a rejection with this code, so that it cannot be appealed.
pub fn is_final_rejection(code: &str) -> bool {
    FINAL_CODES.contains(&code)
}

/// An appeal to begin.
#[derive(Clone, Debug)]
pub struct NewAppeal {
    /// Version that was rejected.
    pub unit: UnitId,
    /// Generation of the rejection; that of the submission is the next one.
    pub generation: u32,
    /// The encoded submission to the second judge.
    pub submission: Vec<u8>,
    /// Reason and end of a hold of the reviews, while there is one.
    pub held: Option<(String, Option<Timestamp>)>,
    /// Time of the appeal.
    pub now: Timestamp,
    /// Time of the first append to the log by the sweeper.
    pub first_sweep: Timestamp,
}

/// The result of [`Knowledge::appeal`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Appealed {
    /// The version is in work again, and the second judge decides.
    Open,
    /// There was an appeal before; nothing changed.
    Before {
        /// State of that appeal.
        status: AppealStatus,
    },
    /// The version is not rejected; nothing changed.
    NotRejected {
        /// Status of the version.
        status: UnitStatus,
    },
    /// No judge decided the rejection, so that another one cannot decide it otherwise; nothing changed.
    Final {
        /// Code of the rejection.
        code: String,
    },
    /// The unit is retired, taken down or erased; nothing changed.
    Ended,
    /// The version revises one that is not the latest any more; nothing changed.
    NotLatest {
        /// The latest published version.
        latest: UnitId,
    },
    /// Another version of the unit is in work; nothing changed.
    InValidation {
        /// That version.
        unit: UnitId,
    },
    /// The operator has the same text in work or published; nothing changed.
    Duplicate {
        /// Version with that text.
        unit: UnitId,
        /// Status of that version.
        status: UnitStatus,
    },
}

row! {
    /// An appeal as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Appeal {
        /// State of the appeal.
        pub status: AppealStatus,
        /// Time of the appeal.
        pub at: Timestamp,
        /// Code of the rejection that it is against.
        pub code: String,
        /// Sentence of that rejection; empty once erased.
        pub message: String,
        /// Sentence of the second judge, once decided; empty once erased.
        pub verdict: Option<String>,
        /// The second judge, if one decided.
        pub judge: Option<Judge> = "judge" => judge,
        /// Time of the decision.
        pub decided_at: Option<Timestamp>,
    }
}

fn judge(row: &sqlx::any::AnyRow, column: &'static str) -> Result<Option<Judge>, Error> {
    let judge: Option<String> = row.get(column)?;
    judge.map(|judge| json(column, &judge)).transpose()
}

impl Knowledge<'_> {
    /// Opens a rejected version again for the second judge, with this submission.
    ///
    /// # Errors
    /// [`Error::Missing`] if the version does not exist.
    pub async fn appeal(&self, new: NewAppeal) -> Result<Appealed, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let missing = || super::changes::missing(new.unit);
                let found = sql!("SELECT chain_id FROM units WHERE id = $1", new.unit)
                    .row_if_any(cx)
                    .await?
                    .ok_or_else(missing)?;
                // The chain comes first, as in every change of a unit. An outcome that is being applied is waited for.
                let chain = lock(cx, found.get("chain_id")?).await?.ok_or_else(missing)?;
                if let Some(appeal) = of(cx, new.unit).await? {
                    return Ok(Change::Undo(Appealed::Before { status: appeal.status }));
                }
                let version = sql!(
                    "SELECT status, predecessor, reject_code FROM units WHERE id = $1",
                    new.unit
                )
                .row(cx)
                .await?;
                let status: UnitStatus = version.get("status")?;
                if status != UnitStatus::Rejected {
                    return Ok(Change::Undo(Appealed::NotRejected { status }));
                }
                let code: String = version.get("reject_code")?;
                if FINAL_CODES.contains(&code.as_str()) {
                    return Ok(Change::Undo(Appealed::Final { code }));
                }
                if chain.retired_at.is_some() || chain.taken_down.is_some() || chain.erased_at.is_some() {
                    return Ok(Change::Undo(Appealed::Ended));
                }
                let predecessor: Option<UnitId> = version.get("predecessor")?;
                if let Some(latest) = chain.latest.filter(|latest| Some(*latest) != predecessor) {
                    return Ok(Change::Undo(Appealed::NotLatest { latest }));
                }
                if let Some(other) = in_the_way(cx, &new, chain.id).await? {
                    return Ok(Change::Undo(other));
                }
                if !reopen(cx, &new).await? {
                    // A replay of a dead letter was faster.
                    return Ok(Change::Undo(Appealed::NotRejected {
                        status: UnitStatus::Queued,
                    }));
                }
                Ok(Change::Keep(Appealed::Open))
            }))
            .await
    }

    /// Returns the appeal against the rejection of a version, if there was one.
    pub async fn appeal_of(&self, unit: UnitId) -> Result<Option<Appeal>, Error> {
        self.0
            .optional(sql!(
                text!("SELECT ", Appeal::COLUMNS, " FROM unit_appeals WHERE unit_id = $1"),
                unit
            ))
            .await
    }
}

async fn of(cx: &mut AnyConnection, unit: UnitId) -> Result<Option<Appeal>, Error> {
    sql!(
        text!("SELECT ", Appeal::COLUMNS, " FROM unit_appeals WHERE unit_id = $1"),
        unit
    )
    .optional(cx)
    .await
}

/// Returns what keeps the version from being in work beside what else there is.
async fn in_the_way(cx: &mut AnyConnection, new: &NewAppeal, chain: UnitId) -> Result<Option<Appealed>, Error> {
    let open = sql!(
        "SELECT id FROM units WHERE chain_id = $1 AND status IN ('queued', 'waiting')",
        chain
    )
    .row_if_any(cx)
    .await?;
    if let Some(open) = open {
        return Ok(Some(Appealed::InValidation { unit: open.get("id")? }));
    }
    // A rejected text may come again, and may have done so meanwhile.
    let same = sql!(
        "SELECT other.id AS id, other.status AS status FROM units
         JOIN units AS other ON other.operator_id = units.operator_id AND other.text_hash = units.text_hash
         WHERE units.id = $1 AND other.status IN ('queued', 'waiting', 'published')",
        new.unit
    )
    .row_if_any(cx)
    .await?;
    same.map(|row| {
        Ok(Appealed::Duplicate {
            unit: row.get("id")?,
            status: row.get("status")?,
        })
    })
    .transpose()
}

/// Puts the version in work and writes its appeal. Returns false if it is of another generation.
async fn reopen(cx: &mut AnyConnection, new: &NewAppeal) -> Result<bool, Error> {
    let status = if new.held.is_some() {
        UnitStatus::Waiting
    } else {
        UnitStatus::Queued
    };
    let (reason, until) = new
        .held
        .as_ref()
        .map_or((None, None), |(reason, until)| (Some(reason.as_str()), *until));
    let written = sql!(
        "INSERT INTO unit_appeals (unit_id, at, status, code, message)
         SELECT id, $3, 'open', reject_code, reject_message FROM units
         WHERE id = $1 AND generation = $2 AND status = 'rejected'",
        new.unit,
        new.generation,
        new.now
    )
    .run(cx)
    .await?;
    if written == 0 {
        return Ok(false);
    }
    sql!(
        "UPDATE units
         SET generation = generation + 1, status = $2, waiting_reason = $3, resumes_after = $4, decided_at = NULL,
             reject_code = NULL, reject_message = NULL, accuracy = NULL, novelty = NULL, reproducibility = NULL,
             specificity = NULL, total = NULL, judge = NULL
         WHERE id = $1",
        new.unit,
        status,
        reason,
        until
    )
    .run(cx)
    .await?;
    sql!(
        "INSERT INTO unit_outbox (unit_id, attempts, next_sweep, byte_count, submission) VALUES ($1, 0, $2, $3, $4)",
        new.unit,
        new.first_sweep,
        length(&new.submission),
        new.submission.clone()
    )
    .run(cx)
    .await?;
    Ok(true)
}

/// Closes the appeal of a version that was decided, if one is open.
pub(super) async fn decide(cx: &mut AnyConnection, outcome: &UnitOutcome) -> Result<(), Error> {
    let (status, verdict) = match &outcome.resolution {
        UnitResolution::Published { scores, .. } => {
            let verdict = format!("Total {} of 100; the version is published.", scores.total);
            (AppealStatus::Granted, verdict)
        }
        // Nobody judged it. An administrator replays it, and the appeal is as open as it was.
        UnitResolution::Rejected { code, .. } if code == UNPROCESSABLE => return Ok(()),
        UnitResolution::Rejected { message, .. } => (AppealStatus::Denied, message.clone()),
        UnitResolution::Waiting { .. } => return Ok(()),
    };
    let judge = outcome.report.iter().rev().find_map(|entry| entry.judge.as_ref());
    close(cx, outcome.id, status, &verdict, judge, outcome.at).await
}

/// Closes the open appeal of a version with this verdict, if there is one.
pub(super) async fn close(
    cx: &mut AnyConnection,
    unit: UnitId,
    status: AppealStatus,
    verdict: &str,
    judge: Option<&Judge>,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "UPDATE unit_appeals SET status = $2, verdict = $3, judge = $4, decided_at = $5
         WHERE unit_id = $1 AND status = 'open'",
        unit,
        status,
        replace_nul(verdict),
        judge.map(|judge| json_text("unit_appeals", judge)).transpose()?,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}
