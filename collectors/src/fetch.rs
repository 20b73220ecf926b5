//! Fetching of a source: pages, validators, limits, `robots.txt`.
//!
//! Invariants:
//! - Every request goes through the package `outbound`, after the rules of the host and at its turn. A redirect is
//!   such a request too.
//! - The bytes of all pages together stay within the limit of the source, and no page is fetched twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use data_encoding::HEXLOWER;
use http::{HeaderMap, StatusCode, header};
use outbound::{GetRequest, OutboundAnswer, OutboundClient, RedirectStep, RequestLimits};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use url::Url;

use crate::cursor::Cursor;
use crate::hosts::{HostTurn, Hosts};
use crate::robots::Robots;
use crate::source::{CollectorSource, MAX_ROWS, Pages, SourceFormat};
use crate::{RunFailure, delta, format};

/// Time for which the rules of a server are kept.
const ROBOTS_KEPT: Duration = Duration::from_hours(24);
/// Servers whose rules are kept.
const MAX_ROBOTS: usize = 1_024;
/// Most bytes of `robots.txt` (RFC 9309 section 2.5 asks for at least 500 KiB).
const ROBOTS_BYTES: u64 = 512 << 10;
/// Most redirects of one request.
const MAX_REDIRECTS: u8 = 5;

/// Records of a source, and the place in it after them.
#[derive(Debug)]
pub(crate) enum FetchedRecords {
    /// The content is that of the run before.
    Unchanged(Cursor),
    /// Records of the source, and the place after them.
    Records(Vec<Value>, Cursor),
}

/// Fetches sources. One for each process.
#[derive(Debug)]
pub struct Fetcher {
    client: OutboundClient,
    pause: Duration,
    hosts: Hosts,
    robots: Mutex<HashMap<String, (Arc<Robots>, Instant)>>,
}

/// Body of a page, with true if the transport would have shown a missing end.
type Body = (Bytes, bool);

/// An answer that arrived whole.
pub(crate) struct FetchedPage {
    pub(crate) body: Bytes,
    headers: HeaderMap,
}

impl Fetcher {
    /// Creates a fetcher. `pause` lies between two requests to a host.
    pub fn new(client: OutboundClient, pause: Duration) -> Self {
        Self {
            client,
            pause,
            hosts: Hosts::default(),
            robots: Mutex::default(),
        }
    }

    /// Fetches what a source has, unless nothing changed since `before`.
    pub(crate) async fn fetch(
        &self,
        source: &CollectorSource,
        before: Option<Cursor>,
    ) -> Result<FetchedRecords, RunFailure> {
        let fetch = &source.text.fetch;
        if fetch.format == SourceFormat::Delta {
            return delta::follow(self, source, before).await;
        }
        if let Some(file) = source.file() {
            let body = read_file(&file, source.max_bytes()).await?;
            return decoded(source, vec![(body, true)], None, before, None).await;
        }
        let url = source.text.fetch.url.clone().unwrap_or_default();
        match &fetch.pages {
            None => {
                let Some(page) = self.page(source, &url, source.max_bytes(), before.as_ref()).await? else {
                    return Ok(FetchedRecords::Unchanged(before.unwrap_or_default()));
                };
                let is_framed = page.is_framed();
                decoded(source, vec![(page.body, is_framed)], None, before, Some(&page.headers)).await
            }
            Some(pages) => {
                let (bodies, records) = self.pages(source, pages, &url).await?;
                decoded(source, bodies, records, before, None).await
            }
        }
    }

    /// Fetches every page, within the limits of bytes and pages. Returns the records too if it had to decode the pages.
    async fn pages(
        &self,
        source: &CollectorSource,
        pages: &Pages,
        first: &str,
    ) -> Result<(Vec<Body>, Option<Vec<Value>>), RunFailure> {
        let mut url = address(first)?;
        let origin = url.origin();
        // A source whose next page is an earlier one would be fetched for ever without the set.
        let (mut bodies, mut records, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        let mut left = source.max_bytes();
        for number in 0..pages.most() {
            if let Some(parameter) = &pages.parameter {
                url = numbered(first, parameter, pages.first.saturating_add(number))?;
            }
            if !seen.insert(url.to_string()) {
                return Err(RunFailure::new("paging", "a page of the source leads to one before it"));
            }
            let Some(page) = self.page(source, url.as_str(), left, None).await? else {
                return Err(RunFailure::form(
                    "the source answered 304 to a request without a condition",
                ));
            };
            // The limit is of the run: each page may use only what those before it left.
            left = left.saturating_sub(page.body.len() as u64);
            let is_framed = page.is_framed();
            if let Some(pointer) = &pages.next {
                let next = format::next_page(&page.body, pointer)?;
                bodies.push((page.body, is_framed));
                let Some(next) = next else { return Ok((bodies, None)) };
                url = url
                    .join(&next)
                    .map_err(|_error| RunFailure::new("paging", "the next page has no address"))?;
                // Another host has other rules, and the definition names none.
                if url.origin() != origin {
                    return Err(RunFailure::new("paging", "the next page is on another host"));
                }
            } else {
                // The page after the last one is empty.
                let rows = decode(source, vec![(page.body.clone(), is_framed)]).await?;
                if rows.is_empty() {
                    return Ok((bodies, Some(records)));
                }
                bodies.push((page.body, is_framed));
                records.extend(rows);
                if records.len() > MAX_ROWS {
                    return Err(format::too_many());
                }
            }
        }
        let most = pages.most();
        Err(RunFailure::new(
            "paging",
            format!("the source has more than {most} pages"),
        ))
    }

    /// Fetches one page; `None` if it did not change since `before`.
    pub(crate) async fn page(
        &self,
        source: &CollectorSource,
        url: &str,
        most: u64,
        before: Option<&Cursor>,
    ) -> Result<Option<FetchedPage>, RunFailure> {
        let limits = RequestLimits {
            connect: Duration::from_secs(10),
            whole: source.timeout(),
            ..RequestLimits::of_body(most)
        };
        let request = GetRequest {
            accept: source.text.fetch.accept.as_deref(),
            if_none_match: before.and_then(|cursor| cursor.etag.as_deref()),
            if_modified_since: before.and_then(|cursor| cursor.last_modified.as_deref()),
            ..GetRequest::new(url, limits)
        };
        let (answer, turn) = self.answer(source, request, true).await?;
        // A 304 to a request without a condition is the server's mistake. It would be taken for
        // "nothing new" in the first run of a source.
        if answer.status == StatusCode::NOT_MODIFIED && before.is_some() {
            return Ok(None);
        }
        // 206 and 203 are successes too, and may be a part or an altered copy.
        if answer.status != StatusCode::OK {
            return Err(status(answer.status, &answer.headers));
        }
        let headers = answer.headers.clone();
        let body = answer.bytes().await.map_err(|error| fetching(source, &error))?;
        drop(turn);
        Ok(Some(FetchedPage { body, headers }))
    }

    /// Sends a request and follows its redirects, each at the turn of its host and, with `asks_rules`, after the rules of
    /// its server. The turn is held until the body has arrived, so a slow answer does not overlap the next request.
    async fn answer(
        &self,
        source: &CollectorSource,
        request: GetRequest<'_>,
        asks_rules: bool,
    ) -> Result<(OutboundAnswer, HostTurn), RunFailure> {
        let mut request = request;
        let mut url = address(request.url)?;
        let origin = url.origin();
        for _ in 0..=MAX_REDIRECTS {
            if asks_rules {
                self.check_robots(source, &url).await?;
            }
            let turn = self.hosts.turn(url.host_str().unwrap_or_default(), self.pause).await;
            let begun = Instant::now();
            let step = self
                .client
                .get_step(&GetRequest {
                    url: url.as_str(),
                    ..request
                })
                .await;
            match step.map_err(|error| fetching(source, &error))? {
                RedirectStep::Answer(answer) => return Ok((*answer, turn)),
                // The turn ends here: two sources that redirect to each other's host would wait for ever.
                RedirectStep::Redirect(next) => url = next,
            }
            // The time is that of all servers together, without the time that a turn was waited for.
            request.limits.whole = request.limits.whole.saturating_sub(begun.elapsed());
            // Validators belong to the server that gave them.
            if url.origin() != origin {
                (request.if_none_match, request.if_modified_since) = (None, None);
            }
        }
        Err(RunFailure::new("redirect", "the source redirects too often"))
    }

    /// Checks that the server lets this client fetch a path.
    async fn check_robots(&self, source: &CollectorSource, url: &Url) -> Result<(), RunFailure> {
        let origin = url.origin().ascii_serialization();
        let known = self.robots.lock().get(&origin).cloned();
        let rules = match known {
            Some((rules, at)) if at.elapsed() < ROBOTS_KEPT => rules,
            _ => {
                let rules = Arc::new(Box::pin(self.robots(source, &origin)).await?);
                let mut robots = self.robots.lock();
                // Forgetting all of them costs one request per server, and needs no order of use.
                if robots.len() >= MAX_ROBOTS {
                    robots.clear();
                }
                robots.insert(origin, (Arc::clone(&rules), Instant::now()));
                rules
            }
        };
        let path = url
            .query()
            .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        if rules.allow(&path) {
            Ok(())
        } else {
            Err(RunFailure::new(
                "robots",
                "the robots.txt of the source does not allow its address",
            ))
        }
    }

    /// Fetches the rules of a server. A missing file allows everything, a server that is down nothing (RFC 9309
    /// section 2.3.1).
    async fn robots(&self, source: &CollectorSource, origin: &str) -> Result<Robots, RunFailure> {
        let address = format!("{origin}/robots.txt");
        let limits = RequestLimits {
            connect: Duration::from_secs(10),
            whole: Duration::from_secs(30),
            ..RequestLimits::of_body(ROBOTS_BYTES)
        };
        // A file of rules needs no rules (RFC 9309 section 2.2.2), also where a redirect leads to it.
        let (answer, _turn) = self.answer(source, GetRequest::new(&address, limits), false).await?;
        match answer.status {
            StatusCode::OK => {
                let body = answer.bytes().await.map_err(|error| fetching(source, &error))?;
                Ok(Robots::parse(&String::from_utf8_lossy(&body)))
            }
            // 429 asks to come back later, which says nothing about the rules.
            refused if refused.is_client_error() && refused != StatusCode::TOO_MANY_REQUESTS => Ok(Robots::default()),
            other => Err(status(other, &answer.headers)),
        }
    }
}

impl FetchedPage {
    /// Returns true if the transport would have shown a missing end of the body.
    fn is_framed(&self) -> bool {
        self.headers.contains_key(header::CONTENT_LENGTH) || self.headers.contains_key(header::TRANSFER_ENCODING)
    }
}

/// Decodes the pages, unless their content is that of the run before. `records` are theirs, if they were decoded.
async fn decoded(
    source: &CollectorSource,
    bodies: Vec<Body>,
    records: Option<Vec<Value>>,
    before: Option<Cursor>,
    headers: Option<&HeaderMap>,
) -> Result<FetchedRecords, RunFailure> {
    let mut hash = Sha256::new();
    for (body, _) in &bodies {
        // The length is hashed too: without it, the same bytes cut into other pages would have the same
        // hash.
        hash.update(body.len().to_be_bytes());
        hash.update(body);
    }
    let text = |name| Some(headers?.get(name)?.to_str().ok()?.to_owned());
    let cursor = Cursor {
        definition: source.fingerprint().to_owned(),
        etag: text(header::ETAG),
        last_modified: text(header::LAST_MODIFIED),
        content_sha256: Some(HEXLOWER.encode(&hash.finalize())),
        delta_version: None,
        delta_table: None,
    };
    // Validators of some servers change with every answer, so the content decides.
    if before.is_some_and(|before| before.content_sha256 == cursor.content_sha256) {
        return Ok(FetchedRecords::Unchanged(cursor));
    }
    let records = match records {
        Some(records) => records,
        None => decode(source, bodies).await?,
    };
    // An empty answer is mostly an error of the source. Taken as the new state, it would store a cursor
    // and hide the error until the content changes.
    if records.is_empty() && !source.text.fetch.may_be_empty {
        return Err(RunFailure::form("the answer has no record"));
    }
    Ok(FetchedRecords::Records(records, cursor))
}

/// Returns the records of pages, in their order.
async fn decode(source: &CollectorSource, bodies: Vec<Body>) -> Result<Vec<Value>, RunFailure> {
    let fetch = source.text.fetch.clone();
    // Decoding uses the processor for long. A decoder that panics fails the run and nothing else.
    let decoding = tokio::task::spawn_blocking(move || {
        let mut records = Vec::new();
        for (body, is_framed) in &bodies {
            records.extend(format::decode(&fetch, body, *is_framed)?);
            if records.len() > MAX_ROWS {
                return Err(format::too_many());
            }
        }
        Ok(records)
    });
    decoding
        .await
        .map_err(|_error| RunFailure::form("the answer cannot be decoded"))?
}

/// Reads a file of this machine.
pub(crate) async fn read_file(path: &std::path::Path, most: u64) -> Result<Bytes, RunFailure> {
    use tokio::io::AsyncReadExt as _;
    let unreadable = |_error| RunFailure::new("file", "the file of the source cannot be read");
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    let mut body = BytesMut::new();
    // One byte more than allowed shows a file that is too large, without trusting its size beforehand.
    let mut limited = file.take(most + 1);
    while limited.read_buf(&mut body).await.map_err(unreadable)? > 0 {}
    if body.len() as u64 > most {
        return Err(RunFailure::new("too_large", "the file of the source is too large"));
    }
    Ok(body.freeze())
}

pub(crate) fn address(text: &str) -> Result<Url, RunFailure> {
    Url::parse(text).map_err(|_error| RunFailure::new("address", "the address of the source is refused"))
}

fn numbered(first: &str, parameter: &str, number: u32) -> Result<Url, RunFailure> {
    let mut url = address(first)?;
    url.query_pairs_mut().append_pair(parameter, &number.to_string());
    Ok(url)
}

/// Returns the failure for an error of the client, whose text is for the log only.
fn fetching(source: &CollectorSource, error: &outbound::Error) -> RunFailure {
    tracing::debug!(collector = source.name(), %error, "a source was not fetched");
    RunFailure::of_fetching(error)
}

/// Returns the failure for a status, with the time that the server asks for.
fn status(status: StatusCode, headers: &HeaderMap) -> RunFailure {
    let seconds = headers
        .get(header::RETRY_AFTER)
        // Only seconds are read. A date (RFC 9110 section 10.2.3) is left to the usual pause.
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    RunFailure {
        retry_after: seconds.map(Duration::from_secs),
        status: Some(status),
        ..RunFailure::new("status", format!("the source answered {}", status.as_u16()))
    }
}

#[cfg(test)]
mod tests;
