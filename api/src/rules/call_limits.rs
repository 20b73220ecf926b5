//! Limits that an operation declares, counted per address, caller, operator or member of the input.
//!
//! Invariant: a call counts once toward each of its limits, also if it is refused afterwards.

use std::net::IpAddr;

use serde_json::Value;

use crate::call::caller::Caller;
use crate::call::spec::{CallLimit, LimitSubject, Spec};
use crate::error::ApiError;
use crate::state::app::App;
use crate::state::limit::{LimitDecision, LimitSource, RateRule};

/// Counts a call toward the limits whose subject is known: those of the input if there is one, otherwise the others.
/// Fails with 429 at the first limit that is reached.
pub(crate) async fn count(
    app: &App,
    spec: &Spec,
    client: IpAddr,
    caller: Option<&Caller>,
    input: Option<&Value>,
) -> Result<(), ApiError> {
    for limit in spec.limits {
        let source = match (limit.subject, input) {
            (LimitSubject::Member(member), Some(input)) => {
                // The case of a mailbox has no meaning in practice, and would multiply the limit.
                input[member].as_str().map(|text| named(limit, &text.to_lowercase()))
            }
            (LimitSubject::Address, None) => Some(LimitSource::from(client)),
            (LimitSubject::Caller, None) => caller.map(|caller| match caller.agent() {
                // Each agent has its own count, so that one cannot use up the limit of another.
                Some(agent) => named(limit, &agent.to_string()),
                None => named(limit, &caller.operator.to_string()),
            }),
            (LimitSubject::Operator, None) => caller.map(|caller| named(limit, &caller.operator.to_string())),
            (LimitSubject::Member(_), None) | (_, Some(_)) => None,
        };
        if let Some(source) = source {
            take(app, limit, source).await?;
        }
    }
    Ok(())
}

impl App {
    /// Counts one call of an address. Fails with 429 past the limit.
    pub(crate) async fn admit(&self, client: IpAddr) -> Result<(), ApiError> {
        let source = LimitSource::from(client);
        match self.limiter.take(self.process.calls, source, self.clock.now()).await {
            LimitDecision::Allow => Ok(()),
            LimitDecision::Deny { retry_after: seconds } => {
                let limit = self.limits.calls_per_ip_per_minute.get();
                Err(ApiError::rate_limited(
                    format!("more than {limit} calls in a minute from this address"),
                    seconds,
                ))
            }
        }
    }
}

impl CallLimit {
    /// Counts an event of an address, for an operation of which only some calls count.
    ///
    /// # Errors
    /// 429 if the limit is reached.
    pub(crate) async fn take(&self, app: &App, client: IpAddr) -> Result<(), ApiError> {
        take(app, self, LimitSource::from(client)).await
    }
}

fn named(limit: &CallLimit, text: &str) -> LimitSource {
    LimitSource::named(limit.name, text)
}

async fn take(app: &App, limit: &CallLimit, source: LimitSource) -> Result<(), ApiError> {
    let rule = RateRule {
        name: limit.name,
        limit: (limit.most)(&app.limits),
        window: limit.window,
    };
    match app.limiter.take(rule, source, app.clock.now()).await {
        LimitDecision::Allow => Ok(()),
        LimitDecision::Deny { retry_after: seconds } => {
            let message = format!("more than {} {}", rule.limit, limit.counted);
            Err(ApiError::limited(limit.code, message, seconds))
        }
    }
}
