//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::quickstart::{ALL, FEWEST};

/// A marketplace whose heart is a dataflow engine: records stream through gates into versioned tables.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, propagate_version = true)]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The options of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// The folder of everything the service keeps [default: ./data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where to listen: address and port [default: 127.0.0.1:8080]
    #[arg(long, global = true, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// A configuration file; `sluice config --show` prints one with every key
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Global {
    /// The flags as keys of the configuration.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let data = self
            .data
            .as_ref()
            .map(|dir| ("data.dir", dir.to_string_lossy().into_owned()));
        let listen = self.listen.map(|address| ("server.listen", address.to_string()));
        data.into_iter().chain(listen).collect()
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service until it is stopped
    Serve,
    /// Run the service and stream a real dataset through it, showing what happens
    Quickstart(Quickstart),
    /// Administer the service; prints JSON, works while it runs
    #[command(subcommand)]
    Admin(Admin),
    /// Prove that database and tables agree; works while the service runs
    Check(Check),
    /// Print the machine-readable description of the interface
    Openapi,
    /// Look at the configuration
    Config(ConfigArguments),
}

/// How the quickstart runs.
#[derive(Clone, Copy, Debug, Args)]
pub struct Quickstart {
    /// How many records of the dataset to stream
    #[arg(long, value_name = "N", default_value_t = ALL,
          value_parser = clap::value_parser!(u32).range(i64::from(FEWEST)..=i64::from(ALL)))]
    pub records: u32,
    /// Leave the service running until it is stopped [default]
    #[arg(long, overrides_with = "exit")]
    pub stay: bool,
    /// Stop the service at the end
    #[arg(long)]
    pub exit: bool,
}

/// Administration.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Operators: the people behind agents
    #[command(subcommand)]
    Operator(Operator),
    /// Submissions that no worker could process
    #[command(subcommand)]
    DeadLetters(DeadLetters),
}

/// Administration of operators.
#[derive(Debug, Subcommand)]
pub enum Operator {
    /// Add an operator, verified and with the terms accepted, and print a token
    Add {
        /// The e-mail address, at most 254 characters
        #[arg(long, value_name = "E")]
        email: String,
        /// The name shown, 1 to 80 characters
        #[arg(long, value_name = "N")]
        name: String,
    },
    /// Refuse every credential of an operator and its agents
    Suspend {
        /// The operator's id
        id: String,
        /// Why, for the operator
        #[arg(long, value_name = "R")]
        reason: String,
    },
    /// Accept an operator's credentials again
    Restore {
        /// The operator's id
        id: String,
        /// Why, for the operator
        #[arg(long, value_name = "R")]
        reason: Option<String>,
    },
}

/// Administration of dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLetters {
    /// List them
    List,
    /// Submit one again, under the same contribution id
    Replay {
        /// The contribution's id
        id: String,
    },
}

/// How the check runs.
#[derive(Clone, Copy, Debug, Args)]
pub struct Check {
    /// How long a contribution may be without an outcome, such as `10m`
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    pub open_for: crate::config::Span,
}

/// What to show of the configuration.
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
}
