//! One trace from a request to its outcome, as a collector receives it.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tests::World;
use tests::world::{contribute, records};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::binary;

/// A collector of traces, which keeps every span that it is sent.
#[derive(Clone, Debug, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
}

/// A span as it was sent.
#[derive(Clone, Debug)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: HashMap<String, String>,
}

impl Collector {
    async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let collector = Self::default();
        let receiving = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receiving.clone().receive(stream));
            }
        });
        (collector, address)
    }

    /// Answers the requests of one connection.
    async fn receive(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut length, mut line) = (0, String::new());
            while line != "\r\n" {
                line.clear();
                if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            self.keep(&serde_json::from_slice(&body).unwrap());
            let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
        }
    }

    fn keep(&self, request: &Value) {
        let list = |value: &Value, member: &str| value[member].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let scopes = list(request, "resourceSpans")
            .into_iter()
            .flat_map(|resource| list(&resource, "scopeSpans"));
        for span in scopes.flat_map(|scope| list(&scope, "spans")) {
            let attribute = |attribute: &Value| {
                let value = attribute["value"].as_object().and_then(|value| value.values().next());
                (text(&attribute["key"]), value.map(text).unwrap_or_default())
            };
            let attributes = list(&span, "attributes").iter().map(attribute).collect();
            self.spans.lock().unwrap().push(Span {
                trace: text(&span["traceId"]),
                id: text(&span["spanId"]),
                parent: span["parentSpanId"].as_str().unwrap_or_default().to_owned(),
                name: text(&span["name"]),
                attributes,
            });
        }
    }

    /// Returns the spans of the trace that the request for a contribution is in.
    fn trace_of(&self, contribution: &str) -> Vec<Span> {
        let spans = self.spans.lock().unwrap();
        let is_request = |span: &&Span| {
            span.name == "request" && span.attributes.get("contribution").is_some_and(|id| id == contribution)
        };
        let request = spans.iter().find(is_request).expect("the request has a span");
        spans
            .iter()
            .filter(|span| span.trace == request.trace)
            .cloned()
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_trace_goes_from_the_request_to_the_outcome() {
    let (collector, address) = Collector::start().await;
    let traced =
        |options: tests::server::Options| options.with("SLUICE__TELEMETRY__TRACES", format!("http://{address}"));
    let world = World::start_with(binary(), traced).await;
    let slug = world.project().await;
    let outcome = contribute(&world.agent.http, &slug, &records("t", 5)).await;
    let (contribution, version) = (outcome.text("/id").to_owned(), outcome.body["mergedVersion"].clone());
    let log = world.server.options().log();
    assert!(world.server.stop().await.success());

    let trace = collector.trace_of(&contribution);
    let names: HashSet<&str> = trace.iter().map(|span| span.name.as_str()).collect();
    let stages = [
        "request",
        "authenticate",
        "write database",
        "submission",
        "judge",
        "decode",
        "gate",
        "merge",
        "prepare version",
        "put part",
        "put commit",
        "sync file",
        "publish outcome",
        "append to log",
        "apply outcome",
    ];
    for stage in stages {
        assert!(names.contains(stage), "no span `{stage}` in {names:?}");
    }
    let ids: HashSet<&str> = trace.iter().map(|span| span.id.as_str()).collect();
    let roots: Vec<_> = trace
        .iter()
        .filter(|span| !ids.contains(span.parent.as_str()))
        .collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    assert_eq!(roots[0].name, "request");
    for name in ["submission", "apply outcome"] {
        let span = trace.iter().find(|span| span.name == name).unwrap();
        assert_eq!(span.attributes["contribution"], contribution, "{span:?}");
        assert_eq!(span.attributes["version"], version.to_string(), "{span:?}");
        assert!(span.attributes.contains_key("dataset"), "{span:?}");
    }
    let submission = trace.iter().find(|span| span.name == "submission").unwrap();
    assert_eq!(submission.attributes["request_id"], roots[0].attributes["request_id"]);

    // The log names the contribution on both sides, by the same request.
    let log = std::fs::read_to_string(log).unwrap();
    for event in ["contribution acknowledged", "contribution merged"] {
        let line = log
            .lines()
            .find(|line| line.contains(event) && line.contains(&contribution));
        let line = line.unwrap_or_else(|| panic!("no line `{event}` for {contribution} in\n{log}"));
        assert!(line.contains(&roots[0].attributes["request_id"]), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_does_not_answer_stops_nothing() {
    // Nobody listens on a port that was just let go.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let traced =
        |options: tests::server::Options| options.with("SLUICE__TELEMETRY__TRACES", format!("http://{address}"));
    let world = World::start_with(binary(), traced).await;
    let slug = world.project().await;
    let outcome = contribute(&world.agent.http, &slug, &records("t", 5)).await;
    assert_eq!(outcome.body["status"], "merged", "{}", outcome.body);
    assert!(world.server.stop().await.success());
}
