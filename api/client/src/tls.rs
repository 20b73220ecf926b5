//! TLS with the service and with the store that keeps its parts: rustls, and whom the system trusts.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` name other authorities than the system's, as they do for OpenSSL.

use std::error::Error as StdError;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// What connections are made with, and why nobody is trusted where that is so.
pub(crate) fn config() -> Result<(ClientConfig, Option<String>), rustls::Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    let nobody = roots.is_empty().then(|| {
        let problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        format!(
            "no certificate authority is known: {}",
            if problems.is_empty() {
                "the system names none".to_owned()
            } else {
                problems.join("; ")
            }
        )
    });
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((config, nobody))
}

/// Whether a request was not sent because the other side did not prove who it is, which no other try changes.
pub(crate) fn is_distrust(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        // Why: an `io::Error` shows what its own cause says as its own, and leaves it out of the chain.
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref());
        if let Some(rustls::Error::InvalidCertificate(_)) = tls.or_else(|| cause.downcast_ref()) {
            return true;
        }
        next = inner
            .map(|inner| inner as &(dyn StdError + 'static))
            .or_else(|| cause.source());
    }
    false
}
