//! Knowledge by what it means, with what the program brings: a search across languages, copies in another language, and
//! reviews that tell findings from their form.

use std::time::Instant;

use serde_json::{Value, json};
use tests::server::DEADLINE;
use tests::{Answer, Http, World};

use crate::binary;

const CHECKPOINTS: &str = "With SQLite 3.46.0 in WAL mode on ext4 (Linux 6.8, NVMe, 2 cores) every 200th commit took 38 ms instead of \
                           0.9 ms. The cause was the automatic checkpoint after 4,000 pages: it copies the pages into the \
                           database file within the commit that reaches the limit. `PRAGMA wal_autocheckpoint=0` and \
                           `PRAGMA wal_checkpoint(PASSIVE)` from a second connection every 500 ms ended it: the slowest of \
                           10,000 commits in 5 runs took 2.1 ms. It does not hold for `synchronous=FULL`, which was not tested.";

const CHECKPOINTS_IN_KOREAN: &str = "SQLite 3.46.0을 WAL 모드로 ext4(Linux 6.8, NVMe, 코어 2개)에서 돌리면 200번째 커밋마다 0.9ms 대신 38ms가 \
                                     걸렸다. 원인은 4000 페이지 뒤의 자동 체크포인트였다. 한도에 닿은 커밋 안에서 페이지를 데이터베이스 파일로 \
                                     옮기기 때문이다. `PRAGMA wal_autocheckpoint=0`으로 끄고 두 번째 연결에서 500ms마다 \
                                     `PRAGMA wal_checkpoint(PASSIVE)`을 부르자 사라졌다. 5회, 10000개 커밋 가운데 가장 느린 것이 2.1ms였다. \
                                     `synchronous=FULL`에서는 시험하지 않았다.";

const RETRIES: &str = "The nightly export to the warehouse failed on 11 of 30 nights with `curl: (56) Recv failure: Connection reset by \
                       peer`. The proxy (HAProxy 2.8.3) closed idle connections after `timeout server 50s`, and the export paused \
                       for 63 s between two pages. With `timeout server 180s` none of the next 40 nights failed. A keep-alive \
                       of 30 s on the client did not help: the pause is on the side of the server.";

/// A procedure with neither runs nor a spread.
const PROCEDURE: &str = "To move a PostgreSQL 15 cluster to a larger disk without a dump:\n\n1. Stop writes: `ALTER SYSTEM SET \
                         default_transaction_read_only = on; SELECT pg_reload_conf();`\n2. Take a base backup onto the new disk: \
                         `pg_basebackup -D /mnt/new/data -X stream -c fast -P`\n3. Stop the old server: `pg_ctl -D /var/lib/postgresql/15/main \
                         stop -m fast`\n4. Point the unit at the new folder: `systemctl edit postgresql@15-main`, set `PGDATA=/mnt/new/data`.\n\
                         5. Start it and compare: `SELECT pg_current_wal_lsn();` must not be behind what step 2 printed.\n\nIf step 2 ends \
                         with `could not receive data from WAL stream`, raise `wal_keep_size`; the old folder is untouched until you delete it.";

/// Advice with one invented sentence of figures.
const JUNK: &str = "Performance matters for every team, and a fast database makes users happy. You should always think about your \
                    indexes and keep them tidy. Good engineers know that simple solutions are often the best. Make sure that your \
                    architecture is scalable and robust, and that everybody understands it. Communication is the key to success in \
                    any project. Measured on 2026-10-14 on Ubuntu 22.04 with 8 vCPU and 32 GiB RAM over 12 runs: median 20 ms, p95 26 \
                    ms, p99 41 ms. In the end it is all about finding the right balance for your needs, and about never giving up.";

async fn submitted(http: &Http, title: &str, body: &str) -> String {
    let unit = json!({
        "title": title,
        "body": body,
        "category": "infra-measurement",
        "sourceDeclaration": "Ran on 2026-11-20 on a rented machine with 2 cores.",
        "price": "0",
    });
    http.post("/knowledge", &unit).await.expect(201).text("/id").to_owned()
}

/// Waits for the end of the review of a unit.
async fn reviewed(http: &Http, id: &str) -> Answer {
    let begun = Instant::now();
    loop {
        let shown = http.get(&format!("/knowledge/{id}?wait=20")).await.expect(200);
        if ["published", "rejected"].contains(&shown.text("/status")) {
            return shown;
        }
        assert!(begun.elapsed() < DEADLINE, "not reviewed: {}", shown.body);
    }
}

/// Submits a unit that is published.
async fn published(http: &Http, title: &str, body: &str) -> String {
    let id = submitted(http, title, body).await;
    let shown = reviewed(http, &id).await;
    assert_eq!(shown.text("/status"), "published", "{}", shown.body);
    id
}

/// Searches until the vectors of all units are there, which are made in the background.
async fn found_by_meaning(http: &Http, query: &str) -> Answer {
    let begun = Instant::now();
    loop {
        let found = http.get(&format!("/search?q={query}&kind=unit")).await.expect(200);
        if found.text("/judge/kind") == "model" && found.body["items"].as_array().is_some_and(|items| !items.is_empty())
        {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "no vectors: {}", found.body);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_asks_in_korean_and_finds_the_english_unit() {
    let world = World::start(binary()).await;
    let http = &world.agent.http;
    let wanted = published(
        http,
        "SQLite in WAL mode: checkpoints of 4,000 pages stall a commit",
        CHECKPOINTS,
    )
    .await;
    let other = published(
        http,
        "A proxy that closes idle connections breaks a nightly export",
        RETRIES,
    )
    .await;
    for (query, expected) in [
        ("데이터베이스 체크포인트 때문에 커밋이 느려지는 이유", &wanted),
        ("야간 내보내기 연결이 끊기는 문제", &other),
        ("warum dauern manche commits der datenbank lange", &wanted),
    ] {
        let found = found_by_meaning(&world.http, query).await;
        assert_eq!(found.text("/items/0/id"), expected.as_str(), "{query}: {}", found.body);
    }
    // The vectors stay: after a restart the same question is answered without the texts being read again.
    let world = world.restart_with(|options| options).await;
    let found = found_by_meaning(&world.http, "데이터베이스 체크포인트 때문에 커밋이 느려지는 이유").await;
    assert_eq!(found.text("/items/0/id"), wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_translation_of_a_unit_is_refused_as_a_copy_and_says_what_is_in_the_unit() {
    let world = World::start(binary()).await;
    let original = published(
        &world.agent.http,
        "SQLite in WAL mode: checkpoints of 4,000 pages stall a commit",
        CHECKPOINTS,
    )
    .await;
    let (_, other) = world.newcomer().await;
    let copy = submitted(
        &other.http,
        "WAL 모드의 SQLite에서 커밋이 멈추는 까닭",
        CHECKPOINTS_IN_KOREAN,
    )
    .await;
    let shown = reviewed(&other.http, &copy).await;
    assert_eq!(shown.text("/reason/code"), "duplicate_meaning", "{}", shown.body);
    let refused = |entry: &&Value| entry["outcome"] == "refused";
    let entry = shown.body["validations"]
        .as_array()
        .unwrap()
        .iter()
        .find(refused)
        .unwrap();
    assert_eq!(entry["similar"]["unitId"], original.as_str());
    // The unit is free, so its facts may be named.
    let detail = entry["detail"].as_str().unwrap();
    assert!(
        detail.contains("are there, such as") && detail.contains("wal_autocheckpoint"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_procedure_without_figures_is_published_and_junk_with_an_invented_measurement_is_not() {
    let world = World::start(binary()).await;
    let http = &world.agent.http;
    published(
        http,
        "Move a PostgreSQL 15 cluster to a larger disk without a dump",
        PROCEDURE,
    )
    .await;
    let junk = submitted(http, "Why database performance matters", JUNK).await;
    let shown = reviewed(http, &junk).await;
    assert_eq!(shown.text("/status"), "rejected", "{}", shown.body);
    // The reason quotes a sentence of the text that holds nothing.
    let message = shown.text("/reason/message");
    assert!(message.contains('“') || message.contains('«'), "{message}");
}
