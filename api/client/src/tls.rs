//! TLS with the service and the object store: rustls with the system's certificate authorities.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the system's authorities, as they do for OpenSSL.

use std::error::Error as StdError;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// Messages of the resolvers of glibc, musl and macOS for a host that does not exist.
const NO_SUCH_HOST: [&str; 3] = [
    "Name or service not known",
    "Name does not resolve",
    "nodename nor servname provided",
];

/// Returns the configuration of connections, and a problem if no certificate authority is known.
pub(crate) fn config() -> Result<(ClientConfig, Option<String>), rustls::Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A system's store may contain certificates that rustls cannot parse, which are no reason to fail.
    roots.add_parsable_certificates(found.certs);
    let nobody = roots.is_empty().then(|| {
        let problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        format!(
            "no certificate authority is known: {}",
            if problems.is_empty() {
                "the system has none".to_owned()
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

/// The reason for which no further try of a request can succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hopeless {
    /// The certificate is not trusted.
    Distrust,
    /// Another reason, as a text for people.
    Other(String),
}

/// Returns the reason for which no retry of a failed request can succeed: the certificate, the protocol, or the host
/// name. Returns `None` if a retry may succeed.
pub(crate) fn hopeless(error: &reqwest::Error) -> Option<Hopeless> {
    let is_connect = error.is_connect();
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        // An `io::Error` displays its inner error as its own and leaves it out of the chain of sources.
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref());
        match tls.or_else(|| cause.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(_)) => return Some(Hopeless::Distrust),
            // TLS errors on an open connection may be a broken network, and those while connecting are not.
            Some(other) if is_connect => return Some(Hopeless::Other(format!("TLS cannot be agreed on: {other}"))),
            _ => {}
        }
        let problem = cause.to_string();
        // The resolver's error has no code, so its message is compared.
        if is_connect && NO_SUCH_HOST.iter().any(|message| problem.contains(message)) {
            return Some(Hopeless::Other(problem));
        }
        next = inner
            .map(|inner| inner as &(dyn StdError + 'static))
            .or_else(|| cause.source());
    }
    None
}
