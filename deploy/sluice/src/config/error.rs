//! The errors of a configuration.
//!
//! Invariant: an error names the key, and shows no value of a secret one.

use config::ConfigError;

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A source cannot be read, or a value has the wrong type.
    #[error("the configuration is not valid")]
    Invalid(#[from] ConfigError),
    /// A source has a key that does not exist.
    #[error("`{key}` is not a key of the configuration; `sluice config --show` lists them all")]
    UnknownKey {
        /// The key, with its section.
        key: String,
    },
    /// A duration is zero, or has a fraction of its unit.
    #[error("`{key}` must be a whole number of {unit}, at least one")]
    Fraction {
        /// The key, with its section.
        key: &'static str,
        /// The unit: seconds or hours.
        unit: &'static str,
    },
    /// A duration is shorter than one millisecond.
    #[error("`{key}` must be at least one millisecond")]
    Instant {
        /// The key, with its section.
        key: &'static str,
    },
    /// A value is below its lower bound.
    #[error("`{key}` must be at least {least}")]
    TooSmall {
        /// The key, with its section.
        key: &'static str,
        /// The lower bound, as text.
        least: &'static str,
    },
    /// A value is above its upper bound.
    #[error("`{key}` must be at most {most}")]
    TooLarge {
        /// The key, with its section.
        key: &'static str,
        /// The upper bound, as text.
        most: String,
    },
    /// A value is larger than that of the key that bounds it.
    #[error("`{key}` must not be more than `{most}`")]
    Beyond {
        /// The key, with its section.
        key: &'static str,
        /// The key that is the upper bound.
        most: &'static str,
    },
    /// A value is not an address of a service.
    #[error("`{key}` must begin with http:// or https:// and a host, and have no query")]
    Address {
        /// The key, with its section.
        key: &'static str,
    },
    /// A value is not an address of mail.
    #[error("`{key}` must be one address of mail, such as admin@example.org, or empty")]
    Mailbox {
        /// The key, with its section.
        key: &'static str,
    },
    /// A key needs another one that is not set.
    #[error("`{key}` needs `{other}`, which is not set")]
    Alone {
        /// The key, with its section.
        key: &'static str,
        /// Key that is needed but not set.
        other: &'static str,
    },
    /// A key of a provider would be sent without TLS over a public network.
    #[error("`{key}` must begin with https://, since its host is not of this machine or a private network")]
    Plain {
        /// The key, with its section.
        key: &'static str,
    },
    /// A setting for tests is on in a service that others reach.
    #[error("`{key}` is for tests and development, and `server.public_url` is public")]
    Public {
        /// The key, with its section.
        key: &'static str,
    },
    /// A variable of a crash test names something that does not exist.
    #[cfg(feature = "faults")]
    #[error("{0}")]
    Fault(String),
}
