//! Invitations, for a service whose sign-up is not open.
//!
//! Invariant: an address has at most one invitation and one request, regardless of case.

use types::{OperatorId, Timestamp};

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

row! {
    /// An invitation of an e-mail address to sign up.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Invitation {
        /// Address that is invited, in lower case.
        pub email: String = "email_key",
        /// Time of the invitation.
        pub created_at: Timestamp,
        /// Time at which somebody signed up with it.
        pub used_at: Option<Timestamp>,
        /// Name of the operator that invited; `None` for an administrator at the command line.
        pub invited_by: Option<String> = "display_name",
    }
}

impl Accounts<'_> {
    /// Invites an address at the command line, and drops its request. Returns false if it is invited already.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn invite(&self, email: &str, now: Timestamp) -> Result<bool, Error> {
        self.invite_as(email, None, now).await
    }

    /// Invites an address in the name of an operator, and drops its request. Returns false if it is invited already.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn invite_as(&self, email: &str, by: Option<OperatorId>, now: Timestamp) -> Result<bool, Error> {
        texts(&[("email", email)])?;
        let key = email_key(email);
        self.0
            .write(tx!(async move |cx| {
                let added = sql!(
                    "INSERT INTO invites (email_key, created_at, invited_by) VALUES ($1, $2, $3)
                     ON CONFLICT (email_key) DO NOTHING",
                    key.clone(),
                    now,
                    by
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

    /// Takes an invitation back that nobody has used. Returns false if there is none.
    pub async fn invite_withdraw(&self, email: &str) -> Result<bool, Error> {
        let key = email_key(email);
        if texts(&[("email", &key)]).is_err() {
            return Ok(false);
        }
        self.0
            .write(tx!(async move |cx| {
                let gone = sql!("DELETE FROM invites WHERE email_key = $1 AND used_at IS NULL", key)
                    .run(cx)
                    .await?;
                Ok(if gone == 0 {
                    Change::Undo(false)
                } else {
                    Change::Keep(true)
                })
            }))
            .await
    }

    /// Returns invitations, newest first: those before a place, which is a time with the address, or the newest.
    pub async fn invitations(&self, before: Option<(Timestamp, String)>, limit: u32) -> Result<Vec<Invitation>, Error> {
        let (at, email) = before.map_or((i64::MAX, String::new()), |(at, email)| (at.micros(), email));
        self.0
            .all(sql!(
                "SELECT invites.email_key AS email_key, invites.created_at AS created_at, used_at, display_name
                 FROM invites LEFT JOIN operators ON operators.id = invited_by
                 WHERE invites.created_at < $1 OR (invites.created_at = $1 AND invites.email_key < $2)
                 ORDER BY invites.created_at DESC, invites.email_key DESC LIMIT $3",
                at,
                email,
                limit
            ))
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
