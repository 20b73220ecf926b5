//! What becomes of partitions when members of a group come and go while it shares them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::conformance::{numbered, within};
use eventlog::kafka::KafkaOptions;
use eventlog::testing::Broker;
use eventlog::{Error, EventLog as _, Kafka};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use super::groups::{GROUP, Member, TOPIC, both};
use super::{Outcome, broker, fresh, open};

/// The time limit of a request to the coordinator.
const ANSWER: Duration = Duration::from_secs(10);

/// Waits until the coordinator has so many members in the group, and each knows what it is to have.
async fn settled(broker: &Broker, group: String, members: usize) {
    let address = broker.address();
    let asking = move || {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", address)
            .create()
            .expect("a client");
        let is_settled = || {
            let told = client.fetch_group_list(Some(&group), ANSWER).expect("an answer");
            let mut groups = told.groups().iter();
            groups.any(|group| group.state() == "Stable" && group.members().len() == members)
        };
        let until = Instant::now() + 6 * ANSWER;
        while !is_settled() {
            assert!(Instant::now() < until, "the group does not settle");
        }
    };
    tokio::task::spawn_blocking(asking).await.expect("it settles");
}

/// The interval of the health check.
const WATCH: Duration = Duration::from_millis(200);

/// Two members that were given partitions; the first has all, has to give up two of them, and has not read since.
async fn between_the_steps(broker: &Broker, prefix: &str) -> Result<[(Arc<Kafka>, Member); 2], Error> {
    let (first, second) = (
        open(&options(broker, prefix, "one")).await?,
        open(&options(broker, prefix, "two")).await?,
    );
    let mut one = Member::new("one", first.subscribe(TOPIC, GROUP).await?);
    while one.partitions().len() < 4 {
        within(one.step()).await?;
    }
    let mut two = Member::new("two", second.subscribe(TOPIC, GROUP).await?);
    let group = format!("{}{TOPIC}:{GROUP}", options(broker, prefix, "one").prefix);
    tokio::select! {
        () = settled(broker, group, 2) => {}
        error = async { loop { if let Err(error) = two.step().await { return error } } } => return Err(error),
    }
    Ok([(first, one), (second, two)])
}

fn options(broker: &Broker, prefix: &str, name: &str) -> KafkaOptions {
    KafkaOptions {
        instance: Some(name.to_owned()),
        session: Duration::from_mins(1),
        watch: WATCH,
        ..broker.options(prefix)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_of_a_member_that_ended_go_to_another() -> Outcome {
    let broker = broker!();
    let prefix = fresh();
    let [(first, one), (_second, mut two)] = between_the_steps(broker, &prefix).await?;
    drop(one);
    drop(first);

    let first = open(&options(broker, &prefix, "one")).await?;
    let mut one = Member::new("one again", first.subscribe(TOPIC, GROUP).await?);
    let appended: BTreeSet<_> = first.append(TOPIC, numbered(0..100)).await?.into_iter().collect();
    both(&mut one, &mut two, |one, two| {
        let shared = one.partitions().len() == 2 && two.partitions().len() == 2;
        shared && one.seen.union(&two.seen).count() == appended.len()
    })
    .await?;
    assert!(one.seen.union(&two.seen).eq(&appended));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_slow_to_give_partitions_up_makes_nobody_leave() -> Outcome {
    let broker = broker!();
    let [(first, mut one), (second, mut two)] = between_the_steps(broker, &fresh()).await?;
    // The other is looked after many times meanwhile.
    let reading = async {
        loop {
            if let Err(error) = two.step().await {
                return error;
            }
        }
    };
    if let Ok(error) = tokio::time::timeout(20 * WATCH, reading).await {
        return Err(error);
    }
    assert_eq!(second.stats().consumers_restarted, 0);
    both(&mut one, &mut two, |one, two| {
        one.partitions().len() == 2 && two.partitions().len() == 2
    })
    .await?;
    assert_eq!([first, second].map(|log| log.stats().consumers_restarted), [0, 0]);
    Ok(())
}
