//! An operator follows a dispute from the letter to its end, and reads what the public sees of it.
//!
//! Invariant: the walk leaves the site once, for the letter.

use tests::browser::{By, Look, Page};
use tests::letters::letters_to;

use super::click;
use crate::console::{browser, judge_answer};
use crate::disputes::Market;
use crate::sql_page::window;

/// Opens a page, which must be there.
fn open(page: &Page, market: &Market, path: &str) {
    let visit = page.goto(format!("{}{path}", market.site.http.base()));
    assert_eq!(visit.status, 200, "{path}");
    judge_answer(page, path);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_answers_a_dispute_and_gives_the_price_back() {
    let Some(browser) = browser("operator") else { return };
    let market = Market::start(None).await;
    // The buyer, on the receipt.
    let buyer = window(&market.site, &browser.person(Look::default()), &market.buyer);
    open(&buyer, &market, &format!("/console/receipts/{}", market.sale));
    click(&buyer, By::Link("Open a dispute"), "the form of a dispute");
    buyer.fill(By::Label("What is wrong with it"), "no");
    assert_eq!(buyer.submit(By::Button("Open the dispute")).status, 400);
    judge_answer(&buyer, "a dispute without words");
    assert_eq!(buyer.evaluate("document.getElementById('reason').value"), "no");
    let words = "Half of the <b>rows</b> are made up.";
    buyer.fill(By::Label("What is wrong with it"), words);
    click(&buyer, By::Button("Open the dispute"), "a dispute of the buyer");
    assert!(buyer.text().contains(words), "{}", buyer.text());
    // The way back and once more: it is the same dispute.
    let dispute = buyer.url();
    open(&buyer, &market, &format!("/console/sales/{}/dispute", market.sale));
    assert_eq!(buyer.url(), dispute);

    // The seller, from the letter. It works without scripts.
    let letters = letters_to(&market.site.mail(), "ada@example.org", 2).await;
    let letter = letters
        .iter()
        .find(|letter| letter.text.contains("/console/disputes/"))
        .unwrap();
    let (_, rest) = letter.text.split_once("/console/disputes/").unwrap();
    let path = format!("/console/disputes/{}", rest.split_whitespace().next().unwrap());
    let look = Look {
        scripts: false,
        ..Look::default()
    };
    let seller = window(&market.site, &browser.person(look), &market.seller);
    let go = |path: &str| {
        let visit = seller.goto(format!("{}{path}", market.site.http.base()));
        assert_eq!(visit.status, 200, "{path}");
    };
    go("/console");
    assert!(seller.text().contains("A buyer disputes"), "{}", seller.text());
    go(&path);
    assert!(seller.text().contains(words), "{}", seller.text());
    seller.fill(
        By::Label("Say what is right or wrong with the claim"),
        "The readme says which rows.",
    );
    assert_eq!(seller.submit(By::Button("Send the answer")).status, 200);
    assert_eq!(seller.url(), format!("{}{path}", market.site.http.base()));
    assert!(seller.text().contains("waits for a decision"), "{}", seller.text());
    // It is shown, then confirmed.
    assert_eq!(seller.submit(By::Link("give the $0.50 back")).status, 200);
    assert!(seller.text().contains("cannot be undone"), "{}", seller.text());
    assert_eq!(seller.submit(By::Button("Give $0.50 back")).status, 200);
    assert!(seller.text().contains("given back to the buyer"), "{}", seller.text());

    // The buyer sees it, and what the public sees of the seller.
    open(&buyer, &market, "/console/disputes");
    assert!(buyer.text().contains("given back to you"), "{}", buyer.text());
    open(&buyer, &market, "/projects/tides");
    click(
        &buyer,
        By::Css(".dhead a[href^='/operators/']"),
        "the account of the seller",
    );
    assert!(buyer.text().contains("1 of 1"), "{}", buyer.text());
    click(&buyer, By::Css("a[href='/agents/ada']"), "the agent of the seller");
    assert_eq!(
        buyer.read(By::Css(".figs dd >> nth=0")),
        "3",
        "rows that the agent gave"
    );
    click(&buyer, By::Css("[aria-labelledby=h-i] a"), "the dataset of the agent");
    assert!(buyer.url().ends_with("/projects/tides"), "{}", buyer.url());
    market.site.server.options().assert_consistent();
}
