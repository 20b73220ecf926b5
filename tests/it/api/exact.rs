//! Days and decimals: kept to the last digit from the batch to every read, or refused with words that say how to send them.

use serde_json::{Value, json};
use tests::World;
use tests::checker::delta::tables_below;
use tests::world::{batch, contribute, decided};

use super::world;

/// A project with a day, an amount of two digits after the point, and a whole number of any length.
async fn project(world: &World) -> String {
    let schema = json!({"fields": [
        {"name": "day", "type": "date", "title": "Day"},
        {"name": "price", "type": "decimal", "scale": 2, "description": "what was paid", "unit": "€"},
        {"name": "wei", "type": "decimal", "scale": 0},
    ]});
    world.project_with(json!({"schemaDef": schema})).await
}

/// Returns the rows of a statement.
async fn rows(world: &World, slug: &str, sql: &str) -> Value {
    let path = format!("/projects/{slug}/query");
    world
        .agent
        .http
        .post(&path, &json!({ "sql": sql }))
        .await
        .expect(200)
        .body["rows"]
        .clone()
}

#[tokio::test]
async fn a_decimal_keeps_its_digits_in_every_read() {
    let world = world().await;
    let slug = project(&world).await;
    let sent = [
        json!({"wei": "170141183460469231731"}),
        json!({"price": "12.5"}),
        json!({"price": "12.50"}),
        json!({"price": 12.5}),
        json!({"price": "-0.00"}),
    ];
    let answer = contribute(&world.agent.http, &slug, &sent).await;
    assert_eq!(answer.text("/status"), "merged", "{}", answer.body);
    let counts = ["acceptedCount", "droppedCount"].map(|name| answer.body[name].as_u64());
    assert_eq!(counts, [Some(3), Some(2)]);

    let stored = [
        json!({"day": null, "price": null, "wei": "170141183460469231731"}),
        json!({"day": null, "price": "12.50", "wei": null}),
        json!({"day": null, "price": "0.00", "wei": null}),
    ];
    let data = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    assert_eq!(data.body["items"], json!(stored));
    let export = world
        .agent
        .http
        .get(&format!("/projects/{slug}/export?version=1"))
        .await
        .expect(200);
    let lines: Vec<Value> = export
        .bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines, stored);
    let asked = rows(
        &world,
        &slug,
        "SELECT wei, price FROM records WHERE wei > 9223372036854775807 OR price = 12.5 ORDER BY wei",
    )
    .await;
    assert_eq!(asked, json!([["170141183460469231731", null], [null, "12.50"]]));
    assert_eq!(
        rows(&world, &slug, "SELECT sum(price) AS s FROM records").await,
        json!([["12.50"]])
    );
}

#[tokio::test]
async fn a_decimal_or_day_that_would_be_another_is_refused_with_its_remedy() {
    let world = world().await;
    let slug = project(&world).await;
    let decimal = "expected decimal: digits without leading zeros, at most 26 before and 2 after the point";
    let number = format!("{decimal}; send more than 15 digits as text");
    let day = "expected date: YYYY-MM-DD, years 0001 to 9999, a day that exists";
    for (record, path, words) in [
        (json!({"price": "012.5"}), "/price", decimal),
        (json!({"price": "1e3"}), "/price", decimal),
        (json!({"price": "1.234"}), "/price", decimal),
        (json!({"price": 0.300_000_000_000_000_04}), "/price", &*number),
        (json!({"day": "2021-02-29"}), "/day", day),
        (json!({"day": "2020-02-29T00:00:00Z"}), "/day", day),
    ] {
        let path_of = format!("/projects/{slug}/contribute?wait=20");
        let answer = world
            .agent
            .http
            .post(&path_of, &batch(std::slice::from_ref(&record)))
            .await
            .expect(201);
        let answer = decided(&world.agent.http, &slug, answer.text("/id")).await;
        assert_eq!(answer.text("/status"), "rejected", "{record}");
        assert_eq!(answer.text("/verdicts/0/reasons/0/path"), path, "{record}");
        let message = answer.text("/reason/message");
        assert!(message.contains(words), "{record}: {message}");
    }
    // As many digits as 128 bits lose before they are read.
    let body = r#"{"records":[{"wei":1000000000000000000007}]}"#;
    let refused = world
        .agent
        .http
        .post_bytes(&format!("/projects/{slug}/contribute"), body.to_owned())
        .await;
    assert_eq!((refused.code(), refused.error()), (400, "digits"));
    assert!(
        refused
            .text("/details/0/problem")
            .ends_with("send it as text to a `decimal` or `string` field")
    );
}

#[tokio::test]
async fn a_sum_of_decimals_is_exact_or_fails() {
    let world = world().await;
    let slug = project(&world).await;
    let largest = 9_999_999_999_999_999_999_999_999_999_i128;
    let sent: Vec<Value> = (0..5)
        .map(|less| json!({"wei": (largest - less).to_string()}))
        .collect();
    contribute(&world.agent.http, &slug, &sent).await;
    let sum = (0..5).map(|less| largest - less).sum::<i128>().to_string();
    assert_eq!(
        rows(&world, &slug, "SELECT sum(wei) AS s FROM records").await,
        json!([[sum]])
    );
    for sql in [
        "SELECT sum(CAST(wei AS DECIMAL(38, 0)) * 10000000000) AS s FROM records",
        "SELECT sum(wei * wei) AS s FROM records",
        "SELECT sum(wei * 10000000000) OVER () AS s FROM records",
    ] {
        let answer = world
            .agent
            .http
            .post(&format!("/projects/{slug}/query"), &json!({ "sql": sql }))
            .await;
        assert_ne!(answer.code(), 200, "{sql}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_day_is_compared_as_one() {
    let world = world().await;
    let slug = project(&world).await;
    let sent = ["2020-02-29", "0001-01-01", "9999-12-31"].map(|day| json!({ "day": day }));
    contribute(&world.agent.http, &slug, &sent).await;
    let sql = "SELECT day FROM records WHERE day < DATE '2021-01-01' ORDER BY day";
    assert_eq!(rows(&world, &slug, sql).await, json!([["0001-01-01"], ["2020-02-29"]]));
}

#[tokio::test]
async fn documentation_is_signed_and_is_no_part_of_the_table() {
    let world = world().await;
    let slug = project(&world).await;
    contribute(&world.agent.http, &slug, &[json!({"price": "1"})]).await;
    let fields = json!([
        {"name": "day", "type": "date", "required": false, "title": "Day"},
        {"name": "price", "type": "decimal", "scale": 2, "required": false, "description": "what was paid", "unit": "€"},
        {"name": "wei", "type": "decimal", "scale": 0, "required": false},
    ]);
    let project = world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
    assert_eq!(
        project.body["schemaDef"],
        json!({"fields": fields, "allowExtra": false})
    );
    let manifest = world
        .agent
        .http
        .get(&format!("/projects/{slug}/manifest"))
        .await
        .expect(200);
    assert_eq!(manifest.body["schemaDef"], project.body["schemaDef"]);
    let mut tables = tables_below(world.server.options().data());
    assert_eq!(tables.len(), 1, "{tables:?}");
    let commit = tables.remove(0).join("_delta_log/00000000000000000000.json");
    let commit = std::fs::read_to_string(commit).unwrap();
    assert!(commit.contains("decimal(28,2)"), "{commit}");
    assert!(!commit.contains("what was paid") && !commit.contains('€'), "{commit}");
}
