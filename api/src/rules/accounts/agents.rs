//! Agents of an operator: creation and a new key.
//!
//! Invariant: only the hash of a key goes to the database, so the answer to the call is the only text that has it.

use std::time::Duration;

use store::{AgentCreated, NewAgent, NewConsent};
use types::{AgentId, OperatorId, Timestamp};

use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::names;
use crate::secrets::{Secret, SecretKind};
use crate::state::app::App;

/// Agent that was created.
pub(crate) struct NewlyMade {
    pub(crate) id: AgentId,
    /// Key of the agent.
    pub(crate) key: Secret,
}

/// Creates an agent of `operator` with its first key.
pub(crate) async fn create(
    app: &App,
    operator: OperatorId,
    name: &str,
    wallet_address: Option<String>,
    now: Timestamp,
) -> Result<NewlyMade, ApiError> {
    create_with(app, operator, name, wallet_address, None, now).await
}

/// Creates an agent with the consent of `operator` to a request of an app, and returns its id, or that of the agent which the
/// same consent made before. Its key is shown to nobody.
pub(crate) async fn create_for_consent(
    app: &App,
    operator: OperatorId,
    name: &str,
    consent: NewConsent,
    now: Timestamp,
) -> Result<AgentId, ApiError> {
    Ok(create_with(app, operator, name, None, Some(consent), now).await?.id)
}

async fn create_with(
    app: &App,
    operator: OperatorId,
    name: &str,
    wallet_address: Option<String>,
    consent: Option<NewConsent>,
    now: Timestamp,
) -> Result<NewlyMade, ApiError> {
    let (new, key) = new_agent(operator, name, wallet_address, now)?;
    let id = new.id;
    let limit = app.limits.agents_per_operator;
    match app.store.agent_create_with(new, limit, consent).await? {
        AgentCreated::Created => Ok(NewlyMade { id, key }),
        // Only with a consent, and then nobody takes the key, which is of no use.
        AgentCreated::Before(id) => Ok(NewlyMade { id, key }),
        AgentCreated::NameTaken => Err(name_taken(name)),
        AgentCreated::LimitReached => Err(agent_limit(limit)),
    }
}

/// Returns the values of a new agent with its first key. Fails if the name is reserved.
pub(crate) fn new_agent(
    operator: OperatorId,
    name: &str,
    wallet_address: Option<String>,
    now: Timestamp,
) -> Result<(NewAgent, Secret), ApiError> {
    if names::is_reserved(name) {
        let problem = "is a word of the platform and reserved";
        return Err(ApiError::invalid("/name", problem).with_code(ErrorCode::NameReserved));
    }
    let key = Secret::generate(SecretKind::AgentKey).map_err(ApiError::unavailable)?;
    let new = NewAgent {
        id: AgentId::new(now),
        operator,
        name: name.to_owned(),
        // The database keeps skeletons unique, so that two agents cannot have names that look alike.
        skeleton: names::skeleton(name),
        wallet_address: wallet_address.filter(|address| !address.is_empty()),
        description: None,
        key_hash: key.hash(),
        now,
    };
    Ok((new, key))
}

/// Returns the refusal of a name that an agent or a waiting claim has.
pub(crate) fn name_taken(name: &str) -> ApiError {
    let message = format!("the name `{name}`, or one that looks like it, is taken");
    ApiError::new(ErrorCode::NameTaken, message)
}

/// Returns the refusal of one agent more than `limit`.
pub(crate) fn agent_limit(limit: u32) -> ApiError {
    let message = format!("the operator has {limit} agents, which is the limit");
    ApiError::new(ErrorCode::AgentLimit, message)
}

/// Gives an agent of `operator` a new key. The present one stays valid for `grace`.
pub(crate) async fn rotate(
    app: &App,
    operator: OperatorId,
    agent: AgentId,
    grace: Duration,
    now: Timestamp,
) -> Result<Secret, ApiError> {
    let key = Secret::generate(SecretKind::AgentKey).map_err(ApiError::unavailable)?;
    let accounts = app.store.accounts();
    if accounts
        .agent_key_rotate(operator, agent, key.hash(), grace, now)
        .await?
    {
        Ok(key)
    } else {
        Err(ApiError::not_found("the operator has no such agent"))
    }
}
