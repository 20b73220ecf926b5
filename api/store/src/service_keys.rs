//! The keys that the service signs with, and the secrets that its processes share.
//!
//! Invariant: a key is never removed and never becomes current again. The current key is the one added last.

use std::fmt;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::Timestamp;

use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, pair, row};
use crate::writer::Change;
use crate::{Error, Store};

/// Values of a new service key.
#[derive(Clone)]
pub struct NewServiceKey {
    /// Name of the key.
    pub key_id: String,
    /// Public half of the key.
    pub public_key: [u8; 32],
    /// Secret half of the key.
    pub secret: [u8; 32],
    /// Creation time of the key.
    pub created_at: Timestamp,
    /// Signature by the previous key; `None` for the first key.
    pub endorsement: Option<KeyEndorsement>,
}

/// Shows the id, never the secret.
impl fmt::Debug for NewServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewServiceKey").field(&self.key_id).finish()
    }
}

/// A signature by one key over the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEndorsement {
    /// Id of the signing key.
    pub by: String,
    /// Signature over the next key.
    pub value: [u8; 64],
}

row! {
    /// A service key as stored.
    #[derive(Clone, PartialEq, Eq)]
    pub struct ServiceKey {
        /// Name of the key.
        pub key_id: String,
        /// Public half of the key.
        pub public_key: [u8; 32],
        /// Secret half of the key.
        pub secret: [u8; 32],
        /// Creation time of the key.
        pub created_at: Timestamp,
        /// Time until which its signatures count, once another key has replaced it.
        pub retired_at: Option<Timestamp>,
        /// Time and reason of the revocation, if revoked. None of its signatures count from then on.
        pub revoked: Option<(Timestamp, String)> = "revoked_at, reason" => pair,
        /// Signature by the previous key; `None` for the first key.
        pub endorsement: Option<KeyEndorsement> = "endorsed_by, endorsement" => endorsement,
    }
}

/// Shows everything but the secret.
impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceKey")
            .field("key_id", &self.key_id)
            .field("created_at", &self.created_at)
            .field("retired_at", &self.retired_at)
            .field("revoked", &self.revoked)
            .finish_non_exhaustive()
    }
}

/// The result of [`Store::service_key_add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum KeyAdded {
    /// The key is the current one now.
    Added,
    /// Another key was added meanwhile; nothing changed.
    Raced,
}

/// The result of [`Store::service_key_revoke`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum KeyRevoked {
    /// The key is revoked now.
    Revoked,
    /// The key is revoked, and the successor is the current key.
    Replaced,
    /// The key was revoked before; nothing changed.
    Before,
    /// The key is the current one and no successor of it was given; nothing changed.
    Current,
    /// No key has this id.
    Unknown,
}

impl Store {
    /// Returns every key, oldest first; the last is the current one.
    pub async fn service_keys(&self) -> Result<Vec<ServiceKey>, Error> {
        self.all(sql!(text!(
            "SELECT ",
            ServiceKey::COLUMNS,
            " FROM service_keys ORDER BY number"
        )))
        .await
    }

    /// Makes `new` the current key and retires `current` as of `retired_at`, unless another key has replaced `current`
    /// meanwhile. `current` is `None` for the very first key.
    pub async fn service_key_add(
        &self,
        current: Option<String>,
        new: NewServiceKey,
        retired_at: Timestamp,
    ) -> Result<KeyAdded, Error> {
        self.write(tx!(async move |cx| {
            let newest = newest(cx).await?;
            if newest.as_ref().map(|(_, id)| id) != current.as_ref() {
                return Ok(Change::Undo(KeyAdded::Raced));
            }
            if succeed(cx, newest, new, retired_at).await? {
                Ok(Change::Keep(KeyAdded::Added))
            } else {
                Ok(Change::Undo(KeyAdded::Raced))
            }
        }))
        .await
    }

    /// Revokes a key as of `at`. If it is the current key, `successor`, which it must have endorsed, replaces it in the
    /// same transaction.
    pub async fn service_key_revoke(
        &self,
        key_id: String,
        reason: String,
        at: Timestamp,
        successor: Option<NewServiceKey>,
    ) -> Result<KeyRevoked, Error> {
        self.write(tx!(async move |cx| {
            let newest = newest(cx).await?;
            // Compared under the lock on the keys, so the current key stays the same until
            // the commit.
            let is_current = newest.as_ref().is_some_and(|(_, id)| *id == key_id);
            let revoked = sql!(
                "UPDATE service_keys SET revoked_at = $2, reason = $3, retired_at = COALESCE(retired_at, $2)
                 WHERE key_id = $1 AND revoked_at IS NULL",
                key_id.as_str(),
                at,
                reason
            )
            .run(cx)
            .await?;
            // The key does not exist, or was revoked before.
            if revoked == 0 {
                let known = sql!("SELECT key_id FROM service_keys WHERE key_id = $1", key_id.as_str())
                    .row_if_any(cx)
                    .await?;
                let before = known.map_or(KeyRevoked::Unknown, |_| KeyRevoked::Before);
                return Ok(Change::Undo(before));
            }
            match successor {
                // An old key needs no successor.
                _ if !is_current => Ok(Change::Keep(KeyRevoked::Revoked)),
                Some(new) if new.endorsement.as_ref().is_some_and(|by| by.by == key_id) => {
                    if succeed(cx, newest, new, at).await? {
                        Ok(Change::Keep(KeyRevoked::Replaced))
                    } else {
                        Ok(Change::Undo(KeyRevoked::Current))
                    }
                }
                _ => Ok(Change::Undo(KeyRevoked::Current)),
            }
        }))
        .await
    }

    /// Returns the secret of this name, if there is one.
    pub async fn known_secret(&self, name: &'static str) -> Result<Option<[u8; 32]>, Error> {
        self.read(async {
            let row = sql!("SELECT value FROM secrets WHERE name = $1", name)
                .row_if_any(&mut self.readers())
                .await?;
            row.map(|row| row.get("value")).transpose()
        })
        .await
    }

    /// Returns the secret of this name. If there is none, stores `fresh` as the secret first.
    pub async fn secret(&self, name: &'static str, fresh: [u8; 32], now: Timestamp) -> Result<[u8; 32], Error> {
        self.write(tx!(async move |cx| {
            sql!(
                "INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
                name,
                fresh,
                now
            )
            .run(cx)
            .await?;
            let row = sql!("SELECT value FROM secrets WHERE name = $1", name).row(cx).await?;
            Ok(Change::Keep(row.get("value")?))
        }))
        .await
    }
}

/// Returns the current key and its number, and keeps other transactions from changing the current key.
///
/// The lock is on the row of the first key, which all transactions agree on; the row of the current key may be that of
/// another key by the time it is locked.
async fn newest(cx: &mut AnyConnection) -> Result<Option<(i64, String)>, Error> {
    sql!("UPDATE service_keys SET key_id = key_id WHERE number = 1")
        .run(cx)
        .await?;
    sql!("SELECT number, key_id FROM service_keys ORDER BY number DESC LIMIT 1")
        .row_if_any(cx)
        .await?
        .map(|row| Ok((row.get("number")?, row.get("key_id")?)))
        .transpose()
}

/// Retires the newest key, if there is one, and adds `new` after it. Returns false if another key has its number, which
/// can only happen for the very first key.
async fn succeed(
    cx: &mut AnyConnection,
    newest: Option<(i64, String)>,
    new: NewServiceKey,
    retired_at: Timestamp,
) -> Result<bool, Error> {
    // Numbers begin at 1, so the update below matches nothing for the first key.
    let number = newest.map_or(0, |(number, _)| number);
    sql!(
        "UPDATE service_keys SET retired_at = COALESCE(retired_at, $2) WHERE number = $1",
        number,
        retired_at
    )
    .run(cx)
    .await?;
    let (by, value) = new
        .endorsement
        .map(|endorsement| (endorsement.by, endorsement.value.to_vec()))
        .unzip();
    let added = sql!(
        "INSERT INTO service_keys (number, key_id, public_key, secret, created_at, endorsed_by, endorsement)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (number) DO NOTHING",
        number + 1,
        new.key_id,
        new.public_key,
        new.secret,
        new.created_at,
        by,
        value
    )
    .run(cx)
    .await?;
    Ok(added > 0)
}

fn endorsement(row: &AnyRow, _: &'static str) -> Result<Option<KeyEndorsement>, Error> {
    let endorsement = pair(row, "endorsed_by, endorsement")?;
    Ok(endorsement.map(|(by, value)| KeyEndorsement { by, value }))
}
