//! Inputs, and the contract, the reading and the records that inference makes of them.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "an integration test is a test module"
)]

mod documents;
mod tables;
mod types_of_columns;

use std::io::Write as _;

use serde_json::Value;
use tabular::infer::{InferOptions, Inference, infer};
use types::{Contract, FieldType};

pub(crate) fn options(flags: &[(&str, &str)]) -> InferOptions {
    let mut options = InferOptions::default();
    for (flag, value) in flags {
        options.set(flag, value).unwrap();
    }
    options
}

pub(crate) fn inferred_with(text: impl AsRef<[u8]>, flags: &[(&str, &str)]) -> Inference {
    infer(text.as_ref(), &options(flags)).unwrap()
}

pub(crate) fn inferred(text: impl AsRef<[u8]>) -> Inference {
    inferred_with(text, &[])
}

pub(crate) fn refused(text: impl AsRef<[u8]>) -> String {
    infer(text.as_ref(), &InferOptions::default()).unwrap_err().to_string()
}

/// Fields with their types, such as `a integer, b decimal(2)`.
pub(crate) fn fields(inference: &Inference) -> String {
    let fields = inference.contract.iter().flat_map(Contract::fields);
    let fields = fields.map(|field| match field.kind {
        FieldType::Decimal(scale) => format!("{} decimal({scale})", field.name),
        kind => format!("{} {}", field.name, kind.name()),
    });
    fields.collect::<Vec<_>>().join(", ")
}

pub(crate) fn notes(inference: &Inference) -> Vec<&str> {
    inference.notes.iter().map(|note| note.code).collect()
}

pub(crate) fn questions(inference: &Inference) -> Vec<&str> {
    inference.questions.iter().map(|question| question.code).collect()
}

/// Commands of the flags that the first note or question of a code names.
pub(crate) fn remedies(inference: &Inference, code: &str) -> Vec<String> {
    let of_notes = inference
        .notes
        .iter()
        .filter(|note| note.code == code)
        .flat_map(|note| &note.remedies);
    let questions = inference.questions.iter().filter(|question| question.code == code);
    let remedies = of_notes.chain(questions.flat_map(|question| &question.remedies));
    remedies.map(ToString::to_string).collect()
}

pub(crate) fn sample(inference: &Inference) -> Value {
    Value::Array(inference.sample.clone())
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}
