//! A file that a form carries: what it is, what the person said of it, and what the checks say.
//!
//! Invariant: what the person says becomes the flags that the command line has, so that a form, the script of the page and
//! a command ask for the same.

use std::collections::HashSet;

use data_encoding::BASE64;
use pages::console::{DatasetWords, PublishColumn, PublishDraft, RefusedCell};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use types::AgentId;

use super::{FORM_BYTES, FORM_RECORDS, PublishPlace, act, respond, takes_records};
use crate::call::cx::Cx;
use crate::call::view::PageResponse;
use crate::error::ApiError;

/// Notes, questions and verdicts on the page, each.
const MAX_SHOWN: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFileForm {
    /// Slug of the dataset that gets the records.
    #[schemars(length(max = 100))]
    to: Option<String>,
    /// Id of the agent that publishes.
    #[schemars(length(max = 64))]
    agent: String,
    /// Bytes of the file in Base64.
    #[serde(default)]
    file: String,
    /// Name of the file.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    file_name: String,
}

/// Column as it was found, before the person said anything of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundColumn {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parse: Option<String>,
    #[serde(default, skip_serializing)]
    nulls: u64,
    #[serde(default, skip_serializing)]
    examples: Vec<String>,
}

/// Flag of the command line.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct SaidFlag {
    pub(super) flag: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) value: String,
}

impl SaidFlag {
    pub(super) fn new(flag: &str, value: impl Into<String>) -> Self {
        Self {
            flag: flag.to_owned(),
            value: value.into(),
        }
    }
}

/// Note or question about a file.
#[derive(Debug, Deserialize)]
struct FoundRemark {
    message: String,
    column: Option<String>,
    line: Option<u64>,
}

/// Record that is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FoundVerdict {
    line: u64,
    column: Option<String>,
    path: String,
    value: Option<String>,
    gate: String,
    message: String,
    remedy: Option<FoundRemedy>,
}

#[derive(Debug, Deserialize)]
struct FoundRemedy {
    flag: String,
    value: Option<String>,
}

/// Answer of the service about a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundFile {
    pub(super) format: String,
    pub(super) complete: bool,
    pub(super) records: u64,
    columns: Vec<FoundColumn>,
    pub(super) schema_def: Option<Value>,
    pub(super) reading: Value,
    #[serde(default)]
    sample: Vec<Map<String, Value>>,
    #[serde(default)]
    pub(super) passed: u64,
    #[serde(default)]
    pub(super) refused: u64,
    #[serde(default)]
    duplicates: u64,
    #[serde(default)]
    verdicts: Vec<FoundVerdict>,
    notes: Vec<FoundRemark>,
    questions: Vec<FoundRemark>,
}

/// File in a form, with all that a person said of it.
#[derive(Clone, Debug, Default)]
pub(super) struct FileInForm {
    pub(super) name: String,
    /// Bytes in Base64.
    pub(super) content: String,
    /// Flags of the whole file.
    pub(super) flags: Vec<SaidFlag>,
    /// Flags of its columns.
    pub(super) of_columns: Vec<SaidFlag>,
    /// Columns as they were found first; none before that.
    pub(super) base: Vec<FoundColumn>,
    /// Meaning of each field, by its name.
    pub(super) meanings: Vec<(String, String)>,
    pub(super) drops: bool,
    pub(super) about: DatasetWords,
}

impl FileInForm {
    /// Returns every flag.
    pub(super) fn said(&self) -> Vec<SaidFlag> {
        self.flags.iter().chain(&self.of_columns).cloned().collect()
    }

    /// Returns a contract with what the person said of its fields.
    fn documented(&self, mut contract: Value) -> Value {
        let fields = contract["fields"].as_array_mut();
        for field in fields.into_iter().flatten() {
            let said = self.meanings.iter().find(|(name, _)| field["name"] == name.as_str());
            if let Some((_, meaning)) = said {
                field["description"] = meaning.as_str().into();
            }
        }
        contract
    }

    /// Asks the service what the file is, and what the checks say of its records.
    pub(super) async fn look(&self, cx: &Cx, agent: AgentId, target: Option<&str>) -> Result<FoundFile, ApiError> {
        let mut body = Map::new();
        body.insert("base64".to_owned(), self.content.clone().into());
        body.insert("flags".to_owned(), json!(self.said()));
        let policy = if self.drops { "drop" } else { "reject" };
        let judged = |mut body: Map<String, Value>, contract: Value| {
            body.insert("schemaDef".to_owned(), contract);
            body.insert("onRefused".to_owned(), policy.into());
            body
        };
        let ask = async |body| read_answer(&act(cx, agent, "infer_file", body).await?);
        if let Some(contract) = target {
            let contract = serde_json::from_str(contract).map_err(ApiError::internal)?;
            return ask(judged(body, contract)).await;
        }
        let found: FoundFile = ask(body.clone()).await?;
        match &found.schema_def {
            // With open questions there is no contract to judge by.
            Some(contract) if found.questions.is_empty() => {
                let contract = self.documented(contract.clone());
                let checked: FoundFile = ask(judged(body, contract)).await?;
                Ok(FoundFile {
                    notes: found.notes,
                    ..checked
                })
            }
            _ => Ok(found),
        }
    }

    /// Returns the file as the page shows it.
    pub(super) fn draft(self, found: FoundFile) -> PublishDraft {
        let fields = found.schema_def.as_ref().and_then(|schema| schema["fields"].as_array());
        let heads: Vec<String> = fields
            .into_iter()
            .flatten()
            .filter_map(|field| field["name"].as_str().map(str::to_owned))
            .collect();
        let row = |record: &Map<String, Value>| {
            let cells = heads.iter().map(|head| match record.get(head) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            });
            cells.collect::<Vec<_>>()
        };
        let sample = found.sample.iter().map(row).collect();
        let required = |name: &str| {
            let fields = found.schema_def.as_ref().and_then(|schema| schema["fields"].as_array());
            let field = fields.into_iter().flatten().find(|field| field["name"] == name);
            field.is_some_and(|field| field["required"] == true)
        };
        let columns = found.columns.iter().map(|column| {
            let notes = found
                .notes
                .iter()
                .filter(|note| note.column.as_deref() == Some(&column.name));
            let told: Vec<_> = notes.map(FoundRemark::sentence).collect();
            let field = column.field.clone().unwrap_or_default();
            let meaning = self.meanings.iter().find(|(name, _)| *name == field);
            let filled = found.records.saturating_sub(column.nulls).saturating_mul(100);
            PublishColumn {
                from: column.name.clone(),
                is_used: column.field.is_some(),
                is_required: required(&field),
                name: column.field.clone().unwrap_or_else(|| column.name.clone()),
                kind: column.kind.clone(),
                scale: column.scale.map_or_else(String::new, |scale| scale.to_string()),
                meaning: meaning.map_or_else(String::new, |(_, meaning)| meaning.clone()),
                parse: column.parse.clone().unwrap_or_default(),
                examples: column.examples.iter().take(2).cloned().collect(),
                nulls: column.nulls,
                filled: filled
                    .checked_div(found.records)
                    .and_then(|percent| u8::try_from(percent).ok())
                    .unwrap_or(100),
                told: told.join(" "),
            }
        });
        let columns = columns.collect();
        let base = if self.base.is_empty() {
            &found.columns
        } else {
            &self.base
        };
        // A note on a column stands beside it.
        let notes = found.notes.iter().filter(|note| note.column.is_none());
        let notes = notes.take(MAX_SHOWN).map(FoundRemark::sentence).collect();
        let questions = found.questions.iter().take(MAX_SHOWN);
        let questions = questions.map(FoundRemark::with_column).collect();
        let mut about = self.about;
        if about.slug.is_empty() {
            about = suggested(&self.name, &heads, found.records, about);
        }
        PublishDraft {
            base: json!(base).to_string(),
            flags: json!(self.flags).to_string(),
            found: found.format.replace('-', " "),
            records: found.records,
            columns,
            sample,
            passed: found.passed,
            refused: found.refused,
            duplicates: found.duplicates,
            verdicts: found.verdicts.into_iter().map(shown).collect(),
            notes,
            questions,
            heads,
            file_name: self.name,
            content: self.content,
            drops: self.drops,
            about,
        }
    }
}

impl FoundFile {
    /// Returns true if nothing is left to be decided and some record passes.
    pub(super) const fn is_ready(&self) -> bool {
        self.questions.is_empty() && self.passed > 0
    }
}

impl FoundRemark {
    fn sentence(&self) -> String {
        let message = crate::ops::page_kit::sentence(&self.message);
        match self.line {
            Some(line) if !self.message.contains(&format!("line {line}")) => format!("{message} (line {line})."),
            _ => format!("{message}."),
        }
    }

    fn with_column(&self) -> String {
        let sentence = self.sentence();
        match &self.column {
            Some(column) => format!("{column}: {sentence}"),
            None => sentence,
        }
    }
}

fn shown(verdict: FoundVerdict) -> RefusedCell {
    let is_dropped = verdict.gate == "dedup";
    let remedy = verdict.remedy.map(|FoundRemedy { flag, value }| match value {
        Some(value) => format!("{flag} {value}"),
        None => flag,
    });
    RefusedCell {
        line: verdict.line,
        column: verdict.column.unwrap_or(verdict.path),
        value: verdict.value.unwrap_or_default(),
        verdict: if is_dropped { "dropped" } else { "refused" }.to_owned(),
        problem: verdict.message,
        remedy: remedy.unwrap_or_default(),
    }
}

/// Returns words about a dataset that are made from its file, where the person said none.
fn suggested(name: &str, heads: &[String], records: u64, about: DatasetWords) -> DatasetWords {
    let stem = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = stem.split('.').find(|part| !part.is_empty()).unwrap_or("data");
    let mut slug = String::new();
    for letter in stem.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
        if slug.len() == 60 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    let or = |text: String, other: String| if text.is_empty() { other } else { text };
    let fields: Vec<String> = heads.iter().map(|head| format!("- `{head}`")).collect();
    let readme: String = format!("{records} records of the file {stem}.\n\n{}", fields.join("\n"))
        .chars()
        .take(20_000)
        .collect();
    DatasetWords {
        slug: if slug.len() < 3 {
            format!("data-{slug}")
        } else {
            slug.to_owned()
        }
        .trim_end_matches('-')
        .to_owned(),
        title: or(
            about.title,
            if stem.chars().count() < 4 {
                format!("Data of {stem}")
            } else {
                stem.chars().take(140).collect()
            },
        ),
        readme: or(about.readme, readme),
        ..about
    }
}

fn read_answer(bytes: &[u8]) -> Result<FoundFile, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::internal(format!("answer about a file: {error}")))
}

/// Returns the flags for what a person changed of the columns, by their places in the file.
pub(super) fn flags_of(base: &[FoundColumn], said: &[PublishColumn]) -> Vec<SaidFlag> {
    let mut seen = HashSet::new();
    let twice: HashSet<&str> = base
        .iter()
        .map(|column| column.name.as_str())
        .filter(|name| !seen.insert(*name))
        .collect();
    let mut flags = Vec::new();
    for (column, said) in base.iter().zip(said) {
        let field = column.field.as_deref().unwrap_or(&column.name);
        // A name that the file has twice is no name of a column; that of its field is.
        let key = if twice.contains(column.name.as_str()) {
            field
        } else {
            &column.name
        };
        if !said.is_used {
            flags.push(SaidFlag::new("--ignore", key));
            continue;
        }
        if said.name != field {
            flags.push(SaidFlag::new("--rename", format!("{key}={}", said.name)));
        }
        let scale = column.scale.map_or_else(String::new, |scale| scale.to_string());
        let parse = column.parse.as_deref().unwrap_or_default();
        let is_time = matches!(said.kind.as_str(), "date" | "timestamp");
        let is_other =
            said.kind != column.kind || said.kind == "decimal" && said.scale != scale || is_time && said.parse != parse;
        if is_other {
            let scale = match (said.kind.as_str(), said.scale.as_str()) {
                ("decimal", "") => "(0)".to_owned(),
                ("decimal", scale) => format!("({scale})"),
                _ => String::new(),
            };
            // A form that belongs to another type is none of this one.
            let parse = if is_time && !said.parse.is_empty() && (said.kind == column.kind || said.parse != parse) {
                format!(":{}", said.parse)
            } else {
                String::new()
            };
            flags.push(SaidFlag::new("--types", format!("{key}={}{scale}{parse}", said.kind)));
        }
        if said.is_required {
            flags.push(SaidFlag::new("--required", key));
        }
    }
    flags
}

/// Checks what a form may carry of a file.
pub(super) fn check_size(content: &str) -> Result<(), ApiError> {
    let bytes = BASE64
        .decode_len(content.len())
        .map_err(|_malformed| ApiError::invalid("/file", "must be Base64"))?;
    if bytes == 0 {
        return Err(ApiError::invalid("/file", "must be chosen, and not be empty"));
    }
    // The length of Base64 counts its padding as up to two bytes.
    if bytes as u64 > FORM_BYTES + 2 {
        let problem =
            format!("must have at most {FORM_BYTES} bytes here; with scripts, or by `sluice push`, it may have more");
        return Err(ApiError::invalid("/file", problem));
    }
    Ok(())
}

/// Checks that the records of a file are those of one batch.
pub(super) fn check_records(found: &FoundFile) -> Result<(), ApiError> {
    if found.records > FORM_RECORDS {
        let problem = format!(
            "must have at most {FORM_RECORDS} records here, and has {}; with scripts, or by `sluice push`, it may have more",
            found.records
        );
        return Err(ApiError::invalid("/file", problem));
    }
    Ok(())
}

pub(super) async fn read(cx: Cx, input: ReadFileForm) -> Result<PageResponse, ApiError> {
    let place = PublishPlace::of(&cx, input.to.as_deref(), Some(&input.agent)).await?;
    if place.target.as_ref().is_some_and(|project| !takes_records(project)) {
        return Err(super::missing("open dataset"));
    }
    let file = FileInForm {
        name: input.file_name,
        content: input.file,
        drops: true,
        about: DatasetWords {
            license: crate::licenses::License::ALL
                .first()
                .map_or("", |license| license.id())
                .to_owned(),
            readers: "private".to_owned(),
            ..DatasetWords::default()
        },
        ..FileInForm::default()
    };
    let looked = async {
        check_size(&file.content)?;
        let agent = place.the_agent()?;
        let target = place.target.as_ref().map(|project| project.contract_json.as_str());
        let found = file.look(&cx, agent, target).await?;
        check_records(&found)?;
        Ok(found)
    };
    match looked.await {
        Ok(found) => respond(&cx, &place.page_with(&cx, file.draft(found), None).await?),
        Err(error) => {
            let errors = crate::ops::page_kit::repairable(error)?;
            let page = place.page(&cx).await?;
            respond(&cx, &pages::console::PublishPage { errors, ..page })
        }
    }
}
