//! Private datasets that are deleted: what is left of them, beside work that goes on and wherever the process dies.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use reqwest::Method;
use serde_json::json;
use tests::checker::delta::tables_below;
use tests::server::{DEADLINE, POLL};
use tests::world::{batch, contribute, records};
use tests::{Options, World};
use types::fault::DELETION_POINTS;

use crate::uploads::{begin, complete, fill, lines, put, url};
use crate::{binary, configured};

/// Datasets that are deleted beside work in a usual run; `SLUICE_TEST_DELETIONS` asks for more, which find rarer orders.
const DELETIONS: u64 = 3;
/// A source that no other text has.
const NEEDLE: &str = "needle of the haystack";

/// Paths of all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Returns true if nothing but two commits, or the first alone, is left of a table.
fn is_gone(table: &Path) -> bool {
    let left = files(table);
    let is_commit = |path: &PathBuf| {
        path.starts_with(table.join("_delta_log")) && path.extension().is_some_and(|end| end == "json")
    };
    !left.is_empty() && left.len() <= 2 && left.iter().all(is_commit)
}

/// Waits until nothing is left of a table.
async fn gone(table: &Path) {
    let deadline = Instant::now() + DEADLINE;
    while !is_gone(table) {
        assert!(Instant::now() < deadline, "left: {:?}", files(table));
        tokio::time::sleep(POLL).await;
    }
}

async fn private(world: &World) -> String {
    let changes = json!({"visibility": "private", "readme": format!("A readme with a {NEEDLE}.")});
    world.project_with(changes).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_dataset_goes_as_a_whole_and_nothing_else_does() {
    let world = World::start(binary()).await;
    let (kept, slug) = (world.project().await, private(&world).await);
    contribute(&world.agent.http, &kept, &records("kept", 25)).await;
    for series in ["a", "b", "c"] {
        let body = json!({"records": records(series, 25), "sourceDeclaration": NEEDLE});
        let path = format!("/projects/{slug}/contribute?wait=20");
        world.agent.http.post(&path, &body).await.expect(201);
    }
    let http = &world.agent.http;
    let bytes = lines(0..100);
    let upload = begin(http, &slug, &bytes, 1 << 20, "none").await;
    assert_eq!(put(url(&upload, 0), &bytes).await.0, 200);
    let [known, table] = <[PathBuf; 2]>::try_from(tables_below(world.server.options().data())).unwrap();
    let path = format!("/projects/{slug}");

    // Whose it is not, and what is public.
    let (stranger, other) = world.newcomer().await;
    world.http.delete(&path).await.expect(401);
    other.http.delete(&path).await.expect(404);
    world.http.with(&stranger.token).delete(&path).await.expect(404);
    let public = http.delete(&format!("/projects/{kept}")).await.expect(409);
    assert_eq!(public.error(), "not_private");
    assert_eq!(
        other
            .http
            .delete(&format!("/projects/{kept}"))
            .await
            .expect(403)
            .error(),
        "not_owner"
    );

    let deleted = http.delete(&path).await.expect(200);
    assert_eq!(deleted.text("/slug"), slug);
    assert!(!deleted.text("/deletedAt").is_empty());
    assert_eq!(deleted.body["remains"].as_array().map(Vec::len), Some(2));
    for read in [
        "",
        "/data?version=1",
        "/export?version=1",
        "/manifest?version=1",
        "/uploads",
    ] {
        http.get(&format!("{path}{read}")).await.expect(404);
    }
    assert_eq!(http.delete(&path).await.expect(404).error(), "not_found");
    let late = http.post(&format!("{path}/contribute"), &batch(&records("d", 1))).await;
    late.expect(404);
    assert_eq!(put(url(&upload, 0), &bytes).await.0, 409, "its upload is over");
    let again = json!({"slug": slug, "title": "The same name", "readme": "A dataset that takes a name again.",
        "schemaDef": {"fields": [{"name": "n", "type": "integer"}]}});
    assert_eq!(http.post("/projects", &again).await.expect(409).error(), "slug_taken");

    gone(&table).await;
    world.server.options().assert_consistent();
    assert!(!is_gone(&known));
    assert_eq!(
        http.get(&format!("/projects/{kept}")).await.expect(200).body["recordCount"],
        25
    );
    let world = world.restart_with(|options| options).await;
    world.agent.http.get(&path).await.expect(404);
    let options = world.server.options().clone();
    assert!(world.server.stop().await.success());
    let (is_sound, said) = options.check();
    assert!(is_sound, "{said}");
    assert!(said.contains("0 versions, 0 records"), "{said}");
    // The texts are in no file of the database; the log keeps messages for a while.
    for file in files(options.data()) {
        if file.to_string_lossy().contains(".db") {
            let bytes = fs::read(&file).unwrap();
            let found = bytes.windows(NEEDLE.len()).any(|window| window == NEEDLE.as_bytes());
            assert!(!found, "{}", file.display());
        }
    }
}

/// A private dataset with a version, a batch that is on its way, and a complete upload.
async fn busy(world: &World) -> String {
    let slug = private(world).await;
    let http = &world.agent.http;
    contribute(http, &slug, &records("first", 25)).await;
    let bytes = lines(0..2_000);
    let upload = begin(http, &slug, &bytes, 1 << 20, "none").await;
    let tags = fill(&upload, &bytes, 1 << 20).await;
    complete(http, &slug, &upload, &tags).await.expect(201);
    let path = format!("/projects/{slug}/contribute");
    for series in ["x", "y", "z"] {
        http.post(&path, &batch(&records(series, 400))).await.expect(201);
    }
    slug
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_killed_at_any_step_ends_after_the_next_start() {
    for point in DELETION_POINTS {
        let armed = World::start_with(binary(), |options| options.with("SLUICE_FAULT_POINT", point));
        let mut world = armed.await;
        let slug = busy(&world).await;
        let path = format!("/projects/{slug}");
        // The process may die before it answers.
        let answer = world.agent.http.send(Method::DELETE, &path, &[], None).await;
        let is_answered = answer.is_ok_and(|answer| answer.code() == 200);
        let died = world.server.exits_by(Instant::now() + DEADLINE).await;
        assert!(died.is_some(), "{point} did not kill the process");
        // Two hours later the lease of the job is over, and the second job is due.
        let later = |options: Options| {
            options
                .with("SLUICE_FAULT_POINT", "")
                .with("SLUICE__CLOCK__OFFSET", "2h")
        };
        world = world.again_with(later).await;
        let http = &world.agent.http;
        if point == "delete.rows" {
            // Nothing was committed.
            assert!(!is_answered);
            http.get(&path).await.expect(200);
            http.delete(&path).await.expect(200);
        }
        http.get(&path).await.expect(404);
        let table = tables_below(world.server.options().data()).remove(0);
        gone(&table).await;
        // Messages of the log that were not done come again, and end.
        let other = world.project().await;
        contribute(http, &other, &records("after", 5)).await;
        world.server.options().assert_consistent();
        let options = world.server.options().clone();
        assert!(world.server.stop().await.success());
        assert!(is_gone(&table), "{point}: {:?}", files(&table));
        options.assert_consistent();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_beside_a_deletion_ends_with_it() {
    let mut world = World::start_with(binary(), |options| options.with("SLUICE__COMPACTION__FAN_IN", "2")).await;
    let rounds = configured("SLUICE_TEST_DELETIONS", DELETIONS);
    for round in 0..rounds {
        let slug = busy(&world).await;
        let path = format!("/projects/{slug}");
        let http = &world.agent.http;
        let contributions = async {
            for number in 0..20 {
                let batch = batch(&records(&format!("{round}-{number}"), 50));
                let answer = http.post(&format!("{path}/contribute"), &batch).await;
                assert!(matches!(answer.code(), 201 | 404 | 409), "{}", answer.body);
            }
        };
        let reads = async {
            for _ in 0..20 {
                for read in ["/export?version=1", "/data?version=1&limit=5", "/manifest?version=1"] {
                    let answer = http.send(Method::GET, &format!("{path}{read}"), &[], None).await;
                    // What has begun may break off.
                    if let Ok(answer) = answer {
                        assert!(matches!(answer.code(), 200 | 404), "{read}: {}", answer.body);
                    }
                }
            }
        };
        let deletion = async {
            http.post(&format!("{path}/contribute"), &batch(&records("beside", 5)))
                .await
                .expect(201);
            http.delete(&path).await.expect(200);
        };
        tokio::join!(contributions, reads, deletion);
        http.get(&path).await.expect(404);
    }
    let tables = tables_below(world.server.options().data());
    assert_eq!(tables.len() as u64, rounds);
    world.server.options().assert_consistent();
    // The second look takes what late writers have left.
    world = world
        .restart_with(|options| options.with("SLUICE__CLOCK__OFFSET", "2h"))
        .await;
    for table in &tables {
        gone(table).await;
    }
    let log = fs::read_to_string(world.server.options().log()).unwrap();
    for alarm in ["table_damaged", "dead letter", "is gone or another", "has a gap"] {
        assert!(!log.contains(alarm), "{alarm}: {log}");
    }
    let options = world.server.options().clone();
    assert!(world.server.stop().await.success());
    options.assert_consistent();
}
