use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use store::NewJob;
use types::Timestamp;

use super::*;
use crate::testing::Service;

/// A handler that fails as often as it is told, and notes each run.
#[derive(Debug, Default)]
struct Scripted {
    runs: Mutex<Vec<String>>,
    failures: AtomicUsize,
    may_pass: bool,
}

#[async_trait]
impl JobHandler for Scripted {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        self.runs.lock().push(job.payload.clone());
        let fails = self
            .failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match fails {
            Ok(_) => Err(JobFailure {
                reason: "the server is away".to_owned(),
                may_pass: self.may_pass,
            }),
            Err(_) => Ok(()),
        }
    }
}

async fn add(service: &Service, id: &str, due_at: Timestamp) {
    let job = NewJob {
        id: id.to_owned(),
        kind: "test".to_owned(),
        dedupe: None,
        operator: None,
        payload: id.to_owned(),
        due_at,
        now: service.app.clock.now(),
    };
    assert!(service.app.store.flow().job_add(job).await.unwrap());
}

fn runner(service: &Service, handler: &Arc<Scripted>) -> JobRunner {
    JobRunner::new(service.app.store.clone(), Arc::clone(&service.app.clock)).with("test", Arc::clone(handler) as _)
}

#[tokio::test]
async fn a_job_runs_once_when_it_is_due() {
    let service = Service::start().await;
    let handler = Arc::new(Scripted::default());
    let runner = runner(&service, &handler);
    let later = service.app.clock.now().plus(Duration::from_hours(1));
    add(&service, "now", service.app.clock.now()).await;
    add(&service, "later", later).await;
    assert_eq!(runner.run_due().await, 1);
    assert_eq!(runner.run_due().await, 0);
    service.clock.advance(Duration::from_hours(1));
    assert_eq!(runner.run_due().await, 1);
    assert_eq!(*handler.runs.lock(), ["now", "later"]);
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_after_a_pause() {
    let service = Service::start().await;
    let handler = Arc::new(Scripted {
        failures: 1.into(),
        may_pass: true,
        ..Scripted::default()
    });
    let runner = runner(&service, &handler);
    add(&service, "a", service.app.clock.now()).await;
    assert_eq!(runner.run_due().await, 1);
    // The pause is at least half of the first one.
    assert_eq!(runner.run_due().await, 0);
    service.clock.advance(BACKOFF.first);
    assert_eq!(runner.run_due().await, 1);
    service.clock.advance(BACKOFF.most);
    assert_eq!(runner.run_due().await, 0);
    assert_eq!(handler.runs.lock().len(), 2);
}

#[tokio::test]
async fn a_failure_for_good_is_listed_and_not_tried_again() {
    let service = Service::start().await;
    let handler = Arc::new(Scripted {
        failures: 1.into(),
        may_pass: false,
        ..Scripted::default()
    });
    let runner = runner(&service, &handler);
    add(&service, "a", service.app.clock.now()).await;
    assert_eq!(runner.run_due().await, 1);
    service.clock.advance(Duration::from_hours(24));
    assert_eq!(runner.run_due().await, 0);
    let failed = service.app.store.flow().jobs_failed().await.unwrap();
    assert_eq!(failed[0].last_error.as_deref(), Some("the server is away"));
}

#[tokio::test]
async fn a_job_of_a_runner_that_died_runs_again_when_its_lease_ends() {
    let service = Service::start().await;
    let handler = Arc::new(Scripted::default());
    add(&service, "a", service.app.clock.now()).await;
    // A runner leased the job and never recorded a result.
    let now = service.app.clock.now();
    let leased = service.app.store.flow().jobs_lease(now, LEASE, BATCH).await.unwrap();
    assert_eq!(leased.len(), 1);
    let runner = runner(&service, &handler);
    assert_eq!(runner.run_due().await, 0);
    service.clock.advance(LEASE);
    assert_eq!(runner.run_due().await, 1);
    assert_eq!(*handler.runs.lock(), ["a"]);
}

#[tokio::test]
async fn a_job_of_an_unknown_kind_waits() {
    let service = Service::start().await;
    let empty = JobRunner::new(service.app.store.clone(), Arc::clone(&service.app.clock));
    add(&service, "a", service.app.clock.now()).await;
    assert_eq!(empty.run_due().await, 1);
    let handler = Arc::new(Scripted::default());
    service.clock.advance(BACKOFF.first);
    assert_eq!(runner(&service, &handler).run_due().await, 1);
}
