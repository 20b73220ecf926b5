//! Jobs of requests on the board: one writes that a deadline passed, one tells sellers whose items match.
//!
//! Invariant: neither job decides anything. A request is over at its deadline without the first, and an operator is told
//! once however often the second runs.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use search::{SearchFilter, SearchMode, SearchOrder, SearchQuery};
use store::{BoardRequest, Job, RequestKind, RequestStatus, Store};
use types::vocabulary::ItemKind;
use types::{Clock, OperatorId};

use super::JobHandler;
use crate::error::ApiError;
use crate::rules::jobs::{self, JobFailure};
use crate::state::app::App;
use types::error::with_causes;

/// Looks for sellers: those of thirty days.
const ROUNDS: u32 = 30 * 24;
/// Items that are looked at in a round.
const HITS: usize = 50;
/// Category that says nothing of the item.
const GENERAL: &str = "general";

/// Handler of the job that writes down the end of a request.
#[derive(Debug)]
pub struct RequestEndJob {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl RequestEndJob {
    /// Kind of the job.
    pub const KIND: &'static str = jobs::REQUEST_ENDS;

    /// Creates a handler that writes the ends of requests to a store.
    pub const fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }
}

#[async_trait]
impl JobHandler for RequestEndJob {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        let (request, _) = jobs::of_request(job)?;
        let expired = self.store.community().expire(request, self.clock.now()).await;
        // A request that was decided before has nothing to write down.
        expired.map(drop).map_err(|error| JobFailure::passing(&error))
    }
}

/// Handler of the job that tells sellers of a request.
#[derive(Debug)]
pub struct MatchJob {
    app: App,
}

impl MatchJob {
    /// Kind of the job.
    pub const KIND: &'static str = jobs::REQUEST_MATCHES;

    /// Creates a handler that tells sellers of requests.
    pub const fn new(app: App) -> Self {
        Self { app }
    }

    /// Returns the operators whose items match a request best, each with its best item.
    async fn sellers(&self, request: &BoardRequest) -> Result<Vec<(OperatorId, ItemKind, String)>, ApiError> {
        let index = self.app.process.searching.index()?;
        let kind = match request.kind {
            RequestKind::Knowledge => ItemKind::Unit,
            RequestKind::Dataset => ItemKind::Dataset,
        };
        // Datasets have no category.
        let has_category = kind == ItemKind::Unit && request.category != GENERAL;
        let query = SearchQuery {
            order: SearchOrder::Best,
            text: request.title.clone(),
            // By words alone, so that sellers are told also while no model answers.
            vector: None,
            mode: SearchMode::Keyword,
            filter: SearchFilter {
                kind: Some(kind),
                category: has_category.then(|| request.category.clone()),
                ..SearchFilter::default()
            },
            offset: 0,
            limit: HITS,
        };
        let now = self.app.clock.now();
        let found = tokio::task::spawn_blocking(move || index.search(&query, now)).await;
        let found = found
            .map_err(ApiError::internal)?
            .map_err(|error| ApiError::unavailable(with_causes(&error)))?;
        let ids: Vec<String> = found.hits.into_iter().map(|key| key.id).collect();
        let searching = self.app.store.searching();
        // The index only proposes: the database knows what is still shown, and whose it is.
        let mut owners: Vec<(String, OperatorId)> = match kind {
            ItemKind::Unit => {
                let units = searching.units(&ids).await?;
                let owner = |unit: store::Unit| (unit.chain.id.to_string(), unit.chain.operator);
                units.into_iter().map(owner).collect()
            }
            ItemKind::Dataset => {
                let datasets = searching.datasets(&ids).await?;
                let owner = |project: store::Project| (project.id.to_string(), project.operator);
                datasets.into_iter().map(owner).collect()
            }
        };
        let place = |id: &String| ids.iter().position(|other| other == id);
        // The database answers in any order; the hits are in that of the index.
        owners.sort_by_key(|(id, _)| place(id));
        // The requester is not told of its own items; every other operator is told once, of its best.
        let mut seen = HashSet::from([request.operator]);
        let best = owners.into_iter().filter(|(_, operator)| seen.insert(*operator));
        Ok(best.map(|(id, operator)| (operator, kind, id)).collect())
    }
}

#[async_trait]
impl JobHandler for MatchJob {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        let (id, round) = jobs::of_request(job)?;
        let (community, now) = (self.app.store.community(), self.app.clock.now());
        let found = community
            .request(id, now)
            .await
            .map_err(|error| JobFailure::passing(&error))?;
        let open = |request: &BoardRequest| matches!(request.status, RequestStatus::Open | RequestStatus::Answered);
        // The rounds end with the request: without a next job there is nothing to clean up.
        let Some(request) = found.filter(open) else {
            return Ok(());
        };
        let sellers = self.sellers(&request).await.map_err(|error| JobFailure {
            reason: error.reason().to_owned(),
            may_pass: true,
        })?;
        community
            .tell(id, sellers, now)
            .await
            .map_err(|error| JobFailure::passing(&error))?;
        // Items that appear later match too. The next round has a key of its own, so a second run adds none.
        if round < ROUNDS {
            let next = jobs::request_matches(id, round + 1, now);
            let added = self.app.store.flow().job_add(next).await;
            added.map_err(|error| JobFailure::passing(&error))?;
        }
        Ok(())
    }
}
