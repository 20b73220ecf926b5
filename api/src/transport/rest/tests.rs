use axum::body::Body;
use http::{Request, header};
use serde_json::{Value, json};
use types::OperatorId;

use super::*;
use crate::call::spec::{Credential, OPTIONAL, Spec};
use crate::testing::{Service, config, count, limits};

mod arriving;
mod browsers;
mod compression;
mod heads;

#[tokio::test]
async fn every_operation_that_needs_a_credential_answers_401_before_anything_else() {
    let service = Service::start().await;
    for operation in crate::operations(&limits()).iter() {
        let spec = &operation.spec;
        let path = spec.path.replace("{slug}", "no-such").replace("{id}", "not-an-id");
        // The answer with events goes on for as long as its caller asks.
        let path = path.replace("/activity/events", "/activity/events?seconds=1");
        // The records of a diff need a key, its contributions do not.
        let path = path.replace("/diff", "/diff?limit=0");
        let got = service.call(spec.method.as_str(), &path, None, "{not json").await;
        // At the endpoints of OAuth the credential is in the body.
        if spec.opaque {
            continue;
        }
        if !spec.reads_credential() || spec.accepts(Credential::Anonymous) {
            assert_ne!(got.status, 401, "{path}");
            continue;
        }
        if spec.surface == ApiKind::Page {
            // A browser is led to the sign-in page; what sends a form without saying where it comes from is no browser.
            let expected = if spec.method == Method::GET { 303 } else { 403 };
            assert_eq!(got.status, expected, "{path}");
            continue;
        }
        assert_eq!(got.status, 401, "{path}");
        let body = got.json();
        assert_eq!(body["error"], "unauthenticated", "{path}");
        assert!(body["hint"].as_str().unwrap().contains("Bearer"), "{path}");
        assert_eq!(body["getKey"], "http://sluice.test/guide/agents.md#keys", "{path}");
        assert!(
            got.headers[header::WWW_AUTHENTICATE]
                .to_str()
                .unwrap()
                .starts_with("Bearer"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_credential_that_is_presented_must_be_valid_also_where_none_is_needed() {
    let service = Service::start().await;
    for credential in ["km_wrong", "wto_", "nothing", "", "km_\u{e9}"] {
        assert_eq!(
            service.get("/projects", Some(credential)).await.status,
            401,
            "{credential}"
        );
    }
    let basic = Request::get("/projects")
        .header("authorization", "Basic a2V5")
        .body(Body::empty())
        .unwrap();
    assert_eq!(service.send(basic).await.status, 401);
    assert_eq!(service.get("/healthz", Some("nothing")).await.status, 200);
}

#[tokio::test]
async fn the_refusal_of_a_credential_of_the_wrong_kind_names_the_right_one() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    let got = service
        .call("POST", "/agents", Some(&key), r#"{"name": "alice"}"#)
        .await;
    assert_eq!(got.status, 403);
    assert!(got.json()["message"].as_str().unwrap().contains("operator token"));
    // An agent's key would help here, so the answer is the one for a missing key.
    let got = service.get("/projects/weather/data", Some(&token)).await;
    assert_eq!(got.status, 401);
    assert!(got.json()["message"].as_str().unwrap().contains("agent key"));
}

#[tokio::test]
async fn a_suspension_holds_from_the_next_call_on_for_the_operator_and_its_agents() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    assert_eq!(service.get("/projects", Some(&key)).await.status, 200);
    let caller = auth_of(&service, &token).await;
    let now = service.app.clock.now();
    service
        .app
        .store
        .operator_suspend(caller, "spam".to_owned(), now)
        .await
        .unwrap();
    for credential in [&token, &key] {
        let got = service.get("/projects", Some(credential)).await;
        assert_eq!(got.status, 401);
        assert_eq!(got.json()["error"], "account_suspended");
    }
    service.app.store.operator_restore(caller).await.unwrap();
    assert_eq!(service.get("/projects", Some(&key)).await.status, 200);
}

async fn auth_of(service: &Service, credential: &str) -> OperatorId {
    let presented = PresentedCredential::Authorization(format!("Bearer {credential}"));
    let spec = Spec {
        accepts: OPTIONAL,
        ..Spec::BASE
    };
    let caller = crate::rules::auth::authenticate(&service.app, &spec, presented, Transport::Rest).await;
    caller.unwrap().unwrap().operator
}

#[tokio::test]
async fn what_matches_no_operation_is_refused_in_the_same_shape() {
    let service = Service::start().await;
    for (method, path, status, code) in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/projects/", 404, "not_found"),
        ("DELETE", "/projects", 405, "method_not_allowed"),
        ("PUT", "/healthz", 405, "method_not_allowed"),
    ] {
        let got = service.call(method, path, None, "").await;
        assert_eq!(got.status, status, "{method} {path}");
        assert_eq!(got.json()["error"], code, "{method} {path}");
        assert_eq!(got.headers[header::CONTENT_TYPE], JSON);
    }
    let got = service.call("DELETE", "/projects", None, "").await;
    assert_eq!(got.headers[header::ALLOW], "POST,GET,HEAD,OPTIONS");
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_is_not_sniffed() {
    let service = Service::start().await;
    let mut seen = std::collections::HashSet::new();
    for path in ["/healthz", "/nothing", "/projects/no-such", "/projects/no-such/data"] {
        let got = service.get(path, None).await;
        assert!(
            seen.insert(got.headers[REQUEST_ID].to_str().unwrap().to_owned()),
            "{path}"
        );
        assert_eq!(got.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let service = Service::start().await;
    let got = service.call("HEAD", "/licenses", None, "").await;
    assert_eq!((got.status.as_u16(), got.bytes.len()), (200, 0));
}

#[tokio::test]
async fn parameters_are_checked_where_they_belong() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    service.project(&key, "weather", &json!({})).await;
    let body = r#"{"records": [{"name": "a"}]}"#;
    for (path, body, at, rule) in [
        (
            "/projects/weather/contribute?wait=21",
            body,
            "/wait",
            "must be at most 20",
        ),
        (
            "/projects/weather/contribute?wait=x",
            body,
            "/wait",
            "must be an integer",
        ),
        (
            "/projects/weather/contribute?wait=",
            body,
            "/wait",
            "must be an integer",
        ),
        (
            "/projects/weather/contribute?wait=1&wait=2",
            body,
            "/wait",
            "must be given once",
        ),
        (
            "/projects/weather/contribute?fast=1",
            body,
            "/fast",
            "is not a known query parameter",
        ),
        (
            "/projects/weather/contribute?records=1",
            body,
            "/records",
            "is not a query parameter",
        ),
        (
            "/projects/weather/contribute",
            r#"{"records": [{}], "wait": 1}"#,
            "/wait",
            "query parameter",
        ),
        (
            "/projects/weather/contribute",
            r#"{"records": [{}], "slug": "x"}"#,
            "/slug",
            "is in the path",
        ),
        (
            "/projects/weather/contribute",
            r#"{"records": [{}], "idempotencyKey": "x"}"#,
            "/idempotencyKey",
            "header",
        ),
        (
            "/projects/weather/contribute",
            r#"{"records": [{}], "extra": 1}"#,
            "/extra",
            "is not a known field",
        ),
        ("/projects/weather/contribute", "", "/records", "is required"),
        (
            "/projects/weather/contribute",
            "[]",
            "",
            "must have a JSON object as its body",
        ),
    ] {
        let got = service.call("POST", path, Some(&key), body).await;
        assert_eq!(got.status, 400, "{path} {body}");
        let detail = &got.json()["details"][0];
        assert_eq!(detail["path"], at, "{path} {body}");
        assert!(
            detail["problem"].as_str().unwrap().contains(rule),
            "{path} {body} {detail}"
        );
    }
}

#[tokio::test]
async fn json_that_readers_could_understand_differently_is_refused_with_its_place() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    service.project(&key, "weather", &json!({})).await;
    let deep = format!(
        r#"{{"records": [{{"name": {}1{}}}]}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    for (body, at) in [
        (r#"{"records": [{"name": "a", "name": "b"}]}"#, "/records/0/name"),
        (r#"{"records": [{"name": "\u0000"}]}"#, "/records/0/name"),
        (r#"{"records": [{"name": "\ud800"}]}"#, "/records/0/name"),
        (r#"{"records": [{"name": 1e999}]}"#, "/records/0/name"),
        (r#"{"records": [{}"#, ""),
    ] {
        let got = service
            .call("POST", "/projects/weather/contribute", Some(&key), body)
            .await;
        assert_eq!(
            (got.status.as_u16(), got.json()["error"].as_str()),
            (400, Some("malformed_json")),
            "{body}"
        );
        assert!(
            got.json()["details"][0]["path"].as_str().unwrap().starts_with(at),
            "{body} {}",
            got.json()
        );
    }
    let got = service
        .call("POST", "/projects/weather/contribute", Some(&key), &deep)
        .await;
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (400, Some("malformed_json"))
    );
}

#[tokio::test]
async fn a_body_over_its_limit_is_413_whether_or_not_its_length_is_announced() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    service.project(&key, "weather", &json!({})).await;
    let large = format!(r#"{{"records": [{{"name": "{}"}}]}}"#, "x".repeat(4 << 20));
    let got = service
        .call("POST", "/projects/weather/contribute", Some(&key), &large)
        .await;
    assert_eq!(
        (got.status.as_u16(), got.json()["limitBytes"].as_u64()),
        (413, Some(4 << 20))
    );
    let pieces: Vec<_> = large
        .as_bytes()
        .chunks(1 << 16)
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
        .collect();
    let streamed = Request::post("/projects/weather/validate")
        .header("authorization", format!("Bearer {key}"))
        .body(Body::from_stream(futures_util::stream::iter(pieces)))
        .unwrap();
    assert_eq!(service.send(streamed).await.status, 413);
    let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(service.call("POST", "/agents", Some(&token), &long).await.status, 413);
}

#[tokio::test]
async fn calls_of_an_address_are_limited_before_anything_else_and_probes_are_not() {
    let mut few = limits();
    few.calls_per_ip_per_minute = count(2);
    let service = Service::with(config(), few).await;
    assert_eq!(service.get("/licenses", None).await.status, 200);
    assert_eq!(service.get("/nothing", None).await.status, 404);
    for path in ["/licenses", "/nothing", "/projects/weather/data"] {
        let got = service.get(path, None).await;
        assert_eq!(got.status, 429, "{path}");
        assert_eq!(got.headers[header::RETRY_AFTER], "61", "{path}");
        assert_eq!(got.json()["retryAfter"], 61, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(service.get(path, None).await.status, 200, "{path}");
    }
    service.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(service.get("/licenses", None).await.status, 429);
    service.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(service.get("/licenses", None).await.status, 200);
}

#[tokio::test]
async fn a_forwarded_address_counts_only_as_far_as_proxies_are_trusted() {
    let mut few = limits();
    few.calls_per_ip_per_minute = count(1);
    let ask = |forwarded: &str| {
        Request::get("/licenses")
            .header("x-forwarded-for", forwarded)
            .body(Body::empty())
            .unwrap()
    };
    let distrusting = Service::with(config(), few.clone()).await;
    assert_eq!(distrusting.send(ask("198.51.100.1")).await.status, 200);
    assert_eq!(distrusting.send(ask("198.51.100.2")).await.status, 429);
    let mut behind_one = config();
    behind_one.trusted_proxies = 1;
    let trusting = Service::with(behind_one, few).await;
    assert_eq!(trusting.send(ask("198.51.100.1")).await.status, 200);
    assert_eq!(trusting.send(ask("198.51.100.2")).await.status, 200);
    assert_eq!(trusting.send(ask("203.0.113.9, 198.51.100.2")).await.status, 429);
    // Entries that a client sends itself, however invalid, do not change the entry that the proxy adds.
    let appended = Request::get("/licenses")
        .header("x-forwarded-for", "203.0.113.7")
        .header(
            "x-forwarded-for",
            HeaderValue::from_bytes(b"\xff, 198.51.100.2").unwrap(),
        )
        .body(Body::empty())
        .unwrap();
    assert_eq!(trusting.send(appended).await.status, 429);
}

#[tokio::test]
async fn the_service_says_what_it_is() {
    let service = Service::start().await;
    let get = async |path: &str| service.get(path, None).await.json();
    assert_eq!(get("/healthz").await, json!({"status": "ok"}));
    assert_eq!(get("/readyz").await, json!({"db": "ok", "cache": "off", "files": "ok"}));
    assert_eq!(
        get("/terms/version").await,
        json!({"version": "2026-11-01", "url": "http://sluice.test/terms"})
    );
    assert_eq!(get("/signup/status").await, json!({"open": true}));
    let licenses = get("/licenses").await;
    let ids: Vec<&Value> = licenses["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|license| &license["id"])
        .collect();
    assert_eq!(
        ids,
        [
            "platform-standard",
            "CC0-1.0",
            "CC-BY-4.0",
            "CC-BY-SA-4.0",
            "ODbL-1.0",
            "PDDL-1.0",
            "CDLA-Permissive-2.0"
        ]
    );
    assert_eq!(get("/openapi.json").await["info"]["version"], "0.26.0");
}

#[tokio::test]
async fn a_database_that_is_down_is_503_with_a_fixed_sentence_and_the_request_id() {
    let service = Service::start().await;
    service.app.store.close().await;
    let got = service.get("/readyz", None).await;
    assert_eq!(
        (got.status.as_u16(), got.json()),
        (503, json!({"db": "down", "cache": "off", "files": "ok"}))
    );
    let got = service.get("/projects/weather", None).await;
    assert_eq!(got.status, 503);
    assert_eq!(got.json()["requestId"], got.headers[REQUEST_ID].to_str().unwrap());
    assert_eq!(
        got.json()["message"],
        "a part of the service is not available; try again shortly"
    );
    assert!(got.headers.contains_key(header::RETRY_AFTER));
    assert_eq!(service.get("/healthz", None).await.status, 200);
}

#[tokio::test]
async fn a_change_is_in_the_audit_trail_and_a_refused_one_is_not() {
    let service = Service::start().await;
    let token = service.operator().await;
    let operator = auth_of(&service, &token).await;
    let key = service.agent(&token, "bob").await;
    let refused = service
        .call("POST", "/agents", Some(&token), r#"{"name": "bob"}"#)
        .await;
    assert_eq!(refused.status, 409);
    assert_eq!(service.get("/projects", Some(&key)).await.status, 200);
    let trail = service.app.store.flow().audit_of(operator, None, 9).await.unwrap();
    let rows: Vec<_> = trail
        .iter()
        .map(|row| (row.operation.as_str(), row.subject.as_deref()))
        .collect();
    assert_eq!(rows, [("create_agent", Some("bob"))]);
    assert_eq!(trail[0].actor_kind, types::vocabulary::ActorKind::Person);
}

#[tokio::test]
async fn a_limit_of_an_hour_outlives_the_process() {
    let mut few = limits();
    few.agent_registrations_per_ip_per_hour = 2;
    let mut service = Service::with(config(), few).await;
    let token = service.operator().await;
    let register = async |name: &str| {
        let body = json!({ "name": name }).to_string();
        service
            .call("POST", "/agents", Some(&token), &body)
            .await
            .status
            .as_u16()
    };
    assert_eq!(register("one").await, 201);
    // A refused attempt counts too.
    assert_eq!(register("one").await, 409);
    assert_eq!(register("two").await, 429);
    // A process that starts now has counted nothing in its memory.
    let app = App {
        limiter: Arc::new(crate::state::limit::Limiter::default().with_durable(Arc::new(
            crate::state::limit::DurableCounters::new(service.app.store.clone()),
        ))),
        ..service.app.clone()
    };
    service.router = crate::router(app);
    let refused = service
        .call("POST", "/agents", Some(&token), r#"{"name": "two"}"#)
        .await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["error"], "registration_limit");
}
