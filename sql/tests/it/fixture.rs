//! A table of known records, and a sandbox over it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, PreparedVersion};
use serde_json::{Map, Value, json};
use sql::{Sandbox, SandboxConfig, SandboxPart, VersionRecords};
use tempfile::TempDir;
use types::clock::ManualClock;
use types::{AgentId, Batch, Clock, Contract, ContributionId, DatasetId, Proof, Timestamp};

/// How many records the table has.
pub(crate) const ROWS: i64 = 3_000;
/// How many versions they came in.
const VERSIONS: i64 = 6;

/// A table, its version and where it is.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) records: VersionRecords,
    pub(crate) clock: Arc<ManualClock>,
    _directory: TempDir,
}

/// 2026-01-01T00:00:00Z.
pub(crate) fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub(crate) fn contract() -> Arc<Contract> {
    let def = json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "device", "type": "string"},
        {"name": "seq", "type": "integer"},
        {"name": "value", "type": "number"},
        {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"},
        {"name": "deviceId", "type": "string"},
        {"name": "온도", "type": "integer"}
    ], "allowExtra": true});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// Record `i`; what is left out is missing.
fn record(i: i64) -> Value {
    let mut record = Map::new();
    let mut put = |name: &str, value: Value| record.insert(name.to_owned(), value);
    put("id", format!("r{i:05}").into());
    put(
        "device",
        ["alpha", "beta", "gamma"][usize::try_from(i % 3).unwrap()].into(),
    );
    put("seq", if i == 2_999 { i64::MAX } else { i }.into());
    put(
        "at",
        start()
            .plus(Duration::from_secs(u64::try_from(i).unwrap() * 60))
            .to_string()
            .into(),
    );
    put("deviceId", format!("D-{}", i % 4).into());
    if i % 10 != 9 {
        put("value", json!(f64::from(i32::try_from(i).unwrap()) / 4.0 - 100.0));
    }
    if i % 7 != 0 {
        put("ok", (i % 2 == 0).into());
    }
    if i % 5 == 0 {
        put("more", json!({"n": i, "tags": ["x", null]}));
    }
    if i < 3 {
        put("온도", (-i).into());
    }
    if i % 1_000 == 0 {
        put("unnamed", i.into());
    }
    Value::Object(record)
}

impl Fixture {
    /// The known records, in a few versions.
    pub(crate) async fn new() -> Self {
        Self::in_versions(VERSIONS).await
    }

    /// The known records, in equal versions.
    pub(crate) async fn in_versions(count: i64) -> Self {
        let rows = ROWS / count;
        let version = |version: i64| (version * rows..(version + 1) * rows).map(record).collect();
        Self::of(contract(), (0..count).map(version).collect()).await
    }

    /// Merges records, a version each, by way of the catalog.
    pub(crate) async fn of(contract: Arc<Contract>, versions: Vec<Vec<Value>>) -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path().join("tables");
        let clock = Arc::new(ManualClock::at(start()));
        let objects = Arc::new(DurableLocal::open(&root).unwrap());
        let clock_of_catalog: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let catalog = Catalog::open(objects, directory.path().join("index"), clock_of_catalog).unwrap();
        let dataset = DatasetId::new(start());
        let mut table = catalog.table(dataset, &contract).await.unwrap();
        for records in versions {
            let mut prepared = PreparedVersion::of_batch(
                ContributionId::new(start()),
                AgentId::new(start()),
                Batch::decode(&contract, &records).into(),
            );
            assert!(matches!(
                table.commit(&mut prepared, start(), |_| Value::Null).await.unwrap(),
                CommitOutcome::Committed(_)
            ));
        }
        let snapshot = catalog.snapshot(dataset, None).await.unwrap().unwrap();
        let named = snapshot.parts();
        let proofs = snapshot.proofs(&named).await.unwrap();
        let part = |(part, proof): (&catalog::PartInfo, Arc<Proof>)| SandboxPart {
            path: root.join(part.path(dataset).as_ref()),
            rows: part.rows,
            proof,
        };
        let parts = named.iter().zip(proofs).map(part).collect();
        Self {
            records: VersionRecords { contract, parts },
            clock,
            _directory: directory,
        }
    }

    /// The way a sandbox of the tests is run.
    pub(crate) fn config(&self) -> SandboxConfig {
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        SandboxConfig {
            standby: 1,
            ..SandboxConfig::new(PathBuf::from(env!("CARGO_BIN_EXE_sql-child")), clock)
        }
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox::start(self.config()).unwrap()
    }
}

/// The rows of an answer as JSON.
pub(crate) fn rows(answer: &sql::QueryAnswer) -> Vec<Value> {
    answer
        .rows
        .iter()
        .map(|row| serde_json::from_str(row.get()).unwrap())
        .collect()
}
