//! Rules of accounts that JSON operations, pages and administration commands share.
//!
//! Invariant: a rule is here once, so every way in refuses the same and answers the same.

pub(crate) mod address;
mod claim_code;
mod entry;
mod phrase;

pub use claim_code::{ClaimCodeParts, ClaimCodeText};
pub(crate) use entry::{SignUp, UNVERIFIED, request_link, sign_up, use_verification};
pub(crate) use phrase::phrase;
