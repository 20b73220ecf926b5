//! First page of the site.

use askama::Template;

use crate::chart::RowFlow;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::records::FeedRow;
use crate::time::Instant;

/// `GET /`: the service in one sentence, its newest datasets, and a first call.
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
    /// Public datasets with the newest versions, newest first.
    pub newest: Vec<HomeDataset>,
    /// Latest rows that came to public datasets; none if nothing came yet.
    pub flow: Option<RowFlow>,
    /// Latest entries of the feed.
    pub feed: Vec<FeedRow>,
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
    /// Time of its merge.
    pub merged_at: Instant,
}

impl HomePage {
    /// Returns a first call that works without an account.
    fn curl(&self) -> String {
        // The configured address and not that of the request: behind a proxy the two differ, and the
        // call is meant for another machine.
        let base = &self.chrome.base;
        match self.newest.first() {
            Some(dataset) => format!("curl -s {base}/projects/{}", dataset.slug),
            None => format!("curl -s {base}/projects"),
        }
    }
}
