//! Downloads: a person takes a version as a file that programs of others read.
//!
//! Invariant: the person has a browser's session and never a key; what the file must have is what the interface answers to
//! an agent of the same operator.

mod slow;

use std::io::Cursor;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde_json::{Value, json};
use tests::apps::{App, hidden};
use tests::world::{Agent, contribute, records};
use tests::{Answer, World};

use crate::binary;

/// The browser of a person who is signed in.
pub(crate) struct Downloader {
    browser: App,
    session: String,
    form_token: String,
}

impl Downloader {
    /// Signs the world's first operator in by a letter.
    pub(crate) async fn sign_in(world: &World) -> Self {
        let browser = App::known(world.server.base(), "none");
        let mail = world.server.options().data().join("mail");
        let session = browser.enter(&mail, "first@example.org").await;
        let page = browser.browse(&session, "/console/settings", None).await.expect(200);
        let form_token = hidden(&String::from_utf8(page.bytes).unwrap(), "form_token");
        Self {
            browser,
            session,
            form_token,
        }
    }

    /// Sends the form of a download.
    pub(crate) async fn ask(&self, slug: &str, version: u64, format: &str) -> Answer {
        let version = version.to_string();
        let fields = [
            ("form_token", self.form_token.as_str()),
            ("format", format),
            ("version", &version),
        ];
        let path = format!("/projects/{slug}/download");
        self.browser.browse(&self.session, &path, Some(&fields)).await
    }

    /// Downloads a version; returns the bytes of the file.
    pub(crate) async fn download(&self, slug: &str, version: u64, format: &str) -> Vec<u8> {
        let answer = self.ask(slug, version, format).await.expect(200);
        assert_eq!(
            answer.header("content-disposition"),
            format!("attachment; filename=\"{slug}-v{version}.{format}\"")
        );
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("content-encoding"), "");
        answer.bytes
    }
}

fn one(batches: impl Iterator<Item = RecordBatch>) -> RecordBatch {
    let batches: Vec<_> = batches.collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

#[tokio::test]
async fn a_person_downloads_in_every_format_what_an_agent_exports() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let mut all = records("series", 700);
    for (row, record) in all.iter_mut().enumerate() {
        record["more"] = json!({"row": row, "text": "a,\"b\"\n"});
        record["at"] = json!(format!("2026-01-01T00:00:00.{row:06}Z"));
    }
    all[0]["station"] = json!("=HYPERLINK(\"https://evil.example\")");
    all[1]["station"] = json!("-12.5");
    contribute(&world.agent.http, &slug, &all[..300]).await;
    contribute(&world.agent.http, &slug, &all[300..]).await;
    let person = Downloader::sign_in(&world).await;
    for (version, count) in [(1, 300), (2, 700)] {
        let export = format!("/projects/{slug}/export?version={version}");
        let export = world.agent.http.get(&export).await.expect(200);
        let lines = person.download(&slug, version, "ndjson").await;
        assert_eq!(lines, export.bytes);
        let parquet = person.download(&slug, version, "parquet").await;
        let parquet = ParquetRecordBatchReader::try_new(bytes::Bytes::from(parquet), 1_024).unwrap();
        let parquet = one(parquet.map(Result::unwrap));
        assert_eq!(parquet.num_rows(), count);
        let arrow = person.download(&slug, version, "arrow").await;
        let arrow = StreamReader::try_new(Cursor::new(arrow), None).unwrap();
        let arrow = one(arrow.map(Result::unwrap));
        assert_eq!(arrow.schema().fields(), parquet.schema().fields());
        assert_eq!(arrow.columns(), parquet.columns());
        assert_eq!(
            arrow.schema().field_with_name("more").unwrap().metadata()["sluice.type"],
            "json"
        );
        let csv = String::from_utf8(person.download(&slug, version, "csv").await).unwrap();
        let mut cells = csv.lines();
        assert_eq!(cells.next(), Some("station,sample,value,at,good,more"));
        // A spreadsheet runs no text of a stranger, and a number stays one.
        assert!(
            cells
                .next()
                .is_some_and(|line| line
                    .starts_with("\"'=HYPERLINK(\"\"https://evil.example\"\")\",0,0.5,2026-01-01T00:00:00Z,,")),
            "{csv}"
        );
        assert!(csv.contains("\n-12.5,1,0.5,2026-01-01T00:00:00.000001Z,,"), "{csv}");
    }
}

#[tokio::test]
async fn who_may_not_read_downloads_nothing_and_learns_nothing() {
    let world = World::start(binary()).await;
    let (_, other) = world.newcomer().await;
    let made = async |slug: &str, more: Value| {
        let body = tests::world::merged(tests::world::project_body(slug), more);
        other.http.post("/projects", &body).await.expect(201);
        contribute(&other.http, slug, &records(slug, 3)).await;
    };
    made("hidden", json!({"visibility": "private"})).await;
    made("priced", json!({"access": "paid", "price": "0.10"})).await;
    let person = Downloader::sign_in(&world).await;
    let shown = |answer: &Answer| {
        let text = String::from_utf8(answer.bytes.clone()).unwrap();
        (answer.code(), text.replace(answer.header("x-request-id"), "ID"))
    };
    for (version, format) in [(1, "csv"), (1, "parquet"), (9, "arrow"), (1, "xlsx"), (0, "csv")] {
        let hidden = shown(&person.ask("hidden", version, format).await);
        let missing = shown(&person.ask("absent", version, format).await);
        assert_eq!(
            hidden,
            (404, missing.1.replace("absent", "hidden")),
            "{version} {format}"
        );
    }
    let refused = person.ask("priced", 1, "csv").await.expect(402);
    assert_eq!(refused.header("content-disposition"), "");
    // A purchase opens the version, and a refund closes it.
    let options = world.server.options();
    options.admin(&["credits", "grant", &world.operator.id, "--cents", "50"]);
    let bought = world
        .agent
        .http
        .post("/projects/priced/buy", &json!({}))
        .await
        .expect(200);
    assert!(!person.download("priced", 1, "csv").await.is_empty());
    let opened = options.admin(&["disputes", "open", bought.text("/saleId"), "--reason", "made up"]);
    let dispute = opened["id"].as_str().unwrap();
    options.admin(&["disputes", "resolve", dispute, "--refund", "--answer", "refunded"]);
    world.agent.http.soon("/projects/priced/data", 402).await;
    person.ask("priced", 1, "csv").await.expect(402);
}

#[tokio::test]
async fn downloads_count_as_egress_and_never_spend_credits() {
    let small = |options: tests::Options| options.with("SLUICE__LIMITS__EGRESS_PER_OPERATOR", "2KiB");
    let world = World::start_with(binary(), small).await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 10)).await;
    let options = world.server.options();
    options.admin(&["credits", "grant", &world.operator.id, "--cents", "10"]);
    let person = Downloader::sign_in(&world).await;
    let mut sent = 0;
    loop {
        let answer = person.ask(&slug, 1, "csv").await;
        if answer.code() == 402 {
            assert!(String::from_utf8_lossy(&answer.bytes).contains("egress of the month is used up"));
            break;
        }
        sent += answer.expect(200).bytes.len();
        assert!(sent <= 2 << 10, "{sent}");
    }
    assert!(sent > 0);
    let told = |answer: Answer| answer.body["boughtMicro"].clone();
    let agent: &Agent = &world.agent;
    assert_eq!(told(agent.http.get("/credits").await.expect(200)), json!(100_000));
    let used = agent
        .http
        .comes_to_show("/quota", |quota| {
            quota.body["egress"]["used"].as_u64() >= Some(sent as u64)
        })
        .await;
    assert_eq!(used.body["egress"]["used"], json!(sent));
    options.assert_consistent();
}
