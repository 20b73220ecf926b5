//! Commands about payments by x402, payouts, refunds and the ledger.

use std::path::PathBuf;
use std::str::FromStr;

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

/// Commands for the ledger of money.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Examples:
  sluice ledger archive --before 2025-11
  sluice ledger day 2026-11-27 day.parquet")]
pub enum LedgerCommand {
    /// Move the movements of whole months, which are sealed to their last day, out of the database into files
    Archive {
        /// The first month that stays, such as `2025-11`
        #[arg(long, value_name = "MONTH")]
        before: LedgerMonth,
    },
    /// Write the movements of a sealed UTC day with their seals into a file, for others to check
    Day {
        /// The day, such as `2026-11-27`
        #[arg(value_name = "DAY")]
        day: LedgerDay,
        /// The file to write, which must not be there
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// A UTC month, counted from January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerMonth(pub i64);

impl FromStr for LedgerMonth {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `2025-1` would be a valid time too, with the text that follows.
        let is_long_enough = text.len() == "2025-11".len();
        let begin = format!("{text}-01T00:00:00Z").parse::<types::Timestamp>();
        let begin = begin.ok().filter(|_| is_long_enough);
        begin
            .map(|begin| Self(begin.month()))
            .ok_or("not a month as in `2025-11`")
    }
}

/// A UTC day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerDay(pub i64);

impl FromStr for LedgerDay {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let midnight = format!("{text}T00:00:00Z");
        // A text with more in it could be another time of the day.
        let begin = midnight.parse::<types::Timestamp>().ok();
        begin
            .filter(|begin| begin.to_string() == midnight)
            .map(|begin| Self(begin.day()))
            .ok_or("not a day as in `2026-11-27`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_spelling() {
        assert_eq!("1970-01-02".parse(), Ok(LedgerDay(1)));
        assert_eq!("2026-11-27".parse(), Ok(LedgerDay(20_784)));
        for wrong in [
            "",
            "2026-11-31",
            "2026-11-27T00:00:00Z",
            "27.11.2026",
            "2026-11-27 ",
            "2026-11",
            "20784",
        ] {
            assert!(wrong.parse::<LedgerDay>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_month_has_a_year_and_a_number() {
        assert_eq!("2025-11".parse(), Ok(LedgerMonth(670)));
        assert_eq!("1970-01".parse(), Ok(LedgerMonth(0)));
        for wrong in [
            "2025-13",
            "2025-1",
            "2025-00",
            "25-11",
            "2025-11-01",
            "2025",
            "",
            "x",
            "2025-1 ",
        ] {
            assert!(wrong.parse::<LedgerMonth>().is_err(), "{wrong}");
        }
    }
}
