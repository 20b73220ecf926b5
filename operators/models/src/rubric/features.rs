//! The features of a text that the rubric weighs, each from 0 to 1.
//!
//! Invariants:
//! - Most are shares of the text, so a sentence more changes them by what it is of the whole.
//! - Linear in the text, and sums go in a fixed order over + − × ÷ alone: the same text has the same features on every
//!   machine.

use std::collections::HashSet;

use operators::knowledge::{Axis, is_east_asian};

use super::lexicon::{ENVIRONMENT, LexiconLanguages, WordClass, WordClasses, find};
use super::parse::{ParsedText, Sentence, quantities, words};
use super::languages::text_languages;

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
    /// Share of sentences that give a cause or a limit.
    reasons: Accuracy,
    /// Share of evidence that speaks of what the title or the rest of the text speaks of.
    coherent: Accuracy,
    /// Share of evidence that has no word but those of any measurement.
    generic: Novelty,
    /// Share of evidence with a word of the title.
    titled: Novelty,
    /// Words that hedge.
    hedged: Accuracy,
    /// Share of sentences with a figure.
    figures: Specificity,
    /// Share of sentences with a name: an identifier, a version, a path.
    names: Specificity,
    /// Share of sentences with a name in capitals.
    proper: Specificity,
    /// Longest run of sentences without evidence, as a share.
    run: Specificity,
    /// The same run by its number of sentences; 1 from eight.
    long_run: Specificity,
    /// Sentences without evidence; 1 from ten.
    bare: Specificity,
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
    /// Share of questions and exclamations.
    calls: Specificity,
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
    /// Commands; 1 from three different ones.
    commands: Reproducibility,
    /// Share of items and ordered sentences that say what to do with what.
    steps: Reproducibility,
    /// Share of rows of tables.
    rows: Reproducibility,
    /// Share of items of lists.
    items: Reproducibility,
    /// Kinds of the environment that are named; 1 from four.
    environment: Reproducibility,
    /// Names with versions; 1 from three.
    versions: Reproducibility,
    /// A failure with its cause or what ended it, as a share of the sentences around.
    incident: Accuracy,
    /// Change from one state or version to another, as a share.
    change: Reproducibility,
    /// The strongest of the kinds of a text.
    kind: Reproducibility,
    /// Evidence by its coherence.
    grounded: Novelty,
    /// Share of the text that is evidence of something else.
    stray: Novelty,
    /// Talk beside evidence that does not belong to it.
    adorned: Novelty,
    /// Pictograms for letters.
    pictograms: Specificity,
    /// Share of sentences of some length with a condition.
    conditions: Accuracy,
    /// Share of sentences that deny or exclude.
    denials: Accuracy,
    /// Share of sentences that tell what somebody did or saw.
    told: Accuracy,
    /// Mean length of the sentences; 1 from 25 words.
    sentence_words: Specificity,
    /// Mean length of the items; 1 from 20 words.
    item_words: Reproducibility,
    /// Share of short items.
    short_items: Specificity,
    /// Share of sentences that are mostly a link.
    linked: Novelty,
    /// Different figures and names for each word.
    dense: Specificity,
    /// Different figures and names; 1 from twelve.
    facts: Specificity,
    /// Share of sentences that compare.
    compares: Accuracy,
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

/// A sentence and what was found in it.
#[derive(Debug, Default)]
struct MarkedSentence<'a> {
    text: &'a str,
    classes: WordClasses,
    /// Quantities with units, or numbers in a row.
    figures: usize,
    /// Identifiers, versions, paths, and words in code marks.
    names: usize,
    /// Words in capitals, and Latin words in a text of another script.
    proper: usize,
    commands: usize,
    words: usize,
    is_row: bool,
    is_item: bool,
    is_call: bool,
    is_step: bool,
    /// Beginnings of the words that are of a subject and not of any measurement.
    stems: Vec<&'a str>,
    has_title: bool,
    is_stray: bool,
    /// Bytes in links.
    links: usize,
}

impl MarkedSentence<'_> {
    fn has(&self, class: WordClass) -> bool {
        self.classes.has(class)
    }

    fn gives_cause(&self) -> bool {
        self.has(WordClass::Cause) && self.has(WordClass::Symptom)
    }

    fn is_evidence(&self) -> bool {
        self.figures > 0 || self.names > 0 || self.commands > 0 || self.gives_cause()
    }

    fn is_talk(&self) -> bool {
        let talks = self.has(WordClass::Vague)
            || self.has(WordClass::Advice)
            || self.has(WordClass::Market)
            || self.has(WordClass::Stock)
            || self.has(WordClass::You);
        talks && !self.is_evidence()
    }

    /// Number of kinds of evidence.
    fn kinds(&self) -> usize {
        let is_one = [
            self.figures > 0,
            self.names > 0,
            self.commands > 0 || self.is_step,
            self.has(WordClass::Cause) || self.has(WordClass::Limit),
            self.has(WordClass::Before) && self.has(WordClass::After) || self.has(WordClass::Compare) && self.figures > 1,
            self.has(WordClass::Symptom),
            self.proper > 0,
        ];
        is_one.into_iter().filter(|is| *is).count()
    }

    /// Weight of the sentence in shares: a row of a table says less than a sentence.
    fn weight(&self) -> f64 {
        if self.is_row { 0.34 } else { 1.0 }
    }
}

/// Counts over the whole text.
#[derive(Debug, Default)]
struct TextCounts<'a> {
    words: usize,
    letters: usize,
    different: HashSet<&'a str>,
    vague: usize,
    market: usize,
    stock: usize,
    hedge: usize,
    you: usize,
    boiler: usize,
    template: usize,
    commands: HashSet<&'a str>,
    versions: HashSet<&'a str>,
    environment: WordClasses,
    facts: HashSet<&'a str>,
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
        .map(|sentence| counts.mark(sentence, languages))
        .collect();
    for sentence in &mut marked {
        sentence.has_title = sentence.stems.iter().any(|stem| of_title.contains(stem));
    }
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
        sentence.is_stray = !sentence.has_title && !sentence.stems.iter().any(|stem| is_tied(&stem));
    }
}

fn built(body: &str, parsed: &ParsedText, marked: &[MarkedSentence<'_>], counts: &TextCounts<'_>) -> MeasuredText {
    let sum = |of: &dyn Fn(&MarkedSentence<'_>) -> bool| -> f64 {
        marked.iter().filter(|sentence| of(sentence)).map(MarkedSentence::weight).sum()
    };
    let whole = sum(&|_| true);
    let shares = |of: &dyn Fn(&MarkedSentence<'_>) -> bool| share(sum(of), whole);
    let evidence_weight = sum(&|sentence| sentence.is_evidence());
    let prose = |sentence: &MarkedSentence<'_>| !sentence.is_row;
    let words = number(counts.words).max(30.0);
    let (early, spread) = parts(marked);
    let (run, long_run) = longest_run(marked, whole);
    let bare_count = marked.iter().filter(|sentence| prose(sentence) && !sentence.is_evidence()).count();
    let talk_count = marked.iter().filter(|sentence| sentence.is_talk()).count();
    let of_evidence = |of: &dyn Fn(&MarkedSentence<'_>) -> bool| {
        share(sum(&|sentence| sentence.is_evidence() && of(sentence)), evidence_weight)
    };
    let with_figures = sum(&|sentence| sentence.figures > 0);
    let evidence = share(evidence_weight, whole);
    let coherent = of_evidence(&|sentence| !sentence.is_stray);
    let conditioned = |sentence: &MarkedSentence<'_>| {
        sentence.figures > 0
            && (sentence.is_row
                || sentence.names > 0
                || sentence.proper > 0
                || sentence.has(WordClass::Condition) && sentence.words >= 6)
    };
    let incident = shares(&|sentence| {
        sentence.has(WordClass::Symptom)
            && (sentence.has(WordClass::Cause) || sentence.has(WordClass::Fix) || sentence.names > 0)
    });
    let change = shares(&|sentence| {
        (sentence.has(WordClass::Before) && sentence.has(WordClass::After) || sentence.has(WordClass::Fix))
            && sentence.names + sentence.proper > 0
    });
    let steps = shares(&|sentence| sentence.is_step);
    let limits = shares(&|sentence| sentence.has(WordClass::Limit) && sentence.names + sentence.figures > 0);
    let measuring = shares(&|sentence| sentence.figures > 0 && conditioned(sentence));
    let lines = number(parsed.code.len());
    let code = share(lines, lines + whole);
    let reference = shares(&|sentence| (sentence.is_row || sentence.is_item) && sentence.names + sentence.figures > 0);
    let kinds = [
        (measuring, TextKind::Measurement),
        (steps.max(code.min(saturated(counts.commands.len(), 2.0))), TextKind::Procedure),
        (limits, TextKind::Limit),
        (1.5 * incident, TextKind::Incident),
        (change, TextKind::Migration),
        (0.9 * reference, TextKind::Reference),
    ];
    let (kind_share, kind) = kinds
        .into_iter()
        .fold((-1.0, TextKind::Reference), |best, next| if next.0 > best.0 { next } else { best });
    let environment = ENVIRONMENT.into_iter().filter(|class| counts.environment.has(*class)).count();
    let density = |count: usize, per_hundred: f64| (number(count) * 100.0 / words / per_hundred).min(1.0);
    let features = RubricFeatures {
        evidence,
        joined: shares(&|sentence| sentence.is_evidence() && sentence.kinds() >= 2),
        early,
        spread,
        conditioned: share(sum(&conditioned), with_figures),
        reasons: shares(&|sentence| sentence.has(WordClass::Cause) || sentence.has(WordClass::Limit)),
        coherent,
        generic: of_evidence(&|sentence| sentence.stems.len() < 2 && sentence.names == 0 && !sentence.is_row),
        titled: of_evidence(&|sentence| sentence.has_title),
        hedged: density(counts.hedge, 4.0),
        figures: share(with_figures, whole),
        names: shares(&|sentence| sentence.names > 0),
        proper: shares(&|sentence| sentence.proper > 0),
        run,
        long_run,
        bare: saturated(bare_count, 10.0),
        vague: density(counts.vague, 8.0),
        talk: shares(&|sentence| sentence.is_talk()),
        market: density(counts.market, 3.0),
        stock: density(counts.stock, 3.0),
        addressed: density(counts.you, 8.0),
        calls: shares(&|sentence| sentence.is_call),
        boiler: density(counts.boiler, 8.0),
        template: density(counts.template, 4.0),
        repeat: repeat(parsed),
        varied: varied(counts),
        long_words: share(number(counts.letters), number(counts.words).max(1.0) * 10.0),
        links: links(body),
        some: saturated(marked.iter().filter(|sentence| sentence.is_evidence()).count() + parsed.code.len() / 2, 3.0),
        code,
        commands: saturated(counts.commands.len(), 3.0),
        steps,
        rows: shares(&|sentence| sentence.is_row),
        items: shares(&|sentence| sentence.is_item),
        environment: saturated(environment, 4.0),
        versions: saturated(counts.versions.len(), 3.0),
        incident,
        change,
        kind: kind_share.clamp(0.0, 1.0),
        grounded: evidence * coherent,
        stray: shares(&|sentence| sentence.is_evidence() && sentence.is_stray),
        adorned: shares(&|sentence| sentence.is_talk()) * (1.0 - coherent),
        pictograms: saturated(pictograms(body), 5.0),
        conditions: shares(&|sentence| sentence.words >= 6 && sentence.has(WordClass::Condition)),
        denials: shares(&|sentence| sentence.has(WordClass::Denial)),
        told: shares(&|sentence| sentence.has(WordClass::FirstHand)),
        sentence_words: mean_words(marked, 25.0, |sentence| !sentence.is_row && !sentence.is_item),
        item_words: mean_words(marked, 20.0, |sentence| sentence.is_item),
        short_items: shares(&|sentence| sentence.is_item && sentence.words < 6),
        linked: shares(&|sentence| sentence.links * 2 > sentence.text.len()),
        dense: (number(counts.facts.len()) * 4.0 / words).min(1.0),
        facts: saturated(counts.facts.len(), 12.0),
        compares: shares(&|sentence| sentence.has(WordClass::Compare)),
    };
    let first = |of: &dyn Fn(&MarkedSentence<'_>) -> bool| {
        let found = marked.iter().find(|sentence| prose(sentence) && of(sentence));
        found.map(|sentence| sentence.text.to_owned())
    };
    let stray = |sentence: &MarkedSentence<'_>| sentence.is_evidence() && sentence.is_stray;
    MeasuredText {
        kind,
        sentences: marked.iter().filter(|sentence| prose(sentence)).count(),
        bare: bare_count,
        first_bare: first(&|sentence| !sentence.is_evidence()),
        talk: talk_count,
        first_talk: first(&|sentence| sentence.is_talk()),
        stray: marked.iter().filter(|sentence| prose(sentence) && stray(sentence)).count(),
        first_stray: first(&stray),
        first_loose: first(&|sentence| sentence.figures > 0 && !conditioned(sentence)),
        has_figures: with_figures > 0.0,
        has_commands: !counts.commands.is_empty() || code > 0.0,
        has_cause: marked.iter().any(|sentence| sentence.has(WordClass::Cause)),
        features,
    }
}

fn mean_words(marked: &[MarkedSentence<'_>], most: f64, of: impl Fn(&MarkedSentence<'_>) -> bool) -> f64 {
    let counted: Vec<usize> = marked.iter().filter(|sentence| of(sentence)).map(|sentence| sentence.words).collect();
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
    let thirds = [&marked[..count / 3], &marked[count / 3..count * 2 / 3], &marked[count * 2 / 3..]];
    (early, thirds.into_iter().map(of).fold(1.0, f64::min))
}

/// Returns the longest run without evidence as a share of the text, and by its length.
fn longest_run(marked: &[MarkedSentence<'_>], whole: f64) -> (f64, f64) {
    let (mut run, mut longest) = (0.0, 0.0_f64);
    for sentence in marked {
        run = if sentence.is_evidence() { 0.0 } else { run + sentence.weight() };
        longest = longest.max(run);
    }
    (share(longest, whole), (longest / 8.0).min(1.0))
}

impl<'a> TextCounts<'a> {
    /// Marks a sentence and counts its words.
    fn mark(&mut self, sentence: &'a Sentence, languages: LexiconLanguages) -> MarkedSentence<'a> {
        let mut marked = MarkedSentence {
            text: &sentence.text,
            is_row: sentence.is_row,
            is_item: sentence.is_item,
            is_call: sentence.text.trim_end_matches(['*', '_', ' ', '"', '”']).ends_with(['!', '?', '！', '？']),
            ..MarkedSentence::default()
        };
        let lower = words(&sentence.lower);
        let (mut acts_first, mut is_ordered) = (false, false);
        let mut listed = vec![false; lower.len()];
        find(&lower, languages, |at, class| {
            marked.classes.insert(class);
            if let Some(listed) = listed.get_mut(at) {
                // Words of these classes are in any text; those of systems and loads are in any measurement.
                *listed |= lower[at].is_ascii() || !languages.has(LexiconLanguages::JAPANESE);
            }
            acts_first |= class == WordClass::Imperative && (at < 3 || languages.has(LexiconLanguages::JAPANESE.and(LexiconLanguages::KOREAN)));
            is_ordered |= class == WordClass::Order && at < 2;
            match class {
                WordClass::Vague => self.vague += 1,
                WordClass::Market => self.market += 1,
                WordClass::Stock => self.stock += 1,
                WordClass::Hedge => self.hedge += 1,
                WordClass::You => self.you += 1,
                WordClass::Boiler => self.boiler += 1,
                WordClass::Template => self.template += 1,
                other if ENVIRONMENT.contains(&other) => self.environment.insert(other),
                _ => {}
            }
        });
        for (word, listed) in lower.iter().zip(listed) {
            let wide = word.chars().filter(|c| is_east_asian(*c)).count();
            // Two signs of these scripts stand for a word.
            let count = if wide > 0 { wide.div_ceil(2) } else { usize::from(word.chars().any(char::is_alphanumeric)) };
            self.words += count;
            self.letters += if wide > 0 { 5 * count } else { count * word.chars().count().min(20) };
            marked.words += count;
            self.different.insert(word);
            self.template += usize::from(word.contains("{{") || word.contains("xxx") || word.starts_with("your_"));
            if !listed {
                marked.stems.extend(stems(word));
            }
        }
        let with_units = quantities(&sentence.lower).filter(|quantity| !quantity.unit.is_empty()).count();
        let bare_numbers = quantities(&sentence.lower).filter(|quantity| quantity.value >= 10.0 && quantity.unit.is_empty());
        marked.figures = with_units + if sentence.is_row || marked.words >= 4 { bare_numbers.count() } else { 0 };
        self.add_names(sentence, &mut marked);
        let objects = marked.figures + marked.names + marked.proper;
        marked.is_step = (acts_first || is_ordered) && objects > 0;
        marked
    }

    /// Adds the identifiers, versions, commands and words in capitals of a sentence.
    fn add_names(&mut self, sentence: &'a Sentence, marked: &mut MarkedSentence<'a>) {
        let outer = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':' | '%'));
        let is_wide_text = sentence.text.chars().any(is_east_asian);
        let mut before = "";
        let mut in_code = false;
        let parted = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '|' | '、' | '。' | '「' | '」');
        for (at, word) in sentence.text.split(parted).filter(|word| !word.is_empty()).enumerate() {
            let ticks = word.matches('`').count();
            let coded = in_code || ticks > 0;
            in_code ^= ticks % 2 == 1;
            let name = word.trim_matches(|c| outer(c) || matches!(c, '.' | ':'));
            if name.contains("://") {
                marked.links += name.len();
            }
            if name.is_empty() || name.len() > 120 || name.contains("://") {
                continue;
            }
            let before_names = marked.names;
            if is_version(name) && before.chars().any(char::is_alphabetic) && before.chars().count() > 1 {
                self.versions.insert(name);
                marked.names += 1;
            } else if is_named_version(name) {
                self.versions.insert(name);
                marked.names += 1;
            } else if (coded && name.chars().any(char::is_alphabetic)) || is_identifier(name) {
                marked.names += 1;
            } else if (is_wide_text && name.chars().take_while(char::is_ascii_alphabetic).count() >= 2)
                || (at > 0 && is_capital(name))
            {
                marked.proper += 1;
            }
            if marked.names > before_names || name.starts_with(|c: char| c.is_ascii_digit()) {
                self.facts.insert(name);
            }
            before = name;
        }
        for code in sentence.text.split('`').skip(1).step_by(2) {
            if let Some(first) = command(code) {
                self.commands.insert(first);
                marked.commands += 1;
            }
        }
    }
}

/// Returns the program of a line that is a command with an argument.
fn command(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['$', '>', ' ']);
    let (first, rest) = line.split_once(' ')?;
    let is_program = first.len() >= 2
        && first.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '/'))
        && first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | '_'));
    (is_program && !rest.trim().is_empty() && !rest.trim_start().starts_with(['=', ':', '{'])).then_some(first)
}

/// Returns true for `API`, `Redis`, `OpenSSL`.
fn is_capital(word: &str) -> bool {
    word.len() >= 2 && word.is_ascii() && word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns the beginnings of a word that stand for its subject: of Latin words six letters, of Hangul two syllables, of
/// Han and Kana each pair of signs.
fn stems(word: &str) -> Vec<&str> {
    let wide = word.chars().any(is_east_asian);
    if !wide {
        let count = word.chars().count();
        let is_word = count >= 4 && word.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '_' | '.' | '\''));
        let end = word.char_indices().nth(6).map_or(word.len(), |(at, _)| at);
        return if is_word { vec![&word[..end]] } else { Vec::new() };
    }
    let starts: Vec<(usize, char)> = word.char_indices().collect();
    let end_of = |index: usize| starts.get(index).map_or(word.len(), |(at, _)| *at);
    if starts.iter().any(|(_, c)| ('\u{AC00}'..='\u{D7A3}').contains(c)) {
        return if starts.len() >= 2 { vec![&word[..end_of(2)]] } else { Vec::new() };
    }
    let is_hiragana = |c: char| ('\u{3041}'..='\u{309F}').contains(&c);
    starts
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| is_east_asian(pair[0].1) && is_east_asian(pair[1].1))
        .filter(|(_, pair)| !is_hiragana(pair[0].1) && !is_hiragana(pair[1].1))
        .map(|(index, pair)| &word[pair[0].0..end_of(index + 2)])
        .collect()
}

/// Returns true for `1.2`, `v1.2.3`, `22.04`.
fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let digits = digits.trim_end_matches(|c: char| !c.is_ascii());
    digits.contains('.')
        && digits.split('.').count() <= 4
        && digits
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
}

/// Returns true for `name:1.2`, `name-1.2.3`, `name@1.2` and hashes of commits.
fn is_named_version(word: &str) -> bool {
    let hash = (7..=40).contains(&word.len())
        && word.chars().all(|c| c.is_ascii_hexdigit())
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic());
    let parted = word.rsplit_once([':', '-', '@', '/']);
    let tagged = parted.is_some_and(|(name, version)| is_version(version) && name.chars().any(char::is_alphabetic));
    hash || tagged
}

/// Returns true for `snake_case`, `camelCase`, `a.b`, `/path/x`, `CODE_CASE`, `E0502`, `--flag`.
fn is_identifier(word: &str) -> bool {
    if !word.is_ascii() || word.len() < 2 {
        // A particle may follow an identifier.
        let latin = word.trim_end_matches(|c: char| !c.is_ascii());
        return latin.len() >= 3 && latin.len() < word.len() && is_identifier(latin);
    }
    let letters = word.chars().any(|c| c.is_ascii_alphabetic());
    let camel = word
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let inner = |mark: char| word.trim_matches(mark).contains(mark);
    let dotted = inner('.')
        && word
            .split('.')
            .all(|part| part.len() >= 2 && part.chars().any(|c| c.is_ascii_alphabetic()));
    let code = word.chars().any(|c| c.is_ascii_digit())
        && word.chars().next().is_some_and(|c| c.is_ascii_uppercase())
        && word.len() >= 3
        && !word.contains('%');
    let path = word.starts_with('/') && word.len() > 3;
    letters && (inner('_') || camel || dotted || code || path || word.starts_with("--") || word.contains("::"))
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
    share(number(counts.different.len()), 6.0 * number(counts.words).sqrt().max(1.0))
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
    body.chars().filter(|c| matches!(c, '\u{1F300}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}')).count()
}
