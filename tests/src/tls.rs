//! What stands in front of a service: TLS to the outside, and what came in passed on.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use store::testing::Authority;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A proxy that ends TLS; it ends with this value.
#[derive(Debug)]
pub struct Front {
    port: u16,
    accepting: JoinHandle<()>,
}

impl Front {
    /// Starts a proxy in front of `server`, with a certificate of the authority's for `localhost`.
    pub async fn start(authority: &Authority, server: SocketAddr) -> Self {
        let (certificate, key) = authority.certificate();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // Who does not trust the certificate hangs up, which is no matter of the proxy's.
                    let mut client = acceptor.accept(client).await?;
                    let mut server = TcpStream::connect(server).await?;
                    tokio::io::copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        Self { port, accepting }
    }

    /// `https://localhost:port`.
    pub fn base(&self) -> String {
        format!("https://localhost:{}", self.port)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
