use std::fs;

use super::fixture::{World, merged, numbered};
use crate::{Catalog, CommitOutcome};

/// A table of so many versions of two records, whose owner died.
async fn grown(versions: u64) -> World {
    let world = World::new();
    grow(&world, &world.catalog("one"), 0..versions).await;
    world
}

async fn grow(world: &World, catalog: &Catalog, versions: std::ops::Range<u64>) {
    let mut table = world.table(catalog).await;
    for version in versions {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
}

fn key_objects(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.file("_sluice")).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("keys-"));
    names.sort();
    names
}

/// A new owner knows exactly the records of so many versions; answers how many objects it read.
async fn taken_over(world: &World, process: &str, versions: u64) -> u64 {
    let before = world.counting.counts().gets;
    let catalog = world.catalog(process);
    let mut table = world.table(&catalog).await;
    let read = world.counting.counts().gets - before;
    let all = table.merge(world.proposal(&numbered(0..versions * 2))).await.unwrap();
    assert!(matches!(all, CommitOutcome::NothingNew(_)), "{all:?}");
    let known = table
        .known()
        .known(world.proposal(&numbered(versions * 2..versions * 2 + 9)).batch.keys());
    assert_eq!(known, [false; 9]);
    read
}

#[tokio::test]
async fn a_new_owner_reads_key_objects_and_the_parts_after_them() {
    let world = grown(530).await;
    assert_eq!(key_objects(&world).len(), 2);
    let read = taken_over(&world, "two", 530).await;
    assert!(read < 200, "{read} objects read");
    world.sound(530).await;
}

#[tokio::test]
async fn key_objects_that_are_damaged_foreign_or_missing_cost_one_read_and_nothing_else() {
    let world = grown(800).await;
    let names = key_objects(&world);
    assert_eq!(names.len(), 3);
    let (first, second) = (
        world.file(&format!("_sluice/{}", names[0])),
        world.file(&format!("_sluice/{}", names[1])),
    );
    let good = [fs::read(&first).unwrap(), fs::read(&second).unwrap()];
    let mut flipped = good[1].clone();
    flipped[100] ^= 1;
    for (process, damaged) in ["a", "b", "c"].iter().zip([&flipped[..], b"", &good[0]]) {
        fs::write(&second, damaged).unwrap();
        let read = taken_over(&world, process, 800).await;
        // The parts of one key object, and not those of the others.
        assert!((256..500).contains(&read), "{read} objects read");
        // Who had to read parts has written what was missing.
        fs::write(&second, &good[1]).unwrap();
    }
    fs::remove_file(&first).unwrap();
    taken_over(&world, "d", 800).await;
    for name in key_objects(&world) {
        fs::remove_file(world.file(&format!("_sluice/{name}"))).unwrap();
    }
    taken_over(&world, "e", 800).await;
    world.sound(800).await;
}

#[tokio::test]
async fn an_owner_with_stored_keys_uses_a_key_object_that_overlaps_them() {
    let world = World::new();
    let mut table = world.table(&world.catalog("one")).await;
    for version in 0..100 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    // Its keys of 100 versions are stored and are a key object.
    table.close().await;
    fs::remove_file(world.file(&format!("_sluice/{}", key_objects(&world)[0]))).unwrap();
    grow(&world, &world.catalog("two"), 100..400).await;
    let read = taken_over(&world, "one", 400).await;
    // The parts of 144 versions and their commits; without the key object it would be 300 parts.
    assert!(read < 400, "{read} objects read");
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let merge = merged(table.merge(world.proposal(&numbered(799..802))).await.unwrap());
    assert_eq!((merge.version.0, merge.accepted, merge.duplicates), (401, 2, vec![0]));
    world.sound(401).await;
}

/// A copy of the table from before takes its place and grows anew.
#[tokio::test]
async fn key_objects_of_another_history_are_not_used() {
    let world = grown(300).await;
    for number in 201..=300 {
        fs::remove_file(world.commit_file(number)).unwrap();
    }
    world.forget_checkpoints();
    let catalog = world.catalog("two");
    let mut table = world.table(&catalog).await;
    for version in 0..60 {
        world
            .merge(&mut table, &numbered(5_000 + version * 2..5_000 + version * 2 + 2))
            .await;
    }
    drop((table, catalog));
    let catalog = world.catalog("three");
    let mut table = world.table(&catalog).await;
    // Records of versions that no longer are, are new.
    let merge = merged(table.merge(world.proposal(&numbered(400..410))).await.unwrap());
    assert_eq!((merge.version.0, merge.accepted), (261, 10));
    world.sound(261).await;
}
