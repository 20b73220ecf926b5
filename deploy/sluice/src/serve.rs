//! The HTTP server: accepts connections, bounds the resources of a peer, and stops without cutting an answer off.
//!
//! Invariants:
//! - HTTP/1.1 only. A head that does not arrive in time, a connection beyond the limit and a peer that never reads cost
//!   a bounded amount of memory for a bounded time. TLS and HTTP/2 belong to the proxy in front.
//! - One address has a share of the places. While all are taken, whoever keeps the service waiting longest gives way to
//!   a new connection.

mod bodies;
mod connections;
mod refusal;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::connections::{ActiveRequest, ClientShare, ConnectionSlot, OpenConnections, PeerState};
use self::write_timeout::WriteTimeout;
use crate::config;
use crate::open_files;

/// Pause after an accept that failed for lack of file descriptors or memory, and the least time between two lines of
/// the log about it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);

/// Accepts connections until `stop`, then lets running requests end within the drain time-out.
///
/// Each request carries its peer's address as `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, config: config::Server, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        // It runs while a connection is idle too. The first head has a time-out of its own.
        .header_read_timeout(config.idle_timeout.0)
        // The head of a request must fit into the buffer.
        .max_buf_size(64 * 1024);
    let limit = open_files::limit();
    let most = open_files::connections(config.connections.get(), limit);
    if most < config.connections.get() {
        tracing::warn!(
            limit,
            connections = most,
            "the limit of open files allows fewer connections than `server.connections`"
        );
    }
    let connections = Arc::new(OpenConnections::new(most, &config));
    let graceful = GracefulShutdown::new();
    let mut complained = None;
    while let Some((stream, address)) = next(&listener, &mut complained, &stop).await {
        let entered = stop.run_until_cancelled(connections.enter(address)).await;
        let place = match entered {
            None => break,
            Some(Some(place)) => place,
            Some(None) => {
                refusal::send(&stream);
                continue;
            }
        };
        let peer = Arc::clone(place.peer());
        let (router, connections, state, proxies) = (
            router.clone(),
            Arc::clone(&connections),
            Arc::clone(&peer),
            config.trusted_proxies,
        );
        let service = service_fn(move |mut request: Request<Incoming>| {
            let active = state.begin_request();
            let share = connections.share_of(address.ip(), request.headers(), proxies);
            request.extensions_mut().insert(ConnectInfo(address));
            answer(router.clone(), request, Arc::clone(&state), active, share)
        });
        let stream = WriteTimeout::new(stream, peer);
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(attend(connection, place, config.header_timeout.0));
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

/// Drives a connection to its end, or until it has to give its place up.
async fn attend(connection: impl Future<Output = hyper::Result<()>>, place: ConnectionSlot, patience: Duration) {
    let peer = Arc::clone(place.peer());
    let silent = async {
        tokio::time::sleep(patience).await;
        if peer.has_requested() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        ended = connection => {
            if let Err(error) = ended {
                // Peers disconnect all the time, so this is no warning.
                tracing::debug!(peer = %place.address(), %error, "connection ended");
            }
        }
        () = peer.evicted() => {}
        () = silent => connections::count_silent(),
    }
}

/// Answers a request. `share` is `None` behind proxies for a client with its whole share of requests under way.
async fn answer(
    router: Router,
    request: Request<Incoming>,
    peer: Arc<PeerState>,
    active: ActiveRequest,
    share: Option<ClientShare>,
) -> Result<Response, Infallible> {
    let Some(share) = share else {
        return Ok(bodies::answer(refusal::response(), active, None));
    };
    let request = request.map(|body| bodies::request(body, peer));
    let answer = router.oneshot(request).await?;
    Ok(bodies::answer(answer, active, Some(share)))
}

/// Returns the next connection, or `None` once stopped.
async fn next(
    listener: &TcpListener,
    complained: &mut Option<Instant>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr)> {
    stop.run_until_cancelled(async {
        loop {
            match accept(listener).await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    if complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
                        *complained = Some(Instant::now());
                        tracing::warn!(%error, "cannot accept a connection; trying again");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
    .await
}

async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Answers are small and written whole, so Nagle's algorithm would only delay them.
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

#[cfg(test)]
mod tests;
