//! The child: becomes ready, serves one query, ends.
//!
//! Invariant: nothing of a query is read before the fence is up. Every way to end is one the caller can tell apart.

mod checked;
mod engine;
mod fence;
mod json;
mod membership;
mod parts;
mod render;
mod rule;
mod sum;

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc;

use crate::check;
use crate::wire::{Job, PROTOCOL, Pipe, Reply, Setup};

/// The hidden argument with which the program is a child.
pub const ARGUMENT: &str = "__sql-child";

/// The stack of the thread that plans: deep enough to parse, and to walk the plan of the deepest statement.
const STACK: usize = 2 * check::STACK;

/// Serves one query over standard input, a socket, and ends.
///
/// A program that starts itself as a child calls this first of all, before it has threads or open files.
pub fn run() -> ExitCode {
    // Why: a panic is told to the caller as a failure of the query, not written anywhere.
    std::panic::set_hook(Box::new(|_| {}));
    let served = std::thread::Builder::new().stack_size(STACK).spawn(serve);
    match served.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let mut pipe = Pipe(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    let setup: Setup = pipe.receive()?;
    let (start, started) = mpsc::channel();
    let ready = prepare(&pipe, &setup, started);
    let engine = match ready {
        Ok(engine) => engine,
        Err(problem) => return pipe.send(&Reply::Unfit(problem)),
    };
    pipe.send(&Reply::Ready)?;
    let job: Job = pipe.receive()?;
    let files = pipe.receive_files(job.parts.len())?;
    // Why: the caller says nothing more, so from here on the end of the socket is the end of the caller.
    start.send(()).map_err(io::Error::other)?;
    pipe.send(&engine.answer(job, files))
}

/// Everything that must be done before a query is read.
fn prepare(pipe: &Pipe, setup: &Setup, started: mpsc::Receiver<()>) -> Result<engine::Engine, String> {
    if setup.protocol != PROTOCOL {
        return Err(format!(
            "the query process has the protocol `{PROTOCOL}`, the service has `{}`",
            setup.protocol
        ));
    }
    let watched = pipe.0.try_clone().map_err(|error| error.to_string())?;
    std::thread::Builder::new()
        .spawn(move || watch(watched, &started))
        .map_err(|error| error.to_string())?;
    fence::volunteer();
    fence::limit_files()?;
    let engine = engine::Engine::start(setup)?;
    fence::limit(setup)?;
    fence::close()?;
    Ok(engine)
}

/// Ends the process when its caller is gone.
#[expect(clippy::exit, reason = "nobody waits for this process any more")]
fn watch(mut socket: UnixStream, started: &mpsc::Receiver<()>) {
    if started.recv().is_ok() {
        // Why: whatever this returns, the caller is gone.
        drop(io::Read::read(&mut socket, &mut [0]));
        std::process::exit(1);
    }
}
