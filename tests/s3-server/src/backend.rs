//! `s3s-fs`, with what it lacks of S3 for these tests.
//!
//! Invariant: puts of a key that has a condition are decided one after the other; an upload is completed only with the
//! entity tags that its parts were answered with, and takes none afterwards; an object is read only with the entity tag
//! that was asked for.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input,
    ListObjectsV2Output, ListPartsInput, ListPartsOutput, PutObjectInput, PutObjectOutput, UploadPartInput,
    UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

use crate::{BUCKET, ConditionalPuts};

/// How many parts are listed at once.
const PAGE: usize = 7;

/// A lock for each key that is being put.
type Keys = Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>;

#[derive(Debug)]
pub(crate) struct Backend {
    files: FileSystem,
    puts: ConditionalPuts,
    keys: Keys,
    /// The uploads that are open.
    open: Mutex<HashSet<String>>,
    /// The entity tag of each of their parts.
    tags: Mutex<HashMap<(String, i32), ETag>>,
}

impl Backend {
    pub(crate) fn new(root: &Path, puts: ConditionalPuts) -> io::Result<Self> {
        Ok(Self {
            files: FileSystem::new(root).map_err(|error| io::Error::other(format!("{error:?}")))?,
            puts,
            keys: Mutex::default(),
            open: Mutex::default(),
            tags: Mutex::default(),
        })
    }

    fn key(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut keys = locked(&self.keys);
        // Those that nobody waits for are in no hand but the map's.
        keys.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(keys.entry(key.to_owned()).or_default())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

macro_rules! passed_on {
    ($($name:ident: $input:ty => $output:ty,)+) => {
        #[async_trait]
        impl S3 for Backend {
            $(
                async fn $name(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                    self.files.$name(request).await
                }
            )+

            async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
                self.put(request).await
            }

            async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
                let wanted = request.input.if_match.clone();
                let answer = self.files.get_object(request).await?;
                let wanted = wanted.as_ref().and_then(|condition| condition.as_etag());
                if wanted.is_some() && wanted != answer.output.e_tag.as_ref() {
                    return Err(s3_error!(PreconditionFailed));
                }
                Ok(answer)
            }

            async fn create_multipart_upload(
                &self,
                request: S3Request<CreateMultipartUploadInput>,
            ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
                let answer = self.files.create_multipart_upload(request).await?;
                locked(&self.open).extend(answer.output.upload_id.clone());
                Ok(answer)
            }

            async fn upload_part(&self, request: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
                let part = (request.input.upload_id.clone(), request.input.part_number);
                self.is_open(&part.0)?;
                let answer = self.files.upload_part(request).await?;
                if let Some(tag) = answer.output.e_tag.clone() {
                    locked(&self.tags).insert(part, tag);
                }
                Ok(answer)
            }

            async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
                self.list(request).await
            }

            async fn abort_multipart_upload(
                &self,
                request: S3Request<AbortMultipartUploadInput>,
            ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
                self.is_open(&request.input.upload_id)?;
                self.forget(&request.input.upload_id);
                self.files.abort_multipart_upload(request).await
            }

            async fn complete_multipart_upload(
                &self,
                request: S3Request<CompleteMultipartUploadInput>,
            ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
                self.complete(request).await
            }
        }
    };
}

passed_on! {
    head_object: HeadObjectInput => HeadObjectOutput,
    delete_object: DeleteObjectInput => DeleteObjectOutput,
    delete_objects: DeleteObjectsInput => DeleteObjectsOutput,
    list_objects_v2: ListObjectsV2Input => ListObjectsV2Output,
}

impl Backend {
    async fn put(&self, mut request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        if request.input.bucket != BUCKET {
            return Err(s3_error!(NoSuchBucket));
        }
        if request.input.if_none_match.is_none() {
            return self.files.put_object(request).await;
        }
        if self.puts == ConditionalPuts::Ignored {
            request.input.if_none_match = None;
            return self.files.put_object(request).await;
        }
        let key = self.key(&request.input.key);
        let _alone = key.lock().await;
        self.files.put_object(request).await
    }

    fn is_open(&self, upload: &str) -> S3Result<()> {
        if locked(&self.open).contains(upload) {
            Ok(())
        } else {
            Err(s3_error!(NoSuchUpload))
        }
    }

    async fn list(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        let upload = request.input.upload_id.clone();
        let after = request.input.part_number_marker.unwrap_or_default();
        // Why alone: completing takes the parts away one after the other.
        let key = self.key(&request.input.key);
        let _alone = key.lock().await;
        self.is_open(&upload)?;
        let mut answer = self.files.list_parts(request).await?;
        let mut parts = answer.output.parts.take().unwrap_or_default();
        parts.retain(|part| part.part_number.is_some_and(|number| number > after));
        parts.sort_by_key(|part| part.part_number);
        // Few to a page, so that more than one is asked for.
        let more = parts.len() > PAGE;
        parts.truncate(PAGE);
        for part in &mut parts {
            let number = part.part_number.unwrap_or_default();
            part.e_tag = locked(&self.tags).get(&(upload.clone(), number)).cloned();
        }
        answer.output.max_parts = i32::try_from(PAGE).ok();
        answer.output.is_truncated = Some(more);
        answer.output.next_part_number_marker = parts.last().and_then(|part| part.part_number);
        answer.output.parts = Some(parts);
        Ok(answer)
    }

    async fn complete(
        &self,
        mut request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let upload = request.input.upload_id.clone();
        let key = self.key(&request.input.key);
        let _alone = key.lock().await;
        self.is_open(&upload)?;
        if self.puts == ConditionalPuts::Ignored {
            request.input.if_none_match = None;
        }
        let named = request
            .input
            .multipart_upload
            .iter()
            .flat_map(|upload| &upload.parts)
            .flatten();
        for part in named {
            let number = part.part_number.unwrap_or_default();
            let put = locked(&self.tags).get(&(upload.clone(), number)).cloned();
            if put.is_none() || put.as_ref().map(ETag::value) != part.e_tag.as_ref().map(ETag::value) {
                return Err(s3_error!(
                    InvalidPart,
                    "part {number} was not put, or has another entity tag"
                ));
            }
        }
        let answer = self.files.complete_multipart_upload(request).await?;
        self.forget(&upload);
        Ok(answer)
    }

    fn forget(&self, upload: &str) {
        locked(&self.open).remove(upload);
        locked(&self.tags).retain(|(open, _), _| open != upload);
    }
}
