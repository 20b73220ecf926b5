//! Requests that the client library does not offer: listing the parts of a multipart upload, and completing an upload
//! only if no object exists.
//!
//! Invariant: a transient answer is retried until the patience is over, so a returned answer is final.

use std::time::Duration;

use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::{Error, HeaderValue, Result};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument as _;

use super::multipart::ListedPart;
use super::{BACKOFF, S3, failed};

/// Number of bytes per extra second of the timeout for completing an upload. The store joins the parts meanwhile.
const JOINED_IN_A_SECOND: u64 = 64 << 20;

/// Response of the store.
struct Response {
    status: u16,
    text: String,
}

impl Response {
    /// Returns the code of the error document, or an empty text if there is none. A response with status 200 may have
    /// an error document too, if completing an upload took long.
    fn code(&self) -> &str {
        let code = self
            .text
            .split_once("<Code>")
            .and_then(|(_, rest)| rest.split_once("</Code>"));
        code.map_or("", |(code, _)| code)
    }

    fn is_done(&self) -> bool {
        self.status < 300 && !self.text.contains("<Error>")
    }

    /// Returns true if a retry may be answered differently.
    fn is_transient(&self) -> bool {
        let passing = [
            "InternalError",
            "SlowDown",
            "ServiceUnavailable",
            "RequestTimeout",
            "OperationAborted",
            "ConditionalRequestConflict",
        ];
        self.status >= 500 || matches!(self.status, 408 | 429) || passing.contains(&self.code())
    }

    fn into_error(self, what: &str) -> Error {
        let code = self.code();
        failed(format!("{what} was answered {} {code}", self.status))
    }
}

/// Body of the response to `ListParts`.
#[derive(Deserialize)]
struct PartListing {
    #[serde(rename = "Part", default)]
    parts: Vec<ListedParts>,
    #[serde(rename = "IsTruncated", default)]
    is_truncated: bool,
    #[serde(rename = "NextPartNumberMarker")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct ListedParts {
    #[serde(rename = "PartNumber")]
    number: u16,
    #[serde(rename = "ETag")]
    e_tag: String,
    #[serde(rename = "Size")]
    size: u64,
}

/// Body of the request `CompleteMultipartUpload`.
#[derive(Serialize)]
struct CompletedParts {
    #[serde(rename = "Part")]
    parts: Vec<CompletedPart>,
}

#[derive(Serialize)]
struct CompletedPart {
    #[serde(rename = "ETag")]
    e_tag: String,
    #[serde(rename = "PartNumber")]
    number: u16,
}

/// Result of completing an upload.
#[derive(Debug)]
pub(super) enum UploadCompletion {
    /// The object exists now.
    Done,
    /// The store has other parts than the request names.
    Mismatch(Error),
    /// The upload does not exist: it was aborted or completed.
    Gone(Error),
    /// An object exists already, and the request was conditional.
    Taken,
}

impl S3 {
    /// Lists the parts of an upload in order. Returns `None` if the upload does not exist.
    pub(super) async fn list_parts(&self, object: &Path, upload: &str) -> Result<Option<Vec<ListedPart>>> {
        let mut parts = Vec::new();
        let mut after = 0;
        loop {
            let url = || self.presigner.parts(object, upload, after, self.lasting());
            let request = || request("GET", &url(), String::new());
            let response = self
                .send_with_retries("listing the parts of an upload", self.attempt, request)
                .await?;
            match response.status {
                404 => return Ok(None),
                _ if !response.is_done() => return Err(response.into_error("listing the parts of an upload")),
                _ => {}
            }
            let page: PartListing = quick_xml::de::from_str(&response.text).map_err(failed)?;
            parts.extend(page.parts.into_iter().map(|part| ListedPart {
                number: part.number,
                bytes: part.size,
                e_tag: part.e_tag.trim_matches('"').to_owned(),
            }));
            // A marker that does not advance would repeat the same page for ever.
            match page.next.and_then(|next| next.parse().ok()) {
                Some(next) if page.is_truncated && next > after => after = next,
                _ if page.is_truncated => return Err(failed("a list of parts broke off")),
                _ => break,
            }
        }
        // The result must not depend on the order in which a store lists.
        parts.sort_unstable_by_key(|part| part.number);
        Ok(Some(parts))
    }

    /// Completes an upload from the parts with these entity tags, in order. `bytes` is the total size and extends the
    /// timeout. With `create` the request fails if an object exists.
    pub(super) async fn complete_parts(
        &self,
        object: &Path,
        upload: &str,
        tags: &[String],
        create: bool,
        bytes: u64,
    ) -> Result<UploadCompletion> {
        let part = |(number, tag): (u16, &String)| CompletedPart {
            // Clients pass a tag with or without quotes; the protocol requires them (RFC 9110 section 8.8.3).
            e_tag: format!("\"{}\"", tag.trim_matches('"')),
            number,
        };
        let parts = CompletedParts {
            parts: (1..).zip(tags).map(part).collect(),
        };
        let body = quick_xml::se::to_string_with_root("CompleteMultipartUpload", &parts).map_err(failed)?;
        // The store answers only after it has joined the parts.
        let attempt = self.attempt + Duration::from_secs(bytes / JOINED_IN_A_SECOND);
        let complete = || {
            let url = self.presigner.complete(object, upload, create, self.lasting());
            let mut request = request("POST", &url, body.clone())?;
            if create {
                request
                    .headers_mut()
                    .insert("if-none-match", HeaderValue::from_static("*"));
            }
            Ok(request)
        };
        let what = "completing an upload";
        let response = self.send_with_retries(what, attempt, complete).await?;
        Ok(match (response.status, response.code()) {
            _ if response.is_done() => UploadCompletion::Done,
            (412, _) => UploadCompletion::Taken,
            (404, _) | (_, "NoSuchUpload") => UploadCompletion::Gone(response.into_error(what)),
            (_, "InvalidPart" | "InvalidPartOrder" | "EntityTooSmall") => {
                UploadCompletion::Mismatch(response.into_error(what))
            }
            _ => return Err(response.into_error(what)),
        })
    }

    /// Returns the validity of an address that is used at once. Five minutes are for a difference of the clocks.
    fn lasting(&self) -> Duration {
        self.attempt + Duration::from_mins(5)
    }

    /// Sends a request until the answer is final or the patience is over.
    async fn send_with_retries(
        &self,
        what: &str,
        attempt: Duration,
        make: impl Fn() -> Result<HttpRequest>,
    ) -> Result<Response> {
        let until = Instant::now() + self.patience;
        let mut failures = 0;
        loop {
            let error = match timeout(attempt, self.send_once(make()?)).await {
                Ok(Ok(response)) if !response.is_transient() => return Ok(response),
                Ok(Ok(response)) => response.into_error(what),
                Ok(Err(error)) => error,
                Err(_) => failed(format!("{what} was not answered within {attempt:?}")),
            };
            if Instant::now() + BACKOFF.longest(failures) >= until {
                return Err(error);
            }
            tracing::debug!(what, %error, "a request is tried again");
            sleep(BACKOFF.pause(failures)).await;
            failures += 1;
        }
    }

    async fn send_once(&self, request: HttpRequest) -> Result<Response> {
        let span = tracing::debug_span!("object store request", method = %request.method());
        let answer = self.calling.execute(request).instrument(span).await.map_err(failed)?;
        let status = answer.status().as_u16();
        let text = answer.into_body().bytes().await.map_err(failed)?;
        Ok(Response {
            status,
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }
}

fn request(method: &str, url: &str, body: String) -> Result<HttpRequest> {
    let mut request = HttpRequest::new(HttpRequestBody::from(body));
    *request.method_mut() = method.parse().map_err(failed)?;
    *request.uri_mut() = url.parse().map_err(failed)?;
    Ok(request)
}
