use serde_json::json;
use types::Version;

use super::fixture::{Trouble, Troubled, World, merged, names, numbered, page};
use crate::{CommitOutcome, Error, LateDuplicates};
use std::sync::Arc;

#[tokio::test]
async fn versions_grow_by_one_and_old_ones_keep_their_rows() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    assert_eq!(table.head(), Version::EMPTY);
    for version in 1..=3 {
        let merge = world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
        assert_eq!(
            (merge.version, merge.accepted, merge.record_count),
            (Version(version), 2, version * 2)
        );
        assert_eq!(
            (table.head(), table.record_count()),
            (merge.version, merge.record_count)
        );
    }
    assert_eq!(names(&catalog, world.dataset, 0).await, [""; 0]);
    assert_eq!(names(&catalog, world.dataset, 1).await, ["n2", "n3"]);
    assert_eq!(names(&catalog, world.dataset, 2).await, ["n2", "n3", "n4", "n5"]);
    world.sound(3).await;
}

#[tokio::test]
async fn a_dataset_without_a_table_is_at_version_zero() {
    let world = World::new();
    let catalog = world.catalog("a");
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert_eq!((snapshot.version(), snapshot.record_count()), (Version::EMPTY, 0));
    assert!(snapshot.page(0, 10).await.unwrap().is_empty());
    assert!(
        catalog
            .snapshot(world.dataset, Some(Version(1)))
            .await
            .unwrap()
            .is_none()
    );
    world.sound(0).await;
}

#[tokio::test]
async fn a_contribution_that_is_already_committed_returns_the_merge_of_its_commit() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    let proposal = world.proposal(&numbered(0..3));
    let merge = merged(table.merge(proposal.clone()).await.unwrap());
    world.merge(&mut table, &numbered(3..5)).await;

    assert_eq!(
        table.merge(proposal.clone()).await.unwrap(),
        CommitOutcome::AlreadyCommitted(merge.clone())
    );
    assert_eq!(table.find(proposal.contribution).await.unwrap(), Some(merge.clone()));
    assert_eq!(merge.notes, proposal.notes);

    // Another process finds the same, also with other rows.
    drop((table, catalog));
    let catalog = world.catalog("b");
    let mut table = world.table(&catalog).await;
    let mut other = world.proposal(&numbered(100..101));
    other.contribution = proposal.contribution;
    assert_eq!(
        table.merge(other).await.unwrap(),
        CommitOutcome::AlreadyCommitted(merge)
    );
    world.sound(2).await;
}

#[tokio::test]
async fn duplicates_are_dropped_with_their_positions() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..3)).await;
    let records = [
        numbered(5..6),
        numbered(1..2),
        numbered(6..7),
        numbered(5..6),
        numbered(2..3),
    ]
    .concat();
    let mut proposal = world.proposal(&records);
    proposal.batch = Arc::new(proposal.batch.filter(&[true, true, true, true, true]).unwrap());
    let merge = merged(table.merge(proposal).await.unwrap());
    assert_eq!((merge.accepted, merge.duplicates), (2, vec![1, 3, 4]));
    assert_eq!(names(&catalog, world.dataset, 2).await, ["n0", "n1", "n2", "n5", "n6"]);
    world.sound(2).await;
}

#[tokio::test]
async fn positions_are_those_of_the_batch_as_it_was_decoded() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..2)).await;
    let mut proposal = world.proposal(&numbered(0..4));
    proposal.batch = Arc::new(proposal.batch.filter(&[false, true, true, true]).unwrap());
    let merge = merged(table.merge(proposal).await.unwrap());
    assert_eq!((merge.accepted, merge.duplicates), (2, vec![1]));
}

#[tokio::test]
async fn nothing_new_commits_nothing() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..3)).await;
    let outcome = table.merge(world.proposal(&numbered(1..3))).await.unwrap();
    assert_eq!(outcome, CommitOutcome::NothingNew(LateDuplicates::Rows(vec![0, 1])));
    let outcome = table.merge(world.proposal(&[])).await.unwrap();
    assert_eq!(outcome, CommitOutcome::NothingNew(LateDuplicates::Rows(vec![])));
    assert_eq!(table.head(), Version(1));
    world.sound(1).await;
}

#[tokio::test]
async fn another_contract_is_refused() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..1)).await;
    let other = json!({"fields": [{"name": "name", "type": "string"}]});
    let other = Arc::new(serde_json::from_value(other).unwrap());
    for catalog in [catalog, world.catalog("b")] {
        let refused = catalog.table(world.dataset, &other).await;
        assert!(matches!(refused, Err(Error::ContractMismatch { .. })));
    }
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_already_committed() {
    for trouble in [Trouble::LostAnswer, Trouble::OwnConflict] {
        let world = World::new();
        let troubled = Arc::new(Troubled::new(Arc::clone(&world.durable) as _, "_delta_log", trouble));
        let catalog = world.catalog_over("a", Arc::clone(&troubled) as _);
        let mut table = world.table(&catalog).await;
        // Both commit 0 and commit 1 are answered wrongly.
        troubled.strike(2);
        let proposal = world.proposal(&numbered(0..3));
        let outcome = table.merge(proposal.clone()).await.unwrap();
        let CommitOutcome::AlreadyCommitted(merge) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((merge.contribution, merge.version), (proposal.contribution, Version(1)));
        let merge = world.merge(&mut table, &numbered(2..5)).await;
        assert_eq!((merge.version, merge.duplicates), (Version(2), vec![0]));
        assert_eq!(world.sound(2).await.orphans, [""; 0]);
    }
}

/// The file is there, and a power cut could still take it.
#[tokio::test]
async fn a_commit_that_could_not_be_synced_counts_only_once_it_is_durable() {
    let world = World::new();
    let troubled = Arc::new(Troubled::new(
        Arc::clone(&world.durable) as _,
        "_delta_log",
        Trouble::Unsynced,
    ));
    let catalog = world.catalog_over("a", Arc::clone(&troubled) as _);
    let mut table = world.table(&catalog).await;
    // First commit 0, then commit 1: the put fails, and so does the sync before it is adopted.
    for version in 0..2 {
        troubled.strike(2);
        let proposal = world.proposal(&numbered(version * 10..version * 10 + 3));
        let failed = table.merge(proposal.clone()).await;
        assert!(matches!(failed, Err(Error::Storage { .. })), "{failed:?}");
        assert!(world.commit_file(version).exists());
        assert_eq!(table.find(proposal.contribution).await.unwrap(), None);
        assert_eq!(table.head(), Version(version));
        let (CommitOutcome::Committed(merge) | CommitOutcome::AlreadyCommitted(merge)) =
            table.merge(proposal).await.unwrap()
        else {
            panic!("it has new rows")
        };
        assert_eq!(merge.version, Version(1 + version));
    }
    world.sound(2).await;

    // A new process believes nothing that it cannot make durable.
    let other = world.catalog_over("b", Arc::clone(&troubled) as _);
    troubled.strike(2);
    assert!(other.table(world.dataset, &world.contract).await.is_err());
    assert!(other.snapshot(world.dataset, None).await.is_err());
    assert_eq!(world.table(&other).await.head(), Version(2));
    // One that has it open neither.
    let mut third = world.table(&other).await;
    world.merge(&mut table, &numbered(40..41)).await;
    troubled.strike(1);
    assert!(other.snapshot(world.dataset, Some(Version(3))).await.is_err());
    assert_eq!(third.head(), Version(2));
    let merge = world.merge(&mut third, &numbered(50..51)).await;
    assert_eq!(merge.version, Version(4));
    world.sound(4).await;
}

#[tokio::test]
async fn what_was_not_put_is_merged_once_when_asked_again() {
    for (path, parts_tried) in [("_delta_log", 2), ("part-", 1)] {
        let world = World::new();
        let troubled = Arc::new(Troubled::new(Arc::clone(&world.durable) as _, path, Trouble::Refused));
        let catalog = world.catalog_over("a", Arc::clone(&troubled) as _);
        let mut table = world.table(&catalog).await;
        world.merge(&mut table, &numbered(0..1)).await;
        troubled.strike(1);
        let proposal = world.proposal(&numbered(1..3));
        assert!(matches!(
            table.merge(proposal.clone()).await,
            Err(Error::Storage { .. })
        ));
        assert_eq!(world.parts().len(), parts_tried);
        let merge = merged(table.merge(proposal).await.unwrap());
        assert_eq!((merge.version, merge.accepted), (Version(2), 2));
        // The part that the failed try left behind is gone.
        assert_eq!(world.parts().len(), 2);
        world.sound(2).await;
    }
}

#[tokio::test]
async fn however_often_a_commit_fails_its_rows_are_written_once() {
    let world = World::new();
    let troubled = Arc::new(Troubled::new(
        Arc::clone(&world.counting) as _,
        "_delta_log",
        Trouble::Refused,
    ));
    let proposal = world.proposal(&numbered(1..3));
    for process in ["a", "b"] {
        let catalog = world.catalog_over(process, Arc::clone(&troubled) as _);
        let mut table = world.table(&catalog).await;
        if process == "a" {
            world.merge(&mut table, &numbered(0..1)).await;
        }
        for _ in 0..8 {
            troubled.strike(1);
            let before = world.counting.counts();
            table.merge(proposal.clone()).await.unwrap_err();
            let after = world.counting.counts();
            // The part and, where it is there, a look at it, and one at the last commit; the new commit does not get
            // here.
            assert!(after.puts - before.puts <= 1 && after.gets - before.gets <= 4);
            assert_eq!(world.parts().len(), 2);
        }
    }
    let catalog = world.catalog_over("a", Arc::clone(&troubled) as _);
    let merge = merged(world.table(&catalog).await.merge(proposal).await.unwrap());
    assert_eq!((merge.version, merge.accepted), (Version(2), 2));
    assert_eq!(world.sound(2).await.orphans, [""; 0]);
}

#[tokio::test]
async fn a_crash_between_part_and_commit_leaves_nothing_that_is_read() {
    let world = World::new();
    let troubled = Arc::new(Troubled::new(
        Arc::clone(&world.durable) as _,
        "_delta_log",
        Trouble::Refused,
    ));
    let catalog = world.catalog_over("a", Arc::clone(&troubled) as _);
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..1)).await;
    let proposal = world.proposal(&numbered(1..3));
    troubled.strike(1);
    table.merge(proposal.clone()).await.unwrap_err();
    drop((table, catalog));

    let catalog = world.catalog("b");
    let mut table = world.table(&catalog).await;
    let mut fewer = proposal;
    fewer.batch = Arc::new(fewer.batch.filter(&[false, true]).unwrap());
    let merge = merged(table.merge(fewer).await.unwrap());
    assert_eq!((merge.version, merge.accepted), (Version(2), 1));
    assert_eq!(names(&catalog, world.dataset, 2).await, ["n0", "n2"]);
    assert_eq!(world.sound(2).await.orphans, [""; 0]);
}

#[tokio::test]
async fn the_content_root_is_the_hash_of_the_canonical_rows() {
    let world = World::new();
    let catalog = world.catalog("a");
    let mut table = world.table(&catalog).await;
    let records = [
        json!({"name": "é", "ratio": 1.0, "more": {"b": [1, null], "a": "x"}, "zz": true}),
        json!({"count": 5, "name": "n", "at": "2026-11-21T16:00:00.10+09:00"}),
    ];
    let canonical = [
        r#"{"more":{"a":"x","b":[1,null]},"name":"é","ratio":1,"zz":true}"#,
        r#"{"at":"2026-11-21T07:00:00.1Z","count":5,"name":"n"}"#,
    ];
    let mut expected = [0_u8; 32];
    for (record, canonical) in records.iter().zip(canonical) {
        let merge = world.merge(&mut table, std::slice::from_ref(record)).await;
        let length = u32::try_from(canonical.len()).unwrap().to_le_bytes();
        let input = [&expected[..], &length, canonical.as_bytes()].concat();
        expected = blake3::derive_key("sluice 2026-11 content root v1", &input);
        assert_eq!(merge.root, blake3::Hash::from_bytes(expected).to_hex().as_str());
    }
    world.sound(2).await;
}

#[tokio::test]
async fn the_first_and_the_last_instants_are_what_they_were_sent_as() {
    let world = World::new();
    let catalog = world.catalog("owner");
    let mut table = world.table(&catalog).await;
    let texts = [
        "0001-01-01T00:00:00Z",
        "9999-12-30T22:00:01Z",
        "9999-12-31T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ];
    let records: Vec<_> = texts.iter().map(|at| json!({"name": "n", "at": at})).collect();
    world.merge(&mut table, &records).await;
    world.sound(1).await;
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    let rows = page(&snapshot, 0, texts.len()).await;
    assert_eq!(
        rows.iter().map(|row| row["at"].as_str().unwrap()).collect::<Vec<_>>(),
        texts
    );
}
