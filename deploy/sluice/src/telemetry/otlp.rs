//! Export of spans to a collector (OTLP over HTTP), and trace positions as text (W3C Trace Context).

use std::collections::HashMap;

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};
use types::trace::Propagator;

/// The layer of the subscriber that exports spans.
pub(super) type Layer = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

/// Name of the header that carries a trace position (W3C Trace Context section 3.2).
const TRACEPARENT: &str = "traceparent";

/// Returns a provider that sends spans in batches to the collector at `address`, on a thread of its own.
pub(super) fn provider(address: &str) -> Result<SdkTracerProvider, String> {
    let client = client::SpanClient::new(address).map_err(|error| error.to_string())?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(format!("{}/v1/traces", address.trim_end_matches('/')))
        .with_http_client(client)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder_empty().with_service_name("sluice").build())
        .build())
}

/// Returns the layer that turns the spans that pass `filter` into spans of `provider`.
pub(super) fn layer(provider: &SdkTracerProvider, filter: EnvFilter) -> Layer {
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("sluice"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(filter)
        .boxed()
}

/// Sends the remaining spans and ends the exporting thread. A failure is logged, not returned.
pub(super) async fn shut_down(provider: SdkTracerProvider) {
    // `shutdown` blocks until the exporting thread has ended, which may take its time-out.
    match tokio::task::spawn_blocking(move || provider.shutdown()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the last spans could not be sent to `telemetry.traces`"),
        Err(error) => tracing::warn!(%error, "the last spans could not be sent to `telemetry.traces`"),
    }
}

/// Trace positions as `traceparent` texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceContext;

impl Propagator for TraceContext {
    fn inject(&self, span: &Span) -> Option<String> {
        let context = span.context();
        if !context.span().span_context().is_valid() {
            // A span that the filter dropped has no valid position.
            return None;
        }
        let mut headers = HashMap::new();
        TraceContextPropagator::new().inject_context(&context, &mut headers);
        headers.remove(TRACEPARENT)
    }

    fn extract(&self, span: &Span, traceparent: &str) {
        let headers = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
        let context = TraceContextPropagator::new().extract(&headers);
        if context.span().span_context().is_valid()
            && let Err(error) = span.set_parent(context)
        {
            tracing::debug!(%error, "a span does not continue the trace of its message");
        }
    }
}
