//! Judges that are away, texts that spoil answers, and messages that end processes.

use super::*;

#[tokio::test]
async fn a_judge_that_is_away_holds_a_unit_and_never_rejects_it() {
    let mut world = World::new().await;
    world.scorer.away.store(true, Ordering::SeqCst);
    world.start("one", "knowledge");
    let held = unit(&words(1, 60));
    world.submit(std::slice::from_ref(&held)).await;
    let outcomes = world.outcomes(1).await;
    let expected = UnitResolution::Waiting {
        reason: "provider".to_owned(),
        resumes_after: Some(NOW),
    };
    assert_eq!(outcomes[0].resolution, expected);
    assert_eq!(outcomes[0].report.last().unwrap().step, ReviewStep::Hold);
    world.scorer.away.store(false, Ordering::SeqCst);
    world.submit(std::slice::from_ref(&held)).await;
    assert_eq!(code(&world.outcomes(1).await[0]), "published");
    world.stop().await;
}

/// The hold says whose it is: the database counts those of a text, and holds nobody else for them.
#[tokio::test]
async fn a_text_without_a_usable_answer_holds_itself_only() {
    let mut world = World::new().await;
    world.start("one", "knowledge");
    let units = [unit(&format!("baffling {}", words(1, 60))), unit(&words(2, 60))];
    world.submit(&units).await;
    let outcomes = world.outcomes(2).await;
    assert_eq!(codes(&outcomes, &units), ["provider", "published"]);
    let held = outcomes.iter().find(|outcome| outcome.unit == units[0].unit).unwrap();
    assert!(is_held_by_its_text(&held.report), "{:?}", held.report);
    world.scorer.away.store(true, Ordering::SeqCst);
    world.submit(&units[..1]).await;
    assert!(!is_held_by_its_text(&world.outcomes(1).await[0].report));
    world.stop().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_processed_rejects_its_unit_and_stops_nothing() {
    let mut world = World::new().await;
    let mut letters = world.log.tail(DEAD_LETTERS).await.unwrap();
    world.start("one", "knowledge");
    let (broken, fatal, fine) = (
        unit(&words(1, 60)),
        unit(&format!("panic {}", words(2, 60))),
        unit(&words(3, 60)),
    );
    let mut record = broken.record().unwrap();
    record = Record {
        value: record.value.slice(..record.value.len() - 9),
        ..record
    };
    world.log.append(KNOWLEDGE_TOPIC, vec![record]).await.unwrap();
    world.submit(&[fatal.clone(), fine.clone()]).await;
    let outcomes = world.outcomes(3).await;
    let units = [broken, fatal, fine];
    assert_eq!(
        codes(&outcomes, &units),
        ["unprocessable", "unprocessable", "published"]
    );
    // Each letter names the place of its message in the log.
    for (offset, unit) in (0..).zip(&units[..2]) {
        let letter: DeadLetter = serde_json::from_slice(&letters.next(1).await.unwrap()[0].record.value).unwrap();
        assert_eq!(
            (letter.partition, letter.offset, letter.unit),
            (0, offset, Some(unit.unit))
        );
    }
    world.stop().await;
}

#[tokio::test]
async fn a_unit_that_ends_its_process_is_rejected_and_the_others_go_on() {
    let mut world = World::new().await;
    let mut letters = world.log.tail(DEAD_LETTERS).await.unwrap();
    let units = [
        unit(&format!("lethal panic {}", words(1, 60))),
        unit(&format!("killed {}", words(2, 60))),
        unit(&words(3, 60)),
    ];
    world.submit(&units).await;
    world.start("one", "knowledge");
    let outcomes = world.outcomes(3).await;
    assert_eq!(codes(&outcomes, &units), ["unprocessable", "published", "published"]);
    let letter: DeadLetter = serde_json::from_slice(&letters.next(1).await.unwrap()[0].record.value).unwrap();
    assert_eq!(
        (letter.unit, letter.reason.as_str()),
        (
            Some(units[0].unit),
            "its process ended (SIGABRT) when it was tried out alone"
        )
    );
    assert_eq!(world.trials.begun.load(Ordering::SeqCst), 3);
    // A copy that was not there at the start is not tried out, and not worked on either.
    world.submit(&units[..1]).await;
    assert_eq!(code(&world.outcomes(1).await[0]), "unprocessable");
    // Its replay is another generation, and is judged; here, by a judge that panics.
    let mut replay = units[0].clone();
    replay.generation = 1;
    world.submit(&[replay]).await;
    assert_eq!(code(&world.outcomes(1).await[0]), "unprocessable");
    let letter: DeadLetter = serde_json::from_slice(&letters.next(1).await.unwrap()[0].record.value).unwrap();
    assert_eq!(letter.reason, "a judge panicked on it");
    assert_eq!(world.trials.begun.load(Ordering::SeqCst), 3);
    world.stop().await;
}
