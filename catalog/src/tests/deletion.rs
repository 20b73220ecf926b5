use std::fs;

use serde_json::json;
use types::{Batch, Version};

use super::fixture::{World, names, numbered};
use crate::{Catalog, Error, Policy, check};

impl World {
    /// Names of all files below the table's directory.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut directories = vec![self.file("")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let name = path.strip_prefix(self.file("")).unwrap();
                    files.push(name.to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }

    /// Checks that nothing is left of the table but these two commits, and that the check finds no fault in them.
    async fn is_deleted(&self, last: u64) {
        let commits = [0, last].map(|number| format!("_delta_log/{number:020}.json"));
        assert_eq!(self.files(), commits);
        let report = self.check().await;
        assert_eq!(
            report,
            check::Report {
                was_deleted: true,
                ..check::Report::default()
            }
        );
    }
}

fn deleted<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Deleted { .. }), "{error:?}");
}

#[tokio::test]
async fn two_commits_stay_of_a_deleted_table_and_nobody_reads_it() {
    let world = World::new();
    let writer = world.catalog("writer");
    let mut table = world.table(&writer).await;
    for version in 0..3 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    table.close().await;
    let replica = world.catalog("replica");
    assert_eq!(names(&replica, world.dataset, 3).await.len(), 6);
    let held = replica.snapshot(world.dataset, None).await.unwrap().unwrap();

    let service = world.catalog("service");
    assert!(service.delete_table(world.dataset).await.unwrap());
    world.is_deleted(4).await;
    for catalog in [&service, &writer, &world.catalog("new")] {
        // Readers look at the last commit once a second, and for new commits each time.
        deleted(catalog.known(world.dataset).await);
        deleted(catalog.snapshot(world.dataset, None).await);
        deleted(catalog.table(world.dataset, &world.contract).await.map(drop));
    }
    // What is read of an older state fails as a deletion, and not as damage.
    deleted(held.page(0, 10).await);
    deleted(held.merge().await);
    // Again, it changes nothing.
    assert!(service.delete_table(world.dataset).await.unwrap());
    world.is_deleted(4).await;
}

#[tokio::test]
async fn a_dataset_without_a_table_gets_none_any_more() {
    let world = World::new();
    let service = world.catalog("service");
    let writer = world.catalog("writer");
    let mut table = world.table(&writer).await;
    assert!(service.delete_table(world.dataset).await.unwrap());
    assert_eq!(world.files(), ["_delta_log/00000000000000000000.json"]);
    deleted(table.merge(world.proposal(&numbered(0..2))).await);
    deleted(writer.table(world.dataset, &world.contract).await.map(drop));
    assert!(world.check().await.was_deleted);
    assert_eq!(world.files(), ["_delta_log/00000000000000000000.json"]);
}

#[tokio::test]
async fn a_writer_that_wants_the_next_commit_finds_the_last_one() {
    let world = World::new();
    let writer = world.catalog("writer");
    let mut table = world.table(&writer).await;
    world.merge(&mut table, &numbered(0..2)).await;
    let service = world.catalog("service");
    assert!(service.delete_table(world.dataset).await.unwrap());
    // The table's state has the version still.
    assert_eq!(table.head(), Version(1));
    deleted(table.merge(world.proposal(&numbered(2..4))).await);
    deleted(table.confirm().await);
    assert!(table.is_lost());
    table.close().await;
    // Nothing is left of the merge that came too late.
    world.is_deleted(2).await;
}

#[tokio::test]
async fn a_writer_that_knows_an_older_version_brings_nothing_back() {
    let world = World::new();
    let [late, other] = ["late", "other"].map(|process| world.catalog(process));
    let mut behind = world.table(&late).await;
    world.merge(&mut behind, &numbered(0..2)).await;
    let mut ahead = world.table(&other).await;
    for version in 1..4 {
        world.merge(&mut ahead, &numbered(version * 2..version * 2 + 2)).await;
    }
    let service = world.catalog("service");
    assert!(service.delete_table(world.dataset).await.unwrap());
    // Its last commit is gone, so it looks at commit 0.
    deleted(behind.merge(world.proposal(&numbered(20..22))).await);
    assert!(service.delete_table(world.dataset).await.unwrap());
    world.is_deleted(5).await;
}

#[tokio::test]
async fn a_table_with_an_upload_and_compactions_goes_as_a_whole() {
    let world = World::new();
    let writer = world.catalog("writer").with_compaction(Policy::new(2, 1 << 30));
    let mut table = world.table(&writer).await;
    for version in 0..4 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    let built = table.compaction().unwrap().build().await.unwrap();
    assert!(world.catalog("service").delete_table(world.dataset).await.unwrap());
    // Its inputs are gone, and so is the number that it wants.
    deleted(table.install_compaction(built).await);
    assert!(world.catalog("again").delete_table(world.dataset).await.unwrap());
    world.is_deleted(5).await;
}

#[tokio::test]
async fn a_damaged_table_can_be_deleted() {
    let world = World::new();
    let mut table = world.table(&world.catalog("writer")).await;
    for version in 0..3 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    table.close().await;
    fs::write(world.commit_file(3), b"").unwrap();
    fs::remove_file(world.commit_file(1)).unwrap();
    assert!(world.catalog("service").delete_table(world.dataset).await.unwrap());
    world.is_deleted(4).await;
}

#[tokio::test]
async fn a_reader_between_the_two_commits_and_behind_them_learns_of_the_deletion() {
    let world = World::new();
    let mut table = world.table(&world.catalog("writer")).await;
    for version in 0..3 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    let first = fs::read(world.commit_file(0)).unwrap();
    let second = fs::read(world.commit_file(1)).unwrap();
    assert!(world.catalog("service").delete_table(world.dataset).await.unwrap());
    // As after a crash behind the last commit: commit 0 and a part of the log are as before.
    let end = fs::read(world.commit_file(0)).unwrap();
    fs::write(world.commit_file(0), first).unwrap();
    fs::write(world.commit_file(1), &second).unwrap();
    fs::write(world.commit_file(2), fs::read(world.commit_file(4)).unwrap()).unwrap();
    deleted(world.catalog("between").snapshot(world.dataset, None).await);
    // As in the midst of the removal: some commits are gone, and commit 0 says why.
    fs::write(world.commit_file(0), end).unwrap();
    deleted(world.catalog("behind").snapshot(world.dataset, None).await);
    deleted(
        world
            .catalog("writer again")
            .table(world.dataset, &world.contract)
            .await
            .map(drop),
    );
}

#[tokio::test]
async fn no_commit_of_another_table_ends_this_one() {
    let world = World::new();
    let other = World::of(&world, 2);
    let mut table = world.table(&world.catalog("writer")).await;
    world.merge(&mut table, &numbered(0..2)).await;
    let service = world.catalog("service");
    assert!(service.delete_table(other.dataset).await.unwrap());
    fs::copy(other.commit_file(0), world.commit_file(0)).unwrap();
    let error = world.catalog("reader").snapshot(world.dataset, None).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn many_objects_take_several_calls() {
    let world = World::new();
    let mut table = world.table(&world.catalog("writer")).await;
    world.merge(&mut table, &numbered(0..2)).await;
    for number in 0..1_500 {
        fs::write(world.file(&format!("part-{number:020}-left.parquet")), b"x").unwrap();
    }
    let service = world.catalog("service");
    assert!(!service.delete_table(world.dataset).await.unwrap());
    assert!(service.delete_table(world.dataset).await.unwrap());
    world.is_deleted(2).await;
}

/// Stores the keys of a table in the index of this process.
async fn with_stored_keys(world: &World, catalog: &Catalog) {
    let mut table = world.table(catalog).await;
    world.merge(&mut table, &numbered(0..5_000)).await;
    table.close().await;
    assert!(catalog.key_store().stored(world.dataset).unwrap().is_some());
}

#[tokio::test]
async fn a_process_forgets_the_keys_of_tables_that_others_deleted() {
    let world = World::new();
    let other = World::of(&world, 2);
    let writer = world.catalog("writer");
    with_stored_keys(&world, &writer).await;
    with_stored_keys(&other, &writer).await;
    assert_eq!(writer.forget_deleted_tables().await.unwrap(), 0);
    assert!(world.catalog("service").delete_table(world.dataset).await.unwrap());
    assert_eq!(writer.forget_deleted_tables().await.unwrap(), 1);
    assert_eq!(writer.key_store().stored(world.dataset).unwrap(), None);
    assert!(writer.key_store().stored(other.dataset).unwrap().is_some());
    assert_eq!(names(&writer, other.dataset, 1).await.len(), 5_000);
}

#[tokio::test]
async fn an_upload_that_was_staged_before_ends_at_the_deleted_table() {
    let world = World::new();
    let writer = world.catalog("writer");
    let mut table = world.table(&writer).await;
    world.merge(&mut table, &numbered(0..2)).await;
    let proposal = world.proposal(&[]);
    let stagers = table.stagers();
    let mut stager = stagers.stage(proposal.contribution, proposal.agent, 0).await.unwrap();
    stager.push(&Batch::decode(&world.contract, &numbered(2..400))).unwrap();
    let mut staged = stager.finish().unwrap();
    assert!(world.catalog("service").delete_table(world.dataset).await.unwrap());
    deleted(table.commit(&mut staged, proposal.at, |_| json!({})).await);
    drop((staged, table));
    assert!(world.catalog("again").delete_table(world.dataset).await.unwrap());
    world.is_deleted(2).await;
}
