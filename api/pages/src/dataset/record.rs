//! One record of a dataset, whole.

use askama::Template;
use serde_json::value::RawValue;
use types::{Field, Version};

use super::DatasetTab;
use super::column::kind_words;
use super::head::{DatasetHead, DatasetOffer};
use crate::cell::{TableCell, escaped};
use crate::chrome::{PageLayout, Theme};
use crate::filters;

/// Most bytes of a record as HTML.
const MAX_RECORD_BYTES: usize = 64 << 10;

/// Record with the fields of its contract.
#[derive(Clone, Debug)]
pub struct WholeRecord {
    /// Version that it was read from.
    pub version: Version,
    /// Number of records of the version.
    pub records: u64,
    /// Number of the record in the version, from 1.
    pub place: u64,
    /// Fields of the contract, each with the value as JSON.
    pub values: Vec<(Field, Option<Box<RawValue>>)>,
    /// Members that the contract does not name, as a JSON object.
    pub extra: Option<Box<RawValue>>,
}

/// Value of a field, cut to what the page has room for.
struct FieldValue<'a> {
    name: &'a str,
    kind: String,
    value: TableCell,
}

/// Page at `GET /projects/{slug}/rows?row=`: one record.
#[derive(Debug, Template)]
#[template(path = "dataset/record.html")]
pub struct DatasetRecordPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Head of the dataset.
    pub head: DatasetHead,
    /// The record.
    pub record: WholeRecord,
    /// Rows on a page of the viewer.
    pub page: u64,
}

impl DatasetRecordPage {
    /// Returns the values in the order of the contract, and true if the rest of the record did not fit.
    fn values(&self) -> (Vec<FieldValue<'_>>, bool) {
        let mut left = MAX_RECORD_BYTES;
        let mut values = Vec::with_capacity(self.record.values.len());
        let mut is_cut = false;
        let fields = self.record.values.iter();
        let fields = fields.map(|(field, value)| {
            (
                field.name.as_str(),
                field.kind,
                kind_words(field.kind),
                value.as_deref(),
            )
        });
        let extra = self.record.extra.as_deref();
        let extra = extra.map(|extra| ("other fields", types::FieldType::Json, "json".to_owned(), Some(extra)));
        for (name, kind, words, value) in fields.chain(extra) {
            // A letter takes five bytes at most, as a reference or in UTF-8.
            let most = left / 5;
            let may_be_cut = value.is_some_and(|value| value.get().len() > most);
            let value = TableCell::of_record_within(kind, value, most);
            let weight = value.weight() + 2 * escaped(name);
            is_cut |= may_be_cut && value.written().ends_with('…');
            left = left.saturating_sub(weight);
            values.push(FieldValue {
                name,
                kind: words,
                value,
            });
        }
        (values, is_cut)
    }

    /// Returns the address of a record of the same version.
    fn at(&self, place: u64) -> String {
        format!(
            "/projects/{}/rows?version={}&row={place}",
            self.head.slug, self.record.version
        )
    }

    fn before(&self) -> Option<String> {
        (self.record.place > 1).then(|| self.at(self.record.place - 1))
    }

    fn after(&self) -> Option<String> {
        (self.record.place < self.record.records).then(|| self.at(self.record.place + 1))
    }

    /// Returns the address of the page of rows that the record is on.
    fn around(&self) -> String {
        let offset = (self.record.place.saturating_sub(1)) / self.page.max(1) * self.page;
        format!(
            "/projects/{}/rows?version={}&offset={offset}",
            self.head.slug, self.record.version
        )
    }
}
