//! Definitions that come with the service.
//!
//! Invariant: each is written from the documentation of its publisher and was never tried against the live source, which
//! its own text says.

macro_rules! bundled {
    ($($name:literal)*) => {
        /// Definitions that come with the service: name and text.
        pub const BUNDLED: &[(&str, &str)] = &[$(($name, include_str!(concat!("../sources/", $name, ".toml")))),*];
    };
}

bundled! {
    "ecb-reference-rates"
    "github-status-incidents"
    "iana-http-status-codes"
    "iso-market-identifiers"
    "osv-pypi-advisories"
    "packagist-releases"
    "python-end-of-life"
    "tz-database-releases"
    "usgs-earthquakes"
}

/// Definition of a source that is a file, and that file: each with its name. The quickstart writes both.
pub const SAMPLE: [(&str, &str); 2] = [
    (
        "unicode-versions.toml",
        include_str!("../sources/sample/unicode-versions.toml"),
    ),
    (
        "unicode-versions.csv",
        include_str!("../sources/sample/unicode-versions.csv"),
    ),
];
