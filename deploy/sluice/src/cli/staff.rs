//! Commands for accounts and invitations.

use clap::{Subcommand, ValueEnum};
use types::vocabulary::StaffRole;

/// Roles of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OperatorRole {
    /// Decides about reports in the console, looks accounts up, and gets letters about reports
    Moderator,
    /// Does that too, decides disputes, suspends and restores accounts, invites, and sees the figures
    Administrator,
    /// Has no role, and decides about no report
    None,
}

impl OperatorRole {
    /// Returns the role as it is stored.
    pub const fn stored(self) -> Option<StaffRole> {
        match self {
            Self::Moderator => Some(StaffRole::Moderator),
            Self::Administrator => Some(StaffRole::Administrator),
            Self::None => None,
        }
    }
}

/// Commands for operators and their credentials.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Add an operator, verified and with the terms accepted, and print a token
    Add {
        /// The e-mail address, at most 254 characters
        #[arg(long, value_name = "E")]
        email: String,
        /// The name shown, 1 to 80 characters
        #[arg(long, value_name = "N")]
        name: String,
    },
    /// List operators, newest first
    List {
        /// Most operators that are listed
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Find operators by the beginning of an e-mail address or a name, or by an agent, a wallet, an item or an id
    Find {
        /// Text that is known of the operator
        #[arg(value_name = "TEXT")]
        told: String,
    },
    /// Show an operator with its agents, items, takedowns and reports
    Show {
        /// The operator's id or e-mail address
        #[arg(value_name = "OPERATOR")]
        operator: String,
    },
    /// Set the role of an operator
    Role {
        /// Id or e-mail address of the operator whose role is set
        #[arg(value_name = "OPERATOR")]
        operator: String,
        /// Role that the operator gets
        role: OperatorRole,
    },
    /// Refuse every credential of an operator and its agents, and mail the reason
    Suspend {
        /// The operator's id or e-mail address
        #[arg(value_name = "OPERATOR")]
        operator: String,
        /// The reason, which the operator sees
        #[arg(long, value_name = "R")]
        reason: String,
    },
    /// Accept an operator's credentials again, and mail that
    Restore {
        /// The operator's id or e-mail address
        #[arg(value_name = "OPERATOR")]
        operator: String,
        /// The reason, which the operator sees
        #[arg(long, value_name = "R")]
        reason: Option<String>,
    },
}

/// Commands for invitations.
#[derive(Debug, Subcommand)]
pub enum InvitationsCommand {
    /// List invitations, newest first, and the requests for one
    List {
        /// Most invitations that are listed
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Take an invitation back that nobody has used
    Withdraw {
        /// The e-mail address
        #[arg(value_name = "EMAIL")]
        email: String,
    },
}
