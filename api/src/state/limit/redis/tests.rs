use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::state::limit::testing::RedisServer;
use crate::state::limit::{CountersHealth, Limiter, conformance};

const RULE: RateRule = RateRule {
    name: "calls",
    limit: 2,
    window: Duration::from_mins(1),
};
/// Longer than a busy machine needs to answer, so that only a Redis that is gone is late.
const PATIENCE: Duration = Duration::from_secs(5);

fn source(last: u8) -> LimitSource {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)).into()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros((1_795_000_020 + seconds) * 1_000_000)
}

async fn flushed(server: &RedisServer) -> RedisCounters {
    let client = Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () = ::redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    RedisCounters::new(&server.url()).unwrap()
}

#[tokio::test]
async fn counters_in_redis_keep_the_rules() {
    let Some(server) = RedisServer::start().await else {
        return;
    };
    conformance::all(|| flushed(&server)).await;
}

#[tokio::test]
async fn every_key_expires_once_its_window_counts_nothing() {
    let Some(server) = RedisServer::start().await else {
        return;
    };
    let redis = flushed(&server).await;
    redis.take(RULE, source(1), at(20)).await.unwrap();
    redis.take(RULE, source(1), at(21)).await.unwrap();
    let client = Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> = ::redis::cmd("KEYS")
        .arg("*")
        .query_async(&mut connection)
        .await
        .unwrap();
    let [key] = keys.as_slice() else {
        panic!("one key was expected: {keys:?}")
    };
    let left: i64 = ::redis::cmd("PTTL")
        .arg(key)
        .query_async(&mut connection)
        .await
        .unwrap();
    assert!((90_000..=100_001).contains(&left), "{left} ms");
}

#[tokio::test]
async fn two_replicas_share_a_limit_until_redis_is_killed_and_again_once_it_is_back() {
    let Some(mut server) = RedisServer::start().await else {
        return;
    };
    let replica = || Limiter::shared(Arc::new(RedisCounters::new(&server.url()).unwrap()), PATIENCE);
    let (one, two) = (replica(), replica());
    assert_eq!(one.take(RULE, source(1), at(0)).await, LimitDecision::Allow);
    assert_eq!(two.take(RULE, source(1), at(0)).await, LimitDecision::Allow);
    assert!(matches!(
        one.take(RULE, source(1), at(0)).await,
        LimitDecision::Deny { .. }
    ));
    assert_eq!(one.health(at(0)).await, CountersHealth::Ok);

    server.kill();
    for replica in [&one, &two] {
        assert_eq!(replica.take(RULE, source(1), at(1)).await, LimitDecision::Allow);
        assert_eq!(replica.take(RULE, source(1), at(1)).await, LimitDecision::Allow);
        assert!(matches!(
            replica.take(RULE, source(1), at(1)).await,
            LimitDecision::Deny { .. }
        ));
        assert_eq!(replica.health(at(1)).await, CountersHealth::Down);
    }

    server.restart().await;
    assert_eq!(one.take(RULE, source(2), at(5)).await, LimitDecision::Allow);
    assert_eq!(two.take(RULE, source(2), at(5)).await, LimitDecision::Allow);
    assert!(matches!(
        two.take(RULE, source(2), at(5)).await,
        LimitDecision::Deny { .. }
    ));
    assert_eq!(two.health(at(5)).await, CountersHealth::Ok);
}

#[tokio::test]
async fn a_redis_that_hangs_delays_few_calls_by_the_time_out_and_loses_its_connection() {
    let Some(server) = RedisServer::start().await else {
        return;
    };
    let patience = Duration::from_millis(75);
    let limiter = Limiter::shared(Arc::new(RedisCounters::new(&server.url()).unwrap()), patience);
    limiter.take(RULE, source(1), at(0)).await;
    server.hang();
    let slow = AtomicU32::new(0);
    for millis in 0..200 {
        let started = std::time::Instant::now();
        let now = Timestamp::from_micros(at(1).micros() + millis * 1_000);
        limiter.take(RULE, source(2), now).await;
        if started.elapsed() >= patience {
            slow.fetch_add(1, Ordering::Relaxed);
        }
    }
    assert_eq!(
        slow.load(Ordering::Relaxed),
        1,
        "one of 200 calls within a second waits"
    );
    assert_eq!(limiter.health(at(2)).await, CountersHealth::Down);
    server.go_on();
    let mut now = 10;
    while limiter.health(at(now)).await != CountersHealth::Ok {
        now += 1;
        assert!(now < 1_000, "the cache is not found again");
    }
}

#[tokio::test]
async fn a_redis_that_is_slow_to_be_reached_is_reached() {
    let Some(server) = RedisServer::start().await else {
        return;
    };
    // A proxy to the server that delays connecting only.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let target = server.url().replace("redis://", "");
    let relaying = tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let target = target.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let mut far = tokio::net::TcpStream::connect(target).await.unwrap();
                tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
            });
        }
    });
    let limiter = Limiter::shared(Arc::new(RedisCounters::new(&url).unwrap()), Duration::from_millis(150));
    let mut looks = 0;
    while limiter.health(at(looks)).await != CountersHealth::Ok {
        looks += 1;
        assert!(looks < 100, "connecting begins anew with every look");
    }
    assert!(looks > 0, "the first look has no time to connect");
    relaying.abort();
}

#[test]
fn an_address_that_is_none_is_refused_without_repeating_it() {
    for url in ["", "localhost:6379", "http://:hush@localhost", "redis://:hush@/x/y"] {
        let error = RedisCounters::new(url).map(|_| ()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"), "{url}: {error:?}");
    }
    let known = RedisCounters::new("redis://:hush@localhost").unwrap();
    assert!(!format!("{known:?}").contains("hush"));
}
