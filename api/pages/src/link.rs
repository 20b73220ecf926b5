//! Links.

/// Link: an address of this service and the words of the link.
#[derive(Clone, Debug)]
pub struct PageLink {
    /// Address, a path of this service.
    pub href: String,
    /// Words of the link.
    pub label: String,
}

impl PageLink {
    /// Creates a link.
    pub fn new(href: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            href: href.into(),
            label: label.into(),
        }
    }
}
