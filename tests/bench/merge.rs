//! CPU of a merge step with all gates, on a table of 10 versions and on one of 10,000, alternately.

use std::sync::Arc;
use std::time::Duration;

use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, PreparedVersion, Table};
use operators::screen::{LocalScreener, Screener};
use operators::standard_chain;
use serde_json::Value;
use types::clock::SystemClock;
use types::{AgentId, Batch, Clock, Contract, ContributionId, DatasetId};

use crate::report::Report;
use crate::usage::cpu;
use crate::{RECORDS, contract, percentile, records, sorted};

/// Measured steps on each table.
const STEPS: usize = 400;
/// Steps before anything is measured.
const WARM_UP: usize = 40;
/// Versions of the small and of the large table when measuring begins.
const VERSIONS: [usize; 2] = [10, 10_000];
/// Records of the versions that make a table large.
const FILLING: usize = 5;
/// The goals: CPU of a step, and growth from the small table to the large one.
const GOALS: (f64, f64) = (1.5, 1.1);

struct Line {
    table: Table,
    contract: Arc<Contract>,
    screener: Arc<dyn Screener>,
    agent: AgentId,
    next: usize,
}

/// CPU milliseconds of the parts of a step.
#[derive(Clone, Copy)]
struct Cost {
    parse: f64,
    decode: f64,
    gates: f64,
    merge: f64,
}

impl Cost {
    const fn step(self) -> f64 {
        self.decode + self.gates + self.merge
    }
}

impl Line {
    async fn open(catalog: &Catalog, number: u8) -> Self {
        let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract()).unwrap());
        Self {
            table: catalog
                .table(DatasetId::from_bytes([number; 16]), &contract)
                .await
                .unwrap(),
            contract,
            screener: Arc::new(LocalScreener),
            agent: AgentId::from_bytes([7; 16]),
            next: usize::from(number) * 100_000,
        }
    }

    /// Merges one batch of `count` new records as a worker does.
    async fn step(&mut self, count: usize) -> Cost {
        self.next += 1;
        let text = serde_json::to_vec(&records(self.next, count)).unwrap();
        let begun = cpu();
        let records: Vec<Value> = serde_json::from_slice(&text).unwrap();
        let parsed = cpu();
        let batch = Batch::decode(&self.contract, &records);
        let decoded = cpu();
        let mut chain = standard_chain(self.table.known(), Some(Arc::clone(&self.screener)));
        let judged = chain.run(batch).await;
        assert_eq!(judged.passed.len(), count);
        let gated = cpu();
        let at = SystemClock::default().now();
        let mut prepared = PreparedVersion::of_batch(ContributionId::new(at), self.agent, Arc::new(judged.passed));
        let outcome = self.table.commit(&mut prepared, at, |_| Value::Null).await.unwrap();
        let merged = cpu();
        assert!(matches!(outcome, CommitOutcome::Committed(_)));
        let millis = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64() * 1e3;
        Cost {
            parse: millis(begun, parsed),
            decode: millis(parsed, decoded),
            gates: millis(decoded, gated),
            merge: millis(gated, merged),
        }
    }
}

fn mean(costs: &[Cost], part: impl Fn(&Cost) -> f64) -> f64 {
    costs.iter().map(part).sum::<f64>() / f64::from(u32::try_from(costs.len()).unwrap())
}

fn median(costs: &[Cost], part: impl Fn(&Cost) -> f64) -> f64 {
    percentile(&sorted(costs.iter().map(part).collect()), 50)
}

pub(crate) fn run(report: &mut Report) {
    // Threads are kept, so that what a thread used is still counted after the step.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_keep_alive(Duration::from_hours(1))
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let objects = Arc::new(DurableLocal::open(folder.path().join("tables")).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let catalog = Catalog::open(Arc::<DurableLocal>::clone(&objects), folder.path().join("index"), clock).unwrap();
    let costs = runtime.block_on(async {
        let mut lines = [Line::open(&catalog, 1).await, Line::open(&catalog, 2).await];
        for (line, versions) in lines.iter_mut().zip(VERSIONS) {
            for _ in 0..versions {
                line.step(FILLING).await;
            }
        }
        let mut costs = [Vec::new(), Vec::new()];
        let before = objects.syncs();
        for step in 0..WARM_UP + STEPS {
            for (line, costs) in lines.iter_mut().zip(&mut costs) {
                let cost = line.step(RECORDS).await;
                if step >= WARM_UP {
                    costs.push(cost);
                }
            }
        }
        let after = objects.syncs();
        let merges = 2 * (WARM_UP + STEPS) as u64;
        let syncs = (after.of_files + after.of_directories) - (before.of_files + before.of_directories);
        println!(
            "\n{merges} merges wrote {} files with {syncs} syncs",
            after.files - before.files
        );
        costs
    });
    let row = |name: &str, part: &dyn Fn(&Cost) -> f64| {
        let shown: Vec<_> = costs
            .iter()
            .map(|costs| format!("{:.3} / {:.3}", median(costs, part), mean(costs, part)))
            .collect();
        (name.to_owned(), shown.join(" · "))
    };
    let growth = mean(&costs[1], |cost| cost.step()) / mean(&costs[0], |cost| cost.step());
    let growth_of_median = median(&costs[1], |cost| cost.step()) / median(&costs[0], |cost| cost.step());
    report.table(
        "merge step of 500 records, CPU ms, median / mean, at 10 · at 10,000 versions",
        &[
            row("decode", &|cost| cost.decode),
            row("gates", &|cost| cost.gates),
            row("merge", &|cost| cost.merge),
            (format!("step (goal {})", GOALS.0), row("", &|cost| cost.step()).1),
            (
                "growth, of the median / of the mean".to_owned(),
                format!("{growth_of_median:.3} / {growth:.3} (goal {})", GOALS.1),
            ),
            row("besides: JSON text to values", &|cost| cost.parse),
        ],
    );
}
