//! What ends the process of its worker: found by trying out what can have been in work, and nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pipelines::message::{Outcome, Resolution, Submission};
use types::ContributionId;
use uploads::Compression;

use crate::world::{LATER, World, config, texts};

/// Lets the worker live, again whenever its process ends, until there is an outcome; how often it ended.
async fn survive(world: &mut World, submission: &Submission) -> (usize, Outcome) {
    let screener = Arc::clone(&world.screener);
    for deaths in 0..10 {
        let decided = tokio::select! {
            () = screener.dying.notified() => None,
            outcome = world.outcome(submission.contribution) => Some(outcome),
        };
        match decided {
            Some(outcome) => return (deaths, outcome),
            None => world.die().await,
        }
        world.live();
    }
    panic!("its process ends for ever");
}

/// Waits until so many messages were given to the screener.
async fn calls(world: &World, count: usize) {
    while *world.screener.calls.lock().unwrap() < count {
        tokio::task::yield_now().await;
    }
}

/// Waits until so many trials began.
async fn trials(world: &World, count: usize) {
    while world.trials.begun.load(Ordering::SeqCst) < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_ends_its_process_is_buried_and_nothing_else_is() {
    let mut world = World::asleep(config()).await;
    let mut begun = world.log.begun();
    begun.mark_unchanged();
    world.live();
    begun.changed().await.unwrap();
    let (mine, other) = (world.dataset(), world.dataset());
    let lethal = world.submission(mine, texts(["lethal"]));
    let innocents = [
        world.submission(mine, texts(["before"])),
        world.submission(other, texts(["beside"])),
        world.submission(mine, texts(["after"])),
    ];
    for submission in [&innocents[0], &lethal, &innocents[1], &innocents[2]] {
        world.append(submission.record().unwrap()).await;
    }
    let (deaths, outcome) = survive(&mut world, &lethal).await;
    assert_eq!(deaths, 1, "it is tried out then");
    world.seen.entry(lethal.contribution).or_default().insert(0, outcome);
    assert_eq!(world.rejected(lethal.contribution).await, "unprocessable");
    for innocent in &innocents {
        world.merged(innocent.contribution).await;
    }
    assert_eq!((world.latest(mine).await.1, world.latest(other).await.1), (2, 1));
    let letter = world.letters(1).await.remove(0);
    assert_eq!(letter.contribution, Some(lethal.contribution));
    assert_eq!(letter.reason, "its process ended (SIGABRT) when it was tried out alone");
    // It is over: nobody is buried, or judged, again.
    let fence = world.submit(mine, texts(["behind the letter"])).await;
    world.merged(fence).await;
    let calls = *world.screener.calls.lock().unwrap();
    world.clock.advance(LATER);
    world.append(lethal.record().unwrap()).await;
    assert_eq!(world.rejected(lethal.contribution).await, "unprocessable", "told again");
    let fence = world.submit(mine, texts(["fence"])).await;
    world.merged(fence).await;
    assert_eq!(*world.screener.calls.lock().unwrap(), calls + 1);
    assert_eq!(world.letters(1).await.len(), 1);
    world.stop().await;
    // Nor by a process that has nothing but its outcome.
    world.begin().await;
    world.clock.advance(LATER);
    world.append(lethal.record().unwrap()).await;
    assert_eq!(world.rejected(lethal.contribution).await, "unprocessable", "told again");
    assert_eq!(*world.screener.calls.lock().unwrap(), calls + 1);
}

#[tokio::test]
async fn what_can_have_been_in_work_at_the_start_is_tried_out() {
    let mut world = World::asleep(config()).await;
    let dataset = world.dataset();
    let mut sent = Vec::new();
    for text in ["1", "2", "3", "4", "5", "6", "7"] {
        sent.push(world.submit(dataset, texts([text])).await);
    }
    let other = world.submit(world.dataset(), texts(["other"])).await;
    world.start();
    for id in sent.iter().chain([&other]) {
        world.merged(*id).await;
    }
    // One more than are judged ahead, of each dataset.
    let mut suspects: Vec<ContributionId> = sent[..5].iter().copied().chain([other]).collect();
    suspects.sort_unstable();
    assert_eq!(world.trials.tried(), suspects);
    // What comes now is no suspect.
    let late = world.submit(world.dataset(), texts(["late"])).await;
    world.merged(late).await;
    // Nor is what is decided.
    world.stop().await;
    world.begin().await;
    let late = world.submit(world.dataset(), texts(["later"])).await;
    world.merged(late).await;
    assert_eq!(world.trials.tried(), []);
}

#[tokio::test]
async fn a_batch_that_is_in_work_whenever_somebody_ends_the_process_is_merged_once() {
    const KILLS: usize = 20;
    let mut world = World::asleep(config()).await;
    let dataset = world.dataset();
    let good = world.submit(dataset, texts(["slow"])).await;
    for life in 1..=KILLS {
        world.live();
        calls(&world, life).await;
        world.die().await;
    }
    world.live();
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(good).await, (1, 1));
    let fence = world.submit(dataset, texts(["fence"])).await;
    assert_eq!(world.merged(fence).await, (2, 1));
    assert_eq!(world.trials.tried(), vec![good; KILLS + 1]);
    world.stop().await;
}

#[tokio::test]
async fn a_trial_that_tells_nothing_condemns_nothing() {
    let mut world = World::asleep(config()).await;
    let killed = world.submit(world.dataset(), texts(["killed"])).await;
    world.start();
    assert_eq!(world.merged(killed).await, (1, 1));
    assert_eq!(world.trials.tried(), [killed]);
}

#[tokio::test]
async fn a_trial_that_hangs_delays_no_other_dataset() {
    let mut world = World::asleep(config()).await;
    let (mine, other) = (world.dataset(), world.dataset());
    let hangs = world.submit(mine, texts(["hang"])).await;
    let behind = world.submit(mine, texts(["behind"])).await;
    let beside = world.submit(other, texts(["beside"])).await;
    world.begin().await;
    let late = world.submit(other, texts(["late"])).await;
    assert_eq!(world.merged(beside).await, (1, 1));
    assert_eq!(world.merged(late).await, (2, 1));
    assert!(!world.seen.contains_key(&behind), "it waits for the one before it");
    world.trials.hangs.add_permits(1);
    assert_eq!(world.merged(hangs).await, (1, 1));
    assert_eq!(world.merged(behind).await, (2, 1));
}

#[tokio::test]
async fn a_copy_that_comes_during_a_trial_is_not_worked_on_either() {
    let mut world = World::asleep(config()).await;
    let dataset = world.dataset();
    let first = world.submit(dataset, texts(["first"])).await;
    let lethal = world.submission(dataset, texts(["hang lethal"]));
    world.append(lethal.record().unwrap()).await;
    world.begin().await;
    world.merged(first).await;
    trials(&world, 2).await;
    // Both are tried out, as nothing says yet what the first trial will.
    world.append(lethal.record().unwrap()).await;
    trials(&world, 3).await;
    world.trials.hangs.add_permits(2);
    assert_eq!(world.rejected(lethal.contribution).await, "unprocessable");
    let fence = world.submit(dataset, texts(["fence"])).await;
    assert_eq!(world.merged(fence).await, (2, 1));
    assert_eq!(*world.screener.calls.lock().unwrap(), 2);
    assert_eq!(world.letters(1).await.len(), 1);
}

#[tokio::test]
async fn what_is_held_is_tried_out_at_each_start_and_never_condemned() {
    let mut world = World::asleep(config()).await;
    let held = world.submission(world.dataset(), texts(["hold"]));
    for life in 1..=3 {
        // The marketplace appends it again.
        world.append(held.record().unwrap()).await;
        world.live();
        world.outcome(held.contribution).await;
        world.log.committed(life).await;
        world.die().await;
    }
    *world.screener.holding.lock().unwrap() = false;
    world.append(held.record().unwrap()).await;
    world.live();
    let merged = loop {
        let outcome = world.outcome(held.contribution).await;
        if !matches!(outcome.resolution, Resolution::Waiting { .. }) {
            break outcome;
        }
    };
    assert!(matches!(merged.resolution, Resolution::Merged { .. }));
    assert_eq!(world.trials.tried(), vec![held.contribution; 4]);
    world.stop().await;
}

#[tokio::test]
async fn a_trial_ends_with_the_partition_or_the_worker_and_begins_anew() {
    let mut world = World::asleep(config()).await;
    let hangs = world.submit(world.dataset(), texts(["hang"])).await;
    world.start();
    trials(&world, 1).await;
    world.log.revoke().await;
    world.log.assign();
    trials(&world, 2).await;
    world.stop().await;
    world.start();
    trials(&world, 3).await;
    world.trials.hangs.add_permits(1);
    assert_eq!(world.merged(hangs).await, (1, 1));
}

#[tokio::test]
async fn a_replay_of_what_was_condemned_is_judged_once_it_is_mended() {
    let mut world = World::asleep(config()).await;
    let first = world.submission(world.dataset(), texts(["lethal"]));
    // It is in the log twice, and both are condemned: it is buried once.
    for _ in 0..2 {
        world.append(first.record().unwrap()).await;
    }
    world.start();
    assert_eq!(world.rejected(first.contribution).await, "unprocessable");
    world.log.committed(2).await;
    assert_eq!(world.letters(1).await.len(), 1);
    world.screener.mortal.store(false, Ordering::SeqCst);
    world.trials.mortal.store(false, Ordering::SeqCst);
    let replay = Submission {
        generation: 1,
        ..first.clone()
    };
    world.append(replay.record().unwrap()).await;
    assert_eq!(world.merged(first.contribution).await, (1, 1));
    assert_eq!(
        world.trials.tried(),
        vec![first.contribution; 1],
        "the copy was decided then"
    );
}

#[tokio::test]
async fn without_isolation_nothing_is_tried_out() {
    let mut world = World::asleep(config()).await;
    world.is_isolated = false;
    world.screener.mortal.store(false, Ordering::SeqCst);
    let id = world.submit(world.dataset(), texts(["lethal"])).await;
    world.start();
    assert_eq!(world.merged(id).await, (1, 1));
    assert_eq!(world.trials.tried(), []);
}

#[tokio::test]
async fn what_was_merged_before_it_was_condemned_is_told_to_be_merged() {
    let mut world = World::asleep(config()).await;
    world.screener.mortal.store(false, Ordering::SeqCst);
    world.begin().await;
    let submission = world.submission(world.dataset(), texts(["lethal"]));
    world.append(submission.record().unwrap()).await;
    let told = world.outcome(submission.contribution).await;
    world.lose_the_log().await;
    world.stop().await;
    world.append(submission.record().unwrap()).await;
    world.start();
    assert_eq!(world.outcome(submission.contribution).await, told);
    assert_eq!(world.trials.tried(), [submission.contribution]);
}

#[tokio::test]
async fn an_upload_is_tried_out_and_the_others_go_on() {
    let mut world = World::asleep(config()).await;
    let dataset = world.dataset();
    let mut uploads = Vec::new();
    for text in ["{\"text\": \"lethal\"}\n", "{\"text\": \"fine\"}\n"] {
        let upload = world.upload(dataset, text.as_bytes(), 1 << 20, Compression::None).await;
        world.append(upload.record().unwrap()).await;
        uploads.push(upload.contribution);
    }
    let batch = world.submit(dataset, texts(["batch"])).await;
    world.start();
    assert_eq!(world.rejected(uploads[0]).await, "unprocessable");
    assert_eq!(world.merged(uploads[1]).await.1, 1);
    assert_eq!(world.merged(batch).await.1, 1);
    assert_eq!(world.letters(1).await[0].contribution, Some(uploads[0]));
    let mut suspects = [uploads[0], uploads[1], batch];
    suspects.sort_unstable();
    assert_eq!(world.trials.tried(), suspects);
}
