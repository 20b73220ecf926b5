//! The TLS parameters in the URL of a `PostgreSQL` database.
//!
//! - `disable`: no TLS.
//! - `prefer`: TLS if the server has it, with any certificate; the default without `sslmode`.
//! - `require`: always TLS, with any certificate.
//! - `verify-ca`: the certificate is issued by an authority that the system or `sslrootcert` trusts.
//! - `verify-full`: as `verify-ca`, and it is for the host in the URL.
//!
//! Invariant: a URL that names trusted authorities is refused unless the server's certificate is verified, and the file
//! it names must exist. <https://www.postgresql.org/docs/current/libpq-ssl.html>

use std::fs;

use url::Url;

use crate::Error;

/// The names under which the driver knows a parameter.
const MODE: [&str; 2] = ["sslmode", "ssl-mode"];
const ROOTS: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
/// The modes that verify the certificate.
const VERIFYING: [&str; 2] = ["verify-ca", "verify-full"];
/// The first line of a certificate in a file (RFC 7468).
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Refuses a URL that looks safer than it is, and files that cannot be used.
pub(crate) fn check(url: &str) -> Result<(), Error> {
    let unusable = |reason: String| Error::Url { reason };
    let url = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
    let value = |names: &[&str]| {
        let mut pairs = url.query_pairs();
        // The driver takes the last of repeated parameters.
        let found = pairs.by_ref().filter(|(name, _)| names.contains(&&**name)).last();
        found.map(|(_, value)| value.into_owned())
    };
    // Without named authorities the driver's own rules for `sslmode` apply.
    let Some(roots) = value(&ROOTS) else { return Ok(()) };
    let mode = value(&MODE).unwrap_or_default().to_ascii_lowercase();
    if !VERIFYING.contains(&mode.as_str()) {
        return Err(unusable(
            "`sslrootcert` has an effect only with `sslmode=verify-ca` or `sslmode=verify-full`".to_owned(),
        ));
    }
    // The parameter may contain the certificates themselves.
    let text = if roots.contains(CERTIFICATE) {
        roots
    } else {
        fs::read_to_string(&roots).map_err(|error| unusable(format!("`sslrootcert`: `{roots}`: {error}")))?
    };
    if !text.contains(CERTIFICATE) {
        return Err(unusable("`sslrootcert` has no certificate in it".to_owned()));
    }
    Ok(())
}
