//! What reading takes here.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::{Columns, Snapshot};
use futures_util::TryStreamExt as _;
use serde_json::json;
use sql::{Sandbox, SandboxConfig, SandboxPart, VersionRecords};
use tests::random::Random;
use types::render::lines::RenderedLines;
use types::{Proof, Version};

use super::peers::{Cost, Costs};
use super::scene::{Scene, VERSIONS};
use crate::usage::{children, cpu};
use crate::{percentile, sorted};

/// Pages at random depths, and records of a page.
const PAGES: (usize, usize) = (200, 200);
/// Times that a query runs.
const TIMES: u32 = 4;
/// Small queries, one after the other.
const SMALL: usize = 40;
/// Versions that are opened.
const OPENED: usize = 400;
/// Manifests that are asked for.
const MANIFESTS: usize = 8;
/// How long a process that was killed takes to be counted.
const REAPED: Duration = Duration::from_millis(200);

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The middle of the clock, the mean of the processors.
fn middle(walls: Vec<f64>, used: Duration) -> Cost {
    let count = walls.len();
    Cost {
        wall: percentile(&sorted(walls), 50),
        cpu: millis(used) / f64::from(u32::try_from(count).unwrap()),
    }
}

async fn latest(scene: &Scene) -> Snapshot {
    scene.catalog.snapshot(scene.large, None).await.unwrap().unwrap()
}

/// Pages as lines of JSON: the first, at random depths, the last.
pub(super) async fn pages(scene: &Scene) -> Costs {
    let snapshot = latest(scene).await;
    let mut random = Random::new(5);
    let last = usize::try_from(snapshot.record_count()).unwrap() - PAGES.1;
    let deep: Vec<_> = (0..PAGES.0).map(|_| random.below(last) as u64).collect();
    let mut costs = Costs::new();
    let mut out = Vec::new();
    for (name, offsets) in [
        ("page: first", vec![0; PAGES.0]),
        ("page: random", deep),
        ("page: last", vec![last as u64; PAGES.0]),
    ] {
        let (mut walls, begun) = (Vec::new(), cpu());
        for offset in offsets {
            out.clear();
            let begun = Instant::now();
            for rows in snapshot.page(offset, PAGES.1).await.unwrap() {
                let lines = RenderedLines::new(snapshot.contract().unwrap(), &rows).unwrap();
                lines.write(0..lines.len(), &mut out);
            }
            walls.push(millis(begun.elapsed()));
        }
        costs.insert(name.to_owned(), middle(walls, cpu().saturating_sub(begun)));
    }
    costs
}

/// Everything as lines of JSON into a file.
pub(super) async fn export(scene: &Scene, out: &Path) -> Costs {
    let snapshot = latest(scene).await;
    let begun = (Instant::now(), cpu());
    let contract = snapshot.contract().unwrap();
    let mut file = File::create(out).unwrap();
    let mut batches = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    let mut piece = Vec::new();
    while let Some(rows) = batches.try_next().await.unwrap() {
        let lines = RenderedLines::new(contract, &rows).unwrap();
        piece.clear();
        lines.write(0..lines.len(), &mut piece);
        file.write_all(&piece).unwrap();
    }
    let cost = Cost {
        wall: millis(begun.0.elapsed()),
        cpu: millis(cpu().saturating_sub(begun.1)),
    };
    std::fs::remove_file(out).unwrap();
    [("export".to_owned(), cost)].into()
}

/// Any of many versions, with its parts, or with a page at a random depth.
pub(super) async fn open(scene: &Scene) -> Costs {
    let mut random = Random::new(7);
    let mut below = |end: u64| random.below(usize::try_from(end).unwrap()) as u64;
    let (mut opened, mut read) = (Vec::new(), Vec::new());
    scene.catalog.snapshot(scene.many, None).await.unwrap().unwrap();
    let mut used = [Duration::ZERO; 2];
    for _ in 0..OPENED {
        let version = Version(1 + below(VERSIONS));
        let begun = (Instant::now(), cpu());
        let snapshot = scene
            .catalog
            .snapshot(scene.many, Some(version))
            .await
            .unwrap()
            .unwrap();
        let parts = snapshot.chain();
        opened.push(millis(begun.0.elapsed()));
        used[0] += cpu().saturating_sub(begun.1);
        assert_eq!(parts.len() as u64, version.0);
        let offset = below(snapshot.record_count());
        let begun = (Instant::now(), cpu());
        let snapshot = scene
            .catalog
            .snapshot(scene.many, Some(version))
            .await
            .unwrap()
            .unwrap();
        snapshot.page(offset, PAGES.1).await.unwrap();
        read.push(millis(begun.0.elapsed()));
        used[1] += cpu().saturating_sub(begun.1);
    }
    [
        (
            "open: a random version of 10,000, and its parts".to_owned(),
            middle(opened, used[0]),
        ),
        ("open: the same and a page of it".to_owned(), middle(read, used[1])),
    ]
    .into()
}

/// The queries, each in a process of its own; processors with the start of that process.
pub(super) async fn queries(scene: &Scene, queries: &[(&str, &str)]) -> Costs {
    let settings = SandboxConfig::new(std::env::current_exe().unwrap(), Arc::clone(&scene.clock));
    let sandbox = Sandbox::start(settings).unwrap();
    let snapshot = latest(scene).await;
    let parts = snapshot.parts();
    let proofs = snapshot.proofs(&parts).await.unwrap();
    let part = |(part, proof): (&catalog::PartInfo, Arc<Proof>)| SandboxPart {
        path: scene.tables.join(part.path(snapshot.dataset()).as_ref()),
        rows: part.rows,
        proof,
    };
    let records = VersionRecords {
        contract: Arc::clone(snapshot.contract().unwrap()),
        parts: parts.iter().zip(proofs).map(part).collect(),
    };
    let mut costs = Costs::new();
    let mut sum = Cost::NONE;
    for (name, text) in queries {
        tokio::time::sleep(REAPED).await;
        let (mut wall, before) = (f64::MAX, cpu() + children());
        for _ in 0..TIMES {
            let begun = Instant::now();
            sandbox.query(&records, text, 1_000).await.unwrap();
            wall = wall.min(millis(begun.elapsed()));
            // Why: the next process becomes ready, as it does between two queries of somebody.
            tokio::time::sleep(REAPED).await;
        }
        let used = (cpu() + children()).saturating_sub(before);
        let cost = Cost {
            wall,
            cpu: millis(used) / f64::from(TIMES),
        };
        sum = sum.plus(cost);
        costs.insert(format!("sql: {name}"), cost);
    }
    costs.insert("sql: sum".to_owned(), sum);
    costs
}

/// What a caller waits for.
pub(super) async fn over_http(scene: &Scene) -> Costs {
    let server = scene.serve().await;
    let http = server.http().with(&scene.key);
    let small = json!({"sql": "select id from records limit 1", "version": 1});
    let mut costs = Costs::new();
    let (mut walls, mut deep, mut manifests) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..SMALL + 3 {
        let begun = Instant::now();
        http.post("/projects/large/query", &small).await.expect(200);
        walls.push(millis(begun.elapsed()));
        if round < 3 {
            walls.clear();
        }
        // Why: the next process becomes ready.
        tokio::time::sleep(REAPED).await;
    }
    let last = usize::try_from(latest(scene).await.record_count()).unwrap() - PAGES.1;
    let version = latest(scene).await.version();
    let mut random = Random::new(6);
    for _ in 0..PAGES.0 {
        let offset = random.below(last);
        let begun = Instant::now();
        let path = format!("/projects/large/data?version={version}&offset={offset}");
        http.get(&path).await.expect(200);
        deep.push(millis(begun.elapsed()));
    }
    for _ in 0..MANIFESTS {
        let begun = Instant::now();
        let path = format!("/projects/many/manifest?version={VERSIONS}");
        http.get(&path).await.expect(200);
        manifests.push(millis(begun.elapsed()));
    }
    for (name, walls) in [
        ("http: a small query", walls),
        ("http: a page at a random depth", deep),
        ("http: the manifest of 10,000 parts", manifests),
    ] {
        costs.insert(name.to_owned(), middle(walls, Duration::ZERO));
    }
    server.stop().await;
    costs
}
