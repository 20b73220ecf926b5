//! Letters about disputes.
//!
//! Invariant: no letter has the words of a buyer or a seller. They are read in the console, by who may see them.

use mail::LetterBody;
use store::{DisputeLetters, DisputeSide, DisputedSale};
use types::vocabulary::{DisputeState, ItemKind};
use types::{DisputeId, OperatorId};

use super::{KIND, LetterDraft, LetterPayload, input, minute, to};
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
) -> Result<Option<LetterDraft>, ApiError> {
    let Some(found) = app.store.money().disputed_sale(dispute).await? else {
        return Ok(None);
    };
    let base = &app.config.public_url;
    let Some(operator) = operator else {
        let to = app.config.administrator.clone();
        return Ok(to.map(|to| LetterDraft {
            to,
            subject: "A dispute to look at",
            body: administrator(base, &found, payload),
        }));
    };
    let (Some(to), Some(side)) = (to(app, operator).await?, found.side_of(operator)) else {
        return Ok(None);
    };
    let (subject, body) = match (payload, side) {
        (LetterPayload::DisputeOpened { .. }, DisputeSide::Seller) => {
            ("A buyer disputes a sale of yours", asked(base, &found))
        }
        (LetterPayload::DisputeOpened { .. }, DisputeSide::Buyer) => {
            ("A purchase of yours is disputed", opened(base, &found))
        }
        (LetterPayload::DisputeAnswered { .. }, _) => ("The seller has answered your dispute", answered(base, &found)),
        _ => ("A dispute has ended", ended(base, &found, side)),
    };
    Ok(Some(LetterDraft { to, subject, body }))
}

/// Returns the item of a dispute in words, without its title.
fn item(found: &DisputedSale) -> String {
    match found.sale.kind {
        ItemKind::Unit => "a write-up".to_owned(),
        ItemKind::Dataset => format!("version {} of a dataset", found.sale.version),
    }
}

fn page(base: &str, found: &DisputedSale) -> String {
    format!("{base}/console/disputes/{}", found.dispute.id)
}

fn asked(base: &str, found: &DisputedSale) -> LetterBody {
    let due = found.dispute.answer_due.map(minute).unwrap_or_default();
    LetterBody::new("You get this because the sale is yours.")
        .at_a_glance(format!("Answer, or give the price back, until {due}."))
        .paragraph("A buyer disputes a sale of yours.")
        .facts([
            ("Sold", item(found)),
            ("Price", format!("${} in test USDC", found.sale.price)),
            ("Answer until", due),
        ])
        .button("Read it and answer", page(base, found))
        .paragraph(
            "You sign in there first, read what the buyer says, and answer or give the price back. A person of the \
             service reads both sides and decides. Until then your share of the sale is held back; nothing moves by \
             itself.",
        )
        .always_sent()
}

fn opened(base: &str, found: &DisputedSale) -> LetterBody {
    LetterBody::new("You get this because you bought the item.")
        .at_a_glance("The seller is asked to answer or to give the price back.")
        .paragraph("A dispute was opened about a purchase of yours.")
        .facts([
            ("Bought", item(found)),
            ("Price", format!("${} in test USDC", found.sale.price)),
        ])
        .paragraph("The seller is asked to answer or to give the price back.")
        .button("See how it stands", page(base, found))
        .always_sent()
}

fn answered(base: &str, found: &DisputedSale) -> LetterBody {
    LetterBody::new("You get this because the dispute is yours.")
        .at_a_glance("A person decides now.")
        .paragraph("The seller has answered your dispute.")
        .facts([
            ("Bought", item(found)),
            ("Price", format!("${} in test USDC", found.sale.price)),
        ])
        .button("Read the answer", page(base, found))
        .paragraph("A person of the service decides now, and you get an e-mail then.")
        .always_sent()
}

fn ended(base: &str, found: &DisputedSale, side: DisputeSide) -> LetterBody {
    let result = match (found.dispute.state, side) {
        (DisputeState::Refunded, DisputeSide::Buyer) => {
            "The price is given back to you, and what you bought is not yours any more."
        }
        (DisputeState::Refunded, DisputeSide::Seller) => {
            "The price is given back to the buyer. Your share and the points of the sale are taken back."
        }
        (_, DisputeSide::Buyer) => "The sale stands: the seller keeps the price, and you keep what you bought.",
        (_, DisputeSide::Seller) => "The sale stands: your share is yours, as it would have been.",
    };
    LetterBody::new("You get this because it is about a sale or a purchase of yours.")
        .at_a_glance(result)
        .paragraph("The dispute has ended.")
        .facts([
            ("Item", item(found)),
            ("Price", format!("${} in test USDC", found.sale.price)),
        ])
        .paragraph(result)
        .button("Read what was said", page(base, found))
        .always_sent()
}

fn administrator(base: &str, found: &DisputedSale, payload: &LetterPayload) -> LetterBody {
    let what = match payload {
        LetterPayload::DisputeAnswered { .. } => "A seller has answered a dispute.",
        _ => "A buyer has opened a dispute.",
    };
    LetterBody::new("You get this because you decide about disputes.")
        .paragraph(what)
        .facts([
            ("Sold", item(found)),
            ("Price", format!("${} in test USDC", found.sale.price)),
            ("Answer until", found.dispute.answer_due.map(minute).unwrap_or_default()),
        ])
        .button("See both sides", page(base, found))
}
