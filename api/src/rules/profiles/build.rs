//! Building of a profile: the sketches of the parts of a version, merged, and the documents of the result.
//!
//! Invariants:
//! - A profile depends on the rows of its version only: not on its files, nor on which of their sketches were stored.
//! - A sketch that is missing, damaged or of something else is made again from its part.
//! - Rows and sketches are read on a blocking thread, one batch or one sketch in memory.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::error::ArrowError;
use catalog::{Catalog, Columns, HIDDEN_COLUMNS, PartInfo, Snapshot};
use futures_util::TryStreamExt as _;
use operators::profile::{MAX_PREVIEW_ROWS, ProfileFigures, ProfileLevel, SamplingKey, Sketch};
use serde_json::{Map, Value};
use store::{Access, NewProfile, Visibility};
use tokio_util::sync::CancellationToken;
use types::render::lines::RenderedLines;
use types::{Contract, RecordKey, fault, metric};

use super::rows::{self, RankedRow, TextCut};
use super::{MOST_FREE_ROWS, MOST_PAID_ROWS};
use crate::codes::ErrorCode;
use crate::error::ApiError;

/// Rows of a part from which its sketch is kept.
const KEPT_ROWS: u64 = 65_536;
/// Bytes of a part from which its sketch is kept.
const KEPT_PART_BYTES: u64 = 2 << 20;
/// The part of the bytes of a part that its sketch may take, as a divisor.
const SKETCH_SHARE: u64 = 16;
/// Bytes of a sketch before it is compressed. The largest, of 256 columns of texts, has half of them.
const MAX_SKETCH_BYTES: u64 = 64 << 20;
/// Level of the compression of sketches.
const SKETCH_ZSTD_LEVEL: i32 = 3;
/// Bytes of the figures of a document, as JSON.
const FIGURES_BYTES: usize = 256 << 10;

/// What a project says of the documents of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentTerms {
    /// Access to its records.
    pub(crate) access: Access,
    /// Its visibility.
    pub(crate) visibility: Visibility,
    /// Number of rows that anybody sees; `None` shows nothing of a paid project.
    pub(crate) preview_rows: Option<u32>,
}

/// Failure to build a profile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// Failure to read the table.
    #[error(transparent)]
    Table(#[from] catalog::Error),
    /// A part whose columns are not those of the contract.
    #[error("rows cannot be sketched: {0}")]
    Rows(#[from] ArrowError),
    /// Records or figures that cannot be written as JSON.
    #[error("a document cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// Sketches of one table that do not fit together.
    #[error(transparent)]
    Mismatch(#[from] operators::profile::SketchMismatch),
    /// The process stops, or nobody waits for the profile.
    #[error("the build was stopped")]
    Stopped,
    /// The thread of the build failed.
    #[error("the thread of the build failed: {0}")]
    Thread(#[from] tokio::task::JoinError),
}

impl BuildError {
    /// Returns the word of the error that a caller gets for it.
    pub(crate) fn into_word(self) -> &'static str {
        match self {
            Self::Table(catalog::Error::HistoryLost { .. }) => ErrorCode::HistoryLost.word(),
            error => ApiError::from(error).machine_code(),
        }
    }
}

impl From<BuildError> for ApiError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Table(error) => error.into(),
            BuildError::Stopped => Self::unavailable(error),
            _ => Self::internal(error),
        }
    }
}

/// A profile of which the stored sketches are merged, and the other parts are to be read.
#[derive(Debug)]
pub(crate) struct BegunProfile {
    snapshot: Snapshot,
    contract: Arc<Contract>,
    sampling: SamplingKey,
    tag: [u8; 32],
    merged: Sketch,
    /// Parts without a sketch, each with the place of its first row.
    unread: Vec<(PartInfo, u64)>,
    sketch_bytes: u64,
}

impl BegunProfile {
    /// Reads the stored sketches of a version, on a blocking thread. Returns `None` for a dataset without a table.
    pub(crate) async fn begin(
        snapshot: Snapshot,
        sampling: SamplingKey,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, BuildError> {
        on_thread(
            stop,
            move |stop| async move { Self::begun(snapshot, sampling, &stop).await },
        )
        .await
    }

    async fn begun(
        snapshot: Snapshot,
        sampling: SamplingKey,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, BuildError> {
        let Some(contract) = snapshot.contract().map(Arc::clone) else {
            return Ok(None);
        };
        let tag = tag(&contract, &sampling)?;
        let mut begun = Self {
            merged: Sketch::new(&contract),
            snapshot,
            contract,
            sampling,
            tag,
            unread: Vec::new(),
            sketch_bytes: 0,
        };
        let mut first = 0;
        for part in begun.snapshot.parts() {
            if stop.is_cancelled() {
                return Err(BuildError::Stopped);
            }
            let rows = part.rows;
            if !begun.takes_stored(&part).await? {
                begun.unread.push((part, first));
            }
            first += rows;
        }
        Ok(Some(begun))
    }

    /// Merges the stored sketch of a part. Returns false if there is none.
    async fn takes_stored(&mut self, part: &PartInfo) -> Result<bool, BuildError> {
        if !is_kept(part) {
            return Ok(false);
        }
        let Some(bytes) = self.snapshot.sketch(part, &self.tag).await? else {
            return Ok(false);
        };
        let sketch = unpacked(&bytes).ok();
        let sketch = sketch.and_then(|sketch| Sketch::decode(&self.contract, &sketch).ok());
        let merged = match &sketch {
            Some(sketch) if sketch.records() == part.rows => self.merged.merge(sketch).is_ok(),
            _ => false,
        };
        if merged {
            self.sketch_bytes += bytes.len() as u64;
            metrics::counter!(metric::SKETCH_BYTES, "direction" => "read").increment(bytes.len() as u64);
        } else {
            tracing::warn!(
                dataset = %self.snapshot.dataset(),
                part = part.name(),
                "a sketch cannot be used; it is made again"
            );
        }
        Ok(merged)
    }

    /// Returns the number of rows that are to be read.
    pub(crate) fn unread_rows(&self) -> u64 {
        self.unread.iter().map(|(part, _)| part.rows).sum()
    }

    /// Reads the parts without a sketch, on a blocking thread, and returns the documents. A build that nobody waits for any
    /// more ends after a batch of rows.
    pub(crate) async fn finish(self, terms: DocumentTerms, stop: &CancellationToken) -> Result<NewProfile, BuildError> {
        on_thread(stop, move |stop| async move { self.built(terms, &stop).await }).await
    }

    async fn built(mut self, terms: DocumentTerms, stop: &CancellationToken) -> Result<NewProfile, BuildError> {
        for (part, first) in std::mem::take(&mut self.unread) {
            if is_kept(&part) {
                let mut sketch = Sketch::new(&self.contract);
                self.read(&part, first, &mut sketch, stop).await?;
                self.keep(&part, &sketch).await;
                self.merged.merge(&sketch)?;
            } else {
                // The sketch of a small part is not kept, so its rows go where they are needed.
                let mut merged = std::mem::replace(&mut self.merged, Sketch::new(&self.contract));
                self.read(&part, first, &mut merged, stop).await?;
                self.merged = merged;
            }
        }
        self.documents(terms, stop).await
    }

    /// Adds the rows of a part to a sketch.
    async fn read(
        &self,
        part: &PartInfo,
        first: u64,
        sketch: &mut Sketch,
        stop: &CancellationToken,
    ) -> Result<(), BuildError> {
        let mut batches = self.snapshot.stream(Columns::All, first..first + part.rows);
        let mut place = first;
        while let Some(batch) = batches.try_next().await? {
            if stop.is_cancelled() {
                return Err(BuildError::Stopped);
            }
            sketch.add(&batch, &keys(&batch)?, place, &self.sampling)?;
            place += batch.num_rows() as u64;
        }
        Ok(())
    }

    /// Keeps the sketch of a part, if it is small beside it. A failure only costs the next build time.
    async fn keep(&mut self, part: &PartInfo, sketch: &Sketch) {
        let broken = |error: &(dyn std::error::Error + 'static)| {
            tracing::warn!(
                error = types::error::with_causes(error),
                "cannot keep the sketch of a part; it is made again each time"
            );
        };
        let bytes = match packed(sketch) {
            Ok(bytes) => bytes,
            Err(error) => return broken(&error),
        };
        if bytes.len() as u64 > part.bytes / SKETCH_SHARE {
            return;
        }
        match self.snapshot.put_sketch(part, &self.tag, &bytes).await {
            Ok(size) => {
                fault::point("profile.sketch");
                self.sketch_bytes += size;
                metrics::counter!(metric::SKETCH_BYTES, "direction" => "written").increment(size);
            }
            Err(error) => broken(&error),
        }
    }

    async fn documents(&self, terms: DocumentTerms, stop: &CancellationToken) -> Result<NewProfile, BuildError> {
        let is_open = terms.access == Access::Public && terms.visibility == Visibility::Public;
        let most = if is_open { MOST_FREE_ROWS } else { MOST_PAID_ROWS };
        let rows = self
            .preview(usize::try_from(most).unwrap_or(MAX_PREVIEW_ROWS), stop)
            .await?;
        let preview = |cut| -> Result<String, serde_json::Error> {
            let rows: Vec<RankedRow> = rows::of_document(&self.contract, &rows, cut);
            serde_json::to_string(&rows)
        };
        let version = self.snapshot.version();
        let public = match (terms.access, terms.preview_rows) {
            (Access::Paid, Some(_)) => Some((
                figures_text(self.merged.profile(ProfileLevel::Public))?,
                preview(TextCut::PAID)?,
            )),
            _ => None,
        };
        Ok(NewProfile {
            project: self.snapshot.dataset(),
            version,
            root: self
                .snapshot
                .root_at(version)
                .map_or_else(String::new, |root| root.to_string()),
            records: self.snapshot.record_count(),
            figures: figures_text(self.merged.profile(ProfileLevel::Full))?,
            preview: preview(TextCut::FREE)?,
            public,
            sketch_bytes: self.sketch_bytes,
        })
    }

    /// Reads the first rows of the sample in the order of their ranks, each with its place in the version.
    async fn preview(
        &self,
        most: usize,
        stop: &CancellationToken,
    ) -> Result<Vec<(u64, Map<String, Value>)>, BuildError> {
        let mut ranked: Vec<u64> = Vec::with_capacity(most);
        for count in 1..=most {
            // Each set has one row more than the one before, which is the row of that rank.
            let offsets = self.merged.preview_offsets(count);
            ranked.extend(
                offsets
                    .into_iter()
                    .filter(|offset| !ranked.contains(offset))
                    .collect::<Vec<_>>(),
            );
        }
        let mut rows = Vec::with_capacity(ranked.len());
        for offset in ranked {
            if stop.is_cancelled() {
                return Err(BuildError::Stopped);
            }
            let batches = self.snapshot.page(offset, 1).await?;
            for batch in &batches {
                let lines = RenderedLines::new(&self.contract, batch)?;
                let mut text = Vec::new();
                lines.record(0, &mut text);
                rows.push((offset, serde_json::from_slice(&text)?));
            }
        }
        Ok(rows)
    }
}

/// Runs work that computes much on a blocking thread. Its token says that nobody waits for the result any more.
async fn on_thread<T, F>(
    stop: &CancellationToken,
    work: impl FnOnce(CancellationToken) -> F + Send + 'static,
) -> Result<T, BuildError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, BuildError>>,
{
    let stop = stop.child_token();
    let guard = stop.clone().drop_guard();
    let runtime = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || runtime.block_on(work(stop))).await?;
    drop(guard);
    done
}

/// Returns a sketch as it is stored.
fn packed(sketch: &Sketch) -> io::Result<Vec<u8>> {
    zstd::encode_all(sketch.encode().as_slice(), SKETCH_ZSTD_LEVEL)
}

/// Returns the bytes of a stored sketch, up to [`MAX_SKETCH_BYTES`].
fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut sketch = Vec::new();
    zstd::stream::read::Decoder::new(bytes)?
        .take(MAX_SKETCH_BYTES)
        .read_to_end(&mut sketch)?;
    Ok(sketch)
}

/// Returns true if the sketch of a part is kept: reading the part again would take long.
fn is_kept(part: &PartInfo) -> bool {
    part.rows >= KEPT_ROWS || part.bytes >= KEPT_PART_BYTES
}

/// Returns the hash of what a sketch depends on beside the rows: the contract and the key of the sample.
fn tag(contract: &Contract, sampling: &SamplingKey) -> Result<[u8; 32], serde_json::Error> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&sampling.id());
    hasher.update(&serde_json::to_vec(contract)?);
    Ok(*hasher.finalize().as_bytes())
}

fn keys(batch: &RecordBatch) -> Result<Vec<RecordKey>, ArrowError> {
    let broken = || ArrowError::SchemaError("the column of record keys is not one".to_owned());
    let [name, ..] = HIDDEN_COLUMNS;
    let column = batch
        .column_by_name(name)
        .and_then(|column| column.as_binary_opt::<i32>());
    let keys = column.ok_or_else(broken)?.iter().map(|key| {
        let key = key.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
        key.map(RecordKey::from_bytes).ok_or_else(broken)
    });
    keys.collect()
}

/// Returns figures as JSON, of which some are left out if they take too much.
fn figures_text(mut figures: ProfileFigures) -> Result<String, serde_json::Error> {
    figures.cut_to(FIGURES_BYTES);
    serde_json::to_string(&figures)
}

/// Returns the snapshot of a version with a content root. Returns `None` if this process does not see it yet.
///
/// # Errors
/// [`catalog::Error::HistoryLost`] and others of the table. A table with another root has lost its history, too.
pub(crate) async fn snapshot_of(
    catalog: &Catalog,
    project: types::DatasetId,
    version: types::Version,
    root: &str,
) -> Result<Option<Snapshot>, catalog::Error> {
    let Some(snapshot) = catalog.snapshot(project, Some(version)).await? else {
        return Ok(None);
    };
    let found = snapshot.root_at(version).map(|found| found.to_string());
    if found.as_deref() != Some(root) {
        return Err(catalog::Error::HistoryLost {
            dataset: project,
            path: format!("version {version}"),
        });
    }
    Ok(Some(snapshot))
}

/// Measures the time of a build.
pub(crate) fn measure(result: &'static str, took: Duration) {
    metrics::counter!(metric::PROFILES, "result" => result).increment(1);
    metrics::histogram!(metric::PROFILE_SECONDS).record(took.as_secs_f64());
}

#[cfg(test)]
mod tests;
