//! Agents, claims and claim codes.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::spend::SpendLine;
use crate::time::Instant;

/// Wrong tries that lock a claim code.
const WRONG_TRIES: u32 = 5;

/// `GET /console/agents`. Forms: `POST /console/agents` with `name` and `wallet_address`,
/// `POST /console/agents/{id}/rotate` with `grace_hours`, `POST /console/agents/{id}/keys/{key}/end`, `POST /console/codes`, `POST /console/codes/{id}/withdraw`,
/// `POST /console/claims/{id}/approve` with `phrase`, `sp` (`no` or
/// `cap`) and `cap`, `POST /console/claims/{id}/reject`. A link to
/// `/console/agents/{id}/remove` asks before a removal.
#[derive(Debug, Template)]
#[template(path = "console/agents.html")]
pub struct AgentsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Most agents that an operator may have; claims that wait count.
    pub limit: u32,
    /// Agents, those that were removed last.
    pub agents: Vec<AgentView>,
    /// Claims that wait, oldest first.
    pub claims: Vec<ClaimView>,
    /// Claims that were decided or expired, newest first.
    pub decided: Vec<DecidedClaim>,
    /// Claim codes that were not used, newest first.
    pub codes: Vec<CodeView>,
    /// Form for a new agent.
    pub create: NewAgentForm,
    /// Outcome of the last action, one sentence.
    pub notice: Option<String>,
}

/// Agent of the operator.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// Id of the agent.
    pub id: String,
    /// Name of the agent.
    pub name: String,
    /// Description of its purpose.
    pub description: Option<String>,
    /// Address of its wallet.
    pub wallet_address: Option<String>,
    /// Time of its creation.
    pub created_at: Instant,
    /// Time of its removal, if it was removed.
    pub removed_at: Option<Instant>,
    /// Keys that are valid, newest first.
    pub keys: Vec<KeyView>,
    /// Its limits, and what it has spent.
    pub spending: SpendLine,
}

/// Key of an agent. The service keeps only its hash.
#[derive(Clone, Debug)]
pub struct KeyView {
    /// Id of the key, which is no secret.
    pub id: String,
    /// Device that got the key by a login.
    pub device: Option<String>,
    /// Time of its creation.
    pub created_at: Instant,
    /// Time at which it ends: of a login, or if it was replaced.
    pub expires_at: Option<Instant>,
}

/// Claim that waits for the person.
#[derive(Clone, Debug)]
pub struct ClaimView {
    /// Id of the claim.
    pub id: String,
    /// Name that the agent chose.
    pub name: String,
    /// Description that the agent gave.
    pub description: Option<String>,
    /// Time of the claim.
    pub created_at: Instant,
    /// Time at which it expires.
    pub expires_at: Instant,
    /// Phrase as the person typed it.
    pub phrase: String,
    /// True if the agent is to spend up to a cap, and not nothing.
    pub may_spend: bool,
    /// Most that it is to spend in a month, in dollars as typed.
    pub cap: String,
    /// Rule that the cap breaks.
    pub cap_error: Option<String>,
    /// Rule that the phrase breaks, such as that it is another one.
    // A wrong phrase is shown at its claim, and not at the top, where it would belong to any of them.
    pub error: Option<String>,
}

impl ClaimView {
    /// Returns the id of the field of the phrase, which is one of several on the page.
    fn field(&self) -> String {
        format!("phrase-{}", self.id)
    }

    /// Returns the id of the field of the cap.
    fn cap_field(&self) -> String {
        format!("cap-{}", self.id)
    }
}

/// End of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimEnd {
    /// The person approved it.
    Approved,
    /// The person rejected it.
    Rejected,
    /// Nobody decided in time.
    Expired,
}

impl ClaimEnd {
    const fn class(self) -> &'static str {
        match self {
            Self::Approved => "ok",
            Self::Rejected => "bad",
            Self::Expired => "off",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// Claim that came to an end.
#[derive(Clone, Debug)]
pub struct DecidedClaim {
    /// Name that the agent chose.
    pub name: String,
    /// End of the claim.
    pub end: ClaimEnd,
    /// Time of the claim.
    pub created_at: Instant,
    /// Time of the end.
    pub ended_at: Instant,
}

/// Claim code that was not used. Its text was shown once.
#[derive(Clone, Debug)]
pub struct CodeView {
    /// Id of the code.
    pub id: String,
    /// Time of its creation.
    pub created_at: Instant,
    /// Time at which it ends.
    pub expires_at: Instant,
    /// Number of wrong tries.
    pub wrong_tries: u32,
}

impl CodeView {
    const fn is_locked(&self) -> bool {
        self.wrong_tries >= WRONG_TRIES
    }
}

/// Form for a new agent, as typed.
#[derive(Clone, Debug, Default)]
pub struct NewAgentForm {
    /// Name as the person typed it.
    pub name: String,
    /// Address of the wallet; may be empty.
    pub wallet_address: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

impl AgentsPage {
    /// Returns the address that an assistant is given.
    fn mcp(&self) -> String {
        format!("{}/mcp", self.chrome.base)
    }

    fn active(&self) -> impl Iterator<Item = &AgentView> {
        self.agents.iter().filter(|agent| agent.removed_at.is_none())
    }

    fn removed(&self) -> Vec<&AgentView> {
        self.agents.iter().filter(|agent| agent.removed_at.is_some()).collect()
    }

    /// Returns the class of each place: taken, kept for a claim, free.
    fn places(&self) -> Vec<&'static str> {
        let taken = self.active().map(|_| "");
        let waiting = self.claims.iter().map(|_| "wait");
        let free = std::iter::repeat("free");
        taken.chain(waiting).chain(free).take(self.limit as usize).collect()
    }

    fn free(&self) -> usize {
        // A waiting claim keeps its place: otherwise an approval could fail after the person decided.
        (self.limit as usize).saturating_sub(self.active().count() + self.claims.len())
    }

    fn places_in_words(&self) -> String {
        let (active, waiting, free) = (self.active().count(), self.claims.len(), self.free());
        format!("{active} active, {waiting} waiting, {free} free")
    }
}
