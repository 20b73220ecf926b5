//! Payments by x402 from outside: buyers of others against the built-in ledger and against a chain, kills at each step.
//!
//! Invariant: whatever happens, an authorization moves its amount once and buys one thing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::agents::{Agents, Conversation};
use tests::world::{World, contribute, records};
use tests::{Http, Options, Server};
use types::fault::PAY_POINTS;
use x402::wire::header;
use x402::{Address, Authorization, Bytes32, Network, PaymentAsset, WalletKey};

use crate::binary;

const NETWORK: &str = "eip155:84532";
/// Most that a buyer lets a payment cost.
const MOST: &str = "2000000";
/// Time within which something that happens later must have happened.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns a key made of a number, as text too.
pub(crate) fn wallet(number: u8) -> (WalletKey, String) {
    let bytes = [number; 32];
    (WalletKey::from_bytes(&bytes).unwrap(), Bytes32(bytes).to_string())
}

/// Puts a dataset on sale for half a dollar, with one version, and returns its slug.
pub(crate) async fn on_sale(world: &World) -> String {
    let slug = world.project_with(json!({"access": "paid", "price": "0.50"})).await;
    contribute(&world.agent.http, &slug, &records(&slug, 3)).await;
    slug
}

/// Gives whole test USDC to a wallet, and returns its balance.
fn faucet(options: &Options, key: &WalletKey, usdc: u8) -> Value {
    let given = options.admin(&["faucet", &key.address().checksum(), "--usdc", &usdc.to_string()]);
    given["balanceMicro"].clone()
}

/// Lets a buyer pay for an address, and returns what it says.
async fn buy(buyer: &mut Conversation, url: &str) -> Value {
    buyer.tell(&json!({"url": url})).await;
    buyer.hear("done").await
}

/// The buyers of others, each with a wallet of its own.
const BUYERS: [(&str, u8); 3] = [("x402_fetch.mjs", 11), ("x402_fetch_v1.mjs", 12), ("x402_buyer.py", 13)];

async fn start(agents: &Agents, script: &str, key: &str, asset: &str) -> Conversation {
    let given = json!({"key": key, "network": NETWORK, "asset": asset, "most": MOST});
    agents.start(script, &given).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_of_others_pay_the_built_in_ledger() {
    let Some(agents) = Agents::wallets() else { return };
    let world = World::start(binary()).await;
    let slug = on_sale(&world).await;
    let (buyer, _agent) = world.newcomer().await;
    let base = world.http.base();
    let asset = PaymentAsset::BUILT_IN.checksum();
    for (sold, (script, number)) in (1..).zip(BUYERS) {
        let (key, text) = wallet(number);
        faucet(world.server.options(), &key, 10);
        let mut client = start(&agents, script, &text, &asset).await;
        let dataset = format!("{base}/paid/dataset?slug={slug}&version=1");
        let bought = buy(&mut client, &dataset).await;
        assert_eq!(bought["status"], 200, "{script}: {bought}");
        assert_eq!(bought["receipt"]["success"], true, "{script}: {bought}");
        let pack = buy(&mut client, &format!("{base}/paid/credits?operator={}", buyer.id)).await;
        assert_eq!(
            (&pack["status"], &pack["body"]["creditedMicro"]),
            (&json!(200), &json!(1_000_000)),
            "{script}: {pack}"
        );
        // A fresh authorization of a wallet that owns the version is answered and not charged.
        let again = buy(&mut client, &dataset).await;
        assert_eq!(again["status"], 200, "{script}: {again}");
        assert_eq!(
            again["receipt"]["transaction"], bought["receipt"]["transaction"],
            "{script}: {again}"
        );
        // The share is on hold at once.
        let earnings = world.agent.http.get("/earnings").await.expect(200);
        assert_eq!(
            earnings.body["onHold"]["totalMicro"],
            380_000 * sold,
            "{}",
            earnings.body
        );
    }
    let listed = world.server.options().admin(&["payments", "list"]);
    let states: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["state"].clone())
        .collect();
    assert_eq!(
        states.iter().filter(|state| **state == "settled").count(),
        6,
        "{listed}"
    );
    assert_eq!(
        states.iter().filter(|state| **state == "not_needed").count(),
        3,
        "{listed}"
    );
    world.server.options().assert_consistent();
}

/// Returns what stands between two texts for the first time.
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"))
        .1;
    rest.split_once(after)
        .unwrap_or_else(|| panic!("no {after} behind {before}"))
        .0
}

/// An agent without an account or money does what `/llms.txt` and the documents that it names say, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_an_empty_wallet_buys_by_the_documents_alone() {
    let Some(agents) = Agents::wallets() else { return };
    let world = World::start(binary()).await;
    let slug = on_sale(&world).await;
    let web = s3_server::caller().build().unwrap();
    let read = async |url: &str| web.get(url).send().await.unwrap().text().await.unwrap();
    let index = read(&format!("{}/llms.txt", world.http.base())).await;
    let page = read(between(between(&index, "A wallet is enough to buy", "\n\n"), "](", ")")).await;
    let guide = read(between(&page, "[the guide](", "#")).await;
    let section = between(&guide, "\n## Paying with a wallet (x402)\n", "\n## ");
    // The call of the faucet, as it stands there.
    let call = section
        .lines()
        .find(|line| line.starts_with("curl") && line.contains("/faucet"))
        .unwrap();
    let (key, text) = wallet(31);
    let body = between(call, "-d '", "'").replace("0x…", &key.address().checksum());
    let given = web
        .post(between(call, "curl -s ", " "))
        .header("content-type", between(call, "Content-Type: ", "'"))
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(given.status(), 200, "{}", given.text().await.unwrap());
    let gift: Value = serde_json::from_str(&given.text().await.unwrap()).unwrap();
    let url = section.split('`').find(|text| text.contains("/paid/dataset?")).unwrap();
    let url = url
        .replace("slug=…", &format!("slug={slug}"))
        .replace("version=…", "version=1");
    let terms: Value = serde_json::from_str(&read(&url).await).unwrap();
    let asset = terms["accepts"][0]["asset"].as_str().unwrap();
    assert_eq!(gift["asset"], asset, "the asset of the terms is that of the faucet");
    let most = between(&page, "\"max_amount_per_payment\": \"", "\"");
    let told = json!({"key": text, "network": gift["network"], "asset": asset, "most": most});
    for script in ["x402_fetch.mjs", "x402_buyer.py"] {
        let mut client = agents.start(script, &told).await;
        let bought = buy(&mut client, &url).await;
        assert_eq!(bought["status"], 200, "{script}: {bought}");
        assert_eq!(bought["receipt"]["success"], true, "{script}: {bought}");
    }
    let earnings = world.agent.http.get("/earnings").await.expect(200);
    assert_eq!(
        earnings.body["onHold"]["totalMicro"], 380_000,
        "the second owned it: {}",
        earnings.body
    );
    world.server.options().assert_consistent();
}

/// The commands of the trial of a facilitator by URL, as the manual has them: two folders, no chain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trial_of_a_facilitator_works_as_it_is_written() {
    let manual = include_str!("../../deploy/OPERATIONS.md");
    let trial = between(
        manual,
        "A facilitator by URL can be tried without a chain.",
        "\n```\n\n",
    );
    let lines: Vec<Vec<&str>> = trial
        .split_once("```sh\n")
        .unwrap()
        .1
        .lines()
        .map(|line| line.split('#').next().unwrap().split_whitespace().collect())
        .collect();
    let [serve, fill, shop] = &lines[..] else {
        unreachable!("the trial has three commands: {lines:?}")
    };
    let folder = tempfile::tempdir().unwrap();
    let ledger = Options::new(binary(), folder.path().join("ledger"));
    let (key, _) = wallet(32);
    let payer = key.address().checksum();
    // The folder is an option of its own here, the port must be free, and the wallet is one whose key is known.
    let command = |line: &[&str]| -> Vec<String> {
        let mut words = line.iter().skip_while(|word| **word != "sluice").skip(1);
        let mut left = Vec::new();
        while let Some(word) = words.next() {
            match *word {
                "--data" => {
                    words.next();
                }
                "127.0.0.1:4020" => left.push("127.0.0.1:0".to_owned()),
                word if word.starts_with("0x") => left.push(payer.clone()),
                word => left.push(word.to_owned()),
            }
        }
        left
    };
    let (serve, fill) = (command(serve), command(fill));
    let (_running, said) = ledger.begin(&serve.iter().map(String::as_str).collect::<Vec<_>>());
    let at = said["facilitator"].as_str().unwrap();
    let filled = ledger.run(&fill.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(filled.status.success(), "{fill:?}: {filled:?}");
    let world = World::start_with(binary(), |options| {
        let settings = shop.iter().filter_map(|word| word.split_once('='));
        settings.fold(options, |options, (name, value)| {
            options.with(name, value.replace("http://127.0.0.1:4020", at))
        })
    })
    .await;
    let slug = on_sale(&world).await;
    let path = format!("/paid/dataset?slug={slug}&version=1");
    let message = payment(&world.http, &path, &key, 1).await;
    let bought = pay(&world.http, &path, &message).await;
    assert_eq!(bought.code(), 200, "{}", bought.body);
    let faucet = json!({"wallet": payer});
    assert_eq!(world.http.post("/faucet", &faucet).await.code(), 404);
    let spent = ["admin", "faucet", payer.as_str(), "--usdc", "1"];
    assert!(
        !ledger.run(&spent).status.success(),
        "the wallet had its ten of the day"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_of_others_pay_on_a_chain_and_a_lost_answer_is_found_there() {
    let Some(agents) = Agents::wallets() else { return };
    let (_node, rpc) = agents.chain().await;
    let bytecode = include_str!("../chain/Token.bin").trim();
    let mint: serde_json::Map<String, Value> = BUYERS
        .iter()
        .map(|(_, number)| (wallet(*number).0.address().checksum(), json!("10000000")))
        .collect();
    // The first account of a development node, whose key is public, has money for gas.
    let gas = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
    let given = json!({"rpc": rpc, "key": gas, "bytecode": bytecode, "mint": mint});
    let mut chain = agents.start("chain.mjs", &given).await;
    let ready = chain.hear("ready").await;
    let (token, facilitator) = (ready["token"].as_str().unwrap(), ready["facilitator"].as_str().unwrap());
    let world = World::start_with(binary(), |options| {
        options
            .with("SLUICE__PAY__FACILITATOR", facilitator)
            .with("SLUICE__PAY__ASSET", token)
            .with("SLUICE__PAY__RPC_URL", &rpc)
            .with("SLUICE__PAY__DISPUTE_WINDOW", "1s")
            .with("SLUICE__PAY__PAYOUT_EVERY", "1s")
            .with("SLUICE__OUTBOUND__ALLOW_PRIVATE", "true")
    })
    .await;
    let slug = on_sale(&world).await;
    let dataset = format!("{}/paid/dataset?slug={slug}&version=1", world.http.base());
    let terms = world.http.get(&format!("/paid/dataset?slug={slug}")).await.expect(402);
    let treasury = terms.text("/accepts/0/payTo").to_owned();
    for (sold, (script, number)) in (1..).zip(BUYERS) {
        let mut client = start(&agents, script, &wallet(number).1, token).await;
        let bought = buy(&mut client, &dataset).await;
        assert_eq!(bought["status"], 200, "{script}: {bought}");
        chain.tell(&json!({"balance": treasury})).await;
        assert_eq!(chain.hear("balance").await, json!(500_000 * sold), "{script}");
    }
    // The facilitator settles and hangs up: the chain tells.
    chain.tell(&json!({"manner": "drop"})).await;
    chain.hear("manner").await;
    let (operator, _agent) = world.newcomer().await;
    let (key, _) = wallet(11);
    let path = format!("/paid/credits?operator={}", operator.id);
    let message = payment(&world.http, &path, &key, 1).await;
    let paid = until(async || {
        let answer = pay(&world.http, &path, &message).await;
        (answer.code() == 200).then_some(answer)
    })
    .await;
    assert_eq!(paid.body["creditedMicro"], 1_000_000);
    chain.tell(&json!({"balance": treasury})).await;
    assert_eq!(chain.hear("balance").await, json!(500_000 * 3 + 1_000_000));
}

/// Waits until something is there.
pub(crate) async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen in time");
        tokio::time::sleep(tests::server::POLL).await;
    }
}

/// Signs the terms of an address, and returns the header.
pub(crate) async fn payment(http: &Http, path: &str, key: &WalletKey, nonce: u8) -> String {
    let answer = http.get(path).await.expect(402);
    let text = data_encoding::BASE64
        .decode(answer.header("payment-required").as_bytes())
        .unwrap();
    let terms: Value = serde_json::from_slice(&text).unwrap();
    let accepted = &terms["accepts"][0];
    let address = |name: &str| -> Address { accepted[name].as_str().unwrap().parse().unwrap() };
    let asset = PaymentAsset {
        network: accepted["network"].as_str().unwrap().parse::<Network>().unwrap(),
        address: address("asset"),
        name: accepted["extra"]["name"].as_str().unwrap().to_owned(),
        version: accepted["extra"]["version"].as_str().unwrap().to_owned(),
        pay_to: address("payTo"),
    };
    let now = jiff::Timestamp::now().as_second().unsigned_abs();
    let authorization = Authorization {
        from: key.address(),
        to: asset.pay_to,
        value: accepted["amount"].as_str().unwrap().parse().unwrap(),
        valid_after: now - 60,
        valid_before: now + 600,
        nonce: Bytes32([nonce; 32]),
    };
    let signature = authorization.sign(&asset, key);
    let message = json!({
        "x402Version": 2,
        "accepted": accepted,
        "payload": {
            "signature": signature.to_string(),
            "authorization": {
                "from": authorization.from.checksum(),
                "to": authorization.to.checksum(),
                "value": authorization.value.to_string(),
                "validAfter": authorization.valid_after.to_string(),
                "validBefore": authorization.valid_before.to_string(),
                "nonce": authorization.nonce.to_string(),
            },
        },
    });
    header(&message)
}

/// Sends a header as the payment for an address.
pub(crate) async fn pay(http: &Http, path: &str, message: &str) -> tests::Answer {
    let headers = [("payment-signature", message)];
    http.send(reqwest::Method::GET, path, &headers, None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_killed_at_any_step_settles_and_grants_once() {
    let world = World::start(binary()).await;
    let (operator, _agent) = world.newcomer().await;
    let (key, _) = wallet(21);
    faucet(world.server.options(), &key, 9);
    // A refused gift takes nothing of the last one of the day.
    let payer = key.address().checksum();
    let refused = ["admin", "faucet", payer.as_str(), "--usdc", "2"];
    assert!(!world.server.options().run(&refused).status.success());
    let path = format!("/paid/credits?operator={}", operator.id);
    let points = PAY_POINTS.into_iter().filter(|point| point.starts_with("pay."));
    let options = world.server.options().clone();
    let mut server = Some(world.server);
    let mut paid = 0;
    for (nonce, point) in (1..).zip(points) {
        let message = payment(&server.as_ref().unwrap().http(), &path, &key, nonce).await;
        assert!(server.take().unwrap().stop().await.success());
        let armed = Server::start(&options.clone().with("SLUICE_FAULT_POINT", point)).await;
        let headers = [("payment-signature", message.as_str())];
        let cut = armed.http().send(reqwest::Method::GET, &path, &headers, None).await;
        assert!(cut.is_err(), "{point} was not passed: {cut:?}");
        drop(armed);
        let again = Server::start(&options).await;
        // Whoever sends the payment again waits for its end, and is not sent away meanwhile.
        let answer = pay(&again.http(), &path, &message).await.expect(200);
        paid += 1;
        assert_eq!(answer.body["creditedMicro"], 1_000_000, "{point}");
        let listed = options.admin(&["payments", "list"]);
        let items = listed["items"].as_array().unwrap();
        assert_eq!(items.len(), paid, "{point}: {listed}");
        assert!(items.iter().all(|item| item["state"] == "settled"), "{point}: {listed}");
        options.assert_consistent();
        server = Some(again);
    }
    // With this one the faucet gave ten, and each authorization cost one.
    assert_eq!(faucet(&options, &key, 1), (10 - paid) * 1_000_000);
    let message = payment(&server.as_ref().unwrap().http(), &path, &key, 99).await;
    assert_eq!(pay(&server.unwrap().http(), &path, &message).await.code(), 200);
}
