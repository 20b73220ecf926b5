//! The embedded backend: the suite of every backend, and what only this one promises.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::conformance::{Fixture, after, assert_gapless, numbered, record, take, within};
use eventlog::{Bounds, Embedded, EmbeddedOptions, Error, EventLog, Position, Record, ReopeningLog};
use types::{Classify, Kind, Retry};

mod conformance {
    use super::Directory;

    eventlog::conformance!(Directory::new());
}

mod reopening {
    use super::Lasted;

    eventlog::conformance!(Lasted::new());
}

/// A log in a directory of its own that is opened again after a failed write.
struct Lasted(tempfile::TempDir);

impl Lasted {
    fn new() -> Self {
        Self(directory())
    }
}

#[async_trait]
impl Fixture for Lasted {
    async fn open(&mut self) -> Result<Arc<dyn EventLog>, Error> {
        Ok(Arc::new(ReopeningLog::open(
            self.0.path().to_owned(),
            EmbeddedOptions::default(),
        )?))
    }

    fn ahead(&self) -> usize {
        0
    }
}

/// A log in a directory of its own.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(directory())
    }
}

#[async_trait]
impl Fixture for Directory {
    async fn open(&mut self) -> Result<Arc<dyn EventLog>, Error> {
        Ok(open(self.0.path(), EmbeddedOptions::default())?)
    }

    fn ahead(&self) -> usize {
        0
    }
}

type Outcome = Result<(), Error>;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn open(path: &Path, options: EmbeddedOptions) -> Result<Arc<Embedded>, Error> {
    Embedded::open(path, options)
}

fn one_partition(retain: u64) -> EmbeddedOptions {
    EmbeddedOptions { partitions: 1, retain }
}

#[tokio::test]
async fn an_append_of_many_records_is_one_fsync() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    log.append("topic", numbered(0..5000)).await?;
    assert_eq!(log.stats().fsyncs, 1, "creating the topic rides along");
    log.append("topic", numbered(0..5000)).await?;
    let stats = log.stats();
    assert_eq!((stats.fsyncs, stats.appends, stats.records), (2, 2, 10_000));
    Ok(())
}

#[tokio::test]
async fn concurrent_appends_share_their_fsyncs() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    let large = || {
        vec![Record {
            key: Bytes::new(),
            value: Bytes::from(vec![0; 10 << 20]),
        }]
    };
    log.append("topic", numbered(0..1)).await?;
    let before = log.stats();
    for _ in 0..8 {
        // One task polls them in turn: all are queued while the first, which fills a batch, is on its way to the disk.
        let appends = (0..64).map(|n| match n {
            0 => log.append("topic", large()),
            n => log.append("topic", numbered(n..n + 1)),
        });
        for answer in futures_util::future::join_all(appends).await {
            assert_eq!(answer?.len(), 1);
        }
    }
    let stats = log.stats();
    let (appends, fsyncs) = (stats.appends - before.appends, stats.fsyncs - before.fsyncs);
    assert_eq!(appends, 8 * 64);
    assert!(fsyncs <= appends / 8, "{fsyncs} fsyncs for {appends} appends");
    Ok(())
}

#[tokio::test]
async fn positions_cost_no_fsync_and_survive_a_close() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), one_partition(1000))?;
    log.append("topic", numbered(0..100)).await?;
    let mut reader = log.subscribe("topic", "group").await?;
    let fsyncs = log.stats().fsyncs;
    for _ in 0..100 {
        let delivered = take(&mut *reader, 1, 1).await?;
        reader.commit(&after(&delivered)).await?;
    }
    assert_eq!(log.stats().fsyncs, fsyncs);
    drop(log);
    let refused = within(reader.next(1)).await;
    assert!(
        matches!(refused, Err(Error::Closed)),
        "a subscription ends with its log: {refused:?}"
    );

    let log = open(directory.path(), one_partition(1000))?;
    let positions = log.append("topic", numbered(100..101)).await?;
    let mut reader = log.subscribe("topic", "group").await?;
    let delivered = within(reader.next(10)).await?;
    assert_eq!(
        delivered.iter().map(|delivered| delivered.position).collect::<Vec<_>>(),
        positions
    );
    Ok(())
}

#[tokio::test]
async fn closing_the_log_wakes_a_subscriber_that_waits() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    let mut reader = log.subscribe("topic", "group").await?;
    let waiting = tokio::spawn(async move { reader.next(1).await });
    tokio::task::yield_now().await;
    drop(log);
    let ended = within(waiting).await;
    assert!(matches!(ended, Ok(Err(Error::Closed))), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_group_has_one_subscription_at_a_time() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    let reader = log.subscribe("topic", "group").await?;
    let refused = log.subscribe("topic", "group").await.map(drop);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    log.subscribe("topic", "other").await?;
    log.subscribe("other", "group").await?;
    drop(reader);
    log.subscribe("topic", "group").await?;
    Ok(())
}

#[tokio::test]
async fn records_that_every_group_has_done_are_removed() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), one_partition(100))?;
    log.append("topic", numbered(0..3000)).await?;
    let mut fast = log.subscribe("topic", "fast").await?;
    let mut slow = log.subscribe("topic", "slow").await?;
    let end = Position {
        partition: 0,
        offset: 3000,
    };
    fast.commit(&[end]).await?;
    assert_eq!(
        settled(&log).await?,
        Bounds { first: 0, next: 3001 },
        "the slow group has done nothing"
    );

    slow.commit(&[Position {
        partition: 0,
        offset: 2000,
    }])
    .await?;
    assert_eq!(
        settled(&log).await?,
        Bounds {
            first: 1900,
            next: 3002
        }
    );
    assert_eq!(log.stats().trimmed, 1900);
    let next = take(&mut *slow, 1, 1).await?;
    assert_eq!(
        next.first().map(|d| d.position.offset),
        Some(1900),
        "it has been delivered nothing before"
    );

    drop((fast, slow));
    drop(log);
    let log = open(directory.path(), one_partition(100))?;
    assert_eq!(
        log.bounds("topic").await?,
        [Bounds {
            first: 1900,
            next: 3002
        }]
    );
    let mut late = log.subscribe("topic", "late").await?;
    let delivered = take(&mut *late, 1102, 5000).await?;
    assert_gapless(&delivered, &log.bounds("topic").await?);
    Ok(())
}

/// The bounds once the committer has done all it was asked before: a durable append comes after it. Trimming goes on
/// between appends, so look until nothing changes.
async fn settled(log: &Embedded) -> Result<Bounds, Error> {
    log.append("topic", numbered(0..1)).await?;
    let mut trimmed = log.stats().trimmed;
    loop {
        log.append("barrier", numbered(0..1)).await?;
        let now = log.stats().trimmed;
        if now == trimmed {
            return Ok(log.bounds("topic").await?[0]);
        }
        trimmed = now;
    }
}

#[tokio::test]
async fn offsets_go_on_after_everything_was_removed() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), one_partition(0))?;
    log.append("topic", numbered(0..639)).await?;
    let mut reader = log.subscribe("topic", "group").await?;
    let positions = log.append("topic", numbered(639..640)).await?;
    assert_eq!(positions[0].offset, 639);
    reader
        .commit(&[Position {
            partition: 0,
            offset: 640,
        }])
        .await?;
    while log.stats().trimmed < 640 {
        log.append("barrier", numbered(0..1)).await?;
    }
    assert_eq!(log.bounds("topic").await?, [Bounds { first: 640, next: 640 }]);
    drop(reader);
    drop(log);

    let log = open(directory.path(), one_partition(0))?;
    assert_eq!(log.bounds("topic").await?, [Bounds { first: 640, next: 640 }]);
    assert_eq!(log.append("topic", numbered(0..1)).await?[0].offset, 640);
    let mut reader = log.subscribe("topic", "group").await?;
    assert_eq!(take(&mut *reader, 1, 10).await?[0].position.offset, 640);
    Ok(())
}

#[tokio::test]
async fn a_topic_without_groups_keeps_everything() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), one_partition(0))?;
    let _tail = log.tail("topic").await?;
    log.append("topic", numbered(0..1000)).await?;
    assert_eq!(settled(&log).await?, Bounds { first: 0, next: 1001 });
    Ok(())
}

#[tokio::test]
async fn a_topic_that_keeps_the_latest_lets_go_of_the_others() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), one_partition(1_000))?;
    log.append("topic", numbered(0..500)).await?;
    log.keep("topic", 10).await?;
    assert_eq!(settled(&log).await?, Bounds { first: 490, next: 501 });
    // One after another, as marks come: what may go goes some at a time.
    for number in 0..500 {
        log.append("topic", numbered(number..number + 1)).await?;
    }
    let bounds = settled(&log).await?;
    assert!((10..10 + 65).contains(&(bounds.next - bounds.first)), "{bounds:?}");
    drop(log);

    let log = open(directory.path(), one_partition(1_000))?;
    assert_eq!(log.bounds("topic").await?, [bounds]);
    let mut recent = log.recent("topic", u64::MAX).await?;
    let kept = usize::try_from(bounds.next - bounds.first).unwrap_or(0);
    assert_gapless(&take(&mut *recent, kept, 1_000).await?, &[bounds]);
    Ok(())
}

#[tokio::test]
async fn a_tail_that_was_overtaken_by_trimming_goes_on_at_the_first_record() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), one_partition(10))?;
    let mut reader = log.subscribe("topic", "group").await?;
    let mut tail = log.tail("topic").await?;
    log.append("topic", numbered(0..1000)).await?;
    reader
        .commit(&[Position {
            partition: 0,
            offset: 1000,
        }])
        .await?;
    assert_eq!(settled(&log).await?, Bounds { first: 990, next: 1001 });
    assert_gapless(&take(&mut *tail, 11, 1000).await?, &log.bounds("topic").await?);
    Ok(())
}

#[tokio::test]
async fn a_topic_keeps_its_number_of_partitions() -> Outcome {
    let directory = directory();
    let options = |partitions| EmbeddedOptions { partitions, retain: 10 };
    let log = open(directory.path(), options(4))?;
    let before = log.append("topic", numbered(0..50)).await?;
    drop(log);
    let log = open(directory.path(), options(16))?;
    assert_eq!(log.bounds("topic").await?.len(), 4);
    assert_eq!(log.bounds("new").await?.len(), 16);
    let again = log.append("topic", numbered(0..50)).await?;
    assert!(
        before
            .iter()
            .zip(&again)
            .all(|(before, again)| before.partition == again.partition)
    );
    Ok(())
}

#[tokio::test]
async fn numbers_of_partitions_out_of_range_are_refused() {
    let directory = directory();
    for partitions in [0, 1025] {
        let refused = open(directory.path(), EmbeddedOptions { partitions, retain: 0 });
        assert!(
            matches!(
                refused,
                Err(Error::Invalid {
                    field: "partitions",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_directory_is_open_once() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    let refused = open(directory.path(), EmbeddedOptions::default());
    let Err(error @ Error::Locked { .. }) = refused else {
        panic!("it must be locked: {refused:?}");
    };
    assert_eq!((error.kind(), error.retry()), (Kind::Unavailable, Retry::Backoff));
    assert!(
        error.to_string().contains(&directory.path().display().to_string()),
        "{error}"
    );
    drop(log);
    open(directory.path(), EmbeddedOptions::default())?;
    Ok(())
}

#[tokio::test]
async fn a_forgotten_subscription_does_not_keep_the_directory() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    log.append("topic", vec![record("key", "value")]).await?;
    let mut forgotten = log.subscribe("topic", "group").await?;
    drop(log);
    let log = open(directory.path(), EmbeddedOptions::default())?;
    assert!(matches!(forgotten.commit(&[]).await, Err(Error::Closed)));
    let mut reader = log.subscribe("topic", "group").await?;
    assert_eq!(take(&mut *reader, 1, 1).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_creation_that_was_cut_off_is_begun_again() -> Outcome {
    let directory = directory();
    // What a process leaves that dies early in the creation of the database.
    let creating = directory.path().join("creating");
    std::fs::create_dir_all(creating.join("keyspaces")).expect("a directory");
    std::fs::write(creating.join("0.jnl"), []).expect("a file");
    let log = open(directory.path(), EmbeddedOptions::default())?;
    log.append("topic", numbered(0..1)).await?;
    assert!(!creating.exists());
    Ok(())
}

#[tokio::test]
async fn a_directory_that_lost_a_file_is_not_taken_for_a_new_one() -> Outcome {
    let directory = directory();
    let log = open(directory.path(), EmbeddedOptions::default())?;
    log.append("topic", numbered(0..1)).await?;
    drop(log);
    std::fs::remove_file(directory.path().join("data/version")).expect("the file was there");
    let refused = open(directory.path(), EmbeddedOptions::default());
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_directory_of_a_later_format_is_refused() -> Outcome {
    let directory = directory();
    drop(open(directory.path(), EmbeddedOptions::default())?);
    {
        let database = fjall::Database::builder(directory.path().join("data"))
            .open()
            .expect("a database");
        let meta = database
            .keyspace("meta", fjall::KeyspaceCreateOptions::default)
            .expect("a keyspace");
        meta.insert("format", 2_u32.to_be_bytes()).expect("a write");
    }
    let refused = open(directory.path(), EmbeddedOptions::default());
    assert!(matches!(&refused, Err(Error::Format { found: 2, .. })), "{refused:?}");
    Ok(())
}
