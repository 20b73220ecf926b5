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
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, bigint, nested, row, texts};
use crate::writer::Change;
use crate::{Allowance, Error, NewContribution, Store, accounts};

row! {
    /// An upload as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Upload {
        /// Id of the upload, and of its contribution once it is completed.
        pub id: ContributionId,
        /// Project that receives the records.
        pub project: DatasetId = "project_id",
        /// Agent that began the upload.
        pub agent: AgentId = "agent_id",
        /// Operator that the agent acts for.
        pub operator: OperatorId = "operator_id",
        /// Declared source of the records.
        pub source_declaration: Option<String>,
        /// Total size of the parts in bytes.
        pub bytes: u64 = "byte_count",
        /// Number of parts of the upload.
        pub parts: u32 = "part_count",
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

row! {
    /// An open upload, with the names that people know.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OpenUpload {
        /// The upload itself.
        pub upload: Upload = Upload::COLUMNS => nested,
        /// Slug of its project.
        pub slug: String,
        /// Name of the agent that began it.
        pub agent: String,
    }
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
        self.write_aside(tx!(async move |cx| {
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
            sql!(
                "INSERT INTO uploads
                     (id, project_id, agent_id, operator_id, source_declaration, byte_count, part_count, part_size,
                      compression, status, created_at, expires_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'open', $10, $11)",
                new.id,
                new.project,
                new.agent,
                new.operator,
                new.source_declaration,
                bytes,
                new.parts,
                part_size,
                new.compression,
                new.created_at,
                new.expires_at
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(UploadCreated::Created))
        }))
        .await
    }

    /// Returns the upload with this id. The caller decides who may see it.
    pub async fn upload(&self, id: ContributionId) -> Result<Option<Upload>, Error> {
        self.optional(sql!(
            text!("SELECT ", Upload::COLUMNS, " FROM uploads WHERE id = $1"),
            id
        ))
        .await
    }

    /// Returns the open uploads of an operator, oldest first. There are at most as many as [`UploadBounds::open`] allows.
    pub async fn uploads_open(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<OpenUpload>, Error> {
        self.all(sql!(
            "SELECT uploads.*, projects.slug AS slug, agents.name AS agent
             FROM uploads
             JOIN projects ON projects.id = uploads.project_id
             JOIN agents ON agents.id = uploads.agent_id
             WHERE uploads.operator_id = $1 AND uploads.status = 'open' AND uploads.expires_at > $2
             ORDER BY uploads.created_at, uploads.id",
            operator,
            now
        ))
        .await
    }

    /// Returns the bytes that an operator's uploads hold.
    pub async fn upload_bytes_held(&self, operator: OperatorId) -> Result<u64, Error> {
        self.read(async { sql!(HELD, operator).row(&mut self.readers()).await?.get("held") })
            .await
    }

    /// Expires an open upload before its time, and gives back the allowance that it used.
    pub async fn upload_abandon(&self, id: ContributionId) -> Result<UploadAbandoned, Error> {
        self.write_aside(tx!(async move |cx| {
            let expired = sql!(
                concat!(
                    "UPDATE uploads SET status = 'expired' WHERE id = $1 AND status = 'open' RETURNING ",
                    expired_columns!()
                ),
                id
            )
            .row_if_any(cx)
            .await?;
            // Nothing is given back unless this call expired the upload.
            if let Some(upload) = expired {
                give_back(cx, &upload).await?;
                return Ok(Change::Keep(UploadAbandoned::Abandoned));
            }
            let status: Option<String> = sql!("SELECT status FROM uploads WHERE id = $1", id)
                .scalar_if_any(cx)
                .await?;
            Ok(Change::Undo(match status.as_deref() {
                Some("completed") => UploadAbandoned::Completed,
                _ => UploadAbandoned::Before,
            }))
        }))
        .await
    }

    /// Turns an open upload into a contribution. `new` has the id of the upload and a submission that names its bytes;
    /// `etags` is JSON.
    ///
    /// # Errors
    /// [`Error::Missing`] if the upload or the project does not exist.
    pub async fn upload_complete(&self, etags: String, new: NewContribution) -> Result<UploadCompleted, Error> {
        let outcome = self
            .write_aside(tx!(async move |cx| {
                let completed = sql!(
                    "UPDATE uploads SET status = 'completed', etags = $2
                     WHERE id = $1 AND status = 'open' AND expires_at > $3",
                    new.id,
                    etags,
                    new.now
                )
                .run(cx)
                .await?;
                // The status tells a repeated completion from one that came too late.
                if completed == 0 {
                    let status: Option<String> = sql!("SELECT status FROM uploads WHERE id = $1", new.id)
                        .scalar_if_any(cx)
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
            }))
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
                // The condition on `freed_at` holds for every open upload; it lets the
                // query use the index.
                sql!(
                    "SELECT COUNT(*) FROM uploads
                     WHERE freed_at IS NULL AND status = 'open'
                       AND (expires_at <= $1 OR EXISTS
                            (SELECT 1 FROM operators
                             WHERE operators.id = uploads.operator_id AND suspended_at IS NOT NULL))",
                    now
                )
                .scalar(&mut self.readers())
                .await
            })
            .await?;
        // The update repeats the condition, so an upload completed in between is left alone.
        if overdue > 0 {
            self.write_aside(tx!(async move |cx| {
                let expired = sql!(
                    concat!(
                        "UPDATE uploads SET status = 'expired'
                         WHERE freed_at IS NULL AND status = 'open'
                           AND (expires_at <= $1 OR EXISTS
                                (SELECT 1 FROM operators
                                 WHERE operators.id = uploads.operator_id AND suspended_at IS NOT NULL))
                         RETURNING ",
                        expired_columns!()
                    ),
                    now
                )
                .rows(cx)
                .await?;
                for upload in expired {
                    give_back(cx, &upload).await?;
                }
                Ok(Change::Keep(()))
            }))
            .await?;
        }
        self.read(async {
            sql!(
                "SELECT uploads.id AS id FROM uploads LEFT JOIN contributions ON contributions.id = uploads.id
                 WHERE uploads.freed_at IS NULL
                   AND (uploads.status = 'expired'
                        OR contributions.status = 'merged'
                        OR (contributions.status = 'rejected'
                            AND (contributions.reject_code <> 'unprocessable' OR contributions.decided_at <= $1)))
                   AND uploads.id > $2
                 ORDER BY uploads.id LIMIT $3",
                now.minus(replayable),
                after.map(|id| id.to_string()).unwrap_or_default(),
                limit
            )
            .rows(&mut self.readers())
            .await?
            .iter()
            .map(|row| row.get("id"))
            .collect()
        })
        .await
    }

    /// Returns the datasets that an operator maintains, each with its latest recorded version.
    pub async fn datasets_of(&self, operator: OperatorId) -> Result<Vec<(DatasetId, Version)>, Error> {
        self.read(async {
            sql!(
                "SELECT id, version FROM projects WHERE operator_id = $1 AND deleted_at IS NULL ORDER BY id",
                operator
            )
            .rows(&mut self.readers())
            .await?
            .iter()
            .map(|row| Ok((row.get("id")?, row.get("version")?)))
            .collect()
        })
        .await
    }

    /// Records that the bytes of an upload are deleted.
    pub async fn upload_freed(&self, id: ContributionId, now: Timestamp) -> Result<(), Error> {
        self.write_aside(tx!(async move |cx| {
            sql!(
                "UPDATE uploads SET freed_at = $2 WHERE id = $1 AND status <> 'open' AND freed_at IS NULL",
                id,
                now
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }))
        .await
    }
}

/// Gives back the allowance that an expired upload used on the day of its beginning.
async fn give_back(cx: &mut AnyConnection, expired: &AnyRow) -> Result<(), Error> {
    // Uploads to private projects use none.
    if expired.get::<Visibility>("visibility")? == Visibility::Public {
        let day = expired.get::<Timestamp>("created_at")?.day();
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
    let row = sql!(
        "SELECT COUNT(*) AS open_count, COALESCE(MIN(expires_at), 0) AS until
         FROM uploads WHERE operator_id = $1 AND status = 'open' AND expires_at > $2",
        new.operator,
        new.created_at
    )
    .row(cx)
    .await?;
    if row.get::<u64>("open_count")? >= u64::from(bounds.open) {
        let until = row.get("until")?;
        return Ok(Some(UploadCreated::TooMany { until }));
    }
    let row = sql!(HELD, new.operator).row(cx).await?;
    let held: u64 = row.get("held")?;
    let full = held.saturating_add(new.bytes) > bounds.bytes;
    Ok(full.then_some(UploadCreated::Full { held }))
}
