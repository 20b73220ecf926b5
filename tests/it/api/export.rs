//! Whole versions: the export is every page, the diff is the difference, whatever was merged.

use serde_json::{Value, json};
use tests::world::{all_data, contract, contribute, records};
use tests::{Http, World};

use super::world;

async fn exported(http: &Http, slug: &str, version: u64) -> Vec<Value> {
    let answer = http
        .get(&format!("/projects/{slug}/export?version={version}"))
        .await
        .expect(200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson; charset=utf-8");
    let lines = answer.bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| {
            assert!(line.ends_with(b"\n"), "the last line is cut off");
            serde_json::from_slice(line).unwrap()
        })
        .collect()
}

/// Words that no gate takes for filler or personal data.
fn prose(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let letter =
            |shift: u64, letters: &[u8]| char::from(letters[usize::try_from(state >> shift).unwrap() % letters.len()]);
        text.extend([
            letter(40, b"bcdfglmnprstv"),
            letter(45, b"aeiou"),
            letter(50, b"lmnrst"),
            letter(55, b"aeo"),
            ' ',
        ]);
    }
    text
}

/// Contributes records that must all be merged.
async fn merge(http: &Http, slug: &str, rows: &[Value]) {
    let outcome = contribute(http, slug, rows).await;
    assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
    assert_eq!(outcome.body["acceptedCount"], rows.len(), "{}", outcome.body);
}

/// Records of every type, with extras, odd texts and gaps.
fn odd_records(series: &str) -> Vec<Value> {
    let texts = [
        "",
        "\"",
        "\\",
        "\u{1}\t\n\r\u{8}\u{c}\u{7f}",
        "😀é온",
        prose(1, 5_000).as_str(),
    ]
    .map(str::to_owned);
    let odd = texts.into_iter().enumerate().map(|(sample, text)| {
        json!({"station": format!("{series}{text}"), "sample": sample, "value": -0.1 * 3.0, "good": sample % 2 == 0,
            "at": "1969-12-31T23:59:59.000001Z", "more": {"text": text, "list": [null, 1e300, 9_007_199_254_740_993_u64]},
            "a member of its own": [text], "온도": 1.0})
    });
    let bare = json!({"station": series, "sample": i64::MIN});
    odd.chain([bare]).collect()
}

#[tokio::test]
async fn an_export_is_every_page_of_its_version() {
    let world = world().await;
    let def = tests::world::merged(contract(), json!({"allowExtra": true}));
    let slug = world.project_with(json!({ "schemaDef": def })).await;
    merge(&world.agent.http, &slug, &odd_records("first")).await;
    for series in ["a", "b", "c"] {
        merge(&world.agent.http, &slug, &records(series, 500)).await;
    }
    merge(&world.agent.http, &slug, &odd_records("second")).await;
    for version in 1..=5 {
        let pages = all_data(&world.agent.http, &slug, version).await;
        let export = exported(&world.agent.http, &slug, version).await;
        assert_eq!(Value::from(export), json!(pages), "{version}");
    }
}

#[tokio::test]
async fn a_diff_is_the_difference_of_two_exports_with_who_made_it() {
    let world = world().await;
    let slug = world.project().await;
    let (_, other) = world.newcomer().await;
    for (number, series) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let agent = if number % 2 == 0 { &world.agent } else { &other };
        contribute(&agent.http, &slug, &records(series, 3 + number)).await;
    }
    for (from, to) in [(0, 1), (0, 4), (1, 3), (3, 4), (2, 2)] {
        let path = format!("/projects/{slug}/diff?from={from}&to={to}");
        let diff = other.http.get(&format!("{path}&limit=500")).await.expect(200).body;
        let items = diff["items"].as_array().unwrap();
        let found: Vec<&Value> = items.iter().map(|item| &item["record"]).collect();
        let before = if from == 0 {
            0
        } else {
            exported(&other.http, &slug, from).await.len()
        };
        let after = exported(&other.http, &slug, to).await;
        assert_eq!(found, after[before..].iter().collect::<Vec<_>>(), "{from} {to}");
        for item in items {
            let odd = item["version"].as_u64().unwrap() % 2 == 1;
            let expected = if odd { &world.agent.name } else { &other.name };
            assert_eq!(item["contributor"], expected.as_str(), "{item}");
        }
        // Who contributed is known to everyone.
        let told = world.http.get(&format!("{path}&limit=0")).await.expect(200).body;
        assert_eq!(told["contributions"], diff["contributions"]);
        let versions: Vec<_> = told["contributions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["version"])
            .collect();
        assert_eq!(json!(versions), json!((from + 1..=to).collect::<Vec<_>>()));
        assert_eq!(told["items"], json!([]));
    }
}

/// What reads give to whom, and what they answer to what does not exist.
#[tokio::test]
async fn every_read_keeps_to_who_may_read_and_to_what_there_is() {
    let world = world().await;
    let (_, stranger) = world.newcomer().await;
    let paid = world.project_with(json!({"access": "paid", "price": "0.25"})).await;
    let private = world.project_with(json!({"visibility": "private"})).await;
    for slug in [&paid, &private] {
        contribute(&world.agent.http, slug, &records("a", 3)).await;
    }
    let reads = [
        "data?version=1",
        "export?version=1",
        "diff?to=1",
        "manifest?version=1",
        "query",
    ];
    let read = async |http: &Http, slug: &str, what: &str| {
        let path = format!("/projects/{slug}/{what}");
        if what == "query" {
            http.post(
                &path,
                &json!({"sql": "SELECT count(*) AS n FROM records", "version": 1}),
            )
            .await
        } else {
            http.get(&path).await
        }
    };
    for what in reads {
        for (http, slug, status) in [
            (&world.agent.http, &paid, 200),
            (&world.agent.http, &private, 200),
            (&stranger.http, &paid, 402),
            (&stranger.http, &private, 404),
            (&world.http, &paid, 401),
        ] {
            let answer = read(http, slug, what).await;
            assert_eq!(
                answer.code(),
                status,
                "{what}: {}",
                String::from_utf8_lossy(&answer.bytes)
            );
            if status == 402 {
                assert!(
                    !answer.text("/price").is_empty() && !answer.text("/credits/buy").is_empty(),
                    "{what}"
                );
            }
        }
        let missing = read(&stranger.http, "no-such-dataset", what).await;
        let hidden = read(&stranger.http, &private, what).await;
        assert_eq!(missing.code(), hidden.code(), "{what}");
        assert_eq!(missing.error(), hidden.error(), "{what}");
    }
}

/// A slow reader holds a bounded part of the export, not all of it.
#[tokio::test]
async fn an_export_that_nobody_reads_costs_no_memory() {
    let world = world().await;
    let slug = world.project().await;
    // One version fewer than are compacted at once: a compaction holds what it makes.
    for series in 0..15 {
        let wide = |sample| json!({"station": prose(sample, 7_000), "sample": sample, "value": series});
        let rows: Vec<Value> = (0..500).map(wide).collect();
        merge(&world.agent.http, &slug, &rows).await;
    }
    let path = format!("/projects/{slug}/export?version=15");
    exported(&world.agent.http, &slug, 1).await;
    let before = resident(&world);
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(begun(&world, &path).await);
    }
    // 8 exports of 52 MB each have begun; what they hold is a few pieces each.
    let grown = resident(&world).saturating_sub(before);
    assert!(grown < 64 << 20, "it grew by {} MiB", grown >> 20);
    drop(unread);
    assert_eq!(exported(&world.agent.http, &slug, 15).await.len(), 7_500);
}

/// A connection on which an export has begun and is not read.
async fn begun(world: &World, path: &str) -> tokio::net::TcpStream {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = world.server.base().strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
        world.agent.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut some = vec![0; 100 << 10];
    stream.read_exact(&mut some).await.unwrap();
    assert!(some.starts_with(b"HTTP/1.1 200"));
    stream
}

/// The resident memory of the service, in bytes.
fn resident(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
