//! The operator that the platform is, and the agent of its collectors.
//!
//! Invariant: the key of the agent follows from a secret in the database, so that every process has the same key and none
//! is stored. Whoever reads that secret could change the database as well.

use std::sync::Arc;

use anyhow::bail;
use api::secrets::{Secret, SecretKind};
use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};
use store::{AgentCreated, NewAgent, NewOperator, OperatorCreated, Store};
use types::{AgentId, Clock, OperatorId};

/// Name of the secret.
const COLLECTORS_SECRET: &str = "collectors";
/// Name of the agent; people cannot take it, since it consists of words of the platform.
const COLLECTORS_AGENT: &str = "sluice.platform";
/// Address of the operator. No mail arrives there (RFC 6761), so nobody can sign up with it.
const COLLECTORS_EMAIL: &str = "collectors@sluice.invalid";

/// Returns the key of the agent that collectors submit with. Adds the operator and the agent if they are missing.
///
/// # Errors
/// The database, or another account that holds the address or the name.
pub(super) async fn key(store: &Store, clock: &Arc<dyn Clock>, terms: &str) -> anyhow::Result<String> {
    let now = clock.now();
    // The hash of a fresh secret of the service's own kind is 32 random bytes.
    let fresh = Secret::generate(SecretKind::AgentKey)?.hash();
    let secret = store.secret(COLLECTORS_SECRET, fresh, now).await?;
    let token = Sha256::new()
        // The text separates this use of the secret from any other, and its number lets the key change
        // once.
        .chain_update(b"sluice collectors agent key 1")
        .chain_update(secret);
    let key = format!(
        "{}{}",
        SecretKind::AgentKey.prefix(),
        BASE64URL_NOPAD.encode(&token.finalize())
    );
    let key_hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    let known = store.accounts().principal(&key_hash, now).await?;
    if known.is_some_and(|owner| owner.operator() == Some(OperatorId::PLATFORM)) {
        return Ok(key);
    }
    let operator = NewOperator {
        id: OperatorId::PLATFORM,
        email: COLLECTORS_EMAIL.to_owned(),
        display_name: "Sluice".to_owned(),
        terms_version: terms.to_owned(),
        // A token that nobody has.
        token_hash: Secret::generate(SecretKind::OperatorToken)?.hash(),
        now,
    };
    // Two processes may start together; the one that comes second finds the address taken by the first.
    if store.operator_create(operator).await? == OperatorCreated::EmailTaken
        && store.operator(OperatorId::PLATFORM).await?.is_none()
    {
        bail!("the address `{COLLECTORS_EMAIL}` of the platform's operator belongs to another operator");
    }
    let agent = NewAgent {
        id: AgentId::new(now),
        operator: OperatorId::PLATFORM,
        name: COLLECTORS_AGENT.to_owned(),
        skeleton: api::names::skeleton(COLLECTORS_AGENT),
        wallet_address: None,
        description: Some("Collects public facts on a schedule.".to_owned()),
        key_hash,
        now,
    };
    match store.agent_create(agent, u32::MAX).await? {
        AgentCreated::Created => Ok(key),
        AgentCreated::NameTaken | AgentCreated::LimitReached | AgentCreated::Before(_) => {
            // Another process may have been faster, with the same key.
            let known = store.accounts().principal(&key_hash, now).await?;
            if known.is_some_and(|owner| owner.operator() == Some(OperatorId::PLATFORM)) {
                return Ok(key);
            }
            bail!("the name `{COLLECTORS_AGENT}` of the platform's agent belongs to another agent");
        }
    }
}
