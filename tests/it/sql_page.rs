//! The page that asks a dataset in SQL, from outside: who may run what, what is shown of the answer, and what another site
//! cannot make a browser do.

mod chromium;

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::Answer;
use tests::apps::{App, hidden};
use tests::world::{Agent, contribute, merged, project_body, records};
use types::OperatorId;

pub(crate) use self::chromium::window;
use crate::accounts::Site;
use crate::binary;
use crate::pages::{call_tools, copied, run};

/// A query that no machine finishes in its time.
const ENDLESS: &str = "SELECT count(*) FROM records a, records b, records c, records d WHERE a.value + b.value + c.value + \
                       d.value < 0";

/// A signed-in person, with an agent of the same operator.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) operator: OperatorId,
    pub(crate) browser: App,
    pub(crate) session: String,
    pub(crate) agent: Agent,
}

impl Asker {
    pub(crate) async fn new(site: &Site, email: &str) -> Self {
        let (operator, session) = site.signed_in(email).await;
        let token = site.token(operator).await;
        let name = email.split('@').next().unwrap();
        let made = site
            .http
            .with(&token)
            .post("/agents", &json!({"name": name}))
            .await
            .expect(201);
        Self {
            operator,
            browser: App::known(site.http.base(), "none"),
            session,
            agent: Agent {
                id: made.text("/id").to_owned(),
                name: name.to_owned(),
                key: made.text("/key").to_owned(),
                http: site.http.with(made.text("/key")),
            },
        }
    }

    pub(crate) async fn open(&self, path: &str) -> Answer {
        self.browser.browse(&self.session, path, None).await
    }

    /// Token of the forms of the session.
    pub(crate) async fn token(&self) -> String {
        let page = self.open("/console/settings").await.expect(200);
        hidden(&text(&page), "form_token")
    }

    /// Sends the form with these fields beside the token.
    pub(crate) async fn ask(&self, slug: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.token().await;
        let mut all = vec![("form_token", token.as_str())];
        all.extend(fields);
        self.browser.browse(&self.session, &sql(slug), Some(&all)).await
    }

    /// Bytes that were sent to the operator this month.
    pub(crate) async fn egress(&self) -> u64 {
        let quota = self.agent.http.get("/quota").await.expect(200).body;
        quota["egress"]["used"].as_u64().unwrap_or_else(|| panic!("{quota}"))
    }
}

fn sql(slug: &str) -> String {
    format!("/projects/{slug}/sql")
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.bytes.clone()).unwrap()
}

/// Cells of the table of an answer, row by row, as a reader sees them.
pub(crate) fn cells(page: &str) -> Vec<Vec<String>> {
    let (_, body) = page.split_once("<tbody>").unwrap_or_else(|| panic!("{page}"));
    let (body, _) = body.split_once("</tbody>").unwrap();
    let cell = |cell: &str| {
        let (_, inner) = cell.split_once('>').unwrap();
        let inner = inner.split("</td>").next().unwrap();
        let mut words = String::new();
        for part in inner.split('<') {
            words.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        }
        words
    };
    let row = |row: &str| row.split("<td").skip(1).map(cell).collect();
    body.split("<tr>").skip(1).map(row).collect()
}

pub(crate) async fn project(owner: &Asker, slug: &str, more: Value) {
    let body = merged(project_body(slug), more);
    owner.agent.http.post("/projects", &body).await.expect(201);
    contribute(&owner.agent.http, slug, &records("wick", 3)).await;
}

pub(crate) async fn start() -> (Site, Asker, Asker) {
    let site = Site::start(None, |options| options).await;
    let owner = Asker::new(&site, "ada@example.org").await;
    let other = Asker::new(&site, "bob@example.org").await;
    (site, owner, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_asks_a_free_dataset_and_gets_table_chart_link_and_files() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    contribute(
        &owner.agent.http,
        "tides",
        &[json!({"station": "", "sample": 7, "more": {"a": [1]}})],
    )
    .await;
    let before = other.egress().await;
    let statement = "SELECT station, sample, value, more\nFROM records\nORDER BY sample";
    let page = other
        .ask("tides", &[("q", statement), ("version", "2")])
        .await
        .expect(200);
    let html = text(&page);
    assert_eq!(
        cells(&html),
        [
            ["wick", "0", "0.5", "nullno value"],
            ["wick", "1", "0.5", "nullno value"],
            ["wick", "2", "0.5", "nullno value"],
            ["\"\"empty text", "7", "nullno value", "{&#34;a&#34;:[1]}"],
        ]
    );
    assert!(html.contains("4 rows") && html.contains("of version 2"), "{html}");
    let manifest = other.agent.http.get("/projects/tides/manifest").await.expect(200).body;
    assert!(html.contains(manifest["root"].as_str().unwrap()), "{html}");
    assert!(
        html.contains("aria-label=\"\u{2068}sample\u{2069} by \u{2068}station\u{2069}: 4 numbers"),
        "{html}"
    );
    // The records that were sent count, as they do for an agent.
    let sent = other.egress().await - before;
    assert!((80..400).contains(&sent), "{sent}");

    // The link names the version, fills the box and runs nothing.
    contribute(&owner.agent.http, "tides", &records("leith", 1)).await;
    let (_, link) = html.split_once("id=\"link\" tabindex=\"0\">").unwrap();
    let link = link.split('<').next().unwrap().replace("&#38;", "&");
    let (_, path) = link.split_once("/projects/").unwrap();
    let filled = owner.open(&format!("/projects/{path}")).await.expect(200);
    let filled = text(&filled);
    assert!(
        filled.contains("SELECT station, sample, value, more\nFROM records"),
        "{filled}"
    );
    assert!(
        filled.contains("<option value=\"2\" selected>") && !filled.contains("<tbody>"),
        "{filled}"
    );

    // The calls for programs ask the same.
    let folder = tempfile::tempdir().unwrap();
    symlink(binary(), folder.path().join("sluice")).unwrap();
    for id in ["as-curl", "as-cli"] {
        let said = run(folder.path(), &other.agent, "tides", &copied(&html, id));
        assert!(said.contains("wick") && said.contains("0.5"), "{said}");
    }
    let said = call_tools(&other.agent.http, &copied(&html, "as-mcp")).await;
    assert_eq!(said["result"]["structuredContent"]["rowCount"], json!(4), "{said}");

    // A file has the same rows; one that is cut says so in its name.
    for (format, end, begin) in [
        ("csv", "csv", &b"station,sample,value,more\nwick,0,0.5,\n"[..]),
        (
            "ndjson",
            "ndjson",
            b"{\"station\":\"wick\",\"sample\":0,\"value\":0.5,\"more\":null}\n",
        ),
        ("parquet", "parquet", b"PAR1"),
        ("arrow", "arrow", b"\xff\xff\xff\xff"),
    ] {
        let file = other
            .ask("tides", &[("q", statement), ("version", "2"), ("file", format)])
            .await
            .expect(200);
        let name = format!("attachment; filename=\"tides-v2-answer.{end}\"");
        assert_eq!(file.header("content-disposition"), name);
        assert!(
            file.bytes.starts_with(begin),
            "{format}: {}",
            String::from_utf8_lossy(&file.bytes)
        );
    }
    let cut = [("q", statement), ("version", "3"), ("limit", "2"), ("file", "csv")];
    let file = other.ask("tides", &cut).await.expect(200);
    assert_eq!(
        file.header("content-disposition"),
        "attachment; filename=\"tides-v3-answer-first-2.csv\""
    );
    let cut = other.ask("tides", &cut[..3]).await.expect(200);
    assert!(
        text(&cut).contains("The first 2 rows; there are more"),
        "{}",
        text(&cut)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_page_runs() {
    let (_site, owner, _) = start().await;
    let kinds = [
        "string",
        "integer",
        "number",
        "boolean",
        "timestamp",
        "json",
        "date",
        "decimal",
    ];
    let field = |name: &str, kind: &str| {
        let scale = if kind == "decimal" { json!(2) } else { Value::Null };
        merged(json!({"name": name, "type": kind}), json!({"scale": scale}))
    };
    // Names that are words of SQL, or not made of letters.
    let mut contracts: Vec<Vec<Value>> = kinds.iter().map(|kind| vec![field("select", kind)]).collect();
    let odd = ["Group", "order", "a\"b", "é-1", "user", "at", "row_count", "date"];
    contracts.push(odd.iter().zip(kinds).map(|(name, kind)| field(name, kind)).collect());
    contracts.push(
        odd.iter()
            .zip(kinds.iter().rev())
            .map(|(name, kind)| field(name, kind))
            .collect(),
    );
    for (number, fields) in contracts.into_iter().enumerate() {
        let slug = format!("examples-{number}");
        let record = |text: &str| {
            let value = |field: &Value| match field["type"].as_str().unwrap() {
                "string" => json!(text),
                "integer" => json!(text.len()),
                "number" => json!(0.5),
                "boolean" => json!(true),
                "timestamp" => json!("2026-11-01T10:00:00Z"),
                "date" => json!("2026-11-01"),
                "decimal" => json!("1.50"),
                _ => json!({"a": text}),
            };
            let members = fields
                .iter()
                .map(|field| (field["name"].as_str().unwrap().to_owned(), value(field)));
            Value::Object(members.collect())
        };
        let body = merged(project_body(&slug), json!({"schemaDef": {"fields": fields}}));
        owner.agent.http.post("/projects", &body).await.expect(201);
        contribute(&owner.agent.http, &slug, &[record("a"), record("ab")]).await;
        let page = text(&owner.open(&sql(&slug)).await.expect(200));
        let links: Vec<_> = page
            .split(&format!("<li><a href=\"{}?", sql(&slug)))
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().replace("&#38;", "&"))
            .collect();
        assert_eq!(links.len(), 4, "{page}");
        for link in links {
            let fields: Vec<(String, String)> = reqwest::Url::parse(&format!("http://x/?{link}"))
                .unwrap()
                .query_pairs()
                .into_owned()
                .collect();
            let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            let answer = owner.ask(&slug, &fields).await;
            let html = text(&answer);
            assert_eq!(answer.code(), 200, "{fields:?}: {html}");
            let is_empty = html.contains("no row matches");
            assert!(is_empty || !cells(&html).is_empty(), "{fields:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_points_at_its_place_and_keeps_the_statement() {
    let (_site, owner, _) = start().await;
    project(&owner, "tides", json!({})).await;
    for (statement, status, shown) in [
        (
            "SELECT station,\n  smaple\nFROM records",
            400,
            vec![
                "There is no column `smaple`",
                "Line 2, character 3",
                "<mark>smaple</mark>",
                "<bdi>sample</bdi></code>?",
            ],
        ),
        ("DROP TABLE records", 400, vec!["Line 1, character 1", "<mark>DROP"]),
        ("SELECT FROM WHERE", 400, vec!["Line 1, character "]),
        (
            "SELECT sum(station)\nFROM records",
            400,
            vec!["Line 1, character 8", "<mark>sum</mark>"],
        ),
        ("SELECT 1 / 0 FROM records", 400, vec!["ivision by zero"]),
        (
            "SELECT '<script>alert(1)</script>' || nope FROM records",
            400,
            vec!["Line 1, character 39"],
        ),
    ] {
        let page = owner.ask("tides", &[("q", statement)]).await;
        let html = text(&page);
        assert_eq!(page.code(), status, "{statement}: {html}");
        for words in shown {
            assert!(html.contains(words), "{statement}: {words}: {html}");
        }
        let kept = statement
            .replace('<', "&#60;")
            .replace('>', "&#62;")
            .replace('\'', "&#39;");
        assert!(
            html.contains(&kept) && !html.contains("<script>alert"),
            "{statement}: {html}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_site_and_a_link_run_nothing() {
    let (_site, owner, other) = start().await;
    project(&owner, "tides", json!({})).await;
    let before = other.egress().await;
    // A link, from wherever it is opened.
    let link = format!("{}?version=1&q=SELECT+*+FROM+records", sql("tides"));
    let opened = other
        .browser
        .browse_from("https://evil.example", &other.session, &link, None)
        .await
        .expect(200);
    assert!(text(&opened).contains("SELECT * FROM records") && !text(&opened).contains("<tbody>"));
    // A form of another site, with the token or without.
    let token = other.token().await;
    let fields = [
        ("form_token", token.as_str()),
        ("q", "SELECT * FROM records"),
        ("file", "csv"),
    ];
    let address = sql("tides");
    let foreign = |origin: &'static str, fields| {
        other
            .browser
            .browse_from(origin, &other.session, &address, Some(fields))
    };
    assert_eq!(foreign("https://evil.example", &fields[..]).await.code(), 403);
    assert_eq!(foreign("null", &fields[..]).await.code(), 403);
    // A form of this service without the token of the session, or with another's.
    let base = other.browser.browse(&other.session, &address, Some(&fields[1..])).await;
    assert_eq!(base.code(), 403);
    let stolen = owner.token().await;
    let fields = [("form_token", stolen.as_str()), ("q", "SELECT * FROM records")];
    assert_eq!(
        other
            .browser
            .browse(&other.session, &address, Some(&fields))
            .await
            .code(),
        403
    );
    assert_eq!(other.egress().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_dataset_answers_like_a_missing_one_and_a_paid_one_names_its_price() {
    let (site, owner, other) = start().await;
    project(&owner, "secret", json!({"visibility": "private"})).await;
    project(&owner, "paid", json!({"access": "paid", "price": "0.10"})).await;
    let seen = |answer: &Answer, slug: &str| {
        let id = answer.header("x-request-id").to_owned();
        (answer.code(), text(answer).replace(&id, "").replace(slug, "missing"))
    };
    let nobody = String::new();
    for session in [&other.session, &nobody] {
        for query in ["", "?q=SELECT+1", "?version=1", "?version=99", "?version=no"] {
            let open = async |slug: &str| {
                let page = other
                    .browser
                    .browse(session, &format!("{}{query}", sql(slug)), None)
                    .await;
                seen(&page, slug)
            };
            let (private, missing) = (open("secret").await, open("missing").await);
            assert_eq!(private, missing, "{query}");
            assert_eq!(private.0, 404, "{query}");
        }
    }
    for fields in [
        vec![("q", "SELECT 1")],
        vec![("q", "SELECT 1"), ("version", "1")],
        vec![("file", "pdf")],
    ] {
        let (private, missing) = (other.ask("secret", &fields).await, other.ask("missing", &fields).await);
        assert_eq!(seen(&private, "secret"), seen(&missing, "missing"), "{fields:?}");
        assert_eq!(private.code(), 404, "{fields:?}");
    }
    // Its owner asks it.
    owner
        .ask("secret", &[("q", "SELECT count(*) FROM records")])
        .await
        .expect(200);

    // A visitor signs in first, and finds the statement again.
    let visitor = other
        .browser
        .browse("", &sql("paid"), Some(&[("q", "SELECT 1"), ("version", "1")]))
        .await;
    assert_eq!(visitor.code(), 303);
    assert!(
        visitor
            .header("location")
            .starts_with("/signin?next=/projects/paid/sql%3Fversion%3D1"),
        "{visitor:?}"
    );
    // Without a right the page has no button, and the form is refused with the price.
    let page = text(&other.open(&sql("paid")).await.expect(200));
    assert!(page.contains("$0.10") && !page.contains("data-run"), "{page}");
    let refused = other
        .ask("paid", &[("q", "SELECT count(*) FROM records")])
        .await
        .expect(402);
    assert!(
        text(&refused).contains("0.10") && !text(&refused).contains("<tbody>"),
        "{}",
        text(&refused)
    );
    // A purchase opens its version and those before, and no later one.
    site.grant(other.operator, "10");
    other
        .agent
        .http
        .post("/projects/paid/buy", &json!({"version": 1}))
        .await
        .expect(200);
    contribute(&owner.agent.http, "paid", &records("leith", 1)).await;
    let count = ("q", "SELECT count(*) AS n FROM records");
    let page = other.ask("paid", &[count]).await.expect(200);
    assert_eq!(cells(&text(&page)), [["3"]]);
    assert!(
        text(&page).contains("Your account has v1 and all before"),
        "{}",
        text(&page)
    );
    other.ask("paid", &[count, ("version", "2")]).await.expect(402);
    assert_eq!(cells(&text(&owner.ask("paid", &[count]).await.expect(200))), [["4"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tabs_of_a_person_ask_one_after_the_other() {
    let site = Site::start(None, |options| options.with("SLUICE__LIMITS__QUERY_TIMEOUT", "8s")).await;
    let owner = Asker::new(&site, "ada@example.org").await;
    project(&owner, "tides", json!({})).await;
    contribute(&owner.agent.http, "tides", &records("leith", 500)).await;
    // The first to come runs, the other waits for it.
    let (one, two) = tokio::join!(
        owner.ask(
            "tides",
            &[(
                "q",
                "SELECT count(*) AS n FROM records a, records b WHERE a.sample < b.sample"
            )]
        ),
        owner.ask("tides", &[("q", "SELECT count(*) AS n FROM records")]),
    );
    assert_eq!(
        (
            cells(&text(&one.expect(200))).len(),
            cells(&text(&two.expect(200))).len()
        ),
        (1, 1)
    );

    // One that runs to the end of its time keeps another for no longer than a page waits.
    let endless = async {
        loop {
            let ended = owner.ask("tides", &[("q", ENDLESS)]).await;
            if ended.code() != 429 {
                return ended;
            }
        }
    };
    let second = async {
        loop {
            let (begun, statement) = (Instant::now(), "SELECT 7 AS lucky\nFROM records\nLIMIT 1");
            let second = owner.ask("tides", &[("q", statement), ("chart", "line")]).await;
            if second.code() == 200 {
                continue;
            }
            let html = text(&second);
            assert_eq!(second.code(), 429, "{html}");
            assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
            assert!(html.contains("Try again") && html.contains(statement), "{html}");
            assert!(html.contains("value=\"line\" checked"), "{html}");
            assert!(!second.header("retry-after").is_empty());
            return;
        }
    };
    let (ended, ()) = tokio::join!(endless, second);
    let html = text(&ended);
    assert_eq!(ended.code(), 408, "{html}");
    assert!(
        html.contains("longer than 8 seconds") && html.contains("FROM records a"),
        "{html}"
    );
    // The next one runs.
    owner
        .ask("tides", &[("q", "SELECT count(*) FROM records")])
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_that_asks_spends_no_credits() {
    let site = Site::start(None, |options| {
        options.with("SLUICE__LIMITS__EGRESS_PER_OPERATOR", "1KiB")
    })
    .await;
    let owner = Asker::new(&site, "ada@example.org").await;
    let other = Asker::new(&site, "bob@example.org").await;
    project(&owner, "tides", json!({})).await;
    contribute(&owner.agent.http, "tides", &records("leith", 200)).await;
    site.grant(other.operator, "5");
    let all = [("q", "SELECT * FROM records"), ("limit", "1000")];
    let file = [all[0], all[1], ("file", "csv")];
    for fields in [&all[..], &file[..]] {
        let refused = other.ask("tides", fields).await.expect(402);
        let html = text(&refused);
        assert!(
            html.contains("egress of the month is used up, and a page buys no more") && !html.contains("<tbody>"),
            "{html}"
        );
        assert!(html.contains("SELECT * FROM records"), "{html}");
    }
    let credits = other.agent.http.get("/credits").await.expect(200).body;
    assert_eq!(credits["boughtMicro"], json!(50_000));
    // What is left of it is there.
    other
        .ask("tides", &[("q", "SELECT count(*) FROM records")])
        .await
        .expect(200);
}
