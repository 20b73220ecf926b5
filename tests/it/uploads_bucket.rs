//! Large contributions where the tables are in a bucket: parts go straight to it, and any worker judges them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use s3_server::{ACCESS_KEY, BUCKET, Fault, Rule, SECRET_KEY};
use serde_json::{Value, json};
use tests::server::{DEADLINE, Options, POLL};
use tests::world::{contribute, decided, records};
use tests::{Answer, World};

use crate::binary;
use crate::uploads::{begin, complete, fill, gzip, lines, put, said, url};

/// A bucket, in a folder.
pub(crate) struct Bucket {
    folder: tempfile::TempDir,
    server: s3_server::Server,
}

impl Bucket {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = s3_server::Server::start(folder.path()).unwrap();
        Self { folder, server }
    }

    /// The same service with its tables there.
    pub(crate) fn configure(&self, options: Options) -> Options {
        options
            .with("SLUICE__OBJECTS__BACKEND", "s3")
            .with("SLUICE__OBJECTS__ENDPOINT", self.server.endpoint())
            .with("SLUICE__OBJECTS__BUCKET", BUCKET)
            .with("SLUICE__OBJECTS__ACCESS_KEY", ACCESS_KEY)
            .with("SLUICE__OBJECTS__SECRET_KEY", SECRET_KEY)
    }

    /// A service with its tables there.
    pub(crate) async fn world(&self) -> World {
        World::start_with(binary(), |options| self.configure(options)).await
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What is there of uploads.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        left(self.folder.path())
    }

    /// Waits until nothing is left of any upload.
    async fn is_freed(&self) {
        let begun = Instant::now();
        while !self.left().is_empty() {
            assert!(begun.elapsed() < DEADLINE, "left: {:?}", self.left());
            tokio::time::sleep(POLL).await;
        }
    }
}

/// What the server keeps of uploads: objects of theirs, and the parts of those that are open.
pub(crate) fn left(root: &Path) -> Vec<PathBuf> {
    let mut pending = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                pending.push(path);
            } else if name.contains("/_uploads/") || name.contains(".part-") {
                found.push(path);
            }
        }
    }
    found
}

/// `sluice push` of a file.
pub(crate) fn push(server: &str, key: &str, slug: &str, file: &Path, part: &str) -> Output {
    let mut command = Command::new(binary());
    command
        .arg("push")
        .arg(file)
        .args(["--project", slug, "--part-size", part, "--state"])
        .arg(file.with_extension("state"))
        .env("SLUICE_SERVER", server)
        .env("SLUICE_KEY", key)
        .stdin(Stdio::null());
    command.output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_go_to_the_bucket_and_become_a_version() {
    let bucket = Bucket::start();
    let world = bucket.world().await;
    let (http, slug) = (&world.agent.http, world.project().await);
    let text = lines(0..400);
    // Of 4 KiB each an object, and all of them one.
    for (version, size) in [(1, 4 << 10), (2, 1 << 20)] {
        let text = [&lines(version * 1_000..version * 1_000 + 1)[..], &text].concat();
        let upload = begin(http, &slug, &text, size, "none").await;
        assert!(url(&upload, 0).starts_with(&bucket.server.endpoint()), "{upload}");
        // The store itself refuses another length.
        let first = &text[..size.min(text.len())];
        for wrong in [&first[1..], &[first, b"x"].concat(), b""] {
            assert_eq!(put(url(&upload, 0), wrong).await.0, 403);
        }
        let missing = complete(http, &slug, &upload, &[json!({"n": 1, "etag": "x"})])
            .await
            .expect(409);
        assert_eq!(missing.error(), "parts_missing");
        let tags = fill(&upload, &text, size).await;
        let first = complete(http, &slug, &upload, &tags).await.expect(201);
        let again = complete(http, &slug, &upload, &tags).await.expect(201);
        assert_eq!(first.body["id"], again.body["id"]);
        // Pinned: the address is good still, and the store takes nothing there.
        let (late, _) = put(url(&upload, 0), &text[..size.min(text.len())]).await;
        assert_eq!(late, 404);
        let outcome = decided(http, &slug, first.text("/id")).await;
        assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
        assert_eq!(outcome.body["mergedVersion"], version, "{}", outcome.body);
        let again = complete(http, &slug, &upload, &tags).await.expect(201);
        assert_eq!(again.text("/status"), "merged");
        bucket.is_freed().await;
    }
    let page = http.get(&format!("/projects/{slug}/data?limit=1000")).await.expect(200);
    assert_eq!(page.body["total"], 402);
    assert_eq!(page.body["items"][1]["station"], "bulk 0");
    let sql = json!({"sql": "SELECT count(*) AS n, sum(sample) AS s FROM records"});
    let answer = http.post(&format!("/projects/{slug}/query"), &sql).await.expect(200);
    assert_eq!(answer.body["rows"], json!([[402, 400 * 399 / 2 + 3_000]]));
    world.server.options().assert_consistent();
}

/// Begins an upload of many parts and one of a single part, and puts every part. Returns each with its tags and the size
/// of its first part.
async fn filled(world: &World, slug: &str, text: &[u8]) -> Vec<(Value, Vec<Value>, usize)> {
    let mut uploads = Vec::new();
    for size in [1 << 10, 1 << 20] {
        let upload = begin(&world.agent.http, slug, text, size, "none").await;
        let tags = fill(&upload, text, size).await;
        uploads.push((upload, tags, size.min(text.len())));
    }
    uploads
}

/// What an upload of these bytes comes to: the status of each step, and its error or its outcome.
async fn fate(world: &World, slug: &str, bytes: &[u8], compression: &str) -> (Value, Vec<Value>) {
    let http = &world.agent.http;
    let size = bytes.len().div_ceil(3);
    let upload = begin(http, slug, bytes, size, compression).await;
    let mut told = Vec::new();
    let mut tell = |step: &str, answer: Answer| {
        let parts = answer.body["parts"].clone();
        told.push(json!([
            step,
            answer.code(),
            answer.body["error"],
            parts,
            answer.body["message"]
        ]));
    };
    let tag = |n: u64, tag: &str| json!({"n": n, "etag": tag});
    tell(
        "nothing was sent",
        complete(http, slug, &upload, &[tag(1, "x"), tag(2, "x"), tag(3, "x")]).await,
    );
    let tags = fill(&upload, bytes, size).await;
    let last = tags.len() - 1;
    tell(
        "a part is not named",
        complete(http, slug, &upload, &tags[..last]).await,
    );
    let extra = [&tags[..], &[tag(9, "x")]].concat();
    tell("a part too many is named", complete(http, slug, &upload, &extra).await);
    let swapped: Vec<_> = (1..)
        .zip(tags.iter().rev())
        .map(|(n, other)| json!({"n": n, "etag": other["etag"]}))
        .collect();
    tell("tags of other parts", complete(http, slug, &upload, &swapped).await);
    tell(
        "a part twice",
        complete(http, slug, &upload, &[tags[0].clone(), tags[0].clone()]).await,
    );
    let acknowledged = complete(http, slug, &upload, &tags).await.expect(201);
    let outcome = decided(http, slug, acknowledged.text("/id")).await;
    let mut other = tags.clone();
    other[0]["etag"] = json!("y");
    tell("other tags afterwards", complete(http, slug, &upload, &other).await);
    assert!(
        put(url(&upload, 0), &bytes[..size]).await.0 >= 400,
        "a part after it was completed"
    );
    let outcome = json!({
        "status": outcome.body["status"], "reason": outcome.body["reason"], "verdicts": outcome.body["verdicts"],
        "accepted": outcome.body["acceptedCount"], "root": outcome.body["root"], "tallies": outcome.body["tallies"],
    });
    (outcome, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_answered_as_by_a_service_with_its_files_at_home() {
    let bucket = Bucket::start();
    let worlds = [bucket.world().await, World::start(binary()).await];
    let slugs = [worlds[0].project().await, worlds[1].project().await];
    let good = lines(0..40);
    let mut long = good.clone();
    long.extend(b"{\"station\":\"");
    long.resize(5 << 20, b'x');
    long.extend(b"\"}\n");
    let with = |bytes: &[u8]| [&good[..], bytes].concat();
    let cases: BTreeMap<&str, (Vec<u8>, &str)> = [
        ("1 good", (good.clone(), "none")),
        ("2 all duplicates", (good.clone(), "none")),
        ("3 a last line that is wrong", (with(b"{\"station\":7}"), "none")),
        ("4 no JSON", (with(b"{\"station\":"), "none")),
        ("5 no UTF-8", (with(b"{\"station\":\"\xff\"}\n"), "none")),
        (
            "6 a mark and other line ends",
            (
                b"\xef\xbb\xbf{\"station\":\"m\",\"sample\":1}\r\n\r\n{\"station\":\"n\",\"sample\":2}\r\n".to_vec(),
                "none",
            ),
        ),
        ("7 blank lines alone", (b" \n\r\n\n".to_vec(), "none")),
        ("8 a long line", (long, "none")),
        ("9 gzip", (gzip(&lines(100..140)), "gzip")),
        ("a gzip that is cut", (gzip(&good)[..60].to_vec(), "gzip")),
        ("b gzip that is none", (good.clone(), "gzip")),
        ("c gzip that is not named", (gzip(&good), "none")),
        ("d gzip in gzip", (gzip(&gzip(&good)), "gzip")),
        ("e a bomb", (gzip(&vec![b'\n'; 32 << 20]), "gzip")),
    ]
    .into();
    for (name, (bytes, compression)) in cases {
        let there = fate(&worlds[0], &slugs[0], &bytes, compression).await;
        let here = fate(&worlds[1], &slugs[1], &bytes, compression).await;
        assert_eq!(there, here, "{name}");
    }
    bucket.is_freed().await;
    for world in &worlds {
        world.server.options().assert_consistent();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_expires_is_freed_and_takes_nothing_more() {
    let bucket = Bucket::start();
    let world = bucket.world().await;
    let slug = world.project().await;
    let text = lines(0..100);
    let uploads = filled(&world, &slug, &text).await;
    assert!(!bucket.left().is_empty());
    let world = world
        .restart_with(|options| options.with("SLUICE__CLOCK__OFFSET", "7h"))
        .await;
    bucket.is_freed().await;
    for (upload, tags, size) in uploads {
        let late = complete(&world.agent.http, &slug, &upload, &tags).await.expect(409);
        assert_eq!(late.error(), "upload_expired");
        // By the clock of the store its address is good still.
        assert_eq!(put(url(&upload, 0), &text[..size]).await.0, 404);
    }
    assert_eq!(bucket.left(), [""; 0].map(PathBuf::from));
    let project = world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
    assert_eq!(project.body["latestVersion"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspension_ends_the_addresses_that_a_bucket_serves() {
    let bucket = Bucket::start();
    let change = |options| bucket.configure(options).with("SLUICE__SWEEPER__EVERY", "1s");
    let world = World::start_with(binary(), change).await;
    let slug = world.project().await;
    let text = lines(0..100);
    let uploads = filled(&world, &slug, &text).await;
    contribute(&world.agent.http, &slug, &records("a", 4)).await;
    let manifest = format!("/projects/{slug}/manifest");
    let told = world.agent.http.get(&manifest).await.expect(200).body;
    let download = told["parts"][0]["url"].as_str().unwrap();
    // The bucket ends those by itself.
    assert!(download.starts_with(&bucket.server.endpoint()) && download.contains("X-Amz-Expires=900&"));
    let (options, id) = (world.server.options(), world.operator.id.as_str());
    options.admin(&["operator", "suspend", id, "--reason", "a test"]);
    world.agent.http.soon(&manifest, 401).await;
    bucket.is_freed().await;
    for (upload, _, size) in &uploads {
        assert_eq!(put(url(upload, 0), &text[..*size]).await.0, 404);
    }
    options.admin(&["operator", "restore", id]);
    world.agent.http.soon(&manifest, 200).await;
    for (upload, tags, _) in uploads {
        let late = complete(&world.agent.http, &slug, &upload, &tags).await.expect(409);
        assert_eq!(late.error(), "upload_expired");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_arrives_whatever_the_store_answers() {
    let bucket = Bucket::start();
    let change = |options| bucket.configure(options).with("SLUICE__OBJECTS__ATTEMPT", "2s");
    let world = World::start_with(binary(), change).await;
    let (http, slug) = (&world.agent.http, world.project().await);
    let faults = bucket.server.faults();
    let kinds = [
        Fault::Internal,
        Fault::SlowDown,
        Fault::DoneThenInternal,
        Fault::LostAnswer,
        Fault::Slow(std::time::Duration::from_millis(20)),
    ];
    for fault in kinds {
        for method in ["PUT", "GET", "POST", "DELETE", "HEAD"] {
            faults.add(Rule::share(fault, method, 40));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut rows = 0;
    for (round, size) in ["32KiB", "8MiB"].into_iter().cycle().enumerate() {
        let file = folder.path().join(format!("rows-{round}.ndjson"));
        fs::write(&file, lines(rows..rows + 5_000)).unwrap();
        let (base, key) = (world.server.base().to_owned(), world.agent.key.clone());
        let (pushed, of) = (slug.clone(), file.clone());
        let output = tokio::task::spawn_blocking(move || push(&base, &key, &pushed, &of, size))
            .await
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("5,000 records are new"), "{}", said(&output));
        rows += 5_000;
        if round > 0 && kinds.iter().all(|fault| faults.happened(*fault) > 0) {
            break;
        }
    }
    faults.clear();
    let page = http.get(&format!("/projects/{slug}/data?limit=1")).await.expect(200);
    assert_eq!(page.body["total"].as_u64(), Some(rows));
    bucket.is_freed().await;
    world.server.options().assert_consistent();
}

/// Begun on one replica, completed on another, judged by whichever worker lives.
#[cfg(all(feature = "kafka", feature = "postgres", feature = "redis"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_begin_and_complete_and_any_worker_judges() {
    use tests::topology::Parts;
    use tests::world::{Agent, Operator, merged, project_body};

    let Some(parts) = Parts::start(binary()).await else {
        return;
    };
    let replicas = [parts.replica("api-0").await, parts.replica("api-1").await];
    let mut workers = vec![parts.worker("worker-0").await, parts.worker("worker-1").await];
    let operator = Operator::create(replicas[0].options(), "first");
    let agent = Agent::create(&replicas[0].http(), &operator, "first.agent").await;
    let slug = "bulk";
    agent
        .http
        .post("/projects", &merged(project_body(slug), json!({})))
        .await
        .expect(201);
    let other = agent.at(&replicas[1].http()).http;
    let bucket = parts.folder().join("objects");

    let text = lines(0..1_000);
    let upload = begin(&agent.http, slug, &text, 9_000, "none").await;
    let tags = fill(&upload, &text, 9_000).await;
    let first = complete(&other, slug, &upload, &tags).await.expect(201);
    let again = complete(&agent.http, slug, &upload, &tags).await.expect(201);
    assert_eq!(first.body["id"], again.body["id"]);
    // Neither replica knows how far a worker is, and says nothing of it.
    for http in [&agent.http, &other] {
        let path = format!("/projects/{slug}/contributions/{}", first.text("/id"));
        assert_eq!(http.get(&path).await.expect(200).body["progress"], Value::Null);
    }
    for http in [&agent.http, &other] {
        let outcome = decided(http, slug, first.text("/id")).await;
        assert_eq!(
            (&outcome.body["status"], &outcome.body["acceptedCount"]),
            (&json!("merged"), &json!(1_000))
        );
    }

    // Each worker dies once after a file is completed, and another takes it over.
    let mut total = 1_000_u64;
    for round in 0..2_u64 {
        let file = parts.folder().join(format!("rows-{round}.ndjson"));
        let from = 10_000 + round * 20_000;
        fs::write(&file, lines(from..from + 20_000)).unwrap();
        let (base, key) = (replicas[1].base().to_owned(), agent.key.clone());
        let pushing = tokio::task::spawn_blocking(move || push(&base, &key, slug, &file, "64KiB"));
        let begun = Instant::now();
        while !left(&bucket).iter().any(|path| path.ends_with("sealed")) {
            assert!(begun.elapsed() < DEADLINE, "nothing was completed");
            tokio::time::sleep(POLL).await;
        }
        workers.remove(0).kill();
        workers.push(parts.worker(&format!("worker-{}", round + 2)).await);
        let output = pushing.await.unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("20,000 records are new"), "{}", said(&output));
        total += 20_000;
    }
    for http in [&agent.http, &other] {
        let page = http.get(&format!("/projects/{slug}/data?limit=1")).await.expect(200);
        assert_eq!(page.body["total"].as_u64(), Some(total));
        assert_eq!(page.body["version"].as_u64().unwrap_or(3), 3, "{}", page.body);
    }
    let begun = Instant::now();
    while !left(&bucket).is_empty() {
        assert!(begun.elapsed() < DEADLINE, "left: {:?}", left(&bucket));
        tokio::time::sleep(POLL).await;
    }
    replicas[0].options().assert_consistent();
}
