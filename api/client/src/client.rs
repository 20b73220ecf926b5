//! The client, and the way that it sends calls.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::call::PendingCall;
use crate::retry_budget::Pauses;
use crate::{Error, RetryBudget, ServiceProblem, tls};

/// Time-out for an answer, without the `wait` of the call.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Client of one service, with at most one credential. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub(crate) base: Url,
    key: Option<String>,
    pub(crate) http: reqwest::Client,
    pub(crate) retry_budget: RetryBudget,
}

impl Client {
    /// Returns a client that authenticates with `key`: an agent key or an operator token.
    ///
    /// # Errors
    /// As [`anonymous`](Self::anonymous).
    pub fn new(base_url: &str, key: impl Into<String>) -> Result<Self, Error> {
        let client = Self::anonymous(base_url)?;
        Ok(Self {
            key: Some(key.into()),
            ..client
        })
    }

    /// Returns a client without a credential, for public reads.
    ///
    /// # Errors
    /// [`Error::Address`] if the address is neither `http://` nor `https://`, or if no certificate authority is known
    /// for the latter.
    pub fn anonymous(base_url: &str) -> Result<Self, Error> {
        let refuse = |problem: String| Error::Address {
            address: base_url.to_owned(),
            problem,
        };
        let base = Url::parse(base_url).map_err(|error| refuse(error.to_string()))?;
        let (tls, nobody_is_trusted) = tls::config().map_err(|error| refuse(error.to_string()))?;
        // Plain HTTP works on a machine without certificate authorities.
        match (base.scheme(), nobody_is_trusted) {
            ("http", _) | ("https", None) => {}
            ("https", Some(problem)) => return Err(refuse(problem)),
            _ => return Err(refuse("only `http://` and `https://` are spoken".to_owned())),
        }
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(Duration::from_secs(10))
            // This is shorter than the service keeps an idle connection or one without any request, so that none is used
            // while it closes.
            .pool_idle_timeout(Duration::from_secs(5))
            .user_agent(concat!("sluice-client/", env!("CARGO_PKG_VERSION")))
            // A redirect could carry the credential to another host.
            .redirect(reqwest::redirect::Policy::none());
        // A proxy cannot reach this machine's loopback addresses.
        if is_this_machine(&base) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            base,
            key: None,
            http,
            retry_budget: RetryBudget::default(),
        })
    }

    /// Returns the client without its credential.
    pub(crate) fn without_key(&self) -> Self {
        Self {
            key: None,
            ..self.clone()
        }
    }

    /// Returns the origin of the service (RFC 6454): scheme, host and port, without the port if it is that of the scheme.
    pub fn origin(&self) -> String {
        self.base.origin().ascii_serialization()
    }

    /// Returns the inner HTTP client.
    #[cfg(feature = "otel")]
    pub(crate) fn into_http(self) -> reqwest::Client {
        self.http
    }

    /// Returns the client with other bounds on retries.
    #[must_use]
    pub fn with_retry_budget(self, retry_budget: RetryBudget) -> Self {
        Self { retry_budget, ..self }
    }

    /// Sends a call, with retries, and decodes its answer from JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: PendingCall) -> Result<T, Error> {
        let (method, path) = (call.method.to_string(), call.path());
        let body = self.bytes(call).await?;
        serde_json::from_slice(&body).map_err(|source| Error::Answer { method, path, source })
    }

    /// Sends a call and returns the body of its answer. Retries within the bounds if the call is repeatable and the
    /// error is transient.
    pub(crate) async fn bytes(&self, call: PendingCall) -> Result<Bytes, Error> {
        let mut pauses = Pauses::new(self.retry_budget);
        loop {
            let error = match self.once(&call).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let asked = match &error {
                // Every other error would be the same at the next try.
                Error::Transport { .. } => None,
                Error::Refused { problem, .. } if problem.passes() => problem.retry_after,
                _ => return Err(error),
            };
            // A call that is not repeatable may have had its effect, so its error goes to the caller.
            let Some(pause) = call.repeatable().then(|| pauses.next(asked)).flatten() else {
                return Err(error);
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn once(&self, call: &PendingCall) -> Result<Bytes, Error> {
        let broken = |source| Error::unanswered(call.method.as_str(), call.path(), source);
        let mut request = self
            .http
            .request(call.method.clone(), call.url(&self.base))
            .timeout(ANSWER_TIMEOUT + call.wait);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let answer = request.send().await.map_err(broken)?;
        let status = answer.status();
        let retry_after = retry_after(answer.headers());
        let body = answer.bytes().await.map_err(broken)?;
        if status.is_success() {
            return Ok(body);
        }
        Err(refused(call, status, retry_after, &body))
    }
}

/// Returns true if the address is on this machine's loopback interface.
fn is_this_machine(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn refused(call: &PendingCall, status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Error {
    Error::Refused {
        method: call.method.to_string(),
        path: call.path(),
        problem: Box::new(ServiceProblem::new(status.as_u16(), retry_after, body)),
    }
}

/// Returns the delay-seconds form of `Retry-After` (RFC 9110 section 10.2.3), the form that the service sends.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Shows the presence of a key, never the key.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base.as_str())
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("retry_budget", &self.retry_budget)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
