//! The producer.
//!
//! Invariant: appends in progress hold at most [`QUEUE_BYTES`] in all. An append that gets no space, or whose records
//! the brokers do not acknowledge, returns an error within twice the delivery limit.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::client::{LogContext, failure, native};
use super::options::{BATCH_BYTES, KafkaOptions, QUEUE_BYTES};
use super::shutdown::BackgroundDrop;
use super::stats::{KafkaCounters, count};
use crate::{Error, MAX_RECORD_BYTES, Position, Record, partition_of};

/// Bytes per permit of the queue. A record takes at least one permit, so the number of records is bounded too.
const PERMIT_BYTES: usize = 1024;
/// The most bytes of an append that are sent at once; the rest follows after their acknowledgement.
const SEND_BYTES: usize = QUEUE_BYTES / 2;

type Producer = FutureProducer<LogContext>;

/// Appends records; holds the current producer and its generation.
pub(super) struct Appender {
    options: Arc<KafkaOptions>,
    counters: Arc<KafkaCounters>,
    log_context: LogContext,
    queue: Semaphore,
    current: Mutex<(u64, Arc<BackgroundDrop<Producer>>)>,
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// Returns the permits that a record needs.
fn units(record: &Record) -> usize {
    (record.key.len() + record.value.len()) / PERMIT_BYTES + 1
}

impl Appender {
    pub(super) fn new(options: Arc<KafkaOptions>, counters: Arc<KafkaCounters>) -> Result<Self, Error> {
        let log_context = LogContext::default();
        let producer = create(&options, &log_context)?;
        Ok(Self {
            options,
            counters,
            log_context,
            queue: Semaphore::new(QUEUE_BYTES / PERMIT_BYTES),
            current: Mutex::new((0, producer)),
        })
    }

    /// Replaces the producer if the topic was recreated, and returns true if so. The old producer may keep a leader
    /// epoch that hides the new leader.
    pub(super) fn replace_if_recreated(&self, name: &str) -> bool {
        let generation = self.current().0;
        let recreated = self.log_context.acknowledge_recreation(name);
        if recreated {
            self.replace(generation, &format!("topic `{name}` was made anew"));
        }
        recreated
    }

    /// Appends records to the topic named `name` in the cluster.
    pub(super) async fn append(&self, name: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        let mut positions = Vec::with_capacity(records.len());
        let mut rest = &records[..];
        while !rest.is_empty() {
            let mut taken = 0;
            let fits = |record: &&Record| {
                taken += units(record);
                taken <= SEND_BYTES / PERMIT_BYTES
            };
            // At least one record is sent at a time, even if it alone exceeds the limit.
            let piece = rest.iter().take_while(fits).count().max(1);
            let (piece, after) = rest.split_at(piece);
            match self.send(name, piece).await {
                Ok(appended) => positions.extend(appended),
                Err(error) => {
                    count(&self.counters.failed_appends, 1);
                    return Err(error);
                }
            }
            rest = after;
        }
        count(&self.counters.appends, 1);
        count(&self.counters.records, positions.len());
        Ok(positions)
    }

    async fn send(&self, name: &str, records: &[Record]) -> Result<Vec<Position>, Error> {
        let late = |cause: &str| Error::Unavailable {
            what: format!("appending to topic `{name}`"),
            cause: cause.to_owned(),
        };
        let units: usize = records.iter().map(units).sum();
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let permit = timeout(self.options.delivery, self.queue.acquire_many(units)).await;
        let _permit = match permit {
            Ok(permit) => permit.map_err(|_closed| Error::Closed)?,
            Err(_late) => return Err(late("earlier appends fill the queue")),
        };
        let (generation, producer) = self.current();
        let mut sent = Vec::with_capacity(records.len());
        for record in records {
            let partition = partition_of(&record.key, self.options.partitions);
            let record = FutureRecord::to(name)
                .partition(native(partition))
                .key(&record.key[..])
                .payload(&record.value[..]);
            match producer.send_result(record) {
                Ok(delivery) => sent.push((partition, delivery)),
                Err((error, _record)) => return Err(self.failed(name, generation, &error)),
            }
        }
        let mut positions = Vec::with_capacity(sent.len());
        // All records are queued before the first answer is awaited, so they share batches.
        let answers = async {
            for (partition, delivery) in sent {
                let offset = answer(delivery)
                    .await
                    .map_err(|error| self.failed(name, generation, &error))?;
                // A broker that stored the record on an earlier try, and lost the answer, may
                // report no offset.
                let offset = u64::try_from(offset).map_err(|_unknown| late("the brokers reported no offset"))?;
                positions.push(Position { partition, offset });
            }
            Ok(())
        };
        match timeout(2 * self.options.delivery, answers).await {
            Ok(answered) => answered?,
            Err(_late) => return Err(late("no acknowledgement in time")),
        }
        Ok(positions)
    }

    fn current(&self) -> (u64, Arc<BackgroundDrop<Producer>>) {
        self.current.lock().clone()
    }

    /// Converts a failure, and replaces a producer that cannot recover.
    fn failed(&self, name: &str, generation: u64, error: &KafkaError) -> Error {
        let what = || format!("appending to topic `{name}`");
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::MessageBatchTooLarge) => Error::TooLarge {
                bytes: BATCH_BYTES,
                limit: MAX_RECORD_BYTES,
            },
            Some(RDKafkaErrorCode::Fatal) => {
                self.replace(generation, &error.to_string());
                Error::Unavailable {
                    what: what(),
                    cause: self.log_context.describe(error),
                }
            }
            _ => failure(what(), &self.log_context, error),
        }
    }

    fn replace(&self, generation: u64, reason: &str) {
        let mut current = self.current.lock();
        // Another append may have replaced this producer already.
        if current.0 != generation {
            return;
        }
        tracing::error!(reason, "replacing the producer");
        match create(&self.options, &self.log_context) {
            Ok(producer) => {
                *current = (generation + 1, producer);
                count(&self.counters.producers_renewed, 1);
            }
            Err(error) => tracing::error!(%error, "cannot create a producer; the next append tries again"),
        }
    }
}

fn create(options: &KafkaOptions, log_context: &LogContext) -> Result<Arc<BackgroundDrop<Producer>>, Error> {
    let created = options.producer().create_with_context(log_context.clone());
    let producer = created.map_err(|error| failure("connecting", log_context, &error))?;
    Ok(Arc::new(BackgroundDrop::new(producer)))
}

/// Waits for the acknowledgement and returns the offset of the record.
async fn answer(delivery: DeliveryFuture) -> Result<i64, KafkaError> {
    match delivery.await {
        Ok(Ok(delivered)) => Ok(delivered.offset),
        Ok(Err((error, _record))) => Err(error),
        // The channel closed without an answer, so the producer was replaced.
        Err(_canceled) => Err(KafkaError::Canceled),
    }
}
