//! Table of operations, and the one dispatcher through which every call goes.
//!
//! Invariants: [`Operations::dispatch`] alone decides if a call is accepted, from the data of its [`Spec`]. A transport
//! reads the table and carries values; it holds no policy.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tracing::Instrument as _;
use tracing::field::Empty;
use types::OperatorId;

use self::meters::Meters;
use crate::answer::{Answer, JSON, Output};
use crate::auth;
use crate::caller::{Door, Incoming};
use crate::cx::Cx;
use crate::entitlement;
use crate::error::ApiError;
use crate::schema::{Bound, InputSchema};
use crate::state::app::App;
use crate::state::limit::{Decision, Source};

mod audit;
mod limits;
mod meters;
mod repeats;
mod spec;

pub use spec::{
    ANYBODY, ANYONE_OR_APP, BodySize, Credential, Effect, Item, KEY, KEY_OPERATOR_OR_APP, KEY_OR_APP, KEY_OR_OPERATOR,
    Limit, OPERATOR, OPTIONAL, PUBLIC, ParamLocation, Rate, SESSION, Scope, Spec, Subject, Surface,
};

/// Input of a call, as a transport read it.
#[derive(Debug)]
pub struct Input {
    /// Members from the path, the query, the headers and the body.
    pub members: Map<String, Value>,
    /// Body as it arrived, if [`Spec::raw_body_member`] replaced a member of it by an outline, or for [`Spec::opaque`].
    pub body: Option<Bytes>,
    /// Violation for which the rest of the request was not read; the members of the path are there.
    pub refused: Option<ApiError>,
    /// Token of the session, as a form carries it.
    pub form_token: Option<String>,
}

impl From<Map<String, Value>> for Input {
    fn from(members: Map<String, Value>) -> Self {
        Self {
            members,
            body: None,
            refused: None,
            form_token: None,
        }
    }
}

type Handler = dyn Fn(Cx, Value) -> BoxFuture<'static, Result<Output, ApiError>> + Send + Sync;
/// Answers for what an earlier call with the same input made, by its name.
type Replay = dyn Fn(Cx, Value, String) -> BoxFuture<'static, Result<Output, ApiError>> + Send + Sync;

/// Returns a function of the table as one that takes any input.
fn handler<I, O, F, Fut>(function: F) -> Box<Handler>
where
    I: DeserializeOwned + Send + 'static,
    O: Answer,
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
    call: Box<Handler>,
    replay: Option<Box<Replay>>,
    meters: Meters,
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
    pub fn add<I, O, F, Fut>(&mut self, spec: Spec, bounds: &[Bound], function: F)
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer,
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
            meters: Meters::default(),
        });
    }

    /// Adds an operation that makes something, and takes the header `Idempotency-Key`. `replay` answers for what an
    /// earlier call with the key and the same input made, as it is now; the store gave it the name.
    pub fn add_making<I, O, F, Fut, R, Replaying>(&mut self, spec: Spec, bounds: &[Bound], function: F, replay: R)
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer,
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
            meters: Meters::default(),
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

    /// Performs one call: rate limit, authentication, permission, schema (after the item's visibility), function,
    /// metrics, log.
    ///
    /// `input` is polled only after the caller is authenticated, so that an unauthorized caller learns nothing of
    /// further errors in the request. It is given the caller's operator, if there is one.
    pub async fn dispatch<R>(
        self: &Arc<Self>,
        app: &Arc<App>,
        operation: &Arc<Operation>,
        incoming: Incoming,
        request_id: &str,
        input: impl FnOnce(Option<OperatorId>) -> R + Send,
    ) -> Result<Output, ApiError>
    where
        R: Future<Output = Result<Input, ApiError>> + Send,
    {
        let started = app.clock.now();
        let name = operation.spec.name;
        let span = tracing::info_span!(
            "request",
            request_id,
            operation = name,
            contribution = Empty,
            dataset = Empty,
            status = Empty
        );
        let answering = self.answer(app, operation, incoming, request_id, input);
        let result = answering.instrument(span.clone()).await;
        // Entered again, so that the line about the answer has the ids of the call.
        let _entered = span.enter();
        let micros = app.clock.now().since(started).as_micros();
        operation.meters.measure(name, micros, &result);
        match &result {
            Ok(output) => {
                let status = output.status().as_u16();
                span.record("status", status);
                tracing::debug!(micros, "a call was answered");
            }
            Err(error) => {
                let (status, code, context) = (error.status().as_u16(), error.machine_code(), error.log_context());
                span.record("status", status);
                if error.status().is_server_error() {
                    tracing::error!(code, micros, context, "a call failed; its caller got a server error");
                } else {
                    tracing::debug!(code, micros, context, "a call was refused");
                }
            }
        }
        result
    }

    async fn answer<R>(
        self: &Arc<Self>,
        app: &Arc<App>,
        operation: &Arc<Operation>,
        incoming: Incoming,
        request_id: &str,
        input: impl FnOnce(Option<OperatorId>) -> R + Send,
    ) -> Result<Output, ApiError>
    where
        R: Future<Output = Result<Input, ApiError>> + Send,
    {
        let spec = &operation.spec;
        let Incoming {
            client,
            presented,
            takes_no_body,
            visit,
            door,
        } = incoming;
        // The rate limit comes first, so that it bounds failed authentications as well.
        if spec.rate == Rate::Call && door == Door::Rest {
            app.admit(client).await?;
        }
        let is_sent = !takes_no_body;
        // A form is a browser's only way to change something, and any site can make a browser send one.
        let form = visit.as_ref().filter(|_| spec.method == Method::POST);
        if let Some(visit) = form {
            visit.check_origin()?;
        }
        let authenticating = auth::authenticate(app, spec, presented, door);
        let caller = authenticating.instrument(tracing::debug_span!("authenticate")).await?;
        // These limits come before the input, so that calls count that are refused for their input.
        limits::count(app, spec, client, caller.as_ref(), None).await?;
        let reading = input(caller.as_ref().map(|caller| caller.operator));
        let Input {
            members,
            body,
            refused,
            form_token,
        } = reading.instrument(tracing::debug_span!("read input")).await?;
        if let (Some(visit), Some(_)) = (form, &caller) {
            visit.check_token(form_token.as_deref())?;
        }
        let mut input = Value::Object(members);
        // A member given as an outline passes: its schema says nothing about the content of its objects. See
        // `rest::input`.
        let checked = refused.map_or_else(|| operation.input.check(&input, spec.immutable), Err);
        if let Err(error) = checked {
            // A caller who may not see the item gets the same answer for every input. A good input needs no look here,
            // since the function looks.
            entitlement::outrank(app, spec.item, caller.as_ref(), app.clock.now(), &input).await?;
            return Err(error);
        }
        limits::count(app, spec, client, caller.as_ref(), Some(&input)).await?;
        let key = repeats::key(operation, app, caller.as_ref(), &mut input)?;
        let mut parts = Arc::clone(app);
        if let Some(key) = &key {
            Arc::make_mut(&mut parts).store = app.store.keyed(key.clone());
        }
        // The entry travels with the store, so that it is written in the transaction of the change and
        // not beside it.
        if spec.audit && spec.effect != Effect::Read {
            let entry = audit::entry(spec, caller.as_ref(), &input, request_id, app.clock.now());
            let parts = Arc::make_mut(&mut parts);
            parts.store = parts.store.audited(entry);
        }
        let cx = Cx {
            app: parts,
            operations: Arc::clone(self),
            caller,
            client,
            request_id: request_id.into(),
            answer_is_sent: is_sent,
            now: app.clock.now(),
            body,
            door,
            visit,
        };
        let reader = cx.reader().filter(|_| spec.egress && is_sent);
        // Only JSON answers are whole in memory. A streamed answer is produced at the pace of its reader and needs no
        // permit.
        let permit = match reader {
            Some(reader) if operation.content_type == JSON => Some(app.process.answers.acquire(reader.operator).await),
            _ => None,
        };
        let mut output = match key {
            Some(key) => repeats::once(operation, cx, input, &key).await?,
            None => (operation.call)(cx, input).await?,
        };
        // A JSON answer is admitted and counted whole, a stream piece by piece before it is sent.
        if let Some(reader) = reader {
            output = app.egress.counted(app, reader, output).await?;
        }
        // The permit is released with the output, after the last byte was sent.
        Ok(match permit {
            Some(permit) => output.holding(permit),
            None => output,
        })
    }
}

/// Returns a status as the value of a metric label.
fn word(status: StatusCode) -> &'static str {
    // A label must be `'static`, so the statuses in use are listed, and any other is `other`.
    const WORDS: [(u16, &str); 27] = [
        (200, "200"),
        (201, "201"),
        (202, "202"),
        (204, "204"),
        (206, "206"),
        (303, "303"),
        (304, "304"),
        (400, "400"),
        (401, "401"),
        (402, "402"),
        (403, "403"),
        (404, "404"),
        (405, "405"),
        (406, "406"),
        (408, "408"),
        (409, "409"),
        (410, "410"),
        (411, "411"),
        (412, "412"),
        (413, "413"),
        (415, "415"),
        (416, "416"),
        (422, "422"),
        (423, "423"),
        (429, "429"),
        (500, "500"),
        (503, "503"),
    ];
    let known = WORDS.iter().find(|(code, _)| *code == status.as_u16());
    known.map_or("other", |(_, word)| word)
}

impl App {
    /// Counts one call of an address. Fails with 429 past the limit.
    pub(crate) async fn admit(&self, client: IpAddr) -> Result<(), ApiError> {
        let source = Source::from(client);
        match self.limiter.take(self.process.calls, source, self.clock.now()).await {
            Decision::Allow => Ok(()),
            Decision::Deny { retry_after: seconds } => {
                let limit = self.limits.calls_per_ip_per_minute;
                Err(ApiError::limited(
                    "rate_limited",
                    format!("more than {limit} calls in a minute from this address"),
                    seconds,
                ))
            }
        }
    }
}
