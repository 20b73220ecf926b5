//! Scenarios about jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use types::OperatorId;

use super::fixture::{at, job, open, race};
use crate::NewJob;

const LEASE: Duration = Duration::from_secs(30);

/// A job is leased once it is due, again when its lease ends, and never after it is done.
pub async fn a_job_is_leased_until_it_is_done(url: &str) {
    let store = open(url).await;
    let flow = store.flow();
    let new = NewJob {
        due_at: at(10),
        ..job(at(0))
    };
    let id = new.id.clone();
    assert!(flow.job_add(new).await.unwrap());
    let lease = async |seconds| flow.jobs_lease(at(seconds), LEASE, 9).await.unwrap();
    assert_eq!(lease(9).await, []);
    let leased = lease(10).await;
    assert_eq!(
        (leased.len(), leased[0].attempts, leased[0].kind.as_str()),
        (1, 1, "mail")
    );
    assert_eq!(lease(39).await, []);
    assert_eq!(lease(40).await[0].attempts, 2);
    flow.job_retry(&id, "the server was busy", at(100)).await.unwrap();
    assert_eq!(lease(99).await, []);
    let again = &lease(100).await[0];
    assert_eq!(
        (again.attempts, again.last_error.as_deref()),
        (3, Some("the server was busy"))
    );
    flow.job_done(&id).await.unwrap();
    assert_eq!(lease(1_000).await, []);
}

/// A job that was given up stays for people to see and is not leased again.
pub async fn a_job_that_was_given_up_stays_visible(url: &str) {
    let store = open(url).await;
    let flow = store.flow();
    let operator = OperatorId::new(at(0));
    let new = NewJob {
        operator: Some(operator),
        ..job(at(0))
    };
    let id = new.id.clone();
    assert!(flow.job_add(new).await.unwrap());
    assert_eq!(flow.jobs_of(operator).await.unwrap()[0].failed_at, None);
    flow.job_fail(&id, "refused\0 for good", at(5)).await.unwrap();
    assert_eq!(flow.jobs_lease(at(9), LEASE, 9).await.unwrap(), []);
    let failed = flow.jobs_failed().await.unwrap();
    assert_eq!(failed, flow.jobs_of(operator).await.unwrap());
    assert_eq!(
        (failed[0].failed_at, failed[0].last_error.is_some()),
        (Some(at(5)), true)
    );
    assert_eq!(flow.jobs_of(OperatorId::new(at(0))).await.unwrap(), []);
}

/// Of jobs with one `dedupe` the first is added.
pub async fn equal_jobs_are_one_job(url: &str) {
    let store = open(url).await;
    let twin = || NewJob {
        dedupe: Some("digest of today".to_owned()),
        ..job(at(0))
    };
    assert!(store.flow().job_add(twin()).await.unwrap());
    assert!(!store.flow().job_add(twin()).await.unwrap());
    assert!(store.flow().job_add(job(at(0))).await.unwrap());
    assert_eq!(store.flow().jobs_lease(at(0), LEASE, 9).await.unwrap().len(), 2);
}

/// Many workers lease at once: each job goes to one of them.
pub async fn a_job_goes_to_one_of_many_workers(url: &str) {
    let stores = [open(url).await, open(url).await];
    for _ in 0..40 {
        assert!(stores[0].flow().job_add(job(at(0))).await.unwrap());
    }
    let leased = race(stores, 10, |store, _| async move {
        let mut got = Vec::new();
        loop {
            let jobs = store.flow().jobs_lease(at(1), LEASE, 3).await.unwrap();
            if jobs.is_empty() {
                return got;
            }
            got.extend(jobs.into_iter().map(|job| job.id));
        }
    })
    .await;
    let all: Vec<_> = leased.into_iter().flatten().collect();
    // A worker that loses every race of a round ends early; nobody gets a job twice.
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    assert!(!all.is_empty());
}
