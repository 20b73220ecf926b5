//! Whether records satisfy a contract that is known only now: lines of JSON in memory, one thread, against the fastest
//! that Python has.
//!
//! ```text
//! SLUICE_BENCH_PYTHON=…/python bench validate FOLDER
//! ```
//!
//! The work: every line is parsed, and judged by the names and types of its members. The lines are the first of the
//! file of the bulk load in `FOLDER`, which is made where it is missing; one of a hundred is spoilt here, in one of
//! several ways. Whoever accepts or refuses another number of them fails. The Python has `msgspec` besides what that
//! file wants.
//!
//! What the peer does not do and ours does: say of a refused record all that is wrong with it, and make of the others
//! typed columns and canonical forms, which nothing after it makes again. Keys are not made: nobody asks for one here.
//!
//! Invariant: ours and theirs in turn; of each the best of all rounds counts.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use operators::Gate as _;
use operators::gates;
use serde::Deserialize;
use types::Contract;
use types::batch::LineDecoder;

use crate::bulk::{Python, truth};
use crate::reads::scene::contract;
use crate::report::Report;
use crate::usage::cpu;

/// How often everything is measured, ours and theirs in turn.
const ROUNDS: usize = 3;
/// How many records there are.
const ROWS: usize = 1_000_000;
/// One record of so many is spoilt.
const SPOILT: usize = 100;
/// Bytes of lines that become a batch, as of an upload.
const UNIT: usize = 1 << 20;
/// The goal: records a second of a processor against the peer's.
const GOAL: f64 = 1.2;

/// What was made of the lines.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Judged {
    /// Seconds of a processor.
    cpu: f64,
    accepted: usize,
    refused: usize,
}

impl Judged {
    fn best(self, other: Option<Self>) -> Self {
        let cpu = other.map_or(self.cpu, |other| other.cpu.min(self.cpu));
        Self { cpu, ..self }
    }

    /// Records a second of a processor.
    fn rate(self) -> f64 {
        f64::from(u32::try_from(self.accepted + self.refused).unwrap()) / self.cpu
    }
}

pub(crate) fn run(report: &mut Report, folder: &Path) {
    let python = Python::of_environment();
    truth(&python, folder);
    let (lines, spoilt) = lines(&folder.join("upload.ndjson"));
    let file = folder.join("validate.ndjson");
    let mut out = BufWriter::new(File::create(&file).unwrap());
    for line in &lines {
        out.write_all(line).unwrap();
    }
    out.into_inner().unwrap();

    let (mut ours, mut theirs) = (None, None);
    for _ in 0..ROUNDS {
        let mine = judge(&lines);
        let printed = python.run(&["validate/peers.py", "msgspec"], folder);
        let other: Judged = serde_json::from_str(printed.trim()).unwrap();
        for judged in [mine, other] {
            assert_eq!((judged.accepted, judged.refused), (lines.len() - spoilt, spoilt));
        }
        ours = Some(mine.best(ours));
        theirs = Some(other.best(theirs));
    }
    fs::remove_file(file).unwrap();
    tell(report, lines.len(), spoilt, ours.unwrap(), theirs.unwrap());
}

fn tell(report: &mut Report, lines: usize, spoilt: usize, ours: Judged, theirs: Judged) {
    let rate = |judged: Judged| format!("{:.2} million", judged.rate() / 1e6);
    let ratio = ours.rate() / theirs.rate();
    report.table(
        &format!("{lines} records against a contract, {spoilt} of them wrong: records a CPU second, one thread"),
        &[
            ("sluice: decode and contract".to_owned(), rate(ours)),
            ("msgspec".to_owned(), rate(theirs)),
            ("of msgspec's".to_owned(), format!("{ratio:.2} (goal {GOAL})")),
        ],
    );
    let each = |judged: Judged| Some(1e6 / judged.rate());
    let bars = [("Sluice", each(ours)), ("msgspec", each(theirs))];
    report.chart(
        "validation of a record by a contract known at run time",
        "CPU µs",
        &bars,
    );
}

/// The first lines of a file, with their ends, and how many were spoilt.
fn lines(file: &Path) -> (Vec<Vec<u8>>, usize) {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(file).unwrap());
    let (mut lines, mut spoilt) = (Vec::new(), 0);
    while lines.len() < ROWS {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line).unwrap() == 0 {
            break;
        }
        // Why only some of them: a line whose members are in another order is left as it is.
        if lines.len() % SPOILT == SPOILT - 1 && line.starts_with(b"{\"id\"") {
            line = spoil(line, spoilt);
            spoilt += 1;
        }
        lines.push(line);
    }
    (lines, spoilt)
}

/// The same line with something wrong, one thing after another.
fn spoil(line: Vec<u8>, number: usize) -> Vec<u8> {
    let text = String::from_utf8(line).unwrap();
    let (before, value) = text.split_once("\"seq\":").unwrap();
    let (seq, after) = value.split_once(',').unwrap();
    let text = match number % 8 {
        // Text for a number; a fraction; something for a truth value; none; another name; one more; cut off; no object.
        0 => format!("{before}\"seq\":\"{seq}\",{after}"),
        1 => format!("{before}\"seq\":{seq}.5,{after}"),
        2 => text
            .replace("\"ok\":true", "\"ok\":1")
            .replace("\"ok\":false", "\"ok\":0"),
        3 => format!("{before}{after}"),
        4 => text.replace("\"device\":", "\"divice\":"),
        5 => format!("{before}\"more\":1,\"seq\":{value}"),
        6 => format!("{}\n", before.trim_end()),
        _ => format!("[{}]\n", text.trim_end()),
    };
    text.into_bytes()
}

/// Judges the lines as an upload is: by the megabyte, without what is not about the contract.
fn judge(lines: &[Vec<u8>]) -> Judged {
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract()).unwrap());
    let begun = cpu();
    let (mut accepted, mut refused) = (0, 0);
    let mut gate = gates::Contract;
    let mut rest = lines;
    while !rest.is_empty() {
        let mut bytes = 0;
        let full = |line: &Vec<u8>| {
            bytes += line.len();
            bytes > UNIT
        };
        let (unit, after) = rest.split_at(rest.iter().position(full).unwrap_or(rest.len()).max(1));
        rest = after;
        let mut records = LineDecoder::new(&contract, unit.len(), unit.iter().map(Vec::len).sum());
        for line in unit {
            refused += usize::from(records.push(line.trim_ascii()).is_err());
        }
        let batch = records.finish();
        let said = gate.judge(&batch).exceptions().len();
        refused += said;
        accepted += batch.len() - said;
    }
    Judged {
        cpu: cpu().saturating_sub(begun).as_secs_f64(),
        accepted,
        refused,
    }
}
