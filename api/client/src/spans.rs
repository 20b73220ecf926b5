//! An HTTP client that sends spans to a collector of traces (OTLP over HTTP).
//!
//! Invariant: a request runs on the runtime in which the client was created, because the exporter of spans polls it on
//! a thread without a runtime.

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::{Client, Error};

/// HTTP client of an OTLP exporter.
#[derive(Clone, Debug)]
pub struct SpanClient {
    http: reqwest::Client,
    runtime: Handle,
}

impl SpanClient {
    /// Creates a client for the collector at `address`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Address`] if the address is neither `http://` nor `https://`, or if no certificate authority is known
    /// for the latter.
    pub fn new(address: &str) -> Result<Self, Error> {
        Ok(Self {
            // The spans need the same TLS and proxy rules as calls, and no credential.
            http: Client::anonymous(address)?.into_http(),
            runtime: Handle::current(),
        })
    }
}

#[async_trait]
impl HttpClient for SpanClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (http, request) = (self.http.clone(), request.try_into()?);
        let exchange = async move {
            let answer = http.execute(request).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?))
        };
        // An exporter that gives up must not leave a request behind.
        let exchange = AbortOnDropHandle::new(self.runtime.spawn(exchange));
        let (status, headers, body) = exchange.await??;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}
