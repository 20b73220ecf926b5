//! `sluice check`: silent about a sound service, and not silent about any other.

use std::fs;
use std::path::{Path, PathBuf};

use eventlog::{Embedded, EventLog as _, Record};
use messages::{CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC};
use tests::checker::delta::tables_below;
use tests::world::{contribute, records};
use tests::{Options, World};

use crate::binary;

/// A stopped service with one dataset of four versions: what keeps its folder, its options, its table.
async fn stopped() -> (tempfile::TempDir, Options, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data"));
    let server = tests::Server::start(&options).await;
    let http = server.http();
    let operator = tests::world::Operator::create(&options, "first");
    let agent = tests::world::Agent::create(&http, &operator, "first.agent").await;
    agent
        .http
        .post("/projects", &tests::world::project_body("checked"))
        .await
        .expect(201);
    for series in ["a", "b", "c", "d"] {
        contribute(&agent.http, "checked", &records(series, 25)).await;
    }
    assert!(server.stop().await.success());
    let table = tables_below(options.data()).remove(0);
    (folder, options, table)
}

#[track_caller]
fn assert_found(options: &Options, what: &str) {
    let (sound, said) = options.check();
    assert!(!sound, "{what} was not found:\n{said}");
    assert!(!said.contains("panicked"), "{what}:\n{said}");
}

fn commit(table: &Path, number: u64) -> PathBuf {
    table.join(format!("_delta_log/{number:020}.json"))
}

fn part(table: &Path) -> PathBuf {
    let entries = fs::read_dir(table).unwrap().map(|entry| entry.unwrap().path());
    let mut parts: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|name| name == "parquet"))
        .collect();
    parts.sort();
    parts.remove(1)
}

#[tokio::test]
async fn a_sound_service_passes_at_work_and_at_rest() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    for series in ["a", "b", "c"] {
        contribute(&world.agent.http, &slug, &records(series, 25)).await;
        contribute(&world.agent.http, &slug, &records(series, 25)).await;
    }
    world.server.options().assert_consistent();
    let options = world.server.options().clone();
    assert!(world.server.stop().await.success());
    options.assert_consistent();
}

#[tokio::test]
async fn a_changed_byte_of_a_part_is_found() {
    let (_folder, options, table) = stopped().await;
    options.assert_consistent();
    let part = part(&table);
    let sound = fs::read(&part).unwrap();
    for at in [4, sound.len() / 2, sound.len() - 1] {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(&part, bytes).unwrap();
        assert_found(&options, &format!("a changed byte at {at}"));
    }
    fs::write(&part, &sound[..sound.len() - 1]).unwrap();
    assert_found(&options, "a part that is cut off");
    fs::remove_file(&part).unwrap();
    assert_found(&options, "a missing part");
    fs::write(&part, sound).unwrap();
    options.assert_consistent();
}

#[tokio::test]
async fn a_missing_empty_or_cut_commit_is_found() {
    let (_folder, options, table) = stopped().await;
    for number in 0..=4 {
        let path = commit(&table, number);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, b"").unwrap();
        assert_found(&options, &format!("an empty commit {number}"));
        fs::write(&path, &sound[..sound.len() / 2]).unwrap();
        assert_found(&options, &format!("a cut commit {number}"));
        fs::remove_file(&path).unwrap();
        assert_found(&options, &format!("a missing commit {number}"));
        fs::write(&path, sound).unwrap();
    }
    options.assert_consistent();
}

#[tokio::test]
async fn a_forged_commit_is_found() {
    let (_folder, options, table) = stopped().await;
    let path = commit(&table, 3);
    let sound = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"accepted\":25", "\"accepted\":24"),
        ("\"recordCount\":75", "\"recordCount\":76"),
        ("\"numRecords\\\":25", "\"numRecords\\\":26"),
        ("\"root\":\"", "\"root\":\"0"),
        ("\"sha256\":\"", "\"sha256\":\"f"),
    ] {
        let forged = sound.replacen(from, to, 1);
        assert_ne!(forged, sound, "{from} is not in {sound}");
        fs::write(&path, forged).unwrap();
        assert_found(&options, &format!("{from} as {to}"));
    }
    fs::copy(commit(&table, 3), commit(&table, 5)).unwrap();
    fs::write(&path, &sound).unwrap();
    assert_found(&options, "a commit that repeats another");
    fs::write(commit(&table, 5), sound.replace("\"version\":3", "\"version\":5")).unwrap();
    assert_found(&options, "a contribution in two versions");
}

#[tokio::test]
async fn versions_the_database_knows_and_the_table_lost_are_found() {
    let (_folder, options, table) = stopped().await;
    fs::remove_file(commit(&table, 4)).unwrap();
    assert_found(&options, "a lost head");
    fs::rename(&table, table.with_extension("gone")).unwrap();
    assert_found(&options, "a lost table");
}

#[tokio::test]
async fn what_is_in_the_way_of_the_next_commit_is_found() {
    let (_folder, options, table) = stopped().await;
    let next = commit(&table, 5);
    fs::write(&next, b"not a commit").unwrap();
    assert_found(&options, "a stray file with the name of the next commit");
    fs::remove_file(&next).unwrap();
    fs::create_dir(&next).unwrap();
    assert_found(&options, "a folder with the name of the next commit");
    fs::remove_dir(&next).unwrap();
    std::os::unix::fs::symlink("nowhere", &next).unwrap();
    assert_found(&options, "a link to nowhere with the name of the next commit");
    fs::remove_file(&next).unwrap();
    fs::copy(commit(&table, 4), commit(&table, 6)).unwrap();
    assert_found(&options, "a gap at the next commit");
    fs::remove_file(commit(&table, 6)).unwrap();
    options.assert_consistent();
}

#[tokio::test]
async fn messages_in_the_log_that_nobody_can_read_are_found() {
    for topic in [CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC] {
        let (_folder, options, _table) = stopped().await;
        let (sound, said) = options.check();
        assert!(sound && said.contains("log: "), "{said}");
        let log = Embedded::open(options.data().join("log"), eventlog::EmbeddedOptions::default()).unwrap();
        let record = Record {
            key: vec![7; 16].into(),
            value: "not a message".into(),
        };
        log.append(topic, vec![record]).await.unwrap();
        drop(log);
        assert_found(&options, &format!("an unreadable message in {topic}"));
    }
}

#[tokio::test]
async fn a_damaged_log_is_found() {
    let (_folder, options, _table) = stopped().await;
    let data = options.data().join("log/data");
    fs::rename(data.join("version"), data.join("aside")).unwrap();
    assert_found(&options, "a log without its version");
    fs::rename(data.join("aside"), data.join("version")).unwrap();
    options.assert_consistent();
}
