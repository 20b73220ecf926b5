//! The server over real sockets, spoken to in plain HTTP/1.1.

use std::num::NonZeroUsize;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::config::{Server, Span};

const REQUEST: &[u8] = b"GET /slow HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";

/// A server whose one route reports that it was entered and answers when the test releases it.
struct Fixture {
    address: SocketAddr,
    entered: Arc<Notify>,
    released: Arc<Notify>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

async fn start(change: impl FnOnce(&mut Server)) -> Fixture {
    let mut config = Server {
        listen: "127.0.0.1:0".parse().unwrap(),
        public_url: String::new(),
        trusted_proxies: 0,
        header_timeout: Span(Duration::from_mins(1)),
        connections: NonZeroUsize::new(16).unwrap(),
        drain_timeout: Span(Duration::from_mins(1)),
        drain_notice: Span(Duration::ZERO),
    };
    change(&mut config);
    let (entered, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, release) = (Arc::clone(&entered), Arc::clone(&released));
    let slow = move |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
        enter.notify_one();
        release.notified().await;
        format!("hello {}", peer.ip())
    };
    let listener = TcpListener::bind(config.listen).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let router = Router::new()
        .route("/slow", get(slow))
        .route("/", get(|| async { "hello" }));
    let served = tokio::spawn(serve(listener, router, config, stop.clone()));
    Fixture {
        address,
        entered,
        released,
        stop,
        served,
    }
}

impl Fixture {
    async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }
}

/// Reads the answer until the server closes the connection.
async fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_request_under_way_ends_and_no_new_one_begins_when_stopping() {
    let server = start(|_| {}).await;
    let stream = server.send(REQUEST).await;
    server.entered.notified().await;
    let mut idle = server.send(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await;
    let mut greeting = Vec::new();
    while !greeting.ends_with(b"hello") {
        idle.read_buf(&mut greeting).await.unwrap();
    }
    server.stop.cancel();
    assert_eq!(answer(idle).await, "", "an idle connection is closed");
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is closed");
    assert!(!server.served.is_finished());
    server.released.notify_one();
    let text = answer(stream).await;
    assert!(
        text.starts_with("HTTP/1.1 200") && text.ends_with("hello 127.0.0.1"),
        "{text}"
    );
    server.served.await.unwrap();
}

#[tokio::test]
async fn a_request_that_does_not_end_is_not_waited_for_beyond_the_time_out() {
    let server = start(|config| config.drain_timeout = Span(Duration::from_millis(10))).await;
    let _stream = server.send(REQUEST).await;
    server.entered.notified().await;
    server.stop.cancel();
    server.served.await.unwrap();
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let server = start(|config| config.header_timeout = Span(Duration::from_millis(10))).await;
    for head in [&b""[..], b"GET /slow HTTP/1.1\r\nhost: "] {
        let text = answer(server.send(head).await).await;
        assert!(!text.starts_with("HTTP/1.1 200"), "{text}");
    }
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits_for_a_place() {
    let server = start(|config| config.connections = NonZeroUsize::MIN).await;
    let first = server.send(REQUEST).await;
    server.entered.notified().await;
    let second = server.send(REQUEST).await;
    server.released.notify_one();
    assert!(answer(first).await.ends_with("hello 127.0.0.1"));
    server.entered.notified().await;
    server.released.notify_one();
    assert!(answer(second).await.ends_with("hello 127.0.0.1"));
}
