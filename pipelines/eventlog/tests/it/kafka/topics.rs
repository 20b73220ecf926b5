//! Topics that are not what they were: trimmed, recreated, of another shape.

use std::time::Duration;

use eventlog::conformance::{after, record, take, within};
use eventlog::kafka::KafkaOptions;
use eventlog::{Delivered, Error, Event, EventLog, Position, Record};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use types::{Classify, Retry};

use super::{Outcome, broker, fresh, open};

const TOPIC: &str = "contributions";
const GROUP: &str = "workers";

fn admin(broker: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new()
        .set("bootstrap.servers", broker)
        .create()
        .expect("a client")
}

fn of_one_key(numbers: std::ops::Range<u32>) -> Vec<Record> {
    numbers.map(|n| record("key", &format!("{n}"))).collect()
}

fn offsets(delivered: &[Delivered]) -> Vec<u64> {
    delivered.iter().map(|delivered| delivered.position.offset).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_that_is_not_kept_goes_on_at_the_first_record_left() -> Outcome {
    let broker = broker!();
    let options = broker.options(&fresh());
    let log = open(&options).await?;
    let partition = log.append(TOPIC, of_one_key(0..20)).await?[0].partition;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let done = take(&mut *reader, 5, 5).await?;
    reader.commit(&after(&done)).await?;
    drop(reader);

    let name = format!("{}{TOPIC}", options.prefix);
    let deleted = broker.delete_records_before(&name, Some(12)).await;
    deleted.expect("records are deleted");

    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let mut told = Vec::new();
    let records = loop {
        match within(reader.event(100)).await? {
            Event::Records(records) => break records,
            change => told.push(change),
        }
    };
    assert_eq!(offsets(&records), (12..20).collect::<Vec<_>>());
    assert_eq!(told.len(), 3, "assigned, lost, assigned again: {told:?}");
    assert_eq!(told[1], Event::Revoked(vec![partition]));
    assert_eq!(log.stats().out_of_range, 1);
    reader.commit(&after(&records)).await?;
    drop(reader);
    let next = log.append(TOPIC, of_one_key(20..21)).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(take(&mut *reader, 1, 10).await?[0].position, next[0]);
    assert_eq!(log.stats().out_of_range, 1, "once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_recreated_is_read_from_its_first_record() -> Outcome {
    let broker = broker!();
    let options = broker.options(&fresh());
    let log = open(&options).await?;
    log.append(TOPIC, of_one_key(0..20)).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let mut tail = log.tail(TOPIC).await?;
    let done = take(&mut *reader, 20, 20).await?;
    reader.commit(&after(&done)).await?;
    let name = format!("{}{TOPIC}", options.prefix);
    broker.delete_topic(&name).await.expect("the topic is deleted");

    // What takes the place of the row that is appended until it has an outcome.
    let appended = within(async {
        loop {
            match log.append(TOPIC, of_one_key(20..25)).await {
                Ok(positions) => return positions,
                Err(error) => assert_eq!(error.retry(), Retry::Backoff, "{error}"),
            }
        }
    })
    .await;
    let mut values = Vec::new();
    while values.len() < 5 {
        for Delivered { position, record } in within(reader.next(10)).await? {
            assert!(appended.contains(&position) || position.offset < 5, "{position:?}");
            values.push(record.value);
        }
    }
    assert_eq!(
        values,
        of_one_key(20..25)
            .into_iter()
            .map(|record| record.value)
            .collect::<Vec<_>>()
    );
    // Positions begin again, and can be committed.
    let end = Position {
        partition: appended[0].partition,
        offset: appended.last().map_or(0, |last| last.offset + 1),
    };
    reader.commit(&[end]).await?;
    drop(reader);
    let next = log.append(TOPIC, of_one_key(25..26)).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    assert_eq!(take(&mut *reader, 1, 10).await?[0].position, next[0]);
    let tailed = within(tail.next(10)).await?;
    assert!(!tailed.is_empty(), "a tail goes on as well");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_of_another_shape_is_refused() -> Outcome {
    let broker = broker!();
    let options = broker.options(&fresh());
    open(&options).await?.append(TOPIC, of_one_key(0..1)).await?;
    let other = KafkaOptions {
        partitions: options.partitions + 1,
        ..options.clone()
    };
    let refused = eventlog::Kafka::open(other, &[TOPIC]).await.map(drop);
    assert!(
        matches!(&refused, Err(Error::Topic { setting: "partitions", found, .. }) if found == "4"),
        "{refused:?}"
    );

    let name = format!("{}compacted", options.prefix);
    let compacted = NewTopic::new(&name, 4, TopicReplication::Fixed(1)).set("cleanup.policy", "compact");
    let created = admin(&broker.address())
        .create_topics([&compacted], &AdminOptions::new())
        .await;
    created.expect("the topic is created");
    let refused = eventlog::Kafka::open(options, &["compacted"]).await.map(drop);
    assert!(
        matches!(
            &refused,
            Err(Error::Topic {
                setting: "cleanup.policy",
                ..
            })
        ),
        "{refused:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn properties_reach_librdkafka_and_wrong_ones_are_named() -> Outcome {
    let broker = broker!();
    let with = |name: &str, value: &str| {
        let mut options = broker.options(&fresh());
        options.properties.insert(name.to_owned(), value.to_owned());
        options
    };
    let refused = open(&with("no.such.property", "1")).await.map(drop);
    assert!(
        matches!(&refused, Err(Error::Invalid { field: "properties", rule }) if rule.contains("no.such.property")),
        "{refused:?}"
    );
    // The broker speaks no TLS: that the connection fails shows that the setting arrived.
    let mut options = with("security.protocol", "ssl");
    options.delivery = Duration::from_secs(1);
    let failed = within(open(&options)).await.map(drop);
    assert!(matches!(&failed, Err(Error::Unavailable { .. })), "{failed:?}");
    open(&with("client.rack", "here")).await.map(drop)
}
