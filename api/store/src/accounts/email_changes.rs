//! Another address of an account: asked for in a session, confirmed at the new address, taken back at the old one.
//!
//! Invariants:
//! - The address of an account is one whose mailbox confirmed it.
//! - Who reads the old mailbox can take a change back for days after it was confirmed, and no other change begins before.
//! - An answer to who asks tells of no other account.

use sqlx::AnyConnection;
use types::vocabulary::EmailLink;
use types::{OperatorId, Timestamp};

use super::links::{LinkRefused, NewLink};
use super::mail::{self, Mail};
use super::operators::{email_key, mailbox, missing};
use super::sign_up;
use crate::query::{Statement, sql, text, tx};
use crate::row::{Columns as _, Row as _, row, texts};
use crate::writer::Change;
use crate::{Accounts, Error, NewJob, apps};

/// Change of an address to ask for.
#[derive(Clone, Debug)]
pub struct NewEmailChange {
    /// Operator whose address changes.
    pub operator: OperatorId,
    /// New address, as given.
    pub email: String,
    /// Link that is mailed to the new address.
    pub confirm: NewLink,
    /// Link that is mailed to the old address.
    pub stop: NewLink,
    /// Letter to the new address.
    pub to_new: Mail,
    /// Job of the same size that sends nothing, for an address that another account has.
    pub blank: NewJob,
    /// Letter to the old address, which is always sent.
    pub to_old: Mail,
    /// Time of the call.
    pub now: Timestamp,
}

/// The result of [`Accounts::email_change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EmailChangeAsked {
    /// The letters will be sent. The new address gets one only if no other account has it.
    Asked,
    /// It is the address of the account; nothing changed.
    Same,
    /// The last change can still be taken back; nothing changed.
    TooSoon {
        /// Time from which another change may begin.
        until: Timestamp,
    },
    /// The letters of the day are spent; nothing changed.
    MailSpent,
}

row! {
    /// Change of the address of an account.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EmailChange {
        /// Operator whose address changes.
        pub operator: OperatorId = "operator_id",
        /// Address before the change.
        pub old_email: String,
        /// Address after the change.
        pub new_email: String,
        /// Time of the request.
        pub asked_at: Timestamp,
        /// Instant from which it can no longer be confirmed.
        pub confirm_until: Timestamp,
        /// Instant from which it can no longer be taken back.
        pub stop_until: Timestamp,
        /// Time at which the new mailbox confirmed it.
        pub confirmed_at: Option<Timestamp>,
        /// Time at which the old mailbox took it back.
        pub stopped_at: Option<Timestamp>,
    }
}

impl EmailChange {
    /// Returns true if it can still be confirmed at `now`.
    pub fn waits(&self, now: Timestamp) -> bool {
        self.confirmed_at.is_none() && self.stopped_at.is_none() && self.confirm_until > now
    }

    /// Returns the reason for which a link does nothing at `now`, if it does not.
    fn refused(&self, link: EmailLink, now: Timestamp) -> Option<LinkRefused> {
        let (used, until) = match link {
            EmailLink::Confirm => (self.confirmed_at.or(self.stopped_at), self.confirm_until),
            EmailLink::Stop => (self.stopped_at, self.stop_until),
        };
        match used {
            Some(_) => Some(LinkRefused::Used),
            None if until <= now => Some(LinkRefused::Expired),
            None => None,
        }
    }
}

/// The result of [`Accounts::email_confirm`] and [`Accounts::email_stop`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum EmailChanged {
    /// The account has the address that was asked for, or the old one again.
    Done(EmailChange),
    /// Another account has the address by now; nothing changed.
    Taken,
    /// The link does nothing.
    Refused(LinkRefused),
}

impl Accounts<'_> {
    /// Asks for another address of an account: its letters are sent, and the links in them work. A change that waits gives
    /// way to the new one.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist or its account is closed, [`Error::Text`].
    pub async fn email_change(&self, new: NewEmailChange) -> Result<EmailChangeAsked, Error> {
        texts(&[("email", &new.email)])?;
        self.0
            .write(tx!(async move |cx| {
                let operator = new.operator;
                let old = lock(cx, operator).await?;
                if email_key(&old) == email_key(&new.email) {
                    return Ok(Change::Undo(EmailChangeAsked::Same));
                }
                let before: Option<EmailChange> = of_operator(operator).optional(cx).await?;
                let before = before.filter(|change| change.confirmed_at.is_some() && change.stopped_at.is_none());
                if let Some(change) = before.filter(|change| change.stop_until > new.now) {
                    let until = change.stop_until;
                    return Ok(Change::Undo(EmailChangeAsked::TooSoon { until }));
                }
                let is_taken = is_taken(cx, operator, &new.email).await?;
                sql!(
                    "INSERT INTO email_changes
                         (operator_id, old_email, new_email, confirm_hash, stop_hash, asked_at, confirm_until, stop_until)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                     ON CONFLICT (operator_id) DO UPDATE SET
                         old_email = excluded.old_email, new_email = excluded.new_email,
                         confirm_hash = excluded.confirm_hash, stop_hash = excluded.stop_hash,
                         asked_at = excluded.asked_at, confirm_until = excluded.confirm_until,
                         stop_until = excluded.stop_until, confirmed_at = NULL, stopped_at = NULL",
                    operator,
                    old,
                    new.email,
                    new.confirm.token_hash,
                    new.stop.token_hash,
                    new.now,
                    new.confirm.expires_at,
                    new.stop.expires_at
                )
                .run(cx)
                .await?;
                // The same work for an address that has an account, so that the answer does not tell.
                let to_new = if is_taken {
                    Mail {
                        job: new.blank,
                        ..new.to_new
                    }
                } else {
                    new.to_new
                };
                if !mail::send(cx, &to_new).await? {
                    return Ok(Change::Undo(EmailChangeAsked::MailSpent));
                }
                mail::send(cx, &new.to_old).await?;
                Ok(Change::Keep(EmailChangeAsked::Asked))
            }))
            .await
    }

    /// Returns the last change of the address of an operator, if it is remembered.
    pub async fn email_change_of(&self, operator: OperatorId) -> Result<Option<EmailChange>, Error> {
        self.0.optional(of_operator(operator)).await
    }

    /// Returns the change whose link has this token, if the link does something at `now`.
    pub async fn email_link(
        &self,
        token_hash: &[u8; 32],
        link: EmailLink,
        now: Timestamp,
    ) -> Result<Result<EmailChange, LinkRefused>, Error> {
        let found: Option<EmailChange> = self.0.optional(by_link(link, *token_hash)).await?;
        Ok(match found {
            None => Err(LinkRefused::Unknown),
            Some(change) => match change.refused(link, now) {
                Some(refused) => Err(refused),
                None => Ok(change),
            },
        })
    }

    /// Gives an account the address that its owner asked for, by the link that was mailed there.
    pub async fn email_confirm(&self, token_hash: [u8; 32], now: Timestamp) -> Result<EmailChanged, Error> {
        self.0
            .write(tx!(async move |cx| {
                let change = match take(cx, EmailLink::Confirm, token_hash, now).await? {
                    Ok(change) => change,
                    Err(refused) => return Ok(Change::Undo(EmailChanged::Refused(refused))),
                };
                if !give(cx, change.operator, &change.new_email).await? {
                    return Ok(Change::Undo(EmailChanged::Taken));
                }
                sql!(
                    "UPDATE email_changes SET confirmed_at = $2 WHERE operator_id = $1",
                    change.operator,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(EmailChanged::Done(change)))
            }))
            .await
    }

    /// Takes a change back by the link that was mailed to the old address: the account has that again. Every session and app
    /// ends, and so do the tokens, keys, codes and the payout address that came since, since somebody else may have asked for
    /// the change.
    pub async fn email_stop(&self, token_hash: [u8; 32], now: Timestamp) -> Result<EmailChanged, Error> {
        self.0
            .write(tx!(async move |cx| {
                let change = match take(cx, EmailLink::Stop, token_hash, now).await? {
                    Ok(change) => change,
                    Err(refused) => return Ok(Change::Undo(EmailChanged::Refused(refused))),
                };
                if change.confirmed_at.is_some() {
                    // Who presses the link reads the old mailbox, so no sign-up that nobody confirmed keeps it.
                    let (key, mailbox) = (email_key(&change.old_email), mailbox(&change.old_email));
                    sign_up::delete_stale(cx, Some((key.as_str(), mailbox.as_str())), now).await?;
                    if !give(cx, change.operator, &change.old_email).await? {
                        return Ok(Change::Undo(EmailChanged::Taken));
                    }
                }
                for statement in [
                    "UPDATE email_changes SET stopped_at = $2 WHERE operator_id = $1",
                    "DELETE FROM sessions WHERE operator_id = $1 AND created_at <= $2",
                ] {
                    sql!(statement, change.operator, now).run(cx).await?;
                }
                // Whoever asked for the change had a session, and may have made other ways in, and out, since.
                apps::end_all(cx, apps::Of::Operator(change.operator), now).await?;
                for statement in [
                    "DELETE FROM operator_tokens WHERE operator_id = $1 AND created_at >= $2",
                    "DELETE FROM agent_keys
                     WHERE created_at >= $2 AND agent_id IN (SELECT id FROM agents WHERE operator_id = $1)",
                    "DELETE FROM claim_codes WHERE operator_id = $1 AND created_at >= $2 AND used_at IS NULL",
                    "UPDATE operators SET payout_next_address = NULL, payout_next_at = NULL
                     WHERE id = $1 AND payout_changed_at >= $2 AND payout_next_at IS NOT NULL",
                ] {
                    sql!(statement, change.operator, change.asked_at).run(cx).await?;
                }
                Ok(Change::Keep(EmailChanged::Done(change)))
            }))
            .await
    }
}

/// Locks the operator's row and returns its address.
async fn lock(cx: &mut AnyConnection, operator: OperatorId) -> Result<String, Error> {
    let row = sql!(
        "UPDATE operators SET email = email WHERE id = $1 AND closed_at IS NULL RETURNING email",
        operator
    )
    .row_if_any(cx)
    .await?
    .ok_or_else(|| missing(operator))?;
    row.get("email")
}

fn of_operator(operator: OperatorId) -> Statement {
    sql!(
        text!(
            "SELECT ",
            EmailChange::COLUMNS,
            " FROM email_changes WHERE operator_id = $1"
        ),
        operator
    )
}

fn by_link(link: EmailLink, token_hash: [u8; 32]) -> Statement {
    let statement = match link {
        EmailLink::Confirm => text!(
            "SELECT ",
            EmailChange::COLUMNS,
            " FROM email_changes WHERE confirm_hash = $1"
        ),
        EmailLink::Stop => text!(
            "SELECT ",
            EmailChange::COLUMNS,
            " FROM email_changes WHERE stop_hash = $1"
        ),
    };
    sql!(statement, token_hash)
}

/// Returns the change of a link that does something, with the operator's row locked, so that of two presses of a button one
/// acts.
async fn take(
    cx: &mut AnyConnection,
    link: EmailLink,
    token_hash: [u8; 32],
    now: Timestamp,
) -> Result<Result<EmailChange, LinkRefused>, Error> {
    let Some(found) = by_link(link, token_hash).optional::<EmailChange, _>(cx).await? else {
        return Ok(Err(LinkRefused::Unknown));
    };
    lock(cx, found.operator).await?;
    // Again under the lock: the change may have ended, or given way to another, since it was found.
    let found: Option<EmailChange> = by_link(link, token_hash).optional(cx).await?;
    let Some(change) = found else {
        return Ok(Err(LinkRefused::Unknown));
    };
    Ok(match change.refused(link, now) {
        Some(refused) => Err(refused),
        None => Ok(change),
    })
}

/// Returns true if another operator has an address, or another spelling of its mailbox.
async fn is_taken(cx: &mut AnyConnection, operator: OperatorId, email: &str) -> Result<bool, Error> {
    let taken = sql!(
        "SELECT id FROM operators WHERE (email_key = $1 OR mailbox = $2) AND id <> $3 LIMIT 1",
        email_key(email),
        mailbox(email),
        operator
    )
    .row_if_any(cx)
    .await?;
    Ok(taken.is_some())
}

/// Gives an operator an address. Returns false, and changes nothing, if another operator has it. Links to sign in that were
/// mailed to the address before do not work any more.
async fn give(cx: &mut AnyConnection, operator: OperatorId, email: &str) -> Result<bool, Error> {
    if is_taken(cx, operator, email).await? {
        return Ok(false);
    }
    sql!(
        "UPDATE operators SET email = $2, email_key = $3, mailbox = $4 WHERE id = $1",
        operator,
        email.to_owned(),
        email_key(email),
        mailbox(email)
    )
    .run(cx)
    .await?;
    sql!(
        "DELETE FROM mail_links WHERE operator_id = $1 AND purpose = 'sign_in'",
        operator
    )
    .run(cx)
    .await?;
    Ok(true)
}
