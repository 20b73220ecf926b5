//! What the staff reads: accounts, invitations, jobs that fail, and the figures of the service.
//!
//! Invariant: each list is read by an index and has a bound; nothing here decides who may read it.

mod directory;
mod figures;
mod troubles;

pub use directory::{AccountItem, StaffAccount};
pub use figures::FigureDay;
pub use troubles::FailingJobs;

use crate::Store;

/// The part of the database that the staff reads, see [`Store::staff`].
#[derive(Clone, Copy, Debug)]
pub struct Staff<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database that the staff reads.
    pub const fn staff(&self) -> Staff<'_> {
        Staff(self)
    }
}
