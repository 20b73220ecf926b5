//! Answers that were serialized before.

use std::marker::PhantomData;

use bytes::Bytes;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::call::answer::{JSON, OperationOutput, OperationResult};
use crate::call::schema;
use crate::error::ApiError;

/// A JSON answer with status 200 whose body is the text of a `T`.
#[derive(Debug)]
pub(crate) struct RenderedJson<T> {
    body: Bytes,
    of: PhantomData<fn() -> T>,
}

impl<T> RenderedJson<T> {
    /// Creates an answer with the text of a `T`.
    pub(crate) const fn ok(body: Bytes) -> Self {
        Self { body, of: PhantomData }
    }
}

impl<T: JsonSchema + 'static> OperationResult for RenderedJson<T> {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema() -> Value {
        schema::of_output::<T>()
    }

    fn named() -> Value {
        schema::named_output::<T>()
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        // A copy of `Bytes` shares the text, so an answer costs no copy of it.
        Ok(OperationOutput::Whole {
            status: StatusCode::OK,
            headers: Vec::new(),
            content_type: JSON,
            body: self.body,
        })
    }
}

/// Returns the text of a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Bytes, serde_json::Error> {
    serde_json::to_vec(value).map(Bytes::from)
}
