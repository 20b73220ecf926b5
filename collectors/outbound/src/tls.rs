//! TLS of the client: rustls with the system's certificate authorities, or with given ones.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::{Error, Roots};

/// Returns the connector, which offers HTTP/1.1 only.
pub(crate) fn connector(roots: &Roots) -> Result<TlsConnector, Error> {
    let mut store = RootCertStore::empty();
    match roots {
        // A system's store may contain certificates that rustls cannot parse, which are no reason to fail. Without any
        // the client still starts, and no certificate is trusted.
        Roots::System => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::Pem(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| Error::Options(error.to_string()))?;
                store
                    .add(certificate)
                    .map_err(|error| Error::Options(error.to_string()))?;
            }
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Options(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    // HTTP/2 would bring streams, compressed headers and pushes, each with limits of its own.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
