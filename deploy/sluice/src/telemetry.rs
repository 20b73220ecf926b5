//! The log of the process, structured events on standard error, and its traces, which go to a collector where one is
//! configured.
//!
//! Invariant: the spans of stages have the level `debug`. Where neither the log nor a collector takes that level, they cost
//! one comparison each.

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

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter is not one.
    #[error("`telemetry.{key}`: `{filter}` is not a level or a list of directives")]
    Filter {
        /// Name of the filter.
        key: &'static str,
        /// Its value.
        filter: String,
        /// The cause.
        #[source]
        source: ParseError,
    },
    /// Spans cannot be sent to the collector.
    #[error("`telemetry.traces`: `{address}`: {problem}")]
    Traces {
        /// Address of the collector.
        address: String,
        /// The rule that it breaks.
        problem: String,
    },
}

/// The traces of the process; does nothing where no collector is configured.
#[derive(Debug, Default)]
#[must_use]
pub struct Traces {
    #[cfg(feature = "otel")]
    provider: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

impl Traces {
    /// Sends the spans that have ended and were not sent yet.
    pub async fn flush(self) {
        #[cfg(feature = "otel")]
        if let Some(provider) = self.provider {
            otlp::shut_down(provider).await;
        }
    }
}

/// Starts the log and the traces; a second call in one process changes nothing. Must be called within a tokio runtime where
/// a collector is configured.
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

/// Returns what carries traces of this process into messages and out of them.
pub fn propagator(config: &Telemetry) -> Arc<dyn Propagator> {
    #[cfg(feature = "otel")]
    if !config.traces.is_empty() {
        return Arc::new(otlp::TraceContext);
    }
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
