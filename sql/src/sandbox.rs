//! The caller's side: processes kept ready, one for each query, ended at the deadline.
//!
//! Invariant: a process that has been given a query is never given another. Dropping a query kills its process.

mod process;

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use types::{Clock, Contract, Proof};

use self::process::Process;
use crate::wire::{BATCH, Job, Reply};
use crate::{Answer, Error, Refusal, check, child};

/// How queries are run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program that is started: this one. On Linux `/proc/self/exe` stays right when the file is replaced.
    pub program: PathBuf,
    /// What makes it call [`child::run`].
    pub args: Vec<OsString>,
    /// How many processes are kept ready.
    pub standby: usize,
    /// How many queries run at once; the others wait, within their own time.
    pub at_once: usize,
    /// How many threads run one query.
    pub threads: usize,
    /// The address space of a process, in bytes. An idle one takes about 500 MiB of it, nearly all stacks that are never touched.
    pub memory_bytes: u64,
    /// How long a query may take, waiting included.
    pub seconds: Duration,
    /// What `now()` says.
    pub clock: Arc<dyn Clock>,
}

impl Config {
    /// The usual: two processes ready, four queries at once, two threads and 2 GiB each, 20 seconds.
    pub fn new(program: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            program,
            args: vec![child::ARGUMENT.into()],
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
pub struct Part {
    /// The file; it is opened here, and only the open file goes to the process.
    pub path: PathBuf,
    /// How many rows it has.
    pub rows: u64,
    /// The hashes that the process compares with the bytes at every read.
    pub proof: Arc<Proof>,
}

/// The records of a version.
#[derive(Clone, Debug)]
pub struct Records {
    /// What they look like.
    pub contract: Arc<Contract>,
    /// Where they are; none for an empty version.
    pub parts: Vec<Part>,
}

/// Runs queries, each in a process of its own. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    ready: Mutex<Vec<Process>>,
    running: Semaphore,
}

impl Sandbox {
    /// Starts the processes that are kept ready. Must be called within a tokio runtime.
    pub fn start(config: Config) -> Result<Self, Error> {
        let running = Semaphore::new(config.at_once);
        let inner = Inner {
            config,
            ready: Mutex::default(),
            running,
        };
        inner.refill()?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs one statement over `records`; at most `limit` rows are answered. Dropping the future ends the query.
    pub async fn query(&self, records: &Records, sql: &str, limit: u32) -> Result<Answer, Error> {
        check(sql).await?;
        let config = &self.inner.config;
        let deadline = Instant::now() + config.seconds;
        let permit = timeout_at(deadline, self.inner.running.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            return Err(Error::Busy);
        };
        let job = Job {
            contract: Arc::clone(&records.contract),
            sql: sql.to_owned(),
            limit,
            now: config.clock.now(),
            parts: records
                .parts
                .iter()
                .map(|part| (part.rows, Arc::clone(&part.proof)))
                .collect(),
        };
        // The next process is made ready while the answer is on its way, or when nobody wants it any more.
        let _refilled = Refilled(Arc::clone(&self.inner));
        let answered = timeout_at(deadline, self.inner.run(&job, &records.parts)).await;
        answered.unwrap_or(Err(Error::TimedOut { after: config.seconds }))
    }
}

/// Starts as many processes as are missing, once it is dropped.
struct Refilled(Arc<Inner>);

impl Drop for Refilled {
    fn drop(&mut self) {
        let inner = Arc::clone(&self.0);
        // Why not where there is none: then the service ends.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn_blocking(move || {
            if let Err(error) = inner.refill() {
                tracing::warn!(%error, "cannot start a process for queries");
            }
        });
    }
}

impl Inner {
    /// Starts as many processes as are missing.
    fn refill(&self) -> Result<(), Error> {
        let missing = || {
            let ready = self.ready.lock();
            self.config.standby > ready.len()
        };
        while missing() {
            let process = Process::start(&self.config)?;
            let mut ready = self.ready.lock();
            // Why: another query may have filled the place meanwhile; a process that is dropped ends.
            if ready.len() < self.config.standby {
                // Why: the oldest is taken first, for it is warm.
                ready.insert(0, process);
            }
        }
        Ok(())
    }

    /// A process that is ready.
    async fn take(&self) -> Result<Process, Error> {
        loop {
            let kept = self.ready.lock().pop();
            let Some(mut process) = kept else {
                let mut process = Process::start(&self.config)?;
                process.ready().await?;
                return Ok(process);
            };
            match process.ready().await {
                Ok(()) => return Ok(process),
                Err(error) => tracing::warn!(%error, "an idle query process ended; starting another"),
            }
        }
    }

    /// A process that was told the query.
    async fn told(&self, job: &Job) -> Result<Process, Error> {
        let mut left = self.config.standby;
        loop {
            let mut process = self.take().await?;
            match process.line.send(job).await {
                Ok(()) => return Ok(process),
                // Why: one that was kept may have ended since it said that it is ready.
                Err(error) if left > 0 => {
                    tracing::warn!(%error, "an idle query process ended; starting another");
                    left -= 1;
                }
                Err(error) => return Err(Error::process("cannot send the query to its process")(error)),
            }
        }
    }

    async fn run(&self, job: &Job, parts: &[Part]) -> Result<Answer, Error> {
        let mut process = self.told(job).await?;
        for batch in parts.chunks(BATCH) {
            let files = open(batch.to_vec()).await?;
            if let Err(error) = process.line.send_files(&files).await {
                return Err(process
                    .ended(error, self.config.memory_bytes, self.config.seconds)
                    .await);
            }
        }
        let reply = match process.line.receive().await {
            Ok(reply) => reply,
            Err(error) => {
                return Err(process
                    .ended(error, self.config.memory_bytes, self.config.seconds)
                    .await);
            }
        };
        match reply {
            Reply::Answer(answer) => Ok(answer),
            Reply::Refused { what, rule } => Err(Refusal { what, rule }.into()),
            Reply::Failed(message) => Err(Error::Failed { message }),
            Reply::Unreadable(message) => Err(Error::Unreadable { message }),
            Reply::Damaged(message) => Err(Error::Damaged { message }),
            Reply::TooLarge => Err(Error::TooLarge),
            Reply::OutOfMemory => Err(Error::OutOfMemory {
                bytes: self.config.memory_bytes,
            }),
            Reply::Ready | Reply::Unfit(_) => Err(Error::Crashed {
                how: "the query process sent an unexpected message".to_owned(),
            }),
        }
    }
}

/// Opens parts on a thread that may block.
async fn open(parts: Vec<Part>) -> Result<Vec<File>, Error> {
    let open = move || {
        let open = |part: Part| {
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
