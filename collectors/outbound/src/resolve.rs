//! Names to addresses.
//!
//! Invariant: the answer of a resolver is only a proposal; the client checks every address of it.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Way to find the addresses of a name.
#[async_trait]
pub trait Resolver: Debug + Send + Sync {
    /// Returns every address of a name, which is in ASCII, in lower case and without a last dot.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // A last dot keeps the search list of the machine away: inside Kubernetes, `example.com` would otherwise be
        // tried as `example.com.default.svc.cluster.local` first. Names of one label are local and need the list.
        let whole = if name.contains('.') {
            format!("{name}.")
        } else {
            name.to_owned()
        };
        let found = tokio::net::lookup_host((whole, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
