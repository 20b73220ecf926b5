use std::fs;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use types::{AgentId, ContributionId, Timestamp, Version};

use super::fixture::{World, merged, numbered};
use crate::state::MAX_INSERTED_KEYS;
use crate::{Catalog, CommitOutcome};

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
    table.close().await;
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

/// The keys of a large upload are stored as a file wherever they come from, and never are in memory all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_with_an_upload_is_built_again_by_way_of_files() {
    let world = World::new();
    let (few, many) = (20, MAX_INSERTED_KEYS + 1);
    grow(&world, &world.catalog("one"), 0..2).await;
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let agent = AgentId::new(Timestamp::from_micros(3));
    let id = ContributionId::new(Timestamp::from_micros(9));
    let mut stager = table
        .stagers()
        .stage(id, agent, 0)
        .await
        .unwrap()
        .with_part_rows(10_000);
    for records in numbered(few..few + many).chunks(3_000) {
        stager.push(&world.proposal(records).batch).unwrap();
    }
    let mut staged = stager.finish().unwrap();
    let at = Timestamp::from_micros(10);
    let merged = table.commit(&mut staged, at, |_| serde_json::Value::Null).await;
    assert!(matches!(merged, Ok(CommitOutcome::Committed(_))), "{merged:?}");
    world.merge(&mut table, &numbered(few + many..few + many + 5)).await;
    drop((table, staged, catalog));
    fs::remove_dir_all(world.index_directory("one")).unwrap();
    let reads = || world.counting.counts().gets;
    let before = reads();
    let catalog = world.catalog("one");
    knows(&world, &catalog, few + many + 5).await;
    let built = reads() - before;
    let held = catalog.key_store().unstored.load(Ordering::Relaxed);
    assert_eq!(held, 5, "only what came after the upload is in memory");
    let staged = world.index_directory("one").join("staged");
    assert_eq!(fs::read_dir(staged).unwrap().count(), 0);
    drop(catalog);
    // What was stored is there for the next process: it reads no part of the upload.
    let before = reads();
    knows(&world, &world.catalog("one"), few + many + 5).await;
    let opened = reads() - before;
    assert!(
        opened + 4 <= built,
        "{opened} objects read, and {built} without an index"
    );
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
    world.forget_checkpoints();
    let catalog = world.catalog("one");
    knows(&world, &catalog, 2_500).await;
    grow(&world, &catalog, 250..310).await;
    world.sound(310).await;
}

/// One who asked for the keys is gone before they are there; whoever asks next must not race what that began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_opening_that_was_given_up_does_no_harm_to_the_next() {
    let world = World::new();
    grow(&world, &world.catalog("one"), 0..300).await;
    for number in 251..=300 {
        fs::remove_file(world.commit_file(number)).unwrap();
    }
    world.forget_checkpoints();
    let catalog = world.catalog("one");
    // Stored keys are of another history, so opening clears them; here it has to wait for its turn in the store.
    let store = Arc::clone(catalog.key_store());
    let (taken, until_taken) = tokio::sync::oneshot::channel();
    let (release, until_released) = mpsc::channel::<()>();
    let busy = std::thread::spawn({
        let store = Arc::clone(&store);
        move || {
            let _lock = store.lock_changes();
            taken.send(()).unwrap();
            assert!(until_released.recv().is_err());
        }
    });
    until_taken.await.unwrap();
    let mut given_up = Box::pin(catalog.known(world.dataset));
    while store.lock_requests() < 2 {
        assert!(futures_util::poll!(&mut given_up).is_pending());
        tokio::task::yield_now().await;
    }
    drop(given_up);
    let mut next = Box::pin(catalog.known(world.dataset));
    assert!(futures_util::poll!(&mut next).is_pending());
    drop(release);
    next.await.unwrap();
    busy.join().unwrap();
    assert_eq!(store.lock_requests(), 2, "the keys were cleared twice");
    knows(&world, &catalog, 2_500).await;
    grow(&world, &catalog, 250..310).await;
    drop((store, catalog));
    knows(&world, &world.catalog("one"), 3_100).await;
}

#[tokio::test]
async fn one_index_directory_serves_one_process() {
    let world = World::new();
    let _catalog = world.catalog("one");
    let objects = Arc::clone(&world.durable) as _;
    let clock = Arc::new(types::clock::ManualClock::default());
    let second = Catalog::open(objects, world.index_directory("one"), clock);
    assert!(matches!(second, Err(crate::Error::IndexLocked { .. })), "{second:?}");
}
