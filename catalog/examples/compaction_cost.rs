//! What compaction costs and spares: `compaction_cost DIRECTORY [VERSIONS] [ROWS] [FAN_IN]`.
//!
//! Merges as many versions of as many rows, then compacts the table as its owner would have done on the way, and prints
//! what the latest version, and one that ends within a compacted part, cost to open, to list, to page through and to
//! read whole before and after, and what the compactions cost for each merge. Without the last argument, 16 parts
//! become one.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use catalog::storage::DurableLocal;
use catalog::{Catalog, Columns, CommitOutcome, Policy, PreparedVersion};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use types::clock::SystemClock;
use types::{AgentId, Batch, Clock as _, Contract, ContributionId, DatasetId, Version};

const TARGET: u64 = 128 << 20;
const PAGES: u64 = 200;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: compaction_cost DIRECTORY [VERSIONS] [ROWS] [FAN_IN]";
    let directory = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (versions, rows, fan_in) = (number(10_000)?, number(50)?, number(16)?);
    let policy = Policy::new(usize::try_from(fan_in)?, TARGET);
    let mut out = std::io::stdout();
    let clock = SystemClock::default();
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "value", "type": "number"},
        {"name": "count", "type": "integer"},
        {"name": "ok", "type": "boolean"},
        {"name": "note", "type": "string"}
    ]}))?);
    let objects = Arc::new(DurableLocal::open(directory.join("tables"))?);
    let open = || -> Result<Catalog, catalog::Error> {
        let catalog = Catalog::open(Arc::clone(&objects) as _, directory.join("index"), Arc::new(clock))?;
        Ok(catalog.with_compaction(policy))
    };
    let dataset = DatasetId::from_bytes([5; 16]);

    let catalog = open()?;
    let mut table = catalog.table(dataset, &contract).await?;
    let (before, start) = (cpu_time()?, Instant::now());
    let mut merging = Duration::ZERO;
    for version in table.head().0..versions {
        let records: Vec<Value> = (0..rows).map(|row| record(version * rows + row)).collect();
        let mut prepared = PreparedVersion::of_batch(
            ContributionId::new(clock.now()),
            AgentId::new(clock.now()),
            Arc::new(Batch::decode(&contract, &records)),
        );
        let begun = cpu_time()?;
        if !matches!(
            table.commit(&mut prepared, clock.now(), |_| Value::Null).await?,
            CommitOutcome::Committed(_)
        ) {
            return Err("a batch was not merged".into());
        }
        merging += cpu_time()?.saturating_sub(begun);
    }
    let merges = u32::try_from(versions)?;
    let (spent, took) = (cpu_time()?.saturating_sub(before), start.elapsed());
    writeln!(
        out,
        "{versions} merges of {rows} rows: {took:.2?}, cpu {spent:.2?}; of it in the merge {:.0?} each",
        merging / merges
    )?;
    table.close().await;
    drop(catalog);
    let within = Version(versions * 6 / 7);
    for version in [Version(versions), within] {
        reads(&mut out, open()?, dataset, version, "before").await?;
    }

    let catalog = open()?;
    let mut table = catalog.table(dataset, &contract).await?;
    let (before, start) = (cpu_time()?, Instant::now());
    let (mut compactions, mut longest, mut commits) = (0_u32, Duration::ZERO, Duration::ZERO);
    while let Some(compaction) = table.compaction() {
        let begun = Instant::now();
        let built = compaction.build().await?;
        longest = longest.max(begun.elapsed());
        let begun = Instant::now();
        if !table.install_compaction(built).await? {
            return Err("a compaction was not adopted".into());
        }
        commits += begun.elapsed();
        compactions += 1;
    }
    let spent = cpu_time()?.saturating_sub(before);
    writeln!(
        out,
        "{compactions} compactions: {:.2?}, cpu {spent:.2?} = {:.0?} a merge; the longest {longest:.0?}; a commit {:.0?}",
        start.elapsed(),
        spent / merges,
        commits / compactions.max(1)
    )?;
    table.close().await;
    drop(catalog);
    for version in [Version(versions), within] {
        reads(&mut out, open()?, dataset, version, "after").await?;
    }
    Ok(())
}

async fn reads(
    out: &mut std::io::Stdout,
    catalog: Catalog,
    dataset: DatasetId,
    version: Version,
    when: &str,
) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let snapshot = catalog
        .snapshot(dataset, Some(version))
        .await?
        .ok_or("no such version")?;
    let opened = start.elapsed();
    let start = Instant::now();
    let chain = snapshot.chain();
    let listed = start.elapsed();
    let bytes: u64 = chain.iter().map(|link| link.part.bytes).sum();
    let start = Instant::now();
    for page in 0..PAGES {
        let offset = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) % snapshot.record_count();
        let found = snapshot.page(offset, 200).await?;
        if found.iter().map(RecordBatch::num_rows).sum::<usize>() == 0 {
            return Err("an empty page".into());
        }
    }
    let paged = start.elapsed() / u32::try_from(PAGES)?;
    let (before, start) = (cpu_time()?, Instant::now());
    let mut stream = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    let mut read = 0;
    while let Some(batch) = stream.try_next().await? {
        read += batch.num_rows() as u64;
    }
    if read != snapshot.record_count() {
        return Err("rows are missing".into());
    }
    writeln!(
        out,
        "{when}, version {version}: {} parts, {} kB; opened {opened:.2?}, listed {listed:.2?}, a page {paged:.2?}, read \
         whole {:.2?} (cpu {:.2?})",
        chain.len(),
        bytes / 1_000,
        start.elapsed(),
        cpu_time()?.saturating_sub(before)
    )?;
    Ok(())
}

fn record(number: u64) -> Value {
    json!({
        "id": format!("r{number}"),
        "value": f64::from(u32::try_from(number).unwrap_or(0)) * 0.37,
        "count": number,
        "ok": number.is_multiple_of(3),
        "note": format!("the note of r{number} says that it was seen at noon by the river and nothing else happened"),
    })
}

/// The CPU time of this process, in nanoseconds where the kernel's scheduler tells it.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut nanos = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        nanos += text.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}
