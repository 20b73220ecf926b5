//! The child process: warms its engine, serves one query behind the fence and ends.
//!
//! Invariant: nothing of a query is read before the fence is closed.

mod arithmetic;
mod arrays;
mod checked;
mod differences;
mod doubles;
mod engine;
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
mod repeatable;
mod rule;
mod set_types;
mod temporal;
mod texts;
mod to_text;
mod total;
mod windows;
mod words;

use std::io;
use std::process::ExitCode;

use crate::check;
use crate::wire::{ChildQuery, PROTOCOL};

/// Hidden command-line argument that makes the program a child.
pub const CHILD_ARGUMENT: &str = "__sql-child";

/// Stack size in bytes of the planning thread: enough to parse the deepest statement and to walk its plan.
const STACK_BYTES: usize = 2 * check::STACK_BYTES;

/// Serves one query over standard input, which is a socket, and ends.
///
/// A program that starts itself as a child calls this before it starts threads or opens files.
pub fn run() -> ExitCode {
    fenced::child::run(STACK_BYTES, serve)
}

fn serve() -> io::Result<()> {
    let Some((mut child, engine)) = fenced::child::enter(PROTOCOL, engine::QueryEngine::start)? else {
        return Ok(());
    };
    let job: ChildQuery = child.channel.receive()?;
    let files = child.channel.receive_files(job.parts.len())?;
    child.watch_caller()?;
    child.channel.send(&engine.answer(job, files))
}
