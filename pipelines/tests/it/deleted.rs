//! Datasets that were deleted while messages for them were on their way.

use std::fs;

use eventlog::EventLog as _;
use pipelines::message::{DEAD_LETTERS, OUTCOMES_TOPIC, Source, Submission};
use types::DatasetId;
use uploads::Compression;

use crate::world::{LATER, World, texts};

impl World {
    /// Deletes the table of a dataset, as the marketplace does.
    async fn delete(&self, dataset: DatasetId) {
        assert!(self.catalog("service").delete_table(dataset).await.unwrap());
    }

    /// Number of outcomes and of dead letters.
    async fn told_so_far(&self) -> [u64; 2] {
        let mut told = [0; 2];
        for (count, topic) in told.iter_mut().zip([OUTCOMES_TOPIC, DEAD_LETTERS]) {
            *count = self
                .log
                .bounds(topic)
                .await
                .unwrap()
                .iter()
                .map(|bounds| bounds.next)
                .sum();
        }
        told
    }

    /// Checks that two commits stay of a table, or the first alone, and that nobody made a part.
    fn is_deleted(&self, dataset: DatasetId, last: u64) {
        let folder = self.dir.path().join(format!("tables/{dataset}"));
        let names = |folder| {
            let entries = fs::read_dir(folder).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let mut commits = vec![format!("{:020}.json", 0), format!("{last:020}.json")];
        commits.dedup();
        assert_eq!(names(folder.join("_delta_log")), commits);
        assert!(names(folder).iter().all(|name| !name.ends_with(".parquet")));
    }
}

#[tokio::test]
async fn what_is_in_the_log_ends_without_an_outcome_or_a_dead_letter() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let merged = world.submission(dataset, texts(["one"]));
    world.append(merged.record().unwrap()).await;
    assert_eq!(world.merged(merged.contribution).await, (1, 1));
    world.stop().await;
    world.delete(dataset).await;
    let before = world.told_so_far().await;
    let empty = world.dataset();
    world.delete(empty).await;
    world.clock.advance(LATER);
    let unreadable = Submission {
        format: 99,
        ..world.submission(dataset, texts(["x"]))
    };
    let other_contract = Submission {
        contract: serde_json::from_str(r#"{"fields": [{"name": "n", "type": "integer"}]}"#).unwrap(),
        ..world.submission(dataset, texts(["x"]))
    };
    let upload = world
        .upload(dataset, b"{\"text\": \"four\"}\n", 1 << 10, Compression::None)
        .await;
    let late = [
        // A redelivery of what was merged, a batch, one that repeats, an upload, two that are poison, and the first of a
        // dataset without a table.
        merged.clone(),
        world.submission(dataset, texts(["two"])),
        world.submission(dataset, texts(["one"])),
        upload,
        unreadable,
        other_contract,
        world.submission(empty, texts(["first"])),
    ];
    for submission in &late {
        world.append(submission.record().unwrap()).await;
    }
    world.begin().await;
    world.log.committed(1 + late.len() as u64).await;
    assert_eq!(world.told_so_far().await, before);
    world.is_deleted(dataset, 2);
    world.is_deleted(empty, 0);
    // Another dataset of the partition goes on.
    let other = world.dataset();
    let id = world.submit(other, texts(["other"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
}

#[tokio::test]
async fn a_writer_at_work_ends_with_its_table() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let first = world.submit(dataset, texts(["one"])).await;
    assert_eq!(world.merged(first).await, (1, 1));
    // It is being judged, and more waits behind it.
    world.submit(dataset, texts(["slow"])).await;
    world.submit(dataset, texts(["behind"])).await;
    let upload = world
        .upload(dataset, b"{\"text\": \"four\"}\n", 1 << 10, Compression::None)
        .await;
    world.append(upload.record().unwrap()).await;
    while *world.screener.calls.lock().unwrap() < 2 {
        tokio::task::yield_now().await;
    }
    world.delete(dataset).await;
    let before = world.told_so_far().await;
    world.screener.slow.add_permits(1);
    world.log.committed(4).await;
    assert_eq!(world.told_so_far().await, before);
    world.stop().await;
    // The parts of the merge that came too late go with the second look.
    world.delete(dataset).await;
    world.is_deleted(dataset, 2);
}

#[tokio::test]
async fn an_upload_whose_bytes_went_ends_with_its_table() {
    let mut world = World::asleep(crate::world::config()).await;
    let dataset = world.dataset();
    let mut upload = world
        .upload(dataset, b"{\"text\": \"four\"}\n", 1 << 10, Compression::None)
        .await;
    let Source::Upload(layout) = &mut upload.source else {
        panic!("an upload")
    };
    // As if the reaper had been there.
    layout.upload = world.submission(dataset, Vec::new()).contribution;
    world.append(upload.record().unwrap()).await;
    world.delete(dataset).await;
    let before = world.told_so_far().await;
    world.begin().await;
    world.log.committed(1).await;
    assert_eq!(world.told_so_far().await, before);
    world.is_deleted(dataset, 0);
}
