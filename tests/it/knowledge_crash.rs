//! Kills the process wherever it can die between the acknowledgement of a unit and its outcome, and proves that each
//! unit ends once; then plants bugs and proves that the proof would see them.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use catalog::storage::DurableLocal;
use catalog::{Catalog, Columns, platform};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use tests::models::{Manner, Provider, judged_by};
use tests::server::DEADLINE;
use tests::world::Agent;
use tests::{Http, World};
use types::clock::SystemClock;
use types::fault::{InjectedBug, KNOWLEDGE_POINTS};

use crate::binary;

/// Points of all messages that units pass too.
const SHARED: [&str; 3] = ["outcome.append", "outcome.appended", "position.commit"];

fn points() -> Vec<&'static str> {
    KNOWLEDGE_POINTS.into_iter().chain(SHARED).collect()
}

fn unit(seed: u64) -> Value {
    let word = |at: u64| format!("w{:x}", (seed * 7_919 + at) * 2_654_435);
    let words: Vec<_> = (0..60).map(word).collect();
    let sentences: Vec<_> = words.chunks(10).map(|sentence| sentence.join(" ")).collect();
    json!({
        "title": "A title of some words",
        "body": format!("measured {}", sentences.join(". ")),
        "category": "performance-tuning",
        "sourceDeclaration": "Ran on 2026-11-20 on a rented machine with 2 cores.",
    })
}

/// A service with two authors, who submit copies of each other.
struct Site {
    world: World,
    other: Agent,
    provider: Provider,
    seed: u64,
}

impl Site {
    async fn start(plant: &str) -> Self {
        let provider = Provider::start(Manner::Sound).await;
        let world = World::start_with(binary(), |options| {
            judged_by(&provider, options)
                .with("SLUICE__SWEEPER__FIRST", "1s")
                .with("SLUICE_FAULT_PLANT", plant)
        })
        .await;
        let (_, other) = world.newcomer().await;
        Self {
            world,
            other,
            provider,
            seed: 0,
        }
    }

    /// Submits a unit, its copy by another author and a third one, kills the service at `point` meanwhile, starts it
    /// again and waits until all are decided. Returns what is wrong then.
    async fn kill_at(mut self, point: &str) -> (Self, Vec<String>) {
        self.seed += 2;
        let texts = [unit(self.seed), unit(self.seed), unit(self.seed + 1)];
        let armed = self
            .world
            .restart_with(|options| options.with("SLUICE_FAULT_POINT", point))
            .await;
        for (author, text) in [&armed.agent, &self.other.at(&armed.http), &armed.agent]
            .into_iter()
            .zip(&texts)
        {
            // The process may be gone already.
            let body = text.to_string().into_bytes();
            let sent = author.http.send(reqwest::Method::POST, "/knowledge", &[], Some(body));
            drop(sent.await);
        }
        let mut armed = armed;
        let died = armed.server.exits_by(Instant::now() + DEADLINE).await;
        assert!(died.is_some(), "`{point}` was not passed");
        let world = armed.again_with(|options| options.with("SLUICE_FAULT_POINT", "")).await;
        let other = self.other.at(&world.http);
        let mut published = Vec::new();
        for (author, text) in [&world.agent, &other, &world.agent].into_iter().zip(&texts) {
            let id = known(&author.http, text).await;
            published.push(decided(&author.http, &id).await == "published");
        }
        let mut wrong = Vec::new();
        if !published[2] || published[0] == published[1] {
            wrong.push(format!(
                "{point}: published of a unit, its copy and another: {published:?}"
            ));
        }
        self.world = world;
        self.other = other;
        wrong.extend(
            self.violations()
                .await
                .into_iter()
                .map(|found| format!("{point}: {found}")),
        );
        (self, wrong)
    }

    /// Returns what the files, the database and the points contradict.
    async fn violations(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let (is_sound, printed) = self.world.server.options().check();
        if !is_sound {
            wrong.push(printed);
        }
        let mut units = rows(self.world.server.options().data(), self.world.folder()).await;
        let count = units.len();
        units.sort_unstable();
        units.dedup();
        if units.len() != count {
            wrong.push(format!("{count} rows of {} units", units.len()));
        }
        for author in [&self.world.agent, &self.other] {
            let points = author.http.get("/points?limit=100").await.expect(200);
            let events = points.body["events"]["items"].as_array().unwrap().clone();
            let mut subjects: Vec<_> = events.iter().map(|event| event["subject"].to_string()).collect();
            subjects.sort_unstable();
            subjects.dedup();
            if subjects.len() != events.len() {
                wrong.push(format!("{} events of {} units", events.len(), subjects.len()));
            }
        }
        wrong
    }
}

/// The id of a unit that was submitted, or is submitted now.
async fn known(http: &Http, text: &Value) -> String {
    let answer = http.post("/knowledge", text).await;
    match answer.code() {
        201 => answer.text("/id").to_owned(),
        409 => answer.text("/unitId").to_owned(),
        _ => panic!("{}", answer.body),
    }
}

async fn decided(http: &Http, id: &str) -> String {
    let (path, begun) = (format!("/knowledge/{id}?wait=1"), Instant::now());
    loop {
        let shown = http.get(&path).await.expect(200);
        let status = shown.text("/status");
        if !matches!(status, "queued" | "waiting") {
            return status.to_owned();
        }
        assert!(begun.elapsed() < DEADLINE, "never decided: {}", shown.body);
    }
}

/// The unit of each row of the platform's table.
async fn rows(data: &Path, folder: &Path) -> Vec<String> {
    let objects = DurableLocal::open(data.join("tables")).unwrap();
    let index = folder.join("index-of-the-test");
    let catalog = Catalog::open(Arc::new(objects), index, Arc::new(SystemClock::default())).unwrap();
    let Some(snapshot) = catalog.snapshot(platform::KNOWLEDGE, None).await.unwrap() else {
        return Vec::new();
    };
    let batches = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    let batches: Vec<_> = batches.try_collect().await.unwrap();
    let contract = platform::contract().unwrap();
    let records = batches
        .iter()
        .flat_map(|batch| types::render::records_of(&contract, batch).unwrap());
    records.map(|record| Value::from(record)["unit"].to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_ends_once_wherever_the_process_dies() {
    let mut site = Site::start("").await;
    for point in points() {
        let (left, wrong) = site.kill_at(point).await;
        assert!(wrong.is_empty(), "{wrong:#?}");
        site = left;
    }
    assert!(site.provider.asked() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_injected_bug_of_units_is_seen() {
    for (name, bug) in InjectedBug::ALL {
        if !InjectedBug::OF_UNITS.contains(&bug) {
            continue;
        }
        let mut site = Site::start(name).await;
        let mut seen = Vec::new();
        for point in points() {
            let (left, wrong) = site.kill_at(point).await;
            (site, seen) = (left, wrong);
            if !seen.is_empty() {
                break;
            }
        }
        assert!(!seen.is_empty(), "{name} was not seen");
        eprintln!("{name}: seen: {}", seen[0]);
    }
}
