//! Disputes of sales: the list of both sides, one dispute, and the forms that open, answer and decide one.
//!
//! Invariant: a page says who decides and what a step moves, before the step. No page says that time decides.

use std::borrow::Borrow;

use askama::Template;
use types::money::MicroUsdc;
use types::vocabulary::{DisputeState, ItemKind};
use types::{DisputeId, SaleId, Timestamp};

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;
use crate::words::StateMark;

/// Reader of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisputeReader {
    /// The person whose account bought.
    Buyer,
    /// The person whose account sold.
    Seller,
    /// The administrator of the service, on neither side.
    Administrator,
}

/// A dispute as one of its readers sees it.
#[derive(Clone, Debug)]
pub struct DisputeView {
    /// Id of the dispute.
    pub id: DisputeId,
    /// Id of the sale.
    pub sale: SaleId,
    /// Reader of the page.
    pub reader: DisputeReader,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Title of the item; empty where it is erased.
    pub title: String,
    /// Address of the item.
    pub href: String,
    /// Number of the version that was sold.
    pub version: u64,
    /// Price that was paid.
    pub price: MicroUsdc,
    /// Share of the seller; nothing of a sale for trial credit.
    pub share: MicroUsdc,
    /// True if the sale was paid with trial credit.
    pub is_trial: bool,
    /// Time of the sale.
    pub sold_at: Timestamp,
    /// Time of the opening.
    pub opened_at: Timestamp,
    /// True if an administrator opened it, and not the buyer.
    pub is_opened_by_administrator: bool,
    /// Instant until which the seller is asked to answer.
    pub due: Option<Timestamp>,
    /// Words of the buyer.
    pub reason: String,
    /// Words of the seller, with their time.
    pub reply: Option<(Timestamp, String)>,
    /// State of the dispute.
    pub state: DisputeState,
    /// Time of the end.
    pub ended_at: Option<Timestamp>,
    /// True if the seller gave the price back, and not an administrator.
    pub is_given_back: bool,
    /// Words of the decision; may be empty.
    pub decision: String,
}

impl DisputeView {
    pub(crate) fn is_open(&self) -> bool {
        self.state == DisputeState::Open
    }

    /// Returns true if it ended for the seller.
    pub(crate) fn stands(&self) -> bool {
        self.state == DisputeState::Released
    }

    /// Returns true if the reader is asked for an answer.
    pub fn asks(&self) -> bool {
        self.is_open() && self.reader == DisputeReader::Seller && self.reply.is_none()
    }

    pub(crate) fn is_seller(&self) -> bool {
        self.reader == DisputeReader::Seller
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.reader == DisputeReader::Administrator
    }

    /// Returns the title, or words for one that is erased.
    pub(crate) fn shown_title(&self) -> &str {
        if self.title.is_empty() {
            "An item whose text was erased"
        } else {
            &self.title
        }
    }

    /// Returns the kind of the item in plain words.
    pub(crate) fn what(&self) -> String {
        match self.kind {
            ItemKind::Dataset => format!("dataset, v{}", crate::number::grouped(self.version)),
            ItemKind::Unit => "write-up".to_owned(),
        }
    }

    /// Returns the side of the reader in words.
    pub(crate) const fn side(&self) -> &'static str {
        match self.reader {
            DisputeReader::Buyer => "you bought it",
            DisputeReader::Seller => "you sold it",
            DisputeReader::Administrator => "two other accounts",
        }
    }

    /// Returns the words and the mark of its state at an instant.
    pub(crate) fn status(&self, now: Instant) -> (String, StateMark) {
        let buyer = self.reader == DisputeReader::Buyer;
        match self.state {
            DisputeState::Open if self.reply.is_some() => {
                let words = if self.is_administrator() {
                    "decide"
                } else {
                    "waits for a decision"
                };
                (words.to_owned(), StateMark::Live)
            }
            DisputeState::Open => {
                let is_late = self.due.is_some_and(|due| due.micros() <= now.0);
                let due = self.due.map(|due| Instant(due.micros()).text("%-d %b, %H:%M UTC"));
                let due = due.unwrap_or_default();
                match (self.is_seller(), is_late) {
                    (true, false) => (format!("answer until {due}"), StateMark::Bad),
                    (true, true) => (format!("answer was due {due}"), StateMark::Bad),
                    (false, false) => (format!("seller asked until {due}"), StateMark::Hold),
                    (false, true) => ("seller has not answered".to_owned(), StateMark::Hold),
                }
            }
            DisputeState::Refunded if buyer => ("given back to you".to_owned(), StateMark::Ok),
            DisputeState::Refunded => ("given back to the buyer".to_owned(), StateMark::Off),
            DisputeState::Released if buyer => ("the sale stands".to_owned(), StateMark::Off),
            DisputeState::Released => ("the sale stands".to_owned(), StateMark::Ok),
        }
    }

    /// Returns the class of the mark of its state.
    pub(crate) fn mark(&self, now: impl Borrow<Instant>) -> &'static str {
        self.status(*now.borrow()).1.class()
    }

    /// Returns the words of its state.
    pub(crate) fn words(&self, now: impl Borrow<Instant>) -> String {
        self.status(*now.borrow()).0
    }
}

/// Disputes of an account, as a part of a page.
#[derive(Clone, Debug)]
pub struct DisputesPart {
    /// Disputes that are open, newest first.
    pub open: Vec<DisputeView>,
    /// Disputes that have ended, newest first.
    pub ended: Vec<DisputeView>,
    /// Time after a sale in which it can be disputed, in words.
    pub window: String,
}

impl DisputesPart {
    /// Returns disputes in two lists, with the time in which a sale can be disputed.
    pub fn of(disputes: impl IntoIterator<Item = DisputeView>, window: String) -> Self {
        let (open, ended) = disputes.into_iter().partition(DisputeView::is_open);
        Self { open, ended, window }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.open.is_empty() && self.ended.is_empty()
    }
}

/// Page at `GET /console/disputes`.
#[derive(Debug, Template)]
#[template(path = "console/disputes-page.html")]
pub struct DisputesPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Disputes of what the account sold and bought.
    pub disputes: DisputesPart,
    /// Disputes of all accounts that nobody has decided, for the administrator.
    pub to_decide: Option<Vec<DisputeView>>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

impl DisputesPage {
    fn first(&self) -> Option<&'static str> {
        self.is_later.then_some("/console/disputes")
    }
}

/// Page at `GET /console/disputes/{id}`, with the forms `POST …/answer` (`answer`) for the seller, and links to those that end
/// it.
#[derive(Debug, Template)]
#[template(path = "console/dispute.html")]
pub struct DisputePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Dispute and its sale, as the reader may see them.
    pub dispute: DisputeView,
    /// True if the reader decides, on whichever side.
    pub decides: bool,
    /// Answer, as typed.
    pub answer: String,
    /// Rules that the answer breaks.
    pub errors: Vec<FieldError>,
}

/// Page at `GET /console/sales/{id}/dispute`, with a form to `POST` at the same address: `reason`.
#[derive(Debug, Template)]
#[template(path = "console/dispute-open.html")]
pub struct OpenDisputePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Id of the sale.
    pub sale: SaleId,
    /// Title of the item; empty where it is erased.
    pub title: String,
    /// Address of the item.
    pub href: String,
    /// Price that was paid.
    pub price: MicroUsdc,
    /// Time of the sale.
    pub sold_at: Timestamp,
    /// Instant until which it can be disputed; `None` once that is over.
    pub until: Option<Timestamp>,
    /// Reason, as typed.
    pub reason: String,
    /// Rules that the reason breaks.
    pub errors: Vec<FieldError>,
}

impl OpenDisputePage {
    fn shown_title(&self) -> &str {
        if self.title.is_empty() {
            "An item whose text was erased"
        } else {
            &self.title
        }
    }
}

/// Page at `GET /console/disputes/{id}/decide`, with a form to `POST` at the same address: `end` (`refund` or `release`) and
/// `words`.
#[derive(Debug, Template)]
#[template(path = "console/dispute-decide.html")]
pub struct DecideDisputePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Dispute and its sale, which the form decides.
    pub dispute: DisputeView,
    /// End that is chosen in the form.
    pub end: Option<DisputeState>,
    /// Words for both sides, as typed.
    pub words: String,
    /// Rules that the decision breaks.
    pub errors: Vec<FieldError>,
}
