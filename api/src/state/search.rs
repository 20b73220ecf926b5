//! The index of the search of this replica, and the task that keeps it at the database.
//!
//! Invariant: the index only proposes. What an answer shows is read from the database when it answers, so a unit that is
//! retired, superseded or taken down is in no answer, however old the index is. What is on disk is only a way to begin
//! with less to read.

mod generations;
mod model;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use operators::knowledge::Embedder;
use parking_lot::RwLock;
use search::{Document, DocumentFacts, DocumentKey, Index, Price, Standing};
use store::{Project, Store, Unit};
use tokio_util::sync::CancellationToken;
use types::unit::Judge;
use types::vocabulary::{Access, ItemKind};
use types::{DatasetId, UnitId};

use self::generations::{IndexGenerations, note, note_of};
use self::model::SearchModel;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::periodic::PeriodicTimer;
use crate::price::dataset_price;

/// Interval at which changes are read.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
/// Interval at which the words of removed documents are taken from the disk.
const PURGE_INTERVAL: Duration = Duration::from_hours(1);
/// Changes and documents read at a time.
const READ: u32 = 1_000;

/// The index of this process. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SearchIndex {
    current: Arc<RwLock<Option<CurrentIndex>>>,
    model: Option<Arc<SearchModel>>,
    generations: Option<IndexGenerations>,
}

/// An index, and the last change and the last merge that it contains.
#[derive(Clone, Debug)]
struct CurrentIndex {
    index: Arc<Index>,
    seq: i64,
    /// Number in the feed.
    merge: i64,
}

/// The index could not be brought to the present.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Failure of the database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Failure of the index.
    #[error(transparent)]
    Index(#[from] search::Error),
    /// A task was stopped.
    #[error("the task was stopped")]
    Stopped(#[from] tokio::task::JoinError),
}

impl SearchIndex {
    /// Creates a search that has not read anything. Without an embedder, it goes by words alone.
    pub fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self {
            current: Arc::default(),
            model: embedder.map(|embedder| Arc::new(SearchModel::new(embedder))),
            generations: None,
        }
    }

    /// Returns a search that keeps its index in a folder, which is this process's alone.
    #[must_use]
    pub fn with_folder(self, folder: PathBuf) -> Self {
        Self {
            generations: Some(IndexGenerations::new(folder)),
            ..self
        }
    }

    /// Returns the vector of a query by the model, with the name of the model; `None` where words are used alone.
    pub(crate) async fn vector(&self, text: &str) -> Option<(Vec<f32>, Judge)> {
        let model = self.model.as_ref()?;
        let vector = model.query(text).await?;
        Some((vector, model.judge()))
    }

    /// Gives documents the vectors of the model that are missing.
    pub(crate) async fn fill(&self, store: &Store) -> Result<(), Error> {
        let index = self.current.read().as_ref().map(|current| Arc::clone(&current.index));
        match (&self.model, index) {
            (Some(model), Some(index)) => model.fill(store, &index).await,
            _ => Ok(()),
        }
    }

    /// Returns the index.
    ///
    /// # Errors
    /// 503 while it is being built for the first time.
    pub(crate) fn index(&self) -> Result<Arc<Index>, ApiError> {
        let current = self.current.read();
        let index = current.as_ref().map(|current| Arc::clone(&current.index));
        index.ok_or_else(|| {
            ApiError::unavailable("the index of the search is not built yet").with_code(ErrorCode::SearchNotReady)
        })
    }

    /// Reads the changes since the last call into the index; the first call opens the one on disk or builds it.
    pub async fn refresh(&self, store: &Store) -> Result<(), Error> {
        let mut current = self.current.read().clone();
        if current.is_none() {
            current = self.open(store).await?;
            self.current.write().clone_from(&current);
        }
        // The old index answers until the new one is built.
        // Slots are never used again, so an index with much change is built anew while the old one
        // answers.
        let Some(current) = current.filter(|current| !current.index.is_mostly_dead()) else {
            let built = self.build(store).await?;
            *self.current.write() = Some(built);
            return Ok(());
        };
        let mut last_note = None;
        // Kept apart until the commit: after a failure the same changes are read again.
        let mut seq = current.seq;
        loop {
            let changes = store.searching().changes_after(seq, READ).await?;
            let Some(last) = changes.last() else { break };
            seq = last.seq;
            last_note = Some(note(last));
            let mut units = Vec::new();
            let mut datasets = Vec::new();
            for change in changes {
                // The old text goes at once; what is still shown is added below.
                current.index.remove(&DocumentKey {
                    kind: change.kind,
                    id: change.item.clone(),
                });
                match change.kind {
                    ItemKind::Unit => units.push(change.item),
                    ItemKind::Dataset => datasets.push(change.item),
                }
            }
            let searching = store.searching();
            let (units, datasets) = tokio::try_join!(searching.units(&units), searching.datasets(&datasets))?;
            let documents = units.iter().map(unit).chain(datasets.iter().map(dataset)).collect();
            put(&current.index, documents).await?;
        }
        // A merge changes no word, only the time by which a dataset is ordered and filtered, so nothing is indexed anew.
        let mut merge = current.merge;
        loop {
            let merges = store.feed().merges_after(merge, READ).await?;
            if merges.seq == merge {
                break;
            }
            merge = merges.seq;
            for (id, at) in merges.of {
                let kind = ItemKind::Dataset;
                current.index.set_time(&DocumentKey { kind, id }, at);
            }
        }
        if let Some(note) = last_note {
            let (index, was_kept) = (Arc::clone(&current.index), current.index.is_kept());
            let committed = tokio::task::spawn_blocking(move || index.commit_with(&note).map(|()| index.is_kept()));
            let is_kept = committed.await??;
            if was_kept && !is_kept {
                tracing::warn!("the index of the search on disk cannot be written; the next start builds it anew");
            }
        }
        if (seq, merge) != (current.seq, current.merge) {
            *self.current.write() = Some(CurrentIndex { seq, merge, ..current });
        }
        Ok(())
    }

    fn dimensions(&self) -> Option<usize> {
        self.model.as_ref().map(|model| model.dimensions())
    }

    /// Opens the index on disk, if there is one that the database agrees with.
    async fn open(&self, store: &Store) -> Result<Option<CurrentIndex>, Error> {
        let Some(generations) = &self.generations else {
            return Ok(None);
        };
        // Read first, so that a merge meanwhile is read again.
        let merge = store.feed().last().await?;
        let Some((index, seq)) = generations.open(store, self.dimensions()).await? else {
            return Ok(None);
        };
        // The index keeps the time of a dataset from when its words were written. Merges since then are no changes of it.
        let mut after: Option<DatasetId> = None;
        loop {
            let datasets = store.searching().datasets_after(after, READ).await?;
            let Some(last) = datasets.last() else { break };
            after = Some(last.id);
            for project in &datasets {
                let (kind, id) = (ItemKind::Dataset, project.id.to_string());
                index.set_time(&DocumentKey { kind, id }, project.updated_at);
            }
        }
        let index = Arc::new(index);
        Ok(Some(CurrentIndex { index, seq, merge }))
    }

    /// Builds an index of everything that is shown.
    async fn build(&self, store: &Store) -> Result<CurrentIndex, Error> {
        let searching = store.searching();
        // Read first, so that a change during the build is read again.
        let seq = searching.last_change().await?;
        let merge = store.feed().last().await?;
        let (generations, dimensions) = (self.generations.clone(), self.dimensions());
        let created = tokio::task::spawn_blocking(move || match generations {
            Some(generations) => generations.create(dimensions),
            None => Ok((Index::with_model(dimensions)?, None)),
        });
        let (index, generation) = created.await??;
        let index = Arc::new(index);
        let mut after: Option<UnitId> = None;
        loop {
            let units = searching.units_after(after, READ).await?;
            let Some(last) = units.last() else { break };
            after = Some(last.chain.id);
            put(&index, units.iter().map(unit).collect()).await?;
        }
        let mut after: Option<DatasetId> = None;
        loop {
            let datasets = searching.datasets_after(after, READ).await?;
            let Some(last) = datasets.last() else { break };
            after = Some(last.id);
            put(&index, datasets.iter().map(dataset).collect()).await?;
        }
        let (committing, generations) = (Arc::clone(&index), self.generations.clone());
        // Without a change in the database there is nothing by which the index would be known again.
        let note = note_of(store, seq).await?.unwrap_or_default();
        tokio::task::spawn_blocking(move || {
            committing.commit_with(&note)?;
            if let Some(generations) = generations {
                generations.keep_only(generation);
            }
            Ok::<(), search::Error>(())
        })
        .await??;
        Ok(CurrentIndex { index, seq, merge })
    }

    /// Keeps the index at the database until `stop`.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        tokio::join!(
            self.follow(&store, &stop),
            self.keep_filled(&store, &stop),
            self.keep_purged(&stop)
        );
    }

    /// Takes the words of removed documents from the disk: a text that was erased must not stay there.
    async fn keep_purged(&self, stop: &CancellationToken) {
        let mut rounds = PeriodicTimer::every(PURGE_INTERVAL, stop);
        while rounds.next().await {
            let Some(current) = self.current.read().clone() else {
                continue;
            };
            let purged = tokio::task::spawn_blocking(move || current.index.purge()).await;
            if let Err(error) = purged
                .map_err(Error::from)
                .and_then(|purged| purged.map_err(Error::from))
            {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot take the words of removed documents from the index of the search; trying again in an hour"
                );
            }
        }
    }

    /// Makes vectors beside the index, which must not wait for a model.
    async fn keep_filled(&self, store: &Store, stop: &CancellationToken) {
        if self.model.is_none() {
            return;
        }
        let filling = async {
            let mut rounds = PeriodicTimer::every(FOLLOW_INTERVAL, stop);
            while rounds.next().await {
                if let Err(error) = self.fill(store).await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot give documents of the search their vectors; trying again"
                    );
                }
            }
        };
        stop.run_until_cancelled(filling).await;
    }

    async fn follow(&self, store: &Store, stop: &CancellationToken) {
        let mut rounds = PeriodicTimer::every(FOLLOW_INTERVAL, stop);
        while rounds.next().await {
            if let Err(error) = self.refresh(store).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read changes into the index of the search; trying again"
                );
                // A failed change may be half applied, and the index on disk may be the cause.
                if matches!(error, Error::Index(_)) {
                    *self.current.write() = None;
                    if let Some(generations) = &self.generations {
                        generations.keep_only(None);
                    }
                }
            }
        }
    }
}

async fn put(index: &Arc<Index>, documents: Vec<Document>) -> Result<(), Error> {
    if documents.is_empty() {
        return Ok(());
    }
    let index = Arc::clone(index);
    tokio::task::spawn_blocking(move || index.put_all(&documents)).await??;
    Ok(())
}

/// Returns the standing of a unit with its readers.
pub(crate) const fn standing(unit: &Unit) -> Standing {
    if unit.chain.marks.is_doubted() {
        Standing::Doubted
    } else if unit.near.is_some() {
        Standing::Near
    } else if unit.is_of_trusted_seller {
        Standing::Trusted
    } else {
        Standing::NewSeller
    }
}

fn unit(unit: &Unit) -> Document {
    let price = match unit.chain.price_micro {
        Some(0) => Price::Free,
        None => Price::WithKey,
        Some(_) => Price::Priced,
    };
    Document {
        key: DocumentKey {
            kind: ItemKind::Unit,
            id: unit.chain.id.to_string(),
        },
        title: unit.title.clone(),
        terms: vec![unit.category.clone()],
        body: unit.body.clone(),
        source: unit.source_declaration.clone(),
        facts: DocumentFacts {
            category: Some(unit.category.clone()),
            license: unit.chain.license.clone(),
            language: Some(unit.language),
            tags: Vec::new(),
            price,
            price_micro: unit.chain.price_micro.unwrap_or(pay::UNIT_DEFAULT.0),
            trial_sale: unit.chain.trial_sale,
            published_at: unit.published_at.unwrap_or(unit.submitted_at),
            score: unit.scores.as_ref().map_or(0, |(scores, _)| u32::from(scores.total)),
            standing: standing(unit),
        },
    }
}

fn dataset(project: &Project) -> Document {
    let price = match project.access {
        // Records of a public dataset need a key, though they cost nothing.
        Access::Public => Price::WithKey,
        Access::Paid if dataset_price(project.price_micro).0 == 0 => Price::Free,
        Access::Paid => Price::Priced,
    };
    let fields = serde_json::from_str::<serde_json::Value>(&project.contract_json).ok();
    let names = fields.as_ref().and_then(|contract| contract["fields"].as_array());
    let names = names.into_iter().flatten();
    let names = names
        .flat_map(|field| [&field["name"], &field["title"]])
        .filter_map(|name| name.as_str());
    let terms = project.tags.iter().cloned().chain([project.slug.clone()]);
    Document {
        key: DocumentKey {
            kind: ItemKind::Dataset,
            id: project.id.to_string(),
        },
        title: project.title.clone(),
        terms: terms.chain(names.map(str::to_owned)).collect(),
        body: project.readme.clone(),
        source: String::new(),
        facts: DocumentFacts {
            category: None,
            license: project.license.clone(),
            language: None,
            tags: project.tags.clone(),
            price,
            price_micro: match project.access {
                Access::Public => 0,
                Access::Paid => dataset_price(project.price_micro).0,
            },
            trial_sale: project.trial_sale,
            published_at: project.updated_at,
            score: 0,
            standing: Standing::Trusted,
        },
    }
}
