//! Payout address of an operator: entered, proved, cancelled; and its payouts.
//!
//! Invariant: a change needs a person who signed in a short time ago, and a letter tells of it while it can be cancelled.

use std::time::Duration;

use pages::console::{PayoutRow, PayoutView};
use schemars::JsonSchema;
use serde::Deserialize;
use store::WalletOwner;
use types::OperatorId;

use super::money;
use crate::call::caller::CallerKind;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::page_kit::{form, form_page, instant, missing, repairable};
use crate::ops::paid::wallet;
use crate::rules::accounts;
use crate::rules::letters::{self, LetterPayload};

/// Page of the task.
const PATH: &str = "/console/money#payout";
/// Time after signing in during which the payout address can be changed.
const FRESH: Duration = Duration::from_mins(15);
/// Time until a new payout address is in force.
const PAYOUT_DELAY: Duration = Duration::from_hours(72);

pub(super) fn add(table: &mut Operations) {
    table.add(
        form("change_payout_form", "/console/payout", "Change the payout address"),
        &[],
        set_payout,
    );
    table.add(
        form(
            "cancel_payout_form",
            "/console/payout/cancel",
            "Cancel the change of the payout address",
        ),
        &[],
        cancel_payout,
    );
    table.add(
        form(
            "prove_payout_form",
            "/console/payout/prove",
            "Prove the payout wallet by its signature",
        ),
        &[],
        prove_payout,
    );
}

/// Returns true if the person signed in a short time ago.
pub(super) fn is_fresh(cx: &Cx) -> bool {
    match cx.caller.as_ref().map(|caller| &caller.actor) {
        Some(CallerKind::SignedIn { since, .. }) => cx.now.since(*since) < FRESH,
        _ => false,
    }
}

/// Returns the payout address as the page of money shows it.
pub(super) async fn view(cx: &Cx, operator: OperatorId) -> Result<PayoutView, ApiError> {
    let payout = cx.app.store.accounts().payout(operator, cx.now).await?;
    Ok(PayoutView {
        message: wallet::message_to_sign(cx).await?,
        signature: String::new(),
        address: payout.address,
        proved_at: payout.proved_at.map(instant),
        pending: payout.next.map(|(address, at)| (address, instant(at))),
        changed_at: payout.changed_at.map(instant),
        is_fresh: is_fresh(cx),
        typed: String::new(),
        network: cx.app.payments.asset.network.to_string(),
    })
}

/// Returns the latest payouts of an operator, newest first.
pub(super) async fn rows(cx: &Cx, operator: OperatorId, limit: u32) -> Result<Vec<PayoutRow>, ApiError> {
    let payouts = cx.app.store.money().payouts_of(operator, limit).await?;
    let row = |payout: store::PayoutRow| PayoutRow {
        at: instant(payout.created_at),
        amount: payout.amount,
        address: payout.address,
        state: payout.state,
        attempts: u64::try_from(payout.attempts).unwrap_or(0),
        transaction: payout.transaction,
    };
    Ok(payouts.into_iter().map(row).collect())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PayoutAddressForm {
    /// Address that sales are paid to.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    address: String,
}

async fn set_payout(cx: Cx, input: PayoutAddressForm) -> Result<PageResponse, ApiError> {
    // A browser that was left open must not be enough to send the money elsewhere.
    if !is_fresh(&cx) {
        let message = "sign in again to change the payout address; the page of money mails you a link";
        return Err(ApiError::new(ErrorCode::SignInIsOld, message));
    }
    let operator = cx.the_operator()?;
    if let Err(error) = check_payout(&cx, operator, &input.address).await {
        let mut page = money::with_errors(&cx, repairable(error)?).await?;
        page.payout.typed = input.address;
        return form_page(&page, true);
    }
    let effective_at = cx.now.plus(PAYOUT_DELAY);
    let payload = LetterPayload::PayoutChanged {
        operator,
        address: input.address.clone(),
        effective_at: effective_at.micros(),
    };
    // Without a budget: the owner must hear of the change while it can still be cancelled.
    let letter = letters::mail(&payload, Some(operator), None, cx.now);
    let accounts = cx.app.store.accounts();
    accounts
        .payout_set(operator, input.address, effective_at, letter, cx.now)
        .await?;
    PageResponse::see(PATH)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WalletSignatureForm {
    /// Signature of the payout wallet over the message of the page.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    signature: String,
}

async fn prove_payout(cx: Cx, input: WalletSignatureForm) -> Result<PageResponse, ApiError> {
    let proved = wallet::prove_by(&cx, input.signature.trim()).await;
    match proved {
        Ok(_) => PageResponse::see(PATH),
        Err(error) => {
            let mut page = money::with_errors(&cx, repairable(error)?).await?;
            page.payout.signature = input.signature;
            form_page(&page, true)
        }
    }
}

/// Checks that sales of an operator can be paid to an address.
async fn check_payout(cx: &Cx, operator: OperatorId, address: &str) -> Result<(), ApiError> {
    accounts::check_wallet("/address", address)?;
    let asset = &cx.app.payments.asset;
    let is_own = [asset.pay_to, asset.address]
        .map(|own| own.to_string())
        // A payout to the service itself would be booked as paid and pay nobody, and one to the
        // contract of the token is lost.
        .contains(&address.to_ascii_lowercase());
    if is_own {
        return Err(ApiError::invalid(
            "/address",
            "must be a wallet of yours, not an address of the service",
        ));
    }
    let accounts = cx.app.store.accounts();
    let owner = accounts.operator_of_wallet(address, Some(operator), cx.now).await?;
    if is_taken(owner, operator) {
        let problem = "is a wallet that another account has proved by its signature, and a wallet belongs to one";
        return Err(ApiError::invalid("/address", problem));
    }
    Ok(())
}

/// Returns true if a wallet is that of another operator. Only a proof counts: otherwise whoever enters a stranger's
/// address first would keep it from its owner.
fn is_taken(owner: Option<WalletOwner>, operator: OperatorId) -> bool {
    owner.is_some_and(|owner| owner.is_proved && owner.operator != operator)
}

async fn cancel_payout(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    if cx
        .app
        .store
        .accounts()
        .payout_cancel(cx.the_operator()?, cx.now)
        .await?
    {
        PageResponse::see(PATH)
    } else {
        Err(missing("change of the payout address"))
    }
}

#[cfg(test)]
mod tests {
    use types::Timestamp;

    use super::*;

    #[test]
    fn a_wallet_is_taken_by_a_proof_only() {
        let (own, other) = (
            OperatorId::new(Timestamp::default()),
            OperatorId::new(Timestamp::default()),
        );
        let owner = |operator, is_proved| Some(WalletOwner { operator, is_proved });
        for (owner, taken) in [
            (None, false),
            (owner(own, false), false),
            (owner(own, true), false),
            (owner(other, false), false),
            (owner(other, true), true),
        ] {
            assert_eq!(is_taken(owner, own), taken, "{owner:?}");
        }
    }
}
