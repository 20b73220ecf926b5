//! The parts of an upload, written on a thread of their own while its next rows are judged.
//!
//! Invariant: whoever drops it waits until nothing is written any more, so the folder can go.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use arrow::array::ArrayRef;
use parquet::errors::ParquetError;
use types::fault;

use super::file::{CommonValues, PartWriter, WrittenPart};
use super::files::failed;
use crate::Error;

/// Maximum number of rows in a part, roughly.
const PART_ROWS: u64 = 1_000_000;
/// Maximum size of a part, roughly.
const PART_BYTES: usize = 128 << 20;
/// Number of batches that wait to be written.
const MAX_WAITING_BATCHES: usize = 2;

/// Writes parts; the thread begins with the first rows.
#[derive(Debug)]
pub(super) struct WritingThread {
    folder: PathBuf,
    common: CommonValues,
    /// Number of rows at which a part ends with its batch.
    pub(super) part_rows: u64,
    /// Roughly how many bytes of the rows that were taken are still to be written.
    unwritten: Arc<AtomicUsize>,
    started: Option<StartedWriting>,
}

#[derive(Debug)]
struct StartedWriting {
    /// None of the rows after the last.
    batches: SyncSender<Option<Vec<ArrayRef>>>,
    thread: JoinHandle<Result<Vec<WrittenPart>, ParquetError>>,
}

impl WritingThread {
    /// Parts in this folder, of rows that have this in common.
    pub(super) fn new(folder: PathBuf, common: CommonValues) -> Self {
        Self {
            folder,
            common,
            part_rows: PART_ROWS,
            unwritten: Arc::default(),
            started: None,
        }
    }

    /// Adds rows, as [`PartWriter::write`] takes them. Waits where others wait to be written. An error may be that of rows
    /// before.
    pub(super) fn push(&mut self, rows: Vec<ArrayRef>) -> Result<(), Error> {
        let started = match self.started.take() {
            Some(started) => started,
            None => self.start()?,
        };
        if started.batches.send(Some(rows)).is_err() {
            // It takes no more only where it failed.
            let early = || Error::Encode(ParquetError::General("the parts ended before the rows".to_owned()));
            return Err(started.end().err().unwrap_or_else(early));
        }
        self.started = Some(started);
        Ok(())
    }

    /// Roughly how many bytes of the rows so far are still to be written.
    pub(super) fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed) as u64
    }

    /// Ends the last part.
    pub(super) fn finish(mut self) -> Result<Vec<WrittenPart>, Error> {
        self.started.take().map_or_else(|| Ok(Vec::new()), StartedWriting::end)
    }

    fn start(&self) -> Result<StartedWriting, Error> {
        let (batches, rows) = sync_channel(MAX_WAITING_BATCHES);
        let (folder, common, part_rows) = (self.folder.clone(), self.common.clone(), self.part_rows);
        let unwritten = Arc::clone(&self.unwritten);
        let thread = thread::Builder::new()
            .name("staged-parts".to_owned())
            .spawn(move || write(&folder, &common, part_rows, &unwritten, &rows))
            .map_err(failed)?;
        Ok(StartedWriting { batches, thread })
    }
}

impl Drop for WritingThread {
    fn drop(&mut self) {
        if let Some(StartedWriting { batches, thread }) = self.started.take() {
            drop(batches);
            // Ignored, because nobody wants the files that it wrote.
            drop(thread.join());
        }
    }
}

impl StartedWriting {
    fn end(self) -> Result<Vec<WrittenPart>, Error> {
        // Ignored: a thread that takes nothing any more failed, and its own error is the one to return.
        self.batches.send(None).unwrap_or_default();
        match self.thread.join() {
            Ok(parts) => parts.map_err(failure),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Writes rows until there are no more; leaves off after those that wait where nobody wants them any more.
fn write(
    folder: &Path,
    common: &CommonValues,
    part_rows: u64,
    unwritten: &AtomicUsize,
    batches: &Receiver<Option<Vec<ArrayRef>>>,
) -> Result<Vec<WrittenPart>, ParquetError> {
    let mut parts = Vec::new();
    let mut open: Option<PartWriter> = None;
    while let Ok(rows) = batches.recv() {
        let Some(rows) = rows else {
            parts.extend(open.take().map(end).transpose()?);
            break;
        };
        let path = || folder.join(format!("part-{}.parquet", parts.len()));
        let mut writer = match open.take() {
            Some(writer) => writer,
            None => PartWriter::create(path(), common.clone(), &rows)?,
        };
        writer.write(&rows)?;
        unwritten.store(writer.unwritten(), Ordering::Relaxed);
        if writer.rows() >= part_rows || writer.bytes() >= PART_BYTES {
            parts.push(end(writer)?);
            unwritten.store(0, Ordering::Relaxed);
        } else {
            open = Some(writer);
        }
    }
    Ok(parts)
}

fn end(writer: PartWriter) -> Result<WrittenPart, ParquetError> {
    let written = writer.finish()?;
    fault::point("stage.part");
    Ok(written)
}

/// Classifies the failure of a file: a disk may take later the bytes that it does not take now.
pub(crate) fn failure(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast() {
            Ok(error) => failed(*error),
            Err(source) => Error::Encode(ParquetError::External(source)),
        },
        error => Error::Encode(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use serde_json::json;
    use types::{AgentId, Batch, Contract, ContributionId, Timestamp, Version};

    use super::*;
    use crate::part;

    fn contract() -> Arc<Contract> {
        Arc::new(serde_json::from_value(json!({"fields": [{"name": "n", "type": "integer"}]})).unwrap())
    }

    fn begun(folder: &Path) -> WritingThread {
        let at = Timestamp::from_micros(1);
        let common = CommonValues {
            schema: part::schema(&contract()),
            contribution: ContributionId::new(at),
            agent: AgentId::new(at),
            version: Version(1),
        };
        WritingThread::new(folder.to_owned(), common)
    }

    fn rows() -> Vec<ArrayRef> {
        part::varying(&Batch::decode(&contract(), &[json!({"n": 1}), json!({"n": 2})]), 0)
    }

    #[test]
    fn a_part_ends_with_the_batch_that_fills_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut writing = begun(folder.path());
        writing.part_rows = 4;
        for _ in 0..5 {
            writing.push(rows()).unwrap();
        }
        let parts = writing.finish().unwrap();
        assert_eq!(parts.iter().map(|part| part.rows).collect::<Vec<_>>(), [4, 4, 2]);
        assert!(begun(folder.path()).finish().unwrap().is_empty());
    }

    #[test]
    fn what_a_disk_does_not_take_is_an_error_that_may_pass() {
        let folder = tempfile::tempdir().unwrap();
        let mut writing = begun(&folder.path().join("missing"));
        let pushed: Result<(), Error> = (0..2 * MAX_WAITING_BATCHES).try_for_each(|_| writing.push(rows()));
        let ended = pushed.and_then(|()| writing.finish().map(drop));
        assert!(matches!(ended, Err(Error::Scratch(error)) if error.kind() == ErrorKind::NotFound));
    }

    #[test]
    fn what_nobody_wants_is_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut writing = begun(folder.path());
        writing.part_rows = 4;
        for _ in 0..3 {
            writing.push(rows()).unwrap();
        }
        drop(writing);
        let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(size("part-0.parquet") > 4);
        // Nothing but what a file begins with.
        assert_eq!(size("part-1.parquet"), 4);
        folder.close().unwrap();
    }
}
