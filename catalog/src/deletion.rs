//! Deletion of a table: its log ends for ever, then its objects go.
//!
//! Invariants:
//! - Before an object goes, a last commit takes the number that the next writer wants, and another the place of commit 0.
//!   So nobody merges after it, nobody creates the table anew, and whoever misses an object learns why.
//! - Each step may be done twice, by two processes and after a crash. Both commits stay when the rest is gone.
//! - An object that a writer put before it learned of the end is gone after the next call.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore as _, PutMode, PutPayload};
use types::{DatasetId, fault};

use crate::{Catalog, Error, commit, log};

/// Maximum number of objects that a call deletes: well within a minute, also one by one.
const MAX_OBJECTS_PER_CALL: usize = 1_024;

impl Catalog {
    /// Deletes the table of a dataset, or what is left of it. Returns false if another call is to go on.
    ///
    /// # Errors
    /// [`Error::Storage`]. The next call goes on.
    pub async fn delete_table(&self, dataset: DatasetId) -> Result<bool, Error> {
        let deleted = log::deleted(dataset, self.now()).map_err(commit::unencodable)?;
        let last = self.end_log(dataset, deleted.clone().into()).await?;
        fault::point("delete.ended");
        if !log::was_deleted(self.objects(), dataset).await? {
            let first = log::path(dataset, 0);
            let put = self
                .durable()
                .put_opts(&first, deleted.into(), PutMode::Overwrite.into());
            put.await.map_err(|error| Error::storage(&first, error))?;
        }
        fault::point("delete.first");
        let is_empty = self.delete_objects(dataset, last).await?;
        fault::point("delete.objects");
        self.forget_table(dataset).await?;
        Ok(is_empty)
    }

    /// Puts the last commit, unless it is there. Returns its number.
    async fn end_log(&self, dataset: DatasetId, deleted: PutPayload) -> Result<u64, Error> {
        let directory = log::directory(dataset);
        let failed = |error| Error::storage(&directory, error);
        // A listing, and not the commits, because a damaged table can be deleted, too.
        let commits = self.objects().list(Some(&directory)).map_err(failed);
        let numbers = commits.try_filter_map(|object| async move { Ok(log::number_of(&object.location)) });
        let last = numbers.try_fold(None, |last, number| async move { Ok(last.max(Some(number))) });
        let mut next = match last.await? {
            None => 0,
            Some(last) if self.is_deletion(dataset, last).await? => return Ok(last),
            Some(last) => last.saturating_add(1),
        };
        loop {
            let path = log::path(dataset, next);
            let put = self.durable().put_opts(&path, deleted.clone(), PutMode::Create.into());
            match put.await {
                Ok(_) => return Ok(next),
                // A writer was faster, or an earlier put came through without an answer.
                Err(object_store::Error::AlreadyExists { .. }) => {
                    if self.is_deletion(dataset, next).await? {
                        return Ok(next);
                    }
                    next = next.saturating_add(1);
                }
                Err(error) => return Err(Error::storage(&path, error)),
            }
        }
    }

    async fn is_deletion(&self, dataset: DatasetId, number: u64) -> Result<bool, Error> {
        let bytes = log::bytes_of(self.objects(), &log::path(dataset, number)).await?;
        Ok(bytes.is_some_and(|bytes| log::is_deletion(dataset, &bytes)))
    }

    /// Deletes objects of the table except commit 0 and commit `last`. Returns true if there were no more.
    async fn delete_objects(&self, dataset: DatasetId, last: u64) -> Result<bool, Error> {
        let directory = Path::from(dataset.to_string());
        let failed = |error| Error::storage(&directory, error);
        let kept = [log::path(dataset, 0), log::path(dataset, last)];
        let others = self.objects().list(Some(&directory)).map_ok(|object| object.location);
        let others = others.try_filter(|path| std::future::ready(!kept.contains(path)));
        let others: Vec<Path> = others.take(MAX_OBJECTS_PER_CALL).try_collect().await.map_err(failed)?;
        let is_last = others.len() < MAX_OBJECTS_PER_CALL;
        let mut deletions = self.objects().delete_stream(stream::iter(others).map(Ok).boxed());
        while let Some(deleted) = deletions.next().await {
            match deleted {
                // Another call was faster.
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        // A power cut would bring names back otherwise.
        for directory in [directory.clone(), log::directory(dataset)] {
            self.durable().sync_dir(&directory).await.map_err(failed)?;
        }
        Ok(is_last)
    }

    /// Drops what this process has of tables that were deleted, by anybody. Returns their number. Asks for commit 0 of
    /// each table of which keys are stored.
    pub async fn forget_deleted_tables(&self) -> Result<usize, Error> {
        let mut forgotten = 0;
        for dataset in self.datasets_with_keys().await? {
            if log::was_deleted(self.objects(), dataset).await? {
                self.forget_table(dataset).await?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }
}
