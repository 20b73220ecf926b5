//! The division of an upload into parts.

use serde::{Deserialize, Serialize};

use crate::ContributionId;
use crate::vocabulary::Compression;

/// An upload and its division into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadLayout {
    /// Id of the upload, which is that of its contribution.
    pub upload: ContributionId,
    /// Size of all parts together, in bytes.
    pub bytes: u64,
    /// Number of parts, of which the last may be shorter.
    pub parts: u32,
    /// Size of every part but the last, in bytes.
    pub part_size: u64,
    /// Compression of the bytes.
    #[serde(default)]
    pub compression: Compression,
}

impl UploadLayout {
    /// Returns the size of part `n`, from 1; `None` if there is no such part.
    pub fn size_of(&self, n: u32) -> Option<u64> {
        if n == 0 || n > self.parts {
            return None;
        }
        // Checked, because a layout is also read from messages, where nothing has compared its numbers.
        let before = self.part_size.checked_mul(u64::from(n - 1))?;
        let left = self.bytes.checked_sub(before)?;
        Some(if n == self.parts { left } else { self.part_size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_has_what_is_left() {
        let layout = UploadLayout {
            upload: ContributionId::from_bytes([1; 16]),
            bytes: 10,
            parts: 3,
            part_size: 4,
            compression: Compression::None,
        };
        let sizes: Vec<_> = (0..5).map(|n| layout.size_of(n)).collect();
        assert_eq!(sizes, [None, Some(4), Some(4), Some(2), None]);
        let one = UploadLayout {
            parts: 1,
            part_size: 10,
            ..layout
        };
        assert_eq!(one.size_of(1), Some(10));
    }
}
