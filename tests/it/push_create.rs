//! A file becomes a dataset by one command: the conversations that people have with `infer`, `create` and `push --create`.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tests::World;

use crate::binary;

/// A person at a command line, in a folder of their own.
struct Shell<'a> {
    world: &'a World,
    key: String,
    folder: PathBuf,
}

/// What a command said.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Everything that was said.
    fn all(&self) -> String {
        format!("{}{}(exit {:?})", self.out, self.err, self.code)
    }

    /// Asserts the exit code, and that these words were said.
    fn expect(self, code: i32, words: &[&str]) -> Self {
        let all = self.all();
        assert_eq!(self.code, Some(code), "{all}");
        for word in words {
            assert!(all.contains(word), "`{word}` is missing in: {all}");
        }
        self
    }
}

impl<'a> Shell<'a> {
    /// A shell with the key of the first agent.
    fn new(world: &'a World) -> Self {
        Self::with_key(world, &world.agent.key)
    }

    fn with_key(world: &'a World, key: &str) -> Self {
        let folder = world.folder().join(world.name("shell"));
        fs::create_dir(&folder).unwrap();
        Self {
            world,
            key: key.to_owned(),
            folder,
        }
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.folder.join(name);
        fs::write(&file, text).unwrap();
        file
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        self.dress(&mut command);
        command.args(arguments);
        command
    }

    fn dress(&self, command: &mut Command) {
        command
            .current_dir(&self.folder)
            .env("SLUICE_SERVER", self.world.server.base())
            .env("SLUICE_KEY", &self.key)
            .env("XDG_STATE_HOME", self.folder.join("state"))
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&self.command(arguments).output().unwrap())
    }

    /// Runs it with this standard input.
    fn piped(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Said {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A command that ends early closes the pipe.
        child.stdin.take().unwrap().write_all(input.as_ref()).ok();
        Said::of(&child.wait_with_output().unwrap())
    }

    /// Runs it at a terminal where a person types this.
    fn typed(&self, arguments: &str, keys: &str) -> Said {
        let mut command = Command::new("script");
        self.dress(&mut command);
        let line = format!("{} {arguments}", binary().display());
        command
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "dumb")
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
        Said::of(&child.wait_with_output().unwrap())
    }

    /// The files below the state folder.
    fn left(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.folder.join("state/sluice/push"));
        folder
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

async fn records(world: &World, slug: &str) -> Vec<Value> {
    let page = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?limit=100"))
        .await
        .expect(200);
    let mut records = page.body["items"].as_array().unwrap().clone();
    records.sort_by_key(Value::to_string);
    records
}

async fn is_there(world: &World, slug: &str) -> bool {
    world.agent.http.get(&format!("/projects/{slug}")).await.status == 200
}

const STATIONS: &str = "Station ID;Opened;Elevation (m)\n0017;01.05.1864;9,5\n0018;22.06.1871;120\n0019;;n/a\n";

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
    let more = STATIONS
        .replace("(m)", "(m);Operator")
        .replace("\n00", ";x\n01")
        .replace("n/a", "n/a;x");
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

const VISITS: [&str; 5] = [
    r#"{"note": "a", "at": "2024-02-28T10:00:00Z"}"#,
    r#"{"note": "call +1 212 555 0142", "at": "2024-02-28T11:00:00Z"}"#,
    r#"{"note": "b", "at": "2024-02-30T10:00:00Z"}"#,
    r#"{"note": "c", "at": "2024-02-28T12:00:00Z"}"#,
    r#"{"note": "d", "at": "2024-02-28T13:00:00Z"}"#,
];

async fn visits(world: &World) -> Value {
    let fields = json!([{"name": "note", "type": "string"}, {"name": "at", "type": "timestamp"}]);
    let body = json!({
        "slug": "visits", "title": "Visits of people", "readme": "Visits that the tests make up, one a line.",
        "schemaDef": {"fields": fields}, "visibility": "private",
    });
    world.agent.http.post("/projects", &body).await.expect(201).body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_rows_are_told_with_their_values_before_anything_is_sent() {
    let world = World::start(binary()).await;
    visits(&world).await;
    let shell = Shell::new(&world);
    shell.file("visits.jsonl", VISITS.join("\n"));
    let push = ["push", "visits.jsonl", "--project", "visits"];
    let said = shell.run(&push).expect(
        4,
        &[
            "Checked: 5 records, 2 refused. Nothing was sent.",
            "line 2, `note`: looks like a phone number (personal-data: ",
            "\"call +1 212 555 0142\"",
            "line 3, `at`: ",
            "\"2024-02-30T10:00:00Z\"",
            "--on-refused drop --refused left-out.jsonl",
        ],
    );
    assert!(said.out.starts_with("Checked: "), "{}", said.all());
    // No upload was begun for it.
    let contributions = world.agent.http.get("/me/contributions").await.expect(200).body;
    assert_eq!(contributions["items"], json!([]));
    let uploads = world.agent.http.get("/projects/visits/uploads").await.expect(200).body;
    assert_eq!(uploads["items"], json!([]));

    let dry = shell
        .run(&[&push[..], &["--dry-run", "--on-refused", "drop"]].concat())
        .expect(0, &["2 refused"]);
    assert!(dry.out.contains("Nothing was sent."), "{}", dry.all());
    let dropped = shell
        .run(&[&push[..], &["--on-refused", "drop", "--refused", "left-out.jsonl"]].concat())
        .expect(0, &[]);
    assert_eq!(
        dropped.out,
        "visits version 1: 3 of 5 records are new; 2 refused and left out, kept in left-out.jsonl.\n"
    );
    let kept = fs::read_to_string(shell.folder.join("left-out.jsonl")).unwrap();
    assert_eq!(kept, format!("{}\n{}\n", VISITS[1], VISITS[2]));
    // More than half refused is likelier a mistake.
    shell.file("bad.jsonl", VISITS[1..4].join("\n"));
    shell
        .run(&["push", "bad.jsonl", "--project", "visits", "--on-refused", "drop"])
        .expect(4, &["More than half are refused"]);
    // Without the check the service says it.
    shell
        .run(&[&push[..], &["--no-check"]].concat())
        .expect(4, &["visits: rejected (refused)", "line 2 /note"]);
    let json = shell.run(&[&push[..], &["--json"]].concat()).expect(4, &[]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&json["checked"]["refused"], &json["checked"]["records"]),
        (&json!(2), &json!(5))
    );
    assert_eq!(json["checked"]["refusals"][0]["line"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_without_an_identity_are_kept_by_their_numbers() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    shell.file("loans.csv", format!("amount,term\n{}", "100,12\n200,24\n".repeat(50)));
    shell
        .run(&["push", "loans.csv", "--create", "--yes", "--dry-run"])
        .expect(0, &["Checked: 100 pass, 98 repeat earlier records. Nothing was sent."]);
    assert!(!is_there(&world, "loans").await);
    let create = ["push", "loans.csv", "--create", "--number-rows", "row", "--yes"];
    let said = shell.run(&create).expect(0, &[]);
    assert_eq!(said.out, "loans version 1: 100 of 100 records are new.\n");
    let said = shell.run(&create).expect(0, &[]);
    assert_eq!(said.out, "Nothing new: all 100 records are in `loans` already.\n");
    let append = ["push", "loans.csv", "--project", "loans", "--number-rows"];
    shell
        .run(&[&append[..], &["row"]].concat())
        .expect(3, &["the dataset has 100 records: --number-rows row=101"]);
    let said = shell.run(&[&append[..], &["row=101"]].concat()).expect(0, &[]);
    assert_eq!(said.out, "loans version 2: 100 of 100 records are new.\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_of_projects_it_is_said_before_the_file_is_read() {
    let world = World::start(binary()).await;
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
        [json!({"station_id": "0020", "opened": "1901-04-03", "elevation_m": 7.0})]
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_edited_is_sent_anew_and_its_earlier_upload_is_cancelled() {
    let world = World::start(binary()).await;
    let shell = Shell::new(&world);
    let rows = |extra: &str| {
        let rows: Vec<_> = (0..200_000).map(|n| format!("{n},{extra}{}\n", n * 7)).collect();
        format!("id,value\n{}", rows.concat())
    };
    shell.file("loans.csv", rows(""));
    let push = ["push", "loans.csv", "--create", "--yes", "--part-size", "16KiB"];
    let open = || async {
        let uploads = world.agent.http.get("/projects/loans/uploads").await;
        uploads.body["items"].as_array().map_or(0, Vec::len)
    };
    for turn in 0..3 {
        let mut child = shell.command(&push).spawn().unwrap();
        let begun = std::time::Instant::now();
        // Killed while it sends: the state file has sent parts.
        loop {
            let sent = shell.left().iter().any(|path| {
                path.extension().is_some_and(|end| end == "json")
                    && fs::read_to_string(path).is_ok_and(|text| text.contains("\"tags\":{\""))
            });
            if sent || child.try_wait().unwrap().is_some() {
                break;
            }
            assert!(begun.elapsed() < tests::server::DEADLINE, "nothing is sent");
            tokio::time::sleep(tests::server::POLL).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if turn == 0 {
            shell.file("loans.csv", rows("1"));
        }
        assert!(open().await <= 1);
    }
    let said = shell.run(&push).expect(0, &[]);
    assert_eq!(
        said.out,
        "loans version 1: 200,000 of 200,000 records are new.\n",
        "{}",
        said.all()
    );
    assert_eq!((open().await, shell.left()), (0, Vec::new()));
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

const PANDAS: &[u8] = include_bytes!("../../catalog/tabular/tests/files/pandas.parquet");
const WORKBOOK: &[u8] = include_bytes!("../../catalog/tabular/tests/files/xlsxwriter.xlsx");

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
