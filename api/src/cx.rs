//! What a function of the table sees of its call.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use store::Principal;
use types::trace::Origin;
use types::{AgentId, OperatorId, Timestamp};

use crate::app::App;
use crate::error::ApiError;
use crate::operation::Operations;

/// The context of one call, after authentication.
#[derive(Clone, Debug)]
pub struct Cx {
    /// The planes below.
    pub app: App,
    /// The table the operation is in.
    pub operations: Arc<Operations>,
    /// Who calls; `None` without a credential, where the operation allows that.
    pub caller: Option<Principal>,
    /// Where the call comes from.
    pub client: IpAddr,
    /// Id of the request.
    pub request_id: Arc<str>,
    /// The instant the call is answered as of.
    pub now: Timestamp,
    /// Whether the body of the answer is sent.
    pub answer_is_sent: bool,
    /// The body as it came, strict JSON, where a member of the input is only an outline of what it says.
    pub body: Option<Bytes>,
}

impl Cx {
    /// The operator the caller is or belongs to.
    pub fn operator(&self) -> Option<OperatorId> {
        self.caller.as_ref().map(Principal::operator)
    }

    /// The agent the caller is.
    pub fn agent(&self) -> Option<AgentId> {
        match self.caller {
            Some(Principal::Agent { agent, .. }) => Some(agent),
            Some(Principal::Operator { .. }) | None => None,
        }
    }

    /// Origin of the messages that the call sends.
    pub fn origin(&self) -> Origin {
        Origin::of_current(&self.request_id, &*self.app.propagator)
    }

    /// The operator, for an operation that needs a credential.
    pub fn the_operator(&self) -> Result<OperatorId, ApiError> {
        self.operator()
            .ok_or_else(|| ApiError::internal("an operation without caller asked for its operator"))
    }

    /// The agent, for an operation that needs an agent key.
    pub fn the_agent(&self) -> Result<AgentId, ApiError> {
        self.agent()
            .ok_or_else(|| ApiError::internal("an operation without agent asked for its agent"))
    }
}
