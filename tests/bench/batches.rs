//! Small batches of many agents, each into a dataset of its own, all at once: how many are merged in a second, and what
//! one costs the server.
//!
//! A call waits for its outcome, so each of the datasets has one batch under way at a time. The bodies are made before
//! the clock starts; the callers run on the same cores as the server.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use serde_json::json;
use tests::world::{Agent, Operator, batch, merged, project_body};
use tests::{Http, Options, Server};

use crate::report::Report;
use crate::syncs::Folder;
use crate::usage::{cpu_of, wake_ups_of};
use crate::{contract, percentile, records, sorted};

/// Datasets, agents and calls under way.
const DATASETS: usize = 64;
/// Agents of an operator, at most five.
const AGENTS: usize = 4;
/// Records of a batch, and batches of a dataset.
const LOADS: [(usize, usize); 2] = [(20, 100), (500, 20)];
/// Batches of a dataset before anything is measured.
const WARM_UP: usize = 3;
/// The goal: batches of the first load in a second.
const GOAL: f64 = 1_000.0;

/// An agent and the dataset it contributes to.
struct Line {
    http: Http,
    path: String,
}

impl Line {
    /// Contributes each body in turn; how long each took, in milliseconds.
    async fn run(&self, bodies: Vec<Vec<u8>>) -> Vec<f64> {
        let mut times = Vec::with_capacity(bodies.len());
        for body in bodies {
            let begun = Instant::now();
            let answer = self.http.post_bytes(&self.path, body).await.expect(201);
            assert_eq!(answer.text("/status"), "merged", "{}", answer.body);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times
    }
}

async fn lines(options: &Options, http: &Http) -> Vec<Line> {
    let mut lines = Vec::with_capacity(DATASETS);
    for number in 0..DATASETS {
        if number % AGENTS == 0 {
            let operator = Operator::create(options, &format!("bench-{number}"));
            for agent in number..DATASETS.min(number + AGENTS) {
                let agent_name = format!("bench.agent.{agent}");
                let made = Agent::create(http, &operator, &agent_name).await;
                let slug = format!("bench-{agent}");
                let project = merged(project_body(&slug), json!({"schemaDef": contract()}));
                made.http.post("/projects", &project).await.expect(201);
                lines.push(Line {
                    http: made.http,
                    path: format!("/projects/{slug}/contribute?wait=20"),
                });
            }
        }
    }
    lines
}

/// `count` bodies for each of the lines, the first of them of the batch with the number `first`.
fn bodies(first: usize, count: usize, size: usize) -> Vec<Vec<Vec<u8>>> {
    let body = |number| batch(&records(number, size)).to_string().into_bytes();
    (0..DATASETS)
        .map(|_| (first..first + count).map(body).collect())
        .collect()
}

/// Runs the lines at once; every time, sorted.
async fn all(lines: &Arc<Vec<Line>>, bodies: Vec<Vec<Vec<u8>>>) -> Vec<f64> {
    let tasks = bodies.into_iter().enumerate().map(|(line, bodies)| {
        let lines = Arc::clone(lines);
        tokio::spawn(async move { lines[line].run(bodies).await })
    });
    sorted(join_all(tasks).await.into_iter().flat_map(Result::unwrap).collect())
}

pub(crate) async fn run(report: &mut Report, syncs: &Folder) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(crate::server(), folder.path().join("data"));
    let server = Server::start(&options).await;
    let lines = Arc::new(lines(&options, &server.http()).await);
    let mut number = 0;
    for (size, count) in LOADS {
        all(&lines, bodies(number, WARM_UP, size)).await;
        let bodies = bodies(number + WARM_UP, count, size);
        number += WARM_UP + count;
        let used = || (cpu_of(server.pid()), wake_ups_of(server.pid()), syncs.count());
        let (begun, before) = (Instant::now(), used());
        let times = all(&lines, bodies).await;
        let (elapsed, after) = (begun.elapsed().as_secs_f64(), used());
        let each = |all: f64| all / f64::from(u32::try_from(times.len()).unwrap());
        let count = |all: u64| each(f64::from(u32::try_from(all).unwrap()));
        let goal = if size == LOADS[0].0 {
            format!(" (goal {GOAL})")
        } else {
            String::new()
        };
        report.table(
            &format!("batches of {size} records, {DATASETS} datasets at once"),
            &[
                ("batches".to_owned(), times.len().to_string()),
                (
                    "merged in a second".to_owned(),
                    format!("{:.0}{goal}", 1.0 / each(elapsed)),
                ),
                (
                    "of the server, per batch: CPU ms".to_owned(),
                    format!("{:.3}", each(after.0.saturating_sub(before.0).as_secs_f64() * 1e3)),
                ),
                ("wake-ups".to_owned(), format!("{:.1}", count(after.1 - before.1))),
                ("syncs".to_owned(), format!("{:.2}", count(after.2 - before.2))),
                (
                    "submit to merged, p50 / p99".to_owned(),
                    format!("{:.1} / {:.1} ms", percentile(&times, 50), percentile(&times, 99)),
                ),
            ],
        );
    }
}
