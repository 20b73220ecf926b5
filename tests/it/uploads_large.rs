//! A file of a gibibyte and more, from the command line to a version that others verify, and the memory that it takes.

mod made;

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use tests::server::{DEADLINE, Options, POLL};
use tests::world::contribute;
use tests::{Http, World};
use tokio::task::block_in_place;

use self::made::{BEFORE, Prose, Truth, contract};
#[cfg(feature = "s3")]
use crate::uploads_bucket::Bucket;
use crate::{binary, configured};

/// The most memory that the service may have had, in MiB.
const MOST_MEMORY: u32 = 1 << 10;
/// How many times smaller the file is that goes to a bucket: its server is this process, and not a fast one.
#[cfg(feature = "s3")]
const SMALLER: u64 = 4;

/// Runs a command of the program, which must succeed; what it printed.
fn run(options: &Options, arguments: &[&str]) -> String {
    let begun = Instant::now();
    let output = options.run(arguments);
    let printed = String::from_utf8(output.stdout).unwrap();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {printed}{failed}");
    eprintln!("{}: {:.1} s", arguments[0], begun.elapsed().as_secs_f64());
    printed
}

/// The outcome of the newest contribution, as the service tells it.
async fn outcome(http: &Http, slug: &str) -> Value {
    let own = http.get("/me/contributions?limit=1").await.expect(200).body;
    let id = own["items"][0]["id"].as_str().unwrap();
    http.get(&format!("/projects/{slug}/contributions/{id}"))
        .await
        .expect(200)
        .body
}

fn judged(outcome: &Value, truth: &Truth) {
    let accepted = truth.lines - truth.again - BEFORE;
    let all = truth.lines - truth.again;
    assert_eq!(outcome["status"], "merged");
    assert_eq!(outcome["mergedVersion"], 2);
    assert_eq!(
        (&outcome["acceptedCount"], &outcome["recordCount"]),
        (&json!(accepted), &json!(all))
    );
    let tally = |gate: &str, rows: u64, passed: u64| {
        let tallies = outcome["tallies"].as_array().unwrap();
        let found = tallies.iter().find(|tally| tally["gate"] == gate).unwrap();
        assert_eq!(
            (&found["rows"], &found["passed"]),
            (&json!(rows), &json!(passed)),
            "{gate}"
        );
    };
    tally("decode", truth.lines, truth.lines);
    tally("contract", truth.lines, truth.lines);
    tally("dedup", truth.lines, accepted);
    tally("screen", accepted, accepted);
}

/// Asks with the program.
fn queried(options: &Options, slug: &str, prose: &Prose, truth: &Truth) {
    let ask = |sql: &str| {
        let printed = run(options, &["query", slug, sql, "--format", "json"]);
        serde_json::from_str::<Value>(&printed).unwrap()["rows"].clone()
    };
    let counted = ask("SELECT count(*) AS n, sum(seq) AS s FROM records");
    assert_eq!(counted, json!([[truth.lines - truth.again, truth.sum]]));
    let one = prose.record(truth.lines / 3 / 100 * 100 + 1);
    let id = one["id"].as_str().unwrap();
    let found = ask(&format!("SELECT seq, value, ok, note FROM records WHERE id = '{id}'"));
    assert_eq!(found[0][0], one["seq"]);
    assert_eq!(found[0][1].as_f64(), one["value"].as_f64());
    assert_eq!(found, json!([[one["seq"], found[0][1], one["ok"], one["note"]]]));
}

/// Reads deep pages.
async fn paged(http: &Http, slug: &str, prose: &Prose, truth: &Truth) {
    let all = truth.lines - truth.again;
    let added: Vec<u64> = prose.added(truth).collect();
    assert_eq!(added.len() as u64, all - BEFORE);
    for offset in [BEFORE, all / 2, all * 9 / 10, all - 3] {
        let path = format!("/projects/{slug}/data?version=2&offset={offset}&limit=3");
        let page = http.get(&path).await.expect(200);
        assert_eq!(page.body["total"], all);
        let lines = &added[usize::try_from(offset - BEFORE).unwrap()..][..3];
        for (item, line) in page.body["items"].as_array().unwrap().iter().zip(lines) {
            let expected = prose.record(*line);
            assert_eq!(
                (&item["id"], &item["note"]),
                (&expected["id"], &expected["note"]),
                "{offset}"
            );
            assert_eq!(item["seq"], *line);
        }
    }
}

/// Pushes a file of so many bytes to a service, and does with it what people do; what is left of the upload is told by
/// `left`.
async fn becomes_a_version(world: World, bytes: u64, left: impl Fn() -> usize) {
    let slug = world.project_with(json!({"schemaDef": contract()})).await;
    let prose = Prose::new(bytes);
    let before = contribute(&world.agent.http, &slug, &prose.before()).await;
    assert_eq!(before.body["acceptedCount"], BEFORE, "{}", before.body);
    let file = world.folder().join("prose.ndjson");
    let begun = Instant::now();
    let truth = prose.file(&file, bytes);
    eprintln!("{truth:?} made: {:.1} s", begun.elapsed().as_secs_f64());

    let folder = world.folder().to_owned();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let options = world.server.options().clone();
    let options = options
        .with("SLUICE_KEY", &world.agent.key)
        .with("SLUICE_SERVER", world.server.base())
        .with("SLUICE_KNOWN_KEYS", at("known-keys.json"));
    // Why in place: it waits for a program, and nobody else needs this thread.
    block_in_place(|| {
        let (file, state) = (at("prose.ndjson"), at("state"));
        // The service is what this is about, and the check before it would take as long again.
        run(
            &options,
            &["push", &file, "--project", &slug, "--state", &state, "--no-check"],
        )
    });
    fs::remove_file(&file).unwrap();
    judged(&outcome(&world.agent.http, &slug).await, &truth);
    let memory = world.server.peak_mib();
    eprintln!("the service took {memory} MiB at most");
    assert!(memory <= MOST_MEMORY, "{memory} MiB");

    paged(&world.agent.http, &slug, &prose, &truth).await;
    let begun = Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < DEADLINE, "something is left of the upload");
        tokio::time::sleep(POLL).await;
    }
    block_in_place(|| {
        queried(&options, &slug, &prose, &truth);
        run(&options, &["pull", &slug, "--dir", &at("pulled")]);
        run(&options, &["check"]);
    });
    let memory = world.server.peak_mib();
    assert!(memory <= MOST_MEMORY, "{memory} MiB, for reading");
    assert!(world.server.stop().await.success());
    run(&options, &["verify", &at("pulled")]);
}

/// How many files and folders there are in it.
fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// The size that this run is for, divided by `by`, in bytes.
fn size(by: u64) -> u64 {
    (configured("SLUICE_TEST_UPLOAD_GIB", 1) << 30) / by
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_gibibytes_becomes_a_version_in_bounded_memory() {
    let world = World::start(binary()).await;
    let data = world.server.options().data().to_owned();
    // The folder of parts that are being written stays.
    let left = || entries(&data.join("uploads")) - 1 + entries(&data.join("index/staged"));
    becomes_a_version(world, size(1), left).await;
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_in_a_bucket_becomes_a_version_in_bounded_memory() {
    let bucket = Bucket::start();
    let world = bucket.world().await;
    let data = world.server.options().data().to_owned();
    let left = || bucket.left().len() + entries(&data.join("index/staged"));
    becomes_a_version(world, size(SMALLER), left).await;
}
