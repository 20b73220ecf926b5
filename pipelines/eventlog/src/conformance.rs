//! The suite that every backend runs: what a log promises, scenario by scenario.
//!
//! A backend gives a [`Fixture`] to the macro [`conformance!`](crate::conformance!), which makes a test of each
//! scenario. A scenario fails by a panic of an assertion, or by an error of the log.
//!
//! Invariant: scenarios use the public interface only and wait for events, never for time; the one limit of time
//! turns a hang into a failure.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Bounds, Delivered, Error, Event, EventLog, Position, Record, Subscription};
pub use steps::{after, assert_gapless, numbered, record, take, within};
use steps::{poll_once, sorted};

/// A place for the log of one scenario, empty at first.
#[async_trait]
pub trait Fixture: Send {
    /// Opens the log. When called again it opens what the call before left; that log has been dropped by then.
    /// Topics have more than one partition.
    async fn open(&mut self) -> Result<Arc<dyn EventLog>, Error>;

    /// Returns the most records of a partition that may be delivered before the first record of the others: none if all
    /// are at hand, some if partitions arrive over a network one after another.
    fn ahead(&self) -> usize;
}

/// Makes a test of each scenario, with the fixture that the expression gives.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        $crate::conformance! { $fixture;
            records_of_a_key_keep_their_order,
            a_position_names_its_record,
            acknowledged_records_survive_a_reopen,
            delivery_begins_at_the_committed_position,
            groups_are_independent,
            topics_are_separate,
            a_tail_sees_only_new_records,
            what_is_recent_begins_before_the_end,
            the_latest_are_kept_and_what_a_group_has_not_done,
            a_reader_is_told_its_partitions_before_their_records,
            a_tail_commits_nothing,
            a_committed_position_never_goes_back,
            a_position_past_the_end_is_refused,
            a_subscriber_waits_and_wakes,
            a_dropped_next_loses_nothing,
            large_values_arrive_whole,
            every_partition_gets_its_turn,
            at_most_max_records_are_delivered,
            an_empty_append_does_nothing,
            empty_keys_and_values_are_records,
            concurrent_appends_leave_no_gap,
            bad_arguments_name_the_field,
        }
    };
    ($fixture:expr; $($scenario:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() -> Result<(), $crate::Error> {
                let mut fixture = $fixture;
                $crate::conformance::$scenario(&mut fixture).await
            }
        )+
    };
}

const TOPIC: &str = "contributions";
const GROUP: &str = "workers";

type Outcome = Result<(), Error>;

/// Appends of one key are delivered in their order, among those of other keys, whatever the size of the deliveries, and
/// whether or not their sender keeps them.
pub async fn records_of_a_key_keep_their_order(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    for round in 0..20 {
        let records = (0..10).map(|key| record(&format!("key {key}"), &format!("{round}")));
        let records = records.collect();
        match round % 3 {
            0 => log.append(TOPIC, records).await?,
            _ => log.append_recoverable(TOPIC, records).await?,
        };
    }
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let mut seen: BTreeMap<Bytes, Vec<Bytes>> = BTreeMap::new();
    for Delivered { record, .. } in take(&mut *reader, 200, 7).await? {
        seen.entry(record.key).or_default().push(record.value);
    }
    assert_eq!(seen.len(), 10);
    for (key, values) in seen {
        let expected: Vec<Bytes> = (0..20).map(|round| Bytes::from(round.to_string())).collect();
        assert_eq!(values, expected, "the records of {key:?}");
    }
    Ok(())
}

/// The positions that `append` returns, in order, are those under which the records are delivered.
pub async fn a_position_names_its_record(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let records: Vec<Record> = (0..50)
        .map(|n| record(&format!("key {}", n % 7), &format!("{n}")))
        .collect();
    let positions = log.append(TOPIC, records.clone()).await?;
    assert_eq!(positions.len(), records.len());
    let appended: BTreeMap<Position, Record> = positions.into_iter().zip(records).collect();
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let delivered = take(&mut *reader, 50, 64).await?;
    let delivered = delivered
        .into_iter()
        .map(|delivered| (delivered.position, delivered.record));
    assert_eq!(delivered.collect::<BTreeMap<_, _>>(), appended);
    Ok(())
}

/// Everything acknowledged is there after a reopen, and offsets go on where they ended.
pub async fn acknowledged_records_survive_a_reopen(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let mut positions = log.append(TOPIC, numbered(0..20)).await?;
    positions.extend(log.append_recoverable(TOPIC, numbered(20..40)).await?);
    let before = log.bounds(TOPIC).await?;
    drop(log);

    let log = fixture.open().await?;
    assert_eq!(log.bounds(TOPIC).await?, before);
    positions.extend(log.append(TOPIC, numbered(40..80)).await?);
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let delivered = take(&mut *reader, 80, 80).await?;
    assert_gapless(&delivered, &log.bounds(TOPIC).await?);
    let delivered: BTreeSet<Position> = delivered.iter().map(|delivered| delivered.position).collect();
    assert_eq!(delivered, positions.into_iter().collect());
    Ok(())
}

/// After a reopen the group gets what it had not committed, all of it, and nothing before.
pub async fn delivery_begins_at_the_committed_position(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append(TOPIC, numbered(0..60)).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let done = take(&mut *reader, 25, 25).await?;
    reader.commit(&after(&done)).await?;
    let undone = take(&mut *reader, 35, 35).await?;
    drop(reader);

    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(
        sorted(take(&mut *reader, 35, 35).await?),
        sorted(undone.clone()),
        "after a restart of the reader"
    );
    drop(reader);
    drop(log);

    let log = fixture.open().await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(
        sorted(take(&mut *reader, 35, 35).await?),
        sorted(undone),
        "after a reopen of the log"
    );
    assert_done(&*log, &mut *reader).await
}

/// The commits of one group do not affect another.
pub async fn groups_are_independent(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append(TOPIC, numbered(0..10)).await?;
    let mut one = log.subscribe(TOPIC, "one").await?;
    let delivered = take(&mut *one, 10, 10).await?;
    one.commit(&after(&delivered)).await?;
    let mut two = log.subscribe(TOPIC, "two").await?;
    assert_eq!(sorted(take(&mut *two, 10, 10).await?), sorted(delivered));
    drop((one, two));
    drop(log);

    let log = fixture.open().await?;
    let mut one = log.subscribe(TOPIC, "one").await?;
    let mut two = log.subscribe(TOPIC, "two").await?;
    assert_eq!(take(&mut *two, 10, 10).await?.len(), 10);
    assert_done(&*log, &mut *one).await
}

/// A topic has its own records, offsets and positions.
pub async fn topics_are_separate(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append("outcomes", vec![record("key", "outcome")]).await?;
    let first = log.append(TOPIC, vec![record("key", "contribution")]).await?;
    assert_eq!(first.first().map(|position| position.offset), Some(0));
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let delivered = take(&mut *reader, 1, 10).await?;
    assert_eq!(
        delivered.first().map(|d| d.record.value.clone()),
        Some(Bytes::from_static(b"contribution"))
    );
    reader.commit(&after(&delivered)).await?;
    let mut other = log.subscribe("outcomes", GROUP).await?;
    assert_eq!(take(&mut *other, 1, 10).await?.len(), 1);
    Ok(())
}

/// A tail begins with what is appended after it was made, and several see the same.
pub async fn a_tail_sees_only_new_records(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append(TOPIC, numbered(0..10)).await?;
    let mut one = log.tail(TOPIC).await?;
    let mut expected = log.append(TOPIC, numbered(10..20)).await?;
    let mut two = log.tail(TOPIC).await?;
    let late = log.append(TOPIC, numbered(20..30)).await?;
    expected.extend(&late);
    for (tail, expected) in [(&mut one, expected), (&mut two, late)] {
        let delivered = take(&mut **tail, expected.len(), 3).await?;
        let delivered: BTreeSet<Position> = delivered.iter().map(|delivered| delivered.position).collect();
        assert_eq!(delivered, expected.into_iter().collect());
    }
    Ok(())
}

/// Reading what is recent begins as many records before the end of each partition, or at its first, and goes on.
pub async fn what_is_recent_begins_before_the_end(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let appended = log
        .append(TOPIC, (0..10).map(|n| record("key", &format!("{n}"))).collect())
        .await?;
    let partition = appended[0].partition;
    for (count, first) in [(3, 7), (10, 0), (u64::MAX, 0)] {
        let mut recent = log.recent(TOPIC, count).await?;
        let delivered = take(&mut *recent, 10 - first, 10).await?;
        assert_eq!(delivered[0].position.offset, first as u64, "the last {count}");
    }
    let mut recent = log.recent(TOPIC, 1).await?;
    let next = log.append(TOPIC, vec![record("key", "next")]).await?;
    let delivered = take(&mut *recent, 2, 10).await?;
    assert_eq!(
        delivered.last().map(|delivered| delivered.position),
        next.last().copied()
    );
    assert!(
        delivered
            .iter()
            .all(|delivered| delivered.position.partition == partition)
    );
    Ok(())
}

/// A topic of which only the latest are kept has these, and whatever a group is still to be given.
pub async fn the_latest_are_kept_and_what_a_group_has_not_done(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.keep("latest", 10).await?;
    log.keep(TOPIC, 0).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    for round in 0..5 {
        for topic in ["latest", TOPIC] {
            let records = (0..100).map(|n| record("key", &format!("{round} {n}"))).collect();
            log.append(topic, records).await?;
        }
    }
    let mut recent = log.recent("latest", 10).await?;
    let kept = take(&mut *recent, 10, 10).await?;
    assert_eq!(kept[0].record.value, Bytes::from_static(b"4 90"));
    let delivered = take(&mut *reader, 500, 100).await?;
    assert_eq!(delivered[0].position.offset, 0);
    Ok(())
}

/// A reader without other members in its group, and every tail, receives all partitions before their first record.
pub async fn a_reader_is_told_its_partitions_before_their_records(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append(TOPIC, numbered(0..50)).await?;
    for mut reader in [log.subscribe(TOPIC, GROUP).await?, log.recent(TOPIC, 1).await?] {
        let mut told = BTreeSet::new();
        let records = loop {
            match within(reader.event(10)).await? {
                Event::Assigned(partitions) => told.extend(partitions),
                Event::Revoked(partitions) => assert_eq!(partitions, Vec::<u32>::new(), "nobody else reads"),
                Event::Records(records) => break records,
            }
        };
        assert!(
            records
                .iter()
                .all(|delivered| told.contains(&delivered.position.partition))
        );
        assert_eq!(
            told,
            (0_u32..).zip(log.bounds(TOPIC).await?).map(|(at, _)| at).collect()
        );
    }
    Ok(())
}

/// A tail has no position to commit.
pub async fn a_tail_commits_nothing(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let mut tail = log.tail(TOPIC).await?;
    let positions = log.append(TOPIC, numbered(0..1)).await?;
    let refused = tail.commit(&positions).await;
    assert!(matches!(refused, Err(Error::Ungrouped { .. })), "{refused:?}");
    Ok(())
}

/// A lower position than the committed one changes nothing.
pub async fn a_committed_position_never_goes_back(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let positions = log
        .append(TOPIC, (0..10).map(|n| record("key", &format!("{n}"))).collect())
        .await?;
    let at = |offset| Position {
        partition: positions[0].partition,
        offset,
    };
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    take(&mut *reader, 10, 10).await?;
    reader.commit(&[at(7), at(5)]).await?;
    reader.commit(&[at(2)]).await?;
    drop(reader);

    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(
        take(&mut *reader, 3, 10)
            .await?
            .first()
            .map(|delivered| delivered.position),
        Some(at(7))
    );
    drop(reader);
    drop(log);

    let log = fixture.open().await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(
        take(&mut *reader, 3, 10)
            .await?
            .first()
            .map(|delivered| delivered.position),
        Some(at(7))
    );
    Ok(())
}

/// A position that does not exist is refused, and the others of the call are not committed.
pub async fn a_position_past_the_end_is_refused(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let positions = log.append(TOPIC, numbered(0..1)).await?;
    let partition = positions[0].partition;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    for wrong in [
        Position { partition, offset: 2 },
        Position {
            partition: u32::MAX,
            offset: 0,
        },
    ] {
        let refused = reader.commit(&[Position { partition, offset: 1 }, wrong]).await;
        assert!(
            matches!(refused, Err(Error::Invalid { field: "positions", .. })),
            "{refused:?}"
        );
    }
    drop(reader);
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(take(&mut *reader, 1, 1).await?.len(), 1);
    Ok(())
}

/// A subscriber of a topic that does not exist yet sleeps, and an append wakes it.
pub async fn a_subscriber_waits_and_wakes(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    for round in 0..20 {
        let mut next = pin!(reader.next(10));
        let early = std::future::poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_ready())).await;
        assert!(!early, "there is nothing to deliver yet");
        let positions = log.append(TOPIC, vec![record(&format!("key {round}"), "")]).await?;
        let delivered = within(next).await?;
        assert_eq!(
            delivered.iter().map(|delivered| delivered.position).collect::<Vec<_>>(),
            positions
        );
    }
    Ok(())
}

/// A call of `next` that is dropped at any of its waits has taken nothing.
pub async fn a_dropped_next_loses_nothing(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let mut seen = Vec::new();
    for round in 0..50_u32 {
        // Dropped while it waits for records, and below while it may be reading them.
        assert!(
            poll_once(reader.next(2)).await.is_none(),
            "there is nothing to deliver yet"
        );
        log.append(TOPIC, numbered(round..round + 1)).await?;
        for _ in 0..round % 4 {
            if let Some(delivered) = poll_once(reader.next(2)).await {
                seen.extend(delivered?);
            }
        }
        while seen.len() <= round as usize {
            seen.extend(within(reader.next(2)).await?);
        }
    }
    assert_gapless(&seen, &log.bounds(TOPIC).await?);
    Ok(())
}

/// Values of 4 MiB come back byte for byte, also after a reopen, and several deliveries of bounded size are made of
/// many.
pub async fn large_values_arrive_whole(fixture: &mut dyn Fixture) -> Outcome {
    let value = |seed: u8| -> Bytes {
        (0..4 << 20)
            .map(|n: u32| n.to_le_bytes()[n as usize % 3] ^ seed)
            .collect()
    };
    let log = fixture.open().await?;
    let large = |seed: u8| Record {
        key: Bytes::from_static(b"key"),
        value: value(seed),
    };
    log.append(TOPIC, (0..3).map(large).collect()).await?;
    log.append(TOPIC, (3..6).map(large).collect()).await?;
    let mut log = Some(log);
    for _ in 0..2 {
        let opened = match log.take() {
            Some(log) => log,
            None => fixture.open().await?,
        };
        let mut reader = opened.subscribe(TOPIC, GROUP).await?;
        let mut seen = 0;
        while seen < 6 {
            let delivered = within(reader.next(100)).await?;
            assert!(delivered.len() < 6, "a delivery is bounded by bytes as well");
            for Delivered { record, .. } in delivered {
                assert!(record.value == value(seen), "value {seen}");
                seen += 1;
            }
        }
    }
    Ok(())
}

/// A partition that is always full does not keep the others from being delivered.
pub async fn every_partition_gets_its_turn(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append(TOPIC, (0..1000).map(|n| record("busy", &format!("{n}"))).collect())
        .await?;
    let positions = log.append(TOPIC, numbered(0..200)).await?;
    let partitions: BTreeSet<u32> = positions.iter().map(|position| position.partition).collect();
    assert!(partitions.len() > 1, "the fixture gives topics more than one partition");
    for max in [1, 3, 100] {
        let mut reader = log.subscribe(TOPIC, &format!("group-{max}")).await?;
        let most = partitions.len().div_ceil(max) * 2 * max + fixture.ahead();
        let (mut seen, mut records) = (BTreeSet::new(), 0);
        while !seen.is_superset(&partitions) {
            let delivered = within(reader.next(max)).await?;
            records += delivered.len();
            seen.extend(delivered.iter().map(|delivered| delivered.position.partition));
        }
        assert!(records <= most, "{records} records in deliveries of {max}");
    }
    Ok(())
}

/// A delivery has at least one record and at most `max`.
pub async fn at_most_max_records_are_delivered(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    log.append(TOPIC, numbered(0..100)).await?;
    for max in [1, 2, 7, 99, 1000] {
        let mut reader = log.subscribe(TOPIC, &format!("group-{max}")).await?;
        let mut seen = Vec::new();
        while seen.len() < 100 {
            let delivered = within(reader.next(max)).await?;
            assert!(
                (1..=max).contains(&delivered.len()),
                "{} records for {max}",
                delivered.len()
            );
            seen.extend(delivered);
        }
        assert_gapless(&seen, &log.bounds(TOPIC).await?);
    }
    Ok(())
}

/// Appending nothing is answered with no positions and leaves no trace.
pub async fn an_empty_append_does_nothing(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    assert_eq!(log.append(TOPIC, Vec::new()).await?, []);
    let bounds = log.bounds(TOPIC).await?;
    assert!(
        bounds.iter().all(|bounds| *bounds == Bounds { first: 0, next: 0 }),
        "{bounds:?}"
    );
    Ok(())
}

/// Keys and values of no bytes are records like others.
pub async fn empty_keys_and_values_are_records(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let records = vec![record("", ""), record("", "value"), record("key", "")];
    log.append(TOPIC, records.clone()).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let delivered: Vec<Record> = take(&mut *reader, 3, 3).await?.into_iter().map(|d| d.record).collect();
    assert!(records.iter().all(|record| delivered.contains(record)), "{delivered:?}");
    Ok(())
}

/// Many appenders at once get distinct positions without a gap, and a reader beside them sees each record once.
pub async fn concurrent_appends_leave_no_gap(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let appenders: Vec<_> = (0..16)
        .map(|appender| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut positions = Vec::new();
                for round in 0..25 {
                    let records = (0..3).map(|n| record(&format!("{appender} {n}"), &format!("{round}")));
                    positions.extend(log.append(TOPIC, records.collect()).await?);
                }
                Ok::<_, Error>(positions)
            })
        })
        .collect();
    let delivered = take(&mut *reader, 16 * 25 * 3, 50).await?;
    let mut acknowledged = BTreeSet::new();
    for appender in appenders {
        let positions = appender.await.unwrap_or(Err(Error::Closed))?;
        acknowledged.extend(positions);
    }
    assert_gapless(&delivered, &log.bounds(TOPIC).await?);
    assert_eq!(acknowledged.len(), delivered.len());
    let mut rounds: BTreeMap<Bytes, Vec<Bytes>> = BTreeMap::new();
    for Delivered { record, .. } in delivered {
        rounds.entry(record.key).or_default().push(record.value);
    }
    let expected: Vec<Bytes> = (0..25).map(|round| Bytes::from(round.to_string())).collect();
    assert!(rounds.values().all(|values| *values == expected));
    Ok(())
}

/// A bad argument is refused by an error that names it.
pub async fn bad_arguments_name_the_field(fixture: &mut dyn Fixture) -> Outcome {
    let log = fixture.open().await?;
    let field = |refused: Result<(), Error>| match refused {
        Err(Error::Invalid { field, .. }) => field,
        other => {
            assert!(other.is_err(), "it must be refused");
            "another error"
        }
    };
    for name in ["", "a b", "a/b", "ü", "a\0", &"a".repeat(crate::MAX_NAME_BYTES + 1)] {
        assert_eq!(field(log.append(name, numbered(0..1)).await.map(drop)), "topic");
        assert_eq!(field(log.subscribe(name, GROUP).await.map(drop)), "topic");
        assert_eq!(field(log.tail(name).await.map(drop)), "topic");
        assert_eq!(field(log.bounds(name).await.map(drop)), "topic");
        assert_eq!(field(log.subscribe(TOPIC, name).await.map(drop)), "group");
    }
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(field(reader.next(0).await.map(drop)), "max");
    let large = Record {
        key: Bytes::from_static(b"key"),
        value: Bytes::from(vec![0; crate::MAX_RECORD_BYTES]),
    };
    let refused = log.append(TOPIC, vec![record("key", "small"), large]).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    // Nothing of a refused append is there.
    assert_done(&*log, &mut *reader).await
}

/// Asserts that there is nothing to deliver: what is appended now comes next, alone.
async fn assert_done(log: &dyn EventLog, reader: &mut dyn Subscription) -> Outcome {
    let positions = log.append(TOPIC, vec![record("last", "")]).await?;
    let delivered = within(reader.next(usize::MAX)).await?;
    assert_eq!(
        delivered.iter().map(|delivered| delivered.position).collect::<Vec<_>>(),
        positions
    );
    Ok(())
}
