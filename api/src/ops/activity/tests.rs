use std::future::ready;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::testing::Service;

async fn kinds(service: &Service, path: &str) -> Vec<String> {
    let got = service.get(path, None).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let items = got.json()["items"].as_array().unwrap().clone();
    let words = items.iter().map(|item| {
        let word = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", word("kind"), word("item"))
    });
    words.collect()
}

#[tokio::test]
async fn the_feed_has_public_datasets_and_versions_and_pages() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service
        .project(&key, "tides", &json!({"title": "Tides & <b>more</b>"}))
        .await;
    service.project(&key, "secret", &json!({"visibility": "private"})).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    service.merged(&key, "secret", &[json!({"name": "a"})]).await;
    assert_eq!(kinds(&service, "/activity").await, ["version tides", "dataset tides"]);
    let first = service.get("/activity?limit=1", None).await.json();
    assert_eq!(first["items"][0]["version"], 1);
    assert_eq!(first["items"][0]["agent"], "gauge");
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let rest = kinds(&service, &format!("/activity?cursor={cursor}")).await;
    assert_eq!(rest, ["dataset tides"]);
    assert_eq!(kinds(&service, "/activity?after=0&limit=1").await, ["dataset tides"]);
    let both = service.get("/activity?after=0&cursor=9", None).await;
    assert_eq!(both.status, 400);

    let atom = service.get("/activity.atom", None).await;
    assert_eq!(atom.headers["content-type"], "application/atom+xml; charset=utf-8");
    let text = atom.text();
    assert!(
        text.contains("Tides &amp; &lt;b&gt;more&lt;/b&gt;: version 1"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

/// Events begin after the cursor that a client names, and an answer ends after the seconds that it asked for.
#[tokio::test]
async fn events_go_on_after_the_last_that_a_client_saw() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service.project(&key, "tides", &json!({})).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    let followed = async |path: &str| {
        let got = service.get(path, None).await;
        assert_eq!(got.headers["content-type"], "text/event-stream");
        let text = got.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| {
            serde_json::from_str::<Value>(data).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        followed("/activity/events?after=0&seconds=1").await,
        ["dataset", "version"]
    );
    assert_eq!(followed("/activity/events?after=1&seconds=1").await, ["version"]);
    assert_eq!(followed("/activity/events?seconds=1").await, Vec::<String>::new());
}

/// A client that saw what a restored database does not have yet would wait for its number for ever.
#[tokio::test]
async fn a_cursor_beyond_the_newest_begins_anew_with_an_event_that_says_so() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service.project(&key, "tides", &json!({})).await;
    let reset = "retry: 1000\n\nid: 1\nevent: reset\ndata: {\"cursor\":\"1\"}\n\n";
    let beyond = service.get("/activity/events?after=2&seconds=1", None).await.text();
    assert_eq!(beyond, reset);
    let seen = http::Request::get("/activity/events?seconds=1&after=0").header("last-event-id", "999999999999999999");
    let got = service.send(seen.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(got.text(), reset);
    let newest = service.get("/activity/events?after=1&seconds=1", None).await.text();
    assert_eq!(newest, "retry: 1000\n\n");
    // The client stays on the answer that told it so, and gets what happens next.
    let answer = service.untaken("/activity/events?after=2&seconds=60", &key).await;
    let pieces = answer.into_body().into_data_stream().map(Result::unwrap);
    // Comments keep the connection open.
    let mut pieces = Box::pin(pieces.filter(|piece| ready(!piece.starts_with(b":"))));
    assert_eq!(pieces.next().await.unwrap(), reset);
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    // The newest number is read anew once a second.
    service.clock.advance(Duration::from_secs(2));
    let next = pieces.next().await.unwrap();
    assert!(next.starts_with(b"id: 2\nevent: version\n"), "{next:?}");
}
