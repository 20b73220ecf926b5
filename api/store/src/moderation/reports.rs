//! Reports: keeping them once, and listing them.
//!
//! Invariant: a reporter has one report on an item and reason within a day, whatever arrives at the same time.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::{ReportKind, ReportReason, ReportStatus};
use types::{OperatorId, ReportId, Timestamp};

use super::{Digest, Moderation, NewReport, Report, Reported, items};
use crate::accounts::mail;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::writer::Change;
use crate::{Error, NewJob, jobs};

/// Time within which a second report is the first.
pub const SAME: Duration = Duration::from_hours(24);

pub(super) const REPORT: &str = text!("SELECT ", Report::COLUMNS, " FROM reports");

row! {
    /// Number of reports of an item and reason, for a letter.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReportCount {
        /// Kind of the items.
        pub kind: ReportKind,
        /// Reason that the counted reports give.
        pub reason: ReportReason,
        /// Number of reports with this kind and reason.
        pub count: u64 = "used",
    }
}

row! {
    /// Outcomes of earlier reports of a reporter.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ReporterRecord {
        /// Reports that were decided.
        pub decided: u64,
        /// Number of these that were upheld.
        pub upheld: u64,
    }
}

impl Moderation<'_> {
    /// Keeps a report, unless its reporter sent one on the same item for the same reason within the last day. Every
    /// moderator gets a letter at the end of the slot.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn report(&self, new: NewReport) -> Result<Reported, Error> {
        texts(&[
            ("named", &new.named),
            ("detail", &new.detail),
            ("email", new.email.as_deref().unwrap_or_default()),
        ])?;
        self.0
            .write_aside(tx!(async move |cx| {
                // The row is locked by writing it, so that twins are one.
                let row = sql!(
                    "INSERT INTO report_latest (reporter, kind, item_id, reason, report_id, at)
                     VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (reporter, kind, item_id, reason) DO UPDATE SET
                         report_id = CASE WHEN report_latest.at > $7 THEN report_latest.report_id
                                          ELSE excluded.report_id END,
                         at = CASE WHEN report_latest.at > $7 THEN report_latest.at ELSE excluded.at END
                     RETURNING report_id",
                    new.reporter.as_str(),
                    new.kind,
                    new.item.as_str(),
                    new.reason,
                    new.id,
                    new.now,
                    new.now.minus(SAME)
                )
                .row(cx)
                .await?;
                let id: ReportId = row.get("report_id")?;
                if id != new.id {
                    let before = find(cx, id).await?;
                    let before = before.ok_or_else(|| missing(id))?;
                    return Ok(Change::Undo(Reported::Before(before)));
                }
                let owner = items::owner(cx, new.kind, &new.item).await?;
                sql!(
                    "INSERT INTO reports (id, kind, item_id, named, reason, detail, reporter, agent_id, email, status,
                                          created_at, owner_id)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'open', $10, $11)",
                    new.id,
                    new.kind,
                    new.item.as_str(),
                    new.named.as_str(),
                    new.reason,
                    new.detail.as_str(),
                    new.reporter.as_str(),
                    new.agent,
                    new.email.as_deref(),
                    new.now,
                    owner
                )
                .run(cx)
                .await?;
                digest(cx, &new.digest, new.now).await?;
                if let Some(letter) = &new.letter {
                    // A spent day costs the letter, not the report; its answer has the address, too.
                    let _sent = mail::send(cx, letter).await?;
                }
                Ok(Change::Keep(Reported::New(Report {
                    id: new.id,
                    kind: new.kind,
                    item: new.item,
                    named: new.named,
                    reason: new.reason,
                    detail: new.detail,
                    agent: new.agent,
                    email: new.email,
                    status: ReportStatus::Open,
                    created_at: new.now,
                    decided_at: None,
                    takedown: None,
                    reporter: new.reporter,
                    owner,
                    note: None,
                    decided_by: None,
                })))
            }))
            .await
    }

    /// Returns the report with this id.
    pub async fn report_of(&self, id: ReportId) -> Result<Option<Report>, Error> {
        self.0.optional(sql!(text!(REPORT, " WHERE id = $1"), id)).await
    }

    /// Returns reports with a status, or all: newest first, up to `limit`, those before `before` only.
    pub async fn reports(
        &self,
        status: Option<ReportStatus>,
        before: Option<ReportId>,
        limit: u32,
    ) -> Result<Vec<Report>, Error> {
        self.0
            .all(sql!(
                text!(
                    REPORT,
                    " WHERE ($1 = '' OR status = $1) AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3"
                ),
                status.map_or("", ReportStatus::as_str),
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns reports of items of an operator, newest first, up to `limit`.
    pub async fn reports_of_owner(&self, owner: OperatorId, limit: u32) -> Result<Vec<Report>, Error> {
        self.0
            .all(sql!(
                text!(REPORT, " WHERE owner_id = $1 ORDER BY id DESC LIMIT $2"),
                owner,
                limit
            ))
            .await
    }

    /// Returns reports that an operator's agents sent, newest first: those before `before`, or the newest.
    pub async fn reports_by(
        &self,
        operator: OperatorId,
        before: Option<ReportId>,
        limit: u32,
    ) -> Result<Vec<Report>, Error> {
        self.0
            .all(sql!(
                text!(
                    REPORT,
                    " WHERE reporter IN (SELECT agents.id FROM agents WHERE agents.operator_id = $1)
                      AND ($2 = '' OR reports.id < $2) ORDER BY reports.id DESC LIMIT $3"
                ),
                operator,
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns reports of an item, newest first, up to `limit`.
    pub async fn reports_of_item(&self, kind: ReportKind, item: &str, limit: u32) -> Result<Vec<Report>, Error> {
        self.0
            .all(sql!(
                text!(REPORT, " WHERE kind = $1 AND item_id = $2 ORDER BY id DESC LIMIT $3"),
                kind,
                item,
                limit
            ))
            .await
    }

    /// Counts what became of the reports of a reporter, up to a thousand.
    pub async fn record_of(&self, reporter: &str) -> Result<ReporterRecord, Error> {
        self.0
            .one(sql!(
                "SELECT COUNT(*) AS decided, CAST(COALESCE(SUM(is_right), 0) AS BIGINT) AS upheld
                 FROM (SELECT CASE WHEN status = 'upheld' THEN 1 ELSE 0 END AS is_right FROM reports
                       WHERE reporter = $1 AND status IN ('upheld', 'dismissed') LIMIT 1000) AS theirs",
                reporter
            ))
            .await
    }

    /// Counts the reports of a time that are still open, by kind and reason.
    pub async fn reports_open_between(&self, from: Timestamp, to: Timestamp) -> Result<Vec<ReportCount>, Error> {
        self.0
            .all(sql!(
                "SELECT kind, reason, COUNT(*) AS used FROM reports
                 WHERE created_at >= $1 AND created_at < $2 AND status = 'open'
                 GROUP BY kind, reason ORDER BY kind, reason",
                from,
                to
            ))
            .await
    }
}

/// Adds the letter of a slot to every moderator, or one of no operator while there is none, unless it is there.
pub(super) async fn digest(cx: &mut AnyConnection, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    sql!(
        "INSERT INTO jobs (id, kind, dedupe, operator_id, payload, due_at, attempts, created_at)
         SELECT CAST($1 AS TEXT) || operators.id, CAST($2 AS TEXT), CAST($1 AS TEXT) || operators.id, operators.id,
                CAST($3 AS TEXT), CAST($4 AS BIGINT), 0, CAST($5 AS BIGINT)
         FROM operators WHERE role IN ('moderator', 'administrator') AND suspended_at IS NULL
         ON CONFLICT DO NOTHING",
        format!("digest-{}-", digest.slot),
        digest.kind.as_str(),
        digest.payload.as_str(),
        digest.due_at,
        now
    )
    .run(cx)
    .await?;
    let moderator =
        sql!("SELECT id FROM operators WHERE role IN ('moderator', 'administrator') AND suspended_at IS NULL LIMIT 1")
            .row_if_any(cx)
            .await?;
    // Without a moderator the digest goes to the administrator, so no report waits unseen.
    if moderator.is_none() {
        let id = format!("digest-{}-none", digest.slot);
        let job = NewJob {
            id: id.clone(),
            kind: digest.kind.clone(),
            dedupe: Some(id),
            operator: None,
            payload: digest.payload.clone(),
            due_at: digest.due_at,
            now,
        };
        jobs::insert(cx, &job).await?;
    }
    Ok(())
}

pub(super) async fn find(cx: &mut AnyConnection, id: ReportId) -> Result<Option<Report>, Error> {
    sql!(text!(REPORT, " WHERE id = $1"), id).optional(cx).await
}

fn missing(id: ReportId) -> Error {
    Error::Missing {
        what: "report",
        id: id.to_string(),
    }
}
