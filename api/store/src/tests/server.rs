//! Tests for `PostgreSQL` only: concurrent starts, permissions, and locks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, Connection};
use tokio::sync::Barrier;
use types::{Classify, Kind, Retry};

use crate::conformance::fixture::{World, at, outcome, rejected};
use crate::testing::Postgres;
use crate::writer::{Change, PAUSE};
use crate::{
    DeadLetter, DeadLetterAdded, Error, Idempotency, KeyAdded, KeyRevoked, NewContribution, NewServiceKey, Options,
    Replay, Schema, Store, SubmitOutcome,
};

/// A database on the server that all tests share.
pub(crate) fn fresh() -> Option<(String, ())> {
    Some((Postgres::shared()?.fresh_database(), ()))
}

/// A connection beside the store, as of another replica.
pub(super) async fn beside(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    url.parse::<AnyConnectOptions>().unwrap().connect().await.unwrap()
}

async fn run(connection: &mut AnyConnection, statement: &'static str) {
    sqlx::query(statement).execute(connection).await.unwrap();
}

/// Waits until somebody waits for a lock in this database.
async fn somebody_waits(connection: &mut AnyConnection) {
    loop {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        if waiting > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_together_make_one_schema() {
    let Some((url, ())) = fresh() else { return };
    let mut connecting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = url.clone();
        connecting.spawn(async move { Store::connect(&url, Options::default()).await.map(drop) });
    }
    for connected in connecting.join_all().await {
        connected.unwrap();
    }
}

#[tokio::test]
async fn tables_are_made_only_on_request() {
    let Some((url, ())) = fresh() else { return };
    let existing = Options {
        schema: Schema::Current,
        ..Options::default()
    };
    let error = Store::connect(&url, existing.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Absent), "{error:?}");
    let tables: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'")
        .fetch_one(&mut beside(&url).await)
        .await
        .unwrap();
    assert_eq!(tables, 0);
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    Store::connect(&url, existing).await.unwrap().ping().await.unwrap();
}

#[tokio::test]
async fn a_schema_of_a_newer_build_is_refused() {
    let Some((url, ())) = fresh() else { return };
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    run(
        &mut beside(&url).await,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'later', TRUE, '', 0)",
    )
    .await;
    let error = Store::connect(&url, Options::default()).await.unwrap_err();
    assert!(matches!(error, Error::Schema(_)), "{error:?}");
}

#[tokio::test]
async fn what_the_server_does_not_know_is_about_the_url() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh_database();
    let database = url.rsplit_once('/').unwrap().1.to_owned();
    server.administer("CREATE ROLE guarded LOGIN PASSWORD 'p/w %' ");
    server.administer(&format!("ALTER DATABASE {database} OWNER TO guarded"));
    let as_guarded = |password: &str| format!("postgres://guarded:{password}@{}/{database}", server.address());
    Store::connect(&as_guarded("p%2Fw%20%25"), Options::default())
        .await
        .unwrap()
        .close()
        .await;
    for wrong in [as_guarded("other"), Postgres::url("nowhere", server.address())] {
        let error = Store::connect(&wrong, Options::default()).await.unwrap_err();
        assert!(matches!(error, Error::Url { .. }), "{error:?}");
        assert!(!error.to_string().contains("other"), "{error}");
    }
    let text = format!(
        "{:?}",
        Store::connect(&as_guarded("p%2Fw%20%25"), Options::default()).await
    );
    assert!(!text.contains("p%2F") && !text.contains("p/w"), "{text}");
}

#[tokio::test]
async fn a_server_that_has_no_place_left_is_unavailable() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh_database();
    let database = url.rsplit_once('/').unwrap().1.to_owned();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    server.administer(&format!("ALTER DATABASE {database} CONNECTION LIMIT 2"));
    server.administer("CREATE ROLE crowded LOGIN IN ROLE sluice");
    let crowded = url.replace("sluice@", "crowded@");
    let error = Store::connect(&crowded, Options::default()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.retry()),
        (Kind::Unavailable, Retry::Backoff),
        "{error:?}"
    );
    store.ping().await.unwrap();
}

#[tokio::test]
async fn the_settings_are_those_that_durability_and_time_limits_need() {
    let Some((url, ())) = fresh() else { return };
    let database = url.rsplit_once('/').unwrap().1;
    run(
        &mut beside(&url).await,
        // The text contains only the name of the test's own database.
        format!("ALTER DATABASE {database} SET synchronous_commit = off").leak(),
    )
    .await;
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let settings: Vec<String> = store
        .write(|cx| {
            Box::pin(async move {
                let mut settings = Vec::new();
                for name in [
                    "synchronous_commit",
                    "transaction_isolation",
                    "statement_timeout",
                    "lock_timeout",
                    "idle_in_transaction_session_timeout",
                ] {
                    let setting = sqlx::query_scalar("SELECT current_setting($1)").bind(name);
                    settings.push(setting.fetch_one(&mut *cx).await?);
                }
                Ok(Change::Undo(settings))
            })
        })
        .await
        .unwrap();
    assert_eq!(settings, ["on", "read committed", "10s", "5s", "10s"]);
    let refused = sqlx::query("DELETE FROM outbox").execute(store.readers()).await;
    assert!(refused.unwrap_err().to_string().contains("read-only"));
}

#[tokio::test]
async fn waiting_for_another_replica_ends_and_says_that_trying_again_may_help() {
    let Some((url, ())) = fresh() else { return };
    let impatient = Options {
        busy_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let store = Store::connect(&url, impatient).await.unwrap();
    store.usage_count(1, "search", 1).await.unwrap();
    let mut other = beside(&url).await;
    run(&mut other, "BEGIN").await;
    run(&mut other, "UPDATE usage_counts SET used = 10").await;
    let error = store.usage_count(1, "search", 1).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    // Work that it does not wait for continues.
    store.usage_count(1, "query", 1).await.unwrap();
    run(&mut other, "COMMIT").await;
    store.usage_count(1, "search", 1).await.unwrap();
    let counts = [("query".to_owned(), 1), ("search".to_owned(), 11)];
    assert_eq!(store.usage(1).await.unwrap(), counts);
}

#[tokio::test]
async fn changes_that_wait_for_each_other_are_both_made() {
    let Some((url, ())) = fresh() else { return };
    let store = Store::connect(&url, Options::default()).await.unwrap();
    for kind in ["a", "b"] {
        store.usage_count(1, kind, 1).await.unwrap();
    }
    let (meeting, runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU32::new(0)));
    let ended: Arc<Mutex<Option<Instant>>> = Arc::default();
    let crossing = |first: &'static str, second: &'static str| {
        let (meeting, runs, ended) = (Arc::clone(&meeting), Arc::clone(&runs), Arc::clone(&ended));
        store.write(move |cx| {
            Box::pin(async move {
                let run = runs.fetch_add(1, Ordering::Relaxed);
                if let Some(ended) = *ended.lock().unwrap() {
                    assert!(ended.elapsed() >= PAUSE, "it stands back for the one it lost to");
                }
                let add = "UPDATE usage_counts SET used = used + 1 WHERE kind = $1";
                sqlx::query(add).bind(first).execute(&mut *cx).await?;
                if run < 2 {
                    meeting.wait().await;
                }
                let added = sqlx::query(add).bind(second).execute(&mut *cx).await;
                if added.is_err() {
                    *ended.lock().unwrap() = Some(Instant::now());
                }
                added?;
                Ok(Change::Keep(()))
            })
        })
    };
    let (one, other) = tokio::join!(crossing("a", "b"), crossing("b", "a"));
    one.unwrap();
    other.unwrap();
    // The scheduler decides how often they meet: a transaction that the server ended may begin again before the other
    // continues.
    let runs = runs.load(Ordering::Relaxed);
    assert!(runs >= 3, "the one that the server ended ran again: {runs} runs");
    let counts = [("a".to_owned(), 3), ("b".to_owned(), 3)];
    assert_eq!(store.usage(1).await.unwrap(), counts);
}

#[tokio::test]
async fn a_key_that_is_claimed_anew_is_not_pruned() {
    let Some((url, ())) = fresh() else { return };
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let world = World::new(&store).await;
    let keyed = NewContribution {
        idempotency: Some(Idempotency {
            key: "key".to_owned(),
            body_hash: [1; 32],
            window: Duration::from_hours(24),
        }),
        ..world.contribution()
    };
    assert_eq!(
        store.contribution_submit(keyed).await.unwrap(),
        SubmitOutcome::Submitted
    );
    let mut other = beside(&url).await;
    run(&mut other, "BEGIN").await;
    run(
        &mut other,
        "UPDATE idempotency_keys SET created_at = created_at + 1000000",
    )
    .await;
    let pruning = {
        let store = store.clone();
        tokio::spawn(async move { store.idempotency_prune(at(1), 10).await })
    };
    somebody_waits(&mut beside(&url).await).await;
    run(&mut other, "COMMIT").await;
    assert_eq!(pruning.await.unwrap().unwrap(), 0);
    assert_eq!(store.idempotency_prune(at(2), 10).await.unwrap(), 1);
}

#[tokio::test]
async fn a_replay_waits_for_the_outcome_that_is_being_applied() {
    let Some((url, ())) = fresh() else { return };
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let world = World::new(&store).await;
    let id = world.submitted(&store, 1).await[0];
    let letter = DeadLetter {
        id: "letter".to_owned(),
        topic: "contributions".to_owned(),
        partition: 0,
        offset: 7,
        contribution: Some(id),
        unit: None,
        payload: b"payload".to_vec(),
        reason: "it ended its worker".to_owned(),
        now: at(11),
    };
    assert_eq!(store.dead_letter_add(letter).await.unwrap(), DeadLetterAdded::Added);
    let mut other = beside(&url).await;
    run(&mut other, "BEGIN").await;
    run(
        &mut other,
        "UPDATE contributions SET status = 'rejected', reject_code = 'unprocessable', decided_at = 1",
    )
    .await;
    run(&mut other, "DELETE FROM outbox").await;
    let replaying = {
        let store = store.clone();
        let renew = |payload: &[u8], _| Some(payload.to_vec());
        tokio::spawn(async move { store.dead_letter_replay("letter".to_owned(), renew, at(12)).await })
    };
    somebody_waits(&mut beside(&url).await).await;
    run(&mut other, "COMMIT").await;
    let reopened = Replay::Reopened {
        contribution: id,
        generation: 1,
    };
    assert_eq!(replaying.await.unwrap().unwrap(), reopened);
    let late = store
        .outcomes_apply(vec![outcome(id, rejected("refused"))])
        .await
        .unwrap();
    assert!(!late[0].changed);
}

#[tokio::test]
async fn a_key_is_judged_by_what_is_current_when_it_is_its_turn() {
    let Some((url, ())) = fresh() else { return };
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let key = |name: &str| NewServiceKey {
        key_id: name.to_owned(),
        public_key: [1; 32],
        secret: [2; 32],
        created_at: at(0),
        endorsement: None,
    };
    assert_eq!(
        store.service_key_add(None, key("a"), at(0)).await.unwrap(),
        KeyAdded::Added
    );
    let mut other = beside(&url).await;
    run(&mut other, "BEGIN").await;
    run(&mut other, "UPDATE service_keys SET retired_at = 5 WHERE number = 1").await;
    run(
        &mut other,
        "INSERT INTO service_keys (number, key_id, public_key, secret, created_at, endorsed_by, endorsement)
         SELECT 2, 'b', public_key, secret, created_at, 'a', public_key FROM service_keys",
    )
    .await;
    let revoking = {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .service_key_revoke("a".to_owned(), "lost".to_owned(), at(1), None)
                .await
        })
    };
    somebody_waits(&mut beside(&url).await).await;
    run(&mut other, "COMMIT").await;
    assert_eq!(revoking.await.unwrap().unwrap(), KeyRevoked::Revoked);
    other.close().await.unwrap();
}
