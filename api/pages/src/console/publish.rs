//! A file becomes a dataset: the page that reads it, shows what it is, checks it and publishes it.
//!
//! Invariant: the page works without its script, for a small file, in three loads: choose, correct, publish. The script
//! fills the same markup.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::consent::AgentChoice;
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// Types of fields, each with its words.
const FIELD_TYPES: [(&str, &str); 8] = [
    ("string", "text"),
    ("integer", "whole number"),
    ("decimal", "exact decimal"),
    ("number", "number"),
    ("boolean", "true or false"),
    ("date", "day"),
    ("timestamp", "time"),
    ("json", "JSON"),
];

/// Page at `GET /console/publish`, and the answers to its forms at `POST /console/publish/read` and
/// `POST /console/publish`.
#[derive(Debug, Template)]
#[template(path = "console/publish.html")]
pub struct PublishPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Name of the account.
    pub operator: String,
    /// Agent that publishes; `None` if the console is connected to none.
    pub agent: Option<AgentChoice>,
    /// Question that connects the console to an agent.
    pub connect: ConnectForm,
    /// Dataset that gets the records; `None` if a new one is made.
    pub target: Option<PublishTarget>,
    /// Active datasets, if there are as many as there may be and a new one is to be made.
    pub active: Vec<ActiveDataset>,
    /// Number of active datasets.
    pub active_count: u32,
    /// Greatest number of active datasets.
    pub active_limit: u32,
    /// Uploads that were begun and not completed.
    pub uploads: Vec<UnfinishedUpload>,
    /// Licences: the id and the name of each.
    pub licenses: Vec<(String, String)>,
    /// Sizes that the page and its script keep.
    pub bounds: PublishBounds,
    /// File that was read by a form.
    pub draft: Option<PublishDraft>,
    /// Rules that the forms break.
    pub errors: Vec<FieldError>,
}

/// Question that connects the console to an agent.
#[derive(Clone, Debug, Default)]
pub struct ConnectForm {
    /// Agents to choose from.
    pub agents: Vec<AgentChoice>,
    /// Number of places for agents that are left.
    pub places_left: u32,
    /// Id of the agent that was chosen, or `new`; empty at first.
    pub chosen: String,
    /// Name of a new agent, as typed.
    pub name: String,
}

/// Dataset that gets more records.
#[derive(Clone, Debug)]
pub struct PublishTarget {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Contract of the dataset, as JSON.
    pub schema: String,
}

/// Dataset that takes one of the places of its operator.
#[derive(Clone, Debug)]
pub struct ActiveDataset {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// True if only the operator reads it.
    pub is_private: bool,
}

/// Upload that was begun and not completed.
#[derive(Clone, Debug)]
pub struct UnfinishedUpload {
    /// Id of the upload.
    pub id: String,
    /// Slug of its dataset.
    pub slug: String,
    /// Name of the agent that began it.
    pub agent: String,
    /// Size of the whole file, in bytes.
    pub bytes: u64,
    /// Time at which it began.
    pub created_at: Instant,
    /// Time until which it can be completed.
    pub expires_at: Instant,
}

/// Sizes that the page and its script keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishBounds {
    /// Greatest size of an upload in bytes.
    pub upload_bytes: u64,
    /// Greatest size of a file that is looked at in one call, in bytes.
    pub looked_bytes: u64,
    /// Greatest size of a file in a form, in bytes.
    pub form_bytes: u64,
    /// Greatest number of records in a form.
    pub form_records: u64,
}

/// File that was read by a form, with what the person said about it.
#[derive(Clone, Debug, Default)]
pub struct PublishDraft {
    /// Name of the file.
    pub file_name: String,
    /// Bytes of the file in Base64. A form would change the ends of lines in a text.
    pub content: String,
    /// Columns as they were found before the person changed them, as JSON.
    pub base: String,
    /// What was said of the whole file, as JSON.
    pub flags: String,
    /// What the file is, in words.
    pub found: String,
    /// Records in the file.
    pub records: u64,
    /// Columns of the file, in order.
    pub columns: Vec<PublishColumn>,
    /// Names of the fields of the sample.
    pub heads: Vec<String>,
    /// First records as they will be stored.
    pub sample: Vec<Vec<String>>,
    /// Records that pass the checks.
    pub passed: u64,
    /// Records that the checks refuse.
    pub refused: u64,
    /// Records that occur again.
    pub duplicates: u64,
    /// First records that are refused or dropped.
    pub verdicts: Vec<RefusedCell>,
    /// What was decided.
    pub notes: Vec<String>,
    /// What has to be decided before anything is made.
    pub questions: Vec<String>,
    /// True if refused records are left out.
    pub drops: bool,
    /// Words about the dataset.
    pub about: DatasetWords,
}

/// What a person says of a dataset.
#[derive(Clone, Debug, Default)]
pub struct DatasetWords {
    /// Title of the dataset.
    pub title: String,
    /// Slug of the dataset.
    pub slug: String,
    /// Description of the dataset.
    pub readme: String,
    /// Tags, separated by commas.
    pub tags: String,
    /// Source of the records.
    pub source: String,
    /// Id of the licence.
    pub license: String,
    /// Readers: `private`, `public` or `paid`.
    pub readers: String,
    /// Price of a version in dollars, as typed.
    pub price: String,
}

/// Column of a file.
#[derive(Clone, Debug, Default)]
pub struct PublishColumn {
    /// Name in the file.
    pub from: String,
    /// True if the column becomes a field.
    pub is_used: bool,
    /// Name of the field.
    pub name: String,
    /// Type of the field.
    pub kind: String,
    /// Digits after the point, of a decimal.
    pub scale: String,
    /// True if every record must have a value.
    pub is_required: bool,
    /// What the field means.
    pub meaning: String,
    /// Form of dates and times.
    pub parse: String,
    /// First values, as they are in the file.
    pub examples: Vec<String>,
    /// Records without a value.
    pub nulls: u64,
    /// Percentage of records with a value.
    pub filled: u8,
    /// What was decided about the column, in words.
    pub told: String,
}

/// Record that is refused, with the cell that is to blame.
#[derive(Clone, Debug, Default)]
pub struct RefusedCell {
    /// Line of the file.
    pub line: u64,
    /// Name of the column, or the path of the field.
    pub column: String,
    /// Value in the file; empty if it is not shown.
    pub value: String,
    /// `refused` or `dropped`.
    pub verdict: String,
    /// Reason in words.
    pub problem: String,
    /// What to do about it; empty if there is nothing.
    pub remedy: String,
}

impl PublishPage {
    fn is_full(&self) -> bool {
        self.target.is_none() && self.active_count >= self.active_limit
    }

    fn heading(&self) -> &str {
        self.target
            .as_ref()
            .map_or("From a file to a dataset", |_| "Add records from a file")
    }

    fn is_chosen(&self, id: &str) -> bool {
        match self.connect.chosen.as_str() {
            "" => self.connect.agents.first().map_or("new", |agent| agent.id.as_str()) == id,
            chosen => chosen == id,
        }
    }

    fn has_one_agent(&self) -> Option<&AgentChoice> {
        match self.connect.agents.as_slice() {
            [only] if self.connect.places_left == 0 || self.connect.chosen == only.id => Some(only),
            _ => None,
        }
    }

    fn script() -> String {
        crate::asset::path("publish.js")
    }

    /// Returns a column without content, which the script copies.
    fn blank() -> PublishColumn {
        PublishColumn {
            is_used: true,
            kind: "string".to_owned(),
            filled: 100,
            ..PublishColumn::default()
        }
    }

    /// Returns the draft, or one without content for the script to fill.
    fn shown(&self) -> PublishDraft {
        self.draft.clone().unwrap_or_else(|| PublishDraft {
            drops: true,
            about: DatasetWords {
                license: self.licenses.first().map_or_else(String::new, |(id, _)| id.clone()),
                readers: "private".to_owned(),
                ..DatasetWords::default()
            },
            ..PublishDraft::default()
        })
    }
}

impl PublishDraft {
    fn can_publish(&self) -> bool {
        self.questions.is_empty() && self.passed > 0
    }

    fn used(&self) -> usize {
        self.columns.iter().filter(|column| column.is_used).count()
    }
}

impl PublishColumn {
    fn is_time(&self) -> bool {
        matches!(self.kind.as_str(), "date" | "timestamp")
    }

    fn is_decimal(&self) -> bool {
        self.kind == "decimal"
    }
}
