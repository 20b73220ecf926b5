//! Page of the library: what the account bought or may read, searched and read in one place.
//!
//! Invariant: what is open is decided by the rules of reading, and not by the list. Opening the page writes nothing.

use pages::console::{
    LibraryChoice, LibraryContent, LibraryDataset, LibraryItem, LibraryNote, LibraryPage, LibraryPaid, LibraryReader,
    LibraryText, LibraryThing,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Bought, LibraryFilter, LibraryOrder, OwnedItem, Project, ReadUnit};
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{OperatorId, UnitId, Version};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, instant, missing, page, page_layout};
use crate::ops::site::price as dataset_price;
use crate::rules::entitlement::units;

const PATH: &str = "/console/library";
const GONE: &str = "It is taken down or deleted. Your receipt stays.";

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("library_page", PATH, "What the account bought or may read"),
        &[],
        show,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LibraryQuery {
    /// Words that a title or a text contains.
    #[serde(default)]
    #[schemars(length(max = 200))]
    q: String,
    /// `datasets` or `write-ups`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    kind: String,
    /// `bought`, `read` or `newer`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    of: String,
    /// `title` or `price`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    sort: String,
    /// Number of the page; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<u32>,
    /// `dataset:` and a slug, or `unit:` and the id of a unit.
    #[schemars(length(max = 120))]
    item: Option<String>,
}

impl LibraryQuery {
    fn choice(&self) -> Result<LibraryChoice, ApiError> {
        let known = |value: &str, choices: &[(&str, &str)], field: &str| {
            if choices.iter().any(|(choice, _)| *choice == value) {
                Ok(value.to_owned())
            } else {
                Err(ApiError::invalid(field, "is no choice of the library"))
            }
        };
        Ok(LibraryChoice {
            q: self.q.trim().to_owned(),
            kind: known(&self.kind, &LibraryChoice::KINDS, "/kind")?,
            of: known(&self.of, &LibraryChoice::SOURCES, "/of")?,
            sort: known(&self.sort, &LibraryChoice::ORDERS, "/sort")?,
        })
    }
}

/// Returns the choice of bought items that the database takes.
fn filter(choice: &LibraryChoice, page: u32) -> LibraryFilter {
    LibraryFilter {
        q: choice.q.clone(),
        kind: match choice.kind.as_str() {
            "datasets" => Some(ItemKind::Dataset),
            "write-ups" => Some(ItemKind::Unit),
            _ => None,
        },
        is_newer: choice.of == "newer",
        order: match choice.sort.as_str() {
            "title" => LibraryOrder::Title,
            "price" => LibraryOrder::Price,
            _ => LibraryOrder::Newest,
        },
        offset: (page - 1) * PAGE_ROWS,
        // One more than the page has, to know if there is a next page.
        limit: PAGE_ROWS + 1,
    }
}

/// Items of a page, with the number on all pages.
struct LibraryPart<T> {
    items: Vec<T>,
    count: u64,
    has_more: bool,
}

impl<T> LibraryPart<T> {
    const fn none() -> Self {
        Self {
            items: Vec::new(),
            count: 0,
            has_more: false,
        }
    }

    fn of(mut items: Vec<T>, count: u64) -> Self {
        let most = usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX);
        let has_more = items.len() > most;
        items.truncate(most);
        Self { items, count, has_more }
    }
}

async fn show(cx: Cx, input: LibraryQuery) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let choice = input.choice()?;
    let number = input.page.unwrap_or(1).max(1);
    let (bought, read) = listed(&cx, operator, &choice, number).await?;
    let account = cx.app.store.operator(operator).await?;
    let account = account.ok_or_else(|| missing("account"))?;
    let layout = page_layout(&cx).await?;
    let first = bought.items.first().map(owned_key);
    let first = first.or_else(|| read.items.first().map(|unit| unit_key(unit.chain)));
    let key = input.item.or(first);
    let open = match &key {
        Some(key) => open(&cx, operator, key, &bought.items, &layout).await?,
        None => None,
    };
    let turned = |number: u32| {
        let number = if number > 1 { number.to_string() } else { String::new() };
        choice.address(&[("page", number.as_str())])
    };
    let has_more = if choice.of == "read" {
        read.has_more
    } else {
        bought.has_more
    };
    let place = |item: String| {
        let is_open = key.as_deref() == Some(item.as_str());
        let number = if number > 1 { number.to_string() } else { String::new() };
        (
            choice.address(&[("page", number.as_str()), ("item", item.as_str())]),
            is_open,
        )
    };
    PageResponse::page(&LibraryPage {
        account: account.display_name,
        bought: bought
            .items
            .iter()
            .map(|item| owned(item, place(owned_key(item))))
            .collect(),
        bought_count: bought.count,
        read: read
            .items
            .iter()
            .map(|unit| read_unit(unit, place(unit_key(unit.chain))))
            .collect(),
        read_count: read.count,
        previous: (number > 1).then(|| turned(number - 1)),
        next: has_more.then(|| turned(number + 1)),
        open,
        chrome: layout,
        choice: choice.clone(),
    })
}

/// Returns the bought items and the read units of a page.
async fn listed(
    cx: &Cx,
    operator: OperatorId,
    choice: &LibraryChoice,
    number: u32,
) -> Result<(LibraryPart<OwnedItem>, LibraryPart<ReadUnit>), ApiError> {
    let (money, knowledge) = (cx.app.store.money(), cx.app.store.knowledge());
    let bought = if choice.of == "read" {
        LibraryPart::none()
    } else {
        let filter = filter(choice, number);
        let (items, count) =
            tokio::try_join!(money.library(operator, &filter), money.library_count(operator, &filter))?;
        LibraryPart::of(items, count)
    };
    let is_read_only = choice.of == "read";
    // Beside what was bought, the first page has the first units that were read; a choice of them has all.
    let has_read = (is_read_only || (choice.of.is_empty() && number == 1)) && choice.kind != "datasets";
    let read = if has_read {
        let offset = if is_read_only { (number - 1) * PAGE_ROWS } else { 0 };
        let by_title = choice.sort == "title";
        let (items, count) = tokio::try_join!(
            knowledge.read_by(operator, (choice.q.as_str(), by_title), (offset, PAGE_ROWS + 1)),
            knowledge.read_by_count(operator, &choice.q)
        )?;
        LibraryPart::of(items, count)
    } else {
        LibraryPart::none()
    };
    Ok((bought, read))
}

fn unit_key(chain: UnitId) -> String {
    format!("unit:{chain}")
}

fn owned_key(item: &OwnedItem) -> String {
    match item.sale.kind {
        ItemKind::Unit => format!("unit:{}", item.sale.item),
        ItemKind::Dataset => format!("dataset:{}", item.slug.as_deref().unwrap_or_default()),
    }
}

/// Returns a bought item as the page lists it.
fn owned(item: &OwnedItem, (href, is_open): (String, bool)) -> LibraryItem {
    let (sale, newest) = (&item.sale, item.newest.unwrap_or(0));
    let (confirmed, flagged) = (item.confirmed.unwrap_or(0), item.flagged.unwrap_or(0));
    LibraryItem {
        href,
        is_open,
        title: item.title.clone().unwrap_or_default(),
        thing: match sale.kind {
            ItemKind::Dataset => LibraryThing::Dataset(Version(sale.version)),
            ItemKind::Unit => LibraryThing::Unit(item.newest),
        },
        agent: item.agent_name.clone(),
        price: Some(sale.price),
        at: instant(sale.sold_at),
        note: if item.is_hidden {
            LibraryNote::Hidden
        } else if sale.kind == ItemKind::Dataset && newest > sale.version {
            LibraryNote::Newer(Version(newest))
        } else if flagged > 0 && flagged >= confirmed {
            LibraryNote::Doubted(flagged)
        } else {
            LibraryNote::None
        },
    }
}

/// Returns a unit that was read as the page lists it.
fn read_unit(unit: &ReadUnit, (href, is_open): (String, bool)) -> LibraryItem {
    LibraryItem {
        href,
        is_open,
        title: unit.title.clone(),
        thing: LibraryThing::Unit(unit.number.map(Into::into)),
        agent: Some(unit.agent_name.clone()),
        price: None,
        at: instant(unit.read_at),
        note: LibraryNote::None,
    }
}

/// Returns the item with this key, if the account bought it or may read it.
async fn open(
    cx: &Cx,
    operator: OperatorId,
    key: &str,
    listed: &[OwnedItem],
    layout: &pages::PageLayout,
) -> Result<Option<LibraryReader>, ApiError> {
    match key.split_once(':') {
        Some(("unit", chain)) => match chain.parse() {
            Ok(chain) => unit(cx, operator, chain, layout).await,
            Err(_) => Ok(None),
        },
        Some(("dataset", slug)) => dataset(cx, operator, slug, listed).await,
        _ => Ok(None),
    }
}

async fn unit(
    cx: &Cx,
    operator: OperatorId,
    chain: UnitId,
    layout: &pages::PageLayout,
) -> Result<Option<LibraryReader>, ApiError> {
    let (knowledge, money) = (cx.app.store.knowledge(), cx.app.store.money());
    let Some(first) = knowledge.unit(chain).await? else {
        return Ok(None);
    };
    // The newest text is what is read.
    let newest = match first.chain.latest.filter(|latest| *latest != chain) {
        Some(latest) => knowledge.unit(latest).await?,
        None => None,
    };
    let unit = newest.unwrap_or(first);
    let bought = money.purchase_of(operator, ItemKind::Unit, &chain.to_string()).await?;
    let relation = units::account_relation(&cx.app, Some(operator), &unit, bought.is_some()).await?;
    let is_open = units::is_open_to_person(units::full_read(&unit, relation), relation);
    if !is_open && bought.is_none() {
        return Ok(None);
    }
    let content = if is_open {
        let mut text = LibraryText::of(&unit.body, layout);
        text.source = unit.source_declaration;
        text.score = unit.scores.map(|(scores, _)| scores.total);
        text.confirmed = unit.chain.marks.confirmed;
        text.doubted = unit.chain.marks.flagged();
        LibraryContent::Unit(text)
    } else {
        LibraryContent::Closed(GONE)
    };
    Ok(Some(LibraryReader {
        href: format!("/units/{}", unit.id),
        title: unit.title,
        agent: Some(unit.agent_name),
        license: unit.chain.license,
        paid: bought.as_ref().map(|bought| paid(cx, bought)),
        content,
    }))
}

async fn dataset(
    cx: &Cx,
    operator: OperatorId,
    slug: &str,
    listed: &[OwnedItem],
) -> Result<Option<LibraryReader>, ApiError> {
    let store = &cx.app.store;
    let project = store.project_by_slug(slug, Some(operator)).await?;
    let item = project.as_ref().map(|project| project.id.to_string());
    let row = listed.iter().find(|row| row.slug.as_deref() == Some(slug));
    let Some(item) = item.or_else(|| row.map(|row| row.sale.item.clone())) else {
        return Ok(None);
    };
    let bought = store.money().purchase_of(operator, ItemKind::Dataset, &item).await?;
    let Some(bought) = bought else {
        return Ok(None);
    };
    let paid = paid(cx, &bought);
    Ok(Some(match project {
        Some(project) => LibraryReader {
            href: format!("/projects/{slug}"),
            title: project.title.clone(),
            agent: None,
            license: project.license.clone(),
            paid: Some(paid),
            content: LibraryContent::Dataset(rows(cx, &project, Version(bought.sale.version)).await?),
        },
        None => LibraryReader {
            href: format!("/projects/{slug}"),
            title: bought.title.unwrap_or_default(),
            agent: None,
            license: String::new(),
            paid: Some(paid),
            content: LibraryContent::Closed(GONE),
        },
    }))
}

/// Returns the owned version of a dataset beside the newest one.
async fn rows(cx: &Cx, project: &Project, version: Version) -> Result<LibraryDataset, ApiError> {
    let before = Version(version.0.saturating_sub(1));
    let found = cx.app.store.project_versions_between(project.id, before, version, 1);
    Ok(LibraryDataset {
        slug: project.slug.clone(),
        version,
        newest: project.version,
        records: found.await?.first().map(|version| version.record_count),
        newest_records: project.record_count,
        price: dataset_price(project.access, project.price_micro).unwrap_or(MicroUsdc(0)),
    })
}

/// Returns a purchase as the page shows it.
fn paid(cx: &Cx, bought: &Bought) -> LibraryPaid {
    let sale = &bought.sale;
    LibraryPaid {
        sale: sale.id,
        price: sale.price,
        means: match sale.paid_with {
            PaidWith::Credits => "bought credits",
            PaidWith::Given => "trial credit",
            PaidWith::X402 => "a wallet",
        },
        agent: bought.agent_name.clone(),
        at: instant(sale.sold_at),
        disputed_until: sale.disputable_until(cx.now).map(instant),
    }
}
