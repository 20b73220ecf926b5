//! An embedded log that is opened again after a failed write, so that a full disk ends no process.
//!
//! Invariants:
//! - A log whose write failed takes nothing more: it is closed, and what is on disk is read anew, as after a restart.
//!   What was acknowledged is durable and there; what was not is unknown, and its senders append it again.
//! - While there is no log, appends fail at once with an error that may pass, and subscriptions wait. A subscription of
//!   a group loses its partitions and gets them again from the committed positions.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use types::{Classify as _, Retry};

use crate::{Bounds, Embedded, EmbeddedOptions, Error, Event, EventLog, Position, Record, Subscription};

/// The wait before the next attempt to open the log.
const REOPEN_INTERVAL: Duration = Duration::from_millis(500);

/// An embedded log that outlasts failed writes.
#[derive(Debug)]
pub struct ReopeningLog {
    shared: Arc<ReopeningState>,
}

struct ReopeningState {
    path: PathBuf,
    options: EmbeddedOptions,
    current: RwLock<CurrentLog>,
    /// Counts the logs that were opened.
    generation: watch::Sender<u64>,
}

/// The log that is open, or why there is none.
enum CurrentLog {
    Open(u64, Arc<Embedded>),
    Failed(Error),
    Closed,
}

impl fmt::Debug for ReopeningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ReopeningLog {
    /// Opens the log in the directory `path` as [`Embedded::open`] does.
    ///
    /// # Errors
    /// Those of [`Embedded::open`]: a log that cannot be opened at first is no log.
    pub fn open(path: PathBuf, options: EmbeddedOptions) -> Result<Self, Error> {
        let log = Embedded::open(&path, options)?;
        let (generation, _) = watch::channel(1);
        Ok(Self {
            shared: Arc::new(ReopeningState {
                path,
                options,
                current: RwLock::new(CurrentLog::Open(1, log)),
                generation,
            }),
        })
    }

    /// Asks the log that is open.
    async fn ask<T, A: Future<Output = Result<T, Error>>>(
        &self,
        question: impl FnOnce(Arc<Embedded>) -> A,
    ) -> Result<T, Error> {
        let (generation, log) = self.shared.log()?;
        let answer = question(log).await;
        answer.map_err(|error| self.shared.after(generation, error))
    }
}

impl Drop for ReopeningLog {
    /// Closes the log as dropping an [`Embedded`] does, also while subscriptions are alive.
    fn drop(&mut self) {
        let mut current = self.shared.current.write();
        let before = std::mem::replace(&mut *current, CurrentLog::Closed);
        drop(current);
        if let CurrentLog::Open(_, log) = before {
            log.end();
        }
        self.shared.generation.send_replace(u64::MAX);
    }
}

impl ReopeningState {
    /// The log that is open, with its number.
    fn log(&self) -> Result<(u64, Arc<Embedded>), Error> {
        match &*self.current.read() {
            CurrentLog::Open(generation, log) => Ok((*generation, Arc::clone(log))),
            CurrentLog::Failed(error) => Err(error.clone()),
            CurrentLog::Closed => Err(Error::Closed),
        }
    }

    /// Converts an error of a log for the caller. Gives up a log that accepts nothing more, and starts to open it
    /// again.
    fn after(self: &Arc<Self>, generation: u64, error: Error) -> Error {
        let error = match error {
            Error::Failed { path, cause } | Error::Storage { path, cause } => Error::Storage { path, cause },
            // Only a log that was given up is closed while somebody asks it.
            Error::Closed => Error::Storage {
                path: self.path.clone(),
                cause: Arc::new(fjall::Error::Poisoned),
            },
            other => return other,
        };
        let mut current = self.current.write();
        if matches!(&*current, CurrentLog::Closed) {
            return Error::Closed;
        }
        if !matches!(&*current, CurrentLog::Open(open, _) if *open == generation) {
            return error;
        }
        let before = std::mem::replace(&mut *current, CurrentLog::Failed(error.clone()));
        drop(current);
        tracing::error!(%error, "the log is closed and opened again once that can be done");
        if let CurrentLog::Open(_, log) = before {
            let shared = Arc::downgrade(self);
            tokio::spawn(async move {
                // Calls in progress end with an error.
                drop(spawn_blocking(move || log.end()).await);
                loop {
                    tokio::time::sleep(REOPEN_INTERVAL).await;
                    let Some(shared) = shared.upgrade() else { return };
                    if shared.reopen(generation + 1).await {
                        return;
                    }
                }
            });
        }
        error
    }

    /// Tries to open the log again; whether it is open.
    async fn reopen(self: Arc<Self>, generation: u64) -> bool {
        let (path, options) = (self.path.clone(), self.options);
        let opened = spawn_blocking(move || Embedded::open(path, options)).await;
        let error = match opened {
            Ok(Ok(log)) => {
                let mut current = self.current.write();
                if matches!(&*current, CurrentLog::Closed) {
                    return true;
                }
                *current = CurrentLog::Open(generation, log);
                drop(current);
                self.generation.send_replace(generation);
                tracing::info!(path = %self.path.display(), "the log is open again");
                return true;
            }
            Ok(Err(error)) => error,
            Err(_stopped) => return false,
        };
        tracing::warn!(%error, "the log cannot be opened again yet");
        false
    }
}

#[async_trait]
impl EventLog for ReopeningLog {
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.ask(|log| async move { log.append(topic, records).await }).await
    }

    async fn append_recoverable(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.ask(|log| async move { log.append_recoverable(topic, records).await })
            .await
    }

    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error> {
        let (generation, log) = self.shared.log()?;
        let reader = log.subscribe(topic, group).await;
        let reader = reader.map_err(|error| self.shared.after(generation, error))?;
        Ok(Box::new(ReopeningReader {
            shared: Arc::clone(&self.shared),
            topic: topic.to_owned(),
            group: Some(group.to_owned()),
            generation,
            inner: Some(reader),
            partitions: Vec::new(),
        }))
    }

    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error> {
        let (generation, log) = self.shared.log()?;
        let reader = log.recent(topic, count).await;
        let reader = reader.map_err(|error| self.shared.after(generation, error))?;
        Ok(Box::new(ReopeningReader {
            shared: Arc::clone(&self.shared),
            topic: topic.to_owned(),
            group: None,
            generation,
            inner: Some(reader),
            partitions: Vec::new(),
        }))
    }

    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error> {
        self.ask(|log| async move { log.keep(topic, count).await }).await
    }

    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error> {
        self.ask(|log| async move { log.bounds(topic).await }).await
    }
}

/// A subscription that is made again with the log; a tail ends with its log.
#[derive(Debug)]
struct ReopeningReader {
    shared: Arc<ReopeningState>,
    topic: String,
    /// None for a tail.
    group: Option<String>,
    generation: u64,
    inner: Option<Box<dyn Subscription>>,
    /// The partitions that the reader has.
    partitions: Vec<u32>,
}

impl ReopeningState {
    /// Subscribes again once there is another log than that of this number.
    async fn join(
        self: &Arc<Self>,
        topic: &str,
        group: &str,
        before: u64,
    ) -> Result<(u64, Box<dyn Subscription>), Error> {
        let mut opened = self.generation.subscribe();
        loop {
            // The sender lives as long as this does.
            drop(opened.wait_for(|generation| *generation > before).await);
            let log = self.log();
            if let Err(Error::Closed) = log {
                return Err(Error::Closed);
            }
            if let Ok((generation, log)) = log {
                match log.subscribe(topic, group).await {
                    Ok(reader) => return Ok((generation, reader)),
                    Err(error) => {
                        let error = self.after(generation, error);
                        if error.retry() == Retry::Never {
                            return Err(error);
                        }
                        tracing::warn!(%error, topic, "a topic cannot be read again yet");
                    }
                }
            }
            tokio::time::sleep(REOPEN_INTERVAL).await;
        }
    }
}

#[async_trait]
impl Subscription for ReopeningReader {
    async fn event(&mut self, max: usize) -> Result<Event, Error> {
        loop {
            let Some(reader) = &mut self.inner else {
                let Some(group) = &self.group else {
                    return Err(Error::Closed);
                };
                let (shared, topic, group) = (Arc::clone(&self.shared), self.topic.clone(), group.clone());
                let (generation, reader) = shared.join(&topic, &group, self.generation).await?;
                (self.generation, self.inner) = (generation, Some(reader));
                continue;
            };
            let error = match reader.event(max).await {
                Ok(event) => {
                    if let Event::Assigned(partitions) = &event {
                        self.partitions.clone_from(partitions);
                    }
                    return Ok(event);
                }
                Err(error) => self.shared.after(self.generation, error),
            };
            if self.group.is_none() || error.retry() == Retry::Never {
                return Err(error);
            }
            self.inner = None;
            let lost = std::mem::take(&mut self.partitions);
            if !lost.is_empty() {
                return Ok(Event::Revoked(lost));
            }
        }
    }

    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error> {
        let Some(reader) = &mut self.inner else {
            return Ok(());
        };
        match reader.commit(positions).await {
            // Records before an uncommitted position are delivered again.
            Err(Error::Closed) => Ok(()),
            committed => committed,
        }
    }
}
