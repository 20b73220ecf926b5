//! Purchases by a person in a browser, from outside: as an own agent and within its limits, once however often a form is
//! sent, and for nobody else.
//!
//! Invariant: `sluice check` proves what each test leaves behind.

mod chromium;
mod limits;

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use store::{ProjectChanges, ProjectUpdated};
use tests::apps::{FORM, encoded, hidden};
use tests::world::{contribute, merged, project_body, records};
use tests::{Answer, Options};
use types::money::MicroUsdc;

use crate::accounts::{Site, now, on_each};
use crate::moderation::published;
use crate::sql_page::{Asker, text};

/// A service with a seller and a buyer, each a person with an agent.
pub(crate) struct Scene {
    pub(crate) site: Site,
    pub(crate) seller: Asker,
    pub(crate) buyer: Asker,
}

impl Scene {
    pub(crate) async fn start(url: Option<&str>) -> Self {
        let site = Site::start(url, |options: Options| options).await;
        let seller = Asker::new(&site, "ada@example.org").await;
        let buyer = Asker::new(&site, "bob@example.org").await;
        site.grant(buyer.operator, "500");
        Self { site, seller, buyer }
    }

    /// Puts a dataset with a version on sale.
    pub(crate) async fn on_sale(&self, slug: &str) {
        let body = merged(project_body(slug), json!({"access": "paid", "price": "0.50"}));
        self.seller.agent.http.post("/projects", &body).await.expect(201);
        contribute(&self.seller.agent.http, slug, &records("wick", 3)).await;
    }

    /// Sets a price, more often than sellers may, and waits until the service knows of it.
    async fn priced(&self, slug: &str, price: MicroUsdc) {
        let store = &self.site.store;
        let project = store
            .project_by_slug(slug, Some(self.seller.operator))
            .await
            .unwrap()
            .unwrap();
        let changes = ProjectChanges {
            price: Some(Some(price.0)),
            ..ProjectChanges::default()
        };
        let updated = store
            .project_update(project.id, changes, now(), Duration::ZERO)
            .await
            .unwrap();
        assert!(matches!(updated, ProjectUpdated::Updated(_)), "{updated:?}");
        let is_known = |answer: &Answer| answer.body["priceMicro"] == price.0;
        self.seller
            .agent
            .http
            .comes_to_show(&format!("/projects/{slug}"), is_known)
            .await;
    }

    /// Bought credits of the buyer, in micro-USDC.
    pub(crate) async fn credits(&self) -> Value {
        let credits = self.buyer.agent.http.get("/credits").await.expect(200);
        credits.body["boughtMicro"].clone()
    }

    pub(crate) fn check(&self) {
        self.site.server.options().assert_consistent();
    }
}

/// Sends a form of a page of this service, with the token of the session.
async fn send(person: &Asker, path: &str, fields: &[(&str, &str)]) -> Answer {
    let token = person.token().await;
    let mut all = vec![("form_token", token.as_str())];
    all.extend(fields);
    person.browser.browse(&person.session, path, Some(&all)).await
}

/// The fields of the form on a page of a purchase, as its buyer sends them.
async fn fields(person: &Asker, page: &str) -> Vec<(&'static str, String)> {
    let html = text(&person.open(page).await.expect(200));
    let mut fields: Vec<_> = ["form", "item", "price"]
        .into_iter()
        .map(|name| (name, hidden(&html, name)))
        .collect();
    if page.starts_with("/projects/") {
        fields.push(("version", hidden(&html, "version")));
    }
    fields.push(("agent", person.agent.id.clone()));
    fields
}

/// Opens the page of a purchase and sends its form.
async fn ask(person: &Asker, page: &str) -> Answer {
    let fields = fields(person, page).await;
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(person, "/console/buy", &fields).await
}

/// Where an answer leads to.
fn place(answer: &Answer) -> String {
    assert_eq!(answer.code(), 303, "{}", text(answer));
    answer.header("location").to_owned()
}

/// Puts limits on the buyer's agent, as its form does.
async fn limit(person: &Asker, fields: &[(&str, &str)]) {
    let path = format!("/console/agents/{}/limits", person.agent.id);
    assert_eq!(place(&send(person, &path, fields).await), "/console/money#limits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_buys_once_as_an_agent_however_often_a_form_is_sent() {
    on_each(async |url| {
        let scene = Scene::start(url.as_deref()).await;
        let buyer = &scene.buyer;
        scene.on_sale("tides").await;
        let unit = published(&scene.seller.agent.http).await;
        let shown = text(&buyer.open(&format!("/units/{unit}")).await.expect(200));
        assert!(
            shown.contains(&format!("/units/{unit}/buy")) && !shown.contains("Yours."),
            "{shown}"
        );
        let mut left = 5_000_000;
        for (page, price, read) in [
            (
                "/projects/tides/buy?version=1".to_owned(),
                500_000,
                "/projects/tides/rows?version=1".to_owned(),
            ),
            (format!("/units/{unit}/buy"), 250_000, format!("/units/{unit}")),
        ] {
            // The page is open to anybody, and shows nothing of an account to who has none.
            let visitor = text(&buyer.browser.browse("", &page, None).await.expect(200));
            assert!(
                visitor.contains("data-address=\"/paid/") && !visitor.contains("action=\"/console/buy\""),
                "{visitor}"
            );
            // Ten times the same form, some of them at once: one question.
            let form = fields(buyer, &page).await;
            let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let row = place(&send(buyer, "/console/buy", &form).await);
            assert!(row.starts_with("/console/approvals/"), "{row}");
            let again = join_all((0..9).map(|_| send(buyer, "/console/buy", &form))).await;
            assert!(again.iter().all(|answer| place(answer) == row), "{again:?}");
            // It is the person's own question, so it is not among those that agents ask.
            let money = text(&buyer.open("/console/money").await.expect(200));
            assert!(!money.contains("Waits for your yes"), "{money}");
            let question = text(&buyer.open(&row).await.expect(200));
            assert!(
                question.contains("you, as <bdi>bob</bdi>, for <bdi>Ada</bdi>") && question.contains("test USDC"),
                "{question}"
            );
            assert_eq!(scene.credits().await, json!(left), "nothing is paid before the yes");
            // Ten times yes at once, then from the page that the browser kept: one receipt.
            let path = format!("{row}/yes");
            let yes = join_all((0..10).map(|_| send(buyer, &path, &[]))).await;
            let receipt = place(&yes[0]);
            assert!(receipt.starts_with("/console/receipts/"), "{receipt}");
            assert!(yes.iter().all(|answer| place(answer) == receipt), "{yes:?}");
            assert_eq!(place(&send(buyer, "/console/buy", &form).await), receipt);
            assert_eq!(place(&send(buyer, &path, &[]).await), receipt);
            assert_eq!(place(&send(buyer, &format!("{row}/no"), &[]).await), receipt);
            let bought = text(&buyer.open(&row).await.expect(200));
            assert!(bought.contains(&receipt) && !bought.contains("Do not buy"), "{bought}");
            left -= price;
            assert_eq!(scene.credits().await, json!(left));
            // The page of the receipt, its file, and the agent's answer say the same.
            let shown = text(&buyer.open(&receipt).await.expect(200));
            assert!(
                shown.contains("you, as <bdi>bob</bdi>") && shown.contains("bought credits") && shown.contains(&read),
                "{shown}"
            );
            let file = buyer.open(&format!("{receipt}/receipt.json")).await.expect(200);
            let sale = receipt.trim_start_matches("/console/receipts/");
            let signed = buyer.agent.http.get(&format!("/receipts/{sale}")).await.expect(200);
            assert_eq!(file.bytes, signed.bytes);
            assert_eq!(
                (
                    &signed.body["approvedBy"],
                    &signed.body["agent"],
                    &signed.body["priceMicro"]
                ),
                (&json!("person"), &json!(buyer.agent.id), &json!(price))
            );
            buyer.open(&read).await.expect(200);
            // Once it is bought, its page says so.
            let page = text(&buyer.open(&page).await.expect(200));
            assert!(
                page.contains("It is yours already.") && page.contains(&receipt),
                "{page}"
            );
        }
        let rows = text(&buyer.open("/projects/tides/rows?version=1").await.expect(200));
        assert!(rows.contains("wick"), "{rows}");
        let whole = text(&buyer.open(&format!("/units/{unit}")).await.expect(200));
        assert!(
            whole.contains("Yours.") && whole.contains("by <bdi>bob</bdi>") && !whole.contains("more characters"),
            "{whole}"
        );
        buyer.agent.http.get("/projects/tides/data").await.expect(200);
        buyer
            .agent
            .http
            .get(&format!("/knowledge/{unit}/full"))
            .await
            .expect(200);
        // The trail has both names.
        let trail = text(&buyer.open("/console/activity").await.expect(200));
        assert!(
            trail.matches("you, as <bdi>bob</bdi>").count() >= 4 && trail.contains("bought"),
            "{trail}"
        );
        scene.check();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_form_of_an_own_page_asks_and_decides_and_a_session_buys_nothing_elsewhere() {
    on_each(async |url| {
        let scene = Scene::start(url.as_deref()).await;
        let (site, buyer) = (&scene.site, &scene.buyer);
        scene.on_sale("tides").await;
        let form = fields(buyer, "/projects/tides/buy").await;
        let mut form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let row = place(&send(buyer, "/console/buy", &form).await);
        let token = buyer.token().await;
        form.push(("form_token", token.as_str()));
        let only_token = [("form_token", token.as_str())];
        let limits = format!("/console/agents/{}/limits", buyer.agent.id);
        let (yes, no) = (format!("{row}/yes"), format!("{row}/no"));
        let base = site.http.base();
        let cookie = format!("__Host-sluice={}", buyer.session);
        for (path, fields) in [
            ("/console/buy", &form[..]),
            (&yes, &only_token),
            (&no, &only_token),
            (&limits, &only_token),
        ] {
            let body = encoded(fields).into_bytes();
            for origin in [None, Some("null"), Some("https://evil.example"), Some("")] {
                // The statement of a newer browser does not do here.
                let mut headers = vec![
                    ("cookie", cookie.as_str()),
                    ("content-type", FORM),
                    ("accept", "text/html"),
                    ("sec-fetch-site", "same-origin"),
                ];
                headers.extend(origin.map(|origin| ("origin", origin)));
                let sent = site.http.send(Method::POST, path, &headers, Some(body.clone())).await;
                assert_eq!(sent.unwrap().code(), 403, "{path} from {origin:?}");
            }
            for wrong in [vec![], vec![("form_token", "")], vec![("form_token", "AAAA")]] {
                let mut other: Vec<_> = fields
                    .iter()
                    .copied()
                    .filter(|(name, _)| *name != "form_token")
                    .collect();
                other.extend(wrong);
                let sent = buyer.browser.browse(&buyer.session, path, Some(&other)).await;
                assert_eq!(sent.code(), 403, "{path}: {}", text(&sent));
            }
            // Without a session the way leads to signing in.
            let sent = buyer.browser.browse("", path, Some(fields)).await;
            assert!(place(&sent).starts_with("/signin"), "{path}");
            // A key of an agent is no session.
            let headers = [("content-type", FORM), ("origin", base), ("accept", "text/html")];
            let sent = buyer
                .agent
                .http
                .send(Method::POST, path, &headers, Some(body))
                .await
                .unwrap();
            // This client follows where it is led.
            assert!(text(&sent).contains("<title>Sign in"), "{path}: {}", text(&sent));
        }
        // What is somebody else's is not there.
        let other = &scene.seller;
        for path in [&row, &limits] {
            assert_eq!(other.open(path).await.code(), 404, "{path}");
        }
        for path in [&yes, &no, &limits] {
            assert_eq!(send(other, path, &[]).await.code(), 404, "{path}");
        }
        assert_eq!(buyer.open("/console/approvals/none").await.code(), 404);
        assert_eq!(scene.credits().await, json!(5_000_000), "nothing was bought");
        // The operations for programs read no cookie.
        let headers = [("cookie", cookie.as_str()), ("origin", base)];
        let buy = site
            .http
            .send(Method::POST, "/projects/tides/buy", &headers, Some(b"{}".to_vec()));
        assert_eq!(buy.await.unwrap().code(), 401);
        let receipt = place(&send(buyer, &yes, &[]).await);
        let path = receipt.replace("/console", "");
        let read = site.http.send(Method::GET, &path, &headers, None).await.unwrap();
        assert_eq!(read.code(), 401);
        for path in [receipt.clone(), format!("{receipt}/receipt.json")] {
            assert_eq!(other.open(&path).await.code(), 404, "{path}");
            let visitor = buyer.browser.browse("", &path, None).await;
            assert!(place(&visitor).starts_with("/signin"), "{path}");
        }
        scene.check();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_says_what_has_changed_and_a_yes_never_pays_more_than_it_shows() {
    on_each(async |url| {
        let scene = Scene::start(url.as_deref()).await;
        let buyer = &scene.buyer;
        scene.on_sale("tides").await;
        let priced = async |price: i64| scene.priced("tides", MicroUsdc(price)).await;
        // It rose after the page was opened.
        let form = fields(buyer, "/projects/tides/buy").await;
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        priced(600_000).await;
        let page = place(&send(buyer, "/console/buy", &form).await);
        assert_eq!(page, "/projects/tides/buy?version=1&was=0.50");
        let html = text(&buyer.open(&page).await.expect(200));
        assert!(
            html.contains("It costs $0.60 now.") && html.contains("It was $0.50"),
            "{html}"
        );
        // It rises after the question was asked: the yes asks again, once.
        let row = place(&ask(buyer, "/projects/tides/buy").await);
        priced(700_000).await;
        let html = text(&buyer.open(&row).await.expect(200));
        assert!(
            html.contains("It costs $0.70 now.") && html.contains("Buy for $0.60"),
            "{html}"
        );
        let later = place(&send(buyer, &format!("{row}/yes"), &[]).await);
        assert!(later.starts_with("/console/approvals/") && later != row, "{later}");
        assert_eq!(place(&send(buyer, &format!("{row}/yes"), &[]).await), row);
        let html = text(&buyer.open(&row).await.expect(200));
        assert!(html.contains("The price had risen.") && html.contains(&later), "{html}");
        // A cap below the price: nothing is bought, and the question waits on.
        limit(buyer, &[("per_day", "0.30")]).await;
        let html = text(&buyer.open(&later).await.expect(200));
        assert!(html.contains("may spend $0.30 more today"), "{html}");
        let html = text(&buyer.open("/projects/tides/buy").await.expect(200));
        assert!(html.contains("bob, may spend $0.30 more today</option>"), "{html}");
        assert_eq!(place(&send(buyer, &format!("{later}/yes"), &[]).await), later);
        assert_eq!(scene.credits().await, json!(5_000_000));
        // The cap is raised and the price falls: the lower one is paid.
        limit(buyer, &[("per_day", "0.40")]).await;
        priced(350_000).await;
        let html = text(&buyer.open(&later).await.expect(200));
        assert!(
            html.contains("Buy for $0.35") && html.contains("$0.40 left today, $0.05 after it"),
            "{html}"
        );
        let receipt = place(&send(buyer, &format!("{later}/yes"), &[]).await);
        assert!(receipt.starts_with("/console/receipts/"), "{receipt}");
        assert_eq!(scene.credits().await, json!(4_650_000));
        let html = text(&buyer.open("/console/money").await.expect(200));
        assert!(html.contains("$0.35 of $0.40") && html.contains(&receipt), "{html}");
        // The next version is a purchase of its own. A no ends its question, and leads back to it.
        contribute(&scene.seller.agent.http, "tides", &records("second", 2)).await;
        let row = place(&ask(buyer, "/projects/tides/buy?version=2").await);
        assert_eq!(place(&send(buyer, &format!("{row}/no"), &[]).await), row);
        let html = text(&buyer.open(&row).await.expect(200));
        assert!(
            html.contains("You did not buy version 2") && html.contains("Ask again"),
            "{html}"
        );
        assert_eq!(place(&send(buyer, &format!("{row}/yes"), &[]).await), row);
        assert_eq!(buyer.open("/projects/tides/buy?version=3").await.code(), 404);
        // What is not sold is said before and after the question.
        limit(buyer, &[]).await;
        let row = place(&ask(buyer, "/projects/tides/buy?version=2").await);
        priced(0).await;
        let html = text(&buyer.open(&row).await.expect(200));
        assert!(html.contains("It is not sold now."), "{html}");
        assert_eq!(place(&send(buyer, &format!("{row}/yes"), &[]).await), row);
        let html = text(&buyer.open(&row).await.expect(200));
        assert!(html.contains("It is not sold any more."), "{html}");
        let html = text(&buyer.open("/projects/tides/buy").await.expect(200));
        assert!(
            html.contains("It costs nothing") && !html.contains("/console/buy"),
            "{html}"
        );
        // One's own is not sold to oneself.
        let html = text(&scene.seller.open("/projects/tides/buy").await.expect(200));
        assert!(html.contains("It is yours."), "{html}");
        scene.check();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_forms_of_a_purchase_and_of_limits_are_refused_with_what_to_mend() {
    let scene = Scene::start(None).await;
    let buyer = &scene.buyer;
    scene.on_sale("tides").await;
    let form = fields(buyer, "/projects/tides/buy").await;
    let changed = |name: &'static str, value: &str| -> Vec<(&'static str, String)> {
        let mut changed = form.clone();
        for (field, old) in &mut changed {
            if *field == name {
                value.clone_into(old);
            }
        }
        changed
    };
    for (name, value, status) in [
        ("form", "7", 400),
        ("item", "tides", 400),
        ("item", "dataset:none", 404),
        ("item", "unit:7", 404),
        ("item", "unit:019a0000-0000-7000-8000-000000000000", 404),
        ("version", "0", 400),
        ("version", "one", 400),
        ("agent", "", 400),
        ("agent", "7", 404),
        ("agent", &scene.seller.agent.id, 404),
        ("price", "-1", 400),
        ("price", "0.501", 400),
        ("price", "1e3", 400),
    ] {
        let sent = changed(name, value);
        let sent: Vec<_> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = send(buyer, "/console/buy", &sent).await;
        assert_eq!(answer.code(), status, "{name}={value}: {}", text(&answer));
    }
    // A version that there is not: back to the page, where it is a 404.
    let sent = changed("version", "9");
    let sent: Vec<_> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(
        place(&send(buyer, "/console/buy", &sent).await),
        "/projects/tides/buy?version=9"
    );
    let path = format!("/console/agents/{}/limits", buyer.agent.id);
    for field in ["per_purchase", "per_day", "per_month", "approve_above"] {
        for bad in ["-1", "1,50", "1.001", "one", "1e3", "1000000000"] {
            let answer = send(
                buyer,
                &path,
                &[("per_day", "2.00"), (field, bad)][usize::from(field == "per_day")..],
            )
            .await;
            let html = text(&answer);
            assert_eq!(answer.code(), 400, "{field}={bad}: {html}");
            assert!(
                html.contains(&format!("id=\"{field}-error\"")) && html.contains(&format!("value=\"{bad}\"")),
                "{field}={bad}: {html}"
            );
        }
    }
    let html = text(&buyer.open(&path).await.expect(200));
    assert!(!html.contains("2.00"), "what was refused set nothing: {html}");
    // Zero is a limit, and an empty text is none.
    limit(buyer, &[("per_month", "$0"), ("approve_above", " 0.10 ")]).await;
    let html = text(&buyer.open(&path).await.expect(200));
    assert!(
        html.contains("value=\"0.00\"") && html.contains("value=\"0.10\""),
        "{html}"
    );
    let refused = buyer
        .agent
        .http
        .post("/projects/tides/buy", &json!({}))
        .await
        .expect(403);
    assert_eq!((refused.error(), refused.text("/period")), ("spend_cap", "month"));
    let html = text(&buyer.open("/console/agents").await.expect(200));
    assert!(html.contains("may not spend"), "{html}");
    limit(buyer, &[("per_month", ""), ("approve_above", "0")]).await;
    buyer
        .agent
        .http
        .post("/projects/tides/buy", &json!({}))
        .await
        .expect(202);
    scene.check();
}
