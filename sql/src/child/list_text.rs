//! Texts of lists as `PostgreSQL` writes them (section 8.15.6): `{1,NULL,"a b"}`.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, StringArray};
use datafusion::error::Result;

use super::arrays::{as_list, span, texts as texts_of};

/// Returns the texts of lists, as `Utf8`.
pub(super) fn texts(lists: &ArrayRef) -> Result<ArrayRef> {
    Ok(Arc::new(written(lists)?))
}

fn written(lists: &ArrayRef) -> Result<StringArray> {
    let list = as_list(lists)?;
    let is_nested = list.value_type().is_list();
    let entries = if is_nested {
        written(list.values())?
    } else {
        texts_of(list.values())?
    };
    let texts = (0..list.len()).map(|row| {
        list.is_valid(row).then(|| {
            let mut text = String::from("{");
            for index in span(&list, row) {
                if text.len() > 1 {
                    text.push(',');
                }
                if entries.is_null(index) {
                    text.push_str("NULL");
                } else if is_nested {
                    text.push_str(entries.value(index));
                } else {
                    write_entry(&mut text, entries.value(index));
                }
            }
            text.push('}');
            text
        })
    });
    Ok(texts.collect())
}

/// Writes an entry, in quotes where it would otherwise read as something else.
fn write_entry(text: &mut String, entry: &str) {
    let is_plain = |letter: char| !matches!(letter, '"' | '\\' | '{' | '}' | ',' | ' ' | '\t'..='\r');
    if !entry.is_empty() && !entry.eq_ignore_ascii_case("null") && entry.chars().all(is_plain) {
        text.push_str(entry);
        return;
    }
    text.push('"');
    for letter in entry.chars() {
        if matches!(letter, '"' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('"');
}
