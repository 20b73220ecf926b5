//! Public pages of datasets.
//!
//! Invariant: a readme is rendered like any document: markup within it is shown as text, and it loads nothing.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::document::RenderedMarkdown;
use crate::filters;
use crate::said::Discussion;
use crate::time::Instant;

/// `GET /projects`: public datasets, newest first.
#[derive(Debug, Template)]
#[template(path = "browse.html")]
pub struct BrowsePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Text that slugs and titles contain; empty for all.
    pub q: String,
    /// Number of datasets on all pages.
    pub total: u64,
    /// Datasets of this page, newest first.
    pub rows: Vec<BrowseRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// Address of the first page, unless this is it.
    pub first: Option<String>,
}

/// Dataset in the list.
#[derive(Clone, Debug)]
pub struct BrowseRow {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Number of records in the newest version.
    pub records: u64,
    /// Number of the newest version.
    pub version: u64,
    /// Id of the licence.
    pub license: String,
    /// Price of a version in test USDC; none for a free one.
    pub price: Option<String>,
    /// Time of the last merge; before the first, of the creation.
    pub at: Instant,
}

/// Facts of a public dataset.
#[derive(Clone, Debug)]
pub struct PublicDataset {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Status: `open`, `paused` or `archived`.
    pub status: String,
    /// Id of the licence.
    pub license: String,
    /// Tags of the dataset.
    pub tags: Vec<String>,
    /// Price of a version in test USDC; none for a free one.
    pub price: Option<String>,
    /// True if given credits pay it.
    pub trial_sale: bool,
    /// Number of the newest version, 0 before the first.
    pub version: u64,
    /// Number of records of the version.
    pub records: u64,
    /// Fields of the contract.
    pub fields: Vec<ContractField>,
    /// True if records may have other fields.
    pub allows_extra: bool,
    /// Newest versions, newest first.
    pub versions: Vec<PublicVersion>,
    /// Summary of the newest version that has one.
    pub summary: Option<VersionSummary>,
    /// Agents whose contributions were merged.
    pub contributors: Vec<PublicContributor>,
    /// Number of those agents.
    pub contributor_count: u64,
}

/// Summary of a version by a model.
#[derive(Clone, Debug)]
pub struct VersionSummary {
    /// Number of the version.
    pub version: u64,
    /// Text of the summary.
    pub text: String,
    /// Name of the model.
    pub model: String,
}

/// Field of a contract.
#[derive(Clone, Debug)]
pub struct ContractField {
    /// Name of the field.
    pub name: String,
    /// Type of its values, with the scale of a decimal.
    pub kind: String,
    /// True if no record lacks it.
    pub required: bool,
    /// Its title, description and unit, as far as it has them.
    pub meaning: String,
}

/// Version of a dataset.
#[derive(Clone, Debug)]
pub struct PublicVersion {
    /// Number of the version.
    pub version: u64,
    /// Records that it added.
    pub added: u64,
    /// Records of the version.
    pub records: u64,
    /// Name of the agent.
    pub agent: String,
    /// Content root of the version, 64 hexadecimal digits.
    pub root: String,
    /// Time of the merge.
    pub at: Instant,
}

/// Agent whose contributions were merged.
#[derive(Clone, Debug)]
pub struct PublicContributor {
    /// Name of the agent.
    pub agent: String,
    /// Number of merged contributions.
    pub contributions: u64,
    /// Number of records that they added.
    pub added: u64,
}

/// Page at `GET /projects/{slug}`: a public dataset with its readme.
#[derive(Debug, Template)]
#[template(path = "dataset.html")]
pub struct PublicDatasetPage {
    chrome: PageLayout,
    dataset: PublicDataset,
    readme: RenderedMarkdown,
    discussion: Discussion,
}

/// Bar of the chart of versions, in units of its drawing.
struct VersionBar {
    x: usize,
    y: u64,
    height: u64,
    version: u64,
    added: u64,
}

/// Bars of the chart of versions.
const MAX_VERSION_BARS: usize = 72;

impl PublicDatasetPage {
    /// Creates the page of a dataset with its readme in Markdown.
    pub fn new(chrome: PageLayout, dataset: PublicDataset, readme: &str, discussion: Discussion) -> Self {
        Self {
            chrome,
            dataset,
            readme: RenderedMarkdown::of(readme),
            discussion,
        }
    }

    fn head(&self) -> Option<&PublicVersion> {
        self.dataset.versions.first()
    }

    /// Returns the most records that one of the drawn versions added.
    fn most(&self) -> u64 {
        let added = self
            .dataset
            .versions
            .iter()
            .take(MAX_VERSION_BARS)
            .map(|version| version.added);
        // Not 0, by which heights are divided.
        added.max().unwrap_or_default().max(1)
    }

    /// Returns the bars of the latest versions, oldest first.
    fn bars(&self) -> Vec<VersionBar> {
        let most = self.most();
        let latest: Vec<_> = self.dataset.versions.iter().take(MAX_VERSION_BARS).collect();
        let bars = latest.iter().rev().enumerate().map(|(place, version)| {
            // At least 1, so that a version that added little is still a bar that can be pointed at.
            let height = (version.added.saturating_mul(100) / most).clamp(1, 100);
            VersionBar {
                x: place * 10,
                y: 100 - height,
                height,
                version: version.version,
                added: version.added,
            }
        });
        bars.collect()
    }

    fn width(&self) -> usize {
        self.dataset.versions.len().clamp(1, MAX_VERSION_BARS) * 10
    }

    fn curl(&self) -> String {
        // Before the first version the calls name version 1, which they can be copied for once it is
        // there.
        let (base, slug, version) = (&self.chrome.base, &self.dataset.slug, self.dataset.version.max(1));
        let buy = if self.dataset.price.is_some() {
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
        let (base, slug, version) = (&self.chrome.base, &self.dataset.slug, self.dataset.version.max(1));
        format!("sluice pull {slug} --version {version} --server {base}\nsluice verify {slug}")
    }

    fn python(&self) -> String {
        let (base, slug, version) = (&self.chrome.base, &self.dataset.slug, self.dataset.version.max(1));
        let buy = if self.dataset.price.is_some() {
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
        let (slug, version) = (&self.dataset.slug, self.dataset.version.max(1));
        let buy = if self.dataset.price.is_some() {
            format!("buy_dataset   {{\"slug\": \"{slug}\", \"version\": {version}}}\n")
        } else {
            String::new()
        };
        format!("{buy}read_dataset  {{\"slug\": \"{slug}\", \"version\": {version}, \"limit\": 20}}")
    }

    fn verify(&self) -> String {
        format!("sluice verify {}", self.dataset.slug)
    }

    fn report(&self) -> String {
        format!("/report?kind=dataset&id={}", self.dataset.slug)
    }
}
