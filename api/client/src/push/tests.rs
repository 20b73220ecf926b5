use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Bytes;
use axum::extract::{Path as At, State as With};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use serde_json::{Value, json};

use super::*;
use crate::RetryBudget;

/// The size of a part in bytes.
const PART: u64 = 1 << 20;

/// A service that accepts uploads and merges everything.
#[derive(Default)]
struct Service {
    begun: AtomicUsize,
    puts: Mutex<Vec<u32>>,
    parts: Mutex<BTreeMap<u32, Bytes>>,
    /// The number of PUTs that are refused with 503 at first.
    failing: AtomicUsize,
    /// The first part whose PUTs are always refused.
    refused_from: AtomicUsize,
    gone: AtomicUsize,
    /// True if the answers are those of an object store.
    is_store: AtomicBool,
    /// The number of completions that fail because parts are missing.
    lacking: AtomicUsize,
    /// The status of answers to completions, 201 if it is 0.
    completes_with: AtomicUsize,
    /// The file that is changed when a part arrives.
    written: Mutex<Option<PathBuf>>,
    /// The ids of cancelled uploads.
    cancelled: Mutex<Vec<usize>>,
    /// The status of an answer to a cancellation, 200 if it is 0.
    cancels_with: AtomicUsize,
}

type Shared = With<Arc<Service>>;

fn reply(status: u16, body: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
}

async fn begin(With(service): Shared, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let id = service.begun.fetch_add(1, Ordering::SeqCst) + 1;
    let (bytes, size) = (body["bytes"].as_u64().unwrap(), body["partSize"].as_u64().unwrap());
    let parts: Vec<Value> = (1..=body["parts"].as_u64().unwrap())
        .map(|n| json!({"n": n, "bytes": size.min(bytes - (n - 1) * size), "url": format!("/put/{id}/{n}")}))
        .collect();
    let upload = json!({"id": id.to_string(), "partSize": size, "partUrls": parts});
    reply(201, &upload)
}

async fn take(With(service): Shared, At((id, n)): At<(usize, u32)>, body: Bytes) -> Response {
    let refuse = |status: u16, code: &str| reply(status, &json!({ "error": code }));
    let document = |status: u16, code: &str| {
        let document = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>So it is</Message></Error>");
        (StatusCode::from_u16(status).unwrap(), document).into_response()
    };
    let is_store = service.is_store.load(Ordering::SeqCst);
    if is_store && id <= service.gone.load(Ordering::SeqCst) {
        return document(403, "AccessDenied");
    }
    if is_store && n as usize >= service.refused_from.load(Ordering::SeqCst) {
        return document(400, "EntityTooLarge");
    }
    if id <= service.gone.load(Ordering::SeqCst) {
        return refuse(409, "upload_closed");
    }
    if n as usize >= service.refused_from.load(Ordering::SeqCst) {
        return refuse(400, "length_mismatch");
    }
    let failing = service
        .failing
        .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if failing.is_ok() && is_store {
        return document(400, "RequestTimeout");
    }
    if failing.is_ok() {
        return refuse(503, "unavailable");
    }
    if let Some(file) = &*service.written.lock() {
        fs::write(file, b"{\"a\":2}\n").unwrap();
    }
    service.puts.lock().push(n);
    service.parts.lock().insert(n, body);
    ([("etag", format!("\"tag-{n}\""))], "{}").into_response()
}

async fn complete(With(service): Shared, body: Bytes) -> Response {
    let lacking = service
        .lacking
        .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if lacking.is_ok() {
        service.parts.lock().clear();
        return reply(409, &json!({"error": "parts_missing"}));
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let tags = body["etags"].as_array().unwrap();
    for (tag, n) in tags.iter().zip(1..) {
        assert_eq!(tag, &json!({"n": n, "etag": format!("\"tag-{n}\"")}));
    }
    match service.completes_with.load(Ordering::SeqCst) {
        0 => reply(201, &json!({"id": "1", "status": "submitted"})),
        status => reply(u16::try_from(status).unwrap(), &json!({"error": "refused"})),
    }
}

async fn cancel(With(service): Shared, At(id): At<usize>) -> Response {
    service.cancelled.lock().push(id);
    match service.cancels_with.load(Ordering::SeqCst) {
        0 => reply(200, &json!({})),
        status => reply(u16::try_from(status).unwrap(), &json!({"error": "refused"})),
    }
}

async fn outcome() -> Response {
    let merged = json!({"id": "1", "status": "merged", "mergedVersion": 1, "acceptedCount": 2, "recordCount": 2});
    reply(200, &merged)
}

struct Scene {
    service: Arc<Service>,
    client: Client,
    folder: tempfile::TempDir,
    text: Vec<u8>,
}

impl Scene {
    /// A file of three parts.
    async fn set() -> Self {
        let service = Arc::new(Service::default());
        service.refused_from.store(usize::MAX, Ordering::SeqCst);
        let router = axum::Router::new()
            .route("/projects/weather/uploads", post(begin))
            .route("/projects/weather/uploads/{id}/complete", post(complete))
            .route("/projects/weather/uploads/{id}", delete(cancel))
            .route("/projects/weather/contributions/{id}", get(outcome))
            .route("/put/{id}/{n}", put(take))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&service));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let retry_budget = RetryBudget {
            tries: 3,
            first_pause: Duration::from_millis(1),
            total: Duration::from_secs(1),
        };
        let folder = tempfile::tempdir().unwrap();
        let text = b"{\"a\":1}\n".repeat(usize::try_from(PART).unwrap() * 5 / 2 / 8);
        fs::write(folder.path().join("file"), &text).unwrap();
        Self {
            service,
            client: Client::new(&address, "km_x").unwrap().with_retry_budget(retry_budget),
            folder,
            text,
        }
    }

    fn push(&self) -> Push {
        Push {
            file: self.folder.path().join("file"),
            gzip: false,
            slug: "weather".to_owned(),
            source_declaration: None,
            reading: None,
            drops_refused: false,
            part_size: PART,
            state: self.folder.path().join("state/push.json"),
        }
    }

    async fn pushed(&self) -> (Result<Contribution, Error>, u64, u64) {
        let counts = Arc::new(Mutex::new((0, 0)));
        let watched = Arc::clone(&counts);
        let on_event: PushProgress = Arc::new(move |event| {
            let mut counts = watched.lock();
            match event {
                PushEvent::Planned { sent, .. } => counts.0 = sent,
                PushEvent::Sent(bytes) => counts.1 += bytes,
                PushEvent::Cancelled | PushEvent::Judging { .. } => {}
            }
        });
        let result = self.client.push(&self.push(), &on_event).await;
        let (before, now) = *counts.lock();
        (result, before, now)
    }

    fn received(&self) -> Vec<u8> {
        self.service.parts.lock().values().flatten().copied().collect()
    }
}

#[tokio::test]
async fn a_file_arrives_in_parts_and_its_outcome_comes_back() {
    let scene = Scene::set().await;
    scene.service.failing.store(2, Ordering::SeqCst);
    let (result, before, now) = scene.pushed().await;
    assert!(result.unwrap().is_merged());
    assert_eq!((before, now), (0, scene.text.len() as u64));
    assert_eq!(scene.received(), scene.text);
    assert!(!scene.push().state.exists());
}

#[tokio::test]
async fn a_push_that_broke_off_sends_only_what_is_missing() {
    let scene = Scene::set().await;
    scene.service.refused_from.store(3, Ordering::SeqCst);
    let (result, _, first) = scene.pushed().await;
    assert!(matches!(result, Err(Error::Refused { .. })));
    assert!(scene.push().state.exists());
    scene.service.refused_from.store(usize::MAX, Ordering::SeqCst);
    let (result, before, now) = scene.pushed().await;
    assert!(result.unwrap().is_merged());
    assert_eq!((before, first + now), (first, scene.text.len() as u64));
    let mut puts = scene.service.puts.lock().clone();
    // A part under way at the interruption may have arrived twice.
    puts.sort_unstable();
    puts.dedup();
    assert_eq!(puts, [1, 2, 3]);
    assert_eq!(scene.received(), scene.text);
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_file_that_changed_or_an_upload_that_is_over_is_sent_anew() {
    let scene = Scene::set().await;
    scene.service.refused_from.store(3, Ordering::SeqCst);
    assert!(scene.pushed().await.0.is_err());
    scene.service.refused_from.store(usize::MAX, Ordering::SeqCst);
    // The upload has expired meanwhile.
    scene.service.gone.store(1, Ordering::SeqCst);
    let (result, _, _) = scene.pushed().await;
    assert!(result.unwrap().is_merged());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 2);
    assert_eq!(scene.received(), scene.text);

    scene.service.refused_from.store(3, Ordering::SeqCst);
    assert!(scene.pushed().await.0.is_err());
    scene.service.refused_from.store(usize::MAX, Ordering::SeqCst);
    fs::write(scene.push().file, &scene.text[8..]).unwrap();
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(scene.received(), scene.text[8..]);
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 4);
    // The first was over by itself, and the others were completed but for the one before the change.
    assert_eq!(*scene.service.cancelled.lock(), [3]);
}

#[tokio::test]
async fn a_push_of_a_changed_file_cancels_the_upload_of_the_earlier_one_first() {
    let scene = Scene::set().await;
    scene.service.refused_from.store(3, Ordering::SeqCst);
    for edit in 1..=3 {
        assert!(scene.pushed().await.0.is_err());
        fs::write(scene.push().file, &scene.text[8 * edit..]).unwrap();
    }
    scene.service.refused_from.store(usize::MAX, Ordering::SeqCst);
    // The service has forgotten it, or has it as a contribution.
    scene.service.cancels_with.store(404, Ordering::SeqCst);
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(*scene.service.cancelled.lock(), [1, 2, 3]);

    // Nothing is begun while the earlier upload cannot be cancelled, and it is remembered.
    scene.service.refused_from.store(3, Ordering::SeqCst);
    assert!(scene.pushed().await.0.is_err());
    fs::write(scene.push().file, &scene.text[..8]).unwrap();
    scene.service.cancels_with.store(403, Ordering::SeqCst);
    assert!(scene.pushed().await.0.is_err());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 5);
    scene.service.cancels_with.store(0, Ordering::SeqCst);
    scene.service.refused_from.store(usize::MAX, Ordering::SeqCst);
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(*scene.service.cancelled.lock(), [1, 2, 3, 5, 5]);
}

#[tokio::test]
async fn an_upload_that_may_be_completed_is_not_completed_otherwise() {
    let scene = Scene::set().await;
    let other = |scene: &Scene| Push {
        drops_refused: true,
        ..scene.push()
    };
    let silent: PushProgress = Arc::new(|_| {});
    // What is refused for its reading has parts that another reading may use.
    scene.service.completes_with.store(400, Ordering::SeqCst);
    assert!(scene.pushed().await.0.is_err());
    scene.service.completes_with.store(503, Ordering::SeqCst);
    assert!(scene.client.push(&other(&scene), &silent).await.is_err());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 1);
    // What was asked for with 503 may have come about, as the answer to a cancellation shows.
    scene.service.completes_with.store(0, Ordering::SeqCst);
    scene.service.cancels_with.store(409, Ordering::SeqCst);
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 2);
    assert_eq!(*scene.service.cancelled.lock(), [1]);
}

#[tokio::test]
async fn an_object_store_is_understood_too() {
    let scene = Scene::set().await;
    scene.service.is_store.store(true, Ordering::SeqCst);
    scene.service.failing.store(2, Ordering::SeqCst);
    scene.service.refused_from.store(3, Ordering::SeqCst);
    let refused = scene.pushed().await.0.unwrap_err().to_string();
    assert_eq!(refused, "PUT part 3 was answered 400 EntityTooLarge: So it is");
    scene.service.refused_from.store(usize::MAX, Ordering::SeqCst);
    // The earlier addresses have expired.
    scene.service.gone.store(1, Ordering::SeqCst);
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 2);
    assert_eq!(scene.received(), scene.text);
}

#[tokio::test]
async fn an_empty_file_is_not_sent() {
    let scene = Scene::set().await;
    fs::write(scene.push().file, b"").unwrap();
    let error = scene.pushed().await.0.unwrap_err();
    assert!(error.to_string().ends_with("is empty"), "{error}");
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn parts_that_the_service_lost_are_sent_again_once() {
    let scene = Scene::set().await;
    scene.service.lacking.store(1, Ordering::SeqCst);
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(scene.received(), scene.text);
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 1);
    scene.service.lacking.store(2, Ordering::SeqCst);
    assert!(matches!(scene.pushed().await.0, Err(Error::Refused { .. })));
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_sent_is_not_completed() {
    let scene = Scene::set().await;
    *scene.service.written.lock() = Some(scene.push().file);
    let error = scene.pushed().await.0.unwrap_err();
    assert!(matches!(error, Error::Place { .. } | Error::File { .. }), "{error}");
    *scene.service.written.lock() = None;
    assert!(scene.pushed().await.0.unwrap().is_merged());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_push_that_cannot_be_remembered_is_not_begun() {
    let scene = Scene::set().await;
    fs::write(scene.folder.path().join("state"), b"a file").unwrap();
    assert!(scene.pushed().await.0.is_err());
    assert_eq!(scene.service.begun.load(Ordering::SeqCst), 0);
}
