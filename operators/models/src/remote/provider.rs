//! The way to a provider: tries, waits, the circuit and the budget.
//!
//! Invariant: every request was paid from the budget before it was sent, and every failure says when to ask again.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use operators::screen::{Cause, Unavailable};
use parking_lot::Mutex;
use serde_json::Value;
use types::{Backoff, Clock, Timestamp, jittered};

use super::budget::{ReservedTokens, TokenBudget};
use super::circuit::Circuit;

/// Tries of a request.
const MAX_REQUEST_TRIES: u32 = 3;
/// The longest `Retry-After` that is waited for. A longer one holds.
const LONGEST_ASKED: Duration = Duration::from_secs(20);
/// The longest wait that a provider can ask for.
const LONGEST_HOLD: Duration = Duration::from_hours(6);
/// Bytes of a request that count as one token.
const BYTES_PER_TOKEN: u64 = 3;

/// The answer of a provider.
#[derive(Clone, Debug)]
pub struct ProviderReply {
    /// Status code of the HTTP answer.
    pub status: u16,
    /// Wait that the provider asks for.
    pub retry_after: Option<Duration>,
    /// Whole body of the HTTP answer.
    pub body: Bytes,
}

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoReply(pub String);

/// Sends requests to a provider. Object safe.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Posts JSON to a path below the provider's address once, and returns the whole answer of at most `most` bytes.
    async fn post(&self, path: &str, body: Bytes, most: u64) -> Result<ProviderReply, NoReply>;
}

/// Waits of a [`Provider`].
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Wait before the second try of a request; it doubles.
    pub retry_first: Duration,
    /// Wait after failures in a row, and its most.
    pub hold: Backoff,
}

/// A provider of models.
#[derive(Debug)]
pub struct Provider {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    budget: Option<TokenBudget>,
    waits: Waits,
    circuit: Mutex<Circuit>,
}

/// The reason for which a request has no answer that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderFailure {
    /// The provider cannot be asked now.
    Unavailable(Unavailable),
    /// The provider refuses this request (400, 413, 422).
    Refused,
}

/// Request to a path of the provider, with limits on the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProviderRequest<'a> {
    pub(super) path: &'static str,
    pub(super) body: &'a Value,
    /// The most tokens of the answer.
    pub(super) answer_tokens: u64,
    /// The most bytes of the answer.
    pub(super) answer_bytes: u64,
}

/// The sort of an answer.
enum Sort {
    Answer,
    Refused,
    /// Failure that may pass by trying again.
    Passing,
    /// It does not pass by trying again.
    Lasting,
}

impl Provider {
    /// Creates a provider. Without a budget nothing limits what is spent.
    pub fn new(
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        budget: Option<TokenBudget>,
        waits: Waits,
    ) -> Self {
        Self {
            transport,
            clock,
            budget,
            waits,
            circuit: Mutex::default(),
        }
    }

    /// Returns the hold after answers that cannot be used. `answers_others` makes it one of this text only.
    pub(super) fn unusable(&self, answers_others: bool) -> Unavailable {
        let reason = if answers_others { Cause::Text } else { Cause::Provider };
        Unavailable {
            reason,
            resumes_after: Some(self.clock.now().plus(self.waits.hold.most)),
        }
    }

    /// Sends a request, again where that can help, and returns the bytes of the answer.
    pub(super) async fn ask(&self, request: ProviderRequest<'_>) -> Result<Bytes, ProviderFailure> {
        // Only before the first try: all tries of a request count as one failure, or as one answer.
        if let Some(until) = self.circuit.lock().waits(self.clock.now()) {
            return Err(held(until));
        }
        let body = Bytes::from(request.body.to_string());
        let mut asked = None;
        for attempt in 0..MAX_REQUEST_TRIES {
            if attempt > 0 {
                let wait = asked.take().unwrap_or_else(|| {
                    // Half to one and a half of the wait.
                    let doubled = self.waits.retry_first.saturating_mul(1 << (attempt - 1));
                    jittered(doubled.saturating_mul(3)) / 2
                });
                tokio::time::sleep(wait).await;
            }
            // Reserved for each try, since a provider bills every request that it received.
            let reserved = self.reserve(&body, request.answer_tokens).await?;
            let posted = self
                .transport
                .post(request.path, body.clone(), request.answer_bytes)
                .await;
            let reply = match posted {
                Ok(reply) => reply,
                Err(error) => {
                    // The provider may have answered a closed connection, so the tokens count as spent.
                    tracing::debug!(%error, path = request.path, "the provider of models did not answer");
                    continue;
                }
            };
            match sort(reply.status) {
                Sort::Answer => {
                    // Without a figure the reservation stands, which is the most that the request can
                    // have cost.
                    self.settle(reserved, spent(&reply.body)).await;
                    self.circuit.lock().succeeded();
                    return Ok(reply.body);
                }
                Sort::Refused => {
                    self.settle(reserved, Some(0)).await;
                    return Err(ProviderFailure::Refused);
                }
                Sort::Passing => {
                    self.settle(reserved, Some(0)).await;
                    asked = reply.retry_after;
                    if asked.is_some_and(|asked| asked > LONGEST_ASKED) {
                        break;
                    }
                }
                Sort::Lasting => {
                    self.settle(reserved, Some(0)).await;
                    tracing::error!(
                        status = reply.status,
                        path = request.path,
                        "the provider of models refuses this service; what needs it waits"
                    );
                    break;
                }
            }
        }
        let now = self.clock.now();
        let asked = asked
            .filter(|asked| *asked > LONGEST_ASKED)
            // Bounded: a header of years must not switch the reviews off for ever.
            .map(|asked| asked.min(LONGEST_HOLD));
        let until = self.circuit.lock().failed(now, self.waits.hold, asked);
        tracing::warn!(
            path = request.path,
            until = %until,
            "the provider of models gives no answer; what needs it waits"
        );
        Err(held(until))
    }

    async fn reserve(&self, body: &Bytes, answer: u64) -> Result<Option<ReservedTokens>, ProviderFailure> {
        let Some(budget) = &self.budget else { return Ok(None) };
        let tokens = (body.len() as u64).div_ceil(BYTES_PER_TOKEN) + answer;
        let reserved = budget.reserve(self.clock.now(), tokens).await;
        reserved.map(Some).map_err(ProviderFailure::Unavailable)
    }

    async fn settle(&self, reserved: Option<ReservedTokens>, spent: Option<u64>) {
        if let (Some(budget), Some(reserved), Some(spent)) = (&self.budget, reserved, spent) {
            budget.settle(reserved, spent).await;
        }
    }
}

fn held(until: Timestamp) -> ProviderFailure {
    ProviderFailure::Unavailable(Unavailable {
        reason: Cause::Provider,
        resumes_after: Some(until),
    })
}

const fn sort(status: u16) -> Sort {
    match status {
        200 => Sort::Answer,
        // The request itself is at fault, so it neither counts for the circuit nor is sent again.
        400 | 413 | 422 => Sort::Refused,
        // The statuses that the clients of the API's authors try again, and 425 (RFC 8470).
        408 | 409 | 425 | 429 | 500..=599 => Sort::Passing,
        _ => Sort::Lasting,
    }
}

/// Returns the tokens that an answer says were spent, or `None` if it does not say so.
fn spent(body: &Bytes) -> Option<u64> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    answer["usage"]["total_tokens"].as_u64()
}
