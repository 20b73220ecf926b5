//! Opening a directory.
//!
//! Invariant: opening checks what can be checked in time proportional to the number of partitions and groups: every
//! journal batch has its checksum, the first and last record of each partition exist, and no position is past its end.
//! A violation is an error that names the directory. Checksums of older records are verified as they are read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fjall::PersistMode;

use super::EmbeddedOptions;
use super::directory::error;
use super::layout::{
    FORMAT_KEY, LAYOUT_FORMAT, LogDatabase, TOPIC_PREFIX, first_key, offset_of, parse_cursor_key, parse_topic_value,
    parse_u32, parse_u64, record_key,
};
use super::state::{GroupPositions, PartitionRange, Topic};
use crate::{Bounds, Error};

type Topics = BTreeMap<String, Arc<Topic>>;

/// Opens or creates the log in `path`.
pub(super) fn open(path: &Path, options: EmbeddedOptions) -> Result<(LogDatabase, Topics), Error> {
    let store = super::directory::open(path)?;
    check_format(&store)?;
    // The previous process may have been killed before it synced the records that are about to
    // be delivered.
    let persisted = store.database.persist(PersistMode::SyncData);
    persisted.map_err(|cause| error(&store.path, cause))?;
    let topics = read_topics(&store, options)?;
    read_groups(&store, &topics)?;
    let groups = |topic: &Arc<Topic>| topic.groups.read().len();
    tracing::info!(
        path = %path.display(),
        topics = topics.len(),
        groups = topics.values().map(groups).sum::<usize>(),
        "opened the log"
    );
    Ok((store, topics))
}

/// Refuses a log of another format version.
fn check_format(store: &LogDatabase) -> Result<(), Error> {
    let found = store.meta.get(FORMAT_KEY).map_err(|cause| error(&store.path, cause))?;
    match found.as_deref().and_then(parse_u32) {
        Some(LAYOUT_FORMAT) => Ok(()),
        Some(other) => Err(Error::Format {
            path: store.path.clone(),
            found: other,
            supported: LAYOUT_FORMAT,
        }),
        None => Err(damaged(store, format!("its format is {found:?}"))),
    }
}

fn read_topics(store: &LogDatabase, options: EmbeddedOptions) -> Result<Topics, Error> {
    let failed = |cause| error(&store.path, cause);
    let mut topics = BTreeMap::new();
    for entry in store.meta.prefix(TOPIC_PREFIX) {
        let (key, value) = entry.into_inner().map_err(failed)?;
        let name = key
            .strip_prefix(TOPIC_PREFIX)
            .and_then(|name| String::from_utf8(name.to_vec()).ok());
        let (Some(name), Some((id, partitions))) = (name, parse_topic_value(&value)) else {
            return Err(damaged(store, format!("the topic {:?} is unreadable", key.as_ref())));
        };
        if partitions != options.partitions {
            tracing::warn!(
                topic = name,
                partitions,
                configured = options.partitions,
                "the topic keeps the number of partitions it was created with; `partitions` applies to new topics only"
            );
        }
        let bounds = (0..partitions).map(|partition| read_bounds(store, &name, id, partition).map(PartitionRange::new));
        let topic = Topic::new(name.clone(), id, bounds.collect::<Result<_, _>>()?);
        topics.insert(name, Arc::new(topic));
    }
    Ok(topics)
}

/// Reads the bounds of a partition: from its stored first offset to its last record. If every record was trimmed, the
/// first offset is the end too.
fn read_bounds(store: &LogDatabase, topic: &str, id: u32, partition: u32) -> Result<Bounds, Error> {
    let failed = |cause| error(&store.path, cause);
    let unreadable = |what: &str| damaged(store, format!("topic `{topic}`, partition {partition}: {what}"));
    let first = match store.meta.get(first_key(id, partition)).map_err(failed)? {
        Some(mark) => parse_u64(&mark).ok_or_else(|| unreadable("its mark is unreadable"))?,
        None => 0,
    };
    // The scan starts at the first offset. Starting at 0 would walk over the tombstones of all
    // trimmed records.
    let range = record_key(id, partition, first)..=record_key(id, partition, u64::MAX);
    let mut records = store.log.range(range);
    let Some(last) = records.next_back() else {
        return Ok(Bounds { first, next: first });
    };
    let last = offset_of(&last.key().map_err(failed)?).ok_or_else(|| unreadable("its last key is unreadable"))?;
    let begins = store
        .log
        .contains_key(record_key(id, partition, first))
        .map_err(failed)?;
    match last.checked_add(1) {
        Some(next) if begins => Ok(Bounds { first, next }),
        _ => Err(unreadable(&format!("offset {first} is missing, {last} is there"))),
    }
}

fn read_groups(store: &LogDatabase, topics: &Topics) -> Result<(), Error> {
    let failed = |cause| error(&store.path, cause);
    let by_id: BTreeMap<u32, &Arc<Topic>> = topics.values().map(|topic| (topic.id, topic)).collect();
    for entry in store.cursors.iter() {
        let (key, value) = entry.into_inner().map_err(failed)?;
        let unreadable = || damaged(store, format!("the position {:?} is unreadable", key.as_ref()));
        let (group, id, partition) = parse_cursor_key(&key).ok_or_else(unreadable)?;
        let position = parse_u64(&value).ok_or_else(unreadable)?;
        let topic = by_id.get(&id).ok_or_else(unreadable)?;
        let bounds = topic
            .partitions
            .get(partition as usize)
            .ok_or_else(unreadable)?
            .bounds();
        // A position past the end means that records were lost which a group has already
        // processed.
        if position > bounds.next {
            return Err(damaged(
                store,
                format!(
                    "topic `{}`, partition {partition}: group `{group}` is at offset {position}, and there are records \
                     to {} only",
                    topic.name, bounds.next
                ),
            ));
        }
        // Trimming may have moved past a position that was not synced before a crash.
        let position = position.max(bounds.first);
        let mut groups = topic.groups.write();
        let group = groups.entry(group).or_insert_with_key(|name| {
            let firsts: Vec<u64> = topic.partitions.iter().map(PartitionRange::first).collect();
            Arc::new(GroupPositions::new(name.clone(), &firsts))
        });
        group.committed[partition as usize].store(position, Ordering::SeqCst);
        group.written[partition as usize].store(position, Ordering::SeqCst);
    }
    Ok(())
}

fn damaged(store: &LogDatabase, what: String) -> Error {
    Error::Damaged {
        path: store.path.clone(),
        what,
    }
}
