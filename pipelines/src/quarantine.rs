//! Work on suspects: a message that may have ended the process before is worked on alone, so that an end shows whose it
//! was.
//!
//! ```text
//!  begun(X) durable ──► X in a lane, nothing else in work ──► its end, or the bound ──► acquitted(X), or begun(Y)
//!        │                                │
//!        └── the process ends here: a charge against X
//! ```
//!
//! A predecessor may have died with anything in work that was in the log when this worker was given its partition:
//! these are *suspects*, the first few of each partition. What was alone in work at the end of two processes is
//! *condemned*: it goes to the dead letters, and nobody works on it.
//!
//! Invariants:
//! - While the note that something was begun is open, nothing else is in work: not what was let go of, not what a lost
//!   lane brings to its end, not a compaction. Where that cannot be had in time, nothing is noted.
//! - So the end of a process is charged to the one that was alone or, at any other time, to nobody; who is outlived
//!   once is charged with nothing any more.
//! - Nothing waits for a suspect longer than the bound, and what takes long comes after the others at the next start.

mod hands;
mod ledger;
mod notes;
mod trials;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use eventlog::Position;
use futures_util::future::pending;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use types::{Clock, LifeId};

use self::hands::{Hands, Held, Standing};
pub(crate) use self::ledger::Ledger;
use self::notes::{Noted, Notes, Writing};
pub(crate) use self::trials::{Portion, Trials};
use crate::emit::Emitter;
use crate::finished::Finished;
use crate::in_work::InWork;
use crate::judge::Work;
use crate::lanes::Lanes;
use crate::message::{Address, Step};

/// Reason in the rejection of a condemned submission.
pub(crate) const REASON: &str = "its worker's process ended again and again while nothing but this was in work";
/// Time that messages after the suspects wait for more suspects.
const LULL: Duration = Duration::from_secs(2);

/// Bounds on waits and tries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Number of processes that may end with a submission alone in work before it is condemned; 0 for any number.
    pub(crate) ends: usize,
    /// Time that everything else waits for a suspect.
    pub(crate) bound: Duration,
    /// Bytes that may be held meanwhile.
    pub(crate) room: usize,
}

/// Decides what is handed to the lanes, and when.
pub(crate) struct Quarantine {
    patience: Patience,
    in_work: InWork,
    finished: Arc<Finished>,
    clock: Arc<dyn Clock>,
    notes: Notes,
    ledger: Ledger,
    hands: Hands,
    turn: Turn,
    /// Something is in work that does not end in time, so that nothing else will soon be alone.
    crowded: bool,
    /// Stop of work that can be done later, while there are suspects.
    hushed: bool,
    /// Time at which the last suspect came.
    heard: Instant,
}

/// Suspect for which everybody waits.
enum Turn {
    /// Nothing.
    Free,
    /// Messages that are still in work, so that a suspect is alone.
    Quiet { held: Held, until: Instant },
    /// The note that a suspect was begun; without the suspect, where it was lost meanwhile.
    Begins {
        noted: Noted,
        held: Option<Held>,
        writing: Writing,
    },
    /// The suspect.
    Alone {
        noted: Noted,
        ended: CancellationToken,
        until: Instant,
    },
    /// The note that one was outlived.
    Ends { writing: Writing },
}

impl Quarantine {
    pub(crate) fn new(emitter: Emitter, in_work: InWork, group: String, patience: Patience) -> Self {
        Self {
            patience,
            in_work,
            finished: Arc::clone(&emitter.finished),
            clock: Arc::clone(&emitter.clock),
            notes: Notes::new(emitter, group),
            ledger: Ledger::default(),
            hands: Hands::default(),
            turn: Turn::Free,
            crowded: false,
            hushed: false,
            heard: Instant::now(),
        }
    }

    /// This life of the worker.
    pub(crate) const fn life(&self) -> LifeId {
        self.notes.life()
    }

    /// The worker has these partitions now, each with the offset at which it ended then; `ledger` was read since.
    pub(crate) fn assigned(&mut self, ledger: Ledger, next: HashMap<u32, u64>) {
        self.ledger = ledger;
        self.hands.suspect(next);
        self.crowded = false;
        self.heard = Instant::now();
    }

    /// The worker lost these partitions, and with it the lanes.
    pub(crate) fn lose(&mut self, lost: &[u32], lanes: &mut Lanes) {
        self.hands.lose(lost);
        lanes.lose(lost);
        let is_lost = |position: Position| lost.contains(&position.partition);
        self.turn = match mem::replace(&mut self.turn, Turn::Free) {
            Turn::Quiet { held, .. } if is_lost(held.position()) => Turn::Free,
            Turn::Begins { noted, writing, .. } if is_lost(noted.position) => Turn::Begins {
                noted,
                held: None,
                writing,
            },
            // Why: this process lives, and another may begin with it now.
            Turn::Alone { noted, .. } if is_lost(noted.position) => self.acquit(Step::Acquitted),
            turn => turn,
        };
        self.flow(lanes);
    }

    /// Returns true if more messages can be taken in.
    pub(crate) fn has_room(&self) -> bool {
        self.hands.bytes() < self.patience.room
    }

    /// Takes in messages in the order of their delivery, and hands on what waits for nothing.
    pub(crate) fn take_in(&mut self, works: impl IntoIterator<Item = Work>, lanes: &mut Lanes) {
        for work in works {
            let is_old = self.hands.expects(work.ticket.position());
            if is_old {
                self.heard = Instant::now();
            }
            let is_free = matches!(self.turn, Turn::Free) && self.notes.open().is_none();
            let nothing_waits = is_free && self.hands.is_empty() && !self.hands.has_later();
            if !is_old && nothing_waits && self.ledger.is_clear() {
                lanes.dispatch(work);
                continue;
            }
            let held = Held::new(work);
            let is_decided = is_old && self.is_decided(held.address.as_ref());
            if is_decided && self.is_on_its_way(held.address.as_ref()) {
                held.work.ticket.finish();
            } else {
                // What is decided is to be told again, and nobody's end.
                self.hands.hold(held, is_old && !is_decided);
            }
        }
        self.flow(lanes);
    }

    /// Waits for what everybody waits for, and goes on; for ever where that is nothing. Dropping the future loses
    /// nothing.
    pub(crate) async fn step(&mut self, lanes: &mut Lanes) {
        match &mut self.turn {
            Turn::Free if !self.hushed && !self.hands.has_later() => return pending().await,
            Turn::Free => {
                sleep_until(self.heard + LULL).await;
                self.hands.release(&self.ledger);
                self.hush(false);
            }
            Turn::Quiet { until, .. } => {
                let quiet = timeout_at(*until, self.in_work.emptied()).await.is_ok();
                if let Turn::Quiet { mut held, .. } = mem::replace(&mut self.turn, Turn::Free) {
                    if quiet {
                        self.begin(held);
                    } else {
                        self.crowded = true;
                        held.standing = Standing::Given;
                        self.hand_on(held, lanes);
                    }
                }
            }
            Turn::Begins { writing, .. } => {
                let is_written = writing.await.unwrap_or(false);
                if let Turn::Begins { noted, held, .. } = mem::replace(&mut self.turn, Turn::Free) {
                    self.begun(is_written, noted, held, lanes);
                }
            }
            Turn::Alone { ended, until, .. } => {
                let in_time = timeout_at(*until, ended.cancelled()).await.is_ok();
                if let Turn::Alone { noted, .. } = mem::replace(&mut self.turn, Turn::Free) {
                    self.outlived(&noted, in_time);
                }
            }
            Turn::Ends { writing } => {
                // Why ignored: a worker that stopped hears of it elsewhere, and a refusal was told.
                let _written = writing.await;
                self.turn = Turn::Free;
            }
        }
        self.flow(lanes);
    }

    /// Notes that the worker outlived what it was doing, as far as that can be noted in a short while. To be called
    /// when the worker ends.
    pub(crate) async fn end(&mut self) {
        if let Turn::Ends { writing } = mem::replace(&mut self.turn, Turn::Free) {
            Notes::last(writing).await;
        }
        let decided = self
            .notes
            .open()
            .is_some_and(|noted| self.is_decided(noted.address.as_ref()));
        if !decided && let Some(writing) = self.notes.close(Step::Acquitted) {
            Notes::last(writing).await;
        }
    }

    fn is_decided(&self, address: Option<&Address>) -> bool {
        address.is_some_and(|address| self.finished.contains(address.contribution, address.generation))
    }

    fn is_on_its_way(&self, address: Option<&Address>) -> bool {
        let now = self.clock.now();
        address.is_some_and(|address| {
            self.finished
                .is_on_its_way(address.contribution, address.generation, now)
        })
    }

    /// Hands on what waits for nothing.
    fn flow(&mut self, lanes: &mut Lanes) {
        while matches!(self.turn, Turn::Free) {
            let Some(held) = self.hands.next(&self.ledger, self.patience.room) else {
                if self.crowded || !self.hands.expects_more() {
                    self.hush(false);
                }
                // Why also here: until more comes nothing is in work, and an end is nobody's.
                self.turn = self.acquit(Step::Acquitted);
                return;
            };
            self.take_up(held, lanes);
        }
    }

    fn take_up(&mut self, mut held: Held, lanes: &mut Lanes) {
        if held.is_suspect() && self.is_decided(held.address.as_ref()) {
            return held.work.ticket.finish();
        }
        let charges = self.ledger.charges(&held.subject);
        let can_be_alone = !self.crowded || self.in_work.is_empty();
        let is_suspect = held.is_suspect() && can_be_alone;
        if (1..=charges).contains(&self.patience.ends) {
            held.work.condemned = Some(REASON);
        } else if (is_suspect || charges > 0) && held.standing != Standing::Given {
            self.hush(true);
            let until = Instant::now() + self.patience.bound;
            self.turn = Turn::Quiet { held, until };
            return;
        }
        self.hand_on(held, lanes);
    }

    fn hush(&mut self, hushed: bool) {
        self.hushed = hushed;
        self.in_work.hush(hushed);
    }

    /// Hands a message to its lane, beside what is there.
    fn hand_on(&mut self, held: Held, lanes: &mut Lanes) {
        if self.notes.open().is_some() {
            // Why first: with it in work, nothing is alone.
            self.hands.put_back(held);
            self.turn = self.acquit(Step::Acquitted);
        } else {
            lanes.dispatch(held.work);
        }
    }

    fn begin(&mut self, held: Held) {
        let noted = held.noted();
        let writing = self.notes.begin(&noted);
        self.turn = Turn::Begins {
            noted,
            held: Some(held),
            writing,
        };
    }

    fn begun(&mut self, is_written: bool, noted: Noted, held: Option<Held>, lanes: &mut Lanes) {
        let Some(mut held) = held else {
            self.turn = self.acquit(Step::Acquitted);
            return;
        };
        if !is_written {
            held.standing = Standing::Given;
            return self.hand_on(held, lanes);
        }
        tracing::debug!(position = ?noted.position, subject = ?noted.subject, "alone in work");
        let ended = held.work.ticket.ended();
        let until = Instant::now() + self.patience.bound;
        lanes.dispatch(held.work);
        self.turn = Turn::Alone { noted, ended, until };
    }

    fn outlived(&mut self, noted: &Noted, in_time: bool) {
        if !in_time {
            tracing::warn!(position = ?noted.position, subject = ?noted.subject,
                "a submission takes long; nothing waits for it any more");
            self.crowded = true;
            self.turn = self.acquit(Step::Long);
        } else if !self.is_decided(noted.address.as_ref()) {
            // Why not always: the next note acquits it as well, and who reads its outcome does not suspect it.
            self.turn = self.acquit(Step::Acquitted);
        }
    }

    /// The note that the one whose note is open was outlived.
    fn acquit(&mut self, step: Step) -> Turn {
        self.notes
            .close(step)
            .map_or(Turn::Free, |writing| Turn::Ends { writing })
    }
}
