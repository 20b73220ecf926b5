//! Operations that are paid by x402: a unit, a version of a dataset, a pack of credits.
//!
//! Invariants:
//! - Checks come in one order: query, item, header, form, terms, signature, then the authorization as it is known, then
//!   everything that can change with time.
//! - An authorization is bound to its item before anything is sent, and its answer goes to whoever sent it first.
//! - HEAD never touches a payment.

mod faucet;
mod headers;
mod page;
mod purchase;
mod unit;
pub(super) mod wallet;

use proof::SignedManifest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{OperatorId, Version};

pub(super) use self::page::wallet_offer;

use self::headers::{sent, signed_in};
use self::purchase::{SettledPurchase, purchase};
use super::manifest;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, Scope, Spec};
use crate::error::ApiError;
use crate::rules::reading::{self, MAX_EXACT_INTEGER};
use crate::rules::settlement::answers::PaidAnswer;
use crate::rules::settlement::goods;

/// Headers that carry a payment.
const HEADERS: &[(&str, &str)] = &[("payment", "X-PAYMENT"), ("paymentSignature", "PAYMENT-SIGNATURE")];
/// The same for what a wallet can own, with the header of its sign-in.
const OWNED_HEADERS: &[(&str, &str)] = &[
    ("payment", "X-PAYMENT"),
    ("paymentSignature", "PAYMENT-SIGNATURE"),
    ("signIn", "SIGN-IN-WITH-X"),
];

/// Failures of every purchase by x402.
const FAILURES: &[(u16, &str)] = &[
    (400, "The payment is malformed (`malformed_payment`)."),
    (
        402,
        "A payment is required, or the one sent is not taken (`reason`). `PAYMENT-REQUIRED` has the terms of version 2, \
         the body those of version 1.",
    ),
    (404, "There is no such thing, or it is not public."),
    (
        409,
        "It costs nothing (`free_item`), is the payer's own (`own_item`), is not sold (`not_for_sale`), or the \
         authorization or its identifier was used (`authorization_used`, `payment_used`, `identifier_reused`).",
    ),
    (
        503,
        "The facilitator is silent (`facilitator_unavailable`), the settlement is not known (`settlement_pending`), or \
         what was paid for cannot be read now (`paid_not_ready`). Send the same payment again, never a new one.",
    ),
];

/// Statuses of these operations.
const ALL: &[u16] = &[200, 400, 402, 404, 409, 413, 429, 500, 503];

/// Headers of the answers. A page of another site may read every one of them.
const ANSWER_HEADERS: &[(&[u16], &str, &str)] = &[
    (ALL, "Access-Control-Allow-Origin", "`*`."),
    (ALL, "Access-Control-Expose-Headers", "`*` and the headers of payments."),
    (&[402], "PAYMENT-REQUIRED", "Terms of version 2, in Base64."),
    (
        &[200, 402, 409, 503],
        "PAYMENT-RESPONSE",
        "Receipt of version 2, in Base64.",
    ),
    (
        &[200, 402, 409, 503],
        "X-PAYMENT-RESPONSE",
        "Receipt of version 1, in Base64.",
    ),
];

fn base() -> Spec {
    Spec {
        headers: HEADERS,
        tag: "payments",
        scope: Scope::Spend,
        effect: Effect::Spend,
        // The row of a payment is the trail.
        audit: false,
        failure: FAILURES,
        answer_headers: ANSWER_HEADERS,
        ..Spec::BASE
    }
}

pub(super) fn add(table: &mut Operations) {
    unit::add(table);
    table.add(
        Spec {
            name: "pay_dataset",
            path: "/paid/dataset",
            summary: "Buys a version of a dataset with a wallet (x402)",
            description: "Without `version`, the latest. The payment is the authorization: no account and no key. The \
                          answer is the signed manifest. A wallet that has bought it signs in instead.",
            headers: OWNED_HEADERS,
            success: &[(200, "The manifest of the version; `PAYMENT-RESPONSE` has the receipt.")],
            ..base()
        },
        &[],
        dataset,
    );
    table.add(
        Spec {
            name: "pay_credits",
            path: "/paid/credits",
            summary: "Buys a pack of prepaid credits for an operator with a wallet (x402)",
            success: &[(200, "The pack is credited; `PAYMENT-RESPONSE` has the receipt.")],
            ..base()
        },
        &[],
        credits,
    );
    wallet::add(table);
    faucet::add(table);
    page::add(table);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PaidDatasetInput {
    /// Slug of the project.
    slug: String,
    /// Version to buy; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// A payment of version 1.
    payment: Option<Vec<String>>,
    /// A payment of version 2.
    payment_signature: Option<Vec<String>>,
    /// A sign-in of the wallet that bought it.
    sign_in: Option<Vec<String>>,
}

async fn dataset(cx: Cx, input: PaidDatasetInput) -> Result<PaidAnswer<SignedManifest>, ApiError> {
    let (goods, project) = goods::dataset(&cx, &input.slug, input.version.map(Version)).await?;
    let header = sent(&cx, input.payment, input.payment_signature)?;
    if let Some(wallet) = signed_in(&cx, &goods, input.sign_in, header.is_some()).await? {
        let version = Version(u64::try_from(goods.bound.version).unwrap_or(0));
        let snapshot = reading::snapshot(&cx, &project, Some(version)).await?;
        return Ok(PaidAnswer {
            headers: Vec::new(),
            body: manifest::signed(&cx, project, &snapshot, wallet).await?,
        });
    }
    if header.is_some() {
        // An item that cannot be delivered now is not sold now.
        let version = Version(u64::try_from(goods.bound.version).unwrap_or(0));
        reading::snapshot(&cx, &project, Some(version)).await?;
    }
    let purchased = purchase(&cx, &goods, header).await?;
    let version = Version(u64::try_from(purchased.payment.bound.version).unwrap_or(0));
    let account = purchased.account();
    let made = async {
        let snapshot = reading::snapshot(&cx, &project, Some(version)).await?;
        manifest::signed(&cx, project, &snapshot, account).await
    };
    purchased.answer(&cx, &goods, made).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PaidCreditsInput {
    /// Id of the operator that gets the credits.
    #[schemars(with = "String", extend("format" = "uuid"))]
    operator: OperatorId,
    /// A payment of version 1.
    payment: Option<Vec<String>>,
    /// A payment of version 2.
    payment_signature: Option<Vec<String>>,
}

/// A pack of credits that was bought. It has no balance, since the payer may be anybody.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pack")]
#[serde(rename_all = "camelCase")]
struct PaidPack {
    /// Operator that has the credits.
    operator: String,
    /// Credits that were added, in micro-USDC.
    credited_micro: i64,
    /// Id of the payment.
    payment_id: String,
}

async fn credits(cx: Cx, input: PaidCreditsInput) -> Result<PaidAnswer<PaidPack>, ApiError> {
    let goods = goods::pack(&cx, input.operator).await?;
    let header = sent(&cx, input.payment, input.payment_signature)?;
    let purchased = purchase(&cx, &goods, header).await?;
    let SettledPurchase { payment, .. } = &purchased;
    let body = PaidPack {
        operator: payment.bound.id.clone(),
        credited_micro: payment.amount,
        payment_id: payment.id.clone(),
    };
    purchased.answer(&cx, &goods, std::future::ready(Ok(body))).await
}
