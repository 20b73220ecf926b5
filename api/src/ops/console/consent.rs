//! Consent of a person to an app that wants to act as one of their agents (OAuth 2.1 section 4.1).
//!
//! Invariants:
//! - The form carries the app's request as the query had it, and the request is checked again: a browser can change
//!   what a form sends.
//! - The browser is sent only to an address that the app registered.
//! - A form that is sent again makes no second agent.

use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use oauth::authorize::{self, AuthorizeRefusal, AuthorizeRequest, RequestError, ShownProblem};
use oauth::client::OAuthClient;
use oauth::document::is_document_url;
use oauth::{AppBudget, Params, Scope, Scopes};
use pages::{AgentChoice, ConsentBudget, ConsentPage, ScopeChoice};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{NewConsent, SpendOwner};
use types::{AgentId, OperatorId};
use url::{Host, Origin, Url};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::accounts::REGISTRATIONS;
use crate::ops::page_kit::{form, form_page, id, missing, page, page_layout, repairable};
use crate::ops::spend_lines::{self, may_act};
use crate::rules::accounts;
use crate::state::apps::{ClientError, DocumentAsker};

const PATH: &str = oauth::discovery::AUTHORIZE_PATH;
/// Value of the field `agent` for an agent that is made with the consent.
const NEW: &str = "new";
/// Longest name of an agent, in bytes.
const MAX_NAME: usize = 60;
/// Time for which the same consent, sent again, makes no other agent.
pub(super) const REPEATED: Duration = Duration::from_hours(24);
/// Cap of a month that the form suggests for an app that asks to spend, in dollars.
const FIRST_CAP: &str = "1.00";
/// Price above which the form suggests to ask, in dollars.
const FIRST_ASK_ABOVE: &str = "0.50";
/// Names that are tried for a new agent if the first ones are taken.
const TRIES: usize = 20;

pub(super) fn add(table: &mut Operations) {
    let question = Spec {
        // Parameters that the service does not know are ignored (RFC 6749 section 3.1).
        opaque: true,
        ..page("authorize_app_page", PATH, "Asks whether an app may act as an agent")
    };
    table.add(question, &[], ask);
    let answer = Spec {
        success: &[(303, "The browser goes back to the app, with a code or a refusal.")],
        ..form("authorize_app_form", PATH, "Connects an app, or does not")
    };
    table.add(answer, &[], decide);
}

/// Request of an app that a person may be asked about.
struct ConsentRequest {
    client: OAuthClient,
    request: AuthorizeRequest,
    /// Query of the request.
    query: String,
}

/// Outcome of looking at a request.
enum ConsentLookup {
    /// The person is asked.
    Ask(Box<ConsentRequest>),
    /// The browser goes back to the app with an error.
    Back(String),
}

async fn ask(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let visit = cx.the_visit()?;
    let query = visit.path.split_once('?').map_or("", |(_, query)| query).to_owned();
    match parse_request(&cx, query).await? {
        ConsentLookup::Ask(asked) => {
            let view = PageResponse::page(&question(&cx, &asked).await?)?;
            allow_return(view, &asked)
        }
        ConsentLookup::Back(to) => PageResponse::see(&to),
    }
}

/// Checks the request in a query.
async fn parse_request(cx: &Cx, query: String) -> Result<ConsentLookup, ApiError> {
    let show = |shown: ShownProblem| ApiError::invalid("", shown.to_string());
    let params = Params::parse(query.as_bytes());
    let client_id = authorize::client_id(&params).map_err(show)?;
    let asker = DocumentAsker {
        address: cx.client.into(),
        operator: cx.operator(),
        is_connected: false,
    };
    let client = cx
        .app
        .apps
        .client(client_id, asker)
        .await
        .map_err(|error| match error {
            ClientError::Unregistered => show(ShownProblem::ClientUnknown),
            ClientError::Document(cause) => {
                let host = place(client_id);
                let problem =
                    format!("comes from an app whose description at {host} cannot be used; tell who makes it: {cause}");
                ApiError::invalid("", problem)
            }
            ClientError::Service(error) => error,
        })?;
    // An app could register under such a name before it was reserved, and documents are read anew each time.
    if cx.app.apps.server().has_reserved_name(&client) {
        let problem = "comes from an app whose name is a word of the service, or looks like one";
        return Err(ApiError::invalid("", problem).with_code(ErrorCode::NameReserved));
    }
    match authorize::check(&params, &client, cx.app.apps.server().issuer()) {
        Ok(request) => Ok(ConsentLookup::Ask(Box::new(ConsentRequest { client, request, query }))),
        Err(AuthorizeRefusal::Redirect { to, .. }) => Ok(ConsentLookup::Back(to)),
        // The address to go back to is not proved here, so the error is shown and nobody is sent there
        // (RFC 6749 section 4.1.2.1).
        Err(AuthorizeRefusal::Show(shown)) => Err(show(shown)),
    }
}

/// Returns the page with nothing chosen yet but the scopes that the app asks for.
async fn question(cx: &Cx, asked: &ConsentRequest) -> Result<ConsentPage, ApiError> {
    let operator = cx.the_operator()?;
    let (store, issuer) = (&cx.app.store, cx.app.apps.server().issuer());
    let accounts = store.accounts();
    let (found, agents, waiting) = tokio::try_join!(
        store.operator(operator),
        accounts.agents_of(operator, cx.now),
        accounts.claims_waiting(operator, cx.now)
    )?;
    let present = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    let agents: Vec<_> = agents.into_iter().filter(may_act).collect();
    let owners: Vec<_> = agents.iter().map(|agent| SpendOwner::Agent(agent.id)).collect();
    let spending = spend_lines::lines(cx, &owners).await?;
    let taken = u32::try_from(present).unwrap_or(u32::MAX).saturating_add(waiting);
    let places_left = cx.app.limits.agents_per_operator.saturating_sub(taken);
    let ConsentRequest { client, request, query } = asked;
    let only_one = request.scopes.words().count() == 1;
    let budget = if request.scopes.contains(Scope::Spend) {
        Some(ConsentBudget {
            cap: FIRST_CAP.to_owned(),
            ask_above: FIRST_ASK_ABOVE.to_owned(),
            credits: spend_lines::credits(cx, operator).await?,
        })
    } else {
        None
    };
    Ok(ConsentPage {
        chrome: page_layout(cx).await?,
        client: called(client),
        client_id: client.id.clone(),
        is_known_by_url: is_document_url(&client.id),
        redirect_host: place(&request.redirect_uri),
        endpoint: issuer.resource_url(request.resource),
        operator: found.map(|operator| operator.display_name).unwrap_or_default(),
        scopes: request
            .scopes
            .words()
            .map(|word| ScopeChoice {
                scope: word.to_owned(),
                allows: allows(word).to_owned(),
                // A connection without any scope would be of no use. What spends money is never chosen for a person.
                required: only_one && word != Scope::Spend.word(),
                chosen: word != Scope::Spend.word(),
            })
            .collect(),
        new_agent: (places_left > 0).then(|| name_after(client)),
        agents: agents
            .into_iter()
            .zip(spending)
            .map(|(agent, line)| {
                let choice = AgentChoice {
                    id: agent.id.to_string(),
                    name: agent.name,
                    description: agent.description,
                };
                (choice, line)
            })
            .collect(),
        budget,
        places_left,
        chosen: String::new(),
        request: query.clone(),
        errors: Vec::new(),
    })
}

/// Returns what a scope allows, for people.
fn allows(word: &str) -> &'static str {
    match word {
        "read" => "Reads what your agents may read: bought items, your private datasets, points and quota.",
        "write" => "Submits, revises and retires units, contributes records, and changes your datasets.",
        "spend" => "Buys with your credit, without asking you each time.",
        _ => "",
    }
}

/// Returns the name of a client, or its id if it gave none.
fn called(client: &OAuthClient) -> String {
    client.name.clone().unwrap_or_else(|| client.id.clone())
}

/// Returns the place that a redirect URI leads to: a host, or the scheme of a program on the person's machine.
fn place(uri: &str) -> String {
    let Ok(url) = Url::parse(uri) else {
        return uri.to_owned();
    };
    match (url.host_str(), url.port()) {
        // After a private scheme the host is a name that the program chose, and could be that of any site.
        (Some(host), port) if matches!(url.scheme(), "https" | "http") => match port {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        },
        _ => format!("{}:", url.scheme()),
    }
}

/// Returns the name of a new agent: that of the app, with hyphens for what a name cannot have.
fn name_after(client: &OAuthClient) -> String {
    let given = client.name.clone().unwrap_or_else(|| place(&client.id));
    agent_name_of(&given, "app")
}

/// Returns a name for a new agent: a text with hyphens for what a name cannot have, or `otherwise` if nothing is left.
pub(super) fn agent_name_of(given: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for letter in given.chars() {
        if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_') {
            name.push(letter.to_ascii_lowercase());
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
        // There is room for a number that makes the name unique.
        if name.len() == MAX_NAME - 4 {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { otherwise } else { name }.to_owned()
}

/// Lets a form of the page lead to the place of the app. A browser holds the redirect after a form against the same rule
/// as the form (CSP 3 section 6.3.1).
fn allow_return(view: PageResponse, asked: &ConsentRequest) -> Result<PageResponse, ApiError> {
    let url = Url::parse(&asked.request.redirect_uri).map_err(ApiError::internal)?;
    let target = match url.origin() {
        // The grammar of a policy has no addresses in brackets, and a program has no host.
        Origin::Tuple(_, Host::Ipv6(_), _) | Origin::Opaque(_) => format!("{}:", url.scheme()),
        origin @ Origin::Tuple(..) => origin.ascii_serialization(),
    };
    let policy = pages::CONTENT_SECURITY_POLICY.replace("form-action 'self'", &format!("form-action 'self' {target}"));
    let policy = HeaderValue::from_str(&policy).map_err(ApiError::internal)?;
    let name: HeaderName = header::CONTENT_SECURITY_POLICY;
    Ok(view.header(name, policy))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConsentForm {
    /// Query of the app's request.
    #[schemars(length(max = 8_000))]
    request: String,
    /// Id of the agent that the app acts as, or `new`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Scopes that the person gives.
    #[serde(default)]
    #[schemars(length(max = 3))]
    scopes: Vec<String>,
    /// Most that the app spends in a month, in dollars, if it may spend; empty for no limit.
    #[serde(default)]
    #[schemars(length(max = 20))]
    cap: String,
    /// Price above which the person is asked, in dollars, if it may spend; empty for none.
    #[serde(default)]
    #[schemars(length(max = 20))]
    ask_above: String,
    /// `approve` or `deny`.
    #[serde(rename = "decision")]
    choice: ConsentAgentChoice,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ConsentAgentChoice {
    Approve,
    Deny,
}

async fn decide(cx: Cx, input: ConsentForm) -> Result<PageResponse, ApiError> {
    let asked = match parse_request(&cx, input.request).await? {
        ConsentLookup::Ask(asked) => asked,
        ConsentLookup::Back(to) => return PageResponse::see(&to),
    };
    let server = cx.app.apps.server();
    if input.choice == ConsentAgentChoice::Deny {
        return PageResponse::see(&asked.request.error_url(server.issuer(), RequestError::DENIED));
    }
    // A word that is no scope is refused below, like no scope at all.
    let scopes = Scopes::parse(&input.scopes.join(" ")).unwrap_or(Scopes::NONE);
    let connected = async {
        if !asked.request.may_grant(scopes) {
            return Err(ApiError::invalid(
                "/scopes",
                "must be at least one of those that the app asks for",
            ));
        }
        let operator = cx.the_operator()?;
        // What does not spend has no budget, and nobody is asked to mend one.
        let budget = if scopes.contains(Scope::Spend) {
            AppBudget {
                per_month: spend_lines::limit(&input.cap, "/cap")?,
                approve_above: spend_lines::limit(&input.ask_above, "/ask_above")?,
            }
        } else {
            AppBudget::default()
        };
        let agent = agent(&cx, operator, &input.agent, &asked).await?;
        Ok(server.grant(&asked.request, operator, agent, scopes, budget).await?)
    };
    match connected.await {
        Ok(to) => PageResponse::see(&to),
        Err(error) => {
            let mut page = question(&cx, &asked).await?;
            for scope in &mut page.scopes {
                scope.chosen = input.scopes.contains(&scope.scope);
            }
            page.chosen = input.agent;
            if let Some(budget) = &mut page.budget {
                budget.cap = input.cap;
                budget.ask_above = input.ask_above;
            }
            page.errors = repairable(error)?;
            allow_return(form_page(&page, true)?, &asked)
        }
    }
}

/// Returns the agent that the person chose, or makes it.
async fn agent(cx: &Cx, operator: OperatorId, chosen: &str, asked: &ConsentRequest) -> Result<AgentId, ApiError> {
    if chosen == NEW {
        let consent = NewConsent {
            request_hash: *blake3::hash(asked.query.as_bytes()).as_bytes(),
            stale: cx.now.minus(REPEATED),
        };
        let before = cx.app.store.accounts().agent_of_consent(operator, consent).await?;
        if let Some(agent) = before {
            return Ok(agent);
        }
        // It is a registration like every other, or names could be taken here without end.
        REGISTRATIONS.take(&cx.app, cx.client).await?;
        return create(cx, operator, &name_after(&asked.client), consent).await;
    }
    let chosen: AgentId = match chosen {
        "" => return Err(ApiError::invalid("/agent", "must be chosen")),
        text => id(text, "agent")?,
    };
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let found = agents
        .iter()
        // Among those of this operator: a form may name any id.
        .find(|agent| agent.id == chosen && may_act(agent));
    found.map(|agent| agent.id).ok_or_else(|| missing("agent"))
}

/// Makes an agent whose name begins with this one. Its key is shown to nobody; the person can make another.
async fn create(cx: &Cx, operator: OperatorId, name: &str, consent: NewConsent) -> Result<AgentId, ApiError> {
    for number in 1..=TRIES {
        let tried = match number {
            1 => name.to_owned(),
            number => format!("{name}-{number}"),
        };
        match accounts::create_for_consent(&cx.app, operator, &tried, consent, cx.now).await {
            Ok(agent) => return Ok(agent),
            // Apps of one name are connected by many, so the name of the first agent is often taken.
            Err(error) if matches!(error.code(), ErrorCode::NameTaken | ErrorCode::NameReserved) => {}
            Err(error) => return Err(error),
        }
    }
    Err(ApiError::invalid(
        "/agent",
        "must be one that you made: names after this app are taken",
    ))
}
