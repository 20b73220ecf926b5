//! A file becomes a dataset in a real browser: dropped, looked at, published; gone on with in another tab; and without
//! scripts.
//!
//! Invariant: no schema is typed. What the page shows is judged by axe-core in both themes and two widths.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::browser::{By, Look, Page};
use tests::world::project_body;

use crate::console::{Site, browser, judge_answer, secret};

/// A spreadsheet export: semicolons, decimal commas, days as people write them, a code with leading zeros.
const STATIONS: &str = "Station ID;Opened;Elevation (m);Name\n\
                        0017;01.05.1864;9,5;Hoek van Holland\n\
                        0018;13.01.1865;120,25;Den Helder\n\
                        0019;28.02.1901;-3,75;Zoutkamp\n";

/// Members of an envelope, with a number that is no whole one, a member that comes later, and one that holds members.
const READINGS: &str = r#"{"source": "harbour", "readings": [
    {"station": "0017", "at": "2026-11-24T00:00:00Z", "level": 1.25},
    {"station": "0018", "at": "2026-11-24T00:10:00Z", "level": -3, "tags": {"kind": "ebb"}}
]}"#;

/// Files of other programs.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalog/tabular/tests/files");

/// Puts a file into the folder of a site.
fn put(site: &Site, name: &str, text: &str) -> PathBuf {
    let file = site.folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// Drops a file, publishes it as it was found, and returns its columns on the page: fields with their types.
fn publish_as_found(page: &Page, site: &Site, file: &Path, slug: &str) -> Value {
    page.goto(site.url("/console/publish"));
    page.drop_file(By::Css("#drop"), file);
    page.see(By::Css("#go:enabled"));
    let found = page.evaluate(
        "[...document.querySelectorAll('#columns > li')].map((row) => \
         `${row.querySelector('[name=name]').value} ${row.querySelector('[name=kind]').value}`)",
    );
    page.click(By::Css("#go"));
    page.arrive(site.url(&format!("/console/datasets/{slug}")));
    assert_eq!(page.complaints(), Vec::<String>::new(), "{slug}");
    found
}

/// Agrees that the console acts as a new agent.
pub(crate) fn agree(page: &Page, site: &Site, name: &str) {
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

    let file = put(&site, "stations.csv", STATIONS);
    page.drop_file(By::Css("#drop"), &file);
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
    page.drop_file(By::Css("#drop"), &file);
    page.see(By::Css("#columns > li:nth-child(4)"));
    judge_answer(&page, "a file for a dataset");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parquet_file_a_workbook_and_a_json_document_become_datasets_as_they_were_found() {
    let Some(browser) = browser("publish-formats") else {
        return;
    };
    let site = Site::start().await;
    let (_, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    let json = put(&site, "readings.json", READINGS);
    let files = [
        (
            Path::new(FILES).join("pandas.parquet"),
            "pandas",
            json!([
                "trip_id integer",
                "started timestamp",
                "ended timestamp",
                "stops json",
                "fare decimal",
                "km number",
                "line string",
                "round_trip boolean"
            ]),
            "SELECT trip_id, fare, stops, round_trip FROM records ORDER BY trip_id LIMIT 2",
            json!([[1, "12.50", ["07", "x", null], true], [2, "0.05", [], false]]),
        ),
        (
            Path::new(FILES).join("openpyxl.xlsx"),
            "openpyxl",
            json!([
                "station_id string",
                "opened date",
                "elevation_m number",
                "seen timestamp",
                "ratio integer",
                "open_at string",
                "note string"
            ]),
            "SELECT station_id, opened, elevation_m, open_at FROM records ORDER BY station_id LIMIT 2",
            json!([
                ["0017", "1964-05-01", 9.5, "10:30:00"],
                ["0018", "2001-12-24", 120.0, "23:59:59"]
            ]),
        ),
        (
            json,
            "readings",
            json!(["station string", "at timestamp", "level number", "tags json"]),
            "SELECT station, level, tags FROM records ORDER BY station",
            json!([["0017", 1.25, null], ["0018", -3.0, {"kind": "ebb"}]]),
        ),
    ];
    let slugs = files.each_ref().map(|(_, slug, ..)| *slug);
    for (file, slug, columns, ..) in &files {
        assert_eq!(&publish_as_found(&page, &site, file, slug), columns, "{slug}");
    }
    let agent = site.http.with(&new_key(&page, &site, "tide-gauge"));
    for (_, slug, _, sql, rows) in files {
        let got = agent
            .post(&format!("/projects/{slug}/query"), &json!({"sql": sql}))
            .await;
        assert_eq!(got.expect(200).body["rows"], rows, "{slug}");
    }
    page.goto(site.url("/console/datasets"));
    for slug in slugs {
        assert_eq!(
            page.count(By::Css(&format!("a[href='/console/datasets/{slug}']"))),
            1,
            "{slug}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_leaves_open_is_answered_by_a_button() {
    let Some(browser) = browser("publish-answers") else {
        return;
    };
    let site = Site::start().await;
    let (_, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    // A note: the day or the month may come first.
    let file = put(&site, "days.csv", "id,when\n1,03/04/2026\n2,05/06/2026\n");
    page.drop_file(By::Css("#drop"), &file);
    page.see(By::Css("#go:enabled"));
    page.click(By::Button("Read when as day: month/day/year"));
    page.see(By::Css("#sample td:has-text('2026-03-04')"));
    // A question, without whose answer nothing is made.
    let text = r#"{"sources": [{"a": 1}, {"a": 2}, {"a": 3}], "features": [{"id": 1, "x": 2}, {"id": 2, "x": 3}]}"#;
    let file = put(&site, "two-tables.json", text);
    page.drop_file(By::Css("#drop"), &file);
    page.see(By::Text("Answer the questions above first."));
    assert_eq!(page.count(By::Css("#go:enabled")), 0);
    judge_answer(&page, "a question about a file");
    page.click(By::Button("Use /features"));
    page.see(By::Css("#sample-heads th:has-text('x')"));
    page.see(By::Css("#go:enabled"));
    // Records that the checks refuse, each with what can be done.
    let file = put(
        &site,
        "people.csv",
        "id,mail\n1,ada@harbourlab.nl\n2,calm\n3,bob@harbourlab.nl\n4,rough\n5,calm\n",
    );
    page.drop_file(By::Css("#drop"), &file);
    page.see(By::Css("#verdicts > tr:nth-child(2)"));
    page.see(By::Css("#go:enabled"));
    judge_answer(&page, "records that are refused");
    page.click(By::Css("#verdicts > tr:nth-child(1) button:has-text('Leave mail out')"));
    page.see(By::Css("#columns > li:nth-child(2) .out-of"));
    page.see(By::Css("#go:enabled"));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_was_signed_out_signs_in_in_another_tab_and_goes_on() {
    let Some(browser) = browser("publish-session") else {
        return;
    };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    let file = put(&site, "stations.csv", STATIONS);
    page.drop_file(By::Css("#drop"), &file);
    page.see(By::Css("#go:enabled"));
    let other = person.page();
    other.goto(site.url("/console"));
    other.evaluate("localStorage.setItem('kept', 'an address')");
    other.submit(By::Button("Sign out"));
    assert_eq!(
        other.evaluate("localStorage.length"),
        json!(0),
        "nothing of the session stays"
    );
    page.click(By::Css("#go"));
    page.see(By::Text("You were signed out"));
    site.sign_in(&other, 2).await;
    page.click(By::Css("#go"));
    page.arrive(site.url("/console/datasets/stations"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_is_closed_while_it_sends_is_gone_on_with_in_another() {
    let Some(browser) = browser("publish-resume") else {
        return;
    };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    agree(&page, &site, "tide-gauge");
    // Five parts of 8 MiB, of words that nothing makes small, and that look like nobody's number. The words are long, since a
    // record takes longer to judge than its bytes.
    let mut text = String::from("id,at,note\n");
    let mut number = 1_u64;
    let mut letters = |count: usize| -> String {
        let mut word = String::with_capacity(16 * count);
        for _ in 0..count {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            word.extend((0..16).map(|nibble| char::from(b'a' + (number >> (4 * nibble) & 15) as u8)));
        }
        word
    };
    while text.len() < 36 << 20 {
        text.push_str(&letters(1));
        text.push_str(",2026-01-02T03:04:05Z,");
        text.push_str(&letters(60));
        text.push('\n');
    }
    let file = put(&site, "large.csv", &text);
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
    let other = put(&site, "other.csv", "id,at,note\n");
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
    let file = put(&site, "stations.csv", STATIONS);
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
    let site = Site::start_with(|options| options.with("SLUICE__LIMITS__ACTIVE_PROJECTS_PER_OPERATOR", 3)).await;
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
