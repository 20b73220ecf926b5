//! Walk of an administrator: from the overview to an account that is found, suspended and restored, to invitations and to the
//! figures.
//!
//! Invariant: every step is a link or a button of the page before.

use std::time::Instant;

use serde_json::json;
use tests::browser::{By, Look};
use tests::server::{DEADLINE, POLL};
use tests::world::{contribute, project_body, records};

use super::follow;
use crate::accounts::Site;
use crate::console::{browser, judge_answer};
use crate::sql_page::{Asker, text, window};

const REASON: &str = "Fourteen write-ups of this account are copies of others.";

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_finds_suspends_restores_invites_and_sees_the_figures() {
    let Some(browser) = browser("administrator") else {
        return;
    };
    // Figures are counted as often as the end of a dispute window is looked for.
    let site = Site::start(None, |options| options.with("SLUICE__PAY__DISPUTE_WINDOW", "1s")).await;
    let spammer = Asker::new(&site, "post@prime-facts.example.org").await;
    let staff = Asker::new(&site, "ada@example.org").await;
    spammer
        .agent
        .http
        .post("/projects", &project_body("tides"))
        .await
        .expect(201);
    contribute(&spammer.agent.http, "tides", &records("wick", 3)).await;
    let options = site.server.options();
    options.admin(&["operator", "role", "ada@example.org", "administrator"]);

    let page = window(&site, &browser.person(Look::default()), &staff);
    page.goto(format!("{}/console/operators", site.http.base()));
    judge_answer(&page, "accounts");
    // By what a reporter tells: the beginning of the address.
    page.fill(By::Css("#oq"), "post@prime");
    follow(
        &page,
        By::Css("form[action='/console/operators'] button"),
        "the accounts that are found",
    );
    assert_eq!(page.count(By::Css("tbody tr")), 1);
    follow(&page, By::Css("tbody a"), "the account");
    assert!(page.text().contains("post@prime-facts.example.org"), "{}", page.text());
    judge_answer(&page, "an account that can be suspended");
    let account = page.url();

    // A wrong name suspends nobody, and what was typed stays.
    page.fill(By::Label("Reason"), REASON);
    page.fill(By::Css("#confirm"), "Somebody else");
    assert_eq!(page.submit(By::Button("Suspend the account")).status, 400);
    assert_eq!(page.evaluate("document.querySelector('#reason').value"), json!(REASON));
    judge_answer(&page, "a suspension with an error");
    let name = page.read(By::Css("h1"));
    page.fill(By::Css("#confirm"), name.trim());
    follow(&page, By::Button("Suspend the account"), "the suspension");
    assert_eq!(page.url(), account);
    page.see(By::Text("Restore the account"));
    assert_eq!(spammer.agent.http.get("/points").await.code(), 401);
    let shown = options.admin(&["operator", "show", "post@prime-facts.example.org"]);
    assert_eq!(shown["suspendedFor"], REASON);
    let found = options.admin(&["operator", "find", "POST@"]);
    assert_eq!(found["items"][0]["operatorId"], shown["operatorId"]);
    let listed = options.admin(&["operator", "list"]);
    let accounts = listed["total"].as_u64().unwrap();
    assert!(accounts >= 2, "{listed}");

    page.fill(By::Label("Reason"), "The account took the copies back and wrote to us.");
    page.fill(By::Css("#confirm"), name.trim());
    follow(&page, By::Button("Restore the account"), "the end of the suspension");
    spammer.agent.http.soon("/points", 200).await;

    // Invitations: one is made, and taken back.
    follow(&page, By::Css(".crumb a"), "accounts again");
    follow(&page, By::Css(".page-h a[href='/console/invitations']"), "invitations");
    page.fill(By::Label("E-mail address"), "noor@delta.example.org");
    follow(&page, By::Button("Invite"), "an invitation");
    assert!(page.text().contains("noor@delta.example.org"), "{}", page.text());
    judge_answer(&page, "invitations");
    assert_eq!(options.admin(&["invitations", "list"])["total"], 1);
    follow(
        &page,
        By::Css("form[action$='/withdraw'] button"),
        "the invitation taken back",
    );
    assert_eq!(options.admin(&["invitations", "list"])["total"], 0);

    // Figures, once they are counted.
    let is_counted = async || {
        let figures = text(&staff.open("/console/figures").await.expect(200));
        figures.contains(&format!(">{accounts} new in 7 days<"))
    };
    let deadline = Instant::now() + DEADLINE;
    while !is_counted().await {
        assert!(Instant::now() < deadline, "the figures are not counted");
        tokio::time::sleep(POLL).await;
    }
    follow(&page, By::Css(".crumb a"), "accounts once more");
    follow(&page, By::Css(".page-h a[href='/console/figures']"), "figures");
    let shown = page.text();
    assert!(
        shown.contains(&format!("{accounts} new in 7 days")) && shown.contains("None. A job whose last try failed"),
        "{shown}"
    );
    judge_answer(&page, "figures");
    assert_eq!(page.complaints(), Vec::<String>::new());
    options.assert_consistent();
}
