//! The one dispatcher through which every call goes.
//!
//! Invariant: [`Operations::dispatch`] alone decides if a call is accepted, from the data of its
//! [`Spec`](crate::call::spec::Spec).

mod audit;
mod repeats;

use std::sync::Arc;

use http::Method;
use serde_json::Value;
use tracing::Instrument as _;
use tracing::field::Empty;
use types::OperatorId;

use crate::call::answer::{JSON, OperationOutput};
use crate::call::caller::{CallOrigin, Transport};
use crate::call::cx::Cx;
use crate::call::operation::{CallInput, Operation, Operations};
use crate::call::spec::{CallRate, Effect};
use crate::error::ApiError;
use crate::rules::auth;
use crate::rules::call_limits;
use crate::rules::entitlement;
use crate::state::app::App;

impl Operations {
    /// Performs one call: rate limit, authentication, permission, schema (after the item's visibility), function,
    /// metrics, log.
    ///
    /// `input` is polled only after the caller is authenticated, so that an unauthorized caller learns nothing of
    /// further errors in the request. It is given the caller's operator, if there is one.
    pub async fn dispatch<R>(
        self: &Arc<Self>,
        app: &Arc<App>,
        operation: &Arc<Operation>,
        incoming: CallOrigin,
        request_id: &str,
        input: impl FnOnce(Option<OperatorId>) -> R + Send,
    ) -> Result<OperationOutput, ApiError>
    where
        R: Future<Output = Result<CallInput, ApiError>> + Send,
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
        incoming: CallOrigin,
        request_id: &str,
        input: impl FnOnce(Option<OperatorId>) -> R + Send,
    ) -> Result<OperationOutput, ApiError>
    where
        R: Future<Output = Result<CallInput, ApiError>> + Send,
    {
        let spec = &operation.spec;
        let CallOrigin {
            client,
            presented,
            takes_no_body,
            visit,
            door,
        } = incoming;
        // The rate limit comes first, so that it bounds failed authentications as well.
        if spec.rate == CallRate::Call && door == Transport::Rest {
            app.admit(client).await?;
        }
        let is_sent = !takes_no_body;
        // A form is a browser's only way to change something, and any site can make a browser send one.
        let is_form = spec.method == Method::POST || matches!(door, Transport::Console(_));
        let form = visit.as_ref().filter(|_| is_form);
        if let Some(visit) = form {
            visit.check_origin(spec.names_origin)?;
        }
        let authenticating = auth::authenticate(app, spec, presented, door);
        let mut caller = authenticating.instrument(tracing::debug_span!("authenticate")).await?;
        // These limits come before the input, so that calls count that are refused for their input.
        call_limits::count(app, spec, client, caller.as_ref(), None).await?;
        let place = match &caller {
            Some(caller) if spec.alone => Some(app.process.files.place(caller.operator)?),
            _ => None,
        };
        let reading = input(caller.as_ref().map(|caller| caller.operator));
        let CallInput {
            members,
            body,
            refused,
            form_token,
        } = reading.instrument(tracing::debug_span!("read input")).await?;
        if let Some(visit) = form.filter(|_| caller.is_some()) {
            match visit.check_token(form_token.as_deref()) {
                // The function cannot change anything without a caller, and keeps what was typed.
                Err(_) if spec.keeps_form => caller = None,
                checked => checked?,
            }
        }
        let mut input = Value::Object(members);
        // A member given as an outline passes: its schema says nothing about the content of its objects. See
        // `rest::input`.
        let checked = refused.map_or_else(|| operation.input.check(&input, spec.immutable), Err);
        if let Err(error) = checked {
            // A caller who may not see the item gets the same answer for every input. A good input needs no look here,
            // since the function looks.
            entitlement::check_access_before_input(app, spec.item, caller.as_ref(), app.clock.now(), &input).await?;
            return Err(error);
        }
        call_limits::count(app, spec, client, caller.as_ref(), Some(&input)).await?;
        let key = repeats::key(operation, app, caller.as_ref(), &mut input)?;
        let mut parts = Arc::clone(app);
        if let Some(key) = &key {
            Arc::make_mut(&mut parts).store = app.store.keyed(key.clone());
        }
        // The entry travels with the store, so that it is written in the transaction of the change and
        // not beside it.
        if spec.audit && spec.effect != Effect::Read {
            let entry = audit::entry(spec, door, caller.as_ref(), &input, request_id, app.clock.now());
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
        // The permits are released with the output, after the last byte was sent.
        Ok([permit, place]
            .into_iter()
            .flatten()
            .fold(output, OperationOutput::holding))
    }
}
