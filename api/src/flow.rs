//! The marketplace's side of the flow: submissions to the log, outcomes back into the database.
//!
//! Invariant: the contribution's row is the outbox. The [`Relay`] is only a short cut: whatever it drops, the
//! [`Sweeper`] appends again for as long as the row is open, and only the [`Projector`] closes a row.

mod backlog;
mod followers;
mod freeing;
mod projector;
mod relay;
mod sweeper;
mod waiters;

pub use backlog::{Backlog, Full};
pub use followers::Follower;
pub use freeing::Freeing;
pub use projector::Projector;
pub use relay::{Relay, RelayTask};
pub use sweeper::{Config as SweeperConfig, Sweeper};
pub use waiters::Waiters;
