use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde_json::json;

use super::*;

fn ids() -> (ContributionId, AgentId) {
    let contribution = "0197b3c0-0000-7000-8000-000000000002".parse().unwrap();
    (contribution, "0197b3c0-0000-7000-8000-000000000003".parse().unwrap())
}

#[test]
fn the_name_of_a_part_has_its_index_and_attempt() {
    let (contribution, _) = ids();
    for (index, attempt) in [(0, 0), (0, 1), (0, 12), (1, 0), (25, 3)] {
        let name = name(Version(7), contribution, index, attempt);
        assert_eq!(place_of(&name, Version(7), contribution), Some((index, attempt)));
        assert_eq!(place_of(&name, Version(8), contribution), None);
    }
    let stem = format!("part-00000000000000000007-{contribution}");
    for foreign in [
        "-0.parquet",
        "-01.parquet",
        "-+1.parquet",
        "-.parquet",
        ".parquet.tmp",
        "-x.parquet",
        "-0-0.parquet",
        "-0-01.parquet",
        "-0-1-1.parquet",
        "",
    ] {
        assert_eq!(
            place_of(&format!("{stem}{foreign}"), Version(7), contribution),
            None,
            "{foreign}"
        );
    }
}

#[test]
fn a_part_encodes_the_same_every_time_and_has_the_hidden_columns() {
    let contract = json!({"fields": [{"name": "name", "type": "string"}]});
    let contract = Arc::new(serde_json::from_value(contract).unwrap());
    let records: Vec<_> = (0..2_500).map(|number| json!({"name": format!("n{number}")})).collect();
    let batch = Batch::decode(&contract, &records);
    let (contribution, agent) = ids();
    let encoded = encode(&batch, contribution, agent, Version(3)).unwrap();
    assert_eq!(
        encoded.sha256,
        encode(&batch, contribution, agent, Version(3)).unwrap().sha256
    );
    let rows: Vec<RecordBatch> = decode(encoded.bytes).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 2_500);
    let first = &rows[0];
    assert_eq!(
        first
            .column_by_name(HIDDEN_COLUMNS[0])
            .unwrap()
            .as_binary::<i32>()
            .value(5),
        batch.keys()[5].as_bytes()
    );
    assert_eq!(
        first
            .column_by_name(HIDDEN_COLUMNS[1])
            .unwrap()
            .as_string::<i32>()
            .value(5),
        contribution.to_string()
    );
    assert_eq!(
        first
            .column_by_name(HIDDEN_COLUMNS[2])
            .unwrap()
            .as_string::<i32>()
            .value(5),
        agent.to_string()
    );
    let number = |name: &str| {
        first
            .column_by_name(name)
            .unwrap()
            .as_primitive::<arrow::datatypes::Int64Type>()
            .value(5)
    };
    assert_eq!((number(HIDDEN_COLUMNS[3]), number(HIDDEN_COLUMNS[4])), (3, 5));
}

/// What makes SQL over an upload quick: a value that is looked up is found in one row group, and few texts are read
/// once.
#[test]
fn a_large_part_finds_names_by_a_filter_and_keeps_texts_that_repeat_once() {
    let contract = json!({"fields": [
        {"name": "id", "type": "string"},
        {"name": "place", "type": "string"},
        {"name": "prose", "type": "string"},
        {"name": "count", "type": "integer"},
    ]});
    let contract = Arc::new(serde_json::from_value(contract).unwrap());
    let record = |number: usize| {
        let prose = format!("{number} ").repeat(40);
        json!({"id": format!("n{number}"), "place": format!("place {}", number % 7), "prose": prose, "count": number})
    };
    let encoded = |rows: usize| {
        let records: Vec<_> = (0..rows).map(record).collect();
        let (contribution, agent) = ids();
        encode(&Batch::decode(&contract, &records), contribution, agent, Version(1)).unwrap()
    };
    let footer = |part: EncodedPart| ParquetMetaDataReader::new().parse_and_finish(&part.bytes).unwrap();
    let filter_bytes = |footer: &ParquetMetaData, column: usize| {
        let chunk = footer.row_group(0).column(column);
        chunk
            .bloom_filter_offset()
            .map(|_| chunk.bloom_filter_length().unwrap())
    };
    let large = footer(encoded(2 * SMALL_PART_ROWS));
    let [id, place, prose, count] = [0, 1, 2, 3].map(|column| filter_bytes(&large, column));
    assert!(id.unwrap() > 4_096, "{id:?}");
    assert_eq!((place, prose, count), (None, None, None));
    let bytes = |column: usize| large.row_group(0).column(column).compressed_size();
    assert!(bytes(1) * 8 < bytes(0), "{} {}", bytes(1), bytes(0));

    let small = footer(encoded(SMALL_PART_ROWS));
    assert_eq!([0, 1].map(|column| filter_bytes(&small, column)), [None, None]);
}

/// Which names a filter is made of: those that a row group need not have.
#[test]
fn only_names_that_are_everywhere_have_no_filter() {
    let contract = json!({"fields": [
        {"name": "few", "type": "string"},
        {"name": "thousands", "type": "string"},
        {"name": "many", "type": "string"},
        {"name": "runs", "type": "string"},
        {"name": "frequent", "type": "string"},
        {"name": "missing", "type": "string"},
    ]});
    let contract = Arc::new(serde_json::from_value(contract).unwrap());
    let record = |row: usize| {
        // In no order: the multiplier is prime.
        let any = |names: usize| format!("name {}", row * row * 7_919 % 104_729 % names);
        json!({
            "few": any(7),
            "thousands": any(3_000),
            "many": format!("name {row}"),
            "runs": format!("name {}", row / 10),
            "frequent": if row.is_multiple_of(3) { "usual".to_owned() } else { format!("name {row}") },
            "missing": if row.is_multiple_of(3) { None } else { Some(format!("name {row}")) },
        })
    };
    let records: Vec<_> = (0..2 * SMALL_PART_ROWS).map(record).collect();
    let (contribution, agent) = ids();
    let part = encode(&Batch::decode(&contract, &records), contribution, agent, Version(1)).unwrap();
    let footer = ParquetMetaDataReader::new().parse_and_finish(&part.bytes).unwrap();
    let has_filter = |column: usize| footer.row_group(0).column(column).bloom_filter_offset().is_some();
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(has_filter),
        [false, false, true, true, true, true]
    );
}

#[test]
fn the_reader_of_damaged_files_ends_with_an_error_whatever_it_does() {
    let contract = json!({"fields": [{"name": "name", "type": "string"}, {"name": "count", "type": "integer"}]});
    let contract = Arc::new(serde_json::from_value(contract).unwrap());
    let records: Vec<_> = (0..40)
        .map(|row| json!({"name": format!("n{row}"), "count": row}))
        .collect();
    let (contribution, agent) = ids();
    let sound = encode(&Batch::decode(&contract, &records), contribution, agent, Version(1)).unwrap();
    assert_eq!(rows_of(&sound.bytes), Some(40));
    for at in 0..sound.bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = sound.bytes.to_vec();
            damaged[at] ^= flip;
            rows_of(&damaged);
        }
    }
}

/// How many rows a file is read to have; none where it ends with an error.
fn rows_of(bytes: &[u8]) -> Option<usize> {
    let batches = decode(bytes.to_vec().into()).ok()?;
    batches.map(|batch| batch.ok().map(|batch| batch.num_rows())).sum()
}
