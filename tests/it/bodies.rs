//! Bodies that never end, many at once, and requests that break the rules of HTTP: over plain sockets.

use std::time::Instant;

use tests::World;
use tests::server::{DEADLINE, POLL};
use tests::world::{batch, records};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::binary;

/// The length that each unfinished body announces.
const BODY: usize = 4 << 20;
/// How much of it comes.
const SENT: usize = 1 << 20;
/// How many come at once.
const MANY: usize = 300;
/// How many of these the default share of one operator has room for.
const TAKEN: usize = (64 << 20) / BODY;
/// How much memory all may take: the share, buffers of connections, and what the allocator keeps.
const MOST_MIB: u32 = 64 + 64;

async fn connect(base: &str) -> TcpStream {
    TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// What comes until the server closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
    // A connection that is reset after its answer has given it.
    read.unwrap().ok();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The answer to a request as it is on the wire.
async fn answered(base: &str, head: &[&str], body: &str) -> String {
    let mut stream = connect(base).await;
    let head = head.join("\r\n");
    let length = body.len();
    let request = format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(stream).await
}

/// Sends a part of a contribution and waits for its answer.
async fn unfinished(base: String, slug: String, key: String) -> String {
    let mut stream = connect(&base).await;
    let head = format!(
        "POST /projects/{slug}/contribute HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses by the head may close the connection before the part has gone out; its answer is there.
    stream.write_all(&vec![b' '; SENT]).await.ok();
    let mut answer = vec![0; 1 << 10];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_bodies_of_one_operator_take_its_share_and_no_more() {
    // All connections of the test come from one address, whose share of places has a test of its own; and the bodies that
    // have room keep it until all others are answered, however busy the machine is.
    let options = |options: tests::Options| {
        options
            .with("SLUICE__SERVER__CONNECTIONS_PER_ADDRESS", "0")
            .with("SLUICE__LIMITS__BODY_PATIENCE", "600s")
    };
    let world = World::start_with(binary(), options).await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let (_operator, other) = world.newcomer().await;
    // The encoder is unpacked for the first document, which is not what is measured here.
    let by_meaning = |found: &tests::Answer| found.body["judge"]["kind"] == "model";
    world.http.comes_to_show("/search?q=levels", by_meaning).await;
    let before = world.server.peak_mib();
    let (told, mut answers) = mpsc::unbounded_channel();
    let mut open = JoinSet::new();
    for _ in 0..MANY {
        let (base, slug, key) = (world.server.base().to_owned(), slug.clone(), world.agent.key.clone());
        let told = told.clone();
        open.spawn(async move { told.send(unfinished(base, slug, key).await).unwrap() });
    }
    for _ in TAKEN..MANY {
        let answer = timeout(DEADLINE, answers.recv()).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
        assert!(
            answer.contains("retry-after: 1") && answer.contains("bodies_of_one"),
            "{answer}"
        );
    }
    assert!(answers.try_recv().is_err(), "those that have room are waited for");
    let grown = world.server.peak_mib() - before;
    assert!(grown < MOST_MIB, "{grown} MiB more");
    // The operator's own next is refused, and its reads and everybody else are served.
    let body = batch(&records("a", 1));
    let refused = world.agent.http.post(&path, &body).await;
    assert_eq!(
        (refused.code(), refused.error()),
        (429, "bodies_of_one"),
        "{}",
        refused.body
    );
    world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
    let large = batch(&records("b", 1)).to_string() + &" ".repeat(BODY / 2);
    assert_eq!(other.http.post_bytes(&path, large).await.code(), 201);
    open.shutdown().await;
    let begun = Instant::now();
    while world.agent.http.post(&path, &body).await.code() != 201 {
        assert!(begun.elapsed() < DEADLINE, "room is not given back");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_ends_with_408() {
    let patience = |options: tests::Options| options.with("SLUICE__LIMITS__BODY_PATIENCE", "1s");
    let world = World::start_with(binary(), patience).await;
    let slug = world.project().await;
    let mut stream = connect(world.server.base()).await;
    let key = &world.agent.key;
    let head = format!(
        "POST /projects/{slug}/contribute HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-length: {BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("request_timeout"),
        "{answer}"
    );
}

#[tokio::test]
async fn requests_that_break_the_rules_of_http_are_refused() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let base = world.server.base();
    let credential = format!("authorization: Bearer {}", world.agent.key);
    let (get, post) = (
        format!("GET /projects/{slug} HTTP/1.1"),
        format!("POST /projects/{slug}/contribute HTTP/1.1"),
    );
    let body = batch(&records("a", 1)).to_string();
    for (head, body, words) in [
        (
            &[get.as_str(), "host: x", &credential, &credential][..],
            "",
            "`authorization`",
        ),
        (&[&get, &credential], "", "`Host`"),
        (&[&get, "host: x", "host: x"], "", "`host`"),
        (&[&get, "host: x y"], "", "`Host`"),
        (&["GET /projects/%zz HTTP/1.1", "host: x"], "", "path"),
        (&["GET /projects?q=%e HTTP/1.1", "host: x"], "", "query"),
        (
            &[&post, "host: x", &credential, "content-type: text/plain"],
            &body,
            "Content-Type: application/json",
        ),
    ] {
        let answer = answered(base, head, body).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{head:?}: {answer}");
        assert!(
            answer.contains("invalid_request") && answer.contains(words),
            "{head:?}: {answer}"
        );
    }
    let json = "content-type: application/json; charset=utf-8";
    for (head, body, status) in [
        (&[get.as_str(), "host: x", &credential][..], "", "200"),
        (&["GET /healthz HTTP/1.0"], "", "200"),
        (&[&post, "host: x", &credential, json], &body, "201"),
    ] {
        let answer = answered(base, head, body).await;
        let (_, rest) = answer.split_once(' ').unwrap();
        assert!(rest.starts_with(status), "{head:?}: {answer}");
    }
}
