//! Versions of a dataset: what a page says of each, and the way to every one of them.

use serde_json::{Value, json};
use tests::random::Random;
use tests::world::{contribute, decided, merged, project_body, records};

use super::{MOST, from_elsewhere, opened, rows, sent, tied};
use crate::pages::copied;
use crate::profiles::letters;
use crate::sql_page::{Asker, project, start, text};

/// Numbers of the added rows on the page of a version.
fn places(page: &str) -> Vec<u64> {
    let cells = page.split("<td class=\"ln\">").skip(1);
    cells
        .map(|rest| rest.split('<').next().unwrap().replace(',', "").parse().unwrap())
        .collect()
}

/// Opens a page of a version and those that follow it; returns the numbers of their rows.
async fn walked(reader: &Asker, path: &str) -> Vec<u64> {
    let (mut seen, mut path) = (Vec::new(), path.to_owned());
    loop {
        let page = opened(reader, &path).await;
        assert!(page.len() <= MOST, "{path}: {}", page.len());
        seen.extend(places(&page));
        let Some((before, _)) = page.split_once("\" rel=\"next\">Next") else {
            return seen;
        };
        path = before.rsplit('"').next().unwrap().replace("&#38;", "&");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_version_has_its_newest_rows_first_and_the_columns_that_are_asked_for() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    contribute(&owner.agent.http, "tides", &tied(130)).await;
    let first = opened(&other, "/projects/tides/versions/2").await;
    assert_eq!(places(&first), (126..=133).rev().collect::<Vec<_>>(), "{first}");
    assert!(first.contains("1 to 8 of 130 new rows"), "{first}");
    let (before, _) = first.split_once("\">All of them").unwrap_or_else(|| panic!("{first}"));
    let all = before.rsplit('"').next().unwrap().replace("&#38;", "&");
    let page = opened(&other, &all).await;
    assert_eq!(places(&page), (84..=133).rev().collect::<Vec<_>>(), "{page}");
    assert!(page.contains("1 to 50 of 130 new rows"), "{page}");
    // The head of a column has its type, and that of instants their zone.
    assert!(first.contains("<bdi>at</bdi><small>timestamp, UTC</small>"), "{first}");
    let new: Vec<_> = (4..=133).rev().collect();
    assert_eq!(walked(&other, &all).await, new);
    let two = "/projects/tides/versions/2?cols=sample&cols=value";
    let page = opened(&other, two).await;
    let heads = page.split("<table class=\"diff\">").nth(1).unwrap();
    let heads = heads.split("</thead>").next().unwrap();
    assert!(
        heads.contains("<bdi>sample</bdi>") && heads.contains("<bdi>value</bdi>") && !heads.contains("<bdi>at</bdi>"),
        "{heads}"
    );
    let next = "?from=1&#38;offset=50&#38;cols=sample%2Cvalue\" rel=\"next\"";
    let all = format!("{two}&offset=0");
    let beginning = opened(&other, &all).await;
    assert!(beginning.contains(next), "{beginning}");
    assert_eq!(walked(&other, &all).await, new);
    // Another site reads no row by leading a person here, and a page of this service does.
    let egress = other.egress().await;
    let led = text(&from_elsewhere(&other, &other.session, two).await.expect(200));
    assert!(
        places(&led).is_empty() && led.contains("Another site led here"),
        "{led}"
    );
    assert_eq!(other.egress().await, egress);
    let (before, _) = led.split_once("\">Show the rows").unwrap_or_else(|| panic!("{led}"));
    let link = before.rsplit('"').next().unwrap().replace("&#38;", "&");
    assert_eq!(places(&opened(&other, &link).await), places(&page));
    // Large rows end a page early, and the newest are on it all the same.
    let long = merged(
        project_body("long"),
        json!({"schemaDef": {"fields": [{"name": "t", "type": "string"}]}}),
    );
    owner.agent.http.post("/projects", &long).await.expect(201);
    let mut random = Random::new(39);
    for _ in 0..3 {
        let text = |_| json!({"t": letters(&mut random, 99_000)});
        sent(&owner.agent, "long", &(0..17).map(text).collect::<Vec<_>>()).await;
    }
    let all: Vec<_> = (1..=51).rev().collect();
    assert_eq!(walked(&owner, "/projects/long/versions/3?from=0&offset=0").await, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_version_says_what_became_of_its_batch_and_its_source_to_two() {
    let (site, owner, other) = start().await;
    let third = Asker::new(&site, "cy@example.org").await;
    project(&owner, "tides", json!({})).await;
    let mut all = records("wick", 2);
    all.extend(tied(2));
    all.push(json!({"station": "wick", "sample": "no number"}));
    let body = json!({"records": all, "onRefused": "drop", "sourceDeclaration": "<b>the log of the gauge"});
    let made = other.agent.http.post("/projects/tides/contribute?wait=20", &body).await;
    let made = made.expect(201);
    let outcome = decided(&other.agent.http, "tides", made.text("/id")).await;
    assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
    let path = "/projects/tides/versions/2";
    let visitor = text(&other.browser.browse("", path, None).await.expect(200));
    let pages = [
        (visitor, false),
        (opened(&third, path).await, false),
        (opened(&other, path).await, true),
        (opened(&owner, path).await, true),
    ];
    for (page, sees_source) in pages {
        let outcome = "Of 5 rows: 2 added; 2 copies, left out; 1 refused, left out";
        assert!(page.contains(outcome) && page.contains("from a batch of 5"), "{page}");
        assert_eq!(page.contains("the log of the gauge"), sees_source, "{page}");
        assert!(!page.contains("<b>the log"), "{page}");
    }
    let list = text(
        &third
            .browser
            .browse("", "/projects/tides/versions", None)
            .await
            .expect(200),
    );
    let copies = list.split("data-l=\"Copies left out\" class=\"n mute\">").skip(1);
    let copies: Vec<_> = copies.map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(copies, ["2", "0"], "{list}");
    assert!(list.contains("New rows, v1 to v2: 5 in all, at most 3"), "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_is_reached_by_its_number_and_taken_as_a_file() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    for number in 0..11 {
        sent(&owner.agent, "tides", &[json!({"station": "leith", "sample": number})]).await;
    }
    let newest = opened(&other, &rows("tides", "")).await;
    assert!(
        !newest.contains("<option value=\"1\"") && newest.contains("name=\"other\" min=\"1\" max=\"12\""),
        "{newest}"
    );
    for (asked, address) in [
        ("?version=12&offset=50&other=1", "?version=1"),
        ("?version=12&offset=50&other=", "?version=12&offset=50"),
        ("?version=12&other=0", "?version=12"),
        (
            "?version=12&sort=sample&dir=desc&other=7",
            "?version=7&sort=sample&dir=desc",
        ),
    ] {
        let led = other.open(&rows("tides", asked)).await.expect(303);
        assert_eq!(led.header("location"), rows("tides", address), "{asked}");
    }
    assert_eq!(other.open(&rows("tides", "?version=12&other=one")).await.code(), 400);
    // The file of the version that was chosen is offered, in the viewer and on its own page.
    let form = "action=\"/projects/tides/download\"";
    for path in [rows("tides", "?version=1"), "/projects/tides/versions/1".to_owned()] {
        let page = opened(&other, &path).await;
        let (_, fields) = page.rsplit_once(form).unwrap_or_else(|| panic!("{path}: {page}"));
        let (fields, _) = fields.split_once("</form>").unwrap();
        let value = |name: &str| {
            let (_, rest) = fields.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        assert_eq!(value("version"), "1", "{path}: {fields}");
        let sent = [
            ("form_token", value("form_token")),
            ("version", value("version")),
            ("format", "csv".to_owned()),
        ];
        assert!(fields.contains("name=\"format\" value=\"csv\""), "{path}: {fields}");
        let sent: Vec<_> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let file = other
            .browser
            .browse(&other.session, "/projects/tides/download", Some(&sent))
            .await
            .expect(200);
        assert_eq!(
            file.header("content-disposition"),
            "attachment; filename=\"tides-v1.csv\""
        );
        assert_eq!(text(&file).lines().count(), 4, "{}", text(&file));
    }
    for path in [rows("tides", "?version=1"), "/projects/tides/versions/1".to_owned()] {
        let page = text(&other.browser.browse("", &path, None).await.expect(200));
        assert!(!page.contains(form), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lines_that_a_page_gives_an_agent_buy_the_dataset_and_prove_it() {
    let (site, owner, other) = start().await;
    project(&owner, "paid", json!({"access": "paid", "price": "0.10"})).await;
    let visitor = text(&other.browser.browse("", "/projects/paid", None).await.expect(200));
    assert!(
        visitor.contains("/projects/paid/buy?version=1&amp;with=wallet\""),
        "{visitor}"
    );
    assert_eq!(copied(&visitor, "ask"), "Buy paid version 1 on Sluice.");
    let own = opened(&owner, "/projects/paid").await;
    assert!(!own.contains("Way to pay"), "{own}");
    // What a visitor is told of the proof is what the service signs with.
    let keys = other.agent.http.get("/.well-known/service-keys").await.expect(200);
    let keys = keys.body["keys"].as_array().unwrap().clone();
    let key = keys.last().unwrap()["keyId"].as_str().unwrap().to_owned();
    let of_version = text(
        &other
            .browser
            .browse("", "/projects/paid/versions/1", None)
            .await
            .expect(200),
    );
    for page in [&visitor, &of_version] {
        assert!(
            page.contains(&format!("<span class=\"hash\">{key}</span>, current key")),
            "{page}"
        );
    }
    assert!(
        visitor.contains("its 3 rows in order") && visitor.contains("1 Parquet file,"),
        "{visitor}"
    );
    // The call that buys, then the one for the manifest.
    site.grant(other.operator, "10");
    let buy = copied(&visitor, "get-curl");
    let (_, body) = buy.split_once("-d '").unwrap_or_else(|| panic!("{buy}"));
    let body: Value = serde_json::from_str(body.split('\'').next().unwrap()).unwrap();
    assert!(buy.contains("/projects/paid/buy "), "{buy}");
    other.agent.http.post("/projects/paid/buy", &body).await.expect(200);
    let call = copied(&of_version, "manifest");
    let (_, path) = call.split_once("/projects/").unwrap_or_else(|| panic!("{call}"));
    let path = format!("/projects/{}", path.split('"').next().unwrap());
    let manifest = other.agent.http.get(&path).await.expect(200);
    assert_eq!(manifest.body["signature"]["keyId"], key.as_str(), "{}", manifest.body);
    assert_eq!(manifest.body["version"], 1, "{}", manifest.body);
}
