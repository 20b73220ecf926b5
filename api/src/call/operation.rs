//! Table of operations: what each takes, answers and does.
//!
//! Invariant: an operation is in the table once. A transport reads the table and carries values; it holds no policy.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use types::json::LostDigits;

use crate::call::answer::{OperationOutput, OperationResult};
use crate::call::cx::Cx;
use crate::call::meters::OperationMeters;
use crate::call::repeats;
use crate::call::schema::{InputSchema, SchemaBound};
use crate::call::spec::{ParamLocation, Spec};
use crate::codes::ErrorCode;
use crate::error::{ApiError, ErrorDetail};

/// Input of a call, as a transport read it.
#[derive(Debug)]
pub struct CallInput {
    /// Members from the path, the query, the headers and the body.
    pub members: Map<String, Value>,
    /// Body as it arrived, if [`Spec::raw_body_member`] replaced a member of it by an outline, or for [`Spec::opaque`].
    pub body: Option<Bytes>,
    /// Violation for which the rest of the request was not read; the members of the path are there.
    pub refused: Option<ApiError>,
    /// Token of the session, as a form carries it.
    pub form_token: Option<String>,
}

impl From<Map<String, Value>> for CallInput {
    fn from(members: Map<String, Value>) -> Self {
        Self {
            members,
            body: None,
            refused: None,
            form_token: None,
        }
    }
}

impl CallInput {
    /// Reads a JSON text of which every member is one of the input, wherever a request would have it.
    pub(crate) fn of_members(operation: &Operation, text: Bytes) -> Result<Self, ApiError> {
        if text.is_empty() || &text[..] == b"null" {
            return Ok(Map::new().into());
        }
        let outline = operation.spec.raw_body_member;
        let outline = outline.and_then(|member| types::json::outline(&text, member));
        let is_outline = outline.is_some();
        let members = match outline {
            Some(outline) => outline,
            None => match types::json::parse(&text).map_err(malformed)? {
                Value::Object(members) => members,
                _ => return Err(ApiError::invalid("", "must be a JSON object")),
            },
        };
        check_digits(operation, &text)?;
        Ok(Self {
            body: is_outline.then_some(text),
            ..members.into()
        })
    }
}

/// Refuses a body, which is strict JSON, with numbers of which a double drops digits, if the operation says so.
pub(crate) fn check_digits(operation: &Operation, body: &[u8]) -> Result<(), ApiError> {
    if !operation.spec.keeps_digits {
        return Ok(());
    }
    let lost = types::json::check_digits(body);
    if lost.is_empty() {
        return Ok(());
    }
    let details = lost.into_iter().map(|lost| ErrorDetail {
        problem: format!("must be {}, found {}", LostDigits::EXPECTED, lost.found()),
        path: lost.path,
    });
    Err(ApiError::invalid_all(details.collect()).with_code(ErrorCode::Digits))
}

/// Returns the 400 for a body that is not strict JSON.
pub(crate) fn malformed(error: types::json::JsonError) -> ApiError {
    ApiError::invalid(error.path, format!("is not strict JSON: {}", error.problem)).with_code(ErrorCode::MalformedJson)
}

type Handler = dyn Fn(Cx, Value) -> BoxFuture<'static, Result<OperationOutput, ApiError>> + Send + Sync;
/// Answers for what an earlier call with the same input made, by its name.
type Replay = dyn Fn(Cx, Value, String) -> BoxFuture<'static, Result<OperationOutput, ApiError>> + Send + Sync;

/// Returns a function of the table as one that takes any input.
fn handler<I, O, F, Fut>(function: F) -> Box<Handler>
where
    I: DeserializeOwned + Send + 'static,
    O: OperationResult,
    F: Fn(Cx, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
{
    let function = Arc::new(function);
    Box::new(move |cx, input| {
        let function = Arc::clone(&function);
        async move { function(cx, read(input)?).await?.into_output() }.boxed()
    })
}

/// Reads an input that its schema has accepted.
fn read<I: DeserializeOwned>(input: Value) -> Result<I, ApiError> {
    // A value that the type still refuses, such as a number that overflows it, is an error of the caller, so it is no
    // internal error.
    serde_json::from_value(input).map_err(|error| ApiError::invalid("", format!("is out of range: {error}")))
}

/// One entry of the table: an operation with its schemas and its function.
pub struct Operation {
    /// Description of the operation.
    pub spec: Spec,
    /// JSON schema of the input.
    pub input: InputSchema,
    /// JSON schema of the answer.
    pub output: Value,
    /// Generates that schema with its types by name.
    pub named_output: fn() -> Value,
    /// Media type of the answer.
    pub content_type: &'static str,
    pub(crate) call: Box<Handler>,
    pub(crate) replay: Option<Box<Replay>>,
    pub(crate) meters: OperationMeters,
}

impl Operation {
    /// Returns true if the operation makes something, and takes an idempotency key for that.
    pub const fn takes_key(&self) -> bool {
        self.replay.is_some()
    }

    /// Returns true if a member of the input is in the body.
    pub fn has_body(&self) -> bool {
        self.input
            .properties()
            .any(|(name, _)| self.spec.location_of(name) == ParamLocation::Body)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// The table of operations, in reading order.
#[derive(Debug, Default)]
pub struct Operations {
    entries: Vec<Arc<Operation>>,
    by_name: HashMap<&'static str, usize>,
}

impl Operations {
    /// Adds an operation: the only place where a name, a route, a permission and a function meet. `bounds` puts limits
    /// of the configuration into the input schema. A name that is taken replaces its operation.
    pub fn add<I, O, F, Fut>(&mut self, spec: Spec, bounds: &[SchemaBound], function: F)
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: OperationResult,
        F: Fn(Cx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        self.insert(Operation {
            spec,
            input: InputSchema::of::<I>(bounds),
            output: O::schema(),
            named_output: O::named,
            content_type: O::CONTENT_TYPE,
            call: handler(function),
            replay: None,
            meters: OperationMeters::default(),
        });
    }

    /// Adds an operation that makes something, and takes the header `Idempotency-Key`. `replay` answers for what an
    /// earlier call with the key and the same input made, as it is now; the store gave it the name.
    pub fn add_making<I, O, F, Fut, R, Replaying>(&mut self, spec: Spec, bounds: &[SchemaBound], function: F, replay: R)
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: OperationResult,
        F: Fn(Cx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
        R: Fn(Cx, I, String) -> Replaying + Send + Sync + 'static,
        Replaying: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let replay = Arc::new(replay);
        let replay: Box<Replay> = Box::new(move |cx, input, made| {
            let replay = Arc::clone(&replay);
            async move { repeats::marked(replay(cx, read(input)?, made).await?.into_output()?) }.boxed()
        });
        self.insert(Operation {
            spec: Spec {
                headers: repeats::HEADERS,
                ..spec
            },
            input: InputSchema::with::<I>(bounds, Some(repeats::member())),
            output: repeats::marked_schema(O::schema()),
            named_output: || repeats::marked_named(O::named()),
            content_type: O::CONTENT_TYPE,
            call: handler(function),
            replay: Some(replay),
            meters: OperationMeters::default(),
        });
    }

    fn insert(&mut self, operation: Operation) {
        let name = operation.spec.name;
        let operation = Arc::new(operation);
        // The replacement keeps the position, so that the published description stays in reading order.
        if let Some(&index) = self.by_name.get(name) {
            self.entries[index] = operation;
        } else {
            self.by_name.insert(name, self.entries.len());
            self.entries.push(operation);
        }
    }

    /// Iterates over every operation in reading order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.entries.iter()
    }

    /// Returns the operation of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Operation>> {
        self.by_name.get(name).map(|&index| &self.entries[index])
    }
}
