//! Receipts of sales, offers and receipts of x402, and days of the ledger, as a stranger checks them: with `sluice verify
//! receipt`, with the program that was written from `catalog/proof/FORMAT.md` alone, and with clients of others.
//!
//! Invariant: the two verifiers accept and refuse the same files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::agents::Agents;
use tests::world::{World, contribute, records};
use tests::{Http, Server};
use x402::PaymentAsset;

use crate::binary;
use crate::payments::{on_sale, pay, payment, until, wallet};
use crate::readers::python;

/// The verifier that was written from `catalog/proof/FORMAT.md` alone.
const VERIFIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/client/examples/verify_receipts.py");

/// A machine that keeps what it was given, and trusts the keys that it fetched from the service.
struct Desk {
    folder: TempDir,
    python: String,
}

impl Desk {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn keep(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Fetches the keys document.
    async fn keys(&self, http: &Http) {
        let keys = http.get("/.well-known/service-keys").await.expect(200);
        self.keep("keys.json", str::from_utf8(&keys.bytes).unwrap());
    }

    /// Returns what the verifier of the program says, and true if it accepts.
    fn of_the_program(&self, receipt: &Path) -> (bool, String) {
        let ran = Command::new(binary())
            .args(["verify", "receipt"])
            .arg(receipt)
            .arg("--keys")
            .arg(self.at("keys.json"))
            .env("SLUICE_KNOWN_KEYS", self.at("known.json"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        assert!(matches!(ran.status.code(), Some(0 | 1)), "{said}");
        (ran.status.success(), said)
    }

    /// Returns what the verifier from the format alone says of files, and true if it accepts them.
    fn of_the_format(&self, files: &[&Path]) -> (bool, String) {
        let ran = Command::new(&self.python)
            .arg(VERIFIER)
            .arg(self.at("keys.json"))
            .args(files)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        (ran.status.success(), said)
    }

    #[track_caller]
    fn expect(&self, receipt: &Path, is_good: bool, words: &str) {
        let (program, said) = self.of_the_program(receipt);
        assert_eq!(program, is_good, "{said}");
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(said.contains("signed: "), is_good, "{said}");
        let (format, said) = self.of_the_format(&[receipt]);
        assert_eq!(format, is_good, "{said}");
        assert!(is_good || said.contains("ValueError: "), "{said}");
    }
}

/// What buyers were given by a service.
struct Given {
    sale: PathBuf,
    sale_path: String,
    offer: PathBuf,
    paid: PathBuf,
    query: PathBuf,
    answer: PathBuf,
}

impl Given {
    fn all(&self) -> [&Path; 4] {
        [&self.sale, &self.offer, &self.paid, &self.query]
    }
}

/// Returns the message in a header of an answer.
fn said(answer: &tests::Answer, header: &str) -> Value {
    let text = data_encoding::BASE64.decode(answer.header(header).as_bytes()).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn desk() -> Option<Desk> {
    Some(Desk {
        python: python()?,
        folder: tempfile::tempdir().unwrap(),
    })
}

/// Lets an agent buy a dataset with credits and ask it something, and a wallet buy it by x402.
async fn shopping(world: &World, desk: &Desk) -> (Given, String) {
    let slug = on_sale(world).await;
    let (buyer, agent) = world.newcomer().await;
    let options = world.server.options();
    options.admin(&["credits", "grant", &buyer.id, "--cents", "100"]);
    let bought = agent
        .http
        .post(&format!("/projects/{slug}/buy"), &json!({}))
        .await
        .expect(200);
    let sale_path = format!("/receipts/{}", bought.text("/saleId"));
    let receipt = agent.http.get(&sale_path).await.expect(200);
    assert_eq!(receipt.body, bought.body["receipt"]);
    let question = json!({"sql": "SELECT count(*) AS n FROM records", "receipt": true});
    let asked = agent
        .http
        .post(&format!("/projects/{slug}/query"), &question)
        .await
        .expect(200);
    let (key, _) = wallet(41);
    options.admin(&["faucet", &key.address().checksum(), "--usdc", "5"]);
    let path = format!("/paid/dataset?slug={slug}&version=1");
    let terms = said(&world.http.get(&path).await.expect(402), "payment-required");
    let offer = &terms["extensions"]["offer-receipt"]["info"]["offers"][0];
    let message = payment(&world.http, &path, &key, 1).await;
    let paid = said(&pay(&world.http, &path, &message).await.expect(200), "payment-response");
    let given = Given {
        sale: desk.keep("sale.json", str::from_utf8(&receipt.bytes).unwrap()),
        sale_path,
        offer: desk.keep("offer.jws", offer["signature"].as_str().unwrap()),
        paid: desk.keep(
            "paid.jws",
            paid["extensions"]["offer-receipt"]["info"]["receipt"]["signature"]
                .as_str()
                .unwrap(),
        ),
        query: desk.keep("query.json", &asked.body["receipt"].to_string()),
        answer: desk.keep("asked.json", &asked.body.to_string()),
    };
    // The whole answer is a receipt too.
    let whole = desk.keep("answer.json", &paid.to_string());
    desk.keys(&world.http).await;
    let (is_good, said) = desk.of_the_program(&whole);
    assert!(is_good && said.contains("signed: payment for "), "{said}");
    (given, agent.key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_and_cut_receipts_are_refused_and_those_of_a_retired_key_count() {
    let Some(desk) = desk() else { return };
    let world = World::start(binary()).await;
    let (given, _) = shopping(&world, &desk).await;
    for receipt in given.all() {
        desk.expect(receipt, true, "signed: ");
    }
    // A replay says the same: the sale has one id.
    let (is_good, twice) = desk.of_the_format(&[&given.sale, &given.sale]);
    assert!(
        is_good && twice.lines().collect::<Vec<_>>()[0] == twice.lines().collect::<Vec<_>>()[1],
        "{twice}"
    );
    let (is_good, said) = desk.of_the_format(&[&given.query, &given.answer]);
    assert!(is_good, "{said}");
    let answer = fs::read_to_string(&given.answer).unwrap();
    let other = desk.keep("other.json", &answer.replace("\"rows\":[", "\"rows\":[[7],"));
    assert_ne!(fs::read_to_string(&other).unwrap(), answer);
    let (is_good, said) = desk.of_the_format(&[&given.query, &other]);
    assert!(!is_good && said.contains("another answer"), "{said}");
    let sale = fs::read_to_string(&given.sale).unwrap();
    for (name, forged) in [
        ("price", sale.replace("\"priceMicro\":500000", "\"priceMicro\":400000")),
        (
            "buyer",
            sale.replace("\"approvedBy\":null", "\"approvedBy\":\"person\""),
        ),
        ("more", sale.replacen('{', "{\"note\":1,", 1)),
        ("twice", sale.replacen('{', "{\"priceMicro\":500000,", 1)),
        ("cut", sale[..sale.len() - 1].to_owned()),
        ("short", sale[..sale.len() / 2].to_owned()),
        ("empty", String::new()),
        ("none", "{}".to_owned()),
    ] {
        assert_ne!(forged, sale, "{name}");
        let path = desk.keep(&format!("{name}.json"), &forged);
        desk.expect(&path, false, "");
    }
    let paid = fs::read_to_string(&given.paid).unwrap();
    let offer = fs::read_to_string(&given.offer).unwrap();
    let parts = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (of_paid, of_offer) = (parts(&paid), parts(&offer));
    let encoded = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
    let payload = data_encoding::BASE64URL_NOPAD.decode(of_paid[1].as_bytes()).unwrap();
    let other_host = String::from_utf8(payload).unwrap().replace("127.0.0.1", "127.0.0.2");
    for (name, forged) in [
        ("swapped", format!("{}.{}.{}", of_paid[0], of_offer[1], of_paid[2])),
        (
            "host",
            format!("{}.{}.{}", of_paid[0], encoded(&other_host), of_paid[2]),
        ),
        ("unsigned", format!("{}.{}.", of_paid[0], of_paid[1])),
        (
            "alg",
            format!(
                "{}.{}.{}",
                encoded(r#"{"alg":"none","kid":"did:web:a#b"}"#),
                of_paid[1],
                of_paid[2]
            ),
        ),
        ("cut-jws", paid[..paid.len() - 2].to_owned()),
    ] {
        let path = desk.keep(&format!("{name}.jws"), &forged);
        desk.expect(&path, false, "");
    }
    // The keys of another service sign nothing here.
    let stranger = World::start(binary()).await;
    desk.keys(&stranger.http).await;
    for receipt in given.all() {
        desk.expect(receipt, false, "unknown key");
    }
    let rotated = world.server.options().run(&["keys", "rotate"]);
    assert!(rotated.status.success(), "{rotated:?}");
    desk.keys(&world.http).await;
    for receipt in given.all() {
        desk.expect(receipt, true, "signed: ");
    }
    world.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_its_receipts_and_another_signs_the_same_sale() {
    let Some(desk) = desk() else { return };
    let world = World::start(binary()).await;
    let (given, buyer) = shopping(&world, &desk).await;
    let document: Value = serde_json::from_str(&fs::read_to_string(desk.at("keys.json")).unwrap()).unwrap();
    let first = document["keys"][0]["keyId"].as_str().unwrap();
    let revoked = world
        .server
        .options()
        .run(&["keys", "revoke", first, "--reason", "stolen"]);
    assert!(revoked.status.success(), "{revoked:?}");
    desk.keys(&world.http).await;
    for receipt in given.all() {
        desk.expect(receipt, false, "revoked");
    }
    let did = world.http.get("/.well-known/did.json").await.expect(200);
    assert!(!did.body.to_string().contains(first), "{}", did.body);
    let http = world.http.with(&buyer);
    let anew = http.get(&given.sale_path).await.expect(200);
    assert_eq!(http.get(&given.sale_path).await.expect(200).bytes, anew.bytes);
    let path = desk.keep("anew.json", str::from_utf8(&anew.bytes).unwrap());
    desk.expect(&path, true, "signed: sale ");
    let before: Value = serde_json::from_str(&fs::read_to_string(&given.sale).unwrap()).unwrap();
    for member in [
        "saleId",
        "item",
        "contentRoot",
        "priceMicro",
        "buyer",
        "ledgerEvent",
        "at",
    ] {
        assert_eq!(before[member], anew.body[member], "{member}");
    }
    world.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_the_ledger_is_checked_from_the_format_alone() {
    let Some(desk) = desk() else { return };
    let world = World::start(binary()).await;
    let (given, _) = shopping(&world, &desk).await;
    let sale: Value = serde_json::from_str(&fs::read_to_string(&given.sale).unwrap()).unwrap();
    let day = sale["at"].as_str().unwrap()[..10].to_owned();
    let options = world.server.options().clone();
    let early = options.run(&["ledger", "day", &day, desk.at("early").to_str().unwrap()]);
    assert!(!early.status.success() && !desk.at("early").exists(), "{early:?}");
    assert!(world.server.stop().await.success());
    let file = desk.at("day.jsonl");
    let later = |days: u32| options.clone().with("SLUICE__CLOCK__OFFSET", format!("{days}d"));
    let server = Server::start(&later(2)).await;
    until(async || {
        let written = options.run(&["ledger", "day", &day, file.to_str().unwrap()]);
        written.status.success().then_some(())
    })
    .await;
    desk.keys(&server.http()).await;
    let (is_good, said) = desk.of_the_format(&[&file, &given.sale, &given.query]);
    assert!(is_good, "{said}");
    let again = options.run(&["ledger", "day", &day, file.to_str().unwrap()]);
    assert!(!again.status.success(), "a file is never replaced");
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without = |left_out: usize| {
        let kept = lines.iter().enumerate().filter(|(index, _)| *index != left_out);
        kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
    };
    let last = lines.len() - 1;
    let mut swapped = lines.clone();
    swapped.swap(last - 1, last);
    for (name, altered) in [
        ("a line less", without(last)),
        ("the first line less", without(1)),
        ("another order", swapped.join("\n")),
        ("another amount", text.replace("\"amount\":120000", "\"amount\":130000")),
        ("another seal", text.replace("\"before\":\"00", "\"before\":\"01")),
        ("no movement", lines[0].to_owned()),
    ] {
        assert_ne!(altered, text, "{name}");
        let (is_good, said) = desk.of_the_format(&[&desk.keep("altered.jsonl", &altered)]);
        assert!(!is_good && said.contains("ValueError"), "{name}: {said}");
    }
    later(2).assert_consistent();
    // The key of the seal is revoked: the seal of a later day vouches for it.
    let document: Value = serde_json::from_str(&fs::read_to_string(desk.at("keys.json")).unwrap()).unwrap();
    let first = document["keys"][0]["keyId"].as_str().unwrap();
    assert!(
        later(2)
            .run(&["keys", "revoke", first, "--reason", "stolen"])
            .status
            .success()
    );
    assert!(server.stop().await.success());
    let vouched = desk.at("vouched.jsonl");
    let server = Server::start(&later(4)).await;
    desk.keys(&server.http()).await;
    let (is_good, _) = desk.of_the_format(&[&file]);
    assert!(!is_good, "its only seal is of a revoked key");
    until(async || {
        fs::remove_file(&vouched).unwrap_or_default();
        let written = options.run(&["ledger", "day", &day, vouched.to_str().unwrap()]);
        let head = written
            .status
            .success()
            .then(|| fs::read_to_string(&vouched).unwrap())?;
        let head: Value = serde_json::from_str(head.lines().next()?).unwrap();
        let seals = head["seals"].as_array()?;
        (seals.last()?["keyId"] != first).then_some(())
    })
    .await;
    let (is_good, said) = desk.of_the_format(&[&vouched]);
    assert!(is_good, "{said}");
    later(4).assert_consistent();
}

/// The clients of others, each with a wallet of its own.
const CLIENTS: [(&str, u8); 2] = [("x402_extensions.mjs", 51), ("x402_extensions.py", 52)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_others_check_offers_and_receipts_and_sign_in() {
    let Some(agents) = Agents::wallets() else { return };
    let world = World::start(binary()).await;
    let slug = on_sale(&world).await;
    let url = format!("{}/paid/dataset?slug={slug}&version=1", world.http.base());
    let asset = PaymentAsset::BUILT_IN.checksum();
    for (script, number) in CLIENTS {
        let (key, text) = wallet(number);
        world
            .server
            .options()
            .admin(&["faucet", &key.address().checksum(), "--usdc", "5"]);
        let given = json!({"key": text, "network": "eip155:84532", "asset": asset, "most": "2000000"});
        let mut client = agents.start(script, &given).await;
        client
            .tell(&json!({"url": url, "id": format!("pay_7d5d747be160e280504c{number:012}")}))
            .await;
        let done = client.hear("done").await;
        assert_eq!(done.get("error"), None, "{script}: {done}");
        assert_eq!(done["body"]["slug"], slug.as_str(), "{script}: {done}");
        let read = if script == CLIENTS[1].0 {
            &done["read"]
        } else {
            &done["again"]
        };
        assert_eq!(read["root"], done["body"]["root"], "{script}: {done}");
        assert!(
            done["receipt"].as_str().is_some_and(|jws| jws.starts_with("eyJ")),
            "{script}: {done}"
        );
        if let Some(desk) = desk().filter(|_| done["saleReceipt"].is_string()) {
            desk.keys(&world.http).await;
            for (name, text) in [
                ("sale.json", &done["saleReceipt"]),
                ("paid.jws", &done["receipt"]),
                ("offer.jws", &done["offer"]),
            ] {
                desk.expect(&desk.keep(name, text.as_str().unwrap()), true, "signed: ");
            }
        }
    }
    let earnings = world.agent.http.get("/earnings").await.expect(200);
    assert_eq!(earnings.body["onHold"]["totalMicro"], 380_000 * 2, "each paid once");
    world.server.options().assert_consistent();
}

/// A purchase counts in the journal, whatever was contributed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_is_of_the_version_that_was_sold() {
    let Some(desk) = desk() else { return };
    let world = World::start(binary()).await;
    let (given, buyer) = shopping(&world, &desk).await;
    let sale: Value = serde_json::from_str(&fs::read_to_string(&given.sale).unwrap()).unwrap();
    let slug = sale["item"].as_str().unwrap().strip_prefix("dataset:").unwrap();
    contribute(&world.agent.http, slug, &records("later", 2)).await;
    let http = world.http.with(&buyer);
    let manifest = http
        .get(&format!("/projects/{slug}/manifest?version=1"))
        .await
        .expect(200);
    assert_eq!(sale["contentRoot"], manifest.body["root"]);
    assert_eq!(http.get(&given.sale_path).await.expect(200).body, sale);
}
