//! Purchases of persons, for the rows about them: questions that wait, receipts, and owners of limits.

use serde_json::{Value, json};
use store::{NewPersonAsk, PersonAsked};
use tests::apps::Wish;
use tests::world::merged;
use tokio::sync::OnceCell;
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{AgentId, ApprovalId, ContributionId, OperatorId};

use super::site::{Person, Site};
use super::table::Row;
use crate::accounts::now;

/// Price of the units here, in micro-USDC.
const PRICE: i64 = 10_000;

/// Things that many calls read, of the owner and of the other operator.
#[derive(Debug, Default)]
pub(super) struct Purchases {
    /// Priced units, by their seller.
    units: [OnceCell<String>; 2],
    /// Questions that wait, by their person.
    questions: [OnceCell<String>; 2],
    /// Sales, by their buyer.
    sales: [OnceCell<String>; 2],
    /// Connections of apps, by their operator.
    apps: [OnceCell<String>; 2],
}

/// Returns the person whose things a row is about, and the number of its place.
fn whose<'s>(site: &'s Site, row: &Row) -> (&'s Person, usize) {
    if row.fixture.contains("other_key") {
        (&site.other, 1)
    } else {
        (&site.owner, 0)
    }
}

impl Purchases {
    /// A priced unit of the operator that is not in this place.
    async fn unit_for(&self, site: &Site, place: usize) -> &String {
        let seller = if place == 0 { &site.other } else { &site.owner };
        self.units[place]
            .get_or_init(|| site.unit_of(seller, Some(PRICE)))
            .await
    }

    /// A new question of a person, for an agent of its own.
    async fn ask(&self, site: &Site, person: &Person, place: usize) -> String {
        let unit = self.unit_for(site, place).await;
        let (agent, _) = site.agent(person.operator).await;
        ask(site, person.operator, agent, unit).await
    }

    /// A purchase of a person.
    async fn sale(&self, site: &Site, person: &Person, place: usize) -> String {
        let operator = person.operator.to_string();
        let reference = site.name("grant");
        let options = site.server.options();
        options.admin(&["credits", "grant", &operator, "--cents", "1", "--reference", &reference]);
        // Not the unit of the questions, which waits to be bought.
        let seller = if place == 0 { &site.other } else { &site.owner };
        let unit = site.unit_of(seller, Some(PRICE)).await;
        let http = site.http().with(&person.key);
        let bought = http
            .post(&format!("/knowledge/{unit}/buy"), &json!({}))
            .await
            .expect(200);
        bought.text("/saleId").to_owned()
    }

    /// A connection of an app of a person.
    async fn app(&self, site: &Site, person: &Person) -> String {
        let wish = Wish {
            resource: "/mcp",
            scopes: "read spend",
            agent: "new",
        };
        site.app().await.connect(&person.session, &wish).await;
        let connections = site.store.oauth().connections_of(person.operator, now()).await.unwrap();
        connections[0].id.to_string()
    }

    /// Input of an operation about a purchase; `None` for any other operation.
    pub(super) async fn input(&self, site: &Site, operation: &str, row: &Row) -> Option<Value> {
        let (person, place) = whose(site, row);
        Some(match operation {
            "buy_unit_page" => json!({"id": self.unit_for(site, 0).await}),
            // Each says something by an agent of its own.
            "read_unit_form" | "mark_unit_form" | "rate_unit_form" | "appeal_unit_form" => {
                let is_appeal = operation == "appeal_unit_form";
                let seller = if is_appeal { &site.owner } else { &site.other };
                let unit = site.unit_of(seller, None).await;
                let (agent, _) = site.agent(site.owner.operator).await;
                let said = match operation {
                    "mark_unit_form" => json!({"mark": "confirmed", "ran": "Ran it again here."}),
                    "rate_unit_form" => json!({"rating": "5"}),
                    _ => json!({}),
                };
                merged(said, json!({"id": unit, "agent": agent.to_string()}))
            }
            "ask_to_buy_form" => {
                let (agent, _) = site.agent(site.owner.operator).await;
                let unit = self.unit_for(site, 0).await;
                let form = ContributionId::new(now()).to_string();
                json!({"form": form, "item": format!("unit:{unit}"), "agent": agent.to_string(), "price": "0.01"})
            }
            "approval_page" => {
                let make = || self.ask(site, person, place);
                json!({"id": self.questions[place].get_or_init(make).await})
            }
            // Each decides about a question of its own.
            "approve_purchase_form" | "deny_purchase_form" => json!({"id": self.ask(site, person, place).await}),
            "receipt_page" | "receipt_file" => {
                let make = || self.sale(site, person, place);
                json!({"id": self.sales[place].get_or_init(make).await})
            }
            "agent_limits_form" => {
                let (agent, _) = site.agent(person.operator).await;
                json!({"id": agent.to_string(), "per_month": "5"})
            }
            "app_limits_form" => {
                let make = || self.app(site, person);
                json!({"id": self.apps[place].get_or_init(make).await, "per_month": "5"})
            }
            _ => return None,
        })
    }
}

/// Asks a person about a unit, as the form of its page does.
async fn ask(site: &Site, operator: OperatorId, agent: AgentId, unit: &str) -> String {
    let new = NewPersonAsk {
        id: ApprovalId::new(now()),
        operator,
        form: ContributionId::new(now()).to_string(),
        kind: ItemKind::Unit,
        item: unit.to_owned(),
        version: None,
        agent,
        price: MicroUsdc(PRICE),
        default_price: MicroUsdc(PRICE),
        now: now(),
    };
    match site.store.money().approval_ask(new).await.unwrap() {
        PersonAsked::Row(row) => row.id.to_string(),
        other => panic!("{other:?}"),
    }
}
