//! Formats of files that become datasets: tables of spreadsheets, dumps of interfaces, Parquet and workbooks.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::World;

use super::{STATIONS, Shell, is_there, records};
use crate::binary;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spreadsheet_export_becomes_a_private_dataset_once_somebody_says_so() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    shell.file("stations.csv", STATIONS);
    // Nobody is there to confirm.
    shell
        .run(&["push", "stations.csv", "--create"])
        .expect(3, &["Nothing was created", "--yes"]);
    assert!(!is_there(&world, "stations").await);
    shell
        .typed("push stations.csv --create", "n\n")
        .expect(3, &["Create `stations`, private, and send it?", "Nothing was created."]);
    assert!(!is_there(&world, "stations").await);
    let said = shell.typed("push stations.csv --create", "y\n").expect(
        0,
        &[
            "stations.csv: CSV with `;`, decimal comma, UTF-8; 3 records",
            "Station ID",
            "station_id",
            "leading zeros",
            "read as %d.%m.%Y",
            "1 × `n/a` is null",
            "Checked: 3 records pass.",
            "Create `stations`, private, and send it? Fields and visibility never change. [Y/n] ",
            "stations version 1: 3 of 3 records are new.",
            "Next: sluice query stations \"SELECT * FROM records LIMIT 5\"",
        ],
    );
    // A terminal without a cursor gets no signs that move one.
    assert!(!said.out.contains('\u{1b}'), "{:?}", said.out);
    let project = world.agent.http.get("/projects/stations").await.expect(200).body;
    assert_eq!(
        (&project["visibility"], &project["access"]),
        (&json!("private"), &json!("public"))
    );
    assert_eq!(project["title"], "Stations");
    let readme = project["readme"].as_str().unwrap();
    assert!(
        readme.contains("`stations.csv`") && readme.contains("3 records") && readme.contains("elevation_m"),
        "{readme}"
    );
    let types: Vec<_> = project["schemaDef"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| &field["type"])
        .collect();
    assert_eq!(types, ["string", "date", "number"]);
    assert_eq!(
        records(&world, "stations").await,
        [
            json!({"station_id": "0017", "opened": "1864-05-01", "elevation_m": 9.5}),
            json!({"station_id": "0018", "opened": "1871-06-22", "elevation_m": 120.0}),
            json!({"station_id": "0019", "opened": null, "elevation_m": null}),
        ]
    );
    shell
        .run(&["query", "stations", "SELECT sum(elevation_m) AS metres FROM records"])
        .expect(0, &["129.5"]);
    assert_eq!(shell.left(), Vec::<PathBuf>::new());

    // The same again, and next month.
    let again = shell
        .run(&["push", "stations.csv", "--project", "stations"])
        .expect(0, &[]);
    assert_eq!(again.out, "Nothing new: all 3 records are in `stations` already.\n");
    let again = shell.run(&["push", "stations.csv", "--create"]).expect(0, &[]);
    assert_eq!(again.out, "Nothing new: all 3 records are in `stations` already.\n");
    let more = "Station ID;Opened;Elevation (m);Operator\n0117;01.05.1864;9,5;x\n0118;22.06.1871;120;x\n0119;;n/a;x\n";
    shell.file("december.csv", more);
    shell
        .run(&["push", "december.csv", "--project", "stations"])
        .expect(3, &["Operator", "--ignore 'Operator'"]);
    let said = shell
        .run(&["push", "december.csv", "--project", "stations", "--ignore", "Operator"])
        .expect(0, &[]);
    assert!(said.out.starts_with("stations version 2: "), "{}", said.all());
    // A file of other fields is no continuation.
    shell.file("other.csv", "a,b\n1,2\n");
    shell
        .run(&["push", "other.csv", "--create", "--project", "stations", "--yes"])
        .expect(
            3,
            &["`stations` exists. Append with --project stations, or name another: --create --project NAME"],
        );
    shell
        .run(&["push", "stations.csv", "--create", "--public", "--yes"])
        .expect(3, &["`stations` exists."]);
    shell.run(&["push", "other.csv", "--project", "no-such-one"]).expect(
        7,
        &["`sluice push 'other.csv' --create --project no-such-one` makes it"],
    );
    shell
        .run(&["push", "other.csv", "--project", "stations", "--title", "Other"])
        .expect(2, &["--title is for a new project: add --create"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_of_an_api_on_standard_input_asks_where_its_records_are() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    let items: Vec<Value> = (0..14).map(|n| json!({"id": n, "name": format!("item {n}")})).collect();
    let included: Vec<Value> = (0..9).map(|n| json!({"ref": n})).collect();
    let dump = json!({"data": {"items": items}, "included": included}).to_string();
    let create = ["push", "-", "--create", "--project", "items", "--yes"];
    let said = shell.piped(&create, &dump).expect(
        3,
        &[
            "standard input",
            "/data/items",
            "/included",
            "--records '/data/items'",
            "Nothing was created.",
        ],
    );
    assert_eq!(said.out, "");
    assert!(!is_there(&world, "items").await);
    let settled = [&create[..], &["--records", "/data/items"]].concat();
    let said = shell.piped(&settled, &dump).expect(0, &[]);
    assert_eq!(said.out, "items version 1: 14 of 14 records are new.\n");
    assert_eq!(records(&world, "items").await.len(), 14);
    assert_eq!(shell.left(), Vec::<PathBuf>::new());
    // Without a name there is none for the project.
    shell
        .piped(&["push", "-", "--create", "--yes"], &dump)
        .expect(2, &["--project"]);
    shell.piped(&settled, "").expect(4, &["standard input is empty"]);
    // At a terminal the question is asked.
    shell.file("dump.json", &dump);
    shell
        .typed("push dump.json --create --project more-items", "1\ny\n")
        .expect(0, &["Which one", "more-items version 1: 14 of 14 records are new."]);
}

const PANDAS: &[u8] = include_bytes!("../../../catalog/tabular/tests/files/pandas.parquet");
const WORKBOOK: &[u8] = include_bytes!("../../../catalog/tabular/tests/files/xlsxwriter.xlsx");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parquet_of_pandas_and_a_workbook_become_datasets_by_one_command() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    // The name of a file says nothing about it.
    shell.file("trips.dat", PANDAS);
    let said = shell.run(&["push", "trips.dat", "--create", "--yes"]).expect(
        0,
        &[
            "trips.dat: Parquet; 3 records",
            "decimal(2)",
            "Checked: 3 records pass.",
        ],
    );
    assert_eq!(said.out, "trips version 1: 3 of 3 records are new.\n");
    let found = records(&world, "trips").await;
    let first = found.iter().find(|record| record["trip_id"] == 1).unwrap();
    assert_eq!(
        (&first["stops"], &first["fare"]),
        (&json!(["07", "x", null]), &json!("12.50"))
    );
    shell.file("days.xlsx", WORKBOOK);
    let said = shell
        .run(&["push", "days.xlsx", "--create", "--yes"])
        .expect(0, &["days.xlsx: a workbook", "stand above the header"]);
    assert!(said.out.starts_with("days version 1: "), "{}", said.all());
    let found = records(&world, "days").await;
    assert!(
        found
            .iter()
            .any(|record| record["took"] == "P1DT12H" && record["day"] == "2024-01-01"),
        "{found:?}"
    );
    // A row that does not fit is named by its row.
    shell
        .run(&["push", "days.xlsx", "--project", "trips"])
        .expect(3, &["--ignore"]);
    assert_eq!(shell.left(), Vec::<PathBuf>::new());
}
