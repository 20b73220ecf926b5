//! Tests of purchases by credits, of credits and earnings, and of what storage and egress cost.

mod spending;

use serde_json::{Value, json};
use types::{OperatorId, Size};

use crate::testing::{Got, Service, config, limits, tariff};

/// A paid dataset of `mine` with one version, and the agent `theirs` of another operator.
struct Scene {
    service: Service,
    mine: String,
    theirs: String,
    seller: OperatorId,
    buyer: OperatorId,
}

fn records(numbers: std::ops::Range<u32>) -> Vec<Value> {
    numbers.map(|number| json!({"name": format!("n{number}")})).collect()
}

async fn scene(more: &Value) -> Scene {
    scene_of(Service::start().await, more).await
}

async fn scene_of(service: Service, more: &Value) -> Scene {
    let (owner, other) = (service.operator().await, service.operator().await);
    let (mine, theirs) = (
        service.agent(&owner, "mine").await,
        service.agent(&other, "theirs").await,
    );
    service.project(&mine, "weather", more).await;
    service.merged(&mine, "weather", &records(0..3)).await;
    let (seller, buyer) = (operator_of(&service, &mine).await, operator_of(&service, &theirs).await);
    Scene {
        service,
        mine,
        theirs,
        seller,
        buyer,
    }
}

/// Returns the operator of a key, which the link for credits names.
async fn operator_of(service: &Service, key: &str) -> OperatorId {
    let credits = service.get("/credits", Some(key)).await.json();
    let link = credits["topUp"].as_str().unwrap();
    link.split("operator=").nth(1).unwrap().parse().unwrap()
}

impl Scene {
    async fn buy(&self, key: &str, body: &Value) -> Got {
        let path = "/projects/weather/buy";
        self.service.call("POST", path, Some(key), &body.to_string()).await
    }

    async fn status(&self, path: &str) -> u16 {
        self.service.get(path, Some(&self.theirs)).await.status.as_u16()
    }
}

#[tokio::test]
async fn what_was_bought_is_read_by_every_agent_of_the_operator() {
    let scene = scene(&json!({"access": "paid", "price": "0.50"})).await;
    let page = "/projects/weather/data?version=1";
    let refused = scene.service.get(page, Some(&scene.theirs)).await;
    assert_eq!(refused.status, 402);
    let body = refused.json();
    assert_eq!(
        (&body["error"], &body["priceMicro"]),
        (&json!("payment_required"), &json!(500_000))
    );
    let top_up = format!("http://sluice.test/paid/credits?operator={}", scene.buyer);
    assert_eq!(body["credits"]["topUp"], json!(top_up));

    let short = scene.buy(&scene.theirs, &json!({})).await;
    assert_eq!(
        (short.status.as_u16(), &short.json()["error"]),
        (402, &json!("credits_short"))
    );
    assert_eq!(short.json()["credits"]["balanceMicro"], json!(0));
    scene.service.granted(scene.buyer, 1_000_000).await;
    let bought = scene.buy(&scene.theirs, &json!({"version": 1})).await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    let body = bought.json();
    assert_eq!(
        (&body["charged"], &body["priceMicro"], &body["version"]),
        (&json!(true), &json!(500_000), &json!(1))
    );
    let again = scene.buy(&scene.theirs, &json!({"version": 1})).await.json();
    assert_eq!((&again["charged"], &again["priceMicro"]), (&json!(false), &json!(0)));
    for path in ["data?version=1", "export?version=1", "manifest?version=1", "diff?to=1"] {
        assert_eq!(scene.status(&format!("/projects/weather/{path}")).await, 200, "{path}");
    }

    // The next version is not bought, and is sold for the full price.
    scene.service.merged(&scene.mine, "weather", &records(3..5)).await;
    assert_eq!(scene.status("/projects/weather/data").await, 402);
    assert_eq!(scene.status(page).await, 200);
    assert_eq!(scene.buy(&scene.theirs, &json!({})).await.json()["version"], json!(2));
    assert_eq!(scene.status("/projects/weather/data").await, 200);
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(
        (&credits["balanceMicro"], &credits["asset"]),
        (&json!(0), &json!("test USDC"))
    );
    // Two sales of two movements each, and the grant.
    assert_eq!(credits["ledger"]["items"].as_array().unwrap().len(), 5);

    let earnings = scene.service.get("/earnings", Some(&scene.mine)).await.json();
    assert_eq!(earnings["onHold"]["totalMicro"], json!(760_000));
    assert_eq!(earnings["onHold"]["items"].as_array().unwrap().len(), 2);
    assert!(earnings["onHold"]["nextReleaseAt"].is_string());
    assert_eq!(
        (&earnings["payableMicro"], &earnings["disputed"]["totalMicro"]),
        (&json!(0), &json!(0))
    );
    let points = scene
        .service
        .app
        .store
        .points()
        .of_operator(scene.seller)
        .await
        .unwrap();
    assert_eq!(points, 10, "two sales of 5 points");
}

#[tokio::test]
async fn what_cannot_be_bought_says_why() {
    let scene = scene(&json!({"access": "paid"})).await;
    scene.service.granted(scene.buyer, 1_000_000).await;
    scene.service.granted(scene.seller, 1_000_000).await;
    let own = scene.buy(&scene.mine, &json!({})).await;
    assert_eq!((own.status.as_u16(), &own.json()["error"]), (409, &json!("own_item")));
    let later = scene.buy(&scene.theirs, &json!({"version": 9})).await;
    assert_eq!(later.status, 404, "a version that does not exist has no price");
    assert_eq!(scene.status("/projects/weather/data?version=9").await, 404);
    scene.service.project(&scene.mine, "free", &json!({})).await;
    scene.service.merged(&scene.mine, "free", &records(0..1)).await;
    let free = scene
        .service
        .call("POST", "/projects/free/buy", Some(&scene.theirs), "{}");
    let free = free.await;
    assert_eq!(
        (free.status.as_u16(), &free.json()["error"]),
        (409, &json!("free_item"))
    );
    scene
        .service
        .project(&scene.mine, "empty", &json!({"access": "paid"}))
        .await;
    let empty = scene
        .service
        .call("POST", "/projects/empty/buy", Some(&scene.theirs), "{}");
    assert_eq!(
        empty.await.status,
        404,
        "there is nothing to sell before the first version"
    );
    let unknown = scene
        .service
        .call("POST", "/projects/nothing/buy", Some(&scene.theirs), "{}");
    assert_eq!(unknown.await.status, 404);
    let unit = format!("/knowledge/{}/buy", scene.buyer);
    assert_eq!(
        scene.service.call("POST", &unit, Some(&scene.theirs), "").await.status,
        404
    );
    let malformed = scene.service.call("POST", "/knowledge/x/buy", Some(&scene.theirs), "");
    assert_eq!(malformed.await.status, 400);
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["balanceMicro"], json!(1_000_000), "nothing was charged");
}

#[tokio::test]
async fn prices_come_from_the_function_that_splits_sales() {
    let service = Service::start().await;
    let pricing = service.get("/pricing.json", None).await.json();
    assert_eq!(pricing["defaults"], json!({"unit": 10_000, "datasetVersion": 100_000}));
    let brackets = json!([
        {"above": 0, "upTo": 100_000, "percent": 0},
        {"above": 100_000, "upTo": 1_000_000, "percent": 30},
        {"above": 1_000_000, "upTo": 10_000_000, "percent": 20},
        {"above": 10_000_000, "upTo": null, "percent": 10},
    ]);
    assert_eq!(pricing["fee"]["brackets"], brackets);
    let example = json!({"price": 500_000, "fee": 120_000, "share": 380_000});
    assert!(pricing["fee"]["examples"].as_array().unwrap().contains(&example));
    assert_eq!(pricing["payout"], json!({"threshold": 50_000, "disputeDays": 7}));
    assert_eq!(
        pricing["credits"],
        json!({"pack": 1_000_000, "egressPer64MiB": 1_250, "storagePer64MiBDay": 40})
    );
    assert_eq!(pricing["given"]["onlyFor"], json!("trial sales"));
}

#[tokio::test]
async fn pages_of_the_journal_go_on_at_their_cursor() {
    let scene = scene(&json!({})).await;
    for amount in [1, 2, 3] {
        scene.service.granted(scene.buyer, amount).await;
    }
    let first = scene.service.get("/credits?limit=2", Some(&scene.theirs)).await.json();
    let amounts = |page: &Value| -> Vec<i64> {
        let items = page["ledger"]["items"].as_array().unwrap().iter();
        items.map(|item| item["amountMicro"].as_i64().unwrap()).collect()
    };
    assert_eq!(amounts(&first), [3, 2]);
    let cursor = first["ledger"]["nextCursor"].as_str().unwrap();
    let path = format!("/credits?limit=2&cursor={cursor}");
    let second = scene.service.get(&path, Some(&scene.theirs)).await.json();
    assert_eq!(
        (amounts(&second), &second["ledger"]["nextCursor"]),
        (vec![1], &Value::Null)
    );
    assert_eq!(
        scene.service.get("/credits?cursor=x", Some(&scene.theirs)).await.status,
        400
    );
    assert_eq!(scene.service.get("/credits", None).await.status, 401);
}

#[tokio::test]
async fn egress_beyond_the_free_bytes_is_paid_in_blocks_and_then_refused() {
    let prices = pay::Tariff {
        free_egress_bytes: 50,
        ..tariff()
    };
    let scene = scene_of(Service::priced(config(), limits(), prices).await, &json!({})).await;
    let page = "/projects/weather/data";
    let refused = scene.service.get(page, Some(&scene.theirs)).await;
    assert_eq!(refused.status, 402, "{}", refused.text());
    let body = refused.json();
    assert_eq!(body["error"], json!("egress_quota"));
    assert_eq!(body["quota"]["egress"]["allowed"], json!(50));
    assert_eq!(
        (&body["credits"]["needMicro"], &body["credits"]["balanceMicro"]),
        (&json!(1_250), &json!(0))
    );
    scene.service.granted(scene.buyer, 1_300).await;
    assert_eq!(scene.status(page).await, 200);
    // The paid block covers the next reads.
    assert_eq!(scene.status(page).await, 200);
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["boughtMicro"], json!(50));
    assert_eq!(credits["ledger"]["items"][0]["kind"], json!("egress_block"));
}

#[tokio::test]
async fn nothing_is_charged_through_the_directory() {
    let prices = pay::Tariff {
        free_egress_bytes: 50,
        ..tariff()
    };
    let scene = scene_of(Service::priced(config(), limits(), prices).await, &json!({})).await;
    scene.service.granted(scene.buyer, 1_300).await;
    let read = async |path: &str| {
        let params = json!({"name": "read_dataset", "arguments": {"slug": "weather"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer {}", scene.theirs));
        let body = axum::body::Body::from(body.to_string());
        scene.service.send(request.body(body).unwrap()).await.json()
    };
    let refused = read("/mcp/directory").await;
    assert_eq!(refused["result"]["isError"], json!(true), "{refused}");
    assert!(refused.to_string().contains("egress_quota"), "{refused}");
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["boughtMicro"], json!(1_300), "nothing was charged");
    // A block that was paid at the other server is read through this one.
    for path in ["/mcp", "/mcp/directory"] {
        let read = read(path).await;
        assert_ne!(read["result"]["isError"], json!(true), "{path}: {read}");
    }
    let credits = scene.service.get("/credits", Some(&scene.theirs)).await.json();
    assert_eq!(credits["boughtMicro"], json!(50));
}

#[cfg(feature = "faults")]
#[test]
fn a_charge_at_the_directory_turns_a_test_red() {
    let bug = types::fault::InjectedBug::DirectoryCharged;
    let test = nothing_is_charged_through_the_directory;
    assert!(types::fault::turns_red(bug, test), "{bug:?} was not seen");
}

#[cfg(feature = "faults")]
#[test]
fn bytes_that_were_not_leased_turn_a_test_red() {
    let bug = types::fault::InjectedBug::SendsUnleased;
    let test = egress_beyond_the_free_bytes_is_paid_in_blocks_and_then_refused;
    assert!(types::fault::turns_red(bug, test), "{bug:?} was not seen");
}

#[tokio::test]
async fn the_service_sends_no_more_than_its_capacity() {
    let prices = pay::Tariff {
        platform_egress_bytes: 10,
        ..tariff()
    };
    let scene = scene_of(Service::priced(config(), limits(), prices).await, &json!({})).await;
    let refused = scene.service.get("/projects/weather/data", Some(&scene.theirs)).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]),
        (429, &json!("platform_capacity"))
    );
    assert!(refused.json()["resetAt"].is_string());
}

#[tokio::test]
async fn a_batch_beyond_the_free_storage_needs_credits_for_a_day() {
    let small = crate::config::Limits {
        storage_per_operator: Size(1),
        ..limits()
    };
    let service = Service::with(config(), small).await;
    let owner = service.operator().await;
    let key = service.agent(&owner, "mine").await;
    service.project(&key, "weather", &json!({})).await;
    let batch = json!({"records": records(0..3)}).to_string();
    let path = "/projects/weather/contribute";
    let refused = service.call("POST", path, Some(&key), &batch).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]),
        (402, &json!("storage_quota"))
    );
    assert!(refused.json()["credits"]["topUp"].is_string());
    // Another operator learns nothing of the maintainer.
    let other = service.operator().await;
    let theirs = service.agent(&other, "theirs").await;
    let refused = service.call("POST", path, Some(&theirs), &batch).await.json();
    assert_eq!(
        (&refused["credits"], &refused["quota"]["storage"]["used"]),
        (&Value::Null, &Value::Null)
    );
    let operator = operator_of(&service, &key).await;
    service.granted(operator, 40).await;
    assert_eq!(service.call("POST", path, Some(&key), &batch).await.status, 201);
    // 40 are one day of 64 MiB. The quota and a refusal say so.
    let allowed = json!(1 + (64 << 20));
    let quota = service.get("/quota", Some(&key)).await.json();
    assert_eq!(quota["storage"]["allowed"], allowed);
    let upload = json!({"bytes": 65 << 20, "parts": 1, "partSize": 65 << 20, "sourceDeclaration": "Gauges."});
    let path = "/projects/weather/uploads";
    let refused = service.call("POST", path, Some(&key), &upload.to_string()).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["quota"]["storage"]["allowed"]),
        (402, &allowed),
        "{}",
        refused.text()
    );
}
