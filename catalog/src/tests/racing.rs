use std::collections::HashSet;
use std::sync::Arc;

use types::Version;

use super::fixture::{Proposal, World, merged, names, numbered};
use crate::CommitOutcome;

#[tokio::test]
async fn an_owner_who_fell_behind_reads_what_was_merged_and_drops_its_rows() {
    let world = World::new();
    let (one, two) = (world.catalog("one"), world.catalog("two"));
    let (mut first, mut second) = (world.table(&one).await, world.table(&two).await);
    world.merge(&mut first, &numbered(0..4)).await;
    world.merge(&mut first, &numbered(4..6)).await;
    // The second owner still believes that the table does not exist.
    let merge = merged(second.merge(world.proposal(&numbered(3..8))).await.unwrap());
    assert_eq!(
        (merge.version, merge.accepted, merge.duplicates),
        (Version(3), 2, vec![0, 1, 2])
    );
    let expected: Vec<_> = (0..8).map(|number| format!("n{number}")).collect();
    assert_eq!(names(&one, world.dataset, 3).await, expected);
    assert_eq!(world.sound(3).await.orphans, [""; 0]);
}

#[tokio::test]
async fn an_owner_who_fell_behind_finds_what_the_other_committed() {
    let world = World::new();
    let (one, two) = (world.catalog("one"), world.catalog("two"));
    let (mut first, mut second) = (world.table(&one).await, world.table(&two).await);
    let proposal = world.proposal(&numbered(0..4));
    let merge = merged(first.merge(proposal.clone()).await.unwrap());
    assert_eq!(
        second.merge(proposal).await.unwrap(),
        CommitOutcome::AlreadyCommitted(merge)
    );
    assert_eq!(world.sound(1).await.orphans, [""; 0]);
}

#[tokio::test]
async fn a_reader_finds_a_version_that_another_process_merged() {
    let world = World::new();
    let (writer, reader) = (world.catalog("writer"), world.catalog("reader"));
    let mut table = world.table(&writer).await;
    world.merge(&mut table, &numbered(0..1)).await;
    assert_eq!(names(&reader, world.dataset, 1).await, ["n0"]);
    world.merge(&mut table, &numbered(1..2)).await;
    assert!(
        reader
            .snapshot(world.dataset, Some(Version(3)))
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(names(&reader, world.dataset, 2).await, ["n0", "n1"]);
}

/// Several owners in two processes, every contribution offered to all of them, records overlapping.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn owners_that_race_merge_everything_exactly_once() {
    let world = Arc::new(World::new());
    let proposals: Arc<Vec<Proposal>> = Arc::new(
        (0..24)
            .map(|number| world.proposal(&numbered(number * 3..number * 3 + 5)))
            .collect(),
    );
    let catalogs = [world.catalog("one"), world.catalog("two")];
    let mut owners = tokio::task::JoinSet::new();
    for owner in 0..4 {
        let (world, proposals) = (Arc::clone(&world), Arc::clone(&proposals));
        let catalog = catalogs[owner % 2].clone();
        owners.spawn(async move {
            let mut table = world.table(&catalog).await;
            let mut versions = Vec::new();
            for step in 0..proposals.len() {
                let proposal = &proposals[(step * [1, 5, 7, 11][owner] + owner) % proposals.len()];
                match table.merge(proposal.clone()).await.unwrap() {
                    CommitOutcome::Committed(merge) | CommitOutcome::AlreadyCommitted(merge) => {
                        assert_eq!(merge.contribution, proposal.contribution);
                        versions.push((merge.contribution, merge.version));
                    }
                    CommitOutcome::NothingNew(late) => assert_eq!(late.named().len(), 5),
                }
            }
            versions
        });
    }
    let told: HashSet<_> = owners.join_all().await.into_iter().flatten().collect();
    let head = u64::try_from(told.len()).unwrap();
    let report = world.sound(head).await;
    assert_eq!(report.records, 24 * 3 + 2);
    assert_eq!(report.orphans, [""; 0]);
    for version in &report.versions {
        let named = told
            .iter()
            .find(|(contribution, _)| contribution.to_string() == version.contribution);
        assert_eq!(named.unwrap().1, Version(version.version));
    }
    for catalog in &catalogs {
        let distinct: HashSet<_> = names(catalog, world.dataset, head).await.into_iter().collect();
        assert_eq!(distinct.len(), 74);
    }
}
