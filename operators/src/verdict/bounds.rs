//! Limits on the size of verdicts.
//!
//! Invariant: the size of the verdicts on a batch is bounded by its number of rows, not by their content, and every row
//! that does not pass stays listed, at least with a code.

use std::io;

use serde::Serialize;

use super::{Reason, RowVerdict, Verdict};

/// The most reasons of a refusal. If a row has more, the last one gives their number.
pub const MAX_REASONS: usize = 20;
/// The longest path in bytes: twice the longest name of a field. A longer path ends before the name that does not fit.
const MAX_PATH: usize = 1_024;
/// The longest other text of a reason, in bytes.
const MAX_TEXT: usize = 320;
/// Number of verdicts at the beginning that keep their texts: the first number for which the others fit beside them.
const WHOLE: [usize; 3] = [20, 5, 1];
/// The most reasons of a verdict that keeps its texts.
const MAX_WHOLE_REASONS: usize = 5;
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
    let Some(first) = named.first() else { return };
    named.push(Reason {
        gate: first.gate.clone(),
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
    for text in [&mut reason.code, &mut reason.expected, &mut reason.actual] {
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
        }
    }
    reason
}

/// Shortens verdicts until they fit `bytes` of JSON, as far as that is possible: the last first, and those of duplicates
/// before the others. Each step takes more of a verdict: reasons beyond five, beyond two, the texts, the path. The first
/// verdicts keep up to five reasons with path and texts: 20 of them, or 5, or 1 where the others do not fit beside them.
pub fn fit(verdicts: &mut [RowVerdict], bytes: usize) {
    let mut left = Excess(size(verdicts).saturating_sub(bytes));
    if left.0 == 0 {
        return;
    }
    // A record that ends its batch matters more than a duplicate, whatever their order.
    let (mut order, duplicates): (Vec<_>, Vec<_>) =
        (0..verdicts.len()).partition(|at| !matches!(verdicts[*at].verdict, Verdict::Drop { .. }));
    order.extend(duplicates);
    left.shorten(verdicts, &order, |said| keep(said, MAX_WHOLE_REASONS));
    let mut end = order.len();
    for begin in WHOLE {
        let begin = begin.min(end);
        let shortened = &order[begin..end];
        left.shorten(verdicts, shortened, |said| keep(said, 2));
        left.shorten(verdicts, shortened, without_words);
        left.shorten(verdicts, shortened, without_path);
        end = begin;
    }
}

/// Number of bytes that verdicts have too many.
struct Excess(usize);

impl Excess {
    /// Applies a step to verdicts, the last first, for as long as there is an excess.
    fn shorten(&mut self, verdicts: &mut [RowVerdict], order: &[usize], step: impl Fn(&mut Verdict)) {
        for at in order.iter().rev() {
            if self.0 == 0 {
                return;
            }
            let said = &mut verdicts[*at];
            let before = size(said);
            step(&mut said.verdict);
            // The reason that counts the others may be longer than they are.
            self.0 = (self.0 + size(said)).saturating_sub(before);
        }
    }
}

/// Returns the size of one or more verdicts as JSON, in bytes.
fn size(verdicts: &(impl Serialize + ?Sized)) -> usize {
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
    use crate::{GateName, Verdicts};

    fn reason(path: &str) -> Reason {
        Reason {
            gate: GateName::CONTRACT,
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
        let row = |(row, verdict)| RowVerdict::of_record(u32::try_from(row).unwrap(), verdict);
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
    fn the_first_verdicts_keep_their_words_and_the_last_lose_them_first() {
        let path = format!("/{}", "\u{1}".repeat(600));
        let is_whole = |said: &RowVerdict| reasons(said).iter().all(|reason| !reason.expected.is_empty());
        for (bytes, least, most) in [
            (10 << 20, 500, 500),
            (4 << 20, 500, 500),
            (1_000_000, 20, 499),
            (400 << 10, 20, 20),
            (160 << 10, 5, 5),
            (80 << 10, 1, 1),
        ] {
            let mut verdicts = refused(500, 100, &path);
            fit(&mut verdicts, bytes);
            assert!(size(&verdicts) <= bytes, "{bytes}");
            assert_eq!(verdicts.len(), 500);
            assert!(verdicts.iter().all(|said| reasons(said)[0].code == "missing"));
            let whole = verdicts.iter().take_while(|said| is_whole(said)).count();
            assert!((least..=most).contains(&whole), "{whole} in {bytes}");
            let first = reasons(&verdicts[0]);
            assert!(first.len() >= 5 && first[0].path == path, "{bytes}");
            assert!(
                verdicts.is_sorted_by_key(|said| std::cmp::Reverse(size(&said.verdict) / 64)),
                "{bytes}"
            );
        }
    }

    #[test]
    fn duplicates_lose_their_words_before_what_is_refused() {
        let mut verdicts: Vec<_> = (0..400)
            .map(|row| RowVerdict::of_record(row, Verdict::Drop { reason: reason("") }))
            .collect();
        verdicts.extend(refused(100, 1, "/a").into_iter().map(|said| RowVerdict {
            row: said.row + 400,
            ..said
        }));
        let bytes = size(&verdicts) - 2_000;
        fit(&mut verdicts, bytes);
        assert!(size(&verdicts) <= bytes);
        assert!(verdicts[400..].iter().all(|said| reasons(said)[0] == reason("/a")));
        let is_whole =
            |said: &RowVerdict| matches!(&said.verdict, Verdict::Drop { reason: said } if *said == reason(""));
        assert!(is_whole(&verdicts[0]) && !is_whole(&verdicts[399]));
    }

    #[test]
    fn what_can_never_fit_keeps_its_first_words() {
        let mut verdicts = refused(5_000, 1, "/a");
        fit(&mut verdicts, 64 << 10);
        assert_eq!(verdicts.len(), 5_000);
        assert_eq!(reasons(&verdicts[0]), [reason("/a")]);
        assert_eq!(reasons(&verdicts[4_999])[0].expected, "");
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
