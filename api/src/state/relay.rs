//! Relay: appends an acknowledged submission to the log right away.
//!
//! Invariant: submitting never waits and never fails. The queue is bounded in records and bytes. Submissions that do
//! not fit, or that the log refuses, are left to the sweeper. The row in the database is the outbox, so a worker may
//! receive a submission before the log has stored it durably.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eventlog::{EventLog, Record};
use messages::{CONTRIBUTIONS_TOPIC, KNOWLEDGE_TOPIC};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;
use types::{fault, metric};

/// Records that wait for the log, at most.
const MAX_QUEUED_RECORDS: usize = 1_024;
/// Bytes that wait for the log, at most.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Records of one append, at most.
const RECORDS_PER_APPEND: usize = 128;

/// Submission with its topic.
#[derive(Debug)]
struct QueuedSubmission {
    topic: &'static str,
    record: Record,
}

/// Handle to which submissions are passed after their transaction was committed.
#[derive(Clone, Debug)]
pub struct Relay {
    queue: Sender<QueuedSubmission>,
    bytes: Arc<AtomicUsize>,
}

/// Task of the relay, which appends the queued submissions.
#[derive(Debug)]
pub struct RelayTask {
    log: Arc<dyn EventLog>,
    queue: Receiver<QueuedSubmission>,
    bytes: Arc<AtomicUsize>,
}

impl Relay {
    /// Creates a relay into `log`. Submissions are queued until the task runs.
    pub fn new(log: Arc<dyn EventLog>) -> (Self, RelayTask) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_RECORDS);
        let bytes = Arc::new(AtomicUsize::new(0));
        let task = RelayTask {
            log,
            queue: receiver,
            bytes: Arc::clone(&bytes),
        };
        (Self { queue: sender, bytes }, task)
    }

    /// Queues a submission of a topic. If the queue is full, the submission is left to the sweeper.
    pub fn submit(&self, topic: &'static str, record: Record) {
        let bytes = record.value.len();
        // Adding first reserves the bytes, so that concurrent calls exceed the bound by one at most.
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) > MAX_QUEUED_BYTES
            || self.queue.try_send(QueuedSubmission { topic, record }).is_err()
        {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            tracing::debug!("the relay is full; the sweeper will append the submission");
            metrics::counter!(metric::RELAY_ABANDONED).increment(1);
        } else {
            metrics::gauge!(metric::RELAY_QUEUE).increment(1.0);
        }
    }
}

impl RelayTask {
    /// Appends submissions until `stop`. What is then queued is left to the sweeper of the next start.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut queued = Vec::with_capacity(RECORDS_PER_APPEND);
        while let Some(received) = stop
            .run_until_cancelled(self.queue.recv_many(&mut queued, RECORDS_PER_APPEND))
            .await
        {
            // Every handle was dropped, so no more submissions can arrive.
            if received == 0 {
                return;
            }
            fault::point("relay.read");
            #[expect(clippy::cast_precision_loss, reason = "at most as many as one append takes")]
            metrics::gauge!(metric::RELAY_QUEUE).decrement(received as f64);
            self.bytes.fetch_sub(
                queued.iter().map(|queued| queued.record.value.len()).sum(),
                Ordering::Relaxed,
            );
            let (units, contributions): (Vec<_>, Vec<_>) =
                queued.drain(..).partition(|queued| queued.topic == KNOWLEDGE_TOPIC);
            for (topic, queued) in [(CONTRIBUTIONS_TOPIC, contributions), (KNOWLEDGE_TOPIC, units)] {
                self.append(topic, queued.into_iter().map(|queued| queued.record).collect())
                    .await;
            }
            fault::point("relay.appended");
        }
    }

    async fn append(&self, topic: &str, records: Vec<Record>) {
        let submissions = records.len();
        if submissions == 0 {
            return;
        }
        if let Err(error) = self.log.append_recoverable(topic, records).await {
            // No retry here: the sweeper retries with a schedule, and a queue that waits would fill up.
            tracing::warn!(
                %error, submissions,
                "cannot append submissions to the log; the sweeper appends them later"
            );
            metrics::counter!(metric::RELAY_ABANDONED).increment(submissions as u64);
        }
    }
}
