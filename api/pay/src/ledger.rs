//! Accounts of the ledger, and the movements of each event.
//!
//! Invariant: a movement has one debit account, one credit account and a positive amount, so every sum is zero.

use std::fmt;

use types::OperatorId;
use types::money::MicroUsdc;

mod event;
#[cfg(test)]
mod tests;

pub use event::{Event, EventKind};

/// Side of an account. An entry on its own side raises the balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountSide {
    /// Account of assets: money that the platform has.
    Debit,
    /// Account of liabilities: money that the platform owes or has earned.
    Credit,
}

impl AccountSide {
    /// Returns the side as it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debit => "debit",
            Self::Credit => "credit",
        }
    }
}

/// Kind of an account. The order is that in which a change locks its accounts: the busiest come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
// The order of the variants is behaviour: it is the order of locks, and a new kind in the wrong place
// makes changes wait longer for the rows that everybody needs.
pub enum AccountKind {
    /// Bought credits of an operator.
    Credits,
    /// Given credits of an operator.
    Given,
    /// A seller's share within the dispute window.
    Held,
    /// A seller's share after it, not yet paid out.
    Payable,
    /// A seller's share of sales under dispute.
    Disputed,
    /// A seller's payout that was picked and is not confirmed.
    PayoutPending,
    /// Refunds to wallets on their way.
    RefundPending,
    /// Charges for storage and egress.
    Usage,
    /// Counterpart of given credits that are not spent.
    GivenSource,
    /// Credits that an admin granted.
    Subsidy,
    /// Money that came without a known purchase.
    Suspense,
    /// Fee of the platform.
    Fees,
    /// Test USDC on the chain.
    Treasury,
}

impl AccountKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Credits,
        Self::Given,
        Self::Held,
        Self::Payable,
        Self::Disputed,
        Self::PayoutPending,
        Self::RefundPending,
        Self::Usage,
        Self::GivenSource,
        Self::Subsidy,
        Self::Suspense,
        Self::Fees,
        Self::Treasury,
    ];

    /// Returns the word of the kind, as it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credits => "credits",
            Self::Given => "given",
            Self::Held => "held",
            Self::Payable => "payable",
            Self::Disputed => "disputed",
            Self::PayoutPending => "payout_pending",
            Self::RefundPending => "refund_pending",
            Self::Usage => "usage",
            Self::GivenSource => "promo",
            Self::Subsidy => "subsidy",
            Self::Suspense => "suspense",
            Self::Fees => "fees",
            Self::Treasury => "treasury",
        }
    }

    /// Returns the kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the side of the accounts of this kind.
    pub const fn side(self) -> AccountSide {
        match self {
            // Money that the platform has, and the counterparts of credits that it gave without money.
            // Everything else is owed to somebody or earned.
            Self::Treasury | Self::GivenSource | Self::Subsidy => AccountSide::Debit,
            _ => AccountSide::Credit,
        }
    }

    /// Returns true if each operator has an account of this kind.
    pub const fn is_of_operator(self) -> bool {
        matches!(
            self,
            Self::Credits | Self::Given | Self::Held | Self::Payable | Self::Disputed | Self::PayoutPending
        )
    }
}

/// Account of the ledger, without its asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    kind: AccountKind,
    operator: Option<OperatorId>,
}

impl Account {
    // Constants and not values that may be missing: the balance of no account would be taken for zero,
    // and no row would be locked.
    /// Refunds to wallets on their way.
    pub const REFUND_PENDING: Self = Self::platform(AccountKind::RefundPending);
    /// Charges for storage and egress.
    pub const USAGE: Self = Self::platform(AccountKind::Usage);
    /// Counterpart of given credits that are not spent.
    pub const GIVEN_SOURCE: Self = Self::platform(AccountKind::GivenSource);
    /// Credits that an admin granted.
    pub const SUBSIDY: Self = Self::platform(AccountKind::Subsidy);
    /// Money that came without a known purchase.
    pub const SUSPENSE: Self = Self::platform(AccountKind::Suspense);
    /// Fee of the platform.
    pub const FEES: Self = Self::platform(AccountKind::Fees);
    /// Test USDC on the chain.
    pub const TREASURY: Self = Self::platform(AccountKind::Treasury);

    /// Returns the account of an operator, or, for a kind that no operator has, the platform's.
    pub const fn of(kind: AccountKind, operator: OperatorId) -> Self {
        Self {
            kind,
            operator: if kind.is_of_operator() { Some(operator) } else { None },
        }
    }

    const fn platform(kind: AccountKind) -> Self {
        Self { kind, operator: None }
    }

    /// Returns the kind of the account.
    pub const fn kind(self) -> AccountKind {
        self.kind
    }

    /// Returns the operator of the account; `None` for one of the platform.
    pub const fn operator(self) -> Option<OperatorId> {
        self.operator
    }

    /// Returns the id under which the account is stored.
    pub fn id(self, asset: &str) -> String {
        format!("{asset}|{self}")
    }
}

/// Shows the account as it is stored, such as `held:{operator}` or `fees`.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        self.operator.map_or(Ok(()), |operator| write!(f, ":{operator}"))
    }
}

/// Movement of an amount: out of the debit side's view into the credit side's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovementLine {
    /// Account that is debited.
    pub debit: Account,
    /// Account that is credited.
    pub credit: Account,
    /// Amount, more than zero.
    pub amount: MicroUsdc,
}

impl MovementLine {
    /// Returns what the movement adds to the balance of an account: nothing to others than its two.
    pub fn effect(&self, account: Account) -> i64 {
        let on = |side| {
            if account.kind.side() == side {
                self.amount.0
            } else {
                -self.amount.0
            }
        };
        // No line has one account on both sides: each event names two kinds, so the first match is the
        // only one.
        if account == self.debit {
            on(AccountSide::Debit)
        } else if account == self.credit {
            on(AccountSide::Credit)
        } else {
            0
        }
    }
}
