//! A facilitator by URL: `/supported`, `/verify` and `/settle` over HTTP.
//!
//! Invariants:
//! - The JSON of an answer is judged, not its status. A redirect is not followed.
//! - A settlement whose request may have arrived and whose answer cannot be read is not known.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use outbound::{GetRequest, OutboundClient, RequestLimits};
use serde::Deserialize;

use super::facilitator::{SettleAnswer, SettlementOrder, VerifyAnswer, judge, shortened};
use super::{Facilitator, PaymentAsset, PaymentVerdict, SettledKind, Settlement, UnusableAnswer};

/// Time for an answer to `/supported` and `/verify`.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for an answer to `/settle`, which waits for the chain.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
const MAX_ANSWER: u64 = 64 << 10;

/// A facilitator by URL.
#[derive(Debug)]
pub struct RemoteFacilitator {
    client: Arc<OutboundClient>,
    url: String,
    asset: PaymentAsset,
}

/// Answer of a facilitator at `/supported`.
#[derive(Deserialize)]
struct SupportedAnswer {
    kinds: Vec<SupportedKind>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SupportedKind {
    x402_version: u64,
    scheme: String,
    network: String,
}

impl RemoteFacilitator {
    /// Creates the client of the facilitator at `url`, to which the paths are added.
    pub fn new(client: Arc<OutboundClient>, url: &str, asset: PaymentAsset) -> Self {
        Self {
            client,
            // The paths bring their own slash, and a doubled one is another path to many servers.
            url: url.trim_end_matches('/').to_owned(),
            asset,
        }
    }

    async fn post(&self, path: &str, order: &SettlementOrder, whole: Duration) -> Result<Bytes, UnusableAnswer> {
        let limits = RequestLimits {
            whole,
            ..RequestLimits::of_body(MAX_ANSWER)
        };
        let body = order.body().to_string();
        let url = format!("{}{path}", self.url);
        let answer = self.client.post_json(&url, body.into(), limits).await?;
        Ok(answer.bytes().await?)
    }
}

fn unreadable() -> UnusableAnswer {
    UnusableAnswer {
        reason: "the answer is not of the protocol".to_owned(),
        is_unsent: false,
    }
}

#[async_trait]
impl Facilitator for RemoteFacilitator {
    async fn supported(&self) -> Result<Vec<SettledKind>, UnusableAnswer> {
        let limits = RequestLimits {
            whole: VERIFY_TIMEOUT,
            ..RequestLimits::of_body(MAX_ANSWER)
        };
        let url = format!("{}/supported", self.url);
        let request = GetRequest::new(&url, limits);
        let answer = self.client.get(&request).await?;
        let bytes = answer.bytes().await?;
        let supported: SupportedAnswer = serde_json::from_slice(&bytes).map_err(|_error| unreadable())?;
        let kinds = supported.kinds.into_iter().map(|kind| SettledKind {
            version: kind.x402_version,
            scheme: kind.scheme,
            network: kind.network,
        });
        Ok(kinds.collect())
    }

    async fn verify(&self, order: &SettlementOrder) -> Result<PaymentVerdict, UnusableAnswer> {
        let bytes = self.post("/verify", order, VERIFY_TIMEOUT).await?;
        let answer: VerifyAnswer = serde_json::from_slice(&bytes).map_err(|_error| unreadable())?;
        Ok(if answer.is_valid {
            PaymentVerdict::Valid
        } else {
            PaymentVerdict::Invalid(shortened(answer.invalid_reason.as_deref().unwrap_or("no_reason")))
        })
    }

    async fn settle(&self, order: &SettlementOrder) -> Settlement {
        let bytes = match self.post("/settle", order, SETTLE_TIMEOUT).await {
            Ok(bytes) => bytes,
            // Only a request that did not leave proves that nothing was settled. Every later failure
            // may have lost the answer to a payment that was made.
            Err(failed) if failed.is_unsent => return Settlement::NotSent(failed.reason),
            Err(failed) => return Settlement::unknown(failed.reason),
        };
        match serde_json::from_slice::<SettleAnswer>(&bytes) {
            Ok(answer) => judge(&answer, order.protocol, &order.expected, &self.asset),
            Err(_error) => Settlement::unknown(unreadable().reason),
        }
    }
}
