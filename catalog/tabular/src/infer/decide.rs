//! The type of a column, by what its values still allow.
//!
//! Invariant: a type that is no text is one that every value has, nulls aside. What is left of a doubt is a note or a
//! question.

use types::{FieldType, decimal};

use super::answer::{MAX_REMARKS, Note, NullWordCount, Question, shown};
use super::decide_times::{kind_of_form, pattern_of};
use super::numbers::NumberFacts;
use super::options::InferOptions;
use super::profile::{ColumnProfile, Exclusion, ReadingFamily, WordMeaning};

/// A better type is named if it has fewer exceptions than one in so many values.
const EXCEPTIONS_SHARE: u64 = 100;
/// Words of names that say time.
const TIME_WORDS: [&str; 16] = [
    "t",
    "ts",
    "at",
    "on",
    "time",
    "date",
    "day",
    "datetime",
    "timestamp",
    "epoch",
    "created",
    "updated",
    "modified",
    "since",
    "until",
    "when",
];
/// Seconds since 1970 from 1980 to 2100; the same in parts of a second has more zeros.
const UNIX_SECONDS: std::ops::Range<i64> = 315_532_800..4_102_444_800;
/// `YYYYMMDD` from 1800 to 2199.
const WRITTEN_DATES: std::ops::Range<i64> = 18_000_101..22_000_101;

/// Notes and questions, in their order.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    pub(super) notes: Vec<Note>,
    pub(super) questions: Vec<Question>,
}

impl Remarks {
    pub(super) fn note(&mut self, note: Note) {
        if self.notes.len() < MAX_REMARKS {
            self.notes.push(note);
        }
    }

    pub(super) fn ask(&mut self, question: Question) {
        if self.questions.len() < MAX_REMARKS {
            self.questions.push(question);
        }
    }
}

/// Type and reading that a column gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecidedColumn {
    pub(super) kind: FieldType,
    pub(super) parse: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) round: bool,
    pub(super) nulls: u64,
    pub(super) null_words: Vec<NullWordCount>,
}

impl DecidedColumn {
    /// Returns true if the values of a JSON member come as they stand. A number becomes a decimal of the same digits only if
    /// it is translated.
    pub(super) const fn is_plain(&self, profile: &ColumnProfile) -> bool {
        let has_digits = matches!(self.kind, FieldType::Decimal(_)) && profile.number.count > 0;
        self.parse.is_none() && self.zone.is_none() && !self.round && !has_digits
    }

    pub(super) const fn of(kind: FieldType) -> Self {
        Self {
            kind,
            parse: None,
            zone: None,
            round: false,
            nulls: 0,
            null_words: Vec::new(),
        }
    }
}

/// A column to decide on.
pub(super) struct OpenColumn<'a> {
    pub(super) profile: &'a ColumnProfile,
    /// Name in the file.
    pub(super) name: &'a str,
    /// Name of the field.
    pub(super) field: &'a str,
    /// True for a cell of a delimited file, false for a member of JSON objects.
    pub(super) is_cell: bool,
    /// The sign before decimals.
    pub(super) decimal: char,
    /// Lines that are asked about in any case: what they exclude is no exception of their columns.
    pub(super) asked_lines: &'a [u64],
    /// Type of the field of an existing contract.
    pub(super) wanted: Option<FieldType>,
    pub(super) options: &'a InferOptions,
}

/// Returns the sign before decimals in a delimited file, and the columns that look like thousands.
pub(super) fn decimal_sign<'a>(
    profiles: impl IntoIterator<Item = &'a ColumnProfile>,
    delimiter: char,
    options: &InferOptions,
) -> char {
    if options.decimal_comma {
        return ',';
    }
    let (mut every, mut some, mut points) = (false, false, false);
    for profile in profiles {
        let number = &profile.number;
        if !profile.numbers.holds() || number.count == 0 {
            continue;
        }
        points |= !number.points.is_none();
        if number.points.is_none() && number.commas_of_three < number.commas.count {
            some = true;
            every |= number.commas.count == number.count;
        }
    }
    // Whole numbers stand among `9,5` too. Where another column has points, commas alone tell.
    if delimiter != ',' && (every || some && !points) {
        ','
    } else {
        '.'
    }
}

/// A type that values have, with the reason if that is not what they look like.
enum NumberType {
    Of(FieldType),
    Text(Note),
}

impl OpenColumn<'_> {
    /// Decides, and says what is to be said.
    pub(super) fn decide(&self, remarks: &mut Remarks) -> DecidedColumn {
        let flag = self.options.type_of(self.name, Some(self.field));
        let given = self
            .options
            .reading_of(self.name)
            .and_then(|column| column.parse.clone());
        let mut decided = match (flag, self.wanted, given) {
            (Some(flag), _, given) => self.forced(flag.kind, flag.parse.clone().or(given), remarks),
            (None, Some(wanted), given) => self.forced(wanted, given, remarks),
            (None, None, Some(parse)) => self.forced(kind_of_form(&parse), Some(parse), remarks),
            (None, None, None) if self.is_cell => self.decide_cells(remarks),
            (None, None, None) => self.decide_json(remarks),
        };
        decided.nulls = self.profile.nulls;
        if self.is_cell && !matches!(decided.kind, FieldType::String) {
            self.take_null_words(&mut decided, remarks);
        }
        decided
    }

    /// The column has a type by a flag or by a contract.
    fn forced(&self, kind: FieldType, given: Option<String>, remarks: &mut Remarks) -> DecidedColumn {
        let mut decided = DecidedColumn::of(kind);
        let time = &self.profile.time;
        match kind {
            FieldType::Date | FieldType::Timestamp if given.is_some() => decided.parse = given,
            FieldType::Date | FieldType::Timestamp if time.dates + time.times > 0 => {
                decided.parse = match pattern_of(time) {
                    Ok(parse) => parse,
                    Err(patterns) => {
                        self.ask_day_or_month(&patterns, kind, remarks);
                        None
                    }
                };
                if kind == FieldType::Timestamp && time.dates > 0 {
                    // A date that is written as a contract takes it is no timestamp without a pattern.
                    decided.parse = decided.parse.or_else(|| Some("%Y-%m-%d".to_owned()));
                    remarks.note(
                        Note::new(
                            "midnight",
                            format!("dates in `{}` are taken as midnight", shown(self.name)),
                        )
                        .column(self.name),
                    );
                }
            }
            _ => {}
        }
        if kind == FieldType::Timestamp {
            self.take_zone(&mut decided, remarks);
            self.take_fine(&mut decided, remarks);
        }
        decided
    }

    fn decide_cells(&self, remarks: &mut Remarks) -> DecidedColumn {
        let profile = self.profile;
        if profile.values == 0 {
            let has_number_words = profile.words.iter().any(|word| word.meaning == WordMeaning::Infinity);
            if !has_number_words || profile.words.iter().any(|word| word.meaning == WordMeaning::Signs) {
                self.note_empty(remarks);
            }
            return DecidedColumn::of(FieldType::String);
        }
        if profile.booleans.holds() && self.stray_signs().is_none() {
            return DecidedColumn::of(FieldType::Boolean);
        }
        if self.number_exceptions().is_none() && profile.number.count > 0 {
            return match self.number_type() {
                NumberType::Of(kind) => {
                    self.note_epoch(kind, remarks);
                    DecidedColumn::of(kind)
                }
                NumberType::Text(note) => {
                    remarks.note(note);
                    DecidedColumn::of(FieldType::String)
                }
            };
        }
        if profile.times.holds() && self.stray_signs().is_none() {
            return self.decide_times(remarks);
        }
        if profile.json.holds() && self.stray_signs().is_none() {
            if profile.lossy_json.is_none() {
                return DecidedColumn::of(FieldType::Json);
            }
            let message = format!(
                "`{}` is kept as text: a number in its JSON has more digits than a double keeps",
                shown(self.name)
            );
            remarks.note(
                Note::new("digits", message)
                    .column(self.name)
                    .line(profile.lossy_json.line),
            );
            return DecidedColumn::of(FieldType::String);
        }
        self.note_text(remarks);
        DecidedColumn::of(FieldType::String)
    }

    fn decide_json(&self, remarks: &mut Remarks) -> DecidedColumn {
        let profile = self.profile;
        if profile.values == 0 {
            self.note_empty(remarks);
            return DecidedColumn::of(FieldType::String);
        }
        if profile.mixed.is_none() && profile.texts > 0 {
            if profile.times.holds() {
                return self.decide_times(remarks);
            }
            self.note_exceptions(&[(&profile.times, self.time_kind())], remarks);
            return DecidedColumn::of(FieldType::String);
        }
        if profile.mixed.is_none() && profile.truths > 0 {
            return DecidedColumn::of(FieldType::Boolean);
        }
        if profile.mixed.is_none() && profile.number.count > 0 {
            return match self.number_type() {
                NumberType::Of(kind) => {
                    self.note_epoch(kind, remarks);
                    DecidedColumn::of(kind)
                }
                // A number in a text field is an error of the record, so the digits have to be asked for.
                NumberType::Text(note) => {
                    let mut question = Question::new("digits", note.message);
                    question.line = note.line;
                    remarks.ask(question.column(self.name).remedy("--ignore", &[self.name], ""));
                    DecidedColumn::of(FieldType::Json)
                }
            };
        }
        if !profile.mixed.is_none() {
            let message = format!("`{}` has values of several kinds and becomes `json`", shown(self.name));
            remarks.note(Note::new("mixed", message).column(self.name).line(profile.mixed.line));
        }
        let lossy = profile.lossy_json.with(&profile.number.lossy);
        if !lossy.is_none() {
            let message = format!(
                "{} records will be refused, the first on line {}: a number in `{}` has more digits than a double keeps",
                lossy.count,
                lossy.line,
                shown(self.name)
            );
            remarks.note(Note::new("digits", message).column(self.name).line(lossy.line));
        }
        DecidedColumn::of(FieldType::Json)
    }

    fn note_empty(&self, remarks: &mut Remarks) {
        let message = format!("`{}` has no values; it becomes text", shown(self.name));
        remarks.note(
            Note::new("no_values", message)
                .column(self.name)
                .remedy("--ignore", &[self.name], ""),
        );
    }

    /// The runs of signs of a column, unless there is one that stands for null.
    fn stray_signs(&self) -> Exclusion {
        let runs: Vec<_> = self
            .profile
            .words
            .iter()
            .filter(|word| word.meaning == WordMeaning::Signs)
            .collect();
        match runs.as_slice() {
            [only] if only.count > 1 => Exclusion::default(),
            runs => runs.iter().fold(Exclusion::default(), |sum, run| {
                sum.with(&Exclusion {
                    count: run.count,
                    line: run.line,
                    value: shown(&String::from_utf8_lossy(&run.word)),
                })
            }),
        }
    }

    /// Values that are no numbers as this file writes them.
    fn number_exceptions(&self) -> Exclusion {
        let number = &self.profile.number;
        let other = if self.decimal == ',' {
            &number.points
        } else {
            &number.commas
        };
        self.profile.numbers.excluded.with(other).with(&self.stray_signs())
    }

    fn number_type(&self) -> NumberType {
        let number: &NumberFacts = &self.profile.number;
        let text = |code, words: &str, reason: &Exclusion| {
            let message = format!(
                "`{}` is kept as text: {words}, as in `{}`",
                shown(self.name),
                reason.value
            );
            NumberType::Text(Note::new(code, message).column(self.name).line(reason.line))
        };
        if !number.codes.is_none() {
            let (code, words) = if number.is_plus {
                ("plus_signs", "plus signs")
            } else {
                ("leading_zeros", "leading zeros")
            };
            return text(code, words, &number.codes);
        }
        let is_one_width = number.widths.is_some_and(|(least, most)| least == most);
        if !number.scientific.is_none() && is_one_width && number.scientific.count < number.count {
            return text("codes", "codes of one length", &number.scientific);
        }
        if number.whole == number.count {
            if number.beyond_64_bits.is_none() {
                return NumberType::Of(FieldType::Integer);
            }
            if number.whole_digits <= usize::from(decimal::MAX_DIGITS) {
                return NumberType::Of(FieldType::Decimal(0));
            }
            return text("digits", "more than 28 digits", &number.too_long);
        }
        if number.lossy.is_none() {
            return NumberType::Of(FieldType::Number);
        }
        let fits = number.exponents.is_none()
            && number.too_long.is_none()
            && number.whole_digits + number.scale <= usize::from(decimal::MAX_DIGITS);
        match u8::try_from(number.scale) {
            Ok(scale) if fits && scale <= decimal::MAX_SCALE => NumberType::Of(FieldType::Decimal(scale)),
            _ => text("digits", "more digits than a double or a decimal keeps", &number.lossy),
        }
    }

    /// Notes that whole numbers of a column whose name says time may be instants or dates.
    fn note_epoch(&self, kind: FieldType, remarks: &mut Remarks) {
        let (FieldType::Integer, Some((least, most))) = (kind, self.profile.number.range) else {
            return;
        };
        let folded = crate::names::fold(self.name, 0);
        if !folded.split('_').any(|word| TIME_WORDS.contains(&word)) {
            return;
        }
        let within = |times: i64| {
            let range = UNIX_SECONDS.start * times..UNIX_SECONDS.end * times;
            range.contains(&least) && range.contains(&most)
        };
        let form = [
            (1, "unix-seconds"),
            (1_000, "unix-milliseconds"),
            (1_000_000, "unix-microseconds"),
        ];
        let form = form
            .into_iter()
            .find(|(times, _)| within(*times))
            .map(|(_, form)| ("timestamp", form));
        let is_date = WRITTEN_DATES.contains(&least) && WRITTEN_DATES.contains(&most);
        let Some((kind, form)) = form.or_else(|| is_date.then_some(("date", "%Y%m%d"))) else {
            return;
        };
        let message = format!("`{}` is kept as whole numbers; they may be times", shown(self.name));
        let note = Note::new("epoch", message).column(self.name);
        remarks.note(note.remedy("--types", &[self.name], &format!("={kind}:{form}")));
    }

    /// Notes why a column is text, if it looks like something else.
    fn note_text(&self, remarks: &mut Remarks) {
        let profile = self.profile;
        let numbers = ReadingFamily {
            excluded: self.number_exceptions(),
            is_given_up: profile.numbers.is_given_up,
        };
        let first = &numbers.excluded;
        if !first.is_none() && first.count >= profile.number.count && is_measured(&first.value) {
            let message = format!(
                "`{}` is kept as text: `{}` has a sign or thousands that a number has not",
                shown(self.name),
                first.value
            );
            remarks.note(Note::new("units", message).column(self.name).line(first.line));
            return;
        }
        let number = match self.number_type() {
            NumberType::Of(kind) if profile.number.count > 0 => kind,
            _ => FieldType::String,
        };
        let families = [
            (&profile.booleans, FieldType::Boolean),
            (&numbers, number),
            (&profile.times, self.time_kind()),
            (&profile.json, FieldType::Json),
        ];
        self.note_exceptions(&families, remarks);
    }

    /// Notes a better type that few values exclude.
    fn note_exceptions(&self, families: &[(&ReadingFamily, FieldType)], remarks: &mut Remarks) {
        let values = self.profile.values;
        let found = families.iter().find(|(family, kind)| {
            let count = family.excluded.count;
            let is_few = count.saturating_mul(EXCEPTIONS_SHARE) < values && !family.is_given_up;
            *kind != FieldType::String && is_few && count > 0
        });
        let Some((family, kind)) = found else { return };
        let first = &family.excluded;
        if first.count == 1 && self.asked_lines.contains(&first.line) {
            return;
        }
        let message = format!(
            "`{}` is kept as text: {} of {values} values {} no {}, the first `{}` on line {}",
            shown(self.name),
            first.count,
            if first.count == 1 { "is" } else { "are" },
            kind.name(),
            first.value,
            first.line
        );
        let note = Note::new("exceptions", message)
            .column(self.name)
            .line(first.line)
            .remedy("--null", &[self.name, &first.value], "")
            .remedy("--types", &[self.name], &format!("={}", written_type(*kind)));
        remarks.note(note);
    }

    /// Takes the null words of a column that is no text, and asks about those that may be something else.
    fn take_null_words(&self, decided: &mut DecidedColumn, remarks: &mut Remarks) {
        for tally in &self.profile.words {
            let word = String::from_utf8_lossy(&tally.word).into_owned();
            match tally.meaning {
                WordMeaning::Null | WordMeaning::NotANumber => {
                    decided.nulls += tally.count;
                    decided.null_words.push(NullWordCount {
                        word,
                        count: tally.count,
                    });
                }
                WordMeaning::Infinity => {
                    let message = format!(
                        "`{}` has `{word}` on line {}, which JSON has no number for",
                        shown(self.name),
                        tally.line
                    );
                    let question = Question::new("infinity", message)
                        .column(self.name)
                        .line(tally.line)
                        .remedy("--null", &[self.name, &word], "")
                        .remedy("--types", &[self.name], "=string");
                    remarks.ask(question);
                }
                WordMeaning::Signs => {
                    let message = format!(
                        "`{word}` stands in {} cells of `{}`, the first on line {}: does it mean that there is no value?",
                        tally.count,
                        shown(self.name),
                        tally.line
                    );
                    let question = Question::new("null_word", message)
                        .column(self.name)
                        .line(tally.line)
                        .remedy("--null", &[self.name, &word], "")
                        .remedy("--types", &[self.name], "=string");
                    remarks.ask(question);
                }
            }
        }
        decided.nulls += self.profile.blanks;
    }
}

/// Returns the type as `--types` takes it.
pub(super) fn written_type(kind: FieldType) -> String {
    match kind {
        FieldType::Decimal(scale) => format!("decimal({scale})"),
        kind => kind.name().to_owned(),
    }
}

/// Returns true for a number with a sign of percent or money, or with thousands.
fn is_measured(value: &str) -> bool {
    let value = value.trim();
    let is_unit = |character: char| matches!(character, '%' | '€' | '$' | '£' | '¥') || character.is_whitespace();
    let plain: String = value
        .chars()
        .filter(|character| !is_unit(*character) && *character != ',')
        .collect();
    plain != value && plain.bytes().any(|byte| byte.is_ascii_digit()) && plain.parse::<f64>().is_ok()
}
