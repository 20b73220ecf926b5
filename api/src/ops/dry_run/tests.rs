use serde_json::json;

use crate::testing::Service;

#[tokio::test]
async fn a_dry_run_says_what_would_become_of_each_record_and_keeps_nothing() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    service.project(&token, "weather", &json!({})).await;
    let body =
        json!({"records": [{"name": "a storm"}, {"name": "a storm"}, {"name": 5}, {}], "sourceDeclaration": "test"});
    let got = service
        .call("POST", "/projects/weather/validate", Some(&key), &body.to_string())
        .await;
    assert_eq!(got.status, 200, "{}", got.json());
    let run = got.json();
    assert_eq!(
        (&run["decision"], &run["reason"]["code"], &run["rows"]),
        (&json!("reject"), &json!("refused"), &json!(4))
    );
    let verdicts: Vec<_> = run["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["row"].as_u64().unwrap(), line["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(verdicts, [(1, "drop"), (2, "refuse"), (3, "refuse")]);
    assert_eq!(run["verdicts"][2]["reasons"][0]["path"], "/name");
    assert_eq!(service.app.store.open_count_and_bytes().await.unwrap().open, 0);
    let fresh = service
        .call(
            "POST",
            "/projects/weather/validate",
            Some(&key),
            r#"{"records": [{"name": "a storm"}]}"#,
        )
        .await;
    assert_eq!(
        (&fresh.json()["decision"], &fresh.json()["passed"]),
        (&json!("merge"), &json!(1))
    );
}
