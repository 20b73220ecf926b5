//! Names of fields for the columns of a file.
//!
//! Invariant: the names are legal in a contract and distinct, and a dataset has one style: if every name of the file is
//! legal, all stay, else all are folded.

use std::collections::HashSet;

use types::contract::{MAX_NAME, RESERVED_PREFIX};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The most characters of a field's title.
const MAX_TITLE_CHARACTERS: usize = 100;
/// Characters that are not seen: zero-width ones, marks of direction, byte order marks and soft hyphens.
const UNSEEN: [std::ops::RangeInclusive<char>; 6] = [
    '\u{ad}'..='\u{ad}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{2069}',
    '\u{feff}'..='\u{feff}',
];

/// Name of a field, made of that of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// Name of the field.
    pub name: String,
    /// The name in the file where it differs and says something, at most 100 characters on one line.
    pub title: Option<String>,
    /// True if the name got a number, since another column has it already.
    pub is_numbered: bool,
}

/// Returns the rule of a contract that a name breaks.
pub fn broken_rule(name: &str) -> Option<String> {
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME {
        return Some(format!("must have 1 to {MAX_NAME} characters"));
    }
    if name
        .chars()
        .any(|character| character.is_control() || " ,;{}()=".contains(character))
    {
        return Some("must not contain spaces, control characters or any of , ; { } ( ) =".to_owned());
    }
    if name.to_lowercase().starts_with(RESERVED_PREFIX) {
        return Some(format!(
            "must not start with `{RESERVED_PREFIX}`, which the service keeps for itself"
        ));
    }
    None
}

/// Returns the names of fields for columns with these names, in their order. `taken` are names that other fields have.
pub fn name_fields<'a>(columns: impl IntoIterator<Item = &'a str>, taken: &[String]) -> Vec<FieldName> {
    let columns: Vec<&str> = columns.into_iter().collect();
    let mut seen: HashSet<String> = taken.iter().map(|name| name.to_lowercase()).collect();
    let is_legal = |name: &&str| broken_rule(name).is_none();
    let mut distinct = seen.clone();
    if columns
        .iter()
        .all(|name| is_legal(name) && distinct.insert(name.to_lowercase()))
    {
        let kept = columns.into_iter().map(|name| FieldName {
            name: name.to_owned(),
            title: None,
            is_numbered: false,
        });
        return kept.collect();
    }
    let folded: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(place, name)| fold(name, place))
        .collect();
    // A column whose own name ends in a number keeps it before another one gets it.
    let own: HashSet<&String> = folded.iter().collect();
    let mut next = std::collections::HashMap::new();
    let named = columns.iter().zip(&folded).map(|(column, folded)| {
        let mut name = folded.clone();
        let is_numbered = !seen.insert(name.clone());
        if is_numbered {
            let number = next.entry(folded.clone()).or_insert(1_usize);
            loop {
                *number += 1;
                name = numbered(folded, *number);
                if !own.contains(&name) && seen.insert(name.clone()) {
                    break;
                }
            }
        }
        FieldName {
            title: title(column).filter(|title| *title != name),
            name,
            is_numbered,
        }
    });
    named.collect()
}

/// Returns the name with a number behind it, short enough for a contract.
fn numbered(name: &str, number: usize) -> String {
    let number = format!("_{number}");
    let kept = MAX_NAME.saturating_sub(number.len());
    let mut name: String = name.chars().take(kept).collect();
    name.push_str(&number);
    name
}

/// Returns the name of the column at a place, from 0, in the style of folded names: small letters and digits of any
/// script with `_` between the words.
pub fn fold(name: &str, place: usize) -> String {
    let mut folded = String::new();
    let mut is_apart = false;
    let mut put = |text: &str, is_apart: &mut bool| {
        if *is_apart && !folded.is_empty() {
            folded.push('_');
        }
        *is_apart = false;
        folded.push_str(text);
    };
    for character in name.nfc() {
        let mut bytes = [0; 4];
        match character {
            '%' | '#' => {
                is_apart = true;
                put(if character == '%' { "percent" } else { "number" }, &mut is_apart);
                is_apart = true;
            }
            _ if character.is_alphanumeric() || is_combining_mark(character) => {
                put(character.encode_utf8(&mut bytes), &mut is_apart);
            }
            _ if UNSEEN.iter().any(|unseen| unseen.contains(&character)) => {}
            _ => is_apart = true,
        }
    }
    // Lower case of one character can be two, which are to be composed again.
    let folded: String = folded.to_lowercase().nfc().take(MAX_NAME).collect();
    if broken_rule(&folded).is_some() {
        return format!("column_{}", place + 1);
    }
    folded
}

/// Returns a column's name as the title of its field.
fn title(column: &str) -> Option<String> {
    let seen = column
        .chars()
        .filter(|character| !UNSEEN.iter().any(|unseen| unseen.contains(character)))
        .map(|character| if character.is_control() { ' ' } else { character });
    let title: String = seen
        .collect::<String>()
        .trim()
        .chars()
        .take(MAX_TITLE_CHARACTERS)
        .collect();
    Some(title.trim_end().to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(columns: &[&str]) -> Vec<String> {
        name_fields(columns.iter().copied(), &[])
            .into_iter()
            .map(|field| field.name)
            .collect()
    }

    #[test]
    fn legal_names_stay_and_one_that_is_not_folds_them_all() {
        assert_eq!(names(&["Id", "b-c", "온도"]), ["Id", "b-c", "온도"]);
        assert_eq!(names(&["Id", "b c", "온도"]), ["id", "b_c", "온도"]);
    }

    #[test]
    fn names_of_every_kind_are_folded() {
        for (name, folded) in [
            ("Elevation (m)", "elevation_m"),
            ("온도 (°C)", "온도_c"),
            ("% of total", "percent_of_total"),
            ("Humidity%", "humidity_percent"),
            ("#", "number"),
            ("# of rows", "number_of_rows"),
            ("Cafe\u{301} ", "café"),
            ("a\u{200b}b", "ab"),
            ("", "column_3"),
            ("€ %%", "percent_percent"),
            ("()", "column_3"),
            ("__sluice key__", "sluice_key"),
            ("हिन्दी नाम", "हिन्दी_नाम"),
            ("İl Kodu", "i\u{307}l_kodu"),
        ] {
            assert_eq!(fold(name, 2), folded, "{name:?}");
        }
        assert_eq!(fold(&"é ".repeat(300), 0).chars().count(), MAX_NAME);
    }

    #[test]
    fn columns_of_one_name_are_numbered_and_keep_their_titles() {
        let fields = name_fields(["Cost (€)", "Cost [€]", "cost_2", "cost"], &[]);
        let seen: Vec<_> = fields
            .iter()
            .map(|field| (field.name.as_str(), field.title.as_deref(), field.is_numbered))
            .collect();
        assert_eq!(
            seen,
            [
                ("cost", Some("Cost (€)"), false),
                ("cost_3", Some("Cost [€]"), true),
                ("cost_2", None, false),
                ("cost_4", Some("cost"), true)
            ]
        );
        assert_eq!(names(&["n", "n"]), ["n", "n_2"]);
        assert_eq!(names(&["", ""]), ["column_1", "column_2"]);
        assert_eq!(names(&["Row", "x y"]), ["row", "x_y"]);
        let taken = name_fields(["Row"], &["row".to_owned()]);
        assert_eq!(taken[0].name, "row_2");
        let long = "x".repeat(200);
        let twice = names(&[&long, &long]);
        assert!(twice.iter().all(|name| broken_rule(name).is_none()) && twice[0] != twice[1]);
    }

    #[test]
    fn a_title_is_one_line_of_the_name() {
        let fields = name_fields(["a\nb (m)", "\u{202e}x y"], &[]);
        assert_eq!(fields[0].title.as_deref(), Some("a b (m)"));
        assert_eq!(fields[1].title.as_deref(), Some("x y"));
        let long = format!("{} ", "é".repeat(200));
        assert_eq!(
            name_fields([long.as_str()], &[])[0].title.as_deref(),
            Some(&*"é".repeat(100))
        );
    }
}
