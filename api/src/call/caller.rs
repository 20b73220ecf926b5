//! Caller of an operation, after authentication, and what a transport presents before it.
//!
//! Invariant: a [`Caller`] exists only for a credential that is valid, of an operator that is not suspended.

use std::fmt;
use std::net::IpAddr;

use oauth::{ConnectionId, Resource};
use store::{ClaimStatus, Spender};
use types::{AgentId, ClaimId, OperatorId, SessionId, Timestamp};

use crate::call::spec::{Credential, Scope};
use crate::call::visit::BrowserRequest;

/// Owner of a valid credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Operator that the caller is, or acts for.
    pub operator: OperatorId,
    /// Kind of the caller.
    pub actor: CallerKind,
    /// Permissions of the credential.
    pub scopes: Scopes,
    /// Kind of the credential.
    pub credential: Credential,
    /// Connection of the app that acts as the agent, if one does.
    pub connection: Option<ConnectionId>,
    /// Instant from which the key of an agent is no longer valid, if it has an end.
    pub expires_at: Option<Timestamp>,
}

/// Kind of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerKind {
    /// An agent, by its key.
    Agent {
        /// Id of the agent.
        id: AgentId,
        /// Name of the agent.
        name: String,
    },
    /// The person behind an operator, by a token.
    Person,
    /// The person behind an operator, signed in to the console.
    SignedIn {
        /// Session of the browser.
        session: SessionId,
        /// Time of signing in.
        since: Timestamp,
    },
    /// An agent whose claim was not approved, by the key that it got with the claim.
    Claimant {
        /// Id of the claim.
        claim: ClaimId,
        /// Status of the claim: pending, rejected or expired.
        status: ClaimStatus,
    },
}

impl Caller {
    /// Returns the agent that acts; `None` for a person.
    pub const fn agent(&self) -> Option<AgentId> {
        match &self.actor {
            CallerKind::Agent { id, .. } => Some(*id),
            // A claimant has an id that becomes that of an agent only with the approval.
            CallerKind::Person | CallerKind::SignedIn { .. } | CallerKind::Claimant { .. } => None,
        }
    }

    /// Returns the agent that acts with its app, whose limits hold for what is spent; `None` for a person.
    pub fn spender(&self) -> Option<Spender> {
        let app = self.connection;
        self.agent().map(|agent| Spender { agent, app })
    }
}

/// Set of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every permission, as agent keys and operator tokens have.
    pub const ALL: Self = Self(0b111);
    /// No permission.
    pub const NONE: Self = Self(0);

    /// Returns the set with one permission more.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | Self::bit(scope))
    }

    /// Returns true if the permission is in the set. No permission includes another.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & Self::bit(scope) != 0
    }

    const fn bit(scope: Scope) -> u8 {
        match scope {
            Scope::Read => 0b001,
            Scope::Write => 0b010,
            Scope::Spend => 0b100,
        }
    }
}

/// Origin of a call, as a transport sees it.
#[derive(Clone)]
pub struct CallOrigin {
    /// Address of the client.
    pub client: IpAddr,
    /// Credential that the client presents, not yet verified.
    pub presented: PresentedCredential,
    /// True if the client gets no body of the answer, as with HEAD.
    pub takes_no_body: bool,
    /// Browser that opens a page; `None` for a program.
    pub visit: Option<BrowserRequest>,
    /// Door of the service that the call came in by.
    pub door: Transport,
}

/// Door of the service. It decides which credentials are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A route of an operation.
    Rest,
    /// A tool of this server. The transport has counted the call toward the rate limit.
    Mcp(Resource),
    /// A page of this service, for the person of a session, as this agent; `None` if it names none. The transport has
    /// counted the call toward the rate limit.
    Console(Option<AgentId>),
}

impl CallOrigin {
    /// Returns true if the client presents a credential, good or not.
    pub const fn has_credential(&self) -> bool {
        !matches!(self.presented, PresentedCredential::Nothing)
    }
}

/// Credential as a transport received it.
#[derive(Clone)]
pub enum PresentedCredential {
    /// No credential.
    Nothing,
    /// Value of the `Authorization` header.
    Authorization(String),
    /// An `Authorization` header that is not text.
    Unreadable,
    /// Token of a session, from a cookie.
    Session(String),
}

/// Shows the address only, never the credential.
impl fmt::Debug for CallOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Shows the kind only, never the credential.
impl fmt::Debug for PresentedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Authorization(_) => "Authorization",
            Self::Unreadable => "Unreadable",
            Self::Session(_) => "Session",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_includes_no_other() {
        let scopes = [Scope::Read, Scope::Write, Scope::Spend];
        for (one, given) in scopes.iter().enumerate() {
            // A scope that implied another would give an app more than a person agreed to.
            let set = Scopes::NONE.with(*given);
            let allowed: Vec<bool> = scopes.iter().map(|scope| set.allow(*scope)).collect();
            assert_eq!(allowed, [one == 0, one == 1, one == 2]);
        }
        assert!(
            scopes
                .iter()
                .all(|scope| Scopes::ALL.allow(*scope) && !Scopes::NONE.allow(*scope))
        );
    }
}
