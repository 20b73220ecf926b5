//! Injected bugs of this package, which the crash tests must detect.
//!
//! Invariant: each function breaks one step if its bug is injected. Without the feature `faults` it does nothing or
//! returns what it was given, so a release does every step.

#[cfg(not(feature = "faults"))]
use std::future::{Ready, ready};

use catalog::{Merge, Table};
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};
use types::unit::UnitResolution;
use types::{ContributionId, Timestamp, Version};

use crate::context::Context;
use crate::message::Address;
#[cfg(feature = "faults")]
use crate::message::Resolution;
#[cfg(feature = "faults")]
use crate::publish::publish_outcome;
use crate::report::Report;
#[cfg(feature = "faults")]
use crate::report::outcome;

/// Returns the merge that the guard against a second merge found. Injected bug: the guard is never asked.
pub(crate) fn may_skip_guard(found: Option<Merge>) -> Option<Merge> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::NoGuard) {
        return None;
    }
    found
}

/// Returns the first version that is not known to be published. Injected bug: the versions up to `end` count as published,
/// which would otherwise be told after the rejection that a missing guard makes of one.
pub(crate) fn may_skip_versions(next: Version, end: Version) -> Version {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::NoGuard) {
        return end;
    }
    #[cfg(not(feature = "faults"))]
    let _ = end;
    next
}

/// Returns the outcome of a version that was published before. Injected bug: nobody looks.
pub(crate) fn may_forget_unit(told: Option<UnitResolution>) -> Option<UnitResolution> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::UnitTwice) {
        return None;
    }
    told
}

/// Returns the guard of a commit of units. Injected bug: each try has its own.
pub(crate) fn may_change_guard(guard: ContributionId, at: Timestamp) -> ContributionId {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::UnitTwice) {
        return ContributionId::new(at);
    }
    #[cfg(not(feature = "faults"))]
    let _ = at;
    guard
}

/// Does nothing. Injected bug: publishes the outcome before the commit, as if the commit were certain.
#[cfg(feature = "faults")]
pub(crate) async fn may_publish_early(context: &Context, table: &Table, address: Address, report: &Report) {
    if is_injected(InjectedBug::OutcomeBeforeCommit) {
        let accepted = report.tallies.last().map_or(0, |tally| tally.passed.into());
        let resolution = Resolution::Merged {
            version: table.head().next(),
            accepted,
            record_count: table.record_count() + accepted,
            root: String::new(),
        };
        let early = outcome(address, context.clock.now(), resolution, report.clone());
        // A worker that stops publishes nothing, and then the bug does not show.
        publish_outcome(context, early).await.unwrap_or_default();
    }
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(crate) fn may_publish_early(_context: &Context, _table: &Table, _address: Address, _report: &Report) -> Ready<()> {
    ready(())
}
