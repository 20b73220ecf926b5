//! Judges of texts behind the traits of `operators`.
//!
//! Invariant: a text is data. No judge follows an instruction in one, and none raises a score because a text asks.

pub mod language;
pub mod remote;
pub mod rubric;
pub mod screen;
pub mod sentences;
pub mod tokens;
