//! The features of a text that the rubric weighs, each from 0 to 1.
//!
//! Invariants:
//! - Most are shares of the text, so a sentence more changes them by what it is of the whole.
//! - Linear in the text, and sums go in a fixed order over + − × ÷ alone: the same text has the same features on every
//!   machine.

use std::collections::HashSet;

use operators::knowledge::Axis;

use super::languages::text_languages;
use super::lexicon::{WordClass, WordClasses};
use super::marks::{MarkedSentence, TextCounts, command, stems};
use super::parse::{ParsedText, words};

macro_rules! rubric_features {
    ($($(#[$doc:meta])+ $name:ident: $axis:ident),+ $(,)?) => {
        /// The features of a text. Each is from 0 to 1.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct RubricFeatures {
            $($(#[$doc])+ pub $name: f64,)+
        }

        impl RubricFeatures {
            /// Names of the features, in the order of [`Self::values`].
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];
            /// The axis that each of them explains.
            pub const AXES: &[Axis] = &[$(Axis::$axis),+];

            /// Returns the features in the order of [`Self::NAMES`].
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name),+]
            }
        }
    };
}

rubric_features! {
    /// Share of sentences with a figure, a name, a cause of a failure or a command.
    evidence: Accuracy,
    /// Share of sentences with two kinds of it.
    joined: Accuracy,
    /// The same share in the first half of the text.
    early: Accuracy,
    /// The least share among the thirds of the text.
    spread: Accuracy,
    /// Share of figures whose sentence names what they are of, or the condition.
    conditioned: Accuracy,
    /// Share of evidence that speaks of what the title or the rest of the text speaks of.
    coherent: Accuracy,
    /// Share of evidence with a word of the title.
    titled: Novelty,
    /// Words that hedge.
    hedged: Accuracy,
    /// Longest run of sentences without evidence, as a share.
    run: Specificity,
    /// Density of vague words.
    vague: Specificity,
    /// Share of sentences that advise or praise and have no evidence.
    talk: Specificity,
    /// Density of selling words.
    market: Novelty,
    /// Density of stock phrases.
    stock: Novelty,
    /// Density of words that address the reader.
    addressed: Specificity,
    /// Words of licenses, thanks and contributors.
    boiler: Novelty,
    /// Words and marks of a template that nobody has filled in.
    template: Novelty,
    /// Share of repeated runs of words.
    repeat: Novelty,
    /// Share of different words among all, for the length of the text.
    varied: Novelty,
    /// Mean length of the words.
    long_words: Specificity,
    /// Share of the text in links.
    links: Novelty,
    /// Sentences and lines of code with evidence; 1 from three.
    some: Accuracy,
    /// Share of lines that are code.
    code: Reproducibility,
    /// Share of rows of tables.
    rows: Reproducibility,
    /// Share of items of lists.
    items: Reproducibility,
    /// Change from one state or version to another, as a share.
    change: Reproducibility,
    /// The strongest of the kinds of a text.
    kind: Reproducibility,
    /// Share of the text that is evidence of something else.
    stray: Novelty,
    /// Talk beside evidence that does not belong to it.
    adorned: Novelty,
    /// Pictograms for letters.
    pictograms: Specificity,
    /// Share of sentences that deny or exclude.
    denials: Accuracy,
    /// Mean length of the items; 1 from 20 words.
    item_words: Reproducibility,
    /// Share of short items.
    short_items: Specificity,
    /// Words that a statement with its circumstances needs and the text lacks; 0 from 25.
    brief: Reproducibility,
    /// Sentences that advise or praise; 1 from six. What is added beside them takes none away.
    talks: Specificity,
    /// Introductions, pointers to other places, and plans.
    idle: Novelty,
    /// Share of sentences with a default, a condition or an exception.
    rules: Accuracy,
    /// Share of items that begin with an emphasis or a pictogram, as lists of features do.
    headed: Specificity,
    /// Lines of code that install or draw a tree of folders, as a share of the text.
    fillers: Reproducibility,
}

/// The kind of a text, by its strongest signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Measurement,
    Procedure,
    Limit,
    Incident,
    Migration,
    Reference,
}

/// What a text is measured to be.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of one thing if it is in the text"
)]
pub(super) struct MeasuredText {
    pub(super) features: RubricFeatures,
    pub(super) kind: TextKind,
    /// Number of sentences and rows of the text.
    pub(super) sentences: usize,
    /// Number of sentences without evidence, and the first of them.
    pub(super) bare: usize,
    pub(super) first_bare: Option<String>,
    /// Number of sentences that advise or praise without evidence, and the first of them.
    pub(super) talk: usize,
    pub(super) first_talk: Option<String>,
    /// The first evidence that speaks of nothing else in the text.
    pub(super) first_stray: Option<String>,
    pub(super) stray: usize,
    /// The first figure whose sentence says neither of what it is nor under which condition.
    pub(super) first_loose: Option<String>,
    pub(super) has_figures: bool,
    pub(super) has_names: bool,
    pub(super) has_versions: bool,
    pub(super) has_environment: bool,
    pub(super) has_commands: bool,
    pub(super) has_cause: bool,
}

/// Returns min(1, x / k).
fn saturated(count: usize, k: f64) -> f64 {
    (number(count) / k).min(1.0)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns a share, 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}

/// Measures a text as if so many of its first sentences without evidence had a figure and a name.
pub(super) fn measured(title: &str, body: &str, parsed: &ParsedText, improved: usize) -> MeasuredText {
    let languages = text_languages(body);
    let mut counts = TextCounts::default();
    let title_lower = title.to_lowercase();
    let title_words = words(&title_lower);
    let of_title: HashSet<&str> = title_words.iter().flat_map(|word| stems(word)).collect();
    let mut marked: Vec<MarkedSentence<'_>> = parsed
        .sentences
        .iter()
        .map(|sentence| counts.mark(sentence, languages, &of_title))
        .collect();
    let bare = marked.iter_mut().filter(|sentence| !sentence.is_evidence());
    for sentence in bare.take(improved) {
        (sentence.figures, sentence.names, sentence.has_title) = (1, 1, true);
    }
    mark_strays(&mut marked);
    for line in &parsed.code {
        if let Some(first) = command(line) {
            counts.commands.insert(first);
        }
    }
    built(body, parsed, &marked, &counts)
}

/// Marks the evidence that shares no word of its subject with the rest of the text.
fn mark_strays(marked: &mut [MarkedSentence<'_>]) {
    // What the sentences without evidence speak of is the subject; a text of evidence alone has the subject of all.
    let bare: HashSet<&str> = marked
        .iter()
        .filter(|sentence| !sentence.is_evidence())
        .flat_map(|sentence| sentence.stems.iter().copied())
        .collect();
    let mut counted = std::collections::HashMap::<&str, (usize, usize)>::new();
    for (at, sentence) in marked.iter().enumerate() {
        for stem in &sentence.stems {
            let (seen, last) = counted.entry(stem).or_insert((0, usize::MAX));
            if *last != at {
                (*seen, *last) = (*seen + 1, at);
            }
        }
    }
    let has_bare = bare.len() >= 8;
    for sentence in marked.iter_mut() {
        let is_tied = |stem: &&str| {
            if has_bare {
                bare.contains(stem)
            } else {
                counted.get(stem).is_some_and(|(seen, _)| *seen > 1)
            }
        };
        sentence.is_stray = !sentence.has_title && !sentence.stems.iter().any(is_tied);
    }
}

/// The sentences of a text with the weight of all of them.
struct WeighedSentences<'a, 'b> {
    marked: &'b [MarkedSentence<'a>],
    whole: f64,
    evidence: f64,
}

impl<'a, 'b> WeighedSentences<'a, 'b> {
    fn of(marked: &'b [MarkedSentence<'a>]) -> Self {
        let mut sentences = Self {
            marked,
            whole: 0.0,
            evidence: 0.0,
        };
        sentences.whole = sentences.sum(|_| true);
        sentences.evidence = sentences.sum(MarkedSentence::is_evidence);
        sentences
    }

    fn sum(&self, is_so: impl Fn(&MarkedSentence<'a>) -> bool) -> f64 {
        let those = self.marked.iter().filter(|sentence| is_so(sentence));
        those.map(MarkedSentence::weight).sum()
    }

    /// Returns a share of the text.
    fn share(&self, is_so: impl Fn(&MarkedSentence<'a>) -> bool) -> f64 {
        share(self.sum(is_so), self.whole)
    }

    /// Returns a share of the evidence.
    fn share_of_evidence(&self, is_so: impl Fn(&MarkedSentence<'a>) -> bool) -> f64 {
        share(
            self.sum(|sentence| sentence.is_evidence() && is_so(sentence)),
            self.evidence,
        )
    }

    fn count(&self, is_so: impl Fn(&MarkedSentence<'a>) -> bool) -> usize {
        self.marked.iter().filter(|sentence| is_so(sentence)).count()
    }

    /// Returns the first sentence of prose that is so.
    fn first(&self, is_so: impl Fn(&MarkedSentence<'a>) -> bool) -> Option<String> {
        let found = self.marked.iter().find(|sentence| !sentence.is_row && is_so(sentence));
        found.map(|sentence| sentence.text.to_owned())
    }

    /// Returns the kind of the text, and how strongly it is of it. Each kind has signs of its own, so that a procedure or a
    /// limit needs no spread.
    fn kind(&self, code: f64, commands: usize) -> (f64, TextKind) {
        let steps = self.share(|sentence| sentence.is_step);
        let kinds = [
            (self.share(MarkedSentence::is_conditioned), TextKind::Measurement),
            (steps.max(code.min(saturated(commands, 2.0))), TextKind::Procedure),
            (self.share(MarkedSentence::is_limit), TextKind::Limit),
            (1.5 * self.share(MarkedSentence::is_incident), TextKind::Incident),
            (self.share(MarkedSentence::is_change), TextKind::Migration),
            (0.9 * self.share(MarkedSentence::is_entry), TextKind::Reference),
        ];
        kinds.into_iter().fold(
            (0.0, TextKind::Reference),
            |best, next| if next.0 > best.0 { next } else { best },
        )
    }
}

fn built(body: &str, parsed: &ParsedText, marked: &[MarkedSentence<'_>], counts: &TextCounts<'_>) -> MeasuredText {
    let sentences = WeighedSentences::of(marked);
    let lines = number(parsed.code.len());
    let code = share(lines, lines + sentences.whole);
    let (kind_share, kind) = sentences.kind(code, counts.commands.len());
    let is_stray = |sentence: &MarkedSentence<'_>| sentence.is_evidence() && sentence.is_stray;
    let is_bare = |sentence: &MarkedSentence<'_>| !sentence.is_row && !sentence.is_evidence();
    let with_figures = sentences.sum(|sentence| sentence.figures > 0);
    MeasuredText {
        features: features(body, parsed, &sentences, counts, (code, kind_share)),
        kind,
        sentences: sentences.count(|sentence| !sentence.is_row),
        bare: sentences.count(is_bare),
        first_bare: sentences.first(is_bare),
        talk: sentences.count(MarkedSentence::is_talk),
        first_talk: sentences.first(MarkedSentence::is_talk),
        stray: sentences.count(|sentence| !sentence.is_row && is_stray(sentence)),
        first_stray: sentences.first(is_stray),
        first_loose: sentences.first(|sentence| sentence.figures > 0 && !sentence.is_conditioned()),
        has_figures: with_figures > 0.0,
        has_names: marked.iter().any(|sentence| sentence.names > 0),
        has_versions: !counts.versions.is_empty(),
        has_environment: counts.environment != WordClasses::default(),
        has_commands: !counts.commands.is_empty() || code > 0.0,
        has_cause: marked.iter().any(|sentence| sentence.has(WordClass::Cause)),
    }
}

fn features(
    body: &str,
    parsed: &ParsedText,
    sentences: &WeighedSentences<'_, '_>,
    counts: &TextCounts<'_>,
    (code, kind): (f64, f64),
) -> RubricFeatures {
    let marked = sentences.marked;
    let (early, spread) = parts(marked);
    let words = number(counts.words).max(30.0);
    let density = |count: usize, per_hundred: f64| (number(count) * 100.0 / words / per_hundred).min(1.0);
    let coherent = sentences.share_of_evidence(|sentence| !sentence.is_stray);
    let talk = sentences.share(MarkedSentence::is_talk);
    RubricFeatures {
        evidence: sentences.share(MarkedSentence::is_evidence),
        joined: sentences.share(|sentence| sentence.is_evidence() && sentence.kinds() >= 2),
        early,
        spread,
        conditioned: share(
            sentences.sum(MarkedSentence::is_conditioned),
            sentences.sum(|sentence| sentence.figures > 0),
        ),
        coherent,
        titled: sentences.share_of_evidence(|sentence| sentence.has_title),
        hedged: density(counts.hedge, 4.0),
        run: longest_run(marked, sentences.whole),
        vague: density(counts.vague, 8.0),
        talk,
        market: density(counts.market, 3.0),
        stock: density(counts.stock, 3.0),
        addressed: density(counts.you, 8.0),
        boiler: density(counts.boiler, 8.0),
        template: density(counts.template, 4.0),
        repeat: repeat(parsed),
        varied: varied(counts),
        long_words: share(number(counts.letters), number(counts.words).max(1.0) * 10.0),
        links: links(body),
        some: saturated(
            sentences.count(MarkedSentence::is_evidence) + parsed.code.len() / 2,
            3.0,
        ),
        code,
        rows: sentences.share(|sentence| sentence.is_row),
        items: sentences.share(|sentence| sentence.is_item),
        change: sentences.share(MarkedSentence::is_change),
        kind: kind.min(1.0),
        stray: sentences.share(|sentence| sentence.is_evidence() && sentence.is_stray),
        adorned: talk * (1.0 - coherent),
        pictograms: saturated(pictograms(body), 5.0),
        denials: sentences.share(|sentence| sentence.has(WordClass::Denial)),
        item_words: mean_words(marked, 20.0, |sentence| sentence.is_item),
        short_items: sentences.share(|sentence| sentence.is_item && sentence.words < 6),
        brief: 1.0 - saturated(counts.words, 25.0),
        talks: saturated(sentences.count(MarkedSentence::is_talk), 6.0),
        idle: density(counts.idle, 6.0),
        rules: sentences.share(|sentence| sentence.has(WordClass::Rule) && sentence.words >= 4),
        headed: sentences.share(|sentence| sentence.is_item && is_headed(sentence.text)),
        fillers: share(
            number(parsed.code.iter().filter(|line| is_filler(line)).count()),
            number(parsed.code.len()) + sentences.whole,
        ),
    }
}

fn mean_words(marked: &[MarkedSentence<'_>], most: f64, of: impl Fn(&MarkedSentence<'_>) -> bool) -> f64 {
    let counted: Vec<usize> = marked
        .iter()
        .filter(|sentence| of(sentence))
        .map(|sentence| sentence.words)
        .collect();
    share(number(counted.iter().sum()), number(counted.len()) * most)
}

/// Returns the share of evidence in the first half, and the least share of the thirds.
fn parts(marked: &[MarkedSentence<'_>]) -> (f64, f64) {
    let of = |part: &[MarkedSentence<'_>]| {
        let whole: f64 = part.iter().map(MarkedSentence::weight).sum();
        let evident = part.iter().filter(|sentence| sentence.is_evidence());
        share(evident.map(MarkedSentence::weight).sum(), whole)
    };
    let count = marked.len();
    let early = of(&marked[..count.div_ceil(2)]);
    if count < 6 {
        return (early, of(marked));
    }
    let thirds = [
        &marked[..count / 3],
        &marked[count / 3..count * 2 / 3],
        &marked[count * 2 / 3..],
    ];
    (early, thirds.into_iter().map(of).fold(1.0, f64::min))
}

/// Returns the longest run without evidence as a share of the text.
fn longest_run(marked: &[MarkedSentence<'_>], whole: f64) -> f64 {
    let (mut run, mut longest) = (0.0, 0.0_f64);
    for sentence in marked {
        run = if sentence.is_evidence() {
            0.0
        } else {
            run + sentence.weight()
        };
        longest = longest.max(run);
    }
    share(longest, whole)
}

/// Returns true for an item that begins with an emphasis or a pictogram.
fn is_headed(text: &str) -> bool {
    text.starts_with("**") || text.starts_with("__") || text.starts_with(is_pictogram)
}

/// Returns true for a line that installs, or that draws a tree of folders.
fn is_filler(line: &str) -> bool {
    const INSTALLERS: [&str; 9] = [
        "pip install",
        "npm install",
        "npm i ",
        "yarn add",
        "pnpm add",
        "cargo add",
        "uv add",
        "git clone",
        "cargo install",
    ];
    let line = line.trim_start_matches(['$', ' ']);
    INSTALLERS.iter().any(|installer| line.starts_with(installer)) || line.contains("── ") || line.starts_with('#')
}

/// Returns how much of the prose is in runs of eight words that came before.
fn repeat(parsed: &ParsedText) -> f64 {
    let prose = parsed.sentences.iter().filter(|sentence| !sentence.is_row);
    let all: Vec<&str> = prose.flat_map(|sentence| words(&sentence.lower)).collect();
    let mut seen = HashSet::new();
    let again = all.windows(8).filter(|run| !seen.insert(*run)).count();
    share(number(again), number(all.len().saturating_sub(7)))
}

/// Returns the share of different words, of which a longer text has fewer.
fn varied(counts: &TextCounts<'_>) -> f64 {
    share(
        number(counts.different.len()),
        6.0 * number(counts.words).sqrt().max(1.0),
    )
}

fn links(body: &str) -> f64 {
    let mut in_links = 0;
    let mut rest = body;
    while let Some(at) = rest.find("://") {
        let after = &rest[at + 3..];
        let length = after
            .find(|c: char| c.is_whitespace() || matches!(c, ')' | '>' | '"'))
            .unwrap_or(after.len());
        in_links += length + 8;
        rest = &after[length..];
    }
    share(number(in_links), number(body.len()))
}

fn pictograms(body: &str) -> usize {
    body.chars().filter(|c| is_pictogram(*c)).count()
}

const fn is_pictogram(c: char) -> bool {
    matches!(c, '\u{1F300}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}')
}
