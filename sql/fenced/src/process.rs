//! The caller's side: one child process.
//!
//! Invariant: the process is killed when its handle is dropped.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::wire::{ServiceChannel, frame};
use crate::{ChildReadiness, ChildSetup};

/// Maximum number of bytes that are read of a dead child's error output.
const MAX_STDERR_BYTES: u64 = 4_096;
/// Time in which a child must become ready.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum length of the answer to the setup.
const MAX_READINESS_BYTES: usize = 64 << 10;

/// A process could not be started, fenced or reached.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct Error {
    /// Description of the failed step.
    pub problem: String,
    /// Error of the operating system, if there is one.
    #[source]
    pub source: Option<io::Error>,
}

fn failed(problem: &str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error {
        problem: problem.to_owned(),
        source: Some(source),
    }
}

/// The program of a child.
#[derive(Clone, Debug)]
pub struct ChildProgram {
    /// This program. On Linux `/proc/self/exe` stays correct when the file is replaced.
    pub program: PathBuf,
    /// Arguments that make the program call [`crate::child::run`].
    pub args: Vec<OsString>,
}

/// The way in which a process ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// It needed more memory than its limit, or than the machine has.
    OutOfMemory,
    /// It nested too deeply.
    StackOverflow,
    /// It used more processor time than its limit.
    ProcessorTime,
    /// Something else, with the exit status.
    Crashed(String),
}

/// A process that waits for a job, or works on one.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    /// The channel to the process.
    pub channel: ServiceChannel,
}

impl ChildProcess {
    /// Starts a process. [`Self::ready`] waits until it can take a job. Must be called within a tokio runtime.
    pub fn start(program: &ChildProgram, setup: &ChildSetup) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(failed("cannot create a socket for the process"))?;
        let child = Command::new(&program.program)
            .args(&program.args)
            // The environment of the service may have secrets.
            .env_clear()
            .current_dir("/")
            // A group of its own keeps the signals of a terminal away from the child.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // The error output tells the reason of a crash.
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed("cannot start the process"))?;
        let line = (|| {
            (&ours).write_all(&frame(setup)?)?;
            ours.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(ours)
        })();
        let channel = ServiceChannel(line.map_err(failed("cannot communicate with the process"))?);
        Ok(Self { child, channel })
    }

    /// Waits until the process is warm and its fence is closed.
    pub async fn ready(&mut self) -> Result<(), Error> {
        let said = tokio::time::timeout(WARM_UP_TIMEOUT, self.channel.receive(MAX_READINESS_BYTES)).await;
        let problem = match said {
            Ok(Ok(ChildReadiness::Ready)) => return Ok(()),
            Ok(Ok(ChildReadiness::Unfit(problem))) => problem,
            Ok(Err(error)) => return Err(failed("the process ended before it was ready")(error)),
            Err(_) => "the process was not ready in time".to_owned(),
        };
        Err(Error { problem, source: None })
    }

    /// Returns the way in which a process ended without an answer, which `error` tells.
    pub async fn end(mut self, error: io::Error) -> Result<ChildEnd, Error> {
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // A read error only shortens the message.
            drop(stderr.take(MAX_STDERR_BYTES).read_to_end(&mut words).await);
        }
        let words = String::from_utf8_lossy(&words);
        let status = self
            .child
            .wait()
            .await
            .map_err(failed("cannot read the exit status of the process"))?;
        let signal = status.signal();
        let by = |other: Signal| signal == Some(other.as_raw());
        // The caller has not killed the process. So SIGKILL came from the kernel, because the machine is out of memory.
        if words.contains("memory allocation of") || by(Signal::KILL) {
            return Ok(ChildEnd::OutOfMemory);
        }
        if words.contains("overflowed its stack") {
            return Ok(ChildEnd::StackOverflow);
        }
        if by(Signal::XCPU) {
            return Ok(ChildEnd::ProcessorTime);
        }
        tracing::warn!(%status, %error, stderr = %words.trim(), "a fenced process ended without an answer");
        Ok(ChildEnd::Crashed(status.to_string()))
    }
}
