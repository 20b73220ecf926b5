//! The notes of one life of a worker.
//!
//! Invariant: a note that something was begun is *open* until the next note of this life; a life that ends with an open
//! note is charged to its subject.

use std::time::Duration;

use eventlog::Position;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use types::LifeId;

use crate::emit::{Emitter, Stopped};
use crate::message::{Address, Attempt, FORMAT, Step, Subject};

/// Time that the last note may take when the worker ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// A note that is being written, and whether the log took it.
pub(super) type Writing = BoxFuture<'static, Result<bool, Stopped>>;

/// Subject of a note.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(super) subject: Subject,
    pub(super) address: Option<Address>,
    pub(super) position: Position,
}

/// Writes the notes of a life.
#[derive(Debug)]
pub(super) struct Notes {
    emitter: Emitter,
    /// The consumer group.
    group: String,
    life: LifeId,
    /// Number of notes that were made.
    count: u64,
    open: Option<Noted>,
}

impl Notes {
    pub(super) fn new(emitter: Emitter, group: String) -> Self {
        Self {
            life: LifeId::new(emitter.clock.now()),
            emitter,
            group,
            count: 0,
            open: None,
        }
    }

    pub(super) const fn life(&self) -> LifeId {
        self.life
    }

    /// Subject whose note is open.
    pub(super) const fn open(&self) -> Option<&Noted> {
        self.open.as_ref()
    }

    /// Notes that one is begun.
    pub(super) fn begin(&mut self, noted: &Noted) -> Writing {
        // Why before it is written: from now on nobody knows whether it is.
        self.open = Some(noted.clone());
        self.write(noted, Step::Begun)
    }

    /// Notes how it went on with the one whose note is open, if there is one.
    pub(super) fn close(&mut self, step: Step) -> Option<Writing> {
        let noted = self.open.take()?;
        Some(self.write(&noted, step))
    }

    /// Waits for a last note, for a short while.
    pub(super) async fn last(writing: Writing) {
        if !matches!(timeout(FAREWELL, writing).await, Ok(Ok(true))) {
            tracing::warn!("the last note of the worker may be missing");
        }
    }

    fn write(&mut self, noted: &Noted, step: Step) -> Writing {
        self.count += 1;
        let attempt = Attempt {
            format: FORMAT,
            group: self.group.clone(),
            life: self.life,
            turn: self.count,
            step,
            subject: noted.subject.clone(),
            partition: noted.position.partition,
            offset: noted.position.offset,
        };
        let emitter = self.emitter.clone();
        async move { emitter.note(&attempt).await }.boxed()
    }
}
