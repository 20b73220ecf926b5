//! A TCP proxy that does what networks do.
//!
//! Invariant: bytes are passed on unchanged and in order, or the connection ends: a stream with a hole never goes on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A fault of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Everything passes.
    None,
    /// Every connection is cut, and new ones are cut when they are made.
    Cut,
    /// Connections stay, nothing passes in either direction until the fault ends.
    Stall,
    /// Requests reach the server, its answers are lost; such connections are cut when the fault ends.
    LoseAnswers,
    /// Requests are lost; such connections are cut when the fault ends.
    LoseRequests,
    /// Each piece is passed on after this delay.
    Delay(Duration),
}

/// The counters of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were made.
    pub connections: u64,
    /// Connections that were cut.
    pub cut: u64,
    /// Bytes from clients that were lost.
    pub lost_requests: u64,
    /// Bytes from the server that were lost.
    pub lost_answers: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    cut: AtomicU64,
    lost_requests: AtomicU64,
    lost_answers: AtomicU64,
}

/// A proxy between clients and one server, on a free port of this machine. Dropping it cuts every connection.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    counters: Arc<Counters>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens, and connects each client to `server`.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (fault, faults) = watch::channel(Fault::None);
        let counters: Arc<Counters> = Arc::default();
        let accepting = tokio::spawn(accept(listener, server, faults, Arc::clone(&counters)));
        Ok(Self {
            address,
            fault,
            counters,
            accepting,
        })
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on this happens, to connections that exist as well.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections: read(&self.counters.connections),
            cut: read(&self.counters.cut),
            lost_requests: read(&self.counters.lost_requests),
            lost_answers: read(&self.counters.lost_answers),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, faults: watch::Receiver<Fault>, counters: Arc<Counters>) {
    while let Ok((client, _)) = listener.accept().await {
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let (mut faults, counters) = (faults.clone(), Arc::clone(&counters));
        tokio::spawn(async move {
            if *faults.borrow_and_update() == Fault::Cut {
                counters.cut.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let Ok(upstream) = TcpStream::connect(server).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = upstream.into_split();
            let requests = Way {
                loses: Fault::LoseRequests,
                lost: &counters.lost_requests,
                faults: faults.clone(),
            };
            let answers = Way {
                loses: Fault::LoseAnswers,
                lost: &counters.lost_answers,
                faults: faults.clone(),
            };
            // Either direction's end is the connection's, and so is the end of the proxy.
            let cut = tokio::select! {
                cut = requests.pass(from_client, to_server) => cut,
                cut = answers.pass(from_server, to_client) => cut,
            };
            if cut {
                counters.cut.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// One direction of a connection.
struct Way<'a> {
    loses: Fault,
    lost: &'a AtomicU64,
    faults: watch::Receiver<Fault>,
}

impl Way<'_> {
    /// Passes bytes on until an end closes; whether the proxy cut it.
    async fn pass(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> bool {
        let mut buffer = vec![0; 64 << 10];
        let mut hole = false;
        loop {
            let fault = *self.faults.borrow_and_update();
            if fault == Fault::Cut || (hole && fault != self.loses) {
                return true;
            }
            let read = tokio::select! {
                // The change of the fault is checked first, so that no byte passes which the
                // fault must stop.
                biased;
                changed = self.faults.changed() => match changed {
                    Ok(()) => continue,
                    Err(_dropped) => return true,
                },
                read = from.read(&mut buffer), if fault != Fault::Stall => read,
            };
            let Ok(count @ 1..) = read else { return false };
            if let Fault::Delay(delay) = fault {
                tokio::time::sleep(delay).await;
            }
            if fault == self.loses {
                hole = true;
                self.lost.fetch_add(count as u64, Ordering::Relaxed);
            } else if to.write_all(&buffer[..count]).await.is_err() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each byte with itself.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn round(client: &mut TcpStream, byte: u8) -> io::Result<u8> {
        client.write_all(&[byte]).await?;
        client.read_u8().await
    }

    #[tokio::test]
    async fn a_cut_ends_connections_and_new_ones_pass_again_after_it() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(round(&mut client, 1).await.unwrap(), 1);
        proxy.set(Fault::Cut);
        assert!(round(&mut client, 2).await.is_err());
        let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(round(&mut refused, 3).await.is_err());
        proxy.set(Fault::None);
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(round(&mut client, 4).await.unwrap(), 4);
        assert!(proxy.counts().cut >= 2, "{:?}", proxy.counts());
    }

    #[tokio::test]
    async fn what_is_stalled_passes_after_the_fault() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(round(&mut client, 1).await.unwrap(), 1);
        proxy.set(Fault::Stall);
        client.write_all(&[2]).await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(50), client.read_u8()).await;
        assert!(early.is_err());
        proxy.set(Fault::None);
        assert_eq!(client.read_u8().await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_connection_that_lost_an_answer_is_cut_after_the_fault() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(round(&mut client, 1).await.unwrap(), 1);
        proxy.set(Fault::LoseAnswers);
        client.write_all(&[2]).await.unwrap();
        while proxy.counts().lost_answers == 0 {
            tokio::task::yield_now().await;
        }
        proxy.set(Fault::None);
        assert!(
            client.read_u8().await.is_err(),
            "the answer is gone, and what follows must not take its place"
        );
    }
}
