//! Columns of the pages of a dataset, and records as their rows.
//!
//! Invariant: members of a record that the contract does not name are one column, the last of all.

use std::collections::BTreeMap;

use pages::{ColumnChoice, ColumnOrder, ShownColumn};
use serde_json::value::{RawValue, to_raw_value};
use types::contract::EXTRA_COLUMN;
use types::{Contract, Field, FieldType};

use crate::error::ApiError;
use crate::rules::profiles::ShownProfile;

/// Columns of a page where the address names none.
const PAGE_COLUMNS: usize = 24;
/// Most columns that are chosen one by one.
const MAX_SINGLE_CHOICES: usize = 48;
/// Bytes of all names of a contract up to which a filter offers each.
const MAX_NAMES_BYTES: usize = 6_000;

/// Returns the columns of a dataset: the fields of its contract, and that of the other members.
pub(super) fn all_columns(contract: &Contract) -> Vec<Field> {
    let mut columns = contract.fields().to_vec();
    if contract.allow_extra() {
        columns.push(Field::new(EXTRA_COLUMN, FieldType::Json));
    }
    columns
}

/// Columns of a page.
pub(super) struct ShownColumns {
    pub(super) indexes: Vec<usize>,
    /// The columns in an address.
    pub(super) word: String,
    /// True if they are those of an address that names none.
    pub(super) is_usual: bool,
}

impl ShownColumns {
    /// Reads the columns of an address. What names no column is left out; with none left, the usual ones are shown.
    pub(super) fn of(words: &[String], columns: &[Field]) -> Self {
        let usual: Vec<usize> = (0..columns.len().min(PAGE_COLUMNS)).collect();
        let mut indexes = Vec::new();
        // A name has neither a comma nor a bracket in it.
        for word in words.iter().flat_map(|words| words.split(',')) {
            let range = word.strip_prefix('(').and_then(|word| word.strip_suffix(')'));
            if let Some((first, last)) = range.and_then(|range| range.split_once('-')) {
                if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
                    indexes.extend(first..=last.min(columns.len().saturating_sub(1)));
                }
            } else {
                indexes.extend(columns.iter().position(|field| field.name == word));
            }
        }
        indexes.sort_unstable();
        indexes.dedup();
        indexes.truncate(PAGE_COLUMNS);
        if indexes.is_empty() {
            indexes.clone_from(&usual);
        }
        let names = indexes
            .iter()
            .filter_map(|at| columns.get(*at))
            .map(|field| field.name.as_str());
        let names: Vec<&str> = names.collect();
        Self {
            word: match (indexes.first(), indexes.last()) {
                (Some(first), Some(last)) if last - first + 1 == indexes.len() && indexes.len() > 3 => {
                    format!("({first}-{last})")
                }
                _ => names.join(","),
            },
            is_usual: indexes == usual,
            indexes,
        }
    }

    /// Returns the columns that a reader can choose from, and true if they are ranges.
    pub(super) fn choices(&self, columns: &[Field]) -> (Vec<ColumnChoice>, bool) {
        if columns.len() <= MAX_SINGLE_CHOICES {
            let choices = columns.iter().enumerate().map(|(at, field)| ColumnChoice {
                value: field.name.clone(),
                label: field.name.clone(),
                here: self.indexes.contains(&at),
            });
            return (choices.collect(), false);
        }
        let mut choices = Vec::new();
        for (number, range) in columns.chunks(PAGE_COLUMNS).enumerate() {
            let first = number * PAGE_COLUMNS;
            let last = first + range.len() - 1;
            choices.push(ColumnChoice {
                value: format!("({first}-{last})"),
                label: format!("{} to {} of {}", first + 1, last + 1, columns.len()),
                here: self.word == format!("({first}-{last})"),
            });
        }
        (choices, true)
    }
}

/// Returns the columns with the figures of a profile.
pub(super) fn with_profile(
    columns: &[Field],
    indexes: &[usize],
    profile: Option<&ShownProfile>,
    order: Option<(usize, ColumnOrder)>,
) -> Vec<ShownColumn> {
    let column = |at: &usize| {
        Some(ShownColumn {
            field: columns.get(*at)?.clone(),
            profile: profile.and_then(|profile| profile.figures.columns.get(*at)).cloned(),
            records: profile.map_or(0, |profile| profile.records),
            order: order.filter(|(column, _)| column == at).map(|(_, order)| order),
        })
    };
    indexes.iter().filter_map(column).collect()
}

/// Members of a record, each as JSON text.
pub(super) type RecordMembers = BTreeMap<String, Box<RawValue>>;

/// Returns the values of a record for these columns. The last column of all can be that of the members that the contract does
/// not name.
pub(super) fn aligned(
    mut record: RecordMembers,
    contract: &Contract,
    columns: &[Field],
    shown: &[usize],
) -> Vec<Option<Box<RawValue>>> {
    let known = contract.fields().len();
    let mut values: Vec<Option<Box<RawValue>>> = contract
        .fields()
        .iter()
        .map(|field| record.remove(&field.name))
        .collect();
    if columns.len() > known {
        values.push(others(&record));
    }
    shown
        .iter()
        .map(|at| values.get_mut(*at).and_then(Option::take))
        .collect()
}

/// Returns the members that are left of a record as one value.
pub(super) fn others(record: &RecordMembers) -> Option<Box<RawValue>> {
    (!record.is_empty()).then(|| to_raw_value(record).ok()).flatten()
}

/// Returns the members of a record.
pub(super) fn members(record: &RawValue) -> Result<RecordMembers, ApiError> {
    serde_json::from_str(record.get()).map_err(|error| ApiError::internal(format!("a record: {error}")))
}

/// Columns without figures, and the choice of them.
pub(in crate::ops::site::dataset) struct BareColumns {
    pub(in crate::ops::site::dataset) indexes: Vec<usize>,
    pub(in crate::ops::site::dataset) columns: Vec<ShownColumn>,
    pub(in crate::ops::site::dataset) choices: Vec<ColumnChoice>,
    /// True if they are chosen by ranges.
    pub(in crate::ops::site::dataset) has_ranges: bool,
    /// The columns in an address; `None` for the usual ones.
    word: Option<String>,
}

impl BareColumns {
    /// Reads the columns of an address.
    pub(in crate::ops::site::dataset) fn of(words: &[String], contract: &Contract) -> Self {
        let columns = all_columns(contract);
        let shown = ShownColumns::of(words, &columns);
        let (choices, has_ranges) = shown.choices(&columns);
        Self {
            columns: with_profile(&columns, &shown.indexes, None, None),
            choices,
            has_ranges,
            word: (!shown.is_usual).then_some(shown.word),
            indexes: shown.indexes,
        }
    }

    /// Returns the columns as a further member of an address; nothing for the usual ones.
    pub(in crate::ops::site::dataset) fn member(&self) -> String {
        self.word.as_ref().map_or_else(String::new, |word| {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            format!("&{}", query.append_pair("cols", word).finish())
        })
    }
}

/// Returns the values of a record for these columns of a contract.
pub(in crate::ops::site::dataset) fn values(
    record: &RawValue,
    contract: &Contract,
    shown: &[usize],
) -> Result<Vec<Option<Box<RawValue>>>, ApiError> {
    Ok(aligned(members(record)?, contract, &all_columns(contract), shown))
}

/// Returns the names that a filter can have: all of them, or those of the page where all would be too much for it.
pub(super) fn names_to_filter(columns: &[Field], shown: &ShownColumns) -> Vec<String> {
    let all = columns.iter().map(|field| field.name.len()).sum::<usize>();
    let is_much = all > MAX_NAMES_BYTES;
    let names = columns
        .iter()
        .enumerate()
        .filter(|(at, _)| !is_much || shown.indexes.contains(at));
    names.map(|(_, field)| field.name.clone()).collect()
}
