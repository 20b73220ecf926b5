//! The features of a text that the rubric weighs, each from 0 to 1.
//!
//! Invariant: every count is of distinct items, so repeating a text gains nothing.

use std::collections::HashSet;

use super::contradictions::contradictions;
use super::lexicon::{ENVIRONMENT, WordClass, find};
use super::parse::{ParsedText, Sentence, parse, quantities, words};

/// The features of a text. Each is from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RubricFeatures {
    /// Different quantities with units; 1 from six of them.
    pub qty: f64,
    /// Share of the quantities that have a condition.
    pub ctx: f64,
    /// Different names with versions; 1 from three of them.
    pub ver: f64,
    /// Kinds of the environment that are named.
    pub env: f64,
    /// Commands: 0.6 for a block of code, the rest for options.
    pub cmd: f64,
    /// Steps with evidence or enough words; 1 from four.
    pub steps: f64,
    /// Figures of a spread.
    pub spread: f64,
    /// Comparisons: 1 for a full one with figures, 0.5 for a sign of one.
    pub compare: f64,
    /// A failure with its cause and what ended it.
    pub fail: f64,
    /// Identifiers, by their number and by their density in the text.
    pub terms: f64,
    /// Date: 1 for a full one, 0.5 for a month.
    pub date: f64,
    /// Words that limit a statement; 1 from two different ones.
    pub limit: f64,
    /// Strength of the source.
    pub src: f64,
    /// Density of vague words in the text.
    pub vague: f64,
    /// Different selling words; 1 from two of them.
    pub market: f64,
    /// Share of sentences with advice that no evidence supports, scaled.
    pub advice: f64,
    /// Stock phrases, or a poor vocabulary in a long text.
    pub pad: f64,
    /// Share of repeated runs of eight words, scaled.
    pub repeat: f64,
    /// Contradictions within the text; 1 from two of them.
    pub contra: f64,
    /// Links in place of text.
    pub links: f64,
    /// Numbers and names in place of sentences.
    pub stuff: f64,
    /// Length in words: 0 up to 15, 1 from 80.
    pub len: f64,
}

/// Returns min(1, x / k).
fn sat(count: usize, k: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let count = count as f64;
    (count / k).min(1.0)
}

/// Returns a share, 0 of nothing.
fn share(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let share = part as f64 / whole.max(1) as f64;
    share
}

/// Classes of words, identifiers and quantities of one sentence.
#[derive(Debug, Default)]
struct Marks {
    classes: HashSet<WordClass>,
    identifiers: usize,
    quantities: usize,
}

impl Marks {
    fn has(&self, class: WordClass) -> bool {
        self.classes.contains(&class)
    }

    /// Returns true if the sentence supports what it or a neighbour advises.
    fn is_evidence(&self) -> bool {
        self.quantities > 0 || self.identifiers > 0 || self.has(WordClass::Cause)
    }
}

/// Everything that is counted in one pass over the sentences.
#[derive(Debug, Default)]
struct SentenceCounts {
    quantities: HashSet<(u64, &'static str)>,
    with_condition: HashSet<(u64, &'static str)>,
    identifiers: HashSet<String>,
    versions: HashSet<String>,
    forms: HashSet<(WordClass, &'static str)>,
    vague: usize,
    pairs: bool,
    compares: bool,
    latin_words: usize,
    east_asian: usize,
    number_tokens: usize,
    tokens: usize,
    steps: usize,
    flags: HashSet<String>,
    shell_lines: usize,
}

impl SentenceCounts {
    fn count(&self, class: WordClass) -> usize {
        self.forms.iter().filter(|(of, _)| *of == class).count()
    }
}

/// Returns the features of a text and its source.
pub(super) fn features(title: &str, body: &str, source: &str) -> RubricFeatures {
    let parsed = parse(body);
    let mut counts = SentenceCounts::default();
    let marks: Vec<Marks> = parsed.sentences.iter().map(|sentence| counts.add(sentence)).collect();
    counts.add_code(&parsed);
    counts.add_tables(&parsed);
    // The title names versions and identifiers too, and says what the text is about.
    let mut head = SentenceCounts::default();
    let title_sentence = of_line(title);
    head.add(&title_sentence);
    counts.versions.extend(head.versions);
    counts.identifiers.extend(head.identifiers);
    // Two syllables stand for one word, so that lengths and densities agree between the two languages.
    let weight = share(counts.latin_words * 2 + counts.east_asian, 2);
    let prose = prose(&parsed);
    let mut features = RubricFeatures {
        qty: sat(counts.quantities.len(), 6.0),
        ctx: share(counts.with_condition.len(), counts.quantities.len()),
        ver: sat(counts.versions.len(), 3.0),
        cmd: cmd(&parsed, &counts),
        steps: sat(counts.steps, 4.0),
        spread: sat(counts.count(WordClass::Spread), 3.0),
        compare: compare(&parsed, &counts),
        fail: fail(&marks, &parsed),
        terms: sat(counts.identifiers.len(), 6.0) * 100.0 / weight.max(100.0),
        limit: sat(counts.count(WordClass::Limit), 2.0),
        vague: (sat(counts.vague, 5.0) * 5.0 * 100.0 / weight.max(60.0) / 5.0).min(1.0),
        market: sat(counts.count(WordClass::Market), 2.0),
        advice: advice(&marks),
        pad: pad(&counts, &prose),
        repeat: repeat(&prose),
        links: links(body, weight),
        stuff: ((share(counts.number_tokens, counts.tokens) - 0.45) / 0.25).clamp(0.0, 1.0),
        len: ((weight - 15.0) / 65.0).clamp(0.0, 1.0),
        ..RubricFeatures::default()
    };
    let sourced = of_line(source);
    let mut of_source = SentenceCounts::default();
    let source_marks = of_source.add(&sourced);
    let all = format!("{} {}", body.to_lowercase(), source.to_lowercase());
    features.date = date(&all);
    let kinds = |counts: &SentenceCounts| -> HashSet<WordClass> {
        ENVIRONMENT
            .into_iter()
            .filter(|class| counts.count(*class) > 0)
            .collect()
    };
    let mut environment = kinds(&counts);
    environment.extend(kinds(&of_source));
    features.env = sat(environment.len(), 4.0);
    features.src = source_strength(&source_marks, &of_source, source, &counts, &environment);
    features.contra = sat(contradictions(&parsed), 2.0);
    features
}

fn of_line(text: &str) -> Sentence {
    Sentence {
        lower: text.to_lowercase().replace(['*', '`', '"', '(', ')', '[', ']'], " "),
        text: text.to_owned(),
        is_item: false,
        is_row: false,
    }
}

impl SentenceCounts {
    /// Counts a sentence, and returns its marks.
    fn add(&mut self, sentence: &Sentence) -> Marks {
        let mut marks = Marks::default();
        let lower = words(&sentence.lower);
        let (mut vague, mut forms) = (0, Vec::new());
        find(&lower, |at, class, form| {
            marks.classes.insert(class);
            forms.push((at, class, form));
            vague += usize::from(class == WordClass::Vague);
        });
        self.vague += vague;
        self.forms.extend(forms.iter().map(|(_, class, form)| (*class, *form)));
        for word in &lower {
            self.tokens += 1;
            let east_asian = word.chars().filter(|c| ('\u{1100}'..='\u{D7FF}').contains(c)).count();
            self.east_asian += east_asian;
            self.latin_words += usize::from(east_asian == 0 && word.chars().any(char::is_alphanumeric));
            self.number_tokens += usize::from(word.chars().next().is_some_and(|c| c.is_ascii_digit()));
        }
        self.add_names(sentence, &mut marks);
        let conditioned = marks.has(WordClass::Condition) || marks.identifiers > 0 || sentence.is_row;
        // Numbers without a sentence around them are no evidence.
        let is_stated = sentence.is_row || sentence.is_item || lower.len() >= 4 || marks.has(WordClass::Condition);
        let mut units = HashSet::new();
        for quantity in quantities(&sentence.lower).filter(|quantity| !quantity.unit.is_empty()) {
            marks.quantities += 1;
            if is_stated {
                let key = (quantity.value.to_bits(), quantity.unit);
                self.quantities.insert(key);
                if conditioned {
                    self.with_condition.insert(key);
                }
            }
            self.pairs |= !units.insert(quantity.unit);
        }
        self.compares |= (marks.has(WordClass::Before) && marks.has(WordClass::After)) || marks.has(WordClass::Compare);
        let imperative = forms
            .iter()
            .any(|(at, class, _)| *class == WordClass::Imperative && *at < 3)
            || (sentence.is_item && marks.has(WordClass::Imperative) && !sentence.lower.is_ascii());
        let ordered = forms.iter().any(|(at, class, _)| *class == WordClass::Order && *at < 2);
        // A step says what to do with what: an item without a name, a number or a reason is a heading.
        let is_step = (sentence.is_item && imperative) || ordered;
        self.steps += usize::from(is_step && (marks.is_evidence() || lower.len() >= 8));
        marks
    }

    /// Adds the identifiers and versions of a sentence.
    fn add_names(&mut self, sentence: &Sentence, marks: &mut Marks) {
        let outer = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':' | '%'));
        let raw: Vec<&str> = sentence
            .text
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '|'))
            .collect();
        let mut before = "";
        let mut in_code = false;
        for word in raw {
            let ticks = word.matches('`').count();
            let coded = in_code || ticks > 0;
            in_code ^= ticks % 2 == 1;
            let name = word.trim_matches(|c| outer(c) || matches!(c, '.' | ':'));
            if name.is_empty() || name.len() > 120 {
                continue;
            }
            if is_version(name) && before.chars().any(char::is_alphabetic) && before.chars().count() > 1 {
                self.versions.insert(format!("{} {name}", before.to_lowercase()));
                marks.identifiers += 1;
            } else if is_named_version(name) {
                self.versions.insert(name.to_lowercase());
                marks.identifiers += 1;
            } else if (coded && name.chars().any(char::is_alphabetic)) || is_identifier(name) {
                self.identifiers.insert(name.to_lowercase());
                marks.identifiers += 1;
                if name.starts_with("--") || (coded && name.contains('=')) || name.starts_with('/') {
                    self.flags.insert(name.to_lowercase());
                }
            }
            if word.starts_with("--") && word.len() > 3 {
                self.flags.insert(word.to_lowercase());
            }
            before = name;
        }
        let coded_command = sentence.text.split('`').skip(1).step_by(2);
        self.shell_lines += coded_command
            .filter(|code| code.split_whitespace().count() >= 2)
            .count();
    }

    fn add_code(&mut self, parsed: &ParsedText) {
        const SQL: [&str; 10] = [
            "select", "insert", "update", "delete", "alter", "create", "explain", "vacuum", "join", "where",
        ];
        for line in &parsed.code {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or("");
            self.shell_lines += usize::from(line.split_whitespace().count() >= 2);
            if first
                .chars()
                .all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '.' | '$'))
            {
                self.flags.insert(first.to_owned());
            }
            for word in line.split_whitespace() {
                let lower = word.to_lowercase();
                let told = word.starts_with('-') && word.len() > 1
                    || word.contains('=')
                    || word.contains('/')
                    || SQL.contains(&lower.as_str());
                if told {
                    self.flags.insert(lower.clone());
                }
                let name = lower.trim_matches(|c: char| !c.is_alphanumeric());
                if is_identifier(name) {
                    self.identifiers.insert(name.to_owned());
                }
                if is_named_version(name) {
                    self.versions.insert(name.to_owned());
                }
            }
        }
    }

    /// Counts the bare numbers of a column whose head has a unit.
    fn add_tables(&mut self, parsed: &ParsedText) {
        for table in &parsed.tables {
            let Some((head, rows)) = table.split_first() else {
                continue;
            };
            let units: Vec<_> = head.iter().map(|name| unit_of_column(name)).collect();
            for (cell, unit) in rows.iter().flat_map(|row| row.iter().zip(&units)) {
                for quantity in quantities(&cell.to_lowercase()) {
                    let unit = if quantity.unit.is_empty() {
                        *unit
                    } else {
                        Some(quantity.unit)
                    };
                    // A number under a heading is of what the heading says.
                    let key = (quantity.value.to_bits(), unit.unwrap_or("of a column"));
                    self.quantities.insert(key);
                    self.with_condition.insert(key);
                }
            }
        }
    }
}

/// Returns the unit that the head of a column names.
fn unit_of_column(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    lower
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '/'))
        .find_map(super::parse::unit_of)
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
        // A Korean particle may follow an identifier.
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
    letters && (inner('_') || camel || dotted || code || path || word.starts_with("--"))
}

fn cmd(parsed: &ParsedText, counts: &SentenceCounts) -> f64 {
    let block = parsed.has_block || counts.shell_lines >= 2;
    0.6 * f64::from(u8::from(block)) + 0.4 * sat(counts.flags.len(), 5.0)
}

fn compare(parsed: &ParsedText, counts: &SentenceCounts) -> f64 {
    let numeric = |row: &Vec<String>| {
        row.iter()
            .filter(|cell| cell.chars().any(|c| c.is_ascii_digit()))
            .count()
            >= 2
    };
    let table = parsed
        .tables
        .iter()
        .any(|table| table.iter().skip(1).filter(|row| numeric(row)).count() >= 2);
    // A table of words that has many rows and columns compares too.
    let words = parsed.tables.iter().any(|table| {
        table.len() >= 4
            && table[0].len() >= 3
            && table
                .iter()
                .skip(1)
                .flatten()
                .any(|cell| cell.chars().any(|c| c.is_ascii_digit()) || is_identifier(cell.trim_matches('`')))
    });
    match (
        table || (counts.pairs && counts.compares),
        counts.pairs || counts.compares || words,
    ) {
        (true, _) => 1.0,
        (_, true) => 0.5,
        _ => 0.0,
    }
}

fn fail(marks: &[Marks], parsed: &ParsedText) -> f64 {
    let symptom = marks.iter().position(|marks| marks.has(WordClass::Symptom));
    let Some(symptom) = symptom else { return 0.0 };
    // A failure that no number, name or date tells of is a general remark.
    let told = marks.iter().filter(|marks| marks.is_evidence()).count() >= 2;
    if !told {
        return 0.0;
    }
    let mut apart = 0;
    let mut cause = false;
    for (index, sentence) in parsed.sentences.iter().enumerate().skip(symptom.saturating_sub(2)) {
        cause |= marks[index].has(WordClass::Cause);
        apart += sentence.text.chars().count();
        if cause || apart > 800 {
            break;
        }
    }
    let fixed = marks.iter().any(|marks| marks.has(WordClass::Fix));
    0.4 + 0.4 * f64::from(u8::from(cause)) + 0.2 * f64::from(u8::from(fixed))
}

/// Returns the share of advice that nothing supports.
fn advice(marks: &[Marks]) -> f64 {
    let bare = marks.iter().enumerate().filter(|(index, of)| {
        let around = index.saturating_sub(1)..(index + 2).min(marks.len());
        of.has(WordClass::Advice) && !marks[around].iter().any(Marks::is_evidence)
    });
    ((share(bare.count(), marks.len()) - 0.1) / 0.4).clamp(0.0, 1.0)
}

/// Returns the words of the text outside of tables.
fn prose(parsed: &ParsedText) -> Vec<&str> {
    let sentences = parsed.sentences.iter().filter(|sentence| !sentence.is_row);
    sentences.flat_map(|sentence| words(&sentence.lower)).collect()
}

fn pad(counts: &SentenceCounts, all: &[&str]) -> f64 {
    let types: HashSet<&&str> = all.iter().collect();
    let poor = all.len() > 200 && share(types.len(), all.len()) < 0.35;
    sat(counts.count(WordClass::Pad), 3.0).max(f64::from(u8::from(poor)))
}

/// Returns how much of the prose is in runs of eight words that came before.
fn repeat(all: &[&str]) -> f64 {
    let mut seen = HashSet::new();
    let again = all.windows(8).filter(|run| !seen.insert(*run)).count();
    ((share(again, all.len().saturating_sub(7)) - 0.10) / 0.4).clamp(0.0, 1.0)
}

fn links(body: &str, weight: f64) -> f64 {
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
    if in_links > 0 && weight < 40.0 {
        return 1.0;
    }
    ((share(in_links, body.len()) - 0.3) / 0.4).clamp(0.0, 1.0)
}

/// Returns 1 for a full date, 0.5 for a month.
fn date(lower: &str) -> f64 {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let all: Vec<&str> = words(lower);
    let is_number = |word: &str, least: u32, most: u32| {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        digits.len() == word.len() && digits.parse::<u32>().is_ok_and(|n| (least..=most).contains(&n))
    };
    let year = |word: &str| is_number(word.trim_end_matches('년'), 1990, 2100);
    let mut best: f64 = 0.0;
    for (index, word) in all.iter().enumerate() {
        let parts: Vec<&str> = word.split(['-', '/', '.']).collect();
        if let [a, b, c] = parts.as_slice()
            && is_number(a, 1990, 2100)
            && is_number(b, 1, 12)
            && is_number(c.trim_end_matches(|c: char| !c.is_ascii_digit()), 1, 31)
        {
            return 1.0;
        }
        if let [a, b] = parts.as_slice()
            && is_number(a, 1990, 2100)
            && is_number(b, 1, 12)
        {
            best = best.max(0.5);
        }
        if MONTHS.contains(word) {
            let around = &all[index.saturating_sub(1)..(index + 3).min(all.len())];
            let day = around.iter().any(|word| is_number(word, 1, 31));
            let with_year = around.iter().any(|word| year(word));
            best = best.max(match (day, with_year) {
                (true, true) => 1.0,
                (false, true) | (true, false) => 0.5,
                _ => 0.0,
            });
        }
        if word.ends_with('년') && year(word) {
            let month = all.get(index + 1).is_some_and(|word| word.contains('월'));
            let day = all
                .get(index + 2)
                .is_some_and(|word| word.contains('일') && word.starts_with(|c: char| c.is_ascii_digit()));
            best = best.max(if month && day { 1.0 } else { 0.5 });
        }
        if word.contains('월') && word.starts_with(|c: char| c.is_ascii_digit()) {
            best = best.max(0.5);
        }
        if year(word) {
            best = best.max(0.3);
        }
    }
    best
}

/// Returns the strength of the source: of work of one's own, or of another's.
fn source_strength(
    marks: &Marks,
    of_source: &SentenceCounts,
    source: &str,
    body: &SentenceCounts,
    environment: &HashSet<WordClass>,
) -> f64 {
    let lower = source.to_lowercase();
    let dated = date(&lower);
    let first_hand = marks.has(WordClass::FirstHand) || body.count(WordClass::FirstHand) >= 2;
    let one = |yes: bool| f64::from(u8::from(yes));
    let place = environment.iter().any(|class| !matches!(class, WordClass::Load));
    let size =
        marks.quantities > 0 || source.chars().any(|c| c.is_ascii_digit()) && dated < 1.0 || body.quantities.len() >= 3;
    let own = one(first_hand)
        * (0.35
            + 0.2 * dated
            + 0.2 * one(place)
            + 0.15 * one(size)
            + 0.1 * one(!of_source.versions.is_empty() || !body.versions.is_empty()));
    let other = 0.3 * one(marks.has(WordClass::Organisation))
        + 0.3 * one(source.contains("://") || marks.identifiers > 0)
        + 0.2 * dated;
    own.max(other)
}
