//! Events about what leaves the treasury, about units, proved wallets and charges that are given back.

use std::collections::BTreeMap;

use pay::{AccountKind, Event};
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{LedgerEventId, OperatorId, PaymentId};

use super::super::fixture::{World, at};
use super::super::knowledge;
use super::super::money::{ASSET, merge, resolve};
use super::model::{Buyer, Item, Outgoing, Sold};
use super::{Play, THRESHOLD, WALLETS};
use crate::money::{Posted, Posting, post};
use crate::writer::Change;
use crate::{DisputeResolution, DisputeResolved, NewPayout, NewUnit, PayoutPicked, SaleState, WalletRefund};

/// Returns what makes units of a seller.
fn units(seller: World) -> knowledge::World {
    let author = (seller.agent, seller.operator);
    knowledge::World { author, reader: author }
}

impl Play {
    pub(super) async fn resolve(&mut self, now: i64) {
        if self.disputes.is_empty() {
            return;
        }
        let (id, number) = self.disputes.swap_remove(self.dice.index(self.disputes.len()));
        let Sold { sale, buyer, adopted } = self.model.sold[number].clone();
        let refund = PaymentId::new(at(now)).to_string();
        let refunds = self.dice.one_in(2);
        // An operator that has proved a wallet may have its money as credits.
        let is_credited = adopted.is_some() && self.dice.one_in(2);
        let to_wallet = (matches!(buyer, Buyer::Wallet(_)) && !is_credited).then(|| WalletRefund {
            nonce: format!("nonce of {refund}"),
            id: refund.clone(),
            event: LedgerEventId::new(at(now)),
        });
        let is_wallets = to_wallet.is_some();
        let resolution = if refunds {
            DisputeResolution::Refund { wallet: to_wallet }
        } else {
            DisputeResolution::Release
        };
        let resolved = resolve(&self.store, id, resolution.clone(), now).await;
        if refunds && is_wallets && self.model.uncommitted() < sale.price.0 {
            assert_eq!(resolved, DisputeResolved::Uncovered);
            self.disputes.push((id, number));
            self.saw("refund that the treasury does not cover");
            return;
        }
        assert!(matches!(resolved, DisputeResolved::Resolved(_)), "{resolved:?}");
        if self.dice.one_in(20) {
            assert_eq!(resolve(&self.store, id, resolution, now).await, DisputeResolved::Ended);
        }
        let is_trial = sale.paid_with == PaidWith::Given;
        if !is_trial {
            self.model.add(AccountKind::Disputed, sale.seller, -sale.share.0);
        }
        let state = match (refunds, is_trial) {
            (true, true) => SaleState::TrialRefunded,
            (true, false) => SaleState::Refunded,
            (false, true) => SaleState::Trial,
            (false, false) if sale.release_at > at(now) => SaleState::Held,
            (false, false) => SaleState::Payable,
        };
        self.model.sold[number].sale.state = state;
        let operator = match buyer {
            Buyer::Operator(operator) => Some(operator),
            Buyer::Wallet(_) => adopted,
        };
        match (state, operator) {
            (SaleState::TrialRefunded, Some(buyer)) => {
                self.model.add(AccountKind::Given, buyer, sale.price.0);
                self.saw("refund of a trial sale");
            }
            (SaleState::Refunded, Some(buyer)) if !is_wallets => {
                self.model.add(AccountKind::Credits, buyer, sale.price.0);
                self.saw("refund to credits");
            }
            (SaleState::Refunded, _) => {
                self.queue_refund(refund, sale.price.0);
                self.saw("refund to a wallet");
            }
            (SaleState::Held, _) => self.model.hold(number, &sale),
            (SaleState::Payable, _) => self.model.add(AccountKind::Payable, sale.seller, sale.share.0),
            _ => {}
        }
    }

    pub(super) fn queue_refund(&mut self, id: String, amount: i64) {
        self.model.refunds += amount;
        self.model.outgoing.push(Outgoing {
            id,
            operator: None,
            amount,
        });
    }

    pub(super) async fn pick(&mut self, now: i64) {
        let payable = self.store.money().payable(ASSET, MicroUsdc(THRESHOLD), at(now)).await;
        let payable = payable.unwrap();
        let found: BTreeMap<_, _> = payable.iter().map(|due| (due.operator, due.amount.0)).collect();
        let is_open = |seller| self.model.outgoing.iter().any(|open| open.operator == Some(seller));
        let due = self.sellers.iter().map(|seller| seller.operator);
        let due = due.map(|seller| (seller, self.model.of(AccountKind::Payable, seller)));
        let due: BTreeMap<_, _> = due
            .filter(|(seller, amount)| *amount >= THRESHOLD && !is_open(*seller))
            .collect();
        assert_eq!(found, due);
        for payable in payable {
            let id = PaymentId::new(at(now)).to_string();
            let (operator, amount) = (payable.operator, payable.amount.0);
            let new = NewPayout {
                nonce: format!("nonce of {id}"),
                id: id.clone(),
                asset: ASSET.to_owned(),
                payable,
                now: at(now),
            };
            let picked = self.store.money().payout_pick(new).await.unwrap();
            if self.model.uncommitted() < amount {
                assert_eq!(picked, PayoutPicked::Uncovered);
                continue;
            }
            assert_eq!(picked, PayoutPicked::Picked);
            self.model.add(AccountKind::Payable, operator, -amount);
            self.model.add(AccountKind::PayoutPending, operator, amount);
            let operator = Some(operator);
            self.model.outgoing.push(Outgoing { id, operator, amount });
        }
    }

    pub(super) async fn finish(&mut self, now: i64) {
        // The chain pays nothing that the treasury has not.
        let treasury = self.model.treasury;
        let is_covered = |open: &Outgoing| open.amount <= treasury;
        let Some(number) = self.model.outgoing.iter().position(is_covered) else {
            return;
        };
        let Outgoing { id, operator, amount } = self.model.outgoing.swap_remove(number);
        let money = self.store.money();
        let is_paid = operator.is_none() || !self.dice.one_in(4);
        let booked = if is_paid {
            money.payout_done(&id, "0xab", at(now)).await.unwrap()
        } else {
            money.payout_failed(&id, 0, at(now)).await.unwrap()
        };
        assert!(booked);
        if self.dice.one_in(20) {
            assert!(!money.payout_done(&id, "0xab", at(now)).await.unwrap());
        }
        if is_paid {
            self.model.treasury -= amount;
        }
        if let Some(operator) = operator {
            self.model.add(AccountKind::PayoutPending, operator, -amount);
            if !is_paid {
                self.model.add(AccountKind::Payable, operator, amount);
            }
            self.saw(if is_paid { "payout" } else { "payout that failed" });
        } else {
            self.model.refunds -= amount;
            self.saw("refund that was paid");
        }
    }

    /// Publishes a version of a dataset, or revises a unit.
    pub(super) async fn publish(&mut self, item: usize) {
        let item = &mut self.items[item];
        item.version += 1;
        match item.unit {
            None => {
                let id = item.id.parse().unwrap();
                merge(&self.store, item.seller, id, item.version).await;
            }
            Some(latest) => {
                let (chain, text) = (item.id.parse().unwrap(), format!("{} {}", item.id, item.version));
                let new = units(item.seller).revision(chain, latest, &text);
                let revision = knowledge::submitted(&self.store, new).await;
                let outcome = vec![knowledge::published(revision, 80)];
                assert_eq!(knowledge::apply(&self.store, outcome).await, [true]);
                item.unit = Some(revision);
            }
        }
    }

    /// Publishes a first version of a unit, and returns the item.
    pub(super) async fn unit(&self, seller: World, name: &str, price: i64, trial: bool) -> Item {
        let new = NewUnit {
            price_micro: Some(price),
            trial_sale: trial,
            ..units(seller).version(name)
        };
        let id = knowledge::submitted(&self.store, new).await;
        let outcome = vec![knowledge::published(id, 80)];
        assert_eq!(knowledge::apply(&self.store, outcome).await, [true]);
        Item {
            id: id.to_string(),
            kind: ItemKind::Unit,
            unit: Some(id),
            seller,
            price,
            trial,
            version: 1,
        }
    }

    /// Gives what a wallet has bought to an operator, who has proved it.
    pub(super) async fn adopt(&mut self, operator: OperatorId) {
        let payer = self.dice.roll(WALLETS / 2);
        let operator = *self.proved.entry(payer).or_insert(operator);
        let (wallet, buyer) = (format!("eip155:84532:0x{payer:040x}"), Buyer::wallet(payer));
        let adopted = self.store.money().adopt_wallet(&wallet, operator).await.unwrap();
        assert_eq!(adopted, self.model.adopt(&buyer, operator));
        if adopted > 0 {
            self.saw("purchases that an operator adopts");
        }
    }

    /// Gives a part of the charges back, or tries to give more than they were.
    pub(super) async fn refund_usage(&mut self, operator: OperatorId) {
        if self.model.usage == 0 {
            return;
        }
        let most = self.model.usage + self.model.usage / 4;
        let amount = self.dice.amount(most.unsigned_abs());
        let event = Event::usage_refund(&format!("u{}", self.step), operator, MicroUsdc(amount));
        let posted = self.post(event.clone()).await;
        if amount > self.model.usage {
            assert!(matches!(posted, Posted::Short(_)), "{posted:?}");
            return;
        }
        assert_eq!(posted, Posted::Done);
        self.model.usage -= amount;
        self.model.add(AccountKind::Credits, operator, amount);
        self.saw("charge that is given back");
        if self.dice.one_in(20) {
            assert_eq!(self.post(event).await, Posted::Repeated);
        }
    }

    async fn post(&self, event: Event) -> Posted {
        let now = at(self.step);
        let posted = self.store.write_aside(move |cx| {
            Box::pin(async move {
                let posting = Posting {
                    id: LedgerEventId::new(now),
                    asset: ASSET,
                    event: &event,
                    at: now,
                    subject: "",
                    actor: "",
                };
                let posted = post(cx, &posting).await?;
                Ok(match posted {
                    Posted::Done => Change::Keep(posted),
                    _ => Change::Undo(posted),
                })
            })
        });
        posted.await.unwrap()
    }
}
