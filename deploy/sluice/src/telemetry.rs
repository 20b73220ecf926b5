//! The log of the process, as structured events on standard error, and its traces, which go to a collector if one is
//! configured.
//!
//! Invariant: the spans of stages have the level `debug`. If neither the log nor a collector takes that level, a span
//! costs one comparison.

use std::io;
use std::sync::Arc;

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};
use types::trace::{NoTraces, Propagator};

use crate::config::{Format, Telemetry};

#[cfg(feature = "otel")]
mod otlp;

/// An error at the start of the log or the traces.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A filter cannot be parsed.
    #[error("`telemetry.{key}`: `{filter}` is not a level or a list of directives")]
    Filter {
        /// The key of the filter in the section `telemetry`.
        key: &'static str,
        /// The value of the key.
        filter: String,
        /// The error of the parser.
        #[source]
        source: ParseError,
    },
    /// Spans cannot be sent to the collector.
    #[error("`telemetry.traces`: `{address}`: {problem}")]
    Traces {
        /// The address of the collector.
        address: String,
        /// The rule that the address breaks.
        problem: String,
    },
}

/// Handle of the process's traces. Does nothing if no collector is configured.
#[derive(Debug, Default)]
#[must_use]
pub struct Traces {
    #[cfg(feature = "otel")]
    provider: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

impl Traces {
    /// Sends the spans that have ended and are not sent yet.
    #[cfg_attr(
        not(feature = "otel"),
        expect(clippy::unused_async, reason = "only the export of traces waits")
    )]
    pub async fn flush(self) {
        #[cfg(feature = "otel")]
        if let Some(provider) = self.provider {
            otlp::shut_down(provider).await;
        }
    }
}

/// Starts the log and the traces. A second call in one process changes nothing. Must be called within a tokio runtime
/// if a collector is configured.
pub fn start(config: &Telemetry) -> Result<Traces, Error> {
    let filter = filter("filter", &config.filter)?;
    // A line that cannot be written, as on a full disk, would be reported there too, and panic.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .log_internal_errors(false);
    let lines = match config.format {
        Format::Text => lines
            .with_ansi(crate::terminal::is_watched())
            .with_filter(filter)
            .boxed(),
        Format::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let (spans, traces) = spans(config)?;
    // A process has one subscriber, so a second one is not installed.
    if tracing_subscriber::registry()
        .with(spans)
        .with(lines)
        .try_init()
        .is_err()
    {
        tracing::debug!("the log of this process was started before");
    }
    Ok(traces)
}

/// Returns the propagator that writes trace positions into messages and reads them.
pub fn propagator(config: &Telemetry) -> Arc<dyn Propagator> {
    #[cfg(feature = "otel")]
    if !config.traces.is_empty() {
        return Arc::new(otlp::TraceContext);
    }
    // A build without the feature `otel` does not read the argument.
    let _ = config;
    Arc::new(NoTraces)
}

fn filter(key: &'static str, filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::try_new(filter).map_err(|source| Error::Filter {
        key,
        filter: filter.to_owned(),
        source,
    })
}

#[cfg(feature = "otel")]
fn spans(config: &Telemetry) -> Result<(Option<otlp::Layer>, Traces), Error> {
    if config.traces.is_empty() {
        return Ok((None, Traces::default()));
    }
    let filter = filter("trace_filter", &config.trace_filter)?;
    let provider = otlp::provider(&config.traces).map_err(|problem| Error::Traces {
        address: config.traces.clone(),
        problem,
    })?;
    let traces = Traces {
        provider: Some(provider.clone()),
    };
    Ok((Some(otlp::layer(&provider, filter)), traces))
}

#[cfg(not(feature = "otel"))]
fn spans(config: &Telemetry) -> Result<(Option<tracing_subscriber::layer::Identity>, Traces), Error> {
    if config.traces.is_empty() {
        return Ok((None, Traces::default()));
    }
    Err(Error::Traces {
        address: config.traces.clone(),
        problem: "this build sends no traces; build it with the feature `otel`".to_owned(),
    })
}
