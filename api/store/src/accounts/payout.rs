//! Address that an operator is paid at.
//!
//! Invariant: a change takes effect at its instant by itself: until then the old address counts, and the operator can
//! cancel the change.

use types::{OperatorId, Timestamp};

use super::mail::{self, Mail};
use super::operators::missing;
use crate::query::{sql, tx};
use crate::row::{Columns, is_set, row, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Payout address of an operator at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payout {
    /// Address in force, if any.
    pub address: Option<String>,
    /// Time at which the wallet of the address in force proved itself by a signature, if it did.
    pub proved_at: Option<Timestamp>,
    /// Address that comes into force later, and when.
    pub next: Option<(String, Timestamp)>,
    /// Time of the last change that was asked for.
    pub changed_at: Option<Timestamp>,
}

row! {
    /// Operator whose payout address a wallet is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct WalletOwner {
        /// Operator whose address it is.
        pub operator: OperatorId = "id",
        /// True if the wallet proved itself by a signature.
        pub is_proved: bool = "proved_at" => is_set,
    }
}

impl Accounts<'_> {
    /// Returns the payout address of an operator at `now`.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist.
    pub async fn payout(&self, operator: OperatorId, now: Timestamp) -> Result<Payout, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT payout_address, payout_changed_at, payout_next_address, payout_next_at, payout_proved_at
                     FROM operators WHERE id = $1",
                    operator
                )
                .row_if_any(&mut self.0.readers())
                .await?
                .ok_or_else(|| missing(operator))?;
                let next: Option<String> = row.get("payout_next_address")?;
                let next = next.zip(row.get("payout_next_at")?);
                let changed_at = row.get("payout_changed_at")?;
                Ok(match next {
                    // The change is in force, whether or not its row was folded.
                    Some((address, at)) if at <= now => Payout {
                        address: Some(address),
                        proved_at: None,
                        next: None,
                        changed_at,
                    },
                    next => Payout {
                        address: row.get("payout_address")?,
                        proved_at: row.get("payout_proved_at")?,
                        next,
                        changed_at,
                    },
                })
            })
            .await
    }

    /// Changes the payout address from `effective_at` on and adds the job of the letter that says so. A change that
    /// waits is replaced.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Text`].
    pub async fn payout_set(
        &self,
        operator: OperatorId,
        address: String,
        effective_at: Timestamp,
        letter: Mail,
        now: Timestamp,
    ) -> Result<(), Error> {
        texts(&[("payout_address", &address)])?;
        self.0
            .write(tx!(async move |cx| {
                // An earlier change whose time has come is in force, and stays so until this one is.
                let changed = sql!(
                    "UPDATE operators
                     SET payout_proved_at = CASE WHEN payout_next_at <= $4 THEN NULL ELSE payout_proved_at END,
                         payout_address = CASE WHEN payout_next_at <= $4 THEN payout_next_address
                                               ELSE payout_address END,
                         payout_next_address = $2, payout_next_at = $3, payout_changed_at = $4
                     WHERE id = $1",
                    operator,
                    address,
                    effective_at,
                    now
                )
                .run(cx)
                .await?;
                if changed == 0 {
                    return Err(missing(operator));
                }
                // The letter has no budget: without it a thief would change the address unseen.
                mail::send(cx, &letter).await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Cancels a change of the payout address that waits. Returns false if none waits at `now`.
    pub async fn payout_cancel(&self, operator: OperatorId, now: Timestamp) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                // Only before its instant: from then on the change is in force, whether or not the
                // row was folded.
                let cancelled = sql!(
                    "UPDATE operators SET payout_next_address = NULL, payout_next_at = NULL
                     WHERE id = $1 AND payout_next_at > $2",
                    operator,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(cancelled > 0))
            }))
            .await
    }

    /// Returns the operator whose payout address at `now` is this wallet; of several the one that proved it, or else
    /// `first` if it is one of them. An address that only waits is nobody's.
    pub async fn operator_of_wallet(
        &self,
        wallet: &str,
        first: Option<OperatorId>,
        now: Timestamp,
    ) -> Result<Option<WalletOwner>, Error> {
        let first = first.map(|operator| operator.to_string()).unwrap_or_default();
        self.0
            .optional(sql!(
                "SELECT id, CASE WHEN payout_next_at <= $2 THEN NULL ELSE payout_proved_at END AS proved_at
                 FROM operators
                 WHERE (LOWER(payout_address) = $1 AND (payout_next_at IS NULL OR payout_next_at > $2))
                    OR (LOWER(payout_next_address) = $1 AND payout_next_at <= $2)
                 ORDER BY CASE WHEN payout_proved_at IS NULL OR payout_next_at <= $2 THEN 1 ELSE 0 END,
                          CASE WHEN id = $3 THEN 0 ELSE 1 END, id LIMIT 1",
                wallet.to_ascii_lowercase(),
                now,
                first
            ))
            .await
    }

    /// Notes that the wallet of the address in force proved itself. Returns false if the address is another by now, or
    /// another operator proved it.
    pub async fn payout_prove(&self, operator: OperatorId, wallet: &str, now: Timestamp) -> Result<bool, Error> {
        // Addresses are compared without the case of their letters, which is only a checksum (EIP-55).
        let wallet = wallet.to_ascii_lowercase();
        self.0
            .write(tx!(async move |cx| {
                // Every operator with this address is locked, so that of two who prove it at once one does.
                sql!(
                    "UPDATE operators SET payout_changed_at = payout_changed_at
                     WHERE LOWER(payout_address) = $1 OR LOWER(payout_next_address) = $1",
                    wallet.clone()
                )
                .run(cx)
                .await?;
                // A change whose time has come is folded first, so that the proof is of the new address.
                sql!(
                    "UPDATE operators
                     SET payout_address = payout_next_address, payout_proved_at = NULL,
                         payout_next_address = NULL, payout_next_at = NULL
                     WHERE id = $1 AND payout_next_at <= $2",
                    operator,
                    now
                )
                .run(cx)
                .await?;
                let proved = sql!(
                    "UPDATE operators SET payout_proved_at = $3
                     WHERE id = $1 AND LOWER(payout_address) = $2 AND NOT EXISTS (
                         SELECT 1 FROM operators AS other WHERE other.id <> $1
                           AND LOWER(other.payout_address) = $2 AND other.payout_proved_at IS NOT NULL
                           AND (other.payout_next_at IS NULL OR other.payout_next_at > $3))",
                    operator,
                    wallet,
                    now
                )
                .run(cx)
                .await?;
                Ok(if proved > 0 {
                    Change::Keep(true)
                } else {
                    Change::Undo(false)
                })
            }))
            .await
    }
}
