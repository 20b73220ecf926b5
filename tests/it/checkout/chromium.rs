//! Purchases by a person in Chromium, by mouse, on a screen of the size of a phone.

use serde_json::json;
use store::SpendOwner;
use tests::browser::{By, Look, Page};
use types::vocabulary::ItemKind;
use x402::{Authorization, Bytes32, PaymentAsset, WalletKey};

use super::Scene;
use crate::accounts::now;
use crate::console::{browser, judge_answer};
use crate::moderation::published;
use crate::pages::call_tools;
use crate::payments::wallet;
use crate::sql_page::window;

const PHONE: Look = Look {
    width: 390,
    dark: false,
    scripts: true,
};

/// Opens a page, which must be there.
fn open(page: &Page, scene: &Scene, path: &str) {
    let visit = page.goto(format!("{}{path}", scene.site.http.base()));
    assert_eq!(visit.status, 200, "{path}");
}

/// Clicks a link or a button that leads to another document.
fn click(page: &Page, by: By<'_>, what: &str) {
    let visit = page.submit(by);
    assert_eq!(visit.status, 200, "{what}: {}", visit.url);
    judge_answer(page, what);
    page.look(PHONE.width, PHONE.dark);
}

/// Buys what is on the page of an item, and opens it.
fn buy(page: &Page, from: By<'_>, price: &str, what: &str) {
    click(page, from, &format!("ways to pay for {what}"));
    click(page, By::Button("Go on"), &format!("the question about {what}"));
    let button = format!("Buy for ${price}");
    click(page, By::Button(&button), &format!("the receipt of {what}"));
    assert!(page.url().contains("/console/receipts/"), "{}", page.url());
    assert!(page.text().contains("receipt.json"), "{}", page.text());
    click(page, By::Link("Open it"), &format!("{what}, bought"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_buys_a_dataset_and_a_unit_on_a_phone_and_reads_both() {
    let Some(browser) = browser("checkout") else { return };
    let scene = Scene::start(None).await;
    scene.on_sale("tides").await;
    let unit = published(&scene.seller.agent.http).await;
    let page = window(&scene.site, &browser.person(PHONE), &scene.buyer);
    open(&page, &scene, "/projects/tides");
    page.click(By::Text("Ways to pay $0.50"));
    buy(&page, By::Link("Buy with credits"), "0.50", "a dataset");
    assert!(page.text().contains("wick"), "{}", page.text());
    open(&page, &scene, &format!("/units/{unit}"));
    buy(&page, By::Link("Buy it"), "0.25", "a unit");
    let text = page.text();
    assert!(text.contains("Yours.") && !text.contains("more characters"), "{text}");
    assert_eq!(scene.credits().await, json!(4_250_000));
    // Back to the question, which is asked anew and answered by then: the same receipt.
    page.evaluate("history.go(-1)");
    page.see(By::Text("receipt.json"));
    let receipt = page.url();
    page.evaluate("history.go(-1)");
    page.see(By::Link("Receipt"));
    let again = page.submit(By::Link("Receipt"));
    assert_eq!((again.status, again.url), (200, receipt));
    assert_eq!(scene.credits().await, json!(4_250_000));
    for path in ["/console/money", "/console/agents"] {
        open(&page, &scene, path);
        judge_answer(&page, path);
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
    // A visitor without scripts chooses the way, too.
    let visitor = browser
        .person(Look {
            scripts: false,
            ..PHONE
        })
        .page();
    open(&visitor, &scene, "/projects/tides/buy");
    visitor.check(By::Css("input[value=agent]"));
    visitor.submit(By::Button("Go on"));
    visitor.see(By::Text("Say this to the agent"));
    scene.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_above_its_line_asks_a_person_approves_on_a_phone_and_it_completes() {
    let Some(browser) = browser("approval") else { return };
    let scene = Scene::start(None).await;
    let buyer = &scene.buyer;
    let page = window(&scene.site, &browser.person(PHONE), buyer);
    // The person draws the line.
    open(&page, &scene, "/console/agents");
    click(&page, By::Css("a[href$='/limits']"), "the limits of an agent");
    page.fill(By::Label("Ask me above, in dollars"), "ten cents");
    assert_eq!(page.submit(By::Button("Save limits")).status, 400);
    judge_answer(&page, "limits that are none");
    page.look(PHONE.width, PHONE.dark);
    page.fill(By::Label("Ask me above, in dollars"), "0.10");
    page.fill(By::Label("A month at most, in dollars"), "1.20");
    click(&page, By::Button("Save limits"), "the money page with limits");
    for (slug, by_tool) in [("tides", false), ("quays", true)] {
        scene.on_sale(slug).await;
        let path = format!("/projects/{slug}/buy");
        let call = format!("buy_dataset {{\"slug\": \"{slug}\"}}");
        let ask = async || {
            if by_tool {
                call_tools(&buyer.agent.http, &call).await["result"]["structuredContent"].clone()
            } else {
                let why = json!({"reason": "Needed for the <b>tables</b>."});
                buyer.agent.http.post(&path, &why).await.body
            }
        };
        let asked = ask().await;
        assert_eq!(asked["status"], "waiting", "{asked}");
        open(&page, &scene, "/console");
        assert!(page.text().contains("asks to spend"), "{}", page.text());
        click(&page, By::Link("Decide"), "the question of an agent");
        if !by_tool {
            assert!(page.text().contains("Needed for the <b>tables</b>."), "{}", page.text());
        }
        click(&page, By::Button("Buy for $0.50"), "the receipt of an agent's purchase");
        let completed = ask().await;
        assert_eq!(
            (&completed["charged"], &completed["approval"]["status"]),
            (&json!(false), &json!("bought")),
            "{completed}"
        );
        assert_eq!(asked["approval"]["id"], completed["approval"]["id"]);
        buyer
            .agent
            .http
            .get(&format!("/projects/{slug}/data"))
            .await
            .expect(200);
    }
    // The cap of the month holds for the person, too.
    scene.on_sale("piers").await;
    open(&page, &scene, "/projects/piers/buy");
    assert!(
        page.text().contains("may spend $0.20 more this month"),
        "{}",
        page.text()
    );
    assert_eq!(page.count(By::Css("form[action='/console/buy'] button:disabled")), 1);
    judge_answer(&page, "a purchase beyond a cap");
    scene.check();
}

/// A wallet of the page, which leaves what it is asked to sign in the document.
const FAKE_WALLET: &str = "window.ethereum = {request: ({method, params}) => {
    if (method === 'eth_requestAccounts') return Promise.resolve([window.account]);
    if (method !== 'eth_signTypedData_v4') return Promise.resolve(null);
    return new Promise((done) => {
        window.sign = done;
        const asked = document.createElement('pre');
        asked.id = 'asked';
        asked.textContent = params[1];
        document.body.append(asked);
    });
}}";

/// Two wallets that announce themselves (EIP-6963): one that says no, with a name of markup, and [`FAKE_WALLET`].
const ANNOUNCED_WALLETS: &str = "const yes = window.ethereum;
    delete window.ethereum;
    const no = {request: () => Promise.reject({code: 4001})};
    const announce = () => [['1', '<b>Other</b>', no], ['2', 'Mine', yes]].forEach(([uuid, name, provider]) =>
        window.dispatchEvent(new CustomEvent('eip6963:announceProvider', {detail: {info: {uuid, name}, provider}})));
    announce(); announce()";

/// Signs what the wallet of the page was asked for, as its owner does, and returns the amount.
fn sign_asked(page: &Page, key: &WalletKey) -> u64 {
    page.see(By::Css("#asked"));
    let asked: serde_json::Value = serde_json::from_str(&page.read(By::Css("#asked"))).unwrap();
    let (domain, message) = (&asked["domain"], &asked["message"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    let number = |name: &str| text(&message[name]).parse::<u64>().unwrap();
    let asset = PaymentAsset {
        network: format!("eip155:{}", domain["chainId"]).parse().unwrap(),
        address: text(&domain["verifyingContract"]).parse().unwrap(),
        name: text(&domain["name"]),
        version: text(&domain["version"]),
        pay_to: text(&message["to"]).parse().unwrap(),
    };
    let nonce = data_encoding::HEXLOWER
        .decode(&text(&message["nonce"]).as_bytes()[2..])
        .unwrap();
    let authorization = Authorization {
        from: key.address(),
        to: asset.pay_to,
        value: number("value"),
        valid_after: number("validAfter"),
        valid_before: number("validBefore"),
        nonce: Bytes32(nonce.try_into().unwrap()),
    };
    let signature = authorization.sign(&asset, key);
    page.evaluate(&format!(
        "document.getElementById('asked').remove(); window.sign('{signature}')"
    ));
    authorization.value
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_adds_two_packs_with_two_signatures_and_none_twice() {
    let Some(browser) = browser("top-up") else { return };
    let scene = Scene::start(None).await;
    let (key, _) = wallet(42);
    let payer = key.address().checksum();
    let options = scene.site.server.options();
    options.admin(&["faucet", &payer, "--usdc", "1"]);
    let page = window(&scene.site, &browser.person(PHONE), &scene.buyer);
    open(&page, &scene, "/console/money/add?packs=2");
    judge_answer(&page, "credit by a wallet");
    page.evaluate(&format!("window.account = '{payer}'"));
    page.evaluate(&format!("{FAKE_WALLET}; {ANNOUNCED_WALLETS}; null"));
    page.click(By::Button("Pay $2.00"));
    page.see(By::Text("You said no in the wallet."));
    page.pick(By::Css("select[aria-label=Wallet]"), "2");
    judge_answer(&page, "a wallet that was chosen");
    page.click(By::Button("Pay $2.00"));
    assert_eq!(sign_asked(&page, &key), 1_000_000);
    // The wallet holds one pack: the second payment is refused, and the page says what was paid.
    assert_eq!(sign_asked(&page, &key), 1_000_000);
    page.see(By::Text("1 of 2 paid."));
    assert_eq!(scene.credits().await, json!(6_000_000));
    options.admin(&["faucet", &payer, "--usdc", "1"]);
    page.click(By::Button("Pay $2.00"));
    assert_eq!(sign_asked(&page, &key), 1_000_000);
    page.see(By::Link("See your credit"));
    assert_eq!(scene.credits().await, json!(7_000_000));
    // The page of the code notices by itself that there is more credit.
    open(&page, &scene, "/console/money/add?with=phone");
    page.see(By::Text("Waiting for a payment."));
    scene.site.grant(scene.buyer.operator, "100");
    page.see(By::Text("A payment arrived."));
    scene.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_in_the_page_pays_without_an_account_a_question_or_a_cap() {
    let Some(browser) = browser("wallet") else { return };
    let scene = Scene::start(None).await;
    scene.on_sale("tides").await;
    let (key, _) = wallet(41);
    let payer = key.address().checksum();
    let options = scene.site.server.options();
    options.admin(&["faucet", &payer, "--usdc", "2"]);
    // The person is signed in, and has an agent that may spend nothing: a wallet's payment is none of both.
    let buyer = &scene.buyer;
    super::limit(buyer, &[("per_month", "0")]).await;
    let page = window(&scene.site, &browser.person(PHONE), buyer);
    open(&page, &scene, "/projects/tides/buy?with=wallet");
    judge_answer(&page, "a wallet in the page");
    assert_eq!(page.count(By::Css(".qr svg[role=img]")), 1, "a code of the address");
    page.evaluate(&format!("window.account = '{payer}'"));
    page.evaluate(&format!("{FAKE_WALLET}; null"));
    page.click(By::Button("Pay $0.50"));
    assert_eq!(sign_asked(&page, &key), 500_000);
    page.see(By::Link("Save what you bought"));
    let sold = options.admin(&["payments", "list"]);
    assert_eq!(sold["items"][0]["state"], "settled", "{sold}");
    // No question, no counter, and nothing of the account's credits.
    let money = scene.site.store.money();
    let agent = buyer.agent.id.parse().unwrap();
    let spent = money.spendings(&[SpendOwner::Agent(agent)], now()).await.unwrap();
    assert_eq!((spent[0].on_day.0, spent[0].in_month.0), (0, 0));
    let ended = money.approvals_ended(buyer.operator, None, 9, now()).await.unwrap();
    assert_eq!(ended, []);
    assert!(money.bought_by(buyer.operator, 9).await.unwrap().is_empty());
    assert_eq!(scene.credits().await, json!(5_000_000));
    let dataset = scene.site.store.project_by_slug("tides", None).await.unwrap().unwrap();
    let owned = money
        .owned(buyer.operator, ItemKind::Dataset, &dataset.id.to_string())
        .await;
    assert_eq!(owned.unwrap(), None, "the wallet is not proved to be the account's");
    scene.check();
}
