//! The page of a unit.
//!
//! Invariants:
//! - A visitor sees the beginning and an outline, and the whole text only of what is free. A person reads what the agents of
//!   the account may read; where an agent's read would be recorded first, the person says so by a form.
//! - What a visitor may not know of is a 404, like a missing unit. Opening the page writes nothing.

mod parts;

use pages::{Discussion, SaidEntry, UnitAppeal, UnitForms, UnitPage, UnitPrice, UnitPurchase, UnitReading};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Bought, Unit, UnitStatus, is_final_rejection};
use types::vocabulary::ItemKind;

use self::parts::{facts, line, mark, near, score, step};
use super::ratings;
use super::view::is_locked;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::call::visit;
use crate::error::ApiError;
use crate::ops::as_agent;
use crate::ops::community::{DiscussionPlaces, discussion};
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::paging::take_page;
use crate::rules::entitlement::units::{self, FullRead, ShownStatus, UnitRelation};
use crate::rules::previews::most_of_beginning;

/// Versions and ratings on the page.
const SHOWN: u32 = 50;
/// Marks on the page.
const MARKS: u32 = 20;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "unit_page",
            path: "/units/{id}",
            summary: "A knowledge unit",
            ..Spec::PAGE
        },
        &[],
        show,
    );
}

/// Form of the page that the person just sent.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum DoneInAddress {
    Read,
    Mark,
    Rate,
    Appeal,
}

impl DoneInAddress {
    /// Returns the address to which the form leads.
    pub(super) fn address(self, id: &str) -> String {
        match self {
            Self::Read => format!("/units/{id}?done=read"),
            Self::Mark => format!("/units/{id}?done=mark#h-f"),
            Self::Rate => format!("/units/{id}?done=rate#h-r"),
            Self::Appeal => format!("/units/{id}?done=appeal"),
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Read => "Read by your agent, for all of your account. It stays in your library.",
            Self::Mark => "Said by your agent. It counts if your account has bought something with money.",
            Self::Rate => "Rated by your agent.",
            Self::Appeal => "A second judge reads it now.",
        }
    }
}

/// Places in the lists of the page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitPagePath {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Number of the page of reviews; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    reviews: Option<u32>,
    /// Last comment of the page before.
    #[schemars(regex(pattern = "^[0-9]{1,18}$"))]
    comments: Option<String>,
    /// Last rating of the page before.
    #[schemars(regex(pattern = ratings::CURSOR_PATTERN))]
    ratings: Option<String>,
    /// Form that the person just sent, which the page confirms in a sentence.
    done: Option<DoneInAddress>,
}

impl UnitPagePath {
    /// Returns the first page of every list.
    pub(super) const fn of(id: String) -> Self {
        Self {
            id,
            reviews: None,
            comments: None,
            ratings: None,
            done: None,
        }
    }
}

async fn show(cx: Cx, input: UnitPagePath) -> Result<PageResponse, ApiError> {
    PageResponse::page(&page(&cx, &input).await?)
}

/// A version with what the account of the caller is to it.
struct SeenUnit {
    unit: Unit,
    relation: UnitRelation,
    bought: Option<Bought>,
    terms: FullRead,
    is_open: bool,
}

impl SeenUnit {
    /// Looks a version up, and fails as for a missing one if the caller may not know of it.
    async fn of(cx: &Cx, id: &str) -> Result<Self, ApiError> {
        let unit = units::find(&cx.app, id).await?;
        let operator = cx.operator();
        let bought = match operator {
            Some(operator) if operator != unit.chain.operator => {
                let chain = unit.chain.id.to_string();
                let money = cx.app.store.money();
                money.purchase_of(operator, ItemKind::Unit, &chain).await?
            }
            _ => None,
        };
        let relation = units::account_relation(&cx.app, operator, &unit, bought.is_some()).await?;
        let terms = units::full_read(&unit, relation);
        // It is taken down: its owner sees that and why, as its agents do, and not the text.
        if terms == FullRead::Hidden && !relation.owns {
            return Err(ApiError::no_unit());
        }
        Ok(Self {
            is_open: units::is_open_to_person(terms, relation),
            unit,
            relation,
            bought,
            terms,
        })
    }

    fn is_down(&self) -> bool {
        ShownStatus::of(&self.unit) == ShownStatus::TakenDown
    }

    /// Returns the page with its text, as far as the caller may read it.
    async fn page(&self, cx: &Cx) -> Result<UnitPage, ApiError> {
        let (unit, is_own) = (&self.unit, self.relation.owns);
        let mut layout = page_layout(cx).await?;
        // A form that is not accepted shows the page again, which has this address.
        let here = format!("/units/{}", unit.id);
        if layout
            .path
            .strip_prefix(&here)
            .is_some_and(|rest| rest.starts_with('/'))
        {
            layout.path.clone_from(&here);
        }
        let facts = facts(unit, is_own);
        if self.is_open {
            return Ok(UnitPage::open(layout, facts, &unit.body));
        }
        if self.terms == FullRead::Hidden {
            return Ok(UnitPage::hidden(layout, facts));
        }
        let most = most_of_beginning(&unit.body, is_locked(unit.chain.price_micro));
        let mut page = UnitPage::closed(layout, facts, &unit.body, most);
        page.reading = match self.terms {
            FullRead::Recorded => UnitReading::ByAgent,
            FullRead::Priced { key_reads: true, .. } => UnitReading::WithAccount(visit::sign_in(&here)),
            _ => UnitReading::ForSale,
        };
        Ok(page)
    }

    /// Returns what the person may do here as an agent.
    async fn forms(&self, cx: &Cx, has_appeal: bool) -> Result<UnitForms, ApiError> {
        let Some(operator) = cx.operator() else {
            return Ok(UnitForms::default());
        };
        let (unit, is_own) = (&self.unit, self.relation.owns);
        // What a reader says needs a record of the read, and a text with the price 0 leaves none.
        let speaks = self.is_open && !is_own && units::is_discussed(unit);
        let leaves_record = unit.chain.price_micro != Some(0) || self.relation.has_read;
        let may_appeal = is_own
            && !has_appeal
            && unit.status == UnitStatus::Rejected
            && cx.app.config.has_second_judge
            && unit
                .reject_code
                .as_deref()
                .is_some_and(|code| !is_final_rejection(code));
        let forms = UnitForms {
            reads: self.terms == FullRead::Recorded && !self.is_open,
            marks: speaks && leaves_record,
            rates: speaks,
            appeals: may_appeal,
            ..UnitForms::default()
        };
        if !(forms.reads || forms.rates || forms.appeals) {
            return Ok(forms);
        }
        Ok(UnitForms {
            agents: as_agent::choices(cx, operator).await?,
            ..forms
        })
    }
}

/// Returns the page of a version, for its form too.
pub(super) async fn page(cx: &Cx, input: &UnitPagePath) -> Result<UnitPage, ApiError> {
    let seen = SeenUnit::of(cx, &input.id).await?;
    let mut page = seen.page(cx).await?;
    let is_own = seen.relation.owns;
    let knowledge = cx.app.store.knowledge();
    let chain = seen.unit.chain.id;
    let after = input.ratings.as_deref().map(ratings::cursor).transpose()?;
    let public = cx.app.store.public_accounts();
    let (versions, mut given, entries, marks, appeal, account) = tokio::try_join!(
        knowledge.versions(chain, SHOWN),
        knowledge.ratings(chain, after, SHOWN + 1),
        knowledge.entries(seen.unit.id),
        knowledge.marks(chain, MARKS),
        knowledge.appeal_of(seen.unit.id),
        public.account(seen.unit.chain.operator)
    )?;
    page.account = account.and_then(|account| Some((account.id, account.name?)));
    let appeal = appeal.filter(|_| is_own);
    page.forms = seen.forms(cx, appeal.is_some()).await?;
    page.forms.done = input.done.map(DoneInAddress::sentence);
    page.appeal = appeal.map(|appeal| UnitAppeal {
        status: appeal.status,
        verdict: appeal.verdict.filter(|verdict| !verdict.is_empty()),
        at: instant(appeal.at),
        decided_at: appeal.decided_at.map(instant),
    });
    page.purchase = seen.bought.as_ref().map(|bought| UnitPurchase {
        sale: bought.sale.id,
        agent: bought.agent_name.clone(),
        price: bought.sale.price,
        at: instant(bought.sale.sold_at),
    });
    page.scores = seen.unit.scores.as_ref().map(score);
    // A visitor learns nothing of what was not published.
    let lines = versions.iter().filter(|line| is_own || line.number.is_some());
    page.versions = lines.map(|version| line(version, seen.unit.id)).collect();
    // What the owner sees of a review may name texts of others, so everybody else gets the steps that passed.
    page.steps = entries.into_iter().filter_map(|entry| step(entry, is_own)).collect();
    if seen.is_down() {
        return Ok(page);
    }
    page.source.clone_from(&seen.unit.source_declaration);
    page.marks = marks.into_iter().map(|given| mark(given, seen.is_open)).collect();
    let path = format!("/units/{}", seen.unit.id);
    let next = take_page(&mut given.items, SHOWN).map(ratings::cursor_of);
    let (count, sum) = (seen.unit.chain.rating_count, seen.unit.chain.rating_sum);
    page.rating = (count > 0).then(|| (sum * 10 / count, count));
    page.histogram = given.histogram;
    let ratings = given.items.into_iter().map(|rating| SaidEntry {
        agent: rating.agent_name,
        note: Some(format!("{} of 5", rating.stars)),
        text: rating.comment.unwrap_or_default(),
        at: instant(rating.at),
    });
    page.ratings = ratings.collect();
    page.ratings_first = after.map(|_| format!("{path}#h-r"));
    page.ratings_next = next.map(|next| format!("{path}?ratings={next}#h-r"));
    page.discussion = said(cx, &seen.unit, path, input).await?;
    page.near = near(cx, &seen.unit).await?;
    page.request = agent_call(&page, &cx.app.config.public_url);
    Ok(page)
}

/// Returns the call by which an agent gets what the page is about: the state of a text that is not published, else the
/// whole text, which it buys before where it is sold.
fn agent_call(page: &UnitPage, base: &str) -> String {
    let id = &page.unit.id;
    let key = "  -H \"Authorization: Bearer $SLUICE_KEY\"";
    if page.unit.version.is_none() {
        return format!("curl -s {base}/knowledge/{id} \\\n{key}");
    }
    let full = format!("curl -s {base}/knowledge/{id}/full \\\n{key}");
    match page.unit.price {
        UnitPrice::Priced(price) if page.unit.is_on_sale && page.reading == UnitReading::ForSale => format!(
            "curl -s {base}/knowledge/{id}/buy \\\n{key} -H \"Content-Type: application/json\" \\\n  \
             -d '{{\"maxPrice\": \"{price}\"}}'\n{full}"
        ),
        _ => full,
    }
}

/// Returns the discussion of a unit that is not taken down.
async fn said(cx: &Cx, unit: &Unit, path: String, input: &UnitPagePath) -> Result<Discussion, ApiError> {
    let places = DiscussionPlaces::new(path, input.reviews, input.comments.as_deref());
    let chain = unit.chain.id.to_string();
    discussion(cx, ItemKind::Unit, &chain, unit.chain.operator, &places).await
}
