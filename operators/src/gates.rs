//! The gates, in the order in which [`crate::standard_chain`] runs them.
//!
//! Invariant: every gate here passes `conformance::check_gate`.

mod contract;
mod dedup;
mod personal;

pub use contract::{Contract, lost_digits};
pub use dedup::Dedup;
pub use personal::{
    GUIDE as PERSONAL_DATA_GUIDE, PersonalData, guide as personal_data_guide, instead as instead_of_personal_data,
};
