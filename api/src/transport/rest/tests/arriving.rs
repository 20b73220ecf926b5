//! Tests of the limits on bodies that are being received: bytes in memory, and time.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use types::{HumanDuration, Size};

use super::*;
use crate::testing::Got;

/// A service with room for 512 KiB of bodies of each operator, and for 768 KiB in all.
async fn small() -> Arc<Service> {
    let mut limits = limits();
    (limits.bodies_per_operator, limits.bodies) = (Size(512 << 10), Size(768 << 10));
    Arc::new(Service::with(config(), limits).await)
}

fn agent(token: &str, length: Option<usize>, body: Body) -> Request<Body> {
    let request = Request::post("/agents").header("authorization", format!("Bearer {token}"));
    let request = match length {
        Some(length) => request.header("content-length", length),
        None => request,
    };
    request.body(body).unwrap()
}

/// Returns the body of a registration, padded with spaces to `bytes` bytes.
fn padded(name: &str, bytes: usize) -> String {
    let body = json!({ "name": name }).to_string();
    body.clone() + &" ".repeat(bytes - body.len())
}

/// Sends a whole body of the given size.
async fn send(service: &Service, token: &str, name: &str, bytes: usize) -> Got {
    service
        .send(agent(token, Some(bytes), padded(name, bytes).into()))
        .await
}

/// Announces a body that never arrives, and returns when the service waits for it.
async fn begin(service: &Arc<Service>, token: &str, bytes: usize) -> JoinHandle<Got> {
    let waited = Arc::new(Notify::new());
    let told = Arc::clone(&waited);
    let silent = stream::once(async move {
        told.notify_one();
        std::future::pending::<Result<Bytes, io::Error>>().await
    });
    let request = agent(token, Some(bytes), Body::from_stream(silent));
    let sender = Arc::clone(service);
    let sending = tokio::spawn(async move { sender.send(request).await });
    waited.notified().await;
    sending
}

/// Sends a whole body of unknown length in pieces of 16 KiB.
async fn send_in_pieces(service: &Service, token: &str, name: &str, bytes: usize) -> Got {
    let body = Bytes::from(padded(name, bytes));
    let pieces: Vec<_> = (0..bytes)
        .step_by(16 << 10)
        .map(|at| body.slice(at..bytes.min(at + (16 << 10))))
        .collect();
    let body = Body::from_stream(stream::iter(pieces).map(Ok::<_, io::Error>));
    service.send(agent(token, None, body)).await
}

fn assert_full(got: &Got, status: u16, code: &str) {
    let body = got.json();
    assert_eq!((got.status.as_u16(), &body["error"]), (status, &json!(code)), "{body}");
    assert_eq!(got.headers[header::RETRY_AFTER], "1");
    assert_eq!(body["retryAfter"], 1);
}

#[tokio::test]
async fn an_operator_has_a_share_of_the_memory_for_bodies_and_all_share_the_whole() {
    let service = small().await;
    let [ada, eve, bob] = [
        service.operator().await,
        service.operator().await,
        service.operator().await,
    ];
    let first = begin(&service, &ada, 384_000).await;
    assert_full(&send(&service, &ada, "a", 256_000).await, 429, "bodies_of_one");
    assert_full(
        &send_in_pieces(&service, &ada, "a", 256_000).await,
        429,
        "bodies_of_one",
    );
    assert_eq!(
        send(&service, &ada, "a", 128_000).await.status,
        201,
        "it fits beside the first"
    );
    assert_eq!(
        send(&service, &eve, "c", 384_000).await.status,
        201,
        "others have their own share"
    );
    let second = begin(&service, &eve, 384_000).await;
    assert_full(&send(&service, &bob, "a", 256_000).await, 503, "bodies_of_all");
    for (at, (begun, token)) in [(first, &ada), (second, &eve)].into_iter().enumerate() {
        begun.abort();
        assert!(begun.await.is_err());
        assert_eq!(
            send(&service, token, &format!("again{at}"), 256_000).await.status,
            201,
            "room is given back"
        );
    }
    assert_eq!(send(&service, &bob, "d", 256_000).await.status, 201);
}

#[tokio::test]
async fn a_body_of_unknown_length_takes_memory_as_it_arrives() {
    let service = small().await;
    let [ada, eve] = [service.operator().await, service.operator().await];
    assert_eq!(send_in_pieces(&service, &ada, "a", 448_000).await.status, 201);
    assert_full(
        &send_in_pieces(&service, &ada, "b", 576_000).await,
        429,
        "bodies_of_one",
    );
    let first = begin(&service, &ada, 512_000).await;
    assert_eq!(send_in_pieces(&service, &eve, "c", 192_000).await.status, 201);
    assert_full(
        &send_in_pieces(&service, &eve, "b", 384_000).await,
        503,
        "bodies_of_all",
    );
    first.abort();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
    let mut limits = limits();
    limits.body_patience = HumanDuration(Duration::from_secs(1));
    let service = Arc::new(Service::with(config(), limits).await);
    let token = service.operator().await;
    let got = begin(&service, &token, 100).await.await.unwrap();
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (408, &json!("request_timeout"))
    );
}
