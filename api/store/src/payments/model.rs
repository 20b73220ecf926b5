//! Payments: their states, the item that each is bound to, and their rows.

use std::time::Duration;

use types::{OperatorId, Timestamp};

use crate::row::{nested, row};

pub use types::vocabulary::{PaidFor, PaymentState};

row! {
    /// Thing that a payment is bound to.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Bound {
        /// Kind of the thing.
        pub kind: PaidFor = "item_kind",
        /// Chain of a unit, id of a dataset, operator of a pack.
        pub id: String = "item_id",
        /// Number of the version; 1 for a pack.
        pub version: i64,
        /// Version of a unit that is served.
        pub unit_version: Option<String>,
    }
}

/// An authorization with what it is bound to.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// Id of the payment, a version 7 UUID.
    pub id: String,
    /// Network, by CAIP-2.
    pub network: String,
    /// Address of the token.
    pub asset: String,
    /// Wallet that pays.
    pub payer: String,
    /// Nonce of the authorization.
    pub nonce: String,
    /// Version of the protocol.
    pub protocol: i64,
    /// Thing that is paid for.
    pub bound: Bound,
    /// Amount in micro-USDC.
    pub amount: i64,
    /// Wallet that is paid.
    pub pay_to: String,
    /// Second after which the authorization is valid.
    pub valid_after: i64,
    /// Second before which it is valid.
    pub valid_before: i64,
    /// Message that the payer sent.
    pub message: PaymentMessage,
    /// Network of the client.
    pub client_net: String,
    /// Operator whose proved wallet pays.
    pub buyer: Option<OperatorId>,
    /// True if the wallet owns the item, so that nothing is to be paid.
    pub is_owned: bool,
    /// Time of binding.
    pub now: Timestamp,
    /// Time for which nobody else binds the item for the wallet.
    pub lease: Duration,
}

/// Message that carries an authorization.
#[derive(Clone, Debug)]
pub struct PaymentMessage {
    /// Message to the facilitator, as JSON. It has the signature.
    pub payload: String,
    /// Hash of the message as it arrived.
    pub payload_hash: [u8; 32],
    /// True if the message has something that is not published with the transfer.
    pub has_secret: bool,
    /// Identifier that the payer gave the payment.
    pub identifier: Option<String>,
}

row! {
    /// A payment as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Payment {
        /// Id of the payment.
        pub id: String,
        /// Wallet that pays.
        pub payer: String,
        /// Nonce of the authorization.
        pub nonce: String,
        /// Network, by CAIP-2.
        pub network: String,
        /// Address of the token.
        pub asset: String,
        /// Version of the protocol.
        pub protocol: i64 = "x402_version",
        /// Thing that is paid for.
        pub bound: Bound = Bound::COLUMNS => nested,
        /// Amount in micro-USDC.
        pub amount: i64,
        /// Wallet that is paid.
        pub pay_to: String,
        /// Second after which the authorization is valid.
        pub valid_after: i64,
        /// Second before which it is valid.
        pub valid_before: i64,
        /// Hash of the message as it arrived.
        pub payload_hash: [u8; 32],
        /// Message to the facilitator; `None` at a final state.
        pub payload: Option<String>,
        /// True if the message has something that is not published with the transfer.
        pub has_secret: bool,
        /// Network of the client that sent it first.
        pub client_net: String,
        /// Operator whose proved wallet pays.
        pub buyer: Option<OperatorId> = "buyer_operator",
        /// State of the payment as stored.
        pub state: PaymentState,
        /// Number of times that it was sent.
        pub attempts: i64,
        /// Time until which a settling payment has an owner.
        pub lease_until: Timestamp,
        /// Transaction, once it is known.
        pub transaction: Option<String> = "transaction_hash",
        /// Reason of the state.
        pub reason: Option<String>,
        /// Time of binding.
        pub bound_at: Timestamp,
        /// Time of settling.
        pub settled_at: Option<Timestamp>,
        /// Receipt that was signed, as a compact JWS.
        pub receipt: Option<String> = "settle_response",
        /// Sale that it paid for.
        pub sale_id: Option<String>,
    }
}

/// Outcome of binding a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentBound {
    /// The payment is bound.
    New,
    /// The authorization is known.
    Known(Box<Payment>),
    /// Another payment of the wallet for the item is open.
    Open,
    /// The payer gave the identifier to another payment.
    IdentifierReused,
}

/// Changes of a payment that was found unsettled.
#[derive(Clone, Debug)]
pub struct Doubtful {
    /// Reason that the facilitator gave.
    pub reason: String,
    /// Transaction that was named.
    pub transaction: Option<String>,
    /// Time of the next look.
    pub next_try_at: Timestamp,
}
