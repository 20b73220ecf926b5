//! The purchase of a knowledge unit.
//!
//! Invariant: the body is that of the version that the payment is bound to, whatever was published since.

use schemars::JsonSchema;
use serde::Deserialize;
use types::UnitId;

use super::purchase::purchase;
use super::{base, sent};
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
            description: "The payment is the authorization: no account and no key. The wallet then has every version. Over \
                          MCP the payment is `x402/payment` of `_meta`, and the receipt `x402/payment-response`.",
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
}

async fn unit(cx: Cx, input: PaidUnitInput) -> Result<PaidAnswer<FullUnit>, ApiError> {
    let goods = goods::unit(&cx, &input.id).await?;
    let header = sent(&cx, input.payment, input.payment_signature)?;
    let purchased = purchase(&cx, &goods, header).await?;
    let bound = purchased.payment.bound.unit_version.clone();
    let made = async {
        let id: Option<UnitId> = bound.and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| ApiError::internal("a payment for a unit without version"))?;
        let unit = cx.app.store.knowledge().unit(id).await?;
        Ok(FullUnit::of(&cx, unit.ok_or_else(ApiError::no_unit)?))
    };
    purchased.answer(&cx, made).await
}
