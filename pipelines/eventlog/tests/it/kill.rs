//! A process that appends is killed again and again, at instants chosen by how much it had acknowledged: what it
//! acknowledged is there, nothing has a gap, and no position is past what was done.
//!
//! The process is this test binary itself, told by a variable of the environment to be the child.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use eventlog::conformance::{after, within};
use eventlog::{Delivered, Embedded, EmbeddedOptions, Error, EventLog, Position, Record};

const DIRECTORY: &str = "EVENTLOG_KILL_DIRECTORY";
const ROUND: &str = "EVENTLOG_KILL_ROUND";
const TOPIC: &str = "topic";
const OPTIONS: EmbeddedOptions = EmbeddedOptions {
    partitions: 4,
    retain: 20,
};
const KILLS: u32 = 30;
const APPENDERS: u32 = 8;

/// The knowledge of the parent, over all rounds.
#[derive(Default)]
struct Known {
    /// The value of each acknowledged record that was not checked yet.
    acknowledged: BTreeMap<Position, String>,
    /// The position after the last record that the child's reader was given, by partition.
    delivered: BTreeMap<u32, u64>,
    /// The position up to which everything was checked, by partition.
    checked: BTreeMap<u32, u64>,
}

#[test]
fn what_was_acknowledged_survives_kills_at_any_instant() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut known = Known::default();
    let (mut acknowledged, mut trimmed) = (0, 0);
    // Kills after 0, 1, 2, … acknowledgements; the rounds of 0 die while they open the log.
    for (round, acks) in (0..KILLS).zip([0, 1, 2, 3, 5, 8, 13, 30, 80, 200].into_iter().cycle()) {
        let child = spawn(directory.path(), round);
        kill_after(child, acks, &mut known);
        acknowledged += known.acknowledged.len();
        trimmed = check(directory.path(), &mut known).expect("the log opens after a kill");
    }
    assert!(
        acknowledged > 1000,
        "{acknowledged} acknowledged records are too few to tell"
    );
    assert!(trimmed > 0, "records were removed in between");
}

fn spawn(directory: &Path, round: u32) -> Child {
    Command::new(std::env::current_exe().expect("the path of this binary"))
        .args(["--exact", "kill::the_child_appends_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the child starts")
}

/// Kills the child once it has acknowledged `acks` appends, then reads what else it had said by then.
fn kill_after(mut child: Child, acks: u32, known: &mut Known) {
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    let mut seen = 0;
    let mut is_alive = true;
    loop {
        line.clear();
        let length = lines.read_line(&mut line).expect("the pipe can be read");
        if length == 0 {
            break;
        }
        // A line that the kill cut off says nothing.
        let Some(whole) = line.strip_suffix('\n') else { break };
        seen += u32::from(note(whole, known));
        if is_alive && seen >= acks {
            child.kill().expect("SIGKILL");
            is_alive = false;
        }
    }
    let status = child.wait().expect("the child ended");
    assert!(!is_alive && !status.success(), "the child ended by itself: {status}");
}

/// Notes what a line says; whether it is an acknowledgement.
fn note(line: &str, known: &mut Known) -> bool {
    let mut words = line.split(' ');
    let kind = words.next();
    for word in words {
        let mut parts = word.splitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
        let (Some(partition), Some(offset)) = (number(), number()) else {
            return false;
        };
        let partition = u32::try_from(partition).expect("a partition");
        match kind {
            Some("ack") => {
                let value = parts.next().expect("a value").to_owned();
                let earlier = known.acknowledged.insert(Position { partition, offset }, value);
                assert_eq!(
                    earlier, None,
                    "partition {partition} offset {offset} was acknowledged twice"
                );
            }
            Some("delivered") => {
                let next = known.delivered.entry(partition).or_default();
                *next = offset.max(*next);
            }
            _ => return false,
        }
    }
    kind == Some("ack")
}

/// Opens what the child left and compares it with what it said. Returns the number of records removed so far.
fn check(directory: &Path, known: &mut Known) -> Result<u64, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let log = Embedded::open(directory, OPTIONS)?;
        let mut reader = log.subscribe(TOPIC, "checker").await?;
        let bounds = log.bounds(TOPIC).await?;
        let mut expected = 0;
        for (partition, bounds) in (0..).zip(&bounds) {
            let checked = *known.checked.entry(partition).or_default();
            assert!(
                bounds.first <= checked,
                "partition {partition} lost records that were not done: {bounds:?}"
            );
            expected += bounds.next - checked;
        }
        let mut found = 0;
        while found < expected {
            let delivered = within(reader.next(1000)).await?;
            found += delivered.len() as u64;
            for Delivered { position, record } in &delivered {
                let next = known.checked.entry(position.partition).or_default();
                assert_eq!(position.offset, *next, "a gap in partition {}", position.partition);
                *next += 1;
                let value = std::str::from_utf8(&record.value).expect("text");
                let content = value.trim_end_matches('.');
                assert!(
                    content.starts_with(std::str::from_utf8(&record.key).expect("text")),
                    "garbage: {content}"
                );
                if let Some(acknowledged) = known.acknowledged.remove(position) {
                    assert_eq!(content, acknowledged, "another record is at {position:?}");
                }
            }
            reader.commit(&after(&delivered)).await?;
        }
        assert!(
            known.acknowledged.is_empty(),
            "acknowledged and lost: {:?}",
            known.acknowledged
        );

        let mut worker = log.subscribe(TOPIC, "worker").await?;
        let mut begun = BTreeMap::new();
        let probe = (0..40).map(|n| record(&format!("probe{n}"), &format!("probe{n}")));
        let mut probes = log.append(TOPIC, probe.collect()).await?;
        while !probes.is_empty() {
            for Delivered { position, .. } in within(worker.next(1000)).await? {
                begun.entry(position.partition).or_insert(position.offset);
                probes.retain(|probe| *probe != position);
            }
        }
        for (partition, begun) in begun {
            let delivered = known.delivered.get(&partition).copied().unwrap_or(0);
            assert!(
                begun <= delivered,
                "partition {partition} was delivered to {delivered}, and begins at {begun}"
            );
        }
        Ok(bounds.iter().map(|bounds| bounds.first).sum())
    })
}

/// Not a test unless it is the child.
#[test]
fn the_child_appends_until_it_is_killed() {
    let (Ok(directory), Ok(round)) = (std::env::var(DIRECTORY), std::env::var(ROUND)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let log = Embedded::open(&directory, OPTIONS).expect("the log opens");
        let mut tasks: Vec<_> = (0..APPENDERS)
            .map(|appender| tokio::spawn(append(Arc::clone(&log), round.clone(), appender)))
            .collect();
        tasks.push(tokio::spawn(consume(Arc::clone(&log))));
        for task in tasks {
            task.await.expect("a task").expect("an endless task");
        }
    });
}

async fn append(log: Arc<Embedded>, round: String, appender: u32) -> Result<(), Error> {
    for sequence in 0_u32.. {
        let records: Vec<Record> = (0..=(sequence + appender) % 4)
            .map(|n| {
                let key = format!("{appender}-{n}");
                let value = format!("{key}-{round}-{sequence}");
                record(&key, &format!("{value}{}", ".".repeat((sequence as usize * 97) % 9000)))
            })
            .collect();
        let positions = log.append(TOPIC, records.clone()).await?;
        let words = positions.iter().zip(&records).map(|(position, record)| {
            let value = String::from_utf8_lossy(&record.value);
            format!(
                " {}:{}:{}",
                position.partition,
                position.offset,
                value.trim_end_matches('.')
            )
        });
        say(&format!("ack{}\n", words.collect::<String>()));
    }
    Ok(())
}

/// Says what it was given before it commits it.
async fn consume(log: Arc<Embedded>) -> Result<(), Error> {
    let mut reader = log.subscribe(TOPIC, "worker").await?;
    loop {
        let delivered = reader.next(20).await?;
        let positions = after(&delivered);
        let words = positions
            .iter()
            .map(|position| format!(" {}:{}", position.partition, position.offset));
        say(&format!("delivered{}\n", words.collect::<String>()));
        reader.commit(&positions).await?;
    }
}

fn say(line: &str) {
    let mut pipe = std::io::stdout().lock();
    let said = pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush());
    said.expect("the parent listens");
}

fn record(key: &str, value: &str) -> Record {
    Record {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
    }
}
