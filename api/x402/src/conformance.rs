//! Conformance suite of facilitators: every implementation passes every scenario.
//!
//! Invariant: a scenario uses the facilitator through its trait, and the ledger behind it through the given wallets.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "scenarios of tests")]

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use types::Timestamp;

use super::builtin::{Spent, TransferOutcome, Wallets, WalletsError};
use super::facilitator::{ExpectedTransfer, SettlementOrder};
use super::wire::{Offer, Protocol, read};
use super::{
    Address, Authorization, Bytes32, Facilitator, Network, PaymentAsset, PaymentVerdict, Settlement, WalletKey,
};

type Balances = HashMap<Address, u64>;
type Authorizations = HashMap<(Address, Bytes32), Spent>;

/// Balances in memory.
#[derive(Debug, Default)]
pub struct Memory(Mutex<(Balances, Authorizations)>);

impl Memory {
    /// Gives an amount to a wallet.
    pub fn give(&self, wallet: Address, amount: u64) {
        *self.0.lock().0.entry(wallet).or_default() += amount;
    }

    /// Returns the balance of a wallet.
    pub fn of(&self, wallet: Address) -> u64 {
        self.0.lock().0.get(&wallet).copied().unwrap_or(0)
    }
}

#[async_trait]
impl Wallets for Memory {
    async fn balance(&self, wallet: Address) -> Result<u64, WalletsError> {
        Ok(self.of(wallet))
    }

    async fn spent(&self, wallet: Address, nonce: Bytes32) -> Result<Option<Spent>, WalletsError> {
        Ok(self.0.lock().1.get(&(wallet, nonce)).copied())
    }

    async fn transfer(&self, transfer: &Authorization, _at: Timestamp) -> Result<TransferOutcome, WalletsError> {
        let (balances, spent) = &mut *self.0.lock();
        if let Some(found) = spent.get(&(transfer.from, transfer.nonce)) {
            return Ok(TransferOutcome::Spent(*found));
        }
        let Some(left) = balances
            .get(&transfer.from)
            .and_then(|has| has.checked_sub(transfer.value))
        else {
            return Ok(TransferOutcome::Short);
        };
        balances.insert(transfer.from, left);
        *balances.entry(transfer.to).or_default() += transfer.value;
        spent.insert((transfer.from, transfer.nonce), Spent::Used(transfer.transaction()));
        Ok(TransferOutcome::Done)
    }

    async fn cancel(&self, wallet: Address, nonce: Bytes32, _at: Timestamp) -> Result<bool, WalletsError> {
        let spent = &mut self.0.lock().1;
        let is_new = !spent.contains_key(&(wallet, nonce));
        spent.entry((wallet, nonce)).or_insert(Spent::Cancelled);
        Ok(is_new)
    }
}

/// Returns the asset of the scenarios.
pub fn asset() -> PaymentAsset {
    PaymentAsset {
        network: Network::BASE_SEPOLIA,
        address: PaymentAsset::BUILT_IN,
        name: "USDC".to_owned(),
        version: "2".to_owned(),
        pay_to: key(200).address(),
    }
}

/// Returns a key made of a number.
pub fn key(number: u8) -> WalletKey {
    WalletKey::from_bytes(&[number; 32]).unwrap()
}

/// A buyer's wallet, and what it signs.
#[derive(Clone, Debug)]
pub struct Buyer {
    /// Key of the wallet.
    pub key: WalletKey,
    /// Authorization, to be changed before it is signed.
    pub authorization: Authorization,
    /// Asset whose domain is signed for.
    pub domain: PaymentAsset,
    /// Terms that are accepted, in version 2.
    pub accepted: serde_json::Value,
}

impl Buyer {
    /// Returns a buyer that pays `amount` correctly, from a second ago for five minutes.
    pub fn new(amount: u64, nonce: u8, now: u64) -> Self {
        let (key, asset) = (key(1), asset());
        Self {
            authorization: Authorization {
                from: key.address(),
                to: asset.pay_to,
                value: amount,
                valid_after: now - 1,
                valid_before: now + 300,
                nonce: Bytes32([nonce; 32]),
            },
            key,
            accepted: offer(amount).v2(&asset),
            domain: asset,
        }
    }

    /// Returns the message of the payment.
    pub fn message(&self, protocol: Protocol) -> serde_json::Value {
        let signature = self.authorization.sign(&self.domain, &self.key);
        let Authorization {
            from,
            to,
            value,
            valid_after,
            valid_before,
            nonce,
        } = &self.authorization;
        let payload = serde_json::json!({
            "signature": signature.to_string(),
            "authorization": {
                "from": from.checksum(),
                "to": to.checksum(),
                "value": value.to_string(),
                "validAfter": valid_after.to_string(),
                "validBefore": valid_before.to_string(),
                "nonce": nonce.to_string(),
            },
        });
        match protocol {
            Protocol::V1 => serde_json::json!({
                "x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payload,
            }),
            Protocol::V2 => serde_json::json!({"x402Version": 2, "accepted": self.accepted, "payload": payload}),
        }
    }

    /// Returns the order of the payment.
    pub fn order(&self, protocol: Protocol) -> SettlementOrder {
        let (asset, message) = (asset(), self.message(protocol));
        let payment = read(protocol, message.clone(), &asset).unwrap();
        SettlementOrder {
            protocol,
            requirements: offer(self.authorization.value).requirements(&payment, &asset),
            payment: message,
            expected: ExpectedTransfer {
                payer: self.authorization.from,
                pay_to: asset.pay_to,
                amount: self.authorization.value,
                nonce: self.authorization.nonce,
                valid_before: self.authorization.valid_before,
            },
        }
    }
}

/// Returns an offer at a price.
pub fn offer(amount: u64) -> Offer {
    Offer {
        url: "https://sluice.example/paid/knowledge?id=1".to_owned(),
        description: "Knowledge unit: tides".to_owned(),
        tag: "knowledge",
        amount,
    }
}

/// A facilitator under test, with the balances behind it and the time of its clock.
#[derive(Debug)]
pub struct Subject {
    /// The facilitator.
    pub facilitator: Arc<dyn Facilitator>,
    /// The balances.
    pub wallets: Arc<Memory>,
    /// Seconds of the Unix epoch.
    pub now: u64,
}

/// A payment moves its amount once, whatever the version.
pub async fn a_payment_moves_once(subject: &Subject) {
    for (nonce, protocol) in [(1, Protocol::V1), (2, Protocol::V2)] {
        let buyer = Buyer::new(500_000, nonce, subject.now);
        let (payer, treasury) = (buyer.authorization.from, asset().pay_to);
        subject.wallets.give(payer, 500_000);
        let (had, got) = (subject.wallets.of(payer), subject.wallets.of(treasury));
        let order = buyer.order(protocol);
        assert_eq!(subject.facilitator.verify(&order).await, Ok(PaymentVerdict::Valid));
        assert_eq!(subject.wallets.of(payer), had, "to verify moves nothing");
        let settled = subject.facilitator.settle(&order).await;
        assert!(matches!(settled, Settlement::Done(_)), "{settled:?}");
        // A nonce that was used proves nothing about which attempt used it.
        let again = subject.facilitator.settle(&order).await;
        assert!(matches!(again, Settlement::Unknown(_)), "{again:?}");
        assert_eq!(subject.wallets.of(payer), had - 500_000);
        assert_eq!(subject.wallets.of(treasury), got + 500_000);
    }
}

/// A wallet without the amount is refused, which proves that nothing moved.
pub async fn an_empty_wallet_pays_nothing(subject: &Subject) {
    let mut buyer = Buyer::new(500_000, 3, subject.now);
    buyer.key = key(3);
    buyer.authorization.from = buyer.key.address();
    let order = buyer.order(Protocol::V2);
    let refused = "insufficient_funds".to_owned();
    assert_eq!(
        subject.facilitator.verify(&order).await,
        Ok(PaymentVerdict::Invalid(refused.clone()))
    );
    assert_eq!(subject.facilitator.settle(&order).await, Settlement::Refused(refused));
}

/// A signature of another wallet, another domain or another time moves nothing.
pub async fn a_wrong_payment_moves_nothing(subject: &Subject) {
    let changes: [fn(&mut Buyer, u64); 4] = [
        |buyer, _| buyer.key = key(9),
        |buyer, _| "Other".clone_into(&mut buyer.domain.name),
        |buyer, now| buyer.authorization.valid_before = now - 5,
        |buyer, now| buyer.authorization.valid_after = now + 60,
    ];
    for (nonce, change) in (10..).zip(changes) {
        let mut buyer = Buyer::new(500_000, nonce, subject.now);
        subject.wallets.give(buyer.authorization.from, 500_000);
        let had = subject.wallets.of(buyer.authorization.from);
        change(&mut buyer, subject.now);
        let order = buyer.order(Protocol::V2);
        let verdict = subject.facilitator.verify(&order).await;
        assert!(
            matches!(verdict, Ok(PaymentVerdict::Invalid(_))),
            "{nonce}: {verdict:?}"
        );
        let settled = subject.facilitator.settle(&order).await;
        assert!(matches!(settled, Settlement::Refused(_)), "{nonce}: {settled:?}");
        assert_eq!(subject.wallets.of(buyer.authorization.from), had, "{nonce}");
    }
}

/// The kinds that it settles contain both versions of ours.
pub async fn it_settles_both_versions(subject: &Subject) {
    let kinds = subject.facilitator.supported().await.unwrap();
    for protocol in [Protocol::V1, Protocol::V2] {
        let network = protocol.network(&asset());
        let found = kinds.iter().any(|kind| {
            (kind.version, kind.scheme.as_str(), &kind.network) == (protocol.number().into(), "exact", &network)
        });
        assert!(found, "{protocol:?}");
    }
}
