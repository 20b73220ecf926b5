//! Events of money in any order, against a model in memory.

mod model;
mod more;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pay::{AccountKind, BLOCK_BYTES};
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{DisputeId, LedgerEventId, OperatorId, PaymentId, SaleId};

use self::model::{Buyer, Dice, Item, Model};
use super::fixture::{World, agent, at, mail, new_project, open, operator, project};
use super::money::{ASSET, FREE, balances, dispute, grant, paid_dataset, sound, terms};
use crate::{
    Bound, DisputeOpened, Doubtful, EgressLease, EgressLeased, Granted, NewPayment, NewPurchase, NewPurchaseAsk,
    PaidFor, PaymentBound, PaymentMessage, Purchased, SaleState, Settled, Settlement, StorageCharged, Store,
    WalletRefund,
};

/// Variable that sets the number of events, and their number without it.
const VARIABLE: &str = "SLUICE_TEST_MONEY_EVENTS";
const EVENTS: i64 = 5_000;
/// Events from which on everything that can happen has happened.
const TELLING: i64 = 5_000;
/// Checks of a run.
const CHECKS: i64 = 10;
/// Seconds between two events, and those by which a clock may be ahead.
const STEP: i64 = 600;
const SKEW: u64 = 7_200;
/// Wallets that buy.
const WALLETS: u64 = 10;
const PACK: i64 = 1_000_000;
const BLOCK_PRICE: i64 = 1_250;
const THRESHOLD: i64 = 50_000;
const PRICES: [i64; 5] = [10_000, 110_000, 500_000, 1_010_000, 333_333];

/// What has happened after enough events.
const EVERYTHING: [&str; 21] = [
    "sale",
    "trial sale",
    "sale to a wallet",
    "unit sold to a wallet",
    "purchases that an operator adopts",
    "charge that is given back",
    "payment for what is owned",
    "purchase of what is owned",
    "purchase without money",
    "release",
    "dispute that is too late",
    "refund of a trial sale",
    "refund to credits",
    "refund to a wallet",
    "refund that was paid",
    "payout",
    "payout that failed",
    "day of storage",
    "day that is written off",
    "egress",
    "egress without money",
];

/// Sellers, buyers, and what the model says of them.
struct Play {
    store: Store,
    sellers: Vec<World>,
    buyers: Vec<OperatorId>,
    items: Vec<Item>,
    model: Model,
    dice: Dice,
    step: i64,
    disputes: Vec<(DisputeId, usize)>,
    /// Wallets that proved themselves, and to whom.
    proved: BTreeMap<u64, OperatorId>,
    days: BTreeSet<(OperatorId, i64)>,
    /// Bytes leased and blocks paid.
    leases: BTreeMap<(OperatorId, i64), (i64, i64)>,
    seen: BTreeMap<&'static str, u64>,
}

impl Play {
    async fn new(store: Store, operators: usize) -> Self {
        let mut play = Self {
            store,
            sellers: Vec::new(),
            buyers: Vec::new(),
            items: Vec::new(),
            model: Model::default(),
            dice: Dice(7),
            step: 0,
            disputes: Vec::new(),
            proved: BTreeMap::new(),
            days: BTreeSet::new(),
            leases: BTreeMap::new(),
            seen: BTreeMap::new(),
        };
        for number in 0..operators {
            let one = operator(&play.store, &format!("operator-{number}@example.org")).await;
            if number.is_multiple_of(4) {
                play.open_shop(one, number).await;
            } else {
                play.buyers.push(one);
            }
        }
        play
    }

    /// Makes an operator a seller of three datasets and a unit, who has a payout address.
    async fn open_shop(&mut self, operator: OperatorId, number: usize) {
        let store = &self.store;
        let seller = World {
            operator,
            agent: agent(store, operator, &format!("seller-{number}")).await,
            project: project(store, new_project(operator, &format!("free-{number}"))).await,
        };
        let address = format!("0x{number:040x}");
        let (accounts, letter) = (store.accounts(), mail(at(0), None));
        let set = accounts.payout_set(operator, address, at(1), letter, at(0));
        set.await.unwrap();
        for place in 0..3 {
            let price = PRICES[(number + place) % PRICES.len()];
            let (slug, trial) = (format!("item-{number}-{place}"), place == 0);
            let id = paid_dataset(store, seller, &slug, Some(price), trial).await;
            self.items.push(Item {
                id: id.to_string(),
                kind: ItemKind::Dataset,
                unit: None,
                seller,
                price,
                trial,
                version: 1,
            });
        }
        let price = PRICES[number % PRICES.len()];
        let unit = self
            .unit(seller, &format!("unit-{number}"), price, number.is_multiple_of(8))
            .await;
        self.items.push(unit);
        self.sellers.push(seller);
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Lets something happen.
    async fn happen(&mut self) {
        self.step += 1;
        let now = 1_000 + self.step * STEP + self.dice.amount(SKEW);
        let buyer = self.buyers[self.dice.index(self.buyers.len())];
        let item = self.dice.index(self.items.len());
        match self.dice.roll(34) {
            0 => self.buy_pack(buyer, now).await,
            1..=2 => self.grant(buyer).await,
            3..=13 => self.buy(buyer, item, now).await,
            14..=17 => self.buy_by_wallet(item, now).await,
            18 => self.release(now).await,
            19..=20 => self.dispute(now).await,
            21..=22 => self.resolve(now).await,
            23 => self.charge_storage(buyer).await,
            24..=25 => self.lease_egress(buyer).await,
            26 => self.pick(now).await,
            27..=29 => self.finish(now).await,
            30 => self.adopt(buyer).await,
            31 => self.refund_usage(buyer).await,
            _ => self.publish(item).await,
        }
    }

    async fn grant(&mut self, buyer: OperatorId) {
        let (amount, given) = (self.dice.amount(900_000), self.dice.one_in(2));
        let reference = format!("g{}", self.step);
        assert_eq!(
            grant(&self.store, buyer, amount, given, &reference).await,
            Granted::Done
        );
        let kind = if given {
            AccountKind::Given
        } else {
            AccountKind::Credits
        };
        self.model.add(kind, buyer, amount);
        if self.dice.one_in(20) {
            let again = grant(&self.store, buyer, amount, given, &reference).await;
            assert_eq!(again, Granted::Repeated);
        }
    }

    /// Pays by x402, on some of the ways on which an answer gets lost.
    async fn settle(&mut self, payer: u64, kind: PaidFor, thing: String, amount: i64, now: i64) -> (Settled, String) {
        let item = self.items.iter().find(|item| item.id == thing);
        let version = item.map_or(1, |item| i64::try_from(item.version).unwrap());
        let unit_version = item.and_then(|item| item.unit).map(|unit| unit.to_string());
        let id = PaymentId::new(at(now)).to_string();
        let new = NewPayment {
            id: id.clone(),
            network: "eip155:84532".to_owned(),
            asset: "0x5111ce0000000000000000000000000000000402".to_owned(),
            payer: format!("0x{payer:040x}"),
            nonce: format!("0x{:064x}", self.step),
            protocol: 2,
            bound: Bound {
                kind,
                id: thing,
                version,
                unit_version,
            },
            amount,
            pay_to: "0x2222222222222222222222222222222222222222".to_owned(),
            valid_after: 0,
            valid_before: i64::MAX,
            message: PaymentMessage {
                payload: "{}".to_owned(),
                payload_hash: [7; 32],
                has_secret: false,
                identifier: None,
            },
            client_net: "192.0.2.1".to_owned(),
            buyer: self.proved.get(&payer).copied(),
            is_owned: false,
            now: at(now),
            lease: Duration::from_secs(30),
        };
        let payments = self.store.payments();
        assert_eq!(payments.bind(new).await.unwrap(), PaymentBound::New);
        assert!(payments.begin(&id, at(now + 60)).await.unwrap());
        match self.dice.roll(10) {
            0 => {
                let doubt = Doubtful {
                    reason: "lost".to_owned(),
                    transaction: None,
                    next_try_at: at(now + 2),
                };
                assert!(payments.doubt(&id, doubt).await.unwrap());
            }
            // The chain has it after all.
            1 => assert!(payments.fail(&id, 1, "expired", at(now + 2)).await.unwrap()),
            _ => {}
        }
        let refund = PaymentId::new(at(now)).to_string();
        let settlement = Settlement {
            payment: id,
            transaction: format!("0x{:064x}", self.step),
            sale: SaleId::new(at(now)),
            event: LedgerEventId::new(at(now)),
            terms: terms(),
            refund: WalletRefund {
                nonce: format!("nonce of {refund}"),
                id: refund.clone(),
                event: LedgerEventId::new(at(now)),
            },
            now: at(now),
        };
        let settled = self.store.money().settle(settlement.clone()).await.unwrap();
        if self.dice.one_in(20) {
            let again = self.store.money().settle(settlement).await.unwrap();
            assert_eq!(again, Settled::NotOpen);
        }
        (settled, refund)
    }

    async fn buy_pack(&mut self, buyer: OperatorId, now: i64) {
        let payer = self.dice.roll(WALLETS);
        let (settled, _) = self.settle(payer, PaidFor::Pack, buyer.to_string(), PACK, now).await;
        assert!(matches!(settled, Settled::Credited { operator, .. } if operator == buyer));
        self.model.treasury += PACK;
        self.model.add(AccountKind::Credits, buyer, PACK);
    }

    async fn buy_by_wallet(&mut self, item: usize, now: i64) {
        let (payer, item) = (self.dice.roll(WALLETS), self.items[item].clone());
        let buyer = Buyer::wallet(payer);
        let is_owned = self.model.unlocked(&buyer, &item) >= item.version;
        let kind = match item.kind {
            ItemKind::Unit => PaidFor::Unit,
            ItemKind::Dataset => PaidFor::Dataset,
        };
        let (settled, refund) = self.settle(payer, kind, item.id.clone(), item.price, now).await;
        self.model.treasury += item.price;
        match settled {
            Settled::Sold(sale) if !is_owned => {
                self.saw(match item.kind {
                    ItemKind::Unit => "unit sold to a wallet",
                    ItemKind::Dataset => "sale to a wallet",
                });
                self.model.sell(sale, buyer, self.proved.get(&payer).copied(), &item);
            }
            Settled::Refunding if is_owned => {
                self.queue_refund(refund, item.price);
                self.saw("payment for what is owned");
            }
            _ => unreachable!("owned: {is_owned}, {settled:?}"),
        }
    }

    async fn buy(&mut self, operator: OperatorId, item: usize, now: i64) {
        let (item, buyer) = (self.items[item].clone(), Buyer::Operator(operator));
        let new = NewPurchase {
            sale: SaleId::new(at(now)),
            event: LedgerEventId::new(at(now)),
            kind: item.kind,
            item: item.id.clone(),
            version: None,
            buyer: operator,
            agent: None,
            app: None,
            max_price: None,
            ask: NewPurchaseAsk::silent(at(now)),
            terms: terms(),
            now: at(now),
        };
        let purchased = self.store.money().purchase(new).await.unwrap();
        let (credits, given) = (
            self.model.of(AccountKind::Credits, operator),
            self.model.of(AccountKind::Given, operator),
        );
        let version = self.model.unlocked(&buyer, &item);
        if version >= item.version {
            // A unit that is bought reads in every version.
            let version = if item.kind == ItemKind::Unit { 1 } else { version };
            assert_eq!(purchased, Purchased::Owned { version });
            self.saw("purchase of what is owned");
        } else if let Purchased::Bought(sale) = purchased {
            let is_given = item.trial && given >= item.price;
            assert_eq!(sale.paid_with == PaidWith::Given, is_given, "{sale:?}");
            let kind = if is_given {
                AccountKind::Given
            } else {
                AccountKind::Credits
            };
            self.model.add(kind, operator, -item.price);
            self.model.sell(sale, buyer, None, &item);
            self.saw(if is_given { "trial sale" } else { "sale" });
        } else {
            let short = Purchased::Short {
                price: MicroUsdc(item.price),
                balance: MicroUsdc(credits),
                given: MicroUsdc(given),
            };
            assert_eq!(purchased, short);
            assert!(credits < item.price && (given < item.price || !item.trial), "{short:?}");
            self.saw("purchase without money");
        }
    }

    async fn release(&mut self, now: i64) {
        let mut released = 0;
        loop {
            let more = self.store.money().release(ASSET, at(now), 1_000).await.unwrap();
            released += more;
            if more == 0 {
                break;
            }
        }
        assert_eq!(released, self.model.release(at(now)));
        if released > 0 {
            self.saw("release");
        }
    }

    async fn dispute(&mut self, now: i64) {
        let recent = self.model.sold.len().min(300);
        if recent == 0 {
            return;
        }
        let number = self.model.sold.len() - 1 - self.dice.index(recent);
        let sale = self.model.sold[number].sale.clone();
        let (id, opened) = dispute(&self.store, sale.id, now).await;
        if !matches!(sale.state, SaleState::Held | SaleState::Trial) || sale.release_at <= at(now) {
            assert_eq!(opened, DisputeOpened::TooLate { state: sale.state });
            self.saw("dispute that is too late");
            return;
        }
        assert!(matches!(opened, DisputeOpened::Opened(_)), "{opened:?}");
        let is_trial = sale.state == SaleState::Trial;
        self.model.sold[number].sale.state = if is_trial {
            SaleState::TrialDisputed
        } else {
            self.model.add(AccountKind::Held, sale.seller, -sale.share.0);
            self.model.add(AccountKind::Disputed, sale.seller, sale.share.0);
            let held = self.model.held.entry(sale.seller).or_default();
            assert!(held.remove(&(sale.release_at, number)));
            SaleState::Disputed
        };
        self.disputes.push((id, number));
    }

    async fn charge_storage(&mut self, buyer: OperatorId) {
        let (day, amount) = (self.step / 200, self.dice.amount(200_000));
        let charged = self
            .store
            .money()
            .storage_charge(ASSET, buyer, day, 5, MicroUsdc(amount), at(self.step))
            .await
            .unwrap();
        if !self.days.insert((buyer, day)) {
            assert_eq!(charged, StorageCharged::Already);
        } else if self.model.of(AccountKind::Credits, buyer) >= amount {
            assert_eq!(charged, StorageCharged::Charged);
            self.model.add(AccountKind::Credits, buyer, -amount);
            self.model.usage += amount;
            self.saw("day of storage");
        } else {
            assert_eq!(charged, StorageCharged::WrittenOff);
            self.saw("day that is written off");
        }
    }

    async fn lease_egress(&mut self, buyer: OperatorId) {
        let (account, month) = (format!("op:{buyer}"), 640 + self.step / 2_000);
        let block = i64::try_from(BLOCK_BYTES).unwrap();
        let bytes = self.dice.amount(20 * BLOCK_BYTES);
        let payer = (!self.dice.one_in(4)).then_some(buyer);
        let lease = EgressLease {
            account: account.clone(),
            month,
            bytes: bytes.unsigned_abs(),
            free: FREE,
            platform: u64::MAX >> 1,
            payer,
            asset: ASSET.to_owned(),
            block: MicroUsdc(BLOCK_PRICE),
            event: LedgerEventId::new(at(self.step)),
            spender: None,
            now: at(self.step),
        };
        let leased = self.store.money().egress_lease(lease).await.unwrap();
        let (before, paid) = self.leases.get(&(buyer, month)).copied().unwrap_or_default();
        let beyond = (before + bytes - i64::try_from(FREE).unwrap()).max(0);
        // Rounded up by another formula than the product's.
        let missing = ((beyond + block - 1) / block - paid).max(0);
        let (need, credits) = (missing * BLOCK_PRICE, self.model.of(AccountKind::Credits, buyer));
        if missing > 0 && (payer.is_none() || credits < need) {
            let short = EgressLeased::Short {
                need: MicroUsdc(need),
                balance: MicroUsdc(if payer.is_some() { credits } else { 0 }),
            };
            assert_eq!(leased, short);
            self.saw("egress without money");
            return;
        }
        assert_eq!(leased, EgressLeased::Leased);
        self.model.add(AccountKind::Credits, buyer, -need);
        self.model.usage += need;
        let back = if self.dice.one_in(4) { bytes / 2 } else { 0 };
        let returned = back.unsigned_abs();
        self.store
            .money()
            .egress_return(&account, month, returned)
            .await
            .unwrap();
        self.leases
            .insert((buyer, month), (before + bytes - back, paid + missing));
        self.saw("egress");
    }

    fn has_seen_everything(&self) {
        for what in EVERYTHING {
            assert!(self.seen.contains_key(what), "no {what}: {:?}", self.seen);
        }
    }

    async fn agrees(&self) {
        sound(&self.store).await;
        let sellers = self.sellers.iter().map(|seller| &seller.operator);
        for operator in self.buyers.iter().chain(sellers) {
            let found = balances(&self.store, *operator).await;
            assert_eq!(found, self.model.balances(*operator), "after {} events", self.step);
        }
    }
}

/// Any order of purchases, refunds, payouts and charges gives the balances that a model gives, and breaks no rule.
pub async fn any_order_of_events_agrees_with_a_model(url: &str) {
    let events = std::env::var(VARIABLE).map_or(EVENTS, |number| number.parse().unwrap());
    let mut play = Play::new(open(url).await, operators(events)).await;
    for number in 1..=events {
        play.happen().await;
        if number % (events / CHECKS).max(1) == 0 {
            play.agrees().await;
        }
    }
    play.agrees().await;
    if events >= TELLING {
        play.has_seen_everything();
    }
}

/// Lets events of every kind happen, at least [`TELLING`], in a database without money. For a bench, which checks them.
pub async fn play(url: &str, events: i64) {
    let events = events.max(TELLING);
    let mut play = Play::new(open(url).await, operators(events)).await;
    for _ in 0..events {
        play.happen().await;
    }
    play.has_seen_everything();
}

fn operators(events: i64) -> usize {
    usize::try_from(events / 500).unwrap().clamp(12, 200)
}
