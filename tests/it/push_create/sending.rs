//! Records on their way: those that are refused, those that repeat others, and those of a file that was edited.

use std::fs;

use serde_json::{Value, json};
use tests::World;

use super::{Shell, is_there};
use crate::binary;

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
async fn refused_rows_are_kept_as_the_file_has_them_and_can_be_pushed_again() {
    let world = World::start(binary()).await;
    visits(&world).await;
    let shell = Shell::new(&world);
    let kept = shell.folder.join("left-out.csv");
    let with = ["--on-refused", "drop", "--refused", "left-out.csv"];
    // In Latin-1, with a record that is too long to be kept, and one that is mended in the file of the refused ones.
    let long = "x".repeat(5 << 20);
    let rows =
        format!("note;at\nZo\u{e9};yesterday\na;2024-02-28T10:00:00Z\n{long};2024-02-28\nb;2024-02-28T11:00:00Z\n");
    let latin = |text: &str| -> Vec<u8> { text.chars().map(|character| character as u8).collect() };
    shell.file("latin.csv", latin(&rows));
    let latin_1 = ["--project", "visits", "--encoding", "windows-1252"];
    let push = [&["push", "latin.csv"][..], &latin_1, &with].concat();
    shell.run(&push).expect(
        0,
        &[
            "2 of 4 records are new; 2 refused and left out, 1 of them kept in left-out.csv.",
            "all of them but 1 of more than 4 MiB are in 'left-out.csv'",
        ],
    );
    assert_eq!(fs::read(&kept).unwrap(), latin("note;at\nZo\u{e9};yesterday\n"));
    shell.file("left-out.csv", latin("note;at\nZo\u{e9};2024-02-28T12:00:00Z\n"));
    // The file that is pushed is none to write to.
    let same = [&["push", "left-out.csv"][..], &latin_1, &with].concat();
    shell.run(&same).expect(2, &["name another"]);
    shell
        .run(&[&["push", "left-out.csv"][..], &latin_1].concat())
        .expect(0, &["1 of 1 records is new"]);
    // In UTF-16 with its mark.
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let rows = "\u{feff}note;at\n온도;never\nc;2024-02-28T13:00:00Z\nd;2024-02-28T14:00:00Z\n";
    shell.file("wide.csv", wide(rows));
    shell
        .run(&[&["push", "wide.csv", "--project", "visits"][..], &with].concat())
        .expect(0, &["2 of 3 records are new"]);
    assert_eq!(fs::read(&kept).unwrap(), wide("\u{feff}note;at\n온도;never\n"));
    let said = shell.typed(
        "query visits \"SELECT chr(27) || note AS shown FROM records WHERE note = 'c'\" --format csv",
        "",
    );
    assert!(
        said.out.contains("\\u{1b}c") && !said.out.contains('\u{1b}'),
        "{:?}",
        said.out
    );
    // Nothing is refused any more, so nothing is kept, and the earlier one is not taken for that of this push.
    shell.file("good.csv", "note;at\ne;2024-02-28T15:00:00Z\n");
    shell
        .run(&[&["push", "good.csv", "--project", "visits"][..], &with].concat())
        .expect(0, &["1 of 1 records is new"]);
    assert!(!kept.exists());
    let page = world
        .agent
        .http
        .get("/projects/visits/data?limit=100")
        .await
        .expect(200)
        .body;
    let mut notes: Vec<_> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["note"].clone())
        .collect();
    notes.sort_by_key(Value::to_string);
    assert_eq!(notes, ["Zo\u{e9}", "a", "b", "c", "d", "e"].map(Value::from).to_vec());
}
