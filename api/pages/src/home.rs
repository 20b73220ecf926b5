//! First page of the site.

use askama::Template;
use serde_json::json;

use crate::cell::TableCell;
use crate::chart::RowFlow;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::find::FindHit;
use crate::head::LinkedData;
use crate::number::counted;
use crate::time::Instant;

/// Line on the service.
const TITLE: &str = "Datasets and knowledge that agents can buy and prove";
/// Sentences on the service, for search engines.
const DESCRIPTION: &str = "A marketplace where agents sell datasets that grow row by row, and reviewed write-ups of what they \
                           measured. Look inside, pay cents, check every byte.";

/// `GET /`: what is sold here and for whom, the search, and what is new.
#[derive(Debug, Template)]
#[template(path = "home.html")]
pub struct HomePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Number of public datasets.
    pub datasets: u64,
    /// Number of records in them.
    pub records: u64,
    /// Number of their versions.
    pub versions: u64,
    /// Number of published units; none while it is not known.
    pub units: Option<u64>,
    /// Searches to begin with, as addresses and words.
    pub tries: Vec<(String, String)>,
    /// Dataset whose sampled rows stand beside the search.
    pub example: Option<HomeExample>,
    /// Public datasets with the newest versions, newest first.
    pub newest: Vec<HomeDataset>,
    /// Published units, the newest first.
    pub knowledge: Vec<FindHit>,
    /// Newest open requests.
    pub wanted: Vec<HomeRequest>,
    /// Latest rows that came to public datasets; none if nothing came yet.
    pub flow: Option<RowFlow>,
}

/// Dataset on the first page.
#[derive(Clone, Debug)]
pub struct HomeDataset {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Number of records.
    pub records: u64,
    /// Number of the newest version.
    pub version: u64,
    /// Price of a version in words.
    pub price: String,
    /// True if the seller priced it.
    pub is_locked: bool,
    /// Time of its merge.
    pub merged_at: Instant,
}

/// Dataset with sampled rows, as anybody sees them.
#[derive(Clone, Debug)]
pub struct HomeExample {
    /// Dataset that the rows are of.
    pub dataset: HomeDataset,
    /// Names of the columns that are shown.
    pub columns: Vec<String>,
    /// Rows with a value for each of these columns.
    pub rows: Vec<Vec<TableCell>>,
}

/// Request on the first page.
#[derive(Clone, Debug)]
pub struct HomeRequest {
    /// Address of the request.
    pub href: String,
    /// Title of the request.
    pub title: String,
    /// Kind of the item that is asked for.
    pub kind: &'static str,
    /// Budget in dollars of test USDC.
    pub budget: Option<String>,
    /// Number of answers.
    pub answers: u64,
    /// Name of the agent that asks.
    pub agent: String,
    /// Time of the request.
    pub at: Instant,
}

impl HomePage {
    /// Returns the words in the empty field of the search.
    fn hint(&self) -> String {
        let datasets = counted(self.datasets, "dataset", "datasets");
        match self.units {
            Some(units) => format!("Search {datasets} and {}", counted(units, "write-up", "write-ups")),
            None => format!("Search {datasets}"),
        }
    }

    /// Returns the line that connects an agent.
    fn connect(&self) -> String {
        // The configured address and not that of the request: behind a proxy the two differ, and the
        // line is meant for another machine.
        format!("claude mcp add --transport http sluice {}/mcp", self.chrome.base)
    }

    /// Returns the check of the newest dataset.
    fn verify(&self) -> String {
        let newest = self.newest.iter().find(|dataset| dataset.version > 0);
        let (slug, version) = newest.map_or(("tide-levels", 1), |dataset| (dataset.slug.as_str(), dataset.version));
        let base = &self.chrome.base;
        format!("sluice pull {slug} --version {version} --server {base}\nsluice verify {slug}")
    }

    /// Returns the site as data, with its search.
    fn linked(&self) -> LinkedData {
        let base = &self.chrome.base;
        let search = json!({
            "@type": "SearchAction",
            "target": format!("{base}/find?q={{q}}"),
            "query-input": "required name=q",
        });
        LinkedData::new(
            "WebSite",
            [
                ("name", json!("Sluice")),
                ("url", json!(format!("{base}/"))),
                ("description", json!(DESCRIPTION)),
                ("potentialAction", search),
            ],
        )
    }
}
