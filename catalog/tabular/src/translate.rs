//! Translation: a record of a file and its reading to one line of JSON, or the reasons why not.
//!
//! Invariants:
//! - A line has the members of the record that the reading names, each with the value that it says and no other. A null is
//!   no member.
//! - All cells that say nothing are told, not the first alone. Text of the file is never repeated.

mod cell;
mod members;

use types::batch::MAX_DEFECTS;
use types::json::{LostDigits, push_pointer};
use types::{Contract, FieldType};

use self::cell::{CellFault, CellRule, quote};
use self::members::MemberRules;
pub(crate) use self::members::MemberScan;
use crate::csv::{CsvFormat, CsvRecord, MAX_RECORD_BYTES, RecordProblem};
use crate::reading::{Reading, ReadingError, TextFormat};
use crate::values::{TimeZones, tz_release};

/// Reason why a cell, or a whole record, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellProblem {
    /// Place of the column in the reading; `None` for the whole record, and for a member that the reading does not name.
    pub column: Option<usize>,
    /// JSON pointer of the field in the record; empty for the whole record.
    pub path: String,
    /// The rule that is broken: `value`, `ambiguous_time`, `digits`, `cells`, `after_quote`, `zero`, `line_too_long`,
    /// `too_much_work`, or `more` if the record has more problems than are named.
    pub code: &'static str,
    /// The value that the contract asks for, as the reading has it written.
    pub expected: String,
    /// The problem as words that follow the value, such as "is no number".
    pub problem: String,
}

impl CellProblem {
    fn of_record(code: &'static str, expected: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            column: None,
            path: String::new(),
            code,
            expected: expected.into(),
            problem: problem.into(),
        }
    }
}

/// A translator of the records of one file.
#[derive(Clone, Debug)]
pub struct Translator {
    rules: RecordRules,
    number: Option<NumberMember>,
    /// Bytes of all names, which every record repeats.
    name_bytes: usize,
    fields: usize,
}

#[derive(Clone, Debug)]
enum RecordRules {
    Cells(Box<CellRules>),
    Members(Box<MemberRules>),
}

#[derive(Clone, Debug)]
struct CellRules {
    format: CsvFormat,
    record: CsvRecord,
    /// One per column; `None` for those that are left out.
    columns: Vec<Option<CellRule>>,
    /// True if the header ends in a delimiter: the last column has no name, and records have an empty cell there or none.
    has_open_end: bool,
}

#[derive(Clone, Debug)]
struct NumberMember {
    /// `"name":`
    member: Vec<u8>,
    start: i64,
}

/// Returns `"name":`.
fn member(name: &str) -> Vec<u8> {
    let mut member = Vec::with_capacity(name.len() + 3);
    quote(&mut member, name.as_bytes());
    member.push(b':');
    member
}

fn pointer(name: &str) -> String {
    let mut path = String::new();
    push_pointer(&mut path, name);
    path
}

impl Translator {
    /// Returns a translator to records of `contract`.
    ///
    /// # Errors
    /// The reading does not fit the contract.
    pub fn new(reading: &Reading, contract: &Contract) -> Result<Self, ReadingError> {
        reading.check(contract)?;
        let zones = TimeZones::new();
        let kind = |name: &str| {
            let field = contract.fields().iter().find(|field| field.name == name);
            // What no field names is an extra, which is text.
            field.map_or(FieldType::String, |field| field.kind)
        };
        let rule = |(index, column): (usize, &_)| CellRule::new(reading, (index, column), kind, &zones);
        let rules = match reading.format {
            TextFormat::Csv => RecordRules::Cells(Box::new(CellRules {
                format: reading.csv_format()?,
                record: CsvRecord::default(),
                columns: reading.columns.iter().enumerate().map(rule).collect::<Result<_, _>>()?,
                has_open_end: reading
                    .columns
                    .last()
                    .is_some_and(|last| last.from.is_empty() && last.to.is_none()),
            })),
            TextFormat::Json | TextFormat::JsonLines => {
                RecordRules::Members(Box::new(MemberRules::new(reading, contract, &zones)?))
            }
        };
        let number = reading.number.as_ref().map(|number| NumberMember {
            member: member(&number.field),
            start: number.start,
        });
        let names = contract.fields().iter().map(|field| field.name.len() + 4);
        Ok(Self {
            rules,
            number,
            name_bytes: names.sum(),
            fields: contract.fields().len(),
        })
    }

    /// Returns the bytes that the names of all fields take in a record, and the number of fields: the work that a record
    /// makes whatever its length.
    pub const fn record_work(&self) -> (usize, usize) {
        (self.name_bytes, self.fields)
    }

    /// Appends the record as a JSON object to `out`. `text` is the record as [`crate::frame::RecordReader`] cuts it out, and
    /// `number` the number of records before it in the file.
    ///
    /// A record that is no object, or no JSON, is appended as it is: whoever reads the line refuses it.
    ///
    /// # Errors
    /// All problems of the record, at most [`MAX_DEFECTS`]; nothing is appended then.
    pub fn translate(&mut self, text: &[u8], number: u64, out: &mut Vec<u8>) -> Result<(), Vec<CellProblem>> {
        let start = out.len();
        let mut problems = ProblemList::default();
        let is_open = match &mut self.rules {
            RecordRules::Cells(rules) => {
                rules.translate(text, out, &mut problems);
                true
            }
            RecordRules::Members(rules) => rules.translate(text, out, &mut problems),
        };
        if is_open {
            if let Some(NumberMember { member, start: first }) = &self.number {
                separate(out, start);
                out.extend_from_slice(member);
                let number = first.saturating_add(i64::try_from(number).unwrap_or(i64::MAX));
                out.extend_from_slice(number.to_string().as_bytes());
            }
            out.push(b'}');
        }
        if out.len() - start > MAX_RECORD_BYTES {
            problems.add(|| {
                CellProblem::of_record(
                    "too_much_work",
                    format!("a record of at most {MAX_RECORD_BYTES} bytes with the names of its fields"),
                    "is longer: shorten its values",
                )
            });
        }
        if problems.count == 0 {
            return Ok(());
        }
        out.truncate(start);
        Err(problems.end())
    }
}

/// Writes the sign before the next member of an object that begins at `start`.
fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start + 1 {
        out.push(b',');
    }
}

/// Returns the release of the time zone database if a reading was made with another one.
pub fn other_tz_release(reading: &Reading) -> Option<&'static str> {
    let has_zone = reading.columns.iter().any(|column| column.zone.is_some());
    let own = tz_release()?;
    reading
        .tz
        .as_deref()
        .filter(|release| has_zone && *release != own)
        .map(|_| own)
}

/// The problems of a record. Texts are made for at most [`MAX_DEFECTS`].
#[derive(Debug, Default)]
struct ProblemList {
    named: Vec<CellProblem>,
    count: usize,
}

impl ProblemList {
    fn add(&mut self, problem: impl FnOnce() -> CellProblem) {
        self.count += 1;
        if self.count <= MAX_DEFECTS {
            self.named.push(problem());
        }
    }

    fn add_fault(&mut self, rule: &CellRule, fault: CellFault) {
        let is_of_digits = fault.code == "digits";
        self.add(|| CellProblem {
            column: rule.column,
            path: format!("{}{}", rule.path, fault.path),
            code: fault.code,
            expected: if is_of_digits {
                LostDigits::EXPECTED.to_owned()
            } else {
                rule.expected.clone()
            },
            problem: fault.problem,
        });
    }

    fn end(mut self) -> Vec<CellProblem> {
        const NAMED: usize = MAX_DEFECTS - 1;
        if self.count > MAX_DEFECTS {
            // One place is kept for the line that counts the rest.
            self.named.truncate(NAMED);
            self.named.push(CellProblem::of_record(
                "more",
                format!("at most {MAX_DEFECTS} reasons to name"),
                format!("{} more", self.count - NAMED),
            ));
        }
        self.named
    }
}

impl CellRules {
    /// Appends the begin of an object with the cells.
    fn translate(&mut self, text: &[u8], out: &mut Vec<u8>, problems: &mut ProblemList) {
        let start = out.len();
        out.push(b'{');
        self.record.set(text, 0, self.format);
        match self.record.problem() {
            None => {}
            Some(RecordProblem::TooLong) => {
                let expected = format!("a record of at most {MAX_RECORD_BYTES} bytes");
                problems.add(|| CellProblem::of_record("line_too_long", expected, "is longer"));
                return;
            }
            Some(RecordProblem::AfterQuote(cell)) => {
                problems.add(|| CellProblem {
                    column: Some(cell),
                    path: self.path(cell),
                    code: "after_quote",
                    expected: "a delimiter or a line end behind a closing quote".to_owned(),
                    problem: "has text behind its closing quote: write a quote within a cell twice".to_owned(),
                });
                return;
            }
        }
        let (found, columns) = (self.record.len(), self.columns.len());
        let wanted = columns - usize::from(self.has_open_end);
        let has_blank_end = || {
            self.record
                .cells()
                .next_back()
                .is_some_and(|cell| cell.trim_ascii().is_empty())
        };
        // A value in the column without a name would be lost in silence.
        if found != wanted && !(found == columns && has_blank_end()) {
            let cells = |count: usize| {
                if count == 1 {
                    "1 cell".to_owned()
                } else {
                    format!("{count} cells")
                }
            };
            let verb = if self.has_open_end { "names" } else { "has" };
            problems.add(|| {
                let problem = format!("has {}, the header {verb} {wanted}", cells(found));
                CellProblem::of_record("cells", format!("a record of {}", cells(wanted)), problem)
            });
            return;
        }
        let has_zero = memchr::memchr(0, text).is_some();
        for (rule, (cell, is_quoted)) in self.columns.iter_mut().zip(self.record.quoted_cells()) {
            let Some(rule) = rule else { continue };
            if has_zero && cell.contains(&0) {
                problems.add_fault(rule, CellFault::zero());
                continue;
            }
            let before = out.len();
            separate(out, start);
            out.extend_from_slice(&rule.member);
            match rule.write(cell, is_quoted, out) {
                Ok(true) => {}
                Ok(false) => out.truncate(before),
                Err(fault) => {
                    out.truncate(before);
                    problems.add_fault(rule, fault);
                }
            }
        }
    }

    fn path(&self, cell: usize) -> String {
        let rule = self.columns.get(cell).and_then(Option::as_ref);
        rule.map(|rule| rule.path.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
