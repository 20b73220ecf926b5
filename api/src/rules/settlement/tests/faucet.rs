//! The faucet, the pages of what x402 sells, and the proof of a wallet, for people without a real network.

use super::*;
use crate::state::payment_services::PaymentServices;
use crate::testing::browser::{Browser, form};

/// Returns the address of a wallet with this number.
fn wallet(number: u8) -> String {
    key(number).address().checksum()
}

/// Asks the faucet for whole test USDC from an address.
async fn ask(service: &Service, credential: Option<&str>, from: &str, to: &str, usdc: u32) -> Got {
    let mut request = Request::post("/faucet");
    if let Some(credential) = credential {
        request = request.header("authorization", format!("Bearer {credential}"));
    }
    let body = json!({"wallet": to, "usdc": usdc}).to_string();
    let mut request = request.body(Body::from(body)).unwrap();
    let peer = SocketAddr::new(from.parse::<IpAddr>().unwrap(), 40_000);
    request.extensions_mut().insert(ConnectInfo(peer));
    service.send(request).await
}

#[tokio::test]
async fn a_day_of_the_faucet_is_bounded_for_a_wallet_a_caller_and_all() {
    let service = Service::start().await;
    let usual = service
        .call("POST", "/faucet", None, &json!({"wallet": wallet(1)}).to_string())
        .await;
    assert_eq!(usual.status, 200, "{}", usual.text());
    let said = usual.json();
    assert_eq!(
        (&said["givenMicro"], &said["balanceMicro"], &said["wallet"]),
        (&json!(5_000_000), &json!(5_000_000), &json!(wallet(1)))
    );
    assert_eq!(said["network"], "eip155:84532");
    // The wallet's day, from whatever address; what is refused takes nothing of any day.
    let (here, there) = ("192.0.2.1", "198.51.100.7");
    let more = ask(&service, None, there, &wallet(1).to_lowercase(), 6).await;
    refused(&more, 429, "faucet_limit");
    assert_eq!(more.headers["retry-after"], more.json()["retryAfter"].to_string());
    assert_eq!(
        ask(&service, None, there, &wallet(1), 5).await.json()["balanceMicro"],
        10_000_000
    );
    refused(&ask(&service, None, there, &wallet(1), 1).await, 429, "faucet_limit");
    // The day of an address without an account: 20, of which one has 5 and the other 5.
    assert_eq!(ask(&service, None, here, &wallet(2), 10).await.status, 200);
    refused(&ask(&service, None, here, &wallet(3), 6).await, 429, "faucet_limit");
    assert_eq!(ask(&service, None, here, &wallet(3), 5).await.status, 200);
    refused(&ask(&service, None, here, &wallet(4), 1).await, 429, "faucet_limit");
    // An operator has a day of its own, whichever of its agents and addresses asks.
    let token = service.operator().await;
    let agent = service.agent(&token, "buyer").await;
    assert_eq!(ask(&service, Some(&agent), here, &wallet(4), 10).await.status, 200);
    assert_eq!(ask(&service, Some(&token), there, &wallet(5), 10).await.status, 200);
    refused(
        &ask(&service, Some(&agent), here, &wallet(6), 1).await,
        429,
        "faucet_limit",
    );
    // Calls without an account have half of the day of all: 25 are gone, and one operator's 20 are not among them.
    let mut given = 25;
    for number in 0..=250_u8 {
        let from = format!("203.0.113.{number}");
        let to = format!("0x{:040x}", 1_000 + u32::from(number));
        let got = ask(&service, None, &from, &to, 10).await;
        if got.status == 429 {
            assert!(got.text().contains("without an account"), "{}", got.text());
            break;
        }
        given += 10;
    }
    assert_eq!(given, 995);
    let other = service.operator().await;
    assert_eq!(ask(&service, Some(&other), here, &wallet(6), 10).await.status, 200);
    service.clock.advance(Duration::from_hours(24));
    assert_eq!(ask(&service, None, here, &wallet(1), 10).await.status, 200);
}

#[tokio::test]
async fn the_faucet_gives_to_wallets_of_others_only_and_on_the_built_in_ledger_only() {
    let mut service = Service::start().await;
    let treasury = asset().pay_to.checksum();
    let token = asset().address.checksum();
    for odd in [
        &*treasury,
        &token,
        "0x0000000000000000000000000000000000000000",
        "0x12",
        "",
    ] {
        refused(&ask(&service, None, "192.0.2.1", odd, 1).await, 400, "invalid_request");
    }
    for usdc in [0, 11] {
        refused(
            &ask(&service, None, "192.0.2.1", &wallet(1), usdc).await,
            400,
            "invalid_request",
        );
    }
    let mut plane = PaymentServices::clone(&service.app.payments);
    plane.is_built_in = false;
    service.app.payments = Arc::new(plane);
    service.router = crate::router(service.app.clone());
    service.operator_at("ada@example.org").await;
    refused(&ask(&service, None, "192.0.2.1", &wallet(1), 1).await, 404, "not_found");
    let person = Browser::signed_in_again(&service).await;
    assert_eq!(person.get("/test-usdc").await.status, 404);
    let sent = Browser::signed_out(&service)
        .post("/test-usdc", &form(&[("wallet", &wallet(1))]))
        .await;
    assert_eq!(sent.status, 404);
    let credit = person.get("/console/money/add").await;
    assert!(
        credit.status == 200 && credit.text().contains("data-pay=") && !credit.text().contains("/test-usdc"),
        "{}",
        credit.text()
    );
}

#[tokio::test]
async fn a_person_gets_test_usdc_and_sees_what_is_for_sale_and_what_it_costs() {
    let stage = Stage::with([]).await;
    let service = &stage.service;
    let agent = service.operator().await;
    let agent = service.agent(&agent, "seller").await;
    let paid = json!({"access": "paid", "price": "0.50", "title": "Tides <script>alert(1)</script>"});
    service.project(&agent, "tides", &paid).await;
    service.merged(&agent, "tides", &[json!({"name": "a"})]).await;
    let browser = Browser::signed_out(service);
    // The page of the dataset leads to the ways to pay, of which a wallet is the one without an account.
    let buy = "/projects/tides/buy?version=1";
    let dataset = browser.get("/projects/tides").await.text();
    assert!(dataset.contains(buy), "{dataset}");
    let path = "/paid/dataset?slug=tides&version=1";
    let ways = browser.get(buy).await.text();
    let address = format!("data-address=\"{}\"", path.replace('&', "&#38;"));
    assert!(
        ways.contains(&address) && ways.contains("action=\"/test-usdc\""),
        "{ways}"
    );
    // The address that is paid has a page, too, with the status and the terms of the answer to programs.
    for path in [path.to_owned(), stage.pack()] {
        let program = stage.send("GET", &path, &[], "192.0.2.1").await;
        let page = browser.get(&path).await;
        assert_eq!(
            (page.status, program.status.as_u16()),
            (http::StatusCode::PAYMENT_REQUIRED, 402)
        );
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        let terms = |got: &Got| {
            let mut said = message(got, "payment-required").unwrap();
            // The nonce of a sign-in is new in each answer.
            said["extensions"]["sign-in-with-x"].take();
            said
        };
        assert_eq!(terms(&page), terms(&program));
        assert!(
            page.text().contains("data-pay=") && page.text().contains("action=\"/test-usdc\""),
            "{}",
            page.text()
        );
        assert!(page.text().contains("test USDC"), "{}", page.text());
    }
    assert_eq!(browser.get("/paid/dataset?slug=nothing").await.status, 404);
    assert_eq!(browser.get("/paid/credits?operator=x").await.status, 400);
    // The faucet, from the form of that page, and the way back.
    let sent = browser
        .post("/test-usdc", &form(&[("wallet", &wallet(9)), ("next", path)]))
        .await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let to = sent.headers["location"].to_str().unwrap().to_owned();
    let shown = browser.get(&to).await.text();
    assert!(shown.contains("$5.00") && shown.contains("slug=tides"), "{shown}");
    let odd = [("wallet", "0x<script>alert(1)</script>"), ("next", "//evil.example/")];
    let odd = browser.post("/test-usdc", &form(&odd)).await;
    assert_eq!(odd.status, 400);
    assert!(
        !odd.text().contains("<script>alert") && !odd.text().contains("//evil.example/\""),
        "{}",
        odd.text()
    );
    // A browser that pays gets what it pays for.
    let buyer = Buyer::new(500_000, 3, stage.now());
    let payment = [
        ("payment-signature", wire::header(&buyer.message(Protocol::V2))),
        ("accept", "text/html".to_owned()),
    ];
    let bought = stage.send("GET", path, &payment, "192.0.2.1").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    assert!(
        bought.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/json")
    );
    let person = Browser::signed_in_again(service).await;
    // Credit is added in a page of its own, by the same terms, however the person pays.
    let money = person.get("/console/money").await.text();
    assert!(money.contains("href=\"/console/money/add\""), "{money}");
    let wallet = person.get("/console/money/add?packs=5").await.text();
    assert!(
        wallet.contains("action=\"/test-usdc\"") && wallet.contains("data-times=\"5\"") && wallet.contains("Pay $5.00"),
        "{wallet}"
    );
    for with in ["phone", "agent"] {
        let page = person.get(&format!("/console/money/add?with={with}")).await.text();
        assert!(page.contains(&stage.pack()), "{with}: {page}");
    }
    for odd in ["packs=3", "packs=0", "packs=11", "with=cash"] {
        let page = person.get(&format!("/console/money/add?{odd}")).await;
        assert_eq!(page.status, 400, "{odd}");
    }
}

#[tokio::test]
async fn a_person_proves_its_wallet_in_the_console() {
    let stage = Stage::with([]).await;
    let service = &stage.service;
    let person = Browser::signed_in_again(service).await;
    let money = async || person.get("/console/money").await.text();
    assert!(!money().await.contains("proof-message"), "there is no wallet yet");
    payouts::address(&stage, stage.operator, 1, Duration::ZERO).await;
    let page = money().await;
    let text = page
        .split_once("id=\"proof-message\"")
        .unwrap()
        .1
        .split_once("<code>")
        .unwrap()
        .1;
    let message = text.split_once("</code>").unwrap().0.replace("&#39;", "'");
    let token = person.form_token().await;
    let prove = async |signature: &str| {
        let fields = [("form_token", &*token), ("signature", signature)];
        person.post("/console/payout/prove", &form(&fields)).await
    };
    let sign = |number| key(number).sign(x402::sign_in::digest(&message)).to_string();
    let wrong = prove(&sign(2)).await;
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.text().contains("payout wallet over the message"),
        "{}",
        wrong.text()
    );
    let right = prove(&sign(1)).await;
    assert_eq!(right.status, 303, "{}", right.text());
    let page = money().await;
    assert!(
        page.contains("<span>proved ") && !page.contains("proof-message"),
        "{page}"
    );
}
