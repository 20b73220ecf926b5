//! Commands that read the records of a dataset: `query` and `pull`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::remote::RemoteService;

/// Options of `query`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice query tide-levels \"SELECT * FROM records LIMIT 5\"
  sluice query tide-levels \"SELECT gauge, max(metres) AS metres FROM records GROUP BY gauge\" --format csv > max.csv
  sluice query tide-levels \"SELECT count(*) AS rows FROM records\" --version 12 --json")]
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
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
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

/// Options of `pull`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice pull tide-levels
  sluice pull tide-levels --version 12 --dir tides && sluice verify tides")]
pub struct PullArgs {
    /// The project's slug
    pub slug: String,
    /// The version [default: the latest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub version: Option<u64>,
    /// The folder to pull into [default: ./SLUG]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
    /// The service keys that are trusted.
    #[command(flatten)]
    pub trust: TrustArgs,
}
