//! Scenarios about operators, agents and secrets.

use types::{Classify, Kind, OperatorId};

use super::fixture::{agent, at, fresh_hash, new_agent, new_operator, open, operator};
use crate::{AgentCreated, OperatorCreated, Principal};

/// An address cannot sign up twice in another case.
pub async fn an_address_has_one_operator_whatever_its_case(url: &str) {
    let store = open(url).await;
    let id = operator(&store, "Ada.Lovelace@Example.org").await;
    let twin = store.operator_create(new_operator("ada.lovelace@EXAMPLE.ORG")).await;
    assert_eq!(twin.unwrap(), OperatorCreated::EmailTaken);

    let found = store
        .operator_by_email("ADA.lovelace@example.org")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.id, found.email.as_str()), (id, "Ada.Lovelace@Example.org"));
    assert_eq!(store.operator(id).await.unwrap(), Some(found));
    assert_eq!(store.operator_by_email("eve@example.org").await.unwrap(), None);
}

/// Suspending an operator shows in its tokens and its agents' keys, and ends.
pub async fn a_suspension_reaches_tokens_and_keys(url: &str) {
    let store = open(url).await;
    let new = new_operator("ada@example.org");
    let (id, token) = (new.id, new.token_hash);
    assert_eq!(store.operator_create(new).await.unwrap(), OperatorCreated::Created);
    let new = new_agent(id, "collector");
    let key = new.key_hash;
    assert_eq!(store.agent_create(new, 5).await.unwrap(), AgentCreated::Created);

    let suspended = async || {
        let mut flags = Vec::new();
        for hash in [&token, &key] {
            flags.push(match store.accounts().principal(hash, at(2)).await.unwrap().unwrap() {
                Principal::Operator { suspended, .. }
                | Principal::Agent { suspended, .. }
                | Principal::Claimed { suspended, .. } => suspended,
                Principal::Login { .. } => false,
            });
        }
        flags
    };
    assert_eq!(suspended().await, [false, false]);
    store.operator_suspend(id, "spam".to_owned(), at(5)).await.unwrap();
    store
        .operator_suspend(id, "worse spam".to_owned(), at(9))
        .await
        .unwrap();
    assert_eq!(suspended().await, [true, true]);
    let since = store.operator(id).await.unwrap().unwrap().suspended;
    assert_eq!(since, Some((at(5), "worse spam".to_owned())));
    store.operator_restore(id).await.unwrap();
    assert_eq!(suspended().await, [false, false]);
    assert_eq!(store.operator(id).await.unwrap().unwrap().suspended, None);
}

/// The hash of a credential leads to its owner; an unknown hash has no owner.
pub async fn a_secret_names_its_owner(url: &str) {
    let store = open(url).await;
    let id = operator(&store, "ada@example.org").await;
    let token = fresh_hash();
    store.operator_token_add(id, token, at(1)).await.unwrap();
    let new = new_agent(id, "collector");
    let (agent, key) = (new.id, new.key_hash);
    assert_eq!(store.agent_create(new, 5).await.unwrap(), AgentCreated::Created);

    assert_eq!(
        store.accounts().principal(&token, at(2)).await.unwrap(),
        Some(Principal::Operator {
            operator: id,
            suspended: false
        })
    );
    assert_eq!(
        store.accounts().principal(&key, at(2)).await.unwrap(),
        Some(Principal::Agent {
            agent,
            operator: id,
            name: "collector".to_owned(),
            suspended: false,
            expires_at: None
        })
    );
    assert_eq!(store.accounts().principal(&fresh_hash(), at(2)).await.unwrap(), None);
}

/// A name is reserved by its skeleton, across operators. A refused agent does not count toward a limit.
pub async fn a_name_and_its_look_alikes_are_one(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    agent(&store, ada, "collector").await;

    let mut look_alike = new_agent(eve, "c0llect0r");
    "collector".clone_into(&mut look_alike.skeleton);
    assert_eq!(
        store.agent_create(look_alike.clone(), 1).await.unwrap(),
        AgentCreated::NameTaken
    );
    "another".clone_into(&mut look_alike.skeleton);
    assert_eq!(store.agent_create(look_alike, 1).await.unwrap(), AgentCreated::Created);
    assert_eq!(
        store.agent_create(new_agent(eve, "third"), 1).await.unwrap(),
        AgentCreated::LimitReached
    );
}

/// Calls about an operator that does not exist fail as missing.
pub async fn an_unknown_operator_is_missing(url: &str) {
    let store = open(url).await;
    let nobody = OperatorId::new(at(0));
    let errors = [
        store.operator_token_add(nobody, fresh_hash(), at(0)).await.unwrap_err(),
        store
            .operator_suspend(nobody, "spam".to_owned(), at(0))
            .await
            .unwrap_err(),
        store.operator_restore(nobody).await.unwrap_err(),
        store.agent_create(new_agent(nobody, "a"), 5).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), Kind::NotFound, "{error}");
    }
    assert_eq!(store.operator(nobody).await.unwrap(), None);
}
