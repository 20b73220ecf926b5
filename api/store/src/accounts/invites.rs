//! Invitations, for a service whose sign-up is not open.
//!
//! Invariant: an address has at most one invitation and one request, regardless of case.

use types::Timestamp;

use super::operators::email_key;
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Request for an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteRequest {
    /// Address, as given.
    pub email: String,
    /// Words of the person; may be empty.
    pub note: String,
    /// Time of the latest request.
    pub created_at: Timestamp,
}

impl Accounts<'_> {
    /// Invites an address, and drops its request. Returns false if it is invited already.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn invite(&self, email: &str, now: Timestamp) -> Result<bool, Error> {
        texts(&[("email", email)])?;
        let key = email_key(email);
        self.0
            .write(move |cx| {
                Box::pin(async move {
                    let added = sqlx::query(
                        "INSERT INTO invites (email_key, created_at) VALUES ($1, $2) ON CONFLICT (email_key) DO NOTHING",
                    )
                    .bind(key.clone())
                    .bind(now.micros())
                    .execute(&mut *cx)
                    .await?;
                    // The request is answered.
                    sqlx::query("DELETE FROM invite_requests WHERE email_key = $1")
                        .bind(key)
                        .execute(&mut *cx)
                        .await?;
                    Ok(Change::Keep(added.rows_affected() > 0))
                })
            })
            .await
    }

    /// Keeps a request for an invitation. A later request of the same address takes the place of the earlier one.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn invite_request(&self, request: InviteRequest) -> Result<(), Error> {
        texts(&[("email", &request.email), ("note", &request.note)])?;
        self.0
            .write(move |cx| {
                Box::pin(async move {
                    sqlx::query(
                        "INSERT INTO invite_requests (email_key, email, note, created_at) VALUES ($1, $2, $3, $4)
                         ON CONFLICT (email_key) DO UPDATE SET note = excluded.note, created_at = excluded.created_at",
                    )
                    .bind(email_key(&request.email))
                    .bind(request.email)
                    .bind(request.note)
                    .bind(request.created_at.micros())
                    .execute(&mut *cx)
                    .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Returns the requests for an invitation, oldest first.
    pub async fn invite_requests(&self, limit: u32) -> Result<Vec<InviteRequest>, Error> {
        self.0
            .read(async {
                let rows = sqlx::query(
                    "SELECT email, note, created_at FROM invite_requests ORDER BY created_at, email_key LIMIT $1",
                )
                .bind(i64::from(limit))
                .fetch_all(self.0.readers())
                .await?;
                rows.iter()
                    .map(|row| {
                        Ok(InviteRequest {
                            email: row.value("email")?,
                            note: row.value("note")?,
                            created_at: row.time("created_at")?,
                        })
                    })
                    .collect()
            })
            .await
    }
}
