//! Commands about what is the caller's own: the key, open uploads, and the end of a project.

use clap::{Args, Subcommand};

use crate::remote::{DEFAULT_URL, RemoteService};

/// Options of `uploads`.
#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  sluice uploads
  sluice uploads cancel 019b1efd-2c32-7c1a-9d35-6a1f0c2b7e10"
)]
pub struct UploadsArgs {
    /// Without a command the open uploads are listed.
    #[command(subcommand)]
    pub command: Option<UploadsCommand>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Commands for open uploads.
#[derive(Clone, Debug, Subcommand)]
pub enum UploadsCommand {
    /// Cancel an upload that was not completed: its bytes are deleted, and its place is free
    Cancel {
        /// Id of the upload, as `sluice uploads` prints it
        id: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The service that the command talks to.
        #[command(flatten)]
        remote: RemoteService,
    },
}

/// Options of `login`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice login --server https://sluice.example
  sluice login --device ada-laptop")]
pub struct LoginArgs {
    /// Name of this machine, by which the person recognizes it [default: its host name]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Address of the service
    #[arg(long, env = "SLUICE_SERVER", value_name = "URL", default_value = DEFAULT_URL)]
    pub server: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Options of `whoami`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice whoami
  sluice whoami --json | jq .limits")]
pub struct WhoamiArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `archive`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice archive tide-levels")]
pub struct ArchiveArgs {
    /// The project's slug
    pub slug: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `delete`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice delete drafts
  sluice delete drafts --yes")]
pub struct DeleteArgs {
    /// The project's slug
    pub slug: String,
    /// Delete without a question
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}
