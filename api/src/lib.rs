//! Marketplace API: a table of operations, served over HTTP through one dispatcher.
//!
//! ```text
//! transport   HTTP with JSON, MCP, pages, probes                    ─┐
//! dispatch    limit → credential → permission → item, schema → call  │ each uses what stands below it
//! ops         the operations, by feature │ flow   background tasks   │
//! rules       who may do what, and what it costs                     │
//! call        what comes in, the table of operations, what goes out  │
//! state       what a process holds and remembers                    ─┘
//! ```
//!
//! The files beside these folders know none of them. Nothing below `transport` uses `flow`.
//!
//! Invariants:
//! - An operation is written once. Every transport reads the table, and every call passes the same checks.
//! - An acknowledged contribution is in the database before its answer is sent.
//! - A private project is answered to others exactly like a missing one.
//! - Search texts, keys and bodies are never logged.

pub mod call;
mod codes;
pub mod config;
mod dispatch;
pub mod error;
#[cfg(feature = "faults")]
mod faults;
pub mod flow;
mod ids;
pub mod keys;
pub mod licenses;
pub mod names;
mod ops;
pub mod periodic;
pub mod price;
pub mod rules;
pub mod secrets;
mod spans;
pub mod state;
#[cfg(test)]
mod testing;
pub mod transport;

pub use call::operation::Operations;
pub use config::{Config, Limits};
pub use error::ApiError;
pub use state::app::{App, ReplicaState};
pub use state::apps::OAuthApps;
pub use transport::rest::{REQUEST_ID, client_address};

/// Returns the service as a router. The server must give each request its peer as `ConnectInfo<SocketAddr>`
/// (`into_make_service_with_connect_info`).
pub fn router(app: App) -> axum::Router {
    let operations = operations(&app.limits);
    transport::rest::router(app, operations)
}

/// Returns the table of operations with these limits.
pub fn operations(limits: &Limits) -> Operations {
    ops::all(limits)
}

/// Returns the description of the interface (`OpenAPI` 3.1) for a service at `public_url`.
pub fn openapi(limits: &Limits, public_url: &str) -> serde_json::Value {
    ops::openapi::document(&operations(limits), public_url)
}
