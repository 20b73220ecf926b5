//! What this process remembers, so that most reads ask no database and render nothing.
//!
//! | Memory | Until |
//! |-|-|
//! | owners of credentials, projects, their answers | half a second is over, or this process changes them ([`fresh`]) |
//! | pages of records | the memory is full, or their dataset is deleted: a page never changes, since its key has the content root |
//! | texts about the service, and contents of its documents | the process ends: they depend on its configuration only |
//!
//! Invariants:
//! - Nothing here decides on access. Callers ask `entitlement` and `auth` each time, with what is remembered.
//! - A project that is private is remembered for its operator alone, so it takes the same time for everybody else as a
//!   slug that names nothing.

mod bounded;
mod fresh;
mod lookups;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use catalog::Root;
use pages::DocsContent;
use parking_lot::{Mutex, RwLock};
use store::{Principal, Project};
use types::{DatasetId, OperatorId, Version};

use self::bounded::BoundedMap;
use self::fresh::{FreshCache, Remembered};
use crate::state::page_size::PageSize;

/// Slug of a project, and the operator that alone may see it; `None` for a public one.
type Name = (String, Option<OperatorId>);

/// A project as `GET /projects/{slug}` answers it.
#[derive(Debug)]
pub(crate) struct ProjectView {
    /// The project, by which access is decided.
    pub(crate) project: Project,
    /// Body of the answer, as JSON.
    pub(crate) body: Bytes,
}

/// Key of a page of records. The content root is part of it, because an accepted loss of history frees the numbers of
/// versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    pub(crate) dataset: DatasetId,
    pub(crate) version: Version,
    pub(crate) root: Root,
    pub(crate) offset: u64,
    pub(crate) limit: u32,
    pub(crate) size: PageSize,
}

/// In-memory caches of a process: credentials, projects, pages of records and fixed texts.
pub(crate) struct Caches {
    principals: FreshCache<[u8; 32], Arc<Principal>>,
    projects: FreshCache<Name, Arc<Project>>,
    views: FreshCache<Name, Arc<ProjectView>>,
    pages: Mutex<BoundedMap<PageKey, Bytes>>,
    texts: RwLock<HashMap<&'static str, Bytes>>,
    documents: RwLock<HashMap<String, Arc<DocsContent>>>,
}

impl Remembered for Arc<Principal> {
    fn project(&self) -> Option<DatasetId> {
        None
    }

    fn bytes(&self) -> usize {
        let name = match &**self {
            Principal::Agent { name, .. } => name.len(),
            Principal::Operator { .. } | Principal::Claimed { .. } | Principal::Login { .. } => 0,
        };
        size_of::<Principal>() + name
    }
}

impl Remembered for Arc<Project> {
    fn project(&self) -> Option<DatasetId> {
        Some(self.id)
    }

    fn bytes(&self) -> usize {
        project_bytes(self)
    }
}

impl Remembered for Arc<ProjectView> {
    fn project(&self) -> Option<DatasetId> {
        Some(self.project.id)
    }

    fn bytes(&self) -> usize {
        project_bytes(&self.project) + self.body.len()
    }
}

/// Returns the memory that a project takes, with its name as a key. Its short texts are counted as a constant.
fn project_bytes(project: &Project) -> usize {
    const SHORT: usize = 512;
    size_of::<Project>() + SHORT + project.readme.len() + project.contract_json.len() + project.title.len()
}

impl Caches {
    /// Creates empty ones that take at most `most` bytes together; with 0 the database is asked each time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            // Pages are the most expensive to make, and an answer with versions is larger than the row it is made
            // from.
            principals: FreshCache::new(most / 8),
            projects: FreshCache::new(most / 8),
            views: FreshCache::new(most / 4),
            pages: Mutex::new(BoundedMap::new(most / 2)),
            texts: RwLock::default(),
            documents: RwLock::default(),
        }
    }

    /// Returns the page of this key.
    pub(crate) fn page(&self, key: &PageKey) -> Option<Bytes> {
        self.pages.lock().get(key)
    }

    /// Remembers a page.
    pub(crate) fn remember_page(&self, key: PageKey, page: &Bytes) {
        let bytes = page.len() + size_of::<(PageKey, Bytes)>();
        self.pages.lock().insert(key, page.clone(), bytes);
    }

    /// Forgets the pages of a dataset that was deleted.
    pub(crate) fn forget_pages(&self, dataset: DatasetId) {
        self.pages.lock().retain(|key| key.dataset != dataset);
    }

    /// Returns the text of this name, which `make` returns the first time.
    pub(crate) fn text<E>(&self, name: &'static str, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        // The guard of the first look-up is gone before the lock is taken for writing.
        let known = self.texts.read().get(name).cloned();
        if let Some(text) = known {
            return Ok(text);
        }
        // Two calls at the start may both make it. The texts are equal, and no lock is held meanwhile.
        let text = make()?;
        self.texts.write().insert(name, text.clone());
        Ok(text)
    }

    /// Returns the content of the document at an address, which `make` returns the first time. An address that `make` refuses
    /// is not remembered, so there are as many contents as documents.
    pub(crate) fn document<E>(
        &self,
        place: &str,
        make: impl FnOnce() -> Result<DocsContent, E>,
    ) -> Result<Arc<DocsContent>, E> {
        let known = self.documents.read().get(place).cloned();
        if let Some(content) = known {
            return Ok(content);
        }
        let content = Arc::new(make()?);
        self.documents.write().insert(place.to_owned(), Arc::clone(&content));
        Ok(content)
    }
}

/// Shows nothing of what is remembered.
impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caches")
    }
}

#[cfg(test)]
mod tests;
