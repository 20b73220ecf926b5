//! Tokens of operators.
//!
//! Invariant: only the hash of a token is stored, and the token's id is the beginning of that hash. A revoked token has
//! no row.

use sqlx::any::AnyRow;
use types::{OperatorId, Timestamp, TokenId};

use super::operators;
use crate::query::{sql, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Token to add.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Operator that the token belongs to.
    pub operator: OperatorId,
    /// Hash of the token.
    pub token_hash: [u8; 32],
    /// Name that the operator gave it.
    pub label: String,
    /// Time of the creation.
    pub now: Timestamp,
}

/// The result of [`Accounts::token_add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum TokenAdded {
    /// The token is valid.
    Added(TokenId),
    /// The operator is at its limit of tokens; nothing changed.
    LimitReached,
}

/// Token of an operator, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id of the token.
    pub id: TokenId,
    /// Name that the operator gave it, if any.
    pub label: Option<String>,
    /// Time of the creation.
    pub created_at: Timestamp,
}

impl Accounts<'_> {
    /// Adds a token, unless the operator has `limit` tokens; existing tokens stay valid.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Text`], [`Error::Refused`] if the hash is in use.
    pub async fn token_add(&self, new: NewToken, limit: u32) -> Result<TokenAdded, Error> {
        texts(&[("label", &new.label)])?;
        self.0
            .write(tx!(async move |cx| {
                // The lock makes the count exact.
                operators::lock(cx, new.operator).await?;
                let tokens: i64 = sql!(
                    "SELECT COUNT(*) FROM operator_tokens WHERE operator_id = $1",
                    new.operator
                )
                .scalar(cx)
                .await?;
                if tokens >= i64::from(limit) {
                    return Ok(Change::Undo(TokenAdded::LimitReached));
                }
                let label = Some(new.label).filter(|label| !label.is_empty());
                operators::token_insert(cx, new.operator, new.token_hash, label, new.now).await?;
                Ok(Change::Keep(TokenAdded::Added(id(&new.token_hash))))
            }))
            .await
    }

    /// Returns the tokens of an operator, oldest first.
    pub async fn tokens_of(&self, operator: OperatorId) -> Result<Vec<Token>, Error> {
        self.0
            .read(async {
                let rows = sql!(
                    "SELECT token_hash, label, created_at FROM operator_tokens
                     WHERE operator_id = $1 ORDER BY created_at, token_hash",
                    operator
                )
                .rows(&mut self.0.readers())
                .await?;
                rows.iter()
                    .map(|row| {
                        Ok(Token {
                            id: id(&row.get("token_hash")?),
                            label: row.get("label")?,
                            created_at: row.get("created_at")?,
                        })
                    })
                    .collect()
            })
            .await
    }

    /// Revokes a token of an operator: from the commit on it is unknown. Returns false if the operator has no such
    /// token.
    pub async fn token_revoke(&self, operator: OperatorId, token: TokenId) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                // An operator has few tokens, so they are read to find the one with this id.
                let rows = sql!(
                    "SELECT token_hash FROM operator_tokens WHERE operator_id = $1",
                    operator
                )
                .rows(cx)
                .await?;
                for row in rows {
                    let hash: [u8; 32] = row.get("token_hash")?;
                    if id(&hash) == token {
                        let deleted = sql!("DELETE FROM operator_tokens WHERE token_hash = $1", hash)
                            .run(cx)
                            .await?;
                        return Ok(Change::Keep(deleted > 0));
                    }
                }
                Ok(Change::Undo(false))
            }))
            .await
    }
}

/// Reads the id of a secret from the column with its hash.
pub(super) fn id_of(row: &AnyRow, column: &'static str) -> Result<TokenId, Error> {
    Ok(id(&row.get(column)?))
}

/// Returns the id of the token or key with this hash.
pub(super) fn id(hash: &[u8; 32]) -> TokenId {
    let mut first = [0; 16];
    // The id names a token in lists and addresses. It is of the hash, so it tells nothing of the
    // secret, and sixteen bytes are enough to be unique.
    first.copy_from_slice(&hash[..16]);
    TokenId::from_bytes(first)
}
