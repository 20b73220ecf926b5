//! The probe of a redelivered message in a child process, before this process works on it.
//!
//! A message can end the process that works on it: by too much memory, a stack overflow, or a library in C. It would do
//! so at every start. Therefore whatever can have been in work when an earlier process ended is first decoded, judged
//! and encoded by a child, which keeps nothing of it.
//!
//! Invariants:
//! - A message is condemned only by children that ended themselves, as often as [`ProbeSettings::max_crashes`] says and
//!   at least twice, each time but the first as the first message of a child. A kill from outside, a time-out and a start
//!   that failed condemn nothing.
//! - A child has no credentials, no environment, no files and no log.
//! - A probe delays what waits for its message, and nothing else.

pub mod child;
mod wire;

use std::ffi::OsString;
use std::fmt::{self, Debug};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use async_trait::async_trait;
use eventlog::Record;
use futures_util::{StreamExt as _, stream};
use messages::{Address, UnitAddress};
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::process::{Child as Process, Command};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use types::error::with_causes;
use types::{UploadLayout, fault};
use uploads::UploadStore;

pub use self::wire::MessageKind;
use self::wire::{AHEAD, Head, Reply, ServiceEnd};
use crate::pieces::pieces;

/// The hidden argument of a program that is to be a child.
pub const ARGUMENT: &str = "__trial";
/// The address space of a child. What needs more ends the child, and not this process.
const MEMORY: u64 = 2 << 30;
/// The time in which a child must be ready.
const START: Duration = Duration::from_secs(15);
/// The time without a probe after which a child is ended.
const IDLE: Duration = Duration::from_secs(5);
/// The bytes of an upload that are tried out in a second, at least.
const UPLOAD_BYTES_PER_SECOND: u64 = 10_000_000;
/// The signals by which a process ends itself.
const OWN_ENDS: [(Signal, &str); 5] = [
    (Signal::ABORT, "SIGABRT"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::BUS, "SIGBUS"),
    (Signal::ILL, "SIGILL"),
    (Signal::FPE, "SIGFPE"),
];

/// A message that is to be tried out.
#[derive(Clone, Copy, Debug)]
pub enum Probe<'a> {
    /// A submission with its records.
    Batch(&'a Record),
    /// A submission that refers to an upload.
    Upload {
        /// The submission that names the upload.
        record: &'a Record,
        /// The layout of the upload.
        layout: &'a UploadLayout,
        /// The store of its parts.
        objects: &'a dyn UploadStore,
    },
    /// A version of a knowledge unit.
    Unit(&'a Record),
}

impl Probe<'_> {
    /// Returns the kind of the message.
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Batch(_) => MessageKind::Batch,
            Self::Upload { .. } => MessageKind::Upload,
            Self::Unit(_) => MessageKind::Unit,
        }
    }

    /// Returns the message.
    pub const fn record(&self) -> &Record {
        match self {
            Self::Batch(record) | Self::Upload { record, .. } | Self::Unit(record) => record,
        }
    }
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The child has done everything.
    Survived,
    /// Children ended themselves, as often as it takes to condemn the message.
    Died {
        /// The signal of the last end, such as `SIGABRT`.
        how: String,
    },
    /// The probe tells nothing about the message.
    Unknown {
        /// Reason for that.
        why: String,
    },
}

/// Tries messages out where they can do no harm. Object safe.
#[async_trait]
pub trait Isolation: Debug + Send + Sync {
    /// Tries a message out. Only [`ProbeResult::Died`] condemns it.
    async fn probe(&self, probe: Probe<'_>) -> ProbeResult;
}

/// Tries a message out, if there is an isolation. Returns the reason if nobody is to work on the message.
pub(crate) async fn poison_reason(isolation: Option<&dyn Isolation>, probe: Probe<'_>) -> Option<String> {
    match isolation?.probe(probe).await {
        ProbeResult::Survived => None,
        ProbeResult::Died { how } => Some(format!("its process ended ({how}) when it was tried out alone")),
        ProbeResult::Unknown { why } => {
            let value = &probe.record().value;
            let contribution = Address::read(value).map(|address| address.contribution);
            let unit = UnitAddress::read(value).map(|address| address.unit);
            tracing::warn!(
                ?contribution,
                ?unit,
                why,
                "the trial of a message has no result; it is worked on all the same"
            );
            None
        }
    }
}

/// Program of the children, and the time that they may take.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// The program that calls [`child::run`].
    pub program: PathBuf,
    /// Command-line arguments of the program.
    pub arguments: Vec<OsString>,
    /// The time that a probe may take, without the wait for a child. A large upload may take longer.
    pub timeout: Duration,
    /// The number of children that a condemned message has ended. Less than 2 counts as 2.
    pub max_crashes: usize,
    /// The address space of a child in bytes.
    pub memory: u64,
}

impl ProbeSettings {
    /// Settings of children that are this program with the argument [`ARGUMENT`].
    pub fn new(program: PathBuf, timeout: Duration, max_crashes: usize) -> Self {
        Self {
            program,
            arguments: vec![ARGUMENT.into()],
            timeout,
            max_crashes,
            memory: MEMORY,
        }
    }
}

/// Child processes for probes: started with the first probe, ended a few seconds after the last.
#[derive(Debug)]
pub struct ProbeChildren {
    settings: ProbeSettings,
    /// Places of batches and units.
    small: Semaphore,
    /// The place of an upload, which may take long.
    uploads: Semaphore,
    idle: Arc<Mutex<IdleChildren>>,
}

/// Children without a probe.
#[derive(Debug, Default)]
struct IdleChildren {
    /// Each with the time since when it has none.
    children: Vec<(Instant, Child)>,
    /// A task ends those that are idle for long.
    is_watched: bool,
}

/// End of one try.
enum ProbeEnd {
    Survived,
    Died(&'static str),
    Unknown(String),
}

/// The error of a try without a result of its own.
enum ProbeFailed {
    /// The child is gone, or did not do what it should.
    Child(io::Error),
    /// The bytes of the upload could not be read.
    Upload(uploads::Error),
}

impl From<io::Error> for ProbeFailed {
    fn from(error: io::Error) -> Self {
        Self::Child(error)
    }
}

impl ProbeChildren {
    /// Creates the means to try messages out. Starts nothing.
    pub fn new(settings: ProbeSettings) -> Self {
        // At least two, so that a probe that hangs holds up no other.
        let places = available_parallelism().map_or(1, usize::from).max(2);
        Self {
            settings,
            small: Semaphore::new(places),
            uploads: Semaphore::new(1),
            idle: Arc::default(),
        }
    }

    /// Tries a message out once, in this child or else in a fresh one.
    async fn once(&self, probe: Probe<'_>, child: Option<Child>) -> ProbeEnd {
        let child = match child {
            Some(child) => Ok(child),
            None => Child::start(&self.settings).await,
        };
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                tracing::error!(%error, "no process can be started to try messages out");
                return ProbeEnd::Unknown("no process can be started".to_owned());
            }
        };
        let bound = self.bound(probe);
        let tried = async {
            match child.probe(probe).await {
                Ok(()) => ProbeEnd::Survived,
                Err(ProbeFailed::Upload(error)) => ProbeEnd::Unknown(with_causes(&error)),
                Err(ProbeFailed::Child(error)) => child.end(&error).await,
            }
        };
        // A child that took too long is ended when it is dropped.
        let Ok(end) = timeout(bound, tried).await else {
            return ProbeEnd::Unknown(format!("it took longer than {bound:?}"));
        };
        if matches!(end, ProbeEnd::Survived) {
            self.keep(child);
        }
        end
    }

    fn bound(&self, probe: Probe<'_>) -> Duration {
        match probe {
            Probe::Upload { layout, .. } => {
                let of_bytes = Duration::from_secs(layout.bytes / UPLOAD_BYTES_PER_SECOND);
                self.settings.timeout.max(of_bytes)
            }
            Probe::Batch(_) | Probe::Unit(_) => self.settings.timeout,
        }
    }

    /// Keeps a child for the next probe.
    fn keep(&self, child: Child) {
        let mut idle = self.idle.lock();
        idle.children.push((Instant::now(), child));
        if !std::mem::replace(&mut idle.is_watched, true) {
            tokio::spawn(retire(Arc::clone(&self.idle)));
        }
    }
}

/// Ends children that are idle for long, until there are none.
async fn retire(idle: Arc<Mutex<IdleChildren>>) {
    loop {
        sleep(IDLE).await;
        let mut idle = idle.lock();
        idle.children.retain(|(since, _)| since.elapsed() < IDLE);
        if idle.children.is_empty() {
            idle.is_watched = false;
            return;
        }
    }
}

#[async_trait]
impl Isolation for ProbeChildren {
    async fn probe(&self, probe: Probe<'_>) -> ProbeResult {
        let places = match probe.kind() {
            MessageKind::Upload => &self.uploads,
            MessageKind::Batch | MessageKind::Unit => &self.small,
        };
        // A semaphore that is never closed always gives its place.
        let _place = places.acquire().await;
        let mut child = self.idle.lock().children.pop().map(|(_, child)| child);
        let mut crashes = 0;
        loop {
            match self.once(probe, child.take()).await {
                ProbeEnd::Survived => return ProbeResult::Survived,
                ProbeEnd::Unknown(why) => return ProbeResult::Unknown { why },
                ProbeEnd::Died(how) => {
                    crashes += 1;
                    if crashes >= self.settings.max_crashes.max(2) {
                        return ProbeResult::Died { how: how.to_owned() };
                    }
                }
            }
        }
    }
}

/// One child process. It is killed when it is dropped.
struct Child {
    process: Process,
    line: ServiceEnd,
}

impl Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("id", &self.process.id())
            .finish_non_exhaustive()
    }
}

impl Child {
    /// Starts a child and waits until it is ready.
    async fn start(settings: &ProbeSettings) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let process = Command::new(&settings.program)
            .args(&settings.arguments)
            // The environment of the service may have secrets.
            .env_clear()
            .current_dir("/")
            // A group of its own keeps the signals of a terminal away from the child.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut child = Self {
            process,
            line: ServiceEnd(tokio::net::UnixStream::from_std(ours)?),
        };
        let set_up = Head::SetUp {
            memory: settings.memory,
            lethal: fault::lethal().to_owned(),
        };
        let ready = async {
            child.line.send(&set_up, &[]).await?;
            child.line.reply().await
        };
        match timeout(START, ready).await {
            Ok(Ok(Reply::Ready)) => Ok(child),
            Ok(Ok(_)) => Err(io::Error::other("the process sent an unexpected answer")),
            Ok(Err(error)) => Err(error),
            Err(_late) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Has the child do everything with a message.
    async fn probe(&mut self, probe: Probe<'_>) -> Result<(), ProbeFailed> {
        let Record { key, value } = probe.record();
        let head = Head::Probe {
            kind: probe.kind(),
            key: key.to_vec(),
        };
        self.line.send(&head, value).await?;
        let mut pieces = match probe {
            Probe::Upload { layout, objects, .. } => pieces(objects, layout).boxed(),
            Probe::Batch(_) | Probe::Unit(_) => stream::pending().boxed(),
        };
        let (mut ahead, mut is_sent) = (0, false);
        loop {
            tokio::select! {
                reply = self.line.reply() => match reply? {
                    Reply::Survived => return Ok(()),
                    Reply::Taken => ahead -= 1,
                    Reply::Ready => return Err(io::Error::other("an unexpected answer").into()),
                },
                piece = pieces.next(), if !is_sent && ahead < AHEAD => {
                    let piece = piece.transpose().map_err(ProbeFailed::Upload)?;
                    // An empty piece is the end.
                    is_sent = piece.is_none();
                    self.line.send(&Head::Piece, &piece.unwrap_or_default()).await?;
                    ahead += 1;
                }
            }
        }
    }

    /// Returns the meaning of the end of a child that does not answer any more.
    async fn end(&mut self, error: &io::Error) -> ProbeEnd {
        match self.process.wait().await {
            Ok(status) => meaning(status),
            Err(_) => ProbeEnd::Unknown(with_causes(error)),
        }
    }
}

fn meaning(status: ExitStatus) -> ProbeEnd {
    let own = OWN_ENDS
        .iter()
        .find(|(signal, _)| status.signal() == Some(signal.as_raw()));
    match own {
        Some((_, name)) => ProbeEnd::Died(name),
        None => ProbeEnd::Unknown(format!("the process of the trial ended ({status})")),
    }
}
