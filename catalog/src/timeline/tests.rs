use serde_json::json;
use types::{AgentId, DatasetId, Timestamp};

use super::*;
use crate::Merge;

fn commit(version: u64, rows: u64, count: u64) -> Commit {
    let contribution = ContributionId::from_bytes([u8::try_from(version).unwrap(); 16]);
    let merge = Merge {
        contribution,
        agent: AgentId::from_bytes([1; 16]),
        version: Version(version),
        accepted: rows,
        record_count: count,
        root: Root::from_bytes([u8::try_from(version).unwrap(); 32]).to_string(),
        duplicates: Vec::new(),
        at: Timestamp::from_micros(0),
        notes: serde_json::Value::Null,
    };
    let part = PartInfo {
        version: Version(version),
        contribution,
        index: 0,
        attempt: 0,
        rows,
        bytes: 9,
        sha256: [0; 32],
    };
    Commit::Merged(Box::new(merge), vec![part])
}

fn created() -> Commit {
    let contract = json!({"fields": [{"name": "name", "type": "string"}]});
    Commit::Created(Arc::new(serde_json::from_value(contract).unwrap()))
}

fn apply(timeline: &mut Timeline, commit: Commit) -> Result<(), Error> {
    timeline.apply(commit, || "the commit".to_owned())
}

fn timeline() -> Timeline {
    let mut timeline = Timeline::default();
    apply(&mut timeline, created()).unwrap();
    for (version, rows, count) in [(1, 3, 3), (2, 1, 4), (3, 5, 9)] {
        apply(&mut timeline, commit(version, rows, count)).unwrap();
    }
    timeline
}

#[test]
fn rows_are_found_by_binary_search() {
    let timeline = timeline();
    let located = |rows| -> Vec<(u64, Range<u64>)> {
        let slices = timeline.locate(rows).into_iter();
        slices.map(|slice| (slice.part.version.0, slice.rows)).collect()
    };
    assert_eq!(located(0..9), [(1, 0..3), (2, 0..1), (3, 0..5)]);
    assert_eq!(located(2..4), [(1, 2..3), (2, 0..1)]);
    assert_eq!(located(3..4), [(2, 0..1)]);
    assert_eq!(located(8..100), [(3, 4..5)]);
    assert_eq!(located(9..10), []);
    assert_eq!(
        (0..5)
            .map(|version| timeline.rows_at(Version(version)))
            .collect::<Vec<_>>(),
        [0, 3, 4, 9, 9]
    );
    let between = timeline.parts_between(Version(1), Version(3));
    assert_eq!(between.iter().map(|part| part.version.0).collect::<Vec<_>>(), [2, 3]);
    assert!(timeline.parts_between(Version(3), Version(1)).is_empty());
}

#[test]
fn each_version_keeps_the_root_it_had() {
    let timeline = timeline();
    for version in 0..4 {
        let chain = timeline.chain(Version(version));
        let roots: Vec<_> = chain.iter().map(|link| link.root.as_bytes()[0]).collect();
        assert_eq!(roots, (1..=u8::try_from(version).unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn only_the_next_commit_with_the_right_count_is_taken() {
    let mut timeline = timeline();
    for wrong in [commit(5, 1, 10), commit(4, 1, 11)] {
        assert!(matches!(apply(&mut timeline, wrong), Err(Error::Corrupt { .. })));
    }
    apply(&mut timeline, commit(2, 100, 100)).unwrap();
    assert_eq!((timeline.head(), timeline.rows_at(Version(9))), (Version(3), 9));
    assert!(apply(&mut Timeline::default(), commit(1, 1, 1)).is_err());
}

#[test]
fn a_derived_file_reads_as_it_was_written_and_only_whole() {
    let dataset = DatasetId::from_bytes([7; 16]);
    let timeline = timeline();
    let bytes = timeline.encode(dataset).unwrap();
    let read = Timeline::decode(dataset, &bytes).unwrap();
    assert_eq!(format!("{:?}", read.parts), format!("{:?}", timeline.parts));
    assert_eq!((read.root(), read.contract()), (timeline.root(), timeline.contract()));
    assert_eq!(read.chain(Version(2)), timeline.chain(Version(2)));
    assert_eq!(read.find(ContributionId::from_bytes([2; 16])), Some(Version(2)));
    assert!(Timeline::decode(DatasetId::from_bytes([8; 16]), &bytes).is_none());
    for length in 0..bytes.len() {
        assert!(Timeline::decode(dataset, &bytes[..length]).is_none(), "{length}");
    }
    assert!(Timeline::default().encode(dataset).is_none());
}
