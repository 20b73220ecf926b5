//! TCP connections to addresses that were checked.
//!
//! Invariant: nothing here resolves a name.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::net::TcpStream;

/// Way to open a connection. The product uses that of the operating system; tests lead every
/// connection to a server of theirs.
#[async_trait]
pub trait Dialer: Debug + Send + Sync {
    /// Connects to exactly this address.
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

/// Connections of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemDialer;

#[async_trait]
impl Dialer for SystemDialer {
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        // An address and not a name: a name would be resolved once more, after the check, and may lead
        // elsewhere by then.
        TcpStream::connect(address).await
    }
}
