//! A service with a person, a dataset of many rows, one of few versions and one of very many.
//!
//! Invariant: the datasets are made once in the folder, through the doors of the service, and used again by the next run.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tests::apps::{App, encoded, hidden, hidden_fields};
use tests::world::{Agent, Operator, batch, contribute, merged, project_body};
use tests::{Http, Options, Server};

use super::sizes_below;
use crate::bulk::upload;
use crate::{argument, server};

/// Names of the datasets.
pub(super) const LARGE: &str = "large";
pub(super) const FEW: &str = "few";
pub(super) const MANY: &str = "many";
/// Rows of the large dataset and versions of the one of many, unless the command line says otherwise.
const ROWS: u64 = 1_000_000;
const VERSIONS: u64 = 10_000;
/// Versions of the dataset of few.
const FEW_VERSIONS: u64 = 10;
/// Rows of each of these versions.
const VERSION_ROWS: u64 = 20;
/// Contributions under way at once while the dataset of many is made.
const AT_ONCE: usize = 32;
/// Rows of a version that the large dataset grows by.
const GROWTH: u64 = 500;
const EMAIL: &str = "bench@example.org";

/// Everything that is measured.
pub(super) struct Scene {
    pub(super) server: Server,
    /// The agent that made the datasets.
    pub(super) own: Http,
    /// Rows of `large` when it was made.
    pub(super) rows: u64,
    browser: App,
    session: String,
    form_token: String,
}

/// A contract of ten columns.
fn contract() -> Value {
    json!({"fields": [
        {"name": "id", "type": "string", "required": true}, {"name": "value", "type": "number"},
        {"name": "count", "type": "integer"}, {"name": "ok", "type": "boolean"}, {"name": "note", "type": "string"},
        {"name": "at", "type": "timestamp"}, {"name": "day", "type": "date"}, {"name": "more", "type": "json"},
        {"name": "price", "type": "decimal", "scale": 2}, {"name": "ratio", "type": "number"},
    ]})
}

/// A record of [`contract`] that no other number has.
fn record(row: u64) -> Value {
    let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let thousands = f64::from(u32::try_from(mixed % 1_000_000).unwrap()) / 1_000.0;
    json!({
        "id": format!("{mixed:012x}"), "value": thousands, "count": row, "ok": row.is_multiple_of(3),
        "note": format!("reading {} of the gauge at the quay", row % 997),
        "at": format!("2026-01-{:02}T{:02}:{:02}:00.{:06}Z", 1 + row % 28, row % 24, row % 60, mixed % 1_000_000),
        "day": format!("2026-{:02}-{:02}", 1 + row % 12, 1 + row % 28), "more": {"a": [row % 7, "b"], "c": thousands},
        "price": format!("{}.{:02}", mixed % 10_000, row % 100), "ratio": thousands / 7.0,
    })
}

fn number(name: &str, usual: u64) -> u64 {
    argument(name).map_or(usual, |text| text.parse().unwrap())
}

impl Scene {
    /// Starts the service, and makes what is not there yet.
    pub(super) async fn set(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let options = Options::new(server(), folder.join("data"))
            .with("SLUICE__PROFILES__EVERY", "1h")
            .with("SLUICE__PROFILES__REQUEST_ROWS", 1_000_000_000)
            .with("SLUICE__LIMITS__EGRESS_PER_OPERATOR", "10000GiB")
            .with("SLUICE__LIMITS__PLATFORM_EGRESS_PER_MONTH", "10000GiB");
        let server = Server::start(&options).await;
        let told = folder.join("key.txt");
        if !told.exists() {
            // The address of the operator is that of the person who signs in.
            let operator = Operator::create(&options, "bench");
            let agent = Agent::create(&server.http(), &operator, "bench.agent").await;
            fs::write(&told, agent.key).unwrap();
        }
        let own = server.http().with(&fs::read_to_string(&told).unwrap());
        let browser = App::known(server.base(), "none");
        let mail = options.data().join("mail");
        // Letters of an earlier run let nobody in.
        for letter in fs::read_dir(&mail).into_iter().flatten().flatten() {
            fs::remove_file(letter.path()).unwrap();
        }
        let session = browser.enter(&mail, EMAIL).await;
        let settings = browser.browse(&session, "/console/settings", None).await.expect(200);
        let scene = Self {
            form_token: hidden(&String::from_utf8(settings.bytes).unwrap(), "form_token"),
            rows: number("--rows", ROWS),
            server,
            own,
            browser,
            session,
        };
        scene.fill(FEW, FEW_VERSIONS).await;
        scene.fill(MANY, number("--versions", VERSIONS)).await;
        scene.fill_large(folder).await;
        scene
    }

    /// Makes a project unless it is there; true if it was made.
    async fn make(&self, slug: &str) -> bool {
        let body = merged(project_body(slug), json!({"schemaDef": contract()}));
        let made = self.own.get(&format!("/projects/{slug}")).await.code() == 404;
        if made {
            self.own.post("/projects", &body).await.expect(201);
        }
        made
    }

    /// Makes a dataset of so many small versions, with the profile of the newest.
    async fn fill(&self, slug: &str, versions: u64) {
        self.make(slug).await;
        let (first, _) = self.size(slug).await;
        let path = format!("/projects/{slug}/contribute?wait=20");
        stream::iter(first..versions)
            .for_each_concurrent(AT_ONCE, |version| {
                let rows = version * VERSION_ROWS..(version + 1) * VERSION_ROWS;
                let records: Vec<Value> = rows.map(record).collect();
                let path = &path;
                async move {
                    self.own.post(path, &batch(&records)).await.expect(201);
                }
            })
            .await;
        let (version, _) = self.size(slug).await;
        assert_eq!(version, versions);
        let profile = format!("/projects/{slug}/profile?version={version}");
        self.own.comes_to_show(&profile, |answer| answer.code() == 200).await;
    }

    /// Makes the dataset of many rows: a version of one, so that its first profile is built, and one with all others.
    async fn fill_large(&self, folder: &Path) {
        if !self.make(LARGE).await {
            return;
        }
        contribute(&self.own, LARGE, &[record(0)]).await;
        let profile = format!("/projects/{LARGE}/profile?version=1");
        self.own.comes_to_show(&profile, |answer| answer.code() == 200).await;
        let file = folder.join("rows.ndjson");
        let mut lines = BufWriter::new(fs::File::create(&file).unwrap());
        for row in 1..self.rows {
            writeln!(lines, "{}", record(row)).unwrap();
        }
        lines.into_inner().unwrap().sync_all().unwrap();
        upload(&self.server, &self.own, LARGE, &file).await;
        fs::remove_file(file).unwrap();
    }

    /// The newest version of a dataset and its rows.
    pub(super) async fn size(&self, slug: &str) -> (u64, u64) {
        let info = self.own.get(&format!("/projects/{slug}")).await.expect(200).body;
        (
            info["latestVersion"].as_u64().unwrap(),
            info["recordCount"].as_u64().unwrap(),
        )
    }

    /// Adds a version to a dataset; the newest.
    pub(super) async fn grow(&self, slug: &str) -> u64 {
        let (_, rows) = self.size(slug).await;
        let records: Vec<Value> = (rows..rows + GROWTH).map(record).collect();
        let outcome = contribute(&self.own, slug, &records).await;
        outcome.body["mergedVersion"].as_u64().unwrap()
    }

    /// Deletes the sketches that are kept, so that they are made anew.
    pub(super) fn forget_sketches(&self) {
        for (path, _) in self.kept() {
            fs::remove_file(path).unwrap();
        }
    }

    fn kept(&self) -> Vec<(PathBuf, u64)> {
        sizes_below(self.server.options().data(), "profile-1-")
    }

    /// Bytes of the sketches that are kept, and of their parts.
    pub(super) fn sketches(&self) -> (u64, u64) {
        let mut all = (0, 0);
        for (path, bytes) in self.kept() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let part = name.strip_prefix("profile-1-").unwrap();
            let folder = path.parent().and_then(Path::parent).unwrap();
            let whole: u64 = sizes_below(folder, part).iter().map(|(_, bytes)| bytes).sum();
            assert!(whole > 0, "there is no part of {name}");
            all = (all.0 + bytes, all.1 + whole);
        }
        all
    }

    /// Opens a page, which must be there.
    pub(super) async fn open(&self, path: &str) {
        self.browser.browse(&self.session, path, None).await.expect(200);
    }

    /// The address of the rows of a version in an order, which the form of their page leads to.
    pub(super) async fn ordered(&self, slug: &str, version: u64, by: &str) -> String {
        let path = format!("/projects/{slug}/rows?version={version}");
        let page = self.browser.browse(&self.session, &path, None).await.expect(200);
        let version = version.to_string();
        let filled = hidden_fields(&String::from_utf8(page.bytes).unwrap(), "view");
        let mut fields: Vec<_> = filled
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        fields.extend([("version", version.as_str()), ("by", by)]);
        let asked = format!("/projects/{slug}/rows?{}", encoded(&fields));
        let led = self.browser.browse(&self.session, &asked, None).await.expect(303);
        let address = led.header("location").to_owned();
        let page = self.browser.browse(&self.session, &address, None).await.expect(200);
        assert!(
            String::from_utf8_lossy(&page.bytes).contains("aria-sort"),
            "{address} is in no order"
        );
        address
    }

    /// Downloads a version; the bytes of the file.
    pub(super) async fn download(&self, slug: &str, version: u64, format: &str) -> usize {
        let version = version.to_string();
        let fields = [
            ("form_token", self.form_token.as_str()),
            ("format", format),
            ("version", &version),
        ];
        let path = format!("/projects/{slug}/download");
        let base = self.server.base();
        let mut answer = self
            .browser
            .try_browse(base, &self.session, &path, Some(&fields))
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let mut bytes = 0;
        while let Some(piece) = answer.chunk().await.unwrap() {
            bytes += piece.len();
        }
        bytes
    }
}
