//! Datasets that are deleted for good.

use http::header;
use serde_json::{Value, json};

use super::body;
use crate::testing::Service;
use crate::testing::browser::{Browser, EMAIL, form};

fn private() -> Value {
    json!({"visibility": "private"})
}

#[tokio::test]
async fn a_private_dataset_is_deleted_for_good() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    for slug in ["one", "two", "three"] {
        service.project(&token, slug, &private()).await;
    }
    service.merged(&key, "one", &[json!({"name": "first"})]).await;
    let got = service.call("DELETE", "/projects/one", Some(&key), "").await;
    let answer = got.json();
    assert_eq!(
        (got.status.as_u16(), &answer["slug"], &answer["deletedAt"]),
        (200, &json!("one"), &json!("2026-11-21T07:00:00Z"))
    );
    assert!(answer["remains"].as_array().is_some_and(|remains| !remains.is_empty()));
    // By either credential it is as if it had never been, but for its slug.
    for credential in [&key, &token] {
        let missing = service.get("/projects/nothing", Some(credential)).await.text();
        let gone = service.get("/projects/one", Some(credential)).await;
        assert_eq!(
            (gone.status.as_u16(), gone.text()),
            (404, missing.replace("nothing", "one"))
        );
    }
    for (method, path) in [
        ("DELETE", "/projects/one"),
        ("PATCH", "/projects/one"),
        ("GET", "/projects/one/data"),
        ("GET", "/projects/one/uploads"),
    ] {
        let body = if method == "PATCH" { r#"{"title": "Again"}"# } else { "" };
        assert_eq!(
            service.call(method, path, Some(&key), body).await.status,
            404,
            "{method} {path}"
        );
    }
    let listed = service.get("/projects", Some(&key)).await.json();
    assert_eq!(listed["total"], 2);
    let me = service.get("/me", Some(&key)).await.text();
    assert!(!me.contains("\"one\""), "{me}");
    assert_eq!(
        service.get("/me/contributions", Some(&key)).await.json()["items"],
        json!([])
    );
    // Its place is free, and its slug is not.
    let again = service
        .call("POST", "/projects", Some(&token), &body("one").to_string())
        .await;
    assert_eq!(
        (again.status.as_u16(), again.json()["error"].as_str()),
        (409, Some("slug_taken"))
    );
    let four = service
        .call("POST", "/projects", Some(&token), &body("four").to_string())
        .await;
    assert_eq!(four.status, 201);
}

#[tokio::test]
async fn only_an_own_private_dataset_that_nobody_read_is_deleted() {
    let service = Service::start().await;
    let (token, other) = (service.operator().await, service.operator().await);
    service.project(&token, "public", &json!({})).await;
    service.project(&token, "paid", &json!({"access": "paid"})).await;
    service.project(&token, "secret", &private()).await;
    for (slug, credential, status, error) in [
        ("public", &token, 409, "not_private"),
        ("paid", &token, 409, "not_private"),
        ("public", &other, 403, "not_owner"),
        ("secret", &other, 404, "not_found"),
        ("nothing", &token, 404, "not_found"),
    ] {
        let got = service
            .call("DELETE", &format!("/projects/{slug}"), Some(credential), "")
            .await;
        let is = (
            got.status.as_u16(),
            got.json()["error"].as_str().unwrap_or_default().to_owned(),
        );
        assert_eq!(is, (status, error.to_owned()), "{slug}");
    }
    assert_eq!(service.call("DELETE", "/projects/secret", None, "").await.status, 401);
    for slug in ["public", "paid", "secret"] {
        assert_eq!(
            service.get(&format!("/projects/{slug}"), Some(&token)).await.status,
            200
        );
    }
}

#[tokio::test]
async fn the_console_deletes_a_dataset_whose_slug_is_typed() {
    let service = Service::start().await;
    let token = service.operator_at(EMAIL).await;
    service.project(&token, "public", &json!({})).await;
    service.project(&token, "secret", &private()).await;
    let browser = Browser::signed_in_again(&service).await;
    let form_token = browser.form_token().await;
    let page = browser.get("/console/datasets/secret").await.text();
    assert!(page.contains("action=\"/console/datasets/secret/delete\""));
    assert!(!browser.get("/console/datasets/public").await.text().contains("/delete"));
    let send = async |slug: &str, confirm: &str| {
        let fields = form(&[("form_token", form_token.as_str()), ("confirm", confirm)]);
        browser.post(&format!("/console/datasets/{slug}/delete"), &fields).await
    };
    let wrong = send("secret", "secre").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("Must be the slug of this dataset"));
    assert_eq!(send("public", "public").await.status, 400, "a public one stays");
    assert_eq!(send("nothing", "nothing").await.status, 404);
    let done = send("secret", " secret ").await;
    assert_eq!(
        (done.status.as_u16(), done.headers[header::LOCATION].to_str().unwrap()),
        (303, "/console/datasets")
    );
    assert_eq!(browser.get("/console/datasets/secret").await.status, 404);
    assert!(!browser.get("/console/datasets").await.text().contains("secret"));
    assert_eq!(service.get("/projects/public", Some(&token)).await.status, 200);
}
