//! A service with a dataset of few large parts, as an upload makes them, and one of very many small versions.
//!
//! Invariant: both are made once in the folder, through the writer of the product, and used again by the next run.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, PreparedVersion, Table};
use serde_json::{Value, json};
use tests::world::{Agent, Operator, merged, project_body};
use tests::{Options, Server};
use types::clock::SystemClock;
use types::{AgentId, Batch, Clock, Contract, ContributionId, DatasetId};

/// Records that are staged at once.
const UNIT: usize = 8_000;
/// Versions of the dataset of many, and records of each.
pub(super) const VERSIONS: u64 = 10_000;
const RECORDS: usize = 50;

/// Where everything is.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) options: Options,
    pub(super) catalog: Catalog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tables: PathBuf,
    pub(super) large: DatasetId,
    pub(super) many: DatasetId,
    /// The key of an agent.
    pub(super) key: String,
}

pub(crate) fn contract() -> Value {
    json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "device", "type": "string", "required": true},
        {"name": "seq", "type": "integer", "required": true},
        {"name": "value", "type": "number", "required": true},
        {"name": "ok", "type": "boolean", "required": true},
        {"name": "note", "type": "string", "required": true},
    ]})
}

impl Scene {
    /// Makes what is not there yet.
    pub(super) async fn set(file: &Path, folder: &Path) -> Self {
        let options = Options::new(std::env::current_exe().unwrap(), folder.join("data"));
        let told = folder.join("scene.json");
        if !told.exists() {
            let people = people(&options).await;
            fs::write(&told, people.to_string()).unwrap();
        }
        let people: Value = serde_json::from_slice(&fs::read(&told).unwrap()).unwrap();
        let text = |name: &str| people[name].as_str().unwrap().to_owned();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let tables = options.data().join("tables");
        let objects = Arc::new(DurableLocal::open(&tables).unwrap());
        // Why not the folder of the service: it is there at the same time.
        let catalog = Catalog::open(objects, folder.join("index"), Arc::clone(&clock)).unwrap();
        let scene = Self {
            large: text("large").parse().unwrap(),
            many: text("many").parse().unwrap(),
            key: text("key"),
            options,
            catalog,
            clock,
            tables,
        };
        if scene.versions(scene.many).await < VERSIONS {
            let mut table = scene.table(scene.many).await;
            let mut lines = Lines::of(file);
            for _ in scene.versions(scene.many).await..VERSIONS {
                scene.merge(&mut table, &lines.records(RECORDS)).await;
            }
        }
        if scene.versions(scene.large).await == 0 {
            scene.upload(file).await;
        }
        scene
    }

    /// Merges all records of the file as an upload does.
    async fn upload(&self, file: &Path) {
        let mut table = self.table(self.large).await;
        let at = self.clock.now();
        let stagers = table.stagers();
        let staging = stagers.stage(ContributionId::new(at), AgentId::from_bytes([7; 16]), 0);
        let mut stager = staging.await.unwrap();
        let mut lines = Lines::of(file);
        loop {
            let records = lines.records(UNIT);
            if records.is_empty() {
                break;
            }
            stager.push(&Batch::decode(stager.contract(), &records)).unwrap();
        }
        let mut staged = stager.finish().unwrap();
        let outcome = table.commit(&mut staged, at, |_| Value::Null).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)));
        table.close().await;
    }

    /// The folder of the parts of the large dataset.
    pub(super) fn parts(&self) -> PathBuf {
        self.tables.join(self.large.to_string())
    }

    pub(super) async fn serve(&self) -> Server {
        Server::start(&self.options).await
    }

    async fn versions(&self, dataset: DatasetId) -> u64 {
        let snapshot = self.catalog.snapshot(dataset, None).await.unwrap();
        snapshot.map_or(0, |snapshot| snapshot.version().0)
    }

    async fn table(&self, dataset: DatasetId) -> Table {
        let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract()).unwrap());
        self.catalog.table(dataset, &contract).await.unwrap()
    }

    async fn merge(&self, table: &mut Table, records: &[Value]) {
        let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract()).unwrap());
        let at = self.clock.now();
        let mut prepared = PreparedVersion::of_batch(
            ContributionId::new(at),
            AgentId::from_bytes([7; 16]),
            Batch::decode(&contract, records).into(),
        );
        let outcome = table.commit(&mut prepared, at, |_| Value::Null).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)));
    }
}

/// The records of the file.
struct Lines(io::Lines<BufReader<File>>);

impl Lines {
    fn of(file: &Path) -> Self {
        Self(BufReader::with_capacity(1 << 20, File::open(file).unwrap()).lines())
    }

    /// The next ones, as many as there are.
    fn records(&mut self, count: usize) -> Vec<Value> {
        let lines = self.0.by_ref().take(count);
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    }
}

/// An agent and its two projects.
async fn people(options: &Options) -> Value {
    let server = Server::start(options).await;
    let operator = Operator::create(options, "bench");
    let agent = Agent::create(&server.http(), &operator, "bench.agent").await;
    let mut people = json!({"key": agent.key});
    for slug in ["large", "many"] {
        let body = merged(project_body(slug), json!({"schemaDef": contract()}));
        let made = agent.http.post("/projects", &body).await.expect(201);
        people[slug] = made.body["id"].clone();
    }
    server.stop().await;
    people
}
