//! Tables whose newest commits are gone, or are others than were told of.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use types::clock::ManualClock;
use types::{Clock, Timestamp, Version};

use super::fixture::{World, merged, names, numbered};
use crate::{Agreement, Catalog, Error, KnownHead, history};

/// The objects as an administrator opens them.
fn objects(world: &World) -> Arc<dyn ObjectStore> {
    Arc::clone(&world.durable) as _
}

#[tokio::test]
async fn a_table_whose_last_commit_vanishes_takes_nothing_more() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    for version in 0..3 {
        world
            .merge(&mut table, &numbered(version * 10..version * 10 + 10))
            .await;
    }
    let known = table.known_head();
    assert_eq!(table.compare(known).await.unwrap(), Agreement::Kept);
    let sound = fs::read(world.commit_file(3)).unwrap();
    fs::remove_file(world.commit_file(3)).unwrap();
    for records in [numbered(90..95), numbered(20..30)] {
        let refused = table.merge(world.proposal(&records)).await;
        assert!(matches!(refused, Err(Error::HistoryLost { .. })), "{refused:?}");
    }
    assert!(table.is_lost() && !world.commit_file(4).exists());
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert_eq!(
        (snapshot.version(), snapshot.root_at(known.version)),
        (Version(2), None)
    );

    // Opened again, the table says what it lacks, and has it once the file is back.
    table.close().await;
    let mut table = world.table(&catalog).await;
    assert_eq!(table.compare(known).await.unwrap(), Agreement::Lost);
    fs::write(world.commit_file(3), sound).unwrap();
    assert_eq!(table.compare(known).await.unwrap(), Agreement::Kept);
    let merge = world.merge(&mut table, &numbered(25..35)).await;
    assert_eq!((merge.version, merge.accepted), (Version(4), 5));
    drop(table);
    world.sound(4).await;
}

#[tokio::test]
async fn after_an_accepted_loss_a_table_goes_on_with_another_root() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    let mut heads = Vec::new();
    for version in 0..3 {
        world
            .merge(&mut table, &numbered(version * 10..version * 10 + 10))
            .await;
        heads.push(table.known_head());
    }
    for number in [2, 3] {
        fs::remove_file(world.commit_file(number)).unwrap();
    }
    table.confirm().await.unwrap_err();
    table.close().await;
    let objects = objects(&world);
    let recorded = history::read(&objects, world.dataset).await.unwrap();
    assert_eq!(
        recorded.iter().map(|version| version.head).collect::<Vec<_>>(),
        heads[..1]
    );
    let mut table = world.table(&catalog).await;
    assert_eq!(table.compare(heads[2]).await.unwrap(), Agreement::Lost);
    history::accept(&objects, world.dataset, &heads[1..2]).await.unwrap();
    assert_eq!(table.compare(heads[2]).await.unwrap(), Agreement::Lost);
    history::accept(&objects, world.dataset, &heads[1..]).await.unwrap();
    assert_eq!(table.compare(heads[2]).await.unwrap(), Agreement::Accepted);
    assert_eq!(table.compare(heads[0]).await.unwrap(), Agreement::Kept);

    // The rows that were lost are no duplicates, and the number of the version is given again.
    let merge = merged(table.merge(world.proposal(&numbered(15..25))).await.unwrap());
    assert_eq!((merge.version, merge.accepted), (Version(2), 10));
    assert_ne!(table.known_head(), heads[1]);
    assert_eq!(names(&catalog, world.dataset, 2).await.len(), 20);
    // The same rows after another version have another root.
    assert_eq!(table.compare(heads[1]).await.unwrap(), Agreement::Accepted);
    let unknown = KnownHead {
        version: Version(2),
        root: crate::Root::from_bytes([9; 32]),
    };
    assert_eq!(table.compare(unknown).await.unwrap(), Agreement::Lost);
    drop(table);
    world.sound(2).await;
}

#[tokio::test]
async fn a_reader_sees_that_another_commit_is_in_the_place_of_the_last() {
    let world = World::new();
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    let told = Arc::clone(&clock) as Arc<dyn Clock>;
    let catalog = Catalog::open(Arc::clone(&world.counting) as _, world.index_directory("one"), told).unwrap();
    let other = world.catalog("two");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..10)).await;
    world.merge(&mut table, &numbered(10..20)).await;
    let lost = table.known_head();
    fs::remove_file(world.commit_file(2)).unwrap();
    let mut instead = world.table(&other).await;
    world.merge(&mut instead, &numbered(50..60)).await;
    assert_eq!(instead.known_head().version, lost.version);
    clock.advance(Duration::from_secs(2));
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert_eq!(snapshot.root_at(Version(2)), Some(instead.known_head().root));
    let refused = table.merge(world.proposal(&numbered(70..80))).await;
    assert!(matches!(refused, Err(Error::HistoryLost { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_last_commit_with_a_wrong_bit_is_damaged_and_no_history_is_lost() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..10)).await;
    let path = world.commit_file(1);
    let sound = fs::read(&path).unwrap();
    let root = table.known_head().root.to_string();
    let at = sound
        .windows(root.len())
        .position(|bytes| bytes == root.as_bytes())
        .unwrap();
    let flipped = |at: usize| {
        let mut flipped = sound.clone();
        flipped[at] ^= 1;
        flipped
    };
    let cut = sound[..sound.len() / 2].to_vec();
    // In the root, outside of it, a commit that ends early, an empty one.
    for damaged in [flipped(at), flipped(sound.len() - 20), cut, Vec::new()] {
        fs::write(&path, damaged).unwrap();
        let refused = table.merge(world.proposal(&numbered(10..20))).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        assert!(!table.is_lost());
    }
    fs::write(&path, sound).unwrap();
    let merge = world.merge(&mut table, &numbered(10..20)).await;
    assert_eq!((merge.version, merge.accepted), (Version(2), 10));
    drop(table);
    world.sound(2).await;
}
