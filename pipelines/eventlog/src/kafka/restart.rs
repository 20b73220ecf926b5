//! The thread of a subscription, and the restart of its consumer.
//!
//! A consumer that lost track of its topic is replaced by a new one, because librdkafka keeps wrong facts about a
//! topic, such as the epochs of its leaders, for the life of a consumer. A consumer whose group leaves partitions
//! unassigned is replaced too: when a member leaves and another joins, the group rebalances.
//!
//! Invariants:
//! - There is one consumer at a time: the next is created after the previous one has left its group. A consumer that
//!   does not end within [`END_TIMEOUT`] is harmless: it has left or is fenced, and changes nothing that the next one
//!   has.
//! - Before a consumer is replaced, all partitions are revoked from the reader, and none of their positions is
//!   committed afterwards.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::client::{KafkaClient, LogContext, failure};
use super::health::{Anomaly, HealthCheck};
use super::lease::KafkaLease;
use super::options::KafkaOptions;
use super::poller::{POLL_INTERVAL, Poller};
use super::shutdown::drop_within;
use super::start::{FirstRecord, StartOffset, list, reset_offsets};
use super::state::BufferShared;
use super::stats::{KafkaCounters, count};
use crate::Error;
use crate::unwind::OnPanic;

/// The most polls to wait for a consumer to leave its group.
const MAX_LEAVE_POLLS: u32 = 50;
/// The time that a consumer that left may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The consumers of a subscription, one after another.
pub(super) struct Consumers {
    pub(super) options: Arc<KafkaOptions>,
    pub(super) client: Arc<KafkaClient>,
    pub(super) counters: Arc<KafkaCounters>,
    pub(super) shared: Arc<BufferShared>,
    pub(super) log_context: LogContext,
    /// The topic, under its name in the log.
    pub(super) topic: String,
    /// The topic, under its name in the cluster.
    pub(super) name: String,
    /// `None` for a tail.
    pub(super) group: Option<String>,
    /// The current consumer. Weak, because the thread owns it: dropping it leaves the group, which takes time.
    current: Mutex<Weak<BaseConsumer<Poller>>>,
}

/// The start of a consumer.
pub(super) enum StartAt {
    /// The committed positions of its group.
    Group,
    /// The first record of each partition, in a group: the topic was recreated.
    GroupFirst,
    /// These offsets, without a group.
    At(Vec<StartOffset>),
}

impl Consumers {
    pub(super) fn new(
        options: &Arc<KafkaOptions>,
        client: &Arc<KafkaClient>,
        counters: &Arc<KafkaCounters>,
        topic: &str,
        group: Option<String>,
    ) -> Self {
        Self {
            options: Arc::clone(options),
            client: Arc::clone(client),
            counters: Arc::clone(counters),
            shared: Arc::default(),
            log_context: LogContext::default(),
            topic: topic.to_owned(),
            name: options.topic(topic),
            group,
            current: Mutex::default(),
        }
    }

    /// Returns the current consumer, or `None` while it is being replaced.
    pub(super) fn current(&self) -> Option<Arc<BaseConsumer<Poller>>> {
        let current = self.current.lock();
        current.upgrade()
    }

    /// Returns the name of the group in the cluster.
    fn group(&self) -> Option<String> {
        self.group.as_ref().map(|group| KafkaOptions::group(&self.name, group))
    }

    fn set(&self, current: Weak<BaseConsumer<Poller>>) {
        *self.current.lock() = current;
    }

    /// Creates the next consumer.
    pub(super) fn make(&self, from: StartAt) -> Result<Arc<BaseConsumer<Poller>>, Error> {
        let partitions = self.options.partitions;
        let watch = Poller {
            shared: Arc::clone(&self.shared),
            counters: Arc::clone(&self.counters),
            log_context: self.log_context.clone(),
            name: self.name.clone(),
            group: self.group.clone(),
            instance: self.options.instance.clone().unwrap_or_default(),
            partitions,
            limit: self.options.delivery,
            first: Mutex::new(match from {
                StartAt::GroupFirst => FirstRecord::of(partitions),
                StartAt::Group | StartAt::At(_) => FirstRecord::default(),
            }),
            retired: AtomicBool::new(false),
        };
        let failed = |error| failure(format!("reading topic `{}`", self.topic), &self.log_context, &error);
        let group = self.group();
        let consumer: BaseConsumer<Poller> = self
            .options
            .consumer(group.as_deref())
            .create_with_context(watch)
            .map_err(failed)?;
        match from {
            StartAt::Group | StartAt::GroupFirst => consumer.subscribe(&[&self.name]),
            StartAt::At(starts) => {
                self.shared.lock().assign(starts.iter().copied());
                list(&self.name, &starts).and_then(|list| consumer.assign(&list))
            }
        }
        .map_err(failed)?;
        let consumer = Arc::new(consumer);
        self.set(Arc::downgrade(&consumer));
        Ok(consumer)
    }

    /// Starts the thread. The thread and the lease end after the consumer has left its group, at most [`END_TIMEOUT`]
    /// later.
    pub(super) fn spawn(
        self: &Arc<Self>,
        consumer: Arc<BaseConsumer<Poller>>,
        lease: Option<Arc<KafkaLease>>,
    ) -> io::Result<()> {
        let consumers = Arc::clone(self);
        let thread = std::thread::Builder::new().name("eventlog-kafka".to_owned());
        let running = move || {
            let _guard = OnPanic(|| {
                consumers.shared.fail(Error::Unavailable {
                    what: format!("reading topic `{}`", consumers.topic),
                    cause: "the thread of the subscription panicked".to_owned(),
                });
            });
            consumers.run(consumer);
            drop(lease);
        };
        thread.spawn(running).map(drop)
    }

    fn run(&self, mut consumer: Arc<BaseConsumer<Poller>>) {
        let mut health = HealthCheck::new(
            Arc::clone(&self.client),
            self.name.clone(),
            self.group(),
            self.options.partitions,
            self.options.watch,
        );
        loop {
            let watch = Arc::clone(consumer.context());
            let anomaly = watch.run(&consumer, &mut health);
            drop(watch);
            let Some(anomaly) = anomaly else {
                return self.end(consumer);
            };
            health.reset();
            count(&self.counters.consumers_restarted, 1);
            let from = self.retire(consumer, &anomaly);
            if self.shared.is_closed() {
                return;
            }
            match self.make(from) {
                Ok(next) => consumer = next,
                Err(error) => {
                    tracing::error!(topic = self.name, %error, "cannot create a new consumer; the subscription ends");
                    return self.shared.fail(error);
                }
            }
        }
    }

    /// Drops a consumer and waits for its end. After [`END_TIMEOUT`] the group expels it by itself.
    fn end(&self, consumer: Arc<BaseConsumer<Poller>>) {
        if !drop_within(consumer, END_TIMEOUT) {
            tracing::error!(topic = self.name, limit = ?END_TIMEOUT, "a consumer did not end in time; its group expels it after the session timeout");
        }
    }

    /// Ends a consumer and returns the start of the next.
    fn retire(&self, consumer: Arc<BaseConsumer<Poller>>, anomaly: &Anomaly) -> StartAt {
        let (had, recreated) = {
            // A commit holds this lock while it uses the consumer, so no commit follows.
            let mut state = self.shared.lock();
            self.set(Weak::new());
            (state.revoke_all(), self.log_context.acknowledge_recreation(&self.name))
        };
        count(&self.counters.revoked, had.len());
        self.shared.wake_reader();
        // From here on the rebalances of this consumer no longer reach the reader.
        consumer.context().retired.store(true, Ordering::Relaxed);
        if self.group.is_some() {
            // `unsubscribe` makes the member leave. A static member that is only dropped does
            // not leave, and a member that returns under its name is given its old assignment,
            // which is empty if the topic was gone.
            consumer.unsubscribe();
            for _ in 0..MAX_LEAVE_POLLS {
                drop(consumer.poll(POLL_INTERVAL));
                if consumer.assignment().is_ok_and(|left| left.count() == 0) {
                    break;
                }
            }
        }
        self.end(consumer);
        match (anomaly, self.group.is_some()) {
            (Anomaly::Stalled { .. } | Anomaly::Unassigned, true) if !recreated => StartAt::Group,
            (Anomaly::Stalled { bounds }, false) if !recreated => {
                let known: Vec<StartOffset> = had.into_iter().collect();
                StartAt::At(reset_offsets(&known, bounds).starts)
            }
            (_, true) => StartAt::GroupFirst,
            (_, false) => StartAt::At((0..self.options.partitions).map(|at| (at, None)).collect()),
        }
    }
}
