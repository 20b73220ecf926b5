//! Links to the rows of a dataset, and what stands beside the rows: a link that the form of the viewer did not make runs
//! nothing, and one of another site costs its reader nothing.

use std::time::{Duration, Instant};

use serde_json::json;
use tests::Options;
use tests::server::DEADLINE;
use tests::world::contribute;

use super::{from_elsewhere, opened, profile, rows, samples, tied, with_token};
use crate::accounts::Site;
use crate::sql_page::{Asker, project, start, text};

/// Time between two looks at a page, which are egress each.
const PAUSE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_of_another_site_or_of_a_readme_runs_nothing() {
    let (_site, owner, other) = start().await;
    let link = rows("tides", "?version=1&sort=sample&dir=desc&f1=sample&o1=is&v1=1");
    let spellings = [
        link.clone(),
        "tides/rows?f1=sample&o1=null".to_owned(),
        "./tides/../tides/rows?sort=sample#x".to_owned(),
        format!("{}{link}", owner.agent.http.base()),
        link.replace('/', "\\\\"),
        "/projects/tides/sql?q=SELECT+1".to_owned(),
    ];
    let readme: Vec<_> = spellings.iter().map(|link| format!("[here](<{link}>)")).collect();
    let readme = format!(
        "{}\n\n[find](/find?q=tides) and [away](https://example.org/projects/x/rows?a=b)",
        readme.join("\n\n")
    );
    project(&owner, "tides", json!({"readme": readme})).await;
    let page = opened(&owner, "/projects/tides").await;
    let (_, about) = page.split_once("id=\"about\"").unwrap();
    let (about, _) = about.split_once("</section>").unwrap();
    let links: Vec<_> = about
        .split("href=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(links.len(), spellings.len() + 2, "{about}");
    for link in &links[..spellings.len()] {
        assert!(
            !link.contains('?') && (link.contains("/rows") || link.contains("/sql")),
            "{link}"
        );
    }
    assert_eq!(
        links[spellings.len()..],
        ["/find?q=tides", "https://example.org/projects/x/rows?a=b"]
    );
    // From elsewhere no row is read, and nothing is taken from the egress of the reader.
    let before = other.egress().await;
    for path in [
        "/projects/tides".to_owned(),
        link.clone(),
        rows("tides", "?version=1&row=2"),
        "/projects/tides/versions/1".to_owned(),
    ] {
        let shown = text(&from_elsewhere(&other, &other.session, &path).await.expect(200));
        assert!(
            shown.contains("nother site led here") && !shown.contains("id=\"view\""),
            "{path}: {shown}"
        );
    }
    assert_eq!(other.egress().await, before);
    let shown = text(&from_elsewhere(&other, &other.session, &link).await.expect(200));
    assert!(
        shown.contains(&format!("href=\"{}\">Show all rows", link.replace('&', "&#38;"))),
        "{shown}"
    );
    // A page of this service can lead to the same address without meaning it, and another person has another token.
    let foreign = with_token(&owner, &link).await;
    for path in [&link, &foreign, &format!("{link}&run=")] {
        let shown = text(&other.open(path).await.expect(200));
        assert_eq!(samples(&shown), [0, 1, 2], "{path}");
        assert!(
            shown.contains("They are not applied yet") && shown.contains(">Apply</button>"),
            "{shown}"
        );
        assert!(!shown.contains("aria-sort"), "{shown}");
    }
    assert!(other.egress().await > before);
    // The button sends the token of the page.
    assert_eq!(samples(&opened(&other, &link).await), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_filtered_is_asked_in_sql_and_not_run() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    contribute(&owner.agent.http, "tides", &tied(130)).await;
    let path = rows("tides", "?version=2&f1=station&o1=is&v1=50%25_off&sort=value&dir=desc");
    let page = opened(&other, &path).await;
    let (before, _) = page.split_once("\">As SQL</a>").unwrap();
    let (_, link) = before.rsplit_once("href=\"").unwrap();
    let asked = opened(&other, &link.replace("&#38;", "&")).await;
    assert!(!asked.contains("id=\"answer\""), "{asked}");
    let (_, statement) = asked.split_once("<textarea").unwrap();
    let (statement, _) = statement.split_once("</textarea>").unwrap();
    let (_, statement) = statement.split_once('>').unwrap();
    let statement = statement.trim().replace("&#34;", "\"").replace("&#39;", "'");
    assert_eq!(
        statement,
        "SELECT *\nFROM records\nWHERE \"station\" = '50%_off'\nORDER BY \"value\" DESC NULLS LAST"
    );
    let question = json!({"version": 2, "sql": statement});
    let answer = other
        .agent
        .http
        .post("/projects/tides/query", &question)
        .await
        .expect(200);
    assert_eq!(answer.body["rows"].as_array().unwrap().len(), 44);
    assert!(page.contains("of 44 row"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_heads_of_an_older_version_have_the_figures_before_it_and_then_its_own() {
    let site = Site::start(None, |options: Options| options.with("SLUICE__PROFILES__EVERY", "1h")).await;
    let owner = Asker::new(&site, "ada@example.org").await;
    project(&owner, "tides", json!({})).await;
    profile(&owner, "tides", 1).await;
    contribute(&owner.agent.http, "tides", &tied(400)).await;
    let later = [json!({"station": "leith", "sample": 400})];
    contribute(&owner.agent.http, "tides", &later).await;
    // A version later than the one that is read has figures, which are not of it.
    let newest = owner.agent.http.get("/projects/tides/profile?version=3").await;
    newest.expect(200);
    let page = opened(&owner, &rows("tides", "?version=2")).await;
    assert!(
        page.contains("<svg class=\"hist\"") && !page.contains("0 to 400"),
        "{page}"
    );
    let deadline = Instant::now() + DEADLINE;
    while !opened(&owner, &rows("tides", "?version=2")).await.contains("0 to 399") {
        assert!(Instant::now() < deadline, "nobody made the profile");
        tokio::time::sleep(PAUSE).await;
    }
}
