//! Calls about what is on sale: lists, prices, purchases and credits.
//!
//! Invariant: asking for a price reads nothing, so it neither counts as a reading nor pays anybody.

use serde_json::{Map, Value};

use crate::call::PendingCall;
use crate::model::{Bought, Credits, Hits, ProjectPage, ProjectSearch, PurchaseTerms, SearchTerms, UnitOffer};
use crate::{Client, Error};

/// Begin of the description of a unit in an offer.
const UNIT_OFFER: &str = "Knowledge unit: ";

impl Client {
    /// Searches published units and public datasets by these conditions.
    pub async fn search_by(&self, terms: &SearchTerms) -> Result<Hits, Error> {
        let mut call = PendingCall::get(["search"]);
        let texts = [
            ("q", &terms.words),
            ("kind", &terms.kind),
            ("category", &terms.category),
            ("price", &terms.price),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                call = call.text(name, text);
            }
        }
        if let Some(limit) = terms.limit {
            call = call.query("limit", limit);
        }
        self.json(call).await
    }

    /// Returns the first page of the projects that the caller sees.
    pub async fn project_page(&self, search: &ProjectSearch) -> Result<ProjectPage, Error> {
        let mut call = PendingCall::get(["projects"]);
        if let Some(words) = &search.words {
            call = call.text("q", words);
        }
        if let Some(limit) = search.limit {
            call = call.query("limit", limit);
        }
        self.json(call).await
    }

    /// Returns a unit of the caller's operator with its review, in all fields.
    pub async fn unit_own(&self, id: &str) -> Result<Map<String, Value>, Error> {
        self.json(PendingCall::get(["knowledge", id])).await
    }

    /// Returns what a published unit costs. The credential is not sent, since a key would read it.
    pub async fn unit_offer(&self, id: &str) -> Result<UnitOffer, Error> {
        let anybody = self.without_key();
        let read: Result<Map<String, Value>, Error> = anybody.json(PendingCall::get(["knowledge", id, "full"])).await;
        let text = |body: &Map<String, Value>, name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let problem = match read {
            Ok(open) => {
                return Ok(UnitOffer {
                    id: id.to_owned(),
                    title: text(&open, "title"),
                    price: None,
                    price_micro: 0,
                    key_reads: true,
                });
            }
            Err(Error::Refused { problem, .. }) if problem.status == 402 => problem,
            Err(error) => return Err(error),
        };
        // The terms of a payment name the unit. A service without payments by wallets has none.
        let terms: Result<Value, Error> = anybody
            .json(PendingCall::get(["paid", "knowledge"]).text("id", id))
            .await;
        let described = match &terms {
            Err(Error::Refused { problem, .. }) if problem.status == 402 => problem.body.get("accepts"),
            _ => None,
        };
        let described = described.and_then(|accepts| accepts[0]["description"].as_str());
        let title = described.map(|described| described.strip_prefix(UNIT_OFFER).unwrap_or(described));
        Ok(UnitOffer {
            id: id.to_owned(),
            title: title.map(str::to_owned),
            price: text(&problem.body, "price"),
            price_micro: problem.body.get("priceMicro").and_then(Value::as_i64).unwrap_or(0),
            key_reads: problem.body.contains_key("hint"),
        })
    }

    /// Buys a version of a dataset with credits. Costs nothing if the operator has it. Not repeatable: without a
    /// version it is the latest, which may be another at the next call.
    pub async fn dataset_buy(&self, slug: &str, terms: &PurchaseTerms) -> Result<Bought, Error> {
        self.json(PendingCall::post(["projects", slug, "buy"], terms)).await
    }

    /// Buys a unit with credits, on terms. Costs nothing if the operator has it.
    pub async fn unit_buy_on(&self, id: &str, terms: &PurchaseTerms) -> Result<Bought, Error> {
        self.json(PendingCall::post(["knowledge", id, "buy"], terms)).await
    }

    /// Returns the credits of the operator with the newest `limit` movements, 1 to 200.
    pub async fn credits(&self, limit: u32) -> Result<Credits, Error> {
        self.json(PendingCall::get(["credits"]).query("limit", limit)).await
    }
}
