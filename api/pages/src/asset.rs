//! Files that pages link to.
//!
//! Invariant: the address of a file contains the hash of all files, so a browser may keep it for ever.

/// Header `Content-Security-Policy` of every page. No script and no style stands in a page, and no other site may frame
/// one.
// Everything that is not named is forbidden by `default-src`, so a kind of content that browsers add
// later is not allowed by oversight. `base-uri` and `form-action` are not covered by it and are named
// themselves.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Hash of all files, 16 hexadecimal digits.
const ASSETS_HASH: &str = env!("ASSETS_HASH");

/// File that pages link to.
#[derive(Clone, Copy, Debug)]
pub struct PageAsset {
    /// Bytes of the file.
    pub bytes: &'static [u8],
    /// Value of the header `Content-Type`.
    pub media_type: &'static str,
}

/// Returns the file at a path of this version, such as `/assets/0123456789abcdef/sluice.css`. Its answer may be cached for
/// ever.
pub fn asset(path: &str) -> Option<PageAsset> {
    // A page of another version asks for another hash. Serving it today's file under that address would
    // put the wrong bytes into caches for ever.
    let name = path
        .strip_prefix("/assets/")?
        .strip_prefix(ASSETS_HASH)?
        .strip_prefix('/')?;
    let (bytes, media_type): (&'static [u8], _) = match name {
        // Names are listed and not looked up in a folder, so no path can lead out of it.
        "sluice.css" => (include_bytes!("../assets/sluice.css"), "text/css; charset=utf-8"),
        "sluice.js" => (include_bytes!("../assets/sluice.js"), "text/javascript; charset=utf-8"),
        "wallet.js" => (include_bytes!("../assets/wallet.js"), "text/javascript; charset=utf-8"),
        "publish.js" => (include_bytes!("../assets/publish.js"), "text/javascript; charset=utf-8"),
        "mark.svg" => (include_bytes!("../assets/mark.svg"), "image/svg+xml"),
        "atkinson-next-latin.woff2" => (include_bytes!("../assets/atkinson-next-latin.woff2"), "font/woff2"),
        "atkinson-next-latin-ext.woff2" => (include_bytes!("../assets/atkinson-next-latin-ext.woff2"), "font/woff2"),
        _ => return None,
    };
    Some(PageAsset { bytes, media_type })
}

/// Returns the path of a file by its name.
pub(crate) fn path(name: &str) -> String {
    format!("/assets/{ASSETS_HASH}/{name}")
}
