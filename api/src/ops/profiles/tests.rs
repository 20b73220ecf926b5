use serde_json::json;

use super::*;
use crate::call::room::ANSWER_BYTES;
use crate::testing::{Service, config, limits, tariff};

/// A service with an agent of a new operator.
async fn service() -> (Service, String) {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "ada").await;
    (service, key)
}

#[tokio::test]
async fn rows_that_anybody_sees_are_bounded_by_access() {
    let service = Service::start().await;
    let free = json!({"access": "public"});
    let paid = json!({"access": "paid", "price": "0.10"});
    let cases = [
        (&free, None, Ok(json!(20))),
        (&free, Some(json!(0)), Ok(json!(0))),
        (&free, Some(json!(100)), Ok(json!(100))),
        (&free, Some(json!(101)), Err(())),
        (&free, Some(json!(null)), Err(())),
        (&paid, None, Ok(json!(5))),
        (&paid, Some(json!(null)), Ok(json!(null))),
        (&paid, Some(json!(20)), Ok(json!(20))),
        (&paid, Some(json!(21)), Err(())),
        (&paid, Some(json!(-1)), Err(())),
        (&paid, Some(json!("5")), Err(())),
    ];
    for (number, (access, given, expected)) in cases.into_iter().enumerate() {
        let slug = format!("readings-{number}");
        let mut body = json!({
            "slug": slug,
            "title": "A title",
            "readme": "A readme of at least twenty characters.",
            "schemaDef": {"fields": [{"name": "name", "type": "string", "required": true}]},
        });
        let members = body.as_object_mut().unwrap();
        members.extend(access.as_object().unwrap().clone());
        members.extend(given.clone().map(|given| ("previewRows".to_owned(), given)));
        let token = service.operator().await;
        let got = service.call("POST", "/projects", Some(&token), &body.to_string()).await;
        match expected {
            Ok(expected) => {
                assert_eq!(
                    (got.status.as_u16(), &got.json()["previewRows"]),
                    (201, &expected),
                    "{body}"
                );
                let shown = service.get(&format!("/projects/{slug}"), None).await;
                assert_eq!(shown.json()["previewRows"], expected);
            }
            Err(()) => {
                assert_eq!(
                    (got.status.as_u16(), &got.json()["details"][0]["path"]),
                    (400, &json!("/previewRows"))
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_answers_with_what_fits() {
    let (service, key) = service().await;
    service.project(&key, "texts", &json!({})).await;
    let records: Vec<Value> = (0..60)
        .map(|number| json!({"name": format!("{number} {}", "ü".repeat(900))}))
        .collect();
    service.merged(&key, "texts", &records).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "preview_dataset", "arguments": {"slug": "texts"}}});
    for credential in [None, Some(key.as_str())] {
        let got = service.call("POST", "/mcp", credential, &call.to_string()).await;
        assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&got.bytes));
        // Beside the answer there is a warning of texts by others.
        let got = got.json();
        let texts = got["result"]["content"].as_array().unwrap().iter();
        let text = texts
            .filter_map(|content| content["text"].as_str())
            .find(|text| text.starts_with('{'));
        let text = text.unwrap();
        assert!(text.len() <= ANSWER_BYTES, "{}", text.len());
        assert!(text.contains(r#""cut":true"#), "{text}");
        assert!(text.contains(r#""level":"full""#), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_does_not_exist_is_missing_and_one_that_is_lost_says_so() {
    let (service, key) = service().await;
    service.project(&key, "names", &json!({})).await;
    service.merged(&key, "names", &[json!({"name": "one"})]).await;
    for door in ["profile", "preview"] {
        let got = service.get(&format!("/projects/names/{door}?version=2"), None).await;
        assert_eq!((got.status.as_u16(), &got.json()["error"]), (404, &json!("not_found")));
        let got = service.get(&format!("/projects/names/{door}?version=1"), None).await;
        assert_eq!((got.status.as_u16(), &got.json()["version"]), (200, &json!(1)));
        for broken in ["0", "-1", "x", "1.5", "9007199254740993"] {
            let got = service
                .get(&format!("/projects/names/{door}?version={broken}"), None)
                .await;
            assert_eq!(got.status, 400, "{broken}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_rows_count_as_egress_and_are_cut_where_none_is_left() {
    let prices = pay::Tariff {
        free_egress_bytes: 30_000,
        ..tariff()
    };
    let service = Service::priced(config(), limits(), prices).await;
    let token = service.operator_at("ada@example.org").await;
    let key = service.agent(&token, "ada").await;
    service.project(&key, "texts", &json!({})).await;
    let records: Vec<Value> = (0..20)
        .map(|number| json!({"name": format!("{number} {}", "x".repeat(900))}))
        .collect();
    service.merged(&key, "texts", &records).await;
    let (app, month) = (&service.app, service.app.clock.now().month());
    let operator = app
        .store
        .operator_by_email("ada@example.org")
        .await
        .unwrap()
        .unwrap()
        .id;
    service.granted(operator, 1_000_000).await;
    let path = "/projects/texts/preview?version=1";
    for (credential, is_cut) in [
        (None, true),
        (Some(key.as_str()), false),
        (Some(&key), true),
        (None, true),
    ] {
        let got = service.get(path, credential).await;
        let shown = got.json();
        assert_eq!((got.status.as_u16(), &shown["cut"]), (200, &json!(is_cut)));
        let characters = shown["rows"][0]["name"].as_str().unwrap().len();
        assert_eq!(characters == 500, is_cut, "{characters}");
    }
    app.egress.store(&app.store, app.clock.now()).await.unwrap();
    let bytes: usize = records.iter().map(|record| record.to_string().len()).sum();
    assert_eq!(app.store.egress(operator, month).await.unwrap(), bytes as u64);
    let balances = app.store.money().balances(&app.pay.asset, operator).await.unwrap();
    assert_eq!(balances.credits.0, 1_000_000);
}
