//! Units whose review takes long, beside others.

use std::slice::from_ref;
use std::sync::mpsc;
use std::time::Duration;

use types::unit::is_held_by_its_text;

use crate::knowledge::{World, codes, unit, words};

/// A copy waits for the earlier text, and nobody else does.
#[tokio::test]
async fn no_unit_but_a_copy_waits_for_a_slow_review() {
    let mut world = World::new().await;
    let slow = unit(&format!("slow {}", words(1, 60)));
    let (copy, other, later) = (unit(&words(1, 60)), unit(&words(2, 60)), unit(&words(3, 60)));
    world.submit(&[slow.clone(), copy.clone(), other.clone()]).await;
    world.start("one", "knowledge");
    assert_eq!(codes(&world.outcomes(1).await, from_ref(&other)), ["published"]);
    world.submit(from_ref(&later)).await;
    assert_eq!(codes(&world.outcomes(1).await, from_ref(&later)), ["published"]);
    world.scorer.go.notify_one();
    let outcomes = world.outcomes(2).await;
    assert_eq!(codes(&outcomes, &[slow, copy]), ["published", "duplicate_near"]);
    assert_eq!(world.rows().await.len(), 3);
    world.stop().await;
}

/// What was done behind a message that is not is not lost, and not published twice, when the worker ends.
#[tokio::test]
async fn a_slow_review_is_begun_again_after_a_restart() {
    let mut world = World::new().await;
    let (slow, other) = (unit(&format!("slow {}", words(1, 60))), unit(&words(2, 60)));
    world.submit(&[slow.clone(), other.clone()]).await;
    world.start("one", "knowledge");
    assert_eq!(codes(&world.outcomes(1).await, from_ref(&other)), ["published"]);
    world.stop().await;
    world.start("two", "knowledge");
    world.scorer.go.notify_one();
    let outcomes = world.outcomes_of(&[slow.clone(), other.clone()]).await;
    assert_eq!(codes(&outcomes, &[slow, other]), ["published", "published"]);
    assert_eq!(world.rows().await.len(), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_review_that_works_for_too_long_is_given_up_and_holds_its_unit() {
    let mut world = World::new().await;
    world.review_time = Some(Duration::from_secs(2));
    let (done, busy) = mpsc::channel();
    *world.scorer.busy.lock().unwrap() = Some(busy);
    let units = [unit(&format!("busy {}", words(1, 60))), unit(&words(2, 60))];
    world.submit(&units).await;
    world.start("one", "knowledge");
    let outcomes = world.outcomes_of(&units).await;
    assert_eq!(codes(&outcomes, &units), ["provider", "published"]);
    let held = outcomes.iter().find(|outcome| outcome.unit == units[0].unit).unwrap();
    assert!(is_held_by_its_text(&held.report), "{:?}", held.report);
    drop(done);
    world.stop().await;
}
