//! Rules: who may do what, and what it costs. Operations, the dispatcher and background tasks ask them.
//!
//! Invariant: a rule knows no operation and no transport.

pub(crate) mod call_limits;
pub(crate) mod egress;
