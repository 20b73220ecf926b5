//! The caller's side of the sandbox: processes that are kept ready, one per query, killed at the deadline.
//!
//! Invariant: a process that got a query never gets another. Dropping a query's future kills its process.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fenced::{ChildEnd, ChildProcess, ChildProgram, ChildSetup, FILES_AT_ONCE};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use types::{Clock, Contract, Proof, Timestamp};

use crate::wire::{ChildQuery, ChildReply, MAX_FRAME_BYTES, PROTOCOL};
use crate::{Error, QueryAnswer, Refusal, check, child};

/// Settings of the sandbox.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Program of the child: this one. On Linux `/proc/self/exe` stays correct when the file is replaced.
    pub program: PathBuf,
    /// Arguments that make the program call [`child::run`].
    pub args: Vec<OsString>,
    /// Number of idle processes that are kept ready.
    pub standby: usize,
    /// Maximum number of concurrent queries. Further queries wait, within their own time.
    pub at_once: usize,
    /// Number of threads of one query.
    pub threads: usize,
    /// Limit of a process's address space in bytes. An idle process uses about 500 MiB of it, mostly stacks that are
    /// never touched.
    pub memory_bytes: u64,
    /// Maximum time of a query, waiting included.
    pub seconds: Duration,
    /// Clock that `now()` reads in a statement.
    pub clock: Arc<dyn Clock>,
}

impl SandboxConfig {
    /// Returns the default settings: two idle processes, four concurrent queries, two threads and 2 GiB each, 20
    /// seconds.
    pub fn new(program: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            program,
            args: vec![child::CHILD_ARGUMENT.into()],
            standby: 2,
            at_once: 4,
            threads: 2,
            memory_bytes: 2 << 30,
            seconds: Duration::from_secs(20),
            clock,
        }
    }
}

/// A part of a version: a Parquet file with the columns of the contract.
#[derive(Clone, Debug)]
pub struct SandboxPart {
    /// Path of the file. It is opened here, and the process gets only the open file.
    pub path: PathBuf,
    /// Number of rows in the file.
    pub rows: u64,
    /// Block hashes, which the process compares with the bytes at every read.
    pub proof: Arc<Proof>,
}

/// Records of a version.
#[derive(Clone, Debug)]
pub struct VersionRecords {
    /// Contract of the records.
    pub contract: Arc<Contract>,
    /// Parts in order. Empty for an empty version.
    pub parts: Vec<SandboxPart>,
}

/// Order of rows where a statement leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueryOrder {
    /// Any.
    Any,
    /// The same at each run.
    Steady,
    /// The same, and the statement can name the places of records.
    Places,
    /// The same, with this time for `now()`.
    At(Timestamp),
}

/// Runs queries, each in its own process. A clone shares the idle processes.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<SandboxState>,
}

#[derive(Debug)]
struct SandboxState {
    config: SandboxConfig,
    ready: Mutex<Vec<ChildProcess>>,
    running: Semaphore,
}

impl Sandbox {
    /// Starts the idle processes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Process`] if a process cannot be started.
    pub fn start(config: SandboxConfig) -> Result<Self, Error> {
        let running = Semaphore::new(config.at_once);
        let inner = SandboxState {
            config,
            ready: Mutex::default(),
            running,
        };
        inner.refill()?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs one statement over `records` and returns at most `limit` rows. Dropping the future ends the query.
    pub async fn query(&self, records: &VersionRecords, sql: &str, limit: u32) -> Result<QueryAnswer, Error> {
        self.answer(records, sql, limit, QueryOrder::Any).await
    }

    /// Does the same with one thread, so that each run gives the rows in the same order where the statement leaves it
    /// open.
    pub async fn query_steadily(&self, records: &VersionRecords, sql: &str, limit: u32) -> Result<QueryAnswer, Error> {
        self.answer(records, sql, limit, QueryOrder::Steady).await
    }

    /// Does the same over a table that has [`types::contract::PLACE_COLUMNS`] too, so that a statement can order and name
    /// the records by them.
    pub async fn query_with_places(
        &self,
        records: &VersionRecords,
        sql: &str,
        limit: u32,
    ) -> Result<QueryAnswer, Error> {
        self.answer(records, sql, limit, QueryOrder::Places).await
    }

    /// Runs a statement as [`Self::query_steadily`], and lets `now()` return `now`. The answer has the reasons why it may
    /// be another one the next time, here or where the same program runs over the same records.
    pub async fn query_at(
        &self,
        records: &VersionRecords,
        sql: &str,
        limit: u32,
        now: Timestamp,
    ) -> Result<QueryAnswer, Error> {
        self.answer(records, sql, limit, QueryOrder::At(now)).await
    }

    async fn answer(
        &self,
        records: &VersionRecords,
        sql: &str,
        limit: u32,
        order: QueryOrder,
    ) -> Result<QueryAnswer, Error> {
        // A refused statement costs no process and no place in the queue.
        check(sql).await?;
        let config = &self.inner.config;
        // The time starts before the wait for a permit, so a caller never waits longer than `seconds`.
        let deadline = Instant::now() + config.seconds;
        // A query that gets no permit in time has not run, so the caller may try again.
        let permit = timeout_at(deadline, self.inner.running.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            return Err(Error::Busy);
        };
        let job = ChildQuery {
            contract: Arc::clone(&records.contract),
            sql: sql.to_owned(),
            limit,
            is_steady: order != QueryOrder::Any,
            wants_reasons: matches!(order, QueryOrder::At(_)),
            has_places: order == QueryOrder::Places,
            now: match order {
                QueryOrder::At(now) => now,
                _ => config.clock.now(),
            },
            parts: records
                .parts
                .iter()
                .map(|part| (part.rows, Arc::clone(&part.proof)))
                .collect(),
        };
        // The next process is started even if the answer is dropped.
        let _refill = RefillOnDrop(Arc::clone(&self.inner));
        let answered = timeout_at(deadline, self.inner.run(&job, &records.parts)).await;
        answered.unwrap_or(Err(Error::TimedOut { after: config.seconds }))
    }
}

/// Starts the missing idle processes when it is dropped.
struct RefillOnDrop(Arc<SandboxState>);

impl Drop for RefillOnDrop {
    fn drop(&mut self) {
        let inner = Arc::clone(&self.0);
        // Without a runtime the service is ending, and no process is needed.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn_blocking(move || {
            if let Err(error) = inner.refill() {
                tracing::warn!(%error, "cannot start a process for queries");
            }
        });
    }
}

impl SandboxState {
    /// Starts a process.
    fn start(&self) -> Result<ChildProcess, Error> {
        let SandboxConfig { threads, seconds, .. } = self.config;
        let setup = ChildSetup {
            protocol: PROTOCOL.to_owned(),
            memory: self.config.memory_bytes,
            // The processor time of all threads counts, so a busy query has at least its full wall-clock time.
            processor: seconds.as_secs().saturating_add(1).saturating_mul(threads as u64),
            threads,
        };
        let program = ChildProgram {
            program: self.config.program.clone(),
            args: self.config.args.clone(),
        };
        Ok(ChildProcess::start(&program, &setup)?)
    }

    /// Returns the reason why a process ended without an answer.
    async fn ended(&self, process: ChildProcess, error: io::Error) -> Error {
        match process.end(error).await {
            Ok(ChildEnd::OutOfMemory) => Error::OutOfMemory {
                bytes: self.config.memory_bytes,
            },
            Ok(ChildEnd::StackOverflow) => Error::Failed {
                message: "it nests too deeply".to_owned(),
            },
            Ok(ChildEnd::ProcessorTime) => Error::TimedOut {
                after: self.config.seconds,
            },
            Ok(ChildEnd::Crashed(how)) => Error::Crashed { how },
            Err(error) => error.into(),
        }
    }

    /// Starts the missing idle processes.
    fn refill(&self) -> Result<(), Error> {
        let missing = || {
            let ready = self.ready.lock();
            self.config.standby > ready.len()
        };
        while missing() {
            let process = self.start()?;
            let mut ready = self.ready.lock();
            // Another query may have started one meanwhile. Dropping the process ends it.
            if ready.len() < self.config.standby {
                // The oldest process is at the end and is used first, because it is warm.
                ready.insert(0, process);
            }
        }
        Ok(())
    }

    /// Returns a ready process: an idle one, or a new one.
    async fn take(&self) -> Result<ChildProcess, Error> {
        loop {
            let kept = self.ready.lock().pop();
            let Some(mut process) = kept else {
                let mut process = self.start()?;
                process.ready().await?;
                return Ok(process);
            };
            match process.ready().await {
                Ok(()) => return Ok(process),
                Err(error) => tracing::warn!(%error, "an idle query process ended; starting another"),
            }
        }
    }

    /// Returns a process that has received the query.
    async fn send_job(&self, job: &ChildQuery) -> Result<ChildProcess, Error> {
        // At most every idle process may turn out to be dead. After that the failure has another cause.
        let mut left = self.config.standby;
        loop {
            let mut process = self.take().await?;
            match process.channel.send(job).await {
                Ok(()) => return Ok(process),
                // An idle process may have ended after it reported that it was ready.
                Err(error) if left > 0 => {
                    tracing::warn!(%error, "an idle query process ended; starting another");
                    left -= 1;
                }
                Err(error) => return Err(Error::process("cannot send the query to its process")(error)),
            }
        }
    }

    async fn run(&self, job: &ChildQuery, parts: &[SandboxPart]) -> Result<QueryAnswer, Error> {
        let mut process = self.send_job(job).await?;
        // Files are opened per batch, so few are open here at a time.
        for batch in parts.chunks(FILES_AT_ONCE) {
            let files = open(batch.to_vec()).await?;
            if let Err(error) = process.channel.send_files(&files).await {
                return Err(self.ended(process, error).await);
            }
        }
        let reply = match process.channel.receive(MAX_FRAME_BYTES).await {
            Ok(reply) => reply,
            Err(error) => {
                return Err(self.ended(process, error).await);
            }
        };
        match reply {
            ChildReply::Answer(answer) => Ok(answer),
            ChildReply::Refused { what, rule } => Err(Refusal { what, rule }.into()),
            ChildReply::Failed(message) => Err(Error::Failed { message }),
            ChildReply::Unreadable(message) => Err(Error::Unreadable { message }),
            ChildReply::Damaged(message) => Err(Error::Damaged { message }),
            ChildReply::TooLarge => Err(Error::TooLarge),
            ChildReply::OutOfMemory => Err(Error::OutOfMemory {
                bytes: self.config.memory_bytes,
            }),
        }
    }
}

/// Opens parts on a blocking thread.
async fn open(parts: Vec<SandboxPart>) -> Result<Vec<File>, Error> {
    let open = move || {
        let open = |part: SandboxPart| {
            File::open(&part.path).map_err(|source| Error::Part {
                path: part.path,
                source,
            })
        };
        parts.into_iter().map(open).collect()
    };
    let opened = tokio::task::spawn_blocking(open).await;
    opened.map_err(|error| Error::process("parts could not be opened")(error.into()))?
}
