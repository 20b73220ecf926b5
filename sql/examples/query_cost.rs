//! What queries cost through the sandbox: `query_cost CHILD SCHEMADEF STATEMENTS PART…`.
//!
//! `CHILD` is the program `sql-child`, `SCHEMADEF` a file with the contract, `STATEMENTS` a file with a statement per
//! line, `PART…` Parquet files or directories of them. Prints, for each statement, the best wall time of eight runs,
//! the processor time of its process in that run, its start included, and its first row.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::parquet::file::reader::{FileReader as _, SerializedFileReader};
use sql::{Sandbox, SandboxConfig, SandboxPart, VersionRecords};
use types::clock::ManualClock;
use types::{Contract, Proof, Timestamp};

const RUNS: usize = 8;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [child, contract, statements, places @ ..] = &arguments[..] else {
        return Err("usage: query_cost CHILD SCHEMADEF STATEMENTS PART…".into());
    };
    let contract: Arc<Contract> = Arc::new(serde_json::from_str(&fs::read_to_string(contract)?)?);
    let mut parts = Vec::new();
    for place in places {
        parts.extend(files(place)?.into_iter().map(part).collect::<Result<Vec<_>, _>>()?);
    }
    let records = VersionRecords { contract, parts };
    let clock = Arc::new(ManualClock::at(Timestamp::default()));
    let sandbox = Sandbox::start(SandboxConfig::new(child.clone(), clock))?;
    let mut out = std::io::stdout();
    let mut sum = Duration::ZERO;
    writeln!(out, "{} parts", records.parts.len())?;
    for statement in fs::read_to_string(statements)?.lines() {
        let mut best = (Duration::MAX, Duration::ZERO, String::new());
        for _ in 0..RUNS {
            let before = processor_time()?;
            let start = Instant::now();
            let answer = sandbox.query(&records, statement, 1_000).await?;
            let took = start.elapsed();
            // Why: the next process is warm before the next query, as it is when queries are not back to back.
            tokio::time::sleep(Duration::from_millis(150)).await;
            if took < best.0 {
                let first = answer.rows.first().map_or("-", |row| row.get());
                let spent = processor_time()?.saturating_sub(before);
                best = (
                    took,
                    spent,
                    format!("{} rows, {}", answer.rows.len(), &first[..first.len().min(90)]),
                );
            }
        }
        sum += best.0;
        writeln!(
            out,
            "{:8.1} ms wall {:7.0} ms cpu  {}\n    {}",
            best.0.as_secs_f64() * 1e3,
            best.1.as_secs_f64() * 1e3,
            statement,
            best.2
        )?;
    }
    writeln!(out, "{:8.1} ms wall together", sum.as_secs_f64() * 1e3)?;
    Ok(())
}

fn files(place: &PathBuf) -> std::io::Result<Vec<PathBuf>> {
    if !place.is_dir() {
        return Ok(vec![place.clone()]);
    }
    let mut found: Vec<_> = fs::read_dir(place)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    found.sort();
    Ok(found)
}

fn part(path: PathBuf) -> Result<SandboxPart, Box<dyn Error>> {
    let file = fs::File::open(&path)?;
    let rows = SerializedFileReader::new(file)?.metadata().file_metadata().num_rows();
    Ok(SandboxPart {
        rows: rows.try_into()?,
        proof: Arc::new(Proof::of(&fs::read(&path)?)),
        path,
    })
}

/// The processor time of the children that have ended (proc(5), fields 16 and 17 of `stat`, in hundredths of a second).
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks: u64 = fields[13].parse::<u64>()? + fields[14].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
