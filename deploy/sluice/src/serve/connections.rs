//! Places for connections: how many there are, how many one address may have, and who gives way.
//!
//! Invariants:
//! - A connection that waits for the service never gives way, only one that keeps the service waiting.
//! - While all places are taken, an address gives way sooner to one that has fewer.
//! - A place is free again once its connection has ended or was told to give way.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use api::state::limit::LimitSource;
use hyper::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use types::metric;

use crate::config;

/// Time for which a connection may be without a request, or stand still within one, and keeps its place.
const IDLE_BEFORE_GIVING_WAY: Duration = Duration::from_secs(1);
const STALLED_BEFORE_GIVING_WAY: Duration = Duration::from_secs(5);
/// Interval at which a connection without a place looks for one that can give way. Nothing else is accepted meanwhile, so
/// it bounds how fast the queue of the operating system empties.
const GIVE_WAY_INTERVAL: Duration = Duration::from_millis(5);
/// Places that an address must have more than another to give way to it sooner.
const RICHER_BY: usize = 2;
/// Value of a time that did not begin.
const NOT_BEGUN: u64 = 0;

/// State of the peer of a connection. Times are milliseconds since the start of the server.
#[derive(Debug)]
pub(super) struct PeerState {
    epoch: Instant,
    /// Start of the wait for the head of a request; [`NOT_BEGUN`] while a request is under way.
    idle_since: AtomicU64,
    /// Start of the wait for more of a body, or until more of an answer is taken; [`NOT_BEGUN`] while there is no such wait.
    stalled_since: AtomicU64,
    has_requested: AtomicBool,
    eviction: Notify,
}

impl PeerState {
    pub(super) fn new(epoch: Instant) -> Self {
        let peer = Self {
            epoch,
            idle_since: AtomicU64::new(NOT_BEGUN),
            stalled_since: AtomicU64::new(NOT_BEGUN),
            has_requested: AtomicBool::new(false),
            eviction: Notify::new(),
        };
        peer.idle_since.store(peer.now(), Ordering::Relaxed);
        peer
    }

    fn now(&self) -> u64 {
        // No time is 0, which stands for none.
        u64::try_from(self.epoch.elapsed().as_millis()).map_or(u64::MAX, |millis| millis + 1)
    }

    /// Notes that the head of a request is here. The request ends with the value.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.has_requested.store(true, Ordering::Relaxed);
        self.idle_since.store(NOT_BEGUN, Ordering::Relaxed);
        ActiveRequest(Arc::clone(self))
    }

    /// Returns true if there was a request.
    pub(super) fn has_requested(&self) -> bool {
        self.has_requested.load(Ordering::Relaxed)
    }

    /// Notes if the peer stands still within a request.
    pub(super) fn stalls(&self, does: bool) {
        // Most calls change nothing. The clock is read only for the first of a wait.
        let is_known = self.stalled_since.load(Ordering::Relaxed) != NOT_BEGUN;
        if does != is_known {
            let since = if does { self.now() } else { NOT_BEGUN };
            self.stalled_since.store(since, Ordering::Relaxed);
        }
    }

    /// Waits until the connection has to give its place up.
    pub(super) async fn evicted(&self) {
        self.eviction.notified().await;
    }

    /// Returns for how long the peer has kept the service waiting, if that is long enough to give way. One without any
    /// request comes before all others. `sooner` asks for less patience.
    fn wasted_time(&self, now: u64, sooner: bool) -> Option<(bool, u64)> {
        let (stalled, idle) = (&self.stalled_since, &self.idle_since);
        let over = |since: &AtomicU64, grace: Duration| {
            let since = Some(since.load(Ordering::Relaxed)).filter(|since| *since != NOT_BEGUN)?;
            let waited = now.saturating_sub(since);
            (u128::from(waited) >= grace.as_millis()).then_some(waited)
        };
        // An answer can stand still after its request has ended: the rest of it is in the buffer of the connection.
        let stands_still = stalled.load(Ordering::Relaxed) != NOT_BEGUN;
        let waited = match (stands_still, sooner) {
            (true, false) => over(stalled, STALLED_BEFORE_GIVING_WAY),
            (true, true) => over(stalled, IDLE_BEFORE_GIVING_WAY),
            (false, false) => over(idle, IDLE_BEFORE_GIVING_WAY),
            (false, true) => over(idle, Duration::ZERO),
        }?;
        Some((!self.has_requested(), waited))
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<PeerState>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Ordering::Relaxed);
    }
}

/// Registry of all connections.
#[derive(Debug)]
pub(super) struct OpenConnections {
    most: usize,
    /// Most connections of an address, or requests of one behind proxies; `None` for any number.
    share: Option<usize>,
    is_behind_proxy: bool,
    epoch: Instant,
    held: Mutex<HeldPlaces>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct HeldPlaces {
    next: u64,
    /// Connections by number, with the address whose share they take.
    all: HashMap<u64, (Option<LimitSource>, Arc<PeerState>)>,
    by_address: HashMap<LimitSource, usize>,
}

impl HeldPlaces {
    /// Takes a connection out. False if it was out before.
    fn remove(&mut self, number: u64) -> bool {
        let Some((source, _)) = self.all.remove(&number) else {
            return false;
        };
        if let Some(source) = source {
            self.less(source);
        }
        metrics::gauge!(metric::CONNECTIONS).decrement(1.0);
        true
    }

    fn less(&mut self, source: LimitSource) {
        if let Some(count) = self.by_address.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                // The map has no more entries than there are connections or requests.
                self.by_address.remove(&source);
            }
        }
    }

    /// Returns true if an address has as many of `most` places as each would have if all addresses had the same.
    fn has_part(&self, source: LimitSource, most: usize) -> bool {
        self.count(source) * self.by_address.len() >= most
    }

    fn count(&self, source: LimitSource) -> usize {
        self.by_address.get(&source).copied().unwrap_or(0)
    }

    /// Ends the connection that has kept the service waiting longest, of one address or of all.
    fn evict(&mut self, of: Option<LimitSource>, now: u64) -> bool {
        let candidates = self.all.iter();
        let candidates = candidates.filter(|(_, (source, _))| of.is_none() || of == *source);
        let wasted = candidates.filter_map(|(number, (_, peer))| Some((peer.wasted_time(now, false)?, *number)));
        let Some((_, number)) = wasted.max() else { return false };
        self.end(number)
    }

    /// Ends a connection of the address with the most places, if it has clearly more than `source` and one of them keeps
    /// the service waiting.
    fn evict_richer(&mut self, source: LimitSource, now: u64) -> bool {
        let least = self.count(source) + RICHER_BY;
        let wasted = self.all.iter().filter_map(|(number, (of, peer))| {
            let count = self.count((*of)?);
            let waited = peer.wasted_time(now, true)?;
            (count >= least).then_some((count, waited, *number))
        });
        let Some((.., number)) = wasted.max() else { return false };
        self.end(number)
    }

    /// Lets a connection give way.
    fn end(&mut self, number: u64) -> bool {
        if let Some((_, peer)) = self.all.get(&number) {
            peer.eviction.notify_one();
        }
        metrics::counter!(metric::CONNECTIONS_CUT, "cause" => "gave_way").increment(1);
        self.remove(number)
    }
}

impl OpenConnections {
    pub(super) fn new(most: usize, config: &config::Server) -> Self {
        let share = config.connections_per_address;
        Self {
            most,
            // With few places one address has half of them at most.
            share: (share > 0).then(|| share.min((most / 2).max(1))),
            is_behind_proxy: config.trusted_proxies > 0,
            epoch: Instant::now(),
            held: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Waits for a place. `None` if the address has its whole share, and none of its connections can give way.
    pub(super) async fn enter(self: &Arc<Self>, address: SocketAddr) -> Option<ConnectionSlot> {
        // All connections of a proxy have its address.
        let source = (!self.is_behind_proxy).then(|| LimitSource::from(address.ip()));
        loop {
            let freed = self.freed.notified();
            if let Some(entered) = self.try_enter(source, address) {
                return entered;
            }
            // Every place belongs to a connection that waits for the service. The operating system queues the others.
            tokio::time::timeout(GIVE_WAY_INTERVAL, freed).await.ok();
        }
    }

    /// Takes a place. The outer `None` is for no place now, the inner for an address with its whole share.
    #[expect(clippy::option_option, reason = "both are no place, and one of them passes")]
    fn try_enter(self: &Arc<Self>, source: Option<LimitSource>, address: SocketAddr) -> Option<Option<ConnectionSlot>> {
        let peer = Arc::new(PeerState::new(self.epoch));
        let now = peer.now();
        let mut held = self.held.lock();
        let has_share = source.is_none_or(|source| self.share.is_none_or(|share| held.count(source) < share));
        if !has_share && !held.evict(source, now) {
            metrics::counter!(metric::CONNECTIONS_CUT, "cause" => "share_taken").increment(1);
            return Some(None);
        }
        let shared = source.filter(|_| self.share.is_some());
        let gives_way = |held: &mut HeldPlaces| {
            held.evict(None, now) || shared.is_some_and(|source| held.evict_richer(source, now))
        };
        if held.all.len() >= self.most && !gives_way(&mut held) {
            // An address with its part of the places is refused and not waited for: whoever comes behind it in the queue
            // of the operating system would wait as well.
            let is_refused = shared.is_some_and(|source| held.has_part(source, self.most));
            if is_refused {
                metrics::counter!(metric::CONNECTIONS_CUT, "cause" => "share_taken").increment(1);
            }
            return is_refused.then_some(None);
        }
        let number = held.next;
        held.next += 1;
        held.all.insert(number, (source, Arc::clone(&peer)));
        if let Some(source) = source {
            *held.by_address.entry(source).or_default() += 1;
        }
        metrics::gauge!(metric::CONNECTIONS).increment(1.0);
        let connections = Arc::clone(self);
        Some(Some(ConnectionSlot {
            connections,
            number,
            address,
            peer,
        }))
    }

    /// Returns the share of a request. Behind proxies the requests of a client count in place of its connections, and
    /// `None` is for a client with its whole share under way.
    pub(super) fn share_of(self: &Arc<Self>, peer: IpAddr, headers: &HeaderMap, proxies: u8) -> Option<ClientShare> {
        let Some(most) = self.share.filter(|_| self.is_behind_proxy) else {
            return Some(ClientShare(None));
        };
        let client = LimitSource::from(api::client_address(peer, headers, proxies));
        let mut held = self.held.lock();
        let count = held.by_address.entry(client).or_default();
        if *count >= most {
            metrics::counter!(metric::CONNECTIONS_CUT, "cause" => "share_taken").increment(1);
            return None;
        }
        *count += 1;
        Some(ClientShare(Some((Arc::clone(self), client))))
    }
}

/// Part of a client's share that a request takes until this is dropped. Only requests behind proxies take any.
#[derive(Debug)]
pub(super) struct ClientShare(Option<(Arc<OpenConnections>, LimitSource)>);

impl Drop for ClientShare {
    fn drop(&mut self) {
        if let Some((connections, client)) = &self.0 {
            connections.held.lock().less(*client);
        }
    }
}

/// Counts a connection that ended because no request came.
pub(super) fn count_silent() {
    metrics::counter!(metric::CONNECTIONS_CUT, "cause" => "silent").increment(1);
}

/// Place of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    connections: Arc<OpenConnections>,
    number: u64,
    address: SocketAddr,
    peer: Arc<PeerState>,
}

impl ConnectionSlot {
    pub(super) const fn peer(&self) -> &Arc<PeerState> {
        &self.peer
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if self.connections.held.lock().remove(self.number) {
            self.connections.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_for_the_service_never_gives_way_and_who_stands_still_does() {
        let peer = Arc::new(PeerState::new(Instant::now()));
        let after = |seconds: u64| {
            peer.wasted_time(peer.now() + seconds * 1_000, false)
                .map(|(is_silent, _)| is_silent)
        };
        assert_eq!((after(0), after(2)), (None, Some(true)), "nothing was asked");
        let asked = peer.begin_request();
        assert_eq!(after(3_600), None, "the service works");
        peer.stalls(true);
        assert_eq!((after(4), after(6)), (None, Some(false)), "it sends or takes nothing");
        peer.stalls(false);
        assert_eq!(after(3_600), None);
        drop(asked);
        assert_eq!((after(0), after(2)), (None, Some(false)), "it is idle");
    }

    #[tokio::test]
    async fn an_address_with_many_places_gives_way_at_once_to_one_with_few_unless_its_requests_are_under_way() {
        let [rich, poor] = [1, 2].map(|host| SocketAddr::from(([127, 0, 0, host], 1)));
        for is_under_way in [false, true] {
            let connections = Arc::new(OpenConnections {
                most: 3,
                share: Some(3),
                is_behind_proxy: false,
                epoch: Instant::now(),
                held: Mutex::default(),
                freed: Notify::new(),
            });
            let enter = |address: SocketAddr| {
                let source = Some(LimitSource::from(address.ip()));
                connections.try_enter(source, address).flatten()
            };
            let places: Vec<ConnectionSlot> = (0..3).map(|_| enter(rich).unwrap()).collect();
            let requests = places.iter().filter(|_| is_under_way);
            let _requests: Vec<ActiveRequest> = requests.map(|place| place.peer().begin_request()).collect();
            assert!(enter(rich).is_none(), "it has its whole share");
            let first = enter(poor);
            assert_eq!(first.is_some(), !is_under_way);
            assert!(enter(poor).is_none(), "both have nearly as many");
        }
    }
}
