//! Uploads with a reading: files of other forms, judged as their records would be as JSON Lines.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::write::GzEncoder;
use operators::Verdict;
use pipelines::message::{Outcome, Resolution, Submission};
use serde_json::{Value, json};
use types::{Contract, DatasetId, Version};
use uploads::Compression;

use crate::world::World;

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [
        {"name": "name", "type": "string", "required": true},
        {"name": "count", "type": "integer"},
        {"name": "at", "type": "timestamp"},
    ]}))
    .unwrap()
}

/// The reading of a CSV with the columns of the contract.
fn csv() -> Value {
    json!({"format": "csv", "columns": [
        {"from": "name", "to": "name"}, {"from": "count", "to": "count"}, {"from": "at", "to": "at"},
    ]})
}

async fn upload(world: &World, dataset: DatasetId, bytes: &[u8], reading: &Value) -> Submission {
    with_reading(world.upload(dataset, bytes, 1 << 20, Compression::None).await, reading)
}

fn with_reading(upload: Submission, reading: &Value) -> Submission {
    Submission {
        format: 2,
        contract: contract(),
        reading: Some(serde_json::from_value(reading.clone()).unwrap()),
        ..upload
    }
}

async fn outcome_of(world: &mut World, submission: &Submission) -> Outcome {
    world.append(submission.record().unwrap()).await;
    world.outcome(submission.contribution).await
}

/// Row, line, code and path of what was said, for every reason.
fn said(outcome: &Outcome) -> Vec<(u32, Option<u64>, &str, &str)> {
    let all = outcome.verdicts.iter().flat_map(|said| {
        let reasons = match &said.verdict {
            Verdict::Drop { reason } | Verdict::Hold { reason, .. } => std::slice::from_ref(reason),
            Verdict::Refuse { reasons } => reasons,
            Verdict::Pass => &[],
        };
        reasons
            .iter()
            .map(|reason| (said.row, said.line, reason.code.as_str(), reason.path.as_str()))
    });
    all.collect()
}

fn rejection(outcome: &Outcome) -> (&str, &str) {
    match &outcome.resolution {
        Resolution::Rejected { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_any_form_gives_the_version_that_its_records_give_as_lines() {
    let mut world = World::new().await;
    let lines = "{\"name\":\"Zoë, \\\"x\\\"\",\"count\":1,\"at\":\"2024-05-01T06:00:00Z\"}\n{\"name\":\"b\"}\n";
    let plain = Submission {
        contract: contract(),
        ..world
            .upload(world.dataset(), lines.as_bytes(), 1 << 20, Compression::None)
            .await
    };
    let expected = outcome_of(&mut world, &plain).await.resolution;
    assert!(
        matches!(expected, Resolution::Merged { accepted: 2, .. }),
        "{expected:?}"
    );
    let text = "name;count;at\r\n\"Zoë, \"\"x\"\"\"; 1 ;01.05.2024 08:00\r\n;;\r\nb;n/a;\r\n";
    let mut zoned = csv();
    zoned["delimiter"] = json!(";");
    zoned["columns"][1]["nulls"] = json!(["n/a"]);
    zoned["columns"][2]["parse"] = json!("%d.%m.%Y %H:%M");
    zoned["columns"][2]["zone"] = json!("Europe/Oslo");
    let mut wide = zoned.clone();
    wide["encoding"] = json!("utf-16le");
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut packed = zoned.clone();
    packed["compression"] = json!("zstd");
    let document = r#"{"meta":[],"rows":[
        {"n": "Zoë, \"x\"", "count": 1, "at": "2024-05-01T08:00:00+02:00", "gone": {}},
        {"n": "b", "at": null}
    ]}"#;
    let members = json!({"format": "json", "records": "/rows", "columns": [
        {"from": "n", "to": "name"}, {"from": "gone", "to": null},
    ]});
    let latin: Vec<u8> = lines
        .chars()
        .map(|character| u8::try_from(u32::from(character)).unwrap())
        .collect();
    for (bytes, reading) in [
        (text.as_bytes(), &zoned),
        (&utf_16, &wide),
        (&zstd_of(text.as_bytes()), &packed),
        (document.as_bytes(), &members),
        (&latin, &json!({"encoding": "windows-1252"})),
    ] {
        let submission = upload(&world, world.dataset(), bytes, reading).await;
        // The same root.
        assert_eq!(
            outcome_of(&mut world, &submission).await.resolution,
            expected,
            "{reading}"
        );
        if reading.get("compression").is_none() {
            let packed = world
                .upload(world.dataset(), &gzip_of(bytes), 1 << 20, Compression::Gzip)
                .await;
            let packed = with_reading(packed, reading);
            assert_eq!(
                outcome_of(&mut world, &packed).await.resolution,
                expected,
                "{reading} by gzip"
            );
        }
    }
}

fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One frame (RFC 8878) with the bytes in one raw block.
fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len()).unwrap();
    // A single segment with a size of four bytes, and the last block, which is raw.
    let head = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..],
        &size.to_le_bytes(),
        &(size << 3 | 1).to_le_bytes()[..3],
    ]
    .concat();
    [head, bytes.to_vec()].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_told_with_its_line_and_every_cell() {
    let mut world = World::new().await;
    let text = "name,count,at\nok,1,2024-05-01T08:00:00Z\n\"a\nb\",x,2024-02-30T00:00:00Z\nc,1\n\"d\"e,1,\nok,1,2024-05-01T08:00:00Z\n,5,\n";
    let submission = upload(&world, world.dataset(), text.as_bytes(), &csv()).await;
    let outcome = outcome_of(&mut world, &submission).await;
    let (code, message) = rejection(&outcome);
    assert_eq!(code, "refused");
    let begin = "4 of 6 records are refused; the first is on line 3 at `/count`: expected integer, found a value that is no integer";
    assert!(message.starts_with(begin), "{message}");
    assert_eq!(
        said(&outcome),
        [
            (1, Some(3), "value", "/count"),
            (1, Some(3), "value", "/at"),
            (2, Some(5), "cells", ""),
            (3, Some(6), "after_quote", "/name"),
            (5, Some(8), "missing", "/name"),
        ]
    );
    assert!(!format!("{outcome:?}").contains("2024-02-30"), "{outcome:?}");
    let dropped = Submission {
        on_refused: types::vocabulary::OnRefused::Drop,
        ..upload(&world, world.dataset(), b"name,count,at\nok,1,\nno,x,\n", &csv()).await
    };
    let outcome = outcome_of(&mut world, &dropped).await;
    assert!(
        matches!(outcome.resolution, Resolution::Merged { accepted: 1, .. }),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_of_chunks_far_apart_are_told_with_their_lines() {
    let mut world = World::new().await;
    let rows = 60_000_u64;
    let mut text = String::from("name,count,at\n");
    for row in 0..rows {
        // The last one repeats the first.
        writeln!(text, "n{:0>40},{},", row % (rows - 1), row % (rows - 1)).unwrap();
    }
    let submission = upload(&world, world.dataset(), text.as_bytes(), &csv()).await;
    let outcome = outcome_of(&mut world, &submission).await;
    assert!(
        matches!(outcome.resolution, Resolution::Merged { accepted, .. } if accepted == rows - 1),
        "{:?}",
        outcome.resolution
    );
    let last = u32::try_from(rows - 1).unwrap();
    assert_eq!(said(&outcome), [(last, Some(rows + 1), "duplicate_in_batch", "")]);
    // Records of one line are told apart by their numbers.
    let document = r#"[{"name":"a"},{"name":"a"},{"name":7},{"name":"b"}]"#;
    let submission = upload(&world, world.dataset(), document.as_bytes(), &json!({"format": "json"})).await;
    let outcome = outcome_of(&mut world, &submission).await;
    assert_eq!(said(&outcome), [(2, Some(1), "type", "/name")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_which_nothing_can_be_trusted_is_rejected_with_the_line() {
    let mut world = World::new().await;
    let mut late = csv();
    late["headerLine"] = json!(9);
    let mut packed = csv();
    packed["compression"] = json!("zstd");
    let document = json!({"format": "json", "records": "/rows"});
    for (bytes, reading, code, words) in [
        (
            &b"name,count,at\na,\"6 ft\nb,1,\n"[..],
            csv(),
            "unclosed_quote",
            "line 2: the quote that opens column `count` is never closed",
        ),
        (
            b"name,count\na,1\n",
            csv(),
            "header_differs",
            "line 1: the header is not that of the reading",
        ),
        (b"name,count,at\n", late, "header_differs", "line 9"),
        (
            b"name,count,at\na,1,\nK\xf6ln,2,\n",
            csv(),
            "malformed_text",
            "line 3 is not UTF-8",
        ),
        (b"{\"rows\":[{}", document.clone(), "malformed_json", "line 1: expected"),
        (b"{\"data\":[]}", document, "malformed_json", "no records at `/rows`"),
        (b"name,count,at\n", csv(), "empty", "no record"),
        (
            b"name",
            packed.clone(),
            "zstd_damaged",
            "the zstd stream is cut off or damaged",
        ),
        (&gzip_of(b"name"), csv(), "gzip_unexpected", "compressed twice"),
        (&zstd_of(b"name,count,at\n")[..20], packed, "zstd_damaged", "cut off"),
    ] {
        let dataset = world.dataset();
        let submission = upload(&world, dataset, bytes, &reading).await;
        let outcome = outcome_of(&mut world, &submission).await;
        let (found, message) = rejection(&outcome);
        assert_eq!(found, code, "{message}");
        assert!(message.contains(words), "{message}");
        assert_eq!(world.latest(dataset).await, (Version(0), 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_come_to_too_many_times_their_bytes_are_rejected() {
    let mut world = World::new().await;
    let names: Vec<_> = (0..256).map(|place| format!("{place:0>128}")).collect();
    let fields: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "type": "integer"}))
        .collect();
    let columns: Vec<_> = names.iter().map(|name| json!({"from": "x", "to": name})).collect();
    let wide: Contract = serde_json::from_value(json!({"fields": fields})).unwrap();
    let reading = json!({"format": "csv", "headerLine": 0, "columns": columns, "number": null});
    // 66 times its bytes, and 64 MiB of them compress to little.
    let row = format!("{}\n", vec!["7"; 256].join(","));
    let text = row.repeat((72 << 20) / (256 * 134));
    let submission = Submission {
        contract: wide.clone(),
        ..upload(&world, world.dataset(), text.as_bytes(), &reading).await
    };
    let outcome = outcome_of(&mut world, &submission).await;
    // They are duplicates of one record, and as such fine.
    assert!(
        matches!(outcome.resolution, Resolution::Merged { accepted: 1, .. }),
        "{:?}",
        outcome.resolution
    );
    let packed = world
        .upload(world.dataset(), &gzip_of(text.as_bytes()), 1 << 20, Compression::Gzip)
        .await;
    let refused = text.replace('7', "x");
    let refused = world
        .upload(
            world.dataset(),
            &gzip_of(refused.as_bytes()),
            1 << 20,
            Compression::Gzip,
        )
        .await;
    // Records that are refused are as much work as those that pass.
    for packed in [packed, refused] {
        let packed = Submission {
            contract: wide.clone(),
            ..with_reading(packed, &reading)
        };
        let outcome = outcome_of(&mut world, &packed).await;
        let (code, message) = rejection(&outcome);
        assert_eq!(code, "too_much_work", "{message}");
        assert!(
            message.contains("times its bytes, since each repeats the names: send it uncompressed"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn another_release_of_the_zones_is_noted_and_the_workers_decides() {
    let mut world = World::new().await;
    let mut reading = csv();
    reading["tz"] = json!("1999a");
    reading["columns"][2]["parse"] = json!("%Y-%m-%d %H:%M");
    reading["columns"][2]["zone"] = json!("Europe/Oslo");
    let submission = upload(
        &world,
        world.dataset(),
        b"name,count,at\na,1,2024-05-01 08:00\n",
        &reading,
    )
    .await;
    let outcome = outcome_of(&mut world, &submission).await;
    assert!(
        matches!(outcome.resolution, Resolution::Merged { accepted: 1, .. }),
        "{outcome:?}"
    );
    let note = outcome.tallies[0].note.as_deref().unwrap();
    assert!(
        note.contains("release 20") && note.ends_with("made with 1999a"),
        "{note}"
    );
    reading["tz"] = json!(tabular::values::tz_release());
    let submission = upload(
        &world,
        world.dataset(),
        b"name,count,at\na,1,2024-05-01 08:00\n",
        &reading,
    )
    .await;
    assert_eq!(outcome_of(&mut world, &submission).await.tallies[0].note, None);
}
