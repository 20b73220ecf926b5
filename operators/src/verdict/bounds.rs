//! Limits on the size of verdicts.
//!
//! Invariant: the size of the verdicts on a batch is bounded by its number of rows, not by their content, and every row
//! that does not pass stays listed, at least with a code.

use std::io;

use super::{Reason, RowVerdict, Verdict};

/// The most reasons of a refusal. If a row has more, the last one gives their number.
pub const MAX_REASONS: usize = 20;
/// The longest path in bytes: twice the longest name of a field. A longer path ends before the name that does not fit.
const MAX_PATH: usize = 1_024;
/// The longest other text of a reason, in bytes.
const MAX_TEXT: usize = 320;
/// The code of the reason that counts the reasons left out.
const MORE: &str = "more";

/// The reasons to refuse one row, and their number including those left out.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    named: Vec<Reason>,
    count: usize,
}

impl Reasons {
    pub(super) fn add(&mut self, reason: impl FnOnce() -> Reason) {
        self.count += 1;
        // Reasons beyond the limit are not even built.
        if self.named.len() < MAX_REASONS {
            self.named.push(cut(reason()));
        }
    }

    pub(super) fn extend(&mut self, reasons: Vec<Reason>) {
        for reason in reasons {
            self.add(|| reason);
        }
    }

    pub(super) fn into_verdict(self) -> Verdict {
        let Self { mut named, count } = self;
        if count > named.len() {
            named.truncate(MAX_REASONS - 1);
            let left_out = count - named.len();
            name_rest(&mut named, left_out, MAX_REASONS);
        }
        Verdict::Refuse { reasons: named }
    }
}

/// Adds a reason that counts the reasons left out; `most` is the limit in force.
fn name_rest(named: &mut Vec<Reason>, left_out: usize, most: usize) {
    let gate = named.first().map(|reason| reason.gate.clone()).unwrap_or_default();
    named.push(Reason {
        gate,
        code: MORE.to_owned(),
        path: String::new(),
        expected: format!("at most {most} reasons to name"),
        actual: format!("{left_out} more"),
    });
}

/// Returns the number of reasons that a reason stands for.
fn stands_for(reason: &Reason) -> usize {
    // A reason that counts others stands for all of them.
    let more = (reason.code == MORE).then(|| reason.actual.split(' ').next()?.parse().ok());
    more.flatten().unwrap_or(1)
}

/// Shortens the texts of a verdict to the limits.
pub(super) fn bounded(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Pass => Verdict::Pass,
        Verdict::Drop { reason } => Verdict::Drop { reason: cut(reason) },
        Verdict::Refuse { reasons } => Verdict::Refuse {
            reasons: reasons.into_iter().map(cut).collect(),
        },
        Verdict::Hold { reason, resumes_after } => Verdict::Hold {
            reason: cut(reason),
            resumes_after,
        },
    }
}

/// Shortens the texts of a reason. A path ends at a whole name, so that it stays a valid pointer.
fn cut(mut reason: Reason) -> Reason {
    if reason.path.len() > MAX_PATH {
        let kept = reason.path.floor_char_boundary(MAX_PATH);
        // Cuts at a separator, so the path still points to a level above.
        let end = reason.path[..kept].rfind('/').unwrap_or(0);
        reason.path.truncate(end);
    }
    for text in [
        &mut reason.gate,
        &mut reason.code,
        &mut reason.expected,
        &mut reason.actual,
    ] {
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
        }
    }
    reason
}

/// Shortens all verdicts step by step until they fit `bytes` of JSON: fewer reasons, then the first without its texts,
/// then without its path.
pub fn fit(verdicts: &mut [RowVerdict], bytes: usize) {
    let steps: [fn(&mut Verdict); 4] = [|said| keep(said, 5), |said| keep(said, 2), without_words, without_path];
    for step in steps {
        // Checked before each step, so no more is removed than needed.
        if size(verdicts) <= bytes {
            return;
        }
        for said in &mut *verdicts {
            step(&mut said.verdict);
        }
    }
}

/// Returns the size of the verdicts as JSON, in bytes.
fn size(verdicts: &[RowVerdict]) -> usize {
    let mut count = Count(0);
    // Writing cannot fail: the counter accepts every byte and the verdicts are valid JSON. If
    // it failed, the verdicts would be shortened the most.
    serde_json::to_writer(&mut count, verdicts).map_or(usize::MAX, |()| count.0)
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Limits a refusal to `most` reasons; the last one counts the others.
fn keep(said: &mut Verdict, most: usize) {
    if let Verdict::Refuse { reasons } = said
        && reasons.len() > most
    {
        let left_out = reasons.drain(most - 1..).map(|reason| stands_for(&reason)).sum();
        name_rest(reasons, left_out, most);
    }
}

/// Removes the texts of a verdict, and all reasons but the first.
fn without_words(said: &mut Verdict) {
    let reason = match said {
        Verdict::Pass => return,
        Verdict::Drop { reason } | Verdict::Hold { reason, .. } => Some(reason),
        Verdict::Refuse { reasons } => {
            reasons.truncate(1);
            reasons.first_mut()
        }
    };
    if let Some(reason) = reason {
        reason.expected.clear();
        reason.actual.clear();
    }
}

/// Removes the paths of a refusal.
fn without_path(said: &mut Verdict) {
    if let Verdict::Refuse { reasons } = said {
        for reason in reasons {
            reason.path.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdicts;

    fn reason(path: &str) -> Reason {
        Reason {
            gate: "contract".to_owned(),
            code: "missing".to_owned(),
            path: path.to_owned(),
            expected: "string".to_owned(),
            actual: "nothing".to_owned(),
        }
    }

    fn refused(rows: usize, reasons: usize, path: &str) -> Vec<RowVerdict> {
        let verdict = || Verdict::Refuse {
            reasons: vec![reason(path); reasons],
        };
        let verdicts = Verdicts::from_exceptions(rows, (0..rows).map(|row| (row, verdict())));
        let row = |(row, verdict)| RowVerdict {
            row: u32::try_from(row).unwrap(),
            verdict,
        };
        verdicts.into_exceptions().into_iter().map(row).collect()
    }

    fn reasons(said: &RowVerdict) -> &[Reason] {
        match &said.verdict {
            Verdict::Refuse { reasons } => reasons,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn beyond_the_most_reasons_the_last_says_how_many() {
        assert_eq!(
            reasons(&refused(1, MAX_REASONS, "/a")[0]),
            vec![reason("/a"); MAX_REASONS]
        );
        let verdicts = refused(1, 1_000, "/a");
        let seen = reasons(&verdicts[0]);
        assert_eq!(seen.len(), MAX_REASONS);
        let last = &seen[MAX_REASONS - 1];
        assert_eq!((last.code.as_str(), last.actual.as_str()), ("more", "981 more"));
    }

    #[test]
    fn a_path_ends_before_a_name_that_is_too_long() {
        let long = "x".repeat(MAX_PATH);
        assert_eq!(reasons(&refused(1, 1, &format!("/a/b/{long}/c"))[0])[0].path, "/a/b");
        assert_eq!(reasons(&refused(1, 1, &format!("/{long}"))[0])[0].path, "");
        let mut wordy = reason("/a");
        wordy.actual = "é".repeat(MAX_TEXT);
        let verdicts = Verdicts::from_exceptions(1, [(0, Verdict::Drop { reason: wordy })]);
        let Verdict::Drop { reason } = &verdicts.exceptions()[0].1 else {
            panic!("dropped")
        };
        assert!(reason.actual.len() <= MAX_TEXT + 3 && reason.actual.ends_with("é…"));
    }

    #[test]
    fn verdicts_that_are_too_large_say_less_of_every_row_and_name_them_all() {
        let path = format!("/{}", "\u{1}".repeat(600));
        let mut before = usize::MAX;
        for (bytes, most) in [(10 << 20, 5), (4 << 20, 2), (1_900_000, 1), (200 << 10, 1)] {
            let mut verdicts = refused(500, 100, &path);
            fit(&mut verdicts, bytes);
            let size = size(&verdicts);
            assert!(size <= bytes && size < before, "{size} in {bytes}");
            before = size;
            assert_eq!(verdicts.len(), 500);
            assert!(verdicts.iter().all(|said| reasons(said)[0].code == "missing"));
            assert!(verdicts.iter().all(|said| reasons(said).len() <= most), "{bytes}");
        }
    }

    #[test]
    fn what_is_not_named_is_counted_however_often_it_is_cut() {
        let mut said = refused(1, 100, "/a").remove(0).verdict;
        keep(&mut said, 5);
        keep(&mut said, 2);
        let Verdict::Refuse { reasons } = said else {
            panic!("refused")
        };
        assert_eq!((reasons.len(), reasons[1].actual.as_str()), (2, "99 more"));
    }
}
