use std::fs;

use futures_util::TryStreamExt as _;
use serde_json::{Map, Value};
use types::Version;
use types::proof::{BLOCK_BYTES, MAX_WHOLE_BYTES};

use super::damage::large;
use super::fixture::{World, page};
use crate::{Catalog, Error, Policy, Snapshot, log};

/// A table of two large parts.
async fn two_large() -> World {
    let world = World::new();
    let catalog = world.catalog("writer");
    let mut table = world.table(&catalog).await;
    for version in 0..2 {
        world
            .merge(&mut table, &large(version * 300..version * 300 + 300))
            .await;
    }
    world
}

async fn latest(world: &World, catalog: &Catalog) -> Snapshot {
    catalog.snapshot(world.dataset, None).await.unwrap().unwrap()
}

/// Takes from every commit what those of before checksums and block hashes do not have.
fn as_before(world: &World, head: u64) {
    for number in 0..=head {
        let path = world.commit_file(number);
        let text = fs::read_to_string(&path).unwrap();
        let (_, rest) = text.split_once(r#"","timestamp":"#).unwrap();
        let mut text = format!(r#"{{"commitInfo":{{"timestamp":{rest}"#);
        while let Some(at) = text.find(r#","blocks":""#) {
            let end = at + text[at..].find("\"}").unwrap() + 1;
            text.replace_range(at..end, "");
        }
        fs::write(&path, text).unwrap();
    }
}

/// All rows, where they can be read.
async fn rows(snapshot: &Snapshot) -> Result<Vec<Map<String, Value>>, Error> {
    snapshot.page(0, 600).await?;
    Ok(page(snapshot, 0, 600).await)
}

#[tokio::test]
async fn a_commit_names_the_hashes_of_its_large_part_and_no_others() {
    let world = World::new();
    let catalog = world.catalog("writer").with_compaction(Policy::new(2, 1 << 30));
    let mut table = world.table(&catalog).await;
    for (version, count) in [(0, 300), (1, 10)] {
        world
            .merge(&mut table, &large(version * 300..version * 300 + count))
            .await;
    }
    let built = table.compaction().unwrap().build().await.unwrap();
    assert!(table.install_compaction(built).await.unwrap());
    for (number, has) in [(1, true), (2, false), (3, true)] {
        let text = fs::read_to_string(world.commit_file(number)).unwrap();
        assert_eq!(text.contains(r#""blocks":""#), has, "{number}");
    }
    assert_eq!(world.check().await.violations, []);
}

#[tokio::test]
async fn a_wrong_bit_of_a_large_part_is_never_read_whether_its_commit_names_hashes_or_not() {
    for before in [false, true] {
        let world = two_large().await;
        if before {
            as_before(&world, 2);
        }
        let path = world.file(&world.parts()[1]);
        let sound = fs::read(&path).unwrap();
        assert!(sound.len() as u64 > MAX_WHOLE_BYTES);
        let running = latest(&world, &world.catalog("running")).await;
        let expected = rows(&running).await.unwrap();
        let step = sound.len() / 23;
        for (turn, at) in (0..sound.len()).step_by(step).enumerate() {
            let mut flipped = sound.clone();
            flipped[at] ^= 1 << (turn % 8);
            fs::write(&path, &flipped).unwrap();
            let fresh = latest(&world, &world.catalog(&format!("fresh-{turn}"))).await;
            for snapshot in [&running, &fresh] {
                match rows(snapshot).await {
                    Ok(found) => assert!(found == expected, "byte {at}"),
                    Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error:?}"),
                }
                // The rows of the other part are served, wherever the bit is.
                assert_eq!(page(snapshot, 0, 10).await, expected[..10]);
            }
        }
        fs::write(&path, &sound).unwrap();
        assert!(rows(&running).await.unwrap() == expected);
    }
}

#[tokio::test]
async fn a_key_with_a_wrong_bit_is_not_taken_into_the_index() {
    let world = two_large().await;
    let part = world.file(&world.parts()[0]);
    let bytes = fs::read(&part).unwrap();
    let key = *types::Batch::decode(&world.contract, &large(5..6)).keys()[0].as_bytes();
    let at = bytes.windows(16).position(|window| *window == key).unwrap();
    let mut flipped = bytes.clone();
    flipped[at] ^= 4;
    fs::write(&part, flipped).unwrap();
    let opened = world.catalog("fresh").table(world.dataset, &world.contract).await;
    assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    fs::write(&part, bytes).unwrap();
    world
        .catalog("again")
        .table(world.dataset, &world.contract)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_download_has_no_wrong_bit() {
    let world = two_large().await;
    let catalog = world.catalog("reader");
    let part = latest(&world, &catalog).await.parts()[0].clone();
    let path = world.file(&part.name());
    let sound = fs::read(&path).unwrap();
    let mut flipped = sound.clone();
    flipped[usize::try_from(3 * BLOCK_BYTES).unwrap()] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let read = async |range| {
        let stream = catalog.part_bytes(world.dataset, &part, range).await?;
        Ok::<_, Error>(stream.try_collect::<Vec<_>>().await?.concat())
    };
    assert!(matches!(read(0..part.bytes).await, Err(Error::Corrupt { .. })));
    assert!(matches!(
        read(3 * BLOCK_BYTES + 9..3 * BLOCK_BYTES + 10).await,
        Err(Error::Corrupt { .. })
    ));
    let within = |range: std::ops::Range<u64>| {
        sound[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec()
    };
    for range in [0..3 * BLOCK_BYTES, 4 * BLOCK_BYTES..part.bytes, 7..8] {
        assert_eq!(read(range.clone()).await.unwrap(), within(range));
    }
}

#[tokio::test]
async fn the_hashes_of_a_part_are_got_once() {
    for (before, most) in [(false, 1), (true, 2)] {
        let world = two_large().await;
        if before {
            as_before(&world, 2);
        }
        let snapshot = latest(&world, &world.catalog("reader")).await;
        let gets = async |offset| {
            let start = world.counting.counts().gets;
            assert_eq!(page(&snapshot, offset, 1).await.len(), 1);
            world.counting.counts().gets - start
        };
        let (first, second) = (gets(0).await, gets(0).await);
        assert!(first <= second + most + 2, "{first} {second}");
        assert_eq!(second, gets(0).await);
    }
}

#[tokio::test]
async fn a_commit_with_a_wrong_bit_is_named_and_nothing_is_read_by_it() {
    let world = two_large().await;
    for number in 0..=2 {
        let path = world.commit_file(number);
        let sound = fs::read(&path).unwrap();
        for at in (0..sound.len()).step_by(97) {
            let mut flipped = sound.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, flipped).unwrap();
            let opened = world.catalog("reader").snapshot(world.dataset, Some(Version(2))).await;
            let Err(Error::Corrupt { path, .. }) = opened else {
                panic!("byte {at} of commit {number}: {opened:?}")
            };
            assert_eq!(path, log::path(world.dataset, number).to_string());
        }
        assert!(!world.check().await.violations.is_empty());
        fs::write(&path, sound).unwrap();
    }
    assert_eq!(world.check().await.violations, []);
}
