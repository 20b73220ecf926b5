//! Claim codes: what an operator gives to an agent so that it can ask to work for the operator.
//!
//! Invariant: a code has two parts. The first finds it, only the hash of the second is stored. A try with a wrong
//! second part is counted, and five lock the code. Without the first part, which is random, nobody can lock it.

use sqlx::AnyConnection;
use types::{ClaimCodeId, OperatorId, Timestamp};

use super::operators;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Wrong tries that lock a code.
pub const MAX_WRONG_TRIES: u32 = 5;

/// Claim code to add.
#[derive(Clone, Debug)]
pub struct NewClaimCode {
    /// Id of the code.
    pub id: ClaimCodeId,
    /// Operator that made the code.
    pub operator: OperatorId,
    /// First part of the code.
    pub lookup: String,
    /// Hash of the second part.
    pub secret_hash: [u8; 32],
    /// Instant from which the code no longer works.
    pub expires_at: Timestamp,
    /// Time of the creation.
    pub now: Timestamp,
}

/// The result of [`Accounts::claim_code_add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ClaimCodeAdded {
    /// The code works until its end.
    Added,
    /// The operator has as many codes that still work as it may; nothing changed.
    LimitReached,
}

row! {
    /// Claim code that still works, without its secret.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ClaimCode {
        /// Id of the code.
        pub id: ClaimCodeId,
        /// Time of the creation.
        pub created_at: Timestamp,
        /// Instant from which the code no longer works.
        pub expires_at: Timestamp,
        /// Tries with a wrong second part.
        pub wrong_tries: u32,
    }
}

/// Reason for which a code does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRefused {
    /// There is no code with this first part, or the second part is wrong. Codes are forgotten a day after their end.
    Unknown,
    /// The code was used before.
    Used,
    /// The time of the code is over.
    Expired,
    /// Too many tries with a wrong second part.
    Locked,
    /// The operator of the code is suspended.
    Suspended,
}

/// Claim code after its check, locked until the transaction ends.
pub(super) struct Checked {
    pub(super) id: ClaimCodeId,
    pub(super) operator: OperatorId,
}

/// The result of checking a code.
pub(super) enum Check {
    Works(Checked),
    /// The code does not work.
    Refused(CodeRefused),
    /// The second part is wrong; the try was counted and must be kept.
    Counted,
}

impl Accounts<'_> {
    /// Adds a claim code, unless the operator has `limit` codes that still work.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Refused`] if the first part is in use.
    pub async fn claim_code_add(&self, new: NewClaimCode, limit: u32) -> Result<ClaimCodeAdded, Error> {
        self.0
            .write(tx!(async move |cx| {
                // The lock makes the count exact. A locked code counts until its end.
                operators::lock(cx, new.operator).await?;
                let working: i64 = sql!(
                    "SELECT COUNT(*) FROM claim_codes
                     WHERE operator_id = $1 AND expires_at > $2 AND used_at IS NULL",
                    new.operator,
                    new.now
                )
                .scalar(cx)
                .await?;
                if working >= i64::from(limit) {
                    return Ok(Change::Undo(ClaimCodeAdded::LimitReached));
                }
                sql!(
                    "INSERT INTO claim_codes
                         (id, operator_id, lookup, secret_hash, created_at, expires_at, wrong_tries)
                     VALUES ($1, $2, $3, $4, $5, $6, 0)",
                    new.id,
                    new.operator,
                    new.lookup,
                    new.secret_hash,
                    new.now,
                    new.expires_at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(ClaimCodeAdded::Added))
            }))
            .await
    }

    /// Returns the codes of an operator that still work at `now` or are locked, newest first.
    pub async fn claim_codes_of(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<ClaimCode>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    ClaimCode::COLUMNS,
                    " FROM claim_codes
                     WHERE operator_id = $1 AND expires_at > $2 AND used_at IS NULL ORDER BY created_at DESC, id DESC"
                ),
                operator,
                now
            ))
            .await
    }

    /// Withdraws a code of an operator that was not used. Returns false if there is none.
    pub async fn claim_code_withdraw(&self, operator: OperatorId, id: ClaimCodeId) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                let withdrawn = sql!(
                    "DELETE FROM claim_codes WHERE id = $1 AND operator_id = $2 AND used_at IS NULL",
                    id,
                    operator
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(withdrawn > 0))
            }))
            .await
    }
}

/// Checks a code and locks it until the transaction ends. The lock makes the count of wrong tries exact.
pub(super) async fn check(
    cx: &mut AnyConnection,
    lookup: &str,
    secret_hash: &[u8; 32],
    now: Timestamp,
) -> Result<Check, Error> {
    let row = sql!(
        "UPDATE claim_codes SET wrong_tries = wrong_tries WHERE lookup = $1
         RETURNING id, operator_id, secret_hash, expires_at, used_at, wrong_tries",
        lookup
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = row else {
        return Ok(Check::Refused(CodeRefused::Unknown));
    };
    let tries: u32 = row.get("wrong_tries")?;
    // A locked code refuses the right second part, too: otherwise guessing could go on.
    if tries >= MAX_WRONG_TRIES {
        return Ok(Check::Refused(CodeRefused::Locked));
    }
    let id: ClaimCodeId = row.get("id")?;
    let stored: Vec<u8> = row.get("secret_hash")?;
    // Both are hashes, so the time of the comparison tells nothing about the secret.
    if stored != secret_hash {
        sql!("UPDATE claim_codes SET wrong_tries = wrong_tries + 1 WHERE id = $1", id)
            .run(cx)
            .await?;
        return Ok(Check::Counted);
    }
    // Only the holder of the whole code learns its state.
    if row.get::<Option<Timestamp>>("used_at")?.is_some() {
        return Ok(Check::Refused(CodeRefused::Used));
    }
    if row.get::<Timestamp>("expires_at")? <= now {
        return Ok(Check::Refused(CodeRefused::Expired));
    }
    Ok(Check::Works(Checked {
        id,
        operator: row.get("operator_id")?,
    }))
}

/// Marks a checked code as used.
pub(super) async fn used(cx: &mut AnyConnection, code: &Checked, now: Timestamp) -> Result<(), Error> {
    sql!("UPDATE claim_codes SET used_at = $2 WHERE id = $1", code.id, now)
        .run(cx)
        .await?;
    Ok(())
}
