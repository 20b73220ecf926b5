//! Scenarios about service keys, secrets, query leases and egress.

use types::{AgentId, Classify, Kind, OperatorId, Timestamp, Version};

use super::fixture::{World, at, fresh_hash, merged, open, outcome, race};
use crate::{Egress, KeyAdded, KeyEndorsement, KeyRevoked, LeaseTaken, NewServiceKey, ServiceKey, SpendOwner};

fn key(name: &str, created: i64, by: Option<&str>) -> NewServiceKey {
    NewServiceKey {
        key_id: name.to_owned(),
        public_key: fresh_hash(),
        secret: fresh_hash(),
        created_at: at(created),
        endorsement: by.map(|by| KeyEndorsement {
            by: by.to_owned(),
            value: [7; 64],
        }),
    }
}

fn ends(keys: &[ServiceKey]) -> Vec<(&str, Option<Timestamp>, Option<Timestamp>)> {
    let of = |key: &ServiceKey| key.revoked.as_ref().map(|(at, _)| *at);
    keys.iter()
        .map(|key| (key.key_id.as_str(), key.retired_at, of(key)))
        .collect()
}

/// Keys succeed each other, none is removed, and a key that is not the replacement never becomes current.
pub async fn keys_follow_each_other_and_stay(url: &str) {
    let store = open(url).await;
    assert_eq!(store.service_keys().await.unwrap(), []);
    let first = key("a", 0, None);
    let added = store.service_key_add(None, first.clone(), at(0)).await.unwrap();
    assert_eq!(added, KeyAdded::Added);
    for current in [None, Some("x".to_owned())] {
        let raced = store.service_key_add(current, key("b", 1, Some("a")), at(9)).await;
        assert_eq!(raced.unwrap(), KeyAdded::Raced);
    }
    let second = key("b", 1, Some("a"));
    let added = store.service_key_add(Some("a".to_owned()), second.clone(), at(9)).await;
    assert_eq!(added.unwrap(), KeyAdded::Added);

    let keys = open(url).await.service_keys().await.unwrap();
    assert_eq!(ends(&keys), [("a", Some(at(9)), None), ("b", None, None)]);
    assert_eq!((keys[0].secret, keys[0].public_key), (first.secret, first.public_key));
    assert_eq!(
        (&keys[0].endorsement, &keys[1].endorsement),
        (&None, &second.endorsement)
    );
    assert_eq!(keys[1].created_at, at(1));
}

/// A revocation is final; the current key is revoked together with its replacement or not at all.
pub async fn a_revoked_current_key_is_replaced_at_once(url: &str) {
    let store = open(url).await;
    assert_eq!(
        store.service_key_add(None, key("a", 0, None), at(0)).await.unwrap(),
        KeyAdded::Added
    );
    let revoke = async |id: &str, at, successor| {
        store
            .service_key_revoke(id.to_owned(), "lost".to_owned(), at, successor)
            .await
            .unwrap()
    };
    assert_eq!(revoke("x", at(1), None).await, KeyRevoked::Unknown);
    assert_eq!(revoke("a", at(1), None).await, KeyRevoked::Current);
    assert_eq!(
        revoke("a", at(1), Some(key("b", 1, Some("x")))).await,
        KeyRevoked::Current
    );
    assert_eq!(ends(&store.service_keys().await.unwrap()), [("a", None, None)]);

    assert_eq!(
        revoke("a", at(2), Some(key("b", 2, Some("a")))).await,
        KeyRevoked::Replaced
    );
    assert_eq!(
        revoke("a", at(5), Some(key("c", 5, Some("a")))).await,
        KeyRevoked::Before
    );
    let raced = store
        .service_key_add(Some("a".to_owned()), key("c", 5, Some("a")), at(5))
        .await;
    assert_eq!(raced.unwrap(), KeyAdded::Raced);
    let keys = store.service_keys().await.unwrap();
    assert_eq!(ends(&keys), [("a", Some(at(2)), Some(at(2))), ("b", None, None)]);
    assert_eq!(keys[0].revoked, Some((at(2), "lost".to_owned())));
}

/// Of many concurrent rotations, one succeeds.
pub async fn one_of_many_rotations_wins(url: &str) {
    let store = open(url).await;
    assert_eq!(
        store.service_key_add(None, key("a", 0, None), at(0)).await.unwrap(),
        KeyAdded::Added
    );
    let added = race([store.clone(), open(url).await], 8, |store, number| async move {
        let new = key(&format!("b{number}"), 1, Some("a"));
        store.service_key_add(Some("a".to_owned()), new, at(1)).await.unwrap()
    })
    .await;
    assert_eq!(added.iter().filter(|added| **added == KeyAdded::Added).count(), 1);
    assert_eq!(store.service_keys().await.unwrap().len(), 2);
}

/// Of many callers that create the first key at once, one succeeds. The others learn that they were late.
pub async fn one_of_many_first_keys_is_the_first(url: &str) {
    let added = race([open(url).await, open(url).await], 8, |store, number| async move {
        let new = key(&format!("a{number}"), 0, None);
        store.service_key_add(None, new, at(0)).await.unwrap()
    })
    .await;
    assert_eq!(added.iter().filter(|added| **added == KeyAdded::Added).count(), 1);
    assert_eq!(open(url).await.service_keys().await.unwrap().len(), 1);
}

/// After concurrent rotations and revocations of the current key there is one current key, and it is not revoked.
pub async fn rotations_and_revocations_take_turns(url: &str) {
    let store = open(url).await;
    let first = store.service_key_add(None, key("a", 0, None), at(0)).await.unwrap();
    assert_eq!(first, KeyAdded::Added);
    let changes = race([store.clone(), open(url).await], 8, |store, number| async move {
        let new = key(&format!("b{number}"), 1, Some("a"));
        if number < 4 {
            let added = store.service_key_add(Some("a".to_owned()), new, at(1)).await;
            (Some(added.unwrap()), None)
        } else {
            let revoked = store
                .service_key_revoke("a".to_owned(), "lost".to_owned(), at(1), Some(new))
                .await;
            (None, Some(revoked.unwrap()))
        }
    })
    .await;
    // One rotates before, or the first revocation replaces; either way "a" is revoked once and followed by one key.
    let followed = [(Some(KeyAdded::Added), None), (None, Some(KeyRevoked::Replaced))];
    assert_eq!(changes.iter().filter(|change| followed.contains(change)).count(), 1);
    let revoked = [Some(KeyRevoked::Replaced), Some(KeyRevoked::Revoked)];
    assert_eq!(changes.iter().filter(|(_, change)| revoked.contains(change)).count(), 1);
    let keys = store.service_keys().await.unwrap();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].revoked.is_some() && keys[1].revoked.is_none());
}

/// The first caller creates the secret, and every caller gets that one.
pub async fn a_secret_is_made_once(url: &str) {
    let store = open(url).await;
    let told = race([store.clone(), open(url).await], 8, |store, _| async move {
        store.secret("links", fresh_hash(), at(0)).await.unwrap()
    })
    .await;
    assert!(told.iter().all(|secret| *secret == told[0]));
    assert_ne!(store.secret("others", fresh_hash(), at(0)).await.unwrap(), told[0]);
}

/// One query of an operator runs at a time; a lease ends when it is ended, or by itself.
pub async fn a_lease_is_exclusive_and_ends(url: &str) {
    let store = open(url).await;
    let (ada, eve) = (OperatorId::new(at(0)), OperatorId::new(at(0)));
    let take = async |operator, holder: &str, until, now| {
        store
            .query_lease_take(operator, holder.to_owned(), at(until), at(now))
            .await
            .unwrap()
    };
    assert_eq!(take(ada, "one", 25, 0).await, LeaseTaken::Taken);
    assert_eq!(take(ada, "two", 26, 1).await, LeaseTaken::Held { until: at(25) });
    assert_eq!(take(eve, "three", 26, 1).await, LeaseTaken::Taken);
    store.query_lease_end(ada, "two".to_owned()).await.unwrap();
    assert_eq!(take(ada, "two", 26, 24).await, LeaseTaken::Held { until: at(25) });
    store.query_lease_end(ada, "one".to_owned()).await.unwrap();
    assert_eq!(take(ada, "two", 27, 2).await, LeaseTaken::Taken);
    // The lease's holder died. Its late end does not affect the next lease.
    assert_eq!(take(ada, "four", 60, 27).await, LeaseTaken::Taken);
    store.query_lease_end(ada, "two".to_owned()).await.unwrap();
    assert_eq!(take(ada, "five", 61, 28).await, LeaseTaken::Held { until: at(60) });
}

/// Of many queries of an operator at once, one runs.
pub async fn one_of_many_queries_gets_the_lease(url: &str) {
    let ada = OperatorId::new(at(0));
    let taken = race([open(url).await, open(url).await], 8, |store, number| async move {
        store
            .query_lease_take(ada, number.to_string(), at(25), at(0))
            .await
            .unwrap()
    })
    .await;
    assert_eq!(taken.iter().filter(|taken| **taken == LeaseTaken::Taken).count(), 1);
}

/// Egress adds up per operator and month.
pub async fn egress_adds_up_by_month(url: &str) {
    let store = open(url).await;
    let (ada, eve) = (OperatorId::new(at(0)), OperatorId::new(at(0)));
    let of = |operator, month, bytes| Egress {
        operator,
        month,
        reader: None,
        bytes,
    };
    let add = |id: &str, sent, now| store.egress_add(id.to_owned(), sent, at(now));
    // An addition that is repeated under the same id counts once.
    for now in [0, 1, 24 * 3_600] {
        let sent = vec![of(ada, 1, 5), of(eve, 1, 7), of(ada, 2, 1)];
        add("first", sent, now).await.unwrap();
    }
    add("second", vec![of(ada, 1, 10)], 24 * 3_600).await.unwrap();
    for (operator, month, expected) in [(ada, 1, 15), (ada, 2, 1), (eve, 1, 7), (eve, 2, 0)] {
        assert_eq!(store.egress(operator, month).await.unwrap(), expected);
    }
    let beyond = add("third", vec![of(ada, 3, 1), of(ada, 3, u64::MAX)], 2).await;
    assert_eq!(beyond.unwrap_err().kind(), Kind::Invalid);
    assert_eq!(store.egress(ada, 3).await.unwrap(), 0);
    // A change that was undone added nothing.
    add("third", vec![of(ada, 3, 1)], 3).await.unwrap();
    assert_eq!(store.egress(ada, 3).await.unwrap(), 1);
}

/// The bytes of a month are those of its readers, and the months of an operator are listed newest first.
pub async fn egress_is_of_its_readers(url: &str) {
    let store = open(url).await;
    let (ada, eve) = (OperatorId::new(at(0)), OperatorId::new(at(0)));
    let agent = SpendOwner::Agent(AgentId::new(at(0)));
    let of = |operator, month, reader, bytes| Egress {
        operator,
        month,
        reader,
        bytes,
    };
    let sent = vec![
        of(ada, 2, Some(agent), 5),
        of(ada, 2, None, 1),
        of(eve, 2, None, 9),
        of(ada, 1, None, 3),
    ];
    // Sent again under the same id, it counts once for its readers too.
    for _ in 0..2 {
        store.egress_add("first".to_owned(), sent.clone(), at(0)).await.unwrap();
    }
    let more = vec![of(ada, 2, None, 2)];
    store.egress_add("second".to_owned(), more, at(1)).await.unwrap();
    let readers = store.egress_readers(ada, 2, 9).await.unwrap();
    let readers: Vec<_> = readers.iter().map(|of| (of.reader.as_str(), of.bytes)).collect();
    assert_eq!(readers, [(agent.to_string().as_str(), 5), ("", 3)]);
    assert_eq!(store.egress_readers(ada, 2, 1).await.unwrap().len(), 1);
    assert_eq!(store.egress_readers(ada, 3, 9).await.unwrap(), []);
    let months = store.egress_months(ada, 9).await.unwrap();
    let months: Vec<_> = months.iter().map(|of| (of.month, of.bytes)).collect();
    assert_eq!(months, [(2, 8), (1, 3)]);
    assert_eq!(store.egress(ada, 2).await.unwrap(), 8);
}

/// The versions after one and up to another, oldest first.
pub async fn versions_between_two_are_oldest_first(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 5).await;
    let outcomes = ids.iter().zip(1..).map(|(id, version)| outcome(*id, merged(version)));
    assert_eq!(
        store.outcomes_apply(outcomes.collect::<Vec<_>>()).await.unwrap().len(),
        5
    );
    let between = async |after, upto, limit| -> Vec<u64> {
        let versions = store
            .project_versions_between(world.project, Version(after), Version(upto), limit)
            .await
            .unwrap();
        assert!(versions.iter().all(|version| version.agent_name == "collector"));
        versions.iter().map(|version| version.version.0).collect()
    };
    assert_eq!(between(0, 5, 100).await, [1, 2, 3, 4, 5]);
    assert_eq!(between(1, 4, 100).await, [2, 3, 4]);
    assert_eq!(between(1, 9, 2).await, [2, 3]);
    assert_eq!(between(3, 3, 100).await, [] as [u64; 0]);
}
