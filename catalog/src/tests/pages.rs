use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use types::{AgentId, Batch, ContributionId, Timestamp, Version};

use super::fixture::{Proposal, World, merged, names, numbered, page};
use crate::{Columns, HIDDEN_COLUMNS};

#[tokio::test]
async fn every_page_is_the_slice_of_the_whole() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let mut next = 0;
    for size in [1, 7, 3, 500, 2] {
        world.merge(&mut table, &numbered(next..next + size)).await;
        next += size;
    }
    let all = names(&catalog, world.dataset, 5).await;
    assert_eq!(all.len(), 513);
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    for (offset, limit) in [
        (0, 1),
        (0, 8),
        (1, 7),
        (7, 5),
        (10, 200),
        (500, 50),
        (511, 2),
        (512, 9),
        (513, 1),
    ] {
        let rows = page(&snapshot, offset, limit).await;
        let found: Vec<_> = rows
            .iter()
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect();
        let start = usize::try_from(offset).unwrap();
        assert_eq!(found, all[start..(start + limit).min(all.len())]);
    }
    assert!(page(&snapshot, u64::MAX, usize::MAX).await.is_empty());
}

#[tokio::test]
async fn records_of_every_type_come_back_as_they_were() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let records = [
        json!({"name": "", "count": i64::MIN, "ratio": -0.5, "ok": false, "at": "1969-12-31T23:59:59.999999Z",
            "more": {"a": [1, {"b": null}]}, "extra": {"x": [true]}, "온도": 1.5}),
        json!({"name": "\u{0}\n\"\\é€😀", "count": i64::MAX, "ratio": 1e300, "ok": true, "at": "2026-11-21T07:10:20.5Z",
            "more": "text"}),
        json!({"name": "sparse", "more": 18_446_744_073_709_551_615_u64}),
    ];
    let merge = world.merge(&mut table, &records).await;
    let snapshot = catalog
        .snapshot(world.dataset, Some(merge.version))
        .await
        .unwrap()
        .unwrap();
    for (row, record) in page(&snapshot, 0, 10).await.into_iter().zip(&records) {
        let mut found = Value::Object(row);
        found.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(found, *record);
    }
}

#[tokio::test]
async fn hidden_columns_are_shown_only_when_asked_for() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..3)).await;
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    let shown = &snapshot.page(0, 3).await.unwrap()[0];
    assert_eq!(shown.schema(), world.contract.schema());
    let all = &snapshot.page_of(Columns::All, 0, 3).await.unwrap()[0];
    let names: Vec<_> = all.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names[names.len() - 5..], HIDDEN_COLUMNS);
}

/// A part that is too large to be read whole for a page.
#[tokio::test]
async fn a_page_of_a_large_part_reads_a_fraction_of_it() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let noise = |number: u64| blake3::hash(&number.to_le_bytes()).to_hex().to_string().repeat(4);
    let records: Vec<_> = (0..20_000)
        .map(|number| json!({"name": noise(number), "count": number}))
        .collect();
    let proposal = Proposal {
        contribution: ContributionId::new(Timestamp::from_micros(1)),
        agent: AgentId::new(Timestamp::from_micros(1)),
        batch: std::sync::Arc::new(Batch::decode(&world.contract, &records)),
        at: Timestamp::from_micros(1),
        notes: Value::Null,
    };
    merged(table.merge(proposal).await.unwrap());
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert!(snapshot.parts()[0].bytes > 1 << 20);
    for offset in [0_u64, 1_023, 10_000, 19_999] {
        let rows = page(&snapshot, offset, 3).await;
        let found: Vec<_> = rows.iter().map(|row| row["count"].as_u64().unwrap()).collect();
        assert_eq!(found, (offset..(offset + 3).min(20_000)).collect::<Vec<_>>());
    }
    // A new process learns the keys from the key column alone.
    let batch = Batch::decode(&world.contract, &records[19_998..]);
    let known = world.catalog("two").known(world.dataset).await.unwrap();
    assert_eq!(known.known(batch.keys()), [true, true]);
    world.sound(1).await;
}

#[tokio::test]
async fn a_stream_is_the_same_rows_as_the_pages_whatever_its_ends() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let mut next = 0;
    for size in [1, 7, 9_000, 500, 2] {
        world.merge(&mut table, &numbered(next..next + size)).await;
        next += size;
    }
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    let count = snapshot.record_count();
    for rows in [
        0..count,
        0..1,
        1..8,
        7..9_009,
        9_507..count,
        5..5,
        9_509..u64::MAX,
        0..u64::MAX,
    ] {
        let streamed: Vec<RecordBatch> = snapshot.stream(Columns::All, rows.clone()).try_collect().await.unwrap();
        let limit = usize::try_from(rows.end.min(count).saturating_sub(rows.start)).unwrap();
        let paged = snapshot.page_of(Columns::All, rows.start, limit).await.unwrap();
        assert!(streamed.iter().all(|batch| batch.num_rows() <= 4_096), "{rows:?}");
        let whole = |batches: &[RecordBatch]| {
            batches
                .first()
                .map(|first| concat_batches(first.schema_ref(), batches).unwrap())
        };
        assert_eq!(whole(&streamed), whole(&paged), "{rows:?}");
    }
}

#[tokio::test]
async fn the_chain_has_every_part_with_the_root_of_its_version() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let mut merges = Vec::new();
    for version in 0..300 {
        merges.push(world.merge(&mut table, &numbered(version..version + 1)).await);
    }
    // The second catalog reads the derived file, the first has made the merges.
    for catalog in [&catalog, &world.catalog("two")] {
        for version in [1, 2, 256, 300] {
            let snapshot = catalog.snapshot(world.dataset, Some(Version(version))).await;
            let chain = snapshot.unwrap().unwrap().chain();
            let found: Vec<_> = chain
                .iter()
                .map(|link| (link.part.contribution, link.root.to_string()))
                .collect();
            let expected = merges.iter().take(found.len());
            let expected: Vec<_> = expected.map(|merge| (merge.contribution, merge.root.clone())).collect();
            assert_eq!((found.len() as u64, found), (version, expected));
        }
    }
}

#[tokio::test]
async fn parts_are_handed_out_as_the_bytes_they_are() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    for version in 0..3 {
        world.merge(&mut table, &numbered(version..version + 1)).await;
    }
    let snapshot = catalog
        .snapshot(world.dataset, Some(Version(2)))
        .await
        .unwrap()
        .unwrap();
    let parts = snapshot.parts();
    assert_eq!(parts.len(), 2);
    for part in parts {
        let name = part.name();
        let read = std::fs::read(world.file(&name)).unwrap();
        assert_eq!(catalog.part(world.dataset, &name).await.unwrap().as_ref(), Some(&part));
        let size = part.bytes;
        assert_eq!(size, read.len() as u64);
        for range in [0..size, 4..size, 0..1, size - 8..size, 3..3] {
            let pieces: Vec<_> = catalog
                .part_bytes(world.dataset, &part, range.clone())
                .await
                .unwrap()
                .try_collect()
                .await
                .unwrap();
            let within = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert_eq!(pieces.concat(), read[within]);
        }
    }
    for name in ["part-00.parquet", "_delta_log/00000000000000000000.json"] {
        assert_eq!(catalog.part(world.dataset, name).await.unwrap(), None, "{name}");
    }
}
