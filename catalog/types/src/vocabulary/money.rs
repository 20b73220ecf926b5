//! Words of money: purchases and what they wait for, sales, payments and payouts.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{UnknownWord, plain};

words! {
    /// The money that a sale was paid with.
    PaidWith {
        /// Bought credits.
        Credits = "credits",
        /// Given credits.
        Given = "given",
        /// A payment by x402.
        X402 = "x402",
    }

    /// The owner of limits on what is spent.
    SpendOf {
        /// An agent, however it spends.
        Agent = "agent",
        /// An app that acts as an agent.
        App = "app",
    }

    /// The period that a limit on what is spent is for.
    SpendPeriod {
        /// One purchase.
        Purchase = "purchase",
        /// A UTC day.
        Day = "day",
        /// A UTC month.
        Month = "month",
    }

    /// The purpose of a charge.
    SpendKind {
        /// An item.
        Purchase = "purchase",
        /// Egress beyond the free bytes.
        Usage = "usage",
    }

    /// The state of a purchase that needs a person's yes.
    ApprovalState {
        /// Nobody has decided yet.
        Waiting = "waiting",
        /// A person said yes, and the item was bought.
        Bought = "bought",
        /// A person said no.
        Denied = "denied",
        /// Nobody decided in time.
        Expired = "expired",
        /// A person said yes to what had changed.
        Stale = "stale",
    }

    /// The change that a person's yes met.
    StaleReason {
        /// The price is higher.
        Price = "price",
        /// The item is not sold any more, not shown, or costs nothing.
        Item = "item",
        /// The agent was removed or taken down.
        Agent = "agent",
        /// The connection of the app has ended.
        App = "app",
        /// The operator has bought the item meanwhile.
        Owned = "owned",
    }

    /// The author of a question to a person.
    AskedBy {
        /// The agent, by a call.
        Agent = "agent",
        /// A person, on a page.
        Person = "person",
    }

    /// The state of the money of a sale.
    SaleState {
        /// Within the dispute window.
        Held = "held",
        /// Disputed.
        Disputed = "disputed",
        /// The window is over; the share is the seller's.
        Payable = "payable",
        /// The buyer has the price back.
        Refunded = "refunded",
        /// Paid with given credits, which move no money of the seller.
        Trial = "trial",
        /// Paid with given credits, and disputed.
        TrialDisputed = "trial_disputed",
        /// Paid with given credits, which the buyer has back.
        TrialRefunded = "trial_refunded",
    }

    /// The state of a dispute.
    DisputeState {
        /// Not decided.
        Open = "open",
        /// It ended for the buyer.
        Refunded = "refunded",
        /// It ended for the seller.
        Released = "released",
    }

    // The words of states are in rows and in partial unique indexes, so a new state needs a migration.
    /// The state of a payment by x402.
    PaymentState {
        /// Bound to an item; nothing was sent.
        Bound = "bound",
        /// The facilitator said no; nothing was sent.
        Refused = "refused",
        /// A newer payment of the same wallet for the same item took its place; nothing was sent.
        Abandoned = "abandoned",
        /// Sent, or about to be.
        Settling = "settling",
        /// It may have moved the money.
        Unknown = "unknown",
        /// It moved the money, and what it paid for is granted.
        Settled = "settled",
        /// It moved nothing, which is proved.
        Failed = "failed",
        /// The wallet owned the item; nothing is ever sent.
        NotNeeded = "not_needed",
    }

    /// The kind of thing that a payment by x402 is for.
    PaidFor {
        /// A knowledge unit.
        Unit = "unit",
        /// A version of a dataset.
        Dataset = "dataset",
        /// A pack of credits.
        Pack = "pack",
    }

    /// The state of a payout to a seller or a refund to a wallet.
    PayoutState {
        /// Its amount is set aside; nothing was sent.
        Picked = "picked",
        /// Sent, or about to be.
        Sending = "sending",
        /// It may have been paid.
        Unknown = "unknown",
        /// The payout was paid and booked.
        Done = "done",
        /// It was not paid, which is proved. The amount of a payout is payable again, that of a refund stays owed.
        Failed = "failed",
    }
}
