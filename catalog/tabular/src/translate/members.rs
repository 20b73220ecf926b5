//! The members of a JSON object, renamed, left out and parsed. Values are kept as they are written.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use types::{Contract, FieldType};

use super::cell::{CellFault, CellRule, quote, sound_digits};
use super::{ProblemList, separate};
use crate::frame::ValueScan;
use crate::reading::{ColumnReading, Reading, ReadingError};
use crate::values::{TimeZones, WrittenNumber};

/// Rules of the members of the objects of a file.
#[derive(Clone, Debug)]
pub(super) struct MemberRules {
    rules: Vec<MemberRule>,
    /// Place in `rules` by the name in the file.
    places: HashMap<Box<[u8]>, usize>,
    /// The place that the member at each position of earlier records had: most records are alike.
    expected: Vec<Option<usize>>,
    /// `"name":` of the member that gets the name of the record.
    key: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct MemberRule {
    /// Name in the file.
    from: Box<[u8]>,
    /// `None` if it is left out.
    cell: Option<CellRule>,
    /// True if texts are read as cells are.
    is_parsed: bool,
}

/// The members of an object that is JSON as far as they show.
pub(crate) struct MemberScan<'a> {
    rest: &'a [u8],
    is_first: bool,
}

/// The text is no JSON object.
pub(crate) struct NoObject;

/// Name in quotes, and value.
type Member<'a> = (&'a [u8], &'a [u8]);

impl<'a> MemberScan<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Result<Self, NoObject> {
        let rest = text.trim_ascii().strip_prefix(b"{").ok_or(NoObject)?;
        Ok(Self { rest, is_first: true })
    }

    /// Returns the value that begins here, and goes behind it.
    fn value(&mut self) -> Result<&'a [u8], NoObject> {
        let rest = self.rest.trim_ascii_start();
        let mut scan = ValueScan::default();
        let end = scan.scan(rest).ok_or(NoObject)?;
        let (value, after) = rest.split_at(end);
        if matches!(value, [] | [b',' | b':' | b'}' | b']', ..]) {
            return Err(NoObject);
        }
        self.rest = after.trim_ascii_start();
        Ok(value)
    }

    fn take(&mut self, wanted: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == wanted => {
                self.rest = rest.trim_ascii_start();
                true
            }
            _ => false,
        }
    }

    /// Returns the name, in quotes, and the value of the next member.
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, NoObject> {
        self.rest = self.rest.trim_ascii_start();
        if self.take(b'}') {
            return if self.rest.is_empty() { Ok(None) } else { Err(NoObject) };
        }
        if !self.is_first && !self.take(b',') {
            return Err(NoObject);
        }
        self.is_first = false;
        if !self.rest.starts_with(b"\"") {
            return Err(NoObject);
        }
        let name = self.value()?;
        if !self.take(b':') {
            return Err(NoObject);
        }
        Ok(Some((name, self.value()?)))
    }
}

impl MemberRules {
    pub(super) fn new(reading: &Reading, contract: &Contract, zones: &TimeZones) -> Result<Self, ReadingError> {
        let kind = |name: &str| {
            let field = contract.fields().iter().find(|field| field.name == name);
            // Any value is kept of an extra.
            field.map_or(FieldType::Json, |field| field.kind)
        };
        let mut rules = Vec::new();
        for (index, column) in reading.columns.iter().enumerate() {
            rules.push(MemberRule {
                from: column.from.as_bytes().into(),
                cell: CellRule::new(reading, (index, column), kind, zones)?,
                is_parsed: column.parse.is_some() || !column.nulls.is_empty() || !reading.nulls.is_empty(),
            });
        }
        for field in contract.fields() {
            if reading.columns.iter().any(|column| column.from == field.name) {
                continue;
            }
            let column = ColumnReading {
                from: field.name.clone(),
                to: Some(field.name.clone()),
                ..ColumnReading::default()
            };
            let cell = CellRule::new(reading, (0, &column), kind, zones)?;
            rules.push(MemberRule {
                from: field.name.as_bytes().into(),
                cell: cell.map(CellRule::unnamed),
                is_parsed: !reading.nulls.is_empty(),
            });
        }
        let places = rules.iter().map(|rule| rule.from.clone()).zip(0..);
        Ok(Self {
            places: places.collect(),
            expected: Vec::new(),
            key: reading.members.as_deref().map(|name| quoted(name.as_bytes())),
            rules,
        })
    }

    /// Appends the begin of an object with the members, and returns true. A text that is no object is appended as it is.
    pub(super) fn translate(&mut self, text: &[u8], out: &mut Vec<u8>, problems: &mut ProblemList) -> bool {
        let start = out.len();
        out.push(b'{');
        let mut object = text;
        let read = self.key.clone().map_or(Ok(()), |name| {
            let mut scan = MemberScan {
                rest: text.trim_ascii_start(),
                is_first: true,
            };
            let key = scan.value()?;
            if !scan.take(b':') {
                return Err(NoObject);
            }
            object = scan.rest;
            self.add(0, &name, key, start, out, problems)
        });
        let read = read.and_then(|()| {
            let mut scan = MemberScan::new(object)?;
            let mut position = usize::from(self.key.is_some());
            while let Some((name, value)) = scan.next()? {
                self.add(position, name, value, start, out, problems)?;
                position += 1;
            }
            Ok(())
        });
        if read.is_err() {
            out.truncate(start);
            out.extend_from_slice(object);
        }
        read.is_ok()
    }

    /// Returns the place of the rule for a name in quotes.
    fn place(&mut self, position: usize, name: &[u8]) -> Result<Option<usize>, NoObject> {
        let plain = name.get(1..name.len() - 1).ok_or(NoObject)?;
        if let Some(Some(expected)) = self.expected.get(position)
            && *self.rules[*expected].from == *plain
        {
            return Ok(Some(*expected));
        }
        let place = if memchr::memchr(b'\\', plain).is_none() {
            self.places.get(plain).copied()
        } else {
            let name: String = serde_json::from_slice(name).map_err(|_error| NoObject)?;
            self.places.get(name.as_bytes()).copied()
        };
        // As many as the rules are enough: further members have none.
        if position < self.rules.len() {
            self.expected.resize(self.expected.len().max(position + 1), None);
            self.expected[position] = place;
        }
        Ok(place)
    }

    /// Appends a member.
    fn add(
        &mut self,
        position: usize,
        name: &[u8],
        value: &[u8],
        start: usize,
        out: &mut Vec<u8>,
        problems: &mut ProblemList,
    ) -> Result<(), NoObject> {
        let Some(place) = self.place(position, name)? else {
            if value == b"null" {
                return Ok(());
            }
            separate(out, start);
            out.extend_from_slice(name);
            out.push(b':');
            out.extend_from_slice(value);
            if let Err(fault) = sound_digits(value) {
                problems.add(|| fault_of(name, fault));
            }
            return Ok(());
        };
        let rule = &self.rules[place];
        let Some(cell) = &rule.cell else {
            // What is left out must be JSON too, or the file would not be what it says.
            return serde_json::from_slice::<IgnoredAny>(value).map_or(Err(NoObject), |_| Ok(()));
        };
        if value == b"null" {
            return Ok(());
        }
        let before = out.len();
        separate(out, start);
        out.extend_from_slice(&cell.member);
        match rule.write(cell, value, out) {
            Ok(true) => {}
            Ok(false) => out.truncate(before),
            Err(MemberFault::Cell(fault)) => {
                out.truncate(before);
                problems.add_fault(cell, fault);
            }
            Err(MemberFault::NoObject) => return Err(NoObject),
        }
        Ok(())
    }
}

enum MemberFault {
    Cell(CellFault),
    NoObject,
}

impl MemberRule {
    /// Writes a value; false if it is null.
    fn write(&self, cell: &CellRule, value: &[u8], out: &mut Vec<u8>) -> Result<bool, MemberFault> {
        let is_text = value.starts_with(b"\"");
        let is_number = matches!(value, [b'-' | b'0'..=b'9', ..]);
        if self.is_parsed && is_text {
            let word: String = serde_json::from_slice(value).map_err(|_error| MemberFault::NoObject)?;
            if cell.is_null_word(word.as_bytes()) {
                return Ok(false);
            }
            if cell.is_time() {
                let word = word.trim_ascii();
                return cell
                    .write_word(word.as_bytes(), out)
                    .map(|()| true)
                    .map_err(MemberFault::Cell);
            }
        } else if self.is_parsed && is_number && cell.is_time() {
            return cell.write_word(value, out).map(|()| true).map_err(MemberFault::Cell);
        } else if is_number && matches!(cell.kind, FieldType::Decimal(_)) {
            // As text it keeps its digits. A number with an exponent is left to the contract.
            if WrittenNumber::parse(value, b'.').is_some_and(|number| number.exponent.is_none() && number.is_json()) {
                return cell.write_word(value, out).map(|()| true).map_err(MemberFault::Cell);
            }
        }
        if !is_text {
            sound_digits(value).map_err(MemberFault::Cell)?;
        }
        out.extend_from_slice(value);
        Ok(true)
    }
}

/// Returns a text in quotes.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    quote(&mut out, text);
    out
}

/// Returns the problem of a member that no rule names.
fn fault_of(name: &[u8], fault: CellFault) -> super::CellProblem {
    let name: String = serde_json::from_slice(name).unwrap_or_default();
    super::CellProblem {
        column: None,
        path: format!("{}{}", super::pointer(&name), fault.path),
        code: fault.code,
        expected: types::json::LostDigits::EXPECTED.to_owned(),
        problem: fault.problem,
    }
}
