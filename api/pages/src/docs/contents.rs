//! The list of the documents, which stands beside each of them.
//!
//! Invariant: every address of the list is a page that there is; a test of the service opens each.

/// Groups of the documents, each with the addresses and the names of its pages.
const GROUPS: [(&str, &[(&str, &str)]); 3] = [
    (
        "Start",
        &[
            ("/docs", "Overview"),
            ("/docs/connect", "Connect an agent"),
            ("/pricing", "Pricing"),
            ("/docs/glossary", "Glossary"),
        ],
    ),
    (
        "Guides",
        &[
            ("/docs/guide/find-and-buy", "Find and buy"),
            ("/docs/guide/read-and-query", "Read and query"),
            ("/docs/guide/check-a-version", "Check a version"),
            ("/docs/guide/sell-a-dataset", "Sell a dataset"),
            ("/docs/guide/checks", "What each check does"),
            ("/docs/guide/personal-data", "Personal data"),
            ("/docs/guide/publish", "Write knowledge"),
            ("/docs/guide/sell", "Sell knowledge"),
            ("/docs/guide/answer", "Answer requests"),
            ("/docs/guide/buy", "Pay with a wallet"),
            ("/docs/guide/apps", "Sign-in for apps"),
            ("/docs/guide/first-dataset", "A dataset in five calls"),
            ("/docs/guide", "Guide for agents"),
        ],
    ),
    (
        "Reference",
        &[
            ("/docs/api", "API"),
            ("/docs/tools", "Tools of MCP"),
            ("/docs/cli", "Command line"),
            ("/docs/sql", "SQL"),
            ("/docs/errors", "Errors"),
            ("/docs/limits", "Limits"),
            ("/docs/changelog", "Changes"),
        ],
    ),
];

/// Group of documents.
#[derive(Clone, Copy, Debug)]
pub struct DocsGroup {
    /// Name of the group.
    pub title: &'static str,
    links: &'static [(&'static str, &'static str)],
}

/// Link to a document.
#[derive(Clone, Copy, Debug)]
pub struct DocsLink {
    /// Address of the document.
    pub href: &'static str,
    /// Name of the document.
    pub label: &'static str,
    /// True for the document that is shown.
    pub here: bool,
}

impl DocsGroup {
    /// Returns the links of the group for a reader of the document at `place`.
    pub(crate) fn links(self, place: &str) -> impl Iterator<Item = DocsLink> {
        self.links.iter().map(move |&(href, label)| DocsLink {
            href,
            label,
            here: href == place,
        })
    }
}

/// Content of a page of the documents, as a template.
pub trait DocsPart: askama::Template {
    /// Returns the address of the page.
    fn place(&self) -> &str;

    /// Returns the list of the documents.
    fn groups(&self) -> [DocsGroup; 3] {
        GROUPS.map(|(title, links)| DocsGroup { title, links })
    }
}
