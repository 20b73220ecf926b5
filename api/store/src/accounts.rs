//! Accounts: operators and their tokens, agents and their keys, claims, logins, invitations, links, sessions, payout addresses.
//!
//! Invariant: of a secret only the hash is stored, and every limit is counted in the transaction that it limits.

mod agents;
mod claims;
mod closing;
mod codes;
mod email_changes;
mod first_steps;
mod invites;
mod keys;
mod links;
mod logins;
pub(crate) mod mail;
mod operators;
mod payout;
mod people;
mod principals;
mod sessions;
mod sign_up;
mod tidying;
mod tokens;

use crate::Store;

pub use agents::{AgentCreated, NewAgent, NewConsent};
pub use claims::{Approval, Claim, Claimed, NewClaim, Polled, Rejection};
pub use closing::{AccountClosed, CLOSED_NAME, OpenMatters};
pub use codes::{ClaimCode, ClaimCodeAdded, CodeRefused, MAX_WRONG_TRIES, NewClaimCode};
pub use email_changes::{EmailChange, EmailChangeAsked, EmailChanged, NewEmailChange};
pub use invites::{Invitation, InviteRequest};
pub use keys::{Agent, AgentKey};
pub use links::{LinkRefused, MailLink, NewLink};
pub use logins::{
    Login, LoginAgent, LoginApproval, MAX_WRONG_CODES, NewLogin, TypedCode, TypedCodeRefused, WRONG_CODE_WINDOW,
};
pub use mail::Mail;
pub use operators::{NewOperator, Operator, OperatorCreated};
pub(crate) use operators::{lock, lock_suspended, suspend};
pub use payout::{Payout, WalletOwner};
pub use principals::Principal;
pub use sessions::{NewSession, Session};
pub use sign_up::{LinkRequest, LinkRequested, NewSignUp, SignedUp};
pub use tokens::{NewToken, Token, TokenAdded};

/// The part of the database about people and their agents.
#[derive(Clone, Copy, Debug)]
pub struct Accounts<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about people and their agents.
    pub const fn accounts(&self) -> Accounts<'_> {
        Accounts(self)
    }
}
