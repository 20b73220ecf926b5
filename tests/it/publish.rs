//! A file becomes a dataset in a real browser: dropped, looked at, published; gone on with in another tab; and without
//! scripts.
//!
//! Invariant: no schema is typed. What the page shows is judged by axe-core in both themes and two widths.

use serde_json::json;
use tests::browser::{By, Look, Page};
use tests::world::project_body;

use crate::console::{Site, browser, judge_answer, secret};

/// A spreadsheet export: semicolons, decimal commas, days as people write them, a code with leading zeros.
const STATIONS: &str = "Station ID;Opened;Elevation (m);Name\n\
                        0017;01.05.1864;9,5;Hoek van Holland\n\
                        0018;13.01.1865;120,25;Den Helder\n\
                        0019;28.02.1901;-3,75;Zoutkamp\n";

/// Agrees that the console acts as a new agent.
fn agree(page: &Page, site: &Site, name: &str) {
    page.goto(site.url("/console/datasets"));
    page.submit(By::Link("New dataset"));
    judge_answer(page, "the question who publishes");
    page.fill(By::Label("Name of the new agent"), name);
    // Nothing happens without the tick.
    assert_eq!(
        page.submit(By::Css("form[action='/console/publish/connect'] button"))
            .status,
        400
    );
    assert_eq!(
        page.attribute(By::Label("Name of the new agent"), "value").as_deref(),
        Some(name)
    );
    page.check(By::Css("#agreed input"));
    page.submit(By::Css("form[action='/console/publish/connect'] button"));
    page.see(By::Text("Drop a file here"));
}

/// A new key of an agent, from the page of agents.
fn new_key(page: &Page, site: &Site, agent: &str) -> String {
    page.goto(site.url("/console/agents"));
    page.submit(By::Css(&format!(
        "tr:has-text('{agent}') form[action$='/rotate'] button"
    )));
    secret(page)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_dropped_becomes_a_dataset_without_a_schema_being_typed() {
    let Some(browser) = browser("publish") else { return };
    let site = Site::start().await;
    let (_, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    judge_answer(&page, "the place for a file");

    page.drop_file("#drop", "stations.csv", STATIONS);
    page.see(By::Css("#columns > li:nth-child(4)"));
    page.see(By::Css("#go:enabled"));
    let text = page.text();
    assert!(
        text.contains("CSV, semicolons, decimal comma") && text.contains("3 records"),
        "{text}"
    );
    let value = |id: &str| page.evaluate(&format!("document.getElementById('{id}').value"));
    assert_eq!(value("c0-name"), "station_id");
    assert_eq!(
        [value("c0-kind"), value("c1-kind"), value("c2-kind"), value("c3-kind")],
        ["string", "date", "number", "string"]
    );
    assert_eq!(
        page.evaluate("document.querySelector('[data-n=passed]').textContent"),
        "3"
    );
    judge_answer(&page, "a file that was looked at");

    // A column is left out and another renamed; the file is judged again at once.
    page.fill(By::Css("#c2-name"), "height");
    page.press("Tab");
    page.see(By::Css("#sample-heads th:has-text('height')"));
    page.click(By::Css("#c3-use"));
    page.see(By::Css("#columns > li:nth-child(4) .out-of"));
    page.see(By::Css("#go:enabled"));
    assert_eq!(page.count(By::Css("#sample-heads th")), 3);

    // Words about the dataset come from the file, and the person changes some.
    assert_eq!(value("slug"), "stations");
    page.fill(By::Label("Title"), "Stations of the coast");
    page.evaluate("document.getElementById('license').value = 'CC-BY-4.0'");
    page.fill(By::Label("Address"), "No Slug");
    page.click(By::Css("#go"));
    page.see(By::Css("#slug-error"));
    judge_answer(&page, "an address that is none");
    page.fill(By::Label("Address"), "stations");
    page.click(By::Css("#go"));
    page.arrive(site.url("/console/datasets/stations"));
    let text = page.text();
    assert!(
        text.contains("Stations of the coast") && text.contains("CC-BY-4.0"),
        "{text}"
    );
    assert_eq!(page.complaints(), Vec::<String>::new());

    let agent = site.http.with(&new_key(&page, &site, "tide-gauge"));
    let sql = json!({"sql": "SELECT station_id, opened, height FROM records ORDER BY height"});
    let rows = agent.post("/projects/stations/query", &sql).await.expect(200);
    assert_eq!(
        rows.body["rows"],
        json!([
            ["0019", "1901-02-28", -3.75],
            ["0017", "1864-05-01", 9.5],
            ["0018", "1865-01-13", 120.25]
        ])
    );
    let info = agent.get("/projects/stations").await.expect(200);
    assert_eq!(info.text("/visibility"), "private");
    // The trail says who did it, and how.
    page.goto(site.url("/console/activity"));
    let text = page.text();
    assert!(text.contains("made a dataset, for you in the console"), "{text}");

    // The same file again, for the dataset that there is: nothing is new.
    page.goto(site.url("/console/datasets/stations"));
    page.submit(By::Link("Add records"));
    page.drop_file("#drop", "stations.csv", STATIONS);
    page.see(By::Css("#columns > li:nth-child(4)"));
    judge_answer(&page, "a file for a dataset");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_is_closed_while_it_sends_is_gone_on_with_in_another() {
    let Some(browser) = browser("publish-resume") else {
        return;
    };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    // Five parts of 8 MiB, of words that nothing makes small, and that look like nobody's number.
    let mut text = String::from("id,at,note\n");
    let mut number = 1_u64;
    while text.len() < 36 << 20 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let letters = (0..16).map(|nibble| char::from(b'a' + (number >> (4 * nibble) & 15) as u8));
        text.extend(letters.clone());
        text.push_str(",2026-01-02T03:04:05Z,");
        text.extend(letters.rev());
        text.push('\n');
    }
    let file = site.folder.path().join("large.csv");
    std::fs::write(&file, &text).unwrap();
    let records = text.lines().count() - 1;

    page.choose(By::Css("#file"), &file);
    page.see(By::Css("#go:enabled"));
    assert!(page.text().contains("a later row may not fit"), "{}", page.text());
    page.stall("PUT", "/uploads/", 2);
    page.click(By::Css("#go"));
    page.see(By::Text("Sent 16.8 MB"));
    page.close();

    let page = person.page();
    page.goto(site.url("/console/publish"));
    page.see(By::Text("large.csv, 37.7 MB, stopped at 40 %"));
    judge_answer(&page, "an upload that was interrupted");
    // Another file is none to go on with.
    let other = site.folder.path().join("other.csv");
    std::fs::write(&other, "id,at,note\n").unwrap();
    page.choose(By::Css("[data-upload] input[type=file]"), &other);
    page.see(By::Text("This is another file"));
    page.choose(By::Css("[data-upload] input[type=file]"), &file);
    page.arrive(site.url("/console/datasets/large"));
    let parts = page
        .requests()
        .into_iter()
        .filter(|request| request.starts_with("PUT "))
        .count();
    assert_eq!(parts, 3, "nothing is sent twice");
    let agent = site.http.with(&new_key(&page, &site, "tide-gauge"));
    let count = json!({"sql": "SELECT count(*) FROM records"});
    let count = agent.post("/projects/large/query", &count).await.expect(200);
    assert_eq!(count.body["rows"], json!([[records]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_file_becomes_a_dataset_without_scripts() {
    let Some(browser) = browser("publish-plain") else {
        return;
    };
    let site = Site::start().await;
    let look = Look {
        width: 390,
        scripts: false,
        ..Look::default()
    };
    let (_, page) = site.signed_up(&browser, look).await;
    page.goto(site.url("/console/publish"));
    page.fill(By::Label("Name of the new agent"), "tide-gauge");
    page.check(By::Css("#agreed input"));
    page.submit(By::Css("form[action='/console/publish/connect'] button"));
    let file = site.folder.path().join("stations.csv");
    std::fs::write(&file, STATIONS).unwrap();
    page.choose(By::Label("File to publish"), &file);
    assert_eq!(page.submit(By::Button("Read the file")).status, 200);
    assert_eq!(
        page.attribute(By::Css("#c0-name"), "value").as_deref(),
        Some("station_id")
    );
    assert_eq!(
        page.attribute(By::Css("#c1-parse"), "value").as_deref(),
        Some("%d.%m.%Y")
    );

    // Corrected, checked again with what was typed, and published.
    page.fill(By::Css("#c2-name"), "height");
    page.fill(By::Label("Title"), "Stations of the coast");
    assert_eq!(page.submit(By::Button("Check again")).status, 200);
    assert_eq!(page.attribute(By::Css("#c2-name"), "value").as_deref(), Some("height"));
    page.fill(By::Label("Address"), "No Slug");
    assert_eq!(page.submit(By::Button("Publish")).status, 400);
    page.see(By::Css("#slug-error"));
    assert_eq!(
        page.attribute(By::Label("Title"), "value").as_deref(),
        Some("Stations of the coast")
    );
    page.fill(By::Label("Address"), "stations");
    let published = page.submit(By::Button("Publish"));
    assert_eq!(published.status, 200);
    assert!(published.url.contains("/console/contributions/"), "{}", published.url);
    let agent = site.http.with(&new_key(&page, &site, "tide-gauge"));
    let id = published.url.rsplit('/').next().unwrap();
    let ended = agent
        .get(&format!("/projects/stations/contributions/{id}?wait=20"))
        .await
        .expect(200);
    assert_eq!(
        (ended.text("/status"), &ended.body["acceptedCount"]),
        ("merged", &json!(3)),
        "{}",
        ended.body
    );
    let info = agent.get("/projects/stations").await.expect(200);
    assert_eq!(info.text("/title"), "Stations of the coast");
    let sql = json!({"sql": "SELECT opened, height FROM records ORDER BY height LIMIT 1"});
    let rows = agent.post("/projects/stations/query", &sql).await.expect(200);
    assert_eq!(rows.body["rows"], json!([["1901-02-28", -3.75]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_the_limit_of_datasets_is_told_before_a_file_is_read() {
    let Some(browser) = browser("publish-full") else { return };
    let site = Site::start().await;
    let (_, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    let agent = site.http.with(&new_key(&page, &site, "tide-gauge"));
    for slug in ["one-of-three", "two-of-three", "three-of-three"] {
        agent.post("/projects", &project_body(slug)).await.expect(201);
    }
    page.goto(site.url("/console/publish"));
    page.see(By::Text("You have 3 active datasets, which is the most"));
    assert_eq!(page.count(By::Css("input[type=file]")), 0);
    assert_eq!(page.count(By::Link("Add records to one-of-three")), 1);
    judge_answer(&page, "the limit of datasets");
}
