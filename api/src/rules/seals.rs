//! Seals of the ledger: each day that is over is signed with the service key.
//!
//! Invariant: the store closes a day before its hash is signed, and a day gets one seal, whatever number of processes
//! seal it.

use proof::{LedgerSeal, PublicKey, SignatureBytes};
use store::{ClosedDay, MoneyFault, Seal, Store};
use types::{Clock, Timestamp};

use crate::keys::{Error, KeyRing};

/// Days that are sealed in one call. A service that was stopped for long catches up over several.
pub const DAYS: u32 = 31;
/// Seals that are read at once.
const SEALS: u32 = 500;

/// Seals the days up to `due` that have no seal, oldest first and at most [`DAYS`] of them. Returns their number.
///
/// # Errors
/// A database that does not answer, or a stored key that cannot be used. What was sealed before stays sealed.
pub async fn seal(store: &Store, clock: &dyn Clock, due: i64) -> Result<u32, Error> {
    let money = store.money();
    for sealed in 0..DAYS {
        let Some(closed) = money.seal_next(due).await? else {
            return Ok(sealed);
        };
        let ring = KeyRing::load(store, clock).await?;
        let sealed_at = ring.issued_at(clock.now());
        let seal = Seal {
            closed,
            key_id: ring.current().key_id.to_string(),
            signature: *signed(closed, sealed_at).sign(ring.signer()).as_bytes(),
            sealed_at,
        };
        // Another process may have been faster. It signed the same hash, and the next day follows either.
        money.seal_put(seal).await?;
    }
    Ok(DAYS)
}

/// Returns up to `limit` seals that no service key signed. The hashes are checked by [`store::Money::faults`].
///
/// # Errors
/// A database that does not answer.
pub async fn faults(store: &Store, limit: u32) -> Result<Vec<MoneyFault>, store::Error> {
    let keys = store.service_keys().await?;
    let (mut faults, mut day) = (Vec::new(), i64::MIN);
    loop {
        let seals = store.money().seals(day, SEALS).await?;
        let Some(last) = seals.last() else {
            faults.truncate(limit as usize);
            return Ok(faults);
        };
        day = last.closed.day;
        let unsigned = seals.iter().filter(|seal| {
            // A revoked key counts, because the next seal has the hash of this one and is signed by another.
            let key = keys.iter().find(|key| key.key_id == seal.key_id);
            !key.is_some_and(|key| {
                let (key, signature) = (
                    PublicKey::from_bytes(key.public_key),
                    SignatureBytes::from_bytes(seal.signature),
                );
                signed(seal.closed, seal.sealed_at).is_signed_by(&key, &signature)
            })
        });
        faults.extend(unsigned.map(|seal| MoneyFault::of_day(seal.closed.day, "no service key signed the seal")));
    }
}

fn signed(closed: ClosedDay, sealed_at: Timestamp) -> LedgerSeal {
    let ClosedDay { day, before, hash } = closed;
    LedgerSeal {
        day,
        before,
        hash,
        sealed_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;
    use crate::testing::{Service, config, limits};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn days_are_sealed_and_a_foreign_signature_is_found() {
        let service = Service::with(config(), limits()).await;
        let (store, clock) = (&service.app.store, &*service.app.clock);
        let today = clock.now().day();
        assert_eq!(seal(store, clock, today).await.unwrap(), 0, "nothing was moved yet");
        let operator = service.operator().await;
        let key = service.agent(&operator, "mine").await;
        service.project(&key, "tides", &serde_json::json!({})).await;
        let operator = store.money().maintainers().await.unwrap()[0];
        service.granted(operator, 100).await;
        // The days before the first movement have no seal; a stop of two months is caught up in two calls.
        assert_eq!(seal(store, clock, today - 1).await.unwrap(), 0);
        assert_eq!(seal(store, clock, today + 40).await.unwrap(), DAYS);
        let first = store.service_keys().await.unwrap()[0].key_id.clone();
        keys::revoke(store, clock, &first, "lost").await.unwrap();
        assert_eq!(seal(store, clock, today + 40).await.unwrap(), 41 - DAYS);
        assert_eq!(seal(store, clock, today + 40).await.unwrap(), 0);
        assert_eq!(faults(store, 9).await.unwrap(), []);
        let closed = store.money().seal_next(today + 41).await.unwrap().unwrap();
        let forged = Seal {
            closed,
            key_id: first,
            signature: [7; 64],
            sealed_at: clock.now(),
        };
        assert!(store.money().seal_put(forged).await.unwrap());
        let found = faults(store, 9).await.unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].rule, found[0].problem),
            ("M4", "no service key signed the seal")
        );
    }
}
