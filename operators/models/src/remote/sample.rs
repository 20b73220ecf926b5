//! The bound on what one contribution asks the chat model.
//!
//! Invariant: however large a contribution is, it asks about at most so many groups as the bound says, and at most
//! [`MAX_LOCATING_QUESTIONS`] times more for the place of an objection. Groups far into it are asked about too, by chance, so that
//! nobody knows which part is not read.

use parking_lot::Mutex;

/// Questions that find the record of an objection within its group.
const MAX_LOCATING_QUESTIONS: u32 = 32;

/// Questions that a contribution has asked so far.
#[derive(Debug)]
pub(super) struct QuestionSample {
    most: u32,
    state: Mutex<SampleState>,
}

#[derive(Debug, Default)]
struct SampleState {
    /// Groups so far, asked about or not.
    groups: u64,
    asked: u32,
    located: u32,
    /// True once there is an objection, which rejects the whole contribution.
    is_over: bool,
}

impl QuestionSample {
    /// Creates the bound of a contribution that asks about at most `most` groups.
    pub(super) fn new(most: u32) -> Self {
        Self {
            most,
            state: Mutex::default(),
        }
    }

    /// Returns true if the next group is to be asked about: each of the first half of the questions, and then the n-th
    /// group with the chance 1 in n.
    pub(super) fn takes_group(&self) -> bool {
        let mut state = self.state.lock();
        state.groups += 1;
        // Groups are counted before this, so that their number stays the position in the contribution.
        if state.is_over || state.asked >= self.most {
            return false;
        }
        let later = state.groups.saturating_sub(u64::from(self.most.div_ceil(2)));
        if later > 0 && !by_chance(later) {
            return false;
        }
        state.asked += 1;
        true
    }

    /// Notes an objection: nothing that follows can add to it.
    pub(super) fn objects(&self) {
        self.state.lock().is_over = true;
    }

    /// Returns true if the two halves of a group may be asked about.
    pub(super) fn locates(&self) -> bool {
        let mut state = self.state.lock();
        // Both halves are asked about, or none: an answer about one of them says nothing about the
        // other.
        if state.located + 2 > MAX_LOCATING_QUESTIONS {
            return false;
        }
        state.located += 2;
        true
    }
}

/// Returns true once in `n` times, and always if the system has no randomness.
fn by_chance(n: u64) -> bool {
    let mut random = [0; 8];
    // Chance of the system and not a hash of the text: an author could try texts until the hash passes
    // them.
    getrandom::fill(&mut random).is_err() || u64::from_le_bytes(random) % n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_contribution_is_sampled_to_its_end_and_a_small_one_read_whole() {
        let small = QuestionSample::new(16);
        assert!((0..8).all(|_| small.takes_group()));
        let large = QuestionSample::new(16);
        let taken: Vec<usize> = (0..100_000).filter(|_| large.takes_group()).collect();
        assert!((9..=16).contains(&taken.len()), "{taken:?}");
        assert_eq!(taken[..9], [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        // Of a thousand contributions of 100 groups, more than one in twenty is asked about its last ten.
        let is_late = |_: &u32| {
            let sample = QuestionSample::new(16);
            (0..100).filter(|_| sample.takes_group()).any(|group| group >= 90)
        };
        let late = (0..1_000).filter(is_late).count();
        assert!((50..=200).contains(&late), "{late}");
    }

    #[test]
    fn an_objection_ends_the_asking_and_its_place_is_not_looked_for_without_end() {
        let sample = QuestionSample::new(16);
        assert!(sample.takes_group());
        sample.objects();
        assert!(!sample.takes_group());
        assert_eq!((0..1_000).filter(|_| sample.locates()).count(), 16);
    }
}
