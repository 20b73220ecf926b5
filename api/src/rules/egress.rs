//! Egress: bytes that may be sent to a reader, free or paid.
//!
//! Invariant: bytes are taken from a lease before they are sent, and a lease is within the free bytes or paid, so
//! nobody goes into debt. A process takes 16 MiB at a time, so most answers write nothing to the database.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use futures_util::stream::StreamExt as _;
use serde_json::{Map, Value, json};
use store::{EgressLease, EgressLeased, SpendCapped};
use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, Timestamp, mutate};

use crate::call::answer::OperationOutput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::spending;
use crate::state::app::App;
use crate::state::egress::{AdmittedBytes, EgressLeases, EgressMeter, EgressReader, account};

/// Bytes of a lease, unless an answer is larger.
const LEASE: u64 = 16 << 20;

impl EgressMeter {
    /// Makes sure that bytes may be sent to a reader.
    ///
    /// # Errors
    /// 402 if its egress of the month is used up and credits do not pay for more, 429 if that of the service is.
    pub(crate) async fn admit(
        &self,
        app: &App,
        reader: EgressReader,
        at: Timestamp,
        bytes: u64,
    ) -> Result<(), ApiError> {
        admit(self.leases(), app, reader, bytes, at).await
    }

    /// Makes sure that a body of known size may be sent.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub(crate) async fn admit_body(
        &self,
        app: &App,
        reader: EgressReader,
        at: Timestamp,
        bytes: u64,
    ) -> Result<AdmittedBytes, ApiError> {
        self.admit(app, reader, at, bytes).await?;
        Ok(AdmittedBytes::new(
            Arc::clone(self.leases()),
            reader.operator,
            at,
            bytes,
        ))
    }

    /// Admits and counts an answer: a JSON answer whole, a stream piece by piece before it is sent. A stream whose next
    /// piece is not admitted ends with an error, so that no client takes it for complete.
    pub(crate) async fn counted(
        &self,
        app: &Arc<App>,
        reader: EgressReader,
        output: OperationOutput,
    ) -> Result<OperationOutput, ApiError> {
        match output {
            // The whole answer is in memory, so it is admitted or refused before a byte of it is sent.
            OperationOutput::Whole { ref body, .. } => {
                let (at, bytes) = (app.clock.now(), body.len() as u64);
                self.admit(app, reader, at, bytes).await?;
                self.sent(&reader, at, bytes);
                Ok(output)
            }
            OperationOutput::Stream {
                status,
                headers,
                content_type,
                body,
            } => {
                // A caller may leave in the middle, so each piece counts when it is sent, for the month in which it is.
                let (egress, app) = (self.clone(), Arc::clone(app));
                let body = body.and_then(move |piece| {
                    let (egress, app) = (egress.clone(), Arc::clone(&app));
                    async move {
                        egress.admit_piece(&app, reader, piece.len() as u64).await?;
                        Ok(piece)
                    }
                });
                Ok(OperationOutput::Stream {
                    status,
                    headers,
                    content_type,
                    body: body.boxed(),
                })
            }
        }
    }

    /// Admits and counts a piece of an answer that has begun.
    async fn admit_piece(&self, app: &App, reader: EgressReader, bytes: u64) -> Result<(), std::io::Error> {
        let at = app.clock.now();
        self.admit(app, reader, at, bytes)
            .await
            .map_err(|error| std::io::Error::other(error.message().to_owned()))?;
        self.sent(&reader, at, bytes);
        Ok(())
    }
}

/// Makes sure that `bytes` may be sent to a reader: takes them from its lease, or leases more.
async fn admit(
    leases: &EgressLeases,
    app: &App,
    reader: EgressReader,
    bytes: u64,
    now: Timestamp,
) -> Result<(), ApiError> {
    let taken = leases.take(reader.operator, bytes, now);
    let missing = bytes - taken;
    mutate!(Bug::SendsUnleased => let missing = 0);
    if missing == 0 {
        return Ok(());
    }
    // A credential without the permission to spend gets what is free and no more.
    let payer = reader.may_spend.then_some(reader.operator);
    // An answer that is larger than a lease is leased whole before its first byte: half of it is of
    // no use.
    let whole = missing.max(LEASE);
    // A whole lease for nothing, then just these bytes for nothing, then the same for credits.
    let tries = [(whole, None), (missing, None), (whole, payer), (missing, payer)];
    let mut refused = None;
    for (number, (size, payer)) in tries.into_iter().enumerate() {
        // For a large answer, or without a payer, tries are equal and their result is known.
        let repeats = tries[..number].contains(&(size, payer));
        if repeats {
            continue;
        }
        match lease(app, reader, size, payer, now).await {
            Ok(EgressLeased::Leased) => {
                leases.put(reader.operator, size - missing, now);
                return Ok(());
            }
            Ok(other) => refused = Some(other),
            Err(error) => {
                leases.put(reader.operator, taken, now);
                return Err(error);
            }
        }
    }
    // The bytes that were taken from the lease were not sent.
    leases.put(reader.operator, taken, now);
    match refused {
        Some(EgressLeased::Short { need, balance }) => Err(exceeded(app, reader.operator, need, balance, now).await?),
        Some(EgressLeased::Capped { need, capped }) => Err(beyond_cap(app, reader.operator, need, &capped, now).await?),
        _ => Err(platform_full(now)),
    }
}

async fn lease(
    app: &App,
    reader: EgressReader,
    bytes: u64,
    payer: Option<OperatorId>,
    now: Timestamp,
) -> Result<EgressLeased, ApiError> {
    let tariff = &app.pay;
    let lease = EgressLease {
        account: account(reader.operator),
        month: now.month(),
        bytes,
        free: tariff.free_egress_bytes,
        platform: tariff.platform_egress_bytes,
        payer,
        asset: tariff.asset.clone(),
        block: tariff.egress_block,
        event: LedgerEventId::new(now),
        spender: reader.spender,
        now,
    };
    Ok(app.store.money().egress_lease(lease).await?)
}

/// Returns the error for a reader whose egress is used up.
async fn exceeded(
    app: &App,
    operator: OperatorId,
    need: MicroUsdc,
    balance: MicroUsdc,
    now: Timestamp,
) -> Result<ApiError, ApiError> {
    let used = app.store.egress(operator, now.month()).await?;
    let (_, blocks) = app.store.money().egress_month(&account(operator), now.month()).await?;
    let allowed = app
        .pay
        .free_egress_bytes
        .saturating_add(blocks.saturating_mul(pay::BLOCK_BYTES));
    let message = format!("the egress of the month is used up, and credits do not pay ${need} for more");
    Ok(ApiError::new(ErrorCode::EgressQuota, message)
        .field(
            "quota",
            json!({"egress": {"used": used, "allowed": allowed, "resetsAt": now.next_month().to_string()}}),
        )
        .field(
            "credits",
            json!({
                "needMicro": need.0,
                "balanceMicro": balance.0,
                "topUp": app.config.top_up(operator),
            }),
        ))
}

/// Returns the error for a reader whose agent or app may not pay for more.
async fn beyond_cap(
    app: &App,
    operator: OperatorId,
    need: MicroUsdc,
    capped: &SpendCapped,
    now: Timestamp,
) -> Result<ApiError, ApiError> {
    let balances = app.store.money().balances(&app.pay.asset, operator).await?;
    let error = exceeded(app, operator, need, balances.credits, now).await?;
    let cap: Map<String, Value> = spending::members(capped)
        .into_iter()
        .map(|(member, value)| (member.to_owned(), value))
        .collect();
    let message = format!(
        "the egress of the month is used up, more costs ${need}, and {}",
        spending::sentence(capped)
    );
    Ok(error.with_message(message).field("cap", cap))
}

/// Returns the error for a month in which the service sends no more.
fn platform_full(now: Timestamp) -> ApiError {
    let (reset, message) = (now.next_month(), "the service sends no more this month");
    ApiError::limited(ErrorCode::PlatformCapacity, message, reset.since(now).as_secs())
        .field("resetAt", reset.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Service;

    #[tokio::test]
    async fn an_answer_that_fails_takes_nothing_of_the_lease() {
        let service = Service::start().await;
        let (leases, now) = (EgressLeases::default(), service.app.clock.now());
        let reader = EgressReader {
            operator: OperatorId::new(now),
            spender: None,
            may_spend: false,
        };
        leases.put(reader.operator, 10, now);
        service.app.store.close().await;
        assert!(admit(&leases, &service.app, reader, 20, now).await.is_err());
        assert_eq!(leases.take(reader.operator, 20, now), 10);
    }
}
