//! Acknowledgement of versions: first ones and revisions.
//!
//! Invariant: the allowance, the version, its chain and its outbox row are one transaction. The row of the allowance is
//! the lock of the operator, so limits are exact; what a lock of another day lets pass, a unique key refuses.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::{AllowanceKind, ItemKind, Language, UnitAction, UnitStatus};
use types::{AgentId, OperatorId, Timestamp, UnitId, fault};

use super::Knowledge;
use crate::allowances::{self, Allowance};
use crate::query::{sql, tx};
use crate::row::{Columns, bigint, length, texts};
use crate::writer::Change;
use crate::{Error, money};

/// Values of a new version.
#[derive(Clone, Debug)]
pub struct NewUnit {
    /// Id of the version. A first version gives it to its chain.
    pub id: UnitId,
    /// The version that it revises, and its chain; `None` for a first version.
    pub revises: Option<Revised>,
    /// Agent that submits it.
    pub agent: AgentId,
    /// Operator that the agent acts for.
    pub operator: OperatorId,
    /// Title of the version, as submitted.
    pub title: String,
    /// Text of the version, as submitted.
    pub body: String,
    /// Category that the author chose.
    pub category: String,
    /// Source that the author declared.
    pub source_declaration: String,
    /// Hash of the normalised text.
    pub text_hash: [u8; 32],
    /// Language of the text.
    pub language: Language,
    /// Code points of the text.
    pub length: u64,
    /// Identifier of the licence; of a first version.
    pub license: String,
    /// Price in micro-USDC; of a first version.
    pub price_micro: Option<i64>,
    /// True if buyers may pay with given credits; of a first version.
    pub trial_sale: bool,
    /// The encoded submission.
    pub submission: Vec<u8>,
    /// Reason and end of the hold that it meets at once, if there is one.
    pub held: Option<(String, Option<Timestamp>)>,
    /// Time of the acknowledgement.
    pub now: Timestamp,
    /// Time to append the submission again, if it still has no outcome.
    pub first_sweep: Timestamp,
}

/// A version to revise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revised {
    /// Chain of the version.
    pub chain: UnitId,
    /// Id of the version that was stored.
    pub unit: UnitId,
}

/// The most calls of an agent in an hour.
#[derive(Clone, Copy, Debug)]
pub struct HourlyLimit {
    /// Greatest number of calls.
    pub most: u32,
    /// Length of the hour.
    pub window: Duration,
}

/// The result of [`Knowledge::submit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum UnitSubmitted {
    /// The version is acknowledged: it is durable, and is submitted until it has an outcome.
    Submitted,
    /// The operator has a version with the same text that is in work or published; nothing changed.
    Duplicate {
        /// Version that has the same text.
        unit: UnitId,
        /// Status of that version as stored.
        status: UnitStatus,
    },
    /// The version to revise is not the latest published one; nothing changed.
    NotLatest {
        /// The latest published version.
        latest: UnitId,
    },
    /// A revision is in work; nothing changed.
    InValidation {
        /// Revision that is in review.
        unit: UnitId,
    },
    /// The chain has no version that can be revised: it is retired or hidden, or nothing is published; nothing changed.
    NotPublished,
    /// The agent made as many calls in the hour as it may; nothing changed.
    Hourly {
        /// Time at which the next call is accepted.
        until: Timestamp,
    },
    /// The day's allowance is used up; nothing changed.
    AllowanceSpent,
}

impl Knowledge<'_> {
    /// Acknowledges a version, unless it conflicts with what there is, the agent is at its hourly limit or the allowance
    /// is spent, checked in this order.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if the agent does not exist. After [`Error::Unavailable`] or
    /// [`Error::TimedOut`] the version may or may not be acknowledged.
    pub async fn submit(
        &self,
        new: NewUnit,
        hourly: HourlyLimit,
        allowance: Allowance,
    ) -> Result<UnitSubmitted, Error> {
        fault::point("ack.begin");
        texts(&[
            ("title", &new.title),
            ("body", &new.body),
            ("source_declaration", &new.source_declaration),
        ])?;
        let code_points = bigint("length", new.length)?;
        let id = new.id.to_string();
        let made = move |_: &UnitSubmitted| id;
        let outcome = self
            .0
            .make_aside(
                made,
                tx!(async move |cx| {
                    // First, as everything below counts under this lock. The order of the refusals is
                    // fixed by it: conflict, hour, day.
                    allowances::lock(cx, new.operator, AllowanceKind::Knowledge, allowance.day).await?;
                    if let Some(conflict) = conflict(cx, &new).await? {
                        return Ok(Change::Undo(conflict));
                    }
                    if let Some(until) = busy_until(cx, &new, hourly).await? {
                        return Ok(Change::Undo(UnitSubmitted::Hourly { until }));
                    }
                    if allowances::spend(cx, new.operator, AllowanceKind::Knowledge, allowance)
                        .await?
                        .is_none()
                    {
                        return Ok(Change::Undo(UnitSubmitted::AllowanceSpent));
                    }
                    if !insert(cx, &new, code_points).await? {
                        // A version of another day, whose row of the allowance is no lock of this one, was faster.
                        let raced = conflict(cx, &new).await?.unwrap_or(UnitSubmitted::NotPublished);
                        return Ok(Change::Undo(raced));
                    }
                    fault::point("ack.rows");
                    Ok(Change::Keep(UnitSubmitted::Submitted))
                }),
            )
            .await?;
        if outcome == UnitSubmitted::Submitted {
            fault::point("ack.commit");
        }
        Ok(outcome)
    }
}

/// Returns the reason for which the version cannot be taken, if there is one.
async fn conflict(cx: &mut AnyConnection, new: &NewUnit) -> Result<Option<UnitSubmitted>, Error> {
    if let Some(Revised { chain, unit }) = new.revises {
        // Writing the row locks it: neither a publication nor a retirement comes in between.
        let chain = super::lock(cx, chain).await?.ok_or_else(|| Error::Missing {
            what: "unit",
            id: unit.to_string(),
        })?;
        let open = sql!(
            "SELECT id FROM units WHERE chain_id = $1 AND status IN ('queued', 'waiting')",
            chain.id
        )
        .row_if_any(cx)
        .await?;
        // An end of the unit outranks what is wrong with the version, and that what is in work.
        match chain.latest {
            _ if chain.retired_at.is_some() || chain.taken_down.is_some() => {
                return Ok(Some(UnitSubmitted::NotPublished));
            }
            Some(latest) if latest != unit => return Ok(Some(UnitSubmitted::NotLatest { latest })),
            _ => {}
        }
        if let Some(open) = open {
            let open = open.get("id")?;
            return Ok(Some(UnitSubmitted::InValidation { unit: open }));
        }
        if chain.latest.is_none() {
            return Ok(Some(UnitSubmitted::NotPublished));
        }
    }
    // A superseded or rejected text may come again: it is not published now.
    let same = sql!(
        "SELECT id, status FROM units
         WHERE operator_id = $1 AND text_hash = $2 AND status IN ('queued', 'waiting', 'published')",
        new.operator,
        new.text_hash
    )
    .row_if_any(cx)
    .await?;
    same.map(|row| {
        Ok(UnitSubmitted::Duplicate {
            unit: row.get("id")?,
            status: row.get("status")?,
        })
    })
    .transpose()
}

/// Returns the time at which the agent may call again, if it is at its limit.
async fn busy_until(cx: &mut AnyConnection, new: &NewUnit, limit: HourlyLimit) -> Result<Option<Timestamp>, Error> {
    // The oldest of the last calls decides: when it leaves the window, one more fits.
    let rows = sql!(
        "SELECT submitted_at FROM units WHERE agent_id = $1 AND action = $2 AND submitted_at > $3
         ORDER BY submitted_at DESC LIMIT $4",
        new.agent,
        action(new),
        new.now.minus(limit.window),
        limit.most.max(1)
    )
    .rows(cx)
    .await?;
    if rows.len() < limit.most.max(1) as usize && limit.most > 0 {
        return Ok(None);
    }
    let oldest = rows.last().map(|row| row.get("submitted_at")).transpose()?;
    Ok(Some(oldest.unwrap_or(new.now).plus(limit.window)))
}

fn action(new: &NewUnit) -> UnitAction {
    if new.revises.is_some() {
        UnitAction::Revise
    } else {
        UnitAction::Submit
    }
}

/// Inserts the rows of a version. Returns false if a unique key refuses it.
async fn insert(cx: &mut AnyConnection, new: &NewUnit, code_points: i64) -> Result<bool, Error> {
    let chain = new.revises.map_or(new.id, |revised| revised.chain);
    if new.revises.is_none() {
        sql!(
            "INSERT INTO chains
                 (id, operator_id, agent_id, price_micro, trial_sale, license, versions, best_score, readers,
                  rating_count, rating_sum, comment_count, sold_count, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, 0, 0, 0, 0, $7)",
            chain,
            new.operator,
            new.agent,
            new.price_micro,
            new.trial_sale,
            new.license.as_str(),
            new.now
        )
        .run(cx)
        .await?;
        money::price_set(cx, ItemKind::Unit, &chain.to_string(), new.price_micro, new.now).await?;
    }
    // While the service holds, a version begins as waiting, so its author learns the reason at once and
    // not after the first try.
    let status = if new.held.is_some() {
        UnitStatus::Waiting
    } else {
        UnitStatus::Queued
    };
    let (reason, until) = new
        .held
        .as_ref()
        .map_or((None, None), |(reason, until)| (Some(reason.as_str()), *until));
    let inserted = sql!(
        "INSERT INTO units
             (id, chain_id, predecessor, operator_id, agent_id, action, title, body, category, source_declaration,
              text_hash, status, generation, submitted_at, waiting_reason, resumes_after, language, length)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14, $15, $16, $17)
         ON CONFLICT DO NOTHING",
        new.id,
        chain,
        new.revises.map(|revised| revised.unit.to_string()),
        new.operator,
        new.agent,
        action(new),
        new.title.as_str(),
        new.body.as_str(),
        new.category.as_str(),
        new.source_declaration.as_str(),
        new.text_hash,
        status,
        new.now,
        reason,
        until,
        new.language,
        code_points
    )
    .run(cx)
    .await?;
    if inserted == 0 {
        return Ok(false);
    }
    sql!(
        "INSERT INTO unit_outbox (unit_id, attempts, next_sweep, byte_count, submission) VALUES ($1, 0, $2, $3, $4)",
        new.id,
        new.first_sweep,
        length(&new.submission),
        new.submission.clone()
    )
    .run(cx)
    .await?;
    Ok(true)
}
