//! The database, byte by byte. Integers are big-endian, so that keys sort as numbers do.
//!
//! | keyspace  | key                                          | value                            |
//! |-----------|----------------------------------------------|----------------------------------|
//! | `log`     | topic id u32, partition u32, offset u64      | key length u32, key, value       |
//! | `cursors` | group, NUL, topic id u32, partition u32      | next offset u64                  |
//! | `meta`    | `format`                                     | u32                              |
//! | `meta`    | `topic/`, name                               | topic id u32, partitions u32     |
//! | `meta`    | `first/`, topic id u32, partition u32        | first readable offset u64        |
//!
//! Invariant: this is format 1. A change of any row needs a new [`LAYOUT_FORMAT`] and a reader for the old one.

use std::io::Read;
use std::path::PathBuf;

use bytes::Bytes;
use fjall::{Database, Keyspace, UserValue};

use super::directory::Lock;
use crate::Record;

/// The format this program reads and writes.
pub(super) const LAYOUT_FORMAT: u32 = 1;
/// The key of the format.
pub(super) const FORMAT_KEY: &[u8] = b"format";
/// The prefix of topic keys.
pub(super) const TOPIC_PREFIX: &[u8] = b"topic/";
/// The prefix of first readable offsets.
pub(super) const FIRST_PREFIX: &[u8] = b"first/";

/// The open database and its keyspaces.
pub(super) struct LogDatabase {
    pub(super) path: PathBuf,
    pub(super) database: Database,
    pub(super) log: Keyspace,
    pub(super) cursors: Keyspace,
    pub(super) meta: Keyspace,
    /// The lock of the directory. The last field, so that it is released after the database is closed.
    pub(super) _lock: Lock,
}

/// Returns the key of a record in `log`.
pub(super) fn record_key(topic: u32, partition: u32, offset: u64) -> [u8; 16] {
    // Big-endian, so the records of a partition are adjacent and in the order of their offsets.
    let number = (u128::from(topic) << 96) | (u128::from(partition) << 64) | u128::from(offset);
    number.to_be_bytes()
}

/// Returns the offset in the key of a record, or `None` if the key has another length.
pub(super) fn offset_of(key: &[u8]) -> Option<u64> {
    let key: [u8; 16] = key.try_into().ok()?;
    u64::try_from(u128::from_be_bytes(key) & u128::from(u64::MAX)).ok()
}

/// Encodes a record as a value, with one copy.
pub(super) fn encode(record: &Record) -> std::io::Result<UserValue> {
    let length = u32::try_from(record.key.len())
        .map_err(std::io::Error::other)?
        .to_be_bytes();
    let size = length.len() + record.key.len() + record.value.len();
    let mut parts = length.chain(record.key.as_ref()).chain(record.value.as_ref());
    UserValue::from_reader(&mut parts, size)
}

/// Decodes a value without a copy. Returns `None` if the value is malformed.
pub(super) fn decode(value: UserValue) -> Option<Record> {
    // The slices keep the block of the database alive instead of copying the record.
    let bytes = Bytes::from_owner(value);
    let length: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let end = usize::try_from(u32::from_be_bytes(length)).ok()?.checked_add(4)?;
    (end <= bytes.len()).then(|| Record {
        key: bytes.slice(4..end),
        value: bytes.slice(end..),
    })
}

/// Returns the key of a group's position in `cursors`.
pub(super) fn cursor_key(group: &str, topic: u32, partition: u32) -> Vec<u8> {
    [group.as_bytes(), &[0], &topic.to_be_bytes(), &partition.to_be_bytes()].concat()
}

/// Parses the key of a position into group, topic id and partition.
pub(super) fn parse_cursor_key(key: &[u8]) -> Option<(String, u32, u32)> {
    let (rest, partition) = key.split_last_chunk::<4>()?;
    let (rest, topic) = rest.split_last_chunk::<4>()?;
    let group = rest.strip_suffix(&[0])?;
    let group = String::from_utf8(group.to_vec()).ok()?;
    Some((group, u32::from_be_bytes(*topic), u32::from_be_bytes(*partition)))
}

/// Returns the key of a topic in `meta`.
pub(super) fn topic_key(name: &str) -> Vec<u8> {
    [TOPIC_PREFIX, name.as_bytes()].concat()
}

/// Returns the value of a topic in `meta`.
pub(super) fn topic_value(id: u32, partitions: u32) -> [u8; 8] {
    ((u64::from(id) << 32) | u64::from(partitions)).to_be_bytes()
}

/// Parses the value of a topic into topic id and number of partitions.
pub(super) fn parse_topic_value(value: &[u8]) -> Option<(u32, u32)> {
    let (id, partitions) = value.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*id), parse_u32(partitions)?))
}

/// Returns the key of a partition's first readable offset in `meta`.
pub(super) fn first_key(topic: u32, partition: u32) -> Vec<u8> {
    [FIRST_PREFIX, &topic.to_be_bytes(), &partition.to_be_bytes()].concat()
}

/// Parses a big-endian integer that fills `bytes`.
pub(super) fn parse_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

/// Parses a big-endian integer that fills `bytes`.
pub(super) fn parse_u64(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{cursor_key, decode, encode, offset_of, parse_cursor_key, parse_topic_value, record_key, topic_value};
    use crate::Record;

    #[test]
    fn keys_and_values_are_the_documented_bytes() {
        assert_eq!(record_key(1, 2, 3), [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(cursor_key("g", 1, 2), [b'g', 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(topic_value(1, 8), [0, 0, 0, 1, 0, 0, 0, 8]);
        let record = Record {
            key: Bytes::from_static(b"k"),
            value: Bytes::from_static(b"vw"),
        };
        assert!(encode(&record).is_ok_and(|value| *value == [0, 0, 0, 1, b'k', b'v', b'w']));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let record = Record {
            key: Bytes::new(),
            value: Bytes::from(vec![7; 5000]),
        };
        assert_eq!(encode(&record).ok().and_then(decode), Some(record));
        assert_eq!(offset_of(&record_key(u32::MAX, u32::MAX, 42)), Some(42));
        assert_eq!(
            parse_cursor_key(&cursor_key("a.b", 5, 6)),
            Some(("a.b".to_owned(), 5, 6))
        );
        assert_eq!(parse_topic_value(&topic_value(9, 64)), Some((9, 64)));
    }

    #[test]
    fn malformed_bytes_are_refused() {
        assert_eq!(decode([0, 0, 0].into()), None);
        assert_eq!(decode([0, 0, 0, 2, 1].into()), None);
        assert_eq!(offset_of(&[0; 15]), None);
        assert_eq!(parse_cursor_key(&[b'g', 1, 0, 0, 0, 1, 0, 0, 0, 2]), None);
        assert_eq!(parse_topic_value(&[0; 9]), None);
    }
}
