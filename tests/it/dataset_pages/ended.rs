//! Rights that end while somebody reads: within a second every door is as for one who never had them.
//!
//! Invariant: before a right ends each door has answered by it, so nothing that is remembered may answer afterwards.

use serde_json::json;
use tests::Answer;
use tests::world::contribute;

use super::{profile, profiled, rows, tied, with_token};
use crate::sql_page::{Asker, project, text};

/// Words that stand in rows of [`tied`] and nowhere else.
const OF_ROWS: [&str; 2] = ["50%_off", "2026-05-0"];
/// Pages of a dataset that show rows to those who may read them.
const PAGES: [&str; 6] = [
    "",
    "/rows?version=2&offset=50",
    "/rows?version=2&row=7",
    "/rows?version=2&sort=sample&dir=desc",
    "/rows?version=2&f1=sample&o1=less&v1=50",
    "/versions/2?from=1",
];

/// The addresses of [`PAGES`] of a dataset, with the token of the person where rows are filtered or ordered.
async fn addresses(person: &Asker, slug: &str) -> Vec<String> {
    let mut addresses = Vec::new();
    for page in PAGES {
        addresses.push(with_token(person, &format!("/projects/{slug}{page}")).await);
    }
    addresses
}

/// Every door by which a person, or an agent of the same operator, gets rows of version 2 of a dataset; its name, and the
/// answer. `addresses` are those of its pages.
async fn doors(person: &Asker, slug: &str, addresses: &[String]) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for (page, address) in PAGES.iter().zip(addresses) {
        answers.push(((*page).to_owned(), person.open(address).await));
    }
    let statement = ("q", "SELECT station, at FROM records ORDER BY sample");
    for file in ["", "csv"] {
        let fields = [statement, ("version", "2"), ("file", file)];
        let sent = person.ask(slug, &fields[..if file.is_empty() { 2 } else { 3 }]).await;
        answers.push((format!("/sql {file}"), sent));
    }
    let token = person.token().await;
    for format in ["csv", "ndjson", "arrow", "parquet"] {
        let fields = [("form_token", token.as_str()), ("version", "2"), ("format", format)];
        let path = format!("/projects/{slug}/download");
        let sent = person.browser.browse(&person.session, &path, Some(&fields)).await;
        answers.push((format!("/download {format}"), sent));
    }
    for path in [
        "/data?version=2",
        "/export?version=2",
        "/profile?version=2",
        "/preview?version=2",
    ] {
        answers.push((
            path.to_owned(),
            person.agent.http.get(&format!("/projects/{slug}{path}")).await,
        ));
    }
    answers
}

fn has_rows(answer: &Answer) -> bool {
    let text = String::from_utf8_lossy(&answer.bytes);
    OF_ROWS.iter().any(|words| text.contains(words))
}

/// Fails unless a door answers by the right to read.
fn opened(answers: &[(String, Answer)]) {
    for (door, answer) in answers {
        assert_eq!(answer.code(), 200, "{door}: {}", String::from_utf8_lossy(&answer.bytes));
        // The token is taken, so the rows are filtered or ordered indeed.
        let is_applied = !String::from_utf8_lossy(&answer.bytes).contains("They are not applied yet");
        assert!(is_applied, "{door}");
        // Compressed files show nothing to a search, and a profile has no rows.
        let is_shown = !["parquet", "arrow", "/profile"].iter().any(|kind| door.contains(kind));
        assert!(
            !is_shown || has_rows(answer),
            "{door}: {}",
            String::from_utf8_lossy(&answer.bytes)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_taken_down_while_it_is_read_is_a_missing_one_at_every_door() {
    let (site, owner, other) = profiled().await;
    project(&owner, "tides", json!({})).await;
    contribute(&owner.agent.http, "tides", &tied(120)).await;
    profile(&owner, "tides", 2).await;
    let pages = [addresses(&other, "tides").await, addresses(&owner, "tides").await];
    opened(&doors(&other, "tides", &pages[0]).await);
    site.take_down("tides").await;
    other.agent.http.soon("/projects/tides/data", 404).await;
    let seen = |answer: &Answer, slug: &str| {
        let text = String::from_utf8_lossy(&answer.bytes).replace(answer.header("x-request-id"), "ID");
        (answer.code(), text.replace(slug, "missing"))
    };
    for (person, pages) in [&other, &owner].into_iter().zip(&pages) {
        let of_missing: Vec<_> = pages
            .iter()
            .map(|address| address.replace("tides", "missing"))
            .collect();
        let down = doors(person, "tides", pages).await;
        let missing = doors(person, "missing", &of_missing).await;
        for ((door, down), (_, missing)) in down.iter().zip(&missing) {
            assert!(matches!(down.code(), 303 | 404), "{door}: {}", down.code());
            let page = String::from_utf8_lossy(&down.bytes);
            if down.code() == 404 && PAGES.contains(&door.as_str()) {
                // A person who follows a link learns that something was here, and neither its title nor a row of it.
                assert!(page.contains("This dataset is gone"), "{door}: {page}");
                assert!(
                    !page.contains("Readings of the stations") && !has_rows(down),
                    "{door}: {page}"
                );
                assert_eq!(missing.code(), 404, "{door}");
                assert!(!String::from_utf8_lossy(&missing.bytes).contains("is gone"), "{door}");
            } else {
                assert_eq!(seen(down, "tides"), seen(missing, "missing"), "{door}");
            }
        }
    }
    let visitor = other.browser.browse("", &rows("tides", ""), None).await;
    assert_eq!(visitor.code(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purchase_that_is_refunded_while_it_is_read_opens_no_door() {
    let (site, owner, other) = profiled().await;
    // Nothing was offered, so there is no preview either.
    project(&owner, "paid", json!({"access": "paid", "price": "0.10"})).await;
    let unseen = json!({"previewRows": null});
    owner.agent.http.patch("/projects/paid", &unseen).await.expect(200);
    contribute(&owner.agent.http, "paid", &tied(120)).await;
    profile(&owner, "paid", 2).await;
    site.grant(other.operator, "10");
    let bought = other
        .agent
        .http
        .post("/projects/paid/buy", &json!({}))
        .await
        .expect(200);
    let pages = addresses(&other, "paid").await;
    opened(&doors(&other, "paid", &pages).await);
    // The person has the page open, with its form.
    let page = text(&other.open(&rows("paid", "?version=2")).await.expect(200));
    assert!(page.contains("id=\"view\""), "{page}");
    site.refund(bought.text("/saleId"));
    other.agent.http.soon("/projects/paid/data", 402).await;
    for (door, answer) in doors(&other, "paid", &pages).await {
        let shown = String::from_utf8_lossy(&answer.bytes);
        assert!(!has_rows(&answer), "{door}: {shown}");
        let is_page = PAGES.contains(&door.as_str()) || door.starts_with("/preview");
        let is_refused = match answer.code() {
            200 | 303 => is_page,
            402 => !is_page || door.contains("/versions"),
            404 => door.starts_with("/profile"),
            _ => false,
        };
        assert!(is_refused, "{door}: {}: {shown}", answer.code());
    }
}
