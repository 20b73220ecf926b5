//! Question of an app that wants to act as an agent.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::spend::{CreditBalance, SpendLine};

/// Asks the person about an app: a form to `POST /oauth/authorize` with `request`, `agent` (an id, or `new`), `scopes` (once
/// per scope), `cap`, `ask_above` and `decision` (`approve` or `deny`).
#[derive(Debug, Template)]
#[template(path = "consent.html")]
pub struct ConsentPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Name of the app, as it calls itself.
    pub client: String,
    /// Id of the client: the URL of its document, or the id of its registration.
    pub client_id: String,
    /// True if the id is a URL under which the app describes itself; false if it only registered.
    // A registered app gives itself any name. A URL as id shows at least whose host describes it, so
    // the page says which of the two it is.
    pub is_known_by_url: bool,
    /// Host that the browser is sent back to.
    // The host that gets the code. A name can be forged, and this cannot, so the person is shown both.
    pub redirect_host: String,
    /// Address of the endpoint that the app asks for.
    pub endpoint: String,
    /// Display name of the operator who is signed in.
    pub operator: String,
    /// Scopes that the app asks for.
    pub scopes: Vec<ScopeChoice>,
    /// Budget of the app, if it asks to spend.
    pub budget: Option<ConsentBudget>,
    /// Agents to choose from, each with its own limits and what it has spent.
    pub agents: Vec<(AgentChoice, SpendLine)>,
    /// Name that a new agent would get; none if no place is left.
    pub new_agent: Option<String>,
    /// Number of places for agents that are left.
    pub places_left: u32,
    /// Value of the field `agent`, as chosen; empty at first.
    pub chosen: String,
    /// Value of the hidden field `request`.
    // The query of the app's request, which is checked again with the answer: nothing of it is kept in
    // between.
    pub request: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Budget of an app, in dollars as typed; an empty text is no limit.
#[derive(Clone, Debug)]
pub struct ConsentBudget {
    /// Most that it spends in a month.
    pub cap: String,
    /// Price above which a purchase waits for the person.
    pub ask_above: String,
    /// Credits of the account.
    pub credits: CreditBalance,
}

/// Scope that an app asks for.
#[derive(Clone, Debug)]
pub struct ScopeChoice {
    /// Word of the scope.
    pub scope: String,
    /// Things that it allows, in words.
    pub allows: String,
    /// True if the scope is always given.
    pub required: bool,
    /// True if the scope is chosen.
    pub chosen: bool,
}

/// Agent to choose from.
#[derive(Clone, Debug)]
pub struct AgentChoice {
    /// Id of the agent.
    pub id: String,
    /// Name of the agent.
    pub name: String,
    /// Description of its purpose.
    pub description: Option<String>,
}

impl ScopeChoice {
    /// Returns true if the scope lets the app spend.
    fn is_spend(&self) -> bool {
        self.scope == "spend"
    }
}

impl ConsentPage {
    /// Returns the choice that is marked: the person's, else the first agent, else a new one.
    fn marked(&self) -> &str {
        if !self.chosen.is_empty() {
            return &self.chosen;
        }
        // A choice is always marked, so that the form works with one press and the browser cannot send
        // it without an agent.
        self.agents.first().map_or("new", |(agent, _)| agent.id.as_str())
    }

    /// Returns true if the browser is sent back to the machine that it runs on.
    fn is_local(&self) -> bool {
        let host = self.redirect_host.as_str();
        ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| {
            host.strip_prefix(local)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }

    fn is_marked(&self, id: &str) -> bool {
        self.marked() == id
    }
}
