//! Whether a name still stands for the topic that it stood for, as librdkafka learns of it.
//!
//! A topic that is deleted and made anew has another id (KIP-516). librdkafka 2.12 takes the new id and goes on at the
//! positions of the old topic, which skips what is before them (its `rd_kafka_topic_metadata_update` notes that an offset
//! reset is missing there), and keeps the old leader epochs, which may stop it for good. It tells nobody of it but its
//! debug log, so this is where it is heard. Tests fail where a later version says it otherwise.
//!
//! Invariant: an id is news once, so that brokers that learn of a new topic one after another are not heard as many.

use std::collections::{HashMap, HashSet};

/// The id of no topic.
const NONE: &str = "AAAAAAAAAAAAAAAAAAAAAA";
/// More ids of a topic than there are copies of what brokers know of it.
const REMEMBERED: usize = 64;

/// The topics that were heard of.
#[derive(Debug, Default)]
pub(super) struct Identities {
    ids: HashMap<String, HashSet<String>>,
    anew: HashSet<String>,
}

impl Identities {
    /// Listens to a line of librdkafka's debug log.
    pub(super) fn hear(&mut self, line: &str) {
        let Some((topic, id)) = changed(line).filter(|(_, id)| *id != NONE) else {
            return;
        };
        let ids = self.ids.entry(topic.to_owned()).or_default();
        if ids.contains(id) {
            return;
        }
        if !ids.is_empty() {
            self.anew.insert(topic.to_owned());
        }
        if ids.len() == REMEMBERED {
            ids.clear();
        }
        ids.insert(id.to_owned());
    }

    /// Whether the topic was made anew since that was settled last.
    pub(super) fn is_anew(&self, topic: &str) -> bool {
        self.anew.contains(topic)
    }

    /// Says that what follows from it was done; whether there was something to do.
    pub(super) fn settle(&mut self, topic: &str) -> bool {
        self.anew.remove(topic)
    }
}

/// The topic and its id, where the line says that it is another than before.
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
        let mut identities = Identities::default();
        let mut hear = |from: &str, to: &str| {
            identities.hear(&line("sluice.outcomes", from, to));
            identities.settle("sluice.outcomes")
        };
        assert!(!hear(NONE, "first"), "the first id is that of the topic");
        assert!(hear("first", "second"));
        assert!(!hear("second", "first"), "a broker that does not know yet");
        assert!(!hear("first", "second"));
        assert!(!hear(NONE, "second"), "another consumer");
        assert!(!hear("second", NONE));
        assert!(hear(NONE, "third"), "it was gone for a while");
    }

    #[test]
    fn topics_are_told_apart_and_other_lines_say_nothing() {
        let mut identities = Identities::default();
        identities.hear(&line("one", NONE, "first"));
        identities.hear(&line("other", NONE, "second"));
        identities.hear("[thrd:main]: Topic one [0] Leader 1 Epoch 0");
        identities.hear("changed id from one to other");
        assert!(!identities.is_anew("one") && !identities.is_anew("other"));
        identities.hear(&line("one", "first", "third"));
        assert!(identities.is_anew("one") && !identities.is_anew("other"));
    }
}
