//! A reader finds a unit, buys it and reads its text.

use reqwest::Method;
use serde_json::json;
use tests::Options;
use tests::browser::{By, Look, Page};

use super::click;
use crate::accounts::Site;
use crate::console::{browser, judge_answer};
use crate::moderation::published;
use crate::sql_page::{Asker, window};

/// Words of the text that no beginning has.
const HIDDEN: &str = "KELVIN SIGN";

fn open(page: &Page, site: &Site, path: &str) {
    let visit = page.goto(format!("{}{path}", site.http.base()));
    assert_eq!(visit.status, 200, "{path}");
}

#[track_caller]
fn shows(page: &Page, parts: &[&str]) {
    let text = page.text();
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_finds_a_unit_buys_it_reads_it_and_says_if_it_is_true() {
    let Some(browser) = browser("walk-reader") else { return };
    let site = Site::start(None, |options: Options| options).await;
    let seller = Asker::new(&site, "ada@example.org").await;
    let reader = Asker::new(&site, "bob@example.org").await;
    site.grant(reader.operator, "500");
    let unit = published(&seller.agent.http).await;
    let is_found = |answer: &tests::Answer| answer.body["items"][0]["id"] == unit.as_str();
    site.http.comes_to_show("/search?q=case+mappings", is_found).await;
    let page = window(&site, &browser.person(Look::default()), &reader);
    // It is found, and what it is worth is in the open.
    open(&page, &site, "/find?q=case+mappings");
    let title = By::Link("Simple case mappings of Unicode 15.0 that do not come back");
    click(&page, title, "a unit that is closed");
    shows(
        &page,
        &[
            "Folding identifiers",
            "more characters",
            "Where it comes from",
            "Counted in UnicodeData.txt",
            "How it was reviewed",
            "Repeatable",
        ],
    );
    assert!(!page.text().contains(HIDDEN), "{}", page.text());
    // It is bought, and opens.
    click(&page, By::Link("Read it for $0.25"), "ways to pay");
    click(&page, By::Button("Go on"), "the question");
    click(&page, By::Button("Buy for $0.25"), "the receipt");
    click(&page, By::Link("Open it"), "a unit that is bought");
    shows(&page, &["Yours.", HIDDEN]);
    // The reader says what it found, and comes back to a form with what was typed if it is wrong.
    page.check(By::Label("Still true"));
    page.fill(By::Label("What you ran, with versions and figures"), "Twice.");
    assert_eq!(page.submit(By::Button("Say what you found")).status, 400);
    judge_answer(&page, "words that are too short");
    page.fill(
        By::Label("What you ran, with versions and figures"),
        "The query over the dataset, twice: 10 and 27.",
    );
    click(&page, By::Button("Say what you found"), "a unit that is confirmed");
    shows(
        &page,
        &["Said by your agent.", "still true", "does not count", "10 and 27"],
    );
    page.click(By::Css("details:has(form[action$='/rate']) summary"));
    page.check(By::Css("input[name=rating][value='5']"));
    page.fill(
        By::Label("Why, for other readers"),
        "Repeated <img src=x onerror=alert(1)>.",
    );
    click(&page, By::Css("form[action$='/rate'] button"), "a unit that is rated");
    shows(&page, &["5.0", "Repeated <img src=x onerror=alert(1)>."]);
    // It is in the library, with its receipt.
    open(&page, &site, "/console/library");
    judge_answer(&page, "the library");
    shows(&page, &["Bought, 1 of 1", HIDDEN]);
    page.fill(By::Css("#lq"), "no such words");
    click(&page, By::Button("Show"), "a library without matches");
    shows(&page, &["Nothing like this in the library"]);
    open(&page, &site, "/console/library?q=kelvin");
    let receipt = page.submit(By::Css("article .row a[href^='/console/receipts/']"));
    assert_eq!(receipt.status, 200, "{}", receipt.url);
    shows(&page, &["Receipt for the write-up", "receipt.json"]);
    assert_eq!(page.complaints(), Vec::<String>::new());
    // Another one reads for nothing and without scripts what has no price of its own any more.
    let free = format!("/knowledge/{unit}/price");
    let body = json!({"price": null}).to_string().into_bytes();
    let headers = [("content-type", "application/json")];
    let priced = seller.agent.http.send(Method::PUT, &free, &headers, Some(body)).await;
    priced.unwrap().expect(200);
    let other = Asker::new(&site, "cyd@example.org").await;
    let look = Look {
        width: 390,
        dark: true,
        scripts: false,
    };
    let page = window(&site, &browser.person(look), &other);
    open(&page, &site, &format!("/units/{unit}"));
    assert!(!page.text().contains(HIDDEN), "{}", page.text());
    let read = page.submit(By::Button("Read it"));
    assert_eq!(read.status, 200, "{}", read.url);
    shows(&page, &["Read by your agent", HIDDEN]);
    open(&page, &site, "/console/library");
    shows(&page, &["Free and read, 1 of 1", HIDDEN]);
    site.server.options().assert_consistent();
}
