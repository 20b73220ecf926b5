//! Scenarios about profiles of versions.

use std::time::Duration;

use types::vocabulary::{Access, Visibility};
use types::{AgentId, DatasetId, OperatorId, Version};

use super::fixture::{World, agent, at, new_project, open, operator, outcome, project, race};
use crate::{
    LossAccepted, MAX_ASKED_PROFILES, NewLoss, NewProfile, NewProject, ProfileAsked, ProfileKind, ProfileLease,
    ProfileLimits, ProfileTurn, ProjectChanges, ProjectUpdated, Resolution, Store, StoredProfile,
};

const LIMITS: ProfileLimits = ProfileLimits {
    lease: Duration::from_mins(10),
    every: Duration::from_secs(30),
    pace: 20,
};

fn root(version: u64) -> String {
    format!("{version:064}")
}

/// Merges a version that adds `accepted` records of an agent to a dataset, and has `records` of them.
async fn merge(store: &Store, world: World, version: u64, accepted: u64, records: u64) {
    let id = world.submitted(store, 1).await[0];
    let merged = Resolution::Merged {
        version: Version(version),
        accepted,
        record_count: records,
        root: root(version),
    };
    let applied = store.outcomes_apply(vec![outcome(id, merged)]).await.unwrap();
    assert!(applied[0].changed);
}

async fn take(store: &Store, now: i64) -> Option<ProfileLease> {
    take_in_turn(store, ProfileTurn::Asked, now).await
}

async fn take_in_turn(store: &Store, turn: ProfileTurn, now: i64) -> Option<ProfileLease> {
    store.profiles().take(turn, at(now), LIMITS).await.unwrap()
}

/// Accepts the loss of all versions after `kept`.
async fn lose(store: &Store, project: DatasetId, version: u64, kept: u64, now: i64) {
    let new = NewLoss {
        project,
        expected: Version(version),
        roots: (1..=kept).map(root).collect(),
        reason: "the disk failed".to_owned(),
        now: at(now),
    };
    assert!(matches!(
        store.loss_accept(new).await.unwrap(),
        LossAccepted::Accepted { .. }
    ));
}

fn built(lease: &ProfileLease, records: u64, public: bool) -> NewProfile {
    NewProfile {
        project: lease.project,
        version: lease.version,
        root: lease.root.clone(),
        records,
        figures: format!("{{\"of\":{}}}", lease.version),
        preview: "[]".to_owned(),
        public: public.then(|| (format!("{{\"public\":{}}}", lease.version), "[1]".to_owned())),
        sketch_bytes: 7,
    }
}

async fn write(store: &Store, lease: &ProfileLease, profile: NewProfile, now: i64) -> bool {
    let (begun, now) = (at(now - 1), at(now));
    store
        .profiles()
        .write(lease, profile, begun, now, LIMITS)
        .await
        .unwrap()
}

async fn ask(store: &Store, project: DatasetId, version: u64, root: &str, most: u32, now: i64) -> ProfileAsked {
    let profiles = store.profiles();
    profiles
        .ask(project, Version(version), root, most, at(now))
        .await
        .unwrap()
}

async fn newest(store: &Store, project: DatasetId, upto: u64, kind: ProfileKind) -> Option<StoredProfile> {
    store.profiles().newest(project, Version(upto), kind).await.unwrap()
}

/// Returns the version of the newest milestone up to a version.
async fn milestone(store: &Store, project: DatasetId, upto: u64) -> Option<u64> {
    let found = newest(store, project, upto, ProfileKind::Public).await?;
    assert_eq!(found.figures, format!("{{\"public\":{}}}", found.version));
    assert_eq!(found.preview, "[1]");
    Some(found.version.0)
}

/// A paid dataset whose owner shows rows, and an agent of another operator that contributes to it.
async fn paid(store: &Store, preview_rows: Option<u32>) -> (World, World) {
    let owner = World::new(store).await;
    let new = NewProject {
        access: Access::Paid,
        visibility: Visibility::Public,
        preview_rows,
        ..new_project(owner.operator, "sold")
    };
    let sold = project(store, new).await;
    let stranger: OperatorId = operator(store, "eve@example.org").await;
    let helper: AgentId = agent(store, stranger, "helper").await;
    let own = World { project: sold, ..owner };
    let others = World {
        operator: stranger,
        agent: helper,
        project: sold,
    };
    (own, others)
}

/// Builds the newest version of the only dataset that is due.
async fn build(store: &Store, records: u64, now: i64) -> u64 {
    let lease = take(store, now).await.unwrap();
    let public = lease.access == Access::Paid && lease.preview_rows.is_some();
    assert!(write(store, &lease, built(&lease, records, public), now).await);
    lease.version.0
}

/// Of many processes one gets a version. What is built too late is dropped, and the next version has its own, when its time
/// has come.
pub async fn the_newest_version_is_built_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    assert_eq!(take(&store, 10).await, None, "it has no version");
    merge(&store, world, 1, 2, 2).await;
    merge(&store, world, 2, 2, 4).await;
    let stores = [store.clone(), open(url).await];
    let taken = race(stores, 6, |store, _| async move { take(&store, 20).await }).await;
    let taken: Vec<_> = taken.into_iter().flatten().collect();
    let [first] = &taken[..] else {
        unreachable!("not one of them: {taken:?}")
    };
    assert_eq!(
        (first.project, first.version, &first.root),
        (world.project, Version(2), &root(2))
    );
    assert_eq!((first.access, first.preview_rows), (Access::Public, Some(20)));
    // It was too slow, and another one has it now.
    let second = take(&store, 20 + 601).await.unwrap();
    assert!(!write(&store, first, built(first, 4, false), 630).await);
    assert_eq!(newest(&store, world.project, 9, ProfileKind::Full).await, None);
    assert!(write(&store, &second, built(&second, 4, false), 631).await);
    assert!(!write(&store, &second, built(&second, 4, false), 632).await);
    let found = newest(&store, world.project, 9, ProfileKind::Full).await.unwrap();
    assert_eq!((found.version, found.records, found.made_at), (Version(2), 4, at(631)));
    assert_eq!(found.figures, "{\"of\":2}");
    assert_eq!(newest(&store, world.project, 1, ProfileKind::Full).await, None);
    assert_eq!(newest(&store, world.project, 9, ProfileKind::Public).await, None);
    assert_eq!(store.profiles().sketch_bytes(world.operator).await.unwrap(), 7);
    let coverage = store.profiles().coverage().await.unwrap();
    assert_eq!((coverage.missing, coverage.stale), (0, 0));
    // The next version waits until the last build is long enough ago.
    merge(&store, world, 3, 2, 6).await;
    assert_eq!(store.profiles().coverage().await.unwrap().missing, 1);
    assert_eq!(take(&store, 631 + 29).await, None);
    let third = take(&store, 631 + 30).await.unwrap();
    assert_eq!(third.version, Version(3));
    // One that took 10 seconds waits for 200.
    let (profiles, profile) = (store.profiles(), built(&third, 6, false));
    let wrote = profiles.write(&third, profile, at(700), at(710), LIMITS).await;
    assert!(wrote.unwrap());
    merge(&store, world, 4, 2, 8).await;
    assert_eq!(take(&store, 710 + 199).await, None);
    assert_eq!(take(&store, 710 + 200).await.unwrap().version, Version(4));
}

/// A version that somebody asked for is built before the newest of other datasets, and without a wait.
pub async fn what_was_asked_for_is_built_first(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    merge(&store, world, 1, 2, 2).await;
    merge(&store, world, 2, 2, 4).await;
    assert_eq!(build(&store, 4, 20).await, 2);
    let asked = |version: u64, most: u32, now: i64| {
        let store = store.clone();
        async move { ask(&store, world.project, version, &root(version), most, now).await }
    };
    assert_eq!(asked(1, 0, 21).await, ProfileAsked::Full);
    assert_eq!(take(&store, 21).await, None);
    assert_eq!(asked(1, 1, 22).await, ProfileAsked::Asked);
    assert_eq!(asked(1, 1, 23).await, ProfileAsked::Asked, "it waits already");
    assert_eq!(store.profiles().of(world.project, Version(1)).await.unwrap(), None);
    assert_eq!(build(&store, 2, 24).await, 1);
    let found = store.profiles().of(world.project, Version(1)).await.unwrap().unwrap();
    // Who asks again does not wait longer.
    assert_eq!((found.asked_at, found.made_at), (Some(at(22)), at(24)));
    assert_eq!(take(&store, 25).await, None);
    // A version that the database has with another root is not built.
    let strange = ask(&store, world.project, 2, &root(9), 10, 26).await;
    assert_eq!(strange, ProfileAsked::Asked);
    assert_eq!(take(&store, 27).await, None);
}

/// The first milestone has 100 rows, the others 100 and a tenth more; rows of others count from 1,000 on.
pub async fn milestones_are_far_apart(url: &str) {
    let store = open(url).await;
    let (own, others) = paid(&store, Some(5)).await;
    let mut now = 1_000;
    let mut version = 0;
    // Who contributes, the rows that it adds, and whether the version becomes a milestone.
    let steps = [
        (own, 99, false),
        (own, 1, true),
        (own, 99, false),
        (own, 1, true),
        (own, 1_800, true),
        // A tenth of 2,000.
        (own, 199, false),
        (own, 1, true),
        (others, 999, false),
        (others, 1, true),
        (others, 999, false),
        // Those of the owner count, those of others not.
        (own, 319, false),
        (own, 1, true),
    ];
    let (mut records, mut last) = (0, None);
    for (by, rows, is_milestone) in steps {
        version += 1;
        records += rows;
        now += 100;
        merge(&store, by, version, rows, records).await;
        assert_eq!(build(&store, records, now).await, version);
        if is_milestone {
            last = Some(version);
        }
        assert_eq!(
            milestone(&store, own.project, version).await,
            last,
            "version {version} of {records}"
        );
    }
    assert_eq!(milestone(&store, own.project, 11).await, Some(9));
    assert_eq!(milestone(&store, own.project, 1).await, None);
}

/// Nothing is public before the owner chooses. Then the newest version is built again.
pub async fn a_choice_begins_milestones(url: &str) {
    let store = open(url).await;
    let (own, _) = paid(&store, None).await;
    merge(&store, own, 1, 500, 500).await;
    let lease = take(&store, 100).await.unwrap();
    assert_eq!(lease.preview_rows, None);
    let choose = |rows: Option<u32>, now: i64| {
        let store = store.clone();
        async move {
            let changes = ProjectChanges {
                preview_rows: Some(rows),
                ..ProjectChanges::default()
            };
            let updated = store.project_update(own.project, changes, at(now), Duration::from_hours(24));
            let ProjectUpdated::Updated(project) = updated.await.unwrap() else {
                unreachable!("the project is open")
            };
            assert_eq!(project.preview_rows, rows);
        }
    };
    // The owner chooses while a build is under way, which does not know of it. The next one waits as after any build,
    // and not until the lease of the first would have ended.
    choose(Some(3), 101).await;
    assert!(!write(&store, &lease, built(&lease, 500, false), 102).await);
    assert_eq!(take(&store, 102 + 29).await, None);
    assert_eq!(build(&store, 500, 102 + 30).await, 1);
    assert_eq!(milestone(&store, own.project, 1).await, Some(1));
    // A build within a call makes a milestone of the newest version, and of no other.
    merge(&store, own, 2, 500, 1_000).await;
    merge(&store, own, 3, 500, 1_500).await;
    for (version, records) in [(2, 1_000), (3, 1_500)] {
        let lease = ProfileLease {
            version: Version(version),
            root: root(version),
            ..lease.clone()
        };
        let profile = NewProfile {
            sketch_bytes: 0,
            ..built(&lease, records, true)
        };
        store.profiles().add(profile, at(134)).await.unwrap();
    }
    assert_eq!(milestone(&store, own.project, 2).await, Some(1));
    assert_eq!(milestone(&store, own.project, 3).await, Some(3));
    // One that was built without knowing of the choice is not kept.
    merge(&store, own, 4, 500, 2_000).await;
    let fourth = ProfileLease {
        version: Version(4),
        root: root(4),
        ..lease
    };
    store
        .profiles()
        .add(built(&fourth, 2_000, false), at(135))
        .await
        .unwrap();
    assert_eq!(store.profiles().of(own.project, Version(4)).await.unwrap(), None);
    // A second thought hides the rows, and a third begins where the milestones were.
    choose(None, 200).await;
    choose(Some(1), 201).await;
    assert_eq!(build(&store, 2_000, 300).await, 4);
    assert_eq!(milestone(&store, own.project, 4).await, Some(4));
    // No number of thoughts has it built sooner than after its wait.
    merge(&store, own, 5, 1, 2_001).await;
    assert_eq!(build(&store, 2_001, 330).await, 5);
    choose(None, 331).await;
    choose(Some(2), 332).await;
    assert_eq!(take(&store, 359).await, None);
    assert_eq!(build(&store, 2_001, 360).await, 5);
}

/// Kept are the newest, the milestones, and what was asked for last.
pub async fn documents_that_nobody_needs_go(url: &str) {
    let store = open(url).await;
    let (own, _) = paid(&store, Some(5)).await;
    for version in 1..=40 {
        merge(&store, own, version, 10, 10 * version).await;
        let now = 1_000 + i64::try_from(version).unwrap() * 100;
        // Every second version is asked for, the oldest last.
        if version % 2 == 0 {
            let asked = ask(&store, own.project, version, &root(version), 10, 100_000 - now).await;
            assert_eq!(asked, ProfileAsked::Asked);
        }
        assert_eq!(build(&store, 10 * version, now).await, version);
    }
    let mut kept = Vec::new();
    for version in 1..=40 {
        if store
            .profiles()
            .of(own.project, Version(version))
            .await
            .unwrap()
            .is_some()
        {
            kept.push(version);
        }
    }
    // Milestones are 10, 20, 30 and 40. Of those asked for, 16 stay, of which some are milestones.
    let asked: Vec<u64> = (1..=16).map(|number| number * 2).collect();
    let mut expected: Vec<u64> = asked.into_iter().chain([10, 20, 30, 40]).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(kept, expected);
}

/// A failure is told, and the next try waits twice as long.
pub async fn a_build_that_fails_waits_longer_each_time(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    merge(&store, world, 1, 2, 2).await;
    let mut now = 1_000;
    for wait in [30, 60, 120, 240] {
        let lease = take(&store, now).await.unwrap();
        let profiles = store.profiles();
        profiles
            .fail(&lease, "table_damaged", LIMITS.every, at(now))
            .await
            .unwrap();
        assert_eq!(
            store.profiles().problem(world.project).await.unwrap().as_deref(),
            Some("table_damaged")
        );
        assert_eq!(take(&store, now + wait - 1).await, None);
        now += wait;
    }
    for _ in 0..40 {
        let lease = take(&store, now).await.unwrap();
        store
            .profiles()
            .fail(&lease, "table_damaged", LIMITS.every, at(now))
            .await
            .unwrap();
        now += 3_600;
    }
    // One whose version is not seen yet is no failure.
    let lease = take(&store, now).await.unwrap();
    store.profiles().give_back(&lease, at(now + 2)).await.unwrap();
    assert_eq!(take(&store, now + 1).await, None);
    assert_eq!(build(&store, 2, now + 2).await, 1);
    assert_eq!(store.profiles().problem(world.project).await.unwrap(), None);
}

/// A version that was lost shows no document, also if its number is given again.
pub async fn documents_of_a_lost_version_are_not_found(url: &str) {
    let store = open(url).await;
    let (own, _) = paid(&store, Some(5)).await;
    merge(&store, own, 1, 100, 100).await;
    assert_eq!(build(&store, 100, 100).await, 1);
    merge(&store, own, 2, 200, 300).await;
    assert_eq!(build(&store, 300, 200).await, 2);
    assert_eq!(milestone(&store, own.project, 2).await, Some(2));
    lose(&store, own.project, 2, 1, 300).await;
    assert_eq!(milestone(&store, own.project, 2).await, Some(1));
    assert_eq!(store.profiles().of(own.project, Version(2)).await.unwrap(), None);
    assert_eq!(store.profiles().coverage().await.unwrap().stale, 1);
    // The same number again, with other rows: too near to what was public before.
    let id = own.submitted(&store, 1).await[0];
    let merged = Resolution::Merged {
        version: Version(2),
        accepted: 250,
        record_count: 350,
        root: "cd".repeat(32),
    };
    store.outcomes_apply(vec![outcome(id, merged)]).await.unwrap();
    assert_eq!(build(&store, 350, 400).await, 2);
    let found = newest(&store, own.project, 2, ProfileKind::Full).await.unwrap();
    assert_eq!(found.root, "cd".repeat(32));
    assert_eq!(milestone(&store, own.project, 2).await, Some(1));
}

/// Of a dataset no more versions wait than are kept of those that were asked for, and neither they nor the newest
/// versions wait for all of the others.
pub async fn what_was_asked_for_leaves_room(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let most = u64::from(MAX_ASKED_PROFILES);
    let last = most + 2;
    for version in 1..=last {
        merge(&store, world, version, 1, version).await;
    }
    for version in 1..=most {
        assert_eq!(
            ask(&store, world.project, version, &root(version), 100, 10).await,
            ProfileAsked::Asked
        );
    }
    let next = ask(&store, world.project, most + 1, &root(most + 1), 100, 11).await;
    assert_eq!(next, ProfileAsked::DatasetFull);
    let again = ask(&store, world.project, 1, &root(1), 100, 11).await;
    assert_eq!(again, ProfileAsked::Asked, "it waits already");
    // Versions of other datasets have their own places.
    let other = World {
        project: project(&store, new_project(world.operator, "other")).await,
        ..world
    };
    merge(&store, other, 1, 1, 1).await;
    merge(&store, other, 2, 1, 2).await;
    assert_eq!(
        ask(&store, other.project, 1, &root(1), 100, 12).await,
        ProfileAsked::Asked
    );
    // Many wait, and the newest has its turn.
    let newest = take_in_turn(&store, ProfileTurn::Newest, 20).await.unwrap();
    assert!(newest.is_newest);
    assert!(write(&store, &newest, built(&newest, 2, false), 21).await);
    let asked = take_in_turn(&store, ProfileTurn::Asked, 22).await.unwrap();
    assert!(!asked.is_newest);
    assert!(write(&store, &asked, built(&asked, 1, false), 23).await);
    let newest = take_in_turn(&store, ProfileTurn::Newest, 24).await.unwrap();
    assert!(
        newest.is_newest,
        "both newest versions go before the next that was asked for"
    );
    assert!(write(&store, &newest, built(&newest, last, false), 25).await);
    // Where nothing of a kind is due, the other has the turn, too.
    let asked = take_in_turn(&store, ProfileTurn::Newest, 26).await.unwrap();
    assert_eq!((asked.project, asked.is_newest), (world.project, false));
    // It takes long, and the newest version does not wait longer for that.
    let profiles = store.profiles();
    let wrote = profiles.write(&asked, built(&asked, 1, false), at(26), at(40), LIMITS);
    assert!(wrote.await.unwrap());
    merge(&store, world, last + 1, 1, last + 1).await;
    let newest = take_in_turn(&store, ProfileTurn::Newest, 60).await.unwrap();
    assert_eq!((newest.project, newest.version), (world.project, Version(last + 1)));
}

/// Nobody chooses a milestone by asking for a version: only one that was the newest when its build began becomes one,
/// also if it is the newest no more when it is written.
pub async fn a_version_that_was_asked_for_is_no_milestone(url: &str) {
    let store = open(url).await;
    let (own, _) = paid(&store, Some(5)).await;
    merge(&store, own, 1, 500, 500).await;
    assert_eq!(build(&store, 500, 100).await, 1);
    merge(&store, own, 2, 500, 1_000).await;
    merge(&store, own, 3, 500, 1_500).await;
    let asked = ask(&store, own.project, 2, &root(2), 10, 101).await;
    assert_eq!(asked, ProfileAsked::Asked);
    assert_eq!(build(&store, 1_000, 102).await, 2);
    assert!(store.profiles().of(own.project, Version(2)).await.unwrap().is_some());
    assert_eq!(milestone(&store, own.project, 3).await, Some(1));
    let third = take(&store, 200).await.unwrap();
    merge(&store, own, 4, 500, 2_000).await;
    assert!(write(&store, &third, built(&third, 1_500, true), 201).await);
    assert_eq!(milestone(&store, own.project, 4).await, Some(3));
}

/// A version that was lost takes no place in the queue, and what was public of it does not have the document of the
/// newest version deleted.
pub async fn a_lost_version_does_not_wait_nor_count_as_the_newest(url: &str) {
    let store = open(url).await;
    let (own, _) = paid(&store, Some(5)).await;
    for (version, rows, records) in [(1, 100, 100), (2, 1, 101), (3, 1, 102), (4, 300, 402)] {
        merge(&store, own, version, rows, records).await;
    }
    assert_eq!(build(&store, 402, 100).await, 4);
    assert_eq!(milestone(&store, own.project, 4).await, Some(4));
    merge(&store, own, 5, 1, 403).await;
    assert_eq!(ask(&store, own.project, 5, &root(5), 1, 101).await, ProfileAsked::Asked);
    lose(&store, own.project, 5, 3, 102).await;
    // The only place is free again.
    assert_eq!(ask(&store, own.project, 2, &root(2), 1, 103).await, ProfileAsked::Asked);
    let newest = take_in_turn(&store, ProfileTurn::Newest, 200).await.unwrap();
    assert_eq!(newest.version, Version(3));
    assert!(write(&store, &newest, built(&newest, 102, true), 201).await);
    assert_eq!(build(&store, 101, 202).await, 2);
    assert!(store.profiles().of(own.project, Version(3)).await.unwrap().is_some());
    let coverage = store.profiles().coverage().await.unwrap();
    assert_eq!((coverage.missing, coverage.stale), (0, 1));
}

/// A build that takes longer than a lease keeps its dataset by renewing it, and no longer than that.
pub async fn a_lease_lasts_while_it_is_renewed(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    merge(&store, world, 1, 2, 2).await;
    let mut lease = take(&store, 20).await.unwrap();
    let mut stale = lease.clone();
    assert!(store.profiles().renew(&mut lease, at(900)).await.unwrap());
    assert_eq!(lease.until, at(900));
    assert_eq!(take(&store, 899).await, None);
    assert!(!store.profiles().renew(&mut stale, at(950)).await.unwrap());
    assert_eq!(stale.until, at(620));
    let other = take(&store, 900).await.unwrap();
    assert!(!store.profiles().renew(&mut lease, at(1_800)).await.unwrap());
    assert!(!write(&store, &lease, built(&lease, 2, false), 901).await);
    assert!(write(&store, &other, built(&other, 2, false), 902).await);
}

/// Sketches count whoever made them, and an older version that has fewer of them takes none off.
pub async fn sketches_are_charged_whoever_made_them(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    for version in 1..=2 {
        merge(&store, world, version, 2, 2 * version).await;
    }
    let charged = || {
        let store = store.clone();
        async move { store.profiles().sketch_bytes(world.operator).await.unwrap() }
    };
    let of = |version: u64, sketch_bytes: u64| NewProfile {
        project: world.project,
        version: Version(version),
        root: root(version),
        records: 2 * version,
        figures: "{}".to_owned(),
        preview: "[]".to_owned(),
        public: None,
        sketch_bytes,
    };
    // Within a call.
    store.profiles().add(of(1, 50), at(10)).await.unwrap();
    assert_eq!(charged().await, 50);
    let lease = take(&store, 20).await.unwrap();
    assert!(write(&store, &lease, of(2, 90), 21).await);
    assert_eq!(charged().await, 90);
    store.profiles().add(of(1, 60), at(22)).await.unwrap();
    assert_eq!(charged().await, 90);
}
