//! Commands about the ledger of money.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands that take something out of the ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Write the movements of a sealed UTC day with their seals, for others to check: JSON Lines, as `FORMAT.md` has them
    Day {
        /// The day, such as 2026-11-27
        #[arg(value_name = "DAY")]
        day: String,
        /// The file to write, which must not be there
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}
