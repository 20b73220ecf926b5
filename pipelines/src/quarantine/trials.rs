//! The quarantine of a worker that takes its messages in batches: a suspect is a batch of its own.
//!
//! Invariants:
//! - While the note about a suspect is open, this worker works on nothing else. The suspects of the worker that shares
//!   [`InWork`] come first: while one of those is alone no note is open here, and nothing is begun.
//! - What others of the process do beside a suspect can end it, and is then a charge against the suspect. It takes two of
//!   these in a row to condemn it, and what did it is itself a suspect, and first, after each.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use eventlog::{Delivered, EventLog};
use messages::UnitAddress;
use tokio::time::sleep;

use super::hands::Expected;
use super::ledger::Ledger;
use super::notes::{Noted, Notes};
use crate::emit::Emitter;
use crate::in_work::{InWork, Token};
use crate::memory;
use crate::message::{Step, Subject};

/// Next step of a worker with messages of a batch.
#[derive(Debug)]
pub(crate) enum Portion {
    /// It works on all of them at once.
    Together(Vec<Delivered>),
    /// It works on a suspect, and on nothing else.
    Alone(Delivered, Noted),
    /// Nobody works on it: it ended processes again and again.
    Condemned(Delivered),
}

/// Decides which messages are worked on alone, and notes it.
#[derive(Debug)]
pub(crate) struct Trials {
    group: String,
    notes: Notes,
    ledger: Ledger,
    expected: Expected,
    /// Subjects that this process condemned, which may come again.
    condemned: HashSet<Subject>,
    in_work: InWork,
    /// As in [`Patience`](super::Patience).
    bound: Duration,
    ends: usize,
    /// Something took long, so that the others wait for no suspect any more.
    crowded: bool,
}

impl Trials {
    pub(crate) fn new(emitter: Emitter, in_work: InWork, group: String, bound: Duration, ends: usize) -> Self {
        Self {
            notes: Notes::new(emitter, group.clone()),
            group,
            ledger: Ledger::default(),
            expected: Expected::default(),
            condemned: HashSet::new(),
            in_work,
            bound,
            ends,
            crowded: false,
        }
    }

    /// Reads what was noted before, and suspects what these partitions of a topic have now.
    pub(crate) async fn assigned(
        &mut self,
        log: &dyn EventLog,
        topic: &str,
        partitions: &[u32],
    ) -> Result<(), eventlog::Error> {
        // Read again at each assignment: another worker of the group may have noted something meanwhile.
        self.ledger = memory::ledger(log, &self.group, self.notes.life()).await?;
        let bounds = log.bounds(topic).await?;
        let next = |at: &u32| Some((*at, bounds.get(*at as usize)?.next));
        let next: HashMap<u32, u64> = partitions.iter().filter_map(next).collect();
        self.expected.suspect(next);
        self.crowded = false;
        Ok(())
    }

    pub(crate) fn lose(&mut self, lost: &[u32]) {
        self.expected.lose(lost);
    }

    /// Parts a batch into turns: suspects in their order, those behind that took long before, and what is left out is
    /// what was condemned before in this life.
    pub(crate) fn turns(&mut self, batch: Vec<Delivered>) -> Vec<Portion> {
        let (mut turns, mut long) = (Vec::new(), Vec::new());
        for delivered in batch {
            let Delivered { position, record } = &delivered;
            let is_old = self.expected.expects(*position);
            if is_old {
                self.expected.count(*position);
            }
            let address = UnitAddress::read(&record.value);
            let subject = Subject::of_unit(address.as_ref(), &record.value);
            let charges = self.ledger.charges(&subject);
            if (1..=charges).contains(&self.ends) {
                if self.condemned.insert(subject) {
                    turns.push(Portion::Condemned(delivered));
                }
            } else if is_old || charges > 0 {
                // One that took long before goes behind those that never did, so that it delays nobody of them.
                let times = self.ledger.long(&subject);
                let noted = Noted {
                    subject,
                    address: None,
                    position: *position,
                };
                if times > 0 && charges == 0 {
                    long.push((times, Portion::Alone(delivered, noted)));
                } else {
                    turns.push(Portion::Alone(delivered, noted));
                }
            // Neighbours that nothing is noted of share a portion, so a usual batch is judged as before.
            } else if let Some(Portion::Together(others)) = turns.last_mut() {
                others.push(delivered);
            } else {
                turns.push(Portion::Together(vec![delivered]));
            }
        }
        // In this order nothing is alone behind a message that takes long again, so every start has another of them
        // first.
        long.sort_by_key(|(times, _)| *times);
        turns.extend(long.into_iter().map(|(_, turn)| turn));
        turns
    }

    /// Waits until nothing of the others is alone.
    pub(crate) async fn waits(&self) {
        self.in_work.loud().await;
    }

    /// Runs the work on a suspect under a note, for as long as the others wait for it.
    pub(crate) async fn alone<T>(&mut self, noted: &Noted, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let Some(token) = self.begin(noted).await else {
            return work.await;
        };
        let in_work = self.in_work.clone();
        let step = tokio::select! {
            biased;
            done = &mut work => {
                self.close(Step::Acquitted).await;
                return done;
            }
            // A suspect of the others waits until this note is closed.
            () = in_work.hushed() => Step::Acquitted,
            () = sleep(self.bound) => {
                tracing::warn!(position = ?noted.position, subject = ?noted.subject,
                    "a submission takes long; nothing waits for it any more");
                self.crowded = true;
                Step::Long
            }
        };
        self.close(step).await;
        drop(token);
        work.await
    }

    /// Notes that one is begun. Returns `None` if it is not to be alone, or the note cannot be written.
    async fn begin(&mut self, noted: &Noted) -> Option<Token> {
        let token = loop {
            match self.in_work.optional() {
                Some(token) => break token,
                None => self.in_work.loud().await,
            }
        };
        if self.crowded && self.ledger.charges(&noted.subject) == 0 {
            return None;
        }
        if matches!(self.notes.begin(noted).await, Ok(true)) {
            return Some(token);
        }
        self.close(Step::Acquitted).await;
        None
    }

    async fn close(&mut self, step: Step) {
        if let Some(writing) = self.notes.close(step) {
            // Ignored: a worker that stopped hears of it elsewhere, and a refusal was told.
            let _written = writing.await;
        }
    }

    /// Notes that the worker outlived what it was doing. To be called when the worker ends.
    pub(crate) async fn end(&mut self) {
        if let Some(writing) = self.notes.close(Step::Acquitted) {
            Notes::last(writing).await;
        }
    }
}
