//! The relay: the quick way of an acknowledged submission to the log.
//!
//! Invariant: handing over never waits and never fails. The queue is bounded in records and bytes; what does not fit,
//! and what the log refuses, is left to the sweeper. The row is the outbox, so a worker may have a submission before the
//! log has it for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eventlog::{EventLog, Record};
use pipelines::message::CONTRIBUTIONS;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;
use types::{fault, metric};

/// The most records that wait for the log.
const QUEUE: usize = 1_024;
/// The most bytes that wait for the log.
const QUEUE_BYTES: usize = 64 << 20;
/// The most records of one append.
const APPEND: usize = 128;

/// Takes submissions whose transaction has committed.
#[derive(Clone, Debug)]
pub struct Relay {
    queue: Sender<Record>,
    bytes: Arc<AtomicUsize>,
}

/// The relay's own task: appends what was handed over.
#[derive(Debug)]
pub struct RelayTask {
    log: Arc<dyn EventLog>,
    queue: Receiver<Record>,
    bytes: Arc<AtomicUsize>,
}

impl Relay {
    /// A relay into `log`; nothing moves until the task runs.
    pub fn new(log: Arc<dyn EventLog>) -> (Self, RelayTask) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let bytes = Arc::new(AtomicUsize::new(0));
        let task = RelayTask {
            log,
            queue: receiver,
            bytes: Arc::clone(&bytes),
        };
        (Self { queue: sender, bytes }, task)
    }

    /// Hands over a submission.
    pub fn submit(&self, record: Record) {
        let bytes = record.value.len();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) > QUEUE_BYTES || self.queue.try_send(record).is_err() {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            tracing::debug!("the relay is full; the sweeper will append the submission");
            metrics::counter!(metric::RELAY_LEFT).increment(1);
        } else {
            metrics::gauge!(metric::RELAY_QUEUE).increment(1.0);
        }
    }
}

impl RelayTask {
    /// Appends submissions until `stop`; what is queued then is left to the sweeper of the next start.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut records = Vec::with_capacity(APPEND);
        while let Some(received) = stop
            .run_until_cancelled(self.queue.recv_many(&mut records, APPEND))
            .await
        {
            if received == 0 {
                return;
            }
            fault::point("relay.read");
            #[expect(clippy::cast_precision_loss, reason = "at most as many as one append takes")]
            metrics::gauge!(metric::RELAY_QUEUE).decrement(received as f64);
            self.bytes
                .fetch_sub(records.iter().map(|record| record.value.len()).sum(), Ordering::Relaxed);
            if let Err(error) = self.log.append_kept(CONTRIBUTIONS, std::mem::take(&mut records)).await {
                tracing::warn!(
                    %error, submissions = received,
                    "cannot append submissions to the log; the sweeper appends them later"
                );
                metrics::counter!(metric::RELAY_LEFT).increment(received as u64);
            }
            fault::point("relay.appended");
        }
    }
}
