//! Brokers that die, stop, or cannot be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventlog::conformance::{record, take, within};
use eventlog::kafka::KafkaOptions;
use eventlog::testing::{Broker, Fault};
use eventlog::{Delivered, Error, Event, EventLog, Kafka, Record};
use tokio::sync::{MutexGuard, watch};
use tokio::task::JoinHandle;
use types::{Classify, Retry};

use super::{Outcome, PROXY, VICTIM, broker, fresh, libraries, open, start};

const TOPIC: &str = "contributions";
const GROUP: &str = "workers";
/// The time limit of an append in these tests.
const DELIVERY: Duration = Duration::from_secs(3);
/// Within twice the delivery limit an append answers; the machine may be busy.
const BOUND: Duration = Duration::from_secs(3 * 2 + 4);

fn quick(broker: &Broker) -> KafkaOptions {
    KafkaOptions {
        delivery: DELIVERY,
        ..broker.options(&fresh())
    }
}

/// A log that goes through the proxy of the shared broker, for whoever has that.
async fn proxied(broker: &Broker) -> Result<(MutexGuard<'static, ()>, Arc<Kafka>), Error> {
    let mine = PROXY.lock().await;
    let options = KafkaOptions {
        brokers: broker.proxied(),
        ..quick(broker)
    };
    Ok((mine, open(&options).await?))
}

/// The numbers of appends that were acknowledged and that failed.
type Load = watch::Sender<(usize, usize)>;

/// Waits until the load says so.
async fn until(load: &Load, enough: impl FnMut(&(usize, usize)) -> bool) {
    let mut load = load.subscribe();
    within(load.wait_for(enough)).await.expect("the load goes on");
}

/// Appends numbers of one key, each until it is acknowledged; which were tried more than once.
fn appender(log: &Arc<Kafka>, key: usize, count: usize, load: &Load) -> JoinHandle<BTreeSet<usize>> {
    let (log, load) = (Arc::clone(log), load.clone());
    tokio::spawn(async move {
        let mut again = BTreeSet::new();
        for number in 0..count {
            while let Err(error) = log
                .append(TOPIC, vec![record(&format!("key {key}"), &format!("{number}"))])
                .await
            {
                assert_eq!(error.retry(), Retry::Backoff, "{error}");
                again.insert(number);
                load.send_modify(|(_, failed)| *failed += 1);
            }
            load.send_modify(|(done, _)| *done += 1);
        }
        again
    })
}

/// Asserts that each key has every number, first seen in order, and twice only where it was tried again.
fn assert_complete(delivered: Vec<Delivered>, count: usize, again: &[BTreeSet<usize>]) {
    let mut by_key: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
    for Delivered { record, .. } in delivered {
        let number = std::str::from_utf8(&record.value)
            .ok()
            .and_then(|text| text.parse().ok());
        by_key.entry(record.key).or_default().push(number.expect("a number"));
    }
    assert_eq!(by_key.len(), again.len());
    for (key, again) in again.iter().enumerate() {
        let numbers = &by_key[format!("key {key}").as_bytes()];
        let mut seen = BTreeSet::new();
        let firsts: Vec<usize> = numbers.iter().copied().filter(|number| seen.insert(*number)).collect();
        assert_eq!(firsts, (0..count).collect::<Vec<_>>(), "key {key}");
        for number in &seen {
            let times = numbers.iter().filter(|other| *other == number).count();
            assert!(
                times == 1 || again.contains(number),
                "key {key}: {number} came {times} times"
            );
        }
    }
}

/// Everything that is in the topic now.
async fn everything(log: &Kafka) -> Result<Vec<Delivered>, Error> {
    let bounds = log.bounds(TOPIC).await?;
    let count = bounds.iter().map(|bounds| bounds.next - bounds.first).sum::<u64>();
    let mut all = log.recent(TOPIC, u64::MAX).await?;
    take(&mut *all, usize::try_from(count).unwrap_or(usize::MAX), 1000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_the_broker_was_killed_is_read_in_order() -> Outcome {
    let Some(libraries) = libraries() else { return Ok(()) };
    let mut victim = VICTIM.lock().await;
    if victim.is_none() {
        *victim = Some(start(libraries).await);
    }
    let Some(broker) = &*victim else { return Ok(()) };
    let log = open(&quick(broker)).await?;
    let (keys, count) = (4, 500);
    let load = Load::default();
    let mut reader = log.subscribe(TOPIC, GROUP).await?;
    // Why first: until it has its partitions, which takes long, the load would be over.
    let told = within(reader.event(1)).await?;
    assert!(matches!(told, Event::Assigned(_)), "{told:?}");
    let appenders: Vec<_> = (0..keys).map(|key| appender(&log, key, count, &load)).collect();
    let first = take(&mut *reader, 20, 20).await?;
    until(&load, |(done, _)| *done >= 100).await;
    broker.kill().expect("the broker is killed");
    assert!(load.borrow().0 < keys * count, "the load was over before");
    tokio::task::block_in_place(|| broker.resume_after_kill()).expect("the broker starts again");
    let mut again = Vec::new();
    for appender in appenders {
        again.push(within(appender).await.expect("an appender that ends"));
    }
    assert_complete(everything(&log).await?, count, &again);
    // The reader goes on as well.
    let bounds = log.bounds(TOPIC).await?;
    let all = bounds.iter().map(|bounds| bounds.next).sum::<u64>();
    let mut seen: BTreeSet<_> = first.iter().map(|delivered| delivered.position).collect();
    while (seen.len() as u64) < all {
        seen.extend(
            within(reader.next(100))
                .await?
                .iter()
                .map(|delivered| delivered.position),
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_stands_still_fails_appends_in_time_and_is_used_again() -> Outcome {
    let Some(libraries) = libraries() else { return Ok(()) };
    let mut victim = VICTIM.lock().await;
    if victim.is_none() {
        *victim = Some(start(libraries).await);
    }
    let Some(broker) = &*victim else { return Ok(()) };
    let log = open(&quick(broker)).await?;
    let mut tail = log.tail(TOPIC).await?;
    log.append(TOPIC, vec![record("key", "before")]).await?;
    broker.pause().expect("SIGSTOP");
    let begun = Instant::now();
    let failed = log.append(TOPIC, vec![record("key", "during")]).await;
    let took = begun.elapsed();
    broker.unpause().expect("SIGCONT");
    let failed = failed.map(drop).expect_err("nobody could acknowledge it");
    assert_eq!(failed.retry(), Retry::Backoff, "{failed}");
    assert!(took < BOUND, "{took:?}");
    appender(&log, 0, 1, &Load::default()).await.expect("it is appended");
    let mut seen = Vec::new();
    while !seen.iter().any(|value: &Bytes| value == "0") {
        seen.extend(
            within(tail.next(10))
                .await?
                .into_iter()
                .map(|delivered| delivered.record.value),
        );
    }
    assert_eq!(seen[0], "before");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_lost_lose_no_record_and_double_only_what_was_not_acknowledged() -> Outcome {
    let broker = broker!();
    let (_mine, log) = proxied(broker).await?;
    let before = broker.proxy().counts();
    let (keys, count) = (3, 60);
    let load = Load::default();
    let appenders: Vec<_> = (0..keys).map(|key| appender(&log, key, count, &load)).collect();
    for (fault, begins) in [
        (Fault::LoseAnswers, 10),
        (Fault::Cut, 30),
        (Fault::LoseRequests, 50),
        (Fault::Stall, 70),
        (Fault::Delay(Duration::from_millis(20)), 90),
    ] {
        until(&load, |(done, _)| *done >= begins).await;
        let (counts, (done, failed)) = (broker.proxy().counts(), *load.borrow());
        broker.proxy().set(fault);
        // Until it was felt.
        until(&load, |now| match fault {
            Fault::LoseAnswers => broker.proxy().counts().lost_answers > counts.lost_answers && now.1 > failed,
            Fault::LoseRequests => broker.proxy().counts().lost_requests > counts.lost_requests && now.1 > failed,
            Fault::Delay(_) => now.0 >= done + 10,
            Fault::Cut | Fault::Stall | Fault::None => now.1 > failed,
        })
        .await;
        broker.proxy().set(Fault::None);
    }
    let mut again = Vec::new();
    for appender in appenders {
        again.push(within(appender).await.expect("an appender that ends"));
    }
    let counts = broker.proxy().counts();
    assert!(counts.lost_answers > before.lost_answers, "{counts:?}");
    assert!(counts.lost_requests > before.lost_requests, "{counts:?}");
    assert!(counts.cut > before.cut, "{counts:?}");
    assert!(log.stats().failed_appends > 0, "{:?}", log.stats());
    assert_complete(everything(&log).await?, count, &again);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_looked_at_keeps_nobody_from_one_that_is_known() -> Outcome {
    let broker = broker!();
    let (_mine, log) = proxied(broker).await?;
    log.append(TOPIC, vec![record("key", "before")]).await?;
    broker.proxy().set(Fault::Stall);
    let mut looking = std::pin::pin!(log.subscribe("another", GROUP));
    let known = tokio::select! {
        biased;
        _ = &mut looking => None,
        known = log.subscribe(TOPIC, GROUP) => Some(known.map(drop)),
    };
    broker.proxy().set(Fault::None);
    if known.is_some() {
        // It may have given up meanwhile.
        drop(looking.await);
    }
    known.expect("it waits for nobody")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_to_a_broker_that_is_away_take_bounded_memory_and_time() -> Outcome {
    const MIB: usize = 1 << 20;
    let broker = broker!();
    let (_mine, log) = proxied(broker).await?;
    log.append(TOPIC, vec![record("key", "before")]).await?;
    broker.proxy().set(Fault::Stall);
    let value = Bytes::from(vec![7; MIB]);
    let (before, begun) = (resident(), Instant::now());
    let appends: Vec<_> = (0..1000)
        .map(|n: u32| {
            let record = Record {
                key: Bytes::copy_from_slice(&n.to_be_bytes()),
                value: value.clone(),
            };
            let log = Arc::clone(&log);
            tokio::spawn(async move { log.append(TOPIC, vec![record]).await })
        })
        .collect();
    let mut most = 0;
    let mut failed = 0;
    for append in appends {
        most = most.max(resident());
        let answer = append.await.expect("an append that ends");
        failed += usize::from(answer.is_err_and(|error| error.retry() == Retry::Backoff));
    }
    let took = begun.elapsed();
    broker.proxy().set(Fault::None);
    assert_eq!(failed, 1000);
    assert!(took < BOUND + DELIVERY, "{took:?}");
    let grown = most.saturating_sub(before);
    assert!(grown < 400 * MIB, "{} MiB for 1000 MiB of appends", grown / MIB);
    appender(&log, 0, 1, &Load::default()).await.expect("it is appended");
    Ok(())
}

/// The memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a line");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

#[tokio::test]
async fn nobody_listening_is_an_error_that_says_so() {
    let options = KafkaOptions {
        delivery: Duration::from_secs(1),
        ..KafkaOptions::new("127.0.0.1:1")
    };
    let refused = within(open(&options)).await.map(drop);
    assert!(
        matches!(&refused, Err(Error::Unavailable { cause, .. }) if cause.contains("127.0.0.1:1")),
        "{refused:?}"
    );
}
