//! Messages that a worker was given and has not handed to a lane.
//!
//! Invariant: messages of a partition are handed on in the order of their delivery, but for uploads and for what took
//! long before: those come after the suspects, because nothing can be alone beside them.
//! What comes again of these comes after them.

use std::collections::{HashMap, VecDeque};

use eventlog::Position;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Ledger;
use super::notes::Noted;
use crate::judge::Work;
use crate::message::{Address, Subject, head};

/// The most suspects of a partition: what comes after them is not worked on alone.
const SUSPECTS: u32 = 64;

/// A message that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) work: Work,
    pub(super) address: Option<Address>,
    pub(super) subject: Subject,
    pub(super) standing: Standing,
    is_upload: bool,
    /// It waited for the other suspects.
    has_waited: bool,
}

/// State of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It came later than the worker got its partition, or after the first ones.
    New,
    /// It was in the log when the worker got its partition, and is among the first.
    Suspect,
    /// It could not be alone in time, and nothing waits for it again.
    Given,
}

/// Whether a message refers to an upload.
#[derive(Deserialize)]
struct Reference {
    #[serde(default)]
    upload: Option<IgnoredAny>,
}

impl Held {
    pub(super) fn new(work: Work) -> Self {
        let value = &work.record.value;
        let address = Address::read(value);
        let reference = serde_json::from_slice(head(value));
        Self {
            subject: Subject::of(address.as_ref(), value),
            address,
            standing: Standing::New,
            is_upload: reference.is_ok_and(|Reference { upload }| upload.is_some()),
            has_waited: false,
            work,
        }
    }

    pub(super) const fn position(&self) -> Position {
        self.work.ticket.position()
    }

    pub(super) fn noted(&self) -> Noted {
        Noted {
            subject: self.subject.clone(),
            address: self.address,
            position: self.position(),
        }
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.standing == Standing::Suspect
    }

    fn bytes(&self) -> usize {
        self.work.record.key.len() + self.work.record.value.len()
    }

    /// Returns true if the other suspects come first.
    fn waits(&self, ledger: &Ledger) -> bool {
        let is_long = self.is_upload || ledger.long(&self.subject) > 0;
        self.is_suspect() && !self.has_waited && is_long && ledger.charges(&self.subject) == 0
    }
}

/// The suspects of a partition that are still to come.
#[derive(Clone, Copy, Debug)]
struct Suspects {
    /// The first offset that is none of them.
    until: u64,
    left: u32,
}

/// The suspects of all partitions that are still to come.
#[derive(Debug, Default)]
pub(super) struct Expected(HashMap<u32, Suspects>);

impl Expected {
    /// Suspects the messages of partitions up to these offsets.
    pub(super) fn suspect(&mut self, next: HashMap<u32, u64>) {
        let suspects = |(partition, until)| (partition, Suspects { until, left: SUSPECTS });
        self.0.extend(next.into_iter().map(suspects));
    }

    pub(super) fn lose(&mut self, lost: &[u32]) {
        self.0.retain(|partition, _| !lost.contains(partition));
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a message that was delivered now is among those that may be suspects.
    pub(super) fn expects(&mut self, position: Position) -> bool {
        let Some(Suspects { until, left }) = self.0.get(&position.partition).copied() else {
            return false;
        };
        if left == 0 || position.offset + 1 >= until {
            self.0.remove(&position.partition);
        }
        left > 0 && position.offset < until
    }

    /// A suspect came.
    pub(super) fn count(&mut self, position: Position) {
        if let Some(suspects) = self.0.get_mut(&position.partition) {
            suspects.left -= 1;
        }
    }
}

/// Messages in the order in which they are to be handed on.
#[derive(Debug, Default)]
pub(super) struct Hands {
    suspects: Expected,
    queue: VecDeque<Held>,
    later: Vec<Held>,
    bytes: usize,
}

impl Hands {
    /// Suspects the messages of partitions up to these offsets.
    pub(super) fn suspect(&mut self, next: HashMap<u32, u64>) {
        self.suspects.suspect(next);
    }

    pub(super) fn lose(&mut self, lost: &[u32]) {
        let is_kept = |held: &Held| !lost.contains(&held.position().partition);
        self.suspects.lose(lost);
        self.queue.retain(is_kept);
        self.later.retain(is_kept);
        self.bytes = self.queue.iter().chain(&self.later).map(Held::bytes).sum();
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Returns true if more suspects may come.
    pub(super) fn expects_more(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Returns true if a message that was delivered now is among those that may be suspects.
    pub(super) fn expects(&mut self, position: Position) -> bool {
        self.suspects.expects(position)
    }

    /// Takes in a message; one that is a suspect is one of those that were expected.
    pub(super) fn hold(&mut self, mut held: Held, is_suspect: bool) {
        if is_suspect {
            held.standing = Standing::Suspect;
            self.suspects.count(held.position());
        }
        self.bytes += held.bytes();
        self.queue.push_back(held);
    }

    /// Takes a message back that was given by [`Self::next`].
    pub(super) fn put_back(&mut self, held: Held) {
        self.bytes += held.bytes();
        self.queue.push_front(held);
    }

    /// The next message to hand on, if there is one that waits for no others.
    pub(super) fn next(&mut self, ledger: &Ledger, room: usize) -> Option<Held> {
        loop {
            if self.queue.is_empty() && (self.suspects.is_empty() || self.bytes >= room) {
                self.release(ledger);
            }
            let held = self.queue.pop_front()?;
            if held.waits(ledger) || self.is_behind(&held) {
                self.later.push(held);
            } else {
                self.bytes -= held.bytes();
                return Some(held);
            }
        }
    }

    /// Returns true if an earlier delivery of the same submission is deferred. Ahead of that one it would run beside
    /// others, and a crash could be attributed to none of them, at every start.
    fn is_behind(&self, held: &Held) -> bool {
        self.later.iter().any(|other| other.subject == held.subject)
    }

    /// Lets go on what waited for the other suspects.
    pub(super) fn release(&mut self, ledger: &Ledger) {
        // Why: behind what is let go of again nothing is alone, so every start has another of them first.
        self.later.sort_by_key(|held| ledger.long(&held.subject));
        self.queue.extend(self.later.drain(..).map(|held| Held {
            has_waited: true,
            ..held
        }));
    }
}
