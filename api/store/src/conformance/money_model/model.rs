//! Balances, sales and payouts as they must be, in memory.
//!
//! Invariant: nothing is read from the store but the ids and times of its sales.

use std::collections::{BTreeMap, BTreeSet};

use pay::AccountKind;
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{OperatorId, Timestamp, UnitId};

use super::super::fixture::World;
use super::super::money::terms;
use crate::{Balances, Sale, SaleState};

/// Numbers that only look random, so that a failure repeats.
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        // Numbers of Knuth's MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub(super) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub(super) fn amount(&mut self, most: u64) -> i64 {
        i64::try_from(self.roll(most)).unwrap() + 1
    }

    pub(super) fn index(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Buyer {
    Operator(OperatorId),
    Wallet(String),
}

impl Buyer {
    pub(super) fn wallet(number: u64) -> Self {
        Self::Wallet(format!("0x{number:040x}"))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) kind: ItemKind,
    /// Latest version of a unit.
    pub(super) unit: Option<UnitId>,
    pub(super) seller: World,
    pub(super) price: i64,
    pub(super) trial: bool,
    pub(super) version: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Sold {
    pub(super) sale: Sale,
    pub(super) buyer: Buyer,
    /// Operator that has proved the wallet that bought.
    pub(super) adopted: Option<OperatorId>,
}

/// Payout of an operator, or refund to a wallet, that is not over.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) id: String,
    pub(super) operator: Option<OperatorId>,
    pub(super) amount: i64,
}

/// A model of the balances in memory.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) balances: BTreeMap<(AccountKind, OperatorId), i64>,
    pub(super) treasury: i64,
    pub(super) refunds: i64,
    /// Charges that were not given back.
    pub(super) usage: i64,
    pub(super) sold: Vec<Sold>,
    /// Sales by buyer and item.
    pub(super) of_buyers: BTreeMap<(Buyer, String), Vec<usize>>,
    /// Sales on hold by seller, first released first.
    pub(super) held: BTreeMap<OperatorId, BTreeSet<(Timestamp, usize)>>,
    pub(super) outgoing: Vec<Outgoing>,
}

impl Model {
    pub(super) fn of(&self, kind: AccountKind, operator: OperatorId) -> i64 {
        self.balances.get(&(kind, operator)).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, kind: AccountKind, operator: OperatorId, amount: i64) {
        let balance = self.balances.entry((kind, operator)).or_default();
        *balance += amount;
        assert!(*balance >= 0, "the model has {balance} of {kind:?}");
    }

    /// Returns the highest version that a buyer may read, or 0. A unit is sold with every version.
    pub(super) fn unlocked(&self, buyer: &Buyer, item: &Item) -> u64 {
        let sales = self.of_buyers.get(&(buyer.clone(), item.id.clone()));
        let sales = sales.into_iter().flatten().map(|number| &self.sold[*number].sale);
        let live = sales.filter(|sale| !matches!(sale.state, SaleState::Refunded | SaleState::TrialRefunded));
        let unlocks = |sale: &Sale| match item.kind {
            ItemKind::Unit => item.version,
            ItemKind::Dataset => sale.version,
        };
        live.map(unlocks).max().unwrap_or(0)
    }

    /// Gives the sales to a wallet that stand and belong to no operator to one, and returns their number.
    pub(super) fn adopt(&mut self, wallet: &Buyer, operator: OperatorId) -> u64 {
        let mut adopted = 0;
        for (number, sold) in self.sold.iter_mut().enumerate() {
            let is_free = sold.buyer == *wallet && sold.adopted.is_none();
            if is_free && sold.sale.state != SaleState::Refunded {
                sold.adopted = Some(operator);
                let key = (Buyer::Operator(operator), sold.sale.item.clone());
                self.of_buyers.entry(key).or_default().push(number);
                adopted += 1;
            }
        }
        adopted
    }

    pub(super) fn sell(&mut self, sale: Sale, buyer: Buyer, adopted: Option<OperatorId>, item: &Item) {
        let number = self.sold.len();
        assert_eq!((sale.price.0, sale.version), (item.price, item.version));
        if sale.paid_with == PaidWith::Given {
            assert_eq!((sale.share.0, sale.fee.0, sale.state), (0, 0, SaleState::Trial));
        } else {
            let split = terms().fee.split(sale.price);
            assert_eq!(
                (sale.share, sale.fee, sale.state),
                (split.share, split.fee, SaleState::Held)
            );
            self.hold(number, &sale);
        }
        let key = (buyer.clone(), sale.item.clone());
        self.of_buyers.entry(key).or_default().push(number);
        if let Some(operator) = adopted {
            let key = (Buyer::Operator(operator), sale.item.clone());
            self.of_buyers.entry(key).or_default().push(number);
        }
        self.sold.push(Sold { sale, buyer, adopted });
    }

    pub(super) fn hold(&mut self, number: usize, sale: &Sale) {
        self.add(AccountKind::Held, sale.seller, sale.share.0);
        let held = self.held.entry(sale.seller).or_default();
        held.insert((sale.release_at, number));
    }

    /// Releases what is due, and returns the number of sales.
    pub(super) fn release(&mut self, now: Timestamp) -> u64 {
        let mut released = Vec::new();
        for held in self.held.values_mut() {
            let later = held.split_off(&(now, usize::MAX));
            released.extend(std::mem::replace(held, later));
        }
        for (_, number) in &released {
            let sale = &mut self.sold[*number].sale;
            sale.state = SaleState::Payable;
            let (seller, share) = (sale.seller, sale.share.0);
            self.add(AccountKind::Held, seller, -share);
            self.add(AccountKind::Payable, seller, share);
        }
        released.len() as u64
    }

    /// Returns what is left of the treasury beside what is on its way out.
    pub(super) fn uncommitted(&self) -> i64 {
        let pending = self
            .balances
            .iter()
            .filter(|((kind, _), _)| *kind == AccountKind::PayoutPending);
        self.treasury - self.refunds - pending.map(|(_, amount)| amount).sum::<i64>()
    }

    pub(super) fn balances(&self, operator: OperatorId) -> Balances {
        let of = |kind| MicroUsdc(self.of(kind, operator));
        Balances {
            credits: of(AccountKind::Credits),
            given: of(AccountKind::Given),
            held: of(AccountKind::Held),
            payable: of(AccountKind::Payable),
            disputed: of(AccountKind::Disputed),
            payout_pending: of(AccountKind::PayoutPending),
        }
    }
}
