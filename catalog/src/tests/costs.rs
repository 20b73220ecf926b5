use super::fixture::{World, merged, numbered};
use crate::storage::{Counts, Syncs};

/// The requests and syncs of ten merges, made one after the other.
async fn ten_merges(world: &World, table: &mut crate::Table, first: u64) -> (Counts, Syncs) {
    let (requests, syncs) = (world.counting.counts(), world.durable.syncs());
    for merge in 0..10 {
        let start = (first + merge) * 10;
        world.merge(table, &numbered(start..start + 10)).await;
    }
    let (after, synced) = (world.counting.counts(), world.durable.syncs());
    let requests = Counts {
        puts: after.puts - requests.puts,
        gets: after.gets - requests.gets,
        heads: after.heads - requests.heads,
        lists: after.lists - requests.lists,
        deletes: after.deletes - requests.deletes,
    };
    let syncs = Syncs {
        files: synced.files - syncs.files,
        of_files: synced.of_files - syncs.of_files,
        of_directories: synced.of_directories - syncs.of_directories,
    };
    (requests, syncs)
}

#[tokio::test]
async fn a_merge_costs_the_same_at_version_10_and_at_version_2000() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    for version in 0..10 {
        world
            .merge(&mut table, &numbered(version * 10..version * 10 + 10))
            .await;
    }
    let expected = (
        Counts {
            puts: 20,
            gets: 0,
            heads: 0,
            lists: 0,
            deletes: 0,
        },
        Syncs {
            files: 20,
            of_files: 20,
            of_directories: 20,
        },
    );
    assert_eq!(ten_merges(&world, &mut table, 10).await, expected);
    for version in 20..2_000 {
        world
            .merge(&mut table, &numbered(version * 10..version * 10 + 10))
            .await;
    }
    assert_eq!(ten_merges(&world, &mut table, 2_000).await, expected);
    assert_eq!(world.counting.counts().lists, 0);
    world.sound(2_010).await;
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
