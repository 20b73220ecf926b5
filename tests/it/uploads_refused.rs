//! What an upload must not be: each is refused with a clear reason, its storage is freed, and nothing of it is merged.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tests::server::{DEADLINE, POLL};
use tests::world::decided;
use tests::{Answer, World};

use crate::binary;
use crate::uploads::{begin, complete, fill, gzip, lines, push, put, said, url};

/// What the service may take to refuse anything, in MiB.
const MOST_MEMORY: u32 = 1 << 10;

/// Sends a file in four parts and completes it; the outcome.
async fn outcome(world: &World, slug: &str, bytes: &[u8], compression: &str) -> Answer {
    let part = bytes.len().div_ceil(4);
    let upload = begin(&world.agent.http, slug, bytes, part, compression).await;
    let tags = fill(&upload, bytes, part).await;
    let acknowledged = complete(&world.agent.http, slug, &upload, &tags).await.expect(201);
    decided(&world.agent.http, slug, acknowledged.text("/id")).await
}

/// Waits until nothing is left of any upload: neither its parts nor what was made of them.
async fn is_freed(world: &World) {
    let entries = |folder: &str| {
        let entries = fs::read_dir(world.server.options().data().join(folder));
        entries.map_or(0, |entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_name() != "incoming")
                .count()
        })
    };
    let begun = Instant::now();
    while entries("uploads") + entries("uploads/incoming") + entries("index/staged") > 0 {
        assert!(begun.elapsed() < DEADLINE, "something is left of an upload");
        tokio::time::sleep(POLL).await;
    }
}

async fn latest(world: &World, slug: &str) -> Value {
    let project = world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
    project.body["latestVersion"].clone()
}

/// Files whose line 41 is no record, and what is said of it.
fn wrong_lines() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let long = [b"{\"station\":\"", &vec![b'x'; 100_000_000][..], b"\",\"sample\":1}\n"].concat();
    let deep = vec![b'['; 1 << 20];
    let cases: [(_, &[u8], _); 9] = [
        ("a wrong value", b"{\"station\":7,\"sample\":1}", " at `/station`"),
        ("cut off", b"{\"station\":\"x\",", ": expected one strict JSON object"),
        ("no UTF-8", b"{\"station\":\"\xff\",\"sample\":1}\n", ": expected"),
        (
            "a mark within",
            b"\xef\xbb\xbf{\"station\":\"x\",\"sample\":1}\n",
            ": expected",
        ),
        ("two records", b"{\"station\":\"x\",\"sample\":1} {}\n", ": expected"),
        ("old line ends", b"{\"station\":\"x\",\"sample\":1}\r{}\r", ": expected"),
        ("an array", b"[{\"station\":\"x\",\"sample\":1}]\n", ": expected"),
        ("arrays in arrays", &deep, ": expected"),
        ("100 MB", &long, ": expected a line of at most 4194304 bytes"),
    ];
    let file = |bytes: &[u8]| [&lines(40..80)[..], bytes, b"\n", &lines(80..90)].concat();
    cases.map(|(name, bytes, said)| (name, file(bytes), said)).into()
}

/// Files that have no lines of records at all: how they are declared, the code and the words of the reason.
fn wrong_files() -> Vec<(&'static str, Vec<u8>, [&'static str; 3])> {
    let text = lines(40..80);
    let zipped = gzip(&text);
    let mut damaged = zipped.clone();
    *damaged.last_chunk_mut::<8>().unwrap() = [0; 8];
    let unicode = String::from_utf8(text.clone()).unwrap();
    let utf16 = "\u{feff}"
        .encode_utf16()
        .chain(unicode.encode_utf16())
        .flat_map(u16::to_le_bytes);
    vec![
        ("UTF-16", utf16.collect(), ["none", "refused", "the first is on line 1"]),
        ("blank lines", b" \n\r\n\n".to_vec(), ["none", "empty", "no record"]),
        ("a mark alone", b"\xef\xbb\xbf".to_vec(), ["none", "empty", "no record"]),
        ("gzip of nothing", gzip(b""), ["gzip", "empty", "no record"]),
        (
            "cut off",
            zipped[..60].to_vec(),
            ["gzip", "gzip_damaged", "cut off or damaged"],
        ),
        ("damaged", damaged, ["gzip", "gzip_damaged", "cut off or damaged"]),
        (
            "text after it",
            [&zipped[..], &text].concat(),
            ["gzip", "gzip_damaged", "damaged"],
        ),
        ("no gzip", text.clone(), ["gzip", "gzip_damaged", "damaged"]),
        (
            "gzip not declared",
            zipped.clone(),
            ["none", "gzip_unexpected", "not declared"],
        ),
        (
            "gzip in gzip",
            gzip(&zipped),
            ["gzip", "gzip_unexpected", "compressed twice"],
        ),
        (
            "a bomb",
            gzip(&vec![b'\n'; 100 << 20]),
            ["gzip", "gzip_bomb", "100 times its size"],
        ),
        (
            "duplicates",
            lines(0..40),
            ["none", "duplicates", "all 40 records are duplicates"],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_file_of_records_is_refused_with_its_reason() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    assert_eq!(
        outcome(&world, &slug, &lines(0..40), "none").await.text("/status"),
        "merged"
    );
    let mut cases = wrong_files();
    cases.extend(
        wrong_lines()
            .into_iter()
            .map(|(name, bytes, said)| (name, bytes, ["none", "refused", said])),
    );
    for (name, bytes, [compression, code, words]) in cases {
        let outcome = outcome(&world, &slug, &bytes, compression).await;
        let reason = (outcome.text("/status"), outcome.text("/reason/code"));
        assert_eq!(reason, ("rejected", code), "{name}: {}", outcome.body);
        let message = outcome.text("/reason/message");
        assert!(message.contains(words) && message.len() < 500, "{name}: {message}");
        assert!(
            code != "refused"
                || name == "UTF-16"
                || message.contains("1 of 51 records is refused; the first is on line 41"),
            "{name}: {message}"
        );
        is_freed(&world).await;
    }
    assert_eq!(latest(&world, &slug).await, 1);
    // What only looks odd is taken: a mark, other line ends, blank lines, members of gzip.
    let odd = b"\xef\xbb\xbf{\"station\":\"m\",\"sample\":1}\r\n\r\n {\"station\":\"n\",\"sample\":2}\r\n".to_vec();
    let odd = [gzip(&odd[..20]), gzip(&odd[20..])].concat();
    let taken = outcome(&world, &slug, &odd, "gzip").await;
    assert_eq!(taken.body["acceptedCount"], 2, "{}", taken.body);
    is_freed(&world).await;
    assert!(world.server.peak_mib() < MOST_MEMORY, "{} MiB", world.server.peak_mib());
    world.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_belong_to_an_upload_is_refused_at_its_step() {
    let world = World::start(binary()).await;
    let (http, slug) = (&world.agent.http, world.project().await);
    let bytes = lines(0..30);
    let part = bytes.len().div_ceil(3);
    let none = json!({"bytes": 0, "parts": 1, "partSize": 1});
    let none = http.post(&format!("/projects/{slug}/uploads"), &none).await.expect(400);
    assert_eq!(none.paths(), ["/bytes"]);
    let upload = begin(http, &slug, &bytes, part, "none").await;
    let first = &bytes[..part];
    // Of none at all, a client does not even say the length.
    for (wrong, status) in [(&first[1..], 400), (&[first, b"x"].concat(), 400), (b"", 411)] {
        assert_eq!(put(url(&upload, 0), wrong).await.0, status);
    }
    assert_eq!(
        put(&url(&upload, 2).replace("/3?", "/4?"), first).await.0,
        403,
        "a fourth part"
    );
    let tags = fill(&upload, &bytes, part).await;
    let tag = |n: u64, of: usize| json!({"n": n, "etag": tags[of]["etag"]});
    for (wrong, error, parts) in [
        (vec![tag(1, 0), tag(2, 1)], "parts_missing", json!([3])),
        ([&tags[..], &[tag(4, 0)]].concat(), "parts_extra", json!([4])),
        (vec![tag(1, 1), tag(2, 1), tag(3, 2)], "etag_mismatch", json!([1])),
    ] {
        let refused = complete(http, &slug, &upload, &wrong).await.expect(409);
        assert_eq!((refused.error(), &refused.body["parts"]), (error, &parts));
    }
    let completed = complete(http, &slug, &upload, &tags).await.expect(201);
    assert_eq!(
        put(url(&upload, 0), first).await.0,
        409,
        "a part after it was completed"
    );
    let again = complete(http, &slug, &upload, &tags).await.expect(201);
    assert_eq!(completed.body["id"], again.body["id"]);
    let outcome = decided(http, &slug, completed.text("/id")).await;
    assert_eq!(outcome.body["acceptedCount"], 30, "{}", outcome.body);
    let again = complete(http, &slug, &upload, &tags).await.expect(201);
    assert_eq!(
        (again.text("/status"), latest(&world, &slug).await),
        ("merged", json!(1))
    );

    let upload = begin(http, &slug, &bytes, part, "none").await;
    let tags = fill(&upload, &bytes, part).await;
    let later = |options: tests::Options| options.with("SLUICE__CLOCK__OFFSET", "7h");
    let old = world.server.base().to_owned();
    let world = world.restart_with(later).await;
    is_freed(&world).await;
    let late = complete(&world.agent.http, &slug, &upload, &tags).await.expect(409);
    assert_eq!(late.error(), "upload_expired");
    let address = url(&upload, 0).replace(&old, world.server.base());
    assert_eq!(put(&address, first).await.0, 403, "a part after its time");
    assert_eq!(latest(&world, &slug).await, 1);
    is_freed(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_file_is_not_pushed() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let file = world.folder().join("empty.ndjson");
    fs::write(&file, "").unwrap();
    let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).contains("is empty"), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_is_refused_leaves_no_copy_of_its_file() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let project = format!("/projects/{slug}");
    world
        .agent
        .http
        .patch(&project, &json!({"status": "paused"}))
        .await
        .expect(200);
    let file = world.folder().join("rows.csv");
    fs::write(&file, "station,sample\na,1\n").unwrap();
    let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).contains("project_not_open"), "{}", said(&output));
    let left = fs::read_dir(file.with_extension("state")).unwrap().count();
    assert_eq!(left, 0, "files in the folder of the push");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_lines_of_records_of_many_fields_take_bounded_memory() {
    let world = World::start(binary()).await;
    let fields: Vec<_> = (0..256)
        .map(|n| json!({"name": format!("field_{n}"), "type": "integer"}))
        .collect();
    let slug = world.project_with(json!({"schemaDef": {"fields": fields}})).await;
    // Records of as few bytes as there can be, and of as many values as there can be.
    let merged = outcome(&world, &slug, &b"{}\n".repeat(400_000), "none").await;
    assert_eq!(merged.body["acceptedCount"], 1, "{}", merged.body);
    assert!(world.server.peak_mib() < MOST_MEMORY, "{} MiB", world.server.peak_mib());
}
