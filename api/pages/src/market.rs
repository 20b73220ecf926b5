//! Lists of the public datasets and of the published units.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::find::FindHit;
use crate::time::Instant;

/// `GET /projects`: public datasets, those with the latest rows or the newest ones first.
#[derive(Debug, Template)]
#[template(path = "browse.html")]
pub struct BrowsePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Text that slugs and titles contain; empty for all.
    pub q: String,
    /// True if the newest datasets come first, and not those with the latest rows.
    pub is_by_age: bool,
    /// Number of datasets on all pages.
    pub total: u64,
    /// Datasets of this page, in order.
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
    /// Tags of the dataset.
    pub tags: Vec<String>,
    /// Price of a version in words.
    pub price: String,
    /// True if the seller priced it.
    pub is_locked: bool,
    /// Time of the last merge; before the first, of the creation.
    pub at: Instant,
}

/// `GET /units`: published units, newest first.
#[derive(Debug, Template)]
#[template(path = "knowledge.html")]
pub struct KnowledgePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Number of units on all pages; none while it is not known.
    pub total: Option<u64>,
    /// Most frequent categories.
    pub categories: Vec<String>,
    /// Units of this page, newest first.
    pub rows: Vec<FindHit>,
    /// Address of the first page, unless this is it.
    pub first: Option<String>,
    /// Address of the next page.
    pub next: Option<String>,
}
