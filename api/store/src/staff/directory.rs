//! Accounts: listed, found by what somebody knows of them, and looked at.
//!
//! Invariant: a search reads at most [`FOUND_BY_EACH`] rows for each of the ways in which it finds.

use types::vocabulary::{ItemKind, StaffRole};
use types::{OperatorId, Timestamp};

use super::Staff;
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{pair, row, texts};
use crate::writer::Change;

/// Accounts that a search takes of those whose name or address begins so.
const FOUND_BY_EACH: u32 = 100;
/// Greatest character, so that every text that begins with another is below that with this one.
const LAST: char = '\u{10ffff}';

row! {
    /// An account as the staff sees it. Each count stops at a thousand.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StaffAccount {
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
        /// Time at which the address was verified.
        pub verified_at: Option<Timestamp>,
        /// Time and reason of the suspension, if suspended.
        pub suspended: Option<(Timestamp, String)> = "suspended_at, suspended_reason" => pair,
        /// Role, if it is one of the staff.
        pub role: Option<StaffRole>,
        /// Payout address in force.
        pub payout_address: Option<String>,
        /// Time at which the wallet of that address proved itself.
        pub payout_proved_at: Option<Timestamp>,
        /// Agents that were not removed.
        pub agents: u64,
        /// Datasets that were not deleted.
        pub datasets: u64,
        /// Units with a published version.
        pub units: u64,
        /// Versions of units that were rejected.
        pub rejected: u64,
        /// Takedowns of its items, in force or over.
        pub takedowns: u64,
        /// Reports of its items that nobody has decided.
        pub reports: u64,
    }
}

row! {
    /// An item of an account.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AccountItem {
        /// Kind of the item.
        pub kind: ItemKind,
        /// Slug of the dataset, or id of the latest version of the unit.
        pub place: String,
        /// Title as it is now.
        pub title: String,
        /// Time at which it was taken down, while it is.
        pub taken_down_at: Option<Timestamp>,
        /// Time at which its operator ended it: a unit that is retired, a dataset that is archived.
        pub ended_at: Option<Timestamp>,
        /// True if nobody but its operator may know of it, or nothing of it is published.
        pub is_private: bool,
        /// Number of sales that were not refunded, up to a thousand.
        pub sold: u64,
        /// Time at which it was made.
        pub created_at: Timestamp,
    }
}

const ACCOUNT: &str =
    "SELECT operators.id AS id, email, display_name, terms_version, operators.created_at AS created_at,
       verified_at, suspended_at, suspended_reason, role, payout_address, payout_proved_at,
       (SELECT COUNT(*) FROM (SELECT 1 FROM agents WHERE agents.operator_id = operators.id AND removed_at IS NULL
                              LIMIT 1000) AS a) AS agents,
       (SELECT COUNT(*) FROM (SELECT 1 FROM projects WHERE projects.operator_id = operators.id AND deleted_at IS NULL
                              LIMIT 1000) AS b) AS datasets,
       (SELECT COUNT(*) FROM (SELECT 1 FROM chains WHERE chains.operator_id = operators.id AND versions > 0
                              LIMIT 1000) AS c) AS units,
       (SELECT COUNT(*) FROM (SELECT 1 FROM units WHERE units.operator_id = operators.id AND status = 'rejected'
                              LIMIT 1000) AS d) AS rejected,
       (SELECT COUNT(*) FROM (SELECT 1 FROM takedowns WHERE takedowns.operator_id = operators.id
                              LIMIT 1000) AS e) AS takedowns,
       (SELECT COUNT(*) FROM (SELECT 1 FROM reports WHERE reports.owner_id = operators.id AND status = 'open'
                              LIMIT 1000) AS f) AS reports
  FROM operators";

impl Staff<'_> {
    /// Returns the account of an operator.
    pub async fn account(&self, id: OperatorId) -> Result<Option<StaffAccount>, Error> {
        self.0
            .optional(sql!(text!(ACCOUNT, " WHERE operators.id = $1"), id))
            .await
    }

    /// Returns accounts, newest first: those before `before`, or the newest.
    pub async fn accounts(&self, before: Option<OperatorId>, limit: u32) -> Result<Vec<StaffAccount>, Error> {
        self.0
            .all(sql!(
                text!(
                    ACCOUNT,
                    " WHERE ($1 = '' OR operators.id < $1) ORDER BY operators.id DESC LIMIT $2"
                ),
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns the accounts that a text tells of, newest first: by its id, by the beginning of the e-mail address or the name
    /// in whatever case, by the name or id of an agent, by the payout address, or by an item: the slug of a dataset or
    /// the id of a unit.
    pub async fn accounts_found(&self, told: &str, limit: u32) -> Result<Vec<StaffAccount>, Error> {
        let told = told.trim();
        // A text that no database can store, or none, tells of nobody.
        if told.is_empty() || texts(&[("told", told)]).is_err() {
            return Ok(Vec::new());
        }
        let (email, name) = (told.to_lowercase(), told.to_ascii_lowercase());
        let until = |text: &str| format!("{text}{LAST}");
        self.0
            .all(sql!(
                text!(
                    ACCOUNT,
                    " WHERE operators.id IN (
                          SELECT id FROM operators AS by_id WHERE id = $1
                          UNION SELECT id FROM (SELECT id FROM operators WHERE email_key >= $2 AND email_key < $3
                                                ORDER BY email_key LIMIT $8) AS by_email
                          UNION SELECT id FROM (SELECT id FROM operators
                                                WHERE LOWER(display_name) >= $4 AND LOWER(display_name) < $5
                                                ORDER BY LOWER(display_name) LIMIT $8) AS by_name
                          UNION SELECT operator_id FROM agents WHERE name = $6
                          UNION SELECT operator_id FROM agents WHERE id = $1
                          UNION SELECT id FROM operators AS by_payout WHERE LOWER(payout_address) = $4
                          UNION SELECT id FROM operators AS by_next WHERE LOWER(payout_next_address) = $4
                          UNION SELECT operator_id FROM projects WHERE slug = $4
                          UNION SELECT operator_id FROM units WHERE id = $1)
                      ORDER BY operators.id DESC LIMIT $7"
                ),
                name.clone(),
                email.clone(),
                until(&email),
                name.clone(),
                until(&name),
                told,
                limit,
                FOUND_BY_EACH
            ))
            .await
    }

    /// Returns the items of an account, newest first of each kind, up to `limit` of each.
    pub async fn items_of(&self, operator: OperatorId, limit: u32) -> Result<Vec<AccountItem>, Error> {
        self.0
            .all(sql!(
                "SELECT kind, place, title, taken_down_at, ended_at, is_private, created_at,
                        (SELECT COUNT(*) FROM (SELECT 1 FROM sales
                                               WHERE sales.item_kind = items.kind AND sales.item_id = items.item
                                                 AND state NOT IN ('refunded', 'trial_refunded')
                                               LIMIT 1000) AS counted) AS sold
                 FROM (SELECT * FROM (SELECT 'unit' AS kind, chains.id AS item, units.id AS place, units.title AS title,
                                             chains.taken_down_at AS taken_down_at, chains.retired_at AS ended_at,
                                             CAST(CASE WHEN chains.versions > 0 THEN 0 ELSE 1 END AS BIGINT) AS is_private,
                                             chains.created_at AS created_at
                                      FROM chains JOIN units ON units.id = COALESCE(chains.latest_unit, chains.id)
                                      WHERE chains.operator_id = $1 ORDER BY chains.id DESC LIMIT $2) AS written
                       UNION ALL
                       SELECT * FROM (SELECT 'dataset' AS kind, projects.id AS item, slug AS place, title,
                                             taken_down_at,
                                             CASE WHEN status = 'archived' THEN updated_at END AS ended_at,
                                             CAST(CASE WHEN visibility = 'private' THEN 1 ELSE 0 END AS BIGINT) AS is_private,
                                             created_at
                                      FROM projects WHERE operator_id = $1 AND deleted_at IS NULL
                                      ORDER BY projects.id DESC LIMIT $2) AS gathered) AS items
                 ORDER BY created_at DESC, place",
                operator,
                limit
            ))
            .await
    }

    /// Suspends an operator that is active, and adds the letter; or with `None` ends the suspension of one that is
    /// suspended. Returns `None` if there is no such operator, false if it is so already: then nothing changes and no
    /// letter leaves.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn suspension_set(
        &self,
        id: OperatorId,
        reason: Option<String>,
        letter: crate::Mail,
        now: Timestamp,
    ) -> Result<Option<bool>, Error> {
        texts(&[("suspended_reason", reason.as_deref().unwrap_or_default())])?;
        self.0
            .write(tx!(async move |cx| {
                // The row is locked before it is judged, so a form that is sent twice tells once.
                let is_suspended = match crate::accounts::lock_suspended(cx, id).await {
                    Ok(is_suspended) => is_suspended,
                    Err(Error::Missing { .. }) => return Ok(Change::Undo(None)),
                    Err(error) => return Err(error),
                };
                if is_suspended == reason.is_some() {
                    return Ok(Change::Undo(Some(false)));
                }
                crate::accounts::suspend(cx, id, reason.map(|reason| (reason, now)), Some(letter)).await?;
                Ok(Change::Keep(Some(true)))
            }))
            .await
    }
}
