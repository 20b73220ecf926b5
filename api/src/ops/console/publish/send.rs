//! The second form of the page without scripts: the file is checked again, or published.
//!
//! Invariant: a dataset is made only after the checks let its records pass, and by the operations that an agent calls.

use pages::console::{DatasetWords, PublishColumn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::AgentId;

use super::draft::{FileInForm, FoundColumn, FoundFile, SaidFlag, check_records, check_size, flags_of};
use super::{PublishPlace, act, respond};
use crate::call::cx::Cx;
use crate::call::view::PageResponse;
use crate::error::ApiError;

/// Flag of each menu about the whole file, and whether it has a value.
const MENUS: [(&str, bool); 7] = [
    ("--delimiter", true),
    ("--no-header", false),
    ("--decimal-comma", false),
    ("--encoding", true),
    ("--zone", true),
    ("--sheet", true),
    ("--null", true),
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishForm {
    /// Slug of the dataset that gets the records.
    #[schemars(length(max = 100))]
    to: Option<String>,
    /// Id of the agent that publishes.
    #[schemars(length(max = 64))]
    agent: String,
    /// Name of the file.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    file_name: String,
    /// Bytes of the file in Base64.
    content: String,
    /// Columns as they were found, as JSON.
    #[schemars(length(max = 1_000_000))]
    base: String,
    /// Flags of the whole file so far, as JSON.
    #[schemars(length(max = 200_000))]
    flags: String,
    /// Places of the columns that are used.
    #[serde(default, rename = "use")]
    #[schemars(length(max = 1_024))]
    used: Vec<String>,
    /// Names of the fields.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    name: Vec<String>,
    /// Types of the fields.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    kind: Vec<String>,
    /// Digits after the point.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    scale: Vec<String>,
    /// Places of the columns that must have a value.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    required: Vec<String>,
    /// Meanings of the fields.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    meaning: Vec<String>,
    /// Forms of dates and times.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    parse: Vec<String>,
    /// Character between the cells.
    #[serde(default)]
    #[schemars(length(max = 20))]
    delimiter: String,
    /// Line of the header, or `none`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    header: String,
    /// Decimal mark: `comma` or `point`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    decimal: String,
    /// Encoding of the text.
    #[serde(default)]
    #[schemars(length(max = 60))]
    encoding: String,
    /// Zone of times without an offset.
    #[serde(default)]
    #[schemars(length(max = 60))]
    zone: String,
    /// Name of the sheet of a workbook.
    #[serde(default)]
    #[schemars(length(max = 200))]
    sheet: String,
    /// Words that mean null, separated by commas.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    nulls: String,
    /// Effect of refused records: `drop` or `reject`.
    #[serde(default)]
    refused: String,
    /// Title of the dataset.
    #[serde(default)]
    title: String,
    /// Slug of the dataset.
    #[serde(default)]
    slug: String,
    /// Readme of the dataset, as Markdown.
    #[serde(default)]
    readme: String,
    /// Licence of the dataset.
    #[serde(default)]
    license: String,
    /// Tags, separated by commas.
    #[serde(default)]
    tags: String,
    /// Source of the records.
    #[serde(default)]
    source: String,
    /// Readers: nobody else, everybody, or buyers.
    #[serde(default)]
    readers: String,
    /// Price in dollars.
    #[serde(default)]
    price: String,
    /// `check` or `publish`.
    step: PublishStep,
}

/// The most columns of a file, and flags, in a form.
const MOST_COLUMNS: usize = 1_024;
const MOST_FLAGS: usize = 2_000;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum PublishStep {
    Check,
    Publish,
}

impl PublishForm {
    /// Returns the columns as the person left them.
    fn columns(&self, count: usize) -> Vec<PublishColumn> {
        let text =
            |list: &[String], index: usize| list.get(index).map_or_else(String::new, |text| text.trim().to_owned());
        let column = |index: usize| {
            let place = index.to_string();
            PublishColumn {
                is_used: self.used.contains(&place),
                name: text(&self.name, index),
                kind: text(&self.kind, index),
                scale: text(&self.scale, index),
                is_required: self.required.contains(&place),
                meaning: text(&self.meaning, index),
                parse: text(&self.parse, index),
                ..PublishColumn::default()
            }
        };
        (0..count).map(column).collect()
    }

    /// Returns what the menus say of the whole file.
    fn menus(&self) -> Vec<SaidFlag> {
        let values = [
            &self.delimiter,
            &self.header,
            &self.decimal,
            &self.encoding,
            &self.zone,
            &self.sheet,
            &self.nulls,
        ];
        let mut flags = Vec::new();
        for ((flag, has_value), given) in MENUS.iter().zip(values) {
            let words = if *flag == "--null" {
                given.split(',')
            } else {
                given.split('\0')
            };
            for word in words.map(str::trim).filter(|word| !word.is_empty()) {
                // A bar or a comma is a word of its own: only words for nothing are a list.
                flags.push(SaidFlag::new(flag, if *has_value { word } else { "" }));
            }
        }
        flags
    }

    /// Returns the file with all that was said. What the menus say anew makes the columns of before others.
    fn file(self) -> Result<FileInForm, ApiError> {
        let broken = |_error| ApiError::invalid("", "the form of this page is broken; choose the file again");
        let base: Vec<FoundColumn> = serde_json::from_str(&self.base).map_err(broken)?;
        let before: Vec<SaidFlag> = serde_json::from_str(&self.flags).map_err(broken)?;
        // Each is compared with each below.
        if base.len() > MOST_COLUMNS || before.len() > MOST_FLAGS {
            return Err(ApiError::invalid(
                "",
                "the file has too many columns for this form; use `sluice push`",
            ));
        }
        let (menus, columns) = (self.menus(), self.columns(base.len()));
        let mut flags = before.clone();
        flags.retain(|flag| !menus.iter().any(|menu| menu.flag == flag.flag && flag.flag != "--null"));
        flags.extend(menus.into_iter().filter(|menu| !before.contains(menu)));
        let of_columns = flags_of(&base, &columns);
        let meanings = columns
            .into_iter()
            .filter(|column| column.is_used && !column.meaning.is_empty())
            .map(|column| (column.name, column.meaning));
        Ok(FileInForm {
            name: self.file_name,
            content: self.content,
            flags,
            of_columns,
            base,
            meanings: meanings.collect(),
            drops: self.refused != "reject",
            about: DatasetWords {
                title: self.title,
                slug: self.slug,
                readme: self.readme,
                tags: self.tags,
                source: self.source,
                license: self.license,
                readers: self.readers,
                price: self.price,
            },
        })
    }
}

pub(super) async fn publish(cx: Cx, input: PublishForm) -> Result<PageResponse, ApiError> {
    let place = PublishPlace::of(&cx, input.to.as_deref(), Some(&input.agent)).await?;
    let (agent, step) = (place.the_agent()?, input.step);
    let file = input.file()?;
    check_size(&file.content)?;
    let target = place.target.as_ref().map(|project| project.contract_json.clone());
    let found = file.look(&cx, agent, target.as_deref()).await?;
    let error = match (step, check_records(&found)) {
        (_, Err(error)) => Some(error),
        (PublishStep::Check, Ok(())) => None,
        (PublishStep::Publish, Ok(())) => {
            let slug = place.target.as_ref().map(|project| project.slug.as_str());
            match send(&cx, agent, &file, &found, slug).await {
                Ok(contribution) => return PageResponse::see(&format!("/console/contributions/{contribution}")),
                Err(error) => Some(error),
            }
        }
    };
    respond(&cx, &place.page_with(&cx, file.draft(found), error.map(named)).await?)
}

/// Returns an error whose places are fields of the form.
fn named(error: ApiError) -> ApiError {
    if error.details().is_empty() {
        return match error.machine_code() {
            "slug_taken" => ApiError::invalid("/slug", error.message()).with_code(error.code()),
            _ => error,
        };
    }
    let place = |path: &str| match path.split('/').nth(1).unwrap_or_default() {
        "access" | "visibility" => "/readers".to_owned(),
        name => format!("/{name}"),
    };
    let details = error.details().iter().map(|detail| crate::error::ErrorDetail {
        path: place(&detail.path),
        problem: detail.problem.clone(),
    });
    ApiError::invalid_all(details.collect()).with_code(error.code())
}

/// Makes the dataset, unless there is one, and contributes the records. Returns the id of the contribution.
async fn send(
    cx: &Cx,
    agent: AgentId,
    file: &FileInForm,
    found: &FoundFile,
    target: Option<&str>,
) -> Result<String, ApiError> {
    let (Some(contract), true) = (&found.schema_def, found.is_ready()) else {
        return Err(ApiError::invalid(
            "",
            "the checks let nothing pass yet; see above what they say",
        ));
    };
    let records = super::lines::records(cx, agent, file, found, contract).await?;
    let slug = if let Some(slug) = target {
        slug.to_owned()
    } else {
        act(cx, agent, "create_dataset", dataset(&file.about, contract)).await?;
        file.about.slug.trim().to_owned()
    };
    let mut body = Map::new();
    body.insert("slug".to_owned(), slug.into());
    body.insert("records".to_owned(), records);
    body.insert(
        "onRefused".to_owned(),
        if file.drops { "drop" } else { "reject" }.into(),
    );
    let source = file.about.source.trim();
    if !source.is_empty() {
        body.insert("sourceDeclaration".to_owned(), source.into());
    }
    let answer = act(cx, agent, "contribute_records", body).await?;
    let answer: Value = serde_json::from_slice(&answer).map_err(ApiError::internal)?;
    let id = answer["id"].as_str();
    id.map(str::to_owned)
        .ok_or_else(|| ApiError::internal("a contribution without an id"))
}

/// Returns the input that makes a dataset.
fn dataset(about: &DatasetWords, contract: &Value) -> Map<String, Value> {
    let DatasetWords {
        title,
        slug,
        readme,
        tags,
        license,
        readers,
        price,
        ..
    } = about;
    let is_paid = readers == "paid";
    let tags: Vec<&str> = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    let mut body = json!({
        "slug": slug.trim(),
        "title": title.trim(),
        "readme": readme.trim(),
        "license": license,
        "tags": tags,
        "schemaDef": contract,
        "access": if is_paid { "paid" } else { "public" },
        "visibility": if readers == "private" { "private" } else { "public" },
    });
    if is_paid && !price.trim().is_empty() {
        body["price"] = price.trim().into();
    }
    match body {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
