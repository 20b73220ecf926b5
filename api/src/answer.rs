//! What an operation gives back, independent of the transport.
//!
//! Invariant: the schema that is published for an answer is made from the type that is serialised.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::places::{Place, holding};
use crate::schema;

/// Media type of JSON (RFC 8259).
pub const JSON: &str = "application/json";
/// Media type of newline-delimited JSON.
pub const NDJSON: &str = "application/x-ndjson";
/// How many lines of an NDJSON answer are written at once.
const LINES_AT_ONCE: usize = 256;

/// The most bytes of an answer that may wait to be taken without a place.
const SMALL: usize = 64 << 10;

/// A finished answer.
pub enum Output {
    /// One JSON value.
    Json {
        /// The status of the answer.
        status: StatusCode,
        /// Headers beyond those every answer has.
        headers: Vec<(HeaderName, HeaderValue)>,
        /// The value, serialised.
        body: Bytes,
    },
    /// A body that is made while it is sent.
    Stream {
        /// The status of the answer.
        status: StatusCode,
        /// Headers beyond those every answer has.
        headers: Vec<(HeaderName, HeaderValue)>,
        /// Media type of the body.
        content_type: &'static str,
        /// The pieces of the body, in order.
        body: BoxStream<'static, Result<Bytes, std::io::Error>>,
    },
}

impl Output {
    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Json { status, .. } | Self::Stream { status, .. } => *status,
        }
    }

    /// The same answer, which keeps a place until it is sent, unless it is small or made while it is sent.
    pub(crate) fn holding(self, place: Place) -> Self {
        match self {
            Self::Json { status, headers, body } if body.len() > SMALL => Self::Json {
                status,
                headers,
                body: holding(body, place),
            },
            other => other,
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// What a function of the table may return.
pub trait Answer: Send + 'static {
    /// Media type of the body.
    const CONTENT_TYPE: &'static str;
    /// The schema of the body: of the whole for JSON, of one line for NDJSON.
    fn schema() -> Value;
    /// The answer for a transport.
    fn into_output(self) -> Result<Output, ApiError>;
}

/// A JSON answer with a status.
#[derive(Debug)]
pub struct Reply<T> {
    /// The status of the answer.
    pub status: StatusCode,
    /// The body.
    pub body: T,
}

impl<T> Reply<T> {
    /// 200 with this body.
    pub const fn ok(body: T) -> Self {
        Self {
            status: StatusCode::OK,
            body,
        }
    }

    /// 201 with this body.
    pub const fn created(body: T) -> Self {
        Self {
            status: StatusCode::CREATED,
            body,
        }
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Answer for Reply<T> {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema() -> Value {
        schema::of_output::<T>()
    }

    fn into_output(self) -> Result<Output, ApiError> {
        let body = serde_json::to_vec(&self.body).map_err(|error| ApiError::internal(format!("answer: {error}")))?;
        Ok(Output::Json {
            status: self.status,
            headers: Vec::new(),
            body: body.into(),
        })
    }
}

/// An answer of JSON values, one a line.
#[derive(Debug)]
pub struct Lines<T>(pub Vec<T>);

impl<T: Serialize + JsonSchema + Send + Sync + 'static> Answer for Lines<T> {
    const CONTENT_TYPE: &'static str = NDJSON;

    fn schema() -> Value {
        schema::of_output::<T>()
    }

    fn into_output(self) -> Result<Output, ApiError> {
        let chunks = stream::iter(self.0).chunks(LINES_AT_ONCE);
        let body = chunks.map(|lines| {
            let mut text = Vec::new();
            for line in &lines {
                serde_json::to_writer(&mut text, line)?;
                text.push(b'\n');
            }
            Ok(Bytes::from(text))
        });
        Ok(Output::Stream {
            status: StatusCode::OK,
            headers: Vec::new(),
            content_type: NDJSON,
            body: body.boxed(),
        })
    }
}

/// What a body is that is made while it is sent.
pub trait Media: Send + 'static {
    /// Its media type.
    const TYPE: &'static str;
    /// The schema of the body: of one line for NDJSON, empty for bytes.
    fn schema() -> Value;
}

/// An answer that is made while it is sent.
pub struct Streamed<M> {
    /// The status of the answer.
    pub status: StatusCode,
    /// Headers beyond those every answer has.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The pieces of the body, in order; an error breaks the connection off, so that nobody takes a part for the whole.
    pub body: BoxStream<'static, Result<Bytes, std::io::Error>>,
    media: PhantomData<M>,
}

impl<M> Streamed<M> {
    /// 200 with this body.
    pub fn ok(body: BoxStream<'static, Result<Bytes, std::io::Error>>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: Vec::new(),
            body,
            media: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Streamed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl<M: Media> Answer for Streamed<M> {
    const CONTENT_TYPE: &'static str = M::TYPE;

    fn schema() -> Value {
        M::schema()
    }

    fn into_output(self) -> Result<Output, ApiError> {
        Ok(Output::Stream {
            status: self.status,
            headers: self.headers,
            content_type: M::TYPE,
            body: self.body,
        })
    }
}
