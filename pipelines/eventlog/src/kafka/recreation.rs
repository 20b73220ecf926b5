//! Detection of recreated topics.
//!
//! A topic that is deleted and created again has another id (KIP-516). librdkafka 2.12 takes the new id and continues
//! at the positions of the old topic, which skips the records before them (its `rd_kafka_topic_metadata_update` notes
//! that an offset reset is missing there). It also keeps the old leader epochs, which may stop it for good. It reports
//! the change in its debug log only, so the detector reads that log. Tests fail if a later version changes the text.
//!
//! Invariant: an id counts as new once, so brokers that learn of a new topic one after another do not look like several
//! recreations.

use std::collections::{HashMap, HashSet};

/// The all-zero id, which stands for no topic.
const ZERO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";
/// The most ids to remember per topic. It exceeds the number of brokers whose metadata may differ.
const MAX_IDS_PER_TOPIC: usize = 64;

/// The ids seen per topic, and the topics recreated since their last acknowledgement.
#[derive(Debug, Default)]
pub(super) struct RecreationDetector {
    ids: HashMap<String, HashSet<String>>,
    recreated: HashSet<String>,
}

impl RecreationDetector {
    /// Reads a line of librdkafka's debug log.
    pub(super) fn observe(&mut self, line: &str) {
        let Some((topic, id)) = changed(line).filter(|(_, id)| *id != ZERO_ID) else {
            return;
        };
        let ids = self.ids.entry(topic.to_owned()).or_default();
        if ids.contains(id) {
            return;
        }
        if !ids.is_empty() {
            self.recreated.insert(topic.to_owned());
        }
        if ids.len() == MAX_IDS_PER_TOPIC {
            ids.clear();
        }
        ids.insert(id.to_owned());
    }

    /// Returns true if the topic was recreated since the last acknowledgement.
    pub(super) fn is_recreated(&self, topic: &str) -> bool {
        self.recreated.contains(topic)
    }

    /// Acknowledges a recreation. Returns false if there was none.
    pub(super) fn acknowledge(&mut self, topic: &str) -> bool {
        self.recreated.remove(topic)
    }
}

/// Returns the topic and its new id if the line reports a change of id.
fn changed(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.split_once(" changed id from ")?;
    let (_, topic) = before.rsplit_once(' ')?;
    let (_, id) = after.split_once(" to ")?;
    Some((topic, id.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(topic: &str, from: &str, to: &str) -> String {
        format!("[thrd:main]: Topic {topic} changed id from {from} to {to}")
    }

    #[test]
    fn a_topic_is_anew_when_its_id_is_another_and_was_never_heard() {
        let mut recreations = RecreationDetector::default();
        let mut observe = |from: &str, to: &str| {
            recreations.observe(&line("sluice.outcomes", from, to));
            recreations.acknowledge("sluice.outcomes")
        };
        assert!(!observe(ZERO_ID, "first"), "the first id is that of the topic");
        assert!(observe("first", "second"));
        assert!(!observe("second", "first"), "a broker that does not know yet");
        assert!(!observe("first", "second"));
        assert!(!observe(ZERO_ID, "second"), "another consumer");
        assert!(!observe("second", ZERO_ID));
        assert!(observe(ZERO_ID, "third"), "it was gone for a while");
    }

    #[test]
    fn topics_are_told_apart_and_other_lines_say_nothing() {
        let mut recreations = RecreationDetector::default();
        recreations.observe(&line("one", ZERO_ID, "first"));
        recreations.observe(&line("other", ZERO_ID, "second"));
        recreations.observe("[thrd:main]: Topic one [0] Leader 1 Epoch 0");
        recreations.observe("changed id from one to other");
        assert!(!recreations.is_recreated("one") && !recreations.is_recreated("other"));
        recreations.observe(&line("one", "first", "third"));
        assert!(recreations.is_recreated("one") && !recreations.is_recreated("other"));
    }
}
