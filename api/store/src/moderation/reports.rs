//! Reports: keeping them once, and listing them.
//!
//! Invariant: a reporter has one report on an item and reason within a day, whatever arrives at the same time.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{ReportKind, ReportReason, ReportStatus};
use types::{AgentId, ReportId, Timestamp};

use super::{Digest, Moderation, NewReport, Report, Reported};
use crate::accounts::mail;
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Error, NewJob, jobs};

/// Time within which a second report is the first.
pub const SAME: Duration = Duration::from_hours(24);

const REPORT: &str = "SELECT id, kind, item_id, named, reason, detail, agent_id, email, status, created_at, decided_at,
       takedown_id FROM reports";

/// Number of reports of an item and reason, for a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportCount {
    /// Kind of the items.
    pub kind: ReportKind,
    /// Reason that the counted reports give.
    pub reason: ReportReason,
    /// Number of reports with this kind and reason.
    pub count: u64,
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
            .write_aside(move |cx| {
                Box::pin(async move {
                    // The row is locked by writing it, so that twins are one.
                    let row = sqlx::query(
                        "INSERT INTO report_latest (reporter, kind, item_id, reason, report_id, at)
                         VALUES ($1, $2, $3, $4, $5, $6)
                         ON CONFLICT (reporter, kind, item_id, reason) DO UPDATE SET
                             report_id = CASE WHEN report_latest.at > $7 THEN report_latest.report_id
                                              ELSE excluded.report_id END,
                             at = CASE WHEN report_latest.at > $7 THEN report_latest.at ELSE excluded.at END
                         RETURNING report_id",
                    )
                    .bind(new.reporter.as_str())
                    .bind(new.kind.as_str())
                    .bind(new.item.as_str())
                    .bind(new.reason.as_str())
                    .bind(new.id.to_string())
                    .bind(new.now.micros())
                    .bind(new.now.minus(SAME).micros())
                    .fetch_one(&mut *cx)
                    .await?;
                    let id: ReportId = row.parsed("report_id")?;
                    if id != new.id {
                        let before = find(cx, id).await?;
                        let before = before.ok_or_else(|| missing(id))?;
                        return Ok(Change::Undo(Reported::Before(before)));
                    }
                    sqlx::query(
                        "INSERT INTO reports
                             (id, kind, item_id, named, reason, detail, reporter, agent_id, email, status, created_at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'open', $10)",
                    )
                    .bind(new.id.to_string())
                    .bind(new.kind.as_str())
                    .bind(new.item.as_str())
                    .bind(new.named.as_str())
                    .bind(new.reason.as_str())
                    .bind(new.detail.as_str())
                    .bind(new.reporter.as_str())
                    .bind(new.agent.map(|agent: AgentId| agent.to_string()))
                    .bind(new.email.as_deref())
                    .bind(new.now.micros())
                    .execute(&mut *cx)
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
                    })))
                })
            })
            .await
    }

    /// Returns the report with this id.
    pub async fn report_of(&self, id: ReportId) -> Result<Option<Report>, Error> {
        self.0
            .read(async {
                let text = format!("{REPORT} WHERE id = $1");
                sqlx::query(sqlx::AssertSqlSafe(text))
                    .bind(id.to_string())
                    .fetch_optional(self.0.readers())
                    .await?
                    .map(|row| report(&row))
                    .transpose()
            })
            .await
    }

    /// Returns reports with a status, or all: newest first, up to `limit`, those before `before` only.
    pub async fn reports(
        &self,
        status: Option<ReportStatus>,
        before: Option<ReportId>,
        limit: u32,
    ) -> Result<Vec<Report>, Error> {
        let text =
            format!("{REPORT} WHERE ($1 = '' OR status = $1) AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3");
        self.0
            .read(async {
                sqlx::query(sqlx::AssertSqlSafe(text))
                    .bind(status.map_or("", ReportStatus::as_str))
                    .bind(before.map(|id| id.to_string()).unwrap_or_default())
                    .bind(i64::from(limit))
                    .fetch_all(self.0.readers())
                    .await?
                    .iter()
                    .map(report)
                    .collect()
            })
            .await
    }

    /// Counts the reports of a time that are still open, by kind and reason.
    pub async fn reports_open_between(&self, from: Timestamp, to: Timestamp) -> Result<Vec<ReportCount>, Error> {
        self.0
            .read(async {
                sqlx::query(
                    "SELECT kind, reason, COUNT(*) AS used FROM reports
                     WHERE created_at >= $1 AND created_at < $2 AND status = 'open'
                     GROUP BY kind, reason ORDER BY kind, reason",
                )
                .bind(from.micros())
                .bind(to.micros())
                .fetch_all(self.0.readers())
                .await?
                .iter()
                .map(|row| {
                    Ok(ReportCount {
                        kind: row.parsed("kind")?,
                        reason: row.parsed("reason")?,
                        count: row.number("used")?,
                    })
                })
                .collect()
            })
            .await
    }
}

/// Adds the letter of a slot to every moderator, or one of no operator while there is none, unless it is there.
pub(super) async fn digest(cx: &mut AnyConnection, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO jobs (id, kind, dedupe, operator_id, payload, due_at, attempts, created_at)
         SELECT CAST($1 AS TEXT) || operators.id, CAST($2 AS TEXT), CAST($1 AS TEXT) || operators.id, operators.id,
                CAST($3 AS TEXT), CAST($4 AS BIGINT), 0, CAST($5 AS BIGINT)
         FROM operators WHERE role = 'moderator' AND suspended_at IS NULL
         ON CONFLICT DO NOTHING",
    )
    .bind(format!("digest-{}-", digest.slot))
    .bind(digest.kind.as_str())
    .bind(digest.payload.as_str())
    .bind(digest.due_at.micros())
    .bind(now.micros())
    .execute(&mut *cx)
    .await?;
    let moderator = sqlx::query("SELECT id FROM operators WHERE role = 'moderator' AND suspended_at IS NULL LIMIT 1")
        .fetch_optional(&mut *cx)
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
    let text = format!("{REPORT} WHERE id = $1");
    sqlx::query(sqlx::AssertSqlSafe(text))
        .bind(id.to_string())
        .fetch_optional(cx)
        .await?
        .map(|row| report(&row))
        .transpose()
}

fn missing(id: ReportId) -> Error {
    Error::Missing {
        what: "report",
        id: id.to_string(),
    }
}

fn report(row: &AnyRow) -> Result<Report, Error> {
    Ok(Report {
        id: row.parsed("id")?,
        kind: row.parsed("kind")?,
        item: row.value("item_id")?,
        named: row.value("named")?,
        reason: row.parsed("reason")?,
        detail: row.value("detail")?,
        agent: row.parsed_optional("agent_id")?,
        email: row.value("email")?,
        status: row.parsed("status")?,
        created_at: row.time("created_at")?,
        decided_at: row.time_optional("decided_at")?,
        takedown: row.parsed_optional("takedown_id")?,
    })
}
