//! The conformance suite on every engine of this build, and tests for single engines.

mod earlier_builds;

use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use types::{Classify, Kind};

use crate::conformance;
use crate::conformance::fixture::{self, World, merged, outcome};
use crate::{
    AgentCreated, AllowanceKind, Error, NewAgent, OperatorCreated, Options, Schema, SignedUp, Store, StoredVector,
};

mod connections;
mod erased;
#[cfg(feature = "postgres")]
mod faults;
mod parity;
#[cfg(feature = "faults")]
mod planted;
#[cfg(feature = "postgres")]
pub(crate) mod server;
#[cfg(feature = "postgres")]
mod tls;

crate::store_suite!(sqlite, || Some(crate::tests::fresh_file()));
#[cfg(feature = "postgres")]
crate::store_suite!(postgres, crate::tests::server::fresh);

/// A database in a folder that goes with the guard.
pub(crate) fn fresh_file() -> (String, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (format!("sqlite://{}/sluice.db", folder.path().display()), folder)
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_restart() {
    let (url, _folder) = fresh_file();
    for day in 0..3 {
        let store = Store::connect(&url, Options::default()).await.unwrap();
        store.usage_count(day, "search", 1).await.unwrap();
        store.close().await;
    }
    let store = Store::connect(&url, Options::default()).await.unwrap();
    for day in 0..3 {
        assert_eq!(store.usage(day).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_made_only_on_request() {
    let (url, folder) = fresh_file();
    let existing = Options {
        schema: Schema::Current,
        ..Options::default()
    };
    let error = Store::connect(&url, existing.clone()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    Store::connect(&url, existing).await.unwrap().ping().await.unwrap();
}

#[tokio::test]
async fn a_path_with_odd_characters_can_be_percent_encoded() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/a%20b%3Fc.db", folder.path().display());
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    assert!(folder.path().join("a b?c.db").exists());
}

#[tokio::test]
async fn a_schema_of_a_newer_build_is_refused() {
    let (url, folder) = fresh_file();
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(&format!("sqlite://{}/sluice.db", folder.path().display()))
        .await
        .unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'later', 1, $1, 0)",
    )
    .bind(vec![0_u8])
    .execute(&pool)
    .await
    .unwrap();
    pool.close().await;
    let error = Store::connect(&url, Options::default()).await.unwrap_err();
    assert!(matches!(error, Error::Schema(_)), "{error:?}");
}

/// Faults that the checker of knowledge must find, each planted by one statement that no method of the store makes.
#[tokio::test]
async fn a_contradiction_about_knowledge_is_found() {
    for (broken, rule) in [
        ("DELETE FROM unit_outbox", "outbox"),
        ("DELETE FROM points_events WHERE kind = 'published'", "event of points"),
        ("UPDATE units SET number = 2 WHERE number = 1", "count from 1"),
        ("UPDATE chains SET best_score = 99", "best total"),
        ("UPDATE points_agents SET points = points + 1", "those of its events"),
        ("UPDATE points_days SET points = 0", "those of its days"),
        ("DELETE FROM unit_reads", "first read"),
        (
            "UPDATE unit_reads SET operator_id = (SELECT operator_id FROM chains LIMIT 1)",
            "own operator",
        ),
        ("UPDATE chains SET readers = 7", "sums of a chain"),
        ("UPDATE allowances SET used = 9", "allowance"),
    ] {
        let (url, _folder) = fresh_file();
        let store = Store::connect(&url, Options::default()).await.unwrap();
        let world = conformance::knowledge::World::new(&store).await;
        let one = world.published(&store, "one", 60).await;
        conformance::knowledge::submitted(&store, world.version("two")).await;
        assert!(
            store
                .knowledge()
                .read(one, one, world.reader, fixture::at(20))
                .await
                .unwrap()
        );
        assert_eq!(store.knowledge().faults(10).await.unwrap(), []);
        let pool = sqlx::AnyPool::connect(&url).await.unwrap();
        sqlx::query(broken).execute(&pool).await.unwrap();
        pool.close().await;
        let faults = store.knowledge().faults(10).await.unwrap();
        assert!(
            faults.iter().any(|fault| fault.rule.contains(rule)),
            "{broken}: {faults:?}"
        );
    }
}

/// Excluded events count neither for the sums nor for the order of the ranking, and stay in the ledger.
#[tokio::test]
async fn an_excluded_event_is_left_out_of_the_ranking() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let world = conformance::knowledge::World::new(&store).await;
    world.published(&store, "one", 60).await;
    world.published(&store, "two", 70).await;
    let pool = sqlx::AnyPool::connect(&url).await.unwrap();
    sqlx::query(
        "INSERT INTO points_exclusions (event_id, rule, at) SELECT id, 'circle', 0 FROM points_events WHERE points = 60",
    )
    .execute(&pool)
    .await
    .unwrap();
    pool.close().await;
    for since in [None, Some(fixture::at(10).day())] {
        let ranked = store.points().ranking(since, 10).await.unwrap();
        assert_eq!((ranked[0].sums.points, ranked[0].sums.published), (70, 1), "{since:?}");
    }
    assert_eq!(store.points().of_agent(world.author.0).await.unwrap().points, 130);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_connect_to_a_new_database_at_once() {
    let (url, _folder) = fresh_file();
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
async fn the_connection_settings_are_those_that_durability_needs() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let settings = store
        .write(|cx| {
            Box::pin(async move {
                let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *cx).await?;
                let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *cx).await?;
                let foreign_keys: i64 = sqlx::query_scalar("PRAGMA foreign_keys").fetch_one(&mut *cx).await?;
                Ok(crate::writer::Change::Undo((mode, synchronous, foreign_keys)))
            })
        })
        .await
        .unwrap();
    assert_eq!(settings, ("wal".to_owned(), 2, 1));
}

const CHILD_URL: &str = "STORE_TEST_CHILD_URL";
const CHANGES: u64 = 25;

#[tokio::test]
async fn another_process_may_write_to_the_same_file() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::counts_when_started_as_another_process"])
        .env(CHILD_URL, &url)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..CHANGES {
        store.usage_count(1, "parent", 1).await.unwrap();
    }
    let exit = tokio::task::spawn_blocking(move || child.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(exit.success());
    let expected = [("child".to_owned(), CHANGES), ("parent".to_owned(), CHANGES)];
    assert_eq!(store.usage(1).await.unwrap(), expected);
}

#[tokio::test]
async fn counts_when_started_as_another_process() {
    let Ok(url) = std::env::var(CHILD_URL) else { return };
    let options = Options {
        schema: Schema::Current,
        timeout: Duration::from_mins(1),
        busy_timeout: Duration::from_secs(30),
        ..Options::default()
    };
    let store = Store::connect(&url, options).await.unwrap();
    for _ in 0..CHANGES {
        store.usage_count(1, "child", 1).await.unwrap();
    }
}
