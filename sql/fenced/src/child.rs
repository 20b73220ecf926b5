//! The child's side: prepares itself, gets one job and ends.
//!
//! Invariant: nothing of a job is read before the fence is closed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{self, Receiver, Sender};

use crate::wire::ChildChannel;
use crate::{ChildReadiness, ChildSetup, fence};

/// Argument that a program was started again with.
const RESTARTED: &str = "limited";

/// Limits the address space and starts the program again with its argument, unless that was done. An allocator reserves
/// address space when a program begins, which a later limit would count.
///
/// # Errors
/// The reason why the process could not be limited or started again.
pub fn restart_within(program: &Path, argument: &OsStr, memory_bytes: u64) -> io::Result<()> {
    if std::env::args_os().nth(2).is_some_and(|given| given == RESTARTED) {
        return Ok(());
    }
    fence::limit_memory(memory_bytes).map_err(io::Error::other)?;
    Err(Command::new(program).arg(argument).arg(RESTARTED).exec())
}

/// A child whose fence is closed.
#[derive(Debug)]
pub struct FencedChild {
    /// The channel to the caller.
    pub channel: ChildChannel,
    start: Sender<()>,
}

impl FencedChild {
    /// Begins to watch the caller, who sends nothing more: from here on the end of the caller ends this process.
    pub fn watch_caller(&self) -> io::Result<()> {
        self.start.send(()).map_err(io::Error::other)
    }
}

/// Runs `serve` on a thread with a stack of so many bytes, and returns the exit code of the process.
///
/// A program that starts itself as a child calls this before it starts threads or opens files.
pub fn run(stack_bytes: usize, serve: impl FnOnce() -> io::Result<()> + Send + 'static) -> ExitCode {
    // The caller learns of a panic from the failed job, so nothing is printed.
    std::panic::set_hook(Box::new(|_| {}));
    let served = std::thread::Builder::new().stack_size(stack_bytes).spawn(serve);
    match served.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Prepares this process over standard input, which is a socket: warms up, sets the limits and closes the fence. Returns
/// nothing if the process is not fit, which the caller was told.
pub fn enter<T>(
    protocol: &str,
    warm_up: impl FnOnce(&ChildSetup) -> Result<T, String>,
) -> io::Result<Option<(FencedChild, T)>> {
    let mut channel = ChildChannel(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    // The setup comes from the caller's configuration and contains nothing of a job.
    let setup: ChildSetup = channel.receive()?;
    let (start, started) = mpsc::channel();
    match prepare(&channel, protocol, &setup, started, warm_up) {
        Ok(warm) => {
            channel.send(&ChildReadiness::Ready)?;
            Ok(Some((FencedChild { channel, start }, warm)))
        }
        Err(problem) => {
            channel.send(&ChildReadiness::Unfit(problem))?;
            Ok(None)
        }
    }
}

/// Does everything that must happen before a job is read. The error describes the failed step.
fn prepare<T>(
    channel: &ChildChannel,
    protocol: &str,
    setup: &ChildSetup,
    started: Receiver<()>,
    warm_up: impl FnOnce(&ChildSetup) -> Result<T, String>,
) -> Result<T, String> {
    if setup.protocol != protocol {
        return Err(format!(
            "the process has the protocol `{protocol}`, the service has `{}`",
            setup.protocol
        ));
    }
    let watched = channel.0.try_clone().map_err(|error| error.to_string())?;
    // The thread starts now, because the fence forbids to start threads.
    std::thread::Builder::new()
        .spawn(move || watch(watched, &started))
        .map_err(|error| error.to_string())?;
    // The order matters: each step needs rights or resources that a later one takes away.
    fence::prefer_for_oom_kill();
    fence::limit_files()?;
    let warm = warm_up(setup)?;
    fence::limit(setup)?;
    fence::close()?;
    Ok(warm)
}

/// Ends the process when the caller closes the socket.
#[expect(clippy::exit, reason = "nobody waits for this process any more")]
fn watch(mut socket: UnixStream, started: &Receiver<()>) {
    if started.recv().is_ok() {
        // The result does not matter: the caller is gone.
        drop(io::Read::read(&mut socket, &mut [0]));
        std::process::exit(1);
    }
}
