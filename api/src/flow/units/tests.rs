//! Units between the database and the log: what is appended when, and what an outcome in the log does.

use eventlog::{Embedded, EmbeddedOptions};
use messages::{OUTCOMES_TOPIC, UnitOutcome as Message, UnitSubmission};
use serde_json::json;
use tempfile::TempDir;
use types::unit::{Judge, UnitScores};
use types::vocabulary::{JudgeKind, Language};
use types::{HumanDuration, UnitId};

use super::*;
use crate::flow::Projector;
use crate::testing::Service;

struct World {
    service: Service,
    log: Arc<Embedded>,
    key: String,
    sweeper: UnitSweeper,
    _directory: TempDir,
}

impl World {
    /// A service whose relay is never run, and a log of its own.
    async fn start() -> Self {
        let service = Service::start().await;
        let token = service.operator().await;
        let key = service.agent(&token, "author").await;
        let directory = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions {
            partitions: 1,
            retain: 10,
        };
        let log = Embedded::open(directory.path(), options).unwrap();
        let sweeper = UnitSweeper::new(
            service.app.store.clone(),
            Arc::clone(&log) as Arc<dyn EventLog>,
            Arc::clone(&service.app.clock),
            SweeperConfig {
                every: HumanDuration(Duration::from_secs(1)),
                first: HumanDuration(Duration::from_secs(30)),
            },
            service.app.validation.clone(),
        );
        Self {
            service,
            log,
            key,
            sweeper,
            _directory: directory,
        }
    }

    async fn submit(&self, body: &str) -> UnitId {
        let unit = json!({
            "title": "A title", "body": body, "category": "tool-usage", "sourceDeclaration": "Ran here today.",
        });
        let got = self
            .service
            .call("POST", "/knowledge", Some(&self.key), &unit.to_string())
            .await;
        assert_eq!(got.status, 201, "{}", got.text());
        got.json()["id"].as_str().unwrap().parse().unwrap()
    }

    async fn status(&self, id: UnitId) -> String {
        let got = self.service.get(&format!("/knowledge/{id}"), Some(&self.key)).await;
        got.json()["status"].as_str().unwrap().to_owned()
    }

    async fn sweep(&self) -> usize {
        self.service
            .app
            .validation
            .refresh(&self.service.app.store)
            .await
            .unwrap();
        // Not the first round, which makes everything due.
        self.sweeper.round(&mut true).await.unwrap()
    }

    fn advance(&self, seconds: u64) {
        self.service.clock.advance(Duration::from_secs(seconds));
    }

    /// Ids of the first versions in the log, in their order.
    async fn appended(&self, count: usize) -> Vec<UnitId> {
        let mut topic = self.log.recent(KNOWLEDGE_TOPIC, 100).await.unwrap();
        let mut ids = Vec::new();
        while ids.len() < count {
            let batch = topic.next(100).await.unwrap();
            let read = |delivered: &eventlog::Delivered| UnitSubmission::decode(&delivered.record.value).unwrap().unit;
            ids.extend(batch.iter().map(read));
        }
        ids
    }

    async fn apply(&self, id: UnitId, resolution: UnitResolution) {
        let outcome = UnitOutcome {
            id,
            generation: 0,
            at: self.service.app.clock.now(),
            resolution,
            report: vec![types::unit::ReviewEntry {
                step: types::vocabulary::ReviewStep::Score,
                outcome: types::vocabulary::StepOutcome::Passed,
                code: "scored".to_owned(),
                detail: String::new(),
                at: self.service.app.clock.now(),
                judge: None,
                scores: None,
                similar: None,
            }],
        };
        assert!(self.service.app.store.knowledge().apply(vec![outcome]).await.unwrap()[0].changed);
    }
}

fn published() -> UnitResolution {
    UnitResolution::Published {
        scores: UnitScores {
            accuracy: 60,
            novelty: 60,
            reproducibility: 60,
            specificity: 60,
            total: 60,
        },
        judge: Judge {
            kind: JudgeKind::Heuristic,
            name: "rubric-1".to_owned(),
        },
        language: Language::English,
        near: None,
        embedder: None,
    }
}

/// A version is appended when it is due, and later each time.
#[tokio::test]
async fn a_version_without_outcome_is_appended_again() {
    let world = World::start().await;
    let id = world.submit("One.").await;
    assert_eq!(world.sweep().await, 0);
    world.advance(30);
    assert_eq!(world.sweep().await, 1);
    assert_eq!(world.sweep().await, 0);
    world.advance(30);
    assert_eq!(world.sweep().await, 1);
    world.advance(30);
    assert_eq!(world.sweep().await, 0);
    assert_eq!(world.appended(2).await, [id, id]);
    // A process that starts appends what waits for nothing at once.
    assert_eq!(world.sweeper.round(&mut false).await.unwrap(), 1);
    world.apply(id, published()).await;
    world.advance(100_000);
    assert_eq!(world.sweep().await, 0);
}

/// Nothing is appended during a pause, whenever it was submitted; at its end all of it is.
#[tokio::test]
async fn a_pause_stops_every_append() {
    let world = World::start().await;
    let (store, clock) = (&world.service.app.store, &world.service.app.clock);
    let before = world.submit("One.").await;
    assert!(store.validation_pause(true, clock.now()).await.unwrap());
    world.service.app.validation.refresh(store).await.unwrap();
    let during = world.submit("Two.").await;
    world.advance(1_000);
    assert_eq!(world.sweep().await, 0);
    assert_eq!(world.sweeper.round(&mut false).await.unwrap(), 0);
    assert_eq!(
        (world.status(before).await, world.status(during).await),
        ("queued".to_owned(), "waiting".to_owned())
    );
    assert!(store.validation_pause(false, clock.now()).await.unwrap());
    assert_eq!(world.sweep().await, 2);
    assert_eq!(world.status(during).await, "queued");
    let mut appended = world.appended(2).await;
    appended.sort_unstable();
    // Ids of one millisecond are in no order.
    let mut both = [before, during];
    both.sort_unstable();
    assert_eq!(appended, both);
}

/// While a provider is silent, one version in half a minute shows whether it answers; the first decision releases all.
#[tokio::test]
async fn a_silent_provider_is_probed_and_then_everything_goes_on() {
    let world = World::start().await;
    let mut ids = Vec::new();
    for body in ["One.", "Two.", "Three."] {
        ids.push(world.submit(body).await);
    }
    let silent = || UnitResolution::Waiting {
        reason: "provider".to_owned(),
        resumes_after: None,
    };
    for id in &ids {
        world.apply(*id, silent()).await;
    }
    world.advance(60);
    assert_eq!(world.sweep().await, 1);
    assert_eq!(world.sweep().await, 0);
    world.advance(29);
    assert_eq!(world.sweep().await, 0);
    world.advance(1);
    assert_eq!(world.sweep().await, 1);
    let probes = world.appended(2).await;
    world.apply(probes[0], published()).await;
    world.advance(10);
    assert_eq!(world.sweep().await, 1, "{probes:?}");
    for id in ids {
        assert_ne!(world.status(id).await, "waiting");
    }
}

/// Until the budget is there again nothing is appended, and then everything.
#[tokio::test]
async fn a_spent_budget_waits_for_its_time() {
    let world = World::start().await;
    let id = world.submit("One.").await;
    let until = world.service.app.clock.now().plus(Duration::from_hours(2));
    let spent = UnitResolution::Waiting {
        reason: "budget".to_owned(),
        resumes_after: Some(until),
    };
    world.apply(id, spent).await;
    world
        .service
        .app
        .validation
        .refresh(&world.service.app.store)
        .await
        .unwrap();
    let later = world.submit("Two.").await;
    world.advance(2 * 3_600 - 1);
    assert_eq!(world.sweep().await, 0);
    world.advance(1);
    assert_eq!(world.sweep().await, 2);
    assert_eq!(
        (world.status(id).await, world.status(later).await),
        ("queued".to_owned(), "queued".to_owned())
    );
}

/// An outcome in the log becomes the version's, once, and answers who waits for it.
#[tokio::test]
async fn an_outcome_in_the_log_answers_who_waits() {
    let world = World::start().await;
    let id = world.submit("One.").await;
    let (app, stop) = (&world.service.app, CancellationToken::new());
    let shared = Arc::clone(&world.log) as Arc<dyn EventLog>;
    let projector = Projector::new(app.store.clone(), shared, app.waiters.clone(), Arc::clone(&app.clock));
    tokio::spawn(projector.run(stop.clone()));
    let outcomes = [published(), published()]
        .map(|resolution| Message::new((id, id), 0, app.clock.now(), resolution).record().unwrap());
    let path = format!("/knowledge/{id}?wait=20");
    let waiting = world.service.get(&path, Some(&world.key));
    let (got, appended) = tokio::join!(waiting, world.log.append(OUTCOMES_TOPIC, outcomes.to_vec()));
    appended.unwrap();
    assert_eq!(got.json()["status"], "published");
    let points = world.service.get("/points", Some(&world.key)).await.json();
    assert_eq!(points["points"], 60);
    stop.cancel();
}
