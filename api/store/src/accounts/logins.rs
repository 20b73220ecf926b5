//! Logins of devices: a device asks with a code, and a person who is signed in types the code and decides.
//!
//! Invariants:
//! - The code of a login is known here by its hash only, finds the login until it is decided or over, and then nothing.
//! - Each wrong code counts toward its operator in the transaction that looked for it, so no number of tries at once is
//!   more than the limit.
//! - An approval looks again, and makes the agent and its key in one transaction. The key has an end.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::ClaimStatus;
use types::{AgentId, OperatorId, Timestamp};

use super::agents::{self, AgentCreated, NewAgent};
use super::{keys, operators};
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Wrong codes that a person may type in [`WRONG_CODE_WINDOW`].
pub const MAX_WRONG_CODES: u32 = 5;
/// Time after which a wrong code no longer counts.
pub const WRONG_CODE_WINDOW: Duration = Duration::from_hours(1);

/// Login to begin.
#[derive(Clone, Debug)]
pub struct NewLogin {
    /// Hash of the code that the device shows.
    pub code_hash: [u8; 32],
    /// Hash of the key that the device got.
    pub key_hash: [u8; 32],
    /// Name that the device gives itself.
    pub device: String,
    /// Network address that asked.
    pub address: String,
    /// Instant from which the login is over unless it was decided.
    pub expires_at: Timestamp,
    /// Time of the call.
    pub now: Timestamp,
}

row! {
    /// Login that waits for a person.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Login {
        /// Name that the device gives itself.
        pub device: String,
        /// Network address that asked.
        pub address: String,
        /// Time at which the device asked.
        pub created_at: Timestamp,
        /// Instant from which the login is over.
        pub expires_at: Timestamp,
    }
}

/// Code that a person typed, with the time.
#[derive(Clone, Copy, Debug)]
pub struct TypedCode {
    /// Operator of the person.
    pub operator: OperatorId,
    /// Hash of the code as typed.
    pub code_hash: [u8; 32],
    /// Time of the call.
    pub now: Timestamp,
}

/// Reason for which a typed code does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedCodeRefused {
    /// No login waits with this code. The try was counted.
    Unknown,
    /// Too many wrong codes; from this instant on the person may type another. Nothing was looked up.
    Locked(Timestamp),
    /// The operator is suspended.
    Suspended,
}

/// Agent that the key of a login is for.
#[derive(Clone, Debug)]
pub enum LoginAgent {
    /// An agent of the operator.
    Present(AgentId),
    /// A new one, if the operator has fewer than this number of agents and waiting claims.
    New(NewAgent, u32),
}

/// The result of [`Accounts::login_approve`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum LoginApproval {
    /// The key works for this agent, until its end.
    Approved(AgentId),
    /// The code does nothing.
    Refused(TypedCodeRefused),
    /// The operator has no such agent, or it was removed or taken down; nothing changed.
    NoAgent,
    /// An agent or a claim that waits has the name of the new agent, or a look-alike; nothing changed.
    NameTaken,
    /// The operator is at its limit of agents; nothing changed.
    LimitReached,
}

impl Accounts<'_> {
    /// Begins a login.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if the hash of the key or of the code is in use.
    pub async fn login_begin(&self, new: NewLogin) -> Result<(), Error> {
        texts(&[("device", &new.device), ("address", &new.address)])?;
        self.0
            .write(tx!(async move |cx| {
                sql!(
                    "INSERT INTO logins (key_hash, code_hash, device, address, status, created_at, expires_at)
                     VALUES ($1, $2, $3, $4, 'pending', $5, $6)",
                    new.key_hash,
                    new.code_hash,
                    new.device,
                    new.address,
                    new.now,
                    new.expires_at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the login that waits with a code. A wrong code is counted.
    pub async fn login_of_code(&self, typed: TypedCode) -> Result<Result<Login, TypedCodeRefused>, Error> {
        self.0
            .write(tx!(async move |cx| {
                Ok(match find(cx, typed).await? {
                    Ok((_, login)) => Change::Undo(Ok(login)),
                    Err(refused) => change_of(refused, Err(refused)),
                })
            }))
            .await
    }

    /// Approves the login that waits with a code: from the commit on its key works for the agent, for `lasts`, and the code
    /// finds nothing.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if an id or a hash is in use.
    pub async fn login_approve(
        &self,
        typed: TypedCode,
        agent: LoginAgent,
        lasts: Duration,
    ) -> Result<LoginApproval, Error> {
        if let LoginAgent::New(new, _) = &agent {
            agents::check_texts(new)?;
        }
        self.0
            .write(tx!(async move |cx| {
                let (key_hash, login) = match find(cx, typed).await? {
                    Ok(found) => found,
                    Err(refused) => return Ok(change_of(refused, LoginApproval::Refused(refused))),
                };
                let agent = match agent {
                    LoginAgent::Present(agent) => {
                        // The write locks the agent, so a removal at the same time comes before or after.
                        let present = sql!(
                            "UPDATE agents SET name = name
                             WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL AND taken_down_at IS NULL",
                            agent,
                            typed.operator
                        )
                        .run(cx)
                        .await?;
                        if present == 0 {
                            return Ok(Change::Undo(LoginApproval::NoAgent));
                        }
                        agent
                    }
                    LoginAgent::New(new, limit) => {
                        let id = new.id;
                        match agents::create(cx, new, limit).await? {
                            AgentCreated::Created => id,
                            AgentCreated::Before(agent) => agent,
                            AgentCreated::NameTaken => return Ok(Change::Undo(LoginApproval::NameTaken)),
                            AgentCreated::LimitReached => return Ok(Change::Undo(LoginApproval::LimitReached)),
                        }
                    }
                };
                decide(cx, &key_hash, ClaimStatus::Approved).await?;
                let end = typed.now.plus(lasts);
                keys::insert_with_end(cx, agent, key_hash, typed.now, end, &login.device).await?;
                Ok(Change::Keep(LoginApproval::Approved(agent)))
            }))
            .await
    }

    /// Rejects the login that waits with a code: its key never works, and the code finds nothing.
    pub async fn login_reject(&self, typed: TypedCode) -> Result<Result<(), TypedCodeRefused>, Error> {
        self.0
            .write(tx!(async move |cx| {
                Ok(match find(cx, typed).await? {
                    Ok((key_hash, _)) => {
                        decide(cx, &key_hash, ClaimStatus::Rejected).await?;
                        Change::Keep(Ok(()))
                    }
                    Err(refused) => change_of(refused, Err(refused)),
                })
            }))
            .await
    }
}

/// Keeps the count of a wrong code; any other refusal changes nothing.
fn change_of<T>(refused: TypedCodeRefused, result: T) -> Change<T> {
    match refused {
        TypedCodeRefused::Unknown => Change::Keep(result),
        TypedCodeRefused::Locked(_) | TypedCodeRefused::Suspended => Change::Undo(result),
    }
}

/// Locks the login that waits with a code, and returns the hash of its key. A wrong code is counted.
async fn find(cx: &mut AnyConnection, typed: TypedCode) -> Result<Result<(Vec<u8>, Login), TypedCodeRefused>, Error> {
    let TypedCode {
        operator,
        code_hash,
        now,
    } = typed;
    operators::lock(cx, operator).await?;
    // The lock makes the count of wrong codes exact.
    if operators::lock_suspended(cx, operator).await? {
        return Ok(Err(TypedCodeRefused::Suspended));
    }
    let tries = sql!(
        "SELECT tried_at FROM login_tries WHERE operator_id = $1 AND tried_at > $2 ORDER BY tried_at DESC LIMIT $3",
        operator,
        now.minus(WRONG_CODE_WINDOW),
        MAX_WRONG_CODES
    )
    .rows(cx)
    .await?;
    // A person who is locked out learns nothing of a right code either: otherwise guessing could go on.
    if tries.len() >= MAX_WRONG_CODES as usize
        && let Some(oldest) = tries.last()
    {
        let free = oldest.get::<Timestamp>("tried_at")?.plus(WRONG_CODE_WINDOW);
        return Ok(Err(TypedCodeRefused::Locked(free)));
    }
    let found = sql!(
        text!(
            "UPDATE logins SET device = device WHERE code_hash = $1 AND status = 'pending' AND expires_at > $2
             RETURNING key_hash, ",
            Login::COLUMNS
        ),
        code_hash,
        now
    )
    .row_if_any(cx)
    .await?;
    if let Some(row) = found {
        return Ok(Ok((row.get("key_hash")?, Login::of(&row)?)));
    }
    sql!(
        "INSERT INTO login_tries (operator_id, tried_at) VALUES ($1, $2)",
        operator,
        now
    )
    .run(cx)
    .await?;
    Ok(Err(TypedCodeRefused::Unknown))
}

/// Ends the waiting of a login. Its code is gone with it.
async fn decide(cx: &mut AnyConnection, key_hash: &[u8], status: ClaimStatus) -> Result<(), Error> {
    sql!(
        "UPDATE logins SET status = $2, code_hash = NULL WHERE key_hash = $1",
        key_hash.to_vec(),
        status
    )
    .run(cx)
    .await?;
    Ok(())
}
