//! Audit trail: one row for each call that changed something.
//!
//! Invariant: the row is written in the transaction of the change, so neither exists without the other.

use sqlx::AnyConnection;
use types::vocabulary::ActorKind;
use types::{OperatorId, Timestamp};

use crate::query::{sql, text};
use crate::row::{Row as _, replace_nul, row, texts};
use crate::{Error, Flow};

row! {
    /// Row of the audit trail.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AuditEntry {
        /// Id of the row, a version 7 UUID.
        pub id: String,
        /// Time of the call.
        pub at: Timestamp,
        /// Operator of the caller, which may read the row.
        pub operator: Option<OperatorId> = "operator_id",
        /// Kind of the caller.
        pub actor_kind: ActorKind,
        /// Id of the agent, if an agent acted, or a person as that agent.
        pub actor: Option<String>,
        /// Name of the operation.
        pub operation: String,
        /// Thing that was changed, as the call named it.
        pub subject: Option<String>,
        /// Id of the request.
        pub request_id: String,
    }
}

impl Flow<'_> {
    /// Returns the rows that an operator may read, newest first: up to `limit`, those before the row `before` only.
    pub async fn audit_of(
        &self,
        operator: OperatorId,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        self.0
            .read(async {
                // Ids begin with their time (RFC 9562 section 5.7), so the order of the ids is that of
                // the calls.
                sql!(
                    text!(
                        "SELECT ",
                        AuditEntry::COLUMNS,
                        " FROM audit
                         WHERE operator_id = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3"
                    ),
                    operator,
                    before.unwrap_or_default(),
                    limit
                )
                .all(&mut self.0.readers())
                .await
            })
            .await
    }
}

/// Writes a row, once for each call: a call may change things in several transactions.
pub(crate) async fn insert(cx: &mut AnyConnection, entry: &AuditEntry) -> Result<(), Error> {
    // The subject is what the call named, which may be any text, so its NUL characters are replaced;
    // these two are words of the service, where one would be a defect.
    texts(&[("operation", &entry.operation), ("request_id", &entry.request_id)])?;
    sql!(
        "INSERT INTO audit (id, at, operator_id, actor_kind, actor, operation, subject, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (id) DO NOTHING",
        entry.id.clone(),
        entry.at,
        entry.operator,
        entry.actor_kind,
        entry.actor.clone(),
        entry.operation.clone(),
        entry
            .subject
            .as_deref()
            .map(|subject| replace_nul(subject).into_owned()),
        entry.request_id.clone()
    )
    .run(cx)
    .await?;
    Ok(())
}
