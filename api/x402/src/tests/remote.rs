//! A facilitator by URL against servers that answer right and wrong.

use std::net::SocketAddr;

use outbound::{ClientOptions, OutboundClient, Ports};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::remote::RemoteFacilitator;

/// Way in which a server answers.
#[derive(Clone)]
enum Manner {
    /// As the built-in ledger.
    Right(BuiltIn),
    /// With these bytes, whatever is asked; it hangs up after them.
    Bytes(String),
}

/// Starts a server and returns its address. It ends with the runtime of the test.
async fn server(manner: Manner) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let manner = manner.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let (head, length) = loop {
                    if let Some(at) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                        let head = String::from_utf8(request[..at].to_vec()).unwrap().to_lowercase();
                        let length = head.split("content-length: ").nth(1);
                        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
                        break (head, at + 4 + length.unwrap_or(0));
                    }
                    request.push(stream.read_u8().await.unwrap());
                };
                let body = length - (head.len() + 4);
                request.resize(length, 0);
                stream.read_exact(&mut request[length - body..]).await.unwrap();
                let answer = match manner {
                    Manner::Bytes(bytes) => bytes,
                    Manner::Right(ledger) => {
                        let path = head.split(' ').nth(1).unwrap();
                        let (status, body) = facilitator_http::answer(&ledger, path, &request[length - body..]).await;
                        let body = body.to_string();
                        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                    }
                };
                let _sent = stream.write_all(answer.as_bytes()).await;
                let _ended = stream.shutdown().await;
            });
        }
    });
    address
}

fn remote(address: SocketAddr) -> RemoteFacilitator {
    let mut options = ClientOptions::new("ops@example.org");
    options.allow_private = true;
    options.ports = Ports::Any;
    RemoteFacilitator::new(
        Arc::new(OutboundClient::new(options).unwrap()),
        &format!("http://{address}/"),
        asset(),
    )
}

async fn by_url() -> Subject {
    let wallets = Arc::new(Memory::default());
    let address = server(Manner::Right(built_in(&wallets))).await;
    Subject {
        facilitator: Arc::new(remote(address)),
        wallets,
        now: NOW,
    }
}

#[tokio::test]
async fn a_facilitator_by_url_passes_the_suite_of_facilitators() {
    conformance::a_payment_moves_once(&by_url().await).await;
    conformance::an_empty_wallet_pays_nothing(&by_url().await).await;
    conformance::a_wrong_payment_moves_nothing(&by_url().await).await;
    conformance::it_settles_both_versions(&by_url().await).await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_proves_nothing() {
    let order = Buyer::new(500_000, 1, NOW).order(Protocol::V2);
    let with = |status: &str, body: &str| format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 100 << 20);
    for bytes in [
        with("500 Internal Server Error", ""),
        with("502 Bad Gateway", "<html></html>"),
        with("200 OK", "<html></html>"),
        with("200 OK", "{\"success\":tru"),
        with("200 OK", "[]"),
        with("200 OK", "{}"),
        with("307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/", ""),
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"succ".to_owned(),
        huge,
        String::new(),
        "rubbish\r\n\r\n".to_owned(),
    ] {
        let remote = remote(server(Manner::Bytes(bytes.clone())).await);
        let verdict = remote.verify(&order).await;
        assert!(verdict.is_err(), "{bytes:.60}: {verdict:?}");
        let settled = remote.settle(&order).await;
        assert!(matches!(settled, Settlement::Unknown(_)), "{bytes:.60}: {settled:?}");
    }
    // The JSON counts, whatever the status.
    let pending = r#"{"success":false,"errorReason":"settlement_pending","transaction":"","network":""}"#;
    let short = r#"{"success":false,"errorReason":"insufficient_funds","transaction":"","network":""}"#;
    for status in [
        "200 OK",
        "202 Accepted",
        "402 Payment Required",
        "500 Internal Server Error",
    ] {
        let remote = remote(server(Manner::Bytes(with(status, pending))).await);
        assert!(
            matches!(remote.settle(&order).await, Settlement::Unknown(_)),
            "{status}"
        );
        let remote = self::remote(server(Manner::Bytes(with(status, short))).await);
        assert_eq!(
            remote.settle(&order).await,
            Settlement::Refused("insufficient_funds".to_owned())
        );
    }
}

#[tokio::test]
async fn a_facilitator_that_cannot_be_reached_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let order = Buyer::new(500_000, 1, NOW).order(Protocol::V2);
    let settled = remote(address).settle(&order).await;
    assert!(matches!(settled, Settlement::NotSent(_)), "{settled:?}");
}
