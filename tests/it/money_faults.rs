//! Planted bugs of money: the proof of money must see each of them, and nothing without one.
//!
//! Invariant: what is wrong shows in `sluice check`, in a balance outside of the ledger, or in an answer to the wrong
//! caller.

use std::net::Ipv4Addr;
use std::time::Instant;

use serde_json::{Value, json};
use tests::server::DEADLINE;
use tests::world::Agent;
use tests::{Options, World};
use types::fault::InjectedBug;

use crate::binary;
use crate::payments::{on_sale, pay, payment, until, wallet};

/// Number of the wallet that pays.
const PAYER: u8 = 41;
/// Price of each dataset, and the share of it.
const PRICE: i64 = 500_000;
const SHARE: i64 = 380_000;

/// Returns what `sluice check` finds.
fn checked(world: &World) -> Vec<String> {
    let (is_sound, printed) = world.server.options().check();
    if is_sound { Vec::new() } else { vec![printed] }
}

/// Buys a dataset with credits, and returns the sale.
async fn buy(agent: &Agent, slug: &str) -> String {
    let path = format!("/projects/{slug}/buy");
    let bought = agent.http.post(&path, &json!({})).await.expect(200);
    bought.text("/saleId").to_owned()
}

/// Buys by credits and by x402, refunds both, releases a share, and returns the first contradictions.
async fn violations(plant: &str) -> Vec<String> {
    let planted = |options: Options| options.with("SLUICE_FAULT_PLANT", plant);
    let world = World::start_with(binary(), planted).await;
    let slugs = [on_sale(&world).await, on_sale(&world).await, on_sale(&world).await];
    let (buyer, agent) = world.newcomer().await;
    let options = world.server.options();
    options.admin(&["credits", "grant", &buyer.id, "--cents", "200"]);
    let sales = [buy(&agent, &slugs[0]).await, buy(&agent, &slugs[1]).await];

    // A wallet buys a pack for the buyer, and the third dataset for itself.
    let (key, _) = wallet(PAYER);
    let payer = key.address().checksum();
    options.admin(&["faucet", &payer, "--usdc", "5"]);
    let path = format!("/paid/credits?operator={}", buyer.id);
    let message = payment(&world.http, &path, &key, 1).await;
    pay(&world.http, &path, &message).await.expect(200);
    let stranger = world.http.bound_to(Ipv4Addr::new(127, 0, 0, 2).into());
    let replayed = pay(&stranger, &path, &message).await;
    if replayed.error() != "payment_used" {
        return vec![format!(
            "another sender was answered {}: {}",
            replayed.status, replayed.body
        )];
    }
    let path = format!("/paid/dataset?slug={}&version=1", slugs[2]);
    let message = payment(&world.http, &path, &key, 2).await;
    pay(&world.http, &path, &message).await.expect(200);
    let wrong = checked(&world);
    if !wrong.is_empty() {
        return wrong;
    }

    // The second sale goes back to credits, the third to the wallet.
    let held = world.agent.http.get("/earnings").await.expect(200);
    let held = held.body["onHold"]["items"].as_array().unwrap().clone();
    let by_wallet = held
        .iter()
        .find(|item| !sales.iter().any(|sale| item["saleId"] == **sale));
    let by_wallet = by_wallet.unwrap()["saleId"].as_str().unwrap().to_owned();
    let dispute = |sale: &str| {
        let opened = options.admin(&["disputes", "open", sale, "--reason", "made up"]);
        opened["id"].as_str().unwrap().to_owned()
    };
    let (credited, returned) = (dispute(&sales[1]), dispute(&by_wallet));
    options.admin(&["disputes", "resolve", &credited, "--refund"]);
    let wrong = checked(&world);
    if !wrong.is_empty() {
        return wrong;
    }
    let world = refund_through_a_crash(world, &returned).await;
    let options = world.server.options();
    let topped_up = options.admin(&["faucet", &payer, "--usdc", "1"]);
    // Of six, the pack cost one; the price went and came back.
    if topped_up["balanceMicro"] != json!(5_000_000) {
        return vec![format!("the wallet was refunded another sum: {topped_up}")];
    }

    let world = world
        .restart_with(|options| options.with("SLUICE__PAY__DISPUTE_WINDOW", "1s"))
        .await;
    let agent = agent.at(&world.http);
    buy(&agent, &slugs[1]).await;
    let is_payable = |answer: &tests::Answer| answer.body["payableMicro"].as_i64() >= Some(SHARE);
    world.agent.http.comes_to_show("/earnings", is_payable).await;
    let mut wrong = checked(&world);
    let credits = agent.http.get("/credits").await.expect(200);
    // Three sales of two and a pack of one, of which one came back.
    if credits.body["boughtMicro"] != json!(3_000_000 - 2 * PRICE) {
        wrong.push(format!("the buyer has another balance: {}", credits.body));
    }
    wrong
}

/// Ends a dispute for a wallet, and kills the service when its refund was sent and not booked.
async fn refund_through_a_crash(world: World, dispute: &str) -> World {
    let mut armed = world
        .restart_with(|options| options.with("SLUICE_FAULT_POINT", "payout.answered"))
        .await;
    let resolve = ["disputes", "resolve", dispute, "--refund", "--to", "wallet"];
    armed.server.options().admin(&resolve);
    let died = armed.server.exits_by(Instant::now() + DEADLINE).await;
    assert!(died.is_some(), "the refund was not sent");
    let world = armed.again_with(|options| options.with("SLUICE_FAULT_POINT", "")).await;
    let options = world.server.options();
    let refund = || {
        let listed = options.admin(&["payouts", "list"]);
        assert_eq!(listed["total"], json!(1), "{listed}");
        listed["items"][0].clone()
    };
    let sent: Value = refund();
    assert_eq!((&sent["kind"], &sent["state"]), (&json!("refund"), &json!("sending")));
    options.admin(&["payouts", "retry", sent["id"].as_str().unwrap()]);
    until(async || (refund()["state"] == json!("done")).then_some(())).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_injected_bug_of_money_is_seen() {
    assert_eq!(violations("").await, [""; 0], "without a bug");
    for (name, bug) in InjectedBug::ALL {
        if !InjectedBug::OF_MONEY.contains(&bug) {
            continue;
        }
        let seen = violations(name).await;
        assert!(!seen.is_empty(), "{name} was not seen");
        eprintln!("{name}: seen: {}", seen[0]);
    }
}
