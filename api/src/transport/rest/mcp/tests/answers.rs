//! Schemas that clients take, arguments as models write them, and answers that end by their size and go on.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{call, message, send, tools};
use crate::call::room::ANSWER_BYTES;
use crate::testing::{Service, count, limits};

/// Asserts that a schema has one type and nothing that clients refuse.
fn check(schema: &Value, place: &str) {
    let members = schema.as_object().unwrap();
    let keywords = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "default",
        "format",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
    ];
    for keyword in members.keys() {
        assert!(keywords.contains(&keyword.as_str()), "{place}: {keyword}");
    }
    assert!(members["type"].is_string(), "{place}: {schema}");
    assert!(
        members.get("format").is_none_or(|format| format == "date-time"),
        "{place}: {schema}"
    );
    for (name, property) in members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        check(property, &format!("{place}/{name}"));
    }
    if let Some(items) = members.get("items") {
        check(items, &format!("{place}/items"));
    }
}

#[tokio::test]
async fn each_member_of_a_tool_has_one_type() {
    let service = Service::start().await;
    for tool in tools(&service).await {
        let name = tool["name"].as_str().unwrap();
        check(&tool["inputSchema"], name);
        assert!(tool["inputSchema"]["properties"].is_object(), "{name}");
        if !tool["outputSchema"].is_null() {
            check(&tool["outputSchema"], name);
        }
    }
}

/// A service with a dataset, and the key of its maintainer.
async fn scene() -> (Service, String) {
    let mut many = limits();
    (many.calls_per_ip_per_minute, many.active_projects_per_operator) = (count(100_000), 1_000);
    many.requests_per_agent_per_hour = 100;
    let service = Service::with(crate::testing::config(), many).await;
    let token = service.operator().await;
    let key = service.agent(&token, "tide-1").await;
    service.project(&key, "tides", &json!({})).await;
    (service, key)
}

/// Calls a tool and returns the JSON of its text, which the budget holds, with the result.
async fn answer(service: &Service, key: &str, name: &str, arguments: &Value) -> (Value, Value) {
    let got = call(service, Some(key), name, arguments).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let result = got.json()["result"].clone();
    assert_eq!(result["isError"], false, "{name} {arguments}: {result}");
    let text = result["content"].as_array().unwrap().last().unwrap()["text"]
        .as_str()
        .unwrap();
    assert!(text.len() <= ANSWER_BYTES, "{name}: {} bytes", text.len());
    // The few tools that describe their answers repeat them whole.
    if text.len() > 4_000 && !crate::ops::tools::is_small(name) {
        assert_eq!(result["structuredContent"], Value::Null, "{name}");
        assert!(
            got.bytes.len() < ANSWER_BYTES * 5 / 4,
            "{name}: {} bytes",
            got.bytes.len()
        );
    }
    (serde_json::from_str(text).unwrap(), result)
}

/// Reads an answer page by page, each by what the page before says, and returns the pages.
async fn pages(service: &Service, key: &str, name: &str, arguments: &Value, (says, takes): (&str, &str)) -> Vec<Value> {
    let mut arguments = arguments.clone();
    let mut pages = Vec::new();
    loop {
        let (page, _) = answer(service, key, name, &arguments).await;
        let next = page[says].clone();
        pages.push(page);
        if next.is_null() {
            return pages;
        }
        arguments[takes] = next;
    }
}

/// Returns the items of all pages.
fn items(pages: &[Value], list: &str) -> Vec<Value> {
    assert!(pages.len() > 1, "one page: {}", pages[0]);
    let lists = pages.iter().map(|page| page[list].as_array().unwrap().clone());
    lists.flatten().collect()
}

#[tokio::test]
async fn arguments_are_read_as_models_write_them_at_mcp_only() {
    let (service, key) = scene().await;
    service
        .merged(&key, "tides", &[json!({"name": "a"}), json!({"name": "b"})])
        .await;
    let given = json!({"slug": "tides", "limit": "1", "offset": "1", "version": null, "nobody": null});
    let (page, _) = answer(&service, &key, "read_dataset", &given).await;
    assert_eq!(page["items"], json!([{"name": "b"}]));
    let made = json!({
        "slug": "waves", "title": "Waves at the quay", "readme": "Heights of the waves at the quay.", "access": "paid",
        "price": "0.25", "trialSale": "true", "tags": null,
        "schemaDef": {"allowExtra": null, "fields": [{"name": "n", "type": "integer", "required": "true"}]},
    });
    let (made, _) = answer(&service, &key, "create_dataset", &made).await;
    assert_eq!((&made["trialSale"], &made["price"]), (&json!(true), &json!("0.25")));
    assert_eq!(made["schemaDef"]["fields"][0]["required"], true);
    // A client that fills members with null changes no price.
    let (same, _) = answer(
        &service,
        &key,
        "update_dataset",
        &json!({"slug": "waves", "title": "Waves", "price": null}),
    )
    .await;
    assert_eq!(same["price"], "0.25");
    // A call without arguments may say so.
    let params = json!({"name": "my_quota", "arguments": null});
    let bearer = format!("Bearer {key}");
    let quota = send(
        &service,
        "/mcp",
        &[("authorization", &bearer)],
        message("tools/call", &params),
    )
    .await
    .json();
    assert_eq!(quota["result"]["isError"], false, "{quota}");
    let ping = send(&service, "/mcp", &[], message("ping", &Value::Null)).await;
    assert_eq!(ping.json()["result"], json!({}));
    // What is neither stays wrong, and records are data.
    for (name, wrong) in [
        ("read_dataset", json!({"slug": "tides", "limit": "many"})),
        ("read_dataset", json!({"slug": "tides", "limit": 1.5})),
        ("read_dataset", json!({"slug": 12})),
        ("read_dataset", json!({"slug": "tides", "nobody": 1})),
        ("read_dataset", json!({"slug": null})),
        ("update_dataset", json!({"slug": "waves", "price": null})),
    ] {
        let got = call(&service, Some(&key), name, &wrong).await.json();
        assert_eq!(got["result"]["isError"], true, "{wrong}: {got}");
    }
    for body in [
        json!({"sql": "count", "limit": "1"}),
        json!({"sql": "count", "version": null}),
    ] {
        let got = service
            .call("POST", "/projects/tides/query", Some(&key), &body.to_string())
            .await;
        assert_eq!(got.status, 400, "{body}");
    }
}

#[tokio::test]
async fn pages_of_records_end_by_their_size_and_miss_none() {
    let (service, key) = scene().await;
    let name = |number: usize| format!("{number} \"{}\"", "level ".repeat(80));
    for version in 0..4 {
        let records: Vec<_> = (0..60).map(|row| json!({"name": name(version * 60 + row)})).collect();
        service.merged(&key, "tides", &records).await;
    }
    let expected: Vec<_> = (0..240).map(|number| json!({"name": name(number)})).collect();
    let operator = service.app.principal(crate::secrets::hash(&key)).await.unwrap();
    let operator = match operator.as_deref() {
        Some(store::Principal::Agent { operator, .. }) => *operator,
        other => panic!("{other:?}"),
    };
    let sent = async || {
        let now = service.app.clock.now();
        service.app.egress.store(&service.app.store, now).await.unwrap();
        service.app.store.egress(operator, now.month()).await.unwrap()
    };
    let arguments = json!({"slug": "tides", "limit": 1_000});
    let before = sent().await;
    let read = pages(&service, &key, "read_dataset", &arguments, ("nextOffset", "offset")).await;
    assert_eq!(items(&read, "items"), expected);
    // What was left for another page was not paid for.
    let texts: usize = read.iter().map(|page| page.to_string().len()).sum();
    assert_eq!(sent().await - before, texts as u64);
    // The page that REST has is whole, although the same place was just read over MCP.
    let whole = service.get("/projects/tides/data?limit=1000", Some(&key)).await.json();
    assert_eq!(whole["items"], json!(expected));
    assert!(whole.get("nextOffset").is_none());
    let arguments = json!({"slug": "tides", "to": 4, "limit": 500});
    let appended = pages(&service, &key, "dataset_diff", &arguments, ("nextOffset", "offset")).await;
    let records: Vec<_> = items(&appended, "items")
        .iter()
        .map(|item| item["record"].clone())
        .collect();
    assert_eq!(records, expected);
    // A record that is too large alone is whole.
    service
        .merged(&key, "tides", &[json!({"name": "x".repeat(50_000)})])
        .await;
    let read = async |offset: u64| {
        let arguments = json!({"slug": "tides", "offset": offset});
        call(&service, Some(&key), "read_dataset", &arguments).await.json()
    };
    let got = read(239).await;
    let text = got["result"]["content"][1]["text"].as_str().unwrap();
    let page: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (page["items"].as_array().unwrap().len(), &page["nextOffset"]),
        (1, &json!(240))
    );
    assert!(read(240).await.to_string().len() > 50_000);
}

#[tokio::test]
async fn rows_of_a_query_go_on_where_they_ended() {
    let (service, key) = scene().await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    let arguments = json!({"slug": "tides", "sql": "list", "limit": 100});
    let read = pages(&service, &key, "query_dataset", &arguments, ("nextOffset", "offset")).await;
    let rows: Vec<_> = items(&read, "rows")
        .iter()
        .map(|row| row[0].as_str().unwrap()[..3].to_owned())
        .collect();
    let expected: Vec<_> = (0..100).map(|row| format!("{row} xx")[..3].to_owned()).collect();
    assert_eq!(rows, expected);
    for page in &read {
        assert_eq!(
            (&page["truncated"], &page["rowCount"]),
            (&json!(true), &json!(page["rows"].as_array().unwrap().len()))
        );
    }
    // The rows end where the receipt fits beside them, and it says so.
    let arguments = json!({"slug": "tides", "sql": "list", "limit": 100, "receipt": true});
    let proven = pages(&service, &key, "query_dataset", &arguments, ("nextOffset", "offset")).await;
    let mut next = Value::Null;
    for page in &proven {
        let receipt = &page["receipt"];
        assert_eq!(
            (&receipt["offset"], &receipt["nextOffset"]),
            (&next, &page["nextOffset"])
        );
        assert_eq!(receipt["rowCount"], page["rowCount"]);
        next = receipt["nextOffset"].clone();
    }
    assert_eq!(items(&proven, "rows").len(), 100);
    let body = json!({"sql": "list", "limit": 100}).to_string();
    let whole = service
        .call("POST", "/projects/tides/query", Some(&key), &body)
        .await
        .json();
    assert_eq!((whole["rowCount"].as_u64(), whole.get("nextOffset")), (Some(100), None));
}

#[tokio::test]
async fn lists_of_datasets_and_requests_go_on_where_they_ended() {
    let (service, key) = scene().await;
    let mut slugs = BTreeSet::from(["tides".to_owned()]);
    for number in 0..120 {
        let slug = format!("tides-{number}");
        service
            .project(
                &key,
                &slug,
                &json!({"title": "Tides of the quay ".repeat(7), "readme": "조위 관측소의 수위. ".repeat(40)}),
            )
            .await;
        slugs.insert(slug);
    }
    let read = pages(&service, &key, "list_datasets", &json!({}), ("nextCursor", "cursor")).await;
    let items_of_all = items(&read, "items");
    let found: BTreeSet<_> = items_of_all
        .iter()
        .map(|item| item["slug"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((items_of_all.len(), &found), (slugs.len(), &slugs));
    service.app.process.searching.refresh(&service.app.store).await.unwrap();
    let read = pages(
        &service,
        &key,
        "search_knowledge",
        &json!({"limit": 50}),
        ("nextCursor", "cursor"),
    )
    .await;
    assert!(read[0]["items"].as_array().unwrap().len() < 50, "{}", read[0]);
    let mut found: Vec<_> = items(&read, "items")
        .iter()
        .map(|item| item["slug"].as_str().unwrap().to_owned())
        .collect();
    found.sort_unstable();
    assert!(found.iter().eq(&slugs), "{found:?}");
    let mut ids = Vec::new();
    for number in 0..30 {
        let body = json!({"title": format!("{number} {}", "수위".repeat(95)), "body": "조위 관측 자료 ".repeat(60)});
        let (posted, _) = answer(&service, &key, "post_request", &body).await;
        ids.push(posted["id"].clone());
        service.clock.advance(Duration::from_millis(10));
    }
    ids.reverse();
    let read = pages(
        &service,
        &key,
        "list_requests",
        &json!({"per": 50}),
        ("nextOffset", "offset"),
    )
    .await;
    let found: Vec<_> = items(&read, "items").iter().map(|item| item["id"].clone()).collect();
    assert_eq!(found, ids);
    // The call goes on as it was, with whatever else it had.
    let (rest, _) = answer(&service, &key, "list_requests", &json!({"page": 1, "offset": 28})).await;
    assert_eq!((&rest["items"][0]["id"], rest.get("nextOffset")), (&ids[28], None));
}

#[tokio::test]
async fn long_texts_go_on_where_they_ended() {
    let (service, key) = scene().await;
    let body = "Measured at the quay: 수위 0.83 m at 06:00.\n".repeat(1_100);
    let unit = json!({
        "title": "Levels at the quay", "body": body, "category": "infra-measurement", "sourceDeclaration": "Read by me.",
    });
    let (made, _) = answer(&service, &key, "submit_knowledge", &unit).await;
    let id = made["id"].clone();
    let texts =
        |pages: &[Value], member: &str| -> String { pages.iter().map(|page| page[member].as_str().unwrap()).collect() };
    let read = pages(
        &service,
        &key,
        "check_submission",
        &json!({"id": id}),
        ("nextOffset", "offset"),
    )
    .await;
    assert_eq!((read.len() > 1, texts(&read, "body")), (true, body.clone()));
    // The rest of what the submission answered is there as well.
    let offset = made["nextOffset"].as_u64().unwrap();
    let rest = pages(
        &service,
        &key,
        "check_submission",
        &json!({"id": id, "offset": offset}),
        ("nextOffset", "offset"),
    )
    .await;
    assert_eq!(
        format!("{}{}", made["body"].as_str().unwrap(), texts(&rest, "body")),
        body
    );
    let read = pages(
        &service,
        &key,
        "get_knowledge_full",
        &json!({"id": id}),
        ("nextOffset", "offset"),
    )
    .await;
    assert_eq!(texts(&read, "body"), body);
    let at_rest = service
        .get(&format!("/knowledge/{}/full", id.as_str().unwrap()), Some(&key))
        .await
        .json();
    assert_eq!((&at_rest["body"], at_rest.get("nextOffset")), (&json!(body), None));
    let readme = "조위 관측소의 시간별 수위. ".repeat(1_200);
    let (changed, _) = answer(
        &service,
        &key,
        "update_dataset",
        &json!({"slug": "tides", "readme": readme}),
    )
    .await;
    assert!(changed["nextOffset"].is_u64());
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    let read = pages(
        &service,
        &key,
        "dataset_info",
        &json!({"slug": "tides"}),
        ("nextOffset", "offset"),
    )
    .await;
    assert_eq!((read.len() > 1, texts(&read, "readme")), (true, readme.clone()));
    assert_eq!(read[0]["versions"].as_array().unwrap().len(), 1);
    let at_rest = service.get("/projects/tides", Some(&key)).await.json();
    assert_eq!((&at_rest["readme"], at_rest.get("nextOffset")), (&json!(readme), None));
}

#[tokio::test]
async fn answers_to_a_request_go_on_where_they_ended() {
    let (service, key) = scene().await;
    let request = json!({"title": "Levels wanted", "body": "Hourly levels of the quay."});
    let (posted, _) = answer(&service, &key, "post_request", &request).await;
    let id = posted["id"].clone();
    let token = service.operator().await;
    let other = service.agent(&token, "quay-2").await;
    let notes: Vec<_> = (0..12)
        .map(|number| format!("{number} {}", "조위 자료가 있습니다. ".repeat(150)))
        .collect();
    for note in &notes {
        answer(&service, &other, "answer_request", &json!({"id": id, "note": note})).await;
    }
    let read = pages(
        &service,
        &key,
        "get_request",
        &json!({"id": id}),
        ("nextOffset", "offset"),
    )
    .await;
    let found: Vec<_> = items(&read, "answers")
        .iter()
        .map(|item| item["note"].clone())
        .collect();
    assert_eq!(json!(found), json!(notes));
}
