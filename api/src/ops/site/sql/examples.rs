//! Examples of statements, made from a contract.
//!
//! Invariant: each runs over the records of any dataset with the contract, whatever its fields are called.

use types::contract::{Contract, Field, FieldType};

/// Number of examples.
pub(super) const EXAMPLES: usize = 4;
/// Columns that an example about all of them names.
const MAX_NAMED_COLUMNS: usize = 8;
/// Longest name in the words of an example, in characters.
const MAX_LABEL_NAME_CHARS: usize = 40;

/// Statement with the words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExampleStatement {
    pub(super) label: String,
    pub(super) sql: String,
}

/// Returns the examples: those that say most of the fields first, and the first rows last.
pub(super) fn of(contract: &Contract) -> Vec<ExampleStatement> {
    let fields = contract.fields();
    let first = |fits: fn(FieldType) -> bool| fields.iter().find(|field| fits(field.kind));
    let number = first(|kind| matches!(kind, FieldType::Number | FieldType::Integer | FieldType::Decimal(_)));
    let time = first(|kind| matches!(kind, FieldType::Timestamp | FieldType::Date));
    let word = first(|kind| kind == FieldType::String).or_else(|| first(|kind| kind == FieldType::Boolean));
    let mut found: Vec<ExampleStatement> = [
        time.zip(number).map(|(time, number)| number_over_time(time, number)),
        word.zip(number).map(|(word, number)| number_by_word(word, number)),
        word.map(rows_by_word),
        time.map(rows_over_time),
        number.map(range_of_number),
        Some(filled(fields)),
        fields
            .iter()
            .find(|field| !field.required)
            .or_else(|| fields.first())
            .map(rows_without),
        Some(ExampleStatement {
            label: "Number of rows".to_owned(),
            sql: "SELECT count(*) AS rows_in_all\nFROM records".to_owned(),
        }),
    ]
    .into_iter()
    .flatten()
    .take(EXAMPLES - 1)
    .collect();
    found.push(ExampleStatement {
        label: "First ten rows".to_owned(),
        sql: "SELECT *\nFROM records\nLIMIT 10".to_owned(),
    });
    found
}

/// Returns a name as a statement writes it. In quotes no name is a keyword, and its letters keep their case.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn shown(field: &Field) -> String {
    let name: String = field.name.chars().take(MAX_LABEL_NAME_CHARS).collect();
    if name.len() < field.name.len() {
        format!("{name}…")
    } else {
        name
    }
}

/// Unit of time in which the values of a field are put together.
const fn period(time: &Field) -> &'static str {
    match time.kind {
        FieldType::Timestamp => "day",
        _ => "month",
    }
}

fn number_over_time(time: &Field, number: &Field) -> ExampleStatement {
    let (period, at, value) = (period(time), quoted(&time.name), quoted(&number.name));
    // The latest periods, as many as a chart takes.
    let sql = format!(
        "SELECT date_trunc('{period}', {at}) AS {period}, avg({value}) AS mean, count(*) AS row_count\nFROM \
         records\nGROUP BY 1\nORDER BY 1 DESC\nLIMIT 200"
    );
    ExampleStatement {
        label: format!("Mean {} per {period}", shown(number)),
        sql,
    }
}

fn number_by_word(word: &Field, number: &Field) -> ExampleStatement {
    let (name, value) = (quoted(&word.name), quoted(&number.name));
    let sql = format!(
        "SELECT {name}, max({value}) AS highest, avg({value}) AS mean, min({value}) AS lowest\nFROM records\nGROUP \
         BY 1\nORDER BY 2 DESC\nLIMIT 20"
    );
    ExampleStatement {
        label: format!("Highest {} by {}", shown(number), shown(word)),
        sql,
    }
}

fn rows_by_word(word: &Field) -> ExampleStatement {
    let name = quoted(&word.name);
    ExampleStatement {
        label: format!("Rows by {}", shown(word)),
        sql: format!("SELECT {name}, count(*) AS row_count\nFROM records\nGROUP BY 1\nORDER BY 2 DESC\nLIMIT 20"),
    }
}

fn rows_over_time(time: &Field) -> ExampleStatement {
    let (period, at) = (period(time), quoted(&time.name));
    let sql = format!(
        "SELECT date_trunc('{period}', {at}) AS {period}, count(*) AS row_count\nFROM records\nGROUP BY 1\nORDER BY 1 \
         DESC\nLIMIT 200"
    );
    ExampleStatement {
        label: format!("Rows per {period}"),
        sql,
    }
}

fn range_of_number(number: &Field) -> ExampleStatement {
    let value = quoted(&number.name);
    let sql = format!(
        "SELECT count({value}) AS numbers, min({value}) AS lowest, avg({value}) AS mean, max({value}) AS highest\nFROM \
         records"
    );
    ExampleStatement {
        label: format!("Range of {}", shown(number)),
        sql,
    }
}

fn filled(fields: &[Field]) -> ExampleStatement {
    let columns = fields.iter().take(MAX_NAMED_COLUMNS);
    // The names stand once each, since no two fields have one.
    let counts = columns.map(|field| format!("count({0}) AS {0}", quoted(&field.name)));
    ExampleStatement {
        label: "Values in each column".to_owned(),
        sql: format!("SELECT {}\nFROM records", counts.collect::<Vec<_>>().join(",\n       ")),
    }
}

fn rows_without(field: &Field) -> ExampleStatement {
    ExampleStatement {
        label: format!("Rows without {}", shown(field)),
        sql: format!(
            "SELECT *\nFROM records\nWHERE {} IS NULL\nLIMIT 10",
            quoted(&field.name)
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const KINDS: [FieldType; 8] = [
        FieldType::String,
        FieldType::Integer,
        FieldType::Number,
        FieldType::Boolean,
        FieldType::Timestamp,
        FieldType::Json,
        FieldType::Date,
        FieldType::Decimal(2),
    ];

    fn examples(fields: &[(&str, FieldType)]) -> Vec<ExampleStatement> {
        let fields = fields.iter().map(|(name, kind)| Field::new(*name, *kind));
        of(&Contract::new(fields.collect(), true).unwrap())
    }

    #[test]
    fn every_contract_has_four_different_examples() {
        for (place, one) in KINDS.into_iter().enumerate() {
            for other in &KINDS[place..] {
                let found = examples(&[("a", one), ("b", *other)]);
                let statements: HashSet<_> = found.iter().map(|example| &example.sql).collect();
                let labels: HashSet<_> = found.iter().map(|example| &example.label).collect();
                assert_eq!((found.len(), statements.len(), labels.len()), (4, 4, 4), "{found:?}");
            }
            assert_eq!(examples(&[("a", one)]).len(), EXAMPLES);
        }
    }

    #[test]
    fn examples_say_what_the_fields_are_for() {
        let found = examples(&[
            ("gauge", FieldType::String),
            ("at", FieldType::Timestamp),
            ("metres", FieldType::Number),
        ]);
        let labels: Vec<_> = found.iter().map(|example| example.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "Mean metres per day",
                "Highest metres by gauge",
                "Rows by gauge",
                "First ten rows"
            ]
        );
        assert!(found[0].sql.contains("date_trunc('day', \"at\")"), "{}", found[0].sql);
        let found = examples(&[("raw", FieldType::Json)]);
        assert_eq!(found[0].label, "Values in each column");
    }

    #[test]
    fn a_name_cannot_leave_its_quotes_and_a_statement_fits_the_box() {
        let hostile = "a\"--".repeat(32);
        let fields: Vec<_> = (0..256)
            .map(|place| {
                let name = format!("{}{place:03}", &hostile[..125]);
                Field::new(name, KINDS[place % KINDS.len()])
            })
            .collect();
        for example in of(&Contract::new(fields, false).unwrap()) {
            assert!(example.sql.chars().count() <= 4_000, "{}", example.sql.len());
            // Outside of quotes there is no comment, since each quote of a name stands twice.
            let outside: String = example.sql.replace("\"\"", "").split('"').step_by(2).collect();
            assert!(!outside.contains("--"), "{outside}");
        }
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
