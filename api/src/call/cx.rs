//! Context of one call, as the functions of the table see it.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use oauth::Resource;
use store::Spender;
use types::trace::Origin;
use types::{AgentId, OperatorId, SessionId, Timestamp, mutate};

use crate::call::caller::{Caller, CallerKind, Transport};
use crate::call::operation::Operations;
use crate::call::spec::Scope;
use crate::call::visit::BrowserRequest;
use crate::error::ApiError;
use crate::state::app::App;
use crate::state::egress::EgressReader;

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
    /// Body as it arrived: strict JSON if a member of the input is an outline of it
    /// ([`raw_body_member`](crate::call::spec::Spec::raw_body_member)), not parsed if the function reads it itself
    /// ([`opaque`](crate::call::spec::Spec::opaque)).
    pub body: Option<Bytes>,
    /// Door that the call came in by.
    pub door: Transport,
    /// Browser that opens a page; `None` for a program.
    pub visit: Option<BrowserRequest>,
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

    /// Returns the calling agent with its app; `None` if a person calls.
    pub(crate) fn spender(&self) -> Option<Spender> {
        self.caller.as_ref().and_then(Caller::spender)
    }

    /// Returns the reader of the answer. The directory server spends nothing, and neither does a page that a person opens.
    pub(crate) fn reader(&self) -> Option<EgressReader> {
        let caller = self.caller.as_ref()?;
        let is_page = self.visit.is_some() && self.door == Transport::Rest;
        let spends = !is_page && self.door != Transport::Mcp(Resource::Directory);
        mutate!(Bug::DirectoryCharged => let spends = true);
        Some(EgressReader {
            operator: caller.operator,
            spender: caller.spender(),
            may_spend: spends && caller.scopes.allow(Scope::Spend),
        })
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

    /// Returns the operator and the session of a person who is signed in.
    pub fn session(&self) -> Option<(OperatorId, SessionId)> {
        let caller = self.caller.as_ref()?;
        match caller.actor {
            CallerKind::SignedIn { session, .. } => Some((caller.operator, session)),
            _ => None,
        }
    }

    /// Returns the browser, for an operation that is a page.
    pub fn the_visit(&self) -> Result<&BrowserRequest, ApiError> {
        self.visit
            .as_ref()
            .ok_or_else(|| ApiError::internal("a page without browser asked for it"))
    }

    /// Returns the name of the agent, for an operation that needs an agent key.
    pub fn agent_name(&self) -> Result<&str, ApiError> {
        match self.caller.as_ref().map(|caller| &caller.actor) {
            Some(CallerKind::Agent { name, .. }) => Ok(name),
            _ => Err(ApiError::internal("an operation without agent asked for its name")),
        }
    }

    /// Returns the agent, for an operation that needs an agent key.
    pub fn the_agent(&self) -> Result<AgentId, ApiError> {
        self.agent()
            .ok_or_else(|| ApiError::internal("an operation without agent asked for its agent"))
    }
}
