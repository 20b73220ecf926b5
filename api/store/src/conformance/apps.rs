//! Scenarios about apps that act as an agent.

use std::sync::Arc;

use oauth::client::{ClientAuth, OAuthClient};
use oauth::conformance;
use oauth::family::Family;
use oauth::redirect::Application;
use oauth::{
    Access, AppBudget, Challenge, Code, Connection, ConnectionId, Grant, Hash, Redeemed, Resource, Scope, Scopes,
    Storage as _,
};
use types::{AgentId, OperatorId};

use super::fixture::{agent, at, new_agent, open, operator, race};
use super::moderation::{back, down};
use crate::{
    AgentCreated, CONSOLE_CLIENT, CONSOLE_LASTS, CONSOLE_RESOURCE, NewConsent, ReportKind, ReportReason, Store,
};

const HOUR: i64 = 3_600;

/// Codes, connections and tokens are kept as the authorization server requires of its storage.
pub async fn the_authorization_server_finds_its_records(url: &str) {
    let store = open(url).await;
    let operator = operator(&store, "ada@example.org").await;
    let agent = agent(&store, operator, "talker").await;
    conformance::run(&conformance::Fixture {
        storage: Arc::new(store),
        operator,
        agent,
        now: at(HOUR),
    })
    .await;
}

/// Returns a grant to the app with this identifier.
fn grant(client: &str, operator: OperatorId, agent: AgentId) -> Grant {
    Grant {
        client_id: client.to_owned(),
        operator,
        agent,
        resource: Resource::Mcp,
        scopes: Scopes::of(&[Scope::Read, Scope::Write]),
    }
}

/// Returns a code for a grant that ends at a second.
fn code(grant: &Grant, expires_at: i64) -> Code {
    Code {
        grant: grant.clone(),
        redirect_uri: "https://app.example/cb".to_owned(),
        challenge: Challenge::from_bytes([0; 32]),
        budget: AppBudget::default(),
        expires_at: at(expires_at),
    }
}

/// Returns a connection that begins at a second, with an access token of an hour.
fn connection(grant: Grant, now: i64) -> (Connection, Access) {
    let connection = Connection {
        id: ConnectionId::new(at(now)),
        grant,
        family: Family::new(at(now)),
    };
    let access = Access {
        connection: connection.id,
        scopes: connection.grant.scopes,
        expires_at: at(now + HOUR),
    };
    (connection, access)
}

/// Adds a registered client.
async fn register(store: &Store, id: &str, now: i64) {
    let client = OAuthClient {
        id: id.to_owned(),
        name: None,
        uri: None,
        redirect_uris: Vec::new(),
        application: Application::Web,
        scopes: Scopes::ALL,
        may_refresh: true,
        auth: ClientAuth::None,
        registered_at: at(now),
    };
    store.add_client(&client).await.unwrap();
}

/// A takedown of an agent ends its connections, and while it lasts the agent is connected to no app again.
pub async fn an_agent_that_is_down_acts_through_no_app(url: &str) {
    let store = open(url).await;
    let operator = operator(&store, "ada@example.org").await;
    let agent = agent(&store, operator, "talker").await;
    let oauth = store.oauth();
    let connect = async |number: u8, now: i64| {
        let grant = grant("app_1", operator, agent);
        let code_hash = Hash([number; 32]);
        store.add_code(code_hash, &code(&grant, now + 60)).await.unwrap();
        let (connection, access) = connection(grant, now);
        let token = [number + 100; 32];
        let redeemed = store.redeem(code_hash, &connection, None, (Hash(token), &access)).await;
        let app = oauth.app(&token, at(now + 1)).await.unwrap();
        (redeemed.unwrap(), app.is_some())
    };
    assert_eq!(connect(1, 10).await, (Redeemed::Now, true));
    let item = agent.to_string();
    let takedown = down(&store, ReportKind::Agent, &item, ReportReason::Spam, at(20)).await;
    assert_eq!(oauth.app(&[101; 32], at(21)).await.unwrap(), None);
    assert_eq!(connect(2, 30).await, (Redeemed::Unknown, false));
    back(&store, takedown.id, at(40)).await;
    assert_eq!(connect(3, 50).await, (Redeemed::Now, true));
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
    for (client, now) in [("idle", 1), ("asked", 2), ("used", 3), ("idle-too", 4), ("new", 900)] {
        register(&store, client, now).await;
    }
    let grant = |client: &str| grant(client, operator, agent);
    for (number, client, expires_at) in [(1, "asked", 2_000), (2, "used", 200)] {
        let code = code(&grant(client), expires_at);
        store.add_code(Hash([number; 32]), &code).await.unwrap();
    }
    let (connection, access) = connection(grant("used"), 100);
    let redeemed = store
        .redeem(
            Hash([2; 32]),
            &connection,
            Some(Hash([3; 32])),
            (Hash([4; 32]), &access),
        )
        .await;
    assert_eq!(redeemed.unwrap(), Redeemed::Now);
    store.end(connection.id, at(500)).await.unwrap();
    let registered = async || {
        let mut found = Vec::new();
        for client in ["idle", "asked", "used", "idle-too", "new"] {
            found.extend(store.client(client).await.unwrap().map(|_| client));
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
    assert_eq!(store.refresh(Hash([3; 32])).await.unwrap(), None);
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
        register(&store, client, registered).await;
    }
    let left = async || {
        let mut found = Vec::new();
        for client in ["first", "second", "third", "fourth"] {
            found.extend(store.client(client).await.unwrap().map(|_| client));
        }
        found
    };
    assert_eq!(oauth.clients_prune(at(0), at(50), 4, 9).await.unwrap(), 0);
    assert_eq!(oauth.clients_prune(at(0), at(50), 3, 9).await.unwrap(), 1);
    assert_eq!(left().await, ["second", "third", "fourth"]);
    assert_eq!(oauth.clients_prune(at(0), at(20), 1, 9).await.unwrap(), 1);
    assert_eq!(left().await, ["third", "fourth"]);
}

/// The console acts as an agent of its own operator from a consent until 30 days without use, an end by the person, or the
/// removal, takedown or suspension; and then from the next consent.
pub async fn the_console_is_connected_until_something_ends_it(url: &str) {
    let store = open(url).await;
    let (ada, eve) = (
        operator(&store, "ada@example.org").await,
        operator(&store, "eve@example.org").await,
    );
    let desk = agent(&store, ada, "desk").await;
    let oauth = store.oauth();
    let is_connected = async |operator, now| oauth.console_app(operator, desk, now).await.unwrap().is_some();
    assert!(!is_connected(ada, at(1)).await);
    assert!(
        !oauth.console_connect(eve, desk, at(1)).await.unwrap(),
        "another's agent"
    );

    assert!(oauth.console_connect(ada, desk, at(10)).await.unwrap());
    assert!(oauth.console_connect(ada, desk, at(11)).await.unwrap());
    let connections = oauth.connections_of(ada, at(12)).await.unwrap();
    assert_eq!(connections.len(), 1, "a second consent keeps the connection");
    let shown = &connections[0];
    assert_eq!(
        (shown.client_id.as_str(), shown.resource.as_str(), shown.scopes.as_str()),
        (CONSOLE_CLIENT, CONSOLE_RESOURCE, "read write")
    );
    assert_eq!(shown.ends_at, at(11).plus(CONSOLE_LASTS));
    let app = oauth.console_app(ada, desk, at(12)).await.unwrap().unwrap();
    assert_eq!((app.agent, app.agent_name.as_str(), app.operator), (desk, "desk", ada));
    assert!(!is_connected(eve, at(12)).await, "the connection is of one operator");

    // A use moves the end, and one that comes late does not move it back.
    oauth.console_seen(app.connection, at(2_000)).await.unwrap();
    oauth.console_seen(app.connection, at(1_000)).await.unwrap();
    let end = at(2_000).plus(CONSOLE_LASTS);
    assert!(is_connected(ada, end.minus(std::time::Duration::from_micros(1))).await);
    assert!(!is_connected(ada, end).await);

    assert!(oauth.connection_end_of(ada, app.connection, at(3_000)).await.unwrap());
    oauth.console_seen(app.connection, at(3_001)).await.unwrap();
    assert!(!is_connected(ada, at(3_002)).await, "a use revives nothing");

    assert!(oauth.console_connect(ada, desk, at(4_000)).await.unwrap());
    let item = desk.to_string();
    let takedown = down(&store, ReportKind::Agent, &item, ReportReason::Spam, at(4_001)).await;
    assert!(!is_connected(ada, at(4_002)).await);
    assert!(!oauth.console_connect(ada, desk, at(4_003)).await.unwrap());
    back(&store, takedown.id, at(4_004)).await;
    assert!(!is_connected(ada, at(4_005)).await, "it takes another consent");
    assert!(oauth.console_connect(ada, desk, at(4_006)).await.unwrap());
    assert!(store.accounts().agent_remove(ada, desk, at(4_007)).await.unwrap());
    assert!(!is_connected(ada, at(4_008)).await);
    assert!(!oauth.console_connect(ada, desk, at(4_009)).await.unwrap());

    let other = agent(&store, ada, "other").await;
    assert!(oauth.console_connect(ada, other, at(5_000)).await.unwrap());
    store
        .operator_suspend(ada, "a reason".to_owned(), at(5_001))
        .await
        .unwrap();
    assert_eq!(oauth.console_app(ada, other, at(5_002)).await.unwrap(), None);
    assert!(!oauth.console_connect(ada, other, at(5_003)).await.unwrap());
}

/// Consents that are sent at once make one connection.
pub async fn one_of_many_consents_connects_the_console(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = stores[0].clone();
    let ada = operator(&store, "ada@example.org").await;
    let desk = agent(&store, ada, "desk").await;
    let connected = race(stores, 12, move |store, _| async move {
        store.oauth().console_connect(ada, desk, at(10)).await.unwrap()
    })
    .await;
    assert_eq!(connected, [true; 12]);
    assert_eq!(store.oauth().connections_of(ada, at(11)).await.unwrap().len(), 1);
}
