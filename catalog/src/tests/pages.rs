use serde_json::{Value, json};
use types::{AgentId, Batch, ContributionId, Timestamp};

use super::fixture::{World, merged, names, numbered, page};
use crate::{Columns, HIDDEN};

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
    assert_eq!(names[names.len() - 5..], HIDDEN);
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
    let proposal = crate::Proposal {
        contribution: ContributionId::new(Timestamp::from_micros(1)),
        agent: AgentId::new(Timestamp::from_micros(1)),
        batch: Batch::decode(&world.contract, &records),
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
