use serde_json::json;
use types::{AgentId, DatasetId, Timestamp};

use super::*;
use crate::Merge;

/// An instant for each number.
fn at(number: u64) -> Timestamp {
    Timestamp::from_micros(i64::try_from(number).unwrap() * 1_000_000)
}

fn commit(version: u64, rows: u64, count: u64) -> CommitContent {
    let contribution = ContributionId::from_bytes([u8::try_from(version).unwrap(); 16]);
    let merge = Merge {
        contribution,
        agent: AgentId::from_bytes([1; 16]),
        version: Version(version),
        accepted: rows,
        record_count: count,
        root: Root::from_bytes([u8::try_from(version).unwrap(); 32]).to_string(),
        duplicates: Vec::new(),
        at: at(version),
        notes: serde_json::Value::Null,
    };
    let part = PartInfo {
        version: Version(version),
        compacted: None,
        contribution,
        index: 0,
        attempt: 0,
        rows,
        bytes: 9,
        sha256: [0; 32],
    };
    CommitContent::Merged(Box::new(merge), vec![part])
}

fn created() -> CommitContent {
    let contract = json!({"fields": [{"name": "name", "type": "string"}]});
    CommitContent::Created(Arc::new(serde_json::from_value(contract).unwrap()))
}

fn apply(version_index: &mut VersionIndex, commit: CommitContent) -> Result<(), Error> {
    version_index.apply(version_index.next_commit(), commit, || "the commit".to_owned())
}

/// The parts that the table is read from at a version: the first and the last version of each.
fn layout(version_index: &VersionIndex, version: u64) -> Vec<(u64, u64)> {
    let ranges = version_index.layout(Version(version));
    ranges
        .map(|range| (range.part.first_version().0, range.part.version.0))
        .collect()
}

/// A compaction of what the table is read from now, from one version to another.
fn rewrite(version_index: &VersionIndex, first: u64, last: u64) -> PartRewrite {
    let ranges = version_index.layout(version_index.head());
    let within: Vec<_> = ranges
        .filter(|range| range.part.first_version().0 >= first && range.part.version.0 <= last)
        .collect();
    PartRewrite {
        first: Version(first),
        last: Version(last),
        rows: within.iter().map(|range| range.part.rows).sum(),
        bytes: 7,
        sha256: [u8::try_from(first).unwrap(); 32],
        replaces: within.iter().map(|range| range.part.name()).collect(),
    }
}

fn compact(version_index: &mut VersionIndex, first: u64, last: u64) {
    let rewrite = rewrite(version_index, first, last);
    let at = at(version_index.next_commit());
    apply(version_index, CommitContent::Compacted(Box::new(rewrite), at)).unwrap();
}

/// Versions 1 to `versions`, each of as many rows as its number.
fn grown(versions: u64) -> VersionIndex {
    let mut version_index = VersionIndex::default();
    apply(&mut version_index, created()).unwrap();
    for version in 1..=versions {
        apply(
            &mut version_index,
            commit(version, version, version * (version + 1) / 2),
        )
        .unwrap();
    }
    version_index
}

fn version_index() -> VersionIndex {
    let mut version_index = VersionIndex::default();
    apply(&mut version_index, created()).unwrap();
    for (version, rows, count) in [(1, 3, 3), (2, 1, 4), (3, 5, 9)] {
        apply(&mut version_index, commit(version, rows, count)).unwrap();
    }
    version_index
}

#[test]
fn rows_are_found_by_binary_search() {
    let version_index = version_index();
    let located = |rows| -> Vec<(u64, Range<u64>)> {
        let slices = version_index.locate(version_index.head(), rows).into_iter();
        slices.map(|slice| (slice.part.version.0, slice.rows)).collect()
    };
    assert_eq!(located(0..9), [(1, 0..3), (2, 0..1), (3, 0..5)]);
    assert_eq!(located(2..4), [(1, 2..3), (2, 0..1)]);
    assert_eq!(located(3..4), [(2, 0..1)]);
    assert_eq!(located(8..100), [(3, 4..5)]);
    assert_eq!(located(9..10), []);
    assert_eq!(
        (0..5)
            .map(|version| version_index.rows_at(Version(version)))
            .collect::<Vec<_>>(),
        [0, 3, 4, 9, 9]
    );
    let between = version_index.parts_between(Version(1), Version(3));
    assert_eq!(between.iter().map(|part| part.version.0).collect::<Vec<_>>(), [2, 3]);
    assert!(version_index.parts_between(Version(3), Version(1)).is_empty());
}

#[test]
fn each_version_keeps_the_root_it_had() {
    let version_index = version_index();
    for version in 0..4 {
        let chain = version_index.chain(Version(version));
        let roots: Vec<_> = chain.iter().map(|link| link.root.as_bytes()[0]).collect();
        assert_eq!(roots, (1..=u8::try_from(version).unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn only_the_next_commit_with_the_right_count_is_taken() {
    let mut version_index = version_index();
    for wrong in [commit(5, 1, 10), commit(4, 1, 11), created()] {
        assert!(matches!(apply(&mut version_index, wrong), Err(Error::Corrupt { .. })));
    }
    let ahead = version_index.apply(5, commit(4, 1, 10), || "the commit".to_owned());
    assert!(matches!(ahead, Err(Error::Corrupt { .. })));
    // One that it has already.
    version_index.apply(2, commit(2, 100, 100), String::new).unwrap();
    assert_eq!(
        (version_index.head(), version_index.rows_at(Version(9))),
        (Version(3), 9)
    );
    assert!(apply(&mut VersionIndex::default(), commit(1, 1, 1)).is_err());
}

#[test]
fn a_derived_file_reads_as_it_was_written_and_only_whole() {
    let dataset = DatasetId::from_bytes([7; 16]);
    let version_index = version_index();
    let bytes = version_index.encode(dataset).unwrap();
    let read = VersionIndex::decode(dataset, &bytes).unwrap();
    assert_eq!(format!("{:?}", read.parts), format!("{:?}", version_index.parts));
    assert_eq!(
        (read.root(), read.contract()),
        (version_index.root(), version_index.contract())
    );
    assert_eq!(read.chain(Version(2)), version_index.chain(Version(2)));
    assert_eq!(read.find(ContributionId::from_bytes([2; 16])), Some(Version(2)));
    assert!(VersionIndex::decode(DatasetId::from_bytes([8; 16]), &bytes).is_none());
    for length in 0..bytes.len() {
        assert!(VersionIndex::decode(dataset, &bytes[..length]).is_none(), "{length}");
    }
    assert!(VersionIndex::default().encode(dataset).is_none());
}

#[test]
fn every_version_is_read_from_the_largest_parts_that_end_with_it_or_before() {
    let mut version_index = grown(9);
    compact(&mut version_index, 1, 3);
    compact(&mut version_index, 4, 6);
    compact(&mut version_index, 1, 6);
    compact(&mut version_index, 7, 8);
    assert_eq!(version_index.next_commit(), 14);
    for (version, expected) in [
        (0, &[][..]),
        (2, &[(1, 1), (2, 2)]),
        (3, &[(1, 3)]),
        (5, &[(1, 3), (4, 4), (5, 5)]),
        (6, &[(1, 6)]),
        (7, &[(1, 6), (7, 7)]),
        (9, &[(1, 6), (7, 8), (9, 9)]),
    ] {
        assert_eq!(layout(&version_index, version), expected, "{version}");
        // The rows are those that the versions have, wherever a read begins and ends.
        let rows = version * (version + 1) / 2;
        for (start, end) in (0..rows).flat_map(|start| (start + 1..=rows).map(move |end| (start, end))) {
            let slices = version_index.locate(Version(version), start..end);
            let read: u64 = slices.iter().map(|slice| slice.rows.end - slice.rows.start).sum();
            assert_eq!(read, end - start);
            let first = &slices[0];
            let before = (first.part.first_version().0 - 1) * first.part.first_version().0 / 2;
            assert_eq!(before + first.rows.start, start);
        }
        let roots: Vec<_> = version_index
            .chain(Version(version))
            .iter()
            .map(|link| link.root)
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(_, last)| Root::from_bytes([u8::try_from(*last).unwrap(); 32]))
            .collect();
        assert_eq!(roots, expected);
    }
    // Merges go on, and their commits are found by their versions.
    apply(&mut version_index, commit(10, 10, 55)).unwrap();
    assert_eq!(
        (
            version_index.commit_of(Version(9)),
            version_index.commit_of(Version(10))
        ),
        (Some(9), Some(14))
    );
    assert_eq!(version_index.commit_of(Version(11)), None);
    assert_eq!(version_index.parts_between(Version(1), Version(4)).len(), 3);
}

#[test]
fn a_compaction_replaces_whole_parts_of_the_latest_layout_or_is_refused() {
    let mut version_index = grown(9);
    compact(&mut version_index, 2, 4);
    let good = rewrite(&version_index, 2, 6);
    let changed = |change: &dyn Fn(&mut PartRewrite)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed
    };
    for (what, wrong) in [
        ("a row less", changed(&|rewrite| rewrite.rows -= 1)),
        ("one part of several", changed(&|rewrite| drop(rewrite.replaces.pop()))),
        ("another order", changed(&|rewrite| rewrite.replaces.reverse())),
        ("a later version", changed(&|rewrite| rewrite.last = Version(7))),
        ("an earlier version", changed(&|rewrite| rewrite.first = Version(1))),
        ("no version", changed(&|rewrite| rewrite.first = Version(0))),
        ("a version to come", changed(&|rewrite| rewrite.last = Version(10))),
        ("parts that were replaced", rewrite(&grown(9), 2, 6)),
        ("half of a compacted part", rewrite(&grown(9), 4, 6)),
        ("a single part", rewrite(&version_index, 2, 4)),
        ("nothing", rewrite(&version_index, 3, 3)),
    ] {
        let refused = apply(&mut version_index, CommitContent::Compacted(Box::new(wrong), at(0)));
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{what}");
    }
    apply(&mut version_index, CommitContent::Compacted(Box::new(good), at(0))).unwrap();
    assert_eq!(layout(&version_index, 9), [(1, 1), (2, 6), (7, 7), (8, 8), (9, 9)]);
}

#[test]
fn a_derived_file_keeps_the_layouts() {
    let dataset = DatasetId::from_bytes([7; 16]);
    let mut version_index = grown(9);
    compact(&mut version_index, 1, 3);
    compact(&mut version_index, 4, 6);
    let last = rewrite(&version_index, 1, 6);
    apply(
        &mut version_index,
        CommitContent::Compacted(Box::new(last.clone()), at(0)),
    )
    .unwrap();
    let bytes = version_index.encode(dataset).unwrap();
    let mut read = VersionIndex::decode(dataset, &bytes).unwrap();
    assert_eq!(format!("{:?}", read.levels), format!("{:?}", version_index.levels));
    for version in 0..=9 {
        assert_eq!(read.chain(Version(version)), version_index.chain(Version(version)));
    }
    for length in 0..bytes.len() {
        assert!(VersionIndex::decode(dataset, &bytes[..length]).is_none(), "{length}");
    }
    // It is believed where the log ends with the same commit.
    assert!(read.ends_with(&CommitContent::Compacted(Box::new(last.clone()), at(0))));
    let other = PartRewrite {
        sha256: [9; 32],
        ..last
    };
    assert!(!read.ends_with(&CommitContent::Compacted(Box::new(other), at(0))));
    assert!(!read.ends_with(&commit(9, 9, 45)));
    // And it goes on as the other does.
    compact(&mut read, 7, 8);
    assert_eq!(layout(&read, 9), [(1, 6), (7, 8), (9, 9)]);
}

/// What the log amounts to: the parts that are read, and the others.
#[test]
fn what_is_live_is_the_latest_layout_and_all_else_was_replaced_once() {
    let mut version_index = grown(9);
    let told = |parts: &[(PartInfo, i64)]| -> Vec<_> {
        let told = parts.iter();
        told.map(|(part, at)| (part.first_version().0, part.version.0, at / 1_000))
            .collect()
    };
    assert!(VersionIndex::default().latest(i64::MAX).is_none());
    let latest = version_index.latest(i64::MAX).unwrap();
    assert_eq!((latest.commit, latest.merged), (9, (Version(9), 9_000)));
    assert_eq!(
        told(&latest.live),
        (1..=9)
            .zip(1..)
            .map(|(version, at)| (version, version, at))
            .collect::<Vec<_>>()
    );
    assert!(latest.replaced.is_empty());

    // Commits 10 to 13.
    compact(&mut version_index, 4, 6);
    compact(&mut version_index, 1, 3);
    compact(&mut version_index, 1, 6);
    compact(&mut version_index, 7, 8);
    let latest = version_index.latest(i64::MAX).unwrap();
    assert_eq!((latest.commit, latest.merged), (13, (Version(9), 9_000)));
    assert_eq!(told(&latest.live), [(1, 6, 12), (7, 8, 13), (9, 9, 9)]);
    let mut replaced = told(&latest.replaced);
    replaced.sort_unstable();
    let expected = [
        (1, 1, 11),
        (1, 3, 12),
        (2, 2, 11),
        (3, 3, 11),
        (4, 4, 10),
        (4, 6, 12),
        (5, 5, 10),
        (6, 6, 10),
        (7, 7, 13),
        (8, 8, 13),
    ];
    assert_eq!(replaced, expected);
    let layout: Vec<_> = version_index
        .layout(Version(9))
        .map(|range| range.part.clone())
        .collect();
    assert_eq!(
        latest.live.iter().map(|(part, _)| part.clone()).collect::<Vec<_>>(),
        layout
    );

    // A derived file loses none of it.
    let dataset = DatasetId::from_bytes([7; 16]);
    let read = VersionIndex::decode(dataset, &version_index.encode(dataset).unwrap()).unwrap();
    assert_eq!(read.latest(i64::MAX).unwrap(), latest);
    // At 13 seconds, as far back as 12.
    let recent = read.latest(1_000).unwrap();
    assert_eq!(recent.live, latest.live);
    let mut replaced = told(&recent.replaced);
    replaced.sort_unstable();
    assert_eq!(replaced, [(1, 3, 12), (4, 6, 12), (7, 7, 13), (8, 8, 13)]);
}
