//! Disputes: who may open, answer and decide one, and how the price goes back.
//!
//! Invariants:
//! - A buyer's person or agent opens one, the seller answers or gives the price back, and only an administrator decides.
//! - No time that passes decides anything.

use store::{
    DisputeDecision, DisputeOpened, DisputeOpener, DisputeReplied, DisputeResolution, DisputeResolved, DisputedSale,
    NewDispute, WalletRefund,
};
use types::vocabulary::{DisputeState, StaffRole};
use types::{DisputeId, LedgerEventId, OperatorId, SaleId, Timestamp};

use crate::call::cx::Cx;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::{letters, settlement};

/// Name of the administrator in the rows of disputes.
pub const ADMIN_ACTOR: &str = "admin";
/// Name of a seller that gives in, in the rows of disputes.
pub const SELLER_ACTOR: &str = "seller";
/// Name of a buyer that opens a dispute, in the rows of disputes.
pub const BUYER_ACTOR: &str = "buyer";
/// The most characters of a reason, an answer and the words of a decision.
const MAX_DISPUTE_CHARS: usize = 2_000;
/// The fewest characters that say something.
const MIN_DISPUTE_CHARS: usize = 10;

/// Returns the refund of a disputed sale: to the wallet that paid, or as credits to the operator that bought.
pub fn refund_of(to_wallet: bool, now: Timestamp) -> DisputeResolution {
    DisputeResolution::Refund {
        wallet: to_wallet.then(|| {
            let payout = LedgerEventId::new(now).to_string();
            WalletRefund {
                nonce: settlement::payout_nonce(&payout).to_string(),
                // Made once here, so the nonce of the refund is the same for each of its attempts, and
                // the chain pays it once.
                id: payout,
                event: LedgerEventId::new(now),
            }
        }),
    }
}

/// Returns the 404 for a dispute. A missing one and that of others get the same text.
pub(crate) fn no_dispute(id: DisputeId) -> ApiError {
    ApiError::not_found(format!("there is no dispute `{id}`"))
}

/// Returns the dispute, if the caller's operator is on one of its sides.
pub(crate) async fn seen(cx: &Cx, id: DisputeId) -> Result<DisputedSale, ApiError> {
    let found = cx.app.store.money().dispute_of(cx.the_operator()?, id).await?;
    found.ok_or_else(|| no_dispute(id))
}

/// Returns true if the caller is a person with the role of an administrator.
pub(crate) async fn is_administrator(cx: &Cx) -> Result<bool, ApiError> {
    let Some((operator, _)) = cx.session() else {
        return Ok(false);
    };
    let role = cx.app.store.moderation().role_of(operator).await?;
    Ok(role == Some(StaffRole::Administrator))
}

/// Opens a dispute of a purchase of the caller's operator, or finds the one that there is. Returns it, and true if it is new.
pub(crate) async fn open(cx: &Cx, sale: SaleId, reason: String) -> Result<(DisputeId, bool), ApiError> {
    check_words("/reason", &reason)?;
    let id = DisputeId::new(cx.now);
    let new = NewDispute {
        id,
        event: LedgerEventId::new(cx.now),
        sale,
        reason,
        by: BUYER_ACTOR.to_owned(),
        opener: Some(DisputeOpener {
            operator: cx.the_operator()?,
            agent: cx.agent(),
        }),
        letters: Some(letters::dispute_opened(id)),
        now: cx.now,
    };
    match cx.app.store.money().dispute_open(new).await? {
        DisputeOpened::Opened(_) => Ok((id, true)),
        DisputeOpened::Before(earlier) => Ok((earlier, false)),
        DisputeOpened::Missing => Err(ApiError::not_found(format!("there is no purchase `{sale}`"))),
        DisputeOpened::TooLate { state } => {
            let message = "the time for disputes of this purchase is over, or its price was given back";
            Err(ApiError::new(ErrorCode::NotDisputable, message).field("state", state.as_str()))
        }
    }
}

/// Keeps the answer of the caller's operator to a dispute of what it sold.
pub(crate) async fn answer(cx: &Cx, id: DisputeId, words: &str) -> Result<(), ApiError> {
    check_words("/answer", words)?;
    let letters = Some(letters::dispute_answered(id));
    let money = cx.app.store.money();
    match money
        .dispute_reply(cx.the_operator()?, id, words, letters, cx.now)
        .await?
    {
        DisputeReplied::Replied => Ok(()),
        DisputeReplied::Before => {
            let message = "the dispute was answered before, and an answer stays";
            Err(ApiError::new(ErrorCode::DisputeAnswered, message))
        }
        DisputeReplied::Ended => Err(ended()),
        DisputeReplied::Missing => Err(no_dispute(id)),
    }
}

/// Fails if words say nothing, or too much.
pub(crate) fn check_words(path: &str, words: &str) -> Result<(), ApiError> {
    // A browser sends each end of a line as two characters, of which it counts one.
    let length = words.chars().filter(|character| *character != '\r').count();
    if length > MAX_DISPUTE_CHARS {
        return Err(ApiError::invalid(
            path,
            format!("must have at most {MAX_DISPUTE_CHARS} characters"),
        ));
    }
    if words.trim().chars().count() < MIN_DISPUTE_CHARS {
        let problem = format!("must say something, in {MIN_DISPUTE_CHARS} characters or more");
        return Err(ApiError::invalid(path, problem));
    }
    Ok(())
}

/// Gives the price of a disputed sale back, as its seller. One that was given back before stays so.
pub(crate) async fn give_back(cx: &Cx, seller: OperatorId, id: DisputeId) -> Result<(), ApiError> {
    let found = seen(cx, id).await?;
    if found.sale.seller != seller {
        return Err(no_dispute(id));
    }
    let resolution = refund_of(found.sale.buyer.is_none(), cx.now);
    end(cx, &found, resolution, (SELLER_ACTOR, Some(seller)), String::new()).await
}

/// Decides a dispute, as an administrator.
pub(crate) async fn decide(cx: &Cx, id: DisputeId, refunds: bool, words: String) -> Result<(), ApiError> {
    let found = cx.app.store.money().disputed_sale(id).await?;
    let found = found.ok_or_else(|| no_dispute(id))?;
    let resolution = if refunds {
        refund_of(found.sale.buyer.is_none(), cx.now)
    } else {
        DisputeResolution::Release
    };
    end(cx, &found, resolution, (ADMIN_ACTOR, None), words).await
}

async fn end(
    cx: &Cx,
    found: &DisputedSale,
    resolution: DisputeResolution,
    (by, seller): (&str, Option<OperatorId>),
    answer: String,
) -> Result<(), ApiError> {
    let id = found.dispute.id;
    let refunds = matches!(resolution, DisputeResolution::Refund { .. });
    let decision = DisputeDecision {
        id,
        resolution,
        event: LedgerEventId::new(cx.now),
        by: by.to_owned(),
        seller,
        answer,
        letters: Some(letters::dispute_decided(id)),
        now: cx.now,
    };
    match cx.app.store.money().dispute_resolve(decision).await? {
        DisputeResolved::Resolved(_) => Ok(()),
        DisputeResolved::Missing => Err(no_dispute(id)),
        DisputeResolved::Ended => {
            let now = cx.app.store.money().disputed_sale(id).await?;
            let state = now.map(|now| now.dispute.state);
            // A second press of the button finds what the first did.
            if refunds && state == Some(DisputeState::Refunded) || !refunds && state == Some(DisputeState::Released) {
                return Ok(());
            }
            Err(ended())
        }
        DisputeResolved::NowhereToRefund => Err(ApiError::internal("a disputed sale has neither a buyer nor a wallet")),
        DisputeResolved::Short => Err(ApiError::internal(format!(
            "the accounts do not cover the dispute {id}"
        ))),
        DisputeResolved::Uncovered => Err(ApiError::unavailable(
            "the treasury does not cover the refund beside what is on its way out of it; the dispute stays open",
        )),
    }
}

/// Returns the 409 for a dispute that has ended.
pub(crate) fn ended() -> ApiError {
    ApiError::new(ErrorCode::DisputeEnded, "the dispute has ended")
}
