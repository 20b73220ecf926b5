use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use types::money::MicroUsdc;

use super::samples::SampleCall;
use super::trial;
use crate::call::spec::{ApiKind, ParamLocation};
use crate::codes::CODES;
use crate::testing::browser::Browser;
use crate::testing::{Service, config, limits, tariff};

/// Bytes of a page without what it links to.
const MOST: usize = 100 << 10;

/// Opens a page, which must be there and light.
async fn open(service: &Service, path: &str) -> String {
    let got = Browser::signed_out(service).get(path).await;
    let page = got.text();
    assert_eq!(got.status.as_u16(), 200, "{path}: {page}");
    assert!(page.starts_with("<!doctype html>"), "{path}: {page}");
    assert!(page.len() <= MOST, "{path}: {} bytes", page.len());
    page
}

/// Values of an attribute on a page.
fn values<'a>(page: &'a str, attribute: &str) -> BTreeSet<&'a str> {
    let begin = format!(" {attribute}=\"");
    let parts = page.split(begin.as_str()).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

/// Names of the operations for programs.
fn names(service: &Service) -> Vec<&'static str> {
    let table = crate::operations(&service.app.limits);
    let programs = table.iter().filter(|operation| operation.spec.surface == ApiKind::Rest);
    programs.map(|operation| operation.spec.name).collect()
}

#[tokio::test]
async fn every_page_of_the_documents_is_light_and_its_links_lead_somewhere() {
    let service = Service::start().await;
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    let mut open_links: Vec<String> = vec!["/docs".to_owned(), "/pricing".to_owned()];
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    while let Some(path) = open_links.pop() {
        if pages.contains_key(&path) {
            continue;
        }
        let page = open(&service, &path).await;
        for link in values(&page, "href") {
            let (place, anchor) = link.split_once('#').unwrap_or((link, ""));
            let place = if place.is_empty() { path.as_str() } else { place };
            if place == "/pricing" || place == "/docs" || place.starts_with("/docs/") {
                open_links.push(place.to_owned());
                if !anchor.is_empty() {
                    wanted.insert((place.to_owned(), anchor.to_owned()));
                }
            }
            assert!(!link.contains("{base}"), "{path}: {link}");
        }
        for place in [
            "{base}",
            "{limits}",
            "{jobs}",
            "{passMark}",
            "{priceHours}",
            "{disputeTime}",
        ] {
            assert!(!page.contains(place), "{path} has an open place: {place}");
        }
        pages.insert(path, page);
    }
    for (place, anchor) in wanted {
        // The frame has the places of its own.
        assert!(
            values(&pages[&place], "id").contains(anchor.as_str()),
            "{place}#{anchor}"
        );
    }
    for name in names(&service) {
        assert!(pages.contains_key(&format!("/docs/api/{name}")), "no list has {name}");
    }
    for place in [
        "/docs/guide/checks",
        "/docs/sql",
        "/docs/cli",
        "/docs/limits",
        "/docs/changelog",
        "/docs/errors",
    ] {
        assert!(pages.contains_key(place), "no list has {place}");
    }
    for missing in [
        "/docs/api/home_page",
        "/docs/api/none",
        "/docs/guide/none",
        "/docs/none",
    ] {
        let got = Browser::signed_out(&service).get(missing).await;
        assert_eq!(got.status.as_u16(), 404, "{missing}");
    }
}

#[tokio::test]
async fn the_page_of_an_operation_has_what_the_table_has() {
    let service = Service::start().await;
    let table = crate::operations(&service.app.limits);
    let page = open(&service, "/docs/api/create_dataset").await;
    let operation = table.get("create_dataset").unwrap();
    for (name, _) in operation.input.properties() {
        let shown = match operation.spec.location_of(name) {
            ParamLocation::Header(header) => header,
            _ => name,
        };
        assert!(page.contains(&format!("<code>{shown}</code>")), "{name}");
    }
    for expected in [
        "an agent key (<code>km_…</code>)",
        "harmless with <code>Idempotency-Key</code>",
        "id=\"op-curl\"",
        "id=\"op-python\"",
        "id=\"op-typescript\"",
        "id=\"op-mcp\"",
        "<dt><code>422</code></dt>",
        "import httpx",
        "await fetch(",
    ] {
        assert!(page.contains(expected), "{expected} is not in {page}");
    }
    let page = open(&service, "/docs/api/my_credits").await;
    assert!(
        !page.contains("id=\"op-mcp\"") && !page.contains("id=\"try\""),
        "{page}"
    );
    let tools = open(&service, "/docs/tools").await;
    for name in crate::ops::tools::TOOLS {
        assert!(tools.contains(&format!("href=\"/docs/api/{name}\"")), "{name}");
    }
    let errors = open(&service, "/docs/errors").await;
    for row in CODES {
        assert!(errors.contains(&format!("<dt id=\"{}\">", row.word)), "{}", row.word);
    }
}

#[test]
fn a_sample_satisfies_the_schema_of_its_operation() {
    let table = crate::operations(&limits());
    for operation in table.iter().filter(|operation| operation.spec.surface == ApiKind::Rest) {
        let name = operation.spec.name;
        let mut input: Map<String, Value> = serde_json::from_str(operation.spec.example).unwrap_or_default();
        for (member, value) in SampleCall::of(operation, "").members {
            input.insert(member.to_owned(), value);
        }
        let checked = operation.input.check(&Value::Object(input.clone()), &[]);
        assert!(checked.is_ok(), "{name}: {input:?}: {checked:?}");
        for sample in super::samples::of(operation, "https://sluice.example") {
            assert!(
                sample.code.contains("https://sluice.example") || sample.id == "op-mcp",
                "{name}"
            );
            assert!(!sample.code.contains("/{"), "{name}: {}", sample.code);
        }
    }
}

#[tokio::test]
async fn a_call_that_anybody_makes_is_tried_on_its_page() {
    let service = Service::start().await;
    let page = open(&service, "/docs/api/list_licenses?try=1").await;
    assert!(
        page.contains("CC-BY-4.0") && page.contains("aria-label=\"Answer\""),
        "{page}"
    );
    // What the form asks for is a call of the form, and its answer a text.
    let path = "/docs/api/search_knowledge?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E&limit=900&kind=&try=1";
    let page = open(&service, path).await;
    assert!(page.contains("invalid_request") && page.contains("/limit"), "{page}");
    assert!(
        page.contains("value=\"&#60;script&#62;alert(1)") && !page.contains("<script>alert"),
        "{page}"
    );
    // The page without a query is the same for everybody afterwards.
    let page = open(&service, "/docs/api/search_knowledge").await;
    assert!(
        page.contains("value=\"parquet zstd\"") && !page.contains("aria-label=\"Answer\""),
        "{page}"
    );
}

#[tokio::test]
async fn no_call_is_tried_that_needs_a_key_costs_or_changes_something() {
    let service = Service::start().await;
    let table = crate::operations(&service.app.limits);
    let open_names: Vec<&str> = table
        .iter()
        .filter(|operation| trial::is_open(operation))
        .map(|operation| operation.spec.name)
        .collect();
    assert!(open_names.contains(&"search_knowledge"), "{open_names:?}");
    for name in [
        "pay_credits",
        "buy_knowledge",
        "read_dataset",
        "my_quota",
        "create_dataset",
        "dataset_info",
    ] {
        assert!(!open_names.contains(&name), "{name}");
    }
    // A person who is signed in tries as nobody.
    let browser = Browser::signed_in(&service).await;
    let page = browser.get("/docs/api/my_quota?try=1").await.text();
    assert!(!page.contains("aria-label=\"Answer\""), "{page}");
}

#[tokio::test]
async fn the_prices_are_those_in_force() {
    let other = pay::Tariff {
        pack: MicroUsdc(3_000_000),
        egress_block: MicroUsdc(1_234),
        dispute_window_seconds: 3 * 86_400,
        ..tariff()
    };
    let service = Service::priced(config(), limits(), other).await;
    let told = service.get("/pricing.json", None).await.json();
    let page = open(&service, "/pricing?price=0.50").await;
    assert!(
        page.contains("$3.00 a pack") && page.contains("$0.001234 for 64 MiB"),
        "{page}"
    );
    let examples = told["fee"]["examples"].as_array().unwrap();
    let half = examples
        .iter()
        .find(|example| example["price"] == json!(500_000))
        .unwrap();
    let share = half["share"].as_i64().unwrap();
    assert!(page.contains(&format!("you get ${}", shown(share))), "{page}");
    assert!(page.contains("A sale can be disputed within 3 days."), "{page}");
    for path in ["/guide/agents.md", "/guide/sell.md"] {
        let text = service.get(path, None).await.text();
        assert!(text.contains("ntil it is 3 days old"), "{path}: {text}");
    }
    let refused = open(&service, "/pricing?price=%22%3E%3Cscript%3E").await;
    assert!(
        refused.contains("a price is dollars and cents") && !refused.contains("><script>"),
        "{refused}"
    );
}

/// An amount as the page shows it, where it has whole cents.
fn shown(micro: i64) -> String {
    MicroUsdc(micro).to_string()
}
