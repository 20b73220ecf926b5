//! Scenarios about dead letters.

use types::ContributionId;

use super::fixture::{World, at, merged, open, outcome, rejected, waiting};
use super::knowledge;
use crate::{ContributionStatus, DeadLetter, DeadLetterAdded, OutcomeRow, Replay, Store, UnitReplay};

/// A dead letter is stored once per message. Another message at the same position, after the topic was recreated, is
/// another dead letter.
pub async fn a_dead_letter_is_kept_once(url: &str) {
    let store = open(url).await;
    assert_eq!(
        store.dead_letter_add(letter("a", None)).await.unwrap(),
        DeadLetterAdded::Added
    );
    assert_eq!(
        store.dead_letter_add(letter("b", None)).await.unwrap(),
        DeadLetterAdded::Known
    );
    let other = DeadLetter {
        payload: b"another".to_vec(),
        ..letter("c", None)
    };
    assert_eq!(store.dead_letter_add(other).await.unwrap(), DeadLetterAdded::Added);

    let listed = store.dead_letters(10, None).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["a", "c"]);
    assert_eq!(
        (listed[0].topic.as_str(), listed[0].partition, listed[0].offset),
        ("contributions", 3, 17)
    );
    assert_eq!((listed[0].reason.as_str(), listed[0].created_at), ("malformed", at(1)));
    let rest = store.dead_letters(1, Some("a")).await.unwrap();
    assert_eq!((rest.len(), rest[0].id.as_str()), (1, "c"));
}

/// A replay opens the contribution under the next generation, with the submission the caller made of the message.
pub async fn a_replay_reopens_what_was_unprocessable(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = rejected_as(&store, world, "unprocessable").await;
    assert_eq!(
        store.dead_letter_add(letter("a", Some(id))).await.unwrap(),
        DeadLetterAdded::Added
    );

    assert_eq!(
        replay(&store, "a", 50).await,
        Replay::Reopened {
            contribution: id,
            generation: 1
        }
    );
    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!((row.status, row.generation), (ContributionStatus::Submitted, 1));
    assert_eq!(
        (row.decided_at, row.reject_code, row.reject_message),
        (None, None, None)
    );
    let due = store.contributions_due(at(50), 10).await.unwrap();
    assert_eq!((due.len(), due[0].id), (1, id));
    assert_eq!(due[0].submission, b"payload for generation 1");
    assert_eq!(store.dead_letters(10, None).await.unwrap()[0].replayed_at, Some(at(50)));
    assert_eq!(replay(&store, "a", 51).await, Replay::AlreadyReplayed);
}

/// After a replay, an outcome of the earlier generation changes nothing, and one of the new generation closes the row.
pub async fn a_late_outcome_of_the_old_generation_does_not_close_a_replay(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = rejected_as(&store, world, "unprocessable").await;
    assert_eq!(
        store.dead_letter_add(letter("a", Some(id))).await.unwrap(),
        DeadLetterAdded::Added
    );
    assert!(matches!(replay(&store, "a", 50).await, Replay::Reopened { .. }));

    let renewed = OutcomeRow {
        generation: 1,
        ..outcome(id, merged(1))
    };
    let outcomes = vec![
        outcome(id, rejected("unprocessable")),
        outcome(id, waiting(None)),
        renewed,
    ];
    let applied = store.outcomes_apply(outcomes).await.unwrap();
    let applied: Vec<_> = applied.into_iter().map(|applied| applied.changed).collect();
    assert_eq!(applied, [false, false, true]);
    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!((row.status, row.generation), (ContributionStatus::Merged, 1));
}

/// A replay distinguishes dead letters without a contribution, decided ones, open ones, unreadable ones and unknown
/// ones.
pub async fn other_letters_are_not_replayed(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let refused = rejected_as(&store, world, "refused").await;
    let unprocessable = rejected_as(&store, world, "unprocessable").await;
    let open = world.submitted(&store, 1).await[0];
    let gone = ContributionId::new(at(0));
    for (number, contribution) in [None, Some(refused), Some(open), Some(unprocessable), Some(gone)]
        .into_iter()
        .enumerate()
    {
        let letter = DeadLetter {
            offset: u64::try_from(number).unwrap(),
            ..letter(&number.to_string(), contribution)
        };
        assert_eq!(store.dead_letter_add(letter).await.unwrap(), DeadLetterAdded::Added);
    }
    assert_eq!(replay(&store, "0", 5).await, Replay::NoContribution);
    assert_eq!(
        replay(&store, "1", 5).await,
        Replay::Decided {
            contribution: refused,
            status: ContributionStatus::Rejected
        }
    );
    assert!(store.contributions_due(at(5), 10).await.unwrap().is_empty());
    assert_eq!(replay(&store, "2", 5).await, Replay::Requeued { contribution: open });
    assert_eq!(store.contributions_due(at(5), 10).await.unwrap()[0].id, open);
    // Its rejection was on its way, and the letter still reopens it.
    let late = vec![outcome(open, rejected("unprocessable"))];
    assert!(store.outcomes_apply(late).await.unwrap()[0].changed);
    let reopened = replay(&store, "2", 6).await;
    assert!(
        matches!(reopened, Replay::Reopened { generation: 1, .. }),
        "{reopened:?}"
    );
    let unreadable = store
        .dead_letter_replay("3".to_owned(), |_, _| None, at(5))
        .await
        .unwrap();
    assert_eq!(unreadable, Replay::Unreadable);
    let row = store.contribution(unprocessable).await.unwrap().unwrap();
    assert_eq!((row.status, row.generation), (ContributionStatus::Rejected, 0));
    assert!(matches!(
        replay(&store, "3", 6).await,
        Replay::Reopened { generation: 1, .. }
    ));
    assert_eq!(replay(&store, "4", 5).await, Replay::NoContribution);
    assert_eq!(replay(&store, "5", 5).await, Replay::Unknown);
}

fn letter(id: &str, contribution: Option<ContributionId>) -> DeadLetter {
    DeadLetter {
        id: id.to_owned(),
        topic: "contributions".to_owned(),
        partition: 3,
        offset: 17,
        contribution,
        unit: None,
        payload: b"payload".to_vec(),
        reason: "malformed".to_owned(),
        now: at(1),
    }
}

async fn rejected_as(store: &Store, world: World, code: &str) -> ContributionId {
    let id = world.submitted(store, 1).await[0];
    let applied = store.outcomes_apply(vec![outcome(id, rejected(code))]).await.unwrap();
    assert!(applied[0].changed);
    id
}

async fn replay(store: &Store, id: &str, seconds: i64) -> Replay {
    let renew = |payload: &[u8], generation: u32| {
        let text = String::from_utf8_lossy(payload);
        Some(format!("{text} for generation {generation}").into_bytes())
    };
    store
        .dead_letter_replay(id.to_owned(), renew, at(seconds))
        .await
        .unwrap()
}

/// A version of a unit that could not be processed is open again under a new generation, and costs its allowance again.
pub async fn a_replay_reopens_a_version_of_a_unit(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = knowledge::submitted(&store, world.version("one")).await;
    let add = async |id: &str| {
        let letter = DeadLetter {
            unit: Some(unit),
            ..letter(id, None)
        };
        store.dead_letter_add(letter).await.unwrap()
    };
    assert_eq!(add("one").await, DeadLetterAdded::Added);
    let replay = async |id: &str| {
        let renew = |_: &[u8], generation: u32| Some(format!("generation {generation}").into_bytes());
        store.dead_letter_replay(id.to_owned(), renew, at(30)).await.unwrap()
    };
    assert_eq!(replay("one").await, Replay::Unit(UnitReplay::Requeued { unit }));
    assert_eq!(
        knowledge::apply(&store, vec![knowledge::rejected(unit, "unprocessable")]).await,
        [true]
    );
    let reopened = UnitReplay::Reopened { unit, generation: 1 };
    assert_eq!(replay("one").await, Replay::Unit(reopened));
    assert_eq!(replay("one").await, Replay::AlreadyReplayed);
    let due = store.knowledge().due(at(30), 10).await.unwrap();
    assert_eq!(due[0].submission, b"generation 1");
    // The late outcome of the old generation does not decide it.
    assert_eq!(
        knowledge::apply(&store, vec![knowledge::published(unit, 60)]).await,
        [false]
    );
    knowledge::is_sound(&store).await;
}
