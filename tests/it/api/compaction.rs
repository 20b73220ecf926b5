//! A dataset whose parts are compacted while it is read: pages, exports, differences, queries, manifests and pulls say
//! what they said before.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use proof::{Keys, VerifiedManifest};
use serde_json::{Value, json};
use tests::World;
use tests::server::{DEADLINE, POLL};
use tests::world::{all_data, contribute, records};

use crate::binary;

/// The parts of a version, by their first and last versions.
async fn layout(world: &World, slug: &str, version: u64) -> Vec<(u64, u64)> {
    let path = format!("/projects/{slug}/manifest?version={version}");
    let answer = world.agent.http.get(&path).await.expect(200);
    let keys = world.http.get("/.well-known/service-keys").await.expect(200);
    let keys = Keys::parse(&keys.bytes).unwrap();
    let verified = VerifiedManifest::parse(&answer.bytes, &keys).unwrap();
    assert_eq!(verified.manifest().version.0, version);
    let parts = verified.manifest().parts.iter();
    parts.map(|part| (part.first_version.0, part.last_version.0)).collect()
}

async fn compacted(world: &World, slug: &str, version: u64, expected: &[(u64, u64)]) {
    let deadline = Instant::now() + DEADLINE;
    while layout(world, slug, version).await != expected {
        assert!(Instant::now() < deadline, "the table was not compacted");
        tokio::time::sleep(POLL).await;
    }
}

/// Everything that a version and what came before it reads as.
async fn reads(world: &World, slug: &str, version: u64) -> Value {
    let http = &world.agent.http;
    let export = format!("/projects/{slug}/export?version={version}");
    let export = http.get(&export).await.expect(200);
    let diff = format!("/projects/{slug}/diff?from={}&to={version}&limit=500", version - 1);
    let diff = http.get(&diff).await.expect(200);
    let query = json!({"sql": "SELECT count(*) AS n, sum(sample) AS s FROM records", "version": version});
    let query = http.post(&format!("/projects/{slug}/query"), &query).await.expect(200);
    let manifest = http.get(&format!("/projects/{slug}/manifest?version={version}")).await;
    json!({
        "data": all_data(http, slug, version).await,
        "export": String::from_utf8(export.bytes).unwrap(),
        "diff": diff.body,
        "rows": query.body["rows"],
        "root": manifest.expect(200).body["root"],
    })
}

/// Pulls a version and verifies it with our own program and, where there is one, with Python.
fn pull_and_verify(world: &World, slug: &str, version: u64, folder: &Path) {
    let known = folder.with_extension("known");
    let options = world
        .server
        .options()
        .clone()
        .with("SLUICE_KEY", &world.agent.key)
        .with("SLUICE_KNOWN_KEYS", known.display());
    let (folder, version) = (folder.to_str().unwrap(), version.to_string());
    let server = world.server.base();
    for arguments in [
        &["pull", slug, "--server", server, "--version", &version, "--dir", folder][..],
        &["verify", folder],
    ] {
        let output = options.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    if let Ok(python) = std::env::var("SLUICE_TEST_PYTHON") {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/client/examples/verify.py");
        let output = Command::new(python).arg(example).arg(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn a_compaction_changes_files_and_nothing_that_is_said() {
    // First without compaction, so that everything is known before.
    let world = World::start_with(binary(), |options| options.with("SLUICE__COMPACTION__ENABLED", "false")).await;
    let slug = world.project().await;
    for series in ["a", "b", "c", "d", "e"] {
        contribute(&world.agent.http, &slug, &records(series, 40)).await;
    }
    let mut before = Vec::new();
    for version in 1..=5 {
        before.push(reads(&world, &slug, version).await);
    }
    assert_eq!(layout(&world, &slug, 5).await.len(), 5);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("pulled");
    pull_and_verify(&world, &slug, 5, &place);

    let eager = |options: tests::server::Options| {
        options
            .with("SLUICE__COMPACTION__ENABLED", "true")
            .with("SLUICE__COMPACTION__FAN_IN", 2)
    };
    let world = world.restart_with(eager).await;
    contribute(&world.agent.http, &slug, &records("f", 40)).await;
    compacted(&world, &slug, 6, &[(1, 4), (5, 6)]).await;
    assert_eq!(layout(&world, &slug, 3).await, [(1, 2), (3, 3)]);
    assert_eq!(layout(&world, &slug, 5).await, [(1, 4), (5, 5)]);
    for (version, before) in (1..).zip(&before) {
        assert_eq!(reads(&world, &slug, version).await, *before, "{version}");
    }
    // The folder has the old layout; the pull fetches what it lacks and removes what it has twice.
    for version in [5, 6, 3] {
        pull_and_verify(&world, &slug, version, &place);
        let files = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        let parts = files
            .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
            .count();
        assert_eq!(parts, 2);
    }
    world.server.options().assert_consistent();
}
