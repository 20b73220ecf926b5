use std::fs;

use serde_json::{Value, json};
use types::{Batch, Classify as _, ContributionId, Retry, Timestamp, Version};

use super::fixture::{World, names, numbered, page};
use crate::{Error, Policy, log};

/// A table of three versions, closed.
async fn three_versions() -> World {
    let world = World::new();
    let catalog = world.catalog("writer");
    let mut table = world.table(&catalog).await;
    for version in 0..3 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    world
}

fn rules(report: &crate::check::Report) -> Vec<&'static str> {
    let mut rules: Vec<_> = report.violations.iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[tokio::test]
async fn a_commit_that_is_not_whole_is_named_and_never_served() {
    for number in [0, 2, 3] {
        let world = three_versions().await;
        let path = world.commit_file(number);
        let bytes = fs::read(&path).unwrap();
        let half = &bytes[..bytes.len() / 2];
        let first_line = &bytes[..=bytes.iter().position(|&byte| byte == b'\n').unwrap()];
        for damaged in [&b""[..], b"\n", b"{}\n", half, first_line] {
            fs::write(&path, damaged).unwrap();
            let catalog = world.catalog("reader");
            let error = catalog.snapshot(world.dataset, None).await.unwrap_err();
            let Error::Corrupt { path, .. } = &error else {
                panic!("{error:?}")
            };
            assert!(path.ends_with(&format!("{number:020}.json")), "{path}");
            assert_eq!(error.retry(), Retry::Backoff);
            assert!(catalog.table(world.dataset, &world.contract).await.is_err());
            assert!(!world.check().await.violations.is_empty());
        }
        // Repaired, the table is served without a restart.
        let catalog = world.catalog("again");
        catalog.snapshot(world.dataset, None).await.unwrap_err();
        fs::write(&path, bytes).unwrap();
        assert_eq!(names(&catalog, world.dataset, 3).await.len(), 6);
    }
}

#[tokio::test]
async fn an_owner_does_not_step_over_an_empty_commit() {
    let world = three_versions().await;
    let catalog = world.catalog("owner");
    let mut table = world.table(&catalog).await;
    fs::write(world.commit_file(4), b"").unwrap();
    let error = table.merge(world.proposal(&numbered(10..12))).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert_eq!(rules(&world.check().await), ["commit_empty"]);
}

#[tokio::test]
async fn a_missing_commit_is_a_gap() {
    let world = three_versions().await;
    fs::remove_file(world.commit_file(2)).unwrap();
    let error = world.catalog("reader").snapshot(world.dataset, None).await.unwrap_err();
    assert!(
        matches!(&error, Error::Gap { path } if path.contains("0002.json")),
        "{error:?}"
    );
    assert!(rules(&world.check().await).contains(&"commit_gap"));
}

#[tokio::test]
async fn a_commit_that_names_another_contribution_is_no_answer_for_the_first() {
    let world = World::new();
    let catalog = world.catalog("owner");
    let mut table = world.table(&catalog).await;
    let first = world.merge(&mut table, &numbered(0..2)).await;
    world.merge(&mut table, &numbered(2..4)).await;
    assert_eq!(table.find(first.contribution).await.unwrap(), Some(first.clone()));
    // As sound as the commit before, and of another contribution.
    let (path, other) = (world.commit_file(1), ContributionId::new(Timestamp::from_micros(9)));
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace(&first.contribution.to_string(), &other.to_string());
    fs::write(&path, log::seal::sealed(&text)).unwrap();
    let error = table.find(first.contribution).await.unwrap_err();
    assert!(
        matches!(&error, Error::Gap { path } if path.contains("0001.json")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_part_that_is_not_what_was_committed_is_never_served() {
    let world = three_versions().await;
    let part = world.file(&world.parts()[1]);
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&part, &bytes).unwrap();
    let catalog = world.catalog("reader");
    let snapshot = catalog
        .snapshot(world.dataset, Some(Version(3)))
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(snapshot.page(0, 6).await, Err(Error::Corrupt { .. })));
    assert!(rules(&world.check().await).contains(&"part_hash"));
    // What does not need it is served.
    assert_eq!(snapshot.page(0, 2).await.unwrap().len(), 1);

    bytes[middle] ^= 1;
    for damaged in [&b""[..], &bytes[..middle], &[&bytes[..], b"x"].concat()] {
        fs::write(&part, damaged).unwrap();
        assert!(
            matches!(snapshot.page(2, 1).await, Err(Error::Corrupt { .. })),
            "{}",
            damaged.len()
        );
    }
    fs::remove_file(&part).unwrap();
    assert!(matches!(snapshot.page(2, 1).await, Err(Error::Corrupt { .. })));
    assert!(rules(&world.check().await).contains(&"part_missing"));
}

#[tokio::test]
async fn a_derived_file_that_is_damaged_or_foreign_is_ignored() {
    let world = World::new();
    let catalog = world.catalog("writer");
    let mut table = world.table(&catalog).await;
    for version in 0..280 {
        world.merge(&mut table, &numbered(version..version + 1)).await;
    }
    table.close().await;
    let derived = world.file("_sluice/timeline");
    let good = fs::read(&derived).unwrap();

    let before = world.counting.counts().gets;
    assert_eq!(names(&world.catalog("reader"), world.dataset, 1).await, ["n0"]);
    let opened = world.counting.counts().gets - before;
    assert!(opened < 10, "{opened} objects read to open a table with a derived file");

    let mut flipped = good.clone();
    flipped[100] ^= 1;
    for damaged in [&good[..good.len() - 1], b"", &flipped] {
        fs::write(&derived, damaged).unwrap();
        assert_eq!(names(&world.catalog("reader"), world.dataset, 260).await.len(), 260);
    }
    // Of another history: its last commit is not the one in the log.
    fs::write(&derived, &good).unwrap();
    for number in 250..=280 {
        fs::remove_file(world.commit_file(number)).unwrap();
    }
    let snapshot = world
        .catalog("reader")
        .snapshot(world.dataset, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.version(), Version(249));
}

/// Records of texts that no codec makes much of: more than two hundred of them are a part that is read by ranges.
pub(super) fn large(numbers: std::ops::Range<u64>) -> Vec<Value> {
    let text = |number: u64| {
        let mut bytes = [0; 3_000];
        blake3::Hasher::new()
            .update(&number.to_le_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        data_encoding::BASE64.encode(&bytes)
    };
    numbers
        .map(|number| json!({"name": text(number), "count": number}))
        .collect()
}

#[tokio::test]
async fn a_large_part_with_a_wrong_bit_is_not_compacted_until_it_is_restored() {
    let world = World::new();
    let catalog = world.catalog("owner").with_compaction(Policy::new(2, 1 << 30));
    let mut table = world.table(&catalog).await;
    for version in 0..2 {
        world
            .merge(&mut table, &large(version * 300..version * 300 + 300))
            .await;
    }
    let key = *Batch::decode(&world.contract, &large(0..1)).keys()[0].as_bytes();
    let file = |part: &String| (world.file(part), fs::read(world.file(part)).unwrap());
    let holds = |bytes: &[u8]| bytes.windows(16).position(|window| *window == key);
    let parts = world.parts();
    let mut files = parts.iter().map(file);
    let (path, mut bytes, at) = files
        .find_map(|(path, bytes)| holds(&bytes).map(|at| (path, bytes, at)))
        .unwrap();
    assert!(bytes.len() > 512 << 10, "{} bytes", bytes.len());
    // Keys are as they are in the file, and no reader would see that one is another.
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let built = table.compaction().unwrap().build().await;
    assert!(matches!(built, Err(Error::Corrupt { .. })), "{built:?}");
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let built = table.compaction().unwrap().build().await.unwrap();
    assert!(table.install_compaction(built).await.unwrap());
    world.sound(2).await;
}

#[tokio::test]
async fn a_large_part_that_was_another_is_read_once_it_is_restored() {
    let (world, other) = (World::new(), World::new());
    for (world, rows) in [(&world, 300), (&other, 290)] {
        let catalog = world.catalog("owner");
        let mut table = world.table(&catalog).await;
        world.merge(&mut table, &large(0..rows)).await;
    }
    let path = world.file(&world.parts()[0]);
    let sound = fs::read(&path).unwrap();
    let mut another = fs::read(other.file(&other.parts()[0])).unwrap();
    // As long as the part: what is between the pages and the footer is nobody's.
    let end = another.len() - 8;
    let footer = u32::from_le_bytes(another[end..end + 4].try_into().unwrap());
    let place = end - usize::try_from(footer).unwrap();
    another.splice(place..place, vec![0; sound.len() - another.len()]);
    fs::write(&path, &another).unwrap();
    let catalog = world.catalog("reader");
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert!(matches!(snapshot.page(0, 1).await, Err(Error::Corrupt { .. })));
    fs::write(&path, &sound).unwrap();
    assert_eq!(page(&snapshot, 299, 1).await[0]["count"], 299);
}
