//! First page of a dataset: rows, readme, schema, calls, contributors and what is said.

use askama::Template;
use serde_json::{Value, json};
use types::{Contract, Timestamp, Version};

use super::DatasetTab;
use super::column::{kind_words, percent};
use super::head::{DatasetHead, DatasetOffer};
use super::pace::RowsADay;
use super::rows::DatasetRows;
use crate::cell::escaped;
use crate::chrome::{PageLayout, Theme};
use crate::document::RenderedMarkdown;
use crate::filters;
use crate::head::LinkedData;
use crate::number::counted;
use crate::said::Discussion;
use crate::time::Instant;

/// Most bytes of the table of the schema as HTML, which leaves the rest of a page room within 90 KB.
const MAX_SCHEMA_BYTES: usize = 32 << 10;
/// Most fields that the data for other sites names.
const MAX_NAMED_FIELDS: usize = 40;
/// Bytes of a field beside its texts.
const FIELD_BYTES: usize = 240;

/// Summary of a version by a model.
#[derive(Clone, Debug)]
pub struct SummaryOfVersion {
    /// Number of the version.
    pub version: Version,
    /// Text of the summary.
    pub text: String,
    /// Name of the model.
    pub model: String,
}

/// Agent whose contributions were merged.
#[derive(Clone, Debug)]
pub struct VersionContributor {
    /// Name of the agent.
    pub agent: String,
    /// Number of merged contributions.
    pub contributions: u64,
    /// Number of records that they added.
    pub added: u64,
}

/// Root, key and files by which a reader checks a version.
#[derive(Clone, Debug)]
pub struct ProofOfVersion {
    /// Number of the version.
    pub version: Version,
    /// Content root of the version, 64 hexadecimal digits.
    pub root: String,
    /// Number of records that it is computed from.
    pub records: u64,
    /// Id of the key that manifests are signed with.
    pub key: String,
    /// Number and bytes of the files; none where they cannot be read.
    pub files: Option<(u64, u64)>,
}

/// Field of the contract as the table of the schema has it.
struct SchemaRow<'a> {
    name: &'a str,
    kind: String,
    is_required: bool,
    meaning: String,
    figures: &'a str,
}

impl SchemaRow<'_> {
    /// Returns about how many bytes of HTML the row is.
    fn weight(&self) -> usize {
        let texts = [self.name, &self.meaning, self.figures];
        FIELD_BYTES + texts.into_iter().map(escaped).sum::<usize>()
    }
}

/// Page at `GET /projects/{slug}`.
#[derive(Debug, Template)]
#[template(path = "dataset/page.html")]
pub struct DatasetPage {
    chrome: PageLayout,
    head: DatasetHead,
    rows: DatasetRows,
    contract: Contract,
    /// One line of figures for each field, in the order of the contract; empty where there are none.
    figures: Vec<String>,
    /// Version of the figures.
    figures_version: Option<Version>,
    created_at: Timestamp,
    summary: Option<SummaryOfVersion>,
    contributors: Vec<VersionContributor>,
    readme: RenderedMarkdown,
    discussion: Discussion,
    pace: Option<RowsADay>,
}

impl DatasetPage {
    /// Creates the page. `figures` has a line for each field of the contract, and is of `figures_version`.
    #[expect(clippy::too_many_arguments, reason = "each is a section of the page")]
    pub fn new(
        chrome: PageLayout,
        mut head: DatasetHead,
        rows: DatasetRows,
        (contract, figures): (Contract, Vec<String>),
        (figures_version, created_at): (Option<Version>, Timestamp),
        summary: Option<SummaryOfVersion>,
        contributors: Vec<VersionContributor>,
        discussion: Discussion,
    ) -> Self {
        head.review_count = discussion.review_count;
        Self {
            readme: RenderedMarkdown::of_stranger(&head.readme, &chrome),
            chrome,
            head,
            rows,
            contract,
            figures,
            figures_version,
            created_at,
            summary,
            contributors,
            discussion,
            pace: None,
        }
    }

    /// Adds the rows that came on each of the last days, oldest day first.
    #[must_use]
    pub fn with_days(mut self, days: Vec<u64>) -> Self {
        self.pace = RowsADay::new(days);
        self
    }

    /// Returns a sentence about the dataset for search engines and other sites.
    fn about(&self) -> String {
        let lede = self.head.lede();
        if lede.is_empty() {
            let rows = counted(self.head.records, "row", "rows");
            format!("A dataset of {rows} on Sluice, under {}.", self.head.license)
        } else {
            lede
        }
    }

    /// Returns the dataset as data.
    fn linked(&self) -> LinkedData {
        let (head, base) = (&self.head, &self.chrome.base);
        let columns = self.contract.fields().iter().take(MAX_NAMED_FIELDS);
        let columns: Vec<&str> = columns.map(|field| field.name.as_str()).collect();
        let creator = head.account.as_ref().or(head.agent.as_ref());
        LinkedData::new(
            "Dataset",
            [
                ("name", json!(head.title)),
                ("description", json!(self.about())),
                ("url", json!(self.chrome.canonical())),
                ("identifier", json!(head.slug)),
                ("license", json!(head.license)),
                ("keywords", json!(head.tags)),
                ("version", json!(head.version.0.to_string())),
                ("dateCreated", json!(Instant(self.created_at.micros()).machine())),
                ("dateModified", json!(Instant(head.updated_at.micros()).machine())),
                (
                    "creator",
                    creator.map_or(Value::Null, |name| json!({"@type": "Organization", "name": name})),
                ),
                ("isAccessibleForFree", json!(!self.is_paid())),
                ("variableMeasured", json!(columns)),
                (
                    "includedInDataCatalog",
                    json!({"@type": "DataCatalog", "name": "Sluice", "url": format!("{base}/")}),
                ),
            ],
        )
    }

    /// Returns the first fields, as many as there is room for, and how many there are beside them.
    fn schema(&self) -> (Vec<SchemaRow<'_>>, usize) {
        let mut left = MAX_SCHEMA_BYTES;
        let fits = |row: &SchemaRow<'_>| {
            let room = left.checked_sub(row.weight());
            left = room.unwrap_or_default();
            room.is_some()
        };
        let shown: Vec<_> = self.fields().take_while(fits).collect();
        let others = self.contract.fields().len() - shown.len();
        (shown, others)
    }

    fn fields(&self) -> impl Iterator<Item = SchemaRow<'_>> {
        self.contract.fields().iter().enumerate().map(|(at, field)| {
            let parts = [&field.title, &field.description, &field.unit];
            let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
            SchemaRow {
                name: &field.name,
                kind: kind_words(field.kind),
                is_required: field.required,
                meaning: parts.join(" · "),
                figures: self.figures.get(at).map_or("", String::as_str),
            }
        })
    }

    /// Returns the version of the figures, if it is not the newest.
    fn figures_before(&self) -> Option<Version> {
        self.figures_version.filter(|version| *version < self.head.version)
    }

    fn has_figures(&self) -> bool {
        self.figures.iter().any(|figures| !figures.is_empty())
    }

    fn share(&self, added: u64) -> String {
        percent(added, self.head.records)
    }

    /// Returns the number of contributors that are not named.
    fn others(&self) -> u64 {
        self.head.contributors.saturating_sub(self.contributors.len() as u64)
    }

    fn is_paid(&self) -> bool {
        matches!(self.head.offer, DatasetOffer::Priced { .. })
    }

    fn curl(&self) -> String {
        // Before the first version the calls name version 1, which they can be copied for once it is
        // there.
        let (base, slug, version) = (&self.chrome.base, &self.head.slug, self.head.version.0.max(1));
        let buy = if self.is_paid() {
            format!(
                "curl -s {base}/projects/{slug}/buy -H \"Authorization: Bearer $SLUICE_KEY\" \\\n  -H \"Content-Type: \
                 application/json\" -d '{{\"version\": {version}}}'\n"
            )
        } else {
            String::new()
        };
        format!(
            "{buy}curl -s \"{base}/projects/{slug}/export?version={version}\" \\\n  -H \"Authorization: Bearer \
             $SLUICE_KEY\" > {slug}.ndjson"
        )
    }

    fn cli(&self) -> String {
        let (base, slug, version) = (&self.chrome.base, &self.head.slug, self.head.version.0.max(1));
        format!("sluice pull {slug} --version {version} --server {base}\nsluice verify {slug}")
    }

    fn python(&self) -> String {
        let (base, slug, version) = (&self.chrome.base, &self.head.slug, self.head.version.0.max(1));
        let buy = if self.is_paid() {
            format!("s.post(\"{base}/projects/{slug}/buy\", json={{\"version\": {version}}}).raise_for_status()\n")
        } else {
            String::new()
        };
        format!(
            "import os, requests\n\ns = requests.Session()\ns.headers[\"Authorization\"] = \"Bearer \" + \
             os.environ[\"SLUICE_KEY\"]\n{buy}page = s.get(\"{base}/projects/{slug}/data\", params={{\"version\": \
             {version}}})\nprint(page.json()[\"items\"][:3])"
        )
    }

    fn mcp(&self) -> String {
        let (slug, version) = (&self.head.slug, self.head.version.0.max(1));
        let buy = if self.is_paid() {
            format!("buy_dataset   {{\"slug\": \"{slug}\", \"version\": {version}}}\n")
        } else {
            String::new()
        };
        format!("{buy}read_dataset  {{\"slug\": \"{slug}\", \"version\": {version}, \"limit\": 20}}")
    }

    fn push(&self) -> String {
        format!("sluice push rows.csv --project {}", self.head.slug)
    }

    fn report(&self) -> String {
        format!("/report?kind=dataset&id={}", self.head.slug)
    }
}
