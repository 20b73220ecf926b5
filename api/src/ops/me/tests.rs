use std::time::Duration;

use oauth::family::Family;
use oauth::{
    Access, AppBudget, Challenge, Code, Connection, ConnectionId, Grant, Hash, Redeemed, Resource, Scopes, Storage as _,
};
use serde_json::{Value, json};
use types::{AgentId, Clock as _, OperatorId};

use crate::ops::knowledge::tests::World;
use crate::testing::Service;

/// Returns the operator of a key or a token.
async fn operator_of(service: &Service, credential: &str) -> OperatorId {
    let me = service.get("/me", Some(credential)).await.json();
    me["operator"]["id"].as_str().unwrap().parse().unwrap()
}

/// Connects an app that acts as an agent with these scopes, and returns its token.
async fn app_of(service: &Service, agent: &Value, scopes: &str) -> String {
    let (store, now) = (&service.app.store, service.clock.now());
    let grant = Grant {
        client_id: "https://app.invalid/app.json".to_owned(),
        operator: agent["operator"]["id"].as_str().unwrap().parse().unwrap(),
        agent: agent["agentId"].as_str().unwrap().parse().unwrap(),
        resource: Resource::Mcp,
        scopes: Scopes::parse(scopes).unwrap(),
    };
    let (code, expires_at) = (Hash(crate::secrets::hash("wtg_1")), now.plus(Duration::from_hours(1)));
    let given = Code {
        grant: grant.clone(),
        redirect_uri: "https://app.invalid/callback".to_owned(),
        challenge: Challenge::from_bytes([0; 32]),
        budget: AppBudget::default(),
        expires_at,
    };
    store.add_code(code, &given).await.unwrap();
    let connection = Connection {
        id: ConnectionId::new(now),
        grant,
        family: Family::new(now),
    };
    let access = Access {
        connection: connection.id,
        scopes: connection.grant.scopes,
        expires_at,
    };
    let token = (Hash(crate::secrets::hash("wta_1")), &access);
    let redeemed = store.redeem(code, &connection, None, token);
    assert_eq!(redeemed.await.unwrap(), Redeemed::Now);
    "wta_1".to_owned()
}

/// Returns the pages of a list, each as the values of one member.
async fn pages(world: &World, path: &str, member: &str) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), format!("{path}?limit=2"));
    loop {
        let got = world.get(&next, Some(&world.author)).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let body = got.json();
        let items = body["items"].as_array().unwrap().iter();
        pages.push(items.map(|item| item[member].as_str().unwrap().to_owned()).collect());
        let Some(cursor) = body["nextCursor"].as_str() else {
            return pages;
        };
        next = format!("{path}?limit=2&cursor={cursor}");
    }
}

#[tokio::test]
async fn an_agent_learns_its_name_operator_scopes_and_what_is_left() {
    let world = World::with(crate::testing::limits()).await;
    let service = &world.service;
    let me = service.get("/me", Some(&world.author)).await;
    assert_eq!(me.status, 200, "{}", me.text());
    let me = me.json();
    assert_eq!(
        (&me["name"], &me["credential"], &me["operator"]["name"]),
        (&json!("author"), &json!("agent_key"), &json!("Somebody"))
    );
    assert_eq!(me["scopes"], json!(["read", "write", "spend"]));
    assert!(me["agentId"].as_str().unwrap().parse::<AgentId>().is_ok());
    assert_eq!(me["projects"], json!({"active": [], "limit": 3, "remaining": 3}));

    for slug in ["one", "two", "three"] {
        service.clock.advance(Duration::from_secs(1));
        service.project(&world.author, slug, &json!({})).await;
    }
    let archived = service
        .call(
            "PATCH",
            "/projects/two",
            Some(&world.author),
            r#"{"status": "archived"}"#,
        )
        .await;
    assert_eq!(archived.status, 200, "{}", archived.text());
    world.submitted("A text about one thing.").await;
    let me = service.get("/me", Some(&world.author)).await.json();
    let slugs: Vec<&Value> = me["projects"]["active"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| &project["slug"])
        .collect();
    assert_eq!(slugs, ["three", "one"]);
    assert_eq!(me["projects"]["remaining"], 1);
    let limits = &me["limits"];
    assert_eq!(
        limits["validation"]["remaining"],
        json!({"knowledge": 9, "contributions": 200})
    );
    assert_eq!(limits["agents"], json!({"used": 1, "allowed": 5}));
    assert_eq!(limits["uploads"], json!({"used": 0, "allowed": 3}));
    let quota = service.get("/quota", Some(&world.author)).await.json();
    for part in ["storage", "egress", "validation"] {
        assert_eq!(limits[part], quota[part], "{part}");
    }
}

#[tokio::test]
async fn every_credential_of_an_operator_is_told_who_it_is() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    let person = service.get("/me", Some(&token)).await.json();
    assert_eq!(
        (&person["name"], &person["credential"], person.get("agentId")),
        (&json!("Somebody"), &json!("operator_token"), None)
    );
    let agent = service.get("/me", Some(&key)).await.json();
    assert_eq!(agent["operator"], person["operator"]);

    // An app needs no particular scope to learn what it is.
    let access = app_of(&service, &agent, "write").await;
    let app = service.get("/me", Some(&access)).await;
    assert_eq!(app.status, 200, "{}", app.text());
    let app = app.json();
    assert_eq!(
        (&app["name"], &app["credential"], &app["scopes"]),
        (&json!("gauge"), &json!("app_token"), &json!(["write"]))
    );
    let refused = service.get("/me/knowledge", Some(&access)).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]),
        (403, &json!("insufficient_scope"))
    );
    assert_eq!(service.get("/me", None).await.status, 401);
}

#[tokio::test]
async fn units_are_listed_to_their_operator_whatever_became_of_them() {
    let world = World::start().await;
    let rejected = world.submitted("A first text.").await;
    world.reject(&rejected).await;
    world.service.clock.advance(Duration::from_secs(1));
    let first = world.published("A second text.", 80).await;
    world.service.clock.advance(Duration::from_secs(1));
    let second = world.revised(&first, "A second text, mended.").await;
    world.publish(&second, 90).await;
    world.service.clock.advance(Duration::from_secs(1));
    let waiting = world.submitted("A third text.").await;

    let ids = pages(&world, "/me/knowledge", "id").await;
    assert_eq!(ids, [vec![waiting, second], vec![first, rejected]]);
    let states = pages(&world, "/me/knowledge", "status").await.concat();
    assert_eq!(states, ["queued", "published", "superseded", "rejected"]);
    let page = world.get("/me/knowledge", Some(&world.author)).await.json();
    assert_eq!(
        (&page["items"][1]["total"], &page["items"][1]["version"]),
        (&json!(90), &json!(2))
    );
    assert_eq!(page["items"][3]["reason"]["code"], "score_below_55");
    assert!(page["items"][0].get("body").is_none(), "a list has no texts");
    let theirs = world.get("/me/knowledge", Some(&world.other)).await.json();
    assert_eq!(theirs["items"], json!([]));
    let elsewhere = world
        .get(
            &format!("/me/knowledge?cursor={}", OperatorId::PLATFORM),
            Some(&world.other),
        )
        .await;
    assert_eq!(elsewhere.json()["items"], json!([]));
    let bad = world.get("/me/knowledge?cursor=x", Some(&world.author)).await;
    assert_eq!(bad.status, 400);
}

#[tokio::test]
async fn contributions_to_any_dataset_are_listed_to_who_contributed() {
    let world = World::start().await;
    let service = &world.service;
    service.project(&world.other, "theirs", &json!({})).await;
    service.project(&world.author, "mine", &json!({})).await;
    let second = Duration::from_secs(1);
    service.merged(&world.author, "theirs", &[json!({"name": "a"})]).await;
    service.clock.advance(second);
    service
        .merged(&world.author, "mine", &[json!({"name": "a"}), json!({"name": "b"})])
        .await;
    service.merged(&world.other, "mine", &[json!({"name": "c"})]).await;
    let body = json!({"records": [{"name": "d"}]}).to_string();
    let path = "/projects/theirs/contribute";
    service.clock.advance(second);
    let open = service.call("POST", path, Some(&world.author), &body).await.json();

    let projects = pages(&world, "/me/contributions", "project").await;
    assert_eq!(projects, [vec!["theirs", "mine"], vec!["theirs"]]);
    let page = world.get("/me/contributions", Some(&world.author)).await.json();
    assert_eq!(
        (&page["items"][0]["id"], &page["items"][0]["status"]),
        (&open["id"], &json!("submitted"))
    );
    assert_eq!(
        (
            &page["items"][1]["mergedVersion"],
            &page["items"][1]["acceptedCount"],
            &page["items"][1]["submittedCount"]
        ),
        (&json!(1), &json!(2), &json!(2))
    );
    let url = page["items"][1]["url"].as_str().unwrap();
    let path = url.strip_prefix("http://sluice.test").unwrap();
    assert_eq!(world.get(path, Some(&world.author)).await.status, 200);
}

#[tokio::test]
async fn requests_are_listed_to_their_operator() {
    let world = World::start().await;
    let mut ids = Vec::new();
    for title in ["First wish", "Second wish", "Third wish"] {
        world.service.clock.advance(Duration::from_secs(1));
        let body = json!({"title": title, "body": "Measured ones, please."});
        let got = world.post("/community/requests", Some(&world.author), &body).await;
        assert_eq!(got.status, 201, "{}", got.text());
        ids.push(got.json()["id"].as_str().unwrap().to_owned());
    }
    let theirs = json!({"title": "Their wish", "body": "Measured ones, please."});
    world.post("/community/requests", Some(&world.other), &theirs).await;
    let closed = format!("/community/requests/{}/close", ids[0]);
    world.post(&closed, Some(&world.author), &json!({})).await;
    let [one, two, three] = ids.try_into().unwrap();
    assert_eq!(pages(&world, "/me/requests", "id").await, [vec![three, two], vec![one]]);
    let states = pages(&world, "/me/requests", "status").await.concat();
    assert_eq!(states, ["open", "open", "closed"]);
}

#[tokio::test]
async fn purchases_are_listed_to_the_buyer_with_where_to_read_them() {
    let world = World::start().await;
    let service = &world.service;
    let (seller, buyer) = (&world.other, &world.author);
    service.granted(operator_of(service, buyer).await, 9_000_000).await;
    service
        .project(seller, "levels", &json!({"access": "paid", "price": "0.50"}))
        .await;
    service.merged(seller, "levels", &[json!({"name": "a"})]).await;
    let bought = service.call("POST", "/projects/levels/buy", Some(buyer), "{}").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    service.clock.advance(Duration::from_secs(1));
    let sold = json!({
        "title": "A title", "body": "A text for sale.", "category": "tool-usage",
        "sourceDeclaration": "Ran here today.", "price": "0.25",
    });
    let unit = world.post("/knowledge", Some(seller), &sold).await.json();
    let unit = unit["id"].as_str().unwrap();
    world.publish(unit, 80).await;
    let path = format!("/knowledge/{unit}/buy");
    let bought = service.call("POST", &path, Some(buyer), "").await;
    assert_eq!(bought.status, 200, "{}", bought.text());

    let page = world.get("/me/purchases", Some(buyer)).await.json();
    let [unit_line, dataset] = [&page["items"][0], &page["items"][1]];
    assert_eq!(
        (
            &unit_line["kind"],
            &unit_line["unitId"],
            &unit_line["priceMicro"],
            &unit_line["title"]
        ),
        (&json!("unit"), &json!(unit), &json!(250_000), &json!("A title"))
    );
    assert_eq!(
        (
            &dataset["dataset"],
            &dataset["version"],
            &dataset["paidWith"],
            &dataset["agent"]
        ),
        (&json!("levels"), &json!(1), &json!("credits"), &json!("author"))
    );
    let first = world.get("/me/purchases?limit=1", Some(buyer)).await.json();
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = world
        .get(&format!("/me/purchases?limit=1&cursor={cursor}"), Some(buyer))
        .await
        .json();
    assert_eq!(
        (&rest["items"][0]["dataset"], rest.get("nextCursor")),
        (&json!("levels"), None)
    );
    let sellers = world.get("/me/purchases", Some(seller)).await.json();
    assert_eq!(sellers["items"], json!([]));
}
