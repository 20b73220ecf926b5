//! Uploads: large contributions in parts, from their start to the deletion of their bytes.
//!
//! Invariant: an upload is completed at most once, and its contribution, with the outbox entry, is created in the same
//! transaction. Bytes whose deletion was not recorded are listed for deletion again.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{AllowanceKind, Compression, ProjectStatus, UploadStatus, Visibility};
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, Version, fault};

use crate::allowances;
use crate::contributions::{outbox, submit};
use crate::row::{Columns, bigint, texts};
use crate::writer::Change;
use crate::{Allowance, Error, NewContribution, Store, accounts};

/// An upload as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Id of the upload, and of its contribution once it is completed.
    pub id: ContributionId,
    /// Project that receives the records.
    pub project: DatasetId,
    /// Agent that began the upload.
    pub agent: AgentId,
    /// Operator that the agent acts for.
    pub operator: OperatorId,
    /// Declared source of the records.
    pub source_declaration: Option<String>,
    /// Total size of the parts in bytes.
    pub bytes: u64,
    /// Number of parts of the upload.
    pub parts: u32,
    /// Size in bytes of every part but the last.
    pub part_size: u64,
    /// Compression of the uploaded bytes.
    pub compression: Compression,
    /// Status of the upload. An open upload past `expires_at` counts as expired all the same.
    pub status: UploadStatus,
    /// Time when it was begun.
    pub created_at: Timestamp,
    /// Time until which it may be completed.
    pub expires_at: Timestamp,
    /// `ETag`s of the parts as JSON; set when completed.
    pub etags: Option<String>,
}

/// Columns of an expired upload that [`give_back`] needs.
macro_rules! expired_columns {
    () => {
        "operator_id, created_at,
         (SELECT visibility FROM projects WHERE projects.id = uploads.project_id) AS visibility"
    };
}

impl Upload {
    /// Returns true if parts may be sent and the upload may be completed.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.status == UploadStatus::Open && now < self.expires_at
    }
}

/// The limits on the uploads of an operator.
#[derive(Clone, Copy, Debug)]
pub struct UploadBounds {
    /// Most uploads that may be open at a time.
    pub open: u32,
    /// Most bytes of uploads whose bytes are not deleted yet.
    pub bytes: u64,
    /// Daily allowance to charge; `None` if none applies.
    pub allowance: Option<Allowance>,
}

/// The result of [`Store::upload_create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum UploadCreated {
    /// The upload is open now.
    Created,
    /// The project takes no contributions.
    NotOpen {
        /// Current status of the project.
        status: ProjectStatus,
    },
    /// The operator is at its limit of open uploads.
    TooMany {
        /// Expiry of the first of them.
        until: Timestamp,
    },
    /// The bytes exceed the limit of the operator.
    Full {
        /// Bytes held by the operator's uploads.
        held: u64,
    },
    /// The day's allowance is used up.
    AllowanceSpent,
}

/// The result of [`Store::upload_complete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum UploadCompleted {
    /// The upload is a contribution now.
    Completed,
    /// The upload was completed before; nothing changed.
    Before,
    /// The upload has expired; nothing changed.
    Expired,
    /// The project takes no contributions; nothing changed.
    NotOpen {
        /// Current status of the project.
        status: ProjectStatus,
    },
}

/// The result of [`Store::upload_abandon`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum UploadAbandoned {
    /// The upload is over now.
    Abandoned,
    /// It was over before, or never created; nothing changed.
    Before,
    /// It was completed; nothing changed.
    Completed,
}

/// An open upload, with the names that people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenUpload {
    /// The upload itself.
    pub upload: Upload,
    /// Slug of its project.
    pub slug: String,
    /// Name of the agent that began it.
    pub agent: String,
}

impl Store {
    /// Begins an upload, unless its project is not open, the operator is at a limit, or the allowance is spent, checked
    /// in this order. `etags` and `status` of `new` are ignored.
    ///
    /// # Errors
    /// [`Error::Missing`] if the project or the operator does not exist.
    pub async fn upload_create(&self, new: Upload, bounds: UploadBounds) -> Result<UploadCreated, Error> {
        texts(&[(
            "source_declaration",
            new.source_declaration.as_deref().unwrap_or_default(),
        )])?;
        let (bytes, part_size) = (bigint("byte_count", new.bytes)?, bigint("part_size", new.part_size)?);
        self.write_aside(move |cx| {
            Box::pin(async move {
                let status = submit::project_status(cx, new.project).await?;
                // Nothing is locked yet, so a refused upload costs other changes nothing.
                if status != ProjectStatus::Open {
                    return Ok(Change::Undo(UploadCreated::NotOpen { status }));
                }
                // The lock makes the counts below exact.
                accounts::lock(cx, new.operator).await?;
                if let Some(refused) = beyond(cx, &new, bounds).await? {
                    return Ok(Change::Undo(refused));
                }
                if let Some(allowance) = bounds.allowance
                    && allowances::spend(cx, new.operator, AllowanceKind::Contribution, allowance)
                        .await?
                        .is_none()
                {
                    return Ok(Change::Undo(UploadCreated::AllowanceSpent));
                }
                sqlx::query(
                    "INSERT INTO uploads
                         (id, project_id, agent_id, operator_id, source_declaration, byte_count, part_count, part_size,
                          compression, status, created_at, expires_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'open', $10, $11)",
                )
                .bind(new.id.to_string())
                .bind(new.project.to_string())
                .bind(new.agent.to_string())
                .bind(new.operator.to_string())
                .bind(new.source_declaration)
                .bind(bytes)
                .bind(i64::from(new.parts))
                .bind(part_size)
                .bind(new.compression.as_str())
                .bind(new.created_at.micros())
                .bind(new.expires_at.micros())
                .execute(&mut *cx)
                .await?;
                Ok(Change::Keep(UploadCreated::Created))
            })
        })
        .await
    }

    /// Returns the upload with this id. The caller decides who may see it.
    pub async fn upload(&self, id: ContributionId) -> Result<Option<Upload>, Error> {
        self.read(async {
            sqlx::query(
                "SELECT id, project_id, agent_id, operator_id, source_declaration, byte_count, part_count, part_size,
                        compression, status, created_at, expires_at, etags
                 FROM uploads WHERE id = $1",
            )
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await?
            .map(|row| upload(&row))
            .transpose()
        })
        .await
    }

    /// Returns the open uploads of an operator, oldest first. There are at most as many as [`UploadBounds::open`] allows.
    pub async fn uploads_open(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<OpenUpload>, Error> {
        self.read(async {
            sqlx::query(
                "SELECT uploads.*, projects.slug AS slug, agents.name AS agent
                 FROM uploads
                 JOIN projects ON projects.id = uploads.project_id
                 JOIN agents ON agents.id = uploads.agent_id
                 WHERE uploads.operator_id = $1 AND uploads.status = 'open' AND uploads.expires_at > $2
                 ORDER BY uploads.created_at, uploads.id",
            )
            .bind(operator.to_string())
            .bind(now.micros())
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(|row| {
                Ok(OpenUpload {
                    upload: upload(row)?,
                    slug: row.value("slug")?,
                    agent: row.value("agent")?,
                })
            })
            .collect()
        })
        .await
    }

    /// Returns the bytes that an operator's uploads hold.
    pub async fn upload_bytes_held(&self, operator: OperatorId) -> Result<u64, Error> {
        self.read(async {
            sqlx::query(HELD)
                .bind(operator.to_string())
                .fetch_one(self.readers())
                .await?
                .number("held")
        })
        .await
    }

    /// Expires an open upload before its time, and gives back the allowance that it used.
    pub async fn upload_abandon(&self, id: ContributionId) -> Result<UploadAbandoned, Error> {
        self.write_aside(move |cx| {
            Box::pin(async move {
                let expired = sqlx::query(concat!(
                    "UPDATE uploads SET status = 'expired' WHERE id = $1 AND status = 'open' RETURNING ",
                    expired_columns!()
                ))
                .bind(id.to_string())
                .fetch_optional(&mut *cx)
                .await?;
                // Nothing is given back unless this call expired the upload.
                if let Some(upload) = expired {
                    give_back(cx, &upload).await?;
                    return Ok(Change::Keep(UploadAbandoned::Abandoned));
                }
                let status: Option<String> = sqlx::query_scalar("SELECT status FROM uploads WHERE id = $1")
                    .bind(id.to_string())
                    .fetch_optional(&mut *cx)
                    .await?;
                Ok(Change::Undo(match status.as_deref() {
                    Some("completed") => UploadAbandoned::Completed,
                    _ => UploadAbandoned::Before,
                }))
            })
        })
        .await
    }

    /// Turns an open upload into a contribution. `new` has the id of the upload and a submission that names its bytes;
    /// `etags` is JSON.
    ///
    /// # Errors
    /// [`Error::Missing`] if the upload or the project does not exist.
    pub async fn upload_complete(&self, etags: String, new: NewContribution) -> Result<UploadCompleted, Error> {
        let outcome = self
            .write_aside(move |cx| {
                Box::pin(async move {
                    let completed = sqlx::query(
                        "UPDATE uploads SET status = 'completed', etags = $2
                         WHERE id = $1 AND status = 'open' AND expires_at > $3",
                    )
                    .bind(new.id.to_string())
                    .bind(etags)
                    .bind(new.now.micros())
                    .execute(&mut *cx)
                    .await?;
                    // The status tells a repeated completion from one that came too late.
                    if completed.rows_affected() == 0 {
                        let status: Option<String> = sqlx::query_scalar("SELECT status FROM uploads WHERE id = $1")
                            .bind(new.id.to_string())
                            .fetch_optional(&mut *cx)
                            .await?;
                        return match status.as_deref() {
                            Some("completed") => Ok(Change::Undo(UploadCompleted::Before)),
                            Some(_) => Ok(Change::Undo(UploadCompleted::Expired)),
                            None => Err(Error::Missing {
                                what: "upload",
                                id: new.id.to_string(),
                            }),
                        };
                    }
                    if !submit::insert(cx, &new).await? {
                        let status = submit::project_status(cx, new.project).await?;
                        return Ok(Change::Undo(UploadCompleted::NotOpen { status }));
                    }
                    outbox::insert(cx, new.id, new.project, new.submission, new.first_sweep).await?;
                    fault::point("upload.rows");
                    Ok(Change::Keep(UploadCompleted::Completed))
                })
            })
            .await?;
        if outcome == UploadCompleted::Completed {
            fault::point("upload.commit");
        }
        Ok(outcome)
    }

    /// Expires open uploads past their time, and returns uploads whose bytes are no longer needed, by id: those after
    /// `after`, or the first. These have expired, or their contribution is decided. Bytes of an unprocessable
    /// contribution are kept for `replayable`, because it may be replayed.
    pub async fn uploads_to_free(
        &self,
        now: Timestamp,
        replayable: Duration,
        after: Option<ContributionId>,
        limit: u32,
    ) -> Result<Vec<ContributionId>, Error> {
        // Usually no upload has expired, and a change costs a sync, so the database is read
        // first.
        let overdue: i64 = self
            .read(async {
                Ok(
                    // The condition on `freed_at` holds for every open upload; it lets the
                    // query use the index.
                    sqlx::query_scalar(
                        "SELECT COUNT(*) FROM uploads
                         WHERE freed_at IS NULL AND status = 'open'
                           AND (expires_at <= $1 OR EXISTS
                                (SELECT 1 FROM operators
                                 WHERE operators.id = uploads.operator_id AND suspended_at IS NOT NULL))",
                    )
                    .bind(now.micros())
                    .fetch_one(self.readers())
                    .await?,
                )
            })
            .await?;
        // The update repeats the condition, so an upload completed in between is left alone.
        if overdue > 0 {
            self.write_aside(move |cx| {
                Box::pin(async move {
                    let expired = sqlx::query(concat!(
                        "UPDATE uploads SET status = 'expired'
                         WHERE freed_at IS NULL AND status = 'open'
                           AND (expires_at <= $1 OR EXISTS
                                (SELECT 1 FROM operators
                                 WHERE operators.id = uploads.operator_id AND suspended_at IS NOT NULL))
                         RETURNING ",
                        expired_columns!()
                    ))
                    .bind(now.micros())
                    .fetch_all(&mut *cx)
                    .await?;
                    for upload in expired {
                        give_back(cx, &upload).await?;
                    }
                    Ok(Change::Keep(()))
                })
            })
            .await?;
        }
        self.read(async {
            sqlx::query(
                "SELECT uploads.id AS id FROM uploads LEFT JOIN contributions ON contributions.id = uploads.id
                 WHERE uploads.freed_at IS NULL
                   AND (uploads.status = 'expired'
                        OR contributions.status = 'merged'
                        OR (contributions.status = 'rejected'
                            AND (contributions.reject_code <> 'unprocessable' OR contributions.decided_at <= $1)))
                   AND uploads.id > $2
                 ORDER BY uploads.id LIMIT $3",
            )
            .bind(now.minus(replayable).micros())
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(|row| row.parsed("id"))
            .collect()
        })
        .await
    }

    /// Returns the datasets that an operator maintains, each with its latest recorded version.
    pub async fn datasets_of(&self, operator: OperatorId) -> Result<Vec<(DatasetId, Version)>, Error> {
        self.read(async {
            sqlx::query("SELECT id, version FROM projects WHERE operator_id = $1 ORDER BY id")
                .bind(operator.to_string())
                .fetch_all(self.readers())
                .await?
                .iter()
                .map(|row| Ok((row.parsed("id")?, Version(row.number("version")?))))
                .collect()
        })
        .await
    }

    /// Records that the bytes of an upload are deleted.
    pub async fn upload_freed(&self, id: ContributionId, now: Timestamp) -> Result<(), Error> {
        self.write_aside(move |cx| {
            Box::pin(async move {
                sqlx::query("UPDATE uploads SET freed_at = $2 WHERE id = $1 AND status <> 'open' AND freed_at IS NULL")
                    .bind(id.to_string())
                    .bind(now.micros())
                    .execute(&mut *cx)
                    .await?;
                Ok(Change::Keep(()))
            })
        })
        .await
    }
}

/// Gives back the allowance that an expired upload used on the day of its beginning.
async fn give_back(cx: &mut AnyConnection, expired: &AnyRow) -> Result<(), Error> {
    // Uploads to private projects use none.
    if expired.parsed::<Visibility>("visibility")? == Visibility::Public {
        let day = expired.time("created_at")?.day();
        let operator = expired.value::<&str>("operator_id")?;
        allowances::give_back(cx, operator, AllowanceKind::Contribution, day).await?;
    }
    Ok(())
}

/// Bytes of an operator's uploads. Rejected ones do not count, although their bytes may be kept for a replay.
const HELD: &str = "SELECT CAST(COALESCE(SUM(byte_count), 0) AS BIGINT) AS held
     FROM uploads WHERE operator_id = $1 AND freed_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM contributions
                       WHERE contributions.id = uploads.id AND contributions.status = 'rejected')";

/// Returns the limit that another upload would exceed, if any.
async fn beyond(cx: &mut AnyConnection, new: &Upload, bounds: UploadBounds) -> Result<Option<UploadCreated>, Error> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS open_count, COALESCE(MIN(expires_at), 0) AS until
         FROM uploads WHERE operator_id = $1 AND status = 'open' AND expires_at > $2",
    )
    .bind(new.operator.to_string())
    .bind(new.created_at.micros())
    .fetch_one(&mut *cx)
    .await?;
    if row.number::<u64>("open_count")? >= u64::from(bounds.open) {
        let until = row.time("until")?;
        return Ok(Some(UploadCreated::TooMany { until }));
    }
    let row = sqlx::query(HELD)
        .bind(new.operator.to_string())
        .fetch_one(&mut *cx)
        .await?;
    let held: u64 = row.number("held")?;
    let full = held.saturating_add(new.bytes) > bounds.bytes;
    Ok(full.then_some(UploadCreated::Full { held }))
}

fn upload(row: &AnyRow) -> Result<Upload, Error> {
    Ok(Upload {
        id: row.parsed("id")?,
        project: row.parsed("project_id")?,
        agent: row.parsed("agent_id")?,
        operator: row.parsed("operator_id")?,
        source_declaration: row.value("source_declaration")?,
        bytes: row.number("byte_count")?,
        parts: row.number("part_count")?,
        part_size: row.number("part_size")?,
        compression: row.parsed("compression")?,
        status: row.parsed("status")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
        etags: row.value("etags")?,
    })
}
