//! Lists: the versions of a unit, the words of its review, and an operator's submissions.

use sqlx::any::AnyRow;
use types::unit::ReviewEntry;
use types::vocabulary::UnitStatus;
use types::{OperatorId, Timestamp, UnitId};

use super::{Knowledge, UNIT, Unit, unit};
use crate::Error;
use crate::query::{sql, text};
use crate::row::{Columns, Row as _, json, row};

row! {
    /// A version in the list of a unit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct VersionLine {
        /// Id of the version.
        pub id: UnitId,
        /// Number among the published versions.
        pub number: Option<u32>,
        /// Status as stored.
        pub status: UnitStatus,
        /// Total of the scores.
        pub total: Option<u32>,
        /// Time of the acknowledgement.
        pub submitted_at: Timestamp,
        /// Time of the decision.
        pub decided_at: Option<Timestamp>,
    }
}

impl Knowledge<'_> {
    /// Returns the versions of a unit, the latest submission first, at most `limit`.
    pub async fn versions(&self, chain: UnitId, limit: u32) -> Result<Vec<VersionLine>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    VersionLine::COLUMNS,
                    " FROM units
                     WHERE chain_id = $1 ORDER BY submitted_at DESC, id DESC LIMIT $2"
                ),
                chain,
                limit
            ))
            .await
    }

    /// Returns what the steps of the review said of a version, in their order.
    pub async fn entries(&self, id: UnitId) -> Result<Vec<ReviewEntry>, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT step, outcome, code, detail, at, scores, judge, similar_to FROM unit_validations
                     WHERE unit_id = $1 ORDER BY at, position, entry",
                    id
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(entry)
                .collect()
            })
            .await
    }

    /// Returns the submissions of an operator's agents, newest first: those before `before`, or the newest.
    pub async fn submissions_of(
        &self,
        operator: OperatorId,
        before: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<Unit>, Error> {
        let text = format!(
            // Ids begin with their time (RFC 9562 section 5.7), so their order is that of the
            // submissions and serves as the cursor.
            "{UNIT} WHERE units.operator_id = $1 AND ($2 = '' OR units.id < $2) ORDER BY units.id DESC LIMIT $3"
        );
        self.0
            .read(async {
                sql!(
                    sqlx::AssertSqlSafe(text),
                    operator,
                    before.map(|id| id.to_string()).unwrap_or_default(),
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
}

fn entry(row: &AnyRow) -> Result<ReviewEntry, Error> {
    let text = |column| row.value::<Option<String>>(column);
    Ok(ReviewEntry {
        step: row.get("step")?,
        outcome: row.get("outcome")?,
        code: row.get("code")?,
        detail: row.get("detail")?,
        at: row.get("at")?,
        judge: text("judge")?.map(|text| json("judge", &text)).transpose()?,
        scores: text("scores")?.map(|text| json("scores", &text)).transpose()?,
        similar: text("similar_to")?.map(|text| json("similar_to", &text)).transpose()?,
    })
}
