//! The owner of a CSV publishes it, changes it and sees who buys it.
//!
//! Invariant: the person types no address of a page, and knows no key.

use serde_json::json;
use tests::browser::{By, Look, Page};
use tests::world::{Agent, Operator};

use super::click;
use crate::console::{Site, browser, judge_answer};
use crate::publish::agree;

const GAUGES: &str = "Gauge;Read at;Metres\nWick;2026-11-23T10:00:00Z;1.25\nDen Helder;2026-11-23T10:00:00Z;-0.5\n\
                      Aberdeen;2026-11-23T10:10:00Z;0.75\n";

/// Publishes the file for everybody who pays.
fn publish(page: &Page, site: &Site) {
    let file = site.folder.path().join("gauges.csv");
    std::fs::write(&file, GAUGES).unwrap();
    page.drop_file(By::Css("#drop"), &file);
    page.see(By::Css("#go:enabled"));
    page.check(By::Css("input[name=readers][value=paid]"));
    page.fill(By::Label("Price of a version"), "0.50");
    page.press("Tab");
    page.see(By::Css("#go:enabled"));
    page.click(By::Css("#go"));
    page.arrive(site.url("/console/datasets/gauges"));
    judge_answer(page, "the page of an own dataset");
}

/// Changes title and price by the form, in two windows.
fn edit(page: &Page, other: &Page, site: &Site) {
    other.goto(page.url());
    page.fill(By::Css("#title"), "Water levels <b>of three gauges</b>");
    page.fill(By::Css("#price"), "fifty");
    assert_eq!(page.submit(By::Button("Save changes")).status, 400);
    judge_answer(page, "a price that is none");
    assert_eq!(
        page.attribute(By::Css("#title"), "value").as_deref(),
        Some("Water levels <b>of three gauges</b>")
    );
    page.fill(By::Css("#price"), "0.75");
    click(page, By::Button("Save changes"), "a dataset that was changed");
    page.see(By::Text("Saved."));
    // What the other window still shows is not written over that.
    other.fill(By::Css("#title"), "Water levels, old window");
    assert_eq!(other.submit(By::Button("Save changes")).status, 400);
    judge_answer(other, "a dataset that another window changed");
    other.see(By::Text("It was changed in another window"));
    assert!(
        other.text().contains("Water levels <b>of three gauges</b>"),
        "{}",
        other.text()
    );
    page.goto(site.url("/console/datasets/gauges"));
    click(page, By::Link("Public page"), "the public page of an own dataset");
    let text = page.text();
    assert!(
        text.contains("Water levels <b>of three gauges</b>") && text.contains("0.75"),
        "{text}"
    );
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_a_csv_publishes_changes_and_sells_it() {
    let Some(browser) = browser("csv-owner") else { return };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    publish(&page, &site);
    let other = person.page();
    edit(&page, &other, &site);

    // Somebody else buys it.
    let options = site.options();
    let buyer = Operator::create(options, "buyer");
    let agent = Agent::create(&site.http, &buyer, "buyer").await;
    options.admin(&["credits", "grant", &buyer.id, "--cents", "500"]);
    let bought = agent.http.post("/projects/gauges/buy", &json!({})).await.expect(200);
    assert_eq!(bought.body["priceMicro"], json!(750_000));

    page.goto(site.url("/console"));
    click(&page, By::Css(".rail a[href='/console/datasets']"), "the own datasets");
    click(
        &page,
        By::Css("a[href='/console/datasets/gauges']"),
        "the own dataset, sold once",
    );
    let text = page.text();
    for words in ["an account, with credit", "$0.75", "on hold until", "1 in 30 days"] {
        assert!(text.contains(words), "{words}: {text}");
    }

    // The account: a name of its own, and a copy of all of it.
    click(&page, By::Css(".rail a[href='/console/settings']"), "the settings");
    page.fill(By::Label("Name that others see"), "Harbour <i>Lab</i>");
    click(&page, By::Button("Save name"), "the settings with a new name");
    page.see(By::Text("The name is saved."));
    let saved = page.download(By::Link("Save a copy as JSON"));
    let copy: serde_json::Value = serde_json::from_slice(&saved.bytes).unwrap();
    assert_eq!(copy["account"]["displayName"], json!("Harbour <i>Lab</i>"));
    assert_eq!(copy["sales"].as_array().unwrap().len(), 1);
    // Closing is asked about first, and nothing of it happens by that.
    click(
        &page,
        By::Css("a[href='/console/settings/close']"),
        "the question before an account is closed",
    );
    assert!(page.text().contains("What stays"), "{}", page.text());

    // The session ends while a long text is typed, and nothing of it is lost.
    page.goto(site.url("/console/datasets/gauges"));
    page.fill(
        By::Css("#readme"),
        "Read every ten minutes at three gauges, and typed for an hour.",
    );
    other.goto(site.url("/console"));
    other.submit(By::Button("Sign out"));
    assert_eq!(page.submit(By::Button("Save changes")).status, 400);
    judge_answer(&page, "a form of somebody who was signed out");
    assert!(page.text().contains("typed for an hour"), "{}", page.text());
    site.sign_in(&other, 2).await;
    assert_eq!(page.submit(By::Button("Save changes")).status, 400);
    click(
        &page,
        By::Button("Save changes"),
        "a dataset that was changed after a new sign-in",
    );
    assert!(page.text().contains("Saved."), "{}", page.text());
    options.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_changes_a_dataset_without_scripts() {
    let Some(browser) = browser("csv-owner-plain") else {
        return;
    };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    publish(&page, &site);
    let cookies = person.cookies();
    let plain = browser.person(Look {
        scripts: false,
        ..Look::default()
    });
    let session = cookies.iter().find(|cookie| cookie.name == "__Host-sluice").unwrap();
    plain.put_cookie(
        &site.url("/").replace("http:", "https:"),
        "__Host-sluice",
        &session.value,
    );
    let page = plain.page();
    page.goto(site.url("/console/datasets/gauges"));
    page.fill(By::Css("#title"), "Water levels of three gauges");
    page.check(By::Css("input[name=status][value=paused]"));
    assert_eq!(page.submit(By::Button("Save changes")).status, 200);
    assert_eq!(
        page.attribute(By::Css("#title"), "value").as_deref(),
        Some("Water levels of three gauges")
    );
    assert_eq!(page.count(By::Css("input[name=status][value=paused]:checked")), 1);
    page.submit(By::Link("Archive …"));
    page.submit(By::Button("Archive it for good"));
    assert!(page.text().contains("It is archived"), "{}", page.text());
}
