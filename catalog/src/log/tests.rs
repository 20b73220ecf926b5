use arrow::json::LineDelimitedWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::schema::printer::print_schema;
use serde_json::json;
use types::{AgentId, ContributionId, Version};

use super::*;
use crate::version_index::LatestState;

fn dataset() -> DatasetId {
    "0197b3c0-0000-7000-8000-000000000001".parse().unwrap()
}

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [{"name": "name", "type": "string"}], "allowExtra": true})).unwrap()
}

fn version_two() -> (Merge, PartInfo) {
    let contribution: ContributionId = "0197b3c0-0000-7000-8000-000000000002".parse().unwrap();
    let agent: AgentId = "0197b3c0-0000-7000-8000-000000000003".parse().unwrap();
    let merge = Merge {
        contribution,
        agent,
        version: Version(2),
        accepted: 3,
        record_count: 5,
        root: "ab".repeat(32),
        duplicates: vec![0, 7],
        at: Timestamp::from_micros(1_700_000_000_123_456),
        notes: json!({"rows": 5}),
    };
    let part = PartInfo {
        version: Version(2),
        compacted: None,
        contribution,
        index: 0,
        attempt: 0,
        rows: 3,
        bytes: 4_096,
        sha256: [1; 32],
    };
    (merge, part)
}

/// Frozen: commits of this form are in tables.
#[test]
fn golden_commits() {
    let zero = created(dataset(), &contract(), Timestamp::from_micros(1_700_000_000_123_456)).unwrap();
    assert_eq!(String::from_utf8(zero).unwrap(), include_str!("tests/0.json"));
    let (merge, part) = version_two();
    let two = merged(dataset(), &merge, [(&part, None)]).unwrap();
    assert_eq!(String::from_utf8(two).unwrap(), include_str!("tests/2.json"));
}

#[test]
fn every_type_has_its_own_in_delta() {
    let def = json!({"fields": [
        {"name": "a", "type": "string"}, {"name": "b", "type": "integer"}, {"name": "c", "type": "number"},
        {"name": "d", "type": "boolean"}, {"name": "e", "type": "timestamp"}, {"name": "f", "type": "json"},
        {"name": "g", "type": "date"}, {"name": "h", "type": "decimal", "scale": 2},
        {"name": "i", "type": "decimal", "scale": 0},
    ]});
    let schema = schema_string(&serde_json::from_value(def).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let kinds: Vec<_> = schema["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| &field["type"])
        .take(9)
        .collect();
    assert_eq!(
        kinds,
        [
            "string",
            "long",
            "double",
            "boolean",
            "timestamp",
            "string",
            "date",
            "decimal(28,2)",
            "decimal(28,0)"
        ]
    );
}

/// Frozen: commits of this form are in tables that were written before commits had checksums.
#[test]
fn commits_without_a_checksum_are_read() {
    let zero = decode(dataset(), 0, include_bytes!("tests/bare/0.json")).unwrap();
    assert!(matches!(zero, CommitContent::Created(found) if *found == contract()));
    let (merge, part) = version_two();
    let two = decode(dataset(), 2, include_bytes!("tests/bare/2.json")).unwrap();
    assert!(matches!(two, CommitContent::Merged(found, parts) if (*found == merge) && parts == [part]));
    let three = decode(dataset(), 3, include_bytes!("tests/bare/compaction.json")).unwrap();
    assert!(matches!(three, CommitContent::Compacted(found, _) if *found == rewrite().0));
}

#[test]
fn a_commit_with_any_bit_wrong_is_no_commit() {
    let (merge, part) = version_two();
    let large = PartInfo { bytes: 600_000, ..part };
    let proof = Proof::of(&vec![7; 600_000]);
    let (rewrite, inputs) = rewrite();
    let at = Timestamp::from_micros(1);
    for (number, bytes) in [
        (0, created(dataset(), &contract(), at).unwrap()),
        (2, merged(dataset(), &merge, [(&large, Some(&proof))]).unwrap()),
        (3, compacted(&rewrite, None, &inputs, at).unwrap()),
    ] {
        assert!(decode(dataset(), number, &bytes).is_ok());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                decode(dataset(), number, &flipped).is_err(),
                "bit {bit} of commit {number}"
            );
        }
    }
}

#[test]
fn a_commit_reads_as_it_was_written() {
    let (merge, part) = version_two();
    let bytes = merged(dataset(), &merge, [(&part, None)]).unwrap();
    match decode(dataset(), 2, &bytes).unwrap() {
        CommitContent::Merged(found, named) => assert_eq!((*found, named), (merge, vec![part])),
        other => panic!("it is a merge, not {other:?}"),
    }
    let bytes = created(dataset(), &contract(), Timestamp::from_micros(0)).unwrap();
    match decode(dataset(), 0, &bytes).unwrap() {
        CommitContent::Created(found) => assert_eq!(*found, contract()),
        other => panic!("it is a creation, not {other:?}"),
    }
}

#[test]
fn a_commit_cut_anywhere_is_no_commit() {
    let (merge, part) = version_two();
    let bytes = merged(dataset(), &merge, [(&part, None)]).unwrap();
    for length in 0..bytes.len() - 1 {
        assert!(decode(dataset(), 2, &bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_commit_of_another_number_table_or_writer_is_no_commit() {
    let (merge, part) = version_two();
    let bytes = merged(dataset(), &merge, [(&part, None)]).unwrap();
    // Compactions before it are commits and no versions; so its number may be greater, and never less.
    assert!(decode(dataset(), 3, &bytes).is_ok());
    assert!(decode(dataset(), 1, &bytes).is_err());
    assert!(decode(dataset(), 0, &bytes).is_err());
    assert!(decode("0197b3c0-0000-7000-8000-00000000000f".parse().unwrap(), 2, &bytes).is_err());
    let text = String::from_utf8(bytes).unwrap();
    for (from, to) in [
        ("\"format\":1", "\"format\":2"),
        ("part-00000000000000000002", "part-00000000000000000001"),
        ("\\\"numRecords\\\":3", "\\\"numRecords\\\":2"),
        ("\"sha256\":\"0101", "\"sha256\":\"01"),
        ("{\"txn\":", "{\"remove\":"),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(
            decode(dataset(), 2, &seal::sealed(&text.replace(from, to))).is_err(),
            "{from}"
        );
    }
}

fn rewrite() -> (PartRewrite, Vec<PartInfo>) {
    let (_, second) = version_two();
    let first = PartInfo {
        version: Version(1),
        rows: 2,
        bytes: 2_048,
        ..second
    };
    let inputs = vec![first, second];
    let rewrite = PartRewrite {
        first: Version(1),
        last: Version(2),
        rows: 5,
        bytes: 5_000,
        sha256: [0xab; 32],
        replaces: inputs.iter().map(PartInfo::name).collect(),
    };
    (rewrite, inputs)
}

/// Frozen: commits of this form are in tables.
#[test]
fn golden_compaction() {
    let (rewrite, inputs) = rewrite();
    let bytes = compacted(&rewrite, None, &inputs, Timestamp::from_micros(1_700_000_000_123_456)).unwrap();
    assert_eq!(
        std::str::from_utf8(&bytes).unwrap(),
        include_str!("tests/compaction.json")
    );
    match decode(dataset(), 3, &bytes).unwrap() {
        CommitContent::Compacted(found, at) => {
            assert_eq!((*found, at), (rewrite, Timestamp::from_micros(1_700_000_000_123_000)));
        }
        other => panic!("it is a compaction, not {other:?}"),
    }
}

#[test]
fn a_compaction_that_changes_data_or_is_cut_is_no_commit() {
    let (rewrite, inputs) = rewrite();
    let bytes = compacted(&rewrite, None, &inputs, Timestamp::from_micros(0)).unwrap();
    assert!(decode(dataset(), 0, &bytes).is_err());
    for length in 0..bytes.len() - 1 {
        assert!(decode(dataset(), 3, &bytes[..length]).is_err(), "{length}");
    }
    let text = String::from_utf8(bytes).unwrap();
    for (from, to) in [
        ("\"dataChange\":false", "\"dataChange\":true"),
        ("\"format\":1", "\"format\":2"),
        ("\"lastVersion\":2", "\"lastVersion\":3"),
        ("\"sha256\":\"abab", "\"sha256\":\"ab"),
        ("{\"add\":", "{\"remove\":"),
        ("\"compaction\":", "\"vacuum\":"),
    ] {
        assert!(text.contains(from), "{from}");
        for changed in [text.replace(from, to), text.replacen(from, to, 1)] {
            assert!(decode(dataset(), 3, &seal::sealed(&changed)).is_err(), "{from}");
        }
    }
}

/// Frozen: these columns are what other readers look for (Delta protocol, *Checkpoint Schema*).
#[test]
fn golden_checkpoint() {
    let (rewrite, inputs) = rewrite();
    let compacted = PartInfo {
        compacted: Some(rewrite.first),
        rows: rewrite.rows,
        bytes: rewrite.bytes,
        sha256: rewrite.sha256,
        ..inputs[1].clone()
    };
    let at = 1_700_000_000_123;
    let latest = LatestState {
        commit: 3,
        merged: (Version(2), at),
        live: vec![(compacted, at)],
        replaced: inputs.into_iter().map(|part| (part, at)).collect(),
    };
    let zero = created(dataset(), &contract(), Timestamp::from_micros(1_700_000_000_123_456)).unwrap();
    let creation = || actions(&zero).unwrap().into_iter().skip(1).collect();
    let made = checkpoint::encode(dataset(), creation(), &latest).unwrap();
    let size = made.bytes.len() as u64;
    let last = serde_json::to_string(&made.last).unwrap();
    assert_eq!(
        last,
        format!(r#"{{"version":3,"size":6,"sizeInBytes":{size},"numOfAddFiles":1}}"#)
    );
    assert_eq!(
        checkpoint::encode(dataset(), creation(), &latest).unwrap().bytes,
        made.bytes
    );
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(made.bytes)).unwrap();
    let mut schema = Vec::new();
    print_schema(&mut schema, reader.parquet_schema().root_schema());
    assert_eq!(
        String::from_utf8(schema).unwrap(),
        include_str!("tests/checkpoint.schema")
    );
    let mut lines = LineDelimitedWriter::new(Vec::new());
    for batch in reader.build().unwrap() {
        lines.write(&batch.unwrap()).unwrap();
    }
    lines.finish().unwrap();
    let told = String::from_utf8(lines.into_inner()).unwrap();
    assert_eq!(told, include_str!("tests/checkpoint.json"));
    // More actions than are encoded at once.
    let many = LatestState {
        live: vec![latest.live[0].clone(); 5_000],
        ..latest
    };
    let made = checkpoint::encode(dataset(), creation(), &many).unwrap();
    assert_eq!((made.last.size, made.last.num_of_add_files), (5_005, 5_000));
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(made.bytes)).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 5_005);
}
