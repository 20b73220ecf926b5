//! Ratings of units: one an agent, after a full read.
//!
//! Invariant: the words beside a rating that are taken down are not shown; the stars count as before.

use types::vocabulary::ItemKind;
use types::{AgentId, OperatorId, Timestamp, UnitId};

use super::{Knowledge, lock};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::service_state;
use crate::writer::Change;

/// A rating to add.
#[derive(Clone, Debug)]
pub struct NewRating {
    /// Chain of the unit.
    pub chain: UnitId,
    /// Version that was named.
    pub unit: UnitId,
    /// Agent that rates.
    pub agent: AgentId,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// Number of stars, from 1 to 5.
    pub rating: u32,
    /// Sentence that the agent gave beside the stars.
    pub comment: Option<String>,
    /// Time of the rating.
    pub now: Timestamp,
}

/// The result of [`Knowledge::rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Rated {
    /// The rating was added.
    Added {
        /// Number of ratings.
        count: u64,
        /// Sum of the stars of all ratings.
        sum: u64,
    },
    /// The unit is of the agent's own operator; nothing changed.
    Own,
    /// The agent has not read the unit in full; nothing changed.
    NotRead,
    /// The agent rated the unit before; nothing changed.
    Before,
}

row! {
    /// A rating as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Rating {
        /// Id of the agent.
        pub agent: AgentId = "agent_id",
        /// Name of the agent.
        pub agent_name: String,
        /// True if the operator of the agent bought the unit.
        pub bought: bool,
        /// Number of stars, from 1 to 5.
        pub stars: u32 = "rating",
        /// Sentence that the agent gave beside the stars.
        pub comment: Option<String>,
        /// Number of the version that was rated.
        pub version: Option<u32> = "number",
        /// Time of the rating.
        pub at: Timestamp,
    }
}

/// Place in a list of ratings, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatingCursor {
    /// Time of the last rating of the page before.
    pub at: Timestamp,
    /// Agent of that rating.
    pub agent: AgentId,
}

/// A page of ratings, and their counts by value from 1 to 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ratings {
    /// The page, newest first.
    pub items: Vec<Rating>,
    /// Number of ratings of each value.
    pub histogram: [u64; 5],
}

/// The condition on a rating that its words are shown. A takedown names it by unit and agent, as it has no number.
pub(crate) const SHOWN_WORDS: &str = "NOT EXISTS (SELECT 1 FROM takedowns
       WHERE takedowns.kind = 'review' AND takedowns.restored_at IS NULL
         AND takedowns.item_id = unit_ratings.chain_id || '/' || unit_ratings.agent_id)";

impl Knowledge<'_> {
    /// Adds a rating, unless the unit is the operator's own, was not read, or was rated before, checked in this order.
    ///
    /// # Errors
    /// [`Error::Missing`] if the chain does not exist; [`Error::Text`].
    pub async fn rate(&self, new: NewRating) -> Result<Rated, Error> {
        texts(&[("comment", new.comment.as_deref().unwrap_or_default())])?;
        // A rating has no id: its unit and agent are those of the call, and its time is what else an answer shows.
        let at = new.now.micros().to_string();
        let made = move |_: &Rated| at;
        self.0
            .make_aside(
                made,
                tx!(async move |cx| {
                    // The lock of the chain, whose sums change with the rating.
                    let chain = lock(cx, new.chain)
                        .await?
                        .ok_or_else(|| super::changes::missing(new.chain))?;
                    if chain.operator == new.operator {
                        return Ok(Change::Undo(Rated::Own));
                    }
                    // Units with the price 0 leave no row of a read, so a permit of a day stands for
                    // it.
                    let read = sql!(
                        "SELECT 1 AS one FROM unit_reads WHERE chain_id = $1 AND agent_id = $2
                         UNION ALL
                         SELECT 1 AS one FROM rating_permits WHERE chain_id = $1 AND agent_id = $2 AND until > $3",
                        new.chain,
                        new.agent,
                        new.now
                    )
                    .rows(cx)
                    .await?;
                    if read.is_empty() {
                        return Ok(Change::Undo(Rated::NotRead));
                    }
                    // The key of unit and agent makes it the one rating of that agent, whatever arrives
                    // at the same time.
                    let added = sql!(
                        "INSERT INTO unit_ratings (chain_id, agent_id, unit_id, operator_id, rating, comment, at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (chain_id, agent_id) DO NOTHING",
                        new.chain,
                        new.agent,
                        new.unit,
                        new.operator,
                        new.rating,
                        new.comment.as_deref(),
                        new.now
                    )
                    .run(cx)
                    .await?;
                    if added == 0 {
                        return Ok(Change::Undo(Rated::Before));
                    }
                    let row = sql!(
                        "UPDATE chains SET rating_count = rating_count + 1, rating_sum = rating_sum + $2
                         WHERE id = $1 RETURNING rating_count, rating_sum",
                        new.chain,
                        new.rating
                    )
                    .row(cx)
                    .await?;
                    let rated = Rated::Added {
                        count: row.get("rating_count")?,
                        sum: row.get("rating_sum")?,
                    };
                    service_state::search_changed(cx, ItemKind::Unit, &new.chain.to_string(), new.now).await?;
                    Ok(Change::Keep(rated))
                }),
            )
            .await
    }

    /// Returns a page of the ratings of a unit, newest first: those after `after`, or the newest.
    pub async fn ratings(&self, chain: UnitId, after: Option<RatingCursor>, limit: u32) -> Result<Ratings, Error> {
        self.0
            .read(async {
                let rows = sql!(
                    text!(
                        "SELECT unit_ratings.agent_id AS agent_id,
                         CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name,
                         rating, CASE WHEN ",
                        SHOWN_WORDS,
                        " THEN comment END AS comment, number, at,
                                CAST(CASE WHEN entitlements.owner IS NULL THEN 0 ELSE 1 END AS BIGINT) AS bought
                         FROM unit_ratings JOIN agents ON agents.id = unit_ratings.agent_id
                         JOIN units ON units.id = unit_ratings.unit_id
                         LEFT JOIN entitlements ON entitlements.owner = 'op:' || unit_ratings.operator_id
                             AND entitlements.item_kind = 'unit' AND entitlements.item_id = unit_ratings.chain_id
                         WHERE unit_ratings.chain_id = $1
                           AND (at < $2 OR (at = $2 AND unit_ratings.agent_id < $3))
                         ORDER BY at DESC, unit_ratings.agent_id DESC LIMIT $4"
                    ),
                    chain,
                    after.map_or(i64::MAX, |cursor| cursor.at.micros()),
                    after.map(|cursor| cursor.agent.to_string()).unwrap_or_default(),
                    limit
                )
                .rows(&mut self.0.readers())
                .await?;
                let counts = sql!(
                    "SELECT rating, COUNT(*) AS used FROM unit_ratings WHERE chain_id = $1 GROUP BY rating",
                    chain
                )
                .rows(&mut self.0.readers())
                .await?;
                let mut histogram = [0; 5];
                for row in counts {
                    let value: usize = row.get("rating")?;
                    // A row outside of 1 to 5 stars is a fault of the data, which must not take the
                    // page down.
                    if let Some(place) = value.checked_sub(1).and_then(|place| histogram.get_mut(place)) {
                        *place = row.get("used")?;
                    }
                }
                Ok(Ratings {
                    items: rows.iter().map(Rating::of).collect::<Result<_, Error>>()?,
                    histogram,
                })
            })
            .await
    }
}
