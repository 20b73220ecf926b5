//! The end of an account: what it does, what is in its way, and the form that closes it.
//!
//! Invariant: what decides is counted once more in the transaction that closes the account.

use pages::FieldError;
use pages::console::{AccountClosedPage, CloseAccountPage, OpenMatter};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{AccountClosed, OpenMatters};
use types::money::MicroUsdc;

use super::super::payout::is_fresh;
use super::account;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, Spec};
use crate::call::view::{self, LayoutOptions, PageResponse};
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::page_kit::{form, form_page, page, page_layout};

const PATH: &str = "/console/settings/close";

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("close_account_page", PATH, "Asks before an account is closed"),
        &[],
        show,
    );
    let close_form = Spec {
        effect: Effect::Destroy,
        success: &[(200, "The account is closed.")],
        ..form("close_account_form", PATH, "Close the account for good")
    };
    table.add(close_form, &[], close);
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let open = cx.app.store.accounts().open_matters(cx.the_operator()?, cx.now).await?;
    PageResponse::page(&close_page(&cx, open).await?)
}

/// Returns the page about the end of the account as it is now.
async fn close_page(cx: &Cx, open: OpenMatters) -> Result<CloseAccountPage, ApiError> {
    let operator = cx.the_operator()?;
    let accounts = cx.app.store.accounts();
    let money = cx.app.store.money();
    let (agents, payout, balances) = tokio::try_join!(
        accounts.agents_of(operator, cx.now),
        accounts.payout(operator, cx.now),
        money.balances(&cx.app.pay.asset, operator)
    )?;
    let agents = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    Ok(CloseAccountPage {
        chrome: page_layout(cx).await?,
        email: account(cx).await?.email,
        open: matters(open),
        agents: u64::try_from(agents).unwrap_or(u64::MAX),
        credits: balances.credits,
        owed: MicroUsdc(balances.held.0.saturating_add(balances.payable.0)),
        payout: payout.address,
        is_fresh: is_fresh(cx),
        typed: String::new(),
        errors: Vec::new(),
    })
}

/// Returns what must end first, each with the way in which it ends.
fn matters(open: OpenMatters) -> Vec<OpenMatter> {
    let all = [
        (
            open.payouts,
            ["payout is on its way", "payouts are on their way"],
            "It ends by itself within minutes.",
            "/console/money",
        ),
        (
            open.disputes,
            ["dispute is open", "disputes are open"],
            "A dispute ends with its decision.",
            "/console/disputes",
        ),
        (
            open.payments,
            ["payment is not settled yet", "payments are not settled yet"],
            "It is known within minutes.",
            "/console/money",
        ),
        (
            open.approvals,
            ["purchase waits for your answer", "purchases wait for your answer"],
            "Say yes or no.",
            "/console/money",
        ),
        (
            open.uploads,
            ["upload can still be completed", "uploads can still be completed"],
            "Complete or cancel it, or wait until its time is over.",
            "/console/datasets",
        ),
        (
            open.addresses,
            [
                "change of the e-mail address can still be taken back",
                "changes of the e-mail address can still be taken back",
            ],
            "The old address has seven days for that.",
            "/console/settings",
        ),
    ];
    all.into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, [one, several], next, href)| OpenMatter {
            what: format!("{count} {}", if count == 1 { one } else { several }),
            next,
            href,
        })
        .collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseAccountForm {
    /// Address of the account, as the person typed it.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    confirm: String,
}

async fn close(cx: Cx, input: CloseAccountForm) -> Result<PageResponse, ApiError> {
    // A browser that was left open must not be enough to end the account.
    if !is_fresh(&cx) {
        let message = "sign in again to close the account; the settings mail you a link";
        return Err(ApiError::new(ErrorCode::SignInIsOld, message));
    }
    let email = account(&cx).await?.email;
    let (open, errors) = if input.confirm.trim().eq_ignore_ascii_case(&email) {
        match cx.app.store.accounts().close(cx.the_operator()?, cx.now).await? {
            AccountClosed::Closed => {
                let closed = AccountClosedPage {
                    // Without the person, whose session has ended.
                    chrome: view::page_layout(cx.the_visit()?, None, &LayoutOptions::of(&cx.app)),
                };
                return PageResponse::page(&closed)?.signed_out();
            }
            AccountClosed::Open(open) => (open, Vec::new()),
        }
    } else {
        let open = cx.app.store.accounts().open_matters(cx.the_operator()?, cx.now).await?;
        let error = FieldError::new("confirm", format!("Must be the address of this account, {email}"));
        (open, vec![error])
    };
    let page = CloseAccountPage {
        typed: input.confirm,
        errors,
        ..close_page(&cx, open).await?
    };
    form_page(&page, true)
}
