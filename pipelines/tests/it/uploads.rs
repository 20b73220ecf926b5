//! Uploads: staged off the line of the batches, judged as batches are, merged in one step.

use std::io::Write as _;
use std::sync::atomic::Ordering;

use flate2::write::GzEncoder;
use operators::{GateName, RowVerdict, Verdict};
use pipelines::message::{Outcome, Resolution, Submission};
use serde_json::{Value, json};
use types::{Contract, DatasetId, Version};
use uploads::{Compression, UploadStore as _};

use crate::world::{World, texts};

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [
        {"name": "name", "type": "string", "required": true},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"}
    ], "allowExtra": true}))
    .unwrap()
}

fn lines(records: &[Value]) -> Vec<u8> {
    records
        .iter()
        .flat_map(|record| format!("{record}\n").into_bytes())
        .collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Records of many shapes; every seventh is one of before in another spelling.
fn various(count: usize) -> Vec<Value> {
    let record = |row: usize| {
        let number = if row % 7 == 6 { row / 2 } else { row };
        let mut record = json!({"name": format!("n{number}\u{e9}"), "count": number, "ratio": 1.0});
        if number % 3 == 0 {
            record["at"] = json!(format!("2026-11-21T07:00:{:02}+01:00", number % 60));
            record["more"] = json!({"b": [number, null], "a": "x\ny"});
        }
        if number % 5 == 0 {
            record["extra"] = json!(number);
        }
        if number != row {
            record["ratio"] = json!(1);
            record["gone"] = Value::Null;
        }
        record
    };
    (0..count).map(record).collect()
}

async fn outcome_of(world: &mut World, submission: &Submission) -> Outcome {
    world.append(submission.record().unwrap()).await;
    world.outcome(submission.contribution).await
}

/// What was said of the rows, without words.
fn said(verdicts: &[RowVerdict]) -> Vec<(u32, &'static str, String, String)> {
    let one = |said: &RowVerdict| match &said.verdict {
        Verdict::Drop { reason } => (said.row, "drop", reason.code.clone(), reason.path.clone()),
        Verdict::Refuse { reasons } => (said.row, "refuse", reasons[0].code.clone(), reasons[0].path.clone()),
        other => panic!("{other:?}"),
    };
    verdicts.iter().map(one).collect()
}

/// The same records as a batch and as an upload, each to a dataset of its own.
async fn both(world: &mut World, before: &[Value], records: &[Value]) -> (Outcome, Outcome, [DatasetId; 2]) {
    let datasets = [world.dataset(), world.dataset()];
    for dataset in datasets {
        let first = Submission {
            contract: contract(),
            ..world.submission(dataset, before.to_vec())
        };
        assert!(matches!(
            outcome_of(world, &first).await.resolution,
            Resolution::Merged { .. }
        ));
    }
    let batch = Submission {
        contract: contract(),
        ..world.submission(datasets[0], records.to_vec())
    };
    let upload = Submission {
        contract: contract(),
        ..world
            .upload(datasets[1], &lines(records), 1_000, Compression::None)
            .await
    };
    let batch = outcome_of(world, &batch).await;
    let upload = outcome_of(world, &upload).await;
    (batch, upload, datasets)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_is_judged_and_merged_as_a_batch_of_its_records() {
    let mut world = World::new().await;
    let records = various(700);
    let (batch, upload, datasets) = both(&mut world, &records[100..150], &records).await;
    assert!(
        matches!(batch.resolution, Resolution::Merged { .. }),
        "{:?}",
        batch.resolution
    );
    // Version, accepted, record count and root.
    assert_eq!(batch.resolution, upload.resolution);
    assert_eq!(said(&batch.verdicts), said(&upload.verdicts));
    assert_eq!((batch.rows, &batch.tallies[..]), (upload.rows, &upload.tallies[1..]));
    assert_eq!(upload.tallies[0].gate, GateName::DECODE);
    let mut keys = Vec::new();
    for dataset in datasets {
        let snapshot = world.catalog("reader").snapshot(dataset, None).await.unwrap().unwrap();
        let rows = snapshot.page_of(catalog::Columns::All, 0, 10_000).await.unwrap();
        let of = |batch: &arrow::array::RecordBatch| format!("{:?}", batch.column_by_name("_sluice_key").unwrap());
        keys.push(rows.iter().map(of).collect::<String>());
    }
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_is_refused_as_a_batch_of_its_records() {
    let mut world = World::new().await;
    for (row, wrong) in [
        (3, json!({"count": 1})),
        (699, json!({"name": 5})),
        (350, json!({"name": "kim@example.de"})),
    ] {
        let mut records = various(700);
        records[row] = wrong.clone();
        records[row / 2] = wrong;
        let (batch, upload, datasets) = both(&mut world, &records[100..103], &records).await;
        let codes = [&batch, &upload].map(|outcome| match &outcome.resolution {
            Resolution::Rejected { code, message } => {
                assert!(code != "refused" || message.contains("refused"), "{message}");
                code.clone()
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(codes[0], codes[1]);
        let refused = |outcome: &Outcome| {
            let mut said = said(&outcome.verdicts);
            said.retain(|said| said.1 == "refuse");
            said
        };
        assert_eq!(refused(&batch), refused(&upload));
        assert_eq!(&batch.tallies[..], &upload.tallies[1..]);
        assert_eq!(world.latest(datasets[1]).await.0, Version(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_across_units_are_found_in_a_refused_upload_too() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    // Three units: a record of the first comes again in the last, beside one that is refused both times.
    let filler = |range: std::ops::Range<u32>| range.map(|n| json!({"name": format!("{n:0>900}")})).collect::<Vec<_>>();
    let odd = [json!({"name": "twice"}), json!({"name": "kim@example.de"})];
    let records = [&odd[..], &filler(0..2_500), &odd[..]].concat();
    let upload = Submission {
        contract: contract(),
        ..world
            .upload(dataset, &lines(&records), 1 << 20, Compression::None)
            .await
    };
    let outcome = outcome_of(&mut world, &upload).await;
    assert_eq!(
        said(&outcome.verdicts),
        [(1, "refuse", "email".to_owned(), "/name".to_owned())]
    );
    let tally = |gate: &str| {
        let tally = outcome
            .tallies
            .iter()
            .find(|tally| tally.gate.as_str() == gate)
            .unwrap();
        (tally.rows, tally.passed, tally.dropped, tally.refused)
    };
    assert_eq!(tally("dedup"), (2_504, 2_502, 2, 0));
    assert_eq!(tally("personal-data"), (2_502, 2_501, 0, 1));
    assert_eq!(tally("screen"), (2_501, 2_501, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_goes_on_while_an_upload_is_staged() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let records = [texts(["slow"]), texts(["a", "b", "c"])].concat();
    let upload = world.upload(dataset, &lines(&records), 10, Compression::None).await;
    world.append(upload.record().unwrap()).await;
    // Delivered again meanwhile, it is not staged twice.
    world.append(upload.record().unwrap()).await;
    for (version, text) in [(1, "x"), (2, "b"), (3, "y")] {
        let id = world.submit(dataset, texts([text])).await;
        assert_eq!(world.merged(id).await, (version, 1));
    }
    assert!(!world.seen.contains_key(&upload.contribution));
    assert!(world.stagings.of(upload.contribution).is_some());
    world.screener.slow.add_permits(1);
    // One of its records came with another contribution meanwhile.
    let outcome = world.outcome(upload.contribution).await;
    assert!(
        matches!(
            outcome.resolution,
            Resolution::Merged {
                version: Version(4),
                accepted: 3,
                record_count: 6,
                ..
            }
        ),
        "{outcome:?}"
    );
    let dedup = outcome
        .tallies
        .iter()
        .find(|tally| tally.gate == GateName::DEDUP)
        .unwrap();
    assert_eq!((dedup.rows, dedup.passed, dedup.dropped), (4, 3, 1));
    assert_eq!(world.stagings.of(upload.contribution), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_waits_for_its_table_keeps_no_upload_of_others_waiting() {
    let mut world = World::new().await;
    let (waits, other) = (world.dataset(), world.dataset());
    let first = world.submit(waits, texts(["first"])).await;
    assert_eq!(world.merged(first).await, (1, 1));
    // It has the turn of all uploads.
    let large = world
        .upload(waits, &lines(&texts(["slow"])), 10, Compression::None)
        .await;
    world.append(large.record().unwrap()).await;
    while *world.screener.calls.lock().unwrap() < 2 {
        tokio::task::yield_now().await;
    }
    // The table takes parts and no commits. A link comes back in one step: a log that is missing for a moment would be
    // a lost history.
    let table = world.dir.path().join(format!("tables/{waits}"));
    let [log, aside, blocked, back] = ["_delta_log", "aside", "blocked", "back"].map(|name| table.join(name));
    std::fs::rename(&log, &aside).unwrap();
    std::fs::write(&blocked, "").unwrap();
    std::os::unix::fs::symlink(&blocked, &log).unwrap();
    let files = || table.read_dir().unwrap().count();
    let before = files();
    let late = world.submit(waits, texts(["late"])).await;
    while files() == before {
        tokio::task::yield_now().await;
    }
    world.screener.slow.add_permits(1);
    let quick = world
        .upload(other, &lines(&texts(["quick"])), 10, Compression::None)
        .await;
    world.append(quick.record().unwrap()).await;
    assert_eq!(world.merged(quick.contribution).await, (1, 1));

    std::os::unix::fs::symlink(&aside, &back).unwrap();
    std::fs::rename(&back, &log).unwrap();
    assert_eq!(world.merged(late).await, (2, 1));
    assert_eq!(world.merged(large.contribution).await, (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_stages_again_and_merges_once() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let upload = world
        .upload(dataset, &lines(&texts(["slow", "a"])), 10, Compression::None)
        .await;
    world.append(upload.record().unwrap()).await;
    while world.stagings.of(upload.contribution).is_none() {
        tokio::task::yield_now().await;
    }
    world.stop().await;
    world.screener.slow.add_permits(9);
    world.start();
    assert_eq!(world.merged(upload.contribution).await, (1, 2));
    // The outcome was lost: it is adopted, the same.
    world.lose_the_log().await;
    world.append(upload.record().unwrap()).await;
    assert_eq!(world.merged(upload.contribution).await, (1, 2));
    assert_eq!(world.latest(dataset).await, (Version(1), 2));
    let staged = world.dir.path().join("index/staged");
    assert_eq!(staged.read_dir().map_or(0, Iterator::count), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_upload_waits_and_is_judged_when_it_comes_again() {
    let mut world = World::new().await;
    let upload = world
        .upload(world.dataset(), &lines(&texts(["a", "hold"])), 10, Compression::None)
        .await;
    let waiting = outcome_of(&mut world, &upload).await;
    assert!(
        matches!(waiting.resolution, Resolution::Waiting { ref reason, resumes_after: Some(_) } if reason == "budget"),
        "{waiting:?}"
    );
    *world.screener.holding.lock().unwrap() = false;
    world.append(upload.record().unwrap()).await;
    assert_eq!(world.merged(upload.contribution).await, (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_rejected_with_its_line_and_leaves_nothing() {
    let mut world = World::new().await;
    let good = lines(&texts(["a", "b"]));
    let with = |bytes: &[u8]| [&good[..], bytes].concat();
    let mut long = with(b"\n{\"text\":\"");
    long.resize(5 << 20, b'x');
    long.extend_from_slice(b"\"}\n{\"text\":\"c\"}\n");
    let cases: Vec<(Vec<u8>, Compression, &str, &str)> = vec![
        (with(b"{\"text\":"), Compression::None, "refused", "line 3"),
        (
            with(b"\r\n\r\n{\"text\":\"a\",\"text\":\"b\"}"),
            Compression::None,
            "refused",
            "line 5 at `/text`",
        ),
        (with(b"{\"text\":\"\xff\"}\n"), Compression::None, "refused", "line 3"),
        (
            with(b"{\"text\":\"c\"} {\"text\":\"d\"}\n"),
            Compression::None,
            "refused",
            "line 3",
        ),
        (with(b"[]"), Compression::None, "refused", "line 3"),
        (with(b"{\"text\":7}"), Compression::None, "refused", "line 3 at `/text`"),
        (long, Compression::None, "refused", "line 4: expected a line of at most"),
        (b" \n\r\n\n".to_vec(), Compression::None, "empty", "no record"),
        (gzip(b""), Compression::Gzip, "empty", "no record"),
        (gzip(&good), Compression::None, "gzip_unexpected", "compressed twice"),
        (
            gzip(&gzip(&good)),
            Compression::Gzip,
            "gzip_unexpected",
            "compressed twice",
        ),
        (gzip(&good)[..30].to_vec(), Compression::Gzip, "gzip_damaged", "cut off"),
        (good.clone(), Compression::Gzip, "gzip_damaged", "damaged"),
        (gzip(&vec![b'\n'; 100 << 20]), Compression::Gzip, "gzip_bomb", "20 GiB"),
    ];
    for (bytes, compression, expected, words) in cases {
        let dataset = world.dataset();
        let upload = world.upload(dataset, &bytes, 1 << 20, compression).await;
        let outcome = outcome_of(&mut world, &upload).await;
        match &outcome.resolution {
            Resolution::Rejected { code, message } => {
                assert_eq!(code, expected, "{message}");
                assert!(message.contains(words), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.latest(dataset).await, (Version(0), 0));
        world.objects.delete(upload.contribution).await.unwrap();
    }
    let staged = world.dir.path().join("index/staged");
    assert_eq!(staged.read_dir().map_or(0, Iterator::count), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_of_too_many_records_is_rejected_also_where_the_rest_of_it_is_cut_already() {
    let mut world = World::new().await;
    world.stop().await;
    world.most_rows = Some(10);
    world.start();
    let long = "x".repeat(200_000);
    // Of several units, the first of which has as many as there may be or fewer.
    for (records, expected) in [(10, true), (11, false), (15, false)] {
        let records: Vec<Value> = (0..records)
            .map(|number| json!({"text": format!("{records} {number} {long}")}))
            .collect();
        let dataset = world.dataset();
        let upload = world
            .upload(dataset, &lines(&records), 1 << 20, Compression::None)
            .await;
        let outcome = outcome_of(&mut world, &upload).await;
        match &outcome.resolution {
            Resolution::Merged { .. } => assert!(expected, "{} records", records.len()),
            Resolution::Rejected { code, message } => {
                assert!(
                    !expected && code == "too_many_records",
                    "{} records: {code}",
                    records.len()
                );
                let expected = "the upload has more than 10 records, the most of one: send them in several uploads";
                assert_eq!(message, expected);
                assert_eq!(world.latest(dataset).await, (Version(0), 0));
            }
            other @ Resolution::Waiting { .. } => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_line_ends_and_blank_lines_are_no_records() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let bytes = "\u{feff}{\"text\":\"a\"}\r\n\r\n  \n{\"text\":\"b\"}\n{\"text\":\"a\"}";
    let members = [gzip(&bytes.as_bytes()[..20]), gzip(&bytes.as_bytes()[20..])].concat();
    let upload = world.upload(dataset, &members, 7, Compression::Gzip).await;
    let outcome = outcome_of(&mut world, &upload).await;
    assert!(
        matches!(outcome.resolution, Resolution::Merged { accepted: 2, .. }),
        "{outcome:?}"
    );
    // Rows are named by their lines, from 0.
    assert_eq!((outcome.rows, said(&outcome.verdicts)[0].0), (3, 4));
    let again = world.upload(dataset, bytes.as_bytes(), 100, Compression::None).await;
    let outcome = outcome_of(&mut world, &again).await;
    match outcome.resolution {
        Resolution::Rejected { code, message } => {
            assert_eq!(
                (code.as_str(), message.as_str()),
                ("duplicates", "all 3 records are duplicates")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_whose_bytes_are_gone_goes_to_the_dead_letters() {
    let mut world = World::new().await;
    let upload = world
        .upload(world.dataset(), &lines(&texts(["a"])), 10, Compression::None)
        .await;
    world.objects.delete(upload.contribution).await.unwrap();
    world.append(upload.record().unwrap()).await;
    assert_eq!(world.rejected(upload.contribution).await, "unprocessable");
    let letters = world.letters(1).await;
    assert!(letters[0].reason.contains("part 1 is gone"), "{}", letters[0].reason);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_panics_makes_the_upload_a_dead_letter() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let upload = world
        .upload(dataset, &lines(&texts(["a", "panic"])), 10, Compression::None)
        .await;
    world.append(upload.record().unwrap()).await;
    assert_eq!(world.rejected(upload.contribution).await, "unprocessable");
    let id = world.submit(dataset, texts(["next"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
}

/// All parts of an upload are one contribution to the screener, which bounds what they ask together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_of_many_parts_is_one_contribution_to_the_screener() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    // More than three parts of a megabyte.
    let record = |at: usize| json!({"name": format!("{at} {}", "x".repeat(990)), "count": at});
    let records: Vec<Value> = (0..3_500).map(record).collect();
    let upload = Submission {
        contract: contract(),
        ..world
            .upload(dataset, &lines(&records), 1 << 20, Compression::None)
            .await
    };
    let outcome = outcome_of(&mut world, &upload).await;
    assert!(
        matches!(outcome.resolution, Resolution::Merged { .. }),
        "{:?}",
        outcome.resolution
    );
    assert!(*world.screener.calls.lock().unwrap() > 2);
    assert_eq!(world.screener.contributions.load(Ordering::SeqCst), 1);
}
