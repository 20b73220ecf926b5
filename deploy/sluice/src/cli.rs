//! The command line.

mod files;
mod own;
mod pay;
mod staff;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::remote::RemoteService;
use crate::roles::ProcessRole;

pub use files::{CreateArgs, InferArgs, ProjectArgs, PushArgs, ReadingArgs, RefusedEffect};
pub use own::{ArchiveArgs, DeleteArgs, LoginArgs, UploadsArgs, UploadsCommand, WhoamiArgs};
pub use pay::{
    LedgerCommand, LedgerDay, LedgerMonth, PaymentDecision, PaymentsCommand, PayoutCommands, PayoutDecision,
};
pub use staff::{InvitationsCommand, OperatorCommand, OperatorRole};
pub use verify::{ReceiptArgs, VerifyArgs, VerifyCommand};

/// The fewest records that a quickstart streams.
pub const MIN_RECORDS: u32 = 5_000;
/// Records of the dataset.
pub const ALL_RECORDS: u32 = 34_888;

/// A marketplace whose heart is a dataflow engine: records stream through gates into versioned tables.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, propagate_version = true)]
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
    /// Address and port to listen on [default: 127.0.0.1:8080]
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
}

/// Options of `serve`: the role of the process.
#[derive(Clone, Copy, Debug, Args)]
pub struct Serve {
    /// The role of this process; each role can have many processes
    #[arg(long, value_enum, default_value_t)]
    pub role: ProcessRole,
}

/// Options of `quickstart`: the amount of data, and the end.
#[derive(Clone, Copy, Debug, Args)]
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
pub struct CheckArgs {
    /// Time that a contribution may be without an outcome, such as `10m`
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    pub open_for: types::HumanDuration,
}

/// Commands for the keys that sign manifests.
#[derive(Debug, Subcommand)]
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

/// Options of `query`.
#[derive(Clone, Debug, Args)]
#[command(disable_version_flag = true)]
pub struct QueryArgs {
    /// The project's slug
    pub slug: String,
    /// One SELECT over the table `records`
    pub sql: String,
    /// The version [default: the latest]
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
    /// Most rows of the answer, up to 1000 [default: that of the service]
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = QueryFormat::Table)]
    pub format: QueryFormat,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// The output formats of `query`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueryFormat {
    /// Aligned columns for people
    Table,
    /// RFC 4180 with line feeds; a null is empty
    Csv,
    /// The answer of the service
    Json,
    /// A Parquet file, for a redirected output
    Parquet,
}

/// Options for the trust in service keys.
#[derive(Clone, Debug, Args)]
pub struct TrustArgs {
    /// File with the services that this machine knows and their first keys [default:
    /// $XDG_DATA_HOME/sluice/known-keys.json]
    #[arg(long, value_name = "FILE", env = "SLUICE_KNOWN_KEYS")]
    pub known_keys: Option<PathBuf>,
}

/// Options of `collect`: a definition, or the name of a collector.
#[derive(Clone, Debug, Args)]
#[command(disable_version_flag = true)]
#[group(skip)]
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

/// Options of `pull`.
#[derive(Clone, Debug, Args)]
#[command(disable_version_flag = true)]
pub struct PullArgs {
    /// The project's slug
    pub slug: String,
    /// The version [default: the latest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub version: Option<u64>,
    /// The folder to pull into [default: ./SLUG]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
    /// The service keys that are trusted.
    #[command(flatten)]
    pub trust: TrustArgs,
}

/// Options of `config`, of which one is required.
#[derive(Clone, Copy, Debug, Args)]
pub struct ConfigArguments {
    /// Print the merged configuration as a commented file, secrets masked
    #[arg(long, required = true)]
    pub show: bool,
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
