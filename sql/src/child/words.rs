//! Errors of the engine in plain words.
//!
//! Invariant: no text names a setting, a rule, a type or a part of the engine.

mod phrases;

use std::error::Error;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;

use crate::check::alike;

/// Beginnings of messages that name a part of the engine.
const INTERNAL_PREFIXES: [&str; 18] = [
    "Arrow error: ",
    "Arithmetic overflow: ",
    "Cast error: ",
    "Compute error: ",
    "Error during planning: ",
    "Execution error: ",
    "External error: ",
    "External: ",
    "Internal error: ",
    "Invalid argument error: ",
    "Invalid or Unsupported Configuration: ",
    "Not yet implemented: ",
    "Optimizer error: ",
    "Parquet error: ",
    "Parser error: ",
    "Schema error: ",
    "SQL error: ",
    "This feature is not implemented: ",
];
/// Words behind which a message speaks to developers of the engine. They and what follows are cut off.
const INTERNAL_ENDS: [&str; 12] = [
    " (DataType: ",
    "This issue was likely caused by a bug",
    "This was likely caused by a bug",
    "This is a bug",
    "Please help us",
    "No function matches the given name",
    "Candidate functions:",
    "\n\tCandidate",
    "\nbacktrace:",
    "\nValid fields are",
    " Consider aliasing",
    " See https://",
];
/// Parts of messages that no reader of SQL understands, each with the sentence that replaces the whole message.
const REPLACED: [(&str, &str); 15] = [
    (
        "sliding accumulator",
        "this aggregate is not supported over a frame whose start moves: begin the frame with UNBOUNDED PRECEDING",
    ),
    (
        "TypeSignatureClass",
        "a function cannot be used with a value of this type: cast its argument, such as x::text",
    ),
    (
        "Physical plan does not support logical expression",
        "the engine does not support a subquery here: join it, or select it in a WITH query first",
    ),
    (
        "SanityCheckPlan",
        "the engine finds no plan for this: select the columns of ORDER BY first",
    ),
    ("Divide by zero error", "division by zero"),
    (
        "unique expression names",
        "two columns have the same name: give one of them another name with AS",
    ),
    (
        "duplicate unqualified field",
        "two columns have the same name: give one of them another name with AS",
    ),
    (
        "duplicate qualified field",
        "two columns have the same name: give one of them another name with AS",
    ),
    (
        "Correlated scalar subquery must be aggregated",
        "a subquery that uses columns from outside must return one row: aggregate it, or join it",
    ),
    (
        "correlated",
        "a subquery cannot use columns from outside here: join it instead",
    ),
    (
        "Correlated",
        "a subquery cannot use columns from outside here: join it instead",
    ),
    ("recursion limit", "the statement nests too deep"),
    ("This feature is not", "the engine does not support this"),
    (
        "RANGE ",
        "a frame with RANGE and a distance needs one ORDER BY column of numbers or times, and a distance of its kind",
    ),
    (
        "Range frame",
        "a frame with RANGE and a distance needs one ORDER BY column of numbers or times, and a distance of its kind",
    ),
];
/// Words of the engine that remain nowhere.
const INTERNAL: [&str; 33] = [
    "Accumulator",
    "Arrow",
    "DataFusion",
    "DataType",
    "Expr",
    "FunctionSignature",
    "LogicalPlan",
    "Logical plan",
    "NativeType",
    "Optimizer",
    "PhysicalExpr",
    "Physical plan",
    "RecordBatch",
    "Schema",
    "Signature",
    "TableScan",
    "TypeSignature",
    "UDF",
    "as_postgres",
    "datafusion",
    "caused by",
    "physical_",
    "logical_",
    "record batch",
    "unreachable",
    "unwrap",
    "named_by_type",
    "Error during",
    "coerce",
    "coercion",
    "infer common",
    "signature",
    "wildcard",
];
/// Message of an error that only names parts of the engine.
pub(super) const NO_WORDS: &str =
    "the engine cannot run this statement: write it in another way, or select a part of it in a WITH query first";

/// Maximum number of columns that a message lists.
const MAX_LISTED: usize = 40;

/// Returns what went wrong, in plain words.
pub(super) fn said(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => said(inner),
        DataFusionError::Shared(inner) => said(inner),
        DataFusionError::Collection(errors) => errors.first().map_or_else(|| NO_WORDS.to_owned(), said),
        DataFusionError::External(source) => said_of(&**source),
        DataFusionError::ArrowError(arrow, _) => said_of_arrow(arrow),
        DataFusionError::ParquetError(parquet) => match &**parquet {
            ParquetError::External(source) => said_of(&**source),
            other => plain(&other.to_string()),
        },
        DataFusionError::SchemaError(schema, _) => said_of_names(schema),
        DataFusionError::Plan(message)
        | DataFusionError::Execution(message)
        | DataFusionError::NotImplemented(message)
        | DataFusionError::Internal(message) => plain(message),
        other => plain(&other.strip_backtrace()),
    }
}

fn said_of(source: &(dyn Error + Send + Sync + 'static)) -> String {
    if let Some(error) = source.downcast_ref::<DataFusionError>() {
        said(error)
    } else if let Some(arrow) = source.downcast_ref::<ArrowError>() {
        said_of_arrow(arrow)
    } else {
        plain(&source.to_string())
    }
}

fn said_of_arrow(error: &ArrowError) -> String {
    match error {
        ArrowError::ExternalError(source) => said_of(&**source),
        other => plain(&other.to_string()),
    }
}

fn name(column: &Column) -> String {
    let table = column.relation.as_ref().map(|table| format!("{}.", table.table()));
    format!("{}{}", table.unwrap_or_default(), alike::shown(&column.name))
}

fn said_of_names(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let missing = name(field);
            if let Some(table) = &field.relation
                && !valid_fields.is_empty()
                && valid_fields
                    .iter()
                    .all(|known| known.relation.as_ref().is_none_or(|of| of.table() != table.table()))
            {
                return format!(
                    "there is no table `{}` in FROM for the column `{missing}`",
                    table.table()
                );
            }
            let alike = |known: &&Column| known.name.to_lowercase() == field.name.to_lowercase();
            if let Some(known) = valid_fields.iter().find(alike) {
                return format!(
                    "there is no column `{missing}`, but `\"{}\"` in quotes",
                    alike::shown(&known.name)
                );
            }
            // A column without a name of its own cannot be used here.
            let named = valid_fields
                .iter()
                .filter(|known| alike::shown(&known.name) == known.name);
            let names: Vec<String> = named.map(|known| known.name.clone()).collect();
            let more = if names.len() > MAX_LISTED { " and more" } else { "" };
            let listed = names
                .iter()
                .take(MAX_LISTED)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            if listed.is_empty() {
                format!("there is no column `{missing}` here")
            } else {
                format!("there is no column `{missing}`; the columns here are {listed}{more}")
            }
        }
        SchemaError::AmbiguousReference { field } => {
            let field = name(field);
            format!("the column `{field}` is ambiguous: write the name of its table before it")
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            let name = alike::shown(name);
            format!("two columns have the same name `{name}`: give one of them another name with AS")
        }
    }
}

/// Returns a message without the words of the engine.
fn plain(message: &str) -> String {
    let mut message = message;
    for end in INTERNAL_ENDS {
        message = message.split(end).next().unwrap_or_default();
    }
    // The cause comes last in a chain of errors.
    message = message.rsplit("caused by\n").next().unwrap_or_default().trim();
    let mut text = alike::without_marks(message);
    for prefix in INTERNAL_PREFIXES {
        text = text.replace(prefix, "");
    }
    if let Some((_, said)) = REPLACED.iter().find(|(words, _)| text.contains(words)) {
        return (*said).to_owned();
    }
    let text = types(&text);
    let text = text.trim().trim_end_matches(['.', ':', ' ']);
    let text = phrases::said(text).unwrap_or_else(|| text.to_owned());
    // Texts of the statement and of the table may say anything.
    let own: String = text.split('\'').step_by(2).collect();
    if text.is_empty() || INTERNAL.iter().any(|word| own.contains(word)) {
        return phrases::of_any_function(message).unwrap_or_else(|| NO_WORDS.to_owned());
    }
    text
}

/// Names of the engine's types, with those of SQL.
const TYPES: [(&str, &str); 34] = [
    ("Binary", "bytes"),
    ("BinaryView", "bytes"),
    ("Boolean", "boolean"),
    ("Date", "date"),
    ("Date32", "date"),
    ("Date64", "date"),
    ("Decimal", "numeric"),
    ("Decimal128", "numeric"),
    ("Decimal256", "numeric"),
    ("Dictionary", "text"),
    ("Duration", "interval"),
    ("Float16", "real"),
    ("Float32", "real"),
    ("Float64", "double precision"),
    ("Int8", "tinyint"),
    ("Int16", "smallint"),
    ("Int32", "integer"),
    ("Int64", "bigint"),
    ("Interval", "interval"),
    ("LargeBinary", "bytes"),
    ("LargeList", "list"),
    ("LargeUtf8", "text"),
    ("List", "list"),
    ("Null", "null"),
    ("Numeric", "a number"),
    ("String", "a text"),
    ("Time64", "time"),
    ("Timestamp", "timestamp"),
    ("UInt8", "unsigned tinyint"),
    ("UInt16", "unsigned smallint"),
    ("UInt32", "unsigned integer"),
    ("UInt64", "unsigned bigint"),
    ("Utf8", "text"),
    ("Utf8View", "text"),
];

/// Replaces the types and the typed literals of the engine, such as `Utf8View` and `Int64(5)`.
fn types(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        if !is_word(letter) {
            // A text of the statement or the table is left as it is.
            let quoted = if letter == '\'' {
                rest[1..].find('\'').map(|end| end + 2)
            } else {
                None
            };
            let (taken, left) = rest.split_at(quoted.unwrap_or_else(|| letter.len_utf8()));
            out.push_str(taken);
            rest = left;
            continue;
        }
        let (word, left) = rest.split_at(rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()));
        rest = left;
        let Some((_, named)) = TYPES.iter().find(|(known, _)| *known == word) else {
            out.push_str(word);
            continue;
        };
        let Some((inside, after)) = bracket(rest) else {
            out.push_str(named);
            continue;
        };
        rest = after;
        match *named {
            "timestamp" if inside.contains('"') => out.push_str("timestamp with time zone"),
            "timestamp" | "interval" | "time" => out.push_str(named),
            "numeric" => out.extend(["numeric(", inside, ")"]),
            "list" => out.extend(["list of ", &types(inside.trim_start_matches("nullable "))]),
            // A literal of the statement.
            _ => out.push_str(&inside.replace('"', "'")),
        }
    }
    out
}

/// Returns what is inside of the bracket that a text begins with, and what follows it.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('(')?;
    let mut depth = 1_usize;
    for (place, letter) in inside.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inside[..place], &inside[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_literals_read_as_in_sql() {
        for (engine, expected) in [
            ("Cannot coerce Utf8View + Int64", "Cannot coerce text + bigint"),
            (
                "a Decimal128(10, 2) and a List(Float64)",
                "a numeric(10, 2) and a list of double precision",
            ),
            ("Int64(5) = Utf8(\"a\")", "5 = 'a'"),
            (
                "Timestamp(µs, \"UTC\") is no Date32",
                "timestamp with time zone is no date",
            ),
            ("the text 'Int64' stays", "the text 'Int64' stays"),
        ] {
            assert_eq!(types(engine), expected);
        }
    }

    #[test]
    fn what_names_the_engine_is_not_said() {
        let error = DataFusionError::Context(
            "Optimizer rule 'simplify_expressions' failed".to_owned(),
            Box::new(DataFusionError::ArrowError(
                Box::new(ArrowError::ParseError("Error parsing timestamp from 'x'".to_owned())),
                None,
            )),
        );
        assert_eq!(said(&error), "Error parsing timestamp from 'x'");
        for message in ["LogicalPlan::Join of 3", "the accumulator DataFusion has", ""] {
            assert_eq!(said(&DataFusionError::Internal(message.to_owned())), NO_WORDS);
        }
    }
}
