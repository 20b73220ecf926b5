//! Scenarios about logins of devices, and the keys that come of them.

use std::time::Duration;

use types::vocabulary::ClaimStatus;
use types::{AgentId, OperatorId, Timestamp};

use super::fixture::{agent, at, fresh_hash, new_agent, open, operator, race};
use crate::{
    Login, LoginAgent, LoginApproval, MAX_WRONG_CODES, NewLogin, Principal, Store, TypedCode, TypedCodeRefused,
};

const DAY: i64 = 86_400;
/// Seconds for which a login waits.
const WAITS: i64 = 900;
const KEY_LASTS: Duration = Duration::from_hours(90 * 24);

async fn begin(store: &Store, seconds: i64) -> NewLogin {
    let new = NewLogin {
        code_hash: fresh_hash(),
        key_hash: fresh_hash(),
        device: "ada-laptop".to_owned(),
        address: "203.0.113.7".to_owned(),
        expires_at: at(seconds + WAITS),
        now: at(seconds),
    };
    store.accounts().login_begin(new.clone()).await.unwrap();
    new
}

fn typed(operator: OperatorId, code_hash: [u8; 32], seconds: i64) -> TypedCode {
    TypedCode {
        operator,
        code_hash,
        now: at(seconds),
    }
}

async fn status_of(store: &Store, key: &[u8; 32], now: Timestamp) -> Option<ClaimStatus> {
    match store.accounts().principal(key, now).await.unwrap() {
        Some(Principal::Login { status }) => Some(status),
        _ => None,
    }
}

async fn agent_of(store: &Store, key: &[u8; 32], now: Timestamp) -> Option<(AgentId, Option<Timestamp>)> {
    match store.accounts().principal(key, now).await.unwrap() {
        Some(Principal::Agent { agent, expires_at, .. }) => Some((agent, expires_at)),
        _ => None,
    }
}

/// A login waits, is found by its code only, and once approved its key works for the agent until its end.
pub async fn an_approved_login_is_a_key_with_an_end(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let gauge = agent(&store, ada, "gauge").await;
    let login = begin(&store, 0).await;
    assert_eq!(
        status_of(&store, &login.key_hash, at(1)).await,
        Some(ClaimStatus::Pending)
    );

    let found = accounts.login_of_code(typed(ada, login.code_hash, 2)).await.unwrap();
    let expected = Login {
        device: "ada-laptop".to_owned(),
        address: "203.0.113.7".to_owned(),
        created_at: at(0),
        expires_at: at(WAITS),
    };
    assert_eq!(found, Ok(expected));
    let approve = async |operator, agent, seconds| {
        let code = typed(operator, login.code_hash, seconds);
        accounts.login_approve(code, agent, KEY_LASTS).await.unwrap()
    };
    // An agent of another operator is none, and leaves the login as it was.
    assert_eq!(
        approve(eve, LoginAgent::Present(gauge), 3).await,
        LoginApproval::NoAgent
    );
    assert_eq!(
        status_of(&store, &login.key_hash, at(3)).await,
        Some(ClaimStatus::Pending)
    );
    assert_eq!(
        approve(ada, LoginAgent::Present(gauge), 4).await,
        LoginApproval::Approved(gauge)
    );

    let end = 4 + 90 * DAY;
    assert_eq!(
        agent_of(&store, &login.key_hash, at(end - 1)).await,
        Some((gauge, Some(at(end))))
    );
    assert_eq!(accounts.principal(&login.key_hash, at(end)).await.unwrap(), None);
    let listed = accounts.agents_of(ada, at(5)).await.unwrap().remove(0).keys;
    let shown: Vec<_> = listed
        .iter()
        .map(|key| (key.label.as_deref(), key.expires_at))
        .collect();
    assert_eq!(shown, [(Some("ada-laptop"), Some(at(end))), (None, None)]);
    // The code is dead, for whoever types it.
    for operator in [ada, eve] {
        let again = approve(operator, LoginAgent::Present(gauge), 5).await;
        assert_eq!(again, LoginApproval::Refused(TypedCodeRefused::Unknown));
        let found = accounts
            .login_of_code(typed(operator, login.code_hash, 5))
            .await
            .unwrap();
        assert_eq!(found, Err(TypedCodeRefused::Unknown));
    }
}

/// A login that is rejected or late gives no key, and says which of the two.
pub async fn a_login_that_is_over_gives_no_key(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let gauge = agent(&store, ada, "gauge").await;
    let (rejected, late) = (begin(&store, 0).await, begin(&store, 0).await);
    let reject = async |seconds| {
        accounts
            .login_reject(typed(ada, rejected.code_hash, seconds))
            .await
            .unwrap()
    };
    assert_eq!(reject(1).await, Ok(()));
    assert_eq!(reject(2).await, Err(TypedCodeRefused::Unknown));
    for (login, status) in [(&rejected, ClaimStatus::Rejected), (&late, ClaimStatus::Expired)] {
        let code = typed(ada, login.code_hash, WAITS);
        let approved = accounts
            .login_approve(code, LoginAgent::Present(gauge), KEY_LASTS)
            .await
            .unwrap();
        assert_eq!(approved, LoginApproval::Refused(TypedCodeRefused::Unknown));
        assert_eq!(status_of(&store, &login.key_hash, at(WAITS)).await, Some(status));
    }
    // A day later nobody asks any more.
    accounts.tidy(at(WAITS + DAY)).await.unwrap();
    for login in [rejected, late] {
        assert_eq!(
            accounts.principal(&login.key_hash, at(WAITS + DAY)).await.unwrap(),
            None
        );
    }
}

/// Five wrong codes lock a person out for an hour, also from right ones, however many are typed at once.
pub async fn wrong_codes_lock_a_person_out(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let stores = [open(url).await, open(url).await];
    let outcomes = race(stores, 20, |store, _| {
        let wrong = typed(eve, fresh_hash(), 0);
        async move { store.accounts().login_of_code(wrong).await.unwrap() }
    })
    .await;
    let locked = TypedCodeRefused::Locked(at(3_600));
    let count = |expected| outcomes.iter().filter(|outcome| **outcome == Err(expected)).count();
    assert_eq!(count(TypedCodeRefused::Unknown), MAX_WRONG_CODES as usize);
    assert_eq!(count(locked), 20 - MAX_WRONG_CODES as usize);

    let login = begin(&store, 3_000).await;
    let look = async |operator, seconds| {
        let code = typed(operator, login.code_hash, seconds);
        accounts.login_of_code(code).await.unwrap()
    };
    assert_eq!(look(eve, 3_599).await, Err(locked));
    let rejected = accounts.login_reject(typed(eve, login.code_hash, 3_599)).await.unwrap();
    assert_eq!(rejected, Err(locked));
    assert!(look(ada, 3_599).await.is_ok());
    assert!(look(eve, 3_600).await.is_ok());
}

/// Of many approvals at once one gets the key, and a refused one makes no agent.
pub async fn one_of_many_approvals_wins(url: &str) {
    let stores = [open(url).await, open(url).await];
    let ada = operator(&stores[0], "ada@example.org").await;
    let login = begin(&stores[0], 0).await;
    let outcomes = race(stores.clone(), 8, |store, number| {
        let code = typed(ada, login.code_hash, 1);
        let agent = LoginAgent::New(new_agent(ada, &format!("gauge-{number}")), 99);
        async move { store.accounts().login_approve(code, agent, KEY_LASTS).await.unwrap() }
    })
    .await;
    let won = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, LoginApproval::Approved(_)))
        .count();
    assert_eq!(won, 1, "{outcomes:?}");
    assert_eq!(stores[1].accounts().agents_of(ada, at(2)).await.unwrap().len(), 1);
}

/// A new agent is made with the approval, or nothing is.
pub async fn a_login_makes_its_agent_or_nothing(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    agent(&store, ada, "gauge").await;
    let login = begin(&store, 0).await;
    let approve = async |name: &str, limit| {
        let code = typed(ada, login.code_hash, 1);
        let agent = LoginAgent::New(new_agent(ada, name), limit);
        accounts.login_approve(code, agent, KEY_LASTS).await.unwrap()
    };
    assert_eq!(approve("Gauge", 5).await, LoginApproval::NameTaken);
    assert_eq!(approve("laptop", 1).await, LoginApproval::LimitReached);
    assert_eq!(
        status_of(&store, &login.key_hash, at(1)).await,
        Some(ClaimStatus::Pending)
    );
    assert_eq!(accounts.agents_of(ada, at(1)).await.unwrap().len(), 1);
    let made = approve("laptop", 2).await;
    let (agent, _) = agent_of(&store, &login.key_hash, at(2)).await.unwrap();
    assert_eq!(made, LoginApproval::Approved(agent));
    assert_eq!(accounts.agents_of(ada, at(2)).await.unwrap().len(), 2);
}

/// The key of a login ends with a rotation, alone, with the agent, and while the operator is suspended.
pub async fn the_key_of_a_login_ends_with_its_agent(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let new = new_agent(ada, "gauge");
    let (gauge, first) = (new.id, new.key_hash);
    assert_eq!(store.agent_create(new, 5).await.unwrap(), crate::AgentCreated::Created);
    let log_in = async |seconds: i64| {
        let login = begin(&store, seconds).await;
        let code = typed(ada, login.code_hash, seconds);
        let approved = accounts
            .login_approve(code, LoginAgent::Present(gauge), KEY_LASTS)
            .await;
        assert_eq!(approved.unwrap(), LoginApproval::Approved(gauge));
        login.key_hash
    };
    let works = async |key: &[u8; 32], seconds| agent_of(&store, key, at(seconds)).await.is_some();

    // One key ends alone.
    let (one, other) = (log_in(0).await, log_in(1).await);
    let keys = accounts.agents_of(ada, at(2)).await.unwrap().remove(0).keys;
    assert_eq!(keys.len(), 3);
    let newest = keys.first().unwrap().id;
    assert!(!accounts.agent_key_end(eve, gauge, newest).await.unwrap());
    assert!(accounts.agent_key_end(ada, gauge, newest).await.unwrap());
    assert!(!accounts.agent_key_end(ada, gauge, newest).await.unwrap());
    assert!(works(&one, 2).await && works(&first, 2).await && !works(&other, 2).await);

    // A rotation ends both kinds after its grace.
    let hour = Duration::from_hours(1);
    let second = fresh_hash();
    assert!(
        accounts
            .agent_key_rotate(ada, gauge, second, hour, at(3))
            .await
            .unwrap()
    );
    assert!(works(&one, 3_602).await && works(&first, 3_602).await);
    assert!(!works(&one, 3_603).await && !works(&first, 3_603).await && works(&second, 3_603).await);

    // A suspension refuses it, and a removal ends it.
    let last = log_in(4).await;
    store.operator_suspend(ada, "spam".to_owned(), at(5)).await.unwrap();
    let principal = accounts.principal(&last, at(6)).await.unwrap();
    assert!(
        matches!(principal, Some(Principal::Agent { suspended: true, .. })),
        "{principal:?}"
    );
    let login = begin(&store, 6).await;
    let code = typed(ada, login.code_hash, 6);
    let approved = accounts
        .login_approve(code, LoginAgent::Present(gauge), KEY_LASTS)
        .await
        .unwrap();
    assert_eq!(approved, LoginApproval::Refused(TypedCodeRefused::Suspended));
    assert!(accounts.agent_remove(ada, gauge, at(7)).await.unwrap());
    assert_eq!(accounts.principal(&last, at(8)).await.unwrap(), None);
}
