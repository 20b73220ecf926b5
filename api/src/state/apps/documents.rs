//! Metadata documents and keys of clients, fetched from the web.
//!
//! Invariants:
//! - Everything is fetched by the package `outbound`, without redirects and within its limits. Only what passed its
//!   checks is kept, in a bounded number.
//! - A fetch waits for its turn for [`PATIENCE`] at most, whatever the servers of other documents do.

use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName};
use oauth::client::{ClientAuth, OAuthClient};
use oauth::document::{self, DocumentCache, DocumentError, FetchedDocument};
use oauth::jwk::JwkSet;
use outbound::{ClientOptions, GetRequest, Ports, RequestLimits};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use types::{OperatorId, Timestamp};

use crate::state::holder_limit::{HolderLimit, HolderPermit};
use crate::state::limit::LimitSource;

/// Documents, and key sets, that are kept.
const KEPT: usize = 1_000;
/// Least time between two fetches of a key set that is not over.
const REFETCH: Duration = Duration::from_mins(1);
/// Concurrent fetches for requests of connected apps, and as many for all others.
const FETCHES: usize = 32;
/// Concurrent fetches of one operator, and of one address, which many apps may share.
const OF_OPERATOR: usize = 4;
const OF_ADDRESS: usize = 8;
/// Concurrent fetches of one URL. The others find what these have kept, where the answer may be kept.
const OF_URL: usize = 4;
/// Longest wait for a turn. With the 5 s of a fetch, the slowest answer is within what clients wait for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Failure to get a document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server of the document cannot be reached, or its answer is refused.
    #[error(transparent)]
    Outbound(#[from] outbound::Error),
    /// The document breaks a rule.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Other fetches of the same address or operator have their whole share.
    #[error("other fetches of the caller have its share")]
    ShareTaken,
    /// Fetches of others have every place.
    #[error("fetches of others have every place")]
    Busy,
}

/// Caller for whom a document is fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentAsker {
    /// Address of the caller.
    pub(crate) address: LimitSource,
    /// Operator of the caller.
    pub(crate) operator: Option<OperatorId>,
    /// True if the operator has agreed to the app.
    pub(crate) is_connected: bool,
}

/// Places for fetches of one kind of asker.
#[derive(Debug)]
struct FetchPlaces {
    all: Semaphore,
    of_url: HolderLimit<String>,
}

impl FetchPlaces {
    fn new() -> Self {
        Self {
            all: Semaphore::new(FETCHES),
            of_url: HolderLimit::new(OF_URL),
        }
    }
}

/// A turn to fetch one URL, returned on drop.
#[derive(Debug)]
struct FetchTurn {
    _shares: (HolderPermit, Option<HolderPermit>),
    _of_url: HolderPermit,
}

/// Keys of a client, as they were fetched.
#[derive(Debug)]
struct KeySet {
    keys: JwkSet,
    /// Time of the latest fetch, also of one that failed.
    fetched_at: Timestamp,
    /// True if an assertion was not signed by one of them.
    is_doubted: bool,
}

/// Documents and keys of clients.
#[derive(Debug)]
pub struct WebDocuments {
    client: outbound::OutboundClient,
    /// Places of askers that are not connected, and of those that are.
    places: [FetchPlaces; 2],
    by_address: HolderLimit<LimitSource>,
    by_operator: HolderLimit,
    documents: Mutex<DocumentCache<OAuthClient>>,
    keys: Mutex<DocumentCache<KeySet>>,
}

impl WebDocuments {
    /// Creates the fetcher of a service at `public_url`. `allow_private` is for tests and development: it permits
    /// `http`, every port and addresses that are not public.
    ///
    /// # Errors
    /// The URL cannot be part of a header.
    pub fn new(public_url: &str, allow_private: bool) -> Result<Self, outbound::Error> {
        let mut options = ClientOptions::new(public_url);
        if allow_private {
            options.allow_private = true;
            options.ports = Ports::Any;
        }
        Ok(Self::with(outbound::OutboundClient::new(options)?))
    }

    /// Creates a fetcher that uses this client.
    pub fn with(client: outbound::OutboundClient) -> Self {
        Self {
            client,
            places: [FetchPlaces::new(), FetchPlaces::new()],
            by_address: HolderLimit::new(OF_ADDRESS),
            by_operator: HolderLimit::new(OF_OPERATOR),
            documents: Mutex::new(DocumentCache::new(KEPT)),
            keys: Mutex::new(DocumentCache::new(KEPT)),
        }
    }

    /// Returns the client that the document at `url` describes.
    pub(crate) async fn client(
        &self,
        url: &str,
        asker: DocumentAsker,
        now: Timestamp,
    ) -> Result<OAuthClient, FetchError> {
        let known = || self.documents.lock().get(url, now).cloned();
        if let Some(client) = known() {
            return Ok(client);
        }
        let deadline = Instant::now() + PATIENCE;
        let _turn = self.turn(url, asker, deadline).await?;
        // Another request may have fetched it meanwhile.
        if let Some(client) = known() {
            return Ok(client);
        }
        let fetched = self.fetch(url, asker, deadline).await?;
        let client = document::read(url, &fetched.as_fetched(), now)?;
        let freshness = document::freshness(fetched.cache_control.as_deref());
        // For as long as the client's own answer says, so that a change of its keys or addresses is
        // seen.
        self.documents.lock().put(url, client.clone(), freshness, now);
        Ok(client)
    }

    /// Returns the keys of a client that keeps them at a URL; none for any other client. A key set that is doubted is
    /// fetched again, once a minute at most, and stays if that fails.
    ///
    /// # Errors
    /// [`FetchError::ShareTaken`] and [`FetchError::Busy`], which say nothing about the keys.
    pub(crate) async fn keys(
        &self,
        client: &OAuthClient,
        asker: DocumentAsker,
        now: Timestamp,
    ) -> Result<Option<JwkSet>, FetchError> {
        let ClientAuth::KeysAt(url) = &client.auth else {
            return Ok(None);
        };
        let known = match self.keys.lock().get_mut(url, now) {
            Some(set) if set.is_doubted && now.since(set.fetched_at) >= REFETCH => {
                // Noted before the fetch, so that requests at the same time make one.
                set.fetched_at = now;
                Some(set.keys.clone())
            }
            Some(set) => return Ok(Some(set.keys.clone())),
            None => None,
        };
        match (self.fetch_keys(url, asker, known.is_some(), now).await, known) {
            (Ok(keys), _) | (Err(_), Some(keys)) => Ok(Some(keys)),
            (Err(busy @ (FetchError::ShareTaken | FetchError::Busy)), None) => Err(busy),
            // Without keys no assertion can be verified, so the reason for which they are missing does not
            // matter.
            (Err(FetchError::Outbound(_) | FetchError::Document(_)), None) => Ok(None),
        }
    }

    async fn fetch_keys(
        &self,
        url: &str,
        asker: DocumentAsker,
        again: bool,
        now: Timestamp,
    ) -> Result<JwkSet, FetchError> {
        let deadline = Instant::now() + PATIENCE;
        let _turn = self.turn(url, asker, deadline).await?;
        let known = self.keys.lock().get(url, now).map(|set| set.keys.clone());
        if let Some(keys) = known.filter(|_| !again) {
            return Ok(keys);
        }
        let fetched = self.fetch(url, asker, deadline).await?;
        let keys = document::read_keys(&fetched.as_fetched())?;
        let freshness = document::freshness(fetched.cache_control.as_deref());
        let set = KeySet {
            keys: keys.clone(),
            fetched_at: now,
            is_doubted: false,
        };
        self.keys.lock().put(url, set, freshness, now);
        Ok(keys)
    }

    /// Notes that an assertion was not signed by a known key of a client, which may have new ones. The keys stay: anybody
    /// can send a wrong assertion.
    pub(crate) fn doubt_keys(&self, client: &OAuthClient, now: Timestamp) {
        if let ClientAuth::KeysAt(url) = &client.auth
            && let Some(set) = self.keys.lock().get_mut(url, now)
        {
            set.is_doubted = true;
        }
    }

    const fn places(&self, asker: DocumentAsker) -> &FetchPlaces {
        let [strangers, connected] = &self.places;
        if asker.is_connected { connected } else { strangers }
    }

    /// Waits for the caller's turn to fetch a URL.
    async fn turn(&self, url: &str, asker: DocumentAsker, deadline: Instant) -> Result<FetchTurn, FetchError> {
        let shares = async {
            let of_address = self.by_address.acquire(asker.address).await;
            let of_operator = match asker.operator {
                Some(operator) => Some(self.by_operator.acquire(operator).await),
                None => None,
            };
            (of_address, of_operator)
        };
        // Shares before places: a caller that waits for its share must not occupy a place for the same document.
        let shares = timeout_at(deadline, shares).await;
        let shares = shares.map_err(|_late| FetchError::ShareTaken)?;
        let of_url = self.places(asker).of_url.acquire(url.to_owned());
        Ok(FetchTurn {
            _shares: shares,
            _of_url: timeout_at(deadline, of_url).await.map_err(|_late| FetchError::Busy)?,
        })
    }

    async fn fetch(&self, url: &str, asker: DocumentAsker, deadline: Instant) -> Result<ReadDocument, FetchError> {
        // Anybody who names a client makes this server open a connection, so their number is bounded. Connected apps
        // have places of their own, which nobody can take without the consent of an operator.
        let place = self.places(asker).all.acquire();
        let Ok(Ok(_place)) = timeout_at(deadline, place).await else {
            return Err(FetchError::Busy);
        };
        let request = GetRequest {
            accept: Some("application/json"),
            ..GetRequest::new(url, RequestLimits::of_body(document::MAX_BYTES))
        };
        let answer = self.client.get(&request).await?;
        let text = |name: HeaderName| {
            let value = answer.headers.get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let (content_type, cache_control) = (text(header::CONTENT_TYPE), text(header::CACHE_CONTROL));
        Ok(ReadDocument {
            status: answer.status.as_u16(),
            content_type,
            cache_control,
            body: answer.bytes().await?,
        })
    }
}

/// An answer that was read to its end.
struct ReadDocument {
    status: u16,
    content_type: Option<String>,
    cache_control: Option<String>,
    body: Bytes,
}

impl ReadDocument {
    fn as_fetched(&self) -> FetchedDocument<'_> {
        FetchedDocument {
            status: self.status,
            content_type: self.content_type.as_deref(),
            cache_control: self.cache_control.as_deref(),
            body: &self.body,
        }
    }
}
