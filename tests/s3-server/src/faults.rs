//! What goes wrong on demand, counted.
//!
//! Invariant: a fault is counted when it happens, not when it is asked for; the same rules and the same requests in the
//! same order give the same faults.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// A way for a request to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not executed, answered by 500 `InternalError`.
    Internal,
    /// Not executed, answered by 503 `SlowDown`.
    SlowDown,
    /// Not executed, answered by 409 `ConditionalRequestConflict`. Only conditional puts.
    Conflict,
    /// Executed, answered by 500.
    DoneThenInternal,
    /// Executed, and the connection ends without an answer.
    LostAnswer,
    /// Executed, and no answer comes while the client waits.
    Silence,
    /// Executed, the answer comes after this long.
    Slow(Duration),
    /// The answer's body ends in its middle. Only what has a body.
    CutBody,
    /// The answer's body stops in its middle and the connection stays open. Only what has a body.
    StalledBody,
}

impl Fault {
    /// How many kinds there are.
    const KINDS: usize = 9;

    const fn index(self) -> usize {
        match self {
            Self::Internal => 0,
            Self::SlowDown => 1,
            Self::Conflict => 2,
            Self::DoneThenInternal => 3,
            Self::LostAnswer => 4,
            Self::Silence => 5,
            Self::Slow(_) => 6,
            Self::CutBody => 7,
            Self::StalledBody => 8,
        }
    }
}

/// Which requests go wrong, and how.
#[derive(Clone, Debug)]
pub struct Rule {
    /// How.
    pub fault: Fault,
    /// Only requests with this method; empty for all.
    pub method: &'static str,
    /// Only requests whose path has this in it; empty for all.
    pub path: String,
    /// Of a thousand such requests, how many.
    pub per_mille: u32,
    /// How many at most.
    pub most: u64,
}

impl Rule {
    /// Every request with this method, on a path with this in it, up to `most`.
    pub fn next(fault: Fault, method: &'static str, path: &str, most: u64) -> Self {
        Self {
            fault,
            method,
            path: path.to_owned(),
            per_mille: 1_000,
            most,
        }
    }

    /// A share of all requests with this method.
    pub fn share(fault: Fault, method: &'static str, per_mille: u32) -> Self {
        Self {
            fault,
            method,
            path: String::new(),
            per_mille,
            most: u64::MAX,
        }
    }
}

/// How many requests of each kind arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Objects and parts put.
    pub puts: u64,
    /// Objects read.
    pub gets: u64,
    /// Metadata read.
    pub heads: u64,
    /// Listings.
    pub lists: u64,
    /// Deletions, and what else there is.
    pub others: u64,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    requests: Requests,
    /// How often a rule was asked.
    asked: u64,
}

/// `SplitMix64` (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*).
const fn random(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The faults of a server.
#[derive(Debug, Default)]
pub struct Faults {
    inner: Mutex<Inner>,
    happened: [AtomicU64; Fault::KINDS],
}

impl Faults {
    /// Adds a rule. Of those that apply to a request, the first that strikes does.
    pub fn add(&self, rule: Rule) {
        self.lock().rules.push(rule);
    }

    /// Nothing goes wrong from now on.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// How often a kind of fault happened.
    pub fn happened(&self, fault: Fault) -> u64 {
        self.happened[fault.index()].load(Ordering::SeqCst)
    }

    /// What was asked of the server so far.
    pub fn requests(&self) -> Requests {
        self.lock().requests
    }

    pub(crate) fn count(&self, fault: Fault) {
        self.happened[fault.index()].fetch_add(1, Ordering::SeqCst);
    }

    /// What goes wrong with a request.
    pub(crate) fn decide(&self, method: &str, path: &str, query: &str, conditional: bool) -> Option<Fault> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let requests = &mut inner.requests;
        let is_list = method == "GET" && query.split('&').any(|pair| pair.starts_with("list-type="));
        *match method {
            "PUT" => &mut requests.puts,
            "GET" if is_list => &mut requests.lists,
            "GET" => &mut requests.gets,
            "HEAD" => &mut requests.heads,
            _ => &mut requests.others,
        } += 1;
        for rule in &mut inner.rules {
            let applies = (rule.method.is_empty() || rule.method == method)
                && path.contains(&rule.path)
                && (rule.fault != Fault::Conflict || conditional);
            if !applies || rule.most == 0 {
                continue;
            }
            inner.asked = inner.asked.wrapping_add(1);
            if random(inner.asked) >> 32 < (u64::from(rule.per_mille) << 32) / 1_000 {
                rule.most -= 1;
                return Some(rule.fault);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}
