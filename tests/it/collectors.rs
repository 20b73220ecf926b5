//! Collectors: sources that are followed, processes that are killed, and processes that share the work.
//!
//! Invariant: every source is a server or a file of this machine. A test that runs a command to its end has a second
//! thread, on which the server answers meanwhile.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use outbound::testing::{Reply, Server as StandIn};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tests::{Http, Options, Server, World};
use types::fault::COLLECTOR_POINTS;

use crate::{binary, optional};

/// Answer of the server at each path.
type Bodies = Arc<Mutex<BTreeMap<String, String>>>;

/// A server that stands in for every source, and the folder of their definitions.
struct Sources {
    server: StandIn,
    bodies: Bodies,
    folder: PathBuf,
    files: Vec<String>,
}

impl Sources {
    async fn new(folder: &Path) -> Self {
        let bodies = Bodies::default();
        let shown = Arc::clone(&bodies);
        let server = StandIn::plain("127.0.0.1:0", move |head| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            match shown.lock().get(path) {
                Some(body) => Reply::new("200 OK", body),
                None => Reply::new("404 Not Found", ""),
            }
        })
        .await;
        fs::create_dir_all(folder).unwrap();
        Self {
            server,
            bodies,
            folder: folder.to_owned(),
            files: Vec::new(),
        }
    }

    /// Adds a definition whose address is replaced by one of the server.
    fn add(&mut self, name: &str, definition: &str, body: &str) {
        let url = definition.lines().find(|line| line.starts_with("url = ")).unwrap();
        let own = format!("url = \"http://{}/{name}\"", self.server.address());
        let file = self.folder.join(format!("{name}.toml"));
        fs::write(&file, definition.replace(url, &own)).unwrap();
        self.files.push(file.display().to_string());
        self.answer(name, body);
    }

    fn answer(&self, name: &str, body: &str) {
        self.bodies.lock().insert(format!("/{name}"), body.to_owned());
    }

    fn configure(&self, options: Options) -> Options {
        options
            .with("SLUICE__COLLECTORS__SOURCES", self.files.join(","))
            .with("SLUICE__COLLECTORS__PAUSE", "0ms")
            .with("SLUICE__COLLECTORS__EVERY", "50ms")
            .with("SLUICE__OUTBOUND__ALLOW_PRIVATE", "true")
    }
}

/// The recorded shape of an answer, without and with the row that is new in the second.
fn answers(name: &str) -> [String; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../collectors/sources/answers");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let (before, rest) = text.split_once("@@[").unwrap();
    let (new, after) = rest.split_once("]@@").unwrap();
    [format!("{before}{after}"), format!("{before}{new}{after}")]
}

fn numbers(name: &str) -> String {
    format!(
        r#"
name = "{name}"
dataset = "{name}"
title = "Numbers of a stand-in"
publisher = "Stand-in"
license = "CC0-1.0"
terms = "https://example.org/terms"
description = "Numbers that a server of the test gives."
schedule = "0 */6 * * *"
[fetch]
url = "here"
format = "json"
[[fields]]
name = "number"
from = "/n"
type = "integer"
required = true
"#
    )
}

fn rows(count: usize) -> String {
    let rows: Value = (0..count).map(|n| json!({ "n": n })).collect();
    rows.to_string()
}

fn once(options: &Options, server: &str, name: &str) -> Output {
    options.run(&["collect", "--once", name, "--server", server])
}

#[track_caller]
fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Waits until every collector has an ended run, and returns the list.
async fn all_ran(http: &Http, count: usize) -> Value {
    let ran = http
        .comes_to_show("/collectors", |answer| {
            let items = answer.body["items"].as_array().unwrap();
            items.len() == count && items.iter().all(|item| item["runs"][0]["outcome"].is_string())
        })
        .await;
    ran.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_source_gives_version_1_then_none_and_version_2_for_a_new_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(&folder.path().join("sources")).await;
    for (name, text) in collectors::BUNDLED {
        sources.add(name, text, &answers(name)[0]);
    }
    let world = World::start_with(binary(), |options| sources.configure(options)).await;
    let count = collectors::BUNDLED.len();
    let first = all_ran(&world.http, count).await;
    for item in first["items"].as_array().unwrap() {
        let run = &item["runs"][0];
        assert_eq!(
            (&run["outcome"], &run["version"]),
            (&json!("merged"), &json!(1)),
            "{item}"
        );
        assert_eq!(item["failures"], 0);
        let text = item.to_string();
        assert!(!text.contains("127.0.0.1"), "an address is public: {text}");
    }
    let options = world.server.options();
    for (name, _) in collectors::BUNDLED {
        let again = report(&once(options, world.server.base(), name));
        assert_eq!(
            (&again["outcome"], &again["version"]),
            (&json!("unchanged"), &Value::Null),
            "{name}"
        );
        sources.answer(name, &answers(name)[1]);
        let news = report(&once(options, world.server.base(), name));
        assert_eq!(
            (&news["outcome"], &news["version"], &news["new"]),
            (&json!("merged"), &json!(2), &json!(1)),
            "{name}: {news}"
        );
        let project = world.http.get(&format!("/projects/{name}")).await.expect(200);
        assert_eq!(
            (&project.body["latestVersion"], &project.body["access"]),
            (&json!(2), &json!("public"))
        );
    }
    // The platform's own operator is past the limits of people: three projects, here nine.
    let page = world.http.get("/collectors").await.expect(200);
    assert_eq!(page.body["total"], count);
    options.assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_killed_at_any_step_is_made_up_for_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(&folder.path().join("sources")).await;
    let named = |point: &str| format!("killed-{}", point.replace('.', "-"));
    let world = World::start(binary()).await;
    for point in COLLECTOR_POINTS {
        sources.add(&named(point), &numbers(&named(point)), &rows(3));
    }
    // The service itself collects nothing; each run is a process of its own.
    let options = sources.configure(world.server.options().clone());
    for point in COLLECTOR_POINTS {
        let name = named(point);
        let first = report(&once(&options, world.server.base(), &name));
        assert_eq!(first["version"], 1, "{first}");
        sources.answer(&name, &rows(1_203));
        let killed = once(
            &options.clone().with("SLUICE_FAULT_POINT", point),
            world.server.base(),
            &name,
        );
        assert_eq!(
            killed.status.code(),
            None,
            "{point}: {}",
            String::from_utf8_lossy(&killed.stderr)
        );
        // An hour later the lease is over.
        let later = options.clone().with("SLUICE__CLOCK__OFFSET", "1h");
        let next = report(&once(&later, world.server.base(), &name));
        let has_all = point == "collect.ended";
        let outcome = match point {
            // The rows are in the dataset, and the place in the source or the gates say so.
            "collect.ending" | "collect.ended" => "unchanged",
            _ => "merged",
        };
        assert_eq!(next["outcome"], outcome, "{point}: {next}");
        assert_eq!(next["fetched"], if has_all { 0 } else { 1_203 }, "{point}: {next}");
        let project = world.http.get(&format!("/projects/{name}")).await.expect(200);
        assert_eq!(project.body["recordCount"], 1_203, "{point}");
        let list = world.http.get("/collectors").await.expect(200);
        let items = list.body["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["name"] == name.as_str()).unwrap();
        let reason = item["runs"][1]["reason"]["code"].as_str();
        assert_eq!(reason, (!has_all).then_some("interrupted"), "{point}: {item}");
    }
    world.server.options().assert_consistent();
}

#[tokio::test]
async fn two_processes_that_only_collect_make_one_run_for_each_due_time() {
    const COLLECTORS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(&folder.path().join("sources")).await;
    for number in 0..COLLECTORS {
        let name = format!("shared-{number:03}");
        sources.add(&name, &numbers(&name), &rows(2));
    }
    let world = World::start(binary()).await;
    let options = sources.configure(world.server.options().clone()).role("collector");
    let options = options.with("SLUICE__COLLECTORS__SERVER", world.server.base());
    let both = [Server::start(&options).await, Server::start(&options).await];
    let list = all_ran(&world.http, COLLECTORS).await;
    for process in both {
        assert!(process.http().get("/readyz").await.code() == 200);
        assert_eq!(process.http().get("/projects").await.code(), 404);
        assert!(process.stop().await.success());
    }
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["runs"].as_array().unwrap().len(), 1, "{item}");
        assert_eq!(item["runs"][0]["outcome"], "merged", "{item}");
    }
    let fetches = sources
        .server
        .heads()
        .into_iter()
        .filter(|head| head.starts_with("GET /shared-"));
    assert_eq!(fetches.count(), COLLECTORS);
}

#[tokio::test]
async fn anybody_with_a_key_collects_a_file_into_a_dataset_of_their_own() {
    let world = World::start(binary()).await;
    let folder = world.folder().join("mine");
    fs::create_dir(&folder).unwrap();
    let definition = numbers("my-numbers").replace("url = \"here\"", "file = \"numbers.json\"");
    fs::write(folder.join("mine.toml"), definition).unwrap();
    fs::write(folder.join("numbers.json"), rows(4)).unwrap();
    let file = folder.join("mine.toml");
    let collect = |key: &str| {
        let options = world.server.options().clone().with("SLUICE_KEY", key);
        options.run(&["collect", file.to_str().unwrap(), "--server", world.server.base()])
    };
    let first = report(&collect(&world.agent.key));
    assert_eq!((&first["outcome"], &first["new"]), (&json!("merged"), &json!(4)));
    fs::write(folder.join("numbers.json"), rows(5)).unwrap();
    let second = report(&collect(&world.agent.key));
    assert_eq!(
        (&second["version"], &second["new"], &second["known"]),
        (&json!(2), &json!(1), &json!(4))
    );
    let refused = collect("km_no-such-key");
    assert!(!refused.status.success());
    assert_eq!(report(&refused)["reason"]["code"], "service");
    assert!(!collect("").status.success());
    // The collectors of the platform are listed, and no run of anybody else.
    assert_eq!(world.http.get("/collectors").await.expect(200).body["total"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_of_somebody_else_takes_nothing_from_a_collector() {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(&folder.path().join("sources")).await;
    sources.add("squatted", &numbers("squatted"), &rows(2));
    let world = World::start(binary()).await;
    let options = sources.configure(world.server.options().clone());
    let project = json!({
        "slug": "squatted", "title": "Mine", "readme": "A dataset that somebody made before the collector.",
        "schemaDef": {"fields": [{"name": "number", "type": "integer", "required": true}]},
        "access": "paid",
    });
    world.agent.http.post("/projects", &project).await.expect(201);
    let refused = once(&options, world.server.base(), "squatted");
    assert!(!refused.status.success());
    assert_eq!(report(&refused)["reason"]["code"], "dataset");
    let project = world.http.get("/projects/squatted").await.expect(200);
    assert_eq!(project.body["latestVersion"], 0);
}

#[tokio::test]
async fn a_delta_table_of_python_is_followed_through_three_versions() {
    let Some(python) = std::env::var("SLUICE_TEST_PYTHON").ok() else {
        return optional("SLUICE_TEST_PYTHON names no Python with deltalake");
    };
    let world = World::start(binary()).await;
    let folder = world.folder().join("delta");
    fs::create_dir(&folder).unwrap();
    let definition = numbers("delta-numbers").replace(
        "url = \"here\"\nformat = \"json\"",
        "file = \"table\"\nformat = \"delta\"",
    );
    let file = folder.join("delta.toml");
    fs::write(&file, definition).unwrap();
    let write = |from: u32, to: u32| {
        let mut script = String::from("import sys, pyarrow, deltalake\n");
        writeln!(
            script,
            "table = pyarrow.table({{'n': pyarrow.array(range({from}, {to}), pyarrow.int64())}})"
        )
        .unwrap();
        writeln!(script, "deltalake.write_deltalake(sys.argv[1], table, mode='append')").unwrap();
        let table = folder.join("table");
        let ran = std::process::Command::new(&python)
            .args(["-c", &script])
            .arg(table)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    let options = world.server.options().clone();
    let options = options.with("SLUICE__COLLECTORS__SOURCES", file.display());
    for (from, to, version) in [(0, 10, 1), (10, 13, 2), (13, 14, 3)] {
        write(from, to);
        let ran = report(&once(&options, world.server.base(), "delta-numbers"));
        assert_eq!(
            (&ran["version"], &ran["fetched"]),
            (&json!(version), &json!(to - from)),
            "{ran}"
        );
        let still = report(&once(&options, world.server.base(), "delta-numbers"));
        assert_eq!(
            (&still["outcome"], &still["fetched"]),
            (&json!("unchanged"), &json!(0)),
            "{still}"
        );
    }
    let project = world.http.get("/projects/delta-numbers").await.expect(200);
    assert_eq!(project.body["recordCount"], 14);
}

#[tokio::test]
async fn the_quickstart_leaves_one_collector_running() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data"));
    let ran = options.run(&["quickstart", "--exit", "--records", "5000", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("merged: 30 records fetched, 30 new"), "{said}");
    assert!(said.contains("/console/collectors"), "{said}");
}
