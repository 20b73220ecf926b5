//! The child process: prepares itself, serves one query and ends.
//!
//! Invariant: nothing of a query is read before the fence is closed. The caller can distinguish all ways in which the
//! process ends.

mod arithmetic;
mod arrays;
mod checked;
mod differences;
mod doubles;
mod engine;
mod fence;
mod float_text;
mod guard;
mod in_order;
mod interval_aggregates;
mod json;
mod lengths;
mod list_text;
mod literal;
mod membership;
mod mixed;
mod moments;
mod named;
mod numeric;
mod ordered;
mod parts;
mod pattern;
mod regex;
mod render;
mod rule;
mod set_types;
mod temporal;
mod texts;
mod to_text;
mod total;
mod windows;
mod words;

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc;

use crate::check;
use crate::wire::{ChildChannel, ChildQuery, ChildReply, PROTOCOL, Setup};

/// Hidden command-line argument that makes the program a child.
pub const CHILD_ARGUMENT: &str = "__sql-child";

/// Stack size in bytes of the planning thread: enough to parse the deepest statement and to walk its plan.
const STACK_BYTES: usize = 2 * check::STACK_BYTES;

/// Serves one query over standard input, which is a socket, and ends.
///
/// A program that starts itself as a child calls this before it starts threads or opens files.
pub fn run() -> ExitCode {
    // The caller learns of a panic from the failed query, so nothing is printed.
    std::panic::set_hook(Box::new(|_| {}));
    let served = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve);
    match served.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let mut pipe = ChildChannel(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    // The setup comes from the caller's configuration and contains nothing of a query.
    let setup: Setup = pipe.receive()?;
    let (start, started) = mpsc::channel();
    let ready = prepare(&pipe, &setup, started);
    let engine = match ready {
        Ok(engine) => engine,
        Err(problem) => return pipe.send(&ChildReply::Unfit(problem)),
    };
    pipe.send(&ChildReply::Ready)?;
    let job: ChildQuery = pipe.receive()?;
    let files = pipe.receive_files(job.parts.len())?;
    // The caller sends nothing more. From here on a readable socket means that the caller is gone.
    start.send(()).map_err(io::Error::other)?;
    pipe.send(&engine.answer(job, files))
}

/// Does everything that must happen before a query is read. The error describes the failed step.
fn prepare(pipe: &ChildChannel, setup: &Setup, started: mpsc::Receiver<()>) -> Result<engine::QueryEngine, String> {
    if setup.protocol != PROTOCOL {
        return Err(format!(
            "the query process has the protocol `{PROTOCOL}`, the service has `{}`",
            setup.protocol
        ));
    }
    let watched = pipe.0.try_clone().map_err(|error| error.to_string())?;
    // The thread starts now, because the fence forbids to start threads.
    std::thread::Builder::new()
        .spawn(move || watch(watched, &started))
        .map_err(|error| error.to_string())?;
    // The order matters: each step needs rights or resources that a later one takes away.
    fence::prefer_for_oom_kill();
    fence::limit_files()?;
    let engine = engine::QueryEngine::start(setup)?;
    fence::limit(setup)?;
    fence::close()?;
    Ok(engine)
}

/// Ends the process when the caller closes the socket.
#[expect(clippy::exit, reason = "nobody waits for this process any more")]
fn watch(mut socket: UnixStream, started: &mpsc::Receiver<()>) {
    if started.recv().is_ok() {
        // The result does not matter: the caller is gone.
        drop(io::Read::read(&mut socket, &mut [0]));
        std::process::exit(1);
    }
}
