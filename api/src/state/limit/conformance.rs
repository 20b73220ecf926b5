//! Conformance suite of [`LimitCounters`].
//!
//! Invariant: each scenario begins with counters that have counted nothing.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking and says what it did")]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use types::Timestamp;

use super::{LimitCounters, LimitDecision, LimitSource, RateRule};

/// Runs every scenario on counters that `fresh` makes.
pub async fn all<C, F, Fut>(fresh: F)
where
    C: LimitCounters + 'static,
    F: Fn() -> Fut,
    Fut: Future<Output = C>,
{
    the_limit_holds_within_a_window_and_for_one_address(&fresh().await).await;
    the_turn_of_a_window_admits_no_second_burst(&fresh().await).await;
    a_call_that_comes_late_forgets_no_other(&fresh().await).await;
    a_call_is_admitted_after_its_retry_after(&fresh().await).await;
    rules_do_not_count_each_other(&fresh().await).await;
    callers_at_once_share_one_limit(Arc::new(fresh().await)).await;
}

fn source(text: &str) -> LimitSource {
    text.parse::<IpAddr>().unwrap().into()
}

/// Returns a rule of `limit` calls per minute.
const fn rule(limit: u32) -> RateRule {
    RateRule {
        name: "calls",
        limit,
        window: Duration::from_mins(1),
    }
}

/// Returns a time `seconds` after a minute boundary, in the range of real clocks.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros((1_795_000_020 + seconds) * 1_000_000)
}

async fn the_limit_holds_within_a_window_and_for_one_address(counters: &dyn LimitCounters) {
    let (one, two) = (source("192.0.2.1"), source("192.0.2.2"));
    for (source, now, expected) in [
        (one, 70, LimitDecision::Allow),
        (one, 71, LimitDecision::Allow),
        (one, 75, LimitDecision::Deny { retry_after: 46 }),
        (two, 75, LimitDecision::Allow),
        (one, 180, LimitDecision::Allow),
    ] {
        assert_eq!(
            counters.take(rule(2), source, at(now)).await.unwrap(),
            expected,
            "at {now}"
        );
    }
}

async fn the_turn_of_a_window_admits_no_second_burst(counters: &dyn LimitCounters) {
    let one = source("192.0.2.1");
    for (now, expected) in [(119, 300), (120, 0), (126, 30), (150, 120), (240, 300)] {
        let mut admitted = 0;
        for _ in 0..400 {
            let decision = counters.take(rule(300), one, at(now)).await.unwrap();
            admitted += u32::from(decision == LimitDecision::Allow);
        }
        assert_eq!(admitted, expected, "at {now}");
    }
}

async fn a_call_that_comes_late_forgets_no_other(counters: &dyn LimitCounters) {
    let (one, late) = (source("192.0.2.1"), source("192.0.2.2"));
    let take = async |source, now| counters.take(rule(2), source, at(now)).await.unwrap();
    assert_eq!(take(one, 119).await, LimitDecision::Allow);
    assert_eq!(take(one, 120).await, LimitDecision::Allow);
    // The call read its time before the turn of the window and is counted after it.
    assert_eq!(take(late, 119).await, LimitDecision::Allow);
    assert!(matches!(take(one, 120).await, LimitDecision::Deny { .. }));
}

async fn a_call_is_admitted_after_its_retry_after(counters: &dyn LimitCounters) {
    let one = source("192.0.2.1");
    let mut now = 7;
    for _ in 0..50 {
        if let LimitDecision::Deny { retry_after: wait } = counters.take(rule(3), one, at(now)).await.unwrap() {
            now += i64::try_from(wait).unwrap();
            let decision = counters.take(rule(3), one, at(now)).await.unwrap();
            assert_eq!(decision, LimitDecision::Allow, "at {now}");
        }
    }
}

async fn rules_do_not_count_each_other(counters: &dyn LimitCounters) {
    let one = source("192.0.2.1");
    let other = RateRule {
        name: "registrations",
        ..rule(1)
    };
    for rule in [rule(1), other] {
        assert_eq!(counters.take(rule, one, at(0)).await.unwrap(), LimitDecision::Allow);
        assert!(matches!(
            counters.take(rule, one, at(0)).await.unwrap(),
            LimitDecision::Deny { .. }
        ));
    }
}

async fn callers_at_once_share_one_limit(counters: Arc<dyn LimitCounters>) {
    let one = source("192.0.2.1");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let counters = Arc::clone(&counters);
        callers.spawn(async move {
            let mut admitted = 0;
            for _ in 0..20 {
                let decision = counters.take(rule(50), one, at(0)).await.unwrap();
                admitted += u32::from(decision == LimitDecision::Allow);
            }
            admitted
        });
    }
    let admitted: u32 = callers.join_all().await.into_iter().sum();
    assert_eq!(admitted, 50);
}
