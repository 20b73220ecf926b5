//! Charges against each submission by the notes of all workers of a group.
//!
//! Invariant: a life is charged to a submission only if its last note is that it began to work on it alone: a life that
//! noted anything later outlived it. So a life is charged at most once, and an end while several were in work to
//! nobody.

use std::collections::{HashMap, HashSet};

use types::LifeId;

use crate::message::{Attempt, Step, Subject};

/// Record of submissions that were worked on alone.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    known: HashMap<Subject, Known>,
    is_charged: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// Number of processes that ended with it alone in work, since one outlived it.
    charges: usize,
    /// Number of times that the others waited for it in vain.
    long: u32,
}

impl Ledger {
    /// Sums up notes that come in the order of the log, those of a subject at least. `own` is the life that asks, which
    /// has not ended.
    pub(crate) fn of(notes: &[Attempt], group: &str, own: LifeId) -> Self {
        let notes = || notes.iter().filter(|note| note.group == group);
        let mut last: HashMap<LifeId, &Attempt> = HashMap::new();
        for note in notes() {
            let latest = last.entry(note.life).or_insert(note);
            if note.turn > latest.turn {
                *latest = note;
            }
        }
        let mut begun: HashMap<&Subject, (HashSet<LifeId>, u32)> = HashMap::new();
        for note in notes() {
            let (lives, long) = begun.entry(&note.subject).or_default();
            match note.step {
                Step::Begun => {
                    lives.insert(note.life);
                }
                Step::Acquitted => lives.clear(),
                Step::Long => {
                    lives.clear();
                    *long += 1;
                }
            }
        }
        let ended = |life: &LifeId, subject: &Subject| {
            *life != own
                && last
                    .get(life)
                    .is_some_and(|note| note.step == Step::Begun && note.subject == *subject)
        };
        let known = begun.into_iter().filter_map(|(subject, (lives, long))| {
            let charges = lives.iter().filter(|life| ended(life, subject)).count();
            (charges > 0 || long > 0).then(|| (subject.clone(), Known { charges, long }))
        });
        let known: HashMap<Subject, Known> = known.collect();
        Self {
            is_charged: known.values().any(|known| known.charges > 0),
            known,
        }
    }

    /// Returns true if nobody is charged with anything.
    pub(crate) const fn is_clear(&self) -> bool {
        !self.is_charged
    }

    /// Returns the number of processes that ended with it alone in work.
    pub(crate) fn charges(&self, subject: &Subject) -> usize {
        self.known.get(subject).map_or(0, |known| known.charges)
    }

    /// Number of times that the others waited for it in vain.
    pub(crate) fn long(&self, subject: &Subject) -> u32 {
        self.known.get(subject).map_or(0, |known| known.long)
    }
}

#[cfg(test)]
mod tests {
    use types::Timestamp;

    use super::*;
    use crate::message::FORMAT;

    /// Notes as they are written, each life with its own count.
    #[derive(Default)]
    struct Notes {
        notes: Vec<Attempt>,
        turns: HashMap<LifeId, u64>,
    }

    fn life() -> LifeId {
        LifeId::new(Timestamp::from_micros(1))
    }

    fn subject(name: &str) -> Subject {
        Subject::of(None, name.as_bytes())
    }

    impl Notes {
        fn note(&mut self, group: &str, life: LifeId, step: Step, name: &str) -> &mut Self {
            let turn = self.turns.entry(life).or_default();
            *turn += 1;
            self.notes.push(Attempt {
                format: FORMAT,
                group: group.to_owned(),
                life,
                turn: *turn,
                step,
                subject: subject(name),
                partition: 0,
                offset: 0,
            });
            self
        }

        fn begun(&mut self, life: LifeId, name: &str) -> &mut Self {
            self.note("workers", life, Step::Begun, name)
        }

        fn acquitted(&mut self, life: LifeId, name: &str) -> &mut Self {
            self.note("workers", life, Step::Acquitted, name)
        }

        fn charges(&self, name: &str) -> usize {
            Ledger::of(&self.notes, "workers", life()).charges(&subject(name))
        }
    }

    #[test]
    fn each_life_that_ends_with_a_submission_alone_is_a_charge() {
        let mut notes = Notes::default();
        notes.begun(life(), "a").begun(life(), "a");
        assert_eq!((notes.charges("a"), notes.charges("b")), (2, 0));
    }

    #[test]
    fn a_life_that_went_on_charges_only_what_it_began_last() {
        let mut notes = Notes::default();
        let (one, two) = (life(), life());
        notes.begun(one, "a").begun(one, "b").begun(two, "a").begun(two, "b");
        assert_eq!((notes.charges("a"), notes.charges("b")), (0, 2));
        notes.acquitted(two, "b");
        assert_eq!((notes.charges("a"), notes.charges("b")), (0, 0));
    }

    #[test]
    fn who_is_outlived_once_has_a_clean_slate() {
        let mut notes = Notes::default();
        let patient = life();
        notes.begun(life(), "a").begun(patient, "a").acquitted(patient, "a");
        assert_eq!(notes.charges("a"), 0);
        notes.begun(life(), "a");
        assert_eq!(notes.charges("a"), 1);
        let patient = life();
        notes.begun(patient, "a").note("workers", patient, Step::Long, "a");
        assert_eq!(notes.charges("a"), 0);
        assert_eq!(Ledger::of(&notes.notes, "workers", life()).long(&subject("a")), 1);
    }

    #[test]
    fn a_life_is_charged_once_whatever_it_repeats_and_its_own_not_at_all() {
        let mut notes = Notes::default();
        let (one, own) = (life(), life());
        notes.begun(one, "a").begun(own, "a");
        notes.notes.extend(notes.notes.clone());
        assert_eq!(notes.charges("a"), 2);
        assert_eq!(Ledger::of(&notes.notes, "workers", own).charges(&subject("a")), 1);
        // It comes late, and says nothing against what followed.
        notes.acquitted(one, "a");
        let late = notes.notes[0].clone();
        notes.notes.push(late);
        assert_eq!(notes.charges("a"), 0);
    }

    #[test]
    fn other_groups_are_another_matter() {
        let mut notes = Notes::default();
        notes.note("rivals", life(), Step::Begun, "a");
        notes.note("rivals", life(), Step::Begun, "a");
        assert_eq!(notes.charges("a"), 0);
        assert!(Ledger::of(&notes.notes, "workers", life()).is_clear());
    }
}
