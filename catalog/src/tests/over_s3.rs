use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use object_store::{ObjectStore, ObjectStoreExt as _};
use s3_server::{ACCESS_KEY, BUCKET, Fault, REGION, Requests, Rule, SECRET_KEY, Server};
use serde_json::Value;
use types::Version;

use super::fixture::{Proposal, World, merged, names, numbered, page};
use crate::check::{self, Report};
use crate::storage::s3::{S3, S3Config, Secret};
use crate::{Catalog, CommitOutcome, Error};

/// A world whose tables are in a bucket.
struct Cloud {
    world: World,
    server: Server,
    _folder: tempfile::TempDir,
}

impl Cloud {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            world: World::new(),
            server: Server::start(folder.path()).unwrap(),
            _folder: folder,
        }
    }

    async fn store(&self) -> Arc<S3> {
        let config = S3Config {
            endpoint: self.server.endpoint(),
            region: REGION.to_owned(),
            bucket: BUCKET.to_owned(),
            prefix: "tables".to_owned(),
            access_key: ACCESS_KEY.to_owned(),
            secret_key: Secret::new(SECRET_KEY.to_owned()),
            path_style: true,
            attempt: Duration::from_secs(1),
            patience: Duration::from_secs(8),
        };
        Arc::new(S3::open(&config).await.unwrap())
    }

    /// A catalog as another process would open it.
    async fn catalog(&self, process: &str) -> Catalog {
        self.world.catalog_over(process, self.store().await)
    }

    /// What was asked of the server since.
    fn since(&self, before: Requests) -> Requests {
        let now = self.server.faults().requests();
        Requests {
            puts: now.puts - before.puts,
            gets: now.gets - before.gets,
            heads: now.heads - before.heads,
            lists: now.lists - before.lists,
            others: now.others - before.others,
        }
    }

    /// Checks that the table is sound and has this many versions.
    async fn sound(&self, versions: u64) -> Report {
        self.server.faults().clear();
        let objects: Arc<dyn ObjectStore> = self.store().await;
        let report = check::table(&objects, self.world.dataset).await.unwrap();
        assert_eq!(report.violations, []);
        let numbers: Vec<_> = report.versions.iter().map(|version| version.version).collect();
        assert_eq!(numbers, (1..=versions).collect::<Vec<_>>());
        report
    }
}

#[tokio::test]
async fn a_table_in_a_bucket_is_a_table() {
    let cloud = Cloud::new();
    let (world, catalog) = (&cloud.world, cloud.catalog("a").await);
    let mut table = world.table(&catalog).await;
    let proposal = world.proposal(&numbered(0..3));
    let merge = merged(table.merge(proposal.clone()).await.unwrap());
    assert_eq!(
        table.merge(proposal.clone()).await.unwrap(),
        CommitOutcome::AlreadyCommitted(merge.clone())
    );
    let second = merged(table.merge(world.proposal(&numbered(2..6))).await.unwrap());
    assert_eq!(
        (second.version, second.accepted, second.duplicates),
        (Version(2), 3, vec![0])
    );
    let nothing = table.merge(world.proposal(&numbered(1..5))).await.unwrap();
    assert!(matches!(nothing, CommitOutcome::NothingNew(_)), "{nothing:?}");
    table.close().await;

    let other = cloud.catalog("b").await;
    assert_eq!(names(&other, world.dataset, 1).await, ["n0", "n1", "n2"]);
    assert_eq!(
        names(&other, world.dataset, 2).await,
        ["n0", "n1", "n2", "n3", "n4", "n5"]
    );
    let snapshot = other.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert_eq!(page(&snapshot, 4, 10).await.len(), 2);
    let mut table = world.table(&other).await;
    assert_eq!(
        table.merge(proposal).await.unwrap(),
        CommitOutcome::AlreadyCommitted(merge)
    );
    let report = cloud.sound(2).await;
    assert_eq!((report.records, report.orphans.len()), (6, 0));
}

/// Large parts are read by ranges.
#[tokio::test]
async fn a_page_of_a_large_part_reads_a_piece_of_it() {
    let cloud = Cloud::new();
    let (world, catalog) = (&cloud.world, cloud.catalog("a").await);
    let mut table = world.table(&catalog).await;
    let records: Vec<Value> = (0..40_000_u32)
        .map(|number| serde_json::json!({"name": blake3::hash(&number.to_le_bytes()).to_hex().to_string()}))
        .collect();
    world.merge(&mut table, &records).await;
    let reader = cloud.catalog("b").await;
    let snapshot = reader.snapshot(world.dataset, None).await.unwrap().unwrap();
    assert!(snapshot.bytes() > 1 << 20, "{}", snapshot.bytes());
    let rows = page(&snapshot, 39_998, 10).await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["name"], records[39_999]["name"]);
    cloud.sound(1).await;
}

#[tokio::test]
async fn a_reader_that_owns_nothing_follows_the_log_without_listing_it() {
    let cloud = Cloud::new();
    let world = &cloud.world;
    let (writer, reader) = (cloud.catalog("writer").await, cloud.catalog("reader").await);
    let mut table = world.table(&writer).await;
    world.merge(&mut table, &numbered(0..1)).await;
    assert_eq!(names(&reader, world.dataset, 1).await, ["n0"]);
    let before = cloud.server.faults().requests();
    for version in 2..=20 {
        world.merge(&mut table, &numbered(version..version + 1)).await;
        let found = reader.snapshot(world.dataset, Some(Version(version))).await.unwrap();
        assert_eq!(found.unwrap().record_count(), version);
        let missing = reader
            .snapshot(world.dataset, Some(Version(version + 1)))
            .await
            .unwrap();
        assert!(missing.is_none());
    }
    let asked = cloud.since(before);
    assert_eq!((asked.lists, asked.puts), (0, 2 * 19), "{asked:?}");
    cloud.sound(20).await;
}

/// One request of a merge goes wrong: each of its puts, in each way.
#[tokio::test]
async fn a_merge_whose_puts_go_wrong_is_done_once() {
    for fault in [
        Fault::LostAnswer,
        Fault::DoneThenInternal,
        Fault::Internal,
        Fault::SlowDown,
        Fault::Conflict,
        Fault::Silence,
    ] {
        for path in [
            "_delta_log/00000000000000000000",
            "_delta_log/00000000000000000001",
            "part-",
        ] {
            let cloud = Cloud::new();
            let (world, catalog) = (&cloud.world, cloud.catalog("a").await);
            let mut table = world.table(&catalog).await;
            cloud.server.faults().add(Rule::next(fault, "PUT", path, 1));
            let merge = world.merge(&mut table, &numbered(0..3)).await;
            assert_eq!((merge.version, merge.accepted), (Version(1), 3), "{fault:?} {path}");
            assert_eq!(cloud.server.faults().happened(fault), 1, "{fault:?} {path}");
            let report = cloud.sound(1).await;
            assert_eq!((report.records, report.orphans.len()), (3, 0), "{fault:?} {path}");
        }
    }
}

/// The commit arrives, and the store is gone before anybody can know.
#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_found_at_the_next_try() {
    let cloud = Cloud::new();
    let (world, catalog) = (&cloud.world, cloud.catalog("a").await);
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..1)).await;
    let faults = cloud.server.faults();
    let proposal = world.proposal(&numbered(1..4));
    // The part is put, and the last commit is confirmed, before the store goes away.
    faults.add(Rule::next(Fault::Slow(Duration::ZERO), "PUT", "part-", 1));
    faults.add(Rule::next(Fault::Slow(Duration::ZERO), "GET", "_delta_log", 1));
    faults.add(Rule::next(Fault::LostAnswer, "PUT", "_delta_log", 1));
    faults.add(Rule::share(Fault::SlowDown, "PUT", 1_000));
    faults.add(Rule::share(Fault::SlowDown, "GET", 1_000));
    let error = table.merge(proposal.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Storage { .. }), "{error:?}");
    assert!(faults.happened(Fault::LostAnswer) == 1 && faults.happened(Fault::SlowDown) > 0);
    faults.clear();
    let CommitOutcome::AlreadyCommitted(merge) = table.merge(proposal).await.unwrap() else {
        panic!("it was merged before");
    };
    assert_eq!((merge.version, merge.accepted), (Version(2), 3));
    let report = cloud.sound(2).await;
    assert_eq!((report.records, report.orphans.len()), (4, 0));
}

/// Two processes, every contribution offered to both, records overlapping, and a store that misbehaves all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_race_over_a_bad_store_merge_everything_exactly_once() {
    let cloud = Arc::new(Cloud::new());
    let proposals: Arc<Vec<Proposal>> = Arc::new(
        (0..24)
            .map(|number| cloud.world.proposal(&numbered(number * 3..number * 3 + 5)))
            .collect(),
    );
    let catalogs = [cloud.catalog("one").await, cloud.catalog("two").await];
    let faults = cloud.server.faults();
    let kinds = [
        (Fault::Internal, 40),
        (Fault::SlowDown, 40),
        (Fault::Conflict, 60),
        (Fault::DoneThenInternal, 60),
        (Fault::LostAnswer, 60),
        (Fault::Slow(Duration::from_millis(30)), 50),
    ];
    for (fault, share) in kinds {
        faults.add(Rule::share(fault, "PUT", share));
    }
    for (fault, share) in [(Fault::CutBody, 40), (Fault::SlowDown, 30), (Fault::LostAnswer, 30)] {
        faults.add(Rule::share(fault, "GET", share));
    }
    for (fault, method) in [(Fault::Silence, "PUT"), (Fault::StalledBody, "GET")] {
        let mut rule = Rule::share(fault, method, 30);
        rule.most = 3;
        faults.add(rule);
    }
    // Shares of few requests may come to nothing: each kind happens once for certain.
    for fault in kinds.map(|(fault, _)| fault).into_iter().chain([Fault::Silence]) {
        faults.add(Rule::next(fault, "PUT", "", 1));
    }
    let mut owners = tokio::task::JoinSet::new();
    for owner in 0..2 {
        let (cloud, proposals) = (Arc::clone(&cloud), Arc::clone(&proposals));
        let catalog = catalogs[owner].clone();
        owners.spawn(async move {
            let mut table = cloud.world.table(&catalog).await;
            let (mut told, mut failures) = (Vec::new(), 0);
            for step in 0..proposals.len() {
                let proposal = &proposals[(step * [1, 5][owner] + owner) % proposals.len()];
                // As a worker does: what could not be found out is asked again.
                let outcome = loop {
                    match table.merge(proposal.clone()).await {
                        Ok(outcome) => break outcome,
                        Err(Error::Storage { .. }) => failures += 1,
                        Err(error) => panic!("{error:?}"),
                    }
                };
                match outcome {
                    CommitOutcome::Committed(merge) | CommitOutcome::AlreadyCommitted(merge) => {
                        assert_eq!(merge.contribution, proposal.contribution);
                        told.push((merge.contribution, merge.version));
                    }
                    CommitOutcome::NothingNew(late) => assert_eq!(late.named().len(), 5),
                }
            }
            (told, failures)
        });
    }
    let told: HashSet<_> = owners.join_all().await.into_iter().flat_map(|(told, _)| told).collect();
    for (fault, _) in kinds {
        assert!(faults.happened(fault) > 0, "{fault:?} never happened");
    }
    assert!(faults.happened(Fault::Silence) > 0, "silence never happened");
    let head = u64::try_from(told.len()).unwrap();
    let report = cloud.sound(head).await;
    assert_eq!(report.records, 24 * 3 + 2);
    for version in &report.versions {
        let named = told
            .iter()
            .find(|(contribution, _)| contribution.to_string() == version.contribution);
        assert_eq!(named.unwrap().1, Version(version.version));
    }
    for catalog in &catalogs {
        let distinct: HashSet<_> = names(catalog, cloud.world.dataset, head).await.into_iter().collect();
        assert_eq!(distinct.len(), 74);
    }
    // What a new reader gets in part is not what it tells.
    for (fault, reader) in [(Fault::CutBody, "three"), (Fault::StalledBody, "four")] {
        faults.clear();
        faults.add(Rule::next(fault, "GET", ".parquet", 1));
        let before = faults.happened(fault);
        let catalog = cloud.catalog(reader).await;
        assert_eq!(names(&catalog, cloud.world.dataset, head).await.len(), 74);
        assert!(faults.happened(fault) > before, "{fault:?} never happened");
    }
}

/// Its puts go wrong, and what points to it is put late.
#[tokio::test]
async fn a_table_in_a_bucket_gets_checkpoints() {
    let cloud = Cloud::new();
    let (world, catalog) = (&cloud.world, cloud.catalog("one").await);
    let mut table = world.table(&catalog).await;
    let faults = cloud.server.faults();
    faults.add(Rule::next(Fault::LostAnswer, "PUT", "255.checkpoint.parquet", 1));
    faults.add(Rule::next(Fault::SlowDown, "PUT", "_last_checkpoint", 1));
    for version in 0..260 {
        world.merge(&mut table, &numbered(version..version + 1)).await;
    }
    assert_eq!(
        (faults.happened(Fault::LostAnswer), faults.happened(Fault::SlowDown)),
        (1, 1)
    );
    let store = cloud.store().await;
    let last = object_store::path::Path::from(format!("{}/_delta_log/_last_checkpoint", world.dataset));
    let last = store.get(&last).await.unwrap().bytes().await.unwrap();
    let last: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!((&last["version"], &last["numOfAddFiles"]), (&255.into(), &255.into()));
    cloud.sound(260).await;
}

#[tokio::test]
async fn a_new_owner_reads_key_objects_instead_of_parts() {
    let cloud = Cloud::new();
    let (world, catalog) = (&cloud.world, cloud.catalog("one").await);
    let mut table = world.table(&catalog).await;
    for version in 0..300 {
        world.merge(&mut table, &numbered(version * 2..version * 2 + 2)).await;
    }
    // Its owner dies: nothing is closed.
    drop((table, catalog));
    let before = cloud.server.faults().requests();
    let catalog = cloud.catalog("two").await;
    let mut table = world.table(&catalog).await;
    let asked = cloud.since(before);
    // A run of 256 versions, a derived file, and commits and parts of those after it.
    assert!(asked.gets < 200 && asked.lists <= 2, "{asked:?}");
    let merge = merged(table.merge(world.proposal(&numbered(598..602))).await.unwrap());
    assert_eq!((merge.version, merge.duplicates), (Version(301), vec![0, 1]));
    let nothing = table.merge(world.proposal(&numbered(0..600))).await.unwrap();
    assert!(matches!(nothing, CommitOutcome::NothingNew(_)), "{nothing:?}");
    cloud.sound(301).await;
}
