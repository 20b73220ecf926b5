//! The page of prices.
//!
//! Invariant: every figure is of the configuration, and a fee is computed by the function that splits sales.

use std::sync::Arc;

use pages::{DocsPage, FeeExample, FeeStep, PricingPart};
use schemars::JsonSchema;
use serde::Deserialize;
use types::money::MicroUsdc;

use super::{content, page};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::money::pricing;
use crate::ops::page_kit::page_layout;
use crate::spans::span;

/// Price in dollars whose fee the page shows if the query names none.
const ASKED: &str = "0.50";

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("pricing_page", "/pricing", "Prices, fees and what is free"),
        &[],
        prices,
    );
}

/// Price whose fee is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PricingQuery {
    /// Price in dollars.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    price: Option<String>,
}

async fn prices(cx: Cx, input: PricingQuery) -> Result<PageResponse, ApiError> {
    let (tariff, limits) = (&cx.app.pay, &cx.app.limits);
    let fee = |price: MicroUsdc| {
        let split = tariff.fee.split(price);
        FeeExample {
            price,
            fee: split.fee,
            share: split.share,
        }
    };
    let asked = input.price.unwrap_or_else(|| ASKED.to_owned());
    let worked = asked.trim().trim_start_matches('$').parse::<MicroUsdc>();
    let steps = pricing::brackets(tariff).into_iter().map(|bracket| FeeStep {
        above: MicroUsdc(bracket.above),
        up_to: bracket.up_to.map(MicroUsdc),
        percent: bracket.percent,
    });
    let part = PricingPart {
        unit_default: pay::UNIT_DEFAULT,
        dataset_default: pay::DEFAULT_DATASET_PRICE,
        minimum: pay::MIN_PRICE,
        given: tariff.given_at_sign_up,
        pack: tariff.pack,
        egress_block: tariff.egress_block,
        storage_block: tariff.storage_block_day,
        free_egress: tariff.free_egress_bytes,
        free_storage: limits.storage_per_operator.0,
        payout_from: tariff.payout_threshold,
        dispute_time: span(tariff.dispute_window_seconds.into()),
        reviews_a_day: limits.knowledge_per_day,
        batches_a_day: limits.public_contributions_per_day,
        active_datasets: limits.active_projects_per_operator,
        steps: steps.collect(),
        examples: pricing::EXAMPLES
            .into_iter()
            .map(|price| fee(MicroUsdc(price)))
            .collect(),
        worked: worked.ok().map(fee),
        asked,
    };
    PageResponse::page(&DocsPage {
        chrome: page_layout(&cx).await?,
        title: "Pricing".to_owned(),
        description: "What buying, selling, storage and traffic cost, and what is free.".to_owned(),
        content: Arc::new(content(&part)?),
    })
}
