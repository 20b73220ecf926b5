//! What the URL of a `PostgreSQL` database says of TLS.
//!
//! ```text
//!  disable       none
//!  prefer        where the server has it, whoever it is; what a URL without `sslmode` asks for
//!  require       always, whoever it is
//!  verify-ca     the server's certificate is issued by somebody whom the system or `sslrootcert` trusts
//!  verify-full   and is for the host that the URL names
//! ```
//!
//! Invariant: a URL that says whom to trust is never used without asking who is there, and a file that it names is there.
//! <https://www.postgresql.org/docs/current/libpq-ssl.html>

use std::fs;

use url::Url;

use crate::Error;

/// The names that the driver knows a parameter by.
const MODE: [&str; 2] = ["sslmode", "ssl-mode"];
const ROOTS: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
/// The modes that ask who is there.
const VERIFYING: [&str; 2] = ["verify-ca", "verify-full"];
/// What begins a certificate in a file (RFC 7468).
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Refuses what would be trusted less than it looks, and files that cannot be used.
pub(crate) fn check(url: &str) -> Result<(), Error> {
    let unusable = |reason: String| Error::Url { reason };
    let url = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
    let value = |names: &[&str]| {
        let mut pairs = url.query_pairs();
        // Of one that comes twice the driver takes the last.
        let found = pairs.by_ref().filter(|(name, _)| names.contains(&&**name)).last();
        found.map(|(_, value)| value.into_owned())
    };
    let Some(roots) = value(&ROOTS) else { return Ok(()) };
    let mode = value(&MODE).unwrap_or_default().to_ascii_lowercase();
    if !VERIFYING.contains(&mode.as_str()) {
        return Err(unusable(
            "`sslrootcert` says whom to trust, which only `sslmode=verify-ca` and `sslmode=verify-full` ask".to_owned(),
        ));
    }
    // The certificates themselves are possible, too.
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
