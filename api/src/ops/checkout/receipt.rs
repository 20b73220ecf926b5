//! Receipt of a purchase for the person of the account: a page, and the signed statement as a file.
//!
//! Invariant: the file has the bytes that `GET /receipts/{id}` answers to an agent of the account.

use pages::console::ReceiptPage;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use store::Bought;
use types::SaleId;

use super::of_bought;
use crate::call::answer::{FileDownload, JSON};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{id, instant, missing, page, page_layout};
use crate::rules::receipts::{self, SignedSale};

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("receipt_page", "/console/receipts/{id}", "Receipt of a purchase"),
        &[],
        show,
    );
    table.add(
        page(
            "receipt_file",
            "/console/receipts/{id}/receipt.json",
            "Signed receipt of a purchase as a file",
        ),
        &[],
        file,
    );
}

/// Returns the page of a receipt.
pub(super) fn path(sale: SaleId) -> String {
    format!("/console/receipts/{sale}")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReceiptPath {
    /// Id of the sale.
    #[schemars(length(max = 64))]
    id: String,
}

/// Returns a purchase of the person's account with its receipt.
async fn find(cx: &Cx, text: &str) -> Result<(Bought, SignedSale), ApiError> {
    let sale: SaleId = id(text, "receipt")?;
    let found = cx.app.store.money().purchase_by_sale(cx.the_operator()?, sale).await?;
    let bought = found.ok_or_else(|| missing("receipt"))?;
    Ok((bought, receipts::of_sale(cx, sale).await?))
}

async fn show(cx: Cx, input: ReceiptPath) -> Result<PageResponse, ApiError> {
    let (bought, signed) = find(&cx, &input.id).await?;
    let (sale, statement) = (&bought.sale, &signed.statement);
    let account = cx.app.store.operator(cx.the_operator()?).await?;
    let account = account.ok_or_else(|| missing("account"))?;
    let root = statement.content_root.map(|root| root.to_string());
    let body = statement.body_sha256.map(|hash| hash.to_string());
    let money = cx.app.store.money();
    let dispute = money.dispute_of_sale(cx.the_operator()?, sale.id).await?;
    let document: Value = serde_json::from_str(&signed.text).map_err(ApiError::internal)?;
    PageResponse::page(&ReceiptPage {
        chrome: page_layout(&cx).await?,
        sale: sale.id,
        checkout: of_bought(&cx, &bought).await?,
        paid_with: sale.paid_with,
        account: account.display_name,
        is_approved: sale.approval.is_some(),
        sold_at: instant(sale.sold_at),
        disputed_until: sale.disputable_until(cx.now).filter(|_| dispute.is_none()).map(instant),
        is_disputed: dispute.is_some(),
        is_refunded: sale.is_refunded(),
        fingerprint: root.or(body),
        key: signed.key.to_string(),
        document: serde_json::to_string_pretty(&document).map_err(ApiError::internal)?,
        agent: bought.agent_name,
    })
}

async fn file(cx: Cx, input: ReceiptPath) -> Result<FileDownload, ApiError> {
    let (_, signed) = find(&cx, &input.id).await?;
    Ok(FileDownload::whole("receipt.json", JSON, signed.text.into()))
}
