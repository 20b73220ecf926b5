//! Money: the ledger, sales, entitlements, disputes, and what storage and egress cost.
//!
//! Invariant: a balance changes only by `post`, together with the rows that prove it. No statement reads a balance and
//! writes it later.

mod approvals;
mod archive;
mod check;
mod disputes;
mod entitlements;
#[cfg(feature = "faults")]
mod faults;
mod grants;
mod item_sales;
mod items;
mod journal;
mod library;
mod payments;
mod payouts;
mod post;
mod purchase;
mod receipts;
mod release;
mod sales;
mod seals;
mod seller;
mod spending;
mod statement;
mod steps;
mod treasury;
mod usage;
mod view;

pub use approvals::{
    APPROVAL_LASTS, APPROVAL_LETTERS_A_DAY, ApprovalLetter, Approved, DeniedApproval, MAX_WAITING_APPROVALS, NewNo,
    NewPersonAsk, NewPurchaseAsk, NewYes, PersonAsked, PurchaseApproval,
};
pub use archive::{ArchiveProof, LedgerMovement, MonthArchived};
pub use check::{CheckTerms, MoneyFault};
pub use disputes::{
    DISPUTE_ANSWER_WINDOW, Dispute, DisputeDecision, DisputeLetters, DisputeOpened, DisputeOpener, DisputeReplied,
    DisputeResolved, DisputeSide, DisputedSale, NewDispute, Resolution as DisputeResolution,
};
pub use grants::{Granted, NewGrant};
pub use item_sales::{CountOfDay, ItemOfSeller, ItemSums};
pub use items::{ItemName, Offer};
pub use journal::{Entry, EntryCursor, EntryFilter};
pub use library::{LibraryFilter, LibraryOrder, OwnedItem};
pub use payments::{Settled, Settlement, WalletRefund};
pub use payouts::{NewPayout, Payable, PayoutPicked, PayoutRow, PayoutState};
pub use purchase::{NewPurchase, Purchased, SaleTerms};
pub use receipts::{PaymentReceiptText, SaleFacts};
pub use sales::{Sale, SaleState};
pub use seals::{ClosedDay, Seal, SealedMovement};
pub use seller::{DayOfSales, ListedSale, SoldFilter, SoldItem, SpentCredits};
pub use spending::{SpendCapped, SpendLimits, SpendOwner, Spender, Spending};
pub use statement::StatementLine;
pub use treasury::{NewDeposit, Treasury};
pub use usage::{EgressLease, EgressLeased, StorageCharged};
pub use view::{Balances, Bought, Seller};

pub(crate) use items::price_set;
#[cfg(any(test, feature = "testing"))]
pub(crate) use post::{Posted, Posting, post};
pub(crate) use spending::set as set_limits;

use crate::Store;

/// The part of the database about money.
#[derive(Clone, Copy, Debug)]
pub struct Money<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about money.
    pub const fn money(&self) -> Money<'_> {
        Money(self)
    }
}
