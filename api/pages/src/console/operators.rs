//! Accounts for the staff: the list, the search, and one account.
//!
//! Invariant: rendered for the staff only; what changes an account is there for administrators.

use askama::Template;
use types::OperatorId;
use types::vocabulary::{ItemKind, StaffRole};

use super::moderation::HistoryLine;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;
use crate::words::StateMark;

/// `GET /console/operators`: accounts, newest first, or those that a text tells of.
#[derive(Debug, Template)]
#[template(path = "console/operators.html")]
pub struct AccountsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Text that is looked for; empty for all accounts.
    pub q: String,
    /// Rows of this page: the newest accounts first, or those that the text finds.
    pub rows: Vec<AccountRow>,
    /// Address of the accounts made before.
    pub next: Option<String>,
    /// Address of the newest; `None` where they are shown.
    pub first: Option<String>,
    /// True if there may be more that the text tells of.
    pub has_more: bool,
    /// True if the person is an administrator.
    pub is_administrator: bool,
}

/// Account, for a table row.
#[derive(Clone, Debug)]
pub struct AccountRow {
    /// Id of the operator.
    pub id: OperatorId,
    /// Name of the account.
    pub name: String,
    /// E-mail address of the account, confirmed or not.
    pub email: String,
    /// Time of the sign-up.
    pub since: Instant,
    /// True once the address is confirmed.
    pub is_confirmed: bool,
    /// Time of the suspension, while it is suspended.
    pub suspended_at: Option<Instant>,
    /// Role, if it is one of the staff.
    pub role: Option<StaffRole>,
    /// Number of agents.
    pub agents: u64,
    /// Number of datasets.
    pub datasets: u64,
    /// Number of published units.
    pub units: u64,
    /// Number of takedowns so far.
    pub takedowns: u64,
    /// Number of open reports of its items.
    pub reports: u64,
}

impl AccountRow {
    fn state(&self) -> &'static str {
        match (self.suspended_at, self.is_confirmed) {
            (Some(_), _) => "suspended",
            (None, false) => "e-mail not confirmed",
            (None, true) => "active",
        }
    }

    fn mark(&self) -> StateMark {
        match (self.suspended_at, self.is_confirmed) {
            (Some(_), _) => StateMark::Bad,
            (None, false) => StateMark::Off,
            (None, true) => StateMark::Ok,
        }
    }

    fn has(&self) -> String {
        match (self.datasets, self.units) {
            (0, 0) => "none".to_owned(),
            (datasets, 0) => crate::number::counted(datasets, "dataset", "datasets"),
            (0, units) => crate::number::counted(units, "write-up", "write-ups"),
            (datasets, units) => format!(
                "{}, {}",
                crate::number::counted(datasets, "dataset", "datasets"),
                crate::number::counted(units, "write-up", "write-ups")
            ),
        }
    }
}

/// `GET /console/operators/{id}`: an account. Forms: `POST /console/operators/{id}/suspend` with `reason` and `confirm`, and
/// `POST /console/operators/{id}/restore` with `reason`.
#[derive(Debug, Template)]
#[template(path = "console/operator.html")]
pub struct AccountPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Account that the page is about, with the numbers of its items.
    pub account: AccountRow,
    /// Reason of the suspension, while it is suspended.
    pub suspended_for: Option<String>,
    /// Version of the terms that it accepted.
    pub terms: String,
    /// Payout address in force.
    pub payout: Option<String>,
    /// True if the wallet of that address proved itself.
    pub is_payout_proved: bool,
    /// Versions of units that were rejected.
    pub rejected: u64,
    /// Shares that wait for a payout, in micro-USDC.
    pub payable: i64,
    /// Shares on hold, in micro-USDC.
    pub held: i64,
    /// Bought credits, in micro-USDC.
    pub credits: i64,
    /// Trial credit, in micro-USDC.
    pub given: i64,
    /// Agents, oldest first.
    pub agents: Vec<AccountAgent>,
    /// Items, newest first.
    pub items: Vec<AccountItemRow>,
    /// Events, the latest first.
    pub history: Vec<HistoryLine>,
    /// True if the person is an administrator.
    pub is_administrator: bool,
    /// True if it is the account of the person, or one of the staff, which nobody suspends here.
    pub is_staff: bool,
    /// Suspension as it was typed.
    pub form: SuspensionForm,
}

/// Suspension, or its end, as it was typed.
#[derive(Clone, Debug, Default)]
pub struct SuspensionForm {
    /// Reason as typed.
    pub reason: String,
    /// Name of the account as typed.
    pub confirm: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Agent of an account.
#[derive(Clone, Debug)]
pub struct AccountAgent {
    /// Name of the agent.
    pub name: String,
    /// Time of the creation.
    pub since: Instant,
    /// Number of keys that work.
    pub keys: u64,
    /// Time of its removal.
    pub removed_at: Option<Instant>,
}

/// Item of an account.
#[derive(Clone, Debug)]
pub struct AccountItemRow {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Title of the item.
    pub title: String,
    /// Address of the item.
    pub href: String,
    /// True while it is down.
    pub is_down: bool,
    /// True if its operator ended it.
    pub is_ended: bool,
    /// True if nobody else sees it.
    pub is_private: bool,
    /// Number of sales.
    pub sold: u64,
    /// Time at which it was made.
    pub at: Instant,
}

impl AccountItemRow {
    fn kind_word(&self) -> &'static str {
        match self.kind {
            ItemKind::Unit => "write-up",
            ItemKind::Dataset => "dataset",
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self { is_down: true, .. } => "down",
            Self {
                is_ended: true,
                kind: ItemKind::Unit,
                ..
            } => "retired",
            Self { is_ended: true, .. } => "archived",
            Self {
                is_private: true,
                kind: ItemKind::Unit,
                ..
            } => "not published",
            Self { is_private: true, .. } => "private",
            Self { .. } => "published",
        }
    }

    fn mark(&self) -> StateMark {
        if self.is_down {
            StateMark::Bad
        } else if self.is_ended || self.is_private {
            StateMark::Off
        } else {
            StateMark::Ok
        }
    }
}
