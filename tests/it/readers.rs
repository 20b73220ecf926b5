//! Delta readers nobody here wrote see the same rows as the interface, at every version.
//!
//! Invariant: where the readers are missing, CI fails and anybody else is told that they were not asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use tests::World;
use tests::checker::delta::tables_below;
use tests::checker::record::{Record, normal, types_of};
use tests::world::{all_data, contract, contribute, records};

use crate::binary;

/// Names the Python that has `deltalake` and `polars`.
const PYTHON: &str = "SLUICE_TEST_PYTHON";

/// What the readers print for a table: reader, version, rows.
type Readings = BTreeMap<String, BTreeMap<String, Vec<Map<String, Value>>>>;

fn read(python: &str, table: &Path) -> Readings {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("readers/read_tables.py");
    let output = Command::new(python).arg(script).arg(table).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A row of a reader as a record: JSON columns parsed, extras as members, hidden columns gone.
fn record(types: &BTreeMap<String, String>, row: &Map<String, Value>) -> Record {
    let mut members = Map::new();
    for (name, value) in row {
        let parsed = || serde_json::from_str::<Value>(value.as_str().unwrap()).unwrap();
        match (name.as_str(), types.get(name).map(String::as_str)) {
            ("_sluice_extra", _) => members.extend(parsed().as_object().unwrap().clone()),
            (_, Some("json")) => {
                members.insert(name.clone(), parsed());
            }
            _ => {
                members.insert(name.clone(), value.clone());
            }
        }
    }
    normal(types, &members)
}

#[tokio::test]
async fn deltalake_and_polars_read_what_the_interface_gives() {
    let Ok(python) = std::env::var(PYTHON) else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{PYTHON} must be set in CI"
        );
        eprintln!("skipped: {PYTHON} names no Python with deltalake and polars");
        return;
    };
    let world = World::start(binary()).await;
    let def = tests::world::merged(contract(), json!({"allowExtra": true}));
    let types = types_of(&def);
    let slug = world.project_with(json!({"schemaDef": def})).await;
    let everything = json!({"station": "\u{c11c}\u{c6b8} \"x\"", "sample": -7, "value": -0.125, "good": false,
        "at": "1969-12-31T23:59:59.999999Z", "more": {"b": [1, null, {"c": "d"}]}, "extra": ["kept", 1.5]});
    contribute(&world.agent.http, &slug, &records("a", 40)).await;
    contribute(
        &world.agent.http,
        &slug,
        &[everything, json!({"station": "bare", "sample": 0})],
    )
    .await;
    contribute(&world.agent.http, &slug, &records("a", 60)).await;
    let data = world.server.options().data().to_owned();
    let tables = tables_below(&data);
    assert_eq!(tables.len(), 1, "{tables:?}");
    let readings = read(&python, &tables[0]);
    assert_eq!(readings.keys().collect::<Vec<_>>(), ["deltalake", "polars"]);
    for (reader, versions) in readings {
        assert_eq!(versions.len(), 4, "{reader}: version 0 and three merges");
        for (version, rows) in versions {
            let number: u64 = version.parse().unwrap();
            let theirs: Vec<_> = rows.iter().map(|row| record(&types, row)).collect();
            let ours = if number == 0 {
                Vec::new()
            } else {
                all_data(&world.agent.http, &slug, number).await
            };
            let ours: Vec<_> = ours
                .iter()
                .map(|item| normal(&types, item.as_object().unwrap()))
                .collect();
            assert_eq!(theirs, ours, "{reader} at version {version}");
        }
    }
}
