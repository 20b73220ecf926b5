use serde_json::{Value, json};
use types::Version;

use super::*;
use crate::FORMAT;

fn submission(records: &[Value]) -> Submission {
    let at = Timestamp::from_micros(1_790_000_000_000_000);
    Submission {
        format: FORMAT,
        contribution: ContributionId::new(at),
        generation: 3,
        dataset: DatasetId::new(at),
        agent: AgentId::new(at),
        private: true,
        contract: serde_json::from_value(json!({"fields": [{"name": "note", "type": "string"}]})).unwrap(),
        submitted_at: at,
        source: Source::Inline(Records::of(records).unwrap()),
        origin: Some(Origin {
            request_id: "0199".to_owned(),
            traceparent: None,
        }),
        head: Some(KnownHead {
            version: Version(7),
            root: proof::Root::from_bytes([7; 32]),
        }),
    }
}

#[test]
fn a_submission_comes_back_as_it_was_and_takes_little_room() {
    let records: Vec<Value> = (0..500)
        .map(|row| json!({"note": format!("line one\nof {row}")}))
        .collect();
    let submission = submission(&records);
    let record = submission.record().unwrap();
    assert!(record.value.len() < serde_json::to_vec(&records).unwrap().len() / 2);
    let decoded = Submission::decode(&record.value).unwrap();
    assert_eq!(decoded, submission);
    assert_eq!(decoded.source, Source::Inline(Records::of(&records).unwrap()));
    assert_eq!(Address::read(&record.value), Some(submission.address()));
}

#[test]
fn a_submission_of_a_build_that_named_no_head_is_read() {
    let submission = submission(&[json!({"note": "a"})]);
    let record = submission.record().unwrap();
    let (line, block) = split(&record.value);
    let mut line: Value = serde_json::from_slice(line).unwrap();
    assert!(line.as_object_mut().unwrap().remove("head").is_some());
    let before = [serde_json::to_vec(&line).unwrap(), b"\n".to_vec(), block.to_vec()].concat();
    let decoded = Submission::decode(&before).unwrap();
    assert_eq!(
        decoded,
        Submission {
            head: None,
            ..submission
        }
    );
}

#[test]
fn records_are_those_of_a_body_whatever_else_it_says() {
    let body = r#"{"sourceDeclaration": "x", "records": [{"note": "é"}, {}]}"#;
    let records = Records::of_body(Bytes::from_static(body.as_bytes()));
    assert_eq!(records.values().unwrap(), [json!({"note": "é"}), json!({})]);
}

#[test]
fn a_damaged_submission_is_an_error_and_keeps_its_address() {
    let submission = submission(&[json!({"note": "a"})]);
    let whole = submission.record().unwrap().value;
    for end in 1..whole.len() {
        assert!(Submission::decode(&whole[..end]).is_err(), "{end}");
    }
    let text = |from: &str, to: &str| {
        let line = split(&whole).0;
        let line = str::from_utf8(line).unwrap().replace(from, to);
        [line.as_bytes(), b"\n", split(&whole).1].concat()
    };
    let other = text("\"format\":1", "\"format\":7");
    assert!(matches!(Submission::decode(&other), Err(DecodeError::Format(7))));
    let Source::Inline(records) = &submission.source else {
        unreachable!()
    };
    let bytes = records.len();
    for wrong in [bytes - 1, bytes + 1, usize::MAX] {
        let long = text(&format!("\"bytes\":{bytes}"), &format!("\"bytes\":{wrong}"));
        assert!(Submission::decode(&long).is_err(), "{wrong}");
        assert_eq!(Address::read(&long), Some(submission.address()));
    }
    assert!(Submission::decode(b"").is_err());
    assert_eq!(Address::read(b""), None);
}

#[test]
fn submissions_of_the_build_before_are_read_and_written_byte_for_byte() {
    let (batch, upload) = (
        &include_bytes!("../golden/batch.bin")[..],
        &include_bytes!("../golden/upload.bin")[..],
    );
    for (golden, inline) in [(batch, true), (upload, false)] {
        let submission = Submission::decode(golden).unwrap();
        assert_eq!(matches!(submission.source, Source::Inline(_)), inline);
        assert_eq!(submission.record().unwrap().value, golden);
    }
}
