//! The desk of the staff: how much waits, and what was decided.
//!
//! Invariant: each list is read by an index and has a bound, and a count stops at a thousand.

use sqlx::any::AnyRow;
use types::vocabulary::ReportStatus;
use types::{OperatorId, ReportId, TakedownId, Timestamp};

use super::takedowns::read;
use super::{Moderation, Report, Takedown};
use crate::Error;
use crate::query::{Statement, sql, text};
use crate::row::{Columns as _, nested, row};

/// Selection of decided reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecidedFilter {
    /// Reports with either decision.
    #[default]
    All,
    /// The item was taken down.
    Upheld,
    /// The item stayed.
    Dismissed,
}

row! {
    /// Numbers of the lists of the staff, each up to a thousand.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Desk {
        /// Reports that nobody has decided.
        pub open: u64,
        /// Takedowns in force with an answer of the owner.
        pub answered: u64,
        /// Takedowns in force.
        pub down: u64,
        /// Reports that were decided.
        pub decided: u64,
    }
}

row! {
    /// A decided report, with what became of the item since.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DecidedReport {
        /// Report with its decision.
        pub report: Report = "" => nested,
        /// Words of the takedown for the owner.
        pub takedown_note: Option<String>,
        /// Time of the owner's answer.
        pub answered_at: Option<Timestamp>,
        /// Time at which the item was shown again.
        pub restored_at: Option<Timestamp>,
        /// Name of the operator that decided; `None` for an administrator at the command line.
        pub decider: Option<String>,
        /// The operator that decided.
        pub by: Option<OperatorId> = "decider_id",
        /// Title of the item; `None` for what has none, or is gone.
        pub title: Option<String>,
    }
}

row! {
    /// A report that waits, with the title of its item.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WaitingReport {
        /// Report without a decision.
        pub report: Report = "" => nested,
        /// Title of the item; `None` for what has none, or is gone.
        pub title: Option<String>,
    }
}

/// A takedown with the title of its item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitledTakedown {
    /// Takedown, with its answer and its end if it has them.
    pub takedown: Takedown,
    /// Title of the item; `None` for what has none, or is gone.
    pub title: Option<String>,
}

/// Column of the title of the item of a row of this table.
macro_rules! title_of {
    ($table:literal) => {
        concat!(
            "(CASE ",
            $table,
            ".kind
               WHEN 'unit' THEN (SELECT units.title FROM chains
                                 JOIN units ON units.id = COALESCE(chains.latest_unit, chains.id)
                                 WHERE chains.id = ",
            $table,
            ".item_id)
               WHEN 'dataset' THEN (SELECT projects.title FROM projects WHERE projects.id = ",
            $table,
            ".item_id)
               WHEN 'agent' THEN (SELECT agents.name FROM agents WHERE agents.id = ",
            $table,
            ".item_id)
               WHEN 'topic' THEN (SELECT requests.title FROM requests WHERE requests.id = ",
            $table,
            ".item_id)
             END) AS title"
        )
    };
}

/// Columns of a report with the title of its item, and those of a decision about it.
const REPORT: &str = concat!(
    "SELECT reports.id AS id, reports.kind AS kind, reports.item_id AS item_id, reports.named AS named,
       reports.reason AS reason, reports.detail AS detail, reports.agent_id AS agent_id, reports.email AS email,
       reports.status AS status, reports.created_at AS created_at, reports.decided_at AS decided_at,
       reports.takedown_id AS takedown_id, reports.reporter AS reporter, reports.owner_id AS owner_id,
       reports.note AS note, reports.decided_by AS decided_by, ",
    title_of!("reports")
);
const DECISION: &str = ", takedowns.note AS takedown_note, takedowns.answered_at AS answered_at,
       takedowns.restored_at AS restored_at, deciders.display_name AS decider, deciders.id AS decider_id
  FROM reports
  LEFT JOIN takedowns ON takedowns.id = reports.takedown_id
  LEFT JOIN operators AS deciders ON deciders.id = COALESCE(takedowns.decided_by, reports.decided_by)";
/// Takedowns with the titles of their items.
const TITLED: &str = concat!(
    "SELECT takedowns.id AS id, takedowns.kind AS kind, takedowns.item_id AS item_id, takedowns.named AS named,
       takedowns.reason AS reason, takedowns.note AS note, takedowns.operator_id AS operator_id, takedowns.at AS at,
       takedowns.decided_by AS decided_by, takedowns.answer AS answer, takedowns.answered_at AS answered_at,
       takedowns.restored_at AS restored_at, takedowns.restored_by AS restored_by,
       takedowns.restored_note AS restored_note, ",
    title_of!("takedowns"),
    " FROM takedowns"
);

impl Moderation<'_> {
    /// Counts what is on the lists of the staff.
    pub async fn desk(&self) -> Result<Desk, Error> {
        self.0
            .one(sql!(
                "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM reports WHERE status = 'open' LIMIT 1000) AS a) AS open,
                        (SELECT COUNT(*) FROM (SELECT 1 FROM takedowns
                                               WHERE restored_at IS NULL AND answered_at IS NOT NULL
                                               LIMIT 1000) AS b) AS answered,
                        (SELECT COUNT(*) FROM (SELECT 1 FROM takedowns WHERE restored_at IS NULL
                                               LIMIT 1000) AS c) AS down,
                        (SELECT COUNT(*) FROM (SELECT 1 FROM reports WHERE decided_at IS NOT NULL
                                               LIMIT 1000) AS d) AS decided"
            ))
            .await
    }

    /// Returns open reports: those of personal data first, then the oldest.
    pub async fn reports_waiting(&self, limit: u32) -> Result<Vec<WaitingReport>, Error> {
        // Each part is read by the index, so that a long queue does not hide what is urgent.
        let urgent = sql!(
            text!(
                REPORT,
                " FROM reports WHERE status = 'open' AND reason = 'personal-data' ORDER BY reports.id LIMIT $1"
            ),
            limit
        );
        let others = sql!(
            text!(
                REPORT,
                " FROM reports WHERE status = 'open' AND reason <> 'personal-data' ORDER BY reports.id LIMIT $1"
            ),
            limit
        );
        let mut reports: Vec<WaitingReport> = self.0.all(urgent).await?;
        reports.extend(self.0.all::<WaitingReport>(others).await?);
        reports.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(reports)
    }

    /// Returns decided reports, the latest decision first: those before a place, which is a time of a decision with the
    /// report, only.
    pub async fn decided(
        &self,
        filter: DecidedFilter,
        before: Option<(Timestamp, ReportId)>,
        limit: u32,
    ) -> Result<Vec<DecidedReport>, Error> {
        let clause = match filter {
            DecidedFilter::All => "reports.decided_at IS NOT NULL".to_owned(),
            DecidedFilter::Upheld => format!("reports.status = '{}'", ReportStatus::Upheld),
            DecidedFilter::Dismissed => format!("reports.status = '{}'", ReportStatus::Dismissed),
        };
        let (at, id) = before.map_or((i64::MAX, String::new()), |(at, id)| (at.micros(), id.to_string()));
        let text = format!(
            "{REPORT}{DECISION} WHERE {clause}
               AND (reports.decided_at < $1 OR (reports.decided_at = $1 AND reports.id < $2))
             ORDER BY reports.decided_at DESC, reports.id DESC LIMIT $3"
        );
        self.0.all(sql!(sqlx::AssertSqlSafe(text), at, id, limit)).await
    }

    /// Returns takedowns in force: those that their owners answered, the first answer first, or all, newest first.
    pub async fn takedowns_down(&self, is_answered: bool, limit: u32) -> Result<Vec<TitledTakedown>, Error> {
        let text = if is_answered {
            text!(
                TITLED,
                " WHERE restored_at IS NULL AND answered_at IS NOT NULL ORDER BY answered_at LIMIT $1"
            )
        } else {
            text!(TITLED, " WHERE restored_at IS NULL ORDER BY takedowns.id DESC LIMIT $1")
        };
        self.titled(sql!(text, limit)).await
    }

    /// Returns the takedowns of an operator's items, newest first, up to `limit`.
    pub async fn takedowns_of(&self, owner: OperatorId, limit: u32) -> Result<Vec<TitledTakedown>, Error> {
        let text = text!(
            TITLED,
            " WHERE takedowns.operator_id = $1 ORDER BY takedowns.id DESC LIMIT $2"
        );
        self.titled(sql!(text, owner, limit)).await
    }

    /// Returns a takedown with the title of its item.
    pub async fn takedown_titled(&self, id: TakedownId) -> Result<Option<TitledTakedown>, Error> {
        let found = self.titled(sql!(text!(TITLED, " WHERE takedowns.id = $1"), id)).await?;
        Ok(found.into_iter().next())
    }

    async fn titled(&self, statement: Statement) -> Result<Vec<TitledTakedown>, Error> {
        self.0
            .read(async {
                let rows = statement.rows(&mut self.0.readers()).await?;
                let titled = |row: &AnyRow| {
                    Ok(TitledTakedown {
                        takedown: read(row)?,
                        title: row.get("title")?,
                    })
                };
                rows.iter().map(titled).collect()
            })
            .await
    }

    /// Returns the report that a takedown upheld, the first one.
    pub async fn report_behind(&self, takedown: &Takedown) -> Result<Option<Report>, Error> {
        self.0
            .optional(sql!(
                text!(
                    super::reports::REPORT,
                    " WHERE kind = $1 AND item_id = $2 AND status = 'upheld' AND takedown_id = $3 ORDER BY id LIMIT 1"
                ),
                takedown.kind,
                takedown.item.as_str(),
                takedown.id
            ))
            .await
    }
}
