//! Messages that no worker can process, or only with fewer words.

use eventlog::Record;
use pipelines::message::{CONTRIBUTIONS_TOPIC, Outcome, Records, Resolution, Source, Submission};
use serde_json::{Value, json};
use types::{Contract, DatasetId};

use crate::world::{World, texts};

#[tokio::test]
async fn poison_goes_to_the_dead_letters_and_blocks_nobody() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let good = world.submission(dataset, texts(["good"]));
    let other_contract = serde_json::from_value(json!({"fields": [{"name": "n", "type": "integer"}]})).unwrap();
    let contradicting = Submission {
        contract: other_contract,
        ..world.submission(dataset, texts(["x"]))
    };
    let panicking = world.submission(dataset, texts(["panic"]));
    let future_format = Submission {
        format: 99,
        ..world.submission(dataset, texts(["x"]))
    };
    let key = good.record().unwrap().key;
    let garbage = Record {
        key: key.clone(),
        value: b"{not json".as_slice().into(),
    };
    let empty = Record {
        key,
        value: b"".as_slice().into(),
    };
    let keyless = Record {
        key: b"short".as_slice().into(),
        value: b"{}".as_slice().into(),
    };
    let poison = [
        garbage,
        good.record().unwrap(),
        contradicting.record().unwrap(),
        panicking.record().unwrap(),
        future_format.record().unwrap(),
        empty,
        keyless,
    ];
    for record in poison {
        world.append(record).await;
    }
    let last = world.submit(dataset, texts(["last"])).await;
    assert_eq!(world.merged(good.contribution).await, (1, 1));
    assert_eq!(world.merged(last).await, (2, 1));
    for submission in [&contradicting, &panicking, &future_format] {
        let outcome = world.outcome(submission.contribution).await;
        assert!(
            matches!(outcome.resolution, Resolution::Rejected { ref code, .. } if code == "unprocessable"),
            "{outcome:?}"
        );
    }
    let seen = world.letters(6).await;
    assert!(
        seen.iter()
            .any(|letter| letter.contribution == Some(contradicting.contribution))
    );
    assert!(
        seen.iter()
            .all(|letter| !letter.reason.is_empty() && letter.topic == CONTRIBUTIONS_TOPIC)
    );
}

/// Everything about the contribution is as it was, and this build cannot read it.
fn unreadable(submission: &Submission) -> Record {
    Submission {
        format: 99,
        ..submission.clone()
    }
    .record()
    .unwrap()
}

#[tokio::test]
async fn poison_of_a_merged_contribution_is_told_to_be_merged() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let (first, second) = (
        world.submission(dataset, texts(["a"])),
        world.submission(dataset, texts(["b"])),
    );
    let mut told = Vec::new();
    for submission in [&first, &second] {
        world.append(submission.record().unwrap()).await;
        told.push(world.outcome(submission.contribution).await);
    }
    world.lose_the_log().await;
    // Before the writer knows its table, and after.
    world.append(unreadable(&first)).await;
    assert_eq!(world.outcome(first.contribution).await, told[0]);
    let fence = world.submit(dataset, texts(["fence"])).await;
    assert_eq!(world.merged(fence).await, (3, 1));
    let mut elsewhere = unreadable(&second);
    world.append(elsewhere.clone()).await;
    assert_eq!(world.outcome(second.contribution).await, told[1]);
    // Under the key of another dataset, and of none.
    world.lose_the_log().await;
    elsewhere.key = world.dataset().as_bytes().to_vec().into();
    world.append(elsewhere.clone()).await;
    assert_eq!(world.outcome(second.contribution).await, told[1]);
    elsewhere.key = b"none".as_slice().into();
    elsewhere.value = unreadable(&first).value;
    world.append(elsewhere).await;
    assert_eq!(world.outcome(first.contribution).await, told[0]);
}

#[tokio::test]
async fn a_message_under_the_key_of_another_dataset_opens_no_table_there() {
    let mut world = World::new().await;
    let (mine, other) = (world.dataset(), world.dataset());
    let stray = world.submission(other, texts(["stray"]));
    let mut record = stray.record().unwrap();
    record.key = mine.as_bytes().to_vec().into();
    world.append(record).await;
    assert_eq!(world.rejected(stray.contribution).await, "unprocessable");
    let id = world.submit(mine, texts(["mine"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
    assert_eq!(world.latest(mine).await.1, 1);
}

/// As many fields as there may be, with names as long as they may be; every record lacks them all.
fn worst(world: &World, dataset: DatasetId) -> Submission {
    let field = |index| json!({"name": format!("{index:0>128}"), "type": "string", "required": true});
    let fields: Vec<Value> = (0..256).map(field).collect();
    let contract: Contract = serde_json::from_value(json!({"fields": fields})).unwrap();
    Submission {
        contract,
        ..world.submission(dataset, vec![json!({}); 500])
    }
}

#[tokio::test]
async fn a_batch_with_very_many_defects_is_rejected_and_the_next_one_goes_on() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let many = worst(&world, dataset);
    world.append(many.record().unwrap()).await;
    let outcome = world.outcome(many.contribution).await;
    assert!(matches!(outcome.resolution, Resolution::Rejected { ref code, .. } if code == "refused"));
    assert_eq!(outcome.verdicts.len(), 500);
    assert!(outcome.record().unwrap().value.len() < 2 << 20);
    let record: serde_json::Map<_, _> = many
        .contract
        .fields()
        .iter()
        .map(|f| (f.name.clone(), json!("x")))
        .collect();
    let good = Submission {
        contribution: world.submission(dataset, vec![]).contribution,
        source: Source::Inline(Records::of(&[Value::Object(record)]).unwrap()),
        ..many
    };
    world.append(good.record().unwrap()).await;
    assert_eq!(world.merged(good.contribution).await, (1, 1));
}

#[tokio::test]
async fn of_an_outcome_that_the_log_does_not_take_less_is_said() {
    let mut world = World::new().await;
    for (limit, rows) in [(100 << 10, 500), (2_000, 0)] {
        world.log.largest(limit);
        let dataset = world.dataset();
        let many = worst(&world, dataset);
        world.append(many.record().unwrap()).await;
        let outcome: Outcome = world.outcome(many.contribution).await;
        assert!(matches!(outcome.resolution, Resolution::Rejected { ref code, .. } if code == "refused"));
        assert_eq!((outcome.verdicts.len(), outcome.tallies[0].refused), (rows, 500));
    }
    // Nothing at all can be said of this one, and the others go on.
    world.log.largest(10);
    let dataset = world.dataset();
    let silent = world.submission(dataset, vec![json!({"text": 1})]);
    world.append(silent.record().unwrap()).await;
    world.log.refused(3).await;
    world.log.largest(usize::MAX);
    let next = world.submit(dataset, texts(["next"])).await;
    assert_eq!(world.merged(next).await, (1, 1));
}

#[tokio::test]
async fn a_letter_about_a_message_too_large_for_it_refers_to_its_position() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let large = Record {
        key: dataset.as_bytes().to_vec().into(),
        value: vec![b'{'; 13 << 20].into(),
    };
    let strange = Record {
        key: vec![7; 13 << 20].into(),
        value: b"{}".as_slice().into(),
    };
    for (offset, message) in [(0, large), (1, strange)] {
        world.append(message).await;
        let letter = world.letters(offset + 1).await.remove(offset);
        assert_eq!(
            (letter.topic.as_str(), letter.offset),
            (CONTRIBUTIONS_TOPIC, offset as u64)
        );
        assert_eq!(letter.value, "");
        assert!(letter.reason.contains("too many for a letter"), "{}", letter.reason);
    }
    let next = world.submit(dataset, texts(["next"])).await;
    assert_eq!(world.merged(next).await, (1, 1));
}
