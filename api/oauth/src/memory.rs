//! A storage in memory, for tests.
//!
//! Invariant: one lock makes each method a transaction.
#![expect(clippy::unwrap_used, reason = "a storage of tests")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use types::Timestamp;

use crate::client::OAuthClient;
use crate::family::Family;
use crate::secret::Hash;
use crate::storage::{Access, Code, Connection, ConnectionId, Redeemed, Storage, StorageError, StoredCode};

/// Time after its end until a connection is removed.
const ENDED_CONNECTION_LIFE: Duration = Duration::from_hours(24);

/// A storage in memory.
#[derive(Debug, Default)]
pub struct MemoryStorage(Mutex<MemoryState>);

#[derive(Debug, Default)]
struct MemoryState {
    clients: HashMap<String, OAuthClient>,
    codes: HashMap<Hash, StoredCode>,
    connections: BTreeMap<ConnectionId, Connection>,
    refresh: HashMap<Hash, (ConnectionId, u32)>,
    access: HashMap<Hash, Access>,
    jti: HashMap<(String, String), Timestamp>,
}

impl MemoryStorage {
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.0.lock().unwrap()
    }
}

#[async_trait]
impl Storage for MemoryStorage {
    async fn add_client(&self, client: &OAuthClient) -> Result<(), StorageError> {
        self.state().clients.insert(client.id.clone(), client.clone());
        Ok(())
    }

    async fn client(&self, id: &str) -> Result<Option<OAuthClient>, StorageError> {
        Ok(self.state().clients.get(id).cloned())
    }

    async fn add_code(&self, hash: Hash, code: &Code) -> Result<(), StorageError> {
        let stored = StoredCode {
            code: code.clone(),
            redeemed_as: None,
        };
        self.state().codes.insert(hash, stored);
        Ok(())
    }

    async fn code(&self, hash: Hash) -> Result<Option<StoredCode>, StorageError> {
        Ok(self.state().codes.get(&hash).cloned())
    }

    async fn redeem(
        &self,
        code: Hash,
        connection: &Connection,
        refresh: Option<Hash>,
        (hash, access): (Hash, &Access),
    ) -> Result<Redeemed, StorageError> {
        let mut state = self.state();
        let Some(stored) = state.codes.get_mut(&code) else {
            return Ok(Redeemed::Unknown);
        };
        if let Some(before) = stored.redeemed_as {
            return Ok(Redeemed::Before(before));
        }
        stored.redeemed_as = Some(connection.id);
        state.connections.insert(connection.id, connection.clone());
        state.access.insert(hash, access.clone());
        if let Some(refresh) = refresh {
            state.refresh.insert(refresh, (connection.id, 0));
        }
        Ok(Redeemed::Now)
    }

    async fn refresh(&self, hash: Hash) -> Result<Option<(Connection, u32)>, StorageError> {
        let state = self.state();
        let found = state.refresh.get(&hash);
        Ok(found.and_then(|(id, number)| Some((state.connections.get(id)?.clone(), *number))))
    }

    async fn rotate(
        &self,
        connection: ConnectionId,
        next: &Family,
        refresh: Hash,
        (hash, access): (Hash, &Access),
    ) -> Result<bool, StorageError> {
        let mut state = self.state();
        let Some(stored) = state.connections.get_mut(&connection) else {
            return Ok(false);
        };
        if stored.family.ended_at.is_some() || stored.family.current.checked_add(1) != Some(next.current) {
            return Ok(false);
        }
        stored.family = next.clone();
        state.refresh.insert(refresh, (connection, next.current));
        state.access.insert(hash, access.clone());
        Ok(true)
    }

    async fn add_access(&self, hash: Hash, access: &Access) -> Result<bool, StorageError> {
        let mut state = self.state();
        let found = state.connections.get(&access.connection);
        let is_alive = found.is_some_and(|connection| connection.family.ended_at.is_none());
        if is_alive {
            state.access.insert(hash, access.clone());
        }
        Ok(is_alive)
    }

    async fn access(&self, hash: Hash) -> Result<Option<(Connection, Access)>, StorageError> {
        let state = self.state();
        let found = state.access.get(&hash);
        Ok(found.and_then(|access| Some((state.connections.get(&access.connection)?.clone(), access.clone()))))
    }

    async fn end(&self, connection: ConnectionId, now: Timestamp) -> Result<(), StorageError> {
        if let Some(connection) = self.state().connections.get_mut(&connection) {
            connection.family.ended_at.get_or_insert(now);
        }
        Ok(())
    }

    async fn use_jti(&self, client_id: &str, jti: &str, until: Timestamp) -> Result<bool, StorageError> {
        let key = (client_id.to_owned(), jti.to_owned());
        Ok(self.state().jti.insert(key, until).is_none())
    }

    async fn prune(&self, now: Timestamp) -> Result<(), StorageError> {
        let mut state = self.state();
        let MemoryState {
            codes,
            connections,
            refresh,
            access,
            jti,
            ..
        } = &mut *state;
        connections.retain(|_, Connection { family, .. }| {
            let end = family.expires_at();
            now < family
                .ended_at
                .map_or(end, |ended| ended.min(end))
                .plus(ENDED_CONNECTION_LIFE)
        });
        codes.retain(|_, StoredCode { code, redeemed_as }| match redeemed_as {
            Some(connection) => connections.contains_key(connection),
            None => now < code.expires_at,
        });
        refresh.retain(|_, (connection, _)| connections.contains_key(connection));
        access.retain(|_, access| now < access.expires_at && connections.contains_key(&access.connection));
        jti.retain(|_, until| now < *until);
        Ok(())
    }
}
