//! Options of `sluice verify`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::TrustArgs;

/// Options of `verify`: a folder, or a receipt.
#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  sluice verify tide-levels
  sluice verify receipt receipt.json
  sluice verify receipt answer-receipt.json --answer answer.json --data tide-levels"
)]
pub struct VerifyArgs {
    /// The folder of the pulled version; a folder with the name of a command is `./NAME`
    #[arg(required = true)]
    pub dir: Option<PathBuf>,
    /// The keys document to trust, fetched from the service itself (`GET /.well-known/service-keys`); without it, the
    /// folder's keys must be those of a service that this machine knows
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service keys that are trusted.
    #[command(flatten)]
    pub trust: TrustArgs,
    /// Command that verifies something else than a folder.
    #[command(subcommand)]
    pub command: Option<VerifyCommand>,
}

/// Commands that verify something else than a folder.
#[derive(Clone, Debug, Subcommand)]
pub enum VerifyCommand {
    /// Verify a receipt offline: its keys and signature, and what it says
    Receipt(ReceiptArgs),
}

/// Options of `verify receipt`.
#[derive(Clone, Debug, Args)]
pub struct ReceiptArgs {
    /// The receipt: a JSON file
    pub file: PathBuf,
    /// The answer that a query receipt is about, as the service sent it, to be compared
    #[arg(long, value_name = "FILE")]
    pub answer: Option<PathBuf>,
    /// The keys document to trust, fetched from the service itself (`GET /.well-known/service-keys`); without it, the
    /// receipt must be of a service that this machine knows
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service keys that are trusted.
    #[command(flatten)]
    pub trust: TrustArgs,
    /// The folder of the pulled version over which a query is run again: `--data`, which every command accepts.
    #[arg(skip)]
    pub data: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn a_receipt_is_verified_by_its_own_command() {
        let verify = |arguments: &[&str]| Cli::try_parse_from([&["sluice", "verify"], arguments].concat());
        let cli = verify(&["receipt", "r.json", "--answer", "a.json", "--data", "tides"]).unwrap();
        assert_eq!(cli.global.data, Some("tides".into()));
        let Command::Verify(VerifyArgs {
            command: Some(VerifyCommand::Receipt(receipt)),
            ..
        }) = cli.command
        else {
            panic!("another command")
        };
        assert_eq!((receipt.file, receipt.answer), ("r.json".into(), Some("a.json".into())));
        let Command::Verify(folder) = verify(&["./receipt", "--keys", "k.json"]).unwrap().command else {
            panic!("another command")
        };
        assert_eq!((folder.dir, folder.command.is_none()), (Some("./receipt".into()), true));
        for wrong in [
            &[][..],
            &["receipt"],
            &["tides", "--answer", "a.json"],
            &["tides", "receipt", "r.json"],
        ] {
            assert_eq!(verify(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }
}
