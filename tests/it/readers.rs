//! Readers nobody here wrote see the same rows as the interface, in the same order: of the table, of a pulled version, and of
//! a version that a person downloaded.
//!
//! Invariant: where the readers are missing, CI fails and anybody else is told that they were not asked.

mod scene;
mod sight;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::scene::{Answer, Scene};
use self::sight::{Sight, Types, parsed};
use crate::downloads::Downloader;

/// Names the Python that has `deltalake`, `duckdb`, `polars`, `pyarrow`, `blake3` and `cryptography`.
const PYTHON: &str = "SLUICE_TEST_PYTHON";
/// Reads with each of them.
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/readers/read_tables.py");
/// The verifier that was written from `catalog/proof/FORMAT.md` alone.
const VERIFIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/client/examples/verify.py");

/// Formats of downloads, beside the JSON lines of the export.
const FORMATS: [&str; 3] = ["csv", "parquet", "arrow"];

/// Rows as a reader prints them.
type Rows = Vec<Map<String, Value>>;

/// The Python to ask; none where it may be missing.
pub(crate) fn python() -> Option<String> {
    let python = std::env::var(PYTHON).ok();
    if python.is_none() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{PYTHON} must be set in CI"
        );
        eprintln!("skipped: {PYTHON} names no Python with deltalake, duckdb, polars and pyarrow");
    }
    python
}

/// What a script prints.
pub(crate) fn run(python: &str, arguments: &[&str]) -> String {
    let output = Command::new(python).args(arguments).output().unwrap();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {failed}");
    String::from_utf8(output.stdout).unwrap()
}

fn read<T: DeserializeOwned>(python: &str, arguments: &[&str]) -> T {
    serde_json::from_str(&run(python, &[&[READER], arguments].concat())).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn deltalake_and_polars_read_every_version_as_the_interface_gives_it() {
    the_table_is_what_the_interface_gives(&Scene::set(false).await).await;
}

#[tokio::test]
async fn deltalake_and_polars_read_every_version_of_a_compacted_table_as_the_interface_gives_it() {
    the_table_is_what_the_interface_gives(&Scene::set(true).await).await;
}

async fn the_table_is_what_the_interface_gives(scene: &Scene) {
    let Some(python) = python() else { return };
    let readings = read(&python, &["table", text(&scene.table())]);
    readings_are_what_the_interface_gives(scene, readings, scene.newest() + 1).await;
}

/// Of so many versions of the Delta table or more.
async fn readings_are_what_the_interface_gives(
    scene: &Scene,
    readings: BTreeMap<String, BTreeMap<usize, Rows>>,
    least: u64,
) {
    let commits = scene.versions_of_commits();
    let readers: Vec<_> = readings.keys().map(String::as_str).collect();
    assert_eq!(readers, ["deltalake", "polars of the table"]);
    for (reader, versions) in readings {
        assert!(versions.len() as u64 >= least, "{reader}: {} versions", versions.len());
        for (commit, rows) in versions {
            let version = commits[commit];
            let theirs = Sight::of_columns(&reader, &scene.types, &rows);
            theirs.must_be(&scene.data(version, 1_000).await, &format!("version {version}"));
            theirs.must_be(&scene.export(version).await, &format!("version {version}"));
        }
    }
}

/// Reads the texts of a row of CSV as values of their types.
fn typed(types: &Types, row: &mut Map<String, Value>) {
    for (name, value) in row {
        let kind = types.get(name).map(String::as_str);
        if let (Some("integer" | "number" | "boolean"), Value::String(text)) = (kind, &*value) {
            *value = parsed(text);
        }
    }
}

#[tokio::test]
async fn duckdb_polars_and_pyarrow_read_downloads_as_the_interface_gives_their_version() {
    let Some(python) = python() else { return };
    let scene = Scene::set(false).await;
    let person = Downloader::sign_in(&scene.world).await;
    for version in [scene::OLD, scene.newest()] {
        let folder = scene.world.folder().join(format!("files-{version}"));
        std::fs::create_dir(&folder).unwrap();
        for format in FORMATS {
            let file = person.download(&scene.slug, version, format).await;
            std::fs::write(folder.join(format!("records.{format}")), file).unwrap();
        }
        let readings: BTreeMap<String, Rows> = read(&python, &["files", text(&folder)]);
        assert_eq!(readings.len(), 8, "{:?}", readings.keys());
        let export = scene.export(version).await;
        for (reader, mut rows) in readings {
            if reader.ends_with(" of csv") {
                for row in &mut rows {
                    typed(&scene.types, row);
                }
            }
            let theirs = Sight::of_columns(&reader, &scene.types, &rows);
            theirs.must_be(&export, &format!("version {version}"));
        }
    }
}

#[tokio::test]
async fn deltalake_and_polars_open_a_table_from_its_checkpoint() {
    let Some(python) = python() else { return };
    let mut scene = Scene::set(true).await;
    let checkpoint = scene.grow_to_a_checkpoint().await;
    let newest = scene.versions_of_commits().len() - 1;
    assert!(newest > checkpoint, "{newest} {checkpoint}");
    let at = |folder: &Path, commits: &[usize]| {
        let commits: Vec<_> = commits.iter().map(ToString::to_string).collect();
        let arguments: Vec<_> = commits.iter().map(String::as_str).collect();
        read(&python, &[&["table", text(folder)], &arguments[..]].concat())
    };
    let readings = at(&scene.table(), &[3, checkpoint - 1, checkpoint, newest]);
    readings_are_what_the_interface_gives(&scene, readings, 4).await;

    // Without a commit before it, it is all that they have.
    let copy = scene.copy_without_commits_before(checkpoint);
    let readings = at(&copy, &[checkpoint, newest]);
    readings_are_what_the_interface_gives(&scene, readings, 2).await;
    let name = format!("_delta_log/{checkpoint:020}.checkpoint.parquet");
    std::fs::remove_file(copy.join(name)).unwrap();
    let alone = Command::new(&python)
        .args([READER, "table", text(&copy), &newest.to_string()])
        .output();
    assert!(!alone.unwrap().status.success());
}

#[tokio::test]
async fn a_pulled_version_read_by_others_is_what_every_read_of_the_interface_gives() {
    a_pulled_version_is_what_the_interface_gives(&Scene::set(false).await).await;
}

#[tokio::test]
async fn a_pulled_version_of_a_compacted_table_is_what_every_read_of_the_interface_gives() {
    a_pulled_version_is_what_the_interface_gives(&Scene::set(true).await).await;
}

async fn a_pulled_version_is_what_the_interface_gives(scene: &Scene) {
    let Some(python) = python() else { return };
    for version in [scene::OLD, scene.newest()] {
        let when = format!("version {version}");
        let folder = scene.pull(version);
        let verified = run(&python, &[VERIFIER, text(&folder)]);
        assert!(verified.contains(&format!("version {version}: ")), "{verified}");

        let readings: BTreeMap<String, Rows> = read(&python, &["parts", text(&folder)]);
        let readers: Vec<_> = readings.keys().map(String::as_str).collect();
        assert_eq!(readers, ["duckdb", "polars", "pyarrow"]);
        let whole = scene.data(version, 1_000).await;
        assert_eq!(whole.rows.len() as u64, scene.records_at(version), "{when}");
        for (reader, rows) in &readings {
            Sight::of_columns(reader, &scene.types, rows).must_be(&whole, &when);
        }
        for limit in [1_000, 200, 37] {
            scene.data(version, limit).await.must_be(&whole, &when);
        }
        scene.single_rows(version, &whole).await;
        scene.export(version).await.must_be(&whole, &when);
        let by_contribution = scene::told_by(&scene.types, "duckdb", &readings["duckdb"]);
        for from in 0..=version {
            for limit in [500, 61] {
                let appended = scene.diff(from, version, limit).await;
                let after = by_contribution.after(from);
                appended.must_be(&after, &format!("{when} after {from}, {limit} a page"));
            }
        }
        for limit in [1_000, 113] {
            scene
                .query_pages(version, limit)
                .await
                .must_be(&Scene::by_number(&whole), &when);
        }
        let statements = scene.world.folder().join("statements.json");
        std::fs::write(&statements, serde_json::to_vec(&scene::STATEMENTS).unwrap()).unwrap();
        let theirs: Vec<Vec<Vec<Value>>> = read(&python, &["sql", text(&folder), text(&statements)]);
        for (statement, theirs) in scene::STATEMENTS.iter().zip(theirs) {
            let ours = scene.query(version, statement, 1_000).await;
            let theirs = Answer {
                rows: theirs,
                ..ours.clone()
            };
            ours.sight("/query")
                .must_be(&theirs.sight("duckdb"), &format!("{when}, {statement}"));
        }
    }
}
