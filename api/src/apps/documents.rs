//! Metadata documents and keys of clients, fetched from the web.
//!
//! Invariant: everything is fetched by the package `outbound`, without redirects and within its limits. Only what
//! passed its checks is kept, in a bounded number.

use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName};
use oauth::client::{Auth, Client};
use oauth::document::{self, Cache, DocumentError, Fetched};
use oauth::jwk::Keys;
use outbound::{Limits, Options, Ports, Request};
use parking_lot::Mutex;
use types::Timestamp;

/// Documents, and key sets, that are kept.
const KEPT: usize = 1_000;
/// Least time between two fetches of a key set that is not over.
const REFETCH: Duration = Duration::from_mins(1);
/// Concurrent fetches. Further ones wait, so that strangers cannot make the service fetch without bound.
const FETCHES: usize = 16;

/// Failure to get a document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server of the document cannot be reached, or its answer is refused.
    #[error(transparent)]
    Outbound(#[from] outbound::Error),
    /// The document breaks a rule.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The service is closing.
    #[error("the service is closing")]
    Closed,
}

/// Keys of a client, as they were fetched.
#[derive(Debug)]
struct KeySet {
    keys: Keys,
    /// Time of the latest fetch, also of one that failed.
    fetched_at: Timestamp,
    /// True if an assertion was not signed by one of them.
    is_doubted: bool,
}

/// Documents and keys of clients.
#[derive(Debug)]
pub struct Web {
    client: outbound::Client,
    fetches: tokio::sync::Semaphore,
    documents: Mutex<Cache<Client>>,
    keys: Mutex<Cache<KeySet>>,
}

impl Web {
    /// Creates the fetcher of a service at `public_url`. `allow_private` is for tests and development: it permits
    /// `http`, every port and addresses that are not public.
    ///
    /// # Errors
    /// The URL cannot be part of a header.
    pub fn new(public_url: &str, allow_private: bool) -> Result<Self, outbound::Error> {
        let mut options = Options::new(public_url);
        if allow_private {
            options.allow_private = true;
            options.ports = Ports::Any;
        }
        Ok(Self::with(outbound::Client::new(options)?))
    }

    /// Creates a fetcher that uses this client.
    pub fn with(client: outbound::Client) -> Self {
        Self {
            client,
            fetches: tokio::sync::Semaphore::new(FETCHES),
            documents: Mutex::new(Cache::new(KEPT)),
            keys: Mutex::new(Cache::new(KEPT)),
        }
    }

    /// Returns the client that the document at `url` describes.
    pub(crate) async fn client(&self, url: &str, now: Timestamp) -> Result<Client, FetchError> {
        if let Some(client) = self.documents.lock().get(url, now) {
            return Ok(client.clone());
        }
        let fetched = self.fetch(url).await?;
        let client = document::read(url, &fetched.as_fetched(), now)?;
        let freshness = document::freshness(fetched.cache_control.as_deref());
        // For as long as the client's own answer says, so that a change of its keys or addresses is
        // seen.
        self.documents.lock().put(url, client.clone(), freshness, now);
        Ok(client)
    }

    /// Returns the keys of a client that keeps them at a URL; none for any other client. A key set that is doubted is
    /// fetched again, once a minute at most, and stays if that fails.
    pub(crate) async fn keys(&self, client: &Client, now: Timestamp) -> Option<Keys> {
        let Auth::KeysAt(url) = &client.auth else { return None };
        let known = match self.keys.lock().get_mut(url, now) {
            Some(set) if set.is_doubted && now.since(set.fetched_at) >= REFETCH => {
                // Noted before the fetch, so that requests at the same time make one.
                set.fetched_at = now;
                Some(set.keys.clone())
            }
            Some(set) => return Some(set.keys.clone()),
            None => None,
        };
        // Without keys no assertion can be verified, so the reason for which they are missing does not
        // matter.
        self.fetch_keys(url, now).await.or(known)
    }

    async fn fetch_keys(&self, url: &str, now: Timestamp) -> Option<Keys> {
        let fetched = self.fetch(url).await.ok()?;
        let keys = document::read_keys(&fetched.as_fetched()).ok()?;
        let freshness = document::freshness(fetched.cache_control.as_deref());
        let set = KeySet {
            keys: keys.clone(),
            fetched_at: now,
            is_doubted: false,
        };
        self.keys.lock().put(url, set, freshness, now);
        Some(keys)
    }

    /// Notes that an assertion was not signed by a known key of a client, which may have new ones. The keys stay: anybody
    /// can send a wrong assertion.
    pub(crate) fn doubt_keys(&self, client: &Client, now: Timestamp) {
        if let Auth::KeysAt(url) = &client.auth
            && let Some(set) = self.keys.lock().get_mut(url, now)
        {
            set.is_doubted = true;
        }
    }

    async fn fetch(&self, url: &str) -> Result<Document, FetchError> {
        // Anybody who names a client makes this server open a connection, so their number is bounded.
        let _permit = self.fetches.acquire().await.map_err(|_closed| FetchError::Closed)?;
        let request = Request {
            accept: Some("application/json"),
            ..Request::new(url, Limits::of_body(document::MAX_BYTES))
        };
        let answer = self.client.get(&request).await?;
        let text = |name: HeaderName| {
            let value = answer.headers.get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let (content_type, cache_control) = (text(header::CONTENT_TYPE), text(header::CACHE_CONTROL));
        Ok(Document {
            status: answer.status.as_u16(),
            content_type,
            cache_control,
            body: answer.bytes().await?,
        })
    }
}

/// An answer that was read to its end.
struct Document {
    status: u16,
    content_type: Option<String>,
    cache_control: Option<String>,
    body: Bytes,
}

impl Document {
    fn as_fetched(&self) -> Fetched<'_> {
        Fetched {
            status: self.status,
            content_type: self.content_type.as_deref(),
            cache_control: self.cache_control.as_deref(),
            body: &self.body,
        }
    }
}
