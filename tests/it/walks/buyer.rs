//! A buyer finds a dataset, pays for it and reads its rows.

use serde_json::json;
use tests::browser::{By, Look};

use super::click;
use crate::checkout::Scene;
use crate::console::{browser, judge_answer};
use crate::sql_page::window;

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_finds_a_dataset_pays_for_it_and_reads_its_rows() {
    let Some(browser) = browser("walk-buyer") else { return };
    let scene = Scene::start(None).await;
    scene.on_sale("tides").await;
    let base = scene.site.http.base().to_owned();
    let page = window(&scene.site, &browser.person(Look::default()), &scene.buyer);
    assert_eq!(page.goto(format!("{base}/")).status, 200);
    click(&page, By::Css("header a[href='/projects'] >> nth=0"), "the datasets");
    click(&page, By::Css("main a[href='/projects/tides'] >> nth=0"), "the dataset");
    assert!(!page.text().contains("wick"), "its rows are closed: {}", page.text());
    click(&page, By::Link("Buy with credits"), "the ways to pay");
    click(&page, By::Button("Go on"), "the question");
    assert_eq!(
        scene.credits().await,
        json!(5_000_000),
        "nothing is paid before the yes"
    );
    click(&page, By::Button("Buy for $0.50"), "the receipt");
    let receipt = page.url();
    click(&page, By::Link("Open it"), "the rows");
    assert!(page.text().contains("wick"), "{}", page.text());
    assert_eq!(scene.credits().await, json!(4_500_000));

    // What was spent is one line, which leads to the same receipt.
    click(&page, By::Css("a[href='/console'] >> nth=0"), "the overview");
    assert!(page.text().contains("$0.50 spent in 30 days"), "{}", page.text());
    click(&page, By::Css("nav a[href='/console/money']"), "the money");
    let text = page.text();
    assert_eq!(text.matches("\u{2212}0.500000").count(), 1, "{text}");
    assert!(
        !text.contains("\u{2212}0.120000"),
        "the parts of a purchase are no lines: {text}"
    );
    let again = page.submit(By::Css("#spending a[href^='/console/receipts/'] >> nth=0"));
    assert_eq!((again.status, again.url), (200, receipt));

    // What was bought stays at hand.
    assert_eq!(page.goto(format!("{base}/console/library")).status, 200);
    click(
        &page,
        By::Css("main a[href^='/projects/tides'] >> nth=0"),
        "what was bought",
    );

    // Credit is added in the page: a wallet, a code for a phone, or a sentence for an agent.
    assert_eq!(page.goto(format!("{base}/console/money")).status, 200);
    click(&page, By::Link("Add credit"), "credit by a wallet");
    page.see(By::Button("Pay $1.00"));
    page.goto(format!("{base}/console/money/add?packs=2&with=phone"));
    assert_eq!(page.count(By::Css(".qr svg path")), 1);
    page.see(By::Text("Waiting for a payment."));
    assert!(page.text().contains("/paid/credits?operator="), "{}", page.text());

    // The seller sees the sale: item, fee, share and where the money is.
    let seller = window(&scene.site, &browser.person(Look::default()), &scene.seller);
    assert_eq!(seller.goto(format!("{base}/console/money")).status, 200);
    let sold = seller.read(By::Css("#sales tbody tr >> nth=0"));
    for part in [
        "dataset, v1",
        "an account, with credit",
        "0.50",
        "0.12",
        "0.38",
        "on hold until",
    ] {
        assert!(sold.contains(part), "{part}: {sold}");
    }
    judge_answer(&seller, "the money of a seller");
    assert_eq!(seller.goto(format!("{base}/console/quota")).status, 200);
    judge_answer(&seller, "the quota of a seller");
    for page in [&page, &seller] {
        assert_eq!(page.complaints(), Vec::<String>::new());
    }
    scene.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_without_scripts_adds_credit_and_hides_the_first_steps() {
    let Some(browser) = browser("walk-buyer-plain") else {
        return;
    };
    let scene = Scene::start(None).await;
    let base = scene.site.http.base().to_owned();
    let plain = Look {
        scripts: false,
        ..Look::default()
    };
    let page = window(&scene.site, &browser.person(plain), &scene.buyer);
    assert_eq!(page.goto(format!("{base}/console/money/add")).status, 200);
    page.check(By::Css("input[value=phone]"));
    page.check(By::Css("input[name=packs][value='5']"));
    assert_eq!(page.submit(By::Button("Go on")).status, 200);
    assert_eq!(page.count(By::Css(".qr svg path")), 1);
    assert!(page.text().contains("Pay it 5 times for $5.00"), "{}", page.text());
    // Hidden once, the steps stay hidden.
    assert_eq!(page.goto(format!("{base}/console")).status, 200);
    page.see(By::Text("First steps"));
    assert_eq!(page.submit(By::Button("Hide these steps")).status, 200);
    assert_eq!(page.count(By::Text("First steps")), 0);
    assert_eq!(page.goto(format!("{base}/console")).status, 200);
    assert_eq!(page.count(By::Text("First steps")), 0);
}
