//! What durability costs: appends through the log against a plain file with `fdatasync`, in the same run, on the same
//! disk. Prints, asserts nothing. `cargo run --release -p eventlog --example throughput [directory]`

#![expect(clippy::cast_precision_loss, reason = "rates are printed with three digits")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventlog::{Delivered, Embedded, EmbeddedOptions, Error, EventLog, Position, Record};

const APPENDERS: usize = 16;
const SPAN: Duration = Duration::from_secs(3);

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let directory = tempfile::tempdir_in(parent)?;
    for bytes in [1 << 10, 100 << 10] {
        writeln!(std::io::stdout(), "records of {} KiB", bytes >> 10)?;
        for round in 0..2 {
            let (rate, median) = raw(directory.path(), bytes)?;
            writeln!(
                std::io::stdout(),
                "  plain file, 1 at a time      {rate:>8.0}/s   median {median:>9.1?}"
            )?;
            for appenders in [1, APPENDERS] {
                let path = directory.path().join(format!("{bytes}-{round}-{appenders}"));
                let (rate, median, fsyncs) = log(&path, bytes, appenders).await?;
                writeln!(
                    std::io::stdout(),
                    "  log, {appenders:>2} at a time           {rate:>8.0}/s   median {median:>9.1?}   \
                     {fsyncs:.2} fsyncs per append"
                )?;
            }
        }
    }
    reading(&directory.path().join("reading")).await?;
    retention(&directory.path().join("soak")).await?;
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A file of the same kind as a journal, allocated in advance.
fn raw(directory: &Path, bytes: usize) -> std::io::Result<(f64, Duration)> {
    let mut file = File::create(directory.join("plain"))?;
    file.set_len(64 << 20)?;
    file.sync_all()?;
    let record = vec![b'x'; bytes];
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < SPAN {
        let start = Instant::now();
        file.write_all(&record)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    Ok((times.len() as f64 / begin.elapsed().as_secs_f64(), median(times)))
}

async fn log(path: &Path, bytes: usize, appenders: usize) -> Result<(f64, Duration, f64), Error> {
    let log = Embedded::open(path, EmbeddedOptions::default())?;
    log.append("topic", vec![record(0, 1)]).await?;
    let before = log.stats();
    let begin = Instant::now();
    let tasks: Vec<_> = (0..appenders)
        .map(|appender| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut times = Vec::new();
                while begin.elapsed() < SPAN {
                    let start = Instant::now();
                    log.append("topic", vec![record(appender, bytes)]).await?;
                    times.push(start.elapsed());
                }
                Ok::<_, Error>(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap_or(Err(Error::Closed))?);
    }
    let rate = times.len() as f64 / begin.elapsed().as_secs_f64();
    let stats = log.stats();
    let fsyncs = (stats.fsyncs - before.fsyncs) as f64 / (stats.appends - before.appends) as f64;
    Ok((rate, median(times), fsyncs))
}

/// How long a delivery of one record takes that is there already.
async fn reading(path: &Path) -> Outcome {
    let log = Embedded::open(path, EmbeddedOptions::default())?;
    let mut reader = log.subscribe("topic", "group").await?;
    log.append("topic", (0..20_000).map(|n| record(n, 1 << 10)).collect())
        .await?;
    for (max, count) in [(1, 2_000), (256, 70)] {
        let mut times = Vec::new();
        for _ in 0..count {
            let start = Instant::now();
            reader.next(max).await?;
            times.push(start.elapsed());
        }
        writeln!(
            std::io::stdout(),
            "a delivery of {max:>3} x 1 KiB: median {:.1?}",
            median(times)
        )?;
    }
    Ok(())
}

/// How much disk is used while everything is consumed at once.
async fn retention(path: &Path) -> Outcome {
    let log = Embedded::open(
        path,
        EmbeddedOptions {
            partitions: 8,
            retain: 100,
        },
    )?;
    let mut reader = log.subscribe("topic", "group").await?;
    for step in 1..=8 {
        for _ in 0..256 {
            log.append("topic", (0..64).map(|n| record(n, 16 << 10)).collect())
                .await?;
            let mut left = 64;
            while left > 0 {
                let delivered = reader.next(left).await?;
                left -= delivered.len();
                let done = delivered.iter().map(|Delivered { position, .. }| Position {
                    partition: position.partition,
                    offset: position.offset + 1,
                });
                reader.commit(&done.collect::<Vec<_>>()).await?;
            }
        }
        writeln!(
            std::io::stdout(),
            "{:>5} MiB appended and consumed: {:>4} MiB on disk",
            step * 256,
            disk(path) >> 20
        )?;
    }
    Ok(())
}

/// The blocks in use below `path`, in bytes.
fn disk(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

fn record(key: usize, bytes: usize) -> Record {
    Record {
        key: Bytes::from(format!("key {key}")),
        value: Bytes::from(vec![b'x'; bytes]),
    }
}
