//! Order, isolation, holds, restarts.

use eventlog::EventLog as _;
use operators::Verdict;
use pipelines::message::{BASE_FORMAT, OUTCOMES_TOPIC, Outcome, Resolution, Submission};
use serde_json::json;
use types::{Clock as _, Version};

use crate::world::{LATER, World, texts};

#[tokio::test]
async fn submissions_of_a_dataset_become_versions_in_order() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let mut ids = Vec::new();
    for batch in [["a", "b"], ["b", "c"], ["c", "a"], ["d", "d"]] {
        ids.push(world.submit(dataset, texts(batch)).await);
    }
    assert_eq!(world.merged(ids[0]).await, (1, 2));
    assert_eq!(world.merged(ids[1]).await, (2, 1));
    let rejected = world.outcome(ids[2]).await;
    assert!(
        matches!(rejected.resolution, Resolution::Rejected { ref code, .. } if code == "duplicates"),
        "{rejected:?}"
    );
    assert_eq!(rejected.verdicts.len(), 2);
    assert_eq!(world.merged(ids[3]).await, (3, 1));
    assert_eq!(world.latest(dataset).await, (Version(3), 4));
}

#[tokio::test]
async fn a_slow_model_delays_only_its_dataset() {
    let mut world = World::new().await;
    let (slow, quick) = (world.dataset(), world.dataset());
    let stuck = world.submit(slow, texts(["slow"])).await;
    let behind = world.submit(slow, texts(["behind"])).await;
    for index in 0..20 {
        let id = world.submit(quick, vec![json!({"text": format!("q{index}")})]).await;
        assert_eq!(world.merged(id).await, (index + 1, 1));
    }
    assert!(!world.seen.contains_key(&stuck) && !world.seen.contains_key(&behind));
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(stuck).await, (1, 1));
    assert_eq!(world.merged(behind).await, (2, 1));
}

#[tokio::test]
async fn a_full_writer_leaves_messages_out_instead_of_waiting() {
    let mut world = World::new().await;
    let (slow, quick) = (world.dataset(), world.dataset());
    let stuck = world.submit(slow, texts(["slow"])).await;
    let large = "x".repeat(400_000);
    let mut flood = Vec::new();
    for index in 0..8 {
        flood.push(world.submission(slow, vec![json!({"text": format!("{index}{large}")})]));
    }
    for submission in &flood {
        world.append(submission.record().unwrap()).await;
    }
    let id = world.submit(quick, texts(["quick"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(stuck).await, (1, 1));
    // What was left out has no outcome; the marketplace appends it again and it is merged once.
    for submission in &flood {
        world.append(submission.record().unwrap()).await;
        world.merged(submission.contribution).await;
    }
    assert_eq!(world.latest(slow).await.1, 9);
}

#[tokio::test]
async fn a_hold_lets_the_line_go_on_and_is_judged_when_it_comes_again() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let held = world.submission(dataset, texts(["hold"]));
    world.append(held.record().unwrap()).await;
    let next = world.submit(dataset, texts(["next"])).await;
    let waiting = world.outcome(held.contribution).await;
    assert!(
        matches!(waiting.resolution, Resolution::Waiting { ref reason, resumes_after: Some(_) } if reason == "budget"),
        "{waiting:?}"
    );
    assert_eq!(world.merged(next).await, (1, 1));
    *world.screener.holding.lock().unwrap() = false;
    world.append(held.record().unwrap()).await;
    assert_eq!(world.merged(held.contribution).await, (2, 1));
}

#[tokio::test]
async fn a_private_dataset_is_not_screened() {
    let mut world = World::new().await;
    let submission = Submission {
        private: true,
        ..world.submission(world.dataset(), texts(["hold"]))
    };
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.merged(submission.contribution).await, (1, 1));
    assert_eq!(*world.screener.calls.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_restart_decides_nothing_twice() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let merged = world.submission(dataset, texts(["a", "a", "b"]));
    let rejected = world.submission(dataset, vec![json!({"text": 1})]);
    for submission in [&merged, &rejected] {
        world.append(submission.record().unwrap()).await;
    }
    let first = [
        world.outcome(merged.contribution).await,
        world.outcome(rejected.contribution).await,
    ];
    assert!(matches!(first[0].verdicts[0].verdict, Verdict::Drop { .. }));
    world.stop().await;
    world.begin().await;
    world.clock.advance(LATER);
    // Appended again: each is known to be decided, and is told as it was.
    for (submission, first) in [&merged, &rejected].into_iter().zip(&first) {
        world.append(submission.record().unwrap()).await;
        assert_eq!(world.outcome(submission.contribution).await, *first);
    }
    let fence = world.submit(dataset, texts(["fence"])).await;
    assert_eq!(world.merged(fence).await, (2, 1));
    assert!(world.seen.values().all(Vec::is_empty), "{:?}", world.seen);
}

#[tokio::test]
async fn a_merge_whose_outcome_was_lost_gives_the_same_outcome_again() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let submission = world.submission(dataset, texts(["a", "a", "b"]));
    world.append(submission.record().unwrap()).await;
    let first = world.outcome(submission.contribution).await;
    world.lose_the_log().await;
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.outcome(submission.contribution).await, first);
    assert_eq!(world.latest(dataset).await, (Version(1), 2));
}

#[tokio::test]
async fn what_was_decided_is_told_again_as_it_was_when_it_comes_again() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let submissions = [
        world.submission(dataset, texts(["a"])),
        world.submission(dataset, vec![json!({"text": 1})]),
        world.submission(dataset, texts(["a"])),
        world.submission(dataset, texts(["panic"])),
    ];
    let mut told = Vec::new();
    for submission in &submissions {
        world.append(submission.record().unwrap()).await;
        told.push(world.outcome(submission.contribution).await);
    }
    assert!(!told[1].verdicts.is_empty() && !told[2].verdicts.is_empty());
    let calls = *world.screener.calls.lock().unwrap();
    // What was told a moment ago is not told again.
    for submission in &submissions {
        world.append(submission.record().unwrap()).await;
    }
    let fence = world.submit(dataset, vec![json!({"text": 2})]).await;
    world.rejected(fence).await;
    assert!(world.seen.values().all(Vec::is_empty), "{:?}", world.seen);
    // The log took each outcome and lost it: the marketplace appends what is open there.
    world.clock.advance(LATER);
    for (submission, told) in submissions.iter().zip(&told) {
        world.append(submission.record().unwrap()).await;
        assert_eq!(world.outcome(submission.contribution).await, *told);
    }
    assert_eq!(*world.screener.calls.lock().unwrap(), calls, "nothing is judged again");
    assert_eq!(world.latest(dataset).await, (Version(1), 1));
}

#[tokio::test]
async fn a_partition_that_is_lost_and_comes_back_is_begun_anew() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let stuck = world.submit(dataset, texts(["slow"])).await;
    let behind = world.submit(dataset, texts(["behind"])).await;
    while *world.screener.calls.lock().unwrap() < 2 {
        tokio::task::yield_now().await;
    }
    world.log.revoke().await;
    assert_eq!(world.log.position(), 0, "nothing was done");
    world.log.assign();
    // There is one permit: the writer that began before the loss must not take it from the one that begins now.
    while *world.screener.calls.lock().unwrap() < 4 {
        tokio::task::yield_now().await;
    }
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(stuck).await, (1, 1));
    assert_eq!(world.merged(behind).await, (2, 1));
    world.log.committed(2).await;
    assert_eq!(world.latest(dataset).await, (Version(2), 2));
}

#[tokio::test]
async fn what_another_worker_decided_meanwhile_is_not_judged_again() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let waiting = world.submission(dataset, texts(["slow"]));
    world.append(waiting.record().unwrap()).await;
    while *world.screener.calls.lock().unwrap() < 1 {
        tokio::task::yield_now().await;
    }
    world.log.revoke().await;
    let decided = Outcome {
        format: BASE_FORMAT,
        contribution: waiting.contribution,
        generation: waiting.generation,
        dataset,
        at: world.clock.now(),
        resolution: Resolution::Rejected {
            code: "elsewhere".to_owned(),
            message: String::new(),
        },
        rows: 1,
        verdicts: Vec::new(),
        tallies: Vec::new(),
        traceparent: None,
    };
    world
        .log
        .append(OUTCOMES_TOPIC, vec![decided.record().unwrap()])
        .await
        .unwrap();
    world.log.assign();
    // Its position is done though nobody lets the model answer.
    world.log.committed(1).await;
    assert_eq!(world.rejected(waiting.contribution).await, "elsewhere");
    assert_eq!(*world.screener.calls.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_writer_compacts_its_table_beside_the_merges_and_goes_on_after_a_restart() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    for index in 0..9 {
        let id = world.submit(dataset, vec![json!({"text": format!("t{index}")})]).await;
        assert_eq!(world.merged(id).await, (index + 1, 1));
    }
    // Eight and one.
    world.parts(dataset, 2).await;
    world.stop().await;
    world.start();
    let id = world.submit(dataset, texts(["t3", "new"])).await;
    assert_eq!(world.merged(id).await, (10, 1));
    world.parts(dataset, 2).await;
    assert_eq!(world.latest(dataset).await, (Version(10), 10));
}
