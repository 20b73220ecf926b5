//! Scenarios about knowledge units: acknowledgement, outcomes, prices and retirement.

use std::time::Duration;

use types::unit::{Judge, ReviewEntry, UnitResolution, UnitScores};
use types::vocabulary::{JudgeKind, ReviewStep, StepOutcome};
use types::{AgentId, OperatorId, Timestamp, UnitId};

use super::fixture::{agent, at, open, operator, race};
use crate::{
    Allowance, HourlyLimit, Language, NewUnit, Outbox, PriceChanged, Revised, Store, UnitOutcome, UnitRetired,
    UnitStatus, UnitSubmitted,
};

const DAY: Duration = Duration::from_hours(24);
const HOUR: Duration = Duration::from_hours(1);

/// Two operators with an agent each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) author: (AgentId, OperatorId),
    pub(crate) reader: (AgentId, OperatorId),
}

impl World {
    pub(crate) async fn new(store: &Store) -> Self {
        let (one, two) = (
            operator(store, "ada@example.org").await,
            operator(store, "bob@example.org").await,
        );
        Self {
            author: (agent(store, one, "author").await, one),
            reader: (agent(store, two, "reader").await, two),
        }
    }

    /// A first version, with a text of its own.
    pub(crate) fn version(&self, text: &str) -> NewUnit {
        let (agent, operator) = self.author;
        NewUnit {
            id: UnitId::new(at(0)),
            revises: None,
            agent,
            operator,
            title: "Title".to_owned(),
            body: text.to_owned(),
            category: "tool-usage".to_owned(),
            source_declaration: "Measured here.".to_owned(),
            text_hash: *blake3::hash(text.as_bytes()).as_bytes(),
            language: Language::English,
            length: text.len() as u64,
            license: "platform-standard".to_owned(),
            price_micro: None,
            trial_sale: false,
            submission: text.as_bytes().to_vec(),
            held: None,
            now: at(0),
            first_sweep: at(60),
        }
    }

    pub(crate) fn revision(&self, chain: UnitId, unit: UnitId, text: &str) -> NewUnit {
        NewUnit {
            revises: Some(Revised { chain, unit }),
            ..self.version(text)
        }
    }

    /// A version that was published with this total.
    pub(crate) async fn published(&self, store: &Store, text: &str, total: u8) -> UnitId {
        let id = submitted(store, self.version(text)).await;
        assert_eq!(apply(store, vec![published(id, total)]).await, [true]);
        id
    }
}

const NO_LIMIT: (HourlyLimit, Allowance) = (
    HourlyLimit {
        most: 1_000,
        window: HOUR,
    },
    Allowance {
        limit: 1_000,
        day: 19_675,
    },
);

async fn submit(store: &Store, new: NewUnit) -> UnitSubmitted {
    let (hourly, allowance) = NO_LIMIT;
    store.knowledge().submit(new, hourly, allowance).await.unwrap()
}

pub(crate) async fn submitted(store: &Store, new: NewUnit) -> UnitId {
    let id = new.id;
    assert_eq!(submit(store, new).await, UnitSubmitted::Submitted);
    id
}

pub(super) async fn apply(store: &Store, outcomes: Vec<UnitOutcome>) -> Vec<bool> {
    let applied = store.knowledge().apply(outcomes).await.unwrap();
    applied.into_iter().map(|applied| applied.changed).collect()
}

pub(super) fn entry(step: ReviewStep, outcome: StepOutcome) -> ReviewEntry {
    ReviewEntry {
        step,
        outcome,
        code: "code".to_owned(),
        detail: "Detail.".to_owned(),
        at: at(9),
        judge: None,
        scores: None,
        similar: None,
    }
}

fn outcome(id: UnitId, resolution: UnitResolution) -> UnitOutcome {
    UnitOutcome {
        id,
        generation: 0,
        at: at(10),
        resolution,
        report: vec![
            entry(ReviewStep::PersonalData, StepOutcome::Passed),
            entry(ReviewStep::Score, StepOutcome::Passed),
        ],
    }
}

pub(super) fn published(id: UnitId, total: u8) -> UnitOutcome {
    let scores = UnitScores {
        accuracy: total,
        novelty: total,
        reproducibility: total,
        specificity: total,
        total,
    };
    let judge = Judge {
        kind: JudgeKind::Heuristic,
        name: "rubric-1".to_owned(),
    };
    let language = Language::Korean;
    let resolution = UnitResolution::Published {
        scores,
        judge,
        language,
        near: None,
        embedder: None,
    };
    outcome(id, resolution)
}

pub(super) fn rejected(id: UnitId, code: &str) -> UnitOutcome {
    outcome(
        id,
        UnitResolution::Rejected {
            code: code.to_owned(),
            message: "Say more.".to_owned(),
        },
    )
}

pub(super) fn held(id: UnitId, reason: &str, resumes_after: Option<Timestamp>) -> UnitOutcome {
    UnitOutcome {
        report: vec![
            entry(ReviewStep::PersonalData, StepOutcome::Passed),
            entry(ReviewStep::Hold, StepOutcome::Held),
        ],
        ..outcome(
            id,
            UnitResolution::Waiting {
                reason: reason.to_owned(),
                resumes_after,
            },
        )
    }
}

pub(super) async fn status(store: &Store, id: UnitId) -> UnitStatus {
    store.knowledge().unit(id).await.unwrap().unwrap().status
}

/// Nothing that the rows say contradicts another row.
pub(super) async fn is_sound(store: &Store) {
    assert_eq!(store.knowledge().faults(10).await.unwrap(), []);
}

/// The row describes the version and its chain, and the outbox has its submission.
pub async fn an_acknowledged_version_is_kept_with_its_submission(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let new = NewUnit {
        price_micro: Some(250_000),
        trial_sale: true,
        ..world.version("한국어 text")
    };
    let id = submitted(&store, new).await;
    let unit = store.knowledge().unit(id).await.unwrap().unwrap();
    assert_eq!((unit.id, unit.chain.id, unit.status), (id, id, UnitStatus::Queued));
    assert_eq!(
        (unit.agent, unit.agent_name.as_str(), unit.chain.operator),
        (world.author.0, "author", world.author.1)
    );
    assert_eq!(
        (unit.body.as_str(), unit.chain.price_micro),
        ("한국어 text", Some(250_000))
    );
    assert_eq!(
        (unit.chain.trial_sale, unit.chain.latest, unit.chain.versions),
        (true, None, 0)
    );
    assert_eq!((unit.number, unit.scores, unit.decided_at), (None, None, None));
    let due = store.knowledge().due(at(60), 10).await.unwrap();
    assert_eq!(
        (due.len(), due[0].id, due[0].submission.as_slice()),
        (1, id, "한국어 text".as_bytes())
    );
    assert!(store.knowledge().due(at(59), 10).await.unwrap().is_empty());
    is_sound(&store).await;
}

/// The same text of the same operator is taken once while it is in work or published.
pub async fn a_text_is_taken_once_until_it_is_rejected(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = submitted(&store, world.version("one")).await;
    let duplicate = |status| UnitSubmitted::Duplicate { unit: id, status };
    assert_eq!(
        submit(&store, world.version("one")).await,
        duplicate(UnitStatus::Queued)
    );
    // Another operator may have the same text: the review decides about copies.
    let (agent, operator) = world.reader;
    let other = NewUnit {
        agent,
        operator,
        ..world.version("one")
    };
    submitted(&store, other).await;
    assert_eq!(apply(&store, vec![rejected(id, "score_below_55")]).await, [true]);
    let again = submitted(&store, world.version("one")).await;
    assert_eq!(apply(&store, vec![published(again, 60)]).await, [true]);
    let later = submit(&store, world.version("one")).await;
    assert!(matches!(later, UnitSubmitted::Duplicate { unit, status: UnitStatus::Published } if unit == again));
    is_sound(&store).await;
}

/// The hour counts calls of an agent and an action, the day those of all agents; what is refused counts for neither.
pub async fn an_hour_and_a_day_have_their_limits(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let hourly = HourlyLimit { most: 3, window: HOUR };
    let allowance = |limit| Allowance {
        limit,
        day: at(0).day(),
    };
    let submit = async |text: &str, second: i64, limit: u32| {
        let new = NewUnit {
            now: at(second),
            ..world.version(text)
        };
        store.knowledge().submit(new, hourly, allowance(limit)).await.unwrap()
    };
    for (number, second) in [(0, 0), (1, 600), (2, 1_200)] {
        assert_eq!(submit(&number.to_string(), second, 4).await, UnitSubmitted::Submitted);
    }
    // The hour is answered before the day, and ends when the oldest of the last calls leaves it.
    assert_eq!(submit("3", 3_000, 3).await, UnitSubmitted::Hourly { until: at(3_600) });
    assert_eq!(submit("3", 3_600, 3).await, UnitSubmitted::AllowanceSpent);
    assert_eq!(
        submit("0", 3_600, 3).await,
        UnitSubmitted::Duplicate {
            unit: first(&store, &world).await,
            status: UnitStatus::Queued
        }
    );
    assert_eq!(submit("3", 3_600, 4).await, UnitSubmitted::Submitted);
    let used = store
        .allowance_used(world.author.1, crate::AllowanceKind::Knowledge, at(0).day())
        .await
        .unwrap();
    assert_eq!(used, 4);
    assert_eq!(submit("4", 7_300, 0).await, UnitSubmitted::AllowanceSpent);
    is_sound(&store).await;
}

async fn first(store: &Store, world: &World) -> UnitId {
    let all = store
        .knowledge()
        .submissions_of(world.author.1, None, 10)
        .await
        .unwrap();
    all.iter().find(|unit| unit.body == "0").unwrap().id
}

/// A published revision supersedes the version before it, and gets the points that it adds over the best one.
pub async fn a_revision_supersedes_and_adds_points(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 62).await;
    let two = submitted(&store, world.revision(one, one, "two")).await;
    let raced = submit(&store, world.revision(one, one, "three")).await;
    assert_eq!(raced, UnitSubmitted::InValidation { unit: two });
    assert_eq!(apply(&store, vec![published(two, 86)]).await, [true]);
    assert_eq!(
        (status(&store, one).await, status(&store, two).await),
        (UnitStatus::Superseded, UnitStatus::Published)
    );
    let not_latest = submit(&store, world.revision(one, one, "three")).await;
    assert_eq!(not_latest, UnitSubmitted::NotLatest { latest: two });
    // Going back to the text of an older version is allowed.
    let three = submitted(&store, world.revision(one, two, "one")).await;
    assert_eq!(apply(&store, vec![published(three, 80)]).await, [true]);
    let unit = store.knowledge().unit(three).await.unwrap().unwrap();
    assert_eq!(
        (unit.number, unit.predecessor, unit.chain.versions),
        (Some(3), Some(two), 3)
    );
    assert_eq!(
        (unit.chain.best_score, unit.chain.latest, unit.language),
        (86, Some(three), Language::Korean)
    );
    let points: Vec<_> = store.points().events(world.author.0, None, 10).await.unwrap();
    let points: Vec<_> = points.iter().map(|event| event.points).collect();
    assert_eq!(points.iter().sum::<i64>(), 86);
    assert!(points.contains(&0) && points.contains(&24) && points.contains(&62));
    let lines = store.knowledge().versions(one, 10).await.unwrap();
    assert_eq!(lines.len(), 3);
    is_sound(&store).await;
}

/// Later outcomes and those of other generations change nothing.
pub async fn the_first_outcome_of_a_version_stays(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = [
        submitted(&store, world.version("one")).await,
        submitted(&store, world.version("two")).await,
    ];
    let other = UnitOutcome {
        generation: 1,
        ..published(ids[0], 99)
    };
    assert_eq!(
        apply(&store, vec![other, published(UnitId::new(at(0)), 60)]).await,
        [false; 2]
    );
    let all = vec![
        published(ids[0], 60),
        rejected(ids[0], "score_below_55"),
        published(ids[0], 90),
        held(ids[0], "provider", None),
        rejected(ids[1], "duplicate_near"),
        published(ids[1], 70),
    ];
    assert_eq!(apply(&store, all).await, [true, false, false, false, true, false]);
    assert_eq!(
        (status(&store, ids[0]).await, status(&store, ids[1]).await),
        (UnitStatus::Published, UnitStatus::Rejected)
    );
    assert_eq!(store.points().of_agent(world.author.0).await.unwrap().points, 60);
    let steps = store.knowledge().entries(ids[0]).await.unwrap();
    let steps: Vec<_> = steps.iter().map(|entry| entry.step).collect();
    assert_eq!(steps, [ReviewStep::PersonalData, ReviewStep::Score]);
    assert_eq!(store.knowledge().outbox_size().await.unwrap(), Outbox::default());
    is_sound(&store).await;
}

/// A message that cannot be processed costs no allowance.
pub async fn what_cannot_be_processed_costs_nothing(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = submitted(&store, world.version("one")).await;
    submitted(&store, world.version("two")).await;
    assert_eq!(
        apply(
            &store,
            vec![rejected(id, "unprocessable"), rejected(id, "unprocessable")]
        )
        .await,
        [true, false]
    );
    let used = store
        .allowance_used(world.author.1, crate::AllowanceKind::Knowledge, at(0).day())
        .await
        .unwrap();
    // The day is the one of the submission, which the scenarios set themselves.
    assert_eq!(used, 1);
    is_sound(&store).await;
}

/// A retirement names the latest version, and takes a revision in work with it: no later outcome publishes it.
pub async fn a_retirement_takes_its_revision_with_it(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let two = submitted(&store, world.revision(one, one, "two")).await;
    assert_eq!(
        store.knowledge().retire(one, two, at(20)).await.unwrap(),
        UnitRetired::NotPublished
    );
    assert_eq!(apply(&store, vec![published(two, 61)]).await, [true]);
    let three = submitted(&store, world.revision(one, two, "three")).await;
    let retire = async |unit| store.knowledge().retire(one, unit, at(20)).await.unwrap();
    assert_eq!(retire(one).await, UnitRetired::NotLatest { latest: two });
    assert_eq!(retire(two).await, UnitRetired::Retired);
    assert_eq!(retire(two).await, UnitRetired::NotPublished);
    assert_eq!(apply(&store, vec![published(three, 90)]).await, [false]);
    let closed = store.knowledge().unit(three).await.unwrap().unwrap();
    assert_eq!(
        (closed.status, closed.reject_code.as_deref()),
        (UnitStatus::Rejected, Some("chain_retired"))
    );
    assert_eq!(
        submit(&store, world.revision(one, two, "four")).await,
        UnitSubmitted::NotPublished
    );
    let priced = store.knowledge().price(one, Some(0), at(30), DAY).await.unwrap();
    assert_eq!(priced, PriceChanged::NotPublished);
    is_sound(&store).await;
}

/// The price changes once a window; the price at the submission and the same price are no change.
pub async fn a_price_of_a_unit_changes_once_per_window(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = submitted(&store, world.version("one")).await;
    let price = async |price, second| store.knowledge().price(id, price, at(second), DAY).await.unwrap();
    assert!(matches!(price(None, 0).await, PriceChanged::Changed(chain) if chain.price_changed_at.is_none()));
    assert!(matches!(price(Some(20_000), 10).await, PriceChanged::Changed(chain) if chain.price_micro == Some(20_000)));
    assert!(matches!(price(Some(20_000), 20).await, PriceChanged::Changed(_)));
    assert_eq!(
        price(Some(0), 86_409).await,
        PriceChanged::TooSoon {
            retry_after: Duration::from_secs(1)
        }
    );
    assert!(matches!(price(Some(0), 86_410).await, PriceChanged::Changed(_)));
    assert_eq!(apply(&store, vec![rejected(id, "score_below_55")]).await, [true]);
    assert_eq!(price(None, 200_000).await, PriceChanged::NotPublished);
    is_sound(&store).await;
}

/// Copies that arrive at once are one version; so are outcomes that two projectors apply.
pub async fn copies_and_outcomes_at_once_count_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let answers = race([store.clone(), open(url).await], 8, move |store, _| async move {
        submit(&store, world.version("one")).await
    })
    .await;
    let taken = answers
        .iter()
        .filter(|answer| **answer == UnitSubmitted::Submitted)
        .count();
    assert_eq!(taken, 1, "{answers:?}");
    let all = store
        .knowledge()
        .submissions_of(world.author.1, None, 10)
        .await
        .unwrap();
    let id = all[0].id;
    let applied = race([store.clone(), open(url).await], 6, move |store, number| async move {
        let outcomes = vec![if number % 2 == 0 {
            published(id, 70)
        } else {
            rejected(id, "screened")
        }];
        store.knowledge().apply(outcomes).await.unwrap()[0].changed
    })
    .await;
    assert_eq!(applied.iter().filter(|changed| **changed).count(), 1);
    is_sound(&store).await;
}

/// The allowance is exact, however many submit at once.
pub async fn an_allowance_of_versions_is_exact_under_contention(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (hourly, _) = NO_LIMIT;
    let allowance = Allowance {
        limit: 4,
        day: at(0).day(),
    };
    let answers = race([store.clone(), open(url).await], 10, move |store, number| async move {
        store
            .knowledge()
            .submit(world.version(&number.to_string()), hourly, allowance)
            .await
            .unwrap()
    })
    .await;
    let taken = answers
        .iter()
        .filter(|answer| **answer == UnitSubmitted::Submitted)
        .count();
    assert_eq!(taken, 4, "{answers:?}");
    is_sound(&store).await;
}
