//! Commands about what is on sale: `search`, `list`, `info`, `buy` and `credits`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::remote::RemoteService;

/// Options of `search`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice search tide gauges
  sluice search '\"gauge float\" offset' --kind unit --price free
  sluice search --kind dataset --json | jq -r '.items[].slug'")]
pub struct SearchArgs {
    /// Words to search for; a phrase stands in quotes. Without any, the newest come first
    #[arg(value_name = "WORDS")]
    pub words: Vec<String>,
    /// Kind of the results
    #[arg(long, value_enum, value_name = "KIND")]
    pub kind: Option<HitKind>,
    /// Category of write-ups
    #[arg(long, value_name = "CATEGORY")]
    pub category: Option<String>,
    /// Price of the results
    #[arg(long, value_enum, value_name = "PRICE")]
    pub price: Option<HitPrice>,
    /// Most results, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub limit: u32,
    /// Print the answer of the service as JSON
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Kind of what a search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HitKind {
    /// Write-ups
    Unit,
    /// Datasets
    Dataset,
}

/// Price of what a search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HitPrice {
    /// Anybody reads them
    Free,
    /// The key of an agent reads them
    Key,
    /// They are bought
    Priced,
    /// Credits that were given buy them too
    Trial,
}

/// Options of `list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice list
  sluice list tide --limit 5
  sluice list --json | jq -r '.items[] | [.slug, .recordCount] | @tsv'")]
pub struct ListArgs {
    /// Text that the slug or the title contains
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// Most datasets, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Print the answer of the service as JSON
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `info`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice info tide-levels
  sluice info tide-levels --json | jq .schemaDef
  sluice info 019b1efd-2c32-7c1a-9d35-6a1f0c2b7e10 --text > write-up.md")]
pub struct InfoArgs {
    /// Slug of a dataset, or id of a write-up
    #[arg(value_name = "ITEM")]
    pub item: String,
    /// Print the whole text of a write-up that may be read; the service counts it as read
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `buy`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice buy tide-levels
  sluice buy tide-levels --version 12 --yes --max-price 0.50
  sluice buy 019b1efd-2c32-7c1a-9d35-6a1f0c2b7e10 --yes --receipt receipt.json

Above the line that a person drew for the agent, the person is asked first (exit code 3). The same command then says
what became of it.")]
pub struct BuyArgs {
    /// Slug of a dataset, or id of a write-up
    #[arg(value_name = "ITEM")]
    pub item: String,
    /// The version of a dataset, with all before it [default: the latest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub version: Option<u64>,
    /// Most dollars to pay, such as 0.50 [default: the price that is shown]
    #[arg(long, value_name = "PRICE")]
    pub max_price: Option<String>,
    /// Words for the person, if one is asked
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Buy without a question
    #[arg(long)]
    pub yes: bool,
    /// File that gets the signed receipt
    #[arg(long, value_name = "FILE")]
    pub receipt: Option<PathBuf>,
    /// Print the answer of the service as JSON
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `credits`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice credits
  sluice credits --json | jq .balanceMicro")]
pub struct CreditsArgs {
    /// Most movements, 1 to 200
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Print the answer of the service as JSON
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `completions`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  sluice completions bash > ~/.local/share/bash-completion/completions/sluice
  sluice completions zsh > ~/.zfunc/_sluice
  sluice completions fish > ~/.config/fish/completions/sluice.fish")]
pub struct CompletionsArgs {
    /// Shell that completes the commands
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
