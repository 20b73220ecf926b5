//! Marketplace API: a table of operations, served over HTTP through one dispatcher.
//!
//! ```text
//! ops/*.rs ──add──▶ Operations ◀──read── rest.rs (routes) · openapi.rs (description)
//!                       │
//!                    dispatch: limit → credential → permission → item, schema → call → log
//! ```
//!
//! Invariants:
//! - An operation is written once. Every transport reads the table, and every call passes the same checks.
//! - An acknowledged contribution is in the database before its answer is sent.
//! - A private project is answered to others exactly like a missing one.
//! - Search texts, keys and bodies are never logged.
//! - Pages of the console are operations too; `web.rs` is their transport next to `rest.rs`.

pub mod accounts;
pub mod answer;
pub mod app;
pub mod apps;
pub mod auth;
mod bodies;
mod caches;
pub mod caller;
pub mod codes;
pub mod config;
pub mod cx;
pub mod direct;
pub mod drain;
pub mod egress;
mod entitlement;
pub mod error;
#[cfg(feature = "faults")]
mod faults;
pub mod flow;
mod holder_limit;
mod ids;
mod kept;
pub mod keys;
mod leaderboard;
pub mod letters;
pub mod licenses;
pub mod limit;
mod links;
pub mod names;
pub mod open_files;
pub mod openapi;
pub mod operation;
mod ops;
pub mod payments;
pub mod periodic;
pub mod previews;
pub mod price;
pub mod probes;
mod problem;
pub mod readers;
mod rendered;
mod rest;
mod room;
pub mod sandbox;
pub mod schema;
pub mod seals;
pub mod search;
mod standing;
#[cfg(test)]
mod testing;
mod tools;
pub mod usage;
mod web;
mod wire;

pub use app::{App, Process};
pub use apps::Apps;
pub use config::{Config, Limits};
pub use error::ApiError;
pub use operation::Operations;
pub use ops::uploads::UploadPlane;
pub use rest::{REQUEST_ID, client_address};

/// Returns the service as a router. The server must give each request its peer as `ConnectInfo<SocketAddr>`
/// (`into_make_service_with_connect_info`).
pub fn router(app: App) -> axum::Router {
    let operations = operations(&app.limits);
    rest::router(app, operations)
}

/// Returns the table of operations with these limits.
pub fn operations(limits: &Limits) -> Operations {
    ops::all(limits)
}

/// Returns the description of the interface (`OpenAPI` 3.1) for a service at `public_url`.
pub fn openapi(limits: &Limits, public_url: &str) -> serde_json::Value {
    openapi::document(&operations(limits), public_url)
}
