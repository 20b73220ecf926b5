//! Pages about agents: keys, claim codes and claims.
//!
//! Invariant: a key or a code is on the page that answers its form, and nowhere else. That page is not kept by caches.

use std::time::Duration;

use pages::SpendLine;
use pages::console::{AgentView, AgentsPage, ClaimEnd, ClaimView, CodeView, DecidedClaim, KeyView, NewAgentForm};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Approval, ClaimCodeAdded, ClaimStatus, NewClaimCode, Rejection, SpendLimits, SpendOwner};
use types::money::MicroUsdc;
use types::{AgentId, ClaimCodeId, ClaimId, TokenId};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{Effect, Spec};
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::accounts::REGISTRATIONS;
use crate::ops::page_kit::{form, form_page, id, instant, missing, page, page_layout, repairable};
use crate::ops::spend_lines;
use crate::rules::accounts::{self, ClaimCodeParts, ClaimCodeText};

const PATH: &str = "/console/agents";
/// Time for which a claim code works.
pub(in crate::ops) const CODE_LASTS: Duration = Duration::from_mins(15);
/// Claim codes of an operator that work at the same time.
const MAX_CODES: u32 = 5;
/// Cap of a month that the form of a claim suggests, in dollars.
const FIRST_CAP: &str = "2.00";
/// Claims on the page.
const MAX_CLAIMS: u32 = 20;

pub(super) fn add(table: &mut Operations) {
    table.add(page("agents_page", PATH, "Agents"), &[], show);
    let create_form = Spec {
        limits: &[REGISTRATIONS],
        ..form("create_agent_form", PATH, "Create an agent")
    };
    table.add(create_form, &[], create);
    table.add(
        form(
            "rotate_key_form",
            "/console/agents/{id}/rotate",
            "Give an agent a new key",
        ),
        &[],
        rotate,
    );
    let end_key_form = Spec {
        effect: Effect::Destroy,
        ..form(
            "end_key_form",
            "/console/agents/{id}/keys/{key}/end",
            "End one key of an agent",
        )
    };
    table.add(end_key_form, &[], end_key);
    let remove_page = page("remove_agent_page", "/console/agents/{id}/remove", "Remove an agent");
    table.add(remove_page, &[], confirm_removal);
    let remove_form = Spec {
        effect: Effect::Destroy,
        ..form("remove_agent_form", "/console/agents/{id}/remove", "Remove an agent")
    };
    table.add(remove_form, &[], remove);
    table.add(
        form("create_claim_code_form", "/console/codes", "Make a claim code"),
        &[],
        make_code,
    );
    table.add(
        form(
            "withdraw_claim_code_form",
            "/console/codes/{id}/withdraw",
            "Withdraw a claim code",
        ),
        &[],
        withdraw,
    );
    table.add(
        form("approve_claim_form", "/console/claims/{id}/approve", "Approve a claim"),
        &[],
        approve,
    );
    table.add(
        form("reject_claim_form", "/console/claims/{id}/reject", "Reject a claim"),
        &[],
        reject,
    );
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    PageResponse::page(&agents(&cx).await?)
}

/// Returns the page of agents as it is now.
async fn agents(cx: &Cx) -> Result<AgentsPage, ApiError> {
    let (operator, now) = (cx.the_operator()?, cx.now);
    let accounts = cx.app.store.accounts();
    let (agents, codes, claims) = tokio::try_join!(
        accounts.agents_of(operator, now),
        accounts.claim_codes_of(operator, now),
        accounts.claims_of(operator, MAX_CLAIMS, now)
    )?;
    let (waiting, decided): (Vec<_>, Vec<_>) = claims
        .into_iter()
        .partition(|claim| claim.status == ClaimStatus::Pending);
    let owners: Vec<_> = agents.iter().map(|agent| SpendOwner::Agent(agent.id)).collect();
    let spending = spend_lines::lines(cx, &owners).await?;
    let mut claims: Vec<_> = waiting.into_iter().map(claim).collect();
    // The claim that has waited longest comes first.
    claims.reverse();
    Ok(AgentsPage {
        chrome: page_layout(cx).await?,
        limit: cx.app.limits.agents_per_operator,
        agents: agents.into_iter().zip(spending).map(agent).collect(),
        claims,
        decided: decided.into_iter().map(decided_claim).collect(),
        codes: codes
            .iter()
            .map(|code| CodeView {
                id: code.id.to_string(),
                created_at: instant(code.created_at),
                expires_at: instant(code.expires_at),
                wrong_tries: code.wrong_tries,
            })
            .collect(),
        create: NewAgentForm::default(),
        notice: None,
    })
}

fn agent((agent, spending): (store::Agent, SpendLine)) -> AgentView {
    let key = |key: &store::AgentKey| KeyView {
        id: key.id.to_string(),
        device: key.label.clone(),
        created_at: instant(key.created_at),
        expires_at: key.expires_at.map(instant),
    };
    AgentView {
        id: agent.id.to_string(),
        keys: agent.keys.iter().map(key).collect(),
        name: agent.name,
        description: agent.description,
        wallet_address: agent.wallet_address,
        created_at: instant(agent.created_at),
        removed_at: agent.removed_at.map(instant),
        spending,
    }
}

fn claim(claim: store::Claim) -> ClaimView {
    ClaimView {
        id: claim.id.to_string(),
        name: claim.name,
        description: claim.description,
        created_at: instant(claim.created_at),
        expires_at: instant(claim.expires_at),
        phrase: String::new(),
        may_spend: false,
        cap: FIRST_CAP.to_owned(),
        cap_error: None,
        error: None,
    }
}

fn decided_claim(claim: store::Claim) -> DecidedClaim {
    DecidedClaim {
        name: claim.name,
        end: match claim.status {
            ClaimStatus::Approved => ClaimEnd::Approved,
            ClaimStatus::Rejected => ClaimEnd::Rejected,
            ClaimStatus::Expired | ClaimStatus::Pending => ClaimEnd::Expired,
        },
        created_at: instant(claim.created_at),
        ended_at: instant(claim.decided_at.unwrap_or(claim.expires_at)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateAgentForm {
    /// Name of the agent, shown to others.
    #[schemars(length(max = 60), regex(pattern = LINE))]
    name: String,
    /// Address that the agent is paid at; an empty text is none.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    wallet_address: Option<String>,
}

async fn create(cx: Cx, input: CreateAgentForm) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let made = match name_form(&input.name) {
        Ok(()) => accounts::create_agent(&cx.app, operator, &input.name, input.wallet_address.clone(), cx.now).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(made) => {
            let key = made.key.reveal();
            PageResponse::page(&pages::SecretPage::agent_key(page_layout(&cx).await?, &input.name, key))
        }
        Err(error) => {
            let create = NewAgentForm {
                name: input.name,
                wallet_address: input.wallet_address.unwrap_or_default(),
                errors: repairable(error)?,
            };
            let page = AgentsPage {
                create,
                ..agents(&cx).await?
            };
            form_page(&page, true)
        }
    }
}

/// Checks the form of a name as `POST /agents` does.
pub(super) fn name_form(name: &str) -> Result<(), ApiError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=60).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(ApiError::invalid(
        "/name",
        "must have 1 to 60 letters, digits, dots, hyphens or underscores",
    ))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RotateKeyForm {
    /// Id of the agent.
    id: String,
    /// Hours for which the present key stays valid.
    #[serde(default)]
    #[schemars(range(min = 0, max = 24))]
    grace_hours: u32,
}

async fn rotate(cx: Cx, input: RotateKeyForm) -> Result<PageResponse, ApiError> {
    let agent: AgentId = id(&input.id, "agent")?;
    let operator = cx.the_operator()?;
    let grace = Duration::from_hours(input.grace_hours.into());
    let key = accounts::rotate_key(&cx.app, operator, agent, grace, cx.now).await?;
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let name = agents
        .into_iter()
        .find(|other| other.id == agent)
        .map(|agent| agent.name);
    let old_until = (input.grace_hours > 0).then(|| instant(cx.now.plus(grace)));
    let name = name.unwrap_or_default();
    PageResponse::page(&pages::SecretPage::rotated_key(
        page_layout(&cx).await?,
        &name,
        key.reveal(),
        old_until,
    ))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentKeyPath {
    /// Id of the agent.
    id: String,
    /// Id of the key.
    key: String,
}

async fn end_key(cx: Cx, input: AgentKeyPath) -> Result<PageResponse, ApiError> {
    let agent: AgentId = id(&input.id, "agent")?;
    let key: TokenId = id(&input.key, "key")?;
    let accounts = cx.app.store.accounts();
    if accounts.agent_key_end(cx.the_operator()?, agent, key).await? {
        PageResponse::see(PATH)
    } else {
        Err(missing("key"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConsoleAgentPath {
    /// Id of the thing.
    id: String,
}

async fn confirm_removal(cx: Cx, input: ConsoleAgentPath) -> Result<PageResponse, ApiError> {
    let agent: AgentId = id(&input.id, "agent")?;
    let agents = cx.app.store.accounts().agents_of(cx.the_operator()?, cx.now).await?;
    let found = agents.into_iter().find(|other| other.id == agent);
    let agent = found
        .filter(|agent| agent.removed_at.is_none())
        .ok_or_else(|| missing("agent"))?;
    PageResponse::page(&pages::ConfirmPage {
        chrome: page_layout(&cx).await?,
        title: format!("Remove {}?", agent.name),
        explanation:
            "Its keys stop working at once. What it contributed stays, and its name stays taken. This cannot be \
                      undone."
                .to_owned(),
        action: format!("{PATH}/{}/remove", agent.id),
        fields: Vec::new(),
        label: format!("Remove {}", agent.name),
        danger: true,
        back: PATH.to_owned(),
    })
}

async fn remove(cx: Cx, input: ConsoleAgentPath) -> Result<PageResponse, ApiError> {
    let agent: AgentId = id(&input.id, "agent")?;
    let accounts = cx.app.store.accounts();
    if accounts.agent_remove(cx.the_operator()?, agent, cx.now).await? {
        PageResponse::see(PATH)
    } else {
        Err(missing("agent"))
    }
}

async fn make_code(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let text = ClaimCodeText::generate().map_err(ApiError::unavailable)?.reveal();
    // The parts are what is stored: the first finds the row, and of the second only the hash is kept.
    let parts = ClaimCodeParts::of(&text).ok_or_else(|| ApiError::internal("a new claim code is no claim code"))?;
    let expires_at = cx.now.plus(CODE_LASTS);
    let new = NewClaimCode {
        id: ClaimCodeId::new(cx.now),
        operator: cx.the_operator()?,
        lookup: parts.lookup,
        secret_hash: parts.secret_hash,
        expires_at,
        now: cx.now,
    };
    match cx.app.store.accounts().claim_code_add(new, MAX_CODES).await? {
        ClaimCodeAdded::Added => {}
        ClaimCodeAdded::LimitReached => {
            let message = format!("{MAX_CODES} codes work already; use one, withdraw one, or wait until one ends");
            return Err(ApiError::new(ErrorCode::ClaimCodeLimit, message));
        }
    }
    PageResponse::page(&pages::SecretPage::claim_code(
        page_layout(&cx).await?,
        text,
        instant(expires_at),
    ))
}

async fn withdraw(cx: Cx, input: ConsoleAgentPath) -> Result<PageResponse, ApiError> {
    let code: ClaimCodeId = id(&input.id, "claim code")?;
    if cx
        .app
        .store
        .accounts()
        .claim_code_withdraw(cx.the_operator()?, code)
        .await?
    {
        PageResponse::see(PATH)
    } else {
        Err(missing("claim code"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApproveClaimForm {
    /// Id of the claim.
    id: String,
    /// Words that the agent showed.
    #[schemars(length(max = 200))]
    phrase: String,
    /// `no` if the agent is to spend nothing, `cap` if it is up to the cap; without it, no limit is set.
    sp: Option<ClaimSpending>,
    /// Most that it is to spend in a month, in dollars.
    #[serde(default)]
    #[schemars(length(max = 20))]
    cap: String,
}

/// Choice of the person for what a claimed agent spends.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ClaimSpending {
    No,
    Cap,
}

impl ApproveClaimForm {
    /// Returns the limits that the person chose.
    fn limits(&self) -> Result<SpendLimits, ApiError> {
        let per_month = match self.sp {
            None => None,
            Some(ClaimSpending::No) => Some(MicroUsdc(0)),
            Some(ClaimSpending::Cap) => {
                let cap = spend_lines::limit(&self.cap, "/cap")?;
                // What is left empty elsewhere is no limit. Here it is a slip.
                Some(cap.ok_or_else(|| ApiError::invalid("/cap", "must be an amount in dollars"))?)
            }
        };
        Ok(SpendLimits {
            per_month,
            ..SpendLimits::default()
        })
    }
}

async fn approve(cx: Cx, input: ApproveClaimForm) -> Result<PageResponse, ApiError> {
    let claim: ClaimId = id(&input.id, "claim")?;
    let limits = match input.limits() {
        Ok(limits) => limits,
        Err(error) => {
            let problem = repairable(error)?.into_iter().next().map(|error| error.message);
            return again(&cx, claim, &input, None, problem).await;
        }
    };
    let accounts = cx.app.store.accounts();
    match accounts
        .claim_approve(cx.the_operator()?, claim, &input.phrase, limits, cx.now)
        .await?
    {
        Approval::Approved(_) => PageResponse::see(PATH),
        Approval::WrongPhrase => {
            let message = "These are not its four words. Ask the agent for its phrase, or refuse it.";
            again(&cx, claim, &input, Some(message.to_owned()), None).await
        }
        Approval::Decided(status) => Err(decided(status)),
        Approval::Unknown => Err(missing("claim")),
    }
}

/// Returns the page with what was typed about a claim, so that a slip of the keyboard can be corrected.
async fn again(
    cx: &Cx,
    claim: ClaimId,
    input: &ApproveClaimForm,
    error: Option<String>,
    cap_error: Option<String>,
) -> Result<PageResponse, ApiError> {
    let mut page = agents(cx).await?;
    for waiting in page.claims.iter_mut().filter(|waiting| waiting.id == claim.to_string()) {
        waiting.phrase.clone_from(&input.phrase);
        waiting.may_spend = input.sp == Some(ClaimSpending::Cap);
        waiting.cap.clone_from(&input.cap);
        waiting.error.clone_from(&error);
        waiting.cap_error.clone_from(&cap_error);
    }
    form_page(&page, true)
}

async fn reject(cx: Cx, input: ConsoleAgentPath) -> Result<PageResponse, ApiError> {
    let claim: ClaimId = id(&input.id, "claim")?;
    match cx
        .app
        .store
        .accounts()
        .claim_reject(cx.the_operator()?, claim, cx.now)
        .await?
    {
        Rejection::Rejected => PageResponse::see(PATH),
        Rejection::Decided(status) => Err(decided(status)),
        Rejection::Unknown => Err(missing("claim")),
    }
}

/// Returns the 409 for a claim that has an end already.
fn decided(status: ClaimStatus) -> ApiError {
    ApiError::new(ErrorCode::ClaimDecided, format!("the claim is {status} already"))
}
