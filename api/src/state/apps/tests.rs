//! Keys of clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oauth::Scopes;
use oauth::client::{ClientAuth, OAuthClient};
use oauth::redirect::Application;
use outbound::testing::{Reply, Server};
use tokio::task::JoinSet;
use types::{OperatorId, Timestamp};

use super::{DocumentAsker, FetchError, WebDocuments};

/// Returns an asker at the address with this number, connected if it has an operator.
fn asker(address: u8, operator: Option<u8>) -> DocumentAsker {
    DocumentAsker {
        address: IpAddr::from([192, 0, 2, address]).into(),
        operator: operator.map(|byte| OperatorId::from_bytes([byte; 16])),
        is_connected: operator.is_some(),
    }
}

const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// Starts a server of key sets, of which those below `/hang` never end.
async fn keys() -> Server {
    Server::plain("127.0.0.1:0", |head| {
        if head.starts_with("GET /hang") {
            return Reply::raw("HTTP/1.1 200 OK\r\n").then_stall();
        }
        Reply::new("200 OK\r\nContent-Type: application/json", KEYS)
    })
    .await
}

/// Returns a client whose keys are at this path of a server.
fn client_at(server: &Server, path: &str) -> OAuthClient {
    OAuthClient {
        id: "https://app.example/app.json".to_owned(),
        name: None,
        uri: None,
        redirect_uris: Vec::new(),
        application: Application::Web,
        scopes: Scopes::NONE,
        may_refresh: false,
        auth: ClientAuth::KeysAt(format!("http://{}{path}", server.address())),
        registered_at: Timestamp::from_micros(1_795_000_000_000_000),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_hang_keep_no_connected_app_waiting() {
    let server = keys().await;
    let web = Arc::new(WebDocuments::new("http://sluice.test", true).unwrap());
    let now = Timestamp::from_micros(1_795_000_000_000_000);
    let begun = Instant::now();
    let mut hanging = JoinSet::new();
    for number in 0..240_u8 {
        let (web, client) = (Arc::clone(&web), client_at(&server, &format!("/hang/{number}")));
        // Half of them are sent for two operators that agreed to apps of their own.
        let asker = asker(number % 40, (number % 2 == 0).then_some(number % 4));
        hanging.spawn(async move { web.keys(&client, asker, now).await });
    }
    // The first of them are under way.
    while server.heads().len() < 20 {
        tokio::task::yield_now().await;
    }
    let asked = Instant::now();
    let refreshed = web.keys(&client_at(&server, "/keys"), asker(200, Some(99)), now).await;
    assert!(refreshed.unwrap().is_some());
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    // One of the operators waits for its own share, and not for ever.
    let own = web.keys(&client_at(&server, "/others"), asker(201, Some(0)), now).await;
    assert!(matches!(own, Err(FetchError::ShareTaken)), "{own:?}");
    for ended in hanging.join_all().await {
        assert!(!matches!(ended, Ok(Some(_))));
    }
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_one_app_at_the_same_time_share_a_few_fetches() {
    let server = keys().await;
    let web = Arc::new(WebDocuments::new("http://sluice.test", true).unwrap());
    let now = Timestamp::from_micros(1_795_000_000_000_000);
    let mut refreshes = JoinSet::new();
    for number in 0..100_u8 {
        let (web, client) = (Arc::clone(&web), client_at(&server, "/keys"));
        refreshes.spawn(async move { web.keys(&client, asker(1, Some(number)), now).await });
    }
    for refreshed in refreshes.join_all().await {
        assert!(refreshed.unwrap().is_some());
    }
    assert!(server.heads().len() <= 4, "{}", server.heads().len());
}

#[tokio::test]
async fn a_wrong_assertion_leaves_the_keys_and_lets_them_be_fetched_once_a_minute() {
    let breaks = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&breaks);
    let server = Server::plain("127.0.0.1:0", move |_| {
        let status = if broken.load(Ordering::SeqCst) {
            "503 Busy"
        } else {
            "200 OK\r\nContent-Type: application/json"
        };
        Reply::new(status, KEYS)
    })
    .await;
    let web = WebDocuments::new("http://sluice.test", true).unwrap();
    let at = |seconds| Timestamp::from_micros(1_795_000_000_000_000).plus(Duration::from_secs(seconds));
    let client = client_at(&server, "/keys");
    let asker = asker(1, None);
    let fetches = async |now: u64| {
        assert!(web.keys(&client, asker, at(now)).await.unwrap().is_some(), "at {now}");
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
