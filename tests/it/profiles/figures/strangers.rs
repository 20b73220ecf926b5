//! Tables of strangers: their figures are those that somebody else computes of the same rows, and they stay byte for byte what
//! they were when the files are merged and another replica makes them again.
//!
//! Invariant: the first service merges no files and the other does, so the rows lie differently when the figures are made
//! again; a profile that was not made again fails the test.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use tests::server::{DEADLINE, POLL};
use tests::world::{Agent, Operator, decided_within, merged};
use tests::{Answer, Http, Options, Server};
use tokio::sync::OnceCell;

use super::super::{often, timeless};
use super::{Estimates, compared};
#[cfg(feature = "s3")]
use crate::accounts::on_each;
use crate::uploads::{begin, complete, fill};
#[cfg(feature = "s3")]
use crate::uploads_bucket::Bucket;
use crate::{binary, configured, optional, readers};

/// Names the folder that `tests/components/tables.sh` prints.
const FOLDER: &str = "SLUICE_TEST_TABLES";
/// Compares the files of a version with its lines of JSON.
const FORMATS_COMPARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/readers/compare_formats.py");
/// Files of `catalog/tabular/tests/strangers/list.tsv` that become datasets without a question; the first are in a usual run.
const FILES: [&str; 20] = [
    "palmerpenguins/palmerpenguins/data/penguins-raw.csv",
    "vega-datasets/data/movies.json",
    "vega-datasets/data/birdstrikes.csv",
    "bokeh_sampledata/bokeh_sampledata/_data/SampleSuperstore.csv.gz",
    "lifelines/lifelines/datasets/canadian_senators.csv",
    "scikit-learn/sklearn/datasets/data/digits.csv.gz",
    "pycountry/pycountry/databases/iso639-3.json",
    "vega-datasets/data/sp500-2000.csv",
    "bokeh_sampledata/bokeh_sampledata/_data/titanic_all.csv",
    "statsmodels/statsmodels/datasets/fair/fair.csv",
    "lifelines/lifelines/datasets/ACTG175.csv",
    "vega-datasets/data/species.csv",
    "vega-datasets/data/weather.csv",
    "bokeh_sampledata/bokeh_sampledata/_data/stocks.csv.gz",
    "bokeh_sampledata/bokeh_sampledata/_data/world_cities.csv.gz",
    "statsmodels/statsmodels/datasets/randhie/src/randhie.csv",
    "bokeh_sampledata/bokeh_sampledata/_data/CGM.csv.gz",
    "airportsdata/airportsdata/airports.csv",
    "vega-datasets/data/zipcodes.csv",
    "vega-datasets/data/flights-200k.json",
];
/// Tables of a usual run; `SLUICE_TEST_PROFILES` asks for more.
const TABLES: u64 = 1;
/// Small versions of a dataset, after one that has the rest of its rows, and the most rows of one.
const SMALL_VERSIONS: usize = 7;
const SMALL_ROWS: usize = 500;

/// A table of a stranger as the service understood it.
struct Table {
    /// The end of its path, for what a test says.
    name: &'static str,
    /// The contract.
    contract: Value,
    /// Its records, a line each.
    lines: Vec<Vec<u8>>,
}

/// A service with a person on it.
struct Scene {
    server: Server,
    own: Http,
    agent: Agent,
}

impl Scene {
    async fn start(options: &Options) -> Self {
        let server = Server::start(options).await;
        let operator = Operator::create(options, "strangers");
        let agent = Agent::create(&server.http(), &operator, "strangers.agent").await;
        let own = agent.http.clone();
        Self { server, own, agent }
    }

    /// The same person at another start of the service.
    async fn other(self, options: &Options) -> Self {
        // SQLite is one file, so both have it open before the first is gone.
        let is_same = options.data() == self.server.options().data();
        let server = if is_same {
            assert!(self.server.stop().await.success());
            Server::start(options).await
        } else {
            let server = Server::start(options).await;
            assert!(self.server.stop().await.success());
            server
        };
        let own = self.agent.at(&server.http()).http;
        Self { server, own, ..self }
    }
}

/// A dataset of a table, as it is before its files are merged.
struct Dataset<'t> {
    table: &'t Table,
    slug: String,
    version: u64,
    figures: Value,
    preview: Value,
    made_at: String,
    parts: usize,
}

fn merging(options: Options, is_on: bool) -> Options {
    let options = options.with("SLUICE__COMPACTION__ENABLED", is_on);
    often(options).with("SLUICE__COMPACTION__FAN_IN", 2)
}

/// Has the service make datasets of the files; the tables.
async fn tables(folder: &Path, files: &[&'static str]) -> Vec<Table> {
    let place = tempfile::tempdir().unwrap();
    let scene = Scene::start(&Options::new(binary(), place.path().join("data"))).await;
    let mut tables = Vec::new();
    for (number, name) in files.iter().copied().enumerate() {
        let slug = format!("stranger-{number}");
        let file = folder.join("files").join(name);
        let pushed = Command::new(binary())
            .arg("push")
            .arg(&file)
            .args(["--project", &slug, "--create", "--yes", "--state"])
            .arg(place.path().join("state"))
            .env("SLUICE_SERVER", scene.server.base())
            .env("SLUICE_KEY", &scene.agent.key)
            .output()
            .unwrap();
        let said = crate::uploads::said(&pushed);
        assert!(pushed.status.success(), "{}: {said}", file.display());
        let info = scene.own.get(&format!("/projects/{slug}")).await.expect(200);
        let export = format!("/projects/{slug}/export?version=1");
        let export = scene.own.get(&export).await.expect(200).bytes;
        tables.push(Table {
            name,
            contract: info.body["schemaDef"].clone(),
            lines: export
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect(),
        });
    }
    tables
}

/// Uploads lines as a contribution; its outcome.
async fn upload(own: &Http, slug: &str, lines: &[Vec<u8>]) -> Answer {
    let bytes = lines.concat();
    let upload = begin(own, slug, &bytes, 1 << 22, "none").await;
    let tags = fill(&upload, &bytes, 1 << 22).await;
    let completed = complete(own, slug, &upload, &tags).await.expect(201);
    decided_within(DEADLINE * 5, own, slug, completed.text("/id")).await
}

/// The preview of a version without the addresses of the service that answers.
async fn preview(own: &Http, slug: &str, version: u64) -> Value {
    let shown = own
        .get(&format!("/projects/{slug}/preview?version={version}"))
        .await
        .expect(200);
    merged(shown.body, json!({"next": null}))
}

/// The same person, who asks for each dataset from an address of its own: an address has few profiles built in a minute.
fn from_elsewhere(own: &Http, number: usize) -> Http {
    own.bound_to(Ipv4Addr::new(127, 0, 3, u8::try_from(number + 1).unwrap()).into())
}

async fn parts(own: &Http, slug: &str, version: u64) -> usize {
    let manifest = own.get(&format!("/projects/{slug}/manifest?version={version}")).await;
    manifest.expect(200).body["parts"].as_array().unwrap().len()
}

/// Makes a dataset of a table, in versions of many sizes, and waits for its profile. It is a paid one whose owner has not
/// chosen what anybody sees, so that a choice has the profile made again.
async fn filled<'t>(own: &Http, table: &'t Table, slug: String) -> Dataset<'t> {
    let body = json!({
        "slug": slug, "title": "Rows of a stranger", "readme": "Rows that others collected, read from their file.",
        "schemaDef": table.contract, "access": "paid", "price": "0.10",
    });
    own.post("/projects", &body).await.expect(201);
    own.patch(&format!("/projects/{slug}"), &json!({"previewRows": null}))
        .await
        .expect(200);
    let count = table.lines.len();
    let small = SMALL_ROWS.min(count / (SMALL_VERSIONS + 1)).max(1);
    let (most, rest) = table.lines.split_at(count - small * SMALL_VERSIONS);
    let mut version = 0;
    for lines in std::iter::once(most).chain(rest.chunks(small)) {
        version += 1;
        let outcome = upload(own, &slug, lines).await;
        assert_eq!(
            outcome.body["mergedVersion"], version,
            "{}: {}",
            table.name, outcome.body
        );
        assert_eq!(
            outcome.body["acceptedCount"],
            lines.len(),
            "{}: {}",
            table.name,
            outcome.body
        );
    }
    let path = format!("/projects/{slug}/profile?version={version}");
    let shown = own.comes_to_show(&path, |answer| answer.code() == 200).await;
    Dataset {
        table,
        figures: timeless(&shown),
        preview: preview(own, &slug, version).await,
        made_at: shown.text("/madeAt").to_owned(),
        parts: parts(own, &slug, version).await,
        version,
        slug,
    }
}

impl Dataset<'_> {
    /// Holds figures and files against the rows; returns how far estimates are off.
    async fn judge(&self, own: &Http, python: &str, folder: &Path) -> Estimates {
        let Self {
            slug,
            version,
            figures,
            table,
            ..
        } = self;
        assert_eq!(figures["records"], table.lines.len(), "{}", table.name);
        let export = own
            .get(&format!("/projects/{slug}/export?version={version}"))
            .await
            .expect(200);
        assert!(
            export.bytes == table.lines.concat(),
            "{}: the rows differ from the file's",
            table.name
        );
        compared(python, folder, figures, &export.bytes, table.name)
    }

    /// Has another replica merge the files and make the profile again: both are what they were.
    async fn is_the_same(&self, own: &Http) {
        let (slug, version) = (&self.slug, self.version);
        // A contribution without news opens the table and makes no version.
        let outcome = upload(own, slug, &self.table.lines[..1]).await;
        assert_eq!(outcome.text("/status"), "rejected", "{}", outcome.body);
        let deadline = Instant::now() + DEADLINE;
        while parts(own, slug, version).await >= self.parts {
            assert!(
                Instant::now() < deadline,
                "{}: {} parts stay",
                self.table.name,
                self.parts
            );
            tokio::time::sleep(POLL).await;
        }
        let path = format!("/projects/{slug}");
        own.patch(&path, &json!({"previewRows": 5})).await.expect(200);
        let is_new = |answer: &Answer| answer.code() == 200 && answer.text("/madeAt") != self.made_at;
        let again = own
            .comes_to_show(&format!("{path}/profile?version={version}"), is_new)
            .await;
        assert_eq!(timeless(&again), self.figures, "{}", self.table.name);
        assert_eq!(preview(own, slug, version).await, self.preview, "{}", self.table.name);
    }
}

/// The tables of strangers of this run, and who compares them; none where they are not here.
async fn given() -> Option<(String, &'static [Table])> {
    /// Made once for all tests of the process.
    static TABLES_OF_RUN: OnceCell<Vec<Table>> = OnceCell::const_new();
    let python = readers::python()?;
    let folder = std::env::var(FOLDER).ok().map(PathBuf::from);
    let Some(folder) = folder.filter(|folder| folder.join("files").is_dir()) else {
        optional("tables of strangers: tests/components/tables.sh brings them, and SLUICE_TEST_TABLES names them");
        return None;
    };
    let count = usize::try_from(configured("SLUICE_TEST_PROFILES", TABLES)).unwrap();
    let files = &FILES[..count.min(FILES.len())];
    let made = TABLES_OF_RUN.get_or_init(|| tables(&folder, files)).await;
    Some((python, made))
}

/// Runs a service on `first`, then another on `second`, over all tables.
async fn hold(python: &str, tables: &[Table], first: &Options, second: impl FnOnce() -> Options) {
    let scene = Scene::start(&merging(first.clone(), false)).await;
    let place = tempfile::tempdir().unwrap();
    let (mut datasets, mut estimates) = (Vec::new(), Estimates::default());
    for (number, table) in tables.iter().enumerate() {
        let own = from_elsewhere(&scene.own, number);
        let dataset = filled(&own, table, format!("table-{number}")).await;
        estimates.add(dataset.judge(&scene.own, python, place.path()).await);
        datasets.push(dataset);
    }
    let scene = scene.other(&merging(second(), true)).await;
    for (number, dataset) in datasets.iter().enumerate() {
        dataset.is_the_same(&from_elsewhere(&scene.own, number)).await;
    }
    estimates.tell(tables.len());
    scene.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_strangers_are_those_of_duckdb_before_and_after_files_in_a_folder_are_merged() {
    let Some((python, tables)) = given().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data"));
    hold(&python, tables, &options, || options.clone()).await;
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_strangers_are_the_same_of_two_replicas_on_a_bucket_and_every_database() {
    let Some((python, tables)) = given().await else { return };
    on_each(async |url| {
        let (bucket, folder) = (Bucket::start(), tempfile::tempdir().unwrap());
        let options = |name: &str| bucket.configure(Options::new(binary(), folder.path().join(name)));
        let one = options("one");
        // Without a server of databases, the second service opens the file of the first.
        let file = format!("sqlite://{}", one.data().join("sluice.db").display());
        let first = url
            .as_ref()
            .map_or_else(|| one.clone(), |url| one.clone().with("SLUICE__DATABASE__URL", url));
        let url = url.unwrap_or(file);
        hold(&python, tables, &first, || {
            options("other").with("SLUICE__DATABASE__URL", url)
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloads_of_tables_of_strangers_have_the_values_of_their_lines() {
    let Some((python, tables)) = given().await else { return };
    let world = super::started().await;
    let person = crate::downloads::Downloader::sign_in(&world).await;
    for (number, table) in tables.iter().enumerate() {
        let slug = format!("table-{number}");
        let dataset = filled(&from_elsewhere(&world.agent.http, number), table, slug.clone()).await;
        let place = world.folder().join(&slug);
        fs::create_dir(&place).unwrap();
        for format in ["ndjson", "csv", "parquet", "arrow"] {
            let file = person.download(&slug, dataset.version, format).await;
            fs::write(place.join(format!("records.{format}")), file).unwrap();
        }
        let shown = place.join("profile.json");
        fs::write(&shown, dataset.figures.to_string()).unwrap();
        let arguments = [FORMATS_COMPARED, shown.to_str().unwrap(), place.to_str().unwrap()];
        let found = tokio::task::block_in_place(|| readers::run(&python, &arguments));
        assert_eq!(found, "[]", "{}", table.name);
    }
}
