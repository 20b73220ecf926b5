//! Limits on the bytes of request bodies in memory, per operator and in total.
//!
//! Invariant: every byte of a body is reserved before it is buffered. A body without room is refused at once. Bodies
//! that have a reservation are not affected.

use std::sync::Arc;

use bytes::Bytes;
use types::OperatorId;

use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::holder_limit::{HolderLimit, HolderPermit, holding};
use crate::state::limit::LimitSource;

/// Seconds after which a body that found no room may be sent again.
const RETRY_SECONDS: u64 = 1;

/// Holder of a share of the memory: each body counts in the share of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemoryHolder {
    /// An operator, with all its agents.
    Operator(OperatorId),
    /// An address, for calls without a credential.
    Address(LimitSource),
}

/// Registry of the reservations of all bodies.
#[derive(Debug)]
pub(crate) struct BodyReservations {
    by_holder: HolderLimit<MemoryHolder>,
    per_holder: usize,
    all: HolderLimit<()>,
    total: usize,
}

impl BodyReservations {
    /// Creates a registry that allows `total` bytes, of which one holder may have `per_holder`.
    pub(crate) fn new(per_holder: usize, total: usize) -> Self {
        Self {
            by_holder: HolderLimit::new(per_holder),
            per_holder,
            all: HolderLimit::new(total),
            total,
        }
    }

    /// Returns an empty reservation for a body of this holder.
    pub(crate) fn reservation(self: &Arc<Self>, holder: MemoryHolder) -> BodyReservation {
        BodyReservation {
            bodies: Arc::clone(self),
            holder,
            bytes: 0,
            permits: Vec::new(),
        }
    }
}

/// Reservation of memory for one body, released on drop.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    bodies: Arc<BodyReservations>,
    holder: MemoryHolder,
    bytes: usize,
    permits: Vec<(HolderPermit, HolderPermit)>,
}

impl BodyReservation {
    /// Returns the number of bytes that are reserved.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Extends the reservation to `bytes` in all. Fails with 429 if the share of the holder is used up, and with 503 if
    /// the total is.
    pub(crate) fn extend_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let BodyReservations { by_holder, all, .. } = &*self.bodies;
        // If the second limit refuses, the share already taken is dropped on return, and so given back.
        let by_holder = by_holder
            .try_acquire(self.holder, more)
            .ok_or_else(|| self.share_taken())?;
        let all = all.try_acquire((), more).ok_or_else(|| self.all_taken())?;
        self.permits.push((by_holder, all));
        self.bytes += more;
        Ok(())
    }

    /// Returns the body, with the reservation held until the last copy of it is dropped.
    pub(crate) fn holding(self, body: Bytes) -> Bytes {
        holding(body, self)
    }

    fn share_taken(&self) -> ApiError {
        let (whose, limit) = match self.holder {
            MemoryHolder::Operator(_) => ("this operator", self.bodies.per_holder),
            MemoryHolder::Address(_) => ("this address, without a credential,", self.bodies.per_holder),
        };
        let message = format!(
            "{whose} may have {limit} bytes of bodies on their way at once, and its other requests leave no room for \
             this one"
        );
        ApiError::limited(ErrorCode::BodiesOfOne, message, RETRY_SECONDS)
    }

    fn all_taken(&self) -> ApiError {
        let limit = self.bodies.total;
        let message = format!("the service takes {limit} bytes of bodies at once, and there is no room for this one");
        ApiError::limited(ErrorCode::BodiesOfAll, message, RETRY_SECONDS)
    }
}
