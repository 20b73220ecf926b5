//! Section `collectors`: the sources of public facts.

use std::num::NonZeroUsize;

use serde::Deserialize;

use types::HumanDuration;

/// Section `collectors`: the sources of public facts.
#[derive(Clone, Debug, Deserialize)]
pub struct Collectors {
    /// Names of sources that come with the service, `all`, and paths of files, separated by commas.
    pub sources: String,
    /// The address of the service that records are submitted to. Empty means this process or `server.public_url`.
    pub server: String,
    /// The address that the owner of a source can ask. Empty means `server.public_url`.
    pub contact: String,
    /// The pause between two requests to a host.
    pub pause: HumanDuration,
    /// The most runs at a time.
    pub at_once: NonZeroUsize,
    /// The interval at which due sources are looked for.
    pub every: HumanDuration,
    /// The time for which a run is leased.
    pub lease: HumanDuration,
}
