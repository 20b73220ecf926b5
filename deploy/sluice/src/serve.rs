//! The HTTP server: accepts connections, bounds the resources of a peer, and stops without cutting an answer off.
//!
//! Invariant: HTTP/1.1 only. A head that does not arrive in time, a connection beyond the limit and a peer that never
//! reads cost a bounded amount of memory for a bounded time. TLS and HTTP/2 belong to the proxy in front.

mod write_timeout;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::write_timeout::WriteTimeout;
use crate::config;

/// Pause after an accept that failed for lack of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until `stop`, then lets running requests end within the drain time-out.
///
/// Each request carries its peer's address as `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, config: config::Server, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout.0)
        // The head of a request must fit into the buffer.
        .max_buf_size(64 * 1024);
    let connections = Arc::new(Semaphore::new(config.connections.get()));
    let graceful = GracefulShutdown::new();
    while let Some((stream, peer, permit)) = next(&listener, &connections, &stop).await {
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(WriteTimeout::new(stream)), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                // Peers disconnect all the time, so this is no warning.
                tracing::debug!(%peer, %error, "connection ended");
            }
            // The permit is held until the connection has ended, so that the limit counts open connections.
            drop(permit);
        });
    }
    // New connections are refused from here on, instead of waiting in the listener's queue.
    drop(listener);
    if tokio::time::timeout(config.drain_timeout.0, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("closing connections: requests were still running after `server.drain_timeout`");
    }
}

/// Returns the next connection, or `None` once stopped. Beyond the limit, peers wait in the listener's queue.
async fn next(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    stop.run_until_cancelled(async {
        // The permit is taken before the connection is accepted, so that the operating system queues the others.
        let permit = Arc::clone(connections).acquire_owned().await.ok()?;
        loop {
            match accept(listener).await {
                Ok((stream, peer)) => return Some((stream, peer, permit)),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
    .await
    .flatten()
}

async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Answers are small and written whole, so Nagle's algorithm would only delay them.
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

#[cfg(test)]
mod tests;
