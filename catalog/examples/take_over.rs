//! What it takes to become the owner of a table in a bucket: `take_over DIRECTORY [VERSIONS]`.
//!
//! Merges versions of 500 rows, as one who dies then; serves the folder as a bucket; opens the table in a process that
//! has no index of it, and prints the time until the next row can be judged, and the requests that it took: over a
//! store that answers at once, over one that takes 20 ms for every request, and with the runs of keys taken away.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::storage::s3::{S3, S3Config, Secret};
use catalog::storage::{DurableLocal, DurableStore};
use catalog::{Catalog, CommitOutcome, PreparedVersion};
use s3_server::{ACCESS_KEY, BUCKET, Fault, REGION, Rule, SECRET_KEY, Server};
use serde_json::{Value, json};
use types::clock::SystemClock;
use types::{AgentId, Batch, Clock as _, Contract, ContributionId, DatasetId};

const ROWS: u64 = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: take_over DIRECTORY [VERSIONS]")?);
    let versions: u64 = arguments.next().as_deref().unwrap_or("10000").parse()?;
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "value", "type": "number"}
    ]}))?);
    let clock = SystemClock::default();
    let dataset = DatasetId::new(clock.now());
    // Put as files, because that is quicker; the server finds them as objects.
    let tables = directory.join(BUCKET).join("tables");
    let local = Arc::new(DurableLocal::open(&tables)?);
    let open = |store: Arc<dyn DurableStore>, index: &str| Catalog::open(store, directory.join(index), Arc::new(clock));
    let owner = open(local, "index-first")?;
    let mut table = owner.table(dataset, &contract).await?;
    for version in 0..versions {
        let records: Vec<Value> = (0..ROWS)
            .map(|row| json!({"id": format!("r{}", version * ROWS + row), "value": row}))
            .collect();
        let mut prepared = PreparedVersion::of_batch(
            ContributionId::new(clock.now()),
            AgentId::new(clock.now()),
            Arc::new(Batch::decode(&contract, &records)),
        );
        if !matches!(
            table.commit(&mut prepared, clock.now(), |_| Value::Null).await?,
            CommitOutcome::Committed(_)
        ) {
            return Err("a batch was not merged".into());
        }
    }
    drop((table, owner));

    let server = Server::start(&directory)?;
    let bucket = S3Config {
        endpoint: server.endpoint(),
        region: REGION.to_owned(),
        bucket: BUCKET.to_owned(),
        prefix: "tables".to_owned(),
        access_key: ACCESS_KEY.to_owned(),
        secret_key: Secret::new(SECRET_KEY.to_owned()),
        path_style: true,
        attempt: Duration::from_secs(10),
        patience: Duration::from_mins(1),
    };
    let asked = [json!({"id": "r0", "value": 0}), json!({"id": "new", "value": 0})];
    let asked = Batch::decode(&contract, &asked);
    let slow = Rule::share(Fault::Slow(Duration::from_millis(20)), "", 1_000);
    for (number, what) in ["at once", "20 ms later", "at once, without runs"]
        .into_iter()
        .enumerate()
    {
        server.faults().clear();
        if number == 1 {
            server.faults().add(slow.clone());
        }
        if number == 2 {
            for entry in std::fs::read_dir(tables.join(dataset.to_string()).join("_sluice"))? {
                let path = entry?.path();
                if path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("keys-"))
                {
                    std::fs::remove_file(path)?;
                }
            }
        }
        let store = Arc::new(S3::connect(&bucket)?);
        let catalog = open(store, &format!("index-{number}"))?;
        let (before, start) = (server.faults().requests(), Instant::now());
        let table = catalog.table(dataset, &contract).await?;
        let known = table.known().known(asked.keys());
        let (took, after) = (start.elapsed(), server.faults().requests());
        writeln!(
            std::io::stdout(),
            "answered {what}: {} rows taken over in {took:.2?}, {} reads, {} listings, knows {known:?}",
            table.record_count(),
            after.gets - before.gets,
            after.lists - before.lists
        )?;
    }
    Ok(())
}
