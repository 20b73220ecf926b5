//! A proxy in front of a server that can lose answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The end of a simple query that commits.
const COMMIT: &[u8] = b"COMMIT\0";

/// Behaviour of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Passes a `COMMIT` on, waits for its answer, drops the answer and closes the connection.
    LoseCommit,
    /// Passes nothing on and keeps connections open. Connections of that time stay dead in any later mode.
    Silent,
    /// Passes everything on, with this delay for requests.
    Slow(Duration),
}

/// A running proxy. Its connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    lost: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy in front of `server`.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, watched) = watch::channel(Mode::Pass);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass(client, server, watched.clone(), Arc::clone(&counted)));
            }
        });
        Self {
            address,
            mode,
            lost,
            accepting,
        }
    }

    /// Returns the address that the proxy listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the behaviour from now on.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Returns the number of lost answers.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(mut client: TcpStream, server: SocketAddr, mut mode: watch::Receiver<Mode>, lost: Arc<AtomicU64>) {
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut loses = false;
    loop {
        if *mode.borrow_and_update() == Mode::Silent {
            // Both ends stay open as long as the proxy exists.
            std::future::pending::<()>().await;
        }
        let (passed, closed) = tokio::select! {
            changed = mode.changed() => (Ok(()), changed.is_err()),
            read = client.read(&mut asked) => {
                let count = read.unwrap_or(0);
                let commits = asked[..count].ends_with(COMMIT);
                loses |= commits && *mode.borrow() == Mode::LoseCommit;
                let slow = *mode.borrow();
                if let Mode::Slow(late) = slow {
                    tokio::time::sleep(late).await;
                }
                (server.write_all(&asked[..count]).await, count == 0)
            }
            read = server.read(&mut answered) => {
                let count = read.unwrap_or(0);
                if loses {
                    lost.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                (client.write_all(&answered[..count]).await, count == 0)
            }
        };
        if closed || passed.is_err() {
            return;
        }
    }
}
