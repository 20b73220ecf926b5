//! Scenarios about appeals against rejections.

use types::UnitId;

use super::fixture::{at, open, race};
use super::knowledge::{World, apply, is_sound, published, rejected, status, submitted};
use crate::{AppealStatus, Appealed, NewAppeal, Store, UnitOutcome, UnitStatus};

fn new_appeal(unit: UnitId, second: i64) -> NewAppeal {
    NewAppeal {
        unit,
        generation: 0,
        submission: b"once more".to_vec(),
        held: None,
        now: at(second),
        first_sweep: at(second + 60),
    }
}

async fn appeal(store: &Store, unit: UnitId, second: i64) -> Appealed {
    store.knowledge().appeal(new_appeal(unit, second)).await.unwrap()
}

/// The same outcome, of the generation of an appeal.
fn second(outcome: UnitOutcome) -> UnitOutcome {
    UnitOutcome {
        generation: 1,
        ..outcome
    }
}

/// An appeal puts the version in work under a new generation, and what the second judge says closes it for good.
pub async fn a_rejection_is_appealed_once_and_decided_by_the_next_outcome(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = submitted(&store, world.version("one")).await;
    let in_work = Appealed::NotRejected {
        status: UnitStatus::Queued,
    };
    assert_eq!(appeal(&store, one, 5).await, in_work);
    assert_eq!(apply(&store, vec![rejected(one, "score_below_55")]).await, [true]);
    assert_eq!(store.knowledge().appeal_of(one).await.unwrap(), None);
    assert_eq!(appeal(&store, one, 20).await, Appealed::Open);
    assert_eq!(status(&store, one).await, UnitStatus::Queued);
    let due = store.knowledge().due(at(80), 10).await.unwrap();
    assert_eq!(
        (due[0].id, due[0].submission.as_slice()),
        (one, b"once more".as_slice())
    );
    is_sound(&store).await;
    // A late outcome of the first judge decides nothing.
    assert_eq!(apply(&store, vec![published(one, 60)]).await, [false]);
    let before = Appealed::Before {
        status: AppealStatus::Open,
    };
    assert_eq!(appeal(&store, one, 30).await, before);
    assert_eq!(
        apply(&store, vec![second(rejected(one, "score_below_55"))]).await,
        [true]
    );
    let denied = store.knowledge().appeal_of(one).await.unwrap().unwrap();
    assert_eq!(
        (denied.status, denied.at, denied.code.as_str()),
        (AppealStatus::Denied, at(20), "score_below_55")
    );
    assert!(denied.verdict.is_some() && denied.decided_at.is_some(), "{denied:?}");
    let before = Appealed::Before {
        status: AppealStatus::Denied,
    };
    assert_eq!(appeal(&store, one, 40).await, before, "one appeal for each rejection");
    is_sound(&store).await;

    let two = submitted(&store, world.version("two")).await;
    assert_eq!(apply(&store, vec![rejected(two, "score_below_55")]).await, [true]);
    assert_eq!(appeal(&store, two, 50).await, Appealed::Open);
    assert_eq!(apply(&store, vec![second(published(two, 70))]).await, [true]);
    assert_eq!(status(&store, two).await, UnitStatus::Published);
    let granted = store.knowledge().appeal_of(two).await.unwrap().unwrap();
    assert_eq!(granted.status, AppealStatus::Granted);
    assert_eq!(store.points().of_agent(world.author.0).await.unwrap().points, 70);
    is_sound(&store).await;
}

/// Fixed rules and other texts decide the same again, and neither is what stands in the way of the version.
pub async fn what_no_judge_decided_is_not_appealed(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    for code in ["personal_data", "duplicate_exact", "duplicate_near", "unprocessable"] {
        let unit = submitted(&store, world.version(code)).await;
        assert_eq!(apply(&store, vec![rejected(unit, code)]).await, [true]);
        let last = Appealed::Final { code: code.to_owned() };
        assert_eq!(appeal(&store, unit, 20).await, last);
    }
    // The same text was sent again.
    let first = submitted(&store, world.version("twice")).await;
    assert_eq!(apply(&store, vec![rejected(first, "score_below_55")]).await, [true]);
    let again = submitted(&store, world.version("twice")).await;
    let duplicate = Appealed::Duplicate {
        unit: again,
        status: UnitStatus::Queued,
    };
    assert_eq!(appeal(&store, first, 20).await, duplicate);
    // A revision while another is in work, and one of a version that is not the latest any more.
    let base = world.published(&store, "base", 60).await;
    let refused = submitted(&store, world.revision(base, base, "refused")).await;
    assert_eq!(apply(&store, vec![rejected(refused, "score_below_55")]).await, [true]);
    let next = submitted(&store, world.revision(base, base, "next")).await;
    assert_eq!(appeal(&store, refused, 20).await, Appealed::InValidation { unit: next });
    assert_eq!(apply(&store, vec![published(next, 61)]).await, [true]);
    assert_eq!(appeal(&store, refused, 20).await, Appealed::NotLatest { latest: next });
    let published = Appealed::NotRejected {
        status: UnitStatus::Published,
    };
    assert_eq!(appeal(&store, next, 20).await, published);
    is_sound(&store).await;
}

/// The end of a unit ends the appeal of its version, and nothing of it can be appealed any more.
pub async fn an_appeal_ends_with_its_unit(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let base = world.published(&store, "base", 60).await;
    let refused = submitted(&store, world.revision(base, base, "refused")).await;
    assert_eq!(apply(&store, vec![rejected(refused, "score_below_55")]).await, [true]);
    assert_eq!(appeal(&store, refused, 20).await, Appealed::Open);
    let retired = store.knowledge().retire(base, base, at(30)).await.unwrap();
    assert_eq!(retired, crate::UnitRetired::Retired);
    let denied = store.knowledge().appeal_of(refused).await.unwrap().unwrap();
    assert_eq!((denied.status, denied.decided_at), (AppealStatus::Denied, Some(at(30))));
    assert_eq!(apply(&store, vec![second(published(refused, 70))]).await, [false]);
    is_sound(&store).await;
    assert!(store.knowledge().erase(base, at(40)).await.unwrap());
    let erased = store.knowledge().appeal_of(refused).await.unwrap().unwrap();
    assert_eq!((erased.message.as_str(), erased.verdict.as_deref()), ("", Some("")));

    let gone = submitted(&store, world.version("gone")).await;
    assert_eq!(apply(&store, vec![rejected(gone, "score_below_55")]).await, [true]);
    assert!(store.knowledge().erase(gone, at(50)).await.unwrap());
    assert_eq!(appeal(&store, gone, 60).await, Appealed::Ended);
    is_sound(&store).await;
}

/// Of appeals against one rejection at once, one opens.
pub async fn one_of_many_appeals_opens(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = submitted(&store, world.version("one")).await;
    assert_eq!(apply(&store, vec![rejected(one, "score_below_55")]).await, [true]);
    let answers = race([store.clone(), open(url).await], 8, move |store, _| async move {
        appeal(&store, one, 20).await
    })
    .await;
    assert_eq!(
        answers.iter().filter(|answer| **answer == Appealed::Open).count(),
        1,
        "{answers:?}"
    );
    is_sound(&store).await;
}
