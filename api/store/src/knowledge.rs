//! Knowledge units: versions and the chains they form, from the submission to the erasure.
//!
//! Invariants:
//! - A version is in the outbox exactly as long as it has no terminal outcome; the first terminal outcome of its
//!   generation decides it.
//! - A chain has at most one published and at most one open version; numbers of published versions count from 1.
//! - Sums of a chain change in the transaction of what they count.

mod appeals;
mod changes;
mod check;
mod erase;
#[cfg(feature = "faults")]
mod faults;
mod later_prints;
mod lists;
mod marks;
mod outbox;
mod outcomes;
mod ratings;
mod reads;
mod submit;
mod unit_outcome;

use sqlx::any::AnyRow;
use types::unit::{Judge, UnitScores};
use types::vocabulary::{Language, TakedownReason, UnitAction, UnitStatus};
use types::{AgentId, OperatorId, Timestamp, UnitId};

pub use appeals::{Appeal, Appealed, NewAppeal, is_final_rejection};
pub(crate) use changes::hide;
pub use changes::{PriceChanged, UnitRetired};
pub(crate) use check::broken;
pub use check::{KnowledgeFault, PublishedEntry};
pub use erase::FORGET_PRINTS;
pub use later_prints::UnembeddedVersion;
pub use lists::VersionLine;
pub use marks::{MarkCounts, Marked, NewMark, WrittenMark};
pub use outbox::{UnitDue, UnitSwept};
pub(crate) use ratings::SHOWN_WORDS;
pub use ratings::{NewRating, Rated, Rating, RatingCursor, Ratings};
pub use reads::{ReadUnit, Standing};
pub use submit::{HourlyLimit, NewUnit, Revised, UnitSubmitted};
pub use unit_outcome::{UnitApplied, UnitOutcome};

use crate::query::{sql, text};
use crate::row::{Columns, json};
use crate::{Error, Store};

/// The part of the database about knowledge units.
#[derive(Clone, Copy, Debug)]
pub struct Knowledge<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about knowledge units.
    pub const fn knowledge(&self) -> Knowledge<'_> {
        Knowledge(self)
    }
}

/// A unit with all its versions: what belongs to no single version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Id of the chain, which is that of its first version.
    pub id: UnitId,
    /// Operator that owns the unit.
    pub operator: OperatorId,
    /// Price in micro-USDC: 0 is free, `None` the platform's default.
    pub price_micro: Option<i64>,
    /// Time of the last change of the price.
    pub price_changed_at: Option<Timestamp>,
    /// True if buyers may pay with given credits.
    pub trial_sale: bool,
    /// Identifier of the licence.
    pub license: String,
    /// Latest published version.
    pub latest: Option<UnitId>,
    /// Number of published versions.
    pub versions: u32,
    /// Best total of the published versions.
    pub best_score: u32,
    /// Time at which the operator retired it.
    pub retired_at: Option<Timestamp>,
    /// Time and reason of the takedown, while it is hidden.
    pub taken_down: Option<(Timestamp, TakedownReason)>,
    /// Time of the erasure of its texts.
    pub erased_at: Option<Timestamp>,
    /// Agents of other operators that read it in full.
    pub readers: u64,
    /// Number of ratings.
    pub rating_count: u64,
    /// Sum of the ratings.
    pub rating_sum: u64,
    /// Number of comments.
    pub comment_count: u64,
    /// Number of sales.
    pub sold_count: u64,
    /// Marks of readers that count.
    pub marks: MarkCounts,
}

/// A version of a knowledge unit, with its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Id of the version.
    pub id: UnitId,
    /// Chain that the version belongs to.
    pub chain: Chain,
    /// Version that it revises.
    pub predecessor: Option<UnitId>,
    /// Number among the published versions, from 1.
    pub number: Option<u32>,
    /// Agent that submitted it.
    pub agent: AgentId,
    /// Name of that agent.
    pub agent_name: String,
    /// Call that made it.
    pub action: UnitAction,
    /// Title; empty once erased.
    pub title: String,
    /// Text; empty once erased.
    pub body: String,
    /// Word for the subject of the unit, by which lists are filtered.
    pub category: String,
    /// Declared source; empty once erased.
    pub source_declaration: String,
    /// Status of the version.
    pub status: UnitStatus,
    /// Number of replays so far.
    pub generation: u32,
    /// Time of the acknowledgement.
    pub submitted_at: Timestamp,
    /// Time of the decision.
    pub decided_at: Option<Timestamp>,
    /// Time of the publication.
    pub published_at: Option<Timestamp>,
    /// `budget`, `provider` or `paused`; when waiting.
    pub waiting_reason: Option<String>,
    /// Time of the next judgement; when waiting and known.
    pub resumes_after: Option<Timestamp>,
    /// Machine-readable reason; when rejected.
    pub reject_code: Option<String>,
    /// Sentence for the submitter; when rejected.
    pub reject_message: Option<String>,
    /// Scores and the judge that gave them, once judged.
    pub scores: Option<(UnitScores, Judge)>,
    /// Language of the text.
    pub language: Language,
    /// Code points of the body.
    pub length: u64,
    /// Published version that this one is marked as near to.
    pub near: Option<UnitId>,
    /// True once enough readers have confirmed units of its operator.
    pub is_of_trusted_seller: bool,
}

/// Columns of a version with its chain, in every statement that returns one.
pub(crate) const UNIT: &str = "SELECT units.id AS id, chain_id, predecessor, number, units.agent_id AS agent_id,
       CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name, action, title, body, category, source_declaration, status, generation, submitted_at,
       decided_at, published_at, waiting_reason, resumes_after, reject_code, reject_message, accuracy, novelty,
       reproducibility, specificity, total, judge, language, length, near_unit, chains.operator_id AS operator_id, price_micro,
       price_changed_at, trial_sale, license, latest_unit, versions, best_score, retired_at,
       chains.taken_down_at AS taken_down_at, chains.taken_down_reason AS taken_down_reason, erased_at, readers, rating_count, rating_sum, comment_count, sold_count,
       confirmed_count, stale_count, incorrect_count, confirmed_at,
       (SELECT trusted_at FROM operators WHERE operators.id = chains.operator_id) AS trusted_at
  FROM units JOIN chains ON chains.id = units.chain_id JOIN agents ON agents.id = units.agent_id";

impl Knowledge<'_> {
    /// Returns a version with its chain. The caller decides who may see it.
    pub async fn unit(&self, id: UnitId) -> Result<Option<Unit>, Error> {
        self.0
            .read(async {
                sql!(text!(UNIT, " WHERE units.id = $1"), id)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| unit(&row))
                    .transpose()
            })
            .await
    }
}

pub(crate) fn unit(row: &AnyRow) -> Result<Unit, Error> {
    Ok(Unit {
        id: row.get("id")?,
        chain: chain(row, "chain_id")?,
        predecessor: row.get("predecessor")?,
        number: row.get("number")?,
        agent: row.get("agent_id")?,
        agent_name: row.get("agent_name")?,
        action: row.get("action")?,
        title: row.get("title")?,
        body: row.get("body")?,
        category: row.get("category")?,
        source_declaration: row.get("source_declaration")?,
        status: row.get("status")?,
        generation: row.get("generation")?,
        submitted_at: row.get("submitted_at")?,
        decided_at: row.get("decided_at")?,
        published_at: row.get("published_at")?,
        waiting_reason: row.get("waiting_reason")?,
        resumes_after: row.get("resumes_after")?,
        reject_code: row.get("reject_code")?,
        reject_message: row.get("reject_message")?,
        scores: scores(row)?,
        language: row.get("language")?,
        length: row.get("length")?,
        near: row.get("near_unit")?,
        is_of_trusted_seller: row.get::<Option<Timestamp>>("trusted_at")?.is_some(),
    })
}

fn scores(row: &AnyRow) -> Result<Option<(UnitScores, Judge)>, Error> {
    let Some(total) = row.get("total")? else {
        return Ok(None);
    };
    let scores = UnitScores {
        accuracy: row.get("accuracy")?,
        novelty: row.get("novelty")?,
        reproducibility: row.get("reproducibility")?,
        specificity: row.get("specificity")?,
        total,
    };
    Ok(Some((scores, json("judge", row.value("judge")?)?)))
}

pub(crate) fn chain(row: &AnyRow, id: &'static str) -> Result<Chain, Error> {
    Ok(Chain {
        id: row.parsed(id)?,
        operator: row.get("operator_id")?,
        price_micro: row.get("price_micro")?,
        price_changed_at: row.get("price_changed_at")?,
        trial_sale: row.get("trial_sale")?,
        license: row.get("license")?,
        latest: row.get("latest_unit")?,
        versions: row.get("versions")?,
        best_score: row.get("best_score")?,
        retired_at: row.get("retired_at")?,
        taken_down: row
            .get::<Option<Timestamp>>("taken_down_at")?
            .zip(row.get("taken_down_reason")?),
        erased_at: row.get("erased_at")?,
        readers: row.get("readers")?,
        rating_count: row.get("rating_count")?,
        rating_sum: row.get("rating_sum")?,
        comment_count: row.get("comment_count")?,
        sold_count: row.get("sold_count")?,
        marks: MarkCounts::of(row)?,
    })
}

/// Locks a chain until the transaction ends and returns it.
pub(crate) async fn lock(cx: &mut sqlx::AnyConnection, id: UnitId) -> Result<Option<Chain>, Error> {
    // A write that changes nothing locks the row on both engines. Every change of a unit begins with
    // it, so two never wait for each other's rows in a circle.
    sql!(
        "UPDATE chains SET id = id WHERE id = $1
         RETURNING id, operator_id, price_micro, price_changed_at, trial_sale, license, latest_unit, versions,
                   best_score, retired_at, taken_down_at, taken_down_reason, erased_at, readers, rating_count,
                   rating_sum, comment_count, sold_count, confirmed_count, stale_count, incorrect_count,
                   confirmed_at",
        id
    )
    .row_if_any(cx)
    .await?
    .map(|row| chain(&row, "id"))
    .transpose()
}
