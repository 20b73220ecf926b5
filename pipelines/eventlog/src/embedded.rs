//! The embedded backend: one directory, one process, one writer.
//!
//! ```text
//!  append ──┐  bounded by count          ┌── one batch, one fdatasync ──▶ disk (fjall)
//!  append ──┼─────────────────▶ committer┤
//!  commit ──┘  and by bytes              └── then `next` moves, waiters and subscribers wake
//! ```
//!
//! Every write goes through one committer thread. Appends that arrive while it waits for the disk queue up and become
//! its next batch. So a lone append costs one `fdatasync`, and concurrent appends share one.
//!
//! Invariants:
//! - [`Partition::next`](state::Partition) moves only after the batch is durable, so a crash cannot take back a
//!   delivered record. The one exception is a batch whose records all came by [`EventLog::append_recoverable`]: it is
//!   delivered while the disk works. No append is acknowledged before it is durable.
//! - Offsets of a partition have no gaps. The first readable offset moves only past records that every group has
//!   committed.
//! - The first failed write ends writing for this process: after a failed `fsync` the state of the disk is unknown.
//!
//! On disk: `directory`, `layout`. Opening: `recovery`. Writing: `committer`, `batch`. Trimming: `retention`. Reading:
//! `subscription`.

mod batch;
mod committer;
mod directory;
mod layout;
mod recovery;
mod retention;
mod state;
mod subscription;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::unwind::OnPanic;
use crate::{Bounds, Error, EventLog, Position, Record, Subscription, check_name, check_size};
use committer::{Append, Committer, CommitterRequest, EncodedRecord};
use state::EmbeddedState;
use subscription::EmbeddedReader;

/// The most partitions a topic can have.
const MAX_PARTITIONS: u32 = 1024;

/// Options of the embedded log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedOptions {
    /// The number of partitions of topics that do not exist yet, 1 to 1024. A topic keeps the number it was created
    /// with for its life, because another number would move keys to other partitions. Opening with another number logs
    /// a warning.
    pub partitions: u32,
    /// The number of committed records per partition that stay readable. Up to 63 more may stay.
    pub retain: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            partitions: 8,
            retain: 1_000,
        }
    }
}

/// The counters of a log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddedStats {
    /// Calls of [`EventLog::append`] that were answered with positions.
    pub appends: u64,
    /// Records they brought.
    pub records: u64,
    /// Durable batches: each is one `fdatasync`.
    pub fsyncs: u64,
    /// Records removed because every group had done them.
    pub trimmed: u64,
}

/// The log in a directory of this machine. Dropping it closes it: what was queued is written, positions are made
/// durable, and subscriptions that are still alive answer [`Error::Closed`].
#[derive(Debug)]
pub struct Embedded {
    shared: Arc<EmbeddedState>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

impl Embedded {
    /// Opens the log in the directory `path`, which is created if missing. Blocks while the journal is replayed.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it open, [`Error::Damaged`] when a checksum does not match or an
    /// offset is missing, [`Error::Format`] for a directory of another version.
    pub fn open(path: impl AsRef<Path>, options: EmbeddedOptions) -> Result<Arc<Self>, Error> {
        Self::start(path.as_ref(), options, Committer::run)
    }

    fn start(path: &Path, options: EmbeddedOptions, run: fn(Committer)) -> Result<Arc<Self>, Error> {
        // Checked before the directory is touched, so a wrong option leaves nothing behind.
        if !(1..=MAX_PARTITIONS).contains(&options.partitions) {
            return Err(Error::Invalid {
                field: "partitions",
                rule: format!("must be from 1 to {MAX_PARTITIONS}, not {}", options.partitions),
            });
        }
        let (store, topics) = recovery::open(path, options)?;
        let (shared, requests) = EmbeddedState::new(&store, options, topics);
        let shared = Arc::new(shared);
        let committer = Committer::new(Arc::clone(&shared), store, requests);
        let thread = std::thread::Builder::new()
            .name("eventlog-committer".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                // A panic of the committer must fail the log; otherwise appends would wait for
                // ever.
                move || {
                    let _guard = OnPanic(|| shared.fail_after_panic());
                    run(committer);
                }
            })
            .map_err(|error| Error::Storage {
                path: shared.path.clone(),
                cause: Arc::new(error.into()),
            })?;
        Ok(Arc::new(Self {
            shared,
            committer: Mutex::new(Some(thread)),
        }))
    }

    /// Returns the counters since the log was opened.
    pub fn stats(&self) -> EmbeddedStats {
        self.shared.counters.stats()
    }

    /// Records as they are written. Done by the caller, so that the committer has less to do.
    fn encode(&self, records: Vec<Record>) -> Result<Vec<EncodedRecord>, Error> {
        let entry = |record: Record| {
            let value = layout::encode(&record)?;
            Ok(EncodedRecord { key: record.key, value })
        };
        let entries: std::io::Result<Vec<EncodedRecord>> = records.into_iter().map(entry).collect();
        entries.map_err(|error| Error::Storage {
            path: self.shared.path.clone(),
            cause: Arc::new(error.into()),
        })
    }

    async fn write(&self, topic: &str, records: Vec<Record>, kept: bool) -> Result<Vec<Position>, Error> {
        check_name("topic", topic)?;
        let bytes = check_size(&records)?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        // Space is taken before the records are encoded, so encoded records are bounded as
        // well.
        let permits = self.shared.queue_permits(bytes).await?;
        let entries = self.encode(records)?;
        let (reply, answer) = oneshot::channel();
        let append = Append {
            topic: topic.to_owned(),
            entries,
            kept,
            bytes,
            permits,
            reply,
        };
        self.ask(CommitterRequest::Append(append), answer).await
    }

    /// Asks the committer and waits for its answer.
    async fn ask<T>(&self, request: CommitterRequest, answer: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
        self.shared
            .requests
            .send(request)
            .await
            .map_err(|_closed| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

#[async_trait]
impl EventLog for Embedded {
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.write(topic, records, false).await
    }

    async fn append_recoverable(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.write(topic, records, true).await
    }

    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error> {
        check_name("topic", topic)?;
        check_name("group", group)?;
        let (reply, answer) = oneshot::channel();
        let request = CommitterRequest::Join {
            topic: topic.to_owned(),
            group: Some(group.to_owned()),
            keep: None,
            reply,
        };
        let joined = self.ask(request, answer).await?;
        Ok(Box::new(EmbeddedReader::start(Arc::clone(&self.shared), joined, 0)?))
    }

    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error> {
        check_name("topic", topic)?;
        let (reply, answer) = oneshot::channel();
        let request = CommitterRequest::Join {
            topic: topic.to_owned(),
            group: None,
            keep: None,
            reply,
        };
        let joined = self.ask(request, answer).await?;
        Ok(Box::new(EmbeddedReader::start(
            Arc::clone(&self.shared),
            joined,
            count,
        )?))
    }

    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error> {
        check_name("topic", topic)?;
        let (reply, answer) = oneshot::channel();
        let request = CommitterRequest::Join {
            topic: topic.to_owned(),
            group: None,
            keep: Some(count),
            reply,
        };
        self.ask(request, answer).await.map(drop)
    }

    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error> {
        check_name("topic", topic)?;
        Ok(match self.shared.topic(topic) {
            // A topic that was never used is empty. Asking for its bounds does not create it.
            Some(topic) => topic.partitions.iter().map(state::PartitionRange::bounds).collect(),
            None => vec![Bounds { first: 0, next: 0 }; self.shared.options.partitions as usize],
        })
    }
}

impl Embedded {
    /// Closes the log, whoever else has it, and waits until the directory is free.
    pub(crate) fn end(&self) {
        // The committer writes what is queued before it ends, so the directory is complete and
        // unlocked when this returns.
        self.shared.close();
        let thread = self.committer.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(path = %self.shared.path.display(), "the committer of the log ended by a panic");
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    #[tokio::test]
    async fn whoever_waits_for_a_committer_that_panicked_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let log = Embedded::start(directory.path(), EmbeddedOptions::default(), |mut committer| {
            committer.write_next();
            panic!("planted");
        })
        .unwrap();
        let mut reader = log.subscribe("topic", "group").await.unwrap();
        assert!(matches!(reader.event(1).await.unwrap(), Event::Assigned(_)));
        assert!(matches!(reader.event(1).await, Err(Error::Failed { .. })));
        let record = Record {
            key: "key".into(),
            value: "value".into(),
        };
        log.append("topic", vec![record]).await.unwrap_err();
    }
}
