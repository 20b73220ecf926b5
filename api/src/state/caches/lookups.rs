//! Look-ups of rows, by the memory of the process.
//!
//! Invariant: what a viewer may not see is not found, remembered or not.

use std::sync::Arc;
use std::time::Duration;

use store::{Contribution, Error, Principal, Project, Store};
use types::{OperatorId, Timestamp};

use super::fresh::{FreshCache, Remembered};
use super::{Name, ProjectView};
use crate::state::app::App;

/// Time after a decision within which another replica may remember the project as it was before. More than the age of a
/// value, since the clocks of replicas differ.
const ANNOUNCED: Duration = Duration::from_secs(5);

impl App {
    /// Returns the owner of the credential with this hash, as it was at most half a second ago.
    pub(crate) async fn principal(&self, hash: [u8; 32]) -> Result<Option<Arc<Principal>>, Error> {
        let (store, now) = (self.store.clone(), self.clock.now());
        let query = move || async move {
            let principal = store.accounts().principal(&hash, now).await?;
            Ok(principal.map(Arc::new))
        };
        self.process.caches.principals.get(&self.store, hash, now, query).await
    }

    /// Returns the project with this slug, if it is public or belongs to the viewer, as it was at most half a second
    /// ago.
    pub(crate) async fn project(&self, slug: &str, viewer: Option<OperatorId>) -> Result<Option<Arc<Project>>, Error> {
        let query = |store: Store, slug: String, viewer| async move {
            let project = store.project_by_slug(&slug, viewer).await?;
            Ok(project.map(Arc::new))
        };
        let projects = &self.process.caches.projects;
        seen(projects, &self.store, slug, viewer, self.clock.now(), query).await
    }

    /// Returns the same project with its answer, which `render` makes.
    pub(crate) async fn project_view<F>(
        &self,
        slug: &str,
        viewer: Option<OperatorId>,
        render: fn(Store, Project) -> F,
    ) -> Result<Option<Arc<ProjectView>>, Error>
    where
        F: Future<Output = Result<ProjectView, Error>> + Send + 'static,
    {
        let query = |store: Store, slug: String, viewer| async move {
            let Some(project) = store.project_by_slug(&slug, viewer).await? else {
                return Ok(None);
            };
            Ok(Some(Arc::new(render(store, project).await?)))
        };
        let views = &self.process.caches.views;
        seen(views, &self.store, slug, viewer, self.clock.now(), query).await
    }

    /// Invalidates the caches of a project whose contribution an answer shows as merged. Another replica may have merged
    /// it, and whoever reads that answer must find the version here at once.
    pub(crate) fn announce(&self, contribution: &Contribution, now: Timestamp) {
        let merged = contribution.decided_at.filter(|_| contribution.version.is_some());
        if merged.is_some_and(|at| now.since(at) < ANNOUNCED) {
            self.store.touch(contribution.project);
        }
    }
}

/// Returns what a viewer sees under a slug: their own if it is remembered, otherwise the public one, otherwise their
/// own.
async fn seen<V, F>(
    values: &FreshCache<Name, V>,
    store: &Store,
    slug: &str,
    viewer: Option<OperatorId>,
    now: Timestamp,
    query: impl Fn(Store, String, Option<OperatorId>) -> F,
) -> Result<Option<V>, Error>
where
    V: Remembered,
    F: Future<Output = Result<Option<V>, Error>> + Send + 'static,
{
    // The own one comes first, since a private project would otherwise cost a query for the public one at each call.
    let public = (slug.to_owned(), None);
    let own = viewer.map(|viewer| (slug.to_owned(), Some(viewer)));
    if let Some(own) = own.as_ref().and_then(|own| values.peek(store, own, now)) {
        return Ok(Some(own));
    }
    // A public project is remembered once for all viewers. The query asks for nobody, so it cannot find a private one.
    let ask = |name: &Name| query(store.clone(), name.0.clone(), name.1);
    let found = values.get(store, public.clone(), now, || ask(&public)).await?;
    match own {
        Some(own) if found.is_none() => values.get(store, own.clone(), now, || ask(&own)).await,
        _ => Ok(found),
    }
}
