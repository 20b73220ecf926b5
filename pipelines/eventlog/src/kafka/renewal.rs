//! The thread of a subscription and its consumers, one after another.
//!
//! A consumer that has lost track of its topic is given up for a new one: what librdkafka remembers of a topic, such as the
//! epochs of its leaders, stays wrong in a consumer that goes on. So is one whose group leaves partitions to nobody: that it
//! leaves and another joins has the group share anew.
//!
//! Invariants:
//! - There is one consumer at a time: the next is made after the one before has left its group. One that does not end in
//!   [`ENDING`] is out of the way all the same: it has left or is fenced, and changes nothing that the next one has.
//! - Before a consumer is given up, the reader is told that it lost all its partitions, and nothing of them is committed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};

use super::begin::{Begin, First, again, list};
use super::client::{Client, Voice, failure};
use super::lease::Lease;
use super::options::Options;
use super::parting::part_within;
use super::poller::{SLICE, Watch};
use super::state::Shared;
use super::stats::{Counters, count};
use super::watchdog::{Lost, Watchdog};
use crate::Error;
use crate::unwind::OnPanic;

/// For how many polls a consumer is waited for that leaves its group.
const LEAVING: u32 = 50;
/// How long a consumer that left may take to end.
const ENDING: Duration = Duration::from_secs(10);

/// The consumers of a subscription.
pub(super) struct Consumers {
    pub(super) options: Arc<Options>,
    pub(super) client: Arc<Client>,
    pub(super) counters: Arc<Counters>,
    pub(super) shared: Arc<Shared>,
    pub(super) voice: Voice,
    /// The topic, as we call it.
    pub(super) topic: String,
    /// The topic, as the cluster calls it.
    pub(super) name: String,
    /// `None` for a tail.
    pub(super) group: Option<String>,
    /// The thread's: letting go of it means leaving the group, which takes its time.
    current: Mutex<Weak<BaseConsumer<Watch>>>,
}

/// Where a consumer begins.
pub(super) enum From {
    /// Where its group is.
    Group,
    /// Where its group is, except that the topic was made anew: at the first record of each partition.
    GroupAnew,
    /// For nobody, at these offsets.
    At(Vec<Begin>),
}

impl Consumers {
    pub(super) fn new(
        options: &Arc<Options>,
        client: &Arc<Client>,
        counters: &Arc<Counters>,
        topic: &str,
        group: Option<String>,
    ) -> Self {
        Self {
            options: Arc::clone(options),
            client: Arc::clone(client),
            counters: Arc::clone(counters),
            shared: Arc::default(),
            voice: Voice::default(),
            topic: topic.to_owned(),
            name: options.topic(topic),
            group,
            current: Mutex::default(),
        }
    }

    /// The consumer of now; `None` between two of them.
    pub(super) fn current(&self) -> Option<Arc<BaseConsumer<Watch>>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.upgrade()
    }

    /// The group, as the cluster calls it.
    fn group(&self) -> Option<String> {
        self.group.as_ref().map(|group| Options::group(&self.name, group))
    }

    fn set(&self, current: Weak<BaseConsumer<Watch>>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
    }

    /// Makes the next consumer.
    pub(super) fn make(&self, from: From) -> Result<Arc<BaseConsumer<Watch>>, Error> {
        let partitions = self.options.partitions;
        let watch = Watch {
            shared: Arc::clone(&self.shared),
            counters: Arc::clone(&self.counters),
            voice: self.voice.clone(),
            name: self.name.clone(),
            group: self.group.clone(),
            instance: self.options.instance.clone().unwrap_or_default(),
            partitions,
            limit: self.options.delivery,
            first: Mutex::new(match from {
                From::GroupAnew => First::of(partitions),
                From::Group | From::At(_) => First::default(),
            }),
            retired: AtomicBool::new(false),
        };
        let failed = |error| failure(format!("reading topic `{}`", self.topic), &self.voice, &error);
        let group = self.group();
        let consumer: BaseConsumer<Watch> = self
            .options
            .consumer(group.as_deref())
            .create_with_context(watch)
            .map_err(failed)?;
        match from {
            From::Group | From::GroupAnew => consumer.subscribe(&[&self.name]),
            From::At(begins) => {
                self.shared.lock().assign(begins.iter().copied());
                list(&self.name, &begins).and_then(|list| consumer.assign(&list))
            }
        }
        .map_err(failed)?;
        let consumer = Arc::new(consumer);
        self.set(Arc::downgrade(&consumer));
        Ok(consumer)
    }

    /// Starts the thread. It ends, and with it the lease, after the consumer has left its group or had [`ENDING`] to.
    pub(super) fn spawn(
        self: &Arc<Self>,
        consumer: Arc<BaseConsumer<Watch>>,
        lease: Option<Arc<Lease>>,
    ) -> io::Result<()> {
        let consumers = Arc::clone(self);
        let thread = std::thread::Builder::new().name("eventlog-kafka".to_owned());
        let running = move || {
            let _said = OnPanic(|| {
                consumers.shared.fail(Error::Unavailable {
                    what: format!("reading topic `{}`", consumers.topic),
                    cause: "the thread that reads panicked".to_owned(),
                });
            });
            consumers.run(consumer);
            drop(lease);
        };
        thread.spawn(running).map(drop)
    }

    fn run(&self, mut consumer: Arc<BaseConsumer<Watch>>) {
        let mut watchdog = Watchdog::new(
            Arc::clone(&self.client),
            self.name.clone(),
            self.group(),
            self.options.partitions,
            self.options.watch,
        );
        loop {
            let watch = Arc::clone(consumer.context());
            let lost = watch.run(&consumer, &mut watchdog);
            drop(watch);
            let Some(lost) = lost else {
                return self.end(consumer);
            };
            watchdog.reset();
            count(&self.counters.consumers_renewed, 1);
            let from = self.give_up(consumer, &lost);
            if self.shared.is_closed() {
                return;
            }
            match self.make(from) {
                Ok(next) => consumer = next,
                Err(error) => {
                    tracing::error!(topic = self.name, %error, "there is no new consumer; the subscription ends");
                    return self.shared.fail(error);
                }
            }
        }
    }

    /// Lets go of a consumer and waits for its end, unless it does not come: then the group notices by itself.
    fn end(&self, consumer: Arc<BaseConsumer<Watch>>) {
        if !part_within(consumer, ENDING) {
            tracing::error!(topic = self.name, limit = ?ENDING, "a consumer that was let go of has not ended");
        }
    }

    /// Ends a consumer; where the next begins.
    fn give_up(&self, consumer: Arc<BaseConsumer<Watch>>, lost: &Lost) -> From {
        let (had, anew) = {
            // Why under the lock: whoever commits holds it while it has the consumer, so this is the last of it.
            let mut state = self.shared.lock();
            self.set(Weak::new());
            (state.revoke_all(), self.voice.settle(&self.name))
        };
        count(&self.counters.revoked, had.len());
        self.shared.tell();
        consumer.context().retired.store(true, Ordering::Relaxed);
        if self.group.is_some() {
            // Why not just let go of it: a member that keeps its name does not leave then, and who comes back under it is
            // given what it had, which may be nothing if the topic was gone. Leaving has the group share anew.
            consumer.unsubscribe();
            for _ in 0..LEAVING {
                drop(consumer.poll(SLICE));
                if consumer.assignment().is_ok_and(|left| left.count() == 0) {
                    break;
                }
            }
        }
        self.end(consumer);
        match (lost, self.group.is_some()) {
            (Lost::Track { .. } | Lost::Shares, true) if !anew => From::Group,
            (Lost::Track { kept }, false) if !anew => {
                let known: Vec<Begin> = had.into_iter().collect();
                From::At(again(&known, kept).begins)
            }
            (_, true) => From::GroupAnew,
            (_, false) => From::At((0..self.options.partitions).map(|at| (at, None)).collect()),
        }
    }
}
