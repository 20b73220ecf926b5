//! The keys that manifests are signed with: made, rotated, revoked, published.
//!
//! Invariants:
//! - A signature is made with a key that is in the database, hence in the published document, before it is made.
//! - Each key is endorsed by the one before it, in the transaction that makes it the current one.
//! - A key stays good for what was being signed while it was rotated: whoever read it as the current key has taken the
//!   time of issue before, and the key retires later than the change can have taken.

use std::time::Duration;

use proof::{Endorsement, Key, KeyId, KeysDocument, PublicKey, SignatureBytes, SigningKey, Status};
use store::{KeyAdded, KeyEndorsement, KeyRevoked, NewServiceKey, ServiceKey, Store};
use types::{Classify, Clock, Kind, Retry, Timestamp};

/// How long after its rotation a key still counts. More than a change of the database can take.
const OVERLAP: Duration = Duration::from_secs(15);
/// How often a change is tried again that another process was faster with.
const TRIES: usize = 8;

/// Why keys could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error("the service keys could not be read or changed")]
    Store(#[from] store::Error),
    /// A stored key is not what a verifier would accept.
    #[error("the stored service keys are invalid")]
    Proof(#[from] proof::Error),
    /// There is no such key.
    #[error("there is no service key `{key}`")]
    Unknown {
        /// Its name.
        key: String,
    },
    /// The key was revoked before.
    #[error("the service key `{key}` is revoked already")]
    Before {
        /// Its name.
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

/// Every key, and the secret half of the current one.
#[derive(Debug)]
pub struct Ring {
    keys: Vec<Key>,
    signer: SigningKey,
}

impl Ring {
    /// The keys as they are now; the first is made where there is none.
    pub async fn load(store: &Store, clock: &dyn Clock) -> Result<Self, Error> {
        for _ in 0..TRIES {
            let keys = store.service_keys().await?;
            if let Some(ring) = Self::of(&keys)? {
                return Ok(ring);
            }
            let now = clock.now();
            let first = fresh(None, now)?;
            // Why not asked: whoever won, there is a key now.
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

    /// The current key, which [`Self::signer`] is the other half of.
    pub fn current(&self) -> &Key {
        // Why the index holds: a ring is made of at least one key.
        &self.keys[self.keys.len() - 1]
    }

    /// The secret half of the current key.
    pub const fn signer(&self) -> &SigningKey {
        &self.signer
    }

    /// When what is signed with the current key is issued: now, or when the key was made, if another clock says that this is
    /// later or the key was made after `now` was read.
    pub fn issued_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.current().created_at)
    }

    /// The document that is published.
    pub fn document(&self, issued_at: Timestamp) -> Result<KeysDocument, Error> {
        let revoked = self.keys.iter().filter(|key| key.status == Status::Revoked).count();
        // Why it only grows: keys are never removed and revocations never taken back.
        let sequence = (self.keys.len() + revoked) as u64;
        Ok(KeysDocument::sign(
            sequence,
            issued_at,
            self.keys.clone(),
            &self.signer,
        )?)
    }
}

/// What a change of the keys led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The key that was current, or was revoked.
    pub before: Key,
    /// The key that is current now.
    pub current: Key,
}

/// Makes a new key the current one, endorsed by the one before.
pub async fn rotate(store: &Store, clock: &dyn Clock) -> Result<Changed, Error> {
    for _ in 0..TRIES {
        let ring = Ring::load(store, clock).await?;
        let (before, now) = (ring.current().key_id, clock.now());
        let new = fresh(Some(ring.signer()), now)?;
        let added = store
            .service_key_add(Some(before.to_string()), new, now.plus(OVERLAP))
            .await?;
        if added == KeyAdded::Added {
            return changed(store, clock, before).await;
        }
    }
    Err(Error::Contended)
}

/// Revokes a key: nothing that it signed counts any more. Where it is the current one, another takes its place at once.
pub async fn revoke(store: &Store, clock: &dyn Clock, key: &str, reason: &str) -> Result<Changed, Error> {
    for _ in 0..TRIES {
        let ring = Ring::load(store, clock).await?;
        let now = clock.now();
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
            // It was made the current key meanwhile.
            KeyRevoked::Current => {}
        }
    }
    Err(Error::Contended)
}

async fn changed(store: &Store, clock: &dyn Clock, before: KeyId) -> Result<Changed, Error> {
    let ring = Ring::load(store, clock).await?;
    let found = ring.keys.iter().find(|key| key.key_id == before).cloned();
    Ok(Changed {
        before: found.ok_or_else(|| Error::Unknown {
            key: before.to_string(),
        })?,
        current: ring.current().clone(),
    })
}

/// A new key, endorsed by the one before it.
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

/// A stored key as it is published.
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
