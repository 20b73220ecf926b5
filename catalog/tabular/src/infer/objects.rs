//! The members of the JSON objects of a file.
//!
//! Invariant: an object is looked at once, and at most [`MAX_FILE_COLUMNS`] names are kept.

use std::collections::HashMap;

use super::answer::{Note, shown};
use super::decide::Remarks;
use super::delimited::{MAX_FILE_COLUMNS, asked_null_words};
use super::finish::FoundColumn;
use super::options::InferOptions;
use super::profile::{ColumnProfile, Exclusion};
use crate::translate::MemberScan;

/// Columns of the objects of one place.
pub(super) struct ObjectColumns<'a> {
    options: &'a InferOptions,
    columns: Vec<(String, ColumnProfile)>,
    places: HashMap<Box<[u8]>, usize>,
    /// The column that the member at each position of earlier records had: most records are alike.
    expected: Vec<usize>,
    pub(super) records: u64,
    /// Records that are no JSON objects.
    broken: Exclusion,
    /// Names beyond the most that are kept.
    unnamed: Exclusion,
}

impl<'a> ObjectColumns<'a> {
    pub(super) fn new(options: &'a InferOptions) -> Self {
        Self {
            options,
            columns: Vec::new(),
            places: HashMap::new(),
            expected: Vec::new(),
            records: 0,
            broken: Exclusion::default(),
            unnamed: Exclusion::default(),
        }
    }

    /// Names of the members, in the order in which they came.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Number of records in which the members are, by name.
    pub(super) fn common_names(&self) -> usize {
        self.columns
            .iter()
            .filter(|(_, profile)| profile.nulls + profile.values > 1)
            .count()
    }

    /// Adds a record, with the name that it has in an object of records.
    pub(super) fn add(&mut self, record: &[u8], key: Option<&[u8]>, line: u64, budget: &mut usize) {
        self.records += 1;
        if self.add_members(record, key, line, budget).is_none() {
            self.broken.add(record, line);
        }
    }

    fn add_members(&mut self, record: &[u8], key: Option<&[u8]>, line: u64, budget: &mut usize) -> Option<()> {
        let mut position = 0;
        if let Some(key) = key {
            let name = self.options.members.as_deref().unwrap_or(super::document::KEY_NAME);
            let place = self.place_of(name.as_bytes(), position)?;
            self.columns[place].1.add_json(key, line, budget);
            position += 1;
        }
        let mut members = MemberScan::new(record).ok()?;
        while let Some((name, value)) = members.next().ok()? {
            let plain = name.get(1..name.len().saturating_sub(1))?;
            let place = if plain.contains(&b'\\') {
                let name: String = serde_json::from_slice(name).ok()?;
                self.place_of(name.as_bytes(), position)
            } else {
                self.place_of(plain, position)
            };
            match place {
                Some(place) => {
                    if !self.columns[place].1.add_json(value, line, budget) {
                        return None;
                    }
                }
                None => self.unnamed.add(plain, line),
            }
            position += 1;
        }
        Some(())
    }

    fn place_of(&mut self, name: &[u8], position: usize) -> Option<usize> {
        if let Some(expected) = self.expected.get(position)
            && self.columns[*expected].0.as_bytes() == name
        {
            return Some(*expected);
        }
        let place = match self.places.get(name) {
            Some(place) => *place,
            None if self.columns.len() >= MAX_FILE_COLUMNS => return None,
            None => {
                let known = String::from_utf8_lossy(name).into_owned();
                let nulls = asked_null_words(&known, self.options);
                self.columns.push((known, ColumnProfile::with_nulls(nulls)));
                self.places.insert(name.into(), self.columns.len() - 1);
                self.columns.len() - 1
            }
        };
        if position == self.expected.len() {
            self.expected.push(place);
        }
        Some(place)
    }

    /// Returns the columns, and notes what is to be said of their records.
    pub(super) fn finish(self, remarks: &mut Remarks) -> Vec<FoundColumn> {
        if self.broken.count > 0 {
            let message = format!(
                "line {}: the record is no JSON object (`{}`); {} such records will be refused",
                self.broken.line,
                shown(&self.broken.value.chars().take(60).collect::<String>()),
                self.broken.count
            );
            remarks.note(Note::new("broken_records", message).line(self.broken.line));
        }
        if self.unnamed.count > 0 {
            let message = format!(
                "the file has more than {MAX_FILE_COLUMNS} names, the first further one on line {}",
                self.unnamed.line
            );
            remarks.note(Note::new("too_many_names", message).line(self.unnamed.line));
        }
        let columns = self.columns.into_iter();
        columns
            .map(|(name, profile)| FoundColumn {
                name,
                profile,
                is_left_out: false,
            })
            .collect()
    }
}
