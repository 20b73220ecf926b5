//! Several processes read for one group.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use eventlog::conformance::{after, numbered, record, take, within};
use eventlog::kafka::KafkaOptions;
use eventlog::{Delivered, Error, Event, EventLog, Position, Subscription};

use super::{Outcome, broker, fresh, open};

pub(super) const TOPIC: &str = "contributions";
pub(super) const GROUP: &str = "workers";

/// The records that a member of the group has seen. It commits every record at once.
pub(super) struct Member {
    name: &'static str,
    reader: Box<dyn Subscription>,
    /// For each partition that it has, the next offset it must be given.
    next: BTreeMap<u32, Option<u64>>,
    pub(super) seen: BTreeSet<Position>,
    again: usize,
}

impl Member {
    pub(super) fn new(name: &'static str, reader: Box<dyn Subscription>) -> Self {
        Self {
            name,
            reader,
            next: BTreeMap::new(),
            seen: BTreeSet::new(),
            again: 0,
        }
    }

    pub(super) fn partitions(&self) -> Vec<u32> {
        self.next.keys().copied().collect()
    }

    /// Records an event, which must be consistent with the assignment of the reader.
    fn note(&mut self, event: Event) -> Vec<Delivered> {
        match event {
            Event::Assigned(partitions) => {
                for partition in partitions {
                    let had = self.next.insert(partition, None);
                    assert!(had.is_none(), "{} had partition {partition} already", self.name);
                }
                Vec::new()
            }
            Event::Revoked(partitions) => {
                for partition in partitions {
                    let had = self.next.remove(&partition);
                    assert!(had.is_some(), "{} did not have partition {partition}", self.name);
                }
                Vec::new()
            }
            Event::Records(records) => {
                for Delivered { position, .. } in &records {
                    let next = self.next.get_mut(&position.partition);
                    let next = next.unwrap_or_else(|| panic!("{} does not have {position:?}", self.name));
                    assert!(
                        next.is_none_or(|next| next == position.offset),
                        "{}: {position:?} instead of {next:?}",
                        self.name
                    );
                    *next = Some(position.offset + 1);
                    self.again += usize::from(!self.seen.insert(*position));
                }
                records
            }
        }
    }

    pub(super) async fn step(&mut self) -> Outcome {
        let event = self.reader.event(7).await?;
        let records = self.note(event);
        self.reader.commit(&after(&records)).await
    }
}

/// Lets two members read until `enough`.
pub(super) async fn both(one: &mut Member, two: &mut Member, enough: impl Fn(&Member, &Member) -> bool) -> Outcome {
    while !enough(one, two) {
        within(async {
            tokio::select! {
                step = one.step() => step,
                step = two.step() => step,
            }
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_share_the_partitions_and_every_partition_stays_in_order() -> Outcome {
    let options = broker!().options(&fresh());
    let (first, second) = (open(&options).await?, open(&options).await?);
    let mut appended: BTreeSet<Position> = first.append(TOPIC, numbered(0..100)).await?.into_iter().collect();
    let mut one = Member::new("one", first.subscribe(TOPIC, GROUP).await?);
    while one.seen.len() < 50 {
        within(one.step()).await?;
    }
    assert_eq!(one.partitions(), [0, 1, 2, 3]);

    let mut two = Member::new("two", second.subscribe(TOPIC, GROUP).await?);
    appended.extend(first.append(TOPIC, numbered(100..200)).await?);
    both(&mut one, &mut two, |one, two| {
        one.partitions().len() == 2 && two.partitions().len() == 2
    })
    .await?;
    appended.extend(first.append(TOPIC, numbered(200..300)).await?);
    let all = |one: &Member, two: &Member| one.seen.union(&two.seen).count();
    both(&mut one, &mut two, |one, two| all(one, two) == appended.len()).await?;
    assert!(one.seen.union(&two.seen).eq(&appended));
    assert!(first.stats().revoked > 0, "{:?}", first.stats());

    // One leaves: the other has everything again, from where it was left.
    let before = one.seen.clone();
    let left = two.seen.clone();
    drop(two);
    drop(second);
    let positions = first.append(TOPIC, numbered(300..400)).await?;
    while !positions.iter().all(|position| one.seen.contains(position)) {
        within(one.step()).await?;
    }
    assert_eq!(one.partitions(), [0, 1, 2, 3]);
    let twice = one
        .seen
        .difference(&before)
        .filter(|position| left.contains(position))
        .count();
    assert_eq!(twice, 0, "what had been committed did not come again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_comes_back_under_its_name_moves_no_partition() -> Outcome {
    let broker = broker!();
    let prefix = fresh();
    let options = |name: &str| KafkaOptions {
        instance: Some(name.to_owned()),
        session: Duration::from_mins(1),
        ..broker.options(&prefix)
    };
    let (first, second) = (open(&options("one")).await?, open(&options("two")).await?);
    let mut one = Member::new("one", first.subscribe(TOPIC, GROUP).await?);
    let mut two = Member::new("two", second.subscribe(TOPIC, GROUP).await?);
    both(&mut one, &mut two, |one, two| {
        one.partitions().len() == 2 && two.partitions().len() == 2
    })
    .await?;
    let (moves, partitions) = (first.stats(), two.partitions());
    drop(two);
    drop(second);

    let second = open(&options("two")).await?;
    let mut two = Member::new("two again", second.subscribe(TOPIC, GROUP).await?);
    let appended: BTreeSet<Position> = first.append(TOPIC, numbered(0..100)).await?.into_iter().collect();
    both(&mut one, &mut two, |one, two| one.seen.union(&two.seen).count() == 100).await?;
    assert!(one.seen.union(&two.seen).eq(&appended));
    assert_eq!(two.partitions(), partitions);
    let now = first.stats();
    assert_eq!(
        (now.assigned, now.revoked),
        (moves.assigned, moves.revoked),
        "the other member noticed"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_stopped_reading_cannot_commit_over_its_successor() -> Outcome {
    let broker = broker!();
    let prefix = fresh();
    let slow = KafkaOptions {
        session: Duration::from_secs(2),
        patience: Duration::from_secs(2),
        ..broker.options(&prefix)
    };
    let (zombie, successor) = (open(&slow).await?, open(&broker.options(&prefix)).await?);
    zombie
        .append(TOPIC, (0..50).map(|n| record("key", &format!("{n}"))).collect())
        .await?;
    let mut old = zombie.subscribe(TOPIC, GROUP).await?;
    let begun = take(&mut *old, 10, 10).await?;
    // It reads no more. Its successor is given the partition once the group has noticed.
    let mut new = successor.subscribe(TOPIC, GROUP).await?;
    let delivered = take(&mut *new, 50, 50).await?;
    assert_eq!(delivered.len(), 50, "nothing was committed");
    new.commit(&after(&delivered)).await?;

    old.commit(&after(&begun)).await?;
    // It notices when it reads again, and is refused until then.
    loop {
        if let Event::Revoked(partitions) = within(old.event(10)).await? {
            assert!(partitions.contains(&begun[0].position.partition));
            break;
        }
    }
    drop(old);
    drop(zombie);
    drop(new);
    let log = open(&broker.options(&prefix)).await?;
    let last = successor.append(TOPIC, vec![record("key", "last")]).await?;
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    let next = take(&mut *reader, 1, 10).await?;
    assert_eq!(next[0].position, last[0], "the position of the successor stands");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_of_one_name_are_told() -> Outcome {
    let broker = broker!();
    let options = KafkaOptions {
        instance: Some("same".to_owned()),
        ..broker.options(&fresh())
    };
    let (first, second) = (open(&options).await?, open(&options).await?);
    let mut one = first.subscribe(TOPIC, GROUP).await?;
    let told = within(one.event(1)).await?;
    assert!(matches!(told, Event::Assigned(_)), "{told:?}");
    let busy = first.subscribe(TOPIC, GROUP).await.map(drop);
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    let mut two = second.subscribe(TOPIC, GROUP).await?;
    let told = within(two.event(1)).await?;
    assert!(matches!(told, Event::Assigned(_)), "{told:?}");
    let fenced = within(async {
        loop {
            if let Err(error) = one.event(1).await {
                return error;
            }
        }
    })
    .await;
    assert!(matches!(fenced, Error::Fenced { .. }), "{fenced:?}");
    Ok(())
}
