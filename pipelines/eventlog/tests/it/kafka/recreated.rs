//! Topics that are deleted and recreated while they are read and appended to.
//!
//! Invariant: nothing is opened, subscribed or started again by the test; what is appended to the new topic has to
//! come.

use std::sync::Arc;
use std::time::Duration;

use eventlog::conformance::{after, record, take, within};
use eventlog::kafka::KafkaOptions;
use eventlog::testing::Broker;
use eventlog::{Delivered, Error, Event, EventLog, Kafka, Record, Subscription};
use types::{Classify, Retry};

use super::{Outcome, VICTIM, broker, fresh, libraries, open, start};

const TOPIC: &str = "contributions";
const GROUP: &str = "workers";
/// The records that were read from the deleted topic.
const BEFORE: u32 = 20;

/// A member that keeps its name.
fn options(broker: &Broker) -> KafkaOptions {
    KafkaOptions {
        instance: Some("member".to_owned()),
        watch: Duration::from_secs(1),
        ..broker.options(&fresh())
    }
}

fn of_one_key(what: &str, count: u32) -> Vec<Record> {
    (0..count).map(|n| record("key", &format!("{what} {n}"))).collect()
}

/// Puts [`BEFORE`] records into the topic, and reads them.
async fn begin(log: &Kafka, reader: &mut dyn Subscription) -> Outcome {
    log.append(TOPIC, of_one_key("before", BEFORE)).await?;
    let done = take(reader, BEFORE as usize, 100).await?;
    reader.commit(&after(&done)).await
}

/// Deletes the topic; another process recreates it with `count` records.
async fn recreate(broker: &Broker, options: &KafkaOptions, count: u32) -> Outcome {
    let deleted = broker.delete_topic(&format!("{}{TOPIC}", options.prefix)).await;
    deleted.expect("the topic is deleted");
    let other = open(options).await?;
    other.append(TOPIC, of_one_key("after", count)).await.map(drop)
}

/// Reads until exactly the records of the new topic came, since the reader was given its partitions last.
async fn read_recreated(reader: &mut dyn Subscription, count: u32) -> Outcome {
    let wanted = of_one_key("after", count);
    let mut read: Vec<Record> = Vec::new();
    while read.len() < wanted.len() {
        match within(reader.event(100)).await? {
            Event::Revoked(_) => read.clear(),
            Event::Assigned(_) => {}
            Event::Records(records) => read.extend(records.into_iter().map(|Delivered { record, .. }| record)),
        }
    }
    assert_eq!(read, wanted);
    Ok(())
}

/// The new topic has fewer, as many and more records than were read of the one before.
async fn all_of_it_is_read(count: u32) -> Outcome {
    let broker = broker!();
    let options = options(broker);
    let log = open(&options).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    begin(&log, &mut *reader).await?;
    recreate(broker, &options, count).await?;
    read_recreated(&mut *reader, count).await?;
    assert!(log.stats().consumers_restarted > 0, "{:?}", log.stats());
    // Nothing was done of it: it comes again, and not from where the group was in the topic before.
    drop(reader);
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    read_recreated(&mut *reader, count).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_recreated_with_fewer_records_is_read_from_its_first() -> Outcome {
    all_of_it_is_read(BEFORE / 4).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_recreated_with_as_many_records_is_read_from_its_first() -> Outcome {
    all_of_it_is_read(BEFORE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_recreated_with_more_records_is_read_from_its_first() -> Outcome {
    all_of_it_is_read(2 * BEFORE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_reads_a_topic_recreated_from_its_first_record() -> Outcome {
    let broker = broker!();
    let options = options(broker);
    let log = open(&options).await?;
    log.append(TOPIC, of_one_key("before", BEFORE)).await?;
    let mut tail = log.recent(TOPIC, u64::from(BEFORE)).await?;
    take(&mut *tail, BEFORE as usize, 100).await?;
    recreate(broker, &options, 2 * BEFORE).await?;
    read_recreated(&mut *tail, 2 * BEFORE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_group_read_all_of_a_topic_recreated() -> Outcome {
    let broker = broker!();
    let first = options(broker);
    let second = KafkaOptions {
        instance: Some("another".to_owned()),
        ..first.clone()
    };
    let keys = |what: &str| {
        (0..4 * BEFORE)
            .map(|n| record(&format!("{n}"), &format!("{what} {n}")))
            .collect::<Vec<_>>()
    };
    let (one, other) = (open(&first).await?, open(&second).await?);
    let mut readers = [one.subscribe(TOPIC, GROUP).await?, other.subscribe(TOPIC, GROUP).await?];
    one.append(TOPIC, keys("before")).await?;
    both(&mut readers, keys("before")).await?;
    let deleted = broker.delete_topic(&format!("{}{TOPIC}", first.prefix)).await;
    deleted.expect("the topic is deleted");
    open(&first).await?.append(TOPIC, keys("after")).await?;
    both(&mut readers, keys("after")).await
}

/// Lets two members read until they have seen all of these.
async fn both(readers: &mut [Box<dyn Subscription>; 2], mut wanted: Vec<Record>) -> Outcome {
    let [one, other] = readers;
    while !wanted.is_empty() {
        let event = within(async {
            tokio::select! {
                event = one.event(100) => event,
                event = other.event(100) => event,
            }
        });
        if let Event::Records(records) = event.await? {
            wanted.retain(|wanted| !records.iter().any(|delivered| delivered.record == *wanted));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_was_gone_for_a_while_is_recreated_by_an_append_and_read() -> Outcome {
    let broker = broker!();
    let mut options = options(broker);
    // How long librdkafka takes a topic that it knew for one that is only not known yet.
    for (name, value) in [
        ("topic.metadata.propagation.max.ms", "200"),
        ("topic.metadata.refresh.interval.ms", "500"),
    ] {
        options.properties.insert(name.to_owned(), value.to_owned());
    }
    let log = open(&options).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    begin(&log, &mut *reader).await?;
    let deleted = broker.delete_topic(&format!("{}{TOPIC}", options.prefix)).await;
    deleted.expect("the topic is deleted");
    let lost = within(async {
        loop {
            if let Event::Revoked(partitions) = reader.event(100).await? {
                return Ok::<_, Error>(partitions);
            }
        }
    });
    assert_eq!(lost.await?, [0, 1, 2, 3]);

    appended(&log, of_one_key("after", BEFORE)).await;
    read_recreated(&mut *reader, BEFORE).await
}

/// A stand-in for the marketplace's row, which is appended until it has an outcome.
async fn appended(log: &Arc<Kafka>, records: Vec<Record>) {
    within(async {
        while let Err(error) = log.append(TOPIC, records.clone()).await {
            assert_eq!(error.retry(), Retry::Backoff, "{error}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_appended_to_a_topic_recreated_is_acknowledged_only_if_it_is_in_it() -> Outcome {
    let broker = broker!();
    let mut options = options(broker);
    let refresh = "topic.metadata.refresh.interval.ms".to_owned();
    options.properties.insert(refresh, "500".to_owned());
    let (log, other) = (open(&options).await?, open(&options).await?);
    for round in 0..3 {
        log.append(TOPIC, of_one_key("before", BEFORE)).await?;
        recreate(broker, &options, 1).await?;
        let mut acknowledged = Vec::new();
        let appending = async {
            for number in 0.. {
                let record = record("key", &format!("{round} {number}"));
                match log.append(TOPIC, vec![record.clone()]).await {
                    Ok(positions) => acknowledged.push((positions[0], record)),
                    Err(error) => assert_eq!(error.retry(), Retry::Backoff, "{error}"),
                }
                // Some before the producer learns of it, and some of the one that takes over.
                if log.stats().producers_renewed > round && acknowledged.len() >= 50 {
                    break;
                }
            }
        };
        within(appending).await;
        let mut reader = other.recent(TOPIC, u64::MAX).await?;
        let count = broker.count(&format!("{}{TOPIC}", options.prefix));
        let count = usize::try_from(count.expect("a count")).expect("records");
        let read = take(&mut *reader, count, 1000).await?;
        for (position, record) in acknowledged {
            assert_eq!(
                read.get(usize::try_from(position.offset).expect("an offset")),
                Some(&Delivered { position, record })
            );
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_of_an_older_epoch_are_read_and_appended_to() -> Outcome {
    let mut victim = VICTIM.lock().await;
    if victim.is_none() {
        let Some(libraries) = libraries() else { return Ok(()) };
        *victim = Some(start(libraries).await);
    }
    let Some(broker) = &*victim else { return Ok(()) };
    let options = options(broker);
    let log = open(&options).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    // Every start of the broker is another epoch of its partitions; those of a new topic begin at the first.
    for _ in 0..2 {
        tokio::task::block_in_place(|| broker.kill().and_then(|()| broker.resume_after_kill()))
            .expect("it starts again");
    }
    appended(&log, of_one_key("before", BEFORE)).await;
    take(&mut *reader, BEFORE as usize, 100).await?;
    recreate(broker, &options, 2 * BEFORE).await?;
    read_recreated(&mut *reader, 2 * BEFORE).await?;
    appended(&log, of_one_key("later", 1)).await;
    let later = take(&mut *reader, 1, 1).await?;
    assert_eq!(later[0].record, of_one_key("later", 1)[0]);
    Ok(())
}
