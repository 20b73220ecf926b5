//! The command line.

mod files;
mod help;
mod market;
mod own;
mod pay;
mod reading;
mod staff;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::remote::RemoteService;
use crate::roles::ProcessRole;

pub use files::{CreateArgs, InferArgs, ProjectArgs, PushArgs, ReadingArgs, RefusedEffect};
pub use help::{command, parse};
pub use market::{BuyArgs, CompletionsArgs, CreditsArgs, HitKind, HitPrice, InfoArgs, ListArgs, SearchArgs};
pub use own::{ArchiveArgs, DeleteArgs, LoginArgs, UploadsArgs, UploadsCommand, WhoamiArgs};
pub use pay::{
    LedgerCommand, LedgerDay, LedgerMonth, PaymentDecision, PaymentsCommand, PayoutCommands, PayoutDecision,
};
pub use reading::{PullArgs, QueryArgs, QueryFormat, TrustArgs};
pub use staff::{InvitationsCommand, OperatorCommand, OperatorRole};
pub use verify::{ReceiptArgs, VerifyArgs, VerifyCommand};

/// The fewest records that a quickstart streams.
pub const MIN_RECORDS: u32 = 5_000;
/// Records of the dataset.
pub const ALL_RECORDS: u32 = 34_888;

/// A marketplace whose heart is a dataflow engine: records stream through gates into versioned tables.
#[derive(Debug, Parser)]
#[command(name = "sluice", version)]
#[command(after_help = "Examples:
  sluice quickstart
  sluice login --server https://sluice.example
  sluice search tide gauges
  sluice push stations.csv --create

Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 service or disk failed; 2 usage;
3 an open question, or nobody confirmed; 4 refused records or file; 5 not allowed or not paid; 6 not reachable; 7 not
found.")]
pub struct Cli {
    /// Options that every command accepts.
    #[command(flatten)]
    pub global: Global,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command accepts.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Folder of all data of the service [default: ./data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// IP address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, global = true, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// A configuration file; `sluice config --show` prints one with every key
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Global {
    /// Returns the flags that are set, as keys of the configuration with their values.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let data = self
            .data
            .as_ref()
            .map(|dir| ("data.dir", dir.to_string_lossy().into_owned()));
        let listen = self.listen.map(|address| ("server.listen", address.to_string()));
        data.into_iter().chain(listen).collect()
    }
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service until it is stopped
    Serve(Serve),
    /// Run the service, contribute a real dataset and print each step
    Quickstart(Quickstart),
    /// Administer the service; prints JSON, works while it runs
    #[command(subcommand)]
    Admin(Admin),
    /// Prove that database and tables agree; works while the service runs
    Check(CheckArgs),
    /// Administer the keys that sign manifests; prints JSON, works while the service runs
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Administer the ledger of money; prints JSON, works while the service runs
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Search write-ups and datasets
    Search(SearchArgs),
    /// List datasets, the latest merge first
    List(ListArgs),
    /// Print what a dataset or a write-up is, and what it costs
    Info(InfoArgs),
    /// Buy a version of a dataset, or a write-up, with credits
    Buy(BuyArgs),
    /// Print the credits of the operator, and what became of them
    Credits(CreditsArgs),
    /// Query the records of a dataset with SQL
    Query(QueryArgs),
    /// Pull a version of a dataset into a folder and verify its signature, parts and records
    Pull(PullArgs),
    /// Say what a file is: its columns, a contract for it, and what is doubtful
    Infer(Box<InferArgs>),
    /// Create a project without records
    Create(Box<CreateArgs>),
    /// Push a file of records into a dataset, or make a dataset of it; resumes an interrupted push
    Push(Box<PushArgs>),
    /// List the open uploads of the operator, or cancel one
    Uploads(UploadsArgs),
    /// Get a key for this machine, if a person approves it in the browser
    Login(LoginArgs),
    /// Print whom the key of this machine acts for, and what is left
    Whoami(WhoamiArgs),
    /// Archive a project, for good: it takes no more records
    Archive(ArchiveArgs),
    /// Delete a private dataset that nobody else read
    Delete(DeleteArgs),
    /// Collect a source of public facts once
    Collect(Collect),
    /// Verify a pulled version offline: keys, signature, every part, every record; or a receipt
    Verify(VerifyArgs),
    /// Print the machine-readable description of the interface
    Openapi,
    /// Print the configuration with every key
    Config(ConfigArguments),
    /// Print what completes this command line in a shell
    Completions(CompletionsArgs),
}

/// Options of `serve`: the role of the process.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  sluice serve
  sluice serve --listen 0.0.0.0:8080 --data /var/lib/sluice
  sluice serve --role worker --config sluice.toml")]
pub struct Serve {
    /// The role of this process; each role can have many processes
    #[arg(long, value_enum, default_value_t)]
    pub role: ProcessRole,
}

/// Options of `quickstart`: the amount of data, and the end.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  sluice quickstart
  sluice quickstart --records 5000 --exit")]
pub struct Quickstart {
    /// Number of records of the dataset to contribute
    #[arg(long, value_name = "N", default_value_t = ALL_RECORDS,
          value_parser = clap::value_parser!(u32).range(i64::from(MIN_RECORDS)..=i64::from(ALL_RECORDS)))]
    pub records: u32,
    /// Leave the service running until it is stopped [default]
    #[arg(long, overrides_with = "exit")]
    pub stay: bool,
    /// Stop the service at the end
    #[arg(long)]
    pub exit: bool,
}

/// Commands for the administration of a service.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  sluice admin operator add --email ada@example.org --name Ada
  sluice admin invite ada@example.org
  sluice admin reports list --status open")]
pub enum Admin {
    /// Operators: the people behind agents
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Reports of items, and the decisions on them
    #[command(subcommand)]
    Reports(Reports),
    /// Let an address sign up while sign-up is by invitation
    Invite {
        /// The e-mail address
        #[arg(value_name = "EMAIL")]
        email: String,
    },
    /// Invitations, and the requests for one
    #[command(subcommand)]
    Invitations(InvitationsCommand),
    /// Give test USDC of the built-in ledger to a wallet, at most 10 a day
    Faucet {
        /// Address of the wallet that gets the test USDC
        #[arg(value_name = "ADDRESS")]
        wallet: String,
        /// Number of whole test USDC, 1 to 10
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
        usdc: u32,
    },
    /// Serve the built-in ledger as an x402 facilitator over HTTP, to try a facilitator by URL
    Facilitator {
        /// The address and port of the facilitator
        #[arg(long = "at", value_name = "ADDR", default_value = "127.0.0.1:0")]
        at: SocketAddr,
    },
    /// Payments by x402, and decisions on unknown ones
    #[command(subcommand)]
    Payments(PaymentsCommand),
    /// Payouts to sellers and refunds to wallets
    #[command(subcommand)]
    Payouts(PayoutCommands),
    /// Submissions that no worker could process
    #[command(subcommand)]
    DeadLetters(DeadLetters),
    /// Tables of datasets that lost versions
    #[command(subcommand)]
    Table(TableCommand),
    /// Reviews of knowledge units and public datasets
    #[command(subcommand)]
    Validation(ValidationCommand),
    /// Knowledge units, and the erasure of one
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// Credits that operators pay with
    #[command(subcommand)]
    Credits(CreditsCommand),
    /// Disputes, which hold the shares of sales back
    #[command(subcommand)]
    Disputes(Disputes),
}

/// Commands that grant credits to operators.
#[derive(Debug, Subcommand)]
pub enum CreditsCommand {
    /// Grant credits to an operator; the same reference twice grants once
    Grant {
        /// Id of the operator that gets the credits
        operator: String,
        /// The amount in cents
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        cents: u32,
        /// Credits that pay trial sales only
        #[arg(long)]
        given: bool,
        /// The name of the grant [default: a new one]
        #[arg(long, value_name = "R")]
        reference: Option<String>,
    },
}

/// Commands that list, open and end disputes of sales.
#[derive(Debug, Subcommand)]
pub enum Disputes {
    /// List disputes, open ones first
    List,
    /// Hold the share of a sale back, within its dispute window
    Open {
        /// Id of the sale that is disputed
        sale: String,
        /// The reason, for buyer and seller
        #[arg(long, value_name = "R")]
        reason: String,
    },
    /// End a dispute for the seller or the buyer
    Resolve {
        /// Id of the dispute to end
        id: String,
        /// Give the share to the seller
        #[arg(long, conflicts_with = "refund", required_unless_present = "refund")]
        release: bool,
        /// Give the price back to the buyer
        #[arg(long)]
        refund: bool,
        /// Target of the refund [default: credits, or the wallet of a buyer without account]
        #[arg(long, value_enum, requires = "refund")]
        to: Option<RefundTo>,
        /// The answer, for buyer and seller
        #[arg(long, value_name = "A", default_value = "")]
        answer: String,
    },
}

/// Destination of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RefundTo {
    /// Credits of the operator that bought
    Credits,
    /// The wallet that paid
    Wallet,
}

/// Commands for the reviews.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ValidationCommand {
    /// Keep what is submitted, and review none of it until `resume`
    Pause,
    /// Review again, what was kept first
    Resume,
}

/// Commands for knowledge units.
#[derive(Debug, Subcommand)]
pub enum KnowledgeCommand {
    /// Blank every text of a unit and hide it for good
    Erase {
        /// The id of any version of the unit
        #[arg(value_name = "CHAIN")]
        id: String,
    },
}

/// Commands for reports of items.
#[derive(Debug, Subcommand)]
pub enum Reports {
    /// List reports, newest first
    List {
        /// Only those with this status
        #[arg(long, value_name = "S", value_parser = ["open", "upheld", "dismissed"])]
        status: Option<String>,
    },
    /// Take the item of a report down and tell its owner and its buyers
    Uphold {
        /// Id of the report to uphold
        id: String,
        /// The reason that the owner reads
        #[arg(long, value_name = "N")]
        note: Option<String>,
    },
    /// Close a report; its item stays
    Dismiss {
        /// Id of the report to close
        id: String,
        /// The reason, which the staff reads
        #[arg(long, value_name = "N")]
        note: Option<String>,
    },
    /// Show an item again and tell its owner
    Restore {
        /// The id of the takedown, as `uphold` and `list` print it
        id: String,
    },
}

/// Commands for tables of datasets.
#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Go on with a table that lacks versions it had, at the latest version that it still has
    AcceptLoss {
        /// The project's slug
        slug: String,
        /// The reason, for the agents whose contributions are lost
        #[arg(long, value_name = "R")]
        reason: String,
    },
}

/// Commands for dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLetters {
    /// List the dead letters
    List,
    /// Submit a dead letter again, under the same contribution id
    Replay {
        /// The id of the dead letter, as `list` prints it
        id: String,
    },
}

/// Options of `check`: the bound on open contributions.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  sluice check
  sluice check --data /backup/2026-11-21 --json")]
pub struct CheckArgs {
    /// Time that a contribution may be without an outcome, such as `10m`
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    pub open_for: types::HumanDuration,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Commands for the keys that sign manifests.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  sluice keys rotate
  sluice keys revoke 9f2c4d5e6a7b8c9d --reason \"its file was copied\"")]
pub enum KeysCommand {
    /// Make a new key the current one; the old key endorses it, and its signatures stay valid
    Rotate,
    /// Invalidate every signature of a key; if it is the current key, a new one replaces it at once
    Revoke {
        /// The key's id: 16 hexadecimal digits
        #[arg(value_name = "KEYID")]
        key: String,
        /// The reason, which is public
        #[arg(long, value_name = "R")]
        reason: String,
    },
}

/// Options of `collect`: a definition, or the name of a collector.
#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(after_help = "Examples:
  sluice collect quakes.toml
  sluice collect --once usgs-earthquakes")]
pub struct Collect {
    /// Definition of a source (TOML), submitted with the key of an agent
    #[arg(required_unless_present = "once", conflicts_with = "once")]
    pub file: Option<PathBuf>,
    /// A collector of the service, whatever its schedule; reads the service's configuration and database, and works while
    /// it runs
    #[arg(long, value_name = "NAME")]
    pub once: Option<String>,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `config`, of which one is required.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  sluice config --show > sluice.toml
  sluice config --show --json | jq .server")]
pub struct ConfigArguments {
    /// Print the merged configuration as a commented file, secrets masked
    #[arg(long, required = true)]
    pub show: bool,
    /// Print it as one JSON object, without comments
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_may_follow_the_command() {
        let cli = Cli::try_parse_from(["sluice", "admin", "dead-letters", "list", "--data", "/tmp/d"]).unwrap();
        assert_eq!(cli.global.flags(), [("data.dir", "/tmp/d".to_owned())]);
        assert!(Cli::try_parse_from(["sluice", "quickstart", "--records", "1"]).is_err());
        assert!(Cli::try_parse_from(["sluice", "config"]).is_err());
    }

    #[test]
    fn a_service_is_everything_unless_told() {
        let role = |arguments: &[&str]| match Cli::try_parse_from([&["sluice", "serve"], arguments].concat()) {
            Ok(Cli {
                command: Command::Serve(Serve { role }),
                ..
            }) => Some(role),
            _ => None,
        };
        assert_eq!(role(&[]), Some(ProcessRole::All));
        assert_eq!(role(&["--role", "worker"]), Some(ProcessRole::Worker));
        assert_eq!(role(&["--role", "queen"]), None);
    }

    #[test]
    fn a_version_to_pull_is_a_number_from_1() {
        let pull = |version: &str| Cli::try_parse_from(["sluice", "pull", "tide-levels", "--version", version]);
        let Command::Pull(arguments) = pull("12").unwrap().command else {
            panic!("another command")
        };
        assert_eq!(arguments.version, Some(12));
        assert!(pull("0").is_err() && pull("latest").is_err());
    }
}
