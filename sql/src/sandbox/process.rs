//! One child process.
//!
//! Invariant: the process is killed when its handle is dropped.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::SandboxConfig;
use crate::Error;
use crate::wire::{ChildReply, PROTOCOL, ServiceChannel, Setup, frame};

/// Maximum number of bytes that are read of a dead child's error output.
const MAX_STDERR_BYTES: u64 = 4_096;
/// Time in which a child must become ready.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(15);

/// A process that waits for a query, or runs one.
#[derive(Debug)]
pub(super) struct ChildProcess {
    child: Child,
    pub(super) channel: ServiceChannel,
}

impl ChildProcess {
    /// Starts a process. [`Self::ready`] waits until it can take a query.
    pub(super) fn start(config: &SandboxConfig) -> Result<Self, Error> {
        let (ours, theirs) =
            UnixStream::pair().map_err(Error::process("cannot create a socket for the query process"))?;
        let setup = Setup {
            protocol: PROTOCOL.to_owned(),
            memory: config.memory_bytes,
            // The processor time of all threads counts, so a busy query has at least its full wall-clock time.
            processor: config
                .seconds
                .as_secs()
                .saturating_add(1)
                .saturating_mul(config.threads as u64),
            threads: config.threads,
        };
        let child = Command::new(&config.program)
            .args(&config.args)
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
            .map_err(Error::process("cannot start the query process"))?;
        let line = (|| {
            (&ours).write_all(&frame(&setup)?)?;
            ours.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(ours)
        })();
        let channel = ServiceChannel(line.map_err(Error::process("cannot communicate with the query process"))?);
        Ok(Self { child, channel })
    }

    /// Waits until the engine is warm and the fence is closed.
    pub(super) async fn ready(&mut self) -> Result<(), Error> {
        let said = tokio::time::timeout(WARM_UP_TIMEOUT, self.channel.receive()).await;
        let problem = match said {
            Ok(Ok(ChildReply::Ready)) => return Ok(()),
            Ok(Ok(ChildReply::Unfit(problem))) => problem,
            Ok(Ok(_)) => "the query process sent an unexpected message".to_owned(),
            Ok(Err(error)) => return Err(Error::process("the query process ended before it was ready")(error)),
            Err(_) => "the query process was not ready in time".to_owned(),
        };
        Err(Error::Process { problem, source: None })
    }

    /// Returns the reason why a process ended without an answer.
    pub(super) async fn ended(mut self, error: io::Error, memory: u64, seconds: Duration) -> Error {
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // A read error only shortens the message.
            drop(stderr.take(MAX_STDERR_BYTES).read_to_end(&mut words).await);
        }
        let words = String::from_utf8_lossy(&words);
        let status = match self.child.wait().await {
            Ok(status) => status,
            Err(error) => return Error::process("cannot read the exit status of the query process")(error),
        };
        let signal = status.signal();
        let by = |signals: &[Signal]| signals.iter().any(|other| signal == Some(other.as_raw()));
        // The caller has not killed the process. So SIGKILL came from the kernel, because the machine is out of memory.
        if words.contains("memory allocation of") || by(&[Signal::KILL]) {
            return Error::OutOfMemory { bytes: memory };
        }
        if words.contains("overflowed its stack") {
            let message = "it nests too deeply".to_owned();
            return Error::Failed { message };
        }
        if by(&[Signal::XCPU]) {
            return Error::TimedOut { after: seconds };
        }
        tracing::warn!(%status, %error, stderr = %words.trim(), "a query process ended without an answer");
        Error::Crashed {
            how: status.to_string(),
        }
    }
}
