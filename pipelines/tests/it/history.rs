//! Tables that lack versions that somebody was told of.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::storage::DurableLocal;
use catalog::{KnownHead, history};
use object_store::ObjectStore;
use pipelines::message::{HISTORY_LOST, Resolution, Submission};
use types::{ContributionId, DatasetId, Version};
use uploads::Compression;

use crate::world::{LATER, World, texts};

/// Merges two batches; the head that they lead to.
async fn two_versions(world: &mut World, dataset: DatasetId) -> KnownHead {
    let first = world.submit(dataset, texts(["one"])).await;
    assert_eq!(world.merged(first).await, (1, 1));
    let second = world.submit(dataset, texts(["two"])).await;
    match world.outcome(second).await.resolution {
        Resolution::Merged { version, root, .. } => KnownHead {
            version,
            root: root.parse().unwrap(),
        },
        other => panic!("{other:?}"),
    }
}

/// Takes every commit after the first version away.
fn lose(world: &World, dataset: DatasetId) -> Vec<(PathBuf, Vec<u8>)> {
    let log = world.dir.path().join(format!("tables/{dataset}/_delta_log"));
    let mut lost = Vec::new();
    for entry in fs::read_dir(log).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if stem.parse::<u64>().is_ok_and(|number| number > 1) {
            lost.push((path.clone(), fs::read(&path).unwrap()));
            fs::remove_file(path).unwrap();
        }
    }
    assert!(!lost.is_empty());
    lost
}

async fn waits(world: &mut World, id: ContributionId) {
    match world.outcome(id).await.resolution {
        Resolution::Waiting { reason, .. } => assert_eq!(reason, HISTORY_LOST),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_that_knows_a_version_the_table_lacks_waits_until_it_is_back() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let head = two_versions(&mut world, dataset).await;
    world.stop().await;
    let lost = lose(&world, dataset);
    // Nobody remembers anything but the submissions.
    world.lose_the_log().await;
    let batch = Submission {
        head: Some(head),
        ..world.submission(dataset, texts(["three"]))
    };
    // A batch that would be rejected waits as well: what it repeats may be what was lost.
    let repeated = Submission {
        head: Some(head),
        ..world.submission(dataset, texts(["one"]))
    };
    let upload = Submission {
        head: Some(head),
        ..world
            .upload(dataset, b"{\"text\": \"four\"}\n", 1 << 10, Compression::None)
            .await
    };
    for submission in [&batch, &repeated, &upload] {
        world.append(submission.record().unwrap()).await;
        waits(&mut world, submission.contribution).await;
    }
    assert_eq!(world.latest(dataset).await, (Version(1), 1));
    for (path, bytes) in lost {
        fs::write(path, bytes).unwrap();
    }
    world.clock.advance(LATER);
    world.append(batch.record().unwrap()).await;
    assert_eq!(world.merged(batch.contribution).await, (3, 1));
    world.append(repeated.record().unwrap()).await;
    assert_eq!(world.rejected(repeated.contribution).await, "duplicates");
    world.append(upload.record().unwrap()).await;
    assert_eq!(world.merged(upload.contribution).await, (4, 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_told_it_holds_the_table_to_until_the_loss_is_accepted() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let head = two_versions(&mut world, dataset).await;
    world.stop().await;
    lose(&world, dataset);
    world.begin().await;
    let batch = world.submission(dataset, texts(["two"]));
    world.append(batch.record().unwrap()).await;
    waits(&mut world, batch.contribution).await;
    assert_eq!(world.latest(dataset).await, (Version(1), 1));

    let tables: Arc<dyn ObjectStore> = Arc::new(DurableLocal::open(world.dir.path().join("tables")).unwrap());
    history::accept(&tables, dataset, &[head]).await.unwrap();
    world.append(batch.record().unwrap()).await;
    assert_eq!(world.merged(batch.contribution).await, (2, 1));
    // The next batch is held to what was merged since.
    let next = world.submit(dataset, texts(["three"])).await;
    assert_eq!(world.merged(next).await, (3, 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_sees_that_the_commit_it_put_last_is_gone() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    two_versions(&mut world, dataset).await;
    // Its writer has the table open, and has compacted what it merged.
    world.parts(dataset, 1).await;
    let lost = lose(&world, dataset);
    let batch = world.submission(dataset, texts(["three"]));
    world.append(batch.record().unwrap()).await;
    waits(&mut world, batch.contribution).await;
    assert_eq!(world.latest(dataset).await, (Version(1), 1));
    for (path, bytes) in lost {
        fs::write(path, bytes).unwrap();
    }
    world.append(batch.record().unwrap()).await;
    assert_eq!(world.merged(batch.contribution).await, (3, 1));
    world.stop().await;
}
