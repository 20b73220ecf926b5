//! The dataset that ships with the program: the named characters of Unicode 15.0. `data/README.md` has its source and
//! licence.

use std::io::{BufRead, BufReader};

use anyhow::Context;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

/// JSON Lines, compressed with gzip.
const PACKED_RECORDS: &[u8] = include_bytes!("../../data/unicode-characters.ndjson.gz");

/// Title of the project.
pub(super) const DATASET_TITLE: &str = "The named characters of Unicode 15.0";
/// Readme of the project.
pub(super) const DATASET_README: &str = "Every named code point of Unicode 15.0 with its properties, one record a character, \
    from UnicodeData.txt as Debian's package unicode-data 15.0.0-1 carries it; reformatted, and without the markers of \
    ranges. Copyright Unicode, Inc.; distributed under the terms of use in https://www.unicode.org/copyright.html, which \
    allow anyone to use, change and pass on the data files with this notice.";

/// Returns the contract of the records.
pub(super) fn schema_def() -> Value {
    let field = |name: &str, kind: &str, required: bool| json!({ "name": name, "type": kind, "required": required });
    json!({ "fields": [
        field("codePoint", "string", true),
        field("value", "integer", true),
        field("name", "string", true),
        field("category", "string", true),
        field("combiningClass", "integer", true),
        field("bidiClass", "string", true),
        field("decomposition", "string", false),
        field("numericValue", "string", false),
        field("mirrored", "boolean", true),
        field("unicode1Name", "string", false),
        field("upper", "string", false),
        field("lower", "string", false),
        field("title", "string", false),
    ] })
}

/// Returns the first `count` records, or all if there are fewer.
pub(super) fn records(count: usize) -> anyhow::Result<Vec<Value>> {
    BufReader::new(GzDecoder::new(PACKED_RECORDS))
        .lines()
        // The reader decompresses only the lines that are taken.
        .take(count)
        .map(|line| serde_json::from_str(&line?).context("a line is not JSON"))
        .collect::<anyhow::Result<_>>()
        .context("the dataset in this program is damaged")
}

/// Returns a batch in which only the first record passes the gates.
pub(super) fn bad_records() -> Vec<Value> {
    let fine = json!({
        "codePoint": "U+E000", "value": 57_344, "name": "EXAMPLE ONE", "category": "Co", "combiningClass": 0,
        "bidiClass": "L", "mirrored": false,
    });
    let with = |name: &str, value: Value| {
        let mut record = fine.clone();
        record[name] = value;
        record
    };
    // One record for each kind of broken rule: type, required field, unknown field, personal data.
    let mut nameless = with("value", json!(57_346));
    nameless.as_object_mut().map(|record| record.remove("name"));
    vec![
        fine.clone(),
        with("value", json!("57345")),
        nameless,
        with("colour", json!("red")),
        with("name", json!("EXAMPLE BY ada.lovelace@analytical.engine.uk")),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use types::Contract;

    use super::*;

    #[test]
    fn the_records_keep_their_contract_and_are_distinct() {
        let contract: Contract = serde_json::from_value(schema_def()).unwrap();
        let records = records(usize::MAX).unwrap();
        assert_eq!(records.len(), crate::cli::ALL_RECORDS as usize);
        let mut names = HashSet::new();
        for record in &records {
            let members = record.as_object().unwrap();
            for field in contract.fields() {
                assert!(!field.required || members.contains_key(&field.name), "{record}");
            }
            assert!(
                members
                    .keys()
                    .all(|name| contract.fields().iter().any(|field| field.name == *name)),
                "{record}"
            );
            assert!(names.insert(members["codePoint"].as_str().unwrap()), "{record}");
        }
        assert_eq!(records[65]["name"], "LATIN CAPITAL LETTER A");
    }
}
