//! Answers of operations, independent of the transport.
//!
//! Invariant: the schema that is published for an answer is generated from the type that is serialized.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::schema;
use crate::error::ApiError;
use crate::state::holder_limit::{HolderPermit, holding};

/// Media types that shrink, beside text. All others, such as Parquet and fonts, are compressed already.
const MEDIA_TYPES: [&str; 5] = [
    "application/json",
    "application/x-ndjson",
    "application/xml",
    "application/vnd.apache.arrow.stream",
    "image/svg+xml",
];
/// Media type of events, whose pieces are sent as they happen and must not be held back.
const EVENT_STREAM: &str = "text/event-stream";

/// Media type of JSON (RFC 8259).
pub const JSON: &str = "application/json";
/// Media type of a page (RFC 7992 names it, the WHATWG HTML standard defines it).
pub const HTML: &str = "text/html; charset=utf-8";
/// Media type of a form that a browser sends.
pub const FORM: &str = "application/x-www-form-urlencoded";
/// Media type of bytes of which nothing is said (RFC 2046 section 4.5.1).
pub const OCTET_STREAM: &str = "application/octet-stream";
/// Media type of a form with a file (RFC 7578).
pub const MULTIPART: &str = "multipart/form-data";
/// Media type of newline-delimited JSON. It names its encoding, since a program that knows only the type would guess one.
pub const NDJSON: &str = "application/x-ndjson; charset=utf-8";
/// Lines of an NDJSON answer that are serialized at a time.
const LINES_AT_ONCE: usize = 256;

/// Size in bytes up to which an answer holds no permit while it waits to be sent.
const MAX_UNLIMITED_BYTES: usize = 64 << 10;

/// Answer of an operation, ready for a transport.
pub enum OperationOutput {
    /// A body that is whole in memory: a JSON value or a page.
    Whole {
        /// Status of the answer.
        status: StatusCode,
        /// Headers beyond those every answer has.
        headers: Vec<(HeaderName, HeaderValue)>,
        /// Media type of the body.
        content_type: &'static str,
        /// Text of the body.
        body: Bytes,
    },
    /// A body that is produced while it is sent.
    Stream {
        /// Status of the answer.
        status: StatusCode,
        /// Headers beyond those every answer has.
        headers: Vec<(HeaderName, HeaderValue)>,
        /// Media type of the body.
        content_type: &'static str,
        /// Pieces of the body, in order.
        body: BoxStream<'static, Result<Bytes, std::io::Error>>,
    },
}

impl OperationOutput {
    /// Returns the status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Whole { status, .. } | Self::Stream { status, .. } => *status,
        }
    }

    /// Attaches a permit to the body, released when the body has been sent. Small and streamed answers need none and
    /// release it at once.
    pub(crate) fn holding(self, permit: HolderPermit) -> Self {
        match self {
            // A small answer costs little memory while it waits, so its permit is released at once.
            Self::Whole {
                status,
                headers,
                content_type,
                body,
            } if body.len() > MAX_UNLIMITED_BYTES => Self::Whole {
                status,
                headers,
                content_type,
                body: holding(body, permit),
            },
            other => other,
        }
    }
}

impl fmt::Debug for OperationOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Return type of the functions in the table.
pub trait OperationResult: Send + 'static {
    /// Media type of the body.
    const CONTENT_TYPE: &'static str;
    /// Returns the schema of the body: of the whole for JSON, of one line for NDJSON.
    fn schema() -> Value;
    /// Returns the same schema with its types by name, as [`schema::named_output`] does.
    fn named() -> Value {
        Self::schema()
    }
    /// Serializes the answer for a transport.
    fn into_output(self) -> Result<OperationOutput, ApiError>;
}

/// A JSON answer with a status.
#[derive(Debug)]
pub struct JsonReply<T> {
    /// Status of the answer.
    pub status: StatusCode,
    /// Body, to be serialized as JSON.
    pub body: T,
}

impl<T> JsonReply<T> {
    /// Creates an answer with status 200.
    pub const fn ok(body: T) -> Self {
        Self {
            status: StatusCode::OK,
            body,
        }
    }

    /// Creates an answer with status 201.
    pub const fn created(body: T) -> Self {
        Self {
            status: StatusCode::CREATED,
            body,
        }
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> OperationResult for JsonReply<T> {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema() -> Value {
        schema::of_output::<T>()
    }

    fn named() -> Value {
        schema::named_output::<T>()
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        // A JSON answer is whole in memory. Operations with long results stream them instead.
        let body = serde_json::to_vec(&self.body).map_err(|error| ApiError::internal(format!("answer: {error}")))?;
        Ok(OperationOutput::Whole {
            status: self.status,
            headers: Vec::new(),
            content_type: JSON,
            body: body.into(),
        })
    }
}

/// An NDJSON answer: one JSON value per line.
#[derive(Debug)]
pub struct NdjsonAnswer<T>(pub Vec<T>);

impl<T: Serialize + JsonSchema + Send + Sync + 'static> OperationResult for NdjsonAnswer<T> {
    const CONTENT_TYPE: &'static str = NDJSON;

    fn schema() -> Value {
        schema::of_output::<T>()
    }

    fn named() -> Value {
        schema::named_output::<T>()
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        // Lines are grouped, so that many short ones are not sent in as many pieces.
        let chunks = stream::iter(self.0).chunks(LINES_AT_ONCE);
        let body = chunks.map(|lines| {
            let mut text = Vec::new();
            for line in &lines {
                serde_json::to_writer(&mut text, line)?;
                text.push(b'\n');
            }
            Ok(Bytes::from(text))
        });
        Ok(OperationOutput::Stream {
            status: StatusCode::OK,
            headers: Vec::new(),
            content_type: NDJSON,
            body: body.boxed(),
        })
    }
}

/// Kind of a body that is produced while it is sent.
pub trait BodyMedia: Send + 'static {
    /// Media type of the body.
    const TYPE: &'static str;
    /// Returns the schema of the body: of one line for NDJSON, a string for text.
    fn schema() -> Value {
        json!({"type": "string"})
    }
}

/// Media type of plain text (RFC 2046 section 4.1).
pub(crate) struct PlainMedia;

impl BodyMedia for PlainMedia {
    const TYPE: &'static str = "text/plain; charset=utf-8";
}

/// Answer of another media type than JSON, whole in memory or produced while it is sent.
pub struct StreamedAnswer<M> {
    /// Status of the answer.
    pub status: StatusCode,
    /// Headers beyond those every answer has.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    body: JsonBody,
    media: PhantomData<M>,
}

enum JsonBody {
    Whole(Bytes),
    /// Pieces, in order.
    Pieces(BoxStream<'static, Result<Bytes, std::io::Error>>),
}

impl<M> StreamedAnswer<M> {
    /// Creates an answer with status 200, given the pieces of its body in order. An error among them aborts the
    /// connection, so that the client cannot take a part for the whole.
    pub fn ok(pieces: BoxStream<'static, Result<Bytes, std::io::Error>>) -> Self {
        Self::of(JsonBody::Pieces(pieces))
    }

    /// Creates an answer with status 200 whose body is whole in memory.
    pub fn whole(body: impl Into<Bytes>) -> Self {
        Self::of(JsonBody::Whole(body.into()))
    }

    const fn of(body: JsonBody) -> Self {
        Self {
            status: StatusCode::OK,
            headers: Vec::new(),
            body,
            media: PhantomData,
        }
    }
}

impl<M> fmt::Debug for StreamedAnswer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl<M: BodyMedia> OperationResult for StreamedAnswer<M> {
    const CONTENT_TYPE: &'static str = M::TYPE;

    fn schema() -> Value {
        M::schema()
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        Ok(match self.body {
            JsonBody::Whole(body) => OperationOutput::Whole {
                status: self.status,
                headers: self.headers,
                content_type: M::TYPE,
                body,
            },
            JsonBody::Pieces(body) => OperationOutput::Stream {
                status: self.status,
                headers: self.headers,
                content_type: M::TYPE,
                body,
            },
        })
    }
}

/// File that a browser saves.
pub(crate) struct FileDownload {
    name: String,
    media_type: &'static str,
    body: JsonBody,
}

impl FileDownload {
    /// Creates a file of this name that is whole in memory.
    pub(crate) fn whole(name: &str, media_type: &'static str, bytes: Bytes) -> Self {
        Self::of(name, media_type, JsonBody::Whole(bytes))
    }

    /// Creates a file of this name from its pieces, in order. An error among them aborts the connection, so that the browser
    /// reports the download as failed.
    pub(crate) fn pieces(
        name: &str,
        media_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, std::io::Error>>,
    ) -> Self {
        Self::of(name, media_type, JsonBody::Pieces(pieces))
    }

    fn of(name: &str, media_type: &'static str, body: JsonBody) -> Self {
        Self {
            name: name.to_owned(),
            media_type,
            body,
        }
    }
}

impl fmt::Debug for FileDownload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDownload")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl OperationResult for FileDownload {
    const CONTENT_TYPE: &'static str = OCTET_STREAM;

    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        // A slug and what follows it need no escape in a quoted string (RFC 6266 section 4.1).
        let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{}\"", self.name))
            .map_err(|error| ApiError::internal(format!("name of a file: {error}")))?;
        let (status, headers) = (StatusCode::OK, vec![(header::CONTENT_DISPOSITION, disposition)]);
        let content_type = self.media_type;
        Ok(match self.body {
            JsonBody::Whole(body) => OperationOutput::Whole {
                status,
                headers,
                content_type,
                body,
            },
            JsonBody::Pieces(body) => OperationOutput::Stream {
                status,
                headers,
                content_type,
                body,
            },
        })
    }
}

/// Returns true for a media type that compression makes smaller.
pub(crate) fn shrinks(media_type: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    media_type.starts_with("text/") && media_type != EVENT_STREAM
        || media_type.ends_with("+xml")
        || MEDIA_TYPES.contains(&media_type)
}
