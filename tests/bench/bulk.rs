//! A file of five million records, from its bytes to a version that is committed and signed for, against others that do
//! the same work.
//!
//! ```text
//! SLUICE_BENCH_PYTHON=…/python bench bulk FOLDER
//! ```
//!
//! The work: typed parse, duplicates within the file and against a table of a million records out, a search for
//! personal data in texts, Parquet with zstd, SHA-256 and sync of every part, one Delta commit. The project is private,
//! as nobody else screens. `bulk/data.py` makes the files in `FOLDER` where they are missing, and says how many records
//! are to be accepted; whoever accepts another number fails. The Python has `numpy`, `duckdb`, `polars` and
//! `deltalake`.
//!
//! What the peers do not do and ours does: keep the order, search all texts for personal data and not one, name the
//! line of a bad record, chain the content root, and take the bytes over HTTP first, which is measured apart.
//!
//! Invariant: ours and theirs in turn, on the same disk; of each the best of all rounds counts.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tests::world::{Agent, Operator, merged, project_body};
use tests::{Http, Options, Server};

use crate::reads::scene::contract;
use crate::report::Report;
use crate::usage::{cpu_of, forget_peak};

/// How often everything is measured, ours and theirs in turn.
const ROUNDS: usize = 3;
/// Records of the file and of the table before it.
const ROWS: usize = 5_000_000;
const BASE: usize = 1_000_000;
/// Bytes of a part of the upload.
const PART: u64 = 64 << 20;
/// The peers.
const TOOLS: [&str; 2] = ["duckdb", "polars"];
/// The goal: processor seconds against the best peer.
const GOAL: f64 = 0.33;

/// What one load took.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Cost {
    /// Seconds of the clock.
    pub(crate) wall: f64,
    /// Seconds of processors.
    pub(crate) cpu: f64,
    /// The most memory, in MiB.
    memory: f64,
    accepted: u64,
}

impl Cost {
    /// The best of both, each for itself.
    const fn best(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            cpu: self.cpu.min(other.cpu),
            memory: self.memory.min(other.memory),
            accepted: self.accepted,
        }
    }

    fn shown(self) -> String {
        let Self { wall, cpu, memory, .. } = self;
        format!("{wall:.2} s / {cpu:.2} s / {memory:.0} MiB")
    }
}

/// The Python that has the peers.
#[derive(Debug)]
pub(crate) struct Python(String);

impl Python {
    /// The one that the environment names.
    pub(crate) fn of_environment() -> Self {
        let named = std::env::var("SLUICE_BENCH_PYTHON");
        Self(named.unwrap_or_else(|_| panic!("SLUICE_BENCH_PYTHON is to name a Python with the peers")))
    }

    /// Runs a script of the benches on a folder; what it printed.
    pub(crate) fn run(&self, arguments: &[&str], folder: &Path) -> String {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench");
        let mut command = Command::new(&self.0);
        command
            .arg(benches.join(arguments[0]))
            .args(&arguments[1..])
            .arg(folder);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// What is in the file of records, which is made where it is missing.
pub(crate) fn truth(python: &Python, folder: &Path) -> Value {
    let truth = folder.join("upload.ndjson.truth.json");
    if !truth.exists() {
        fs::create_dir_all(folder).unwrap();
        python.run(&["bulk/data.py", &ROWS.to_string(), &BASE.to_string()], folder);
    }
    serde_json::from_slice(&fs::read(truth).unwrap()).unwrap()
}

pub(crate) async fn run(report: &mut Report, folder: &Path) {
    let python = Python::of_environment();
    let truth = truth(&python, folder);
    let accepted = truth["accepted"].as_u64().unwrap();

    let mut ours: Option<(Cost, Cost)> = None;
    let mut theirs: Vec<Option<Cost>> = vec![None; TOOLS.len()];
    for _ in 0..ROUNDS {
        let (sent, loaded) = load(folder).await;
        assert_eq!(loaded.accepted, accepted);
        ours = Some(ours.map_or((sent, loaded), |best| (best.0.best(sent), best.1.best(loaded))));
        for (tool, best) in TOOLS.iter().zip(&mut theirs) {
            let printed = python.run(&["bulk/peers.py", tool], folder);
            let cost: Cost = serde_json::from_str(printed.trim()).unwrap();
            assert_eq!(cost.accepted, accepted, "{tool}");
            *best = Some(best.map_or(cost, |best| best.best(cost)));
        }
    }
    tell(report, ours.unwrap(), &theirs);
}

fn tell(report: &mut Report, (sent, loaded): (Cost, Cost), theirs: &[Option<Cost>]) {
    let mut rows = vec![
        ("sluice: taking the bytes over HTTP".to_owned(), sent.shown()),
        ("sluice: from complete to merged".to_owned(), loaded.shown()),
    ];
    let mut bars = vec![("Sluice", Some(loaded.cpu))];
    for (tool, cost) in TOOLS.iter().zip(theirs) {
        let cost = cost.unwrap();
        rows.push(((*tool).to_owned(), cost.shown()));
        bars.push((tool, Some(cost.cpu)));
        let (cpu, wall) = (loaded.cpu / cost.cpu, loaded.wall / cost.wall);
        let goal = format!("{cpu:.2} / {wall:.2} (goal {GOAL})");
        rows.push((format!("of {tool}'s: processors / clock"), goal));
    }
    report.table("1.02 GB of NDJSON, 5 M records: clock / processors / memory", &rows);
    report.chart("bulk load of 1.02 GB, 5 million records", "CPU s", &bars);
}

/// Loads the file on top of the base: what taking its bytes cost, and what the rest did.
async fn load(folder: &Path) -> (Cost, Cost) {
    let data = tempfile::tempdir_in(folder).unwrap();
    let options = Options::new(crate::server(), data.path().join("data"));
    let server = Server::start(&options).await;
    let operator = Operator::create(&options, "bench");
    let agent = Agent::create(&server.http(), &operator, "bench.agent").await;
    let body = merged(
        project_body("bulk"),
        json!({"schemaDef": contract(), "visibility": "private"}),
    );
    agent.http.post("/projects", &body).await.expect(201);
    let http = agent.http;
    upload(&server, &http, "bulk", &folder.join("base.ndjson")).await;
    let costs = upload(&server, &http, "bulk", &folder.join("upload.ndjson")).await;
    server.stop().await;
    costs
}

/// Uploads a file to a project and waits for its outcome: what taking its bytes cost, and what the rest did.
pub(crate) async fn upload(server: &Server, http: &Http, slug: &str, file: &Path) -> (Cost, Cost) {
    let bytes = fs::metadata(file).unwrap().len();
    let body = json!({
        "bytes": bytes,
        "parts": bytes.div_ceil(PART),
        "partSize": PART.min(bytes),
        "sourceDeclaration": "made by a generator",
    });
    let made = http.post(&format!("/projects/{slug}/uploads"), &body).await.expect(201);
    let whole = fs::File::open(file).unwrap();
    let client = s3_server::caller().build().unwrap();
    let meter = Meter::begin(server);
    let mut etags = Vec::new();
    for part in made.body["partUrls"].as_array().unwrap() {
        let n = part["n"].as_u64().unwrap();
        let from = (n - 1) * PART;
        let mut piece = vec![0; usize::try_from(PART.min(bytes - from)).unwrap()];
        std::os::unix::fs::FileExt::read_exact_at(&whole, &mut piece, from).unwrap();
        let request = client.request(Method::PUT, part["url"].as_str().unwrap()).body(piece);
        let answer = request.send().await.unwrap().error_for_status().unwrap();
        etags.push(json!({"n": n, "etag": answer.headers()["etag"].to_str().unwrap()}));
    }
    let sent = meter.end(server, 0);
    let id = made.text("/id");
    let meter = Meter::begin(server);
    let path = format!("/projects/{slug}/uploads/{id}/complete");
    http.post(&path, &json!({"etags": etags})).await.expect(201);
    loop {
        let path = format!("/projects/{slug}/contributions/{id}?wait=20");
        let outcome = http.get(&path).await.expect(200);
        match outcome.text("/status") {
            "merged" => {
                let accepted = outcome.body["acceptedCount"].as_u64().unwrap();
                return (sent, meter.end(server, accepted));
            }
            "rejected" => panic!("{}", outcome.body),
            _ => {}
        }
    }
}

/// What a server uses from here on.
pub(crate) struct Meter {
    begun: Instant,
    cpu: std::time::Duration,
}

impl Meter {
    pub(crate) fn begin(server: &Server) -> Self {
        forget_peak(server.pid());
        Self {
            begun: Instant::now(),
            cpu: cpu_of(server.pid()),
        }
    }

    pub(crate) fn end(self, server: &Server, accepted: u64) -> Cost {
        Cost {
            wall: self.begun.elapsed().as_secs_f64(),
            cpu: cpu_of(server.pid()).saturating_sub(self.cpu).as_secs_f64(),
            memory: f64::from(server.peak_mib()),
            accepted,
        }
    }
}
