//! Rules: who may do what, and what it costs. Operations, the dispatcher and background tasks ask them.
//!
//! Invariant: a rule knows no operation and no transport.

pub mod accounts;
pub(crate) mod answer_file;
pub(crate) mod approvals;
pub mod auth;
pub(crate) mod call_limits;
pub mod disputes;
pub(crate) mod egress;
pub(crate) mod entitlement;
pub(crate) mod jobs;
pub mod letters;
pub mod previews;
pub(crate) mod profiles;
pub mod readiness;
pub(crate) mod reading;
pub mod receipts;
pub mod seals;
pub mod settlement;
pub(crate) mod spending;
pub(crate) mod standing;
pub(crate) mod storage_quota;
pub(crate) mod text_screen;
