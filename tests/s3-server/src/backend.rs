//! `s3s-fs`, with what it lacks of S3 for these tests.
//!
//! Invariant: puts of a key that has a condition are decided one after the other; an upload is completed only with the
//! entity tags that its parts were answered with.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input,
    ListObjectsV2Output, PutObjectInput, PutObjectOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

use crate::{BUCKET, ConditionalPuts};

/// A lock for each key that is being put.
type Keys = Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>;

#[derive(Debug)]
pub(crate) struct Backend {
    files: FileSystem,
    puts: ConditionalPuts,
    keys: Keys,
    /// The entity tag of each part of the uploads that are open.
    tags: Mutex<HashMap<(String, i32), ETag>>,
}

impl Backend {
    pub(crate) fn new(root: &Path, puts: ConditionalPuts) -> io::Result<Self> {
        Ok(Self {
            files: FileSystem::new(root).map_err(|error| io::Error::other(format!("{error:?}")))?,
            puts,
            keys: Mutex::default(),
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
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

            async fn upload_part(&self, request: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
                let part = (request.input.upload_id.clone(), request.input.part_number);
                let answer = self.files.upload_part(request).await?;
                if let Some(tag) = answer.output.e_tag.clone() {
                    locked(&self.tags).insert(part, tag);
                }
                Ok(answer)
            }

            async fn abort_multipart_upload(
                &self,
                request: S3Request<AbortMultipartUploadInput>,
            ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
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
    get_object: GetObjectInput => GetObjectOutput,
    head_object: HeadObjectInput => HeadObjectOutput,
    delete_object: DeleteObjectInput => DeleteObjectOutput,
    delete_objects: DeleteObjectsInput => DeleteObjectsOutput,
    list_objects_v2: ListObjectsV2Input => ListObjectsV2Output,
    create_multipart_upload: CreateMultipartUploadInput => CreateMultipartUploadOutput,
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

    async fn complete(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let upload = request.input.upload_id.clone();
        if !locked(&self.tags).keys().any(|(open, _)| *open == upload) {
            return Err(s3_error!(NoSuchUpload));
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
        locked(&self.tags).retain(|(open, _), _| open != upload);
    }
}
