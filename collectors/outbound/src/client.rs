//! The client: one connection for each request, to an address that was checked for it.
//!
//! Invariants:
//! - [`OutboundClient::connect`] is the only place that opens a connection. It gets its addresses from [`OutboundClient::addresses`],
//!   which fails unless every address of the host may be reached.
//! - One deadline holds for the whole exchange, and nothing is kept between exchanges.

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::dial::{Dialer, SystemDialer};
use crate::target::Target;
use crate::{ClientOptions, Error, GetRequest, RequestLimits, Resolver, SystemResolver, is_public, tls};

/// Most addresses of a host that are tried. All of them are checked.
const TRIED_ADDRESSES: usize = 4;
/// Most header fields of an answer.
const MAX_FIELDS: usize = 100;
/// Smallest buffer that hyper reads into.
const SMALLEST_BUFFER: usize = 8_192;

/// A byte stream to a server, with TLS or without.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Client for URLs that strangers name. Cheap to clone.
#[derive(Clone)]
pub struct OutboundClient {
    options: Arc<ClientOptions>,
    user_agent: HeaderValue,
    tls: TlsConnector,
    resolver: Arc<dyn Resolver>,
    dialer: Arc<dyn Dialer>,
}

impl fmt::Debug for OutboundClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.options)
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}

impl OutboundClient {
    /// Creates a client that resolves names as the operating system does.
    ///
    /// # Errors
    /// [`Error::Options`] if the contact cannot be part of a header, or a certificate is not valid.
    pub fn new(options: ClientOptions) -> Result<Self, Error> {
        let user_agent = HeaderValue::from_str(&format!("Sluice (+{})", options.contact))
            .map_err(|_error| Error::Options("the contact is no value of a header".to_owned()))?;
        Ok(Self {
            user_agent,
            tls: tls::connector(&options.roots)?,
            options: Arc::new(options),
            resolver: Arc::new(SystemResolver),
            dialer: Arc::new(SystemDialer),
        })
    }

    /// Returns the client with another resolver.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Returns the client with another way to open connections. Addresses are checked before it is called.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_dialer(self, dialer: Arc<dyn Dialer>) -> Self {
        Self { dialer, ..self }
    }

    /// Sends a request, follows its redirects as far as it allows, and returns the answer once its headers are here.
    /// The status can be any other than a redirect.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, request: &GetRequest<'_>) -> Result<OutboundAnswer, Error> {
        let limits = request.limits;
        let deadline = Instant::now() + limits.whole;
        let mut target = Target::parse(request.url, None, &self.options)?;
        let first = target.url.origin();
        // The deadline holds for all redirects together, so that a chain of slow servers costs no more than one.
        for followed in 0..=limits.redirects {
            // Validators belong to the server that gave them.
            let with_validators = target.url.origin() == first;
            match self.step(request, &target, with_validators, deadline).await? {
                RedirectStep::Answer(answer) => return Ok(*answer),
                RedirectStep::Redirect(_) if followed == limits.redirects => break,
                RedirectStep::Redirect(next) => target = Target::parse(next.as_str(), None, &self.options)?,
            }
        }
        Err(Error::Redirects {
            host: target.host,
            limit: limits.redirects,
        })
    }

    /// Sends a request and follows no redirect: the caller decides on the next server before it is asked. The limit of
    /// redirects is not read.
    ///
    /// # Errors
    /// [`Error`]; [`Error::RedirectTarget`] if the server redirects to a URL that no request may have.
    pub async fn get_step(&self, request: &GetRequest<'_>) -> Result<RedirectStep, Error> {
        let deadline = Instant::now() + request.limits.whole;
        let target = Target::parse(request.url, None, &self.options)?;
        self.step(request, &target, true, deadline).await
    }

    async fn step(
        &self,
        request: &GetRequest<'_>,
        target: &Target,
        with_validators: bool,
        deadline: Instant,
    ) -> Result<RedirectStep, Error> {
        let head = self.head(request, target, with_validators)?;
        let mut is_unsent = true;
        let exchange = self.exchange(head, target, request.limits, deadline, &mut is_unsent);
        let answer = within(deadline, &target.host, exchange).await??;
        if !is_redirect(answer.status) {
            return Ok(RedirectStep::Answer(Box::new(answer)));
        }
        let host = || target.host.clone();
        // The body of a redirect is not read, and its connection ends here.
        let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| Error::Protocol { host: host() })?;
        let next = Target::parse(location, Some(&target.url), &self.options);
        let next = next.map_err(|refusal| Error::RedirectTarget { host: host(), refusal })?;
        Ok(RedirectStep::Redirect(next.url))
    }

    /// Sends JSON by POST and returns the answer once its headers are here. A redirect is an error and is not followed.
    /// For servers that an administrator names.
    ///
    /// # Errors
    /// [`NotPosted`], which tells if the request can have arrived.
    pub async fn post_json(&self, url: &str, body: Bytes, limits: RequestLimits) -> Result<OutboundAnswer, NotPosted> {
        self.post_json_with_key(url, body, limits, None).await
    }

    /// Sends JSON as [`post_json`](Self::post_json) does, with a key as `Authorization: Bearer` (RFC 6750).
    ///
    /// # Errors
    /// [`NotPosted`], which tells if the request can have arrived.
    pub async fn post_json_with_key(
        &self,
        url: &str,
        body: Bytes,
        limits: RequestLimits,
        key: Option<&str>,
    ) -> Result<OutboundAnswer, NotPosted> {
        let mut is_unsent = true;
        let posted = self.post(url, body, limits, key, &mut is_unsent).await;
        posted.map_err(|error| NotPosted { error, is_unsent })
    }

    async fn post(
        &self,
        url: &str,
        body: Bytes,
        limits: RequestLimits,
        key: Option<&str>,
        is_unsent: &mut bool,
    ) -> Result<OutboundAnswer, Error> {
        let deadline = Instant::now() + limits.whole;
        let target = Target::parse(url, None, &self.options)?;
        let json = "application/json";
        let request = GetRequest {
            accept: Some(json),
            ..GetRequest::new(url, limits)
        };
        let mut head = self.head(&request, &target, false)?;
        *head.method_mut() = Method::POST;
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            let mut value = value.map_err(|_error| Error::Header("Authorization"))?;
            value.set_sensitive(true);
            head.headers_mut().insert(AUTHORIZATION, value);
        }
        head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(json));
        *head.body_mut() = Full::new(body);
        let exchange = self.exchange(head, &target, limits, deadline, is_unsent);
        let answer = within(deadline, &target.host, exchange).await??;
        if is_redirect(answer.status) {
            let (host, limit) = (target.host, 0);
            return Err(Error::Redirects { host, limit });
        }
        Ok(answer)
    }

    /// Returns the head of the request.
    fn head(
        &self,
        request: &GetRequest<'_>,
        target: &Target,
        with_validators: bool,
    ) -> Result<http::Request<Full<Bytes>>, Error> {
        let mut head = http::Request::new(Full::default());
        *head.uri_mut() = target.path().parse().map_err(|_error| crate::UrlRefusal::Syntax)?;
        let headers = head.headers_mut();
        set(headers, HOST, "Host", Some(target.authority()))?;
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        set(headers, ACCEPT, "Accept", request.accept.or(Some("*/*")))?;
        if with_validators {
            set(headers, IF_NONE_MATCH, "If-None-Match", request.if_none_match)?;
            set(
                headers,
                IF_MODIFIED_SINCE,
                "If-Modified-Since",
                request.if_modified_since,
            )?;
        }
        Ok(head)
    }

    /// Sends one request over a connection of its own.
    async fn exchange(
        &self,
        head: http::Request<Full<Bytes>>,
        target: &Target,
        limits: RequestLimits,
        deadline: Instant,
        is_unsent: &mut bool,
    ) -> Result<OutboundAnswer, Error> {
        // Resolving a name is part of the time to connect: a slow name server is a slow server.
        let by = deadline.min(Instant::now() + limits.connect);
        let stream = within(by, &target.host, self.connect(target, by)).await??;
        let failed = |error| failure(error, &target.host, limits.headers);
        let (mut sender, connection) = http1::Builder::new()
            .max_header_size(limits.headers)
            .max_buf_size(limits.headers.max(SMALLEST_BUFFER))
            .max_headers(MAX_FIELDS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        // The error of the connection is also that of the request or of the body.
        let connection = AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }));
        *is_unsent = false;
        let (parts, body) = sender.send_request(head).await.map_err(failed)?.into_parts();
        let answer = OutboundAnswer {
            status: parts.status,
            headers: parts.headers,
            url: target.url.clone(),
            host: target.host.clone(),
            body,
            limits,
            received: 0,
            deadline,
            _connection: connection,
        };
        answer.check_head()?;
        Ok(answer)
    }

    /// Opens a connection to one of the checked addresses of the target.
    async fn connect(&self, target: &Target, by: Instant) -> Result<Box<dyn ByteStream>, Error> {
        let host = || target.host.clone();
        let addresses = self.addresses(target).await?;
        let tried = addresses.len().min(TRIED_ADDRESSES);
        let mut last = None;
        for (at, address) in addresses.into_iter().take(tried).enumerate() {
            // An address that swallows packets leaves an equal share of the time to the others.
            let now = Instant::now();
            let left = u32::try_from(tried - at).unwrap_or(u32::MAX);
            let until = now + by.saturating_duration_since(now) / left;
            match timeout_at(until, self.dialer.dial(SocketAddr::new(address, target.port))).await {
                // A server that is reached and not trusted is the answer: another address is the same server.
                Ok(Ok(stream)) if target.is_tls => {
                    let tls = |cause| Error::Tls { host: host(), cause };
                    let name = target.host.trim_start_matches('[').trim_end_matches(']').to_owned();
                    let name = ServerName::try_from(name).map_err(|error| tls(std::io::Error::other(error)))?;
                    return Ok(Box::new(self.tls.connect(name, stream).await.map_err(tls)?));
                }
                Ok(Ok(stream)) => return Ok(Box::new(stream)),
                Ok(Err(cause)) => last = Some(cause),
                Err(_elapsed) => {}
            }
        }
        Err(last.map_or_else(
            || Error::Timeout { host: host() },
            |cause| Error::Unreachable {
                host: host(),
                cause: cause.into(),
            },
        ))
    }

    /// Returns the addresses of the target, each of which was checked.
    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Error> {
        let host = || target.host.clone();
        let addresses = if let Some(address) = target.address {
            vec![address]
        } else {
            let found = self.resolver.resolve(&target.host).await;
            found.map_err(|cause| Error::Unresolved {
                host: host(),
                cause: Some(cause),
            })?
        };
        if addresses.is_empty() {
            return Err(Error::Unresolved {
                host: host(),
                cause: None,
            });
        }
        // A name with one private address is refused as a whole: a public name has none.
        if !self.options.allow_private && !addresses.iter().copied().all(is_public) {
            return Err(Error::NotPublic { host: host() });
        }
        Ok(addresses)
    }
}

/// A request by POST without an answer.
#[derive(Debug)]
pub struct NotPosted {
    /// The error.
    pub error: Error,
    /// True if nothing was sent to the server.
    pub is_unsent: bool,
}

/// Answer of one server, or the address that it redirects to.
#[derive(Debug)]
pub enum RedirectStep {
    /// An answer with any status other than a redirect.
    Answer(Box<OutboundAnswer>),
    /// The URL of a redirect. It has passed the checks that need no network.
    Redirect(Url),
}

/// An answer whose headers are here and whose body may still be on its way. Dropping it ends the connection.
#[derive(Debug)]
pub struct OutboundAnswer {
    /// Status of the answer.
    pub status: StatusCode,
    /// Headers of the answer.
    pub headers: HeaderMap,
    /// URL that answered, after redirects.
    pub url: Url,
    host: String,
    body: Incoming,
    limits: RequestLimits,
    received: u64,
    deadline: Instant,
    _connection: AbortOnDropHandle<()>,
}

impl OutboundAnswer {
    /// Refuses an answer whose headers promise a body that would be refused.
    fn check_head(&self) -> Result<(), Error> {
        let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if !self.headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
            return Err(Error::Compressed {
                host: self.host.clone(),
            });
        }
        let length = self.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        // A length that is a lie is found while the body is read.
        match length.and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if length > self.limits.body => Err(self.too_large()),
            _ => Ok(()),
        }
    }

    fn too_large(&self) -> Error {
        Error::TooLarge {
            host: self.host.clone(),
            limit: self.limits.body,
        }
    }

    /// Returns the next bytes of the body, or `None` after the last.
    ///
    /// # Errors
    /// [`Error::TooLarge`] with the first byte beyond the limit, [`Error::Timeout`] at the end of the time, and
    /// [`Error::Unreachable`] or [`Error::Protocol`] if the body ends too early.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = within(self.deadline, &self.host, self.body.frame()).await?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| failure(error, &self.host, self.limits.headers))?;
            // Trailers are no part of the body; hyper bounds them like headers.
            let Ok(data) = frame.into_data() else { continue };
            self.received = self.received.saturating_add(data.len() as u64);
            if self.received > self.limits.body {
                return Err(self.too_large());
            }
            return Ok(Some(data));
        }
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        // It grows with what arrives: the promised length is at most a hint.
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.into())
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn set(headers: &mut HeaderMap, name: HeaderName, label: &'static str, value: Option<&str>) -> Result<(), Error> {
    if let Some(value) = value {
        let value = HeaderValue::from_str(value).map_err(|_error| Error::Header(label))?;
        headers.insert(name, value);
    }
    Ok(())
}

/// Waits until the deadline at most.
async fn within<T>(deadline: Instant, host: &str, future: impl Future<Output = T>) -> Result<T, Error> {
    let waited = timeout_at(deadline, future).await;
    waited.map_err(|_elapsed| Error::Timeout { host: host.to_owned() })
}

/// Converts an error of HTTP.
fn failure(error: hyper::Error, host: &str, limit: usize) -> Error {
    let host = host.to_owned();
    if error.is_parse_too_large() {
        Error::Headers { host, limit }
    } else if error.is_parse() {
        Error::Protocol { host }
    } else {
        Error::Unreachable {
            host,
            cause: error.into(),
        }
    }
}
