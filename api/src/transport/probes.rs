//! Health checks for load balancers and supervisors.
//!
//! | Path | Question | Answers 503 |
//! |-|-|-|
//! | `/healthz` | Is the process alive? | never |
//! | `/readyz` | Are its dependencies up? | while one is down, the cache included, or no file can be opened |
//! | `/drainz` | Should requests be sent to it? | while it shuts down and still serves |
//!
//! Invariant: `/drainz` does not depend on other parts. If the cache or the database is down, every replica is affected
//! alike, and a balancer that removed them all would make the outage worse. `/drainz` is no operation: callers of the
//! interface have no use for it, and it counts toward no limit.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use eventlog::EventLog;
use http::{StatusCode, header};
use messages::CONTRIBUTIONS_TOPIC;
use serde_json::{Value, json};
use store::Store;

use crate::call::answer::JSON;
use crate::state::drain::Drain;
use crate::state::open_files::OpenFiles;

/// Time limit for the answer of the database of a collector, or of the log of a worker.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the route `/drainz`.
pub fn drain(drain: Drain) -> Router {
    let answer = async move || {
        let (status, word) = if drain.has_begun() {
            (StatusCode::SERVICE_UNAVAILABLE, "draining")
        } else {
            (StatusCode::OK, "serving")
        };
        answer(status, &json!({ "status": word }))
    };
    Router::new().route("/drainz", get(answer))
}

/// Returns the probes of a process that has a worker and no interface. It is ready while its log answers.
pub fn of_worker(drain_of: Drain, log: Arc<dyn EventLog>, files: OpenFiles) -> Router {
    // A worker has no database and no cache of its own. Without its log it can do nothing, so that is what is asked.
    let ready = async move || {
        let asked = tokio::time::timeout(PROBE_TIMEOUT, log.bounds(CONTRIBUTIONS_TOPIC)).await;
        readiness("log", matches!(asked, Ok(Ok(_))), &files)
    };
    Router::new()
        .route(
            "/healthz",
            get(async || answer(StatusCode::OK, &json!({"status": "ok"}))),
        )
        .route("/readyz", get(ready))
        .merge(drain(drain_of))
}

/// Returns the probes of a process that only collects. It is ready while its database answers.
pub fn of_collector(drain_of: Drain, store: Store, files: OpenFiles) -> Router {
    let ready = async move || {
        let asked = tokio::time::timeout(PROBE_TIMEOUT, store.ping()).await;
        readiness("db", matches!(asked, Ok(Ok(()))), &files)
    };
    Router::new()
        .route(
            "/healthz",
            get(async || answer(StatusCode::OK, &json!({"status": "ok"}))),
        )
        .route("/readyz", get(ready))
        .merge(drain(drain_of))
}

/// Returns the readiness of a process with one dependency.
fn readiness(dependency: &str, is_up: bool, files: &OpenFiles) -> Response {
    let status = if is_up && !files.have_run_out() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let word = if is_up { "ok" } else { "down" };
    answer(status, &json!({ dependency: word, "files": files.word() }))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (
        status,
        // A probe that a proxy answers from its cache says nothing of this process.
        [(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, "no-store")],
        body.to_string(),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use axum::body::Body;
    use http::Request;
    use tower::ServiceExt as _;
    use types::Timestamp;

    use super::*;
    use crate::state::limit::{
        CountersUnavailable, LimitCounters, LimitDecision, LimitSource, Limiter, MemoryCounters, RateRule,
    };
    use crate::testing::{Service, config, count, limits};

    #[tokio::test]
    async fn a_replica_that_drains_says_so_closes_connections_and_still_serves() {
        let service = Service::start().await;
        let got = service.get("/drainz", None).await;
        assert_eq!((got.status, &got.json()["status"]), (StatusCode::OK, &"serving".into()));
        assert!(!got.headers.contains_key(header::CONNECTION));
        service.app.drain.begin();
        let got = service.get("/drainz", None).await;
        assert_eq!(
            (got.status, &got.json()["status"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"draining".into())
        );
        for path in ["/healthz", "/readyz", "/projects"] {
            let got = service.get(path, None).await;
            assert_eq!(
                (got.status, &got.headers[header::CONNECTION]),
                (StatusCode::OK, &"close".parse().unwrap())
            );
        }
    }

    /// Counters that cannot be asked.
    #[derive(Debug)]
    struct Gone;

    #[async_trait]
    impl LimitCounters for Gone {
        async fn take(&self, _: RateRule, _: LimitSource, _: Timestamp) -> Result<LimitDecision, CountersUnavailable> {
            Err(CountersUnavailable("connection refused".into()))
        }
    }

    #[tokio::test]
    async fn readiness_says_how_the_cache_is_and_calls_go_on_without_it() {
        let patience = Duration::from_secs(5);
        for (limiter, status, cache) in [
            (Limiter::default(), StatusCode::OK, "off"),
            (
                Limiter::shared(Arc::new(MemoryCounters::default()), patience),
                StatusCode::OK,
                "ok",
            ),
            (
                Limiter::shared(Arc::new(Gone), patience),
                StatusCode::SERVICE_UNAVAILABLE,
                "down",
            ),
        ] {
            let mut few = limits();
            few.calls_per_ip_per_minute = count(2);
            let service = Service::counting(config(), few, limiter).await;
            let got = service.get("/readyz", None).await;
            assert_eq!(got.status, status);
            assert_eq!(got.json(), json!({"db": "ok", "cache": cache, "files": "ok"}));
            for expected in [200, 200, 429] {
                assert_eq!(service.get("/projects", None).await.status, expected, "cache {cache}");
            }
        }
    }

    #[tokio::test]
    async fn a_worker_is_ready_while_its_log_answers() {
        let folder = tempfile::tempdir().unwrap();
        let log = eventlog::Embedded::open(folder.path().join("log"), eventlog::EmbeddedOptions::default()).unwrap();
        let drain = Drain::default();
        let files = OpenFiles::default();
        let router = of_worker(drain.clone(), log, files.clone());
        let status = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap().status()
        };
        for path in ["/healthz", "/readyz", "/drainz"] {
            assert_eq!(status(path).await, StatusCode::OK, "{path}");
        }
        assert_eq!(status("/projects").await, StatusCode::NOT_FOUND);
        drain.begin();
        assert_eq!(status("/drainz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status("/readyz").await, StatusCode::OK);
        files.note(true);
        assert_eq!(status("/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status("/healthz").await, StatusCode::OK);
    }
}
