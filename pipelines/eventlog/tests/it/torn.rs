//! The tail of the newest journal file is cut, zeroed, or has a flipped bit, as a power cut or a bad disk leaves it:
//! the log reopens at the end of a batch, or refuses to open. It never serves anything that was not appended.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use eventlog::conformance::{assert_gapless, record, take};
use eventlog::{Delivered, Embedded, EmbeddedOptions, Error, EventLog, Record};

const TOPIC: &str = "topic";
const OPTIONS: EmbeddedOptions = EmbeddedOptions {
    partitions: 1,
    retain: 1000,
};

/// A log with some batches, closed.
struct Written {
    directory: tempfile::TempDir,
    /// Its newest journal file.
    newest: PathBuf,
    /// The bytes of that up to the last one that is not zero: the rest is there in advance.
    bytes: Vec<u8>,
    /// Its length.
    full: u64,
    /// Every record in order.
    records: Vec<Record>,
    /// The offsets at which a batch ends, and 0.
    ends: BTreeSet<u64>,
}

async fn written() -> Result<Written, Error> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = Embedded::open(directory.path(), OPTIONS)?;
    let (mut all, mut ends) = (Vec::new(), BTreeSet::from([0]));
    for batch in 0..25_usize {
        let records: Vec<Record> = (0..=batch % 5)
            .map(|n| record("key", &format!("{batch} {n} {}", "x".repeat(batch * 37 % 500))))
            .collect();
        all.extend(records.clone());
        ends.insert(all.len() as u64);
        log.append(TOPIC, records).await?;
    }
    drop(log);
    let (newest, mut bytes) = journal(&directory.path().join("data"));
    let full = bytes.len() as u64;
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("something is written");
    bytes.truncate(end + 1);
    Ok(Written {
        directory,
        newest,
        bytes,
        full,
        records: all,
        ends,
    })
}

/// The newest journal file and its bytes.
fn journal(directory: &Path) -> (PathBuf, Vec<u8>) {
    let files = std::fs::read_dir(directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").path());
    let number = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    let newest = journals.max_by_key(number).expect("a journal");
    let mut bytes = Vec::new();
    File::open(&newest)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .expect("the journal can be read");
    (newest, bytes)
}

/// A copy of the directory with other bytes in the newest journal, which is `length` long if given.
fn copy(written: &Written, bytes: &[u8], length: Option<u64>) -> tempfile::TempDir {
    fn copy_into(from: &Path, to: &Path, skip: &Path) {
        for entry in std::fs::read_dir(from).expect("a directory") {
            let path = entry.expect("an entry").path();
            let target = to.join(path.file_name().expect("a name"));
            if path.is_dir() {
                std::fs::create_dir(&target).expect("a directory");
                copy_into(&path, &target, skip);
            } else if path != skip {
                std::fs::copy(&path, &target).expect("a copy");
            }
        }
    }
    let target = tempfile::tempdir().expect("a temporary directory");
    copy_into(written.directory.path(), target.path(), &written.newest);
    let mut file = File::create(
        target
            .path()
            .join("data")
            .join(written.newest.file_name().expect("a name")),
    )
    .expect("a file");
    file.write_all(bytes).expect("a write");
    if let Some(length) = length {
        file.set_len(length).expect("a length");
    }
    target
}

/// Opens a copy, reads everything, appends, and reads again. The number of records it had.
async fn reopen(written: &Written, copy: &Path) -> Result<u64, Error> {
    let log = Embedded::open(copy, OPTIONS)?;
    let next = log.bounds(TOPIC).await?[0].next;
    assert!(written.ends.contains(&next), "{next} records are a part of a batch");
    let mut expected = written.records[..usize::try_from(next).expect("few")].to_vec();
    assert_eq!(contents(&log, "before").await?, expected);
    let more: Vec<Record> = (0..3).map(|n| record("key", &format!("more {n}"))).collect();
    log.append(TOPIC, more.clone()).await?;
    drop(log);
    expected.extend(more);
    let log = Embedded::open(copy, OPTIONS)?;
    assert_eq!(contents(&log, "after").await?, expected);
    Ok(next)
}

async fn contents(log: &Embedded, group: &str) -> Result<Vec<Record>, Error> {
    let bounds = log.bounds(TOPIC).await?;
    let mut reader = log.subscribe(TOPIC, group).await?;
    let count = usize::try_from(bounds[0].next).expect("few");
    let delivered: Vec<Delivered> = take(&mut *reader, count, 100).await?;
    assert_gapless(&delivered, &bounds);
    Ok(delivered.into_iter().map(|delivered| delivered.record).collect())
}

#[tokio::test]
async fn a_torn_tail_reopens_at_the_end_of_a_batch() -> Result<(), Error> {
    let written = written().await?;
    let bytes = &written.bytes;
    let mut found = BTreeSet::new();
    // Every distance from the end within the last batches, then strides.
    let cuts = (0..30)
        .chain((30..bytes.len()).step_by(331))
        .map(|distance| bytes.len() - distance);
    for cut in cuts {
        let torn = copy(&written, &bytes[..cut], None);
        let truncated = reopen(&written, torn.path()).await?;
        let torn = copy(&written, &bytes[..cut], Some(written.full));
        let zeroed = reopen(&written, torn.path()).await?;
        assert_eq!(truncated, zeroed, "cut at {cut} of {}", bytes.len());
        found.insert(zeroed);
    }
    assert!(
        found.contains(&(written.records.len() as u64)),
        "a whole journal is whole"
    );
    assert!(found.len() > 15, "the cuts were at many batches: {found:?}");
    Ok(())
}

#[tokio::test]
async fn a_damaged_journal_is_refused_by_an_error_that_says_what_to_do() -> Result<(), Error> {
    let written = written().await?;
    let bytes = &written.bytes;
    let value = b"3 1 xxx";
    let place = bytes
        .windows(value.len())
        .position(|window| window == value)
        .expect("the record is in the journal");
    let mut flipped = bytes.clone();
    flipped[place] ^= 1;
    let damaged = copy(&written, &flipped, None);
    let refused = reopen(&written, damaged.path()).await;
    let Err(error @ Error::Damaged { .. }) = refused else {
        panic!("it must be refused: {refused:?}");
    };
    let text = error.to_string();
    assert!(text.contains(&damaged.path().display().to_string()), "{text}");
    assert!(text.contains("restore it from a backup"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_flipped_bit_never_becomes_a_record() -> Result<(), Error> {
    let written = written().await?;
    let bytes = &written.bytes;
    let (mut refused, mut shortened) = (0, 0);
    for (count, place) in (0..bytes.len()).step_by(173).enumerate() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (count % 8);
        let damaged = copy(&written, &flipped, Some(written.full));
        match reopen(&written, damaged.path()).await {
            Ok(_) => shortened += 1,
            Err(Error::Damaged { .. }) => refused += 1,
            Err(other) => panic!("byte {place}: {other}"),
        }
    }
    assert!(
        refused > shortened,
        "{refused} refused, {shortened} opened at the end of an earlier batch"
    );
    Ok(())
}
