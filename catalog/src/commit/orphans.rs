//! Parts that were put, or tried to be, before their version was committed.
//!
//! Invariant: however often a commit fails, the same rows are written once: a part that is there already, from this
//! try or from one that a crash ended, is taken as it is. A part is deleted only when the log has its version with
//! another part, or has ended, so that no commit names it and none can.

use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutMode};
use sha2::{Digest as _, Sha256};
use types::Version;

use crate::Error;
use crate::part::PartInfo;
use crate::prepare::{NewPart, PreparedContent};
use crate::state::TableState;

/// Parts that a table's owner may have left beside those that commits name.
#[derive(Debug, Default)]
pub(crate) struct OrphanTracker {
    parts: Vec<PartInfo>,
}

impl OrphanTracker {
    /// Puts a part under a name that nothing else has, unless it is there. Returns true if the name is the one that the
    /// part came with.
    pub(super) async fn put(&mut self, state: &TableState, part: &mut NewPart) -> Result<bool, Error> {
        let first = part.info.attempt;
        loop {
            self.remember(&part.info);
            let path = part.info.path(state.dataset);
            let put = match &part.content {
                PreparedContent::Bytes(bytes) => {
                    let put = state
                        .objects
                        .put_opts(&path, bytes.clone().into(), PutMode::Create.into());
                    put.await.map(|_| ())
                }
                PreparedContent::File(file) => state.durable.link_file(file, &path).await,
            };
            match put {
                Ok(()) => return Ok(part.info.attempt == first),
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(Error::storage(&path, error)),
            }
            // Names are looked up before a file is written for nothing; there can be many after many crashes.
            while let Some(same) = is_there(state, &part.info).await? {
                if same {
                    // A process that gave it the name may have ended before the name was durable.
                    state.sync_dir(&Path::from(state.dataset.to_string())).await?;
                    return Ok(part.info.attempt == first);
                }
                part.info.attempt += 1;
                self.remember(&part.info);
            }
        }
    }

    fn remember(&mut self, part: &PartInfo) {
        if !self.parts.contains(part) {
            self.parts.push(part.clone());
        }
    }

    /// Deletes what no commit names and none can. Best effort: what stays is never read.
    pub(super) async fn discard(&mut self, state: &TableState) {
        let head = state.head();
        let (settled, open) = std::mem::take(&mut self.parts)
            .into_iter()
            .partition(|part| part.version <= head);
        self.parts = open;
        for part in settled {
            let PartInfo { version, .. } = part;
            let named = state.parts_between(Version(version.0 - 1), version);
            if named.iter().all(|named| named.name() != part.name()) {
                delete(state, &part).await;
            }
        }
    }

    /// Deletes all of them, because the table was deleted. Best effort, as above.
    pub(super) async fn discard_all(&mut self, state: &TableState) {
        for part in std::mem::take(&mut self.parts) {
            delete(state, &part).await;
        }
    }
}

async fn delete(state: &TableState, part: &PartInfo) {
    if let Err(error) = state.objects.delete(&part.path(state.dataset)).await {
        tracing::debug!(part = part.name(), %error, "an orphaned part could not be deleted");
    }
}

/// Returns true if the object with the part's name has the bytes of the part, `None` if there is no such object.
async fn is_there(state: &TableState, part: &PartInfo) -> Result<Option<bool>, Error> {
    let path = part.path(state.dataset);
    let read = async {
        let found = state.objects.get(&path).await?;
        if found.meta.size != part.bytes {
            return Ok(false);
        }
        let mut hash = Sha256::new();
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.try_next().await? {
            hash.update(&piece);
        }
        Ok(hash.finalize()[..] == part.sha256)
    };
    match read.await {
        Ok(same) => Ok(Some(same)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(Error::storage(&path, error)),
    }
}
