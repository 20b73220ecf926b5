//! Tests against a small server on the loopback interface with prepared answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use types::{Classify, Kind};

use super::*;

/// Starts a server with these routes, which ends with the test's runtime.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Refuses the first two calls with `status`, then answers with a merged contribution.
async fn flaky(status: StatusCode) -> (String, Arc<AtomicUsize>) {
    async fn answer(State((status, calls)): State<(StatusCode, Arc<AtomicUsize>)>) -> Response {
        if calls.fetch_add(1, Ordering::SeqCst) < 2 {
            let body = json!({"error": "limited", "message": "too many calls"}).to_string();
            return (status, [("retry-after", "0")], body).into_response();
        }
        json!({"id": "c1", "status": "merged", "mergedVersion": 7, "acceptedCount": 2, "recordCount": 9})
            .to_string()
            .into_response()
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let router = Router::new()
        .route("/projects/{slug}/contribute", post(answer))
        .route("/projects/{slug}/contributions/{id}", get(answer))
        .with_state((status, Arc::clone(&calls)));
    (serve(router).await, calls)
}

#[tokio::test]
async fn reads_and_keyed_writes_are_tried_again() {
    for status in [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ] {
        let (address, calls) = flaky(status).await;
        let client = Client::new(&address, "km_secret").unwrap();
        let merged = client.contribution("weather", "c1", 0).await.unwrap();
        assert_eq!((merged.merged_version, calls.load(Ordering::SeqCst)), (Some(7), 3));

        let (address, calls) = flaky(status).await;
        let client = Client::new(&address, "km_secret").unwrap();
        let merged = client
            .contribute("weather", &[json!({})], 0, Some("batch-1"))
            .await
            .unwrap();
        assert!(merged.is_decided());
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
}

#[tokio::test]
async fn a_write_without_a_key_is_sent_once() {
    let (address, calls) = flaky(StatusCode::SERVICE_UNAVAILABLE).await;
    let client = Client::new(&address, "km_secret").unwrap();
    let error = client.contribute("weather", &[json!({})], 0, None).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn other_refusals_are_final_and_carry_the_body() {
    let body = json!({
        "error": "invalid", "message": "the body does not match its schema",
        "details": [{"path": "/records", "problem": "must have 1 to 500 items"}], "allowance": {"left": 3},
    });
    let text = body.to_string();
    let router = Router::new().fallback(move || async move { (StatusCode::BAD_REQUEST, text) });
    let client = Client::anonymous(&serve(router).await).unwrap();
    let error = client.project("weather").await.unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!(
        problem.to_string(),
        "400 invalid: the body does not match its schema (/records: must have 1 to 500 items)"
    );
    assert_eq!(problem.body["allowance"]["left"], 3);
    assert_eq!(error.kind(), Kind::Invalid);
}

#[test]
fn a_rule_that_the_sentence_says_is_said_once() {
    let body = json!({
        "error": "invalid_request", "message": "`/sql` is refused: it is no SELECT",
        "details": [
            {"path": "/sql", "problem": "is refused: it is no SELECT"},
            {"path": "/limit", "problem": "must be at most 1000"},
        ],
    });
    let problem = ServiceProblem::new(400, None, body.to_string().as_bytes());
    assert_eq!(
        problem.to_string(),
        "400 invalid_request: `/sql` is refused: it is no SELECT (/limit: must be at most 1000)"
    );
}

#[tokio::test]
async fn what_a_unit_costs_is_asked_without_reading_it() {
    let full = json!({
        "error": "payment_required", "message": "the unit costs $0.25", "price": "0.25", "priceMicro": 250_000,
        "hint": "an agent reads it free",
    });
    let paid = json!({"error": "payment_required", "accepts": [{"description": "Knowledge unit: Float offsets"}]});
    let answer = |body: serde_json::Value| {
        get(move |headers: HeaderMap| async move {
            assert!(!headers.contains_key("authorization"), "a key reads");
            (StatusCode::PAYMENT_REQUIRED, body.to_string())
        })
    };
    let router = Router::new()
        .route("/knowledge/{id}/full", answer(full))
        .route("/paid/knowledge", answer(paid));
    let client = Client::new(&serve(router).await, "km_secret").unwrap();
    let offer = client.unit_offer("01").await.unwrap();
    assert_eq!(
        (offer.title.as_deref(), offer.price_micro, offer.key_reads),
        (Some("Float offsets"), 250_000, true)
    );
}

#[tokio::test]
async fn texts_cannot_leave_their_place_in_the_address() {
    async fn echo(Path((slug, id)): Path<(String, String)>, RawQuery(query): RawQuery, headers: HeaderMap) -> String {
        let key = headers["authorization"].to_str().unwrap().to_owned();
        json!({"id": format!("{slug}|{id}|{}|{key}", query.unwrap_or_default()), "status": "merged"}).to_string()
    }
    let router = Router::new().route("/api/projects/{slug}/contributions/{id}", get(echo));
    let address = format!("{}/api/", serve(router).await);
    let client = Client::new(&address, "km_secret").unwrap();
    let echoed = client.contribution("a/../b?c", "d#e", 20).await.unwrap();
    assert_eq!(echoed.id, "a/../b?c|d#e|wait=20|Bearer km_secret");
}

#[tokio::test]
async fn an_answer_of_another_shape_is_an_error() {
    let router = Router::new().fallback(|| async { "[]" });
    let client = Client::anonymous(&serve(router).await).unwrap();
    let error = client.data("weather", Some(3), 0, 10).await.unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
}

#[tokio::test]
async fn what_cannot_succeed_is_tried_once() {
    for status in [400, 401, 403, 404, 409, 410, 413, 422, 500, 501, 505] {
        let (address, calls) = flaky(StatusCode::from_u16(status).unwrap()).await;
        let client = Client::new(&address, "km_secret").unwrap();
        assert!(client.contribution("weather", "c1", 0).await.is_err());
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{status}");
    }
    // The next server does not speak TLS.
    let (address, _) = flaky(StatusCode::OK).await;
    let plain = Client::anonymous(&address.replace("http:", "https:")).unwrap();
    let error = plain.project("weather").await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(error.kind(), Kind::Invalid);
}

#[tokio::test]
async fn a_service_that_is_down_is_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::anonymous(&address)
        .unwrap()
        .with_retry_budget(RetryBudget::NONE);
    assert_eq!(client.project("weather").await.unwrap_err().kind(), Kind::Unavailable);
}

#[test]
fn addresses_that_cannot_be_called_are_refused() {
    for address in ["", "weather", "ftp://example.org", "file:///etc"] {
        assert!(
            matches!(Client::anonymous(address), Err(Error::Address { .. })),
            "{address}"
        );
    }
}

#[test]
fn this_machine_is_called_without_a_proxy() {
    for (address, own) in [
        ("http://localhost:8080", true),
        ("http://127.0.0.1", true),
        ("http://[::1]:80/", true),
        ("http://example.org", false),
    ] {
        assert_eq!(is_this_machine(&Url::parse(address).unwrap()), own, "{address}");
    }
}

#[test]
fn a_key_is_never_shown() {
    let client = Client::new("http://localhost", "km_secret").unwrap();
    assert!(!format!("{client:?}").contains("km_secret"));
}
