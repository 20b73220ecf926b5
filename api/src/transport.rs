//! Transports: HTTP with JSON, MCP, pages, and probes. They carry values and decide nothing.
//!
//! Invariant: every call of an operation goes through the dispatcher, whatever it came by.

pub mod probes;
pub(crate) mod rest;
mod web;
