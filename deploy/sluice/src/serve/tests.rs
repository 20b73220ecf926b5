//! The server over real sockets, spoken to in plain HTTP/1.1.

use std::num::NonZeroUsize;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::config::Server;
use types::HumanDuration;

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
        header_timeout: HumanDuration(Duration::from_mins(1)),
        idle_timeout: HumanDuration(Duration::from_mins(1)),
        connections: NonZeroUsize::new(16).unwrap(),
        connections_per_address: 0,
        drain_timeout: HumanDuration(Duration::from_mins(1)),
        drain_notice: HumanDuration(Duration::ZERO),
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
        self.send_from(1, bytes).await
    }

    /// Sends from an address of this machine.
    async fn send_from(&self, host: u8, bytes: &[u8]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).unwrap();
        let mut stream = socket.connect(self.address).await.unwrap();
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
    let server = start(|config| config.drain_timeout = HumanDuration(Duration::from_millis(10))).await;
    let _stream = server.send(REQUEST).await;
    server.entered.notified().await;
    server.stop.cancel();
    server.served.await.unwrap();
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let server = start(|config| config.header_timeout = HumanDuration(Duration::from_millis(10))).await;
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

/// Returns the first bytes of an answer, as many as its status line has.
async fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

const GREETING: &[u8] = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";

#[tokio::test]
async fn an_address_has_its_share_and_takes_none_of_another() {
    let server = start(|config| {
        config.connections = NonZeroUsize::new(8).unwrap();
        config.connections_per_address = 2;
    })
    .await;
    // Both connections of the address wait for the service, so that none can give way.
    let first = server.send_from(2, REQUEST).await;
    server.entered.notified().await;
    let second = server.send_from(2, REQUEST).await;
    server.entered.notified().await;
    let mut third = server.send_from(2, b"").await;
    assert_eq!(status(&mut third).await, "HTTP/1.1 429");
    assert_eq!(status(&mut server.send_from(3, GREETING).await).await, "HTTP/1.1 200");
    // A place is free when its connection ends.
    for stream in [first, second] {
        server.released.notify_one();
        assert!(answer(stream).await.ends_with("hello 127.0.0.2"));
    }
    assert_eq!(status(&mut server.send_from(2, GREETING).await).await, "HTTP/1.1 200");
}

#[tokio::test]
async fn an_address_with_its_part_of_taken_places_keeps_no_other_waiting() {
    let server = start(|config| {
        config.connections = NonZeroUsize::new(6).unwrap();
        config.connections_per_address = 3;
    })
    .await;
    // Three addresses have every place and wait for the service, so that none can give way.
    let mut held = Vec::new();
    for host in [2, 3, 4, 2, 3, 4] {
        held.push(server.send_from(host, REQUEST).await);
        server.entered.notified().await;
    }
    let mut further = server.send_from(2, GREETING).await;
    assert_eq!(status(&mut further).await, "HTTP/1.1 429");
    // One without a place waits for the next that is free.
    let mut another = server.send_from(5, GREETING).await;
    server.released.notify_one();
    assert_eq!(status(&mut another).await, "HTTP/1.1 200");
}

#[tokio::test]
async fn whoever_keeps_the_service_waiting_gives_way_and_a_request_under_way_does_not() {
    let server = start(|config| config.connections = NonZeroUsize::new(3).unwrap()).await;
    let working = server.send_from(2, REQUEST).await;
    server.entered.notified().await;
    // One has asked and is idle, one has never asked.
    let mut idle = server.send_from(3, GREETING).await;
    assert_eq!(status(&mut idle).await, "HTTP/1.1 200");
    let silent = server.send_from(4, b"GET / HTT").await;
    let mut honest = server.send_from(5, GREETING).await;
    assert_eq!(status(&mut honest).await, "HTTP/1.1 200");
    assert_eq!(answer(silent).await, "", "the silent one is closed");
    let mut next = server.send_from(6, GREETING).await;
    assert_eq!(status(&mut next).await, "HTTP/1.1 200");
    assert!(
        answer(idle).await.ends_with("hello"),
        "then the one that is idle longest"
    );
    server.released.notify_one();
    assert!(answer(working).await.ends_with("hello 127.0.0.2"));
}

#[tokio::test]
async fn behind_a_proxy_its_connections_are_many_and_the_requests_of_a_client_are_counted() {
    let server = start(|config| {
        config.trusted_proxies = 1;
        config.connections_per_address = 1;
    })
    .await;
    let request = |client: u8| {
        format!("GET /slow HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-forwarded-for: 192.0.2.{client}\r\n\r\n")
    };
    let first = server.send(request(1).as_bytes()).await;
    server.entered.notified().await;
    let mut second = server.send(request(1).as_bytes()).await;
    assert_eq!(status(&mut second).await, "HTTP/1.1 429");
    let other = server.send(request(2).as_bytes()).await;
    server.entered.notified().await;
    for stream in [first, other] {
        server.released.notify_one();
        assert!(answer(stream).await.starts_with("HTTP/1.1 200"));
    }
    server.released.notify_one();
    assert!(
        answer(server.send(request(1).as_bytes()).await)
            .await
            .starts_with("HTTP/1.1 200")
    );
}
