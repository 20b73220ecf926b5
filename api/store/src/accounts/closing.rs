//! The end of an account that its person closes.
//!
//! Invariants:
//! - An account closes in one transaction, and only while nothing of it is open: afterwards no credential of it works.
//! - What others rely on stays: items, sales, the ledger, purchases of others, and the address that later shares are paid to.

use types::vocabulary::ClaimStatus;
use types::{OperatorId, Timestamp};

use super::agents::name_free;
use super::operators::missing;
use crate::apps;
use crate::query::{Statement, sql, tx};
use crate::row::{Columns as _, row};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Name of an operator whose account is closed.
pub const CLOSED_NAME: &str = "closed account";

row! {
    /// Matters of an account that must end before it closes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct OpenMatters {
        /// Payouts that are on their way.
        pub payouts: u64,
        /// Disputes of sales, of either side.
        pub disputes: u64,
        /// Payments whose outcome is not known.
        pub payments: u64,
        /// Purchases of agents that wait for the person.
        pub approvals: u64,
        /// Uploads that can still be completed.
        pub uploads: u64,
        /// Changes of the address that can still be taken back at the old one.
        pub addresses: u64,
    }
}

impl OpenMatters {
    /// Returns true if nothing is open.
    pub const fn is_none(&self) -> bool {
        self.payouts == 0
            && self.disputes == 0
            && self.payments == 0
            && self.approvals == 0
            && self.uploads == 0
            && self.addresses == 0
    }
}

/// The result of [`Accounts::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum AccountClosed {
    /// The account is closed.
    Closed,
    /// Something is open; nothing changed.
    Open(OpenMatters),
}

impl Accounts<'_> {
    /// Returns what must end before an account can be closed at `now`.
    pub async fn open_matters(&self, operator: OperatorId, now: Timestamp) -> Result<OpenMatters, Error> {
        self.0.one(open(operator, now)).await
    }

    /// Closes an account, unless something of it is open: ends its agents, keys, tokens, apps, sessions and links, and blanks
    /// name and address.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, or its account is closed.
    pub async fn close(&self, operator: OperatorId, now: Timestamp) -> Result<AccountClosed, Error> {
        self.0
            .write(tx!(async move |cx| {
                let locked = sql!(
                    "UPDATE operators SET email = email WHERE id = $1 AND closed_at IS NULL RETURNING email_key",
                    operator
                )
                .row_if_any(cx)
                .await?
                .ok_or_else(|| missing(operator))?;
                let email_key: String = locked.get("email_key")?;
                let open: OpenMatters = open(operator, now).one(cx).await?;
                if !open.is_none() {
                    return Ok(Change::Undo(AccountClosed::Open(open)));
                }
                apps::end_all(cx, apps::Of::Operator(operator), now).await?;
                let claims = sql!(
                    "UPDATE claims SET status = $2, decided_at = $3 WHERE operator_id = $1 AND status = 'pending'
                     RETURNING agent_id",
                    operator,
                    ClaimStatus::Rejected,
                    now
                )
                .rows(cx)
                .await?;
                for claim in &claims {
                    name_free(cx, claim.value("agent_id")?).await?;
                }
                sql!(
                    "UPDATE agents SET removed_at = $2 WHERE operator_id = $1 AND removed_at IS NULL",
                    operator,
                    now
                )
                .run(cx)
                .await?;
                for statement in [
                    "DELETE FROM agent_keys WHERE agent_id IN (SELECT id FROM agents WHERE operator_id = $1)",
                    "DELETE FROM operator_tokens WHERE operator_id = $1",
                    "DELETE FROM sessions WHERE operator_id = $1",
                    "DELETE FROM mail_links WHERE operator_id = $1",
                    "DELETE FROM claim_codes WHERE operator_id = $1 AND used_at IS NULL",
                    "DELETE FROM login_tries WHERE operator_id = $1",
                    "DELETE FROM consents WHERE operator_id = $1",
                    "DELETE FROM email_changes WHERE operator_id = $1",
                ] {
                    sql!(statement, operator).run(cx).await?;
                }
                for statement in [
                    "DELETE FROM invites WHERE email_key = $1",
                    "DELETE FROM invite_requests WHERE email_key = $1",
                ] {
                    sql!(statement, email_key.clone()).run(cx).await?;
                }
                // No address has a colon, so the key is nobody's, and the person may sign up anew with the old address.
                sql!(
                    "UPDATE operators
                     SET email = '', email_key = $2, mailbox = NULL, display_name = $3, role = NULL, profile_hidden = 1,
                         muted_letters = '', closed_at = $4
                     WHERE id = $1",
                    operator,
                    format!("closed:{operator}"),
                    CLOSED_NAME,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(AccountClosed::Closed))
            }))
            .await
    }
}

/// Counts what is open of an operator. The open rows of all operators are few, and are found by their states.
fn open(operator: OperatorId, now: Timestamp) -> Statement {
    sql!(
        "SELECT
            (SELECT COUNT(*) FROM payouts
             WHERE operator_id = $1 AND kind = 'payout' AND state IN ('picked', 'sending', 'unknown')) AS payouts,
            (SELECT COUNT(*) FROM disputes JOIN sales ON sales.id = disputes.sale_id
             WHERE disputes.state = 'open' AND (sales.seller_operator = $1 OR sales.buyer_operator = $1)) AS disputes,
            (SELECT COUNT(*) FROM payments
             WHERE state IN ('bound', 'settling', 'unknown')
               AND (buyer_operator = $1 OR (item_kind = 'pack' AND item_id = $1))) AS payments,
            (SELECT COUNT(*) FROM approvals
             WHERE operator_id = $1 AND state = 'waiting' AND asked_by = 'agent' AND expires_at > $2) AS approvals,
            (SELECT COUNT(*) FROM uploads WHERE operator_id = $1 AND status = 'open' AND expires_at > $2) AS uploads,
            (SELECT COUNT(*) FROM email_changes
             WHERE operator_id = $1 AND confirmed_at IS NOT NULL AND stopped_at IS NULL AND stop_until > $2) AS addresses",
        operator,
        now
    )
}
