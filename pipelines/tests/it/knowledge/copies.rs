//! Copies of what is published: by words, by facts, and by meaning.

use super::*;

#[tokio::test]
async fn of_copies_the_earliest_in_the_log_is_published() {
    let mut world = World::new().await;
    let body = words(1, 60);
    let units = [unit(&body), unit(&body.to_uppercase()), unit(&format!("{body} and"))];
    // They are in one batch, so none is published when the others are reviewed.
    world.submit(&units).await;
    world.start("one", "knowledge");
    let outcomes = world.outcomes(3).await;
    assert_eq!(
        codes(&outcomes, &units),
        ["published", "duplicate_exact", "duplicate_near"]
    );
    let copy = outcomes.iter().find(|outcome| outcome.unit == units[1].unit).unwrap();
    let last = copy.report.last().unwrap();
    assert_eq!(last.step, ReviewStep::Publish);
    assert_eq!(last.similar.unwrap().unit_id, units[0].unit);
    // A revision is not compared with its own chain.
    let mut revision = unit(&format!("{body} and more"));
    revision.chain = units[0].chain;
    revision.predecessor = Some(units[0].unit);
    world.submit(std::slice::from_ref(&revision)).await;
    assert_eq!(code(&world.outcomes(1).await[0]), "published");
    world.stop().await;
}

/// Figures and names that no other text of these tests has.
const FACTS: &str = "orders_2026 took 812 ms and 97.4 ms with work_mem at 6418 and 1,204,331 rows";

/// Words without figures, so that they are no facts.
fn plain_words(seed: u32, count: u32) -> String {
    let letters = |word: String| {
        word.bytes()
            .map(|byte| char::from(byte % 10 + b'k'))
            .collect::<String>()
    };
    let plain = words(seed, count);
    plain
        .split(' ')
        .map(|word| letters(word.to_owned()))
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn a_unit_that_is_near_in_meaning_only_is_published_and_marked() {
    let mut world = World::new().await;
    world.embedder = Some(Arc::new(Alike));
    let units = [1, 2].map(|seed| unit(&format!("alike {}", plain_words(seed, 60))));
    world.start("one", "knowledge");
    world.submit(&units[..1]).await;
    assert_eq!(code(&world.outcomes(1).await[0]), "published");
    world.submit(&units[1..]).await;
    let outcome = &world.outcomes_of(&units[1..]).await[0];
    let UnitResolution::Published { near, embedder, .. } = &outcome.resolution else {
        panic!("{:?}", outcome.resolution);
    };
    assert_eq!((*near, embedder.as_deref()), (Some(units[0].unit), Some("alike")));
    let step = outcome
        .report
        .iter()
        .find(|entry| entry.step == ReviewStep::Embedding)
        .unwrap();
    assert_eq!(step.code, "near_unit");
    world.stop().await;
    // A new process knows the mark from the prints beside the table, and tells it again.
    world.start("two", "knowledge");
    world.submit(&units[1..]).await;
    let told = world.outcomes(1).await;
    assert!(
        matches!(&told[0].resolution, UnitResolution::Published { near: Some(near), .. } if *near == units[0].unit)
    );
    world.stop().await;
}

#[tokio::test]
async fn of_units_with_the_same_facts_the_earliest_is_published_whoever_reviews_the_others() {
    let mut world = World::new().await;
    world.embedder = Some(Arc::new(Alike));
    let units = [1, 2, 3].map(|seed| unit(&format!("alike {} {FACTS}", plain_words(seed, 60))));
    // They are in one batch, so neither is published when the other is reviewed.
    world.submit(&units[..2]).await;
    world.start("one", "knowledge");
    let outcomes = world.outcomes(2).await;
    assert_eq!(codes(&outcomes, &units[..2]), ["published", "duplicate_meaning"]);
    let copy = outcomes.iter().find(|outcome| outcome.unit == units[1].unit).unwrap();
    let last = copy.report.last().unwrap();
    assert_eq!(
        (last.step, last.similar.unwrap().unit_id),
        (ReviewStep::Publish, units[0].unit)
    );
    // The sentence names the rule that decided, and no mark that did not.
    let names_rule = |detail: &str| {
        detail.contains("figures and names") && detail.contains("the meaning is alike") && !detail.contains("0.9")
    };
    assert!(
        names_rule(&last.detail) && last.detail.contains("while yours was being judged"),
        "{}",
        last.detail
    );
    world.stop().await;
    // A new process knows the vector from the prints beside the table.
    world.start("two", "knowledge");
    world.submit(&units[2..]).await;
    let outcomes = world.outcomes_of(&units[2..]).await;
    let third = outcomes.iter().find(|outcome| outcome.unit == units[2].unit).unwrap();
    assert_eq!(code(third), "duplicate_meaning");
    let last = third.report.last().unwrap();
    assert_eq!(
        (last.step, last.similar.unwrap().unit_id),
        (ReviewStep::Embedding, units[0].unit)
    );
    assert!(names_rule(&last.detail), "{}", last.detail);
    world.stop().await;
}
