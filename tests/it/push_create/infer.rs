//! Inference alone: it needs no service, and shows the text of a file without obeying it.

use std::process::Command;

use serde_json::{Value, json};
use tests::World;

use super::{STATIONS, Said, Shell, records};
use crate::binary;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_says_what_it_is_without_a_service_and_its_reading_reads_the_next() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    shell.file("stations.csv", STATIONS);
    let alone = |arguments: &[&str]| {
        let mut command = shell.command(arguments);
        command
            .env_remove("SLUICE_KEY")
            .env("SLUICE_SERVER", "http://127.0.0.1:9");
        Said::of(&command.output().unwrap())
    };
    let table = alone(&["infer", "stations.csv"]).expect(0, &["elevation_m", "Contract: {\"fields\":["]);
    assert_eq!(table.err, "");
    let inferred = alone(&["infer", "stations.csv", "--json"]).expect(0, &[]);
    let json: Value = serde_json::from_str(&inferred.out).unwrap();
    assert_eq!((&json["format"], &json["records"]), (&json!("csv"), &json!(3)));
    shell.file("reading.json", &inferred.out);
    // One line alone would say less than the saved reading.
    shell.file("next.csv", "Station ID;Opened;Elevation (m)\n0020;03.04.1901;7\n");
    shell
        .run(&["push", "next.csv", "--create", "--reading", "reading.json", "--yes"])
        .expect(0, &["next version 1: 1 of 1 records"]);
    assert_eq!(
        records(&world, "next").await,
        [json!({"station_id": "0020", "opened": "1901-04-03", "elevation_m": 7})]
    );
    let open = shell.run(&["infer", "-"]);
    open.expect(4, &["standard input is empty"]);
    let question = shell.piped(&["infer", "-", "--json"], "v\n1.5\ninf\n").expect(3, &[]);
    let question: Value = serde_json::from_str(&question.out).unwrap();
    assert_eq!(question["questions"].as_array().unwrap().len(), 1, "{question}");
    shell
        .run(&["infer", "nowhere.csv"])
        .expect(1, &["`nowhere.csv` cannot be read"]);
    shell
        .run(&["infer", "stations.csv", "--zone", "Nowhere/Land"])
        .expect(2, &["--zone"]);
    shell
        .run(&["infer", "stations.csv", "--reading", "stations.csv"])
        .expect(4, &["`stations.csv`"]);
    shell.run(&["infer", "."]).expect(1, &["is a folder"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_of_a_file_commands_neither_terminal_nor_shell() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    let evil = "a\u{202e}b,$(id),\u{1b}]0;x\u{7}y,-rf\n1,2,x,4\n5,6,y\u{1b}[2J,8\n";
    shell.file("evil.csv", evil);
    for arguments in [
        &["infer", "evil.csv"][..],
        &["push", "evil.csv", "--create", "--yes", "--dry-run"],
        &["push", "evil.csv", "--create", "--yes"],
    ] {
        let said = shell.run(arguments).expect(0, &["\\u{1b}"]);
        let obeyed = |text: &str| text.contains(['\u{1b}', '\u{202e}', '\u{7}']);
        assert!(!obeyed(&said.out) && !obeyed(&said.err), "{:?}", said.all());
        assert!(
            !said.all().contains("'-rf'") && !said.all().contains("'$(id)'"),
            "{}",
            said.all()
        );
    }
    let json = shell.run(&["infer", "evil.csv", "--json"]).expect(0, &[]);
    assert!(!json.out.contains('\u{1b}'));
    // A reader that has enough closes the pipe, which is no failure.
    shell.file(
        "wide.csv",
        format!(
            "{}\n",
            (0..5_000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",")
        ),
    );
    let mut closed = Command::new("bash");
    shell.dress(&mut closed);
    let line = format!(
        "set -o pipefail; {} infer wide.csv --json | head -c 10 >/dev/null",
        binary().display()
    );
    let said = Said::of(&closed.args(["-c", &line]).output().unwrap());
    assert!(!said.err.contains("panicked"), "{}", said.all());
}
