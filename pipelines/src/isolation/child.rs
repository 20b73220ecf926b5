//! The child process: does with each message what a worker would, and keeps nothing.
//!
//! Invariant: nothing of a message is read before the limits hold, and everything that a worker does with the content of
//! a message happens here before it happens there, on a stack of the same size.

use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use catalog::PreparedVersion;
use eventlog::Record;
use operators::screen::{LocalScreener, Screener};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use types::error::with_causes;
use types::key::NoKeys;
use types::{Timestamp, fault};

use super::wire::{ChildEnd, Head, MessageKind, Reply};
use crate::judge::chunk::JudgedChunk;
use crate::judge::{JudgedBatch, decode, judge_records, probe};
use crate::knowledge::{self, Judges};
use crate::report::{adopted, nothing_new, outcome};

/// A message to try out.
struct ProbeJob {
    kind: MessageKind,
    record: Record,
    /// The bytes of its upload, as they come.
    pieces: Receiver<Vec<u8>>,
}

/// Tries messages out until the worker closes the socket, which is standard input. `judges` judge units, and ask nobody.
///
/// A program that starts itself as a child calls this before it starts threads or opens files.
pub fn run(judges: Judges) -> ExitCode {
    // The worker meets a panic again, so nothing is printed.
    std::panic::set_hook(Box::new(|_| {}));
    match serve(judges) {
        Ok(()) => ExitCode::SUCCESS,
        // Mostly the end of the worker. Returning ends a probe that goes on as well.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(judges: Judges) -> io::Result<()> {
    let mut line = ChildEnd(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    let (Head::SetUp { memory, lethal }, _) = line.receive()? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    fault::arm_trial(&lethal);
    // Nothing here waits for anything, so the runtime needs no driver.
    let runtime = Builder::new_current_thread().build()?;
    let (jobs, work) = channel();
    let answers = ChildEnd(line.0.try_clone()?);
    // A thread of the usual size, as judges have it.
    thread::Builder::new().spawn(move || try_all(&runtime, &judges, &work, answers))?;
    limit(memory)?;
    line.send(Reply::Ready)?;
    let mut pieces: Option<Sender<Vec<u8>>> = None;
    loop {
        match line.receive()? {
            (Head::Probe { kind, key }, value) => {
                let (sender, receiver) = channel();
                pieces = Some(sender);
                let job = ProbeJob {
                    kind,
                    record: Record {
                        key: key.into(),
                        value: value.into(),
                    },
                    pieces: receiver,
                };
                jobs.send(job).map_err(|_gone| io::ErrorKind::BrokenPipe)?;
            }
            (Head::Piece, piece) => {
                // A probe that is over wants no more of them.
                if pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_err()) {
                    pieces = None;
                }
            }
            (Head::SetUp { .. }, _) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Limits what the process can do to the machine.
fn limit(memory: u64) -> io::Result<()> {
    let set = |resource, value| {
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        setrlimit(resource, limit)
    };
    #[cfg(target_os = "linux")]
    // The error is ignored: without the permission the process is an ordinary victim.
    std::fs::write("/proc/self/oom_score_adj", "1000").ok();
    set(Resource::Core, 0)?;
    set(Resource::As, memory)?;
    Ok(())
}

fn try_all(runtime: &Runtime, judges: &Judges, work: &Receiver<ProbeJob>, mut line: ChildEnd) {
    for ProbeJob { kind, record, pieces } in work {
        let job = || match kind {
            MessageKind::Batch => runtime.block_on(batch(&record)),
            MessageKind::Upload => probe::probe_upload(runtime, &record, AcknowledgedPieces::new(&mut line, &pieces)),
            MessageKind::Unit => runtime.block_on(knowledge::probe_unit(&record.value, judges.clone())),
        };
        // The result is dropped: a worker gets the same error or panic from the message, and goes on.
        drop(catch_unwind(AssertUnwindSafe(job)));
        if line.send(Reply::Survived).is_err() {
            return;
        }
    }
}

/// Does everything with a batch that does not move finished bytes.
async fn batch(record: &Record) -> Result<(), String> {
    let submission = decode(record)?;
    let (contract, at) = (Arc::new(submission.contract.clone()), submission.submitted_at);
    // A dataset without records: more rows pass than will.
    let screener: Arc<dyn Screener> = Arc::new(LocalScreener);
    let judged = judge_records(submission, &contract, Arc::new(NoKeys), screener).await?;
    encode(judged, at)
}

/// Encodes everything that committing a judged batch would.
fn encode(batch: JudgedBatch, at: Timestamp) -> Result<(), String> {
    let (address, agent) = (batch.address, batch.agent);
    let JudgedChunk { passed, report } = batch.chunk;
    let outcome = if passed.is_empty() {
        let resolution = nothing_new(&report.tallies);
        outcome(address, at, resolution, report)
    } else {
        let prepared = PreparedVersion::of_batch(address.contribution, agent, Arc::new(passed));
        let merge = prepared.dry_run(address.dataset, at, report.written());
        adopted(address, merge.map_err(|error| with_causes(&error))?)
    };
    outcome.record().map(drop).map_err(|error| error.to_string())
}

/// The pieces of an upload as one stream of bytes. Each is acknowledged when it is taken.
struct AcknowledgedPieces<'a> {
    line: &'a mut ChildEnd,
    queue: &'a Receiver<Vec<u8>>,
    current: io::Cursor<Vec<u8>>,
    ended: bool,
}

impl<'a> AcknowledgedPieces<'a> {
    fn new(line: &'a mut ChildEnd, queue: &'a Receiver<Vec<u8>>) -> Self {
        Self {
            line,
            queue,
            current: io::Cursor::default(),
            ended: false,
        }
    }
}

impl Read for AcknowledgedPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.current.read(buffer)?;
        if read > 0 || buffer.is_empty() || self.ended {
            return Ok(read);
        }
        let piece = self.queue.recv().map_err(io::Error::other)?;
        self.line.send(Reply::Taken)?;
        self.ended = piece.is_empty();
        self.current = io::Cursor::new(piece);
        self.current.read(buffer)
    }
}
