use serde_json::{Value, json};
use types::Version;

use super::*;
use crate::BASE_FORMAT;

fn submission(records: &[Value]) -> Submission {
    let at = Timestamp::from_micros(1_790_000_000_000_000);
    Submission {
        format: BASE_FORMAT,
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
        on_refused: OnRefused::Reject,
        reading: None,
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

fn dropping() -> Submission {
    Submission {
        format: SUBMISSION_FORMAT,
        contribution: ContributionId::from_bytes([1; 16]),
        dataset: DatasetId::from_bytes([2; 16]),
        agent: AgentId::from_bytes([3; 16]),
        on_refused: OnRefused::Drop,
        ..submission(&[json!({"note": "a"})])
    }
}

/// The first line of a submission that leaves refused records out.
const DROPPING: &str = concat!(
    r#"{"format":2,"contribution":"01010101-0101-0101-0101-010101010101","generation":3,"#,
    r#""dataset":"02020202-0202-0202-0202-020202020202","agent":"03030303-0303-0303-0303-030303030303","private":true,"#,
    r#""contract":{"fields":[{"name":"note","type":"string","required":false}],"allowExtra":false},"#,
    r#""submittedAt":1790000000000000,"bytes":26,"origin":{"requestId":"0199"},"#,
    r#""head":{"version":7,"root":"0707070707070707070707070707070707070707070707070707070707070707"},"#,
    r#""onRefused":"drop"}"#
);

#[test]
fn a_submission_that_leaves_refused_records_out_is_of_format_2_and_written_as_it_is_kept() {
    let submission = dropping();
    let record = submission.record().unwrap();
    let (line, block) = split(&record.value);
    assert_eq!(str::from_utf8(line).unwrap(), DROPPING);
    assert_eq!(Submission::decode(&record.value).unwrap(), submission);
    // An LZ4 block of one sequence without a match: a token, the length beyond 15, and the text.
    let text = r#"{"records":[{"note":"a"}]}"#;
    let golden = [&[0xf0, u8::try_from(text.len() - 15).unwrap()], text.as_bytes()].concat();
    assert_eq!(block, golden);
}

#[test]
fn format_2_has_no_member_that_its_reader_does_not_know_and_format_1_means_what_it_meant() {
    let whole = dropping().record().unwrap().value;
    let with = |from: &str, to: &str| {
        let line = str::from_utf8(split(&whole).0).unwrap().replacen(from, to, 1);
        Submission::decode(&[line.as_bytes(), b"\n", split(&whole).1].concat())
    };
    let unknown = with("\"onRefused\"", "\"later\":{},\"onRefused\"");
    assert!(matches!(unknown, Err(DecodeError::Member(name)) if name == "later"));
    // A reading that says what the build does not know is no reading without it.
    assert!(with("\"onRefused\"", "\"reading\":{\"later\":1},\"onRefused\"").is_err());
    assert!(with("\"drop\"", "\"keep\"").is_err());
    assert!(matches!(
        with("\"format\":2", "\"format\":3"),
        Err(DecodeError::Format(3))
    ));
    let silent = with(",\"onRefused\":\"drop\"", "").unwrap();
    assert_eq!((silent.format, silent.on_refused), (2, OnRefused::Reject));
    let before = with("\"format\":2", "\"later\":1,\"format\":1").unwrap();
    assert_eq!((before.format, before.on_refused), (1, OnRefused::Reject));
}

#[test]
fn a_reading_comes_back_as_it_was_in_format_2() {
    let reading = r#"{"format":"csv","delimiter":";","columns":[{"from":"Note","to":"note"},{"from":"x","to":null}]}"#;
    let submission = Submission {
        reading: Some(serde_json::from_str(reading).unwrap()),
        ..dropping()
    };
    let record = submission.record().unwrap();
    let line = str::from_utf8(split(&record.value).0).unwrap();
    assert!(
        line.ends_with(&format!(r#""onRefused":"drop","reading":{reading}}}"#)),
        "{line}"
    );
    assert_eq!(Submission::decode(&record.value).unwrap(), submission);
}

#[test]
fn a_type_that_the_build_before_does_not_know_needs_format_2() {
    let of = |kind: Value| {
        let contract: Contract = serde_json::from_value(json!({"fields": [kind]})).unwrap();
        let format = Submission::format_for(OnRefused::Reject, &contract);
        assert_eq!(Submission::format_for(OnRefused::Drop, &contract), 2);
        let message = Submission {
            format,
            contract,
            ..submission(&[json!({})])
        };
        assert_eq!(Submission::decode(&message.record().unwrap().value).unwrap(), message);
        format
    };
    assert_eq!(of(json!({"name": "a", "type": "timestamp", "unit": "s"})), 1);
    assert_eq!(of(json!({"name": "a", "type": "date"})), 2);
    assert_eq!(of(json!({"name": "a", "type": "decimal", "scale": 2})), 2);
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
