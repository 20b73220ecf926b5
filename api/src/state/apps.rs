//! Apps that act as an agent of an operator (OAuth 2.1): the authorization server on the database of the marketplace.
//!
//! Invariant: the rules are those of the package `oauth`. This module connects them with the database, with documents
//! of clients on the web, and with the table of operations.

mod documents;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use oauth::client::OAuthClient;
use oauth::document::is_document_url;
use oauth::jwk::JwkSet;
use oauth::{AuthorizationServer, Issuer};
use store::Store;
use types::Clock;

pub(crate) use documents::DocumentAsker;
pub use documents::{FetchError, WebDocuments};

use crate::error::ApiError;
use crate::names;
use types::error::with_causes;

/// Time for which a registered client may be without any consent. Apps keep their id and register only once, also if the
/// person signs in much later.
pub(crate) const UNUSED: Duration = Duration::from_hours(24 * 90);
/// Seconds after which a document without a place may be asked for again.
const RETRY_SECONDS: u64 = 5;

/// The authorization server, with the documents of its clients. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OAuthApps {
    server: AuthorizationServer,
    web: Arc<WebDocuments>,
    clock: Arc<dyn Clock>,
}

/// Reason for which there can be no authorization server.
#[derive(Debug, thiserror::Error)]
pub enum AppsConfigError {
    /// The URL cannot be an issuer.
    #[error(transparent)]
    Issuer(#[from] oauth::IssuerError),
    /// The client for documents cannot be made.
    #[error(transparent)]
    Outbound(#[from] outbound::Error),
}

impl OAuthApps {
    /// Creates the authorization server of a service at `public_url`. With `allow_private`, for tests and development,
    /// documents of clients are also fetched from addresses that are not public.
    ///
    /// # Errors
    /// [`AppsConfigError`] if `public_url` cannot be an issuer or stand in a header.
    pub fn open(
        public_url: &str,
        allow_private: bool,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AppsConfigError> {
        let web = WebDocuments::new(public_url, allow_private)?;
        Ok(Self::new(Issuer::new(public_url)?, store, clock, web))
    }

    /// Creates the authorization server of an issuer.
    pub fn new(issuer: Issuer, store: Store, clock: Arc<dyn Clock>, web: WebDocuments) -> Self {
        Self {
            server: AuthorizationServer::new(issuer, Arc::new(store), Arc::clone(&clock))
                .reserving(names::is_reserved_for_apps),
            web: Arc::new(web),
            clock,
        }
    }

    /// Returns the authorization server.
    pub const fn server(&self) -> &AuthorizationServer {
        &self.server
    }

    /// Returns the keys of a client that keeps them at a URL.
    ///
    /// # Errors
    /// There is no place to fetch them now.
    pub(crate) async fn keys(&self, client: &OAuthClient, asker: DocumentAsker) -> Result<Option<JwkSet>, ApiError> {
        Ok(self.web.keys(client, asker, self.clock.now()).await?)
    }

    /// Notes that an assertion of a client was refused.
    pub(crate) fn doubt_keys(&self, client: &OAuthClient) {
        self.web.doubt_keys(client, self.clock.now());
    }

    /// Returns the client with this identifier: a registered one, or the one that its document describes.
    ///
    /// # Errors
    /// A [`ClientError`] that names why there is none.
    pub(crate) async fn client(&self, id: &str, asker: DocumentAsker) -> Result<OAuthClient, ClientError> {
        if !is_document_url(id) {
            let registered = self.server.registered(id).await;
            return registered.map_err(ApiError::from)?.ok_or(ClientError::Unregistered);
        }
        let client = self.web.client(id, asker, self.clock.now()).await;
        client.map_err(|error| match error {
            FetchError::ShareTaken | FetchError::Busy => ClientError::Service(error.into()),
            FetchError::Outbound(_) | FetchError::Document(_) => ClientError::Document(error),
        })
    }
}

/// Reason for which an identifier names no client.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// Nothing is registered under it.
    Unregistered,
    /// Its metadata document cannot be fetched or used. The error says why, in words for whoever runs the app.
    Document(FetchError),
    /// The database failed, or the document has no place to be fetched now.
    Service(ApiError),
}

impl From<ApiError> for ClientError {
    fn from(error: ApiError) -> Self {
        Self::Service(error)
    }
}

impl From<FetchError> for ApiError {
    fn from(error: FetchError) -> Self {
        match &error {
            FetchError::ShareTaken => Self::rate_limited(
                "other documents of this address or operator are being fetched; try again shortly",
                RETRY_SECONDS,
            ),
            _ => Self::unavailable(with_causes(&error)),
        }
    }
}

impl From<oauth::Error> for ApiError {
    fn from(error: oauth::Error) -> Self {
        match &error {
            oauth::Error::Storage(_) | oauth::Error::Random(_) => Self::unavailable(with_causes(&error)),
            _ => Self::internal(with_causes(&error)),
        }
    }
}
