//! Reading: pages of a version, and who may.

use serde_json::{Value, json};
use tests::world::{all_data, contribute, records};

use super::world;

#[tokio::test]
async fn a_dataset_without_a_merge_reads_as_version_0_and_empty() {
    let world = world().await;
    let slug = world.project().await;
    let page = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    assert_eq!(
        (&page.body["version"], &page.body["total"], &page.body["items"]),
        (&json!(0), &json!(0), &json!([]))
    );
}

#[tokio::test]
async fn pages_join_to_the_whole_version_in_order() {
    let world = world().await;
    let slug = world.project().await;
    let mut sent: Vec<Value> = Vec::new();
    for series in ["a", "b", "c", "d"] {
        let rows = records(series, 130);
        contribute(&world.agent.http, &slug, &rows).await;
        sent.extend(rows);
    }
    let path = format!("/projects/{slug}/data");
    let whole = world.agent.http.get(&format!("{path}?limit=1000")).await.expect(200);
    let series_of = |items: &Value| -> Vec<(String, u64)> {
        let items = items.as_array().unwrap().iter();
        items
            .map(|item| {
                (
                    item["station"].as_str().unwrap().to_owned(),
                    item["sample"].as_u64().unwrap(),
                )
            })
            .collect()
    };
    let all = series_of(&whole.body["items"]);
    assert_eq!(all, series_of(&Value::Array(sent)));
    assert_eq!(whole.body["total"], 520);
    let usual = world.agent.http.get(&path).await.expect(200);
    assert_eq!(usual.body["items"].as_array().unwrap().len(), 200);
    for (offset, limit) in [
        (0, 1),
        (129, 2),
        (130, 130),
        (259, 5),
        (300, 1000),
        (519, 10),
        (520, 10),
        (99_999, 10),
    ] {
        let page = world
            .agent
            .http
            .get(&format!("{path}?offset={offset}&limit={limit}"))
            .await
            .expect(200);
        let expected: Vec<_> = all.iter().skip(offset).take(limit).cloned().collect();
        assert_eq!(series_of(&page.body["items"]), expected, "{offset} {limit}");
    }
}

#[tokio::test]
async fn a_pinned_version_never_changes() {
    let world = world().await;
    let slug = world.project().await;
    let mut births = Vec::new();
    for (version, series) in (1..).zip(["a", "b", "c", "d", "e"]) {
        contribute(&world.agent.http, &slug, &records(series, 7)).await;
        births.push(all_data(&world.agent.http, &slug, version).await);
    }
    for (version, birth) in (1..).zip(&births) {
        assert_eq!(&all_data(&world.agent.http, &slug, version).await, birth);
        assert_eq!(u64::try_from(birth.len()).unwrap(), 7 * version);
    }
    let missing = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?version=6"))
        .await
        .expect(404);
    assert!(!missing.error().is_empty());
    let far = u64::MAX;
    let code = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?version={far}"))
        .await
        .code();
    assert!(matches!(code, 400 | 404), "{code}");
}

#[tokio::test]
async fn a_public_free_dataset_is_read_with_any_key_and_not_without() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 3)).await;
    let (_, stranger) = world.newcomer().await;
    let path = format!("/projects/{slug}/data");
    stranger.http.get(&path).await.expect(200);
    let refused = world.http.get(&path).await.expect(401);
    assert!(!refused.text("/hint").is_empty() && !refused.text("/getKey").is_empty());
}

#[tokio::test]
async fn a_paid_dataset_that_was_not_bought_answers_402_with_its_price() {
    let world = world().await;
    let slug = world.project_with(json!({"access": "paid", "price": "0.25"})).await;
    contribute(&world.agent.http, &slug, &records("a", 3)).await;
    let (_, stranger) = world.newcomer().await;
    for query in ["", "?version=1", "?limit=1&offset=2"] {
        let answer = stranger
            .http
            .get(&format!("/projects/{slug}/data{query}"))
            .await
            .expect(402);
        let shown = answer.body.to_string();
        assert!(
            answer.body.get("price").is_some() && shown.contains("credits"),
            "{shown}"
        );
        assert!(
            !answer.text("/credits/buy").is_empty() && !answer.text("/pay").is_empty(),
            "{shown}"
        );
        assert!(answer.body.get("items").is_none(), "{shown}");
    }
    // The operator that maintains it reads it, and anyone may see that it is there.
    world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    let seen = world.http.get(&format!("/projects/{slug}")).await.expect(200);
    assert_eq!(seen.text("/access"), "paid");
    // Whoever may contribute may not thereby read.
    let contributed = contribute(&stranger.http, &slug, &records("b", 2)).await;
    assert_eq!(contributed.text("/status"), "merged");
    stranger.http.get(&format!("/projects/{slug}/data")).await.expect(402);
}

#[tokio::test]
async fn reads_go_on_while_versions_are_made() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 50)).await;
    let birth = all_data(&world.agent.http, &slug, 1).await;
    let writing = async {
        for number in 0..10 {
            contribute(&world.agent.http, &slug, &records(&format!("b{number}"), 50)).await;
        }
    };
    let reading = async {
        for _ in 0..20 {
            assert_eq!(all_data(&world.agent.http, &slug, 1).await, birth);
            let latest = world
                .agent
                .http
                .get(&format!("/projects/{slug}/data?limit=1000"))
                .await
                .expect(200);
            let version = latest.body["version"].as_u64().unwrap();
            assert_eq!(latest.body["items"].as_array().unwrap().len() as u64, version * 50);
        }
    };
    tokio::join!(writing, reading);
}
