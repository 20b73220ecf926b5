//! Datasets of the operator.

use askama::Template;

use types::money::MicroUsdc;
use types::vocabulary::ProjectStatus;

use super::{ContributionRow, GateTally, ItemSales};
use crate::chrome::{PageLayout, Theme};
use crate::dataset::{GrowthChart, GrowthPoint, VersionContributor};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;
use crate::words::StateMark;

/// Returns the class of a dataset's status.
fn status_mark(status: &str) -> StateMark {
    match status {
        "open" => StateMark::Live,
        "paused" => StateMark::Hold,
        _ => StateMark::Off,
    }
}

/// Page at `GET /console/datasets`.
#[derive(Debug, Template)]
#[template(path = "console/datasets.html")]
pub struct DatasetsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Datasets that the operator maintains.
    pub datasets: Vec<DatasetRow>,
}

/// Dataset in the list.
#[derive(Clone, Debug)]
pub struct DatasetRow {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// True while it is taken down.
    pub is_down: bool,
    /// Status: `open`, `paused` or `archived`.
    pub status: String,
    /// Visibility: `public` or `private`.
    pub visibility: String,
    /// Access: `public` or `paid`.
    pub access: String,
    /// Number of the newest version, 0 before the first.
    pub version: u64,
    /// Number of records of the latest version.
    pub records: u64,
    /// Time of the last merge.
    pub merged_at: Option<Instant>,
    /// Number of contributions that wait.
    pub waiting: u64,
    /// True if its operator is asked how many rows anybody is to see.
    pub is_asked: bool,
}

impl DatasetRow {
    /// Returns the page of the dataset. One that is down has none, and its owner answers the report.
    fn href(&self) -> String {
        if self.is_down {
            "/console/moderation?tab=own".to_owned()
        } else {
            format!("/console/datasets/{}", self.slug)
        }
    }

    /// Returns who sees the dataset, and what its rows cost.
    fn seen_by(&self) -> &'static str {
        match (self.visibility.as_str(), self.access.as_str()) {
            ("private", _) => "you and your agents",
            (_, "paid") => "everybody, rows are paid",
            _ => "everybody",
        }
    }

    fn mark(&self) -> StateMark {
        status_mark(&self.status)
    }
}

/// Page at `GET /console/datasets/{slug}`. Forms: `POST /console/datasets/{slug}`, `…/preview` and `…/delete`.
#[derive(Debug, Template)]
#[template(path = "console/dataset.html")]
pub struct ConsoleDatasetPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Facts of the dataset.
    pub dataset: DatasetFacts,
    /// Form that changes the dataset.
    pub edit: DatasetEditForm,
    /// Time between two changes of the price, in words.
    pub price_window: String,
    /// Sales and readers of the dataset.
    pub sales: ItemSales,
    /// Records over time, oldest first.
    pub growth: Vec<GrowthPoint>,
    /// Latest versions, newest first.
    pub versions: Vec<VersionRow>,
    /// Agents whose contributions were merged, the most rows first.
    pub contributors: Vec<VersionContributor>,
    /// Counts of each gate over the latest contributions.
    pub gates: Vec<GateTally>,
    /// Uploads that are open or ended lately, newest first.
    pub uploads: Vec<UploadRow>,
    /// Latest contributions, newest first.
    pub contributions: Vec<ContributionRow>,
    /// Form that says how many rows anybody sees; none for a private one.
    pub preview: Option<PreviewRowsForm>,
    /// Form that deletes the dataset; none for a public one.
    pub deletion: Option<DeletionForm>,
}

/// Form that changes title, readme, tags, price and status of a dataset.
#[derive(Clone, Debug)]
pub struct DatasetEditForm {
    /// Edition that the form was made from. With another one by now nothing is changed.
    pub seen: String,
    /// Title as it is or was typed.
    pub title: String,
    /// Readme as it is or was typed.
    pub readme: String,
    /// Tags with commas between them, as they are or were typed.
    pub tags: String,
    /// Price as it is or was typed, in dollars; empty for the platform's default. None for a dataset without price.
    pub price: Option<String>,
    /// The platform's default price.
    pub default_price: MicroUsdc,
    /// True if buyers may pay with trial credit.
    pub trial: bool,
    /// Status as it is or was chosen. An archived dataset has no choice.
    pub status: ProjectStatus,
    /// True if a change was just made.
    pub is_saved: bool,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
    /// The dataset as it is, if it was changed since the form was made: field and value.
    pub changed: Vec<(&'static str, String)>,
}

/// Form that says how many rows of a dataset anybody sees.
#[derive(Clone, Debug, Default)]
pub struct PreviewRowsForm {
    /// Number of rows as it is or was typed; empty for nothing at all.
    pub rows: String,
    /// The most rows.
    pub most: u32,
    /// True if the dataset is paid, so that a profile is shown only with a number.
    pub is_paid: bool,
    /// True if nobody has chosen yet, and nothing is shown meanwhile.
    pub is_asked: bool,
    /// What is to be mended.
    pub errors: Vec<FieldError>,
}

impl PreviewRowsForm {
    /// Returns the sentence below the field.
    fn hint(&self) -> String {
        if self.is_paid {
            format!("0 to {}, or empty to show neither rows nor figures", self.most)
        } else {
            format!("0 to {}", self.most)
        }
    }
}

/// Form that deletes a dataset: the person types its slug.
#[derive(Clone, Debug, Default)]
pub struct DeletionForm {
    /// Text that was typed before.
    pub confirm: String,
    /// What is to be mended.
    pub errors: Vec<FieldError>,
}

impl ConsoleDatasetPage {
    fn mark(&self) -> StateMark {
        status_mark(&self.dataset.status)
    }

    fn is_public(&self) -> bool {
        self.dataset.visibility == "public"
    }

    fn is_archived(&self) -> bool {
        self.dataset.status == "archived"
    }

    /// Returns the chart of the rows over time, from the second version on.
    fn growth_chart(&self) -> Option<GrowthChart> {
        GrowthChart::of(&self.growth)
    }
}

/// Facts of a dataset.
#[derive(Clone, Debug)]
pub struct DatasetFacts {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Status: `open`, `paused` or `archived`.
    pub status: String,
    /// Visibility: `public` or `private`.
    pub visibility: String,
    /// Access: `public` or `paid`.
    pub access: String,
    /// Id of the licence.
    pub license: String,
    /// Tags of the dataset.
    pub tags: Vec<String>,
    /// Name of the agent that made it; none if the operator did.
    pub created_by: Option<String>,
    /// Time of its creation.
    pub created_at: Instant,
    /// Number of the newest version, 0 before the first.
    pub version: u64,
    /// Number of records of the version.
    pub records: u64,
    /// Bytes of its files, where known.
    pub bytes: Option<u64>,
    /// Number of agents whose contributions were merged.
    pub contributors: u64,
    /// Content root of the newest version.
    pub root: Option<String>,
    /// Time of the last merge.
    pub merged_at: Option<Instant>,
    /// Record that fits the contract, as JSON, for the call to hand to an agent.
    pub example: Option<String>,
}

/// Version of a dataset.
#[derive(Clone, Debug)]
pub struct VersionRow {
    /// Number of the version.
    pub version: u64,
    /// Id of the contribution that it came from, if that is of the operator or to a dataset of the operator.
    // Pages of other operators' contributions are 404, so there is no link to them.
    pub contribution: Option<String>,
    /// Name of the agent that made the contribution.
    pub agent: String,
    /// Number of records that it added.
    pub added: u64,
    /// Number of records in all.
    pub records: u64,
    /// Content root, 64 hexadecimal digits.
    pub root: String,
    /// Time of the merge.
    pub at: Instant,
}

/// Upload to a dataset.
#[derive(Clone, Debug)]
pub struct UploadRow {
    /// Id of the upload.
    pub id: String,
    /// State: `open`, `completed`, `expired` or `aborted`.
    pub state: String,
    /// Size of the whole file, in bytes.
    pub bytes: u64,
    /// Number of its parts.
    pub parts: u32,
    /// Name of the agent that began it, where known.
    pub agent: String,
    /// Time at which it began.
    pub created_at: Instant,
    /// Time until which it can be completed.
    pub expires_at: Instant,
}

impl UploadRow {
    fn mark(&self) -> StateMark {
        match self.state.as_str() {
            "open" => StateMark::Live,
            "completed" => StateMark::Ok,
            _ => StateMark::Off,
        }
    }
}

impl DatasetsPage {
    /// Returns the call that makes a dataset.
    fn curl(&self) -> String {
        let base = &self.chrome.base;
        format!(
            r#"curl -s {base}/projects -H "Authorization: Bearer $AGENT_KEY" \
  -H "Content-Type: application/json" -d '{{
  "slug": "tide-levels", "title": "Tide levels",
  "readme": "Water levels read from gauges on site.",
  "schemaDef": {{"fields": [
    {{"name": "gauge", "type": "string", "required": true}},
    {{"name": "at", "type": "timestamp", "required": true}},
    {{"name": "metres", "type": "number", "required": true}}]}}}}'"#
        )
    }
}

impl ConsoleDatasetPage {
    /// Returns the call that contributes to the dataset.
    fn curl(&self) -> String {
        let (base, slug) = (&self.chrome.base, &self.dataset.slug);
        // A record of this contract and not a fixed one, so that the copied call is accepted.
        let record = self.dataset.example.as_deref().unwrap_or("{ … }");
        format!(
            r#"curl -s "{base}/projects/{slug}/contribute?wait=20" \
  -H "Authorization: Bearer $AGENT_KEY" \
  -H "Content-Type: application/json" \
  -d '{{"records": [{record}]}}'"#
        )
    }
}
