use bytes::Bytes;
use eventlog::{Embedded, EmbeddedOptions, Record};
use messages::BASE_FORMAT;
use serde_json::json;
use store::ContributionStatus;
use tempfile::TempDir;
use types::{ContributionId, DatasetId, Version};

use super::*;
use crate::testing::Service;

struct World {
    service: Service,
    log: Arc<Embedded>,
    key: String,
    stop: CancellationToken,
    _directory: TempDir,
}

async fn world() -> World {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "contributor").await;
    service.project(&key, "gauges", &json!({})).await;
    let directory = tempfile::tempdir().unwrap();
    let log = Embedded::open(
        directory.path(),
        EmbeddedOptions {
            partitions: 1,
            retain: 10,
        },
    )
    .unwrap();
    let (app, stop) = (&service.app, CancellationToken::new());
    let shared = Arc::clone(&log) as Arc<dyn EventLog>;
    let projector = Projector::new(app.store.clone(), shared, app.waiters.clone(), Arc::clone(&app.clock));
    tokio::spawn(projector.run(stop.clone()));
    World {
        service,
        log,
        key,
        stop,
        _directory: directory,
    }
}

impl World {
    async fn contribute(&self) -> ContributionId {
        let body = r#"{"records":[{"name":"a"}]}"#;
        let got = self
            .service
            .call("POST", "/projects/gauges/contribute", Some(&self.key), body)
            .await;
        got.json()["id"].as_str().unwrap().parse().unwrap()
    }

    async fn dataset(&self) -> DatasetId {
        self.service
            .app
            .store
            .project_by_slug("gauges", None)
            .await
            .unwrap()
            .unwrap()
            .id
    }

    async fn publish(&self, contribution: ContributionId, resolution: Resolution) {
        let dataset = self.dataset().await;
        let at = self.service.app.clock.now();
        let (verdicts, tallies) = (Vec::new(), Vec::new());
        let outcome = ContributionOutcome {
            format: BASE_FORMAT,
            contribution,
            generation: 0,
            dataset,
            at,
            resolution,
            rows: 1,
            verdicts,
            tallies,
            traceparent: None,
        };
        self.log
            .append(OUTCOMES_TOPIC, vec![outcome.record().unwrap()])
            .await
            .unwrap();
    }

    async fn decided(&self, id: ContributionId) -> store::Contribution {
        let Service { app, .. } = &self.service;
        app.waiters
            .outcome(&app.store, id, Duration::from_secs(20))
            .await
            .unwrap()
            .unwrap()
    }
}

fn merged(version: u64) -> Resolution {
    Resolution::Merged {
        version: Version(version),
        accepted: 1,
        record_count: version,
        root: "00".repeat(32),
    }
}

#[tokio::test]
async fn an_outcome_reaches_the_row_and_whoever_waits() {
    let world = world().await;
    let id = world.contribute().await;
    let (row, ()) = tokio::join!(world.decided(id), world.publish(id, merged(1)));
    assert_eq!(
        (row.status, row.version),
        (ContributionStatus::Merged, Some(Version(1)))
    );
    world.stop.cancel();
}

#[tokio::test]
async fn the_first_terminal_outcome_counts() {
    let world = world().await;
    let (first, fence) = (world.contribute().await, world.contribute().await);
    let rejected = |code: &str| Resolution::Rejected {
        code: code.to_owned(),
        message: "no".to_owned(),
    };
    world
        .publish(
            first,
            Resolution::Waiting {
                reason: "budget".to_owned(),
                resumes_after: None,
            },
        )
        .await;
    world.publish(first, rejected("refused")).await;
    world.publish(first, rejected("duplicates")).await;
    world.publish(fence, merged(1)).await;
    assert_eq!(world.decided(fence).await.status, ContributionStatus::Merged);
    let decided = world.decided(first).await;
    assert_eq!(decided.status, ContributionStatus::Rejected);
    assert_eq!(decided.reject_code.as_deref(), Some("refused"));
}

#[tokio::test]
async fn what_cannot_be_read_is_kept_and_blocks_nothing() {
    let world = world().await;
    let id = world.contribute().await;
    let garbage = Record {
        key: Bytes::from_static(b"k"),
        value: Bytes::from_static(b"{not an outcome"),
    };
    world.log.append(OUTCOMES_TOPIC, vec![garbage]).await.unwrap();
    world.publish(id, merged(1)).await;
    assert_eq!(world.decided(id).await.status, ContributionStatus::Merged);
    let letters = world.service.app.store.dead_letters(10, None).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].topic.as_str(), letters[0].offset), (OUTCOMES_TOPIC, 0));
}
