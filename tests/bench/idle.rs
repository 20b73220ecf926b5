//! The memory of a server that has just started, and after its first merge.

use std::time::{Duration, Instant};

use tests::world::{Agent, Operator, contribute, merged, project_body};
use tests::{Options, Server};

use crate::report::Report;
use crate::usage::pss_kib;
use crate::{RECORDS, contract, records};

/// The goal, in MB.
const GOAL: f64 = 150.0;

/// The memory once it no longer grows, in MB.
async fn settled(pid: u32) -> f64 {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut before = 0;
    loop {
        let now = pss_kib(pid);
        if now == before || Instant::now() > deadline {
            return f64::from(u32::try_from(now).unwrap()) * 1_024.0 / 1e6;
        }
        before = now;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) async fn run(report: &mut Report) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(std::env::current_exe().unwrap(), folder.path().join("data"));
    let server = Server::start(&options).await;
    let fresh = settled(server.pid()).await;
    let http = server.http();
    let operator = Operator::create(&options, "bench");
    let agent = Agent::create(&http, &operator, "bench.agent").await;
    let changes = serde_json::json!({"schemaDef": contract()});
    agent
        .http
        .post("/projects", &merged(project_body("bench"), changes))
        .await
        .expect(201);
    for number in 0..100 {
        contribute(&agent.http, "bench", &records(number, RECORDS)).await;
    }
    let used = settled(server.pid()).await;
    report.table(
        "idle server",
        &[
            ("PSS after start".to_owned(), format!("{fresh:.1} MB (goal {GOAL})")),
            (
                "PSS after 100 merges of 500 records".to_owned(),
                format!("{used:.1} MB"),
            ),
        ],
    );
}
