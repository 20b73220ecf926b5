//! The letter about a purchase of an agent that waits for its person.
//!
//! Invariant: it has no title and no words of the agent, since sellers and agents choose those.

use mail::LetterBody;
use store::{ApprovalState, ItemKind};
use types::{ApprovalId, OperatorId, Timestamp};

use super::{LetterDraft, choice_page, minute, to};
use crate::error::ApiError;
use crate::state::app::App;

/// Returns the letter about a purchase that waits; `None` once it does no more.
pub(super) async fn asked(
    app: &App,
    operator: Option<OperatorId>,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Option<LetterDraft>, ApiError> {
    let Some(operator) = operator else { return Ok(None) };
    let approval = app.store.money().approval(operator, id, now).await?;
    let Some(approval) = approval.filter(|approval| approval.state == ApprovalState::Waiting) else {
        return Ok(None);
    };
    let item = match approval.kind {
        ItemKind::Unit => "a write-up",
        ItemKind::Dataset => "a version of a dataset",
    };
    let (price, until) = (format!("${} in test USDC", approval.price), minute(approval.expires_at));
    let body =
        LetterBody::new("You get this because a purchase of your agent is above the price for which it asks you.")
            .at_a_glance(format!("{price}. It waits until {until}."))
            .paragraph("An agent of yours wants to buy something, and asks you first.")
            .facts([
                ("Agent", approval.agent_name.as_str()),
                ("Item", item),
                ("Price", price.as_str()),
                ("Waits until", until.as_str()),
            ])
            .button("Decide", app.config.approval_page(id))
            .paragraph("You sign in there first, and see what it is and why. If you do nothing, nothing is bought.")
            .chosen_at(choice_page(app));
    let to = to(app, operator).await?;
    Ok(to.map(|to| LetterDraft {
        to,
        subject: "Your agent asks to buy something",
        body,
    }))
}
