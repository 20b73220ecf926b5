//! Signals of the operating system that ask the process to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receiver of SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Registers the handlers. From then on the signals no longer end the process by themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            // SIGTERM comes from a supervisor, SIGINT from Ctrl-C.
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next of the signals.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
