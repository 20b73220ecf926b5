//! Idempotency keys of calls that make something: one effect for a key, however often its call is repeated, and by how
//! many at once.
//!
//! Invariant: a key is stored in the transaction of what its call makes, with the name of that thing. So neither exists
//! without the other, and nothing of its content is kept twice.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::Timestamp;

use crate::query::sql;
use crate::row::{Columns, texts};
use crate::{Error, Store};

/// Idempotency key of a call. Its scope is the caller and the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    /// Caller: id of an agent, or of an operator whose person calls.
    pub caller: String,
    /// Operation, with what its path names.
    pub operation: String,
    /// Key as the caller sent it.
    pub key: String,
    /// Hash of the input.
    pub body_hash: [u8; 32],
    /// Time for which the key is remembered.
    pub window: Duration,
    /// Time of the call.
    pub now: Timestamp,
}

/// An earlier use of a key within its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyUsed {
    /// The same call made this.
    Same {
        /// Name of the thing: an id, a slug or a number.
        made: String,
    },
    /// A call with another input used the key.
    Other,
}

impl Store {
    /// Returns the earlier use of a key; `None` if the key is free.
    pub async fn call_key_used(&self, key: &CallKey) -> Result<Option<KeyUsed>, Error> {
        self.read(async {
            sql!(
                "SELECT body_hash, made FROM call_keys
                 WHERE caller = $1 AND operation = $2 AND idempotency_key = $3 AND created_at > $4",
                key.caller.as_str(),
                key.operation.as_str(),
                key.key.as_str(),
                key.now.minus(key.window)
            )
            .row_if_any(&mut self.readers())
            .await?
            .map(|row| used(&row, key))
            .transpose()
        })
        .await
    }
}

/// Deletes up to `limit` keys that were stored before `before`, and returns their number.
pub(crate) async fn prune(cx: &mut AnyConnection, before: Timestamp, limit: u32) -> Result<u64, Error> {
    // The age is checked twice: a key that is claimed again in between is no longer old.
    let deleted = sql!(
        "DELETE FROM call_keys
         WHERE (caller, operation, idempotency_key) IN
               (SELECT caller, operation, idempotency_key FROM call_keys
                WHERE created_at < $1 ORDER BY created_at LIMIT $2)
           AND created_at < $1",
        before,
        limit
    )
    .run(cx)
    .await?;
    Ok(deleted)
}

/// Claims a key, whose thing has no name yet.
///
/// Inserting first makes calls at the same time meet at the primary key: the second waits for the first and then finds
/// its row.
///
/// # Errors
/// [`Error::Repeated`] if the key is in use; [`Error::Text`].
pub(crate) async fn claim(cx: &mut AnyConnection, key: &CallKey) -> Result<(), Error> {
    texts(&[("idempotency_key", &key.key), ("operation", &key.operation)])?;
    let claimed = sql!(
        "INSERT INTO call_keys (caller, operation, idempotency_key, body_hash, made, created_at)
         VALUES ($1, $2, $3, $4, '', $5)
         ON CONFLICT (caller, operation, idempotency_key) DO UPDATE
         SET body_hash = excluded.body_hash, made = excluded.made, created_at = excluded.created_at
         WHERE call_keys.created_at <= $6",
        key.caller.as_str(),
        key.operation.as_str(),
        key.key.as_str(),
        key.body_hash,
        key.now,
        key.now.minus(key.window)
    )
    .run(cx)
    .await?;
    if claimed > 0 { Ok(()) } else { Err(Error::Repeated) }
}

/// Names what the call of a claimed key made.
pub(crate) async fn name(cx: &mut AnyConnection, key: &CallKey, made: &str) -> Result<(), Error> {
    sql!(
        "UPDATE call_keys SET made = $4 WHERE caller = $1 AND operation = $2 AND idempotency_key = $3",
        key.caller.as_str(),
        key.operation.as_str(),
        key.key.as_str(),
        made
    )
    .run(cx)
    .await?;
    Ok(())
}

fn used(row: &AnyRow, key: &CallKey) -> Result<KeyUsed, Error> {
    Ok(if row.value::<&[u8]>("body_hash")? == key.body_hash {
        KeyUsed::Same { made: row.get("made")? }
    } else {
        KeyUsed::Other
    })
}
