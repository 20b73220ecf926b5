//! Tests of caps, and of purchases that wait for a person, as agents see them.

use std::time::Duration;

use oauth::family::Family;
use oauth::{
    Access, AppBudget, Challenge, Code, Connection, ConnectionId, Grant, Hash, Resource, Scope, Scopes, Storage as _,
};
use serde_json::{Value, json};
use store::{Approved, DeniedApproval, ItemKind, NewNo, NewYes, SpendLimits, SpendOwner};
use types::money::MicroUsdc;
use types::{AgentId, ApprovalId, LedgerEventId, SaleId, SessionId};

use super::{Scene, records, scene, scene_of};
use crate::rules::{approvals, letters};
use crate::secrets::hash;
use crate::testing::{Got, Service, config, limits, tariff};

/// Price of the dataset of these tests.
const PRICE: i64 = 500_000;
/// Token of the app that is connected to the agent.
const APP: &str = "wta_app-of-these-tests";

/// A scene whose buyer has credits for three purchases, and whose agent has these limits.
async fn limited(limits: SpendLimits) -> Scene {
    let scene = scene(&json!({"access": "paid", "price": "0.50"})).await;
    scene.service.granted(scene.buyer, 3 * PRICE).await;
    scene.limit(limits).await;
    scene
}

fn asking() -> SpendLimits {
    SpendLimits {
        approve_above: Some(MicroUsdc(PRICE - 10_000)),
        ..SpendLimits::default()
    }
}

impl Scene {
    async fn agent(&self) -> AgentId {
        let now = self.service.app.clock.now();
        let agents = self
            .service
            .app
            .store
            .accounts()
            .agents_of(self.buyer, now)
            .await
            .unwrap();
        agents[0].id
    }

    async fn limit(&self, limits: SpendLimits) {
        let (owner, now) = (SpendOwner::Agent(self.agent().await), self.service.app.clock.now());
        let money = self.service.app.store.money();
        assert!(money.limits_set(self.buyer, owner, limits, now).await.unwrap());
    }

    /// Connects an app to the buyer's agent, which then calls with [`APP`].
    async fn connect(&self, budget: AppBudget) {
        let (store, now) = (&self.service.app.store, self.service.app.clock.now());
        let grant = Grant {
            client_id: "https://app.example/client.json".to_owned(),
            operator: self.buyer,
            agent: self.agent().await,
            resource: Resource::Mcp,
            scopes: Scopes::of(&[Scope::Read, Scope::Spend]),
        };
        let code = Code {
            grant: grant.clone(),
            redirect_uri: "https://app.example/cb".to_owned(),
            challenge: Challenge::from_bytes([0; 32]),
            budget,
            expires_at: now.plus(Duration::from_mins(1)),
        };
        store.add_code(Hash([1; 32]), &code).await.unwrap();
        let connection = Connection {
            id: ConnectionId::new(now),
            grant,
            family: Family::new(now),
        };
        let access = Access {
            connection: connection.id,
            scopes: connection.grant.scopes,
            expires_at: now.plus(Duration::from_hours(1)),
        };
        let redeemed = store.redeem(Hash([1; 32]), &connection, None, (Hash(hash(APP)), &access));
        redeemed.await.unwrap();
    }

    /// Calls a tool and returns its result.
    async fn tool(&self, credential: &str, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = http::Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer {credential}"));
        let body = axum::body::Body::from(body.to_string());
        let mut answer = self.service.send(request.body(body).unwrap()).await.json();
        answer["result"].take()
    }

    async fn yes(&self, id: &str) -> Approved {
        let (app, now) = (&self.service.app, self.service.app.clock.now());
        let new = NewYes {
            id: id.parse().unwrap(),
            operator: self.buyer,
            session: SessionId::new(now),
            shown: None,
            sale: SaleId::new(now),
            event: LedgerEventId::new(now),
            successor: ApprovalId::new(now),
            terms: approvals::sale_terms(app, ItemKind::Dataset),
            now,
        };
        app.store.money().approve(new).await.unwrap()
    }
}

fn refused(got: &Got, status: u16, code: &str) -> Value {
    let body = got.json();
    assert_eq!((got.status.as_u16(), &body["error"]), (status, &json!(code)), "{body}");
    body
}

#[tokio::test]
async fn a_purchase_beyond_a_cap_says_which_and_when_it_begins_anew() {
    let scene = limited(SpendLimits {
        per_day: Some(MicroUsdc(PRICE)),
        ..SpendLimits::default()
    })
    .await;
    assert_eq!(scene.buy(&scene.theirs, &json!({"version": 1})).await.status, 200);
    scene.service.merged(&scene.mine, "weather", &records(3..5)).await;
    let before = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    let body = refused(
        &scene.buy(&scene.theirs, &json!({"version": 2})).await,
        403,
        "spend_cap",
    );
    let now = scene.service.app.clock.now();
    for (member, value) in [
        ("of", json!("agent")),
        ("period", json!("day")),
        ("capMicro", json!(PRICE)),
        ("usedMicro", json!(PRICE)),
        ("priceMicro", json!(PRICE)),
        ("resetAt", json!(now.next_day().to_string())),
    ] {
        assert_eq!(body[member], value, "{member}: {body}");
    }
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("has spent $0.50 of the $0.50"), "{message}");
    let after = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(before, after, "nothing moved");
    let day = &after["limits"]["agent"]["day"];
    assert_eq!(
        (&day["capMicro"], &day["usedMicro"], &after["limits"]["app"]),
        (&json!(PRICE), &json!(PRICE), &Value::Null)
    );

    // What is bought is read whatever is spent, and what costs too much for one purchase says so.
    assert_eq!(
        scene.buy(&scene.theirs, &json!({"version": 1})).await.json()["charged"],
        json!(false)
    );
    scene
        .limit(SpendLimits {
            per_purchase: Some(MicroUsdc(0)),
            ..SpendLimits::default()
        })
        .await;
    let body = refused(
        &scene.buy(&scene.theirs, &json!({"version": 2})).await,
        403,
        "spend_cap",
    );
    assert_eq!((&body["period"], &body["resetAt"]), (&json!("purchase"), &Value::Null));
}

#[tokio::test]
async fn an_agent_above_its_line_asks_and_completes_over_rest_and_mcp() {
    let scene = limited(asking()).await;
    scene.connect(AppBudget::default()).await;
    let words = "It has the records of June.";
    let asked = scene.buy(&scene.theirs, &json!({"reason": words})).await;
    assert_eq!(asked.status, 202, "{}", asked.text());
    let body = asked.json();
    let id = body["approval"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&body["status"], &body["dataset"], &body["version"], &body["priceMicro"]),
        (&json!("waiting"), &json!("weather"), &json!(1), &json!(PRICE))
    );
    assert_eq!(
        (&body["approval"]["url"], &body["retryAfter"], &body["charged"]),
        (
            &json!(format!("http://sluice.test/console/approvals/{id}")),
            &json!(30),
            &json!(false)
        )
    );
    assert!(body["approval"]["expiresAt"].is_string(), "{body}");
    // By key or by app, at REST or as a tool: the same row.
    for credential in [scene.theirs.as_str(), APP] {
        let result = scene.tool(credential, "buy_dataset", json!({"slug": "weather"})).await;
        assert_eq!(result["isError"], json!(false), "{result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        assert_eq!(
            (&text["status"], &text["approval"]["id"]),
            (&json!("waiting"), &json!(id))
        );
    }
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["boughtMicro"], json!(3 * PRICE), "nothing is held");

    // One letter, with no word that a stranger or the agent chose.
    let (app, now) = (&scene.service.app, scene.service.app.clock.now());
    let jobs = app
        .store
        .flow()
        .jobs_lease(now, Duration::from_secs(9), 99)
        .await
        .unwrap();
    let jobs: Vec<_> = jobs.iter().filter(|job| job.payload.contains("\"approval\"")).collect();
    assert_eq!(jobs.len(), 1);
    let letter = letters::letter(app, jobs[0], now).await.unwrap().unwrap();
    assert!(
        letter
            .text
            .contains(&format!("http://sluice.test/console/approvals/{id}")),
        "{}",
        letter.text
    );
    let choice = "http://sluice.test/console/settings#letters";
    assert!(
        letter.text.contains(choice) && letter.html.contains(choice),
        "{}",
        letter.text
    );
    assert!(
        letter.text.contains("theirs") && letter.text.contains("$0.50"),
        "{}",
        letter.text
    );
    assert!(
        !letter.text.contains(words) && !letter.text.contains("weather"),
        "{}",
        letter.text
    );

    // A newer version is merged, the person says yes, and the agent completes the same purchase.
    scene.service.merged(&scene.mine, "weather", &records(3..5)).await;
    let approved = scene.yes(&id).await;
    assert!(matches!(approved, Approved::Bought(_)), "{approved:?}");
    assert_eq!(
        letters::letter(app, jobs[0], now)
            .await
            .unwrap()
            .map(|letter| letter.id),
        None
    );
    let completed = scene.buy(&scene.theirs, &json!({})).await;
    assert_eq!(completed.status, 200, "{}", completed.text());
    let body = completed.json();
    assert_eq!(
        (&body["charged"], &body["version"], &body["approval"]["status"]),
        (&json!(false), &json!(1), &json!("bought"))
    );
    assert_eq!(
        (&body["approval"]["id"], &body["approval"]["priceMicro"]),
        (&json!(id), &json!(PRICE))
    );
    let sale = body["approval"]["saleId"].clone();
    assert!(sale.is_string(), "{body}");
    let result = scene.tool(APP, "buy_dataset", json!({"slug": "weather"})).await;
    assert_eq!(result["structuredContent"]["approval"]["saleId"], sale, "{result}");
    assert_eq!(scene.status("/projects/weather/data?version=1").await, 200);
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["boughtMicro"], json!(2 * PRICE), "one sale");
}

#[tokio::test]
async fn a_no_is_told_to_the_agent_for_a_day() {
    let scene = limited(asking()).await;
    let asked = scene.buy(&scene.theirs, &json!({})).await.json();
    let now = scene.service.app.clock.now();
    let no = NewNo {
        id: asked["approval"]["id"].as_str().unwrap().parse().unwrap(),
        operator: scene.buyer,
        session: SessionId::new(now),
        default_price: pay::DEFAULT_DATASET_PRICE,
        now,
    };
    let denied = scene.service.app.store.money().deny(no).await.unwrap();
    assert!(matches!(denied, DeniedApproval::Denied(_)), "{denied:?}");
    let body = refused(&scene.buy(&scene.theirs, &json!({})).await, 403, "approval_denied");
    assert_eq!(body["until"], json!(now.plus(Duration::from_hours(24)).to_string()));
    assert_eq!(
        (&body["approval"]["id"], &body["approval"]["status"]),
        (&asked["approval"]["id"], &json!("denied"))
    );
    let result = scene
        .tool(&scene.theirs, "buy_dataset", json!({"slug": "weather"}))
        .await;
    assert_eq!(result["isError"], json!(true), "{result}");
    assert!(result.to_string().contains("approval_denied"), "{result}");
}

#[tokio::test]
async fn a_price_above_what_the_agent_named_moves_nothing() {
    let scene = limited(SpendLimits::default()).await;
    for most in [json!("0.49"), json!(0.49), json!("0")] {
        let body = refused(
            &scene.buy(&scene.theirs, &json!({"maxPrice": most})).await,
            409,
            "price_changed",
        );
        assert_eq!(
            (&body["priceMicro"], &body["price"]),
            (&json!(PRICE), &json!("0.50")),
            "{most}"
        );
    }
    for wrong in [
        json!({"maxPrice": "half"}),
        json!({"maxPrice": -1}),
        json!({"reason": "a".repeat(281)}),
    ] {
        refused(&scene.buy(&scene.theirs, &wrong).await, 400, "invalid_request");
    }
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["boughtMicro"], json!(3 * PRICE));
    let bought = scene
        .buy(&scene.theirs, &json!({"maxPrice": "0.50", "reason": "a".repeat(280)}))
        .await;
    assert_eq!((bought.status.as_u16(), &bought.json()["charged"]), (200, &json!(true)));
}

#[tokio::test]
async fn an_app_spends_the_budget_of_its_consent_and_is_shown_what_is_left() {
    let scene = limited(SpendLimits::default()).await;
    scene
        .connect(AppBudget {
            per_month: Some(MicroUsdc(PRICE)),
            approve_above: None,
        })
        .await;
    let bought = scene.tool(APP, "buy_dataset", json!({"slug": "weather"})).await;
    assert_eq!(bought["structuredContent"]["charged"], json!(true), "{bought}");
    scene.service.merged(&scene.mine, "weather", &records(3..5)).await;
    let refused = scene
        .tool(APP, "buy_dataset", json!({"slug": "weather", "version": 2}))
        .await;
    assert_eq!(refused["isError"], json!(true), "{refused}");
    let body: Value = serde_json::from_str(refused["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&body["error"], &body["of"], &body["period"]),
        (&json!("spend_cap"), &json!("app"), &json!("month"))
    );
    let quota = scene.tool(APP, "my_quota", json!({})).await["structuredContent"].take();
    assert_eq!(
        (
            &quota["limits"]["app"]["month"]["capMicro"],
            &quota["limits"]["app"]["month"]["usedMicro"]
        ),
        (&json!(PRICE), &json!(PRICE)),
        "{quota}"
    );
    assert_eq!(quota["limits"]["agent"]["month"]["capMicro"], Value::Null);
    // The key of the agent has another budget, and its counter has both.
    assert_eq!(
        scene.buy(&scene.theirs, &json!({"version": 2})).await.json()["charged"],
        json!(true)
    );
    let limits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(limits["limits"]["agent"]["month"]["usedMicro"], json!(2 * PRICE));
}

#[tokio::test]
async fn egress_beyond_a_cap_is_refused_as_without_credits_and_says_the_cap() {
    let prices = pay::Tariff {
        free_egress_bytes: 50,
        ..tariff()
    };
    let scene = scene_of(Service::priced(config(), limits(), prices).await, &json!({})).await;
    scene.service.granted(scene.buyer, 5_000).await;
    scene
        .limit(SpendLimits {
            per_day: Some(MicroUsdc(1_249)),
            // Nobody is asked for a block.
            approve_above: Some(MicroUsdc(0)),
            ..SpendLimits::default()
        })
        .await;
    let page = "/projects/weather/data";
    let body = refused(&scene.service.get(page, Some(&scene.theirs)).await, 402, "egress_quota");
    assert_eq!(
        (&body["cap"]["of"], &body["cap"]["period"], &body["cap"]["capMicro"]),
        (&json!("agent"), &json!("day"), &json!(1_249))
    );
    assert_eq!(
        (&body["credits"]["needMicro"], &body["credits"]["balanceMicro"]),
        (&json!(1_250), &json!(5_000))
    );
    scene.limit(asking()).await;
    assert_eq!(scene.status(page).await, 200);
    let limits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(limits["limits"]["agent"]["day"]["usedMicro"], json!(1_250));
}
