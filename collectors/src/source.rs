//! Definition of a source: where it is, what its records are, and the contract that they are mapped to.
//!
//! Invariant: a [`CollectorSource`] was checked whole. An unknown key, an empty text and a rule that is broken are errors that
//! name the key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tabular::values::ValueParse;
use types::contract::FieldTypeName;
use types::{Contract, Field};
use url::Url;

use crate::Schedule;

/// Most bytes of the answers of one run, unless the definition says otherwise.
const DEFAULT_MIB: u64 = 32;
/// Greatest value that a definition may say.
const MAX_MIB: u64 = 256;
/// Longest time of one answer, unless the definition says otherwise.
const DEFAULT_SECONDS: u64 = 60;
/// Greatest value that a definition may say.
const MAX_SECONDS: u64 = 600;
/// Most pages of one run, unless the definition says otherwise.
const DEFAULT_PAGES: u32 = 20;
/// Greatest value that a definition may say.
const MAX_PAGES: u32 = 1_000;
/// Most bytes of the address of the terms, which is a part of what a contribution declares.
const MAX_TERMS: usize = 200;
/// Most rows of one run.
pub(crate) const MAX_ROWS: usize = 500_000;

/// A definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// Key that breaks a rule; empty for a text that is no TOML of a definition.
    pub key: String,
    /// Rule that is broken.
    pub problem: String,
}

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.key.is_empty() {
            return write!(f, "it is no definition of a source: {}", self.problem);
        }
        write!(f, "`{}` {}", self.key, self.problem)
    }
}

impl std::error::Error for SourceError {}

/// Definition of a source.
#[derive(Clone, Debug)]
pub struct CollectorSource {
    pub(crate) text: SourceText,
    schedule: Schedule,
    contract: Contract,
    fingerprint: String,
    /// Folder that a relative path of a file begins at.
    folder: Option<PathBuf>,
}

/// Definition as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceText {
    pub(crate) name: String,
    pub(crate) dataset: String,
    pub(crate) title: String,
    pub(crate) publisher: String,
    pub(crate) license: String,
    pub(crate) terms: String,
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) schedule: String,
    pub(crate) fetch: Fetch,
    pub(crate) fields: Vec<FieldMap>,
}

/// Place of a source and form of its answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetch {
    pub(crate) url: Option<String>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) format: SourceFormat,
    pub(crate) accept: Option<String>,
    /// JSON pointer to the records.
    #[serde(default)]
    pub(crate) records: String,
    /// True if the records are the members of an object; each becomes `{"key": …, "value": …}`.
    #[serde(default)]
    pub(crate) members: bool,
    pub(crate) delimiter: Option<char>,
    #[serde(default = "yes")]
    pub(crate) header: bool,
    /// True if an answer without a record is no mistake.
    #[serde(default)]
    pub(crate) may_be_empty: bool,
    pub(crate) max_mib: Option<u64>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) pages: Option<Pages>,
}

const fn yes() -> bool {
    true
}

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SourceFormat {
    Json,
    Ndjson,
    Csv,
    Feed,
    Parquet,
    Delta,
}

/// Order of the pages of an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pages {
    /// JSON pointer to the address of the next page.
    pub(crate) next: Option<String>,
    /// Query parameter that numbers the pages.
    pub(crate) parameter: Option<String>,
    #[serde(default = "one")]
    pub(crate) first: u32,
    pub(crate) max: Option<u32>,
}

const fn one() -> u32 {
    1
}

/// One field of the contract and its place in a record of the source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldMap {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: FieldTypeName,
    /// Digits after the point of a decimal.
    pub(crate) scale: Option<u64>,
    #[serde(default)]
    pub(crate) required: bool,
    /// JSON pointer into the record of the source.
    pub(crate) from: Option<String>,
    pub(crate) constant: Option<Value>,
    /// Form of a time: `unix-seconds`, `unix-milliseconds`, `rfc2822`, `date`, or a pattern of strptime(3). A date has the last two.
    pub(crate) format: Option<String>,
}

impl CollectorSource {
    /// Parses a definition. Relative paths of files begin at `folder`; without one no file is read.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn parse(text: &str, folder: Option<&Path>) -> Result<Self, SourceError> {
        // Over the whole text, comments included: one fetch too many is cheaper than a change that goes
        // unnoticed.
        let fingerprint = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
        let text: SourceText = toml::from_str(text).map_err(|error| SourceError {
            key: String::new(),
            problem: error.to_string().trim().replace('\n', " "),
        })?;
        check_texts(&text)?;
        check_place(&text.fetch, folder.is_some())?;
        check_bounds(&text.fetch)?;
        check_fields(&text.fields)?;
        let schedule = Schedule::parse(&text.schedule).map_err(|problem| fail("schedule", problem))?;
        let field = |field: &FieldMap| {
            let kind = field.kind.with_scale(field.scale);
            Ok(Field {
                required: field.required,
                ..Field::new(
                    &field.name,
                    kind.map_err(|problem| fail(format!("fields.{}.scale", field.name), problem))?,
                )
            })
        };
        let fields = text.fields.iter().map(field).collect::<Result<_, _>>()?;
        let contract = Contract::new(fields, false).map_err(|error| fail("fields", error.to_string()))?;
        Ok(Self {
            text,
            schedule,
            contract,
            fingerprint,
            folder: folder.map(Path::to_owned),
        })
    }

    /// Returns the name of the collector.
    pub fn name(&self) -> &str {
        &self.text.name
    }

    /// Returns the slug of the dataset.
    pub fn dataset(&self) -> &str {
        &self.text.dataset
    }

    /// Returns the title of the dataset.
    pub fn title(&self) -> &str {
        &self.text.title
    }

    /// Returns the publisher of the source.
    pub fn publisher(&self) -> &str {
        &self.text.publisher
    }

    /// Returns the id of the licence.
    pub fn license(&self) -> &str {
        &self.text.license
    }

    /// Returns the tags of the dataset.
    pub fn tags(&self) -> &[String] {
        &self.text.tags
    }

    /// Returns the times of the runs.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the cron expression.
    pub fn schedule_text(&self) -> &str {
        &self.text.schedule
    }

    /// Returns the contract of the dataset as a `schemaDef`.
    pub fn schema_def(&self) -> Value {
        serde_json::to_value(&self.contract).unwrap_or(Value::Null)
    }

    /// Returns the readme of the dataset.
    pub fn readme(&self) -> String {
        let SourceText {
            description,
            publisher,
            terms,
            ..
        } = &self.text;
        format!(
            "{}\n\nPublished by {publisher}. A collector of the platform adds what is new on a schedule; a record that \
             changes is a new record. Terms of the source: {terms}",
            description.trim()
        )
    }

    /// Returns the source that a contribution declares.
    pub fn declaration(&self) -> String {
        json!({ "collector": self.name(), "publisher": self.publisher(), "terms": self.text.terms }).to_string()
    }

    /// Returns a text that differs for every other definition.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the path of the file that is read in place of an address.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(self.text.fetch.file.as_ref()?))
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.text.fetch.max_mib.unwrap_or(DEFAULT_MIB) << 20
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.text.fetch.timeout_seconds.unwrap_or(DEFAULT_SECONDS))
    }
}

impl Pages {
    pub(crate) fn most(&self) -> u32 {
        self.max.unwrap_or(DEFAULT_PAGES)
    }
}

fn fail(key: impl Into<String>, problem: impl Into<String>) -> SourceError {
    SourceError {
        key: key.into(),
        problem: problem.into(),
    }
}

fn check_texts(text: &SourceText) -> Result<(), SourceError> {
    let is_slug = |slug: &str| {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (3..=60).contains(&slug.len()) && slug.bytes().all(is_plain) && !slug.starts_with('-') && !slug.ends_with('-')
    };
    for (key, slug) in [("name", &text.name), ("dataset", &text.dataset)] {
        if !is_slug(slug) {
            return Err(fail(
                key,
                "must be 3 to 60 lower-case letters, digits and inner hyphens",
            ));
        }
    }
    for (key, value, least, most) in [
        ("title", &text.title, 4, 140),
        ("publisher", &text.publisher, 2, 80),
        ("license", &text.license, 1, 40),
        ("description", &text.description, 20, 18_000),
    ] {
        let length = value.trim().chars().count();
        if length < least || length > most {
            return Err(fail(key, format!("must have {least} to {most} characters")));
        }
    }
    if Url::parse(&text.terms).is_err() || text.terms.len() > MAX_TERMS {
        return Err(fail(
            "terms",
            "must be the address of the terms of the source, at most 200 bytes",
        ));
    }
    if text.tags.len() > 8 {
        return Err(fail("tags", "must be at most 8"));
    }
    Ok(())
}

fn check_place(fetch: &Fetch, may_read_files: bool) -> Result<(), SourceError> {
    match (&fetch.url, &fetch.file) {
        (Some(url), None) => {
            let scheme = Url::parse(url).ok().map(|url| url.scheme().to_owned());
            // Plain `http` passes here, because the client of `outbound` decides whether it is allowed.
            if !matches!(scheme.as_deref(), Some("https" | "http")) {
                return Err(fail("fetch.url", "must be an address of https"));
            }
        }
        (None, Some(_)) if !may_read_files => return Err(fail("fetch.file", "is for definitions on this machine")),
        (None, Some(_)) if fetch.pages.is_some() => return Err(fail("fetch.pages", "is for an address")),
        (None, Some(_)) => {}
        _ => return Err(fail("fetch", "must have either `url` or `file`")),
    }
    Ok(())
}

fn check_bounds(fetch: &Fetch) -> Result<(), SourceError> {
    if !fetch.max_mib.is_none_or(|mib| (1..=MAX_MIB).contains(&mib)) {
        return Err(fail("fetch.max_mib", format!("must be 1 to {MAX_MIB}")));
    }
    if !fetch
        .timeout_seconds
        .is_none_or(|seconds| (1..=MAX_SECONDS).contains(&seconds))
    {
        return Err(fail("fetch.timeout_seconds", format!("must be 1 to {MAX_SECONDS}")));
    }
    if fetch.delimiter.is_some_and(|delimiter| !delimiter.is_ascii()) {
        return Err(fail("fetch.delimiter", "must be one ASCII character"));
    }
    if !is_pointer(&fetch.records) {
        return Err(fail("fetch.records", "must be a JSON pointer, such as `/items`"));
    }
    let Some(pages) = &fetch.pages else { return Ok(()) };
    match (&pages.next, &pages.parameter) {
        (Some(next), None) if fetch.format != SourceFormat::Json || !is_pointer(next) => {
            return Err(fail(
                "fetch.pages.next",
                "must be a JSON pointer, and the format `json`",
            ));
        }
        (Some(_), None) | (None, Some(_)) => {}
        _ => return Err(fail("fetch.pages", "must have either `next` or `parameter`")),
    }
    if matches!(fetch.format, SourceFormat::Parquet | SourceFormat::Delta) {
        return Err(fail("fetch.pages", "is for texts"));
    }
    if !(1..=MAX_PAGES).contains(&pages.most()) {
        return Err(fail("fetch.pages.max", format!("must be 1 to {MAX_PAGES}")));
    }
    Ok(())
}

fn check_fields(fields: &[FieldMap]) -> Result<(), SourceError> {
    for field in fields {
        let key = |name: &str| format!("fields.{}.{name}", field.name);
        match (&field.from, &field.constant) {
            (Some(from), None) if is_pointer(from) => {}
            (Some(_), None) => return Err(fail(key("from"), "must be a JSON pointer, such as `/id`")),
            (None, Some(_)) if field.format.is_some() => {
                return Err(fail(key("format"), "is for a value of the source"));
            }
            (None, Some(_)) => {}
            _ => return Err(fail(key("from"), "or `constant` must be given, and not both")),
        }
        if let Some(format) = field.format.as_deref().filter(|format| *format != "date") {
            ValueParse::new(format).map_err(|problem| fail(key("format"), problem))?;
        }
        match (field.kind, field.format.as_deref()) {
            (_, None) | (FieldTypeName::Timestamp, _) => {}
            // A day has no zone, so an instant does not name one.
            (FieldTypeName::Date, Some(format)) if format == "date" || format.contains('%') => {}
            (FieldTypeName::Date, Some(_)) => {
                return Err(fail(
                    key("format"),
                    "must be `date` or a pattern of strptime(3) for a date",
                ));
            }
            _ => return Err(fail(key("format"), "is for a timestamp or a date")),
        }
    }
    if !fields.iter().any(|field| field.required && field.from.is_some()) {
        // A source that changed its form would otherwise give empty records.
        return Err(fail("fields", "must have a required field of the source"));
    }
    Ok(())
}

fn is_pointer(text: &str) -> bool {
    text.is_empty() || text.starts_with('/')
}

#[cfg(test)]
mod tests;
