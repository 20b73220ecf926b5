//! Refused records: left out where the contributor wants that, and named with their words.

use eventlog::Record;
use messages::SUBMISSION_FORMAT;
use operators::{Reason, Verdict};
use pipelines::message::{Outcome, Resolution, Submission};
use serde_json::{Value, json};
use types::vocabulary::OnRefused;
use uploads::Compression;

use crate::world::{World, texts};

/// A submission that leaves refused records out.
fn dropping(submission: Submission) -> Submission {
    Submission {
        format: SUBMISSION_FORMAT,
        on_refused: OnRefused::Drop,
        ..submission
    }
}

fn lines(records: &[Value]) -> Vec<u8> {
    let line = |record: &Value| format!("{record}\n").into_bytes();
    records.iter().flat_map(line).collect()
}

async fn outcome_of(world: &mut World, submission: &Submission) -> Outcome {
    world.append(submission.record().unwrap()).await;
    world.outcome(submission.contribution).await
}

/// The code of a rejection and its sentence.
fn rejection(outcome: &Outcome) -> (&str, &str) {
    match &outcome.resolution {
        Resolution::Rejected { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

/// The rows that were not merged, each with the reason.
fn listed(outcome: &Outcome) -> Vec<(u32, &str)> {
    let listed = outcome.verdicts.iter().map(|said| match &said.verdict {
        Verdict::Drop { reason } => (said.row, reason.code.as_str()),
        Verdict::Refuse { reasons } => (said.row, reasons[0].code.as_str()),
        other => panic!("{other:?}"),
    });
    listed.collect()
}

/// Ten records: the given number is refused, one is a duplicate, the others are new.
fn ten(refused: usize) -> Vec<Value> {
    let wrong = (0..refused).map(|row| match row % 2 {
        0 => json!({"text": 7}),
        _ => json!({"text": format!("kim.larsen{row}@posteo.net")}),
    });
    let good = (refused..10).map(|row| json!({"text": format!("good {}", row.min(8))}));
    wrong.chain(good).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_records_of_a_batch_and_of_an_upload_are_left_out_up_to_half() {
    let mut world = World::new().await;
    for (refused, expected) in [(4, Ok(5)), (5, Ok(4)), (6, Err("refused")), (9, Err("refused"))] {
        let datasets = [world.dataset(), world.dataset()];
        let batch = dropping(world.submission(datasets[0], ten(refused)));
        let upload = world
            .upload(datasets[1], &lines(&ten(refused)), 64, Compression::None)
            .await;
        let upload = dropping(upload);
        let batch = outcome_of(&mut world, &batch).await;
        let upload = outcome_of(&mut world, &upload).await;
        for outcome in [&batch, &upload] {
            match (&outcome.resolution, expected) {
                (Resolution::Merged { accepted, .. }, Ok(new)) => assert_eq!(*accepted, new),
                (Resolution::Rejected { code, message }, Err(expected)) => {
                    assert_eq!(code, expected);
                    let begin = format!("{refused} of 10 records are refused, more than half; a wrong delimiter");
                    assert!(message.starts_with(&begin), "{message}");
                }
                (other, expected) => panic!("{other:?}, not {expected:?}"),
            }
            let refusals = listed(outcome)
                .iter()
                .filter(|(_, code)| *code != "duplicate_in_batch")
                .count();
            assert_eq!(refusals, refused);
            assert!(
                outcome
                    .tallies
                    .iter()
                    .map(|tally| tally.refused as usize)
                    .sum::<usize>()
                    == refused
            );
        }
        assert_eq!(&batch.tallies[..], &upload.tallies[1..]);
        if expected.is_ok() {
            // The same version with the same root.
            assert_eq!(batch.resolution, upload.resolution);
            assert_eq!(listed(&batch), listed(&upload));
            assert_eq!(listed(&batch).last(), Some(&(9, "duplicate_in_batch")));
        }
    }
}

#[tokio::test]
async fn what_is_refused_or_a_duplicate_is_nothing_new() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let known = world.submit(dataset, texts(["a", "b"])).await;
    assert_eq!(world.merged(known).await, (1, 2));
    let records = [texts(["a", "b"]), vec![json!({"text": 1})]].concat();
    let batch = dropping(world.submission(dataset, records.clone()));
    let upload = dropping(world.upload(dataset, &lines(&records), 64, Compression::None).await);
    for submission in [batch, upload] {
        let outcome = outcome_of(&mut world, &submission).await;
        assert_eq!(
            rejection(&outcome),
            ("duplicates", "none of 3 records is new: 2 duplicates, 1 refused")
        );
        assert_eq!(listed(&outcome).len(), 3);
    }
}

#[tokio::test]
async fn a_hold_holds_a_batch_that_leaves_refused_records_out() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let records = [texts(["a", "hold", "b"]), vec![json!({"text": 1})]].concat();
    let submission = dropping(world.submission(dataset, records));
    let outcome = outcome_of(&mut world, &submission).await;
    assert!(matches!(outcome.resolution, Resolution::Waiting { .. }), "{outcome:?}");
    *world.screener.holding.lock().unwrap() = false;
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.merged(submission.contribution).await, (1, 3));
}

#[tokio::test]
async fn what_left_refused_records_out_is_merged_once_and_told_as_it_was() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let submission = dropping(world.submission(dataset, ten(4)));
    world.append(submission.record().unwrap()).await;
    world.append(submission.record().unwrap()).await;
    let told = world.outcome(submission.contribution).await;
    assert!(
        matches!(told.resolution, Resolution::Merged { accepted: 5, .. }),
        "{told:?}"
    );
    assert_eq!(listed(&told).len(), 5);
    world.lose_the_log().await;
    world.append(submission.record().unwrap()).await;
    // The commit has what was left out.
    assert_eq!(world.outcome(submission.contribution).await, told);
    let fence = world.submit(dataset, texts(["fence"])).await;
    assert_eq!(world.merged(fence).await, (2, 1));
    assert_eq!(world.latest(dataset).await, (types::Version(2), 6));
}

#[tokio::test]
async fn a_submission_of_a_later_build_is_a_dead_letter_and_its_replay_merges_once() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let submission = dropping(world.submission(dataset, ten(4)));
    let Record { key, value } = submission.record().unwrap();
    let end = value.iter().position(|byte| *byte == b'\n').unwrap();
    let line = str::from_utf8(&value[..end]).unwrap();
    let later = line.replacen("\"onRefused\"", "\"later\":{},\"onRefused\"", 1);
    let later = Record {
        key,
        value: [later.as_bytes(), &value[end..]].concat().into(),
    };
    world.append(later.clone()).await;
    assert_eq!(world.rejected(submission.contribution).await, "unprocessable");
    let letters = world.letters(1).await;
    assert_eq!(letters[0].contribution, Some(submission.contribution));
    assert!(letters[0].reason.contains("`later`"), "{}", letters[0].reason);
    // As a build replays it that knows all of it.
    let replay = Submission {
        generation: 1,
        ..submission.clone()
    };
    let merged = outcome_of(&mut world, &replay).await;
    assert!(
        matches!(merged.resolution, Resolution::Merged { accepted: 5, .. }),
        "{merged:?}"
    );
    // The first delivery comes again: it is merged by now.
    world.lose_the_log().await;
    world.append(later).await;
    let again = world.outcome(submission.contribution).await;
    assert_eq!(again.resolution, merged.resolution);
    assert_eq!(world.latest(dataset).await, (types::Version(1), 5));
}

#[tokio::test]
async fn the_first_of_many_refused_lines_keep_their_words() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let contract: types::Contract =
        serde_json::from_value(json!({"fields": [{"name": "at", "type": "timestamp"}]})).unwrap();
    let records: Vec<_> = (0..3_000)
        .map(|day| json!({"at": format!("2026-02-30 {day}")}))
        .collect();
    let upload = Submission {
        contract: contract.clone(),
        ..world
            .upload(dataset, &lines(&records), 1 << 20, Compression::None)
            .await
    };
    let outcome = outcome_of(&mut world, &upload).await;
    let (code, message) = rejection(&outcome);
    let expected = "3000 of 3000 records are refused; the first is on line 1 at `/at`: expected timestamp: RFC 3339";
    assert!(code == "refused" && message.starts_with(expected), "{message}");
    assert_eq!(outcome.verdicts.len(), 1_000);
    for said in &outcome.verdicts {
        let Verdict::Refuse { reasons } = &said.verdict else {
            panic!("{said:?}");
        };
        let Reason {
            path, expected, actual, ..
        } = &reasons[0];
        assert!(
            path == "/at" && expected.starts_with("timestamp") && actual == "string",
            "{said:?}"
        );
    }
    // A batch may have more to say than a message takes: then the first are whole.
    let fields: Vec<_> = (0..40)
        .map(|field| json!({"name": format!("{field:0>120}"), "type": "integer"}))
        .collect();
    let wrong: serde_json::Map<String, Value> = (0..40).map(|field| (format!("{field:0>120}"), json!("x"))).collect();
    let batch = Submission {
        contract: serde_json::from_value(json!({"fields": fields})).unwrap(),
        ..world.submission(world.dataset(), vec![Value::Object(wrong); 500])
    };
    let outcome = outcome_of(&mut world, &batch).await;
    let (_, message) = rejection(&outcome);
    assert!(message.contains("expected integer, found string"), "{message}");
    assert_eq!(outcome.verdicts.len(), 500);
    for said in &outcome.verdicts[..20] {
        let Verdict::Refuse { reasons } = &said.verdict else {
            panic!("{said:?}");
        };
        assert_eq!((reasons.len(), reasons[0].expected.as_str()), (5, "integer"));
    }
}

#[tokio::test]
async fn a_line_with_a_number_that_would_be_rounded_is_refused_with_the_number() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let contract: types::Contract = serde_json::from_value(
        json!({"fields": [{"name": "wei", "type": "number"}, {"name": "more", "type": "json"}], "allowExtra": true}),
    )
    .unwrap();
    let text = concat!(
        "{\"wei\":1000000000000000000007}\n",
        "{\"wei\":1000000000000000000000}\n",
        "{\"wei\":2.220446049250313081e-16,\"more\":[9007199254740993]}\n",
        "{\"more\":{\"a\":[1,0.333333333333333333]},\"x\":9007199254740993.0}\n",
        "{\"wei\":1000000000000000000007\n",
    );
    let rejected = Submission {
        contract: contract.clone(),
        ..world.upload(dataset, text.as_bytes(), 1 << 20, Compression::None).await
    };
    let outcome = outcome_of(&mut world, &rejected).await;
    let (code, message) = rejection(&outcome);
    let expected = "3 of 5 records are refused; the first is on line 1 at `/wei`: expected a number that a double keeps, \
                    found 1000000000000000000007; send it as text to a `decimal` or `string` field (decode: digits)";
    assert_eq!((code, message), ("refused", expected));
    let of_line: Vec<_> = outcome
        .verdicts
        .iter()
        .map(|said| match &said.verdict {
            Verdict::Refuse { reasons } => (said.row, reasons.iter().map(|reason| reason.path.as_str()).collect()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected: [(u32, Vec<&str>); 3] = [(0, vec!["/wei"]), (3, vec!["/more/a/1", "/x"]), (4, vec![""])];
    assert_eq!(of_line, expected);
    assert_eq!(listed(&outcome)[2].1, "malformed_json");
    let (kept, _) = text.split_at(text.find("{\"more\"").unwrap());
    let dropped = dropping(Submission {
        contract,
        ..world.upload(dataset, kept.as_bytes(), 1 << 20, Compression::None).await
    });
    let outcome = outcome_of(&mut world, &dropped).await;
    assert!(
        matches!(outcome.resolution, Resolution::Merged { accepted: 2, .. }),
        "{outcome:?}"
    );
}
