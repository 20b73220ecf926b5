//! Measures what the goals are about: a batch over HTTP, the merge step, an idle server. Ratios within one run; never
//! part of a test.
//!
//! ```text
//! cargo run --release -p tests --bin bench -- http     500 records over HTTP against the same raw durable writes;
//!                                                      `--sync-delay-ms N` makes every sync of both longer
//! cargo run --release -p tests --bin bench -- batches  small batches of many agents at once
//! cargo run --release -p tests --bin bench -- doors    small reads against a bare axum server, requests per CPU second
//! cargo run --release -p tests --bin bench -- merge    CPU of a merge step at 10 and at 10,000 versions
//! cargo run --release -p tests --bin bench -- money FOLDER
//!                                                      balances, pages, purchases and the check of a million events;
//!                                                      `--events N` makes more or fewer
//! cargo run --release -p tests --bin bench -- idle     memory of a server that has just started
//! cargo run --release -p tests --bin bench -- bulk     a file of five million records, and peers
//! cargo run --release -p tests --bin bench -- reads    pages, export and SQL over millions of records, and peers
//! cargo run --release -p tests --bin bench -- look FOLDER
//!                                                      profiles, pages of datasets and downloads; `--rows N` and `--versions N`
//!                                                      make smaller datasets
//! cargo run --release -p tests --bin bench -- spans    what the spans of one contribution cost
//! cargo run --release -p tests --bin bench -- validate records against a contract, and a peer
//! cargo run --release -p tests --bin bench -- all FOLDER
//! ```
//!
//! `all` runs everything with its data in `FOLDER`, and leaves its tables and a plot there, `bench.md` and `bench.svg`.
//! `--server PROGRAM` puts another build in the place of the server that `http`, `batches`, `doors` and `look` measure: the one
//! before a change, for example.
//!
//! Invariant: a time is compared only with a time measured alternately in the same run on the same file system. The
//! folder is that of `TMPDIR`, which must be a real disk for the durable writes to mean anything.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench prints its table and has nobody to report to"
)]

mod batches;
mod bulk;
mod doors;
mod http;
mod idle;
mod look;
mod merge;
mod money;
mod reads;
mod report;
mod spans;
mod syncs;
mod usage;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use serde_json::{Value, json};

use self::report::Report;
use self::syncs::Folder;

/// Records of a batch.
const RECORDS: usize = 500;

fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let mut report = Report::default();
    match what.as_str() {
        "http" => {
            let delay = syncs::delay();
            syncs::preloaded(delay);
            let syncs = Folder::of_this_program();
            runtime().block_on(http::run(&mut report, &syncs, delay));
        }
        "batches" => {
            syncs::preloaded(Duration::ZERO);
            let syncs = Folder::of_this_program();
            runtime().block_on(batches::run(&mut report, &syncs));
        }
        "doors" => runtime().block_on(doors::run(&mut report)),
        "bare" => {
            let (file, address) = (folder(2), std::env::args().nth(3).unwrap());
            runtime().block_on(doors::bare(&file, &address));
        }
        "merge" => merge::run(&mut report),
        "money" => {
            let events = argument("--events").map_or(1_000_000, |number| number.parse().unwrap());
            runtime().block_on(money::run(&mut report, &folder(2), events));
        }
        "idle" => runtime().block_on(idle::run(&mut report)),
        "bulk" => runtime().block_on(bulk::run(&mut report, &folder(2))),
        "reads" => {
            let (file, chosen) = (folder(2), std::env::args().skip(4).collect::<Vec<_>>());
            runtime().block_on(reads::run(&mut report, &file, &folder(3), &chosen));
        }
        "look" => runtime().block_on(look::run(&mut report, &folder(2))),
        "spans" => spans::run(),
        "validate" => validate::run(&mut report, &folder(2)),
        sql::child::CHILD_ARGUMENT => return sql::child::run(),
        sluice::isolation::ARGUMENT => return sluice::isolation::run(),
        "all" => {
            syncs::preloaded(Duration::ZERO);
            let (folder, syncs) = (folder(2), Folder::of_this_program());
            runtime().block_on(async {
                bulk::run(&mut report, &folder).await;
                let (file, reads) = (folder.join("upload.ndjson"), folder.join("reads"));
                reads::run(&mut report, &file, &reads, &[]).await;
                http::run(&mut report, &syncs, Duration::ZERO).await;
                batches::run(&mut report, &syncs).await;
                doors::run(&mut report).await;
                idle::run(&mut report).await;
            });
            validate::run(&mut report, &folder);
            merge::run(&mut report);
            report.write(&folder);
        }
        // The server that is measured is this program under another name.
        _ => return sluice::run(sluice::cli::Cli::parse()).unwrap_or(ExitCode::FAILURE),
    }
    ExitCode::SUCCESS
}

/// What follows `name` on the command line.
fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// The program whose server is measured.
fn server() -> PathBuf {
    argument("--server").map_or_else(|| std::env::current_exe().unwrap(), PathBuf::from)
}

/// The path that is argument `at`.
fn folder(at: usize) -> PathBuf {
    let path = std::env::args().nth(at);
    path.map_or_else(
        || panic!("a path is missing, see the head of bench/main.rs"),
        PathBuf::from,
    )
}

/// The contract of what is measured.
fn contract() -> Value {
    json!({"fields": [
        {"name": "station", "type": "string", "required": true},
        {"name": "sample", "type": "integer", "required": true},
        {"name": "value", "type": "number"},
        {"name": "at", "type": "timestamp"},
        {"name": "note", "type": "string"},
    ]})
}

/// A batch that shares no record with another number's.
fn records(number: usize, count: usize) -> Vec<Value> {
    let record = |row: usize| {
        let value = f64::from(u32::try_from((row * 37 + number * 11) % 1_000).unwrap()) / 8.0;
        json!({
            "station": format!("station-{:03}", row % 97),
            "sample": number * 1_000 + row,
            "value": value,
            "at": format!("2026-01-{:02}T{:02}:{:02}:{:02}Z", 1 + number % 28, row / 60 % 24, row % 60, number % 60),
            "note": format!("reading {row} of run {number}, taken by the usual instrument in fair weather"),
        })
    };
    (0..count).map(record).collect()
}

/// The value below which `percent` of a hundred of `sorted` are.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}
