//! Reads of a version of millions of records: pages at random depths, an export, the six queries of the comparison.
//!
//! ```text
//! bench reads FILE.ndjson FOLDER
//! ```
//!
//! The table is made once in `FOLDER` and used again by the next run, so that peers can be measured over its Parquet
//! files between two of ours. The file has the fields of [`contract`].

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::storage::DurableLocal;
use catalog::{Catalog, Columns, MergeOutcome, Proposal, Snapshot};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use sql::{Config, Part, Records, Sandbox};
use tests::random::Random;
use types::clock::SystemClock;
use types::render::lines::Lines;
use types::{AgentId, Batch, Clock, Contract, ContributionId, DatasetId};

use crate::usage::{children, cpu};
use crate::{percentile, print, sorted};

/// Records of a part.
const PART: usize = 250_000;
/// Pages at random depths, and records of a page.
const PAGES: (u64, usize) = (200, 200);
/// Times that a query runs; the best counts, as with the peers.
const TIMES: usize = 4;
/// Small queries, one after the other.
const SMALL: usize = 40;
/// The queries of the comparison.
const QUERIES: [(&str, &str); 6] = [
    ("count", "select count(*) as n from records"),
    (
        "filter",
        "select count(*) as n, avg(value) as a from records where ok and value > 400 and device like '%eu-west'",
    ),
    (
        "group by",
        "select device, count(*) as n, avg(value) as a, max(seq) as m from records group by device \
         order by n desc, device limit 20",
    ),
    (
        "top-k",
        "select id, device, seq, value from records order by value desc, id limit 100",
    ),
    (
        "search",
        "select count(*) as n from records where note like '%gripe%' and note like '%sista%'",
    ),
    ("point", "select * from records where id = 'ev_58e943829caad32a'"),
];

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "device", "type": "string", "required": true},
        {"name": "seq", "type": "integer", "required": true},
        {"name": "value", "type": "number", "required": true},
        {"name": "ok", "type": "boolean", "required": true},
        {"name": "note", "type": "string", "required": true},
    ]}))
    .unwrap()
}

pub(crate) async fn run() {
    let mut arguments = std::env::args().skip(2).map(PathBuf::from);
    let (Some(file), Some(folder)) = (arguments.next(), arguments.next()) else {
        println!("usage: bench reads FILE.ndjson FOLDER");
        return;
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let tables = folder.join("tables");
    let objects = Arc::new(DurableLocal::open(&tables).unwrap());
    let catalog = Catalog::open(objects, folder.join("index"), Arc::clone(&clock)).unwrap();
    let dataset = DatasetId::from_bytes([9; 16]);
    if catalog
        .snapshot(dataset, None)
        .await
        .unwrap()
        .is_none_or(|found| found.record_count() == 0)
    {
        fill(&catalog, dataset, &file, clock.as_ref()).await;
    }
    let begun = Instant::now();
    let snapshot = catalog.snapshot(dataset, None).await.unwrap().unwrap();
    let opening = begun.elapsed();
    println!(
        "\n{} records, {} parts, {} MB of Parquet; opened in {:.2} ms",
        snapshot.record_count(),
        snapshot.parts().len(),
        snapshot.bytes() / 1_000_000,
        opening.as_secs_f64() * 1e3,
    );
    pages(&snapshot).await;
    export(&snapshot).await;
    queries(&snapshot, &tables, clock).await;
}

async fn fill(catalog: &Catalog, dataset: DatasetId, file: &Path, clock: &dyn Clock) {
    let contract = Arc::new(contract());
    let mut table = catalog.table(dataset, &contract).await.unwrap();
    let mut lines = BufReader::with_capacity(1 << 20, File::open(file).unwrap()).lines();
    loop {
        let records: Vec<Value> = lines
            .by_ref()
            .take(PART)
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        if records.is_empty() {
            break;
        }
        let at = clock.now();
        let proposal = Proposal {
            contribution: ContributionId::new(at),
            agent: AgentId::from_bytes([7; 16]),
            batch: Batch::decode(&contract, &records).into(),
            at,
            notes: Value::Null,
        };
        let outcome = table.merge(proposal).await.unwrap();
        assert!(matches!(outcome, MergeOutcome::Merged(_)));
    }
}

async fn page(snapshot: &Snapshot, offset: u64, out: &mut Vec<u8>) -> Duration {
    out.clear();
    let begun = Instant::now();
    for rows in snapshot.page(offset, PAGES.1).await.unwrap() {
        let lines = Lines::new(snapshot.contract().unwrap(), &rows).unwrap();
        lines.write(0..lines.len(), out);
    }
    begun.elapsed()
}

async fn pages(snapshot: &Snapshot) {
    let mut out = Vec::new();
    let mut random = Random::new(5);
    let last = usize::try_from(snapshot.record_count()).unwrap() - PAGES.1;
    let mut took = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..PAGES.0 {
        let deep = random.below(last) as u64;
        for (offset, took) in [0, deep, last as u64].into_iter().zip(&mut took) {
            took.push(page(snapshot, offset, &mut out).await.as_secs_f64() * 1e3);
        }
    }
    let shown = |values: &[f64]| {
        let values = sorted(values.to_vec());
        format!("{:.2} / {:.2} ms", percentile(&values, 50), percentile(&values, 99))
    };
    let names = ["first", "random", "last"];
    let rows: Vec<_> = names
        .iter()
        .zip(&took)
        .map(|(name, took)| ((*name).to_owned(), shown(took)))
        .collect();
    print("a page of 200 records, p50 / p99", &rows);
}

async fn export(snapshot: &Snapshot) {
    let begun = (Instant::now(), cpu());
    let contract = snapshot.contract().unwrap();
    let mut batches = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    let (mut bytes, mut piece) = (0, Vec::new());
    while let Some(rows) = batches.try_next().await.unwrap() {
        let lines = Lines::new(contract, &rows).unwrap();
        piece.clear();
        lines.write(0..lines.len(), &mut piece);
        bytes += piece.len();
    }
    let (wall, used) = (begun.0.elapsed(), cpu().saturating_sub(begun.1));
    print(
        "an export as lines of JSON",
        &[
            ("bytes".to_owned(), bytes.to_string()),
            (
                "wall / CPU".to_owned(),
                format!("{:.2} / {:.2} s", wall.as_secs_f64(), used.as_secs_f64()),
            ),
        ],
    );
}

async fn queries(snapshot: &Snapshot, tables: &Path, clock: Arc<dyn Clock>) {
    let settings = Config::new(std::env::current_exe().unwrap(), clock);
    let sandbox = Sandbox::start(settings).unwrap();
    let part = |part: catalog::PartInfo| Part {
        path: tables.join(part.path(snapshot.dataset()).as_ref()),
        rows: part.rows,
        bytes: part.bytes,
    };
    let records = Records {
        contract: Arc::clone(snapshot.contract().unwrap()),
        parts: snapshot.parts().into_iter().map(part).collect(),
    };
    let mut rows = Vec::new();
    let mut sums = (0.0, 0.0);
    for (name, text) in QUERIES {
        let mut best = (f64::MAX, 0.0);
        let mut answered = 0;
        for _ in 0..TIMES {
            let begun = (Instant::now(), cpu() + children());
            let answer = sandbox.query(&records, text, 1_000).await.unwrap();
            let wall = begun.0.elapsed().as_secs_f64() * 1e3;
            let used = (cpu() + children()).saturating_sub(begun.1).as_secs_f64() * 1e3;
            answered = answer.rows.len();
            if wall < best.0 {
                best = (wall, used);
            }
        }
        sums = (sums.0 + best.0, sums.1 + best.1);
        rows.push((
            format!("{name} ({answered} rows)"),
            format!("{:.0} / {:.0} ms", best.0, best.1),
        ));
    }
    rows.push(("sum".to_owned(), format!("{:.0} / {:.0} ms", sums.0, sums.1)));
    let mut small = Vec::new();
    for _ in 0..SMALL {
        let begun = Instant::now();
        sandbox
            .query(&records, "select id from records limit 1", 10)
            .await
            .unwrap();
        small.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let small = sorted(small);
    rows.push((
        "a small query, p50 / p99".to_owned(),
        format!("{:.1} / {:.1} ms", percentile(&small, 50), percentile(&small, 99)),
    ));
    print("SQL in a process of its own, wall / CPU with its process", &rows);
}
