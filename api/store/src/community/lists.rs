//! The list of requests, and the counts beside it.

use std::fmt::Write as _;

use types::vocabulary::{RequestKind, RequestStatus};
use types::{OperatorId, RequestId, Timestamp};

use super::{BoardRequest, Community, REQUEST, request};
use crate::Error;
use crate::projects::find::pattern;
use crate::query::{Statement, sql, text};
use crate::row::{row, texts};

/// The status of a request at `$1`.
const SHOWN: &str = "CASE WHEN requests.status IN ('open', 'answered') AND requests.deadline <= $1 THEN 'expired'
            ELSE requests.status END";

/// Conditions on requests; all that are set must hold.
#[derive(Clone, Debug, Default)]
pub struct RequestFilter {
    /// Keeps those with this status.
    pub status: Option<RequestStatus>,
    /// Keeps those of this kind.
    pub kind: Option<RequestKind>,
    /// Keeps those of this category.
    pub category: Option<String>,
    /// Keeps those whose title or text contains each of these words, whatever its case.
    pub words: Vec<String>,
}

row! {
    /// Number of requests that are alike.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RequestCount {
        /// Status that the counted requests have.
        pub status: RequestStatus = "shown",
        /// Kind of the item that they ask for.
        pub kind: RequestKind,
        /// Category that the counted requests have.
        pub category: String,
        /// Number of requests with this status, kind and category.
        pub count: u64 = "listed",
    }
}

impl RequestFilter {
    /// Returns true if no database can store a text that the filter looks for.
    fn is_impossible(&self) -> bool {
        let words = self.words.iter().map(|word| ("q", word.as_str()));
        let category = self.category.as_deref().map(|text| ("category", text));
        let all: Vec<_> = words.chain(category).collect();
        texts(&all).is_err()
    }

    /// Returns the conditions on the words, whose patterns are bound from `$2` on.
    fn conditions(&self) -> String {
        let mut text = "requests.removed_at IS NULL".to_owned();
        for number in 2..self.words.len() + 2 {
            // Writing to a string does not fail.
            let _written = write!(text, r" AND requests.folded LIKE ${number} ESCAPE '\'");
        }
        text
    }

    /// Binds the instant and the words.
    fn bind(&self, statement: Statement, now: Timestamp) -> Statement {
        let statement = statement.with(now);
        self.words
            .iter()
            .fold(statement, |statement, word| statement.with(pattern(word)))
    }
}

impl Community<'_> {
    /// Returns a page of the visible requests as they are at `now`, newest first.
    pub async fn requests(
        &self,
        filter: &RequestFilter,
        now: Timestamp,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<BoardRequest>, Error> {
        if filter.is_impossible() {
            return Ok(Vec::new());
        }
        let next = filter.words.len() + 2;
        let text = format!(
            "SELECT {REQUEST} FROM requests JOIN agents ON agents.id = requests.agent_id
             WHERE {conditions} AND (${status} = '' OR ({SHOWN}) = ${status}) AND (${kind} = '' OR kind = ${kind})
               AND (${category} = '' OR category = ${category})
             ORDER BY requests.created_at DESC, requests.id DESC LIMIT ${limit} OFFSET ${offset}",
            conditions = filter.conditions(),
            status = next,
            kind = next + 1,
            category = next + 2,
            limit = next + 3,
            offset = next + 4,
        );
        self.0
            .read(async {
                filter
                    .bind(sql!(sqlx::AssertSqlSafe(text)), now)
                    .with(filter.status.map_or("", RequestStatus::as_str))
                    .with(filter.kind.map_or("", RequestKind::as_str))
                    .with(filter.category.clone().unwrap_or_default())
                    .with(limit)
                    .with(i64::try_from(offset).unwrap_or(i64::MAX))
                    .rows(&mut self.0.readers())
                    .await?
                    .iter()
                    .map(|row| request(row, now))
                    .collect()
            })
            .await
    }

    /// Returns the visible requests of an operator's agents as they are at `now`, newest first: those before `before`, or
    /// the newest.
    pub async fn requests_of(
        &self,
        operator: OperatorId,
        before: Option<RequestId>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<BoardRequest>, Error> {
        self.0
            .read(async {
                sql!(
                    text!(
                        "SELECT ",
                        REQUEST,
                        " FROM requests JOIN agents ON agents.id = requests.agent_id
                         WHERE requests.operator_id = $1 AND requests.removed_at IS NULL
                           AND ($2 = '' OR (requests.created_at, requests.id) <
                                           (SELECT last.created_at, last.id FROM requests AS last
                                            WHERE last.id = $2 AND last.operator_id = $1))
                         ORDER BY requests.created_at DESC, requests.id DESC LIMIT $3"
                    ),
                    operator,
                    before.map(|id| id.to_string()).unwrap_or_default(),
                    limit
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(|row| request(row, now))
                .collect()
            })
            .await
    }

    /// Returns the numbers of visible requests with the words of the filter by status, kind and category, whatever else
    /// the filter says.
    pub async fn request_counts(&self, filter: &RequestFilter, now: Timestamp) -> Result<Vec<RequestCount>, Error> {
        if filter.is_impossible() {
            return Ok(Vec::new());
        }
        let text = format!(
            "SELECT shown, kind, category, COUNT(*) AS listed
             FROM (SELECT {SHOWN} AS shown, kind, category FROM requests WHERE {}) AS matching
             GROUP BY shown, kind, category",
            filter.conditions()
        );
        self.0
            .read(async {
                filter
                    .bind(sql!(sqlx::AssertSqlSafe(text)), now)
                    .all(&mut self.0.readers())
                    .await
            })
            .await
    }
}
