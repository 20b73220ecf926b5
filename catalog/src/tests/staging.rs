//! Uploads: staged beside the table, merged in one step.

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use types::{AgentId, Batch, Classify as _, ContributionId, Retry, Timestamp, Version};

use super::fixture::{World, merged, numbered};
use crate::prepare::{PreparedContent, PreparedRows, UploadedRows};
use crate::{Catalog, Columns, CommitOutcome, Error, LateDuplicates, Policy, PreparedVersion, Reserve, Stager, Table};

fn contribution(number: i64) -> ContributionId {
    ContributionId::new(Timestamp::from_micros(number))
}

async fn stager(table: &Table, id: ContributionId) -> Stager {
    let agent = AgentId::new(Timestamp::from_micros(3));
    table.stagers().stage(id, agent, 0).await.unwrap()
}

/// Stages records in batches of 7 as parts of about 20 rows.
async fn stage(world: &World, table: &Table, id: ContributionId, records: &[Value]) -> (PreparedVersion, usize) {
    let mut stager = stager(table, id).await.with_part_rows(20);
    let mut duplicates = 0;
    for records in records.chunks(7) {
        let keep = stager.push(&Batch::decode(&world.contract, records)).unwrap();
        duplicates += keep.iter().filter(|keep| !**keep).count();
    }
    (stager.finish().unwrap(), duplicates)
}

async fn merge(table: &mut Table, staged: &mut PreparedVersion) -> CommitOutcome {
    let at = Timestamp::from_micros(1_700_000_000_123_456);
    let notes = |late: &LateDuplicates| match late {
        LateDuplicates::Count(late) => json!({ "late": late }),
        LateDuplicates::Rows(_) => panic!("the rows of an upload are not named"),
    };
    table.commit(staged, at, notes).await.unwrap()
}

fn files(staged: &mut PreparedVersion) -> &mut UploadedRows {
    match &mut staged.body {
        PreparedRows::Files(files) => files,
        PreparedRows::Memory(_) => panic!("an upload is in files"),
    }
}

async fn records(catalog: &Catalog, world: &World, version: u64) -> Vec<String> {
    super::fixture::names(catalog, world.dataset, version).await
}

#[tokio::test]
async fn an_upload_is_the_version_that_a_batch_of_its_rows_is() {
    let mut rich = numbered(0..150);
    rich.push(
        json!({"name": "x", "ratio": 0.5, "ok": true, "at": "2026-11-21T07:00:00.25Z", "more": {"a": [1]}, "e": 1}),
    );
    rich.push(json!({"name": "é \"", "count": -7, "more": null}));
    let (small, large) = (World::new(), World::new());
    let (first, second) = (small.catalog("a"), large.catalog("a"));
    let mut contributed = small.table(&first).await;
    let expected = small.merge(&mut contributed, &rich).await;
    let expected = (expected.root, expected.accepted, expected.record_count);

    let mut table = large.table(&second).await;
    let twice: Vec<Value> = rich.iter().chain(&rich[40..90]).cloned().collect();
    let (mut staged, duplicates) = stage(&large, &table, contribution(9), &twice).await;
    let rows: u64 = files(&mut staged).parts().map(|part| part.info.rows).sum();
    assert_eq!((rows, duplicates), (152, 50));
    let merge = merged(merge(&mut table, &mut staged).await);
    assert_eq!((merge.root, merge.accepted, merge.record_count), expected);
    assert_eq!(merge.notes, json!({"late": 0}));
    large.sound(1).await;
    assert_eq!(large.parts().len(), 8);
    assert_eq!(records(&second, &large, 1).await, records(&first, &small, 1).await);
    // Another process reads the same, and so does one that starts from the derived file.
    table.close().await;
    assert_eq!(records(&large.catalog("b"), &large, 1).await.len(), 152);
}

#[tokio::test]
async fn what_was_merged_meanwhile_is_left_out_and_the_rest_moves_on() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(500..510)).await;
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(0..100)).await;
    // Two versions come between: one with two records of the upload, one with none.
    world
        .merge(
            &mut table,
            &[numbered(30..31), numbered(70..71), numbered(600..601)].concat(),
        )
        .await;
    world.merge(&mut table, &numbered(700..702)).await;
    let merge = merged(merge(&mut table, &mut staged).await);
    assert_eq!(
        (merge.version, merge.accepted, merge.record_count),
        (Version(4), 98, 113)
    );
    assert_eq!(merge.notes, json!({"late": 2}));
    let report = world.sound(4).await;
    assert_eq!(report.orphans, [""; 0]);
    // The keys of the upload are known: the same records again are nothing new.
    let again = table.merge(world.proposal(&numbered(0..100))).await.unwrap();
    assert!(matches!(again, CommitOutcome::NothingNew(_)), "{again:?}");
    world.merge(&mut table, &numbered(800..801)).await;
    world.sound(5).await;
}

#[tokio::test]
async fn a_key_without_a_row_is_noted_once_and_no_key_of_the_table() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    let mut stager = stager(&table, contribution(9)).await;
    stager.push(&Batch::decode(&world.contract, &numbered(0..3))).unwrap();
    let keys = |numbers| Batch::decode(&world.contract, &numbered(numbers)).keys().to_vec();
    let noted: Vec<bool> = [keys(2..5), keys(3..4)]
        .concat()
        .into_iter()
        .map(|key| stager.note(key).unwrap())
        .collect();
    assert_eq!(noted, [false, true, true, false]);
    let mut staged = stager.finish().unwrap();
    let merge = merged(merge(&mut table, &mut staged).await);
    assert_eq!((merge.accepted, merge.record_count), (3, 3));
    // The record whose key was noted is new when it comes to be merged.
    assert_eq!(world.merge(&mut table, &numbered(0..5)).await.accepted, 2);
    world.sound(2).await;
}

/// Each time that its commit is put too late, others may have brought more of its rows.
#[tokio::test]
async fn rows_are_left_out_as_often_as_it_takes() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(0..100)).await;
    for number in [30, 70, 99] {
        let row = Batch::decode(&world.contract, &numbered(number..number + 1));
        files(&mut staged).leave_out(row.keys().to_vec()).unwrap();
    }
    let merge = merged(merge(&mut table, &mut staged).await);
    assert_eq!((merge.accepted, merge.notes), (97, json!({"late": 3})));
    world.sound(1).await;
    assert_eq!(records(&catalog, &world, 1).await.len(), 97);
}

#[tokio::test]
async fn an_upload_whose_rows_others_brought_becomes_nothing() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(0..10)).await;
    world.merge(&mut table, &numbered(0..10)).await;
    assert_eq!(
        merge(&mut table, &mut staged).await,
        CommitOutcome::NothingNew(LateDuplicates::Count(10))
    );
    world.sound(1).await;
}

#[tokio::test]
async fn an_upload_that_is_already_committed_is_not_merged_again() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(0..50)).await;
    let (mut again, _) = stage(&world, &table, staged.contribution(), &numbered(0..50)).await;
    let first = merged(merge(&mut table, &mut staged).await);
    match merge(&mut table, &mut again).await {
        CommitOutcome::AlreadyCommitted(merge) => assert_eq!(merge, first),
        other => panic!("{other:?}"),
    }
    world.sound(1).await;
}

#[tokio::test]
async fn of_two_owners_that_race_the_second_takes_the_next_version() {
    let world = World::new();
    let (first, second) = (world.catalog("a"), world.catalog("b"));
    let (mut one, mut two) = (world.table(&first).await, world.table(&second).await);
    let (mut staged, _) = stage(&world, &two, contribution(9), &numbered(0..100)).await;
    // The other owner commits, which this one learns only when its own commit is refused.
    world.merge(&mut one, &numbered(50..55)).await;
    let merge = merged(merge(&mut two, &mut staged).await);
    assert_eq!((merge.version, merge.accepted), (Version(2), 95));
    let report = world.sound(2).await;
    assert_eq!(report.orphans, [""; 0]);
}

/// A reader learns of a version that another owner committed before the keys of this one do.
#[tokio::test]
async fn what_another_owner_committed_before_it_was_staged_is_left_out_too() {
    let world = World::new();
    let (first, second) = (world.catalog("a"), world.catalog("b"));
    let (mut one, mut two) = (world.table(&first).await, world.table(&second).await);
    world.merge(&mut one, &numbered(50..55)).await;
    let snapshot = second.snapshot(world.dataset, Some(Version(1))).await.unwrap();
    assert_eq!(snapshot.map(|snapshot| snapshot.record_count()), Some(5));
    // The gate takes out what is known, as it does of every upload.
    let batch = Batch::decode(&world.contract, &numbered(0..100));
    let mut stager = stager(&two, contribution(9)).await;
    let keep: Vec<bool> = stager.known().known(batch.keys()).iter().map(|known| !known).collect();
    stager.push(&batch.filter(&keep).unwrap()).unwrap();
    let merge = merged(merge(&mut two, &mut stager.finish().unwrap()).await);
    assert_eq!((merge.version, merge.accepted), (Version(2), 95));
    world.sound(2).await;
}

/// Stored keys that cannot be read tell nothing, so nothing may be concluded from them.
#[tokio::test]
async fn an_upload_that_could_not_be_held_against_the_keys_is_staged_again() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..10)).await;
    let given_up = stager(&table, contribution(9)).await;
    catalog.give_up_keys(world.dataset).await;
    let batch = Batch::decode(&world.contract, &numbered(5..15));
    given_up.known().known(batch.keys());
    let error = given_up.finish().unwrap_err();
    assert!(matches!(error, Error::KeysGivenUp { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Backoff);
    let again = stager(&table, contribution(9)).await;
    let known = again.known().known(batch.keys());
    assert_eq!(known, [[true; 5], [false; 5]].concat());
    again.finish().unwrap();
}

#[tokio::test]
async fn parts_that_a_crash_left_are_taken_as_they_are() {
    let world = World::new();
    let catalog = world.catalog("a");
    let table = world.table(&catalog).await;
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(0..60)).await;
    // As if the process had died after it gave the parts their names.
    for part in files(&mut staged).parts() {
        let PreparedContent::File(file) = part.content else {
            panic!("an upload is in files")
        };
        let target = world.file(&part.info.name());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(file, target).unwrap();
    }
    let id = staged.contribution();
    drop((staged, table));
    let mut table = world.table(&catalog).await;
    let (mut staged, _) = stage(&world, &table, id, &numbered(0..60)).await;
    merged(merge(&mut table, &mut staged).await);
    assert_eq!(world.sound(1).await.orphans, [""; 0]);
}

#[tokio::test]
async fn what_was_staged_is_gone_with_its_handle() {
    let world = World::new();
    let catalog = world.catalog("a");
    let table = world.table(&catalog).await;
    let (staged, _) = stage(&world, &table, contribution(9), &numbered(0..60)).await;
    let folder = world.index_directory("a").join("staged");
    assert_eq!(folder.read_dir().unwrap().count(), 1);
    drop(staged);
    assert_eq!(folder.read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn a_table_is_compacted_around_an_upload_and_every_version_stays_as_it_was() {
    let world = World::new();
    let catalog = world.catalog("a").with_compaction(Policy::new(2, 1 << 30));
    let mut table = world.table(&catalog).await;
    for number in 0..5 {
        world.merge(&mut table, &numbered(number..number + 1)).await;
    }
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(100..200)).await;
    // Another owner compacts meanwhile: a commit, and no version, comes before that of the upload.
    let second = world.catalog("b").with_compaction(Policy::new(2, 1 << 30));
    let mut other = world.table(&second).await;
    let built = other.compaction().unwrap().build().await.unwrap();
    assert!(other.install_compaction(built).await.unwrap());
    let merge = merged(merge(&mut table, &mut staged).await);
    assert_eq!((merge.version, merge.record_count), (Version(6), 105));
    for number in 5..9 {
        world.merge(&mut table, &numbered(number..number + 1)).await;
    }
    let mut before = Vec::new();
    for version in 1..=10 {
        before.push(records(&catalog, &world, version).await);
    }
    let mut compactions = 0;
    while let Some(compaction) = table.compaction() {
        let built = compaction.build().await.unwrap();
        assert!(table.install_compaction(built).await.unwrap());
        compactions += 1;
    }
    assert!(compactions > 3, "{compactions}");
    let latest = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    let layout: Vec<_> = latest
        .parts()
        .iter()
        .map(|part| (part.first_version().0, part.version.0, part.index))
        .collect();
    let upload = [0, 1, 2, 3, 4].map(|index| (6, 6, index));
    assert_eq!(layout, [&[(1, 5, 0)], &upload[..], &[(7, 10, 0)]].concat());
    // So does one read it that knows nothing, and one that starts from the derived file.
    let fresh = world.catalog("c");
    table.close().await;
    let derived = world.catalog("d");
    for (version, before) in (1..).zip(&before) {
        for catalog in [&catalog, &fresh, &derived] {
            assert_eq!(records(catalog, &world, version).await, *before, "{version}");
        }
    }
    assert_eq!(world.sound(10).await.orphans, [""; 0]);
}

#[tokio::test]
async fn rows_that_repeat_a_long_text_are_read_a_few_at_a_time() {
    let world = World::new();
    let catalog = world.catalog("a").with_compaction(Policy::new(2, 1 << 30));
    let mut table = world.table(&catalog).await;
    let text = "river stone level gauge ".repeat(10_000);
    let rows = |range: std::ops::Range<u32>| -> Vec<Value> {
        let row = |number: u32| json!({"name": format!("{number}"), "more": text});
        range.map(row).collect()
    };
    let (mut staged, _) = stage(&world, &table, contribution(9), &rows(0..200)).await;
    let one = Batch::decode(&world.contract, &rows(7..8));
    files(&mut staged).leave_out(one.keys().to_vec()).unwrap();
    merged(merge(&mut table, &mut staged).await);
    world.merge(&mut table, &rows(200..210)).await;
    let built = table.compaction().unwrap().build().await.unwrap();
    assert!(table.install_compaction(built).await.unwrap());
    for version in [1, 2] {
        let snapshot = catalog
            .snapshot(world.dataset, Some(Version(version)))
            .await
            .unwrap()
            .unwrap();
        // A file of few bytes, and records of many.
        assert!(snapshot.bytes() < 10 * text.len() as u64, "{}", snapshot.bytes());
        let batches: Vec<_> = snapshot
            .stream(Columns::Records, 0..u64::MAX)
            .try_collect()
            .await
            .unwrap();
        assert!(batches.len() > 2);
        assert!(batches.iter().all(|batch| batch.num_rows() * text.len() <= 17 << 20));
        let expected: Vec<String> = (0..if version == 1 { 200 } else { 210 })
            .filter(|number| *number != 7)
            .map(|number| number.to_string())
            .collect();
        assert_eq!(records(&catalog, &world, version).await, expected);
    }
}

#[tokio::test]
async fn what_would_take_of_the_reserve_of_the_disk_is_not_written_yet() {
    let world = World::new();
    let catalog = world.catalog("a").with_compaction(Policy::new(2, 1 << 30));
    let mut table = world.table(&catalog).await;
    for number in 0..2 {
        world.merge(&mut table, &numbered(number..number + 1)).await;
    }
    let catalog = catalog.with_reserve(Reserve(u64::MAX));
    let built = table.compaction().unwrap().build().await;
    let agent = AgentId::new(Timestamp::from_micros(3));
    let begun = table.stagers().stage(contribution(9), agent, 0).await;
    for error in [built.err(), begun.err()] {
        let error = error.unwrap();
        assert!(matches!(error, Error::NoRoom { .. }), "{error:?}");
        assert_eq!(error.retry(), Retry::Backoff);
    }
    let catalog = catalog.with_reserve(Reserve::default());
    let built = table.compaction().unwrap().build().await.unwrap();
    assert!(table.install_compaction(built).await.unwrap());
    let (mut staged, _) = stage(&world, &table, contribution(9), &numbered(2..5)).await;
    assert_eq!(merged(merge(&mut table, &mut staged).await).record_count, 5);
    drop(catalog);
}
