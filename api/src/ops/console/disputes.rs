//! Pages of disputes: of the buyer, the seller and the administrator.
//!
//! Invariants:
//! - A page opens nothing and ends nothing; its forms do, through the functions of the operations for programs.
//! - Only the administrator is shown the disputes of others; to everybody else they are missing.

use http::StatusCode;
use pages::ConfirmPage;
use pages::console::{
    Attention, DecideDisputePage, DisputePage, DisputeReader, DisputeView, DisputesPage, DisputesPart, OpenDisputePage,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Bought, DisputeSide, DisputedSale};
use types::vocabulary::{DisputeState, ItemKind, PaidWith};
use types::{DisputeId, OperatorId, SaleId};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::spec::{Effect, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::disputes::both_sides;
use crate::ops::page_kit::{PAGE_ROWS, form, form_page, id, missing, page, page_layout, repairable};
use crate::ops::paging::{read_cursor, take_page};
use crate::rules::disputes;
use crate::spans::span;

const LIST: &str = "/console/disputes";
const ONE: &str = "/console/disputes/{id}";
const OPEN: &str = "/console/sales/{id}/dispute";
const REFUND: &str = "/console/disputes/{id}/refund";
const DECIDE: &str = "/console/disputes/{id}/decide";
/// Disputes to decide that the administrator sees at once.
const TO_DECIDE: u32 = 50;
/// Disputes on the page of money.
const OF_MONEY: u32 = 10;

pub(super) fn add(table: &mut Operations) {
    let sent = |name, path, summary| Spec {
        names_origin: true,
        ..form(name, path, summary)
    };
    table.add(page("disputes_page", LIST, "Disputes"), &[], list);
    table.add(page("dispute_page", ONE, "A dispute"), &[], show);
    table.add(page("open_dispute_page", OPEN, "Dispute a purchase"), &[], ask);
    table.add(sent("open_dispute_form", OPEN, "Opens a dispute"), &[], open);
    let answer_form = sent(
        "answer_dispute_form",
        "/console/disputes/{id}/answer",
        "Answers a dispute",
    );
    table.add(answer_form, &[], answer);
    table.add(
        page("refund_dispute_page", REFUND, "Give the price of a sale back"),
        &[],
        confirm_refund,
    );
    let refund_form = Spec {
        effect: Effect::Destroy,
        ..sent("refund_dispute_form", REFUND, "Gives the price of a sale back")
    };
    table.add(refund_form, &[], refund);
    table.add(page("decide_dispute_page", DECIDE, "Decide a dispute"), &[], judge);
    let decide_form = Spec {
        effect: Effect::Destroy,
        ..sent("decide_dispute_form", DECIDE, "Decides a dispute")
    };
    table.add(decide_form, &[], decide);
}

/// Returns the page of a dispute.
fn path(id: DisputeId) -> String {
    format!("{LIST}/{id}")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DisputesPageQuery {
    /// Last dispute of the page before.
    #[schemars(length(max = 64))]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DisputePagePath {
    /// Id of the dispute, or of the sale.
    #[schemars(length(max = 64))]
    id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenDisputeForm {
    /// Id of the sale.
    #[schemars(length(max = 64))]
    id: String,
    /// Words of the buyer.
    #[serde(default)]
    #[schemars(length(max = 4_000), regex(pattern = TEXT))]
    reason: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerDisputeForm {
    /// Id of the dispute.
    #[schemars(length(max = 64))]
    id: String,
    /// Words of the seller.
    #[serde(default)]
    #[schemars(length(max = 4_000), regex(pattern = TEXT))]
    answer: String,
}

/// End of a dispute, as the form names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DisputeEnding {
    Refund,
    Release,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecideDisputeForm {
    /// Id of the dispute.
    #[schemars(length(max = 64))]
    id: String,
    /// `refund` ends it for the buyer, `release` for the seller.
    end: Option<DisputeEnding>,
    /// Words for both sides.
    #[serde(default)]
    #[schemars(length(max = 4_000), regex(pattern = TEXT))]
    words: String,
}

async fn list(cx: Cx, input: DisputesPageQuery) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let before: Option<DisputeId> = read_cursor(input.cursor.as_deref(), "must be the last dispute of a page before")?;
    let mut found = both_sides(&cx, operator, None, before, PAGE_ROWS + 1).await?;
    let next = take_page(&mut found, PAGE_ROWS).map(|last| format!("{LIST}?cursor={}", last.dispute.id));
    let to_decide = if before.is_none() && disputes::is_administrator(&cx).await? {
        let open = cx.app.store.money().disputes_to_decide(TO_DECIDE).await?;
        let others = open.into_iter().filter(|found| found.side_of(operator).is_none());
        let views = others.map(|found| view(found, DisputeReader::Administrator));
        Some(views.collect())
    } else {
        None
    };
    PageResponse::page(&DisputesPage {
        chrome: page_layout(&cx).await?,
        disputes: part(&cx, found, operator),
        to_decide,
        next,
        is_later: before.is_some(),
    })
}

/// Returns the newest disputes of an account, as a part of another page.
pub(in crate::ops) async fn newest(cx: &Cx, operator: OperatorId) -> Result<DisputesPart, ApiError> {
    let found = both_sides(cx, operator, None, None, OF_MONEY).await?;
    Ok(part(cx, found, operator))
}

/// Returns the disputes that wait for the person: those to answer, and to the administrator those to decide.
pub(super) async fn attention(cx: &Cx, operator: OperatorId) -> Result<Vec<Attention>, ApiError> {
    let money = cx.app.store.money();
    let asked = money.disputes_to_answer(operator, OF_MONEY).await?;
    let asked = asked.into_iter().map(|found| view(found, DisputeReader::Seller));
    let mut items: Vec<_> = asked.map(|view| Attention::dispute(&view)).collect();
    if disputes::is_administrator(cx).await? {
        let open = money.disputes_to_decide(OF_MONEY).await?;
        let open = open.into_iter().filter(|found| found.side_of(operator).is_none());
        items.extend(open.map(|found| Attention::decision(&view(found, DisputeReader::Administrator))));
    }
    Ok(items)
}

fn part(cx: &Cx, found: Vec<DisputedSale>, operator: OperatorId) -> DisputesPart {
    let views = found.into_iter().map(|found| {
        let reader = reader(&found, operator);
        view(found, reader)
    });
    DisputesPart::of(views, span(cx.app.pay.dispute_window_seconds.into()))
}

/// Returns the side of an operator; of a stranger, who is shown it at all, that of the administrator.
fn reader(found: &DisputedSale, operator: OperatorId) -> DisputeReader {
    match found.side_of(operator) {
        Some(DisputeSide::Seller) => DisputeReader::Seller,
        Some(DisputeSide::Buyer) => DisputeReader::Buyer,
        None => DisputeReader::Administrator,
    }
}

/// Finds a dispute that the person may see, and returns true if the person decides it.
async fn find(cx: &Cx, text: &str) -> Result<(DisputedSale, bool), ApiError> {
    let dispute: DisputeId = id(text, "dispute")?;
    let operator = cx.the_operator()?;
    let decides = disputes::is_administrator(cx).await?;
    let money = cx.app.store.money();
    let found = if decides {
        money.disputed_sale(dispute).await?
    } else {
        money.dispute_of(operator, dispute).await?
    };
    let found = found.ok_or_else(|| missing("dispute"))?;
    // Nobody judges an own matter; the command line remains.
    let is_own = found.side_of(operator).is_some();
    Ok((found, decides && !is_own))
}

/// Returns the address of what was sold.
fn href(kind: ItemKind, item: &str, slug: Option<&str>) -> String {
    match kind {
        ItemKind::Dataset => format!("/projects/{}", slug.unwrap_or_default()),
        ItemKind::Unit => format!("/units/{item}"),
    }
}

fn view(found: DisputedSale, reader: DisputeReader) -> DisputeView {
    let DisputedSale {
        dispute,
        sale,
        slug,
        title,
    } = found;
    DisputeView {
        id: dispute.id,
        sale: sale.id,
        reader,
        kind: sale.kind,
        title: title.unwrap_or_default(),
        href: href(sale.kind, &sale.item, slug.as_deref()),
        version: sale.version,
        price: sale.price,
        share: sale.share,
        is_trial: sale.paid_with == PaidWith::Given,
        sold_at: sale.sold_at,
        opened_at: dispute.opened_at,
        is_opened_by_administrator: dispute.opened_by != disputes::BUYER_ACTOR,
        due: dispute.answer_due,
        reason: dispute.reason,
        reply: dispute.replied_at.zip(dispute.reply),
        state: dispute.state,
        ended_at: dispute.resolved_at,
        is_given_back: dispute.resolved_by.as_deref() == Some(disputes::SELLER_ACTOR),
        decision: dispute.answer.unwrap_or_default(),
    }
}

async fn show(cx: Cx, input: DisputePagePath) -> Result<PageResponse, ApiError> {
    PageResponse::page(&dispute(&cx, &input.id).await?)
}

async fn dispute(cx: &Cx, text: &str) -> Result<DisputePage, ApiError> {
    let (found, decides) = find(cx, text).await?;
    let reader = reader(&found, cx.the_operator()?);
    Ok(DisputePage {
        chrome: page_layout(cx).await?,
        dispute: view(found, reader),
        decides,
        answer: String::new(),
        errors: Vec::new(),
    })
}

/// Finds a purchase of the person's account.
async fn purchase(cx: &Cx, text: &str) -> Result<Bought, ApiError> {
    let sale: SaleId = id(text, "purchase")?;
    let found = cx.app.store.money().purchase_by_sale(cx.the_operator()?, sale).await?;
    found.ok_or_else(|| missing("purchase"))
}

async fn ask(cx: Cx, input: DisputePagePath) -> Result<PageResponse, ApiError> {
    let bought = purchase(&cx, &input.id).await?;
    // It is disputed already: there is one dispute of a sale, whose page says how it stands.
    let money = cx.app.store.money();
    if let Some(earlier) = money.dispute_of_sale(cx.the_operator()?, bought.sale.id).await? {
        return PageResponse::see(&path(earlier.dispute.id));
    }
    PageResponse::page(&opening(&cx, &bought).await?)
}

async fn opening(cx: &Cx, bought: &Bought) -> Result<OpenDisputePage, ApiError> {
    let sale = &bought.sale;
    Ok(OpenDisputePage {
        chrome: page_layout(cx).await?,
        sale: sale.id,
        title: bought.title.clone().unwrap_or_default(),
        href: href(sale.kind, &sale.item, bought.slug.as_deref()),
        price: sale.price,
        sold_at: sale.sold_at,
        until: sale.disputable_until(cx.now),
        reason: String::new(),
        errors: Vec::new(),
    })
}

async fn open(cx: Cx, input: OpenDisputeForm) -> Result<PageResponse, ApiError> {
    let bought = purchase(&cx, &input.id).await?;
    match disputes::open(&cx, bought.sale.id, input.reason.clone()).await {
        Ok((id, _)) => PageResponse::see(&path(id)),
        Err(error) => {
            let page = OpenDisputePage {
                errors: repairable(error)?,
                reason: input.reason,
                ..opening(&cx, &bought).await?
            };
            form_page(&page, true)
        }
    }
}

async fn answer(cx: Cx, input: AnswerDisputeForm) -> Result<PageResponse, ApiError> {
    let dispute_id: DisputeId = id(&input.id, "dispute")?;
    match disputes::answer(&cx, dispute_id, &input.answer).await {
        Ok(()) => PageResponse::see(&path(dispute_id)),
        Err(error) if error.status() == StatusCode::NOT_FOUND => Err(missing("dispute")),
        Err(error) => {
            let page = DisputePage {
                errors: repairable(error)?,
                answer: input.answer,
                ..dispute(&cx, &input.id).await?
            };
            form_page(&page, true)
        }
    }
}

/// Finds a dispute of what the person sold.
async fn of_seller(cx: &Cx, text: &str) -> Result<DisputedSale, ApiError> {
    let dispute: DisputeId = id(text, "dispute")?;
    let operator = cx.the_operator()?;
    let found = cx.app.store.money().dispute_of(operator, dispute).await?;
    let found = found.filter(|found| found.sale.seller == operator);
    found.ok_or_else(|| missing("dispute"))
}

async fn confirm_refund(cx: Cx, input: DisputePagePath) -> Result<PageResponse, ApiError> {
    let found = of_seller(&cx, &input.id).await?;
    let id = found.dispute.id;
    if found.dispute.state != DisputeState::Open {
        return PageResponse::see(&path(id));
    }
    let price = found.sale.price;
    let lost = if found.sale.paid_with == PaidWith::Given {
        "the points of the sale".to_owned()
    } else {
        format!("your share of ${} and the points of the sale", found.sale.share)
    };
    PageResponse::page(&ConfirmPage {
        chrome: page_layout(&cx).await?,
        title: format!("Give ${price} back?"),
        explanation: format!(
            "The buyer gets ${price} in test USDC and loses the item; {lost} are taken back. The dispute ends, and this \
             cannot be undone."
        ),
        action: format!("{}/refund", path(id)),
        fields: Vec::new(),
        label: format!("Give ${price} back"),
        danger: true,
        back: path(id),
    })
}

async fn refund(cx: Cx, input: DisputePagePath) -> Result<PageResponse, ApiError> {
    let found = of_seller(&cx, &input.id).await?;
    let id = found.dispute.id;
    disputes::give_back(&cx, found.sale.seller, id).await?;
    PageResponse::see(&path(id))
}

/// Finds a dispute that the person decides; to others the page is a thing that does not exist.
async fn to_decide(cx: &Cx, text: &str) -> Result<DisputedSale, ApiError> {
    match find(cx, text).await? {
        (found, true) => Ok(found),
        (_, false) => Err(missing("dispute")),
    }
}

async fn judge(cx: Cx, input: DisputePagePath) -> Result<PageResponse, ApiError> {
    let found = to_decide(&cx, &input.id).await?;
    if found.dispute.state != DisputeState::Open {
        return PageResponse::see(&path(found.dispute.id));
    }
    PageResponse::page(&deciding(&cx, found).await?)
}

async fn deciding(cx: &Cx, found: DisputedSale) -> Result<DecideDisputePage, ApiError> {
    Ok(DecideDisputePage {
        chrome: page_layout(cx).await?,
        dispute: view(found, DisputeReader::Administrator),
        end: None,
        words: String::new(),
        errors: Vec::new(),
    })
}

async fn decide(cx: Cx, input: DecideDisputeForm) -> Result<PageResponse, ApiError> {
    let found = to_decide(&cx, &input.id).await?;
    let id = found.dispute.id;
    let end = input.end.ok_or_else(|| ApiError::invalid("/end", "must be chosen"));
    let end = end.and_then(|end| disputes::check_words("/words", &input.words).map(|()| end));
    let decided = match end {
        Ok(end) => disputes::decide(&cx, id, end == DisputeEnding::Refund, input.words.clone()).await,
        Err(error) => Err(error),
    };
    match decided {
        Ok(()) => PageResponse::see(&path(id)),
        Err(error) => {
            let page = DecideDisputePage {
                errors: repairable(error)?,
                end: input.end.map(|end| match end {
                    DisputeEnding::Refund => DisputeState::Refunded,
                    DisputeEnding::Release => DisputeState::Released,
                }),
                words: input.words,
                ..deciding(&cx, found).await?
            };
            form_page(&page, true)
        }
    }
}
