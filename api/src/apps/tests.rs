//! The conformance suite of storages on the databases, and keys of clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oauth::Scopes;
use oauth::client::{Auth, Client};
use oauth::conformance::{self, Fixture};
use oauth::redirect::Application;
use outbound::testing::{Reply, Server};
use store::testing::Postgres;
use store::{AgentCreated, NewAgent, NewOperator, OperatorCreated, Store};
use types::{AgentId, OperatorId, Timestamp};

use super::{Database, Web};

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

#[tokio::test]
async fn a_wrong_assertion_leaves_the_keys_and_lets_them_be_fetched_once_a_minute() {
    let breaks = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&breaks);
    let server = Server::plain("127.0.0.1:0", move |_| {
        let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        let status = if broken.load(Ordering::SeqCst) {
            "503 Busy"
        } else {
            "200 OK\r\nContent-Type: application/json"
        };
        Reply::new(status, key)
    })
    .await;
    let web = Web::new("http://sluice.test", true).unwrap();
    let at = |seconds| Timestamp::from_micros(1_795_000_000_000_000).plus(Duration::from_secs(seconds));
    let client = Client {
        id: "https://app.example/app.json".to_owned(),
        name: None,
        uri: None,
        redirect_uris: Vec::new(),
        application: Application::Web,
        scopes: Scopes::NONE,
        may_refresh: false,
        auth: Auth::KeysAt(format!("http://{}/keys", server.address())),
        registered_at: at(0),
    };
    let fetches = async |now: u64| {
        assert!(web.keys(&client, at(now)).await.is_some(), "at {now}");
        server.heads().len()
    };
    assert_eq!((fetches(0).await, fetches(300).await), (1, 1));
    // A key set that was just fetched is not fetched again for an assertion that it does not verify.
    web.doubt_keys(&client, at(300));
    assert_eq!(fetches(301).await, 2);
    web.doubt_keys(&client, at(302));
    assert_eq!((fetches(303).await, fetches(360).await), (2, 2));
    assert_eq!(fetches(361).await, 3);
    // A server that does not answer costs the client nothing but the fetch.
    breaks.store(true, Ordering::SeqCst);
    web.doubt_keys(&client, at(400));
    assert_eq!((fetches(500).await, fetches(501).await), (4, 4));
}
