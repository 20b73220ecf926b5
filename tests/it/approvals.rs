//! Purchases of agents within caps, and those that wait for a person, through the doors of the service and its deaths.
//!
//! Invariant: a person acts on the page, with a session; `sluice check` proves the counters, the sales and the yes of each.

use futures_util::future::join_all;
use serde_json::{Value, json};
use store::{ApprovalState, SpendLimits, SpendOwner};
use tests::apps::{App, hidden};
use tests::world::{Agent, Operator, contribute, merged, project_body, records};
use tests::{Answer, Http, Options};
use types::OperatorId;
use types::fault::APPROVAL_POINTS;
use types::money::MicroUsdc;

use crate::accounts::{Site, now, on_each};
use crate::configured;

/// Price of each dataset, in micro-USDC.
const PRICE: i64 = 100_000;
/// Rounds of kills at each point.
const ROUNDS: u64 = 4;

/// A service with a seller, and a buyer whose person is signed in.
struct Scene {
    site: Site,
    seller: Agent,
    buyer: OperatorId,
    session: String,
    agent: Agent,
}

impl Scene {
    async fn start(url: Option<&str>) -> Self {
        // Each kill takes a dataset of its own, and its address makes all calls.
        let more = |options: Options| {
            options
                .with("SLUICE__LIMITS__ACTIVE_PROJECTS_PER_OPERATOR", "1000")
                .with("SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE", "100000")
        };
        let site = Site::start(url, more).await;
        let owner = site.operator("seller@example.org").await;
        let owner = Operator {
            id: owner.to_string(),
            token: site.token(owner).await,
        };
        let seller = Agent::create(&site.http, &owner, "seller").await;
        let (buyer, session) = site.signed_in("buyer@example.org").await;
        let person = Operator {
            id: buyer.to_string(),
            token: site.token(buyer).await,
        };
        let agent = Agent::create(&site.http, &person, "shopper").await;
        site.grant(buyer, "10000");
        Self {
            site,
            seller,
            buyer,
            session,
            agent,
        }
    }

    async fn limit(&self, limits: SpendLimits) {
        let owner = SpendOwner::Agent(self.agent.id.parse().unwrap());
        let money = self.site.store.money();
        assert!(money.limits_set(self.buyer, owner, limits, now()).await.unwrap());
    }

    /// Puts a dataset on sale and returns its slug.
    async fn on_sale(&self, slug: String) -> String {
        let body = merged(project_body(&slug), json!({"access": "paid", "price": "0.10"}));
        let seller = self.seller.at(&self.site.http).http;
        seller.post("/projects", &body).await.expect(201);
        contribute(&seller, &slug, &records("a", 3)).await;
        slug
    }

    fn http(&self) -> Http {
        self.agent.at(&self.site.http).http
    }

    async fn buy(&self, slug: &str) -> Answer {
        self.http().post(&format!("/projects/{slug}/buy"), &json!({})).await
    }

    /// Buys by the tool, and returns what it answers.
    async fn buy_by_tool(&self, slug: &str) -> Value {
        let params = json!({"name": "buy_dataset", "arguments": {"slug": slug}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.http().post("/mcp", &message).await.expect(200);
        answer.body["result"]["structuredContent"].clone()
    }

    /// Sends the person's yes, which the service may die of.
    async fn yes(&self, id: &str) -> Option<Answer> {
        let browser = App::known(self.site.http.base(), "none");
        let path = format!("/console/approvals/{id}");
        let page = browser.browse(&self.session, &path, None).await.expect(200);
        let token = hidden(&String::from_utf8(page.bytes).unwrap(), "form_token");
        let fields = [("form_token", token.as_str())];
        let path = format!("{path}/yes");
        let sent = browser.try_browse(self.site.http.base(), &self.session, &path, Some(&fields));
        match sent.await {
            Ok(sent) => Some(Answer::of(sent).await.unwrap()),
            Err(_) => None,
        }
    }

    async fn state(&self, id: &str) -> ApprovalState {
        let money = self.site.store.money();
        let row = money.approval(self.buyer, id.parse().unwrap(), now()).await.unwrap();
        row.unwrap().state
    }

    async fn again_with(self, point: &'static str) -> Self {
        let site = self
            .site
            .restart(|options| options.with("SLUICE_FAULT_POINT", point))
            .await;
        Self { site, ..self }
    }
}

/// A service that is killed when a purchase begins to wait, within a yes and right after it: the row waits and nothing moved,
/// or it is bought with its one sale. A repeat ends the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_that_is_killed_at_any_step_buys_once_or_waits() {
    on_each(async |url| {
        let mut scene = Scene::start(url.as_deref()).await;
        scene
            .limit(SpendLimits {
                approve_above: Some(MicroUsdc(0)),
                ..SpendLimits::default()
            })
            .await;
        let mut sold = 0;
        for round in 0..configured("SLUICE_TEST_APPROVAL_ROUNDS", ROUNDS) {
            for point in APPROVAL_POINTS {
                let slug = scene.on_sale(format!("item-{round}-{}", point.replace('.', "-"))).await;
                let id;
                if point == "approval.asked" {
                    scene = scene.again_with(point).await;
                    let path = format!("/projects/{slug}/buy");
                    let headers = [("content-type", "application/json")];
                    let cut = scene
                        .http()
                        .send(reqwest::Method::POST, &path, &headers, Some(b"{}".to_vec()))
                        .await;
                    assert!(cut.is_err(), "{point} was not passed: {cut:?}");
                    scene.site = scene.site.start_again().await;
                    let asked = scene.buy(&slug).await.expect(202);
                    id = asked.text("/approval/id").to_owned();
                } else {
                    let asked = scene.buy(&slug).await.expect(202);
                    id = asked.text("/approval/id").to_owned();
                    scene = scene.again_with(point).await;
                    assert!(scene.yes(&id).await.is_none(), "{point} was not passed");
                    scene.site = scene.site.start_again().await;
                    let left = if point == "approval.rows" {
                        ApprovalState::Waiting
                    } else {
                        ApprovalState::Bought
                    };
                    assert_eq!(scene.state(&id).await, left, "{point}");
                }
                let money = scene.site.store.money();
                let waiting = money.approvals_waiting(scene.buyer, 99, now()).await;
                let waiting: Vec<_> = waiting.unwrap().into_iter().map(|row| row.id.to_string()).collect();
                let expected = if scene.state(&id).await == ApprovalState::Waiting {
                    vec![id.clone()]
                } else {
                    vec![]
                };
                assert_eq!(waiting, expected, "{point}: one row, if any");

                // The person presses the button again, twice, and the agent asks what became of it.
                let pages = [scene.yes(&id).await.unwrap(), scene.yes(&id).await.unwrap()];
                let places: Vec<_> = pages.iter().map(|page| page.header("location")).collect();
                assert!(
                    places[0].contains("/console/receipts/") && places[0] == places[1],
                    "{places:?}"
                );
                let completed = if round % 2 == 0 {
                    scene.buy(&slug).await.expect(200).body
                } else {
                    scene.buy_by_tool(&slug).await
                };
                assert_eq!(
                    (&completed["charged"], &completed["approval"]["status"]),
                    (&json!(false), &json!("bought")),
                    "{point}"
                );
                sold += 1;
                let credits = scene.http().get("/credits").await.expect(200).body;
                assert_eq!(
                    credits["boughtMicro"],
                    json!(100_000_000 - sold * PRICE),
                    "{point}: one sale each"
                );
                assert_eq!(
                    credits["limits"]["agent"]["month"]["usedMicro"],
                    json!(sold * PRICE),
                    "{point}"
                );
            }
        }
        scene.site.server.options().assert_consistent();
    })
    .await;
}

/// 64 calls at once, through the doors: those that fit the cap of the day buy, the others are refused and leave nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_once_never_pass_a_cap() {
    on_each(async |url| {
        let scene = Scene::start(url.as_deref()).await;
        scene
            .limit(SpendLimits {
                per_day: Some(MicroUsdc(10 * PRICE)),
                ..SpendLimits::default()
            })
            .await;
        let mut slugs = Vec::new();
        for number in 0..16 {
            slugs.push(scene.on_sale(format!("item-{number}")).await);
        }
        // Each item four times, so that some calls find what another has bought.
        let calls = slugs.iter().cycle().take(64).map(|slug| scene.buy(slug));
        let answers = join_all(calls).await;
        let charged = answers
            .iter()
            .filter(|answer| answer.code() == 200 && answer.body["charged"] == json!(true));
        assert_eq!(charged.count(), 10);
        for answer in answers.iter().filter(|answer| answer.code() != 200) {
            assert_eq!((answer.code(), answer.error()), (403, "spend_cap"), "{}", answer.body);
        }
        let credits = scene.http().get("/credits").await.expect(200).body;
        assert_eq!(credits["boughtMicro"], json!(100_000_000 - 10 * PRICE));
        assert_eq!(credits["limits"]["agent"]["day"]["usedMicro"], json!(10 * PRICE));
        scene.site.server.options().assert_consistent();
    })
    .await;
}
