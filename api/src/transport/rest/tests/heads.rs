//! Tests of heads that break a rule of HTTP, and of bodies of a type that is not accepted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::call::answer::JsonReply;
use crate::call::spec::Spec;

/// Asserts that the request is refused as invalid with a message that contains `words`.
fn assert_invalid(got: &crate::testing::Got, words: &str) {
    let body = got.json();
    assert_eq!(
        (got.status.as_u16(), &body["error"]),
        (400, &json!("invalid_request")),
        "{body}"
    );
    let message = body["message"].as_str().unwrap();
    assert!(message.contains(words), "{message}");
}

#[tokio::test]
async fn a_credential_is_given_once() {
    let service = Service::start().await;
    let token = service.operator().await;
    let given = format!("Bearer {token}");
    for (first, second) in [
        (given.as_str(), "Bearer km_x"),
        ("Bearer km_x", &given),
        (&given, &given),
    ] {
        for path in ["/projects", "/licenses", "/nothing"] {
            let request = Request::get(path)
                .header("authorization", first)
                .header("authorization", second);
            let got = service.send(request.body(Body::empty()).unwrap()).await;
            assert_invalid(&got, "the header `authorization` once");
        }
    }
    assert_eq!(service.get("/projects", Some(&token)).await.status, 200);
}

#[tokio::test]
async fn a_request_names_one_host() {
    let service = Service::start().await;
    let request = || Request::get("/licenses");
    let empty = |request: http::request::Builder| request.body(Body::empty()).unwrap();
    let ask = async |request: Request<Body>| service.send_as_it_is(request).await;
    assert_invalid(&ask(empty(request())).await, "must have a `Host` header");
    let two = request().header("host", "a.test").header("host", "a.test");
    assert_invalid(&ask(empty(two)).await, "the header `host` once");
    for host in ["a b", "a.test/x", "ada@a.test", "a.test:x"] {
        let named = ask(empty(request().header("host", host))).await;
        assert_invalid(&named, "in its `Host` header");
    }
    for host in ["a.test", "a.test:8080", "[::1]:80", ""] {
        assert_eq!(ask(empty(request().header("host", host))).await.status, 200, "{host}");
    }
    let old = request().version(http::Version::HTTP_10);
    assert_eq!(ask(empty(old)).await.status, 200);
}

#[tokio::test]
async fn paths_and_queries_are_percent_encoded_text() {
    let service = Service::start().await;
    for (path, part) in [
        ("/projects/%zz", "path"),
        ("/projects/a%2", "path"),
        ("/projects/%ff", "path"),
        ("/nothing/%", "path"),
        ("/uploads/%zz/1", "path"),
        ("/projects?q=%zz", "query"),
        ("/projects?q=%ff", "query"),
        ("/projects?%=1", "query"),
    ] {
        let got = service.get(path, None).await;
        assert_invalid(&got, &format!("a {part} that is percent-encoded UTF-8"));
    }
    assert_eq!(service.get("/projects?q=%C3%A9%20a", None).await.status, 200);
    assert_eq!(service.get("/projects/%6eone", None).await.status, 404);
}

#[tokio::test]
async fn a_body_is_sent_as_what_the_operation_takes() {
    let service = Service::start().await;
    let token = service.operator().await;
    let post = async |types: &[&str], body: &str| {
        let mut request = Request::post("/agents").header("authorization", format!("Bearer {token}"));
        for content_type in types {
            request = request.header("content-type", *content_type);
        }
        service.send(request.body(Body::from(body.to_owned())).unwrap()).await
    };
    for refused in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "application/problem+json",
        "application/jsonx",
        "application/json; charset=latin1",
        "",
    ] {
        let got = post(&[refused], r#"{"name": "eve"}"#).await;
        assert_invalid(&got, "`Content-Type: application/json`");
    }
    let twice = post(&["application/json", "application/json"], r#"{"name": "eve"}"#).await;
    assert_invalid(&twice, "the header `content-type` once");
    for (name, taken) in [
        ("a", "application/json"),
        ("b", "Application/JSON; charset=\"UTF-8\""),
        ("c", "application/json;profile=x"),
    ] {
        let got = post(&[taken], &json!({ "name": name }).to_string()).await;
        assert_eq!(got.status, 201, "{taken}");
    }
    assert_eq!(post(&[], r#"{"name": "d"}"#).await.status, 201);
    let none = post(&["application/x-www-form-urlencoded"], "").await;
    assert_eq!(none.json()["details"][0]["path"], "/name", "no body has no type");
}

#[tokio::test]
async fn an_operation_says_which_types_it_takes() {
    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Said {
        word: String,
    }
    let mut service = Service::start().await;
    let mut table = Operations::default();
    let spec = Spec {
        name: "echo",
        method: Method::POST,
        path: "/echo",
        takes: &["application/merge-patch+json", JSON],
        ..Spec::BASE
    };
    table.add(spec, &[], async |_, body: Said| Ok(JsonReply::ok(body)));
    let described = crate::ops::openapi::document(&table, "");
    let types = &described["paths"]["/echo"]["post"]["requestBody"]["content"];
    assert_eq!(types.as_object().unwrap().len(), 2);
    service.router = router(service.app.clone(), table);
    for (content_type, status) in [("application/merge-patch+json", 200), (JSON, 200), ("text/plain", 400)] {
        let request = Request::post("/echo").header("content-type", content_type);
        let got = service
            .send(request.body(Body::from(r#"{"word": "x"}"#)).unwrap())
            .await;
        assert_eq!(got.status, status, "{content_type}");
    }
}
