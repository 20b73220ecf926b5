//! What the caller's operator bought.

use schemars::JsonSchema;
use serde::Serialize;
use store::{Bought, ItemKind};
use types::SaleId;
use types::vocabulary::PaidWith;

use super::{ListQuery, OwnListQuery};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::ops::paging::take_page;

/// A purchase in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MyPurchase {
    /// Id of the sale.
    id: String,
    /// Kind of the item.
    kind: ItemKind,
    /// Id of the unit, under which every version of it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_id: Option<String>,
    /// Slug of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Version of the dataset that was bought, with every earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Title of the item; empty where it is erased.
    title: String,
    /// Price that was paid, in micro-USDC.
    price_micro: i64,
    /// Money that it was paid with.
    paid_with: PaidWith,
    /// Name of the agent that bought it; absent where a wallet or a person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    at: WireInstant,
    /// True if the money was given back and the item reads no more.
    refunded: bool,
}

pub(super) async fn list(cx: Cx, input: ListQuery) -> Result<JsonReply<OwnListQuery<MyPurchase>>, ApiError> {
    let (before, limit) = input.read::<SaleId>()?;
    let money = cx.app.store.money();
    let mut found = money.purchases_of(cx.the_operator()?, before, limit + 1).await?;
    let next_cursor = take_page(&mut found, limit).map(|last| last.sale.id.to_string());
    Ok(JsonReply::ok(OwnListQuery {
        items: found.into_iter().map(line).collect(),
        next_cursor,
    }))
}

fn line(bought: Bought) -> MyPurchase {
    let Bought {
        sale,
        slug,
        title,
        agent_name,
    } = bought;
    let (is_unit, refunded) = (sale.kind == ItemKind::Unit, sale.is_refunded());
    MyPurchase {
        id: sale.id.to_string(),
        kind: sale.kind,
        unit_id: is_unit.then_some(sale.item),
        dataset: slug,
        version: (!is_unit).then_some(sale.version),
        title: title.unwrap_or_default(),
        price_micro: sale.price.0,
        paid_with: sale.paid_with,
        agent: agent_name,
        at: sale.sold_at.into(),
        refunded,
    }
}
