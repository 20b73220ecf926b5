//! Changes of a dataset by its operator.

use std::time::Duration;

use serde_json::{Value, json};

use crate::testing::Service;

#[tokio::test]
async fn a_fixed_field_is_refused_by_name_and_nothing_changes() {
    let service = Service::start().await;
    let token = service.operator().await;
    service.project(&token, "tides", &json!({})).await;
    for member in ["schemaDef", "access", "visibility", "license"] {
        let body = json!({member: "public", "title": "Another title"}).to_string();
        let got = service.call("PATCH", "/projects/tides", Some(&token), &body).await;
        assert_eq!(got.status, 400, "{member}");
        let detail = &got.json()["details"][0];
        assert_eq!(
            (&detail["path"], &detail["problem"]),
            (&json!(format!("/{member}")), &json!("never changes after creation"))
        );
    }
    for body in [
        "{}",
        "",
        r#"{"slug": "tides"}"#,
        r#"{"title": null}"#,
        r#"{"price": 1}"#,
        r#"{"status": "gone"}"#,
    ] {
        assert_eq!(
            service
                .call("PATCH", "/projects/tides", Some(&token), body)
                .await
                .status,
            400,
            "{body}"
        );
    }
    assert_eq!(service.get("/projects/tides", None).await.json()["title"], "A title");
}

#[tokio::test]
async fn a_status_moves_as_the_interface_says() {
    let service = Service::start().await;
    let token = service.operator().await;
    service.project(&token, "tides", &json!({})).await;
    let become_ = async |status: &str| {
        let body = json!({"status": status}).to_string();
        service
            .call("PATCH", "/projects/tides", Some(&token), &body)
            .await
            .status
            .as_u16()
    };
    for (status, answer) in [
        ("paused", 200),
        ("open", 200),
        ("paused", 200),
        ("archived", 200),
        ("open", 409),
        ("archived", 200),
    ] {
        assert_eq!(become_(status).await, answer, "{status}");
    }
}

#[tokio::test]
async fn a_price_changes_once_a_day() {
    let service = Service::start().await;
    let token = service.operator().await;
    service
        .project(&token, "tides", &json!({"access": "paid", "price": "0.20"}))
        .await;
    let set = async |price: Value| {
        let body = json!({"price": price}).to_string();
        service.call("PATCH", "/projects/tides", Some(&token), &body).await
    };
    assert_eq!(set(json!(0.5)).await.json()["price"], "0.50");
    service.clock.advance(Duration::from_hours(1));
    let got = set(json!("0.60")).await;
    assert_eq!(got.status, 429);
    assert_eq!(got.json()["retryAfter"], 23 * 3_600);
    assert_eq!(got.headers["retry-after"], "82800");
    assert_eq!(set(json!("0.50")).await.status, 200);
    service.clock.advance(Duration::from_hours(23));
    assert_eq!(set(Value::Null).await.json()["price"], "0.10");
}

#[tokio::test]
async fn only_the_operator_that_maintains_a_project_changes_it() {
    let service = Service::start().await;
    let (token, other) = (service.operator().await, service.operator().await);
    let key = service.agent(&token, "mine").await;
    service.project(&token, "tides", &json!({})).await;
    let body = r#"{"title": "Tides of the sea"}"#;
    let got = service.call("PATCH", "/projects/tides", Some(&other), body).await;
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (403, Some("not_owner"))
    );
    let got = service.call("PATCH", "/projects/tides", Some(&key), body).await;
    assert_eq!(
        (got.status.as_u16(), got.json()["title"].as_str()),
        (200, Some("Tides of the sea"))
    );
}
