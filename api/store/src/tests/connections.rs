//! Connections whose borrowers end, fail or are dropped, on a database in a file.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use super::fresh_file;
use crate::connections::Connections;
use crate::engine::{Engine, Role};
use crate::{Options, Store};

async fn one_place() -> (Connections, tempfile::TempDir) {
    let (url, folder) = fresh_file();
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    (one_place_at(&url, Role::Reader), folder)
}

fn one_place_at(url: &str, role: Role) -> Connections {
    let options = Options {
        readers: 1,
        timeout: Duration::from_secs(2),
        ..Options::default()
    };
    Engine::Sqlite.connections(role, url, &options).unwrap()
}

/// Marks the connection, so that it is known again.
async fn mark(connections: &Connections) {
    let mut connection = connections.borrow().await.unwrap();
    sqlx::query("PRAGMA cache_size = 77")
        .execute(&mut *connection)
        .await
        .unwrap();
    connection.done();
}

async fn is_marked(connections: &Connections) -> bool {
    let size: i64 = sqlx::query_scalar("PRAGMA cache_size")
        .fetch_one(connections)
        .await
        .unwrap();
    size == 77
}

#[tokio::test]
async fn a_sound_connection_is_used_again() {
    let (connections, _folder) = one_place().await;
    mark(&connections).await;
    assert!(is_marked(&connections).await);
    assert!(is_marked(&connections).await, "also after a statement by itself");
}

#[tokio::test]
async fn a_conversation_without_an_end_ends_the_connection_and_frees_its_place() {
    let (connections, _folder) = one_place().await;
    mark(&connections).await;
    drop(connections.borrow().await.unwrap());
    assert!(!is_marked(&connections).await);
}

#[tokio::test]
async fn a_statement_that_is_given_up_settles_and_its_connection_is_used_again() {
    let (url, _folder) = fresh_file();
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    let (connections, others) = (one_place_at(&url, Role::Writer), one_place_at(&url, Role::Writer));
    mark(&connections).await;
    let mut writing = others.borrow().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *writing).await.unwrap();
    {
        let waits_for_the_writer = sqlx::query("UPDATE usage_counts SET used = 0 RETURNING used");
        let mut given_up = pin!(waits_for_the_writer.fetch_optional(&connections));
        let polled = given_up.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
    sqlx::query("ROLLBACK").execute(&mut *writing).await.unwrap();
    writing.done();
    assert!(is_marked(&connections).await);
}

#[tokio::test]
async fn waiting_for_a_place_ends() {
    let (connections, _folder) = one_place().await;
    let held = connections.borrow().await.unwrap();
    let refused = connections.borrow().await.err().unwrap();
    assert!(matches!(refused, sqlx::Error::PoolTimedOut), "{refused:?}");
    held.done();
    connections.borrow().await.unwrap().done();
}

#[tokio::test]
async fn closing_waits_for_borrowers_no_longer_than_they_may_take() {
    let (connections, _folder) = one_place().await;
    let held = connections.borrow().await.unwrap();
    connections.close().await;
    assert!(matches!(
        connections.borrow().await.err(),
        Some(sqlx::Error::PoolClosed)
    ));
    held.done();
}
