//! Free space of a disk, and the reserve that stays free.
//!
//! Invariant: a writer that checks [`Reserve::room_for`] first leaves the reserve to the event log and the database,
//! which a full disk would stop.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::Error;

/// Number of bytes that stay free on a disk. Zero switches the check off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve(pub u64);

impl Reserve {
    /// Checks that `bytes` more bytes fit on the disk of `folder` without using the reserve.
    ///
    /// # Errors
    /// [`ErrorKind::StorageFull`] if fewer bytes than the reserve would remain. Any other kind is an error of
    /// `statvfs`.
    pub fn room_for(self, folder: &Path, bytes: u64) -> io::Result<()> {
        if self.0 == 0 || free(folder)? > self.0.saturating_add(bytes) {
            Ok(())
        } else {
            Err(ErrorKind::StorageFull.into())
        }
    }
}

/// Converts the result of [`Reserve::room_for`] into an error of the catalog. `bytes` is the size of the refused write.
pub(crate) fn no_room(looked: io::Result<()>, bytes: impl FnOnce() -> u64) -> Result<(), Error> {
    looked.map_err(|error| match error.kind() {
        ErrorKind::StorageFull => Error::NoRoom { bytes: bytes() },
        _ => Error::Scratch(error),
    })
}

/// Returns the number of bytes that an unprivileged process may still write to the disk of `folder`.
pub fn free(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    // `f_bavail` leaves out the blocks that only root may use.
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_leave_less_than_the_reserve_has_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let left = free(folder.path()).unwrap();
        assert!(left > 1 << 20, "a test needs some room");
        let full = |reserve: u64, bytes: u64| {
            let room = Reserve(reserve).room_for(folder.path(), bytes);
            room.is_err_and(|error| error.kind() == ErrorKind::StorageFull)
        };
        // Others write to the disk meanwhile.
        assert!(!full(left / 4, left / 4));
        assert!(full(left / 4, 2 * left));
        assert!(full(2 * left, 0));
        assert!(full(u64::MAX, u64::MAX));
        assert!(!full(0, u64::MAX));
        assert!(Reserve(1).room_for(&folder.path().join("missing"), 0).is_err());
    }
}
