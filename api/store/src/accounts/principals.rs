//! The owner of a secret.
//!
//! Invariant: a secret that was revoked or replaced, or whose time is over, has no owner. Suspension is in the answer,
//! and the caller refuses it.

use types::vocabulary::ClaimStatus;
use types::{AgentId, ClaimId, OperatorId, Timestamp};

use super::claims;
use crate::query::sql;
use crate::row::Columns;
use crate::{Accounts, Error};

/// The owner of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A person, by operator token.
    Operator {
        /// Id of the operator.
        operator: OperatorId,
        /// True if the operator is suspended.
        suspended: bool,
    },
    /// An agent, by its key.
    Agent {
        /// Id of the agent.
        agent: AgentId,
        /// Operator that the agent acts for.
        operator: OperatorId,
        /// Name of the agent.
        name: String,
        /// True if the operator is suspended, or the agent taken down.
        suspended: bool,
        /// Instant from which the key is no longer valid, if it has an end.
        expires_at: Option<Timestamp>,
    },
    /// A claim that was not approved, by the key that was given with it.
    Claimed {
        /// Id of the claim.
        claim: ClaimId,
        /// Operator that was asked.
        operator: OperatorId,
        /// Status of the claim: pending, rejected or expired.
        status: ClaimStatus,
        /// True if the operator is suspended.
        suspended: bool,
    },
    /// A device whose login was not approved, by the key that it got. It is nobody's.
    Login {
        /// Status of the login: pending, rejected or expired.
        status: ClaimStatus,
    },
}

impl Principal {
    /// The operator it is, acts for, or asks to act for; `None` for a login.
    pub const fn operator(&self) -> Option<OperatorId> {
        match self {
            Self::Operator { operator, .. } | Self::Agent { operator, .. } | Self::Claimed { operator, .. } => {
                Some(*operator)
            }
            Self::Login { .. } => None,
        }
    }
}

impl Accounts<'_> {
    /// Returns the owner of the secret with this hash at `now`, also if suspended; the caller refuses suspended
    /// operators.
    pub async fn principal(&self, hash: &[u8; 32], now: Timestamp) -> Result<Option<Principal>, Error> {
        self.0
            .read(async {
                let row = sql!(
                    // An approved claim or login is an agent, and without a key it is nobody.
                    "SELECT 'agent' AS kind, operators.id AS operator_id,
                            COALESCE(operators.suspended_at, agents.taken_down_at) AS suspended_at,
                            agents.id AS id, agents.name AS name, '' AS status, agent_keys.expires_at AS expires_at
                     FROM agent_keys
                     JOIN agents ON agents.id = agent_keys.agent_id
                     JOIN operators ON operators.id = agents.operator_id
                     WHERE agent_keys.key_hash = $1
                       AND (agent_keys.expires_at IS NULL OR agent_keys.expires_at > $2)
                     UNION ALL
                     SELECT 'operator', operators.id, operators.suspended_at, '', '', '', CAST(0 AS BIGINT)
                     FROM operator_tokens JOIN operators ON operators.id = operator_tokens.operator_id
                     WHERE operator_tokens.token_hash = $1
                     UNION ALL
                     SELECT 'claim', operators.id, operators.suspended_at, claims.id, '', claims.status,
                            claims.expires_at
                     FROM claims JOIN operators ON operators.id = claims.operator_id
                     WHERE claims.key_hash = $1 AND claims.status <> 'approved'
                     UNION ALL
                     SELECT 'login', '', CAST(NULL AS BIGINT), '', '', logins.status, logins.expires_at
                     FROM logins WHERE logins.key_hash = $1 AND logins.status <> 'approved'",
                    hash,
                    now,
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                // Secrets are random, so at most one row matches.
                let Some(row) = row else { return Ok(None) };
                if row.value::<&str>("kind")? == "login" {
                    let status = claims::status(&row, now)?;
                    return Ok(Some(Principal::Login { status }));
                }
                let operator = row.get("operator_id")?;
                let suspended = row.get::<Option<Timestamp>>("suspended_at")?.is_some();
                Ok(Some(match row.value::<&str>("kind")? {
                    "agent" => Principal::Agent {
                        agent: row.get("id")?,
                        operator,
                        name: row.get("name")?,
                        suspended,
                        expires_at: row.get("expires_at")?,
                    },
                    "claim" => Principal::Claimed {
                        claim: row.get("id")?,
                        operator,
                        status: claims::status(&row, now)?,
                        suspended,
                    },
                    _ => Principal::Operator { operator, suspended },
                }))
            })
            .await
    }
}
