//! Letters about disputes.
//!
//! Invariant: no letter has the words of a buyer or a seller. They are read in the console, by who may see them.

use store::{DisputeLetters, DisputeSide, DisputedSale};
use types::vocabulary::{DisputeState, ItemKind};
use types::{DisputeId, OperatorId};

use super::{Addressed, KIND, LetterPayload, input, minute, to};
use crate::error::ApiError;
use crate::state::app::App;

/// Returns the letters about a dispute that was opened.
pub fn dispute_opened(dispute: DisputeId) -> DisputeLetters {
    letters(&LetterPayload::DisputeOpened { dispute })
}

/// Returns the letters about the answer of a seller.
pub fn dispute_answered(dispute: DisputeId) -> DisputeLetters {
    letters(&LetterPayload::DisputeAnswered { dispute })
}

/// Returns the letters about the end of a dispute.
pub fn dispute_decided(dispute: DisputeId) -> DisputeLetters {
    letters(&LetterPayload::DisputeDecided { dispute })
}

fn letters(payload: &LetterPayload) -> DisputeLetters {
    DisputeLetters {
        kind: KIND.to_owned(),
        payload: input(payload),
    }
}

/// Returns a letter about a dispute to one of its sides, or to the administrator; `None` if there is nobody to read it.
pub(super) async fn addressed(
    app: &App,
    operator: Option<OperatorId>,
    payload: &LetterPayload,
    dispute: DisputeId,
) -> Result<Option<Addressed>, ApiError> {
    let Some(found) = app.store.money().disputed_sale(dispute).await? else {
        return Ok(None);
    };
    let base = &app.config.public_url;
    let Some(operator) = operator else {
        let to = app.config.administrator.clone();
        return Ok(to.map(|to| (to, "A dispute to look at", administrator(base, &found, payload))));
    };
    let (Some(to), Some(side)) = (to(app, operator).await?, found.side_of(operator)) else {
        return Ok(None);
    };
    let (subject, text) = match (payload, side) {
        (LetterPayload::DisputeOpened { .. }, DisputeSide::Seller) => {
            ("A buyer disputes a sale of yours", asked(base, &found))
        }
        (LetterPayload::DisputeOpened { .. }, DisputeSide::Buyer) => {
            ("A purchase of yours is disputed", opened(base, &found))
        }
        (LetterPayload::DisputeAnswered { .. }, _) => ("The seller has answered your dispute", answered(base, &found)),
        _ => ("A dispute has ended", ended(base, &found, side)),
    };
    Ok(Some((to, subject, text)))
}

/// Returns the item of a dispute in words, without its title.
fn item(found: &DisputedSale) -> String {
    match found.sale.kind {
        ItemKind::Unit => "a knowledge unit".to_owned(),
        ItemKind::Dataset => format!("version {} of a dataset", found.sale.version),
    }
}

fn page(base: &str, found: &DisputedSale) -> String {
    format!("{base}/console/disputes/{}", found.dispute.id)
}

fn asked(base: &str, found: &DisputedSale) -> String {
    let due = found.dispute.answer_due.map(minute).unwrap_or_default();
    format!(
        "Hello,\n\n\
         the buyer of {}, sold for ${} in test USDC,\n\
         disputes the sale. What the buyer says is on this page, where you sign\n\
         in first:\n\n\
         {}\n\n\
         Answer there, or give the price back, until {due}.\n\
         A person of the service reads both sides and decides. Until then your\n\
         share of the sale is held back; nothing moves by itself.\n",
        item(found),
        found.sale.price,
        page(base, found),
    )
}

fn opened(base: &str, found: &DisputedSale) -> String {
    format!(
        "Hello,\n\n\
         a dispute was opened about {}, which you\n\
         bought for ${} in test USDC. The seller is asked to answer or to give\n\
         the price back. How it stands:\n\n\
         {}\n",
        item(found),
        found.sale.price,
        page(base, found),
    )
}

fn answered(base: &str, found: &DisputedSale) -> String {
    format!(
        "Hello,\n\n\
         the seller of {}, which you bought for ${}\n\
         in test USDC, has answered your dispute. Read the answer here:\n\n\
         {}\n\n\
         A person of the service decides now, and you get a letter then.\n",
        item(found),
        found.sale.price,
        page(base, found),
    )
}

fn ended(base: &str, found: &DisputedSale, side: DisputeSide) -> String {
    let result = match (found.dispute.state, side) {
        (DisputeState::Refunded, DisputeSide::Buyer) => {
            "The price is given back to you, and what you bought is not yours any\nmore."
        }
        (DisputeState::Refunded, DisputeSide::Seller) => {
            "The price is given back to the buyer. Your share and the points of the\nsale are taken back."
        }
        (_, DisputeSide::Buyer) => "The sale stands: the seller keeps the price, and you keep what you\nbought.",
        (_, DisputeSide::Seller) => "The sale stands: your share is yours, as it would have been.",
    };
    format!(
        "Hello,\n\n\
         the dispute about {} for ${} in test USDC\n\
         has ended.\n\n\
         {result}\n\n\
         What was said is on this page:\n\n\
         {}\n",
        item(found),
        found.sale.price,
        page(base, found),
    )
}

fn administrator(base: &str, found: &DisputedSale, payload: &LetterPayload) -> String {
    let what = match payload {
        LetterPayload::DisputeAnswered { .. } => "a seller has answered a dispute",
        _ => "a buyer has opened a dispute",
    };
    let due = found.dispute.answer_due.map(minute).unwrap_or_default();
    format!(
        "Hello,\n\n\
         {what} about {},\n\
         sold for ${} in test USDC. The seller is asked to answer until\n\
         {due}. Both sides, and the form that decides:\n\n\
         {}\n",
        item(found),
        found.sale.price,
        page(base, found),
    )
}
