use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use types::OperatorId;

use crate::testing::{Service, during};

fn named(range: std::ops::Range<u32>) -> Vec<Value> {
    range.map(|number| json!({"name": format!("n{number:06}")})).collect()
}

async fn scene(more: &Value) -> (Service, String, String) {
    let service = Service::start().await;
    let (owner, other) = (service.operator().await, service.operator().await);
    let mine = service.agent(&owner, "mine").await;
    let theirs = service.agent(&other, "theirs").await;
    service.project(&mine, "weather", more).await;
    (service, mine, theirs)
}

async fn lines(service: &Service, key: &str, version: u64) -> Vec<Value> {
    let got = service
        .get(&format!("/projects/weather/export?version={version}"), Some(key))
        .await;
    assert_eq!(got.status, 200);
    assert_eq!(got.headers["content-type"], "application/x-ndjson; charset=utf-8");
    let text = String::from_utf8(got.bytes).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn an_export_is_every_page_of_its_version() {
    let (service, mine, theirs) = scene(&json!({})).await;
    for (start, end) in [(0, 500), (500, 501), (501, 1_000)] {
        service.merged(&mine, "weather", &named(start..end)).await;
    }
    assert_eq!(lines(&service, &theirs, 3).await, named(0..1_000));
    assert_eq!(lines(&service, &theirs, 2).await, named(0..501));
}

#[tokio::test]
async fn a_version_must_be_named_and_be_there() {
    let (service, mine, theirs) = scene(&json!({})).await;
    service.merged(&mine, "weather", &named(0..1)).await;
    for (query, status) in [
        ("", 400),
        ("?version=0", 400),
        ("?version=2", 404),
        ("?version=1&limit=1", 400),
        ("?version=9007199254740992", 400),
    ] {
        let got = service
            .get(&format!("/projects/weather/export{query}"), Some(&theirs))
            .await;
        assert_eq!(got.status, status, "{query}");
    }
    assert_eq!(
        service.get("/projects/weather/export?version=1", None).await.status,
        401
    );
}

#[tokio::test]
async fn a_paid_version_is_exported_by_its_owner_only() {
    let (service, mine, theirs) = scene(&json!({"access": "paid", "price": "0.25"})).await;
    service.merged(&mine, "weather", &named(0..2)).await;
    assert_eq!(lines(&service, &mine, 1).await.len(), 2);
    let got = service.get("/projects/weather/export?version=1", Some(&theirs)).await;
    assert_eq!((got.status.as_u16(), &got.json()["price"]), (402, &json!("0.25")));
}

#[tokio::test]
async fn what_is_read_counts_toward_egress_of_the_readers_operator() {
    let (service, mine, theirs) = scene(&json!({})).await;
    service.merged(&mine, "weather", &named(0..500)).await;
    let mut bytes = 0;
    for path in ["export?version=1", "data", "diff?to=1", "diff?to=1&limit=0"] {
        let got = service.get(&format!("/projects/weather/{path}"), Some(&theirs)).await;
        assert_eq!(got.status, 200, "{path}");
        bytes += got.bytes.len() as u64;
    }
    let sql = json!({"sql": "count"}).to_string();
    let got = service
        .call("POST", "/projects/weather/query", Some(&theirs), &sql)
        .await;
    bytes += got.bytes.len() as u64;
    // Refusals and other calls count nothing.
    service.get("/projects/weather/data?version=9", Some(&theirs)).await;
    service.get("/projects/weather", Some(&theirs)).await;

    let manifest = service.get("/projects/weather/manifest", Some(&theirs)).await.json();
    let url = manifest["parts"][0]["url"].as_str().unwrap();
    bytes += service
        .get(url.strip_prefix("http://sluice.test").unwrap(), None)
        .await
        .bytes
        .len() as u64;

    let operator: OperatorId = url.split("account=").nth(1).unwrap()[..36].parse().unwrap();
    let (app, month) = (&service.app, service.app.clock.now().month());
    app.egress.store(&app.store, app.clock.now()).await.unwrap();
    assert_eq!(app.store.egress(operator, month).await.unwrap(), bytes);
    // Stored counts are not stored again.
    app.egress.store(&app.store, app.clock.now()).await.unwrap();
    assert_eq!(app.store.egress(operator, month).await.unwrap(), bytes);
}

#[tokio::test]
async fn an_operator_that_is_suspended_while_an_export_waits_gets_none() {
    let (service, mine, theirs) = scene(&json!({})).await;
    service.merged(&mine, "weather", &named(0..1)).await;
    let links = service.get("/credits", Some(&theirs)).await.json();
    let link = links["topUp"].as_str().unwrap();
    let operator: OperatorId = link.split("operator=").nth(1).unwrap().parse().unwrap();
    let suspended = async {
        let (store, now) = (&service.app.store, service.app.clock.now());
        store.operator_suspend(operator, "spam".to_owned(), now).await.unwrap();
    };
    let waiting = service.get("/projects/weather/export?version=1", Some(&theirs));
    let exports = &service.app.process.exports;
    let got = during(waiting, exports.while_awaited(operator, suspended)).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (401, &json!("account_suspended"))
    );
}

#[tokio::test]
async fn a_right_that_ends_while_an_export_is_sent_ends_it_and_a_database_that_is_away_does_not() {
    let (service, mine, theirs) = scene(&json!({})).await;
    let long = |number: u32| json!({"name": format!("{number} {}", "x".repeat(900))});
    service
        .merged(&mine, "weather", &(0..300).map(long).collect::<Vec<_>>())
        .await;
    let path = "/projects/weather/export?version=1";
    let whole = service.get(path, Some(&theirs)).await.bytes;
    let [ended, outlived] = [service.untaken(path, &theirs).await, service.untaken(path, &mine).await];
    service.took_down("weather").await;
    service.clock.advance(Duration::from_secs(1));
    assert!(ended.into_body().collect().await.is_err(), "the export went on");
    service.app.store.close().await;
    assert_eq!(outlived.into_body().collect().await.unwrap().to_bytes(), whole);
}
