use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;
use types::render::arrow::record_schema;

use super::fixture::{World, numbered};
use crate::part::GROUP_BYTES;
use crate::{Columns, Snapshot};

async fn exported(snapshot: &Snapshot) -> Bytes {
    let pieces: Vec<Bytes> = snapshot.parquet().try_collect().await.unwrap();
    pieces.concat().into()
}

async fn rows(snapshot: &Snapshot) -> RecordBatch {
    let rows = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    concat_batches(&rows[0].schema(), &rows).unwrap()
}

/// Returns the rows of a file, and the number of its row groups.
fn read(file: Bytes) -> (RecordBatch, usize) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let (schema, groups) = (Arc::clone(builder.schema()), builder.metadata().num_row_groups());
    let rows: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    (concat_batches(&schema, &rows).unwrap(), groups)
}

#[tokio::test]
async fn a_file_has_the_rows_and_columns_of_its_version() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let records = [
        json!({"name": "", "count": i64::MIN, "ratio": -0.5, "ok": false, "at": "1969-12-31T23:59:59.999999Z",
            "more": {"a": [1, {"b": null}]}, "x": true}),
        json!({"name": "é\n", "count": i64::MAX, "ratio": 1e300, "ok": true, "more": "text"}),
        json!({"name": "sparse"}),
    ];
    world.merge(&mut table, &records).await;
    world.merge(&mut table, &numbered(0..500)).await;
    world.merge(&mut table, &numbered(500..501)).await;
    let newest = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    for version in 1..=3 {
        let snapshot = newest.at(types::Version(version)).unwrap();
        let (file, groups) = read(exported(&snapshot).await);
        assert_eq!(groups, 1);
        assert_eq!(file.schema().fields(), record_schema(&world.contract).fields());
        assert_eq!(file.columns(), rows(&snapshot).await.columns());
    }
    let empty = newest.at(types::Version::EMPTY).unwrap();
    assert_eq!(read(exported(&empty).await).0.num_rows(), 0);
    // What is encoded has no name.
    let mut staged = world.index_directory("one").join("staged").read_dir().unwrap();
    assert!(staged.next().is_none());
}

#[tokio::test]
async fn a_row_group_is_encoded_when_the_one_before_was_taken_and_waits_for_no_slow_reader() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    // Texts that do not shrink, in each version somewhat less than half of a row group.
    let mut text = |bytes: usize| -> String {
        let letter = |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from_u32(0x4e00 + u32::try_from(random >> 50).unwrap()).unwrap()
        };
        (0..bytes / 3).map(letter).collect()
    };
    for version in 0..5 {
        let records: Vec<_> = (0..7)
            .map(|row| json!({"name": format!("{version}-{row}{}", text(1 << 20))}))
            .collect();
        world.merge(&mut table, &records).await;
    }
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    // More readers than places begin, and none takes more than a piece.
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut pieces = snapshot.parquet();
        let first = pieces.try_next().await.unwrap().unwrap();
        assert!(first.len() < GROUP_BYTES / 8);
        slow.push((first, pieces));
    }
    let (file, groups) = read(exported(&snapshot).await);
    assert!(groups >= 2, "{groups}");
    let expected = rows(&snapshot).await;
    assert_eq!(file.columns(), expected.columns());
    // A reader that went away leaves its place to others, and the rest come to the same file.
    drop(slow.pop());
    for (first, pieces) in slow {
        let rest: Vec<Bytes> = pieces.map(Result::unwrap).collect().await;
        let file = [vec![first], rest].concat().concat();
        assert_eq!(read(file.into()).0.columns(), expected.columns());
    }
}

#[tokio::test]
async fn a_damaged_part_ends_the_file_with_an_error() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..10)).await;
    world.merge(&mut table, &numbered(10..20)).await;
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    let part = world.file(&world.parts()[1]);
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let error = snapshot.parquet().try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(error, crate::Error::Corrupt { .. }), "{error}");
}
