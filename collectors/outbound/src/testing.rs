//! Parts for tests: names that resolve as a test wants, connections that all lead to one place, and a TLS server.
//!
//! Invariant: every server listens on the loopback interface.
#![expect(clippy::unwrap_used, reason = "servers of tests")]

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::{Dialer, Resolver};

/// Names with their addresses. A name with several answers gives the next one each time, and the last for ever.
#[derive(Debug, Default)]
pub struct Names {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    /// Adds an answer of a name: addresses separated by commas, or none.
    #[must_use]
    pub fn with(mut self, name: &str, addresses: &str) -> Self {
        let addresses = addresses
            .split(',')
            .map(str::trim)
            .filter(|address| !address.is_empty());
        self.answers
            .entry(name.to_owned())
            .or_default()
            .push(addresses.map(|address| address.parse().unwrap()).collect());
        self
    }

    /// Returns the names that were resolved, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let earlier = asked.iter().filter(|earlier| *earlier == name).count();
        asked.push(name.to_owned());
        let answers = self.answers.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(answers[earlier.min(answers.len() - 1)].clone())
    }
}

/// A dialer that leads every connection to one server, and keeps the addresses that were asked for.
#[derive(Debug)]
pub struct Toward {
    server: SocketAddr,
    dialed: Mutex<Vec<SocketAddr>>,
}

impl Toward {
    /// Creates a dialer toward this server.
    pub const fn new(server: SocketAddr) -> Self {
        Self {
            server,
            dialed: Mutex::new(Vec::new()),
        }
    }

    /// Returns the addresses that were dialed, in order.
    pub fn dialed(&self) -> Vec<SocketAddr> {
        self.dialed.lock().unwrap().clone()
    }
}

#[async_trait]
impl Dialer for Toward {
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.dialed.lock().unwrap().push(address);
        TcpStream::connect(self.server).await
    }
}

/// Answer of a test server, as the bytes that it sends.
#[derive(Clone, Debug)]
pub struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Clone, Debug)]
enum Then {
    Close,
    Stall,
    Repeat(Vec<u8>),
}

impl Reply {
    /// Sends these bytes and closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            then: Then::Close,
        }
    }

    /// Sends an answer with its length. `head` is the status with more header lines, such as `200 OK\r\nETag: "a"`.
    pub fn new(head: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body);
        Self::raw(bytes)
    }

    /// Sends nothing more and keeps the connection open.
    #[must_use]
    pub fn then_stall(self) -> Self {
        Self {
            then: Then::Stall,
            ..self
        }
    }

    /// Sends these bytes again and again, until the client leaves.
    #[must_use]
    pub fn then_repeat(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            then: Then::Repeat(bytes.into()),
            ..self
        }
    }
}

/// A server that answers each request from a function of its head. It ends with this value.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts a server with TLS, whose certificate has these names.
    pub async fn with_tls(
        authority: &Authority,
        names: &[&str],
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::listen("127.0.0.1:0", Some(authority.acceptor(names)), answer).await
    }

    /// Starts a server of plain HTTP on this address.
    pub async fn plain(on: &str, answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(on, None, answer).await
    }

    async fn listen(
        on: &str,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(on).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (count, keep, answer) = (Arc::clone(&accepted), Arc::clone(&heads), Arc::new(answer));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (tls, keep, answer) = (tls.clone(), Arc::clone(&keep), Arc::clone(&answer));
                // A client that hangs up is no matter of the server's.
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => serve(tls.accept(stream).await?, &keep, &*answer).await,
                        None => serve(stream, &keep, &*answer).await,
                    }
                });
            }
        });
        Self {
            address,
            accepted,
            heads,
            accepting,
        }
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of connections that were accepted.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Returns the heads of the requests, in order.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    keep: &Mutex<Vec<String>>,
    answer: &(impl Fn(&str) -> Reply + Send + Sync),
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
        // A server of plain HTTP hangs up on a client that begins TLS.
        if head == [22] {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    keep.lock().unwrap().push(head.clone());
    let reply = answer(&head);
    stream.write_all(&reply.bytes).await?;
    stream.flush().await?;
    match reply.then {
        Then::Close => stream.shutdown().await,
        // Returns when the client leaves.
        Then::Stall => stream.read_u8().await.map(|_byte| ()),
        Then::Repeat(bytes) => loop {
            stream.write_all(&bytes).await?;
        },
    }
}

/// A certificate authority.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Default for Authority {
    fn default() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }
}

impl Authority {
    /// Returns the certificate of the authority (PEM).
    pub fn pem(&self) -> String {
        self.pem.clone()
    }

    fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
