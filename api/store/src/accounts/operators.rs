//! Operators: the people that agents act for, and their tokens.
//!
//! Invariants:
//! - An e-mail address belongs to one operator, regardless of case, and a mailbox to one that signed up.
//! - Only the hash of a token is stored.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::LetterTopic;
use types::{OperatorId, Timestamp};

use super::mail::{self, Mail};
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, pair, parse, row, texts};
use crate::writer::Change;
use crate::{Error, Store, apps};

/// An operator to create, verified and active from the start.
#[derive(Clone, Debug)]
pub struct NewOperator {
    /// Id of the operator.
    pub id: OperatorId,
    /// E-mail address, as given.
    pub email: String,
    /// Name to display for the operator.
    pub display_name: String,
    /// Version of the accepted terms.
    pub terms_version: String,
    /// Hash of the first token.
    pub token_hash: [u8; 32],
    /// Time of the creation.
    pub now: Timestamp,
}

/// The result of [`Store::operator_create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum OperatorCreated {
    /// The operator and its token exist.
    Created,
    /// The address belongs to an operator already; nothing changed.
    EmailTaken,
}

row! {
    /// An operator account as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Operator {
        /// Id of the operator.
        pub id: OperatorId,
        /// E-mail address, as given.
        pub email: String,
        /// Name to display for the operator.
        pub display_name: String,
        /// Version of the terms accepted last.
        pub terms_version: String,
        /// Time of the creation.
        pub created_at: Timestamp,
        /// Time at which the address was verified. Without it the operator has no credentials.
        pub verified_at: Option<Timestamp>,
        /// Time at which the person stated to be 19 or older; none for an operator that an administrator added.
        pub adult_stated_at: Option<Timestamp>,
        /// Time and reason of the suspension, if suspended.
        pub suspended: Option<(Timestamp, String)> = "suspended_at, suspended_reason" => pair,
        /// True if public pages leave the name out.
        pub profile_hidden: bool,
        /// Topics of the letters that the person does not want.
        pub muted_letters: Vec<LetterTopic> = "muted_letters" => letter_topics,
        /// Time at which the person closed the account. Name and address are blank since then.
        pub closed_at: Option<Timestamp>,
    }
}

/// Reads the topics of letters, which are separated by spaces.
fn letter_topics(row: &AnyRow, column: &'static str) -> Result<Vec<LetterTopic>, Error> {
    let text: String = row.get(column)?;
    text.split_whitespace().map(|word| parse(column, word)).collect()
}

impl Store {
    /// Creates an operator with its first token.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if the id or the hash of the token is in use.
    pub async fn operator_create(&self, new: NewOperator) -> Result<OperatorCreated, Error> {
        texts(&[
            ("email", &new.email),
            ("display_name", &new.display_name),
            ("terms_version", &new.terms_version),
        ])?;
        self.write(tx!(async move |cx| {
            let inserted = sql!(
                // An administrator may add a second operator with a mailbox. The first one keeps it.
                "INSERT INTO operators
                     (id, email, email_key, display_name, terms_version, created_at, verified_at, mailbox)
                 VALUES ($1, $2, $3, $4, $5, $6, $6,
                         CASE WHEN EXISTS (SELECT 1 FROM operators WHERE mailbox = $7) THEN NULL ELSE $7 END)
                 ON CONFLICT (email_key) DO NOTHING",
                new.id,
                new.email.as_str(),
                email_key(&new.email),
                new.display_name,
                new.terms_version,
                new.now,
                mailbox(&new.email),
            )
            .run(cx)
            .await?;
            if inserted == 0 {
                return Ok(Change::Undo(OperatorCreated::EmailTaken));
            }
            // In the same transaction, so no operator exists without a token.
            token_insert(cx, new.id, new.token_hash, None, new.now).await?;
            Ok(Change::Keep(OperatorCreated::Created))
        }))
        .await
    }

    /// Adds a token; existing tokens stay valid.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Refused`] if the hash is in use.
    pub async fn operator_token_add(
        &self,
        operator: OperatorId,
        token_hash: [u8; 32],
        now: Timestamp,
    ) -> Result<(), Error> {
        self.write(tx!(async move |cx| {
            lock(cx, operator).await?;
            token_insert(cx, operator, token_hash, None, now).await?;
            Ok(Change::Keep(()))
        }))
        .await
    }

    /// Suspends an operator: from the commit on, neither its tokens nor its agents' keys are valid, its apps are
    /// disconnected, and its sessions, links for signing in and unused claim codes are gone. Suspending a suspended operator keeps the first instant
    /// and takes the new reason.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such operator.
    pub async fn operator_suspend(&self, id: OperatorId, reason: String, now: Timestamp) -> Result<(), Error> {
        texts(&[("suspended_reason", &reason)])?;
        self.suspension(id, Some((reason, now)), None).await
    }

    /// Suspends an operator as [`operator_suspend`](Self::operator_suspend) does, and adds the job of the letter that
    /// tells the person.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such operator.
    pub async fn operator_suspend_and_tell(
        &self,
        id: OperatorId,
        reason: String,
        letter: Mail,
        now: Timestamp,
    ) -> Result<(), Error> {
        texts(&[("suspended_reason", &reason)])?;
        self.suspension(id, Some((reason, now)), Some(letter)).await
    }

    /// Ends a suspension; an active operator stays active.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such operator.
    pub async fn operator_restore(&self, id: OperatorId) -> Result<(), Error> {
        self.suspension(id, None, None).await
    }

    /// Ends a suspension as [`operator_restore`](Self::operator_restore) does, and adds the job of the letter that
    /// tells the person.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such operator.
    pub async fn operator_restore_and_tell(&self, id: OperatorId, letter: Mail) -> Result<(), Error> {
        self.suspension(id, None, Some(letter)).await
    }

    /// Returns the operator with this id.
    pub async fn operator(&self, id: OperatorId) -> Result<Option<Operator>, Error> {
        self.optional(sql!(
            text!("SELECT ", Operator::COLUMNS, " FROM operators WHERE id = $1"),
            id
        ))
        .await
    }

    /// Returns the operator with this e-mail address, regardless of case.
    pub async fn operator_by_email(&self, email: &str) -> Result<Option<Operator>, Error> {
        // An address that no database can store belongs to no operator.
        if texts(&[("email", email)]).is_err() {
            return Ok(None);
        }
        self.optional(sql!(
            text!("SELECT ", Operator::COLUMNS, " FROM operators WHERE email_key = $1"),
            email_key(email)
        ))
        .await
    }

    async fn suspension(
        &self,
        id: OperatorId,
        suspended: Option<(String, Timestamp)>,
        letter: Option<Mail>,
    ) -> Result<(), Error> {
        self.write(tx!(async move |cx| {
            suspend(cx, id, suspended, letter).await?;
            Ok(Change::Keep(()))
        }))
        .await
    }
}

/// Suspends an operator for a reason from an instant on, or ends that, and adds the letter.
pub(crate) async fn suspend(
    cx: &mut AnyConnection,
    id: OperatorId,
    suspended: Option<(String, Timestamp)>,
    letter: Option<Mail>,
) -> Result<(), Error> {
    let (reason, since) = suspended.unzip();
    let updated = sql!(
        "UPDATE operators
         SET suspended_reason = $2,
             suspended_at = CASE WHEN CAST($3 AS BIGINT) IS NULL THEN NULL
                                 ELSE COALESCE(suspended_at, CAST($3 AS BIGINT)) END
         WHERE id = $1",
        id,
        reason,
        since
    )
    .run(cx)
    .await?;
    if updated == 0 {
        return Err(missing(id));
    }
    // Tokens and keys stay and are refused while the suspension lasts; these would outlive it.
    if let Some(since) = since {
        apps::end_all(cx, apps::Of::Operator(id), since).await?;
        for statement in [
            "DELETE FROM sessions WHERE operator_id = $1",
            "DELETE FROM mail_links WHERE operator_id = $1 AND purpose = 'sign_in'",
            "DELETE FROM claim_codes WHERE operator_id = $1 AND used_at IS NULL",
        ] {
            sql!(statement, id).run(cx).await?;
        }
    }
    // The letter is always sent, whatever the day has used.
    if let Some(letter) = letter {
        mail::send(cx, &letter).await?;
    }
    Ok(())
}

/// Locks the operator's row until the transaction ends, so that limits counted per operator are exact. An operator whose
/// account is closed is missing: it gets no agent, key, token or code any more.
pub(crate) async fn lock(cx: &mut AnyConnection, id: OperatorId) -> Result<(), Error> {
    let locked = sql!(
        "UPDATE operators SET email = email WHERE id = $1 AND closed_at IS NULL",
        id
    )
    .run(cx)
    .await?;
    // Without a row there is nothing to lock: the operator does not exist.
    if locked == 0 { Err(missing(id)) } else { Ok(()) }
}

/// Locks the operator's row as [`lock`] does. Returns true if the operator is suspended.
pub(crate) async fn lock_suspended(cx: &mut AnyConnection, id: OperatorId) -> Result<bool, Error> {
    let row = sql!(
        "UPDATE operators SET email = email WHERE id = $1 RETURNING suspended_at",
        id
    )
    .row_if_any(cx)
    .await?
    .ok_or_else(|| missing(id))?;
    Ok(row.get::<Option<Timestamp>>("suspended_at")?.is_some())
}

pub(super) fn missing(id: OperatorId) -> Error {
    Error::Missing {
        what: "operator",
        id: id.to_string(),
    }
}

/// Adds a token.
pub(super) async fn token_insert(
    cx: &mut AnyConnection,
    operator: OperatorId,
    token_hash: [u8; 32],
    label: Option<String>,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO operator_tokens (token_hash, operator_id, created_at, label) VALUES ($1, $2, $3, $4)",
        token_hash,
        operator,
        now,
        label
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Returns what the uniqueness of addresses is about.
pub(super) fn email_key(email: &str) -> String {
    // Mail providers ignore the case of addresses, so two spellings are the same mailbox.
    email.to_lowercase()
}

/// Returns the mailbox that an address is a spelling of, in lower case: without the tag after a plus, and at Gmail, which has
/// two domains, without dots. A text that is no address is a mailbox of its own.
pub(super) fn mailbox(email: &str) -> String {
    let key = email_key(email);
    let Some((name, domain)) = key.rsplit_once('@') else {
        return key;
    };
    let name = match name.split_once('+') {
        Some((name, _tag)) if !name.is_empty() => name,
        _ => name,
    };
    if matches!(domain, "gmail.com" | "googlemail.com") {
        format!("{}@gmail.com", name.replace('.', ""))
    } else {
        format!("{name}@{domain}")
    }
}
