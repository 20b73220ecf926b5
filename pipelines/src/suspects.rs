//! Messages that can have been in work when an earlier process ended, as far as one writer can tell.

use std::collections::HashSet;

use types::ContributionId;

use crate::context::Context;
use crate::delivery::Delivery;
use crate::isolation::MessageKind;
use crate::message::Address;
use crate::outcome_cache::OutcomeCache;

/// The messages of a writer that can have been in work when an earlier process ended: every upload, and no more batches
/// than are judged at once. These are the first that are undecided, because a writer judges its batches in order.
pub(crate) struct PoisonSuspects {
    /// Number of batches that may still be suspected.
    left: usize,
    /// Contributions with their generation whose messages are suspected. Copies of them may come that were not in the
    /// log then.
    open: HashSet<(ContributionId, u32)>,
}

impl PoisonSuspects {
    pub(crate) fn of(context: &Context) -> Self {
        Self {
            left: context.ahead + 1,
            open: HashSet::new(),
        }
    }

    /// Decides if the next message of the writer is a suspect.
    pub(crate) fn observe(&mut self, outcomes: &OutcomeCache, delivery: &mut Delivery) {
        let value = &delivery.record.value;
        self.open
            .retain(|(id, generation)| !outcomes.contains(*id, *generation));
        if delivery.suspect.is_none() && self.open.is_empty() {
            return;
        }
        let subject = Address::read(value).map(|address| (address.contribution, address.generation));
        if subject.is_some_and(|subject| self.open.contains(&subject)) {
            delivery.suspect = Some(MessageKind::of_submission(value));
            return;
        }
        if delivery.suspect == Some(MessageKind::Batch) {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => delivery.suspect = None,
            }
        }
        if delivery.suspect.is_some() {
            self.open.extend(subject);
        }
    }
}
