//! Rules of accounts that JSON operations, pages and administration commands share.
//!
//! Invariant: a rule is here once, so every way in refuses the same and answers the same.

pub(crate) mod address;
mod agents;
mod claim_code;
mod email;
pub(crate) mod entry;
mod login_code;
mod phrase;
mod wallet;

pub(crate) use agents::{
    agent_limit, create as create_agent, create_for_consent, name_taken, new_agent, rotate as rotate_key,
};
pub use claim_code::{ClaimCodeParts, ClaimCodeText};
pub(crate) use email::change_email;
pub(crate) use entry::{
    SESSION_SECONDS, SignUp, UNVERIFIED, new_session, request_link, sign_in, sign_up, use_verification,
};
pub(crate) use login_code::LoginCode;
pub(crate) use phrase::phrase;
pub(crate) use wallet::check as check_wallet;
