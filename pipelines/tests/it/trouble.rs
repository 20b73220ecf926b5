//! What fails around a table writer: its merge, its log, its thread, its room.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use catalog::{CommitOutcome, PreparedVersion};
use eventlog::EventLog as _;
use pipelines::message::{CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC, Submission};
use pipelines::{Config, Error};
use serde_json::{Value, json};
use types::{AgentId, Batch, Clock as _, Contract, ContributionId, DatasetId};
use uploads::Compression;

use crate::world::{LATER, World, config, contract, texts};

#[tokio::test]
async fn a_judge_that_keeps_its_thread_delays_nobody_else() {
    // Everything else shares the one thread of this runtime.
    let mut world = World::new().await;
    let (busy, quick) = (world.dataset(), world.dataset());
    let mut kept = Vec::new();
    for text in ["stuck 1", "stuck 2", "stuck 3"] {
        kept.push(world.submit(busy, texts([text])).await);
    }
    for version in 1..=20 {
        let id = world.submit(quick, vec![json!({"text": format!("q{version}")})]).await;
        assert_eq!(world.merged(id).await, (version, 1));
    }
    world.screener.stuck.lock().unwrap().take();
    for (version, id) in (1..).zip(kept) {
        assert_eq!(world.merged(id).await, (version, 1));
    }
}

/// Merges a record as a contribution, making the table with this contract, as another worker may at any time.
async fn merge_elsewhere(
    world: &World,
    dataset: DatasetId,
    contract: Contract,
    contribution: ContributionId,
    record: Value,
) {
    let contract = Arc::new(contract);
    let mut table = world.catalog("elsewhere").table(dataset, &contract).await.unwrap();
    let mut prepared = PreparedVersion::of_batch(
        contribution,
        AgentId::new(world.clock.now()),
        Arc::new(Batch::decode(&contract, &[record])),
    );
    assert!(matches!(
        table
            .commit(&mut prepared, world.clock.now(), |_| Value::Null)
            .await
            .unwrap(),
        CommitOutcome::Committed(_)
    ));
}

#[tokio::test]
async fn a_merge_that_can_never_pass_is_not_tried_again() {
    let mut world = World::new().await;
    let (dataset, other) = (world.dataset(), world.dataset());
    let slow = world.submit(dataset, texts(["slow"])).await;
    // The writer has opened a table that does not exist yet when its model is asked.
    while *world.screener.calls.lock().unwrap() < 1 {
        tokio::task::yield_now().await;
    }
    let contract = serde_json::from_value(json!({"fields": [{"name": "n", "type": "integer"}]})).unwrap();
    let another = ContributionId::new(world.clock.now());
    merge_elsewhere(&world, dataset, contract, another, json!({"n": 1})).await;
    world.screener.slow.add_permits(1);
    assert_eq!(world.rejected(slow).await, "unprocessable");
    let id = world.submit(other, texts(["other"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
    let letter = world.letters(1).await.remove(0);
    assert!(letter.reason.contains("another contract"), "{}", letter.reason);
}

/// A worker that stood still may put its commit after it was given up and another one decided otherwise.
#[tokio::test]
async fn what_was_rejected_and_merged_all_the_same_is_told_to_be_merged() {
    let mut world = World::new().await;
    let (open, idle, uploaded) = (world.dataset(), world.dataset(), world.dataset());
    let first = world.submit(open, texts(["first"])).await;
    assert_eq!(world.merged(first).await, (1, 1));
    let late = [
        world.submit(open, vec![json!({"text": 1})]).await,
        world.submit(idle, vec![json!({"text": 1})]).await,
        world.submit(uploaded, vec![json!({"text": 1})]).await,
    ];
    for id in late {
        world.rejected(id).await;
    }
    merge_elsewhere(&world, open, contract(), late[0], json!({"text": "late"})).await;
    let next = world.submit(open, texts(["next"])).await;
    assert_eq!(world.merged(late[0]).await, (2, 1));
    assert_eq!(world.merged(next).await, (3, 1));
    merge_elsewhere(&world, uploaded, contract(), late[2], json!({"text": "late"})).await;
    let lines = b"{\"text\": \"next\"}\n";
    let next = world.upload(uploaded, lines, lines.len(), Compression::None).await;
    world.append(next.record().unwrap()).await;
    assert_eq!(world.merged(late[2]).await, (1, 1));
    assert_eq!(world.merged(next.contribution).await, (2, 1));
    // Nobody has this table open when it happens.
    world.stop().await;
    merge_elsewhere(&world, idle, contract(), late[1], json!({"text": "late"})).await;
    world.begin().await;
    let next = world.submit(idle, texts(["next"])).await;
    assert_eq!(world.merged(late[1]).await, (1, 1));
    assert_eq!(world.merged(next).await, (2, 1));
    // Once each.
    let after = world.submit(open, texts(["after"])).await;
    assert_eq!(world.merged(after).await, (4, 1));
    for id in late {
        assert!(world.seen.get(&id).is_none_or(Vec::is_empty), "{id}");
    }
}

/// Nobody told what was merged before the worker ended, and what comes first afterwards is another submission.
#[tokio::test]
async fn a_version_is_told_after_those_before_it() {
    let mut world = World::new().await;
    let (batches, file, rejects) = (world.dataset(), world.dataset(), world.dataset());
    for dataset in [batches, file, rejects] {
        let first = world.submit(dataset, texts(["first"])).await;
        assert_eq!(world.merged(first).await, (1, 1));
    }
    world.stop().await;
    let mut untold = Vec::new();
    for dataset in [batches, file, rejects] {
        for text in ["second", "third"] {
            let submission = world.submission(dataset, texts([text]));
            merge_elsewhere(
                &world,
                dataset,
                contract(),
                submission.contribution,
                json!({"text": text}),
            )
            .await;
            untold.push(submission);
        }
    }
    world.begin().await;
    world.submit(batches, texts(["next"])).await;
    let lines = b"{\"text\": \"next\"}\n";
    let upload = world.upload(file, lines, lines.len(), Compression::None).await;
    world.append(upload.record().unwrap()).await;
    world.submit(rejects, vec![json!({"text": 1})]).await;
    assert_eq!(world.told(batches, 4).await, [1, 2, 3, 4]);
    assert_eq!(world.told(file, 4).await, [1, 2, 3, 4]);
    assert_eq!(world.told(rejects, 3).await, [1, 2, 3]);
    // What is delivered again is told no more.
    for submission in &untold {
        world.append(submission.record().unwrap()).await;
    }
    for (dataset, last) in [(batches, 5), (file, 5), (rejects, 4)] {
        world.submit(dataset, texts(["last"])).await;
        assert_eq!(world.told(dataset, last).await, (1..=last).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn what_is_delivered_again_is_told_after_the_versions_before_it() {
    let mut world = World::asleep(config()).await;
    let (batches, file) = (world.dataset(), world.dataset());
    let lines = b"{\"text\": \"second\"}\n";
    let delivered = [
        world.submission(batches, texts(["second"])),
        world.upload(file, lines, lines.len(), Compression::None).await,
    ];
    for submission in &delivered {
        for (id, text) in [
            (ContributionId::new(world.clock.now()), "first"),
            (submission.contribution, "second"),
            (ContributionId::new(world.clock.now()), "third"),
        ] {
            merge_elsewhere(&world, submission.dataset, contract(), id, json!({"text": text})).await;
        }
    }
    world.begin().await;
    for submission in delivered {
        world.append(submission.record().unwrap()).await;
        assert_eq!(world.told(submission.dataset, 3).await, [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_version_that_is_damaged_keeps_no_other_from_being_told() {
    let world = World::new().await;
    let dataset = world.dataset();
    for text in ["first", "second"] {
        let id = ContributionId::new(world.clock.now());
        merge_elsewhere(&world, dataset, contract(), id, json!({"text": text})).await;
    }
    world.submit(dataset, texts(["slow"])).await;
    // The writer has read the table when its model is asked.
    while *world.screener.calls.lock().unwrap() < 1 {
        tokio::task::yield_now().await;
    }
    let log = world.dir.path().join(format!("tables/{dataset}/_delta_log"));
    std::fs::write(log.join(format!("{:020}.json", 1)), "{").unwrap();
    world.screener.slow.add_permits(1);
    assert_eq!(world.told(dataset, 3).await, [2, 3]);
}

#[tokio::test]
async fn of_a_table_of_which_nothing_is_remembered_the_latest_versions_are_told_again() {
    let world = World::new().await;
    let dataset = world.dataset();
    for version in 1..=20 {
        let text = format!("{version}");
        let id = ContributionId::new(world.clock.now());
        merge_elsewhere(&world, dataset, contract(), id, json!({"text": text})).await;
    }
    world.submit(dataset, texts(["next"])).await;
    assert_eq!(world.told(dataset, 21).await, [17, 18, 19, 20, 21]);
}

#[tokio::test]
async fn a_merge_that_panics_takes_nothing_else_along() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let panics = world.submission(dataset, texts(["slow"]));
    world.append(panics.record().unwrap()).await;
    while *world.screener.calls.lock().unwrap() < 1 {
        tokio::task::yield_now().await;
    }
    // The next who looks at the clock is the merge.
    world.log.fuse.store(true, Ordering::SeqCst);
    world.screener.slow.add_permits(1);
    assert_eq!(world.rejected(panics.contribution).await, "unprocessable");
    assert!(!world.log.fuse.load(Ordering::SeqCst));
    let next = world.submit(dataset, texts(["next"])).await;
    assert_eq!(world.merged(next).await, (1, 1));
}

#[tokio::test]
async fn a_writer_that_dies_keeps_no_position_back() {
    let mut world = World::new().await;
    let (dies, lives) = (world.dataset(), world.dataset());
    world.log.panic_at(Some(dies));
    let lost: Vec<Submission> = ["slow", "b", "c"]
        .map(|text| world.submission(dies, texts([text])))
        .into();
    for submission in &lost {
        world.append(submission.record().unwrap()).await;
    }
    while *world.screener.calls.lock().unwrap() < 3 {
        tokio::task::yield_now().await;
    }
    world.screener.slow.add_permits(1);
    // What comes while the writer is dying, and after, reaches the next writer of the dataset.
    let id = world.submit(lives, texts(["x"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
    world.log.committed(4).await;
    world.stop().await;
    world.log.panic_at(None);
    let mut position = world.log.subscribe(CONTRIBUTIONS_TOPIC, "workers").await.unwrap();
    let fence = world.submission(lives, texts(["fence"]));
    world.append(fence.record().unwrap()).await;
    let next = position.next(64).await.unwrap();
    assert_eq!(
        next.len(),
        1,
        "{:?}",
        next.iter().map(|delivered| delivered.position).collect::<Vec<_>>()
    );
    drop(position);
    // The marketplace appends them again, as it does with whatever has no outcome.
    world.start();
    let mut versions = Vec::new();
    for submission in &lost {
        world.append(submission.record().unwrap()).await;
        versions.push(world.merged(submission.contribution).await);
    }
    assert_eq!(versions, [(1, 1), (2, 1), (3, 1)]);
}

#[tokio::test]
async fn a_table_that_is_damaged_keeps_no_position_back_and_goes_on_once_it_is_mended() {
    keeps_nothing_back(|commit| std::fs::write(commit, "{").unwrap()).await;
}

#[tokio::test]
async fn a_table_that_cannot_be_read_keeps_no_position_back_and_goes_on_once_it_can() {
    keeps_nothing_back(|commit| {
        drop(std::fs::remove_file(commit));
        // What no look at it finds: too many levels of links.
        std::os::unix::fs::symlink(commit, commit).unwrap();
    })
    .await;
}

async fn keeps_nothing_back(spoil: fn(&std::path::Path)) {
    let mut world = World::new().await;
    let [batches, file, closed] = [(); 3].map(|()| world.dataset());
    for dataset in [batches, file] {
        let first = world.submit(dataset, texts(["first"])).await;
        assert_eq!(world.merged(first).await, (1, 1));
    }
    let id = ContributionId::new(world.clock.now());
    merge_elsewhere(&world, closed, contract(), id, json!({"text": "first"})).await;
    // Two writers meet the damage when they merge, one when it opens its table.
    let commit = |dataset, version| {
        let commit = format!("tables/{dataset}/_delta_log/{version:020}.json");
        world.dir.path().join(commit)
    };
    let damaged = [commit(batches, 2), commit(file, 2), commit(closed, 1)];
    let sound = std::fs::read(&damaged[2]).unwrap();
    for commit in &damaged {
        spoil(commit);
    }
    let lines = b"{\"text\": \"second\"}\n";
    let submissions = [
        world.submission(batches, texts(["second"])),
        world.submission(batches, texts(["third"])),
        world.upload(file, lines, lines.len(), Compression::None).await,
        world.submission(closed, texts(["second"])),
    ];
    for submission in &submissions {
        world.append(submission.record().unwrap()).await;
    }
    world.log.committed(6).await;
    for commit in &damaged {
        std::fs::remove_file(commit).unwrap();
    }
    std::fs::write(&damaged[2], sound).unwrap();
    // The marketplace appends them again, as it does with whatever has no outcome.
    for (submission, version) in submissions.iter().zip([2, 3, 2, 2]) {
        world.append(submission.record().unwrap()).await;
        assert_eq!(world.merged(submission.contribution).await, (version, 1));
    }
}

#[tokio::test]
async fn a_log_that_takes_no_outcomes_ends_the_worker() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let first = world.submit(dataset, texts(["a"])).await;
    assert_eq!(world.merged(first).await, (1, 1));
    world.log.close();
    let submission = world.submission(dataset, texts(["b"]));
    world.append(submission.record().unwrap()).await;
    let (_, worker) = world.worker.take().unwrap();
    let ended = worker.await.unwrap();
    assert!(matches!(ended, Err(Error::Log(eventlog::Error::Closed))), "{ended:?}");
    // Nothing of it is lost: it is delivered again, and adopts its version.
    world.lose_the_log().await;
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.merged(submission.contribution).await, (2, 1));
}

fn narrow() -> Config {
    Config {
        group: "workers".to_owned(),
        judged_ahead: 4,
        writer_bytes: 1 << 20,
        queue_bytes: 1 << 20,
        idle_seconds: 60,
        retry_first_ms: 1,
        retry_most_ms: 10,
        grace_seconds: 10,
    }
}

#[tokio::test]
async fn all_datasets_together_have_no_more_room_than_they_are_given() {
    let mut world = World::with(narrow()).await;
    let large = |number: usize| vec![json!({"text": format!("slow {number} {}", "x".repeat(400_000))})];
    let mut sent = Vec::new();
    for number in 0..6 {
        let submission = world.submission(world.dataset(), large(number));
        world.append(submission.record().unwrap()).await;
        sent.push(submission);
    }
    // A message that fits comes in after those that did not.
    let fits = world.submit(world.dataset(), texts(["fits"])).await;
    assert_eq!(world.merged(fits).await, (1, 1));
    world.screener.slow.add_permits(100);
    for submission in &sent[..2] {
        assert_eq!(world.merged(submission.contribution).await, (1, 1));
    }
    for submission in &sent[2..] {
        assert!(!world.seen.contains_key(&submission.contribution));
        world.append(submission.record().unwrap()).await;
        assert_eq!(world.merged(submission.contribution).await, (1, 1));
    }
    assert!(world.seen.values().all(Vec::is_empty), "each is decided once");
}

#[tokio::test]
async fn what_waits_for_one_dataset_leaves_room_for_the_others() {
    let mut world = World::with(narrow()).await;
    let slow = world.dataset();
    let large = |text: &str| vec![json!({"text": format!("{text} {}", "x".repeat(200_000))})];
    let stuck = world.submit(slow, large("slow")).await;
    for index in 0..8 {
        world.submit(slow, large(&format!("{index}"))).await;
    }
    let quick = world
        .submit(world.dataset(), vec![json!({"text": "y".repeat(500_000)})])
        .await;
    assert_eq!(world.merged(quick).await, (1, 1));
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(stuck).await, (1, 1));
}

#[tokio::test]
async fn reads_are_not_thrown_away_whenever_something_is_done() {
    const MERGES: u64 = 60;
    let mut world = World::new().await;
    let dataset = world.dataset();
    let begun = Instant::now();
    for version in 1..=MERGES {
        let id = world.submit(dataset, vec![json!({"text": format!("{version}")})]).await;
        assert_eq!(world.merged(id).await, (version, 1));
    }
    // Four in a second are dropped to commit what was done.
    let dropped = u64::try_from(world.log.dropped.load(Ordering::SeqCst)).unwrap();
    let quarters = u64::try_from(begun.elapsed().as_millis() / 250).unwrap();
    assert!(
        dropped <= 2 + quarters,
        "{dropped} of {MERGES} reads in {:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_worker_does_not_wait_for_outcomes_that_are_gone() {
    let mut world = World::asleep(config()).await;
    world.log.longer(OUTCOMES_TOPIC);
    let begun = tokio::time::timeout(LATER, world.begin()).await;
    assert!(begun.is_ok(), "it waits for them");
    assert!(world.log.was_longer());
    let dataset = world.dataset();
    let next = world.submit(dataset, texts(["next"])).await;
    assert_eq!(world.merged(next).await, (1, 1));
}
