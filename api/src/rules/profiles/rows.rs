//! Preview rows: some records of a version, the first of its sample, with their long texts cut.
//!
//! Invariants:
//! - The rows of a version are the same for everybody; a caller sees a first part of them by rank, in the order of the
//!   version.
//! - All rows of a document together take at most [`PREVIEW_BYTES`], whatever their texts.
//! - A row says which of its values are no longer the JSON that they were, but the beginning of its text.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::{Contract, FieldType};

/// Bytes of the rows of a document, as JSON.
pub(crate) const PREVIEW_BYTES: usize = 64 << 10;
/// Bytes of a row from which its texts are cut further.
const ROW_BYTES: usize = PREVIEW_BYTES / 4;
/// Characters to which the texts of a row are cut that takes more.
const SHORTER_CHARS: [usize; 3] = [100, 40, 16];

/// Characters to which the values of a row are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextCut {
    /// Of a text.
    pub(crate) text: usize,
    /// Of the text of a JSON value.
    pub(crate) json: usize,
    /// Of all members together that the contract does not name, with their names.
    pub(crate) others: usize,
}

impl TextCut {
    /// Cut of the rows of a free dataset.
    pub(crate) const FREE: Self = Self {
        text: 500,
        json: 500,
        others: 500,
    };
    /// Cut of the rows that anybody sees of a paid dataset. Of members that the contract does not name the row could consist.
    pub(crate) const PAID: Self = Self {
        text: 200,
        json: 500,
        others: 200,
    };

    fn at_most(self, characters: usize) -> Self {
        Self {
            text: self.text.min(characters),
            json: self.json.min(characters),
            others: self.others.min(characters),
        }
    }
}

/// A preview row as a document has it. Its rank is its index in the document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankedRow {
    /// Place in the version, from 0.
    pub(crate) offset: u64,
    /// True if a value was cut or left out.
    pub(crate) cut: bool,
    /// Names of the fields of type `json` whose value is a text with the beginning of the JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) begun: Vec<String>,
    /// The record.
    pub(crate) row: Map<String, Value>,
}

/// Returns the rows of a document: `rows` in the order of their ranks, cut, as many as fit.
pub(crate) fn of_document(contract: &Contract, rows: &[(u64, Map<String, Value>)], cut: TextCut) -> Vec<RankedRow> {
    let mut kept = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    for (offset, record) in rows {
        let Some((row, size)) = fitting(contract, *offset, record, cut) else {
            continue;
        };
        bytes += size + 1;
        if bytes > PREVIEW_BYTES {
            break;
        }
        kept.push(row);
    }
    kept
}

/// Cuts a row until it fits. Returns `None` if it cannot, because its names alone are too long.
fn fitting(contract: &Contract, offset: u64, record: &Map<String, Value>, cut: TextCut) -> Option<(RankedRow, usize)> {
    let mut last = None;
    let cuts = std::iter::once(cut).chain(SHORTER_CHARS.map(|characters| cut.at_most(characters)));
    for cut in cuts {
        let row = cut_row(contract, offset, record, cut);
        let size = serde_json::to_string(&row).ok()?.len();
        if size <= ROW_BYTES {
            return Some((row, size));
        }
        last = Some((row, size));
    }
    last.filter(|(_, size)| *size < PREVIEW_BYTES)
}

fn cut_row(contract: &Contract, offset: u64, record: &Map<String, Value>, cut: TextCut) -> RankedRow {
    let mut row = RankedRow {
        offset,
        cut: false,
        begun: Vec::new(),
        row: Map::new(),
    };
    let mut left = cut.others;
    for (name, value) in record {
        let field = contract.fields().iter().find(|field| field.name == *name);
        let shown = match (field.map(|field| field.kind), value) {
            (None, value) => other(name, value, &mut left),
            (Some(FieldType::Json), Value::Null | Value::Bool(_)) => Some(value.clone()),
            (Some(FieldType::Json), value) => {
                let begun = shorter(&value.to_string(), cut.json).map(Value::String);
                row.begun.extend(begun.is_some().then(|| name.clone()));
                begun.or_else(|| Some(value.clone()))
            }
            (Some(_), Value::String(text)) => shorter(text, cut.text)
                .map(Value::String)
                .or_else(|| Some(value.clone())),
            (Some(_), value) => Some(value.clone()),
        };
        row.cut |= shown.as_ref() != Some(value);
        row.row.extend(shown.map(|shown| (name.clone(), shown)));
    }
    row
}

/// Returns a member that the contract does not name, as far as it fits into the characters that are `left` for all of them.
/// `None` is one that does not, since half a name or half a JSON value would say something else.
fn other(name: &str, value: &Value, left: &mut usize) -> Option<Value> {
    let room = left.checked_sub(name.chars().count())?;
    let (size, shown) = match value {
        Value::String(text) => match shorter(text, room) {
            Some(begun) if begun.is_empty() => return None,
            Some(begun) => (room, Value::String(begun)),
            None => (text.chars().count(), value.clone()),
        },
        value => (value.to_string().chars().count(), value.clone()),
    };
    *left = room.checked_sub(size)?;
    Some(shown)
}

/// Returns the beginning of a text that has more characters than `most`.
fn shorter(text: &str, most: usize) -> Option<String> {
    let (end, _) = text.char_indices().nth(most)?;
    Some(text[..end].to_owned())
}

/// Returns the first `most` rows by rank, in the order of the version.
pub(crate) fn first(mut rows: Vec<RankedRow>, most: usize) -> Vec<RankedRow> {
    rows.truncate(most);
    rows.sort_by_key(|row| row.offset);
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use types::Field;

    use super::*;

    fn contract() -> Contract {
        let fields = vec![
            Field::new("name", FieldType::String),
            Field::new("more", FieldType::Json),
            Field::new("count", FieldType::Integer),
        ];
        Contract::new(fields, true).unwrap()
    }

    fn record(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn texts_are_cut_between_characters_and_the_row_says_so() {
        let long = "ü".repeat(501);
        let rows = [
            (
                7,
                record(&json!({"name": long, "more": null, "count": 9_007_199_254_740_993_i64})),
            ),
            (
                3,
                record(&json!({"name": "short", "more": {"a": "x".repeat(600)}, "free": true})),
            ),
        ];
        let kept = of_document(&contract(), &rows, TextCut::FREE);
        assert_eq!(kept[0].row["name"].as_str().unwrap().chars().count(), 500);
        assert_eq!(kept[0].row["count"], 9_007_199_254_740_993_i64);
        assert_eq!(kept[1].row["more"].as_str().unwrap().chars().count(), 500);
        assert_eq!(kept[1].row["free"], true);
        assert!(kept[0].cut && kept[1].cut);
        // JSON that was cut is listed, since it looks like a JSON value that is a text.
        assert_eq!(
            (kept[0].begun.len(), kept[1].begun.as_slice()),
            (0, ["more".to_owned()].as_slice())
        );
        let paid = of_document(&contract(), &rows, TextCut::PAID);
        assert_eq!(paid[0].row["name"].as_str().unwrap().chars().count(), 200);
        // By rank the first is the seventh record; shown are the records in their order.
        assert_eq!(first(kept.clone(), 1)[0].offset, 7);
        let offsets: Vec<u64> = first(kept, 9).into_iter().map(|row| row.offset).collect();
        assert_eq!(offsets, [3, 7]);
    }

    #[test]
    fn what_was_not_cut_says_so_and_is_as_it_was() {
        let rows = [(
            0,
            record(&json!({"name": "é".repeat(200), "more": [1, 2.5], "count": null})),
        )];
        let kept = of_document(&contract(), &rows, TextCut::PAID);
        assert!(!kept[0].cut);
        assert_eq!(kept[0].row, rows[0].1);
    }

    #[test]
    fn members_without_a_field_are_cut_together_with_their_names() {
        let shown =
            |record: &Value, cut: TextCut| of_document(&contract(), &[(0, self::record(record))], cut).remove(0);
        let essay = |length: usize| json!({"name": "a", "title": "é".repeat(50), "z": "x".repeat(length)});
        let row = shown(&essay(600), TextCut::PAID);
        // Of 200 characters, 6 are names and 50 the title.
        assert_eq!(row.row["title"].as_str().unwrap().chars().count(), 50);
        assert_eq!(row.row["z"].as_str().unwrap().chars().count(), 144);
        assert!(row.cut && row.begun.is_empty());
        assert!(!shown(&essay(144), TextCut::PAID).cut && shown(&essay(145), TextCut::PAID).cut);
        // A name can hold a text, and so can many small members.
        let names = json!({"name": "a", ("n".repeat(201)): 1, "m": 1});
        let row = shown(&names, TextCut::PAID);
        assert_eq!((Value::Object(row.row), row.cut), (json!({"name": "a", "m": 1}), true));
        let members: Map<String, Value> = (0..300)
            .map(|number| (format!("k{number:03}"), json!("word")))
            .collect();
        let row = shown(&Value::Object(members), TextCut::PAID);
        assert_eq!((row.row.len(), row.cut), (25, true));
        // Half a JSON value would be another one.
        let row = shown(&json!({"list": vec![7; 200], "b": true}), TextCut::PAID);
        assert_eq!(Value::Object(row.row), json!({"b": true}));
        assert_eq!(shown(&essay(400), TextCut::FREE).row["z"].as_str().unwrap().len(), 400);
    }

    #[test]
    fn rows_of_any_size_stay_within_the_bound() {
        let fields = (0..256).map(|number| Field::new(format!("f{number}"), FieldType::String));
        let contract = Contract::new(fields.collect(), false).unwrap();
        let wide = |text: &str| (0..256).map(|number| (format!("f{number}"), json!(text))).collect();
        for text in ["", "x", &"\u{1}".repeat(600), &"家".repeat(100_000)] {
            let rows: Vec<(u64, Map<String, Value>)> = (0..100).map(|offset| (offset, wide(text))).collect();
            let kept = of_document(&contract, &rows, TextCut::FREE);
            assert!(serde_json::to_string(&kept).unwrap().len() <= PREVIEW_BYTES + 2);
            assert!(!kept.is_empty(), "{}", text.len());
        }
    }
}
