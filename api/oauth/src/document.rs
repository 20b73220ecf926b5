//! Metadata documents of clients (draft-ietf-oauth-client-id-metadata-document): a client is identified by the URL of
//! a document that describes it.
//!
//! Invariants:
//! - The document names exactly the URL that it was fetched from. It is fetched without redirects, with status 200, as
//!   JSON and of at most [`MAX_BYTES`]; the package `outbound` does so safely.
//! - Only documents that passed are cached, for a bounded time and in a bounded number.

use std::collections::HashMap;
use std::time::Duration;

use types::Timestamp;
use types::host::is_host_name;
use url::{Host, Url};

use crate::client::{ClientAuth, Metadata, MetadataError, OAuthClient, is_https};
use crate::jwk::JwkSet;

/// Most bytes of a document, and of a key set that it names.
pub const MAX_BYTES: u64 = 5 * 1024;
/// Time that a document is kept if its answer does not say.
const DEFAULT_FRESHNESS: Duration = Duration::from_hours(1);
/// Longest time that a document is kept.
const MAX_FRESHNESS: Duration = Duration::from_hours(24);

/// Returns true if a client identifier is the URL of a metadata document: `https` with a plain name as its host and
/// with a path, without a fragment, a user, and segments of dots. An app under development is at `localhost`, which only a
/// service that may fetch from private addresses reaches.
pub fn is_document_url(client_id: &str) -> bool {
    let Some(url) = Url::parse(client_id).ok().filter(|_| is_https(client_id)) else {
        return false;
    };
    let is_name = |name: &str| is_host_name(name) && (name == "localhost" || name.contains('.'));
    let has_name = matches!(url.host(), Some(Host::Domain(name)) if is_name(name));
    // A parser changes segments of dots, default ports and upper case, so that a text it keeps has none.
    let is_canonical = url.as_str() == client_id && !client_id.contains(['#', '@', '\\']);
    is_canonical && has_name && url.path() != "/"
}

/// Answer of the server of a document.
#[derive(Clone, Copy, Debug)]
pub struct FetchedDocument<'a> {
    /// Status of the answer.
    pub status: u16,
    /// `Content-Type` of the answer.
    pub content_type: Option<&'a str>,
    /// `Cache-Control` of the answer.
    pub cache_control: Option<&'a str>,
    /// Body of the answer.
    pub body: &'a [u8],
}

/// Rule that a document breaks. None is cached, so that a repaired document works at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The identifier is no URL of a document.
    #[error("`client_id` is not an `https` URL with a path")]
    Url,
    /// The status is not 200.
    #[error("the metadata document was answered with status {0}, and not 200")]
    Status(u16),
    /// The answer is not JSON.
    #[error("the metadata document is not `application/json`")]
    ContentType,
    /// The document is too large.
    #[error("the metadata document has more than 5,120 bytes")]
    TooLarge,
    /// The document is that of another URL.
    #[error("`client_id` of the metadata document is not its URL")]
    ClientId,
    /// The document contains a secret, which everybody can read there.
    #[error("the metadata document contains a client secret")]
    Secret,
    /// The metadata are refused.
    #[error("the metadata document is refused: {0}")]
    Metadata(#[from] MetadataError),
}

/// Reads a document that was fetched from `url`.
///
/// # Errors
/// [`DocumentError`]
pub fn read(url: &str, fetched: &FetchedDocument<'_>, now: Timestamp) -> Result<OAuthClient, DocumentError> {
    if !is_document_url(url) {
        return Err(DocumentError::Url);
    }
    check_answer(fetched)?;
    let mut metadata = Metadata::parse(fetched.body)?;
    // Texts are compared, so that a document cannot speak for a URL that only a parser takes for its own.
    if metadata.client_id.as_deref() != Some(url) {
        return Err(DocumentError::ClientId);
    }
    // Everybody can read the document, so its owner learns that the secret is lost.
    if metadata.client_secret.is_some() {
        return Err(DocumentError::Secret);
    }
    // Registration may leave the name out; a document is all that a person learns of its app.
    if metadata.client_name.is_none() {
        return Err(MetadataError::Name.into());
    }
    let method = metadata.token_endpoint_auth_method.take();
    let auth = match (method.as_deref(), metadata.jwks.take(), metadata.jwks_uri.take()) {
        // RFC 7591 has a shared secret as its default, which a public document cannot mean.
        (None | Some("none"), _, _) => ClientAuth::None,
        (Some("private_key_jwt"), Some(keys), None) => {
            ClientAuth::Keys(JwkSet::from_value(keys).map_err(|_error| MetadataError::Keys)?)
        }
        (Some("private_key_jwt"), None, Some(at)) if is_https(&at) => ClientAuth::KeysAt(at),
        (Some("private_key_jwt"), _, _) => return Err(MetadataError::Keys.into()),
        (Some(_), _, _) => return Err(MetadataError::AuthMethod.into()),
    };
    Ok(metadata.into_client(url.to_owned(), auth, now)?)
}

/// Reads the key set at the `jwks_uri` of a document.
///
/// # Errors
/// [`DocumentError`]
pub fn read_keys(fetched: &FetchedDocument<'_>) -> Result<JwkSet, DocumentError> {
    check_answer(fetched)?;
    Ok(JwkSet::parse(fetched.body).map_err(|_error| MetadataError::Keys)?)
}

fn check_answer(fetched: &FetchedDocument<'_>) -> Result<(), DocumentError> {
    if fetched.status != 200 {
        return Err(DocumentError::Status(fetched.status));
    }
    let media_type = fetched
        .content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    // Servers of static files send various types of JSON, and another type means that the URL is a page for people.
    let is_json =
        media_type == "application/json" || media_type.starts_with("application/") && media_type.ends_with("+json");
    if !is_json {
        return Err(DocumentError::ContentType);
    }
    if fetched.body.len() as u64 > MAX_BYTES {
        return Err(DocumentError::TooLarge);
    }
    Ok(())
}

/// Returns the time that an answer may be kept (RFC 9111): at most a day, an hour if the answer does not say, and none
/// with `no-store`, `no-cache` or `private`.
pub fn freshness(cache_control: Option<&str>) -> Duration {
    let directives = || {
        cache_control
            .unwrap_or_default()
            .split(',')
            .map(|each| each.trim().to_ascii_lowercase())
    };
    let named = |name: &str| directives().any(|each| each == name || each.starts_with(&format!("{name}=")));
    if ["no-store", "no-cache", "private"].into_iter().any(named) {
        return Duration::ZERO;
    }
    let seconds = |name: &str| {
        let value = directives().find_map(|each| each.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))?;
        // A number that is too large is a long time; any other text is no time at all (RFC 9111 section 4.2.1).
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        Some(if is_number {
            value.parse().unwrap_or(u64::MAX)
        } else {
            0
        })
    };
    let stated = seconds("s-maxage").or_else(|| seconds("max-age"));
    stated.map_or(DEFAULT_FRESHNESS, Duration::from_secs).min(MAX_FRESHNESS)
}

/// Documents or key sets by URL, up to a bound. The entry that ends first makes room.
#[derive(Clone, Debug)]
pub struct DocumentCache<T> {
    most: usize,
    entries: HashMap<String, (T, Timestamp)>,
}

impl<T> DocumentCache<T> {
    /// Creates a cache of at most `most` entries.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            entries: HashMap::new(),
        }
    }

    /// Returns the entry of a URL, unless its time is over.
    pub fn get(&self, url: &str, now: Timestamp) -> Option<&T> {
        let (value, until) = self.entries.get(url)?;
        (now < *until).then_some(value)
    }

    /// Keeps an entry as long as its answer allows.
    pub fn put(&mut self, url: &str, value: T, freshness: Duration, now: Timestamp) {
        // Ended entries make room first. The cache is small, so that a walk through it costs less than a fetch.
        self.entries.retain(|_, (_, until)| now < *until);
        self.entries.remove(url);
        // An answer that forbids caching is used for the request at hand and forgotten.
        if freshness.is_zero() || self.most == 0 {
            return;
        }
        if self.entries.len() >= self.most {
            let first = self.entries.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(first) = first.map(|(url, _)| url.clone()) {
                self.entries.remove(&first);
            }
        }
        self.entries.insert(url.to_owned(), (value, now.plus(freshness)));
    }

    /// Returns the entry of a URL to change, unless its time is over.
    pub fn get_mut(&mut self, url: &str, now: Timestamp) -> Option<&mut T> {
        let (value, until) = self.entries.get_mut(url)?;
        (now < *until).then_some(value)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
