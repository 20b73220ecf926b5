//! Keys that sign manifests: creation, rotation, revocation, publication.
//!
//! Invariants:
//! - A key is in the database, and hence in the published document, before anything is signed with it.
//! - Each key is endorsed by the one before it, in the transaction that makes it the current one.
//! - A key stays valid for manifests that were being signed during its rotation: a signer that read it as the current
//!   key took the time of issue before that, and the key retires later than the change can have taken.

use std::time::Duration;

use proof::{Endorsement, Key, KeyId, KeysDocument, PublicKey, SignatureBytes, SigningKey, Status};
use store::{KeyAdded, KeyEndorsement, KeyRevoked, NewServiceKey, ServiceKey, Store};
use types::{Classify, Clock, Kind, Retry, Timestamp};

/// Time from a rotation until the old key retires; longer than a change of the database can take.
const ROTATION_OVERLAP: Duration = Duration::from_secs(15);
/// Attempts at a change before giving up because other processes were faster.
const MAX_CHANGE_ATTEMPTS: usize = 8;

/// Error of reading or changing keys.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Error of the database.
    #[error("the service keys could not be read or changed")]
    Store(#[from] store::Error),
    /// A stored key is invalid for a verifier.
    #[error("the stored service keys are invalid")]
    Proof(#[from] proof::Error),
    /// No key has this id.
    #[error("there is no service key `{key}`")]
    Unknown {
        /// Id of the key.
        key: String,
    },
    /// The key was revoked before.
    #[error("the service key `{key}` is revoked already")]
    Before {
        /// Id of the key.
        key: String,
    },
    /// Other processes kept changing the keys.
    #[error("other processes keep changing the service keys; try again")]
    Contended,
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Proof(_) => Kind::Internal,
            Self::Unknown { .. } => Kind::NotFound,
            Self::Before { .. } => Kind::Conflict,
            Self::Contended => Kind::Unavailable,
        }
    }

    fn retry(&self) -> Retry {
        match self.kind() {
            Kind::Unavailable => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}

/// All keys, and the secret half of the current one.
#[derive(Debug)]
pub struct KeyRing {
    keys: Vec<Key>,
    signer: SigningKey,
}

impl KeyRing {
    /// Loads the keys from the database. Creates the first if there is none.
    pub async fn load(store: &Store, clock: &dyn Clock) -> Result<Self, Error> {
        for _ in 0..MAX_CHANGE_ATTEMPTS {
            let keys = store.service_keys().await?;
            if let Some(ring) = Self::of(&keys)? {
                return Ok(ring);
            }
            let now = clock.now();
            let first = fresh(None, now)?;
            // The result is not checked: if another process was faster, there is a key now, and the next round reads
            // it.
            let added = store.service_key_add(None, first, now).await?;
            tracing::info!(
                created = added == KeyAdded::Added,
                "the database had no key to sign manifests with; created the first"
            );
        }
        Err(Error::Contended)
    }

    fn of(stored: &[ServiceKey]) -> Result<Option<Self>, Error> {
        let Some(current) = stored.last() else {
            return Ok(None);
        };
        let keys = stored.iter().map(published).collect::<Result<_, _>>()?;
        Ok(Some(Self {
            keys,
            signer: SigningKey::from_secret(&current.secret),
        }))
    }

    /// Returns the current key: the public half of [`Self::signer`].
    pub fn current(&self) -> &Key {
        // The index is valid, since a ring has at least one key.
        &self.keys[self.keys.len() - 1]
    }

    /// Returns every key, oldest first.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns true if a key of this id counts: it is current or retired.
    pub fn counts(&self, id: KeyId) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| key.key_id == id && key.status != Status::Revoked)
    }

    /// Returns the secret half of the current key.
    pub const fn signer(&self) -> &SigningKey {
        &self.signer
    }

    /// Returns the time of issue for what is signed with the current key: `now`, or the key's creation if that is
    /// later. It is later if clocks differ, or if the key was created after `now` was read.
    pub fn issued_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.current().created_at)
    }

    /// Signs the document of all keys, to be published.
    pub fn document(&self, issued_at: Timestamp) -> Result<KeysDocument, Error> {
        let revoked = self.keys.iter().filter(|key| key.status == Status::Revoked).count();
        // The sequence number only grows: keys are never removed and revocations never undone.
        let sequence = (self.keys.len() + revoked) as u64;
        Ok(KeysDocument::sign(
            sequence,
            issued_at,
            self.keys.clone(),
            &self.signer,
        )?)
    }
}

/// Result of a change of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysChanged {
    /// The key that was current, or was revoked.
    pub before: Key,
    /// The key that is current after the change.
    pub current: Key,
}

/// Creates a key, endorsed by the current one, and makes it the current one.
pub async fn rotate(store: &Store, clock: &dyn Clock) -> Result<KeysChanged, Error> {
    for _ in 0..MAX_CHANGE_ATTEMPTS {
        let ring = KeyRing::load(store, clock).await?;
        let (before, now) = (ring.current().key_id, clock.now());
        let new = fresh(Some(ring.signer()), now)?;
        // The insert succeeds only if `before` is still the current key. Otherwise another process was faster, and the
        // loop reads the keys again.
        let added = store
            .service_key_add(Some(before.to_string()), new, now.plus(ROTATION_OVERLAP))
            .await?;
        if added == KeyAdded::Added {
            return changed(store, clock, before).await;
        }
    }
    Err(Error::Contended)
}

/// Revokes a key, so that nothing it signed is valid any more. If it is the current one, a new key replaces it in the
/// same transaction.
pub async fn revoke(store: &Store, clock: &dyn Clock, key: &str, reason: &str) -> Result<KeysChanged, Error> {
    for _ in 0..MAX_CHANGE_ATTEMPTS {
        let ring = KeyRing::load(store, clock).await?;
        let now = clock.now();
        // There must always be a current key, so the current one is replaced in the same transaction.
        let successor = if ring.current().key_id.to_string() == key {
            Some(fresh(Some(ring.signer()), now)?)
        } else {
            None
        };
        let revoked = store
            .service_key_revoke(key.to_owned(), reason.to_owned(), now, successor)
            .await?;
        let key = key.to_owned();
        match revoked {
            KeyRevoked::Revoked | KeyRevoked::Replaced => {
                let revoked = key.parse().map_err(|_error| Error::Unknown { key })?;
                return changed(store, clock, revoked).await;
            }
            KeyRevoked::Before => return Err(Error::Before { key }),
            KeyRevoked::Unknown => return Err(Error::Unknown { key }),
            // The key became the current one in the meantime, so the next round brings a successor.
            KeyRevoked::Current => {}
        }
    }
    Err(Error::Contended)
}

async fn changed(store: &Store, clock: &dyn Clock, before: KeyId) -> Result<KeysChanged, Error> {
    let ring = KeyRing::load(store, clock).await?;
    let found = ring.keys.iter().find(|key| key.key_id == before).cloned();
    Ok(KeysChanged {
        before: found.ok_or_else(|| Error::Unknown {
            key: before.to_string(),
        })?,
        current: ring.current().clone(),
    })
}

/// Generates a key, endorsed by the one before it.
fn fresh(before: Option<&SigningKey>, now: Timestamp) -> Result<NewServiceKey, Error> {
    let key = SigningKey::generate()?;
    let endorsement = before.map(|before| before.endorse(&key.public_key(), now));
    Ok(NewServiceKey {
        key_id: key.key_id().to_string(),
        public_key: *key.public_key().as_bytes(),
        secret: key.secret(),
        created_at: now,
        endorsement: endorsement.map(|endorsement| KeyEndorsement {
            by: endorsement.by.to_string(),
            value: *endorsement.value.as_bytes(),
        }),
    })
}

/// Converts a stored key to the published form.
fn published(stored: &ServiceKey) -> Result<Key, Error> {
    let endorsement = match &stored.endorsement {
        Some(endorsement) => Some(Endorsement {
            by: endorsement.by.parse().map_err(|_error| Error::Unknown {
                key: endorsement.by.clone(),
            })?,
            value: SignatureBytes::from_bytes(endorsement.value),
        }),
        None => None,
    };
    let key = Key::new(PublicKey::from_bytes(stored.public_key), stored.created_at, endorsement);
    let (revoked_at, reason) = stored.revoked.clone().unzip();
    // A revocation outweighs retirement: nothing that a revoked key signed is valid.
    let status = match (stored.retired_at, revoked_at) {
        (_, Some(_)) => Status::Revoked,
        (Some(_), None) => Status::Retired,
        (None, None) => Status::Current,
    };
    Ok(Key {
        status,
        retired_at: stored.retired_at,
        revoked_at,
        reason,
        ..key
    })
}
