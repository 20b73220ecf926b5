//! Projects that a command makes: how many, by which contract, and of whom.

use serde_json::json;
use tests::{Options, World};

use super::{STATIONS, Shell};
use crate::binary;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_of_projects_it_is_said_before_the_file_is_read() {
    let three = |options: Options| options.with("SLUICE__LIMITS__ACTIVE_PROJECTS_PER_OPERATOR", 3);
    let world = World::start_with(binary(), three).await;
    let shell = Shell::new(&world);
    shell.file("new.csv", "a\n1\n");
    for slug in ["levels", "trips", "items"] {
        let file = format!("{slug}.csv");
        shell.file(&file, "a\n1\n");
        let mut push = vec!["push", file.as_str(), "--create", "--yes"];
        if slug == "levels" {
            push.push("--public");
        }
        shell.run(&push).expect(0, &[]);
    }
    let limit = [
        "3 of 3 projects are active: ",
        "trips (private)",
        "Nothing was read.",
        "sluice archive ",
        "(for good), or sluice delete ",
    ];
    shell.run(&["push", "new.csv", "--create", "--yes"]).expect(5, &limit);
    // Not even that the file does not exist is known.
    shell
        .run(&["push", "nowhere.csv", "--create", "--yes"])
        .expect(5, &limit);
    shell
        .run(&["create", "another", "--like", "new.csv", "--yes"])
        .expect(5, &limit);
    // Looking is always possible, and an own dataset can be gone on with.
    shell
        .run(&["infer", "new.csv"])
        .expect(0, &["3 of 3 projects are active", "integer"]);
    shell
        .run(&["push", "trips.csv", "--create"])
        .expect(0, &["Nothing new"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_is_created_like_a_file_or_by_a_contract() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    shell.file("stations.csv", STATIONS);
    shell
        .run(&["create", "gauges", "--like", "stations.csv"])
        .expect(3, &["Nothing was created", "--yes"]);
    let said = shell
        .run(&[
            "create",
            "gauges",
            "--like",
            "stations.csv",
            "--yes",
            "--title",
            "Gauges of the coast",
        ])
        .expect(0, &[]);
    assert_eq!(said.out, "gauges is created, private.\n");
    let project = world.agent.http.get("/projects/gauges").await.expect(200).body;
    assert_eq!(
        (&project["recordCount"], &project["title"]),
        (&json!(0), &json!("Gauges of the coast"))
    );
    assert_eq!(project["schemaDef"]["fields"][0]["title"], "Station ID");
    shell
        .run(&["push", "stations.csv", "--project", "gauges"])
        .expect(0, &["gauges version 1: 3 of 3 records are new."]);
    let schema = r#"{"fields": [{"name": "a", "type": "integer"}]}"#;
    shell
        .run(&[
            "create",
            "by-contract",
            "--schema",
            schema,
            "--public",
            "--license",
            "CC-BY-4.0",
            "--yes",
        ])
        .expect(0, &["by-contract is created, public."]);
    shell
        .run(&["create", "gauges", "--schema", schema, "--yes"])
        .expect(3, &["`gauges` exists or existed"]);
    shell
        .run(&["create", "wrong", "--schema", r#"{"fields": []}"#, "--yes"])
        .expect(4, &["--schema is no contract"]);
    shell.run(&["create", "wrong", "--yes"]).expect(2, &["--like"]);
    shell
        .run(&["create", "wrong", "--schema", schema, "--delimiter", ";", "--yes"])
        .expect(2, &["flags of reading are for a file"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_project_of_another_is_never_pushed_to_by_its_name() {
    let world = World::start(binary()).await;
    let (_, other) = world.newcomer().await;
    let theirs = Shell::with_key(&world, &other.key);
    let ours = Shell::new(&world);
    for (shell, code) in [(&theirs, 0), (&ours, 3)] {
        shell.file("shared-name.csv", "a\n1\n");
        shell
            .run(&["push", "shared-name.csv", "--create", "--yes"])
            .expect(code, &[]);
    }
    let said = ours
        .run(&["push", "shared-name.csv", "--create", "--yes"])
        .expect(3, &["`shared-name` exist"]);
    assert!(!said.all().contains("Append with"), "{}", said.all());
}
