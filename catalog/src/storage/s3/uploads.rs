//! Uploads of clients, whose parts go directly to the bucket and stay until the contribution has an outcome.
//!
//! ```text
//! _uploads/<upload>/begun          ids of the multipart uploads that it consists of
//! _uploads/<upload>/parts-<n>      object with the parts from number n on, once they are complete
//! _uploads/<upload>/sealed         tags of the parts, and entity tags of the objects
//! ```
//!
//! Parts of at least 5 MiB become one object. The store does not join smaller ones, so each becomes its own object.
//!
//! Invariants: the store accepts a part only with its length, and none after its object is complete, however long the
//! address is valid. An upload is sealed once every object is complete. A read returns the bytes of these objects or an
//! error. `begun` exists while anything else of the upload does, so everything of an upload can be found and deleted.

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
use types::{ContributionId, UploadLayout};

use self::layout::{BegunMarker, ObjectUploadLayout, SealedMarker, begun_path, object, sealed_path};
use super::{CompletedUpload, S3, UploadError, failed};

/// Maximum number of concurrent requests for the objects of an upload.
const OBJECTS_AT_ONCE: usize = 16;
/// Maximum validity of an address (*Authenticating Requests: Using Query Parameters*, Amazon S3 API Reference).
const MAX_ADDRESS_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// Failure to begin, seal, read or delete an upload.
#[derive(Debug, thiserror::Error)]
pub enum UploadFailure {
    /// Parts that the request lists do not exist; the list has their numbers.
    #[error("parts {0:?} were not sent")]
    Missing(Vec<u16>),
    /// Parts have other tags than the request lists; the list has their numbers.
    #[error("parts {0:?} have other entity tags")]
    Differing(Vec<u16>),
    /// The upload accepts no parts and was never sealed.
    #[error("the upload accepts no more parts")]
    Closed,
    /// The objects of a sealed upload do not exist.
    #[error("the bytes of the upload do not exist any more")]
    Gone,
    /// An object of a sealed upload has other bytes now.
    #[error("the bytes of the upload were replaced")]
    Changed,
    /// The store did not answer, or it refused the request.
    #[error("the request to the store failed")]
    Storage(#[source] Error),
}

impl From<UploadError> for UploadFailure {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Storage(source) => Self::Storage(source),
            other => Self::Storage(failed(other)),
        }
    }
}

impl SealedMarker {
    /// Checks that the upload was sealed with these tags.
    fn compare(&self, tags: &[String]) -> Result<(), UploadFailure> {
        let pairs = (1..).zip(self.tags.iter().zip(tags));
        let differing: Vec<u16> = pairs.filter(|(_, (is, named))| is != named).map(|(n, _)| n).collect();
        if differing.is_empty() {
            Ok(())
        } else {
            Err(UploadFailure::Differing(differing))
        }
    }
}

/// Id and content of a sealed upload.
type Read = (ContributionId, Arc<SealedMarker>);

/// The uploads of a bucket. A clone shares the connections.
#[derive(Clone, Debug)]
pub struct S3Uploads {
    store: S3,
    /// Cache of the upload that was read last. A worker reads many ranges of one upload in a row.
    reading: Arc<Mutex<Option<Read>>>,
}

impl S3Uploads {
    /// Creates a handle on the uploads below the prefix of the store.
    pub fn new(store: S3) -> Self {
        Self {
            store,
            reading: Arc::default(),
        }
    }

    /// Returns the origin of the addresses of parts.
    pub fn origin(&self) -> String {
        self.store.presigner.origin()
    }

    /// Begins an upload. Returns the addresses of its parts in order, which are valid for `lasting`, at most 7 days.
    ///
    /// # Errors
    /// After an error the multipart uploads that were begun are aborted.
    pub async fn begin(&self, layout: &UploadLayout, lasting: Duration) -> Result<Vec<String>, UploadFailure> {
        let layout = &ObjectUploadLayout::of(layout)?;
        let begin = |parts: Range<u16>| async move {
            let path = object(layout.upload, parts.start);
            let begun = self.store.upload_begin(&path).await;
            (parts.start, begun)
        };
        let begun = stream::iter(layout.objects()).map(begin).buffered(OBJECTS_AT_ONCE);
        // All results are collected, so that the uploads that did begin can be aborted.
        let begun: Vec<_> = begun.collect().await;
        let mut objects = Vec::with_capacity(begun.len());
        let mut failure = None;
        for (first, begun) in begun {
            match begun {
                Ok(id) => objects.push((first, id)),
                Err(error) => failure = Some(error),
            }
        }
        let begun = BegunMarker { objects };
        let kept = match failure {
            None => self.put(&begun_path(layout.upload), &begun).await,
            Some(error) => Err(error.into()),
        };
        if let Err(error) = kept {
            self.give_up(layout.upload, &begun).await.unwrap_or_else(|error| {
                tracing::warn!(
                    upload = %layout.upload, %error,
                    "cannot abort the multipart uploads of an upload that failed to begin"
                );
            });
            return Err(error);
        }
        self.addresses(layout, &begun, lasting.min(MAX_ADDRESS_LIFETIME))
    }

    fn addresses(
        &self,
        layout: &ObjectUploadLayout,
        begun: &BegunMarker,
        lasting: Duration,
    ) -> Result<Vec<String>, UploadFailure> {
        let mut addresses = Vec::with_capacity(layout.parts.into());
        for (parts, (first, id)) in layout.objects().into_iter().zip(&begun.objects) {
            let path = object(layout.upload, *first);
            for n in parts {
                let bytes = layout.bytes_of(&(n..n + 1));
                let address = self.store.upload_address(&path, id, n - first + 1, bytes, lasting)?;
                addresses.push(address.url);
            }
        }
        Ok(addresses)
    }

    /// Seals an upload. `tags` are the entity tags of the parts in order, without quotes. If the upload is sealed
    /// already, only compares the tags.
    ///
    /// # Errors
    /// [`UploadFailure::Missing`], [`UploadFailure::Differing`] and [`UploadFailure::Closed`].
    pub async fn complete(&self, layout: &UploadLayout, tags: &[String]) -> Result<(), UploadFailure> {
        let layout = &ObjectUploadLayout::of(layout)?;
        // A repeated request succeeds if it has the same tags.
        if let Some(sealed) = self.get::<SealedMarker>(&sealed_path(layout.upload)).await? {
            return sealed.compare(tags);
        }
        let begun = self.get::<BegunMarker>(&begun_path(layout.upload)).await?;
        let begun = begun.ok_or(UploadFailure::Closed)?;
        self.check(layout, &begun, tags).await?;
        let complete = |(first, id): &(u16, String), parts: Range<u16>| {
            let (first, id) = (*first, id.clone());
            async move {
                let tags = &tags[usize::from(parts.start) - 1..usize::from(parts.end) - 1];
                let path = object(layout.upload, first);
                let bytes = layout.bytes_of(&parts);
                let completed = self.store.upload_complete(&path, &id, tags, bytes).await;
                completed.map(|completed| (first, completed))
            }
        };
        let completing = begun.objects.iter().zip(layout.objects());
        let completing: Vec<_> = completing.map(|(begun, parts)| complete(begun, parts)).collect();
        let completed = stream::iter(completing)
            .buffered(OBJECTS_AT_ONCE)
            .try_collect::<Vec<_>>()
            .await;
        let completed = match completed {
            Ok(completed) => completed,
            Err(UploadError::Mismatch { source }) => {
                // A client replaced a part after the check above. The second check names the part, or finds it correct
                // again.
                self.check(layout, &begun, tags).await?;
                return Err(UploadFailure::Storage(source));
            }
            Err(UploadError::Gone { .. } | UploadError::Size { .. }) => return Err(UploadFailure::Closed),
            Err(error) => return Err(error.into()),
        };
        let tagged = |(first, CompletedUpload { e_tag, .. })| {
            let e_tag = e_tag.ok_or_else(|| UploadFailure::Storage(failed("an object has no entity tag")))?;
            Ok((first, e_tag))
        };
        // The entity tags are kept, so that a read can recognise a replaced object.
        let sealed = SealedMarker {
            tags: tags.to_vec(),
            objects: completed
                .into_iter()
                .map(tagged)
                .collect::<Result<_, UploadFailure>>()?,
        };
        match self.put(&sealed_path(layout.upload), &sealed).await {
            Err(UploadFailure::Storage(Error::AlreadyExists { .. })) => {
                let other = self.get::<SealedMarker>(&sealed_path(layout.upload)).await?;
                other.ok_or(UploadFailure::Closed)?.compare(tags)
            }
            put => put,
        }
    }

    /// Checks that every part exists with its size and tag. Skips the objects that are complete.
    async fn check(
        &self,
        layout: &ObjectUploadLayout,
        begun: &BegunMarker,
        tags: &[String],
    ) -> Result<(), UploadFailure> {
        let list = |(first, id): &(u16, String), parts: Range<u16>| {
            let (path, first, id) = (object(layout.upload, *first), *first, id.clone());
            async move {
                let listed = self.store.upload_parts(&path, &id).await?;
                let listed = listed.map(|listed| {
                    let numbered = listed.into_iter().map(|part| (part.number + first - 1, part));
                    numbered.collect::<HashMap<_, _>>()
                });
                Ok::<_, UploadFailure>((parts, listed))
            }
        };
        let listing = begun.objects.iter().zip(layout.objects());
        let listing: Vec<_> = listing.map(|(begun, parts)| list(begun, parts)).collect();
        let mut listed = stream::iter(listing).buffered(OBJECTS_AT_ONCE);
        let (mut missing, mut differing) = (Vec::new(), Vec::new());
        while let Some((parts, found)) = listed.try_next().await? {
            // If the upload is over, its object is complete, or `upload_complete` finds that there is none.
            let Some(found) = found else { continue };
            for n in parts {
                match found.get(&n).filter(|part| part.bytes == layout.bytes_of(&(n..n + 1))) {
                    None => missing.push(n),
                    Some(part) if tags.get(usize::from(n) - 1) != Some(&part.e_tag) => differing.push(n),
                    Some(_) => {}
                }
            }
        }
        if !missing.is_empty() {
            return Err(UploadFailure::Missing(missing));
        }
        if !differing.is_empty() {
            return Err(UploadFailure::Differing(differing));
        }
        Ok(())
    }

    /// Reads bytes of part `n` of a sealed upload. `range` is relative to the part.
    ///
    /// # Errors
    /// [`UploadFailure::Gone`] if the object does not exist, [`UploadFailure::Changed`] if it has other bytes.
    pub async fn read(&self, layout: &UploadLayout, n: u32, range: Range<u64>) -> Result<Bytes, UploadFailure> {
        let (layout, n) = (&ObjectUploadLayout::of(layout)?, layout::numbered(n)?);
        let sealed = self.sealed(layout.upload).await?;
        // The object of a part is the last one that begins at the part or before it.
        let holding = sealed.objects.iter().rev().find(|(first, _)| *first <= n);
        let (first, e_tag) = holding.ok_or(UploadFailure::Gone)?;
        let from = layout.before(n) - layout.before(*first);
        // The range is relative to the part, and the object begins with an earlier part.
        let wanted = from + range.start..from + range.end;
        let options = GetOptions {
            range: Some(GetRange::Bounded(wanted.clone())),
            if_match: Some(e_tag.clone()),
            ..GetOptions::default()
        };
        let read = async {
            let found = self.store.get_opts(&object(layout.upload, *first), options).await?;
            // Not every store supports `If-Match`, so the entity tag is compared here too.
            let is_same = found.meta.e_tag.as_ref() == Some(e_tag) && found.range == wanted;
            Ok(is_same.then_some(found.bytes().await?))
        };
        match read.await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) | Err(Error::Precondition { .. }) => Err(UploadFailure::Changed),
            Err(Error::NotFound { .. }) => Err(UploadFailure::Gone),
            Err(error) => Err(UploadFailure::Storage(error)),
        }
    }

    async fn sealed(&self, upload: ContributionId) -> Result<Arc<SealedMarker>, UploadFailure> {
        let reading = || self.reading.lock();
        if let Some((is, sealed)) = &*reading()
            && *is == upload
        {
            return Ok(Arc::clone(sealed));
        }
        let sealed = self.get::<SealedMarker>(&sealed_path(upload)).await?;
        let sealed = Arc::new(sealed.ok_or(UploadFailure::Gone)?);
        *reading() = Some((upload, Arc::clone(&sealed)));
        Ok(sealed)
    }

    /// Deletes everything of an upload, sealed or not. The upload then accepts no parts.
    pub async fn delete(&self, upload: ContributionId) -> Result<(), UploadFailure> {
        let Some(begun) = self.get::<BegunMarker>(&begun_path(upload)).await? else {
            return Ok(());
        };
        // The objects of a sealed upload are complete, so nothing is left to abort.
        if self.get::<SealedMarker>(&sealed_path(upload)).await?.is_none() {
            self.give_up(upload, &begun).await?;
        }
        let objects = begun.objects.iter().map(|(first, _)| Ok(object(upload, *first)));
        let objects: Vec<_> = objects.chain([Ok(sealed_path(upload))]).collect();
        let mut deleted = self.store.delete_stream(stream::iter(objects).boxed());
        loop {
            match deleted.try_next().await {
                Ok(None) => break,
                // An interrupted deletion may have deleted some objects already.
                Ok(Some(_)) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(UploadFailure::Storage(error)),
            }
        }
        // `begun` goes last, so an interrupted deletion can be repeated.
        match self.store.delete(&begun_path(upload)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(UploadFailure::Storage(error)),
        }
    }

    /// Aborts the multipart uploads that are not objects yet.
    async fn give_up(&self, upload: ContributionId, begun: &BegunMarker) -> Result<(), UploadFailure> {
        let aborting = begun.objects.iter().map(|(first, id)| {
            let (path, id) = (object(upload, *first), id.clone());
            async move { self.store.upload_abort(&path, &id).await }
        });
        let aborting: Vec<_> = aborting.collect();
        let aborted = stream::iter(aborting).buffer_unordered(OBJECTS_AT_ONCE);
        Ok(aborted.try_collect::<()>().await?)
    }

    async fn put(&self, path: &Path, document: &impl Serialize) -> Result<(), UploadFailure> {
        let text = serde_json::to_vec(document).map_err(|error| UploadFailure::Storage(failed(error)))?;
        let put = self.store.put_opts(path, text.into(), PutMode::Create.into()).await;
        put.map(|_| ()).map_err(UploadFailure::Storage)
    }

    async fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, UploadFailure> {
        let read = async { self.store.get(path).await?.bytes().await };
        match read.await {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(document) => Ok(Some(document)),
                Err(error) => Err(UploadFailure::Storage(failed(error))),
            },
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(UploadFailure::Storage(error)),
        }
    }
}
