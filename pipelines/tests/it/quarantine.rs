//! What ends the process of its worker: found by working alone on what was in work, and on nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use eventlog::EventLog as _;
use pipelines::Config;
use pipelines::message::{ATTEMPTS, Attempt, FORMAT, Outcome, Step, Subject, Submission};
use serde_json::json;
use types::{Clock as _, ContributionId, LifeId};
use uploads::Compression;

use crate::world::{LATER, World, config, texts};

/// Nothing is let go of before it ends.
fn patient() -> Config {
    Config {
        alone_ms: 60_000,
        ..config()
    }
}

/// The steps that were noted of each contribution, in the order in which they were: there is one partition.
fn steps(notes: Vec<Attempt>) -> Vec<(ContributionId, Step)> {
    let of = |note: Attempt| match note.subject {
        Subject::Contribution { contribution, .. } => (contribution, note.step),
        Subject::Unit { .. } | Subject::Unreadable { .. } => panic!("{note:?}"),
    };
    notes.into_iter().map(of).collect()
}

/// Notes that a process ended while this was alone in work, as often as that.
async fn charge(world: &World, submission: &Submission, group: &str, times: usize) {
    for _ in 0..times {
        let note = Attempt {
            format: FORMAT,
            group: group.to_owned(),
            life: LifeId::new(world.clock.now()),
            turn: 1,
            step: Step::Begun,
            subject: Subject::of(Some(&submission.address()), b""),
            partition: 0,
            offset: 0,
        };
        world.log.append(ATTEMPTS, vec![note.record().unwrap()]).await.unwrap();
    }
}

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

#[tokio::test]
async fn what_ends_its_process_every_time_is_buried_and_nothing_else_is() {
    let mut world = World::asleep(patient()).await;
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
    assert_eq!(deaths, 3, "one beside the others, two alone");
    world.seen.entry(lethal.contribution).or_default().insert(0, outcome);
    assert_eq!(world.rejected(lethal.contribution).await, "unprocessable");
    for innocent in &innocents {
        world.merged(innocent.contribution).await;
    }
    assert_eq!((world.latest(mine).await.1, world.latest(other).await.1), (2, 1));
    let letter = world.letters(1).await.remove(0);
    assert_eq!(letter.contribution, Some(lethal.contribution));
    assert!(
        letter.reason.contains("process ended again and again"),
        "{}",
        letter.reason
    );
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
}

#[tokio::test]
async fn what_was_in_the_log_at_the_start_is_worked_on_one_at_a_time() {
    let mut world = World::asleep(patient()).await;
    world.screener.slow.add_permits(2);
    let mut sent = Vec::new();
    for text in ["slow 1", "2", "slow 3"] {
        sent.push(world.submit(world.dataset(), texts([text])).await);
    }
    world.start();
    for id in &sent {
        world.merged(*id).await;
    }
    assert_eq!(world.screener.busiest.load(Ordering::SeqCst), 1);
    let begun = sent.iter().map(|id| (*id, Step::Begun));
    let last = (sent[2], Step::Acquitted);
    assert_eq!(steps(world.notes(4).await), begun.chain([last]).collect::<Vec<_>>());
    // What comes now is no suspect.
    let late = world.submit(world.dataset(), texts(["late"])).await;
    world.merged(late).await;
    assert_eq!(world.notes(4).await.len(), 4);
    // Nor is what is decided.
    world.stop().await;
    world.begin().await;
    let late = world.submit(world.dataset(), texts(["later"])).await;
    world.merged(late).await;
    assert_eq!(world.notes(4).await.len(), 4);
}

#[tokio::test]
async fn what_takes_long_is_let_go_of_and_never_condemned() {
    let mut world = World::asleep(config()).await;
    let slow = world.submit(world.dataset(), texts(["slow"])).await;
    for life in 0..4 {
        let quick = world
            .submit(world.dataset(), vec![json!({"text": format!("{life}")})])
            .await;
        world.live();
        world.merged(quick).await;
        let notes = steps(world.notes(1).await);
        assert_eq!(notes[0], (slow, Step::Begun));
        world.die().await;
    }
    world.live();
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(slow).await, (1, 1));
    world.stop().await;
}

#[tokio::test]
async fn what_took_long_before_comes_after_the_others() {
    let mut world = World::asleep(config()).await;
    let slow = world.submit(world.dataset(), texts(["slow"])).await;
    world.live();
    assert_eq!(steps(world.notes(2).await), [(slow, Step::Begun), (slow, Step::Long)]);
    world.die().await;
    let quick = world.submit(world.dataset(), texts(["quick"])).await;
    world.live();
    world.merged(quick).await;
    let notes = steps(world.notes(5).await);
    let begun = notes.iter().filter(|(_, step)| *step == Step::Begun);
    assert_eq!(begun.map(|(id, _)| *id).collect::<Vec<_>>(), [slow, quick, slow]);
    world.screener.slow.add_permits(1);
    world.merged(slow).await;
    world.stop().await;
}

#[tokio::test]
async fn what_is_held_is_outlived() {
    let mut world = World::asleep(patient()).await;
    let held = world.submission(world.dataset(), texts(["hold"]));
    for life in 1..=3 {
        // The marketplace appends it again.
        world.append(held.record().unwrap()).await;
        world.live();
        world.outcome(held.contribution).await;
        world.log.committed(life).await;
        while world.notes(2).await.last().unwrap().step != Step::Acquitted {
            tokio::task::yield_now().await;
        }
        world.die().await;
    }
    *world.screener.holding.lock().unwrap() = false;
    world.append(held.record().unwrap()).await;
    world.live();
    let merged = loop {
        let outcome = world.outcome(held.contribution).await;
        if !matches!(outcome.resolution, pipelines::message::Resolution::Waiting { .. }) {
            break outcome;
        }
    };
    assert!(matches!(
        merged.resolution,
        pipelines::message::Resolution::Merged { .. }
    ));
    world.stop().await;
}

#[tokio::test]
async fn a_worker_that_loses_or_leaves_what_is_alone_has_outlived_it() {
    let mut world = World::asleep(patient()).await;
    let slow = world.submit(world.dataset(), texts(["slow"])).await;
    world.start();
    while *world.screener.calls.lock().unwrap() < 1 {
        tokio::task::yield_now().await;
    }
    world.log.revoke().await;
    let outlived = [(slow, Step::Begun), (slow, Step::Acquitted)];
    assert_eq!(steps(world.notes(2).await), outlived);
    world.log.assign();
    while *world.screener.calls.lock().unwrap() < 2 {
        tokio::task::yield_now().await;
    }
    world.stop().await;
    assert_eq!(steps(world.notes(4).await), [outlived, outlived].concat());
    world.screener.slow.add_permits(1);
    world.start();
    assert_eq!(world.merged(slow).await, (1, 1));
}

#[tokio::test]
async fn a_replay_and_another_group_have_a_clean_slate() {
    let mut world = World::asleep(patient()).await;
    let first = world.submission(world.dataset(), texts(["a"]));
    let rivals = world.submission(world.dataset(), texts(["b"]));
    charge(&world, &first, "workers", 2).await;
    charge(&world, &rivals, "rivals", 2).await;
    world.append(first.record().unwrap()).await;
    world.append(rivals.record().unwrap()).await;
    world.start();
    assert_eq!(world.rejected(first.contribution).await, "unprocessable");
    assert_eq!(world.merged(rivals.contribution).await, (1, 1));
    let replay = Submission {
        generation: 1,
        ..first.clone()
    };
    world.append(replay.record().unwrap()).await;
    assert_eq!(world.merged(first.contribution).await, (1, 1));
    world.stop().await;
    // Also where it is in work at a start.
    let other = world.submission(world.dataset(), texts(["c"]));
    charge(&world, &other, "workers", 2).await;
    let replay = Submission { generation: 1, ..other };
    world.append(replay.record().unwrap()).await;
    world.start();
    assert_eq!(world.merged(replay.contribution).await, (1, 1));
}

#[tokio::test]
async fn what_is_charged_is_alone_or_buried_wherever_it_comes_from() {
    let mut world = World::asleep(patient()).await;
    let (once, twice) = (
        world.submission(world.dataset(), texts(["once"])),
        world.submission(world.dataset(), texts(["twice"])),
    );
    charge(&world, &once, "workers", 1).await;
    charge(&world, &twice, "workers", 2).await;
    world.begin().await;
    // As after a topic was made anew: the marketplace appends what is open once the worker has begun.
    for submission in [&twice, &twice, &once] {
        world.append(submission.record().unwrap()).await;
    }
    assert_eq!(world.rejected(twice.contribution).await, "unprocessable");
    assert_eq!(world.merged(once.contribution).await, (1, 1));
    assert_eq!(world.letters(1).await.len(), 1, "it is buried once");
    let notes = steps(world.notes(5).await);
    let begun = notes
        .iter()
        .filter(|note| **note == (once.contribution, Step::Begun))
        .count();
    assert_eq!(begun, 2, "by whom it was charged, and now");
}

#[tokio::test]
async fn where_nothing_is_to_be_quarantined_nothing_is() {
    let config = Config { ends: 0, ..patient() };
    let mut world = World::asleep(config).await;
    let submission = world.submission(world.dataset(), texts(["often"]));
    charge(&world, &submission, "workers", 9).await;
    world.begin().await;
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.merged(submission.contribution).await, (1, 1));
}

#[tokio::test]
async fn what_was_merged_before_its_process_ended_is_told_to_be_merged() {
    let mut world = World::asleep(patient()).await;
    let submission = world.submission(world.dataset(), texts(["a"]));
    world.append(submission.record().unwrap()).await;
    world.start();
    let told = world.outcome(submission.contribution).await;
    world.lose_the_log().await;
    world.stop().await;
    charge(&world, &submission, "workers", 2).await;
    world.append(submission.record().unwrap()).await;
    world.start();
    assert_eq!(world.outcome(submission.contribution).await, told);
}

#[tokio::test]
async fn an_upload_waits_for_the_batches() {
    let mut world = World::asleep(patient()).await;
    let dataset = world.dataset();
    let upload = world
        .upload(dataset, b"{\"text\": \"up\"}\n", 1 << 20, Compression::None)
        .await;
    world.append(upload.record().unwrap()).await;
    let batch = world.submit(world.dataset(), texts(["batch"])).await;
    world.start();
    world.merged(batch).await;
    assert_eq!(world.merged(upload.contribution).await, (1, 1));
    let notes = steps(world.notes(3).await);
    let begun = notes.iter().filter(|(_, step)| *step == Step::Begun);
    assert_eq!(
        begun.map(|(id, _)| *id).collect::<Vec<_>>(),
        [batch, upload.contribution]
    );
}

#[tokio::test]
async fn an_upload_that_comes_again_does_not_overtake_itself() {
    let mut world = World::asleep(patient()).await;
    let upload = world
        .upload(world.dataset(), b"{\"text\": \"up\"}\n", 1 << 20, Compression::None)
        .await;
    world.append(upload.record().unwrap()).await;
    let slow = world.submit(world.dataset(), texts(["slow"])).await;
    world.begin().await;
    // The marketplace appends it again when it starts, and it is no suspect.
    world.append(upload.record().unwrap()).await;
    world.screener.slow.add_permits(1);
    world.merged(slow).await;
    assert_eq!(world.merged(upload.contribution).await, (1, 1));
    let begun = [(slow, Step::Begun), (upload.contribution, Step::Begun)];
    assert_eq!(steps(world.notes(2).await)[..2], begun);
}
