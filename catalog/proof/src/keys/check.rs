//! The rules of a keys document, alone and compared with one seen before.
//!
//! Invariant: [`Keys`] is created only here, from a document that keeps every rule.

use types::Timestamp;

use super::{DOCUMENT_NAME, Key, Keys, KeysDocument, Status};
use crate::json::{object, signed_bytes, typed};
use crate::{Error, KeyId, PublicKey};

impl Keys {
    /// Parses a keys document and verifies its rules and its signature.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let received = object(DOCUMENT_NAME, text)?;
        let document: KeysDocument = typed(DOCUMENT_NAME, "", received.clone().into())?;
        self::document(&document)?;
        // The signature covers every received member except itself.
        let mut signed = received.clone();
        signed.remove("signature");
        let (signature, bytes) = (&document.signature, signed_bytes(document.format.name(), signed));
        if !signature.public_key.verifies(&bytes, &signature.value) {
            return Err(Error::Signature { what: DOCUMENT_NAME });
        }
        Ok(Self { received, document })
    }

    /// Verifies that the chain begins with the trusted key.
    pub fn begins_with(&self, trusted: &PublicKey) -> Result<(), Error> {
        let found = self.first().public_key;
        if found == *trusted {
            Ok(())
        } else {
            Err(Error::OtherFirstKey {
                trusted: KeyId::of(trusted),
                found: KeyId::of(&found),
            })
        }
    }

    /// Verifies that nothing in `seen`, an earlier document of the same service, was taken back.
    pub fn follows(&self, seen: &Self) -> Result<(), Error> {
        // Another first key is another service.
        self.begins_with(&seen.first().public_key)?;
        let (now, before) = (&self.document, &seen.document);
        if now.sequence < before.sequence {
            return Err(Error::RolledBack {
                seen: before.sequence,
                found: now.sequence,
            });
        }
        for (index, known) in before.keys.iter().enumerate() {
            let key = self.get(known.key_id).ok_or(Error::KeyMissing { key: known.key_id })?;
            // Keys are appended only, so a known key keeps its index.
            let moved = now.keys[index].key_id != known.key_id;
            if let Some(problem) = taken_back(known, key).or_else(|| moved.then_some("it has another place")) {
                return Err(Error::KeyChanged {
                    key: known.key_id,
                    problem,
                });
            }
        }
        // Every change of a key raises the sequence.
        if now.sequence == before.sequence && now.keys != before.keys {
            return Err(Error::SameSequence { sequence: now.sequence });
        }
        Ok(())
    }
}

/// Returns the first change of a key since it was seen, or `None`.
fn taken_back(known: &Key, key: &Key) -> Option<&'static str> {
    let kept = |before: Option<Timestamp>, now: Option<Timestamp>| before.is_none() || before == now;
    if known.public_key != key.public_key {
        Some("it has another public key")
    } else if known.created_at != key.created_at {
        Some("it has another time of creation")
    } else if known.endorsement != key.endorsement {
        Some("it has another endorsement")
    // States are ordered: a key can only move from current to retired to revoked.
    } else if key.status < known.status {
        Some("it counts again")
    } else if !kept(known.retired_at, key.retired_at) || !kept(known.revoked_at, key.revoked_at) {
        Some("it ended at another time")
    } else {
        None
    }
}

/// Checks every rule of a document except its signature.
pub(super) fn document(document: &KeysDocument) -> Result<(), Error> {
    let Some((current, before)) = document.keys.split_last() else {
        return Err(malformed("/keys", "there is no key"));
    };
    for (index, key) in document.keys.iter().enumerate() {
        let at = |member: &str| format!("/keys/{index}/{member}");
        if key.key_id != KeyId::of(&key.public_key) {
            return Err(malformed(&at("keyId"), "is not the hash of the public key"));
        }
        if document.keys[..index].iter().any(|other| other.key_id == key.key_id) {
            return Err(malformed(&at("keyId"), "is there twice"));
        }
        let agrees = match key.status {
            Status::Current => key.retired_at.is_none() && key.revoked_at.is_none(),
            Status::Retired => key.retired_at.is_some() && key.revoked_at.is_none(),
            Status::Revoked => key.revoked_at.is_some(),
        };
        if !agrees {
            return Err(malformed(
                &at("status"),
                "does not agree with `retiredAt` and `revokedAt`",
            ));
        }
        endorsed(index.checked_sub(1).map(|before| &document.keys[before]), key)?;
    }
    if current.status != Status::Current || before.iter().any(|key| key.status == Status::Current) {
        return Err(malformed("/keys", "the last key, and no other, must be current"));
    }
    let signature = &document.signature;
    if signature.key_id != current.key_id || signature.public_key != current.public_key {
        return Err(malformed("/signature", "is not by the current key"));
    }
    Ok(())
}

/// Verifies that `key` is endorsed by the key before it, or is the first.
fn endorsed(before: Option<&Key>, key: &Key) -> Result<(), Error> {
    let problem = match (before, &key.endorsement) {
        (None, None) => return Ok(()),
        (None, Some(_)) => "it is the first and yet endorsed",
        (Some(_), None) => "it is not endorsed",
        (Some(before), Some(endorsement)) => {
            if endorsement.by != before.key_id {
                "it is endorsed by another key than the one before it"
            // After its revocation the key may be in other hands.
            } else if before.revoked_at.is_some_and(|revoked| key.created_at > revoked) {
                "it was made after the key that endorses it was revoked"
            } else if !endorsement.holds(&before.public_key, &key.public_key, key.created_at) {
                "its endorsement is not a signature of the key before it"
            } else {
                return Ok(());
            }
        }
    };
    Err(Error::Chain {
        key: key.key_id,
        problem,
    })
}

fn malformed(path: &str, problem: &str) -> Error {
    Error::Malformed {
        what: DOCUMENT_NAME,
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}
