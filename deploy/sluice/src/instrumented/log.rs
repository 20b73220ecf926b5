//! An instrumented event log: durations of appends, failures, and the lag of each consumer group of this process.
//!
//! Invariant: the lag of a partition is the number of records that are appended and not committed. A partition counts
//! from the first record that was delivered to this process, so records that other processes read are not counted
//! twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::periodic::PeriodicTimer;
use async_trait::async_trait;
use eventlog::{Bounds, Delivered, Error, Event, EventLog, Position, Record, Subscription};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use types::metric;

/// Interval between two measurements of the lags.
const LAG_INTERVAL: Duration = Duration::from_secs(5);

/// The next uncommitted offset of each partition, by topic and group.
type Marks = HashMap<(String, String), HashMap<u32, u64>>;

/// An event log that records metrics. Clones share the marks.
#[derive(Clone, Debug)]
pub struct MeteredLog {
    inner: Arc<dyn EventLog>,
    marks: Arc<Mutex<Marks>>,
}

impl MeteredLog {
    /// Wraps `inner`; its lags are recorded only while [`watch`](Self::watch) runs.
    pub fn new(inner: Arc<dyn EventLog>) -> Self {
        Self {
            inner,
            marks: Arc::default(),
        }
    }

    /// Records the lags every five seconds until `stop`.
    pub async fn watch(self, stop: CancellationToken) {
        let watching = async {
            let mut rounds = PeriodicTimer::every(LAG_INTERVAL, &stop);
            while rounds.next().await {
                self.look().await;
            }
        };
        stop.run_until_cancelled(watching).await;
    }

    async fn look(&self) {
        // A copy, because the lock must not be held while the log answers.
        let marks = lock(&self.marks).clone();
        for ((topic, group), done) in marks {
            // The error is ignored: a log that does not answer is reported by the calls that need the answer.
            let Ok(bounds) = self.inner.bounds(&topic).await else {
                continue;
            };
            #[expect(
                clippy::cast_precision_loss,
                reason = "a lag of 2^52 records has no precision to lose"
            )]
            let lag = lag(&done, &bounds) as f64;
            metrics::gauge!(metric::LOG_LAG, "topic" => topic, "group" => group).set(lag);
        }
    }
}

/// Returns the number of records that are appended and not committed.
fn lag(done: &HashMap<u32, u64>, bounds: &[Bounds]) -> u64 {
    let of = |(partition, next): (&u32, &u64)| {
        let bounds = bounds.get(*partition as usize)?;
        // Retention may have removed records that were never committed. They are no work that is left.
        Some(bounds.next.saturating_sub((*next).max(bounds.first)))
    };
    done.iter().filter_map(of).sum()
}

fn lock(marks: &Mutex<Marks>) -> MutexGuard<'_, Marks> {
    marks.lock()
}

async fn timed<T>(topic: &str, append: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let started = Instant::now();
    let appended = append.instrument(tracing::debug_span!("append to log", topic)).await;
    // A failed append would count its time-out as a duration.
    if appended.is_ok() {
        let seconds = started.elapsed().as_secs_f64();
        metrics::histogram!(metric::LOG_APPEND_SECONDS, "topic" => topic.to_owned()).record(seconds);
    }
    counted("append", appended)
}

fn counted<T>(call: &'static str, result: Result<T, Error>) -> Result<T, Error> {
    if result.is_err() {
        metrics::counter!(metric::LOG_FAILURES, "call" => call).increment(1);
    }
    result
}

#[async_trait]
impl EventLog for MeteredLog {
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        timed(topic, self.inner.append(topic, records)).await
    }

    async fn append_recoverable(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        timed(topic, self.inner.append_recoverable(topic, records)).await
    }

    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error> {
        let inner = counted("read", self.inner.subscribe(topic, group).await)?;
        Ok(Box::new(MeteredReader {
            inner,
            group: Some((topic.to_owned(), group.to_owned())),
            marks: Arc::clone(&self.marks),
        }))
    }

    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error> {
        let inner = counted("read", self.inner.recent(topic, count).await)?;
        Ok(Box::new(MeteredReader {
            inner,
            group: None,
            marks: Arc::clone(&self.marks),
        }))
    }

    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error> {
        self.inner.keep(topic, count).await
    }

    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error> {
        counted("read", self.inner.bounds(topic).await)
    }
}

/// A subscription that records failures and keeps the marks of its group.
#[derive(Debug)]
struct MeteredReader {
    inner: Box<dyn Subscription>,
    /// The topic and group. `None` for a tail, which has no lag.
    group: Option<(String, String)>,
    marks: Arc<Mutex<Marks>>,
}

impl Drop for MeteredReader {
    fn drop(&mut self) {
        // Another process reads the partitions from now on, so this one must not report their lag any more.
        if let Some(group) = &self.group {
            lock(&self.marks).remove(group);
        }
    }
}

impl MeteredReader {
    fn mark(&self, mark: impl FnOnce(&mut HashMap<u32, u64>)) {
        if let Some(group) = &self.group {
            mark(lock(&self.marks).entry(group.clone()).or_default());
        }
    }
}

#[async_trait]
impl Subscription for MeteredReader {
    async fn event(&mut self, max: usize) -> Result<Event, Error> {
        let event = counted("read", self.inner.event(max).await)?;
        self.mark(|marks| match &event {
            Event::Assigned(_) => {}
            Event::Revoked(partitions) => marks.retain(|partition, _| !partitions.contains(partition)),
            Event::Records(records) => {
                for Delivered { position, .. } in records {
                    // Only the first record sets the mark. Commits move it.
                    marks.entry(position.partition).or_insert(position.offset);
                }
            }
        });
        Ok(event)
    }

    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error> {
        counted("commit", self.inner.commit(positions).await)?;
        self.mark(|marks| {
            for position in positions {
                marks.insert(position.partition, position.offset);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use eventlog::{Embedded, EmbeddedOptions};

    use super::*;

    fn record(key: &str) -> Record {
        Record {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: Bytes::from_static(b"value"),
        }
    }

    #[tokio::test]
    async fn the_lag_is_what_is_appended_and_not_done() {
        let folder = tempfile::tempdir().unwrap();
        let log = MeteredLog::new(Embedded::open(folder.path().join("log"), EmbeddedOptions::default()).unwrap());
        let group = ("numbers".to_owned(), "readers".to_owned());
        let lag_now = async || {
            let done = lock(&log.marks).get(&group).cloned().unwrap_or_default();
            lag(&done, &log.bounds("numbers").await.unwrap())
        };
        log.append("numbers", vec![record("one"); 5]).await.unwrap();
        let mut reader = log.subscribe("numbers", "readers").await.unwrap();
        assert_eq!(lag_now().await, 0, "nothing was delivered here yet");
        let read = reader.next(3).await.unwrap();
        assert_eq!((read.len(), lag_now().await), (3, 5));
        let mut done = read[2].position;
        done.offset += 1;
        reader.commit(&[done]).await.unwrap();
        assert_eq!(lag_now().await, 2);
        log.append("numbers", vec![record("one")]).await.unwrap();
        assert_eq!(lag_now().await, 3);
        drop(reader);
        assert_eq!(lag_now().await, 0, "it is another's now");
    }
}
