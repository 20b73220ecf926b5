//! The claims of a text that a model lists, as code counts them, and the scores that follow from what was counted.
//!
//! Invariant: the model only points at passages and answers yes or no about each. A claim counts if its passage stands in
//! the text and holds what its kind must hold; the axes are computed from the number of such claims and from the share of
//! the text that they are, the smaller of the two. Nothing that the text says of itself is a number here.

use std::ops::Range;

use serde::Deserialize;
use types::knowledge::tenths;

use super::SCORE_PROTOCOL;
use super::passages::{FoundPassage, QuotedText, is_within};

/// The most claims of a list.
pub(super) const MAX_CLAIMS: usize = 20;
/// Claims from which their number is full.
const FULL_CLAIMS: f64 = 5.0;
/// The share of the text from which it is full.
const FULL_SHARE: f64 = 0.5;
/// The bytes of a normal form beyond which a text need not have more claims: a list is bounded, a text need not be short.
const MAX_SHARE_BYTES: usize = 5_000;
/// The part of an axis that evidence gives without the rest of what the axis is about.
const BASE: f64 = 0.4;
/// The part of every axis that stays with a contradiction: a text without other fault is refused then.
const CONTRADICTED: f64 = 0.5;
/// The least code points of a subject.
const MIN_SUBJECT_CHARACTERS: usize = 2;
/// The least code points of a method or a condition.
const MIN_METHOD_CHARACTERS: usize = 4;

/// The kind of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClaimKind {
    /// Something was measured or counted.
    Measured,
    /// Something is to be done in a given way: a command, a setting.
    Step,
    /// Something failed, and why.
    Cause,
    /// Something holds up to a bound only, or not in a case.
    Limit,
    /// Something differs between two versions or systems.
    Change,
    /// Something that nobody could test.
    General,
}

impl ClaimKind {
    /// All kinds with their names in JSON.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Measured, "measured"),
        (Self::Step, "step"),
        (Self::Cause, "cause"),
        (Self::Limit, "limit"),
        (Self::Change, "change"),
        (Self::General, "general"),
    ];
}

/// A claim as a model lists it. Every member but the kind is copied from the text; empty where the text has none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedClaim {
    pub(super) quote: String,
    pub(super) kind: ClaimKind,
    pub(super) subject: String,
    pub(super) figure: String,
    pub(super) condition: String,
    pub(super) method: String,
}

/// Part that the text lacks for a reader to test a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MissingPart {
    Nothing,
    Version,
    Machine,
    Data,
    Command,
    Condition,
    Method,
    Source,
}

impl MissingPart {
    /// All parts, as they are named in JSON, each with the request for it.
    pub(super) const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Nothing, "nothing", "say more of how it was found"),
        (Self::Version, "version", "name the version"),
        (Self::Machine, "machine", "name the machine or the place"),
        (Self::Data, "data", "say with which data or load"),
        (Self::Command, "command", "give the command or setting as it was typed"),
        (Self::Condition, "condition", "say under which condition it holds"),
        (Self::Method, "method", "say how it was measured or found"),
        (Self::Source, "source", "say who ran or wrote it, and when"),
    ];

    fn request(self) -> &'static str {
        let found = Self::ALL.iter().find(|(part, _, _)| *part == self);
        found.map_or("", |(_, _, request)| *request)
    }
}

/// A claim that counts.
#[derive(Clone, Debug)]
pub(super) struct CountedClaim {
    /// Quote as the model gave it.
    pub(super) quote: String,
    kind: ClaimKind,
    /// Numbers of its sentences.
    sentences: Range<usize>,
    /// Bytes of the text that belong to it.
    covered: usize,
    has_condition: bool,
    has_method: bool,
    /// Missing part by the answer about this claim; nothing if a reader could test it.
    missing: Option<MissingPart>,
    /// True if the nearest published unit says it too.
    is_known: bool,
}

/// The claims of a text, and what the answers say of them.
#[derive(Debug)]
pub(super) struct ClaimSheet<'a> {
    text: QuotedText<'a>,
    pub(super) claims: Vec<CountedClaim>,
    /// Quotes that stand in the text and do not count, because they are a figure of nothing, or found in no way.
    bare: Vec<(ClaimKind, FoundPassage)>,
    /// Two passages that contradict each other.
    contradiction: Option<[FoundPassage; 2]>,
}

impl<'a> ClaimSheet<'a> {
    /// Counts the claims of a list, in its order. Of those in one sentence the first counts.
    pub(super) fn of(text: QuotedText<'a>, listed: &[ListedClaim]) -> Self {
        let mut sheet = Self {
            text,
            claims: Vec::new(),
            bare: Vec::new(),
            contradiction: None,
        };
        let mut taken = vec![false; sheet.text.sentence_count()];
        for claim in listed.iter().take(MAX_CLAIMS) {
            let Some(found) = sheet.text.find(&claim.quote) else {
                continue;
            };
            let places = taken.get_mut(found.sentences.clone()).unwrap_or_default();
            if places.contains(&true) || claim.kind == ClaimKind::General {
                continue;
            }
            let has_method = sheet.text.contains(&claim.method, MIN_METHOD_CHARACTERS);
            if is_quantity(claim) {
                if !(has_method && sheet.is_of_something(claim)) {
                    sheet.bare.push((claim.kind, found));
                    continue;
                }
            } else if !sheet.text.is_concrete(&found) {
                continue;
            }
            places.fill(true);
            sheet.claims.push(CountedClaim {
                quote: claim.quote.clone(),
                kind: claim.kind,
                covered: sheet.text.covered(&found),
                sentences: found.sentences,
                has_condition: sheet.text.contains(&claim.condition, MIN_METHOD_CHARACTERS),
                has_method,
                missing: None,
                is_known: false,
            });
        }
        sheet
    }

    /// Returns true if at least half of the quotes stand in the text. A list of which most are invented was not made
    /// from it.
    pub(super) fn is_read_from(text: &QuotedText<'_>, listed: &[ListedClaim]) -> bool {
        let found = listed.iter().filter(|claim| text.find(&claim.quote).is_some()).count();
        found * 2 >= listed.len()
    }

    /// Notes for each claim, in order, what a reader would need to test it. Those without an answer count as untested.
    pub(super) fn note_tests(&mut self, missing: &[MissingPart]) {
        for (claim, missing) in self.claims.iter_mut().zip(missing) {
            claim.missing = Some(*missing);
        }
    }

    /// Notes two passages of which the model says that they contradict each other. They count if both stand in the text,
    /// apart from each other.
    pub(super) fn note_contradiction(&mut self, quotes: [&str; 2]) {
        let [first, second] = quotes.map(|quote| self.text.find(quote));
        if let (Some(first), Some(second)) = (first, second)
            && (first.place.end <= second.place.start || second.place.end <= first.place.start)
        {
            self.contradiction = Some([first, second]);
        }
    }

    /// Notes that the nearest published unit says a claim too. `number` is its place in the list.
    pub(super) fn note_known(&mut self, number: usize) {
        if let Some(claim) = self.claims.get_mut(number) {
            claim.is_known = true;
        }
    }

    /// Returns the tenths of accuracy, novelty, reproducibility and specificity.
    pub(super) fn axes(&self) -> [u8; 4] {
        let stated = self.evidence(|_| true);
        let testable = self.evidence(CountedClaim::is_testable);
        let trust = if self.contradiction.is_some() {
            CONTRADICTED
        } else {
            1.0
        };
        let of = |evidence: f64, share: f64| tenths(10.0 * trust * evidence * (BASE + (1.0 - BASE) * share));
        let new = self.share(CountedClaim::is_testable, |claim| !claim.is_known);
        [
            of(stated, self.share(|_| true, |claim| claim.has_method)),
            tenths(10.0 * trust * testable * new),
            tenths(10.0 * trust * testable),
            of(
                stated,
                self.share(|_| true, |claim| claim.has_condition || claim.is_testable()),
            ),
        ]
    }

    /// Returns the requests to the author for the four axes, each with a passage of the text.
    pub(super) fn requests(&self) -> [String; 4] {
        [
            self.accuracy(),
            self.novelty(),
            self.reproducibility(),
            self.specificity(),
        ]
    }

    /// Returns the sentence that says what was counted.
    pub(super) fn remark(&self) -> String {
        let count = self.claims.len();
        let testable = self.claims.iter().filter(|claim| claim.is_testable()).count();
        let percent = (self.covered(|_| true) * 100.0).round();
        format!(
            "{count} claims with a figure, name or command were counted (`{SCORE_PROTOCOL}`); a reader could test {testable} of \
             them; they are {percent:.0} % of the text."
        )
    }

    /// Returns the evidence of the claims that a rule takes, from 0 to 1: the smaller of their number and their share.
    fn evidence(&self, takes: impl Fn(&CountedClaim) -> bool) -> f64 {
        let number = self.claims.iter().filter(|claim| takes(claim)).count();
        (ratio(number, 1) / FULL_CLAIMS)
            .min(self.covered(takes) / FULL_SHARE)
            .min(1.0)
    }

    /// Returns the share of the text that the claims are that a rule takes, from 0 to 1.
    fn covered(&self, takes: impl Fn(&CountedClaim) -> bool) -> f64 {
        let covered: usize = self
            .claims
            .iter()
            .filter(|claim| takes(claim))
            .map(|claim| claim.covered)
            .sum();
        ratio(covered, self.text.size().min(MAX_SHARE_BYTES)).min(1.0)
    }

    /// Returns the share of claims with a property among those that a rule takes.
    fn share(&self, takes: impl Fn(&CountedClaim) -> bool, has: impl Fn(&CountedClaim) -> bool) -> f64 {
        let taken: Vec<_> = self.claims.iter().filter(|claim| takes(claim)).collect();
        let having = taken.iter().filter(|claim| has(claim)).count();
        ratio(having, taken.len())
    }

    /// Returns true if the figure of a quantity is in its quote, and its subject is other words of the text.
    fn is_of_something(&self, claim: &ListedClaim) -> bool {
        claim.figure.contains(|c: char| c.is_numeric())
            && is_within(&claim.quote, &claim.figure)
            && self.text.contains(&claim.subject, MIN_SUBJECT_CHARACTERS)
            && !is_within(&claim.figure, &claim.subject)
    }

    /// Returns the kind of most claims: what sort of text it is.
    fn main_kind(&self) -> ClaimKind {
        let kinds = || {
            self.claims
                .iter()
                .map(|claim| claim.kind)
                .chain(self.bare.iter().map(|(kind, _)| *kind))
        };
        let count = |kind: ClaimKind| kinds().filter(|one| *one == kind).count();
        // The last of equals, so the order of kinds decides and not that of the list.
        let most = ClaimKind::ALL.into_iter().rev().max_by_key(|(kind, _)| count(*kind));
        most.map(|(kind, _)| kind)
            .filter(|kind| count(*kind) > 0)
            .unwrap_or(ClaimKind::General)
    }

    fn accuracy(&self) -> String {
        if let Some([first, second]) = &self.contradiction {
            let [first, second] = [first, second].map(|found| self.said(found.sentences.start));
            return format!("{first} contradicts {second}: correct one of them");
        }
        if self.claims.is_empty() && self.bare.is_empty() {
            let request = how_known(ClaimKind::General);
            return format!(
                "nothing in the text, such as {}, can be checked: {request}",
                self.said(0)
            );
        }
        let bare = self.bare.first().map(|(kind, found)| (*kind, found.sentences.start));
        let unfounded = self.claims.iter().find(|claim| !claim.has_method);
        let unfounded = unfounded.map(|claim| (claim.kind, claim.sentences.start));
        match bare.or(unfounded) {
            Some((kind, sentence)) => format!("{}: {}", self.said(sentence), how_known(kind)),
            None => how_known(self.main_kind()).to_owned(),
        }
    }

    fn novelty(&self) -> String {
        match self.claims.iter().find(|claim| claim.is_known) {
            Some(claim) => format!(
                "{} is in the nearest published unit too: say what yours adds",
                self.said(claim.sentences.start)
            ),
            None => "add more of what you found yourself and a reader could test".to_owned(),
        }
    }

    fn reproducibility(&self) -> String {
        let untested = self.claims.iter().find_map(|claim| {
            let missing = claim.missing.filter(|_| !claim.is_testable())?;
            Some((claim.sentences.start, missing))
        });
        match untested {
            Some((sentence, missing)) => {
                format!(
                    "a reader cannot test {} with what is here: {}",
                    self.said(sentence),
                    missing.request()
                )
            }
            None => to_repeat(self.main_kind()).to_owned(),
        }
    }

    fn specificity(&self) -> String {
        let count = self.text.sentence_count();
        let holds = |sentence: &usize| self.claims.iter().any(|claim| claim.sentences.contains(sentence));
        let empty: Vec<usize> = (0..count).filter(|sentence| !holds(sentence)).collect();
        // A heading is no sentence that one would write otherwise.
        let first = empty
            .iter()
            .find(|sentence| !self.text.sentence(**sentence).trim_start().starts_with('#'));
        let request = to_specify(self.main_kind());
        match first {
            Some(first) => format!(
                "{} of {count} sentences hold nothing that was counted, the first is {}: {request}",
                empty.len(),
                self.said(*first)
            ),
            None => request.to_owned(),
        }
    }

    /// Returns a sentence of the text in quotes.
    fn said(&self, sentence: usize) -> String {
        quoted(self.text.sentence(sentence))
    }
}

impl CountedClaim {
    fn is_testable(&self) -> bool {
        self.missing == Some(MissingPart::Nothing)
    }
}

/// Returns a share; 0 of nothing.
fn ratio(part: usize, whole: usize) -> f64 {
    let double = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    double(part) / double(whole.max(1))
}

/// Returns true if a claim is a figure: by the kind that the model gave it, or because it has one.
fn is_quantity(claim: &ListedClaim) -> bool {
    claim.kind == ClaimKind::Measured || !claim.figure.is_empty()
}

/// Returns the beginning of a sentence of the text, in quotes and on one line.
fn quoted(sentence: &str) -> String {
    /// The most code points of a quote to the author.
    const MAX_QUOTED_CHARACTERS: usize = 80;
    let plain = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = plain
        .trim_matches(|c: char| matches!(c, '.' | '。' | '|' | '#' | ' '))
        .replace(['“', '”'], "\"");
    match plain.char_indices().nth(MAX_QUOTED_CHARACTERS) {
        Some((at, _)) => {
            // At the end of a word, where the script has such.
            let cut = plain[..at].rfind(' ').filter(|space| *space > at / 2).unwrap_or(at);
            format!("“{}…”", plain[..cut].trim_end_matches([',', ';', ':', ' ']))
        }
        None => format!("“{plain}”"),
    }
}

/// Returns the request for the ground of a claim.
const fn how_known(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Measured => "say of what the figure is and how it was measured, when and on what",
        ClaimKind::Step => "say where it was run and what came of it",
        ClaimKind::Cause => "say what showed that this was the cause",
        ClaimKind::Limit => "say how the limit was found or where it is documented",
        ClaimKind::Change => "say on which versions it was seen and how",
        ClaimKind::General => "say how you know: what was run, when and on what",
    }
}

/// Returns the request for what a reader needs to do it again.
const fn to_repeat(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Measured => "give more figures that a reader could measure again, with the version and the machine",
        ClaimKind::Step => "give more of the commands in order, as they were typed",
        ClaimKind::Cause => "give the error, the setting and the version by which a reader would meet it again",
        ClaimKind::Limit => "give the request or the setting by which a reader would meet the limit",
        ClaimKind::Change => "name the versions before and after, and what to run to see the difference",
        ClaimKind::General => "list the commands in order, with versions and the machine",
    }
}

/// Returns the request for what can be tested.
const fn to_specify(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Measured => "give the figure with its unit and the condition",
        ClaimKind::Step => "give the command or the setting",
        ClaimKind::Cause => "name the symptom, the cause and what fixed it",
        ClaimKind::Limit => "give the bound and where it does not hold",
        ClaimKind::Change => "name the versions and what differs",
        ClaimKind::General => "give numbers with units and conditions, names or commands",
    }
}
