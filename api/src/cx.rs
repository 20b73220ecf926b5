//! Context of one call, as the functions of the table see it.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use types::trace::Origin;
use types::{AgentId, OperatorId, Timestamp};

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::operation::Operations;

/// Context of one call, after authentication.
#[derive(Clone, Debug)]
pub struct Cx {
    /// Dependencies of the operation.
    pub app: Arc<App>,
    /// Table that contains the operation.
    pub operations: Arc<Operations>,
    /// Authenticated caller; `None` without a credential, where the operation allows that.
    pub caller: Option<Caller>,
    /// Address of the client.
    pub client: IpAddr,
    /// Id of the request.
    pub request_id: Arc<str>,
    /// Time of the call, read once after its input was read.
    pub now: Timestamp,
    /// False if the client gets no body, as with HEAD. Such an answer counts as no egress.
    pub answer_is_sent: bool,
    /// Body as it arrived, strict JSON, if a member of the input is an outline of it (see
    /// [`Spec::outlined`](crate::operation::Spec)).
    pub body: Option<Bytes>,
}

impl Cx {
    /// Returns the caller's operator: itself, or the owner of the agent.
    pub fn operator(&self) -> Option<OperatorId> {
        self.caller.as_ref().map(|caller| caller.operator)
    }

    /// Returns the calling agent; `None` if a person calls.
    pub fn agent(&self) -> Option<AgentId> {
        self.caller.as_ref().and_then(Caller::agent)
    }

    /// Origin of the messages that the call sends.
    pub fn origin(&self) -> Origin {
        Origin::of_current(&self.request_id, &*self.app.propagator)
    }

    /// Returns the operator, for an operation that needs a credential.
    pub fn the_operator(&self) -> Result<OperatorId, ApiError> {
        self.operator()
            // The dispatcher refuses such a call before, so only a wrong entry of the table leads here.
            .ok_or_else(|| ApiError::internal("an operation without caller asked for its operator"))
    }

    /// Returns the agent, for an operation that needs an agent key.
    pub fn the_agent(&self) -> Result<AgentId, ApiError> {
        self.agent()
            .ok_or_else(|| ApiError::internal("an operation without agent asked for its agent"))
    }
}
