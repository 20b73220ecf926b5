//! The rules of money: the platform's fee, prices, what storage and egress cost, and the movements of each event.
//!
//! Invariant: pure. Nothing here reads a database, a clock or the network, and every amount is an integer of
//! micro-USDC.

mod fee;
mod ledger;
mod quote;
mod tariff;

pub use fee::{Bracket, Brackets, ParseBracketsError, Split};
pub use ledger::{Account, AccountKind, AccountSide, Event, EventKind, MovementLine};
pub use quote::{Quote, Short};
pub use tariff::{BLOCK_BYTES, DEFAULT_DATASET_PRICE, MIN_PRICE, Tariff, UNIT_DEFAULT};
