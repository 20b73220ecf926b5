//! Uploads of clients: parts that they put straight to the bucket, until what is in them is decided.
//!
//! ```text
//! _uploads/<upload>/begun          which uploads of the store it consists of
//! _uploads/<upload>/parts-<n>      an object: the parts from number n on, once they are complete
//! _uploads/<upload>/sealed         the tags of the parts, and the entity tags of the objects
//! ```
//!
//! Parts of 5 MiB and more become one object; smaller ones, which the store does not join, are an object each.
//!
//! Invariants: the store takes a part only with its length, and none once its object is complete, however long its
//! address is good. An upload is sealed once every object is complete, and what is read of it is these objects or an
//! error. `begun` is there for as long as there is anything else of an upload, so nothing is left that nobody finds.

mod layout;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _, PutMode};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use types::ContributionId;

pub use self::layout::Cut;
use self::layout::{Begun, Sealed, begun_path, object, sealed_path};
use super::{Completed, S3, UploadError, failed};

/// How many objects of an upload are seen to at once.
const AT_ONCE: usize = 16;
/// The longest that an address can be good (*Authenticating Requests: Using Query Parameters*, Amazon S3 API Reference).
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// Why an upload was not begun, sealed, read or deleted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Parts that are named are not there.
    #[error("parts {0:?} were not sent")]
    Missing(Vec<u16>),
    /// Parts are there with other tags.
    #[error("parts {0:?} have other entity tags")]
    Differing(Vec<u16>),
    /// It takes no parts, and was not sealed either.
    #[error("the upload accepts no more parts")]
    Closed,
    /// What was sealed is not there.
    #[error("the bytes of the upload do not exist any more")]
    Gone,
    /// Other bytes are where those that were sealed were.
    #[error("the bytes of the upload were replaced")]
    Changed,
    /// The store did not answer, or refused.
    #[error("the request to the store failed")]
    Storage(#[source] Error),
}

impl From<UploadError> for Refused {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Storage(source) => Self::Storage(source),
            other => Self::Storage(failed(other)),
        }
    }
}

impl Sealed {
    /// Whether it was sealed with these tags.
    fn compare(&self, tags: &[String]) -> Result<(), Refused> {
        let pairs = (1..).zip(self.tags.iter().zip(tags));
        let differing: Vec<u16> = pairs.filter(|(_, (is, named))| is != named).map(|(n, _)| n).collect();
        if differing.is_empty() {
            Ok(())
        } else {
            Err(Refused::Differing(differing))
        }
    }
}

/// An upload that was read.
type Read = (ContributionId, Arc<Sealed>);

/// The uploads of a bucket. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Uploads {
    store: S3,
    /// The one that was read last.
    reading: Arc<Mutex<Option<Read>>>,
}

impl Uploads {
    /// Those below the prefix of the store.
    pub fn new(store: S3) -> Self {
        Self {
            store,
            reading: Arc::default(),
        }
    }

    /// Makes room for an upload that has none: the address that takes each part, in order, for as long as `lasting`, 7
    /// days at most.
    pub async fn begin(&self, cut: &Cut, lasting: Duration) -> Result<Vec<String>, Refused> {
        let begin = |parts: Range<u16>| async move {
            let path = object(cut.upload, parts.start);
            let begun = self.store.upload_begin(&path).await;
            (parts.start, begun)
        };
        let begun = stream::iter(cut.objects()).map(begin).buffered(AT_ONCE);
        let begun: Vec<_> = begun.collect().await;
        let mut objects = Vec::with_capacity(begun.len());
        let mut failure = None;
        for (first, begun) in begun {
            match begun {
                Ok(id) => objects.push((first, id)),
                Err(error) => failure = Some(error),
            }
        }
        let begun = Begun { objects };
        let kept = match failure {
            None => self.put(&begun_path(cut.upload), &begun).await,
            Some(error) => Err(error.into()),
        };
        if let Err(error) = kept {
            self.give_up(cut.upload, &begun).await.unwrap_or_else(|error| {
                tracing::warn!(
                    upload = %cut.upload, %error,
                    "cannot abort the multipart uploads of an upload that failed to begin"
                );
            });
            return Err(error);
        }
        self.addresses(cut, &begun, lasting.min(LONGEST))
    }

    fn addresses(&self, cut: &Cut, begun: &Begun, lasting: Duration) -> Result<Vec<String>, Refused> {
        let mut addresses = Vec::with_capacity(cut.parts.into());
        for (parts, (first, id)) in cut.objects().into_iter().zip(&begun.objects) {
            let path = object(cut.upload, *first);
            for n in parts {
                let bytes = cut.bytes_of(&(n..n + 1));
                let address = self.store.upload_address(&path, id, n - first + 1, bytes, lasting)?;
                addresses.push(address.url);
            }
        }
        Ok(addresses)
    }

    /// Seals an upload whose parts are there with these tags, in order, without quotes; sealed before, it only compares.
    pub async fn complete(&self, cut: &Cut, tags: &[String]) -> Result<(), Refused> {
        if let Some(sealed) = self.get::<Sealed>(&sealed_path(cut.upload)).await? {
            return sealed.compare(tags);
        }
        let begun = self.get::<Begun>(&begun_path(cut.upload)).await?;
        let begun = begun.ok_or(Refused::Closed)?;
        self.check(cut, &begun, tags).await?;
        let complete = |(first, id): &(u16, String), parts: Range<u16>| {
            let (first, id) = (*first, id.clone());
            async move {
                let tags = &tags[usize::from(parts.start) - 1..usize::from(parts.end) - 1];
                let path = object(cut.upload, first);
                let bytes = cut.bytes_of(&parts);
                let completed = self.store.upload_complete(&path, &id, tags, bytes).await;
                completed.map(|completed| (first, completed))
            }
        };
        let completing = begun.objects.iter().zip(cut.objects());
        let completing: Vec<_> = completing.map(|(begun, parts)| complete(begun, parts)).collect();
        let completed = stream::iter(completing).buffered(AT_ONCE).try_collect::<Vec<_>>().await;
        let completed = match completed {
            Ok(completed) => completed,
            Err(UploadError::Mismatch { source }) => {
                // Somebody put a part after it was looked at; it is named, or is as it should be again.
                self.check(cut, &begun, tags).await?;
                return Err(Refused::Storage(source));
            }
            Err(UploadError::Gone { .. } | UploadError::Size { .. }) => return Err(Refused::Closed),
            Err(error) => return Err(error.into()),
        };
        let tagged = |(first, Completed { e_tag, .. })| {
            let e_tag = e_tag.ok_or_else(|| Refused::Storage(failed("an object has no entity tag")))?;
            Ok((first, e_tag))
        };
        let sealed = Sealed {
            tags: tags.to_vec(),
            objects: completed.into_iter().map(tagged).collect::<Result<_, Refused>>()?,
        };
        match self.put(&sealed_path(cut.upload), &sealed).await {
            Err(Refused::Storage(Error::AlreadyExists { .. })) => {
                let other = self.get::<Sealed>(&sealed_path(cut.upload)).await?;
                other.ok_or(Refused::Closed)?.compare(tags)
            }
            put => put,
        }
    }

    /// Whether every part is there with its size and its tag, as far as the objects are not complete.
    async fn check(&self, cut: &Cut, begun: &Begun, tags: &[String]) -> Result<(), Refused> {
        let list = |(first, id): &(u16, String), parts: Range<u16>| {
            let (path, first, id) = (object(cut.upload, *first), *first, id.clone());
            async move {
                let listed = self.store.upload_parts(&path, &id).await?;
                let listed = listed.map(|listed| {
                    let numbered = listed.into_iter().map(|part| (part.number + first - 1, part));
                    numbered.collect::<HashMap<_, _>>()
                });
                Ok::<_, Refused>((parts, listed))
            }
        };
        let listing = begun.objects.iter().zip(cut.objects());
        let listing: Vec<_> = listing.map(|(begun, parts)| list(begun, parts)).collect();
        let mut listed = stream::iter(listing).buffered(AT_ONCE);
        let (mut missing, mut differing) = (Vec::new(), Vec::new());
        while let Some((parts, found)) = listed.try_next().await? {
            // Why: an upload that is over became its object, or completing it says that there is none.
            let Some(found) = found else { continue };
            for n in parts {
                match found.get(&n).filter(|part| part.bytes == cut.bytes_of(&(n..n + 1))) {
                    None => missing.push(n),
                    Some(part) if tags.get(usize::from(n) - 1) != Some(&part.e_tag) => differing.push(n),
                    Some(_) => {}
                }
            }
        }
        if !missing.is_empty() {
            return Err(Refused::Missing(missing));
        }
        if !differing.is_empty() {
            return Err(Refused::Differing(differing));
        }
        Ok(())
    }

    /// Bytes of part `n` of a sealed upload.
    pub async fn read(&self, cut: &Cut, n: u16, range: Range<u64>) -> Result<Bytes, Refused> {
        let sealed = self.sealed(cut.upload).await?;
        let holding = sealed.objects.iter().rev().find(|(first, _)| *first <= n);
        let (first, e_tag) = holding.ok_or(Refused::Gone)?;
        let from = cut.before(n) - cut.before(*first);
        let wanted = from + range.start..from + range.end;
        let options = GetOptions {
            range: Some(GetRange::Bounded(wanted.clone())),
            if_match: Some(e_tag.clone()),
            ..GetOptions::default()
        };
        let read = async {
            let found = self.store.get_opts(&object(cut.upload, *first), options).await?;
            // Why also here: not every store knows the condition.
            let is_same = found.meta.e_tag.as_ref() == Some(e_tag) && found.range == wanted;
            Ok(is_same.then_some(found.bytes().await?))
        };
        match read.await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) | Err(Error::Precondition { .. }) => Err(Refused::Changed),
            Err(Error::NotFound { .. }) => Err(Refused::Gone),
            Err(error) => Err(Refused::Storage(error)),
        }
    }

    async fn sealed(&self, upload: ContributionId) -> Result<Arc<Sealed>, Refused> {
        let reading = || self.reading.lock();
        if let Some((is, sealed)) = &*reading()
            && *is == upload
        {
            return Ok(Arc::clone(sealed));
        }
        let sealed = self.get::<Sealed>(&sealed_path(upload)).await?;
        let sealed = Arc::new(sealed.ok_or(Refused::Gone)?);
        *reading() = Some((upload, Arc::clone(&sealed)));
        Ok(sealed)
    }

    /// Deletes what there is of an upload, sealed or not; it takes no parts any more.
    pub async fn delete(&self, upload: ContributionId) -> Result<(), Refused> {
        let Some(begun) = self.get::<Begun>(&begun_path(upload)).await? else {
            return Ok(());
        };
        if self.get::<Sealed>(&sealed_path(upload)).await?.is_none() {
            self.give_up(upload, &begun).await?;
        }
        let objects = begun.objects.iter().map(|(first, _)| Ok(object(upload, *first)));
        let objects: Vec<_> = objects.chain([Ok(sealed_path(upload))]).collect();
        let mut deleted = self.store.delete_stream(stream::iter(objects).boxed());
        loop {
            match deleted.try_next().await {
                Ok(None) => break,
                Ok(Some(_)) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(Refused::Storage(error)),
            }
        }
        match self.store.delete(&begun_path(upload)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Refused::Storage(error)),
        }
    }

    /// Gives up what is not an object yet.
    async fn give_up(&self, upload: ContributionId, begun: &Begun) -> Result<(), Refused> {
        let aborting = begun.objects.iter().map(|(first, id)| {
            let (path, id) = (object(upload, *first), id.clone());
            async move { self.store.upload_abort(&path, &id).await }
        });
        let aborting: Vec<_> = aborting.collect();
        let aborted = stream::iter(aborting).buffer_unordered(AT_ONCE);
        Ok(aborted.try_collect::<()>().await?)
    }

    async fn put(&self, path: &Path, document: &impl Serialize) -> Result<(), Refused> {
        let text = serde_json::to_vec(document).map_err(|error| Refused::Storage(failed(error)))?;
        let put = self.store.put_opts(path, text.into(), PutMode::Create.into()).await;
        put.map(|_| ()).map_err(Refused::Storage)
    }

    async fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Refused> {
        let read = async { self.store.get(path).await?.bytes().await };
        match read.await {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(document) => Ok(Some(document)),
                Err(error) => Err(Refused::Storage(failed(error))),
            },
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Refused::Storage(error)),
        }
    }
}
