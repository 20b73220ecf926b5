//! Rows that the index of the search is built from, and those that a hit is checked against.
//!
//! Invariant: every method returns only what anybody may see: published units that are neither retired nor hidden, and
//! public datasets that are not taken down.

use sqlx::any::AnyRow;
use types::vocabulary::ItemKind;
use types::{DatasetId, Timestamp, UnitId};

use crate::knowledge::{UNIT, Unit, unit};
use crate::projects::{PROJECT, Project};
use crate::query::{sql, text};
use crate::row::{Columns, Row as _, row};
use crate::{Error, Store};

/// The condition on a version that a search may show.
// Stated once for the index and for the check of hits: if the two differed, hits would vanish or hidden
// items appear.
const SHOWN_UNIT: &str = "units.status = 'published' AND chains.retired_at IS NULL AND chains.taken_down_at IS NULL
       AND chains.erased_at IS NULL";
/// The condition on a dataset that a search may show.
pub(crate) const SHOWN_DATASET: &str = "projects.visibility = 'public' AND projects.taken_down_at IS NULL";

/// The part of the database that the search reads.
#[derive(Clone, Copy, Debug)]
pub struct Searching<'s>(&'s Store);

row! {
    /// A note that an item must be read again.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SearchChange {
        /// Place among the changes, in the order of commits.
        pub seq: i64,
        /// Kind of the item.
        pub kind: ItemKind,
        /// The chain of a unit, or the id of a dataset.
        pub item: String = "item_id",
        /// Time of the change.
        pub at: Timestamp,
    }
}

row! {
    /// A shown unit in a list of many, without its text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ShownUnit {
        /// Id of the latest version.
        pub id: UnitId,
        /// Publication of the version.
        pub published_at: Timestamp,
    }
}

impl Store {
    /// Returns the part of the database that the search reads.
    pub const fn searching(&self) -> Searching<'_> {
        Searching(self)
    }
}

impl Searching<'_> {
    pub(crate) const fn store(&self) -> &Store {
        self.0
    }

    /// Returns the place of the last change; 0 if there is none.
    pub async fn last_change(&self) -> Result<i64, Error> {
        self.0
            .read(async {
                sql!("SELECT value FROM counters WHERE name = 'search'")
                    .row(&mut self.0.readers())
                    .await?
                    .get("value")
            })
            .await
    }

    /// Returns the changes after a place, in their order, at most `limit`.
    pub async fn changes_after(&self, seq: i64, limit: u32) -> Result<Vec<SearchChange>, Error> {
        self.0
            .read(async {
                // Numbers become visible in their order, so the last one of a page is where the next
                // begins.
                sql!(
                    text!(
                        "SELECT ",
                        SearchChange::COLUMNS,
                        " FROM search_changes WHERE seq > $1 ORDER BY seq LIMIT $2"
                    ),
                    seq,
                    limit
                )
                .all(&mut self.0.readers())
                .await
            })
            .await
    }

    /// Returns the shown units behind a chain in the order of chains, or the first ones.
    pub async fn units_after(&self, chain: Option<UnitId>, limit: u32) -> Result<Vec<Unit>, Error> {
        let text = format!("{UNIT} WHERE {SHOWN_UNIT} AND units.chain_id > $1 ORDER BY units.chain_id LIMIT {limit}");
        let after = chain.map(|chain| chain.to_string()).unwrap_or_default();
        self.rows(text, &[after], unit).await
    }

    /// Returns the shown units that were published before one, newest first, or the newest ones.
    pub async fn units_before(&self, before: Option<ShownUnit>, limit: u32) -> Result<Vec<ShownUnit>, Error> {
        let (at, id) = before.map_or((i64::MAX, String::new()), |unit| {
            (unit.published_at.micros(), unit.id.to_string())
        });
        self.0
            .all(sql!(
                text!(
                    "SELECT units.id AS id, units.published_at AS published_at
                     FROM units JOIN chains ON chains.id = units.chain_id
                     WHERE ",
                    SHOWN_UNIT,
                    " AND (units.published_at < $1 OR (units.published_at = $1 AND units.id < $2))
                     ORDER BY units.published_at DESC, units.id DESC LIMIT $3"
                ),
                at,
                id,
                limit
            ))
            .await
    }

    /// Returns the shown units that were published before one, whole and newest first, or the newest ones.
    pub async fn units_newest(&self, before: Option<ShownUnit>, limit: u32) -> Result<Vec<Unit>, Error> {
        let (at, id) = before.map_or((i64::MAX, String::new()), |unit| {
            (unit.published_at.micros(), unit.id.to_string())
        });
        self.0
            .read(async {
                sql!(
                    text!(
                        UNIT,
                        " WHERE ",
                        SHOWN_UNIT,
                        " AND (units.published_at < $1 OR (units.published_at = $1 AND units.id < $2))
                         ORDER BY units.published_at DESC, units.id DESC LIMIT $3"
                    ),
                    at,
                    id,
                    limit
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(unit)
                .collect()
            })
            .await
    }

    /// Returns the shown units among chains, in no order.
    pub async fn units(&self, chains: &[String]) -> Result<Vec<Unit>, Error> {
        let places = places(chains.len());
        let text = format!("{UNIT} WHERE {SHOWN_UNIT} AND units.chain_id IN ({places})");
        self.rows(text, chains, unit).await
    }

    /// Returns the shown datasets behind an id in the order of ids, or the first ones.
    pub async fn datasets_after(&self, id: Option<DatasetId>, limit: u32) -> Result<Vec<Project>, Error> {
        let text = format!("{PROJECT} WHERE {SHOWN_DATASET} AND projects.id > $1 ORDER BY projects.id LIMIT {limit}");
        let after = id.map(|id| id.to_string()).unwrap_or_default();
        self.rows(text, &[after], Project::of).await
    }

    /// Returns the shown datasets among ids, in no order.
    pub async fn datasets(&self, ids: &[String]) -> Result<Vec<Project>, Error> {
        let places = places(ids.len());
        let text = format!("{PROJECT} WHERE {SHOWN_DATASET} AND projects.id IN ({places})");
        self.rows(text, ids, Project::of).await
    }

    /// Runs a statement with these parameters; none without any.
    async fn rows<T: Send>(
        &self,
        text: String,
        parameters: &[String],
        read: fn(&AnyRow) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        // `IN ()` is no SQL.
        if parameters.is_empty() {
            return Ok(Vec::new());
        }
        self.0
            .read(async {
                let mut query = sql!(sqlx::AssertSqlSafe(text));
                for parameter in parameters {
                    query = query.with(parameter.clone());
                }
                query.rows(&mut self.0.readers()).await?.iter().map(read).collect()
            })
            .await
    }
}

/// Returns the placeholders `$1` to `$count`, separated by commas.
pub(crate) fn places(count: usize) -> String {
    let all: Vec<String> = (1..=count).map(|number| format!("${number}")).collect();
    all.join(", ")
}
