use super::*;
use crate::{BASE_FORMAT, weight};

/// The first line of the submission below.
const LINE: &str = concat!(
    r#"{"format":1,"unit":"03030303-0303-0303-0303-030303030303","chain":"04040404-0404-0404-0404-040404040404","#,
    r#""predecessor":"04040404-0404-0404-0404-040404040404","generation":1,"#,
    r#""agent":"05050505-0505-0505-0505-050505050505","operator":"06060606-0606-0606-0606-060606060606","#,
    r#""submittedAt":1790000000000000,"bytes":73,"origin":{"requestId":"0199"}}"#
);
/// Its text.
const TEXT: &str = r#"{"title":"T","body":"line\none","category":"c/d","sourceDeclaration":"s"}"#;

fn submission() -> UnitSubmission {
    UnitSubmission {
        format: BASE_FORMAT,
        unit: UnitId::from_bytes([3; 16]),
        chain: UnitId::from_bytes([4; 16]),
        predecessor: Some(UnitId::from_bytes([4; 16])),
        generation: 1,
        agent: AgentId::from_bytes([5; 16]),
        operator: OperatorId::from_bytes([6; 16]),
        submitted_at: Timestamp::from_micros(1_790_000_000_000_000),
        text: UnitText {
            title: "T".to_owned(),
            body: "line\none".to_owned(),
            category: "c/d".to_owned(),
            source_declaration: "s".to_owned(),
        },
        origin: Some(Origin {
            request_id: "0199".to_owned(),
            traceparent: None,
        }),
    }
}

#[test]
fn a_submission_is_its_line_and_its_compressed_text() {
    let submission = submission();
    let record = submission.record().unwrap();
    assert_eq!(record.key, KNOWLEDGE_TOPIC);
    let (line, block) = split(&record.value);
    assert_eq!(str::from_utf8(line).unwrap(), LINE);
    assert_eq!(decompress(block, TEXT.len()).unwrap(), TEXT.as_bytes());
    assert_eq!(UnitSubmission::decode(&record.value).unwrap(), submission);
    assert_eq!(UnitAddress::read(&record.value), Some(submission.address()));
}

#[test]
fn a_golden_submission_is_read() {
    // An LZ4 block of one sequence without a match: a token, the length beyond 15, and the text.
    let length = u8::try_from(TEXT.len() - 15).unwrap();
    let golden = [LINE.as_bytes(), b"\n", &[0xf0, length], TEXT.as_bytes()].concat();
    assert_eq!(UnitSubmission::decode(&golden).unwrap(), submission());
}

#[test]
fn a_submission_to_the_second_judge_says_so() {
    assert!(!submission().is_appeal());
    let appeal = UnitSubmission {
        format: APPEAL_FORMAT,
        ..submission()
    };
    let decoded = UnitSubmission::decode(&appeal.record().unwrap().value).unwrap();
    assert!(decoded.is_appeal());
    assert_eq!(decoded, appeal);
}

#[test]
fn a_long_text_takes_little_room_and_is_weighed_at_its_length() {
    let mut submission = submission();
    submission.predecessor = None;
    submission.text.body = "word \u{d55c}\u{ad6d} ".repeat(4_000);
    let record = submission.record().unwrap();
    assert!(record.value.len() < submission.text.body.len() / 2);
    assert!(weight(&record.value) >= submission.text.body.len());
    assert_eq!(UnitSubmission::decode(&record.value).unwrap(), submission);
}

#[test]
fn a_damaged_submission_is_an_error_and_keeps_its_names() {
    let submission = submission();
    let whole = submission.record().unwrap().value;
    for end in 1..whole.len() {
        assert!(UnitSubmission::decode(&whole[..end]).is_err(), "{end}");
    }
    let line = LINE.replace("\"format\":1", "\"format\":7");
    let other = [line.as_bytes(), b"\n", split(&whole).1].concat();
    assert!(matches!(UnitSubmission::decode(&other), Err(DecodeError::Format(7))));
    assert_eq!(UnitAddress::read(&other), Some(submission.address()));
    let line = LINE.replace("\"bytes\":73", "\"bytes\":72");
    let wrong = [line.as_bytes(), b"\n", split(&whole).1].concat();
    assert!(UnitSubmission::decode(&wrong).is_err());
    assert_eq!(UnitAddress::read(b"{"), None);
}
