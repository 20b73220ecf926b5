//! The conformance suite of storages.
//!
//! Invariant: a storage that passes [`run`] keeps every promise of [`Storage`], also under concurrent calls.
#![expect(clippy::unwrap_used, reason = "a suite of tests")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use types::money::MicroUsdc;
use types::{AgentId, OperatorId, Timestamp};

use crate::client::{ClientAuth, OAuthClient};
use crate::family::Family;
use crate::issuer::Resource;
use crate::pkce::Challenge;
use crate::redirect::Application;
use crate::scope::{Scope, Scopes};
use crate::secret::Hash;
use crate::storage::{Access, AppBudget, Code, Connection, ConnectionId, Grant, Redeemed, Storage};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Concurrent calls of a race.
const RACERS: u8 = 8;

/// A storage under test, with an operator and an agent that exist in its database.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The storage.
    pub storage: Arc<dyn Storage>,
    /// An operator.
    pub operator: OperatorId,
    /// An agent of the operator.
    pub agent: AgentId,
    /// An instant that the database takes for the present.
    pub now: Timestamp,
}

/// Runs every test of the suite. Hashes are unique per test, so that one database serves all.
pub async fn run(fixture: &Fixture) {
    clients_are_kept_whole(fixture).await;
    a_code_is_redeemed_once(fixture).await;
    of_many_redemptions_one_wins(fixture).await;
    a_family_rotates_once_per_token(fixture).await;
    of_many_rotations_one_wins(fixture).await;
    an_end_ends_everything_and_stays(fixture).await;
    a_jti_is_used_once(fixture).await;
    pruning_removes_only_what_is_of_no_use(fixture).await;
}

fn hash(test: u8, number: u8) -> Hash {
    let mut bytes = [test; 32];
    bytes[31] = number;
    Hash(bytes)
}

fn client(id: &str) -> OAuthClient {
    OAuthClient {
        id: id.to_owned(),
        name: Some("B\u{fc}cher \u{2014} \"desk\"".to_owned()),
        uri: None,
        redirect_uris: vec!["https://app.example/cb".to_owned(), "http://[::1]/cb".to_owned()],
        application: Application::Native,
        scopes: Scopes::of(&[Scope::Read, Scope::Write]),
        may_refresh: false,
        auth: ClientAuth::None,
        registered_at: Timestamp::from_micros(1_795_000_000_123_456),
    }
}

impl Fixture {
    fn code(&self) -> Code {
        Code {
            grant: Grant {
                client_id: "https://app.example/client.json".to_owned(),
                operator: self.operator,
                agent: self.agent,
                resource: Resource::Directory,
                scopes: Scopes::of(&[Scope::Read]),
            },
            redirect_uri: "https://app.example/cb?a=b".to_owned(),
            challenge: Challenge::from_bytes([7; 32]),
            budget: AppBudget {
                per_month: Some(MicroUsdc(1_000_000)),
                approve_above: Some(MicroUsdc(0)),
            },
            expires_at: self.now.plus(Duration::from_mins(1)),
        }
    }

    fn connection(&self) -> Connection {
        Connection {
            id: ConnectionId::new(self.now),
            grant: self.code().grant,
            family: Family::new(self.now),
        }
    }

    fn access(&self, connection: ConnectionId) -> Access {
        Access {
            connection,
            scopes: Scopes::of(&[Scope::Read]),
            expires_at: self.now.plus(Duration::from_hours(1)),
        }
    }

    /// Adds a connection by a code. Its code, first refresh token and first access token have the numbers 0, 1 and 2.
    async fn connect(&self, test: u8) -> Connection {
        let connection = self.connection();
        let access = self.access(connection.id);
        let storage = &self.storage;
        storage.add_code(hash(test, 0), &self.code()).await.unwrap();
        let tokens = (hash(test, 2), &access);
        let redeemed = storage
            .redeem(hash(test, 0), &connection, Some(hash(test, 1)), tokens)
            .await;
        assert_eq!(redeemed.unwrap(), Redeemed::Now);
        connection
    }
}

async fn clients_are_kept_whole(fixture: &Fixture) {
    let storage = &fixture.storage;
    assert_eq!(storage.client("app_conformance").await.unwrap(), None);
    let client = client("app_conformance");
    storage.add_client(&client).await.unwrap();
    assert_eq!(storage.client("app_conformance").await.unwrap(), Some(client));
    assert_eq!(
        storage.client("APP_conformance").await.unwrap(),
        None,
        "ids differ by case"
    );
}

async fn a_code_is_redeemed_once(fixture: &Fixture) {
    let (storage, test) = (&fixture.storage, 1);
    assert_eq!(storage.code(hash(test, 0)).await.unwrap(), None);
    storage.add_code(hash(test, 0), &fixture.code()).await.unwrap();
    let stored = storage.code(hash(test, 0)).await.unwrap().unwrap();
    assert_eq!((stored.code, stored.redeemed_as), (fixture.code(), None));
    let connection = fixture.connection();
    let access = fixture.access(connection.id);
    let tokens = (hash(test, 2), &access);
    let unknown = storage.redeem(hash(test, 9), &connection, None, tokens).await.unwrap();
    assert_eq!(unknown, Redeemed::Unknown);
    assert_eq!(storage.access(hash(test, 2)).await.unwrap(), None);
    let first = storage
        .redeem(hash(test, 0), &connection, Some(hash(test, 1)), tokens)
        .await;
    assert_eq!(first.unwrap(), Redeemed::Now);
    let stored = storage.code(hash(test, 0)).await.unwrap().unwrap();
    assert_eq!(stored.redeemed_as, Some(connection.id));
    let kept = storage.access(hash(test, 2)).await.unwrap();
    assert_eq!(kept, Some((connection.clone(), access.clone())));
    let kept = storage.refresh(hash(test, 1)).await.unwrap();
    assert_eq!(kept, Some((connection.clone(), 0)));
    let other = fixture.connection();
    let second = storage
        .redeem(
            hash(test, 0),
            &other,
            Some(hash(test, 3)),
            (hash(test, 4), &fixture.access(other.id)),
        )
        .await;
    assert_eq!(second.unwrap(), Redeemed::Before(connection.id));
    assert_eq!(storage.refresh(hash(test, 3)).await.unwrap(), None);
    assert_eq!(storage.access(hash(test, 4)).await.unwrap(), None);
}

/// Runs calls at once and returns their outcomes.
async fn race<T: Send + 'static>(call: impl Fn(u8) -> BoxFuture<T>) -> Vec<T> {
    let mut racers = JoinSet::new();
    for racer in 0..RACERS {
        racers.spawn(call(racer));
    }
    racers.join_all().await
}

async fn of_many_redemptions_one_wins(fixture: &Fixture) {
    let test = 2;
    fixture.storage.add_code(hash(test, 0), &fixture.code()).await.unwrap();
    let outcomes = race(|racer| {
        let fixture = fixture.clone();
        Box::pin(async move {
            let connection = fixture.connection();
            let access = fixture.access(connection.id);
            let tokens = (hash(test, 100 + racer), &access);
            let refresh = Some(hash(test, 1 + racer));
            let redeemed = fixture
                .storage
                .redeem(hash(test, 0), &connection, refresh, tokens)
                .await;
            (connection.id, redeemed.unwrap())
        })
    })
    .await;
    let winners: Vec<ConnectionId> = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == Redeemed::Now)
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    let is_right = |(id, outcome): &(ConnectionId, Redeemed)| {
        *outcome == Redeemed::Before(winners[0]) || *id == winners[0] && *outcome == Redeemed::Now
    };
    assert!(outcomes.iter().all(is_right), "{outcomes:?}");
    let mut kept = 0;
    for racer in 0..RACERS {
        kept += usize::from(fixture.storage.refresh(hash(test, 1 + racer)).await.unwrap().is_some());
    }
    assert_eq!(kept, 1);
}

async fn a_family_rotates_once_per_token(fixture: &Fixture) {
    let (storage, test) = (&fixture.storage, 3);
    let first = fixture.connect(test).await;
    let later = fixture.now.plus(Duration::from_micros(1_234_567));
    let next = first.family.rotate([9; 32], later);
    let access = fixture.access(first.id);
    assert!(
        storage
            .rotate(first.id, &next, hash(test, 3), (hash(test, 4), &access))
            .await
            .unwrap()
    );
    // The old token still leads to its family, and says that it is old.
    let (connection, number) = storage.refresh(hash(test, 1)).await.unwrap().unwrap();
    assert_eq!((&connection.family, number), (&next, 0));
    let (_, number) = storage.refresh(hash(test, 3)).await.unwrap().unwrap();
    assert_eq!(number, 1);
    assert!(
        storage.access(hash(test, 2)).await.unwrap().is_some(),
        "access tokens outlive a rotation"
    );
    assert!(storage.access(hash(test, 4)).await.unwrap().is_some());
    assert!(
        !storage
            .rotate(first.id, &next, hash(test, 5), (hash(test, 6), &access))
            .await
            .unwrap()
    );
    assert_eq!(storage.refresh(hash(test, 5)).await.unwrap(), None);
    assert_eq!(storage.access(hash(test, 6)).await.unwrap(), None);
    assert!(storage.add_access(hash(test, 7), &access).await.unwrap());
    assert!(storage.access(hash(test, 7)).await.unwrap().is_some());
    let nobody = ConnectionId::new(fixture.now);
    assert!(
        !storage
            .rotate(nobody, &next, hash(test, 8), (hash(test, 9), &access))
            .await
            .unwrap()
    );
    assert!(
        !storage
            .add_access(hash(test, 10), &fixture.access(nobody))
            .await
            .unwrap()
    );
}

async fn of_many_rotations_one_wins(fixture: &Fixture) {
    let test = 4;
    let first = fixture.connect(test).await;
    let rotated = race(|racer| {
        let (fixture, first) = (fixture.clone(), first.clone());
        Box::pin(async move {
            let next = first.family.rotate([racer; 32], fixture.now);
            let tokens = (hash(test, 100 + racer), &fixture.access(first.id));
            let rotated = fixture
                .storage
                .rotate(first.id, &next, hash(test, 10 + racer), tokens)
                .await;
            (racer, rotated.unwrap())
        })
    })
    .await;
    let winners: Vec<u8> = rotated
        .iter()
        .filter(|(_, won)| *won)
        .map(|(racer, _)| *racer)
        .collect();
    assert_eq!(winners.len(), 1, "{rotated:?}");
    for racer in 0..RACERS {
        let kept = fixture.storage.refresh(hash(test, 10 + racer)).await.unwrap();
        assert_eq!(kept.is_some(), racer == winners[0]);
        let salt = kept
            .and_then(|(connection, _)| connection.family.rotated)
            .map(|rotated| rotated.salt);
        assert!(salt.is_none_or(|salt| salt == [racer; 32]));
    }
}

async fn an_end_ends_everything_and_stays(fixture: &Fixture) {
    let (storage, test) = (&fixture.storage, 5);
    let first = fixture.connect(test).await;
    let (now, later) = (fixture.now, fixture.now.plus(Duration::from_secs(9)));
    storage.end(first.id, now).await.unwrap();
    storage.end(first.id, later).await.unwrap();
    storage.end(ConnectionId::new(now), later).await.unwrap();
    let (connection, _) = storage.refresh(hash(test, 1)).await.unwrap().unwrap();
    assert_eq!(connection.family.ended_at, Some(now));
    let (connection, _) = storage.access(hash(test, 2)).await.unwrap().unwrap();
    assert_eq!(connection.family.ended_at, Some(now));
    let access = fixture.access(first.id);
    let next = first.family.rotate([1; 32], now);
    assert!(
        !storage
            .rotate(first.id, &next, hash(test, 3), (hash(test, 4), &access))
            .await
            .unwrap()
    );
    assert!(!storage.add_access(hash(test, 5), &access).await.unwrap());
    for number in [3, 4, 5] {
        assert_eq!(storage.refresh(hash(test, number)).await.unwrap(), None);
        assert_eq!(storage.access(hash(test, number)).await.unwrap(), None);
    }
}

async fn a_jti_is_used_once(fixture: &Fixture) {
    let storage = &fixture.storage;
    let until = fixture.now.plus(Duration::from_mins(1));
    let (one, other) = ("https://app.example/jti", "https://other.example/jti");
    assert!(storage.use_jti(one, "a", until).await.unwrap());
    assert!(!storage.use_jti(one, "a", until).await.unwrap());
    assert!(
        storage.use_jti(one, "A", until).await.unwrap(),
        "identifiers differ by case"
    );
    assert!(
        storage.use_jti(other, "a", until).await.unwrap(),
        "clients do not share identifiers"
    );
    assert!(storage.use_jti(one, "\u{e9}'\"; --", until).await.unwrap());
    let outcomes = race(|_| {
        let storage = Arc::clone(&fixture.storage);
        Box::pin(async move { storage.use_jti(one, "raced", until).await.unwrap() })
    })
    .await;
    assert_eq!(outcomes.iter().filter(|won| **won).count(), 1);
}

async fn pruning_removes_only_what_is_of_no_use(fixture: &Fixture) {
    let (storage, test, now) = (&fixture.storage, 6, fixture.now);
    let after = |seconds| now.plus(Duration::from_secs(seconds));
    let alive = fixture.connect(test).await;
    let ended = fixture.connect(test + 1).await;
    storage.end(ended.id, now).await.unwrap();
    storage.add_code(hash(test, 9), &fixture.code()).await.unwrap();
    storage
        .use_jti("https://app.example/prune", "a", after(60))
        .await
        .unwrap();

    storage.prune(after(59)).await.unwrap();
    assert!(storage.code(hash(test, 9)).await.unwrap().is_some());
    assert!(
        !storage
            .use_jti("https://app.example/prune", "a", after(60))
            .await
            .unwrap()
    );

    storage.prune(after(3_600)).await.unwrap();
    assert_eq!(
        storage.code(hash(test, 9)).await.unwrap(),
        None,
        "an unused code has ended"
    );
    assert!(
        storage
            .use_jti("https://app.example/prune", "a", after(60))
            .await
            .unwrap()
    );
    assert!(
        storage.code(hash(test, 0)).await.unwrap().is_some(),
        "the reuse of this code is still seen"
    );
    assert_eq!(storage.access(hash(test, 2)).await.unwrap(), None);
    assert!(storage.refresh(hash(test, 1)).await.unwrap().is_some());
    assert!(
        storage.refresh(hash(test + 1, 1)).await.unwrap().is_some(),
        "it has ended less than a day ago"
    );

    storage.prune(after(24 * 3_600)).await.unwrap();
    assert_eq!(storage.refresh(hash(test + 1, 1)).await.unwrap(), None);
    assert_eq!(storage.code(hash(test + 1, 0)).await.unwrap(), None);
    assert!(storage.refresh(hash(test, 1)).await.unwrap().is_some());

    storage
        .prune(alive.family.expires_at().plus(Duration::from_hours(24)))
        .await
        .unwrap();
    assert_eq!(storage.refresh(hash(test, 1)).await.unwrap(), None);
    assert_eq!(storage.code(hash(test, 0)).await.unwrap(), None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStorage;

    #[tokio::test]
    async fn the_storage_in_memory_conforms() {
        let now = Timestamp::from_micros(1_795_000_000_000_000);
        run(&Fixture {
            storage: Arc::new(MemoryStorage::default()),
            operator: OperatorId::new(now),
            agent: AgentId::new(now),
            now,
        })
        .await;
    }
}
