//! Invitations, for a service whose sign-up is not open.
//!
//! Invariant: an address has at most one invitation and one request, regardless of case.

use types::Timestamp;

use super::operators::email_key;
use crate::query::{sql, text, tx};
use crate::row::{Row as _, row, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

row! {
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
            .write(tx!(async move |cx| {
                let added = sql!(
                    "INSERT INTO invites (email_key, created_at) VALUES ($1, $2) ON CONFLICT (email_key) DO NOTHING",
                    key.clone(),
                    now
                )
                .run(cx)
                .await?;
                // The request is answered.
                sql!("DELETE FROM invite_requests WHERE email_key = $1", key)
                    .run(cx)
                    .await?;
                Ok(Change::Keep(added > 0))
            }))
            .await
    }

    /// Keeps a request for an invitation. A later request of the same address takes the place of the earlier one.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn invite_request(&self, request: InviteRequest) -> Result<(), Error> {
        texts(&[("email", &request.email), ("note", &request.note)])?;
        self.0
            .write(tx!(async move |cx| {
                sql!(
                    "INSERT INTO invite_requests (email_key, email, note, created_at) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (email_key) DO UPDATE SET note = excluded.note, created_at = excluded.created_at",
                    email_key(&request.email),
                    request.email,
                    request.note,
                    request.created_at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the requests for an invitation, oldest first.
    pub async fn invite_requests(&self, limit: u32) -> Result<Vec<InviteRequest>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    InviteRequest::COLUMNS,
                    " FROM invite_requests ORDER BY created_at, email_key LIMIT $1"
                ),
                limit
            ))
            .await
    }
}
