//! The conformance suite of storages on the databases, and documents of clients.

use std::sync::Arc;

use oauth::conformance::{self, Fixture};
use store::testing::Postgres;
use store::{AgentCreated, NewAgent, NewOperator, OperatorCreated, Store};
use types::{AgentId, OperatorId, Timestamp};

use super::Database;

/// Runs the suite on the database at `url`.
async fn conforms(url: &str) {
    let store = Store::connect(url, store::Options::default()).await.unwrap();
    let now = Timestamp::from_micros(1_795_000_000_000_000);
    let (operator, agent) = (OperatorId::new(now), AgentId::new(now));
    let new = NewOperator {
        id: operator,
        email: "ada@example.org".to_owned(),
        display_name: "Ada".to_owned(),
        terms_version: "1".to_owned(),
        token_hash: [1; 32],
        now,
    };
    assert_eq!(store.operator_create(new).await.unwrap(), OperatorCreated::Created);
    let new = NewAgent {
        id: agent,
        operator,
        name: "tide-1".to_owned(),
        skeleton: "tide-l".to_owned(),
        wallet_address: None,
        description: None,
        key_hash: [2; 32],
        now,
    };
    assert_eq!(store.agent_create(new, 5).await.unwrap(), AgentCreated::Created);
    let storage = Arc::new(Database::new(store));
    conformance::run(&Fixture {
        storage,
        operator,
        agent,
        now,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_storage_conforms_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    conforms(&format!("sqlite://{}", folder.path().join("sluice.db").display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_storage_conforms_on_postgres() {
    let Some(server) = Postgres::shared() else { return };
    conforms(&server.fresh_database()).await;
}
