//! Metrics for Prometheus.
//!
//! Invariant: the exporter listens on an address of its own, because metrics are for the people who run the service and
//! not for its callers. If it is off, a measurement costs next to nothing.

mod registry;

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use types::metric::{self, Labels, MetricKind};

pub use registry::Registry;

/// Media type of Prometheus's text format.
const EXPOSITION_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The exporter's bound socket, and the registry that it serves.
#[derive(Debug)]
pub struct Exporter {
    listener: TcpListener,
    registry: Registry,
}

impl Exporter {
    /// Binds `address` and installs the registry of the process. Each counter with known labels exists from then on,
    /// with 0.
    pub async fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("`telemetry.metrics`: cannot listen on `{address}`"))?;
        let registry = Registry::default();
        // The socket is bound first, so that a taken address installs nothing.
        metrics::set_global_recorder(registry.clone())
            .map_err(|_set| anyhow::anyhow!("this process already has a metrics recorder"))?;
        begin();
        Ok(Self { listener, registry })
    }

    /// Returns the address it listens on. It differs from the configured one if that has port 0.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves `/metrics` until `stop`.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let Self { listener, registry } = self;
        let answer = async move || ([(CONTENT_TYPE, EXPOSITION_FORMAT)], registry.render());
        let router = Router::new().route("/metrics", get(answer));
        // A request for metrics is short, so shutdown needs no time-out of its own.
        let stopped = stop.cancelled_owned();
        Ok(axum::serve(listener, router).with_graceful_shutdown(stopped).await?)
    }
}

/// Creates every counter with known labels at 0, so that Prometheus sees the first event as an increase.
fn begin() {
    for metric in metric::ALL.iter().filter(|metric| metric.kind == MetricKind::Counter) {
        match metric.labels {
            Labels::Bare => metrics::counter!(metric.name).absolute(0),
            Labels::Known(label, values) => {
                for value in values {
                    metrics::counter!(metric.name, label => *value).absolute(0);
                }
            }
            // The values of these labels are known only when they occur.
            Labels::Open(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
