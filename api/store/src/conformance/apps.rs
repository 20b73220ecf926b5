//! Scenarios about apps that act as an agent.

use super::fixture::{agent, at, new_agent, open, operator, race};
use super::moderation::{back, down};
use crate::{
    AgentCreated, NewConsent, OAuthAccess, OAuthCode, OAuthConnection, OAuthGrant, OAuthRedeemed, ReportKind,
    ReportReason,
};

const HOUR: i64 = 3_600;

/// A takedown of an agent ends its connections, and while it lasts the agent is connected to no app again.
pub async fn an_agent_that_is_down_acts_through_no_app(url: &str) {
    let store = open(url).await;
    let operator = operator(&store, "ada@example.org").await;
    let agent = agent(&store, operator, "talker").await;
    let oauth = store.oauth();
    let connect = async |number: u8, now: i64| {
        let grant = OAuthGrant {
            client_id: "app_1".to_owned(),
            operator,
            agent,
            resource: "/mcp".to_owned(),
            scopes: "read write".to_owned(),
        };
        let code = OAuthCode {
            grant: grant.clone(),
            redirect_uri: "https://app.example/cb".to_owned(),
            challenge: [0; 32],
            expires_at: at(now + 60),
        };
        oauth.code_add([number; 32], code).await.unwrap();
        let connection = OAuthConnection {
            id: format!("connection-{number}"),
            grant,
            began_at: at(now),
            ends_at: at(now + 24 * HOUR),
            current: 0,
            rotated: None,
            ended_at: None,
        };
        let access = OAuthAccess {
            connection: connection.id.clone(),
            scopes: connection.grant.scopes.clone(),
            expires_at: at(now + HOUR),
        };
        let token = [number + 100; 32];
        let redeemed = oauth.redeem([number; 32], connection, None, token, access).await;
        let app = oauth.app(&token, at(now + 1)).await.unwrap();
        (redeemed.unwrap(), app.is_some())
    };
    assert_eq!(connect(1, 10).await, (OAuthRedeemed::Now, true));
    let item = agent.to_string();
    let takedown = down(&store, ReportKind::Agent, &item, ReportReason::Spam, at(20)).await;
    assert_eq!(oauth.app(&[101; 32], at(21)).await.unwrap(), None);
    assert_eq!(connect(2, 30).await, (OAuthRedeemed::Unknown, false));
    back(&store, takedown.id, at(40)).await;
    assert_eq!(connect(3, 50).await, (OAuthRedeemed::Now, true));
}

/// A consent makes one agent, also when it is sent by many at once; another request, another person, another day and an agent
/// that was removed make another.
pub async fn a_consent_makes_one_agent(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = stores[0].clone();
    let (ada, eve) = (
        operator(&store, "ada@example.org").await,
        operator(&store, "eve@example.org").await,
    );
    let consent = |request: u8, stale: i64| NewConsent {
        request_hash: [request; 32],
        stale: at(stale),
    };
    let made = race(stores, 12, move |store, number| async move {
        let new = new_agent(ada, &format!("desk-{number}"));
        let id = new.id;
        match store.agent_create_with(new, 5, Some(consent(1, -HOUR))).await.unwrap() {
            AgentCreated::Created => (id, true),
            AgentCreated::Before(id) => (id, false),
            other => unreachable!("{other:?}"),
        }
    })
    .await;
    let agent = made[0].0;
    assert!(made.iter().all(|(id, _)| *id == agent), "{made:?}");
    assert_eq!(made.iter().filter(|(_, is_new)| *is_new).count(), 1);
    let accounts = store.accounts();
    assert_eq!(
        accounts.agent_of_consent(ada, consent(1, -HOUR)).await.unwrap(),
        Some(agent)
    );
    for (other, of) in [
        (consent(2, -HOUR), ada),
        (consent(1, -HOUR), eve),
        (consent(1, HOUR), ada),
    ] {
        assert_eq!(accounts.agent_of_consent(of, other).await.unwrap(), None);
    }
    assert!(accounts.agent_remove(ada, agent, at(20)).await.unwrap());
    assert_eq!(accounts.agent_of_consent(ada, consent(1, -HOUR)).await.unwrap(), None);
    let again = new_agent(ada, "desk-again");
    let id = again.id;
    let made = store
        .agent_create_with(again, 5, Some(consent(1, -HOUR)))
        .await
        .unwrap();
    assert_eq!(made, AgentCreated::Created);
    assert_eq!(
        accounts.agent_of_consent(ada, consent(1, -HOUR)).await.unwrap(),
        Some(id)
    );
    let _removed = accounts.tidy(at(25 * HOUR)).await.unwrap();
    assert_eq!(accounts.agent_of_consent(ada, consent(1, -HOUR)).await.unwrap(), None);
}

/// A registered client stays for as long as it has a code or a connection, also one that has ended and is remembered.
pub async fn a_registered_client_goes_when_nothing_is_left_of_it(url: &str) {
    let store = open(url).await;
    let operator = operator(&store, "ada@example.org").await;
    let agent = agent(&store, operator, "talker").await;
    let oauth = store.oauth();
    let grant = |client: &str| OAuthGrant {
        client_id: client.to_owned(),
        operator,
        agent,
        resource: "/mcp".to_owned(),
        scopes: "read".to_owned(),
    };
    for (client, now) in [("idle", 1), ("asked", 2), ("used", 3), ("idle-too", 4), ("new", 900)] {
        oauth.client_add(client, "{}", at(now)).await.unwrap();
    }
    for (number, client, expires_at) in [(1, "asked", 2_000), (2, "used", 200)] {
        let code = OAuthCode {
            grant: grant(client),
            redirect_uri: "https://app.example/cb".to_owned(),
            challenge: [0; 32],
            expires_at: at(expires_at),
        };
        oauth.code_add([number; 32], code).await.unwrap();
    }
    let connection = OAuthConnection {
        id: "connection".to_owned(),
        grant: grant("used"),
        began_at: at(100),
        ends_at: at(500),
        current: 0,
        rotated: None,
        ended_at: None,
    };
    let access = OAuthAccess {
        connection: connection.id.clone(),
        scopes: "read".to_owned(),
        expires_at: at(300),
    };
    let redeemed = oauth.redeem([2; 32], connection, Some([3; 32]), [4; 32], access).await;
    assert_eq!(redeemed.unwrap(), OAuthRedeemed::Now);
    let registered = async || {
        let mut found = Vec::new();
        for client in ["idle", "asked", "used", "idle-too", "new"] {
            found.extend(oauth.client(client).await.unwrap().map(|_| client));
        }
        found
    };

    assert_eq!(oauth.clients_prune(at(800), at(800), 9, 1).await.unwrap(), 1);
    assert_eq!(
        registered().await,
        ["asked", "used", "idle-too", "new"],
        "one a call, the oldest first"
    );
    // The connection has ended and its tokens are gone, and it is remembered.
    oauth.prune(at(1_000), at(600), at(400)).await.unwrap();
    assert_eq!(oauth.refresh([3; 32]).await.unwrap(), None);
    assert_eq!(oauth.clients_prune(at(800), at(800), 9, 9).await.unwrap(), 1);
    assert_eq!(registered().await, ["asked", "used", "new"]);
    oauth.prune(at(2_000), at(600), at(600)).await.unwrap();
    assert_eq!(oauth.clients_prune(at(800), at(800), 9, 9).await.unwrap(), 2);
    assert_eq!(registered().await, ["new"]);
}

/// Of many unused clients the newest are kept, and none that is younger than the limit goes.
pub async fn a_crowd_of_clients_is_thinned(url: &str) {
    let store = open(url).await;
    let oauth = store.oauth();
    for (client, registered) in [("first", 10), ("second", 20), ("third", 30), ("fourth", 40)] {
        oauth.client_add(client, "{}", at(registered)).await.unwrap();
    }
    let left = async || {
        let mut found = Vec::new();
        for client in ["first", "second", "third", "fourth"] {
            found.extend(oauth.client(client).await.unwrap().map(|_| client));
        }
        found
    };
    assert_eq!(oauth.clients_prune(at(0), at(50), 4, 9).await.unwrap(), 0);
    assert_eq!(oauth.clients_prune(at(0), at(50), 3, 9).await.unwrap(), 1);
    assert_eq!(left().await, ["second", "third", "fourth"]);
    assert_eq!(oauth.clients_prune(at(0), at(20), 1, 9).await.unwrap(), 1);
    assert_eq!(left().await, ["third", "fourth"]);
}
