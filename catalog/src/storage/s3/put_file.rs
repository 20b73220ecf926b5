//! Puts of local files as new objects.
//!
//! Invariants: as for a put, `AlreadyExists` may concern the caller's own object, if the answer was lost, so the caller
//! compares. A few pieces of the file are in memory, whatever its size. A multipart upload that fails is aborted. A
//! crash may leave one, which the bucket's lifecycle rule removes (`AbortIncompleteMultipartUpload`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload, Result};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::call::UploadCompletion;
use super::{BACKOFF, S3, failed};

/// Size in bytes of a part. Every part but the last must have at least 5 MiB (*Amazon S3 multipart upload limits*).
const PIECE_BYTES: u64 = 8 << 20;
/// Number of parts that are sent at once, each in memory.
const PIECES_IN_FLIGHT: usize = 2;

impl S3 {
    /// Puts a file as a new object.
    pub(super) async fn put_file(&self, file: &FilePath, location: &Path) -> Result<()> {
        let unreadable = |error: io::Error| failed(format!("`{}`: {error}", file.display()));
        let opened = {
            let path = file.to_owned();
            let open = move || File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
            spawn_blocking(open).await?
        };
        let (bytes, opened) = opened.map_err(unreadable)?;
        let file = Arc::new(opened);
        // Without a conditional completion a multipart upload could replace an existing object.
        if bytes <= PIECE_BYTES || !self.conditional_completion {
            let whole = piece(&file, 0, bytes).await?;
            self.put_opts(location, whole.into(), PutMode::Create.into()).await?;
            return Ok(());
        }
        let upload = self.reading.create_multipart(location).await?;
        let became = self.send(&file, bytes, location, &upload).await;
        if became.is_err()
            && let Err(error) = self.upload_abort(location, &upload).await
        {
            tracing::warn!(
                %location, %error,
                "cannot abort a multipart upload; the bucket's lifecycle rule removes it"
            );
        }
        became
    }

    async fn send(&self, file: &Arc<File>, bytes: u64, location: &Path, upload: &String) -> Result<()> {
        let sending = (0..bytes.div_ceil(PIECE_BYTES)).map(|number| async move {
            let from = number * PIECE_BYTES;
            // Each piece is read when its turn comes, so few are in memory.
            let piece = piece(file, from, PIECE_BYTES.min(bytes - from)).await?;
            let index = usize::try_from(number).map_err(failed)?;
            self.put_piece(location, upload, index, piece).await
        });
        // `buffered` keeps the order of the parts, and bounds the memory.
        let tags: Vec<String> = stream::iter(sending).buffered(PIECES_IN_FLIGHT).try_collect().await?;
        let exists = |source: Error| Error::AlreadyExists {
            path: location.to_string(),
            source: Box::new(source),
        };
        match self.complete_parts(location, upload, &tags, true, bytes).await? {
            UploadCompletion::Done => Ok(()),
            UploadCompletion::Taken => Err(exists(failed("an object is there"))),
            UploadCompletion::Mismatch(error) => Err(error),
            // The upload was completed and the answer lost, or it was aborted by others.
            UploadCompletion::Gone(error) => match self.head(location).await {
                Ok(_) => Err(exists(error)),
                Err(Error::NotFound { .. }) => Err(error),
                Err(unknown) => Err(unknown),
            },
        }
    }

    /// Puts one part, with retries until the patience is over. Returns its entity tag.
    async fn put_piece(&self, location: &Path, upload: &String, index: usize, piece: Bytes) -> Result<String> {
        let attempt = self.attempt + Duration::from_secs(piece.len() as u64 >> 20);
        let until = Instant::now() + self.patience;
        let mut failures = 0;
        loop {
            let payload = PutPayload::from_bytes(piece.clone());
            let error = match timeout(attempt, self.putting.put_part(location, upload, index, payload)).await {
                Ok(Ok(part)) => return Ok(part.content_id),
                Ok(Err(error)) => error,
                Err(_) => failed(format!("a part of `{location}` was not answered within {attempt:?}")),
            };
            // These errors do not change with a retry.
            let is_refused = matches!(
                error,
                Error::NotFound { .. } | Error::PermissionDenied { .. } | Error::Unauthenticated { .. }
            );
            if is_refused || Instant::now() + BACKOFF.longest(failures) >= until {
                return Err(error);
            }
            tracing::debug!(%location, index, %error, "a part is put again");
            sleep(BACKOFF.pause(failures)).await;
            failures += 1;
        }
    }
}

async fn piece(file: &Arc<File>, from: u64, bytes: u64) -> Result<Bytes> {
    let file = Arc::clone(file);
    let read = move || {
        let mut piece = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        file.read_exact_at(&mut piece, from)?;
        Ok(Bytes::from(piece))
    };
    spawn_blocking(read).await?.map_err(|error: io::Error| failed(error))
}
