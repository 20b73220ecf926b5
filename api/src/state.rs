//! State: what a process holds, and remembers between calls. It knows nothing of calls, rules or operations.
//!
//! Invariant: nothing here decides on access. The layers above read it, and ask the rules.

pub mod app;
pub mod apps;
pub mod backlog;
pub(crate) mod bodies;
pub(crate) mod caches;
pub mod direct;
pub mod drain;
pub mod egress;
pub(crate) mod entitlement_cache;
pub(crate) mod feed_head;
pub mod files;
pub(crate) mod holder_limit;
pub(crate) mod kept;
pub(crate) mod leaderboard;
pub mod limit;
pub(crate) mod links;
pub mod open_files;
pub(crate) mod page_size;
pub mod payment_services;
pub mod profiling;
pub mod readers;
pub mod relay;
pub mod sandbox;
pub mod search;
pub(crate) mod storage_cache;
pub mod sweeper_config;
pub mod upload_services;
pub mod usage;
pub mod validation;
pub mod waiters;
