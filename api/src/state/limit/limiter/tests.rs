use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU32};

use async_trait::async_trait;

use super::*;

const RULE: RateRule = RateRule {
    name: "calls",
    limit: 2,
    window: Duration::from_mins(1),
};
const PATIENCE: Duration = Duration::from_millis(75);

/// Counters that fail, or never answer, on demand.
#[derive(Debug, Default)]
struct Moody {
    memory: MemoryCounters,
    failing: AtomicBool,
    silent: AtomicBool,
    asked: AtomicU32,
}

impl Moody {
    async fn mood(&self) -> Result<(), CountersUnavailable> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.failing.load(Ordering::Relaxed) {
            return Err(CountersUnavailable("connection refused".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl LimitCounters for Moody {
    async fn take(
        &self,
        rule: RateRule,
        source: LimitSource,
        now: Timestamp,
    ) -> Result<LimitDecision, CountersUnavailable> {
        self.mood().await?;
        Ok(self.memory.count(rule, source, now))
    }
}

fn two_replicas() -> (Arc<Moody>, Limiter, Limiter) {
    let counters = Arc::new(Moody::default());
    let replica = || Limiter::shared(Arc::clone(&counters) as Arc<dyn LimitCounters>, PATIENCE);
    let (one, two) = (replica(), replica());
    (counters, one, two)
}

fn source() -> LimitSource {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)).into()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_micros(1_795_000_020_000_000 + millis * 1_000)
}

#[tokio::test]
async fn replicas_share_one_limit() {
    let (_, one, two) = two_replicas();
    assert_eq!(one.take(RULE, source(), at(0)).await, LimitDecision::Allow);
    assert_eq!(two.take(RULE, source(), at(0)).await, LimitDecision::Allow);
    assert!(matches!(
        one.take(RULE, source(), at(0)).await,
        LimitDecision::Deny { .. }
    ));
    assert_eq!(one.health(at(1)).await, CountersHealth::Ok);
    assert_eq!(Limiter::default().health(at(1)).await, CountersHealth::Off);
}

#[tokio::test]
async fn while_the_counters_fail_each_replica_counts_for_itself_and_few_calls_ask() {
    let (counters, one, two) = two_replicas();
    counters.failing.store(true, Ordering::Relaxed);
    for limiter in [&one, &two] {
        assert_eq!(limiter.take(RULE, source(), at(0)).await, LimitDecision::Allow);
        assert_eq!(limiter.take(RULE, source(), at(1)).await, LimitDecision::Allow);
        assert!(matches!(
            limiter.take(RULE, source(), at(2)).await,
            LimitDecision::Deny { .. }
        ));
    }
    assert_eq!(counters.asked.load(Ordering::Relaxed), 2, "each replica asked once");
    for millis in 1_000..2_000 {
        one.take(RULE, source(), at(millis)).await;
    }
    assert_eq!(
        counters.asked.load(Ordering::Relaxed),
        3,
        "and once more a second later"
    );
    counters.failing.store(false, Ordering::Relaxed);
    let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)).into();
    assert_eq!(one.take(RULE, other, at(2_100)).await, LimitDecision::Allow);
    assert_eq!(two.take(RULE, other, at(2_100)).await, LimitDecision::Allow);
    assert!(
        matches!(two.take(RULE, other, at(2_100)).await, LimitDecision::Deny { .. }),
        "the limit is one again"
    );
}

#[tokio::test]
async fn counters_that_never_answer_delay_one_call_by_the_time_out() {
    let (counters, one, _) = two_replicas();
    counters.silent.store(true, Ordering::Relaxed);
    for millis in 0..500 {
        one.take(RULE, source(), at(millis)).await;
    }
    assert_eq!(counters.asked.load(Ordering::Relaxed), 1);
    assert_eq!(one.health(at(500)).await, CountersHealth::Down);
}

#[tokio::test]
async fn a_look_at_the_health_finds_counters_that_came_back() {
    let (counters, one, _) = two_replicas();
    counters.failing.store(true, Ordering::Relaxed);
    assert_eq!(one.health(at(0)).await, CountersHealth::Down);
    counters.failing.store(false, Ordering::Relaxed);
    assert_eq!(one.health(at(10)).await, CountersHealth::Ok);
    one.take(RULE, source(), at(11)).await;
    assert_eq!(counters.asked.load(Ordering::Relaxed), 3, "calls ask again at once");
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_keep_the_counters_from_being_asked() {
    let (counters, one, _) = two_replicas();
    counters.failing.store(true, Ordering::Relaxed);
    one.take(RULE, source(), at(3_600_000)).await;
    counters.failing.store(false, Ordering::Relaxed);
    one.take(RULE, source(), at(0)).await;
    assert_eq!(counters.asked.load(Ordering::Relaxed), 2);
}
