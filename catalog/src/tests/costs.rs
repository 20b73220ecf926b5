use std::sync::atomic::Ordering;

use types::{DatasetId, Timestamp, Version};

use super::fixture::{World, merged, names, numbered};
use crate::Catalog;
use crate::storage::{RequestCounts, Syncs};

/// What merges cost: requests, syncs, and how often keys were stored.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    requests: RequestCounts,
    syncs: Syncs,
    stored: u64,
}

impl Cost {
    fn so_far(world: &World, catalog: &Catalog) -> Self {
        Self {
            requests: world.counting.counts(),
            syncs: world.durable.syncs(),
            stored: catalog.key_store().additions(),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            requests: RequestCounts {
                puts: self.requests.puts - before.requests.puts,
                gets: self.requests.gets - before.requests.gets,
                heads: self.requests.heads - before.requests.heads,
                lists: self.requests.lists - before.requests.lists,
                deletes: self.requests.deletes - before.requests.deletes,
                directory_syncs: self.requests.directory_syncs - before.requests.directory_syncs,
            },
            syncs: Syncs {
                files: self.syncs.files - before.syncs.files,
                of_files: self.syncs.of_files - before.syncs.of_files,
                of_directories: self.syncs.of_directories - before.syncs.of_directories,
            },
            stored: self.stored - before.stored,
        }
    }

    /// Of this many merges, files put, and how often keys were stored. A merge reads the last commit.
    fn of(merges: u64, files: u64, stored: u64) -> Self {
        Self {
            requests: RequestCounts {
                puts: files,
                gets: merges,
                ..RequestCounts::default()
            },
            syncs: Syncs {
                files,
                of_files: files,
                of_directories: files,
            },
            stored,
        }
    }

    /// The same with a checkpoint: two files. What points to the last is read before, then it is looked whether that is
    /// there, if there was one, and commit 0 is read.
    fn and_a_checkpoint(mut self, before: u64) -> Self {
        self.requests.puts += 2;
        self.requests.gets += 2;
        self.requests.heads += before;
        self.syncs.files += 2;
        self.syncs.of_files += 2;
        self.syncs.of_directories += 2;
        self
    }
}

#[tokio::test]
async fn a_merge_costs_the_same_at_version_10_and_at_version_2000() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let mut version = 0;
    let mut grow = async |upto: u64| {
        let before = Cost::so_far(&world, &catalog);
        while version < upto {
            world
                .merge(&mut table, &numbered(version * 10..version * 10 + 10))
                .await;
            version += 1;
        }
        Cost::so_far(&world, &catalog).since(before)
    };
    grow(10).await;
    assert_eq!(grow(20).await, Cost::of(10, 20, 0));
    grow(250).await;
    // Once in 256 versions the keys are stored, and a run of them, the derived file and a checkpoint are written, two
    // of them in a directory that is new.
    let mut first = grow(260).await;
    first.syncs.of_directories -= 1;
    assert_eq!(first, Cost::of(10, 22, 1).and_a_checkpoint(0));
    grow(2_000).await;
    assert_eq!(grow(2_010).await, Cost::of(10, 20, 0));
    // The derived file is written when the table has grown by an eighth; here that is with every eighth lot of keys.
    assert_eq!(grow(2_048).await, Cost::of(38, 78, 1).and_a_checkpoint(1));
    assert_eq!(grow(2_304).await, Cost::of(256, 514, 1).and_a_checkpoint(1));
    drop(table);
    world.sound(2_304).await;
}

/// What one process does with many tables is bounded by what is open, not by what was ever asked for.
#[tokio::test]
async fn tables_that_nobody_holds_are_closed_and_those_in_use_are_not() {
    let world = World::new();
    let catalog = world.catalog("one");
    let idle = World::of(&world, 2);
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..3)).await;
    let mut other = idle.table(&catalog).await;
    idle.merge(&mut other, &numbered(0..3)).await;
    let held = catalog.known(idle.dataset).await.unwrap();
    other.close().await;
    let reads = async |dataset| {
        let before = world.counting.counts().gets;
        assert_eq!(names(&catalog, dataset, 1).await.len(), 3);
        world.counting.counts().gets - before
    };
    let look_elsewhere = async |first: u64| {
        for number in first..first + 1_100 {
            let nowhere = DatasetId::new(Timestamp::from_micros(1_000 + i64::try_from(number).unwrap()));
            catalog.snapshot(nowhere, None).await.unwrap().unwrap();
        }
    };
    // Both are known here: a page reads its part and nothing else.
    assert_eq!((reads(world.dataset).await, reads(idle.dataset).await), (1, 1));
    look_elsewhere(0).await;
    assert_eq!((reads(world.dataset).await, reads(idle.dataset).await), (1, 1));
    drop(held);
    look_elsewhere(10_000).await;
    assert_eq!(reads(world.dataset).await, 1);
    let again = reads(idle.dataset).await;
    assert!(again > 1, "{again}");
    // Closing lost nothing, and the table that was held goes on.
    let merge = world.merge(&mut table, &numbered(2..5)).await;
    assert_eq!((merge.version, merge.duplicates), (Version(2), vec![0]));
    let mut other = idle.table(&catalog).await;
    let merge = idle.merge(&mut other, &numbered(2..5)).await;
    assert_eq!((merge.version, merge.duplicates), (Version(2), vec![0]));
}

#[tokio::test]
async fn keys_of_tables_that_do_not_merge_are_stored_when_there_are_too_many() {
    let world = World::new();
    let catalog = world.catalog("one");
    let store = catalog.key_store();
    store.room.store(10_000, Ordering::Relaxed);
    let mut tables = Vec::new();
    for number in 2..6 {
        let world = World::of(&world, number);
        let mut table = world.table(&catalog).await;
        world.merge(&mut table, &numbered(0..4_500)).await;
        tables.push(table);
    }
    assert_eq!(store.additions(), 2);
    let mut small = world.table(&catalog).await;
    world.merge(&mut small, &numbered(0..1)).await;
    assert!(store.unstored.load(Ordering::Relaxed) < 10_000);
    assert_eq!(store.additions(), 2);
}

#[tokio::test]
async fn a_page_reads_only_the_parts_that_have_its_rows() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    for version in 0..50 {
        merged(
            table
                .merge(world.proposal(&numbered(version * 10..version * 10 + 10)))
                .await
                .unwrap(),
        );
    }
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    for (offset, limit, parts) in [
        (0, 10, 1),
        (495, 5, 1),
        (255, 10, 2),
        (490, 100, 1),
        (500, 10, 0),
        (10, 0, 0),
    ] {
        let before = world.counting.counts();
        snapshot.page(offset, limit).await.unwrap();
        let after = world.counting.counts();
        assert_eq!(
            (after.gets - before.gets, after.lists - before.lists),
            (parts, 0),
            "{offset} {limit}"
        );
    }
}
