//! A plain HTTP client whose answers are values: status, headers, bytes and JSON.
//!
//! Invariant: no answer of the service is an error here; only a broken connection is.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::server::{DEADLINE, POLL};

/// How long a test waits for one answer; above the longest `wait` of the interface.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long a change by another process may take to be seen.
const SECOND: Duration = Duration::from_secs(1);

/// What the service answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub bytes: Vec<u8>,
    /// The body as JSON; null when it is not.
    pub body: Value,
}

impl Answer {
    /// Reads a response to its end.
    ///
    /// # Errors
    /// A connection that breaks before the end.
    pub async fn of(response: Response) -> Result<Self, reqwest::Error> {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Self {
            status,
            headers,
            bytes,
            body,
        })
    }

    /// The status as a number.
    pub fn code(&self) -> u16 {
        self.status.as_u16()
    }

    /// A header as text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    }

    /// The answer itself when it has `status`, otherwise a panic that shows it.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "often only an assertion")]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.code(), status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }

    /// The machine code in `error`.
    pub fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or("")
    }

    /// A text member of the body; empty when absent.
    pub fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or("")
    }

    /// The paths in `details`, in order.
    pub fn paths(&self) -> Vec<&str> {
        let details = self.body["details"].as_array().map_or(&[][..], Vec::as_slice);
        details.iter().filter_map(|detail| detail["path"].as_str()).collect()
    }
}

/// A caller of the service, with or without a credential.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
    base: String,
    credential: Option<String>,
}

impl Http {
    /// A caller of the service at `base` (`http://host:port`) without a credential.
    pub fn new(base: &str) -> Self {
        let client = s3_server::caller().timeout(TIMEOUT).build().unwrap();
        Self {
            client,
            base: base.to_owned(),
            credential: None,
        }
    }

    /// The service that is called.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The same caller with `credential` as bearer token.
    #[must_use]
    pub fn with(&self, credential: &str) -> Self {
        Self {
            client: self.client.clone(),
            base: self.base.clone(),
            credential: Some(credential.to_owned()),
        }
    }

    /// The same caller without a credential.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self {
            credential: None,
            ..self.clone()
        }
    }

    /// The same caller, who connects from `address`.
    #[must_use]
    pub fn bound_to(&self, address: IpAddr) -> Self {
        let client = s3_server::caller().timeout(TIMEOUT).local_address(address);
        Self {
            client: client.build().unwrap(),
            ..self.clone()
        }
    }

    /// GET; panics when the connection breaks.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await.unwrap()
    }

    /// GET until the answer has `status`, within the second that a change by another process may take to be seen.
    pub async fn soon(&self, path: &str, status: u16) -> Answer {
        self.soon_shows(path, |answer| answer.code() == status).await
    }

    /// GET until the answer `is_new`, within that second.
    pub async fn soon_shows(&self, path: &str, is_new: impl Fn(&Answer) -> bool) -> Answer {
        self.shows_within(SECOND, path, is_new).await
    }

    /// GET until the answer `is_new`, within the time that a test waits for anything.
    pub async fn comes_to_show(&self, path: &str, is_new: impl Fn(&Answer) -> bool) -> Answer {
        self.shows_within(DEADLINE, path, is_new).await
    }

    async fn shows_within(&self, patience: Duration, path: &str, is_new: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + patience;
        loop {
            let answer = self.get(path).await;
            if is_new(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path} after {patience:?}: {}", answer.body);
            tokio::time::sleep(POLL).await;
        }
    }

    /// POST of JSON; panics when the connection breaks.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_bytes(path, body.to_string()).await
    }

    /// POST of bytes declared as JSON; panics when the connection breaks.
    pub async fn post_bytes(&self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.send(Method::POST, path, &[], Some(body.into())).await.unwrap()
    }

    /// POST of bytes of another media type; panics when the connection breaks.
    pub async fn post_as(&self, path: &str, media_type: &str, body: impl Into<Vec<u8>>) -> Answer {
        let headers = [("content-type", media_type)];
        self.send(Method::POST, path, &headers, Some(body.into()))
            .await
            .unwrap()
    }

    /// POST of JSON under an `Idempotency-Key`; panics when the connection breaks.
    pub async fn post_once(&self, path: &str, key: &str, body: &Value) -> Answer {
        let headers = [("idempotency-key", key)];
        self.send(Method::POST, path, &headers, Some(body.to_string().into()))
            .await
            .unwrap()
    }

    /// PATCH of JSON; panics when the connection breaks.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, &[], Some(body.to_string().into()))
            .await
            .unwrap()
    }

    /// DELETE without a body; panics when the connection breaks.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], None).await.unwrap()
    }

    /// One request; an error means that no whole answer came.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer, reqwest::Error> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(credential) = &self.credential {
            request = request.bearer_auth(credential);
        }
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| *name == "content-type") {
                request = request.header("content-type", "application/json");
            }
            request = request.body(body);
        }
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request = request.header(name, HeaderValue::from_str(value).unwrap());
        }
        Answer::of(request.send().await?).await
    }
}
