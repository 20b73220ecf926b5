//! Tests of the pages of money, of the quota and of the first steps, as a person opens them.

use serde_json::{Value, json};
use types::{OperatorId, Timestamp};

use crate::testing::Service;
use crate::testing::browser::{Browser, EMAIL, form};

/// A title that somebody made to break pages.
const TITLE: &str = "Rain <script>alert(1)</script>";

/// The person of these tests with an agent, and an agent of another operator.
struct Scene<'s> {
    browser: Browser<'s>,
    own: String,
    other: String,
}

async fn scene(service: &Service) -> Scene<'_> {
    let token = service.operator_at(EMAIL).await;
    // Before anything else sends a letter.
    let browser = Browser::signed_in_again(service).await;
    let other = service.operator().await;
    Scene {
        browser,
        own: service.agent(&token, "own-agent").await,
        other: service.agent(&other, "other-agent").await,
    }
}

/// Returns the operator of a key, which the link for credits names.
async fn operator_of(service: &Service, key: &str) -> OperatorId {
    let credits = service.get("/credits", Some(key)).await.json();
    let link = credits["topUp"].as_str().unwrap();
    link.split("operator=").nth(1).unwrap().parse().unwrap()
}

/// Sells a version of a dataset of one agent to the other, for half a dollar.
async fn sold(service: &Service, seller: &str, buyer: &str) {
    let paid = json!({"access": "paid", "price": "0.50", "title": TITLE});
    service.project(seller, "rain", &paid).await;
    service.merged(seller, "rain", &[json!({"name": "a"})]).await;
    service.granted(operator_of(service, buyer).await, 2_000_000).await;
    let bought = service.call("POST", "/projects/rain/buy", Some(buyer), "{}").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
}

impl Scene<'_> {
    async fn open(&self, path: &str) -> String {
        let page = self.browser.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        page.text()
    }
}

#[tokio::test]
async fn a_purchase_is_one_line_with_its_receipt() {
    let service = Service::start().await;
    let scene = scene(&service).await;
    sold(&service, &scene.other, &scene.own).await;
    let page = scene.open("/console/money").await;
    assert_eq!(page.matches("\u{2212}0.500000").count(), 1, "{page}");
    assert!(!page.contains("\u{2212}0.120000"), "the parts are no lines: {page}");
    assert!(
        page.contains("href=\"/projects/rain\"")
            && page.contains("Rain &#60;script&#62;")
            && !page.contains("<script>a"),
        "{page}"
    );
    let (_, receipt) = page.split_once("href=\"/console/receipts/").unwrap();
    let receipt = receipt.split_once('"').unwrap().0;
    assert_eq!(
        scene.browser.get(&format!("/console/receipts/{receipt}")).await.status,
        200
    );
    for (query, has_purchase, has_grant) in [
        ("kind=purchases", true, false),
        ("kind=added", false, true),
        ("kind=usage", false, false),
        ("kind=&by=&month=", true, true),
    ] {
        let page = scene.open(&format!("/console/money?{query}")).await;
        let found = (page.contains("/console/receipts/"), page.contains("Credit granted"));
        assert_eq!(found, (has_purchase, has_grant), "{query}");
    }
    for odd in ["kind=all", "state=lost", "month=1999-01", "by=x", "sold=x", "cursor=x"] {
        let answer = scene.browser.get(&format!("/console/money?{odd}")).await;
        assert_eq!(answer.status, 400, "{odd}");
    }
    let table = scene.open("/console/money.csv").await;
    assert_eq!(table.lines().count(), 3, "{table}");
    let overview = scene.open("/console").await;
    assert!(overview.contains("$0.50 spent in 30 days"), "{overview}");
}

#[tokio::test]
async fn a_seller_sees_each_sale_and_what_became_of_its_money() {
    let service = Service::start().await;
    let scene = scene(&service).await;
    sold(&service, &scene.own, &scene.other).await;
    let page = scene.open("/console/money").await;
    for part in [
        "an account, with credit",
        "on hold until",
        "<td class=\"n\" data-l=\"Fee\">0.12</td>",
        "<b class=\"b\">0.38</b>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("other-agent"), "nothing names the buyer: {page}");
    assert!(
        scene
            .open("/console/money?state=refunded")
            .await
            .contains("No such sale.")
    );
    assert!(
        scene
            .open("/console/money?item=another")
            .await
            .contains("No such sale.")
    );
    let table = scene.open("/console/money/sales.csv").await;
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(!scene.open("/console").await.contains("Say where your earnings go"));

    // Once it is ready, an address is all that is missing, and both places say so.
    service.clock.advance(std::time::Duration::from_hours(8 * 24));
    let (money, now) = (service.app.store.money(), service.app.clock.now());
    assert_eq!(money.release(&service.app.pay.asset, now, 9).await.unwrap(), 1);
    let overview = scene.open("/console").await;
    assert!(
        overview.contains("Say where your earnings go") && overview.contains("need you"),
        "{overview}"
    );
    let page = scene.open("/console/money").await;
    assert!(
        page.contains("waits for your address") && page.contains("<span class=\"st live\">ready</span>"),
        "{page}"
    );
}

#[tokio::test]
async fn the_quota_says_who_read() {
    let service = Service::start().await;
    let scene = scene(&service).await;
    assert!(scene.open("/console/quota").await.contains("Nobody yet."));
    service.project(&scene.other, "open", &json!({})).await;
    let records: Vec<Value> = (0..9).map(|number| json!({"name": format!("n{number}")})).collect();
    service.merged(&scene.other, "open", &records).await;
    let read = service.get("/projects/open/data", Some(&scene.own)).await;
    assert_eq!(read.status, 200);
    let page = scene.open("/console/quota").await;
    assert!(
        page.contains("<bdi>own-agent</bdi>") && page.contains("100 %"),
        "{page}"
    );
    let used = service.get("/quota", Some(&scene.own)).await.json()["egress"]["used"].clone();
    let (store, month) = (&service.app.store, now(&service).month());
    let operator = operator_of(&service, &scene.own).await;
    let readers = store.egress_readers(operator, month, 9).await.unwrap();
    assert_eq!(json!(readers.iter().map(|of| of.bytes).sum::<u64>()), used);
}

fn now(service: &Service) -> Timestamp {
    service.app.clock.now()
}

#[tokio::test]
async fn first_steps_are_shown_until_they_are_done_or_hidden() {
    let service = Service::start().await;
    let scene = scene(&service).await;
    assert!(scene.open("/console").await.contains("First steps"));
    let token = scene.browser.form_token().await;
    for _ in 0..2 {
        let hidden = scene
            .browser
            .post("/console/steps/hide", &form(&[("form_token", &token)]))
            .await;
        assert_eq!(hidden.status, 303, "{}", hidden.text());
    }
    assert!(!scene.open("/console").await.contains("First steps"));
    // A form without the token of the session hides nothing.
    let forged = scene
        .browser
        .post("/console/steps/hide", &form(&[("form_token", "x")]))
        .await;
    assert_eq!(forged.status, 403);
}
