//! A table that lost history, and a database that is missing beside tables.
//!
//! Invariant: what the service signed is answered as it was or not at all, until an administrator accepts the loss.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use tests::checker::delta::tables_below;
use tests::server::{DEADLINE, POLL};
use tests::world::{batch, contribute, decided, records};
use tests::{Answer, Http, Options, Server, World};

use crate::binary;

/// A service with a dataset of four versions; its slug and its table.
async fn four_versions() -> (World, String, PathBuf) {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    for series in ["a", "b", "c", "d"] {
        contribute(&world.agent.http, &slug, &records(series, 25)).await;
    }
    let table = tables_below(world.server.options().data()).remove(0);
    (world, slug, table)
}

fn commit(table: &Path, number: u64) -> PathBuf {
    table.join(format!("_delta_log/{number:020}.json"))
}

/// The answer to every way to read a dataset, pinned versions included.
async fn reads(http: &Http, slug: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    for path in [
        "data",
        "data?version=1",
        "export?version=2",
        "diff?from=0&to=1",
        "diff?from=0&to=1&limit=0",
        "manifest",
        "manifest?version=1",
    ] {
        answers.push(http.get(&format!("/projects/{slug}/{path}")).await);
    }
    let sql = json!({"sql": "SELECT count(*) FROM records", "version": 1});
    answers.push(http.post(&format!("/projects/{slug}/query"), &sql).await);
    let dry = batch(&records("a", 1));
    answers.push(http.post(&format!("/projects/{slug}/validate"), &dry).await);
    answers
}

/// Nothing is answered; for a moment after its merge a version is taken to be on its way.
async fn assert_refused(http: &Http, slug: &str) {
    let deadline = Instant::now() + DEADLINE;
    while http.get(&format!("/projects/{slug}/data")).await.expect(503).error() == "not_yet" {
        assert!(Instant::now() < deadline, "it is still on its way");
        tokio::time::sleep(POLL).await;
    }
    for answer in reads(http, slug).await {
        assert_eq!(
            (answer.code(), answer.error()),
            (503, "history_lost"),
            "{}",
            answer.body
        );
    }
}

/// Waits until every read is answered.
async fn answered(http: &Http, slug: &str) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answers = reads(http, slug).await;
        let Some(refused) = answers.iter().find(|answer| answer.code() != 200) else {
            return;
        };
        assert!(Instant::now() < deadline, "still refused: {}", refused.body);
        tokio::time::sleep(POLL).await;
    }
}

/// Contributes, and waits until the contribution waits for the table; its id.
async fn put_off(http: &Http, slug: &str, series: &str) -> String {
    let path = format!("/projects/{slug}/contribute");
    let answer = http.post(&path, &batch(&records(series, 25))).await.expect(201);
    let id = answer.text("/id").to_owned();
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = http
            .get(&format!("/projects/{slug}/contributions/{id}"))
            .await
            .expect(200);
        match answer.text("/status") {
            "waiting" => {
                assert_eq!(answer.text("/reason/code"), "history_lost");
                return id;
            }
            "submitted" => assert!(Instant::now() < deadline, "it does not wait"),
            other => panic!("it is {other}: {}", answer.body),
        }
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_whose_newest_commit_is_gone_is_refused_until_the_loss_is_accepted() {
    let (world, slug, table) = four_versions().await;
    let before = world
        .agent
        .http
        .get(&format!("/projects/{slug}/manifest"))
        .await
        .expect(200);
    let listed = world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
    assert_eq!(listed.body["latestVersion"], 4, "{}", listed.body);
    let options = world.server.options().clone();
    let agent = world.agent;
    assert!(world.server.stop().await.success());
    fs::remove_file(commit(&table, 4)).unwrap();
    let server = Server::start(&options).await;
    let http = agent.at(&server.http()).http;

    let waits = put_off(&http, &slug, "e").await;
    assert_refused(&http, &slug).await;
    let (sound, said) = options.check();
    assert!(!sound && said.contains("history_lost"), "{said}");
    assert!(!commit(&table, 4).exists(), "something was merged");

    let accepted = options.admin(&["table", "accept-loss", &slug, "--reason", "the disk failed"]);
    assert_eq!(accepted["lostVersions"], json!({"from": 4, "to": 4}), "{accepted}");
    assert_eq!(
        (&accepted["version"], &accepted["lostContributions"]),
        (&json!(3), &json!(1))
    );
    answered(&http, &slug).await;
    let merged = decided(&http, &slug, &waits).await;
    assert_eq!(
        (merged.text("/status"), &merged.body["mergedVersion"]),
        ("merged", &json!(4))
    );
    contribute(&http, &slug, &records("f", 25)).await;

    let after = http
        .get(&format!("/projects/{slug}/manifest?version=4"))
        .await
        .expect(200);
    assert_ne!(after.body["root"], before.body["root"], "two histories look the same");
    let (sound, said) = options.check();
    assert!(sound && said.contains("accepted loss 1: versions 4 to 4"), "{said}");
    assert!(said.contains("the disk failed"), "{said}");

    // Whoever contributed what is lost is told so.
    let lost = lost_contribution(&options, &http, &slug).await;
    assert_eq!(lost.text("/status"), "merged");
    assert_eq!(lost.text("/lost/reason"), "the disk failed");
    let output = options.run(&["admin", "table", "accept-loss", &slug, "--reason", "again"]);
    assert!(!output.status.success(), "a loss was accepted where there is none");
    // What was merged since stays so over a restart.
    assert!(server.stop().await.success());
    let server = Server::start(&options).await;
    let http = agent.at(&server.http()).http;
    contribute(&http, &slug, &records("g", 25)).await;
    answered(&http, &slug).await;
}

/// The answer about the contribution that was lost: its series was `d`.
async fn lost_contribution(options: &Options, http: &Http, slug: &str) -> Answer {
    let log = fs::read_dir(tables_below(options.data()).remove(0)).unwrap();
    let names = log.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found = Vec::new();
    for name in names.filter(|name| name.starts_with("part-00000000000000000004-")) {
        let id = &name["part-00000000000000000004-".len()..][..36];
        let answer = http
            .get(&format!("/projects/{slug}/contributions/{id}"))
            .await
            .expect(200);
        if answer.body.get("lost").is_some() {
            found.push(answer);
        }
    }
    assert_eq!(found.len(), 1, "one contribution is lost");
    found.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_vanishes_while_the_service_runs_stops_merges_until_it_is_back() {
    let (world, slug, table) = four_versions().await;
    let http = &world.agent.http;
    let newest = commit(&table, 4);
    let aside = newest.with_extension("aside");
    fs::rename(&newest, &aside).unwrap();
    let waits = put_off(http, &slug, "e").await;
    assert!(!commit(&table, 5).exists() && !newest.exists(), "something was merged");
    let deadline = Instant::now() + DEADLINE;
    while http.get(&format!("/projects/{slug}/data?version=1")).await.code() == 200 {
        assert!(Instant::now() < deadline, "it is still read");
        tokio::time::sleep(POLL).await;
    }
    assert_refused(http, &slug).await;

    fs::rename(&aside, &newest).unwrap();
    let merged = decided(http, &slug, &waits).await;
    assert_eq!(
        (merged.text("/status"), &merged.body["mergedVersion"]),
        ("merged", &json!(5))
    );
    answered(http, &slug).await;
    world.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_is_accepted_while_the_service_runs_that_merged_what_is_lost() {
    let (world, slug, table) = four_versions().await;
    let http = &world.agent.http;
    for number in [3, 4] {
        fs::remove_file(commit(&table, number)).unwrap();
    }
    let waits = put_off(http, &slug, "e").await;
    // Its records are known to nobody any more, so they are no duplicates.
    let again = put_off(http, &slug, "d").await;
    let options = world.server.options();
    let accepted = options.admin(&["table", "accept-loss", &slug, "--reason", "an old copy"]);
    assert_eq!(accepted["lostVersions"], json!({"from": 3, "to": 4}), "{accepted}");
    for id in [waits, again] {
        let merged = decided(http, &slug, &id).await;
        assert_eq!(
            (merged.text("/status"), &merged.body["acceptedCount"]),
            ("merged", &json!(25))
        );
    }
    answered(http, &slug).await;
    options.assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newest_version_with_another_root_is_refused() {
    let (world, slug, table) = four_versions().await;
    let options = world.server.options().clone();
    let agent = world.agent;
    assert!(world.server.stop().await.success());
    let newest = commit(&table, 4);
    let sound = fs::read_to_string(&newest).unwrap();
    let root = sound.split("\"root\":\"").nth(1).unwrap()[..64].to_owned();
    // Without its checksum it is a commit of an older build, and so not damaged.
    let (before, rest) = sound.split_once("\"checksum\":\"").unwrap();
    let older = format!("{before}{}", rest.split_once("\",").unwrap().1);
    fs::write(&newest, older.replace(&root, &"5e".repeat(32))).unwrap();
    let server = Server::start(&options).await;
    let http = agent.at(&server.http()).http;
    put_off(&http, &slug, "e").await;
    assert_refused(&http, &slug).await;
    fs::write(&newest, sound).unwrap();
    answered(&http, &slug).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_missing_beside_tables_is_not_made_anew() {
    let (world, slug, _table) = four_versions().await;
    let options = world.server.options().clone();
    let agent = world.agent;
    assert!(world.server.stop().await.success());
    let database = options.data().join("sluice.db");
    let aside = database.with_extension("aside");
    fs::rename(&database, &aside).unwrap();
    for empty in [false, true] {
        if empty {
            fs::write(&database, b"").unwrap();
        }
        assert!(
            Server::try_start(&options).await.is_err(),
            "it serves nothing as if that were all"
        );
        let said = fs::read_to_string(options.log()).unwrap();
        assert!(
            said.contains("restore the database from a backup") && said.contains("start with nothing"),
            "{said}"
        );
        let add = ["admin", "operator", "add", "--email", "x@example.org", "--name", "X"];
        for command in [
            &["check"][..],
            &add,
            &["keys", "rotate"],
            &["admin", "dead-letters", "list"],
        ] {
            let output = options.run(command);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && said.contains("restore the database"),
                "{command:?}: {said}"
            );
        }
        let bytes = fs::metadata(&database).map_or(0, |file| file.len());
        assert_eq!(bytes, 0, "a database was made");
    }
    fs::remove_file(&database).ok();
    fs::rename(&aside, &database).unwrap();
    let server = Server::start(&options).await;
    answered(&agent.at(&server.http()).http, &slug).await;
    let Value::Array(_) = &server.http().get("/projects").await.expect(200).body["items"] else {
        panic!("no list");
    };
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_on_postgresql_beside_tables_is_refused() {
    let Some(server) = store::testing::Postgres::shared() else {
        return;
    };
    let url = tokio::task::block_in_place(|| server.fresh_database());
    let (world, _slug, _table) = four_versions().await;
    let options = world.server.options().clone();
    assert!(world.server.stop().await.success());
    let elsewhere = options.with("SLUICE__DATABASE__URL", &url);
    assert!(
        Server::try_start(&elsewhere).await.is_err(),
        "it serves nothing as if that were all"
    );
    let said = fs::read_to_string(elsewhere.log()).unwrap();
    assert!(
        said.contains("the database of `database.url` is missing or knows no project"),
        "{said}"
    );
    assert!(!elsewhere.check().0);
}
