//! The rows of a version as somebody sees them, in one form, and the first row in which two do not see the same.
//!
//! Invariant: two rows have the same text here exactly if they have the same members with the same values; a missing
//! member is null, and how an instant or a double is spelled does not matter.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// What the names of the hidden columns begin with.
const RESERVED: &str = "_sluice";
/// The column of the members that a contract does not name.
const EXTRA: &str = "_sluice_extra";

/// The types of the fields of a contract, by name.
pub(super) type Types = BTreeMap<String, String>;

/// The rows of a version in order.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// Who sees them.
    pub(super) who: String,
    /// A text for each.
    pub(super) rows: Vec<String>,
}

impl Sight {
    /// Records as the interface gives them.
    pub(super) fn of_records<'a>(
        who: &str,
        types: &Types,
        records: impl IntoIterator<Item = &'a Map<String, Value>>,
    ) -> Self {
        let rows = records.into_iter().map(|record| text(types, record.clone()));
        Self {
            who: who.to_owned(),
            rows: rows.collect(),
        }
    }

    /// Rows as a reader of Parquet gives them: JSON as text, the members without a field in a column of their own.
    pub(super) fn of_columns(who: &str, types: &Types, rows: &[Map<String, Value>]) -> Self {
        let records: Vec<_> = rows.iter().map(|row| record(types, row)).collect();
        Self::of_records(who, types, &records)
    }

    /// Where this is not what `other` is: the first row, as both have it.
    pub(super) fn differs_from(&self, other: &Self) -> Option<String> {
        let longest = self.rows.len().max(other.rows.len());
        let row = (0..longest).find(|&row| self.rows.get(row) != other.rows.get(row))?;
        let mut said = format!("row {row}, the first that is not the same:");
        for sight in [self, other] {
            let text = sight.rows.get(row).map_or("(no such row)", String::as_str);
            write!(said, "\n  {} ({} rows): {text}", sight.who, sight.rows.len()).unwrap();
        }
        Some(said)
    }

    /// Panics with the first row that is not the same.
    #[track_caller]
    pub(super) fn must_be(&self, other: &Self, when: &str) {
        if let Some(difference) = self.differs_from(other) {
            panic!("{when}: {difference}");
        }
    }
}

/// The record in a row of a part.
fn record(types: &Types, row: &Map<String, Value>) -> Map<String, Value> {
    let mut members = Map::new();
    for (name, value) in row {
        match (name.as_str(), value) {
            (EXTRA, Value::String(text)) => members.extend(parsed(text).as_object().unwrap().clone()),
            (hidden, _) if hidden.starts_with(RESERVED) => {}
            (_, Value::String(text)) if types[name] == "json" => {
                members.insert(name.clone(), parsed(text));
            }
            _ => {
                members.insert(name.clone(), value.clone());
            }
        }
    }
    members
}

fn text(types: &Types, record: Map<String, Value>) -> String {
    let members: BTreeMap<_, _> = record
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let value = match types.get(&name).map(String::as_str) {
                Some("timestamp") => instant(&value),
                Some("number") => double(&value),
                _ => value,
            };
            (name, value)
        })
        .collect();
    serde_json::to_string(&members).unwrap()
}

pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// An instant as text, whether it came as that or as microseconds.
pub(super) fn instant(value: &Value) -> Value {
    let instant = match value {
        Value::String(text) => text.parse().unwrap(),
        value => jiff::Timestamp::from_microsecond(value.as_i64().unwrap()).unwrap(),
    };
    instant.to_string().into()
}

/// A double as one, however it was written.
pub(super) fn double(value: &Value) -> Value {
    value.as_f64().unwrap().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types() -> Types {
        let of = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        [
            of("n", "integer"),
            of("x", "number"),
            of("at", "timestamp"),
            of("j", "json"),
        ]
        .into()
    }

    fn seen(who: &str, rows: &[Value]) -> Sight {
        let rows: Vec<_> = rows.iter().map(|row| row.as_object().unwrap().clone()).collect();
        Sight::of_columns(who, &types(), &rows)
    }

    #[test]
    fn one_record_in_two_spellings_is_the_same() {
        let columns =
            json!({"n": 1, "x": 3, "at": -1, "j": "{\"a\":[null]}", "_sluice_extra": "{\"b\":2}", "_sluice_key": "00"});
        let columns = seen("a reader", &[columns]);
        let record =
            json!({"at": "1970-01-01T00:59:59.999999+01:00", "b": 2, "j": {"a": [null]}, "n": 1, "x": 3.0, "y": null});
        let record = Sight::of_records("/data", &types(), [record.as_object().unwrap()]);
        record.must_be(&columns, "both");
    }

    /// Whoever reads one value wrongly is told of, with the row; so is who has a row too few, or two in another order.
    #[test]
    fn a_value_that_was_changed_is_found_and_its_row_is_named() {
        let rows = [
            json!({"n": 9_007_199_254_740_992_i64, "x": 0.0, "at": 0, "j": "1"}),
            json!({"n": 2, "x": 0.1, "at": 1, "j": "{}"}),
        ];
        let ours = seen("/data", &rows);
        for (row, member, value) in [
            (0, "n", json!(9_007_199_254_740_993_i64)),
            (0, "x", json!(-0.0)),
            (0, "j", json!("\"1\"")),
            (1, "x", json!(0.1 + f64::EPSILON)),
            (1, "at", json!(2)),
            (1, "j", Value::Null),
        ] {
            let mut changed = rows.clone();
            changed[row][member] = value;
            let said = seen("a reader", &changed).differs_from(&ours).unwrap();
            assert!(
                said.starts_with(&format!("row {row},")) && said.contains("a reader (2 rows)"),
                "{said}"
            );
        }
        let shorter = seen("a reader", &rows[..1]).differs_from(&ours).unwrap();
        assert!(
            shorter.contains("row 1") && shorter.contains("no such row"),
            "{shorter}"
        );
        let [first, second] = rows;
        assert!(
            seen("a reader", &[second, first])
                .differs_from(&ours)
                .unwrap()
                .starts_with("row 0")
        );
    }
}
