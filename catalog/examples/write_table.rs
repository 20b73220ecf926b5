//! Writes a table with every type of column, and what each of its versions reads as here, one JSON object per line:
//! `write_table DIRECTORY`. `tests/readers/read_tables.py --expect` compares other readers with it.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, PreparedVersion};
use serde_json::{Value, json};
use types::clock::ManualClock;
use types::{AgentId, Batch, Contract, ContributionId, DatasetId, Timestamp, Version, render};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: write_table DIRECTORY")?);
    let start: Timestamp = "2026-11-21T07:10:20.5Z".parse()?;
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(json!({"fields": [
        {"name": "name", "type": "string", "required": true},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"},
        {"name": "온도", "type": "number"},
        {"name": "a.b-c", "type": "string"}
    ], "allowExtra": true}))?);
    let objects = Arc::new(DurableLocal::open(directory.join("tables"))?);
    let catalog = Catalog::open(objects, directory.join("index"), Arc::new(ManualClock::at(start)))?;
    let dataset = DatasetId::new(start);
    let mut table = catalog.table(dataset, &contract).await?;
    for version in 0..12_i64 {
        let records: Vec<_> = (0..=version * 3).map(|row| record(version, row)).collect();
        let mut prepared = PreparedVersion::of_batch(
            ContributionId::new(start),
            AgentId::new(start),
            Arc::new(Batch::decode(&contract, &records)),
        );
        if !matches!(
            table.commit(&mut prepared, start, |_| Value::Null).await?,
            CommitOutcome::Committed(_)
        ) {
            return Err("a version was not merged".into());
        }
    }
    let mut expected = std::fs::File::create(directory.join("expected.ndjson"))?;
    for version in 0..=12 {
        let Some(snapshot) = catalog.snapshot(dataset, Some(Version(version))).await? else {
            return Err("a version cannot be read".into());
        };
        let mut row = 0;
        for batch in snapshot.page(0, 1_000_000).await? {
            for mut record in render::records_of(&contract, &batch)? {
                record.retain(|_, value| !value.is_null());
                writeln!(
                    expected,
                    "{}",
                    json!({"version": version, "row": row, "record": record})
                )?;
                row += 1;
            }
        }
    }
    std::io::stdout().write_all(
        directory
            .join("tables")
            .join(dataset.to_string())
            .as_os_str()
            .as_encoded_bytes(),
    )?;
    Ok(())
}

/// Record `row` of a version: every type, its extremes, and members that are missing.
fn record(version: i64, row: i64) -> Value {
    let mut record = json!({"name": format!("v{version} r{row} é€😀 \"\\\n")});
    let extremes = [
        json!({"count": i64::MIN, "ratio": -1.5e-300, "ok": false, "at": "1969-12-31T23:59:59.999999Z"}),
        json!({"count": i64::MAX, "ratio": 1.0, "ok": true, "at": "2026-11-21T16:10:20.5+09:00"}),
        json!({"count": 9_007_199_254_740_993_i64, "ratio": 0.1, "at": "0001-01-01T00:00:00Z", "온도": -40}),
        json!({"more": {"list": [1, 1.5, null, "x"], "big": u64::MAX}, "at": "9999-12-31T23:59:59.999999Z"}),
        json!({"more": "text", "a.b-c": "dotted", "extra": {"deep": [true, {"n": 1e21}]}, "another": -0.0}),
        json!({"more": [], "a.b-c": "", "extra": 7}),
        json!({}),
    ];
    let chosen = &extremes[usize::try_from(version + row).unwrap_or(0) % extremes.len()];
    if let (Some(record), Some(chosen)) = (record.as_object_mut(), chosen.as_object()) {
        record.extend(chosen.clone());
    }
    record
}
