//! Operations about money: prices, credits, purchases by credits, earnings.
//!
//! Invariant: only an operation with the permission `spend` charges credits. Amounts are integers of micro-USDC.

use http::Method;

use crate::call::operation::Operations;
use crate::call::spec::{Effect, GuardedItem, KEY, Scope, Spec};

mod buy;
mod credits;
mod earnings;
pub(super) mod pricing;

const TAG: &str = "money";
/// Refusals of a purchase by what a person lets the agent or the app spend.
const BEYOND_LIMITS: &str = "The price does not fit a cap of the agent or the app (`spend_cap`), or a person said no to \
                             this purchase lately (`approval_denied`).";

pub(super) fn add(table: &mut Operations) {
    let base = Spec {
        tag: TAG,
        accepts: KEY,
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "pricing",
            path: "/pricing.json",
            lenient: true,
            summary: "Prices, fees, payouts, free figures and credits, in micro-USDC",
            description: "The examples of the fee are computed by the function that splits sales.",
            tag: TAG,
            ..Spec::BASE
        },
        &[],
        pricing::pricing,
    );
    add_purchases(table);
    table.add(
        Spec {
            name: "my_credits",
            path: "/credits",
            summary: "Credits of the operator: balance, prices, journal, and the address that sells a pack",
            description: "Given credits pay trial sales only. The journal is newest first; more is at `cursor`.",
            ..base.clone()
        },
        &[],
        credits::credits,
    );
    table.add(
        Spec {
            name: "my_earnings",
            path: "/earnings",
            summary: "Test USDC of the operator from sales: payable, on hold, disputed, paid out",
            ..base
        },
        &[],
        earnings::earnings,
    );
}

fn add_purchases(table: &mut Operations) {
    let buy = Spec {
        method: Method::POST,
        scope: Scope::Spend,
        effect: Effect::Spend,
        success: &[
            (
                200,
                "The item is the operator's; `charged` says if this call paid for it.",
            ),
            (
                202,
                "The price is above the line of the agent or the app (`status` is `waiting`): a person decides at \
                 `approval.url`, and the same call says what became of it.",
            ),
        ],
        tag: TAG,
        accepts: KEY,
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "buy_dataset",
            path: "/projects/{slug}/buy",
            summary: "Buy a version of a paid dataset with credits",
            description: "Unlocks the version, or the latest, and every earlier one for all agents of the operator. \
                          Given credits pay first where the seller takes them. A version that the operator has costs \
                          nothing. With `status` `waiting` a person is asked: repeat the call later.",
            item: GuardedItem::Project,
            failure: &[
                (402, "The credits do not cover the price (`credits_short`)."),
                (403, BEYOND_LIMITS),
                (404, "There is no such project or version, or it is private to others."),
                (
                    409,
                    "The dataset is the operator's own (`own_item`), free (`free_item`) or not sold now \
                     (`not_for_sale`), or costs more than `maxPrice` (`price_changed`).",
                ),
            ],
            example: r#"{"version": 3}"#,
            ..buy.clone()
        },
        &[],
        buy::dataset,
    );
    table.add(
        Spec {
            name: "buy_knowledge_with_credits",
            path: "/knowledge/{id}/buy",
            summary: "Buy a knowledge unit with credits",
            description: "Every version then reads for all agents of the operator. Given credits pay first where the \
                          seller takes them. A unit that the operator has costs nothing. With `status` `waiting` a \
                          person is asked: repeat the call later.",
            failure: &[
                (402, "The credits do not cover the price (`credits_short`)."),
                (403, BEYOND_LIMITS),
                (404, "There is no such unit."),
                (
                    409,
                    "The unit is the operator's own (`own_item`), free or without a price of its own (`free_item`), \
                     not sold any more (`not_for_sale`), or costs more than `maxPrice` (`price_changed`).",
                ),
            ],
            example: r#"{"maxPrice": "0.50"}"#,
            ..buy
        },
        &[],
        buy::knowledge,
    );
}

#[cfg(test)]
mod tests;
