//! Links that were mailed: to confirm an address, and to sign in.
//!
//! Invariant: a link works once and until its end, for one purpose. Only the hash of its token is stored.

use sqlx::AnyConnection;
use types::vocabulary::LinkPurpose;
use types::{LinkId, OperatorId, Timestamp};

use crate::query::sql;
use crate::row::Columns;
use crate::{Accounts, Error};

/// Link to store.
#[derive(Clone, Copy, Debug)]
pub struct NewLink {
    /// Id from which the token was derived. It is in the job of the letter and is not stored.
    pub id: LinkId,
    /// Hash of the token.
    pub token_hash: [u8; 32],
    /// Instant from which the link no longer works.
    pub expires_at: Timestamp,
}

/// Link that still works, with its recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailLink {
    /// Operator to which the link was mailed.
    pub operator: OperatorId,
    /// Address of the operator.
    pub email: String,
    /// Name to display for the operator.
    pub display_name: String,
    /// Instant from which the link no longer works.
    pub expires_at: Timestamp,
}

/// Reason for which a link does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRefused {
    /// There is no such link. Links are forgotten a day after their end.
    Unknown,
    /// The link was used before.
    Used,
    /// The time of the link is over.
    Expired,
}

impl Accounts<'_> {
    /// Returns the link with this token if it works at `now`.
    pub async fn mail_link(
        &self,
        token_hash: &[u8; 32],
        purpose: LinkPurpose,
        now: Timestamp,
    ) -> Result<Result<MailLink, LinkRefused>, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT mail_links.operator_id AS operator_id, mail_links.expires_at AS expires_at,
                            mail_links.used_at AS used_at, operators.email AS email,
                            operators.display_name AS display_name
                     FROM mail_links JOIN operators ON operators.id = mail_links.operator_id
                     WHERE mail_links.token_hash = $1 AND mail_links.purpose = $2",
                    token_hash,
                    purpose
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                let Some(row) = row else {
                    return Ok(Err(LinkRefused::Unknown));
                };
                // A used link is called used, also after its end.
                if row.get::<Option<Timestamp>>("used_at")?.is_some() {
                    return Ok(Err(LinkRefused::Used));
                }
                let expires_at = row.get("expires_at")?;
                if expires_at <= now {
                    return Ok(Err(LinkRefused::Expired));
                }
                Ok(Ok(MailLink {
                    operator: row.get("operator_id")?,
                    email: row.get("email")?,
                    display_name: row.get("display_name")?,
                    expires_at,
                }))
            })
            .await
    }
}

/// Stores a link.
pub(crate) async fn insert(
    cx: &mut AnyConnection,
    link: &NewLink,
    purpose: LinkPurpose,
    operator: OperatorId,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO mail_links (token_hash, purpose, operator_id, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5)",
        link.token_hash,
        purpose,
        operator,
        now,
        link.expires_at
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Uses a link up and returns its operator. The update decides, so of two calls with one token one gets the operator.
pub(crate) async fn take(
    cx: &mut AnyConnection,
    token_hash: [u8; 32],
    purpose: LinkPurpose,
    now: Timestamp,
) -> Result<Result<OperatorId, LinkRefused>, Error> {
    // Taken by one statement whose condition is that it was not: of two presses of the button one signs
    // in.
    let taken = sql!(
        "UPDATE mail_links SET used_at = $3
         WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3
         RETURNING operator_id",
        token_hash,
        purpose,
        now
    )
    .row_if_any(cx)
    .await?;
    if let Some(row) = taken {
        return Ok(Ok(row.get("operator_id")?));
    }
    // Nothing was taken; the row says why.
    let row = sql!(
        "SELECT used_at FROM mail_links WHERE token_hash = $1 AND purpose = $2",
        token_hash,
        purpose
    )
    .row_if_any(cx)
    .await?;
    Ok(Err(match row {
        None => LinkRefused::Unknown,
        Some(row) if row.get::<Option<Timestamp>>("used_at")?.is_some() => LinkRefused::Used,
        Some(_) => LinkRefused::Expired,
    }))
}
