//! List of the public datasets.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
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
