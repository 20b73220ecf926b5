//! Pages of a dataset, from outside: who sees which rows, what a reader can choose, and what an address cannot do.

mod chromium;
mod ended;
mod filters;
mod hidden;
mod hostile;
mod links;
mod versions;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::apps::hidden;
use tests::browser::{By, Look};
use tests::world::{Agent, batch, contribute, merged, project_body};
use tests::{Answer, Options};

use crate::accounts::Site;
use crate::console::{self, LOOKS, artefacts, browser, judge, secret};
use crate::sql_page::{Asker, cells, project, start, text};

/// Most bytes of a page of rows.
const MOST: usize = 90 << 10;
/// Time in which a page is to be served, and how much longer it may take on a machine that does other work.
const SOON: Duration = Duration::from_millis(50);
const SLACK: u32 = 10;

fn rows(slug: &str, query: &str) -> String {
    format!("/projects/{slug}/rows{query}")
}

/// Returns the address of rows with the token of its form, if it filters or orders them.
async fn with_token(reader: &Asker, path: &str) -> String {
    match path.split_once("/rows?") {
        // A form sends the token itself.
        Some((dataset, query))
            if !query.contains("run=") && ["sort=", "by=", "f1="].iter().any(|member| query.contains(member)) =>
        {
            let page = reader.open(&format!("{dataset}/rows")).await.expect(200);
            format!("{path}&run={}", hidden(&text(&page), "run"))
        }
        _ => path.to_owned(),
    }
}

/// Opens a page from a page of this service, and follows where a form is led.
async fn opened(reader: &Asker, path: &str) -> String {
    let answer = reader.open(&with_token(reader, path).await).await;
    if answer.code() != 303 {
        return text(&answer.expect(200));
    }
    let address = answer.header("location").to_owned();
    text(&reader.open(&address).await.expect(200))
}

/// Opens a page by a link of another site.
async fn from_elsewhere(reader: &Asker, session: &str, path: &str) -> Answer {
    reader
        .browser
        .browse_from("https://evil.example", session, path, None)
        .await
}

/// Stations that stand in the tables of pages, by sample.
fn samples(page: &str) -> Vec<u64> {
    // The first cell is the number of the row.
    cells(page).iter().map(|row| row[2].parse().unwrap()).collect()
}

/// A service that makes profiles soon, a seller and a buyer.
pub(crate) async fn profiled() -> (Site, Asker, Asker) {
    let site = Site::start(None, |options: Options| {
        options.with("SLUICE__PROFILES__EVERY", "200ms")
    })
    .await;
    let owner = Asker::new(&site, "ada@example.org").await;
    let other = Asker::new(&site, "bob@example.org").await;
    (site, owner, other)
}

/// Waits until a dataset has the profile of a version.
pub(crate) async fn profile(reader: &Asker, slug: &str, version: u64) {
    let path = format!("/projects/{slug}/profile");
    let is_there = |answer: &Answer| answer.code() == 200 && answer.body["version"] == version;
    reader.agent.http.comes_to_show(&path, is_there).await;
}

/// Records of which many are equal in all but their number.
pub(crate) fn tied(count: u64) -> Vec<Value> {
    let record = |sample: u64| {
        let station = if sample.is_multiple_of(3) { "50%_off" } else { "wick" };
        match sample % 4 {
            0 => json!({"station": station, "sample": sample}),
            part => json!({"station": station, "sample": sample, "value": part, "good": part == 1,
                "at": format!("2026-05-0{part}T08:00:00Z"), "more": {"part": part}}),
        }
    };
    (0..count).map(record).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_sees_the_stored_preview_whatever_the_address_says() {
    let (_site, owner, other) = profiled().await;
    project(&owner, "tides", json!({})).await;
    contribute(&owner.agent.http, "tides", &tied(400)).await;
    let before = text(&other.browser.browse("", "/projects/tides", None).await.expect(200));
    assert!(
        before.contains("and none is shown here") || before.contains("sampled rows"),
        "{before}"
    );
    profile(&owner, "tides", 2).await;
    let first = text(&other.browser.browse("", "/projects/tides", None).await.expect(200));
    assert!(
        first.contains("20 sampled rows") && first.contains("383 more rows"),
        "{first}"
    );
    // A drawing in the head of each column, with its finding in words.
    assert_eq!(first.matches("<svg class=\"hist\"").count(), 6, "{first}");
    assert!(first.contains("0 to 399"), "{first}");
    let preview = cells(&first);
    assert_eq!(preview.len(), 20, "{preview:?}");
    for query in [
        "",
        "?version=1",
        "?version=2",
        "?version=99",
        "?offset=100",
        "?row=1",
        "?row=77",
        "?sort=sample&dir=desc",
        "?f1=sample&o1=is&v1=77",
        "?by=sample+desc",
    ] {
        let page = text(&other.browser.browse("", &rows("tides", query), None).await.expect(200));
        assert_eq!(cells(&page), preview, "{query}");
        assert!(
            page.contains("Sign in") && !page.contains("id=\"view\""),
            "{query}: {page}"
        );
    }
    // A visitor sees the facts of each version, and no row of it.
    let list = text(
        &other
            .browser
            .browse("", "/projects/tides/versions", None)
            .await
            .expect(200),
    );
    assert!(
        list.contains("/projects/tides/versions/1") && list.contains("+400"),
        "{list}"
    );
    let one = text(
        &other
            .browser
            .browse("", "/projects/tides/versions/2", None)
            .await
            .expect(200),
    );
    assert!(one.contains("400 rows added") && !one.contains("50%_off"), "{one}");
    assert!(!one.contains(".parquet"), "{one}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_pages_orders_and_filters_and_no_row_is_on_two_pages() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    let all = tied(130);
    contribute(&owner.agent.http, "tides", &all[..70]).await;
    contribute(&owner.agent.http, "tides", &all[70..]).await;
    let before = other.egress().await;
    // Version 3 has 3 records of the first batch, then these.
    let page = opened(&other, &rows("tides", "?version=3&offset=50")).await;
    assert_eq!(samples(&page), (47..97).collect::<Vec<_>>(), "{page}");
    assert!(page.contains("51 to 100 of 133 rows"), "{page}");
    assert!(other.egress().await > before, "rows count as egress");
    // What is shown of the values.
    let first = opened(&other, &rows("tides", "?version=3&offset=3")).await;
    let shown = cells(&first);
    assert_eq!(shown[0][..4], ["4", "50%_off", "0", "nullno value"]);
    assert_eq!(
        shown[1][..],
        [
            "5",
            "wick",
            "1",
            "1.0",
            "2026-05-01 08:00:00",
            "true",
            "{&#34;part&#34;:1}"
        ]
    );
    // An order of which most values are equal: every row is on one page.
    for query in [
        "sort=value&dir=asc",
        "sort=value&dir=desc",
        "sort=good&dir=desc",
        "sort=station",
    ] {
        let mut seen = Vec::new();
        for offset in ["", "&offset=50", "&offset=100"] {
            let page = opened(&other, &rows("tides", &format!("?version=3&{query}{offset}"))).await;
            seen.extend(cells(&page).into_iter().map(|row| row[0].clone()));
            assert!(page.contains("aria-sort"), "{query}");
        }
        let unique: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!((seen.len(), unique.len()), (133, 133), "{query}");
    }
    let ordered = opened(&other, &rows("tides", "?version=3&sort=value&dir=desc")).await;
    assert!(cells(&ordered)[0][3].starts_with('3'), "{ordered}");
    // The number of a row leads to it, whatever the order was.
    let number = cells(&ordered)[0][0].clone();
    let record = opened(&other, &rows("tides", &format!("?version=3&row={number}"))).await;
    assert!(record.contains("2026-05-03 08:00:00"), "{record}");
    for (filter, expected) in [
        ("f1=station&o1=is&v1=50%25_off", 44),
        ("f1=station&o1=not&v1=50%25_off", 89),
        ("f1=station&o1=has&v1=%25", 44),
        ("f1=station&o1=has&v1=0%25_o", 44),
        ("f1=station&o1=has&v1=w%25k", 0),
        ("f1=station&o1=is&v1=", 0),
        ("f1=station&o1=is&v1=x'+OR+'1'='1", 0),
        ("f1=value&o1=null", 33),
        ("f1=value&o1=some", 100),
        ("f1=sample&o1=greater&v1=99", 30),
        ("f1=sample&o1=less&v1=10&f2=station&o2=is&v2=wick", 9),
        ("f1=at&o1=less&v1=2026-05-02", 33),
        ("f1=good&o1=is&v1=true", 33),
        ("f1=more&o1=has&v1=%22part%22:2", 32),
    ] {
        let page = opened(&other, &rows("tides", &format!("?version=3&{filter}"))).await;
        let said = format!("of {expected} row");
        let is_said = page.contains(&said) || (expected == 0 && page.contains("No rows"));
        assert!(is_said, "{filter}: {expected}: {page}");
        assert_eq!(samples(&page).len(), expected.min(50), "{filter}");
    }
    // What is not understood is said beside the field, and filters nothing.
    let bad = other.open(&rows("tides", "?version=3&f1=sample&o1=is&v1=<b>one")).await;
    assert_eq!(bad.code(), 400);
    let bad = text(&bad);
    assert!(
        bad.contains("whole numbers") && bad.contains("value=\"&#60;b&#62;one\""),
        "{bad}"
    );
    assert_eq!(samples(&bad).len(), 50);
    // Columns, by name.
    let two = opened(&other, &rows("tides", "?version=3&cols=sample&cols=value")).await;
    assert_eq!(cells(&two)[3].len(), 3, "{two}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_leads_to_the_shortest_address_of_what_it_asks() {
    let (_site, owner, _) = start().await;
    project(&owner, "tides", json!({})).await;
    for (asked, address) in [
        ("?version=1&f1=&o1=is&v1=", "?version=1"),
        (
            "?version=1&sort=sample&dir=asc&f1=&o1=is&v1=&by=value+desc",
            "?version=1&sort=value&dir=desc",
        ),
        ("?version=1&sort=sample&dir=asc&without=0", "?version=1"),
        (
            "?version=1&f1=station&o1=is&v1=a&f2=sample&o2=null&v2=&without=1",
            "?version=1&f1=sample&o1=null",
        ),
        (
            "?version=1&cols=station&cols=sample",
            "?version=1&cols=station%2Csample",
        ),
        // The token stays where something is filtered or ordered.
        ("?version=1&run=a", "?version=1"),
        (
            "?version=1&f1=station&o1=is&v1=a&f2=&o2=is&v2=&run=a",
            "?version=1&f1=station&o1=is&v1=a&run=a",
        ),
    ] {
        let led = owner.open(&rows("tides", asked)).await.expect(303);
        assert_eq!(led.header("location"), rows("tides", address), "{asked}");
        owner.open(&rows("tides", address)).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_reads_what_it_bought_and_others_see_no_row_of_it() {
    let (site, owner, other) = start().await;
    project(&owner, "paid", json!({"access": "paid", "price": "0.10"})).await;
    contribute(&owner.agent.http, "paid", &tied(60)).await;
    let pages = |version: u64| {
        [
            "/projects/paid".to_owned(),
            rows("paid", &format!("?version={version}")),
            rows("paid", &format!("?version={version}&row=2")),
            rows("paid", &format!("?version={version}&f1=sample&o1=is&v1=7")),
            format!("/projects/paid/versions/{version}"),
        ]
    };
    // Nothing was offered by the owner, so there is no row anywhere.
    for path in pages(2).iter().chain(&["/projects/paid/versions".to_owned()]) {
        for session in ["", &other.session] {
            let page = other.browser.browse(session, path, None).await.expect(200);
            let page = text(&page);
            assert!(!page.contains("50%_off") && !page.contains("wick"), "{path}: {page}");
        }
    }
    let closed = opened(&other, &rows("paid", "")).await;
    assert!(
        closed.contains("$0.10") && closed.contains("63 rows, and none is shown here"),
        "{closed}"
    );
    site.grant(other.operator, "10");
    let first = json!({"version": 1});
    other.agent.http.post("/projects/paid/buy", &first).await.expect(200);
    let bought = opened(&other, "/projects/paid").await;
    assert!(
        bought.contains("v1 and earlier") && bought.contains("1 newer"),
        "{bought}"
    );
    assert_eq!(samples(&bought), [0, 1, 2], "{bought}");
    // The proof and the figures are of the rows that are shown, and the box says how they were bought.
    for words in [
        "v1 · fingerprint",
        "its 3 rows in order",
        "Rows in v1<",
        "Latest version",
        "Bought by <bdi",
    ] {
        assert!(bought.contains(words), "{words}: {bought}");
    }
    let page = opened(&other, &rows("paid", "?version=1&f1=sample&o1=is&v1=2")).await;
    assert_eq!(samples(&page), [2]);
    let version = opened(&other, "/projects/paid/versions/1").await;
    assert!(
        version.contains("3 new rows") && version.contains(".parquet"),
        "{version}"
    );
    // The later version stays closed, whatever the address says.
    for path in pages(2).iter().skip(1) {
        let page = opened(&other, path).await;
        assert!(!page.contains("50%_off"), "{path}: {page}");
    }
    // The owner reads all of it, and the rows of a version are told by their contributor.
    let version = opened(&owner, "/projects/paid/versions/2?from=1&offset=50").await;
    assert!(version.contains("51 to 60 of 60 new rows"), "{version}");
    assert!(version.contains("<bdi>ada</bdi>"), "{version}");
    let all = opened(&owner, "/projects/paid/versions/2?from=0").await;
    assert!(all.contains("1 to 8 of 63 new rows"), "{all}");
    assert_eq!(owner.open("/projects/paid/versions/2?from=2").await.code(), 400);
    assert_eq!(owner.open("/projects/paid/versions/3").await.code(), 404);
    assert_eq!(owner.open(&rows("paid", "?version=3")).await.code(), 404);
    assert_eq!(owner.open(&rows("paid", "?version=2&row=64")).await.code(), 404);
}

/// Contributes records of any contract and waits for the outcome.
async fn sent(agent: &Agent, slug: &str, records: &[Value]) {
    let path = format!("/projects/{slug}/contribute?wait=20");
    let answer = agent.http.post(&path, &batch(records)).await.expect(201);
    let decided = tests::world::decided(&agent.http, slug, answer.text("/id")).await;
    assert_eq!(decided.text("/status"), "merged", "{}", decided.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_hostile_records_is_bounded_and_shows_them_as_text() {
    let (_site, owner, _) = start().await;
    let hostile = "<script>alert(1)</script> \u{5e9}\u{5dc}\u{5d5}\u{5dd}";
    let field = |number: usize| json!({"name": format!("c{number:03}_<b>\"'&{}", "n".repeat(40)), "type": "string"});
    let fields: Vec<_> = (0..256).map(field).collect();
    let names: Vec<_> = fields
        .iter()
        .map(|field| field["name"].as_str().unwrap().to_owned())
        .collect();
    let wide = merged(project_body("wide"), json!({"schemaDef": {"fields": fields}}));
    owner.agent.http.post("/projects", &wide).await.expect(201);
    let record = |number: usize| {
        let members = names
            .iter()
            .map(|name| (name.clone(), json!(format!("{hostile}{number}{}", "<".repeat(150)))));
        Value::Object(members.collect())
    };
    sent(&owner.agent, "wide", &(0..40).map(record).collect::<Vec<_>>()).await;
    let mut seen = 0;
    while seen < 40 {
        let page = opened(&owner, &rows("wide", &format!("?offset={seen}"))).await;
        assert!(page.len() <= MOST, "{}", page.len());
        assert!(!page.contains("<script>alert"), "{page}");
        let numbers: Vec<usize> = cells(&page).iter().map(|row| row[0].parse().unwrap()).collect();
        assert_eq!(numbers.first(), Some(&(seen + 1)));
        assert_eq!(numbers, (seen + 1..=seen + numbers.len()).collect::<Vec<_>>());
        seen += numbers.len();
    }
    let last = opened(&owner, &rows("wide", "?cols=(240-255)")).await;
    assert!(
        last.contains("c255_&#60;b&#62;") && !last.contains("c000_&#60;b&#62;&#34;"),
        "{last}"
    );
    let by_name = format!(
        "?sort={}&dir=desc",
        "c000_%3Cb%3E%22%27%26".to_owned() + &"n".repeat(40)
    );
    let ordered = opened(&owner, &rows("wide", &by_name)).await;
    assert!(ordered.contains("aria-sort=\"descending\""), "{ordered}");
    // Long texts, one record of them on its own page.
    let long = merged(
        project_body("long"),
        json!({"schemaDef": {"fields": [{"name": "t", "type": "string"}]}}),
    );
    owner.agent.http.post("/projects", &long).await.expect(201);
    let texts = |number: usize| json!({"t": format!("{number} {}", "&".repeat(99_990))});
    sent(&owner.agent, "long", &(0..20).map(texts).collect::<Vec<_>>()).await;
    for query in ["", "?row=3"] {
        let page = opened(&owner, &rows("long", query)).await;
        assert!(page.len() <= MOST && page.contains('…'), "{query}: {}", page.len());
    }
    // One row, and none.
    let one = merged(project_body("none"), json!({"readme": hostile}));
    owner.agent.http.post("/projects", &one).await.expect(201);
    for path in ["/projects/none", "/projects/none/rows", "/projects/none/versions"] {
        let page = opened(&owner, path).await;
        assert!(
            page.contains("No rows yet") || page.contains("None yet"),
            "{path}: {page}"
        );
    }
    assert_eq!(owner.open("/projects/none/versions/1").await.code(), 404);
    sent(&owner.agent, "none", &[json!({"station": "", "sample": i64::MAX})]).await;
    let page = opened(&owner, "/projects/none").await;
    assert_eq!(
        cells(&page)[0][1..3],
        ["\"\"empty text", "9223372036854775807"],
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_versions_are_listed_and_pages_stay_quick() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    for number in 0..60 {
        sent(&owner.agent, "tides", &[json!({"station": "leith", "sample": number})]).await;
    }
    let (mut seen, mut path) = (Vec::new(), "/projects/tides/versions".to_owned());
    loop {
        let page = text(&other.browser.browse("", &path, None).await.expect(200));
        let listed = page.split("<a href=\"/projects/tides/versions/").skip(1);
        seen.extend(listed.map(|rest| rest.split('"').next().unwrap().parse::<u64>().unwrap()));
        assert!(page.contains("Rows over time: 3 on"), "{page}");
        let Some((before, _)) = page.split_once("\" rel=\"next\">Earlier") else {
            break;
        };
        path = before.rsplit('"').next().unwrap().to_owned();
    }
    assert_eq!(seen, (1..=61).rev().collect::<Vec<_>>());
    for path in [
        "/projects/tides",
        "/projects/tides/rows",
        "/projects/tides/versions",
        "/projects/tides/versions/30",
    ] {
        let mut times = Vec::new();
        for _ in 0..5 {
            let begun = Instant::now();
            let page = opened(&other, path).await;
            times.push(begun.elapsed());
            assert!(page.len() <= MOST, "{path}: {}", page.len());
        }
        times.sort_unstable();
        eprintln!("{path}: {:.1?}", times[2]);
        assert!(times[2] <= SOON * SLACK, "{path}: {:?}", times[2]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_looks_at_rows_by_mouse_by_keyboard_and_without_scripts() {
    let Some(browser) = browser("dataset-pages") else {
        return;
    };
    let site = console::Site::start_with(|options| options.with("SLUICE__PROFILES__EVERY", "200ms")).await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    page.goto(site.url("/console/agents"));
    page.fill(By::Label("Name"), "tide-gauge");
    page.submit(By::Button("Make agent and key"));
    let agent = site.http.with(&secret(&page));
    agent.post("/projects", &project_body("tides")).await.expect(201);
    contribute(&agent, "tides", &tied(130)).await;
    let is_there = |answer: &Answer| answer.code() == 200;
    agent.comes_to_show("/projects/tides/profile", is_there).await;
    // By mouse: the head of a column orders, without another page.
    page.goto(site.url("/projects/tides"));
    page.evaluate("window.kept = true");
    page.click(By::Css("button[value='sample asc']"));
    page.see(By::Css("th[aria-sort='ascending']"));
    page.click(By::Css("button[value='sample desc']"));
    page.see(By::Css("th[aria-sort='descending']"));
    assert_eq!(
        page.evaluate("window.kept"),
        json!(true),
        "the page was not loaded anew"
    );
    assert!(page.url().contains("sort=sample&dir=desc"), "{}", page.url());
    assert!(
        page.read(By::Css("#rows tbody tr:first-child")).contains("129"),
        "{}",
        page.text()
    );
    page.evaluate("void history.back()");
    page.see(By::Css("th[aria-sort='ascending']"));
    // By keyboard: a filter.
    page.fill(By::Css("input[name=v1]"), "50%_off");
    page.evaluate("document.querySelector('select[name=f1]').value = 'station'");
    page.press("Enter");
    page.see(By::Text("44 rows"));
    assert_eq!(page.evaluate("document.activeElement.id"), json!("h-rows"));
    // Without scripts the same buttons load pages.
    let plain = browser.person(Look {
        scripts: false,
        ..Look::default()
    });
    for cookie in person.cookies() {
        plain.put_cookie(&site.url("/").replace("http:", "https:"), &cookie.name, &cookie.value);
    }
    let still = plain.page();
    still.goto(site.url("/projects/tides/rows"));
    assert_eq!(still.submit(By::Css("button[value='sample asc']")).status, 200);
    assert_eq!(still.submit(By::Css("button[value='sample desc']")).status, 200);
    assert!(
        still.read(By::Css("#rows tbody tr:first-child")).contains("129"),
        "{}",
        still.text()
    );
    assert_eq!(still.submit(By::Button("Next")).status, 200);
    assert!(still.text().contains("51 to 100 of 130 rows"), "{}", still.text());
    // Every page in every look.
    let folder = artefacts("dataset-pages-pictures");
    std::fs::create_dir_all(&folder).unwrap();
    let paths = [
        "/projects/tides",
        "/projects/tides/rows?sort=sample&dir=desc",
        "/projects/tides/rows?row=7",
        "/projects/tides/versions",
        "/projects/tides/versions/1",
    ];
    for (width, dark) in LOOKS {
        for (number, path) in paths.iter().enumerate() {
            page.look(width, dark);
            page.goto(site.url(path));
            page.picture(&folder.join(format!("{number}-{width}-{dark}.png")));
            judge(&page, &format!("{path} at {width} px, dark: {dark}"));
        }
    }
}
