//! An S3 server for tests: objects in a folder, on a free port of loopback, with signatures checked and faults on
//! demand.
//!
//! It is `s3s-fs` behind real HTTP. Four things are added to it: a put-if-absent is decided under a lock (`s3s-fs`
//! looks before it writes, so of two that race both win), uploads compare the entity tags of their parts, list them and
//! are over once they are completed or given up, as those of S3, a read may name the entity tag that it wants, and
//! [`Faults`] go wrong when a test says so.
//!
//! Invariant: a server lives on a thread of its own and ends, with every connection, when it is dropped; its folder
//! stays, so that another server can go on with it.

mod backend;
mod caller;
mod connection;
mod faults;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use backend::Backend;
pub use caller::caller;
pub use faults::{Fault, Faults, Requests, Rule};

/// The one bucket.
pub const BUCKET: &str = "sluice-tests";
/// The region that signatures name.
pub const REGION: &str = "us-east-1";
/// Who may use the bucket.
pub const ACCESS_KEY: &str = "AKIDTESTS";
/// The secret of [`ACCESS_KEY`].
pub const SECRET_KEY: &str = "a-secret-for-tests-only";

/// What a server makes of `If-None-Match` on a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalPuts {
    /// Of those that put the same key, one succeeds.
    Atomic,
    /// The header is ignored, as some look-alikes of S3 do.
    Ignored,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    faults: Arc<Faults>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the folder `root`, which exists, on a free port of loopback.
    pub fn start(root: &Path) -> io::Result<Self> {
        Self::start_with(root, ConditionalPuts::Atomic, 0)
    }

    /// As [`Self::start`], with this treatment of conditional puts, on this port (0: a free one).
    pub fn start_with(root: &Path, puts: ConditionalPuts, port: u16) -> io::Result<Self> {
        std::fs::create_dir_all(root.join(BUCKET))?;
        let backend = Backend::new(root, puts)?;
        let faults = Arc::new(Faults::default());
        let (stop, stopped) = oneshot::channel();
        let (told, address) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("s3-server")
            .enable_all()
            .build()?;
        let serving = Arc::clone(&faults);
        let thread = std::thread::Builder::new()
            .name("s3-server".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    let bound = TcpListener::bind(("127.0.0.1", port)).await;
                    let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
                    let listener = match bound {
                        Ok((address, listener)) => {
                            drop(told.send(Ok(address)));
                            listener
                        }
                        Err(error) => return drop(told.send(Err(error))),
                    };
                    let mut service = S3ServiceBuilder::new(backend);
                    service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
                    tokio::select! {
                        () = connection::serve(listener, service.build(), serving) => {}
                        _ = stopped => {}
                    }
                });
                runtime.shutdown_background();
            })?;
        let address = address.recv().map_err(io::Error::other)??;
        Ok(Self {
            address,
            faults,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients, such as `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What goes wrong, and what was asked.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
