use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, PreparedVersion};
use parking_lot::Mutex;
use serde_json::{Value, json};
use types::clock::ManualClock;
use types::{AgentId, Batch, Clock, Contract, ContributionId, DatasetId, Timestamp};

use crate::testing::{Got, Service};

/// A clock at whose second reading something happens and an hour passes.
struct Interrupted {
    clock: Arc<ManualClock>,
    readings: AtomicUsize,
    interrupt: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Interrupted").finish_non_exhaustive()
    }
}

impl Clock for Interrupted {
    fn now(&self) -> Timestamp {
        let interrupt = self
            .interrupt
            .lock()
            .take_if(|_| self.readings.fetch_add(1, Ordering::SeqCst) == 1);
        if let Some(interrupt) = interrupt {
            interrupt();
            self.clock.advance(Duration::from_hours(1));
        }
        self.clock.now()
    }
}

/// Creates tables in a folder, with a table of the dataset that has `records`, one in each version.
async fn grown_otherwise(folder: &Path, dataset: DatasetId, contract: &Arc<Contract>, records: &[Value]) {
    let objects = Arc::new(DurableLocal::open(folder.join("tables")).unwrap());
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
    let catalog = Catalog::open(objects, folder.join("index"), clock).unwrap();
    let mut table = catalog.table(dataset, contract).await.unwrap();
    for record in records {
        let mut prepared = PreparedVersion::of_batch(
            ContributionId::new(Timestamp::from_micros(2)),
            AgentId::new(Timestamp::from_micros(3)),
            Arc::new(Batch::decode(contract, std::slice::from_ref(record))),
        );
        let merged = table
            .commit(&mut prepared, Timestamp::from_micros(4), |_| Value::Null)
            .await
            .unwrap();
        assert!(matches!(merged, CommitOutcome::Committed(_)), "{merged:?}");
    }
}

/// Copies the files of a folder into another, over those with the same names.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_read_serves_the_table_that_it_checked() {
    let mut service = Service::start().await;
    let operator = service.operator().await;
    service.project(&operator, "weather", &json!({})).await;
    let key = service.agent(&operator, "ada").await;
    service.merged(&key, "weather", &[json!({"name": "ours"})]).await;
    let project = service
        .app
        .store
        .project_by_slug("weather", None)
        .await
        .unwrap()
        .unwrap();
    let other = tempfile::tempdir().unwrap();
    let records = [json!({"name": "foreign"}), json!({"name": "more"})];
    let contract = Arc::new(serde_json::from_str(&project.contract_json).unwrap());
    grown_otherwise(other.path(), project.id, &contract, &records).await;
    let dataset = project.id.to_string();
    let (from, to) = (
        other.path().join("tables").join(&dataset),
        service.tables().join(&dataset),
    );
    // One reading of the clock belongs to opening the table, one to each look at its last commit.
    let clock = Arc::new(Interrupted {
        clock: Arc::clone(&service.clock),
        readings: AtomicUsize::new(0),
        interrupt: Mutex::default(),
    });
    let objects = Arc::new(DurableLocal::open(service.tables()).unwrap());
    let index = other.path().join("index of the service");
    service.app.catalog = Catalog::open(objects, index, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    service.router = crate::router(service.app.clone());
    let names = |got: &Got| {
        assert_eq!(got.status, 200, "{}", got.json());
        let records = got.json()["items"].as_array().unwrap().clone();
        records.iter().map(|record| record["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&service.get("/projects/weather/data", Some(&key)).await),
        ["ours"]
    );
    // While the next read runs, a copy that grew in another way takes the place of the table.
    clock.readings.store(0, Ordering::SeqCst);
    *clock.interrupt.lock() = Some(Box::new(move || copy(&from, &to)));
    assert_eq!(
        names(&service.get("/projects/weather/data", Some(&key)).await),
        ["ours"]
    );
}
