//! Commands about payments by x402, payouts and refunds.

use clap::{Args, Subcommand};

/// Commands that list payments and decide about them.
#[derive(Debug, Subcommand)]
pub enum PaymentsCommand {
    /// List payments, newest first
    List {
        /// Only those whose settlement is not known
        #[arg(long)]
        unknown: bool,
    },
    /// Decide about a payment whose settlement is not known
    Resolve {
        /// Id of the payment to decide about
        id: String,
        /// Decision about the settlement, by one of two flags.
        #[command(flatten)]
        decision: PaymentDecision,
    },
}

/// Decision about a payment.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PaymentDecision {
    /// The transaction that settled it
    #[arg(long, value_name = "TX")]
    pub settled: Option<String>,
    /// It moved no money
    #[arg(long)]
    pub failed: bool,
}

/// Commands that list, retry and send payouts.
#[derive(Debug, Subcommand)]
pub enum PayoutCommands {
    /// List payouts and refunds, newest first
    List {
        /// Only those that are not over
        #[arg(long)]
        open: bool,
    },
    /// Try a payout, or a refund that was given up, again at once; every attempt has the same nonce
    Retry {
        /// Id of the payout to try again
        id: String,
    },
    /// Pick and send the payouts that are due now
    Run,
    /// Decide about a payout or refund that may have been paid
    Resolve {
        /// Id of the payout to decide about
        id: String,
        /// Decision about the payout, by one of two flags.
        #[command(flatten)]
        decision: PayoutDecision,
    },
    /// Book test USDC that the platform sent to the treasury; a transaction is booked once
    Deposit {
        /// The transaction that moved it
        transaction: String,
        /// The amount in cents
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        cents: u32,
    },
}

/// Decision about a payout.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PayoutDecision {
    /// The transaction that paid it
    #[arg(long, value_name = "TX")]
    pub paid: Option<String>,
    /// It moved no money
    #[arg(long)]
    pub failed: bool,
}
