//! The purchase of a knowledge unit.
//!
//! Invariant: the body is that of the version that the payment is bound to, whatever was published since.

use schemars::JsonSchema;
use serde::Deserialize;
use types::UnitId;

use super::purchase::purchase;
use super::{OWNED_HEADERS, base, sent, signed_in};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::error::ApiError;
use crate::ops::knowledge::FullUnit;
use crate::rules::settlement::answers::PaidAnswer;
use crate::rules::settlement::goods;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "buy_knowledge",
            path: "/paid/knowledge",
            summary: "Buys a knowledge unit with a wallet (x402)",
            description: "The payment is the authorization: no account and no key. The wallet then has every version, and \
                          signs in to read it again. Over MCP the payment is `x402/payment` of `_meta`, and the receipt \
                          `x402/payment-response`.",
            headers: OWNED_HEADERS,
            success: &[(200, "The unit; `PAYMENT-RESPONSE` has the receipt.")],
            ..base()
        },
        &[],
        unit,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PaidUnitInput {
    /// Id of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// A payment of version 1.
    payment: Option<Vec<String>>,
    /// A payment of version 2.
    payment_signature: Option<Vec<String>>,
    /// A sign-in of the wallet that bought it.
    sign_in: Option<Vec<String>>,
}

async fn unit(cx: Cx, input: PaidUnitInput) -> Result<PaidAnswer<FullUnit>, ApiError> {
    let goods = goods::unit(&cx, &input.id).await?;
    let header = sent(&cx, input.payment, input.payment_signature)?;
    if signed_in(&cx, &goods, input.sign_in, header.is_some()).await?.is_some() {
        return Ok(PaidAnswer {
            headers: Vec::new(),
            body: full(&cx, goods.bound.unit_version).await?,
        });
    }
    let purchased = purchase(&cx, &goods, header).await?;
    let bound = purchased.payment.bound.unit_version.clone();
    purchased.answer(&cx, &goods, full(&cx, bound)).await
}

/// Returns the version of a unit that is sold.
async fn full(cx: &Cx, version: Option<String>) -> Result<FullUnit, ApiError> {
    let id: Option<UnitId> = version.and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| ApiError::internal("a unit on sale without version"))?;
    let unit = cx.app.store.knowledge().unit(id).await?;
    Ok(FullUnit::of(cx, unit.ok_or_else(ApiError::no_unit)?))
}
