//! What becomes of partitions when members of a group come and go while it shares them.

use std::collections::BTreeSet;
use std::time::Duration;

use eventlog::EventLog as _;
use eventlog::conformance::{numbered, within};
use eventlog::kafka::Options;
use eventlog::testing::Broker;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use super::groups::{GROUP, Member, TOPIC, both};
use super::{Outcome, broker, fresh, open};

/// How long the coordinator may take to answer.
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
        while !is_settled() {}
    };
    let asked = tokio::task::spawn_blocking(asking);
    within(async { asked.await.expect("no panic") }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_member_gave_up_as_it_ended_is_given_to_another_although_it_comes_back() -> Outcome {
    let broker = broker!();
    let prefix = fresh();
    let options = |name: &str| Options {
        instance: Some(name.to_owned()),
        session: Duration::from_mins(1),
        watch: Duration::from_millis(200),
        ..broker.options(&prefix)
    };
    let (first, second) = (open(&options("one")).await?, open(&options("two")).await?);
    let mut one = Member::new("one", first.subscribe(TOPIC, GROUP).await?);
    while one.partitions().len() < 4 {
        within(one.step()).await?;
    }
    // The other is to have two of them, which this one is told when it reads again, and it does not.
    let mut two = Member::new("two", second.subscribe(TOPIC, GROUP).await?);
    let group = format!("{}{TOPIC}:{GROUP}", options("one").prefix);
    tokio::select! {
        () = settled(broker, group, 2) => {}
        step = async { loop { if let Err(error) = two.step().await { return error } } } => return Err(step),
    }
    drop(one);
    drop(first);

    let first = open(&options("one")).await?;
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
