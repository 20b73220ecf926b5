use std::fs;

use types::Version;

use super::fixture::{World, merged, numbered};
use crate::Catalog;

/// Whether the table of a new process knows exactly the first `known` records.
async fn knows(world: &World, catalog: &Catalog, known: u64) {
    let records = [numbered(0..known), numbered(known..known + 50)].concat();
    let batch = world.proposal(&records).batch;
    let found = catalog.known(world.dataset).await.unwrap().known(batch.keys());
    let expected: Vec<_> = (0..known + 50).map(|number| number < known).collect();
    assert_eq!(found, expected);
}

async fn grow(world: &World, catalog: &Catalog, versions: std::ops::Range<u64>) {
    let mut table = world.table(catalog).await;
    for version in versions {
        world
            .merge(&mut table, &numbered(version * 10..version * 10 + 10))
            .await;
    }
}

#[tokio::test]
async fn the_index_catches_up_from_the_parts() {
    let world = World::new();
    grow(&world, &world.catalog("one"), 0..20).await;
    // Nothing was stored yet: all keys come from the parts.
    knows(&world, &world.catalog("one"), 200).await;
    // Another process has its own index.
    grow(&world, &world.catalog("two"), 20..30).await;
    knows(&world, &world.catalog("one"), 300).await;
}

#[tokio::test]
async fn stored_keys_spare_the_parts_and_survive_a_restart() {
    let world = World::new();
    let catalog = world.catalog("one");
    grow(&world, &catalog, 0..300).await;
    world.table(&catalog).await.maintain().await.unwrap();
    drop(catalog);
    let before = world.counting.counts().gets;
    knows(&world, &world.catalog("one"), 3_000).await;
    let read = world.counting.counts().gets - before;
    assert!(read < 12, "{read} objects read to open an index that is up to date");
    grow(&world, &world.catalog("one"), 300..310).await;
    knows(&world, &world.catalog("one"), 3_100).await;
    world.sound(310).await;
}

#[tokio::test]
async fn an_index_that_was_deleted_is_built_again() {
    let world = World::new();
    grow(&world, &world.catalog("one"), 0..300).await;
    fs::remove_dir_all(world.index_directory("one")).unwrap();
    let catalog = world.catalog("one");
    knows(&world, &catalog, 3_000).await;
    let mut table = world.table(&catalog).await;
    let merge = merged(table.merge(world.proposal(&numbered(2_990..3_010))).await.unwrap());
    assert_eq!((merge.version, merge.accepted), (Version(301), 10));
    world.sound(301).await;
}

#[tokio::test]
async fn an_index_that_is_damaged_is_built_again() {
    for garbage in [&b""[..], b"garbage"] {
        let world = World::new();
        grow(&world, &world.catalog("one"), 0..300).await;
        overwrite_files(&world.index_directory("one"), garbage);
        let catalog = world.catalog("one");
        knows(&world, &catalog, 3_000).await;
        grow(&world, &catalog, 300..302).await;
        world.sound(302).await;
    }
}

fn overwrite_files(directory: &std::path::Path, bytes: &[u8]) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            overwrite_files(&path, bytes);
        } else {
            fs::write(&path, bytes).unwrap();
        }
    }
}

/// A copy of the table from before takes its place: keys of versions that no longer are must not look known.
#[tokio::test]
async fn an_index_of_another_history_is_dropped() {
    let world = World::new();
    grow(&world, &world.catalog("one"), 0..300).await;
    for number in 251..=300 {
        fs::remove_file(world.commit_file(number)).unwrap();
    }
    let catalog = world.catalog("one");
    knows(&world, &catalog, 2_500).await;
    grow(&world, &catalog, 250..310).await;
    world.sound(310).await;
}

#[tokio::test]
async fn one_index_directory_serves_one_process() {
    let world = World::new();
    let _catalog = world.catalog("one");
    let objects = std::sync::Arc::clone(&world.durable) as _;
    let clock = std::sync::Arc::new(types::clock::ManualClock::default());
    let second = Catalog::open(objects, world.index_directory("one"), clock);
    assert!(matches!(second, Err(crate::Error::IndexLocked { .. })), "{second:?}");
}
