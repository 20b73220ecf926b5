//! Flow of the marketplace plane: submissions to the log, outcomes back into the database.
//!
//! Invariant: the contribution's row is the outbox entry. The [`Relay`](crate::state::relay::Relay) only saves time: whatever it drops, the
//! [`Sweeper`] appends again for as long as the row is open, and only the [`Projector`] closes a row.

mod account_sweeper;
mod deleted;
mod figures;
mod followers;
pub mod jobs;
mod money_keeper;
mod payouts;
mod profiles;
mod projector;
mod reconciler;
mod summaries;
mod sweeper;
mod units;
mod upload_reaper;

pub use account_sweeper::AccountSweeper;
pub use deleted::DeletionFollower;
pub use figures::FiguresKeeper;
pub use followers::Follower;
pub use money_keeper::MoneyKeeper;
pub use payouts::PayoutTask;
pub use profiles::Profiles;
pub use projector::Projector;
pub use reconciler::PaymentReconciler;
pub use summaries::Summaries;
pub use sweeper::Sweeper;
pub use units::UnitSweeper;
pub use upload_reaper::UploadReaper;
