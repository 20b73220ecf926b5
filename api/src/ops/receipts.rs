//! The receipt of a sale, for its buyer.
//!
//! Invariant: a receipt is read by the key of an agent whose operator bought the item, or by a sign-in of the wallet that
//! paid. Everybody else learns nothing of the sale.

use schemars::JsonSchema;
use serde::Deserialize;
use types::SaleId;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Credential, Spec};
use crate::error::ApiError;
use crate::rules::auth;
use crate::rules::receipts::{self, SignedSale};
use crate::rules::settlement::{self, sign_in};

/// Credentials that read a receipt. A wallet has none: it signs in.
const READERS: &[Credential] = &[Credential::Anonymous, Credential::AgentKey];

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "sale_receipt",
            path: "/receipts/{id}",
            headers: &[("signIn", "SIGN-IN-WITH-X")],
            summary: "The signed receipt of a purchase: what was sold to whom, for how much, and where the ledger has it",
            description: "The format is `sluice-sale-1`; `sluice verify receipt` checks it offline. The same \
                           bytes each time, unless the key that signed was revoked. A wallet that paid by x402 signs \
                          in: it takes the challenge from the answer 402 of any address below `/paid`.",
            tag: "money",
            accepts: READERS,
            success: &[(200, "The receipt.")],
            failure: &[
                (401, "There is neither a key of an agent nor a sign-in that is taken."),
                (404, "There is no such sale, or somebody else bought it."),
            ],
            ..Spec::BASE
        },
        &[],
        receipt,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReceiptInput {
    /// Id of the sale.
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: SaleId,
    /// A sign-in of the wallet that paid.
    sign_in: Option<Vec<String>>,
}

async fn receipt(cx: Cx, input: ReceiptInput) -> Result<JsonReply<SignedSale>, ApiError> {
    let headers = input.sign_in.unwrap_or_default();
    let sale = if cx.caller.is_some() {
        receipts::bought(&cx, input.id).await?.id
    } else if headers.is_empty() {
        return Err(auth::no_buyer(&cx.app, None));
    } else {
        bought_by_wallet(&cx, input.id, &headers).await?
    };
    Ok(JsonReply::ok(receipts::of_sale(&cx, sale).await?))
}

/// Returns the sale, if the wallet that signed in paid for it.
async fn bought_by_wallet(cx: &Cx, sale: SaleId, headers: &[String]) -> Result<SaleId, ApiError> {
    let not_taken = |problem| auth::no_buyer(&cx.app, Some(problem));
    let signed_in = sign_in::read(cx, headers).await?.map_err(not_taken)?;
    let owner = settlement::owner(&cx.app.payments.asset, &signed_in.wallet);
    let found = cx.app.store.money().sale(sale).await?;
    if found.and_then(|found| found.wallet) != Some(owner) {
        return Err(receipts::no_receipt(sale));
    }
    sign_in::spend(cx, &signed_in).await?.map_err(not_taken)?;
    Ok(sale)
}

#[cfg(test)]
mod tests;
