//! Disputes from outside: opened once however often and at once it is asked for, kept through a kill, told to both sides, and
//! decided by an administrator only.
//!
//! Invariant: `sluice check` proves what each test leaves behind.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::letters::letters_to;
use tests::world::{contribute, merged, project_body, records};
use tests::{Answer, Server};

use crate::accounts::{Site, on_each};
use crate::sql_page::{Asker, text};

/// Address of the administrator.
const ADMINISTRATOR: &str = "harbour@example.org";
/// What the buyer says, which no page may take for markup.
const REASON: &str = "Half of the <script>alert(1)</script> rows are made up.";

/// A service with a seller and a buyer who has bought a version of a dataset.
pub(crate) struct Market {
    pub(crate) site: Site,
    pub(crate) seller: Asker,
    pub(crate) buyer: Asker,
    /// The administrator, who has the address that letters go to, too.
    administrator: Asker,
    pub(crate) sale: String,
}

impl Market {
    pub(crate) async fn start(url: Option<&str>) -> Self {
        let site = Site::start(url, |options| {
            options.with("SLUICE__MAIL__ADMINISTRATOR", ADMINISTRATOR)
        })
        .await;
        let seller = Asker::new(&site, "ada@example.org").await;
        let buyer = Asker::new(&site, "bob@example.org").await;
        let administrator = Asker::new(&site, ADMINISTRATOR).await;
        site.server
            .options()
            .admin(&["operator", "role", ADMINISTRATOR, "administrator"]);
        site.grant(buyer.operator, "200");
        let body = merged(
            project_body("tides"),
            json!({"title": "Levels of Ostend", "access": "paid", "price": "0.50"}),
        );
        seller.agent.http.post("/projects", &body).await.expect(201);
        contribute(&seller.agent.http, "tides", &records("wick", 3)).await;
        let bought = buyer
            .agent
            .http
            .post("/projects/tides/buy", &json!({}))
            .await
            .expect(200);
        Self {
            sale: bought.text("/saleId").to_owned(),
            site,
            seller,
            buyer,
            administrator,
        }
    }

    async fn open(&self) -> Answer {
        let body = json!({"saleId": self.sale, "reason": REASON});
        self.buyer.agent.http.post("/disputes", &body).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispute_is_opened_once_and_survives_a_kill() {
    on_each(async |url| {
        let market = Market::start(url.as_deref()).await;
        let opened = join_all((0..8).map(|_| market.open())).await;
        let created = opened.iter().filter(|answer| answer.code() == 201).count();
        assert_eq!(created, 1, "{opened:?}");
        let ids: Vec<&str> = opened.iter().map(|answer| answer.text("/id")).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let id = ids[0].to_owned();
        // Acknowledged, and the process dies at once.
        let Market {
            site, buyer, seller, ..
        } = market;
        let options = site.server.options().clone();
        let store = site.store.clone();
        site.server.kill();
        let server = Server::start(&options).await;
        let path = format!("/disputes/{id}");
        let found = buyer.agent.at(&server.http()).http.get(&path).await.expect(200);
        assert_eq!((found.text("/state"), found.text("/reason")), ("open", REASON));
        let earnings = seller.agent.at(&server.http()).http.get("/earnings").await.expect(200);
        assert_eq!(earnings.body["disputed"]["totalMicro"], json!(380_000));
        let found = store.money().disputes_to_decide(9).await.unwrap();
        assert_eq!(found.len(), 1);
        options.assert_consistent();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_are_told_and_an_administrator_decides() {
    let market = Market::start(None).await;
    let id = market.open().await.expect(201).text("/id").to_owned();
    let mail = market.site.mail();
    // A letter leads to the page and has no word of the buyer.
    let of_dispute = async |to: &str, count: usize| {
        let letters = letters_to(&mail, to, count).await;
        let found = letters.into_iter().filter(|letter| letter.text.contains(&id));
        found.collect::<Vec<_>>()
    };
    // The first letter of an account is that of the sign-up.
    let asked = &of_dispute("ada@example.org", 2).await[0];
    assert!(
        asked.subject.contains("disputes a sale") && asked.text.contains("until"),
        "{asked:?}"
    );
    assert!(
        !asked.text.contains("made up") && !asked.text.contains("Ostend"),
        "{asked:?}"
    );
    assert_eq!(of_dispute(ADMINISTRATOR, 2).await.len(), 1);

    let (seller, buyer) = (&market.seller, &market.buyer);
    let path = format!("/disputes/{id}");
    let words = json!({"answer": "The readme says which rows are estimates."});
    seller
        .agent
        .http
        .post(&format!("{path}/answer"), &words)
        .await
        .expect(200);
    assert_eq!(of_dispute("bob@example.org", 2).await.len(), 1);
    // No operation of either side decides.
    let page = format!("/console/disputes/{id}");
    for person in [seller, buyer] {
        assert_eq!(person.open(&format!("{page}/decide")).await.code(), 404);
        let shown = text(&person.open(&page).await.expect(200));
        assert!(
            shown.contains("&#60;script&#62;alert(1)") && !shown.contains("<script>alert"),
            "{shown}"
        );
        assert!(shown.contains("which rows are estimates"), "{shown}");
    }
    let administrator = &market.administrator;
    let list = text(&administrator.open("/console/disputes").await.expect(200));
    assert!(list.contains("To decide") && list.contains(&page), "{list}");
    let token = administrator.token().await;
    let decide = async |fields: &[(&str, &str)]| {
        let mut all = vec![("form_token", token.as_str())];
        all.extend(fields);
        let place = format!("{page}/decide");
        administrator
            .browser
            .browse(&administrator.session, &place, Some(&all))
            .await
    };
    // A decision has an end and words, and what was typed comes back.
    let refused = decide(&[("words", "The rows are as the readme says.")]).await;
    assert!(refused.code() == 400 && text(&refused).contains("The rows are as the readme says."));
    assert_eq!(decide(&[("end", "release"), ("words", "")]).await.code(), 400);
    for _ in 0..2 {
        let decided = decide(&[("end", "release"), ("words", "The rows are as the readme says.")]).await;
        assert_eq!((decided.code(), decided.header("location")), (303, page.as_str()));
    }
    let turned = decide(&[("end", "refund"), ("words", "On a second thought.")]).await;
    assert_eq!(turned.code(), 400, "{}", text(&turned));
    let seen = buyer.agent.http.get(&path).await.expect(200);
    assert_eq!(
        (&seen.body["state"], &seen.body["decidedBy"], &seen.body["decision"]),
        (
            &json!("released"),
            &json!("admin"),
            &json!("The rows are as the readme says.")
        )
    );
    assert_eq!(of_dispute("bob@example.org", 3).await.len(), 2);
    assert_eq!(of_dispute("ada@example.org", 3).await.len(), 2);
    // The command line lists what was said.
    let options = market.site.server.options();
    let listed: Value = options.admin(&["disputes", "list"]);
    let row = &listed["items"][0];
    assert_eq!((&row["reply"], &row["resolvedBy"]), (&words["answer"], &json!("admin")));
    let earnings = seller.agent.http.get("/earnings").await.expect(200);
    assert_eq!(
        (
            &earnings.body["onHold"]["totalMicro"],
            &earnings.body["disputed"]["totalMicro"]
        ),
        (&json!(380_000), &json!(0))
    );
    options.assert_consistent();
}
