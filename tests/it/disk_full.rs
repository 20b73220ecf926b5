//! A disk that fills up under load and gets room again.
//!
//! Invariant: no process ends because of it. What was acknowledged while the disk filled up has its outcome once there
//! is room, and nothing else has. Uploads leave the reserve free, whatever becomes of them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::server::{DEADLINE, POLL};
use tests::world::{Agent, Operator, batch, decided, decided_within, project_body};
use tests::{Answer, Options, Server};

use crate::uploads::{begin, complete, put, url};
use crate::{binary, optional};

/// The disk: what the service needs before it has work, and what a hundred batches fill, beside the ballast.
const SIZE: &str = "size=304m";
/// Bytes taken from the disk first and given back when it is full. A slow machine has a backlog then of which the log
/// and the database hold several copies.
const BALLAST: usize = 256 << 20;
/// Where batches go.
const CONTRIBUTE: &str = "/projects/logbook/contribute";
/// Longest wait for one batch: it may stand behind every other one when the disk has room again.
const BACKLOG: Duration = Duration::from_mins(5);
/// Batches that must not all fit.
const MOST: usize = 2_000;

const LETTERS: [char; 16] = [
    'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p',
];

/// A file system of its own in memory; unmounted when dropped.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// `None` where this user may not mount.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let disk = Self { folder };
        fs::create_dir(disk.path()).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "tmpfs"])
            .arg(disk.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(disk)
    }

    /// The place where it is mounted. The service has its data and its log there.
    fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// How many bytes are free.
    fn free(&self) -> usize {
        let disk = rustix::fs::statvfs(self.path()).unwrap();
        usize::try_from(disk.f_bavail * disk.f_frsize).unwrap()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.path()).status().ok();
    }
}

/// Records that no other batch has and that compress badly.
fn rows(number: usize) -> Vec<Value> {
    let mut random = tests::random::Random::new(number as u64 + 1);
    (0..200)
        .map(|row| {
            // Letters only: digits in a row may be somebody's card.
            let noise: String = (0..300).map(|_| random.pick(&LETTERS)).collect();
            json!({"station": format!("{number} {noise}"), "sample": row})
        })
        .collect()
}

/// A service on the disk with nobody's work yet, and a project in it.
async fn on(disk: &SmallDisk, reserve: &str) -> (Options, Server, Agent) {
    fs::write(disk.path().join("ballast"), vec![0; BALLAST]).unwrap();
    let options = Options::new(binary(), disk.path().join("data")).with("SLUICE__DATA__RESERVE", reserve);
    let server = Server::start(&options).await;
    let operator = Operator::create(&options, "first");
    let agent = Agent::create(&server.http(), &operator, "first.agent").await;
    agent.http.post("/projects", &project_body("logbook")).await.expect(201);
    (options, server, agent)
}

/// Contributes until the service does not take it: the ids it acknowledged, and its last answer if it gave one.
async fn fill(agent: &Agent) -> (Vec<String>, Option<Answer>) {
    let mut acknowledged = Vec::new();
    for number in 0..MOST {
        let body = batch(&rows(number)).to_string();
        match agent.http.send(Method::POST, CONTRIBUTE, &[], Some(body.into())).await {
            Ok(answer) if answer.code() == 201 => acknowledged.push(answer.text("/id").to_owned()),
            Ok(answer) => return (acknowledged, Some(answer)),
            Err(_broken) => return (acknowledged, None),
        }
    }
    panic!("{MOST} batches fitted");
}

/// Waits until each is merged, then stops the service and lets it be checked.
async fn all_merged(options: &Options, server: Server, agent: &Agent, acknowledged: &[String]) {
    assert!(acknowledged.len() > 1, "the disk was full before there was work");
    for id in acknowledged {
        let outcome = decided_within(BACKLOG, &agent.http, "logbook", id).await;
        assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
    }
    let project = agent.http.get("/projects/logbook").await.expect(200);
    let versions = project.body["versionCount"].as_u64().unwrap();
    assert!(versions >= acknowledged.len() as u64, "{versions} versions");
    assert!(server.stop().await.success());
    options.assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contributions_are_refused_before_the_disk_is_full_and_taken_again_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return optional("a full disk: this user may not mount a file system");
    };
    let (options, server, agent) = on(&disk, "24MiB").await;
    let keyed = async |body: &Value| {
        let key = [("Idempotency-Key", "first")];
        let sent = agent
            .http
            .send(Method::POST, CONTRIBUTE, &key, Some(body.to_string().into()));
        sent.await.unwrap()
    };
    let first = keyed(&batch(&rows(MOST + 1))).await.expect(201);
    let (acknowledged, refused) = fill(&agent).await;
    let refused = refused.expect("an answer").expect(503);
    assert_eq!((refused.error(), refused.header("retry-after")), ("storage_full", "5"));
    agent.http.get("/projects/logbook/data").await.expect(200);
    // What was acknowledged before is told again, as that needs no room.
    let again = keyed(&batch(&rows(MOST + 1))).await.expect(200);
    assert_eq!(again.text("/id"), first.text("/id"));
    keyed(&batch(&rows(MOST + 2))).await.expect(422);

    fs::remove_file(disk.path().join("ballast")).unwrap();
    let deadline = Instant::now() + DEADLINE;
    let body = batch(&rows(MOST));
    while agent.http.post(CONTRIBUTE, &body).await.code() != 201 {
        assert!(Instant::now() < deadline, "still refused");
        tokio::time::sleep(POLL).await;
    }
    all_merged(&options, server, &agent, &acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_leave_the_reserve_free_and_go_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return optional("a full disk: this user may not mount a file system");
    };
    let (options, server, agent) = on(&disk, "24MiB").await;
    let room = disk.free().checked_sub(24 << 20).expect("room for uploads");
    let begun = async |bytes: usize| {
        let body = json!({"bytes": bytes, "parts": 1, "partSize": bytes});
        agent.http.post("/projects/logbook/uploads", &body).await
    };
    let refused = begun(room + (1 << 20)).await.expect(503);
    assert_eq!((refused.error(), refused.header("retry-after")), ("storage_full", "5"));

    // Each fits, but not both; nor does the first beside what is made of it.
    let files = [0, 1].map(|file| {
        let mut lines = String::new();
        for number in file * MOST.. {
            for row in rows(number) {
                writeln!(lines, "{row}").unwrap();
            }
            if lines.len() > room / 5 * 4 {
                return lines.into_bytes();
            }
        }
        Vec::new()
    });
    let mut uploads = Vec::new();
    for file in &files {
        uploads.push(begin(&agent.http, "logbook", file, file.len(), "none").await);
    }
    let (status, first) = put(url(&uploads[0], 0), &files[0]).await;
    assert_eq!(status, 200);
    assert_eq!(put(url(&uploads[1], 0), &files[1]).await.0, 503);
    assert!(disk.free() >= 23 << 20, "a part took of the reserve");
    let tags = |tag: String| vec![json!({"n": 1, "etag": tag})];
    let first = complete(&agent.http, "logbook", &uploads[0], &tags(first))
        .await
        .expect(201);
    let deadline = Instant::now() + DEADLINE;
    while !fs::read_to_string(options.log())
        .unwrap()
        .contains("could not be staged")
    {
        assert!(disk.free() >= 16 << 20, "what is staged took of the reserve");
        assert!(Instant::now() < deadline, "it is not staged, nor is it put off");
        tokio::time::sleep(POLL).await;
    }
    // The others go on.
    let small = loop {
        let answer = agent.http.post(CONTRIBUTE, &batch(&rows(3 * MOST)[..1])).await;
        if answer.code() == 201 {
            break answer.text("/id").to_owned();
        }
        assert_eq!(answer.error(), "storage_full");
        assert!(Instant::now() < deadline, "still refused");
        tokio::time::sleep(POLL).await;
    };
    assert_eq!(decided(&agent.http, "logbook", &small).await.text("/status"), "merged");

    fs::remove_file(disk.path().join("ballast")).unwrap();
    let merged = decided(&agent.http, "logbook", first.text("/id")).await;
    assert_eq!(merged.text("/status"), "merged", "{}", merged.body);
    let (status, second) = put(url(&uploads[1], 0), &files[1]).await;
    assert_eq!(status, 200);
    let second = complete(&agent.http, "logbook", &uploads[1], &tags(second))
        .await
        .expect(201);
    let acknowledged = [small, first.text("/id").to_owned(), second.text("/id").to_owned()];
    all_merged(&options, server, &agent, &acknowledged).await;
}

/// Fills what is left of the disk, as another program may.
fn take_all(disk: &SmallDisk) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(disk.path().join("other"))
        .unwrap();
    for size in [1 << 20, 4 << 10, 1] {
        let block = vec![0; size];
        while file.write_all(&block).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_another_program_fills_ends_no_process_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        return optional("a full disk: this user may not mount a file system");
    };
    let (options, mut server, agent) = on(&disk, "0B").await;
    let pid = server.pid();
    let mut acknowledged = Vec::new();
    let mut number = 0;
    let mut send = async |acknowledged: &mut Vec<String>| {
        number += 1;
        let answer = agent.http.post(CONTRIBUTE, &batch(&rows(number))).await;
        match answer.code() {
            201 => acknowledged.push(answer.text("/id").to_owned()),
            code => assert_eq!(code, 503, "{}", answer.body),
        }
        answer.code() == 201
    };
    for round in 1..=3 {
        for _ in 0..10 {
            assert!(send(&mut acknowledged).await, "there is room");
        }
        take_all(&disk);
        // What it had taken out of its files before comes to its end; then nothing is taken any more.
        let mut refused = 0;
        while refused < 50 {
            refused = if send(&mut acknowledged).await { 0 } else { refused + 1 };
            assert!(acknowledged.len() < MOST, "it is not full");
            take_all(&disk);
        }
        assert!(server.exited().is_none(), "the process ended");
        agent.http.get("/healthz").await.expect(200);
        fs::remove_file(disk.path().join("other")).unwrap();
        let deadline = Instant::now() + DEADLINE;
        while !send(&mut acknowledged).await {
            assert!(Instant::now() < deadline, "still refused in round {round}");
            tokio::time::sleep(POLL).await;
        }
        for id in &acknowledged {
            let outcome = decided_within(BACKLOG, &agent.http, "logbook", id).await;
            assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
        }
        assert_eq!((server.exited(), server.pid()), (None, pid), "it is another process");
    }
    all_merged(&options, server, &agent, &acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_contributions_fill_ends_no_process_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        return optional("a full disk: this user may not mount a file system");
    };
    let (options, mut server, agent) = on(&disk, "0B").await;
    let (acknowledged, refused) = fill(&agent).await;
    refused.expect("an answer").expect(503);
    assert!(server.exited().is_none(), "the process ended");
    fs::remove_file(disk.path().join("ballast")).unwrap();
    for id in &acknowledged {
        let outcome = decided_within(BACKLOG, &agent.http, "logbook", id).await;
        assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
    }
    assert!(server.exited().is_none(), "the process ended");
    all_merged(&options, server, &agent, &acknowledged).await;
}
