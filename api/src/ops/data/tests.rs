use std::sync::Arc;

use catalog::{CommitOutcome, PreparedVersion};
use serde_json::{Value, json};
use types::{AgentId, Batch, ContributionId};

use crate::ops::contribute::contract;
use crate::testing::Service;

/// Merges records straight into the table, as a worker would.
async fn merge(service: &Service, slug: &str, records: &[Value]) {
    let project = service.app.store.project_by_slug(slug, None).await.unwrap().unwrap();
    let contract = Arc::new(contract(&project).unwrap());
    let mut table = service.app.catalog.table(project.id, &contract).await.unwrap();
    let now = service.app.clock.now();
    let mut prepared = PreparedVersion::of_batch(
        ContributionId::new(now),
        AgentId::new(now),
        Arc::new(Batch::decode(&contract, records)),
    );
    assert!(matches!(
        table.commit(&mut prepared, now, |_| Value::Null).await.unwrap(),
        CommitOutcome::Committed(_)
    ));
}

async fn scene(more: &Value) -> (Service, String, String) {
    let service = Service::start().await;
    let (owner, other) = (service.operator().await, service.operator().await);
    service.project(&owner, "weather", more).await;
    let (mine, theirs) = (
        service.agent(&owner, "mine").await,
        service.agent(&other, "theirs").await,
    );
    (service, mine, theirs)
}

#[tokio::test]
async fn before_the_first_merge_there_is_an_empty_page_of_version_0() {
    let (service, key, _) = scene(&json!({})).await;
    let got = service.get("/projects/weather/data", Some(&key)).await;
    assert_eq!(got.status, 200);
    assert_eq!(
        got.json(),
        json!({"items": [], "version": 0, "total": 0, "offset": 0, "limit": 200})
    );
    assert_eq!(
        service.get("/projects/weather/data?version=1", Some(&key)).await.status,
        404
    );
}

#[tokio::test]
async fn pages_follow_each_other_and_old_versions_stay() {
    let (service, _, key) = scene(&json!({})).await;
    merge(
        &service,
        "weather",
        &[json!({"name": "a"}), json!({"name": "b"}), json!({"name": "c"})],
    )
    .await;
    merge(&service, "weather", &[json!({"name": "d"})]).await;
    let get = async |query: &str| {
        service
            .get(&format!("/projects/weather/data{query}"), Some(&key))
            .await
            .json()
    };
    let first = get("?limit=3").await;
    assert_eq!(first["items"], json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]));
    assert_eq!(
        (&first["version"], &first["total"], &first["nextOffset"]),
        (&json!(2), &json!(4), &json!(3))
    );
    let second = get("?limit=3&offset=3&version=2").await;
    assert_eq!(second["items"], json!([{"name": "d"}]));
    assert!(second.get("nextOffset").is_none());
    let old = get("?version=1").await;
    assert_eq!((&old["version"], &old["total"]), (&json!(1), &json!(3)));
    let beyond = get("?offset=9007199254740991").await;
    assert_eq!((&beyond["items"], &beyond["total"]), (&json!([]), &json!(4)));
}

#[tokio::test]
async fn what_a_page_is_asked_for_is_in_range() {
    let (service, key, _) = scene(&json!({})).await;
    for query in [
        "limit=0",
        "limit=1001",
        "offset=-1",
        "version=0",
        "version=1.0",
        "offset=9007199254740992",
        "limit=",
        "page=1",
    ] {
        assert_eq!(
            service
                .get(&format!("/projects/weather/data?{query}"), Some(&key))
                .await
                .status,
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_paid_version_costs_others_its_price() {
    let (service, mine, theirs) = scene(&json!({"access": "paid", "price": "0.25"})).await;
    merge(&service, "weather", &[json!({"name": "a"})]).await;
    assert_eq!(
        service.get("/projects/weather/data", Some(&mine)).await.json()["total"],
        1
    );
    let got = service.get("/projects/weather/data?version=1", Some(&theirs)).await;
    assert_eq!(got.status, 402);
    let body = got.json();
    assert_eq!((&body["price"], &body["priceMicro"]), (&json!("0.25"), &json!(250_000)));
    let top_up = body["credits"]["topUp"].as_str().unwrap();
    assert!(
        top_up.starts_with("http://sluice.test/paid/credits?operator="),
        "{top_up}"
    );
    assert_eq!(
        body["credits"],
        json!({"buy": "http://sluice.test/projects/weather/buy", "topUp": top_up})
    );
    assert_eq!(body["pay"], "http://sluice.test/paid/dataset?slug=weather&version=1");
}

#[tokio::test]
async fn a_version_that_does_not_exist_is_not_for_sale() {
    let (service, mine, theirs) = scene(&json!({"access": "paid", "price": "0.25"})).await;
    let calls = |version: &str, sql: &str| {
        [
            (
                "GET",
                format!("/projects/weather/data?version={version}"),
                String::new(),
            ),
            (
                "GET",
                format!("/projects/weather/export?version={version}"),
                String::new(),
            ),
            (
                "GET",
                format!("/projects/weather/manifest?version={version}"),
                String::new(),
            ),
            ("GET", format!("/projects/weather/diff?to={version}"), String::new()),
            ("POST", "/projects/weather/query".to_owned(), sql.to_owned()),
        ]
    };
    let answers = async |version: &str, sql: &str| {
        let mut answers = Vec::new();
        for (method, path, body) in calls(version, sql) {
            let got = service.call(method, &path, Some(&theirs), &body).await;
            answers.push((got.status.as_u16(), got.json().get("pay").is_some()));
        }
        answers
    };
    let second = r#"{"sql": "count", "version": 2}"#;
    assert_eq!(answers("2", second).await, [(404, false); 5]);
    // Before the first merge there is nothing to pay for, and nothing to read.
    let empty = service.get("/projects/weather/data", Some(&theirs)).await;
    assert_eq!((empty.status.as_u16(), &empty.json()["total"]), (200, &json!(0)));
    let empty = service.get("/projects/weather/manifest", Some(&theirs)).await;
    assert_eq!(empty.status, 404);
    service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
    assert_eq!(answers("2", second).await, [(404, false); 5]);
    assert_eq!(
        answers("1", r#"{"sql": "count", "version": 1}"#).await,
        [(402, true); 5]
    );
}

#[tokio::test]
async fn a_page_of_large_records_ends_early_and_goes_on() {
    let (service, _, key) = scene(&json!({})).await;
    let text = |number: usize| format!("{number} {}", "x".repeat(3 << 20));
    for number in 0..5 {
        merge(&service, "weather", &[json!({"name": text(number)})]).await;
    }
    let mut names = Vec::new();
    let mut next = Some(0);
    let mut pages = 0;
    while let Some(offset) = next {
        let got = service
            .get(
                &format!("/projects/weather/data?limit=1000&offset={offset}"),
                Some(&key),
            )
            .await;
        assert!(got.bytes.len() < 13 << 20, "{}", got.bytes.len());
        let page = got.json();
        names.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["name"].clone()),
        );
        next = page["nextOffset"].as_u64();
        pages += 1;
    }
    assert_eq!((pages, names), (2, (0..5).map(|number| json!(text(number))).collect()));
}

#[tokio::test]
async fn large_answers_that_nobody_takes_keep_only_their_operator_waiting() {
    let (service, mine, theirs) = scene(&json!({})).await;
    merge(&service, "weather", &[json!({"name": "x".repeat(70_000)})]).await;
    merge(&service, "weather", &[json!({"name": "small"})]).await;
    let page = "/projects/weather/data?limit=1";
    let mut untaken = Vec::new();
    for _ in 0..8 {
        // A small answer waits for its reader without a permit.
        untaken.push(service.untaken("/projects/weather/data?offset=1", &theirs).await);
        untaken.push(service.untaken(page, &theirs).await);
    }
    let mut next = std::pin::pin!(service.get(page, Some(&theirs)));
    let others = async {
        for _ in 0..10 {
            assert_eq!(service.get(page, Some(&mine)).await.status, 200);
        }
    };
    tokio::select! {
        biased;
        _ = &mut next => panic!("a ninth large answer is made"),
        () = others => {}
    }
    untaken.pop();
    assert_eq!(next.await.status, 200);
}
