//! Looking at datasets: what profiles cost, how soon pages are there, how large they are, and what a file of each format costs.
//!
//! ```text
//! bench look FOLDER [--rows N] [--versions N] [--server PROGRAM]
//! ```
//!
//! The dataset `large` has a million rows of ten columns, `few` ten versions and `many` ten thousand; `--rows` and `--versions`
//! make fewer. They are made once in `FOLDER` and used again by the next run. Pages are those of a person whom a letter let in,
//! over HTTP; the server's processor time is what the kernel counts.
//!
//! Invariant: nothing is built or merged while something is measured. Profiles are built behind the merges once an hour only, so
//! that a call builds what is measured.

mod cold;
mod scene;
mod sketch;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tests::Server;
use tests::random::Random;

use self::scene::{FEW, LARGE, MANY, Scene};
use crate::bulk::{Cost, Meter};
use crate::report::Report;
use crate::usage::cpu_of;
use crate::{percentile, sorted};

/// Pages of each kind, and those before any is measured.
const PAGES: usize = 200;
const WARM_UP: usize = 10;
/// Pages that are sorted: each starts a process.
const SORTED_PAGES: usize = 40;
/// Time in which the next process of a query becomes ready, as between two pages of somebody.
const REAPED: Duration = Duration::from_millis(300);
/// Downloads of each format, of which the cheapest counts.
const DOWNLOADS: usize = 3;
/// Formats, and the goal of each as a multiple of the processor time of lines of JSON.
const FORMATS: [(&str, f64); 4] = [("ndjson", 1.0), ("csv", 1.2), ("arrow", 0.6), ("parquet", 3.0)];
/// Goals of a profile of all rows and of that of the next version, in seconds of processors.
const PROFILE_GOALS: (f64, f64) = (2.0, 0.15);
/// Goal of the sketches that are kept, as a share of their parts.
const SKETCH_GOAL: f64 = 1.0 / 16.0;
/// Goals of the middle page, in milliseconds.
const PAGE_GOALS: [f64; 3] = [10.0, 15.0, 60.0];

/// Runs something once.
async fn cost(server: &Server, work: impl Future<Output = ()>) -> Cost {
    let meter = Meter::begin(server);
    work.await;
    meter.end(server, 0)
}

/// Opens a page many times; milliseconds of each, sorted, and those of the server's processors for one.
async fn pages(scene: &Scene, count: usize, rest: Duration, path: impl Fn(usize) -> String) -> (Vec<f64>, f64) {
    let (mut times, mut before) = (Vec::with_capacity(count), Duration::ZERO);
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = cpu_of(scene.server.pid());
        }
        let begun = Instant::now();
        scene.open(&path(number)).await;
        if number >= WARM_UP {
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
    }
    let used = cpu_of(scene.server.pid()).saturating_sub(before).as_secs_f64() * 1e3;
    (sorted(times), used / f64::from(u32::try_from(count).unwrap()))
}

pub(crate) async fn run(report: &mut Report, folder: &Path) {
    sketch::run(report);
    let scene = Scene::set(folder).await;
    profiles(report, &scene).await;
    seen(report, &scene).await;
    cold::run(report, &scene).await;
    downloads(report, &scene).await;
    scene.server.stop().await;
}

/// The profile of all rows, built within a call, then that of a version with 500 more.
async fn profiles(report: &mut Report, scene: &Scene) {
    let mut built = Vec::new();
    // An earlier run has kept the sketch of the large part.
    scene.forget_sketches();
    for _ in 0..2 {
        let version = scene.grow(LARGE).await;
        let path = format!("/projects/{LARGE}/profile?version={version}");
        let took = cost(&scene.server, async {
            scene.own.get(&path).await.expect(200);
        });
        built.push(took.await);
    }
    let (sketches, parts) = scene.sketches();
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = sketches as f64 / parts as f64;
    report.table(
        "profile, CPU s / clock s",
        &[
            (
                format!("{} rows of 10 columns (goal {})", scene.rows, PROFILE_GOALS.0),
                format!("{:.2} / {:.2}", built[0].cpu, built[0].wall),
            ),
            (
                format!("the next version, 500 rows more (goal {})", PROFILE_GOALS.1),
                format!("{:.2} / {:.2}", built[1].cpu, built[1].wall),
            ),
            (
                format!("sketches that are kept, of their parts (goal {SKETCH_GOAL})"),
                format!("{sketches} of {parts} bytes: {share:.4}"),
            ),
        ],
    );
}

/// Pages of datasets, of rows anywhere, and of rows in an order.
async fn seen(report: &mut Report, scene: &Scene) {
    let mut rows = Vec::new();
    for slug in [FEW, LARGE, MANY] {
        let (version, records) = scene.size(slug).await;
        let mut random = Random::new(39);
        let offsets: Vec<u64> = (0..WARM_UP + PAGES)
            .map(|_| random.below(usize::try_from(records - 50).unwrap()) as u64)
            .collect();
        let page = pages(scene, PAGES, Duration::ZERO, |_| format!("/projects/{slug}")).await;
        let any = pages(scene, PAGES, Duration::ZERO, |number| {
            format!("/projects/{slug}/rows?version={version}&offset={}", offsets[number])
        })
        .await;
        let orders = [
            scene.ordered(slug, version, "value asc").await,
            scene.ordered(slug, version, "value desc").await,
        ];
        let ordered = pages(scene, SORTED_PAGES, REAPED, |number| orders[number % 2].clone()).await;
        for ((what, (times, cpu)), goal) in [("dataset", page), ("rows", any), ("sorted rows", ordered)]
            .into_iter()
            .zip(PAGE_GOALS)
        {
            let (middle, most) = (percentile(&times, 50), percentile(&times, 99));
            rows.push((
                format!("`{slug}`, {version} versions, {records} rows: {what} (goal p50 {goal} ms)"),
                format!("p50 {middle:.1}, p99 {most:.1} ms; {cpu:.2} CPU ms"),
            ));
        }
    }
    report.table("pages of a person, over HTTP", &rows);
}

/// The whole of `large` as a file of each format.
async fn downloads(report: &mut Report, scene: &Scene) {
    let (version, _) = scene.size(LARGE).await;
    let mut least = [f64::INFINITY; FORMATS.len()];
    let mut bytes = [0; FORMATS.len()];
    for _ in 0..DOWNLOADS {
        for (at, (format, _)) in FORMATS.iter().enumerate() {
            let took = cost(&scene.server, async {
                bytes[at] = scene.download(LARGE, version, format).await;
            });
            least[at] = least[at].min(took.await.cpu);
        }
    }
    let costs = FORMATS.iter().zip(least).zip(bytes);
    let rows: Vec<_> = costs
        .map(|(((format, goal), cpu), bytes)| {
            let ratio = cpu / least[0];
            (
                format!("{format} (goal {goal}×)"),
                format!("{cpu:.2} CPU s, {ratio:.2}×, {bytes} bytes"),
            )
        })
        .collect();
    report.table(
        &format!("download of {} rows of 10 columns, least of {DOWNLOADS}", scene.rows),
        &rows,
    );
}

/// Files below a folder whose names begin so, with their sizes.
fn sizes_below(folder: &Path, what: &str) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sizes_below(&path, what));
        } else if entry.file_name().to_string_lossy().starts_with(what) {
            found.push((path, entry.metadata().unwrap().len()));
        }
    }
    found
}
