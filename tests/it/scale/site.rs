//! Two replicas and three workers, and clients who never give up.
//!
//! Invariant: a batch is sent under one key until it is acknowledged; a replica always answers.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tests::server::{DEADLINE, POLL};
use tests::topology::Parts;
use tests::world::{Agent, Operator};
use tests::{Http, Server};

use super::ledger::Ledger;

/// Datasets, so that every worker has some.
pub(super) const DATASETS: usize = 4;
/// How long a client waits between two batches: what is sent is asked for in the end, of both replicas.
const PACE: Duration = Duration::from_millis(50);
/// How many acknowledgements a fault lasts for, at the least.
const UNDER_FAULT: usize = 12;

/// The running topology and what clients did on it.
pub(super) struct Site {
    pub(super) parts: Parts,
    pub(super) replicas: Vec<Server>,
    pub(super) workers: Vec<Server>,
    /// The agent at each replica.
    callers: Vec<Http>,
    pub(super) agent: Agent,
    pub(super) ledger: Ledger,
    sent: AtomicUsize,
    refused: AtomicU64,
}

impl Site {
    pub(super) async fn on(parts: Parts) -> Self {
        let replicas = vec![parts.replica("api-0").await, parts.replica("api-1").await];
        let mut workers = Vec::new();
        for number in 0..3 {
            workers.push(parts.worker(&format!("worker-{number}")).await);
        }
        let operator = Operator::create(replicas[0].options(), "first");
        let agent = Agent::create(&replicas[0].http(), &operator, "first.agent").await;
        Self {
            parts,
            workers,
            callers: replicas.iter().map(|replica| agent.at(&replica.http()).http).collect(),
            replicas,
            ledger: Ledger::open(&agent.http, "dataset", DATASETS).await,
            agent,
            sent: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The agent at a replica.
    pub(super) fn http(&self, replica: usize) -> &Http {
        &self.callers[replica % self.callers.len()]
    }

    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many answers were 503.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Sends a batch, again under its key until it is acknowledged; more often once the fault is `gone`.
    async fn send(&self, gone: &AtomicBool) {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let batch = self.ledger.batch();
        let deadline = Instant::now() + 2 * DEADLINE;
        for attempt in 0.. {
            let answer = self.ledger.send(self.http(number + attempt), &batch, 0).await;
            let answer = answer.unwrap_or_else(|error| panic!("a replica did not answer: {error:?}"));
            if matches!(answer.code(), 200 | 201) {
                return;
            }
            assert_eq!(answer.code(), 503, "{}", answer.body);
            assert!(!answer.header("retry-after").is_empty(), "a 503 says when to try again");
            assert!(Instant::now() < deadline, "still refused: {}", answer.body);
            self.refused.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(POLL * if gone.load(Ordering::Relaxed) { 20 } else { 4 }).await;
        }
    }

    /// Sends from four clients until `fault` is over and [`UNDER_FAULT`] more batches are acknowledged.
    pub(super) async fn under<T>(&self, fault: impl Future<Output = T>) -> T {
        let over = AtomicBool::new(false);
        let before = self.ledger.count();
        let enough = || self.ledger.count() >= before + UNDER_FAULT;
        let client = async || {
            while !over.load(Ordering::Relaxed) || !enough() {
                self.send(&over).await;
                tokio::time::sleep(PACE).await;
            }
        };
        let fault = async {
            let done = fault.await;
            over.store(true, Ordering::Relaxed);
            done
        };
        let (done, ..) = tokio::join!(fault, client(), client(), client(), client());
        done
    }

    /// Waits for what was acknowledged, asked of both replicas, and holds the datasets against it.
    pub(super) async fn judge(&self) {
        self.ledger.judge(&self.callers).await;
        self.replicas[0].options().assert_consistent();
    }
}
