//! Sign-up: an account that begins unverified, with the letter that confirms its address.
//!
//! Invariant: the account, its link, the day's count of letters and the job of the letter are one transaction. So there
//! is no account whose letter nobody will send, and no letter of an account that was not made.
//!
//! An unverified operator has no credential at all.

use sqlx::AnyConnection;
use types::vocabulary::LinkPurpose;
use types::{OperatorId, Timestamp};

use super::links::{self, LinkRefused, NewLink};
use super::mail::{self, Mail};
use super::operators::{email_key, mailbox};
use super::sessions::{self, NewSession};
use crate::query::{sql, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Sign-up of a person.
#[derive(Clone, Debug)]
pub struct NewSignUp {
    /// Id of the operator.
    pub id: OperatorId,
    /// E-mail address, as given.
    pub email: String,
    /// Name to display for the operator.
    pub display_name: String,
    /// Version of the terms that the person named.
    pub terms_version: String,
    /// True if only invited addresses may sign up.
    pub by_invitation: bool,
    /// Link that confirms the address.
    pub link: NewLink,
    /// Letter with the link.
    pub mail: Mail,
    /// Instant until which an older sign-up of the address that was never verified no longer counts.
    pub stale: Timestamp,
    /// Time of the call.
    pub now: Timestamp,
}

/// The result of [`Accounts::sign_up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SignedUp {
    /// The operator exists, unverified, and its letter will be sent.
    Created,
    /// Sign-up is by invitation and the address has none; nothing changed.
    NotInvited,
    /// The address, or another spelling of its mailbox, belongs to an operator already; nothing changed.
    EmailTaken,
    /// The letters of the day are spent; nothing changed.
    MailSpent,
}

/// Request for a link by somebody who names an address.
#[derive(Clone, Debug)]
pub struct LinkRequest {
    /// Address, as given.
    pub email: String,
    /// Link for the operator with this address.
    pub link: NewLink,
    /// Letter with the link.
    pub mail: Mail,
    /// Job of the same size that sends nothing, for an address that gets no letter.
    pub blank: crate::NewJob,
    /// Time of the call.
    pub now: Timestamp,
}

/// The result of [`Accounts::link_request`]. It does not tell whether the address has an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LinkRequested {
    /// If the address is entitled to the link, its letter will be sent.
    Taken,
    /// The letters of the day are spent; nothing changed.
    MailSpent,
}

impl Accounts<'_> {
    /// Creates an unverified operator, and the job of its letter.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if the token is in use.
    pub async fn sign_up(&self, new: NewSignUp) -> Result<SignedUp, Error> {
        texts(&[
            ("email", &new.email),
            ("display_name", &new.display_name),
            ("terms_version", &new.terms_version),
        ])?;
        self.0
            .write(tx!(async move |cx| {
                // The invitation is used first, so that an answer without one does not tell if the address has an account.
                let key = email_key(&new.email);
                if new.by_invitation && !use_invitation(cx, &key, new.now).await? {
                    return Ok(Change::Undo(SignedUp::NotInvited));
                }
                let mailbox = mailbox(&new.email);
                delete_stale(cx, Some((key.as_str(), mailbox.as_str())), new.stale).await?;
                let inserted = sql!(
                    // Either of the two keys may be taken.
                    "INSERT INTO operators (id, email, email_key, display_name, terms_version, created_at, mailbox)
                     VALUES ($1, $2, $3, $4, $5, $6, $7)
                     ON CONFLICT DO NOTHING",
                    new.id,
                    new.email,
                    key,
                    new.display_name,
                    new.terms_version,
                    new.now,
                    mailbox,
                )
                .run(cx)
                .await?;
                if inserted == 0 {
                    return Ok(Change::Undo(SignedUp::EmailTaken));
                }
                types::fault::point("signup.rows");
                // The job comes last, so that a spent budget undoes all of it.
                links::insert(cx, &new.link, LinkPurpose::Verify, new.id, new.now).await?;
                if !mail::send(cx, &new.mail).await? {
                    return Ok(Change::Undo(SignedUp::MailSpent));
                }
                Ok(Change::Keep(SignedUp::Created))
            }))
            .await
    }

    /// Mails a link to the operator with this address, if there is one that is entitled to it: for
    /// [`LinkPurpose::Verify`] one that is not verified, for [`LinkPurpose::SignIn`] one that is and is not suspended.
    ///
    /// The transaction does the same in either case, apart from the link's row: it counts a letter and adds a job.
    pub async fn link_request(&self, request: LinkRequest, purpose: LinkPurpose) -> Result<LinkRequested, Error> {
        // An address that no database can store belongs to no operator.
        let key = email_key(&request.email.replace('\0', "\u{fffd}"));
        self.0
            .write(tx!(async move |cx| {
                // The write locks the row: the sign-up is not deleted meanwhile.
                let found = sql!(
                    "UPDATE operators SET email = email WHERE email_key = $1
                     RETURNING id, verified_at, suspended_at",
                    key
                )
                .row_if_any(cx)
                .await?;
                // A verified account needs no second verification, and an unverified one cannot sign in.
                let entitled = match &found {
                    None => None,
                    Some(row) => {
                        let is_verified = row.get::<Option<Timestamp>>("verified_at")?.is_some();
                        let is_suspended = row.get::<Option<Timestamp>>("suspended_at")?.is_some();
                        let is_entitled = match purpose {
                            LinkPurpose::Verify => !is_verified,
                            LinkPurpose::SignIn => is_verified && !is_suspended,
                        };
                        is_entitled.then(|| row.get::<OperatorId>("id")).transpose()?
                    }
                };
                let mail = match entitled {
                    Some(operator) => {
                        links::insert(cx, &request.link, purpose, operator, request.now).await?;
                        request.mail
                    }
                    // The job is as large as that of a letter and sends nothing.
                    None => Mail {
                        job: request.blank,
                        ..request.mail
                    },
                };
                Ok(if mail::send(cx, &mail).await? {
                    Change::Keep(LinkRequested::Taken)
                } else {
                    Change::Undo(LinkRequested::MailSpent)
                })
            }))
            .await
    }

    /// Uses a link of a sign-up: the operator is verified from now on, and the person has stated to be 19 or older and
    /// accepted `terms_version`. With `session`, the person is signed in, too.
    pub async fn verify(
        &self,
        token_hash: [u8; 32],
        terms_version: String,
        session: Option<NewSession>,
        now: Timestamp,
    ) -> Result<Result<OperatorId, LinkRefused>, Error> {
        texts(&[("terms_version", &terms_version)])?;
        self.0
            .write(tx!(async move |cx| {
                let operator = match links::take(cx, token_hash, LinkPurpose::Verify, now).await? {
                    Ok(operator) => operator,
                    Err(refused) => return Ok(Change::Undo(Err(refused))),
                };
                types::fault::point("verify.taken");
                // A second link of the same sign-up, mailed by a resend, changes nothing any more.
                sql!(
                    "UPDATE operators SET verified_at = $2, adult_stated_at = $2, terms_version = $3
                     WHERE id = $1 AND verified_at IS NULL",
                    operator,
                    now,
                    terms_version
                )
                .run(cx)
                .await?;
                sql!(
                    "UPDATE mail_links SET used_at = $2
                     WHERE operator_id = $1 AND purpose = 'verify' AND used_at IS NULL",
                    operator,
                    now
                )
                .run(cx)
                .await?;
                // The link proves that its user reads the mailbox, which is all that a sign-in link proves.
                if let Some(session) = session {
                    sessions::insert(cx, operator, session, now).await?;
                }
                Ok(Change::Keep(Ok(operator)))
            }))
            .await
    }

    /// Uses a link for signing in and begins the session, unless the operator is suspended. A suspended operator is
    /// answered as for an unknown link.
    pub async fn sign_in(
        &self,
        token_hash: [u8; 32],
        session: NewSession,
        now: Timestamp,
    ) -> Result<Result<OperatorId, LinkRefused>, Error> {
        self.0
            .write(tx!(async move |cx| {
                let operator = match links::take(cx, token_hash, LinkPurpose::SignIn, now).await? {
                    Ok(operator) => operator,
                    Err(refused) => return Ok(Change::Undo(Err(refused))),
                };
                // The write locks the row, so a suspension at the same time comes before this or ends the session.
                let active = sql!(
                    "UPDATE operators SET email = email WHERE id = $1 AND suspended_at IS NULL",
                    operator
                )
                .run(cx)
                .await?;
                if active == 0 {
                    return Ok(Change::Undo(Err(LinkRefused::Unknown)));
                }
                sessions::insert(cx, operator, session, now).await?;
                Ok(Change::Keep(Ok(operator)))
            }))
            .await
    }

    /// Deletes the sign-ups until `stale` that were never verified, with their links, and returns their number. Their
    /// addresses are free again.
    pub async fn unverified_delete(&self, stale: Timestamp) -> Result<u64, Error> {
        self.0
            .write(tx!(async move |cx| {
                Ok(Change::Keep(delete_stale(cx, None, stale).await?))
            }))
            .await
    }
}

/// Deletes the sign-ups made until `stale` and never verified, with their links: of one address and its mailbox, or of all.
pub(super) async fn delete_stale(
    cx: &mut AnyConnection,
    of: Option<(&str, &str)>,
    stale: Timestamp,
) -> Result<u64, Error> {
    let (email_key, mailbox) = of.unzip();
    // The write locks the rows, so no link is added to them meanwhile.
    let locked = sql!(
        "UPDATE operators SET email = email
         WHERE verified_at IS NULL AND created_at <= $1 AND (email_key = $2 OR mailbox = $3 OR CAST($2 AS TEXT) IS NULL)
         RETURNING id",
        stale,
        email_key.map(str::to_owned),
        mailbox.map(str::to_owned)
    )
    .rows(cx)
    .await?;
    for row in &locked {
        // Links first, because they refer to the operator.
        let id: String = row.get("id")?;
        for statement in [
            "DELETE FROM mail_links WHERE operator_id = $1",
            "DELETE FROM operators WHERE id = $1",
        ] {
            sql!(statement, id.as_str()).run(cx).await?;
        }
    }
    Ok(u64::try_from(locked.len()).unwrap_or(u64::MAX))
}

/// Marks the invitation of an address as used. Returns false if there is none.
async fn use_invitation(cx: &mut AnyConnection, email_key: &str, now: Timestamp) -> Result<bool, Error> {
    let used = sql!(
        "UPDATE invites SET used_at = COALESCE(used_at, $2) WHERE email_key = $1",
        email_key,
        now
    )
    .run(cx)
    .await?;
    Ok(used > 0)
}
