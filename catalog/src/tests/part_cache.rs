use std::fs;

use types::{Classify as _, Kind, Version};

use super::fixture::{World, numbered};
use crate::{CacheError, Catalog, HeldParts, PartCache, Snapshot};

/// A table of three versions, a process that reads it, and what its parts take.
async fn scene() -> (World, Catalog, u64) {
    let world = World::new();
    let catalog = world.catalog("writer");
    let mut table = world.table(&catalog).await;
    for version in 0..3 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    let bytes = at(&world, &catalog, 3).await.bytes();
    (world, catalog, bytes)
}

async fn at(world: &World, catalog: &Catalog, version: u64) -> Snapshot {
    catalog
        .snapshot(world.dataset, Some(Version(version)))
        .await
        .unwrap()
        .unwrap()
}

fn files(world: &World) -> usize {
    fs::read_dir(world.index_directory("cache")).unwrap().count()
}

async fn hold(cache: &PartCache, snapshot: &Snapshot) -> Result<HeldParts, CacheError> {
    cache.hold(snapshot.dataset(), &snapshot.parts()).await
}

#[tokio::test]
async fn the_files_of_a_version_are_its_parts_and_are_fetched_once() {
    let (world, catalog, bytes) = scene().await;
    let cache = PartCache::open(&catalog, world.index_directory("cache"), 2 * bytes).unwrap();
    let snapshot = at(&world, &catalog, 2).await;
    let held = hold(&cache, &snapshot).await.unwrap();
    for (part, path) in snapshot.parts().iter().zip(held.paths()) {
        assert_eq!(fs::read(path).unwrap(), fs::read(world.file(&part.name())).unwrap());
    }
    assert_eq!((cache.fetched(), files(&world)), (2, 2));
    let again = at(&world, &catalog, 3).await;
    let both = futures_util::future::join(hold(&cache, &again), hold(&cache, &again)).await;
    assert_eq!(both.0.unwrap().paths(), both.1.unwrap().paths());
    assert_eq!((cache.fetched(), files(&world)), (3, 3));
    // Another process begins with nothing.
    drop(held);
    let cache = PartCache::open(&catalog, world.index_directory("cache"), bytes).unwrap();
    assert_eq!((cache.fetched(), files(&world)), (0, 0));
}

#[tokio::test]
async fn files_make_room_for_others_unless_they_are_in_use() {
    let (world, catalog, bytes) = scene().await;
    let other = World::of(&world, 2);
    let mut table = other.table(&catalog).await;
    other.merge(&mut table, &numbered(100..102)).await;
    let small = at(&other, &catalog, 1).await;
    let cache = PartCache::open(&catalog, world.index_directory("cache"), bytes).unwrap();
    let whole = at(&world, &catalog, 3).await;
    let held = hold(&cache, &whole).await.unwrap();
    let full = hold(&cache, &small).await.unwrap_err();
    assert!(matches!(full, CacheError::Full { room: 0, .. }), "{full:?}");
    assert_eq!(full.kind(), Kind::Unavailable);
    assert!(held.paths().iter().all(|path| path.exists()));
    let paths = held.paths();
    drop(held);
    // The first version is used once more, so the second is the oldest.
    drop(hold(&cache, &at(&world, &catalog, 1).await).await.unwrap());
    drop(hold(&cache, &small).await.unwrap());
    assert!(paths[0].exists() && !paths[1].exists());
    let fetched = cache.fetched();
    drop(hold(&cache, &at(&world, &catalog, 1).await).await.unwrap());
    assert_eq!(cache.fetched(), fetched);
    // What can never fit is told at once.
    let cache = PartCache::open(&catalog, world.index_directory("cache"), bytes - 1).unwrap();
    assert!(matches!(hold(&cache, &whole).await, Err(CacheError::Full { .. })));
    assert_eq!((cache.fetched(), files(&world)), (0, 0));
    // And nothing is taken away for it.
    let there = hold(&cache, &small).await.unwrap().paths();
    assert!(matches!(hold(&cache, &whole).await, Err(CacheError::Full { .. })));
    assert!(there.iter().all(|path| path.exists()));
}

#[tokio::test]
async fn a_part_that_is_not_what_was_committed_is_not_handed_out() {
    let (world, catalog, bytes) = scene().await;
    let cache = PartCache::open(&catalog, world.index_directory("cache"), 2 * bytes).unwrap();
    let snapshot = at(&world, &catalog, 3).await;
    let part = world.file(&snapshot.parts()[1].name());
    let good = fs::read(&part).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    for damaged in [&bad[..], &good[..good.len() - 1]] {
        fs::write(&part, damaged).unwrap();
        let refused = hold(&cache, &snapshot).await.unwrap_err();
        assert!(matches!(refused, CacheError::Part(_)), "{refused:?}");
    }
    fs::write(&part, &good).unwrap();
    let before = cache.fetched();
    let held = hold(&cache, &snapshot).await.unwrap();
    assert_eq!(fs::read(&held.paths()[1]).unwrap(), good);
    // What was fetched whole before it broke off is not fetched again.
    assert_eq!(cache.fetched() - before, 1);
    assert_eq!(files(&world), 3);
}

#[tokio::test]
async fn one_who_goes_away_leaves_nothing_half_fetched() {
    let (world, catalog, bytes) = scene().await;
    let snapshot = at(&world, &catalog, 3).await;
    // At whatever step they go.
    for polls in 0..30 {
        let cache = PartCache::open(&catalog, world.index_directory("cache"), bytes).unwrap();
        let mut given_up = Box::pin(hold(&cache, &snapshot));
        for _ in 0..polls {
            if futures_util::poll!(&mut given_up).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(given_up);
        let held = hold(&cache, &snapshot).await.unwrap();
        for (part, path) in snapshot.parts().iter().zip(held.paths()) {
            assert_eq!(fs::read(path).unwrap(), fs::read(world.file(&part.name())).unwrap());
        }
        assert_eq!(files(&world), 3, "{polls}");
    }
}
