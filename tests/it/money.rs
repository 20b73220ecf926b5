//! Money from outside: credits that an administrator grants, a purchase, a dispute, a release, a quota, and the check.

use serde_json::json;
use tests::World;
use tests::world::contribute;

use crate::binary;

/// A purchase is read at once, held, released after its window, not disputed then, and proved by `sluice check`.
#[tokio::test]
async fn a_purchase_is_held_and_then_payable() {
    let world = World::start_with(binary(), |options| options.with("SLUICE__PAY__DISPUTE_WINDOW", "1s")).await;
    let slug = world.project_with(json!({"access": "paid", "price": "0.50"})).await;
    contribute(&world.agent.http, &slug, &tests::world::records("a", 5)).await;
    let (buyer, agent) = world.newcomer().await;
    let page = format!("/projects/{slug}/data");
    agent.http.get(&page).await.expect(402);
    let options = world.server.options();
    let grant = [
        "credits",
        "grant",
        &buyer.id,
        "--cents",
        "120",
        "--reference",
        "welcome",
    ];
    assert_eq!(options.admin(&grant)["new"], json!(true));
    assert_eq!(options.admin(&grant)["new"], json!(false), "a reference is one grant");
    let bought = agent
        .http
        .post(&format!("/projects/{slug}/buy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&bought.body["charged"], &bought.body["priceMicro"]),
        (&json!(true), &json!(500_000))
    );
    agent.http.get(&page).await.expect(200);
    let credits = agent.http.get("/credits").await.expect(200);
    assert_eq!(credits.body["boughtMicro"], json!(700_000));
    let is_payable = |answer: &tests::Answer| answer.body["payableMicro"] == json!(380_000);
    let earnings = world.agent.http.comes_to_show("/earnings", is_payable).await;
    assert_eq!(earnings.body["onHold"]["totalMicro"], json!(0));
    let late = options.run(&["admin", "disputes", "open", bought.text("/saleId"), "--reason", "late"]);
    let said = String::from_utf8_lossy(&late.stderr);
    assert!(!late.status.success() && said.contains("dispute window"), "{said}");
    options.assert_consistent();
}

/// A refund gives the credits back and ends the right to read; what was refunded is not disputed again.
#[tokio::test]
async fn a_refund_ends_what_was_bought() {
    let world = World::start(binary()).await;
    let slug = world.project_with(json!({"access": "paid", "price": "0.50"})).await;
    contribute(&world.agent.http, &slug, &tests::world::records("a", 5)).await;
    let (buyer, agent) = world.newcomer().await;
    let options = world.server.options();
    options.admin(&["credits", "grant", &buyer.id, "--cents", "50"]);
    let bought = agent
        .http
        .post(&format!("/projects/{slug}/buy"), &json!({}))
        .await
        .expect(200);
    let sale = bought.text("/saleId").to_owned();
    let page = format!("/projects/{slug}/data");
    agent.http.get(&page).await.expect(200);
    let opened = options.admin(&["disputes", "open", &sale, "--reason", "made up"]);
    let id = opened["id"].as_str().unwrap().to_owned();
    let earnings = world.agent.http.get("/earnings").await.expect(200);
    assert_eq!(earnings.body["disputed"]["totalMicro"], json!(380_000));
    assert_eq!(earnings.body["onHold"]["totalMicro"], json!(0));
    assert_eq!(options.admin(&["disputes", "list"])["total"], json!(1));
    let resolved = options.admin(&["disputes", "resolve", &id, "--refund", "--answer", "refunded"]);
    assert_eq!(resolved["saleState"], json!("refunded"));
    // Another process refunded, so this one learns of it within a second.
    agent.http.soon(&page, 402).await;
    assert_eq!(
        agent.http.get("/credits").await.expect(200).body["boughtMicro"],
        json!(500_000)
    );
    let again = options.run(&["admin", "disputes", "open", &sale, "--reason", "again"]);
    assert!(!again.status.success());
    options.assert_consistent();
}

/// Beyond a small quota credits fall; without them reads answer 402.
#[tokio::test]
async fn crossing_a_quota_spends_credits_and_then_stops() {
    let small = |options: tests::Options| options.with("SLUICE__LIMITS__EGRESS_PER_OPERATOR", "1KiB");
    let world = World::start_with(binary(), small).await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &tests::world::records("a", 100)).await;
    let (reader, agent) = world.newcomer().await;
    let page = format!("/projects/{slug}/data");
    let refused = agent.http.get(&page).await.expect(402);
    assert_eq!(refused.error(), "egress_quota");
    let options = world.server.options();
    options.admin(&["credits", "grant", &reader.id, "--cents", "1"]);
    agent.http.get(&page).await.expect(200);
    let credits = agent.http.get("/credits").await.expect(200);
    assert_eq!(credits.body["boughtMicro"], json!(10_000 - 1_250));
    assert_eq!(credits.body["ledger"]["items"][0]["kind"], json!("egress_block"));
    // A second read is within the block that is paid.
    agent.http.get(&page).await.expect(200);
    assert_eq!(
        agent.http.get("/credits").await.expect(200).body["boughtMicro"],
        json!(8_750)
    );
    options.assert_consistent();
}
