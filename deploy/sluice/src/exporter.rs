//! What is measured, for Prometheus to fetch.
//!
//! Invariant: it listens on an address of its own, because what it tells is for those who run the service and not for its
//! callers. Where it is off, measuring costs next to nothing.

mod registry;

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use types::metric::{self, Kind, Labels};

pub use registry::Registry;

/// The media type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The exporter's socket, bound, and what it tells.
#[derive(Debug)]
pub struct Exporter {
    listener: TcpListener,
    registry: Registry,
}

impl Exporter {
    /// Begins to measure and binds `address`. From now on every measure of the process is taken, and each counter whose
    /// labels are known is there with 0.
    pub async fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("`telemetry.metrics`: cannot listen on `{address}`"))?;
        let registry = Registry::default();
        metrics::set_global_recorder(registry.clone())
            .map_err(|_set| anyhow::anyhow!("this process already has a metrics recorder"))?;
        begin();
        Ok(Self { listener, registry })
    }

    /// Where it listens.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Answers `/metrics` until `stop`.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let Self { listener, registry } = self;
        let answer = async move || ([(CONTENT_TYPE, TEXT)], registry.render());
        let router = Router::new().route("/metrics", get(answer));
        let stopped = stop.cancelled_owned();
        Ok(axum::serve(listener, router).with_graceful_shutdown(stopped).await?)
    }
}

/// Begins the counters at 0 that can be, so that the first event is seen as a change.
fn begin() {
    for metric in metric::ALL.iter().filter(|metric| metric.kind == Kind::Counter) {
        match metric.labels {
            Labels::Bare => metrics::counter!(metric.name).absolute(0),
            Labels::Known(label, values) => {
                for value in values {
                    metrics::counter!(metric.name, label => *value).absolute(0);
                }
            }
            Labels::Open(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
