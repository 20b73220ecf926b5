//! Whoever uses the addresses that are given out.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "only tests use it")]

use std::sync::Arc;
use std::time::Duration;

use reqwest::ClientBuilder;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// A client for addresses of the loopback, which uses no proxy and trusts nobody's certificate.
///
/// Why not `reqwest::Client::new`: it knows no cryptography here, and ends the process for it.
pub fn caller() -> ClientBuilder {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    ClientBuilder::new()
        .no_proxy()
        // Less than the service keeps one, which would close it just as the next call is sent. One that was opened and never
        // used is closed after 10 s.
        .pool_idle_timeout(Duration::from_secs(5))
        .tls_backend_preconfigured(config)
}
