//! Parts that were put, or tried to be, before their version was committed.
//!
//! Invariant: however often a commit fails, the same rows are written once: a part that is there already, from this
//! try or from one that a crash ended, is taken as it is. A part is deleted only when the log has its version with
//! another part, so that no commit names it and none can.

use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use types::Version;

use super::draft::Draft;
use crate::Error;
use crate::part::PartInfo;
use crate::state::State;

/// Parts that a table's owner may have left beside those that commits name.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    parts: Vec<PartInfo>,
}

impl Tried {
    /// Puts the part of a draft under a name that nothing else has, unless it is there.
    pub(super) async fn put(&mut self, state: &State, draft: &Draft) -> Result<PartInfo, Error> {
        let mut part = draft.part.clone();
        loop {
            self.remember(&part);
            let path = part.path(state.dataset);
            match super::put(state, &path, draft.encoded.bytes.clone().into()).await {
                Err(Error::Storage {
                    source: object_store::Error::AlreadyExists { .. },
                    ..
                }) => {}
                put => return put.map(|()| part),
            }
            // Names are looked up before a file is written for nothing; there can be many after many
            // crashes.
            while let Some(same) = is_there(state, &part, draft).await? {
                if same {
                    state.sync_dir(&Path::from(state.dataset.to_string())).await?;
                    return Ok(part);
                }
                part.attempt += 1;
                self.remember(&part);
            }
        }
    }

    pub(super) fn remember(&mut self, part: &PartInfo) {
        if !self.parts.contains(part) {
            self.parts.push(part.clone());
        }
    }

    /// Deletes what no commit names and none can. Best effort: what stays is never read.
    pub(super) async fn discard(&mut self, state: &State) {
        let head = state.head();
        let (settled, open) = std::mem::take(&mut self.parts)
            .into_iter()
            .partition(|part| part.version <= head);
        self.parts = open;
        for part in settled {
            let PartInfo { version, .. } = part;
            let named = state.parts_between(Version(version.0 - 1), version);
            if named.iter().all(|named| named.name() != part.name())
                && let Err(error) = state.objects.delete(&part.path(state.dataset)).await
            {
                tracing::debug!(part = part.name(), %error, "an orphaned part could not be deleted");
            }
        }
    }
}

/// Compares the object with the part's name with the draft's bytes; `None` where there is none.
async fn is_there(state: &State, part: &PartInfo, draft: &Draft) -> Result<Option<bool>, Error> {
    let path = part.path(state.dataset);
    let read = async {
        let found = state.objects.get(&path).await?;
        if found.meta.size != part.bytes {
            return Ok(false);
        }
        Ok(found.bytes().await? == draft.encoded.bytes)
    };
    match read.await {
        Ok(same) => Ok(Some(same)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(Error::storage(&path, error)),
    }
}
