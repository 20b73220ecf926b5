//! Turns at hosts: one request at a time to each, with a pause between two.
//!
//! Invariant: a host sees no more requests of a process than one for each pause, whatever the number of collectors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// Hosts that are remembered. Beyond it those that nobody waits for are forgotten.
const MAX_HOSTS: usize = 4_096;

type LastRequest = Arc<tokio::sync::Mutex<Option<Instant>>>;

/// Times of the last requests, by which hosts are taken in turns.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    last: Mutex<HashMap<String, LastRequest>>,
}

/// Turn at a host. The pause begins when it is dropped.
#[derive(Debug)]
pub(crate) struct HostTurn(OwnedMutexGuard<Option<Instant>>);

impl Hosts {
    /// Waits for the turn at a host.
    pub(crate) async fn turn(&self, host: &str, pause: Duration) -> HostTurn {
        let last = self.last(host);
        // The lock of tokio serves in the order of asking, so no collector starves at a busy host.
        let turn = last.lock_owned().await;
        if let Some(last) = *turn {
            tokio::time::sleep_until(last + pause).await;
        }
        HostTurn(turn)
    }

    fn last(&self, host: &str) -> LastRequest {
        let mut hosts = self.last.lock();
        if hosts.len() >= MAX_HOSTS {
            // A host that somebody waits for has a second owner. Forgotten, it would get two requests
            // at once.
            hosts.retain(|_, last| Arc::strong_count(last) > 1);
        }
        Arc::clone(hosts.entry(host.to_owned()).or_default())
    }
}

impl Drop for HostTurn {
    fn drop(&mut self) {
        *self.0 = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_to_one_host_are_apart_and_those_to_others_are_not() {
        let (hosts, pause) = (Hosts::default(), Duration::from_millis(20));
        let begun = Instant::now();
        for _ in 0..3 {
            drop(hosts.turn("a.example", pause).await);
        }
        assert!(begun.elapsed() >= pause * 2);
        let _held = hosts.turn("a.example", pause).await;
        let other = tokio::time::timeout(Duration::from_secs(9), hosts.turn("b.example", Duration::from_hours(1)));
        assert!(other.await.is_ok());
    }
}
