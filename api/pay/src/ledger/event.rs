//! Events of the ledger and their movements.
//!
//! Invariant: an event is made by a function here only, so each kind has one shape.

use types::OperatorId;
use types::money::MicroUsdc;

use super::{Account, AccountKind as Kind, MovementLine};
use crate::Split;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// A pack of credits was bought.
    Pack,
    /// An admin granted credits.
    Grant,
    /// Credits were given, for trial sales.
    Given,
    /// An item was sold for bought credits or by x402.
    Sale,
    /// An item was sold for given credits.
    TrialSale,
    /// Shares became payable.
    Release,
    /// A sale was disputed.
    DisputeOpen,
    /// A dispute ended for the seller.
    DisputeLost,
    /// A dispute ended for the buyer.
    DisputeWon,
    /// A payout was picked.
    PayoutPick,
    /// A payout was paid.
    PayoutDone,
    /// A payout was given up.
    PayoutFailed,
    /// A refund to a wallet was paid.
    RefundDone,
    /// A day of storage was charged.
    StorageDay,
    /// A block of egress was charged.
    EgressBlock,
    /// A charge was given back.
    UsageRefund,
    /// Money came without a known purchase.
    Unmatched,
    /// Such money got its place.
    Assigned,
}

/// Pairs of kinds of accounts, debit and credit, that the movements of an event have.
type Pairs = &'static [(Kind, Kind)];

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Pack,
        Self::Grant,
        Self::Given,
        Self::Sale,
        Self::TrialSale,
        Self::Release,
        Self::DisputeOpen,
        Self::DisputeLost,
        Self::DisputeWon,
        Self::PayoutPick,
        Self::PayoutDone,
        Self::PayoutFailed,
        Self::RefundDone,
        Self::StorageDay,
        Self::EgressBlock,
        Self::UsageRefund,
        Self::Unmatched,
        Self::Assigned,
    ];

    /// Returns the word of the kind, as it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Grant => "grant",
            Self::Given => "given",
            Self::Sale => "sale",
            Self::TrialSale => "trial_sale",
            Self::Release => "release",
            Self::DisputeOpen => "dispute_open",
            Self::DisputeLost => "dispute_lost_by_buyer",
            Self::DisputeWon => "dispute_won_by_buyer",
            Self::PayoutPick => "payout_pick",
            Self::PayoutDone => "payout_done",
            Self::PayoutFailed => "payout_failed",
            Self::RefundDone => "refund_done",
            Self::StorageDay => "storage_day",
            Self::EgressBlock => "egress_block",
            Self::UsageRefund => "usage_refund",
            Self::Unmatched => "unmatched",
            Self::Assigned => "assigned",
        }
    }

    /// Returns the kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns true if an event of this kind may move an amount from `debit` to `credit`.
    pub fn allows(self, debit: Kind, credit: Kind) -> bool {
        let pairs: Pairs = match self {
            Self::Pack => &[(Kind::Treasury, Kind::Credits)],
            Self::Grant => &[(Kind::Subsidy, Kind::Credits)],
            Self::Given => &[(Kind::GivenSource, Kind::Given)],
            Self::Sale => &[
                (Kind::Credits, Kind::Held),
                (Kind::Credits, Kind::Fees),
                (Kind::Treasury, Kind::Held),
                (Kind::Treasury, Kind::Fees),
            ],
            Self::TrialSale => &[(Kind::Given, Kind::GivenSource)],
            Self::Release => &[(Kind::Held, Kind::Payable)],
            Self::DisputeOpen => &[(Kind::Held, Kind::Disputed)],
            Self::DisputeLost => &[(Kind::Disputed, Kind::Held), (Kind::Disputed, Kind::Payable)],
            Self::DisputeWon => &[
                (Kind::Disputed, Kind::Credits),
                (Kind::Fees, Kind::Credits),
                (Kind::Disputed, Kind::RefundPending),
                (Kind::Fees, Kind::RefundPending),
                (Kind::GivenSource, Kind::Given),
            ],
            Self::PayoutPick => &[(Kind::Payable, Kind::PayoutPending)],
            Self::PayoutDone => &[(Kind::PayoutPending, Kind::Treasury)],
            Self::PayoutFailed => &[(Kind::PayoutPending, Kind::Payable)],
            Self::RefundDone => &[(Kind::RefundPending, Kind::Treasury)],
            Self::StorageDay | Self::EgressBlock => &[(Kind::Credits, Kind::Usage)],
            Self::UsageRefund => &[(Kind::Usage, Kind::Credits)],
            Self::Unmatched => &[(Kind::Treasury, Kind::Suspense)],
            Self::Assigned => &[
                (Kind::Suspense, Kind::Credits),
                (Kind::Suspense, Kind::RefundPending),
                (Kind::Suspense, Kind::Subsidy),
            ],
        };
        pairs.contains(&(debit, credit))
    }
}

/// Event of the ledger, with its movements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// Key of the event: a kind and key happens once.
    pub key: String,
    /// Movements; none of them is zero.
    pub lines: Vec<MovementLine>,
}

impl Event {
    fn new(kind: EventKind, key: impl Into<String>, lines: &[(Account, Account, MicroUsdc)]) -> Self {
        // A price below the first bracket has no fee, and a movement of zero would be refused by the
        // database.
        let lines = lines.iter().filter(|(_, _, amount)| amount.0 != 0);
        Self {
            kind,
            key: key.into(),
            lines: lines
                .map(|&(debit, credit, amount)| MovementLine { debit, credit, amount })
                .collect(),
        }
    }

    /// A pack of credits was bought; the key is the payment.
    pub fn pack(payment: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (Account::TREASURY, Account::of(Kind::Credits, operator), amount);
        Self::new(EventKind::Pack, payment, &[line])
    }

    /// An admin granted credits.
    pub fn grant(reference: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (Account::SUBSIDY, Account::of(Kind::Credits, operator), amount);
        Self::new(EventKind::Grant, reference, &[line])
    }

    /// Credits were given, for trial sales.
    pub fn given(reference: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (Account::GIVEN_SOURCE, Account::of(Kind::Given, operator), amount);
        Self::new(EventKind::Given, reference, &[line])
    }

    /// An item was sold for bought credits.
    pub fn sale(sale: &str, buyer: OperatorId, seller: OperatorId, split: Split) -> Self {
        Self::sale_from(sale, Account::of(Kind::Credits, buyer), seller, split)
    }

    /// An item was sold by x402.
    pub fn sale_by_x402(sale: &str, seller: OperatorId, split: Split) -> Self {
        Self::sale_from(sale, Account::TREASURY, seller, split)
    }

    fn sale_from(sale: &str, from: Account, seller: OperatorId, split: Split) -> Self {
        let lines = [
            (from, Account::of(Kind::Held, seller), split.share),
            (from, Account::FEES, split.fee),
        ];
        Self::new(EventKind::Sale, sale, &lines)
    }

    /// An item was sold for given credits: no fee, and nothing for the seller but points.
    pub fn trial_sale(sale: &str, buyer: OperatorId, price: MicroUsdc) -> Self {
        let line = (Account::of(Kind::Given, buyer), Account::GIVEN_SOURCE, price);
        Self::new(EventKind::TrialSale, sale, &[line])
    }

    /// The shares of a batch of sales became payable.
    pub fn release(batch: &str, seller: OperatorId, sum: MicroUsdc) -> Self {
        let line = (Account::of(Kind::Held, seller), Account::of(Kind::Payable, seller), sum);
        Self::new(EventKind::Release, batch, &[line])
    }

    /// A sale was disputed.
    pub fn dispute_open(dispute: &str, seller: OperatorId, share: MicroUsdc) -> Self {
        let line = (
            Account::of(Kind::Held, seller),
            Account::of(Kind::Disputed, seller),
            share,
        );
        Self::new(EventKind::DisputeOpen, dispute, &[line])
    }

    /// A dispute ended for the seller, within the window or after it.
    pub fn dispute_lost(dispute: &str, seller: OperatorId, share: MicroUsdc, within_window: bool) -> Self {
        // A dispute may outlast the window of its sale. The share then goes where the release would
        // have put it.
        let to = if within_window { Kind::Held } else { Kind::Payable };
        let line = (Account::of(Kind::Disputed, seller), Account::of(to, seller), share);
        Self::new(EventKind::DisputeLost, dispute, &[line])
    }

    /// A dispute ended for the buyer, who gets the price back as credits, or, without an account, to its wallet.
    pub fn dispute_won(dispute: &str, seller: OperatorId, buyer: Option<OperatorId>, split: Split) -> Self {
        let to = buyer.map_or(Account::REFUND_PENDING, |buyer| Account::of(Kind::Credits, buyer));
        let lines = [
            (Account::of(Kind::Disputed, seller), to, split.share),
            (Account::FEES, to, split.fee),
        ];
        Self::new(EventKind::DisputeWon, dispute, &lines)
    }

    /// A dispute of a trial sale ended for the buyer.
    pub fn trial_dispute_won(dispute: &str, buyer: OperatorId, price: MicroUsdc) -> Self {
        let line = (Account::GIVEN_SOURCE, Account::of(Kind::Given, buyer), price);
        Self::new(EventKind::DisputeWon, dispute, &[line])
    }

    /// A payout was picked.
    pub fn payout_pick(payout: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (
            Account::of(Kind::Payable, operator),
            Account::of(Kind::PayoutPending, operator),
            amount,
        );
        Self::new(EventKind::PayoutPick, payout, &[line])
    }

    /// A payout was paid.
    pub fn payout_done(payout: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (Account::of(Kind::PayoutPending, operator), Account::TREASURY, amount);
        Self::new(EventKind::PayoutDone, payout, &[line])
    }

    /// A payout was given up; its amount is payable again.
    pub fn payout_failed(payout: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (
            Account::of(Kind::PayoutPending, operator),
            Account::of(Kind::Payable, operator),
            amount,
        );
        Self::new(EventKind::PayoutFailed, payout, &[line])
    }

    /// A refund to a wallet was paid.
    pub fn refund_done(refund: &str, amount: MicroUsdc) -> Self {
        let line = (Account::REFUND_PENDING, Account::TREASURY, amount);
        Self::new(EventKind::RefundDone, refund, &[line])
    }

    /// A day of storage beyond the free bytes was charged.
    pub fn storage_day(operator: OperatorId, day: i64, amount: MicroUsdc) -> Self {
        let line = (Account::of(Kind::Credits, operator), Account::USAGE, amount);
        // The key names the day, so that a job that runs twice charges once.
        Self::new(EventKind::StorageDay, format!("{operator}:{day}"), &[line])
    }

    /// A block of egress beyond the free bytes was charged, the `number`th of the month.
    pub fn egress_block(operator: OperatorId, month: i64, number: i64, amount: MicroUsdc) -> Self {
        let line = (Account::of(Kind::Credits, operator), Account::USAGE, amount);
        Self::new(EventKind::EgressBlock, format!("{operator}:{month}:{number}"), &[line])
    }

    /// A charge was given back.
    pub fn usage_refund(reference: &str, operator: OperatorId, amount: MicroUsdc) -> Self {
        let line = (Account::USAGE, Account::of(Kind::Credits, operator), amount);
        Self::new(EventKind::UsageRefund, reference, &[line])
    }

    /// Money came without a known purchase; the key names the transfer on the chain.
    pub fn unmatched(transfer: &str, amount: MicroUsdc) -> Self {
        let line = (Account::TREASURY, Account::SUSPENSE, amount);
        Self::new(EventKind::Unmatched, transfer, &[line])
    }

    /// Money without a known purchase became credits of an operator, or, without one, a refund to a wallet.
    pub fn assigned(transfer: &str, operator: Option<OperatorId>, amount: MicroUsdc) -> Self {
        let to = operator.map_or(Account::REFUND_PENDING, |operator| Account::of(Kind::Credits, operator));
        Self::new(EventKind::Assigned, transfer, &[(Account::SUSPENSE, to, amount)])
    }

    /// Money without a known purchase was the platform's own deposit.
    pub fn assigned_to_platform(transfer: &str, amount: MicroUsdc) -> Self {
        // A deposit backs credits that were granted without money, so their counterpart falls.
        let line = (Account::SUSPENSE, Account::SUBSIDY, amount);
        Self::new(EventKind::Assigned, transfer, &[line])
    }
}
