//! Appending.
//!
//! Invariant: what is being appended has at most [`ROOM`] bytes in all, and an append that does not get room, or whose
//! records the brokers do not acknowledge, ends with an error within twice the delivery limit.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::client::{Voice, failure, native};
use super::options::{BATCH_BYTES, Options, ROOM};
use super::parting::Apart;
use super::stats::{Counters, count};
use crate::{Error, MAX_RECORD_BYTES, Position, Record, partition_of};

/// The unit in which room is counted, in bytes. A record takes at least one, so that small ones are bounded too.
const UNIT: usize = 1024;
/// How much of an append is sent at once; the rest follows when that is acknowledged.
const PIECE: usize = ROOM / 2;

type Producer = FutureProducer<Voice>;

/// Appends records.
pub(super) struct Appender {
    options: Arc<Options>,
    counters: Arc<Counters>,
    voice: Voice,
    room: Semaphore,
    current: Mutex<(u64, Arc<Apart<Producer>>)>,
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

/// The room that a record takes, in units.
fn units(record: &Record) -> usize {
    (record.key.len() + record.value.len()) / UNIT + 1
}

impl Appender {
    pub(super) fn new(options: Arc<Options>, counters: Arc<Counters>) -> Result<Self, Error> {
        let voice = Voice::default();
        let producer = create(&options, &voice)?;
        Ok(Self {
            options,
            counters,
            voice,
            room: Semaphore::new(ROOM / UNIT),
            current: Mutex::new((0, producer)),
        })
    }

    /// Sees to it that a topic that was made anew gets a producer that knows nothing of the one before: it may be led by
    /// another broker, which an older epoch keeps from being seen. Whether it was made anew.
    pub(super) fn settle(&self, name: &str) -> bool {
        let generation = self.current().0;
        let anew = self.voice.settle(name);
        if anew {
            self.renew(generation, &format!("topic `{name}` was made anew"));
        }
        anew
    }

    /// Appends records to the topic that the cluster calls `name`.
    pub(super) async fn append(&self, name: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        let mut positions = Vec::with_capacity(records.len());
        let mut rest = &records[..];
        while !rest.is_empty() {
            let mut taken = 0;
            let fits = |record: &&Record| {
                taken += units(record);
                taken <= PIECE / UNIT
            };
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
        let room = timeout(self.options.delivery, self.room.acquire_many(units)).await;
        let _room = match room {
            Ok(room) => room.map_err(|_closed| Error::Closed)?,
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
        let answers = async {
            for (partition, delivery) in sent {
                let offset = answer(delivery)
                    .await
                    .map_err(|error| self.failed(name, generation, &error))?;
                // Why: a broker that took the record before, and whose answer was lost, may not know where it is.
                let offset = u64::try_from(offset).map_err(|_unknown| late("where the record is, is not known"))?;
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

    fn current(&self) -> (u64, Arc<Apart<Producer>>) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a failure means; one that ends the producer makes a new one.
    fn failed(&self, name: &str, generation: u64, error: &KafkaError) -> Error {
        let what = || format!("appending to topic `{name}`");
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::MessageBatchTooLarge) => Error::TooLarge {
                bytes: BATCH_BYTES,
                limit: MAX_RECORD_BYTES,
            },
            Some(RDKafkaErrorCode::Fatal) => {
                self.renew(generation, &error.to_string());
                Error::Unavailable {
                    what: what(),
                    cause: self.voice.told(error),
                }
            }
            _ => failure(what(), &self.voice, error),
        }
    }

    fn renew(&self, generation: u64, reason: &str) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != generation {
            return;
        }
        tracing::error!(reason, "the producer cannot go on; a new one takes over");
        match create(&self.options, &self.voice) {
            Ok(producer) => {
                *current = (generation + 1, producer);
                count(&self.counters.producers_renewed, 1);
            }
            Err(error) => tracing::error!(%error, "there is no new producer; the next append tries again"),
        }
    }
}

fn create(options: &Options, voice: &Voice) -> Result<Arc<Apart<Producer>>, Error> {
    let created = options.producer().create_with_context(voice.clone());
    let producer = created.map_err(|error| failure("connecting", voice, &error))?;
    Ok(Arc::new(Apart::new(producer)))
}

/// The offset at which a record was acknowledged.
async fn answer(delivery: DeliveryFuture) -> Result<i64, KafkaError> {
    match delivery.await {
        Ok(Ok(delivered)) => Ok(delivered.offset),
        Ok(Err((error, _record))) => Err(error),
        // The producer was replaced.
        Err(_canceled) => Err(KafkaError::Canceled),
    }
}
