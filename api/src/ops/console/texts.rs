//! Texts as pages: the front page, the terms, the licences.
//!
//! Invariant: a program that asks at the same address gets the same text as JSON or plain text.

use serde_json::{Map, Value};
use store::{BoardRequest, ContributionSum, ProjectFilter, ProjectSummary, RequestFilter, RequestStatus};
use types::Version;
use types::money::MicroUsdc;
use url::form_urlencoded::Serializer;

use super::overview::flow;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::contribute::documented_contract;
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::pages::{TERMS, built_in_terms, license_text};
use crate::ops::search;
use crate::ops::site::price as dataset_price;
use crate::rules::profiles;

/// Datasets, and units, on the front page.
const NEWEST: u32 = 6;
/// Requests on the front page.
const WANTED: u32 = 3;
/// Datasets among which one is looked for whose rows anybody sees.
const EXAMPLES_TRIED: usize = 3;
/// Columns, and rows, of that one.
const EXAMPLE_SIDE: usize = 4;
/// Most characters of a text in them.
const EXAMPLE_CHARS: usize = 40;
/// Contributions whose rows the figure on the front page shows.
const FLOWING: u32 = 200;

pub(super) fn add(table: &mut Operations) {
    let page = |name, path, summary| Spec {
        name,
        path,
        summary,
        ..Spec::PAGE
    };
    table.add(page("home_page", "/", "The front page"), &[], home);
    table.add(page("terms_page", TERMS, "The terms of service"), &[], terms);
    table.add(
        page("licenses_page", "/licenses", "The licences an item may carry"),
        &[],
        licenses,
    );
    table.add(
        page(
            "platform_license_page",
            License::PlatformStandard.url(),
            "The text of the licence `platform-standard`",
        ),
        &[],
        license,
    );
}

async fn home(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let filter = ProjectFilter {
        q: None,
        // The front page is the same for everybody.
        viewer: None,
        after: None,
        limit: NEWEST,
    };
    // Requests with answers stay open to sellers until their askers choose.
    let [open, answered] = [RequestStatus::Open, RequestStatus::Answered].map(|status| RequestFilter {
        status: Some(status),
        ..RequestFilter::default()
    });
    let store = &cx.app.store;
    let (console, community) = (store.console(), store.community());
    let (projects, datasets, (records, versions), latest, mut wanted, answered) = tokio::try_join!(
        store.projects(&filter),
        store.project_count(&filter),
        console.public_totals(),
        console.contributions_in_public(FLOWING),
        community.requests(&open, cx.now, 0, WANTED),
        community.requests(&answered, cx.now, 0, WANTED)
    )?;
    wanted.extend(answered);
    wanted.sort_by_key(|request| std::cmp::Reverse(request.created_at));
    wanted.truncate(WANTED as usize);
    let latest: Vec<_> = latest.iter().map(ContributionSum::from).collect();
    let (knowledge, _) = search::newest(&cx, None, NEWEST).await?;
    let market = search::market(&cx).await;
    PageResponse::page(&pages::HomePage {
        chrome: page_layout(&cx).await?,
        datasets,
        records,
        versions,
        units: market.as_ref().map(|market| market.units),
        tries: market.map(tries).unwrap_or_default(),
        example: example(&cx, &projects).await?,
        newest: projects.into_iter().map(dataset).collect(),
        knowledge,
        wanted: wanted.into_iter().map(request).collect(),
        flow: (!latest.is_empty()).then(|| flow(&latest)).transpose()?,
    })
}

fn dataset(project: ProjectSummary) -> pages::HomeDataset {
    let price = dataset_price(project.access, project.price_micro);
    pages::HomeDataset {
        slug: project.slug,
        title: project.title,
        records: project.record_count,
        version: project.version.0,
        is_locked: price.is_some(),
        price: search::price(price.map_or(0, |price| price.0)),
        merged_at: instant(project.updated_at),
    }
}

fn request(request: BoardRequest) -> pages::HomeRequest {
    pages::HomeRequest {
        href: format!("/requests/{}", request.id),
        title: request.title,
        kind: request.kind.as_str(),
        budget: request.budget_micro.map(|budget| MicroUsdc(budget).to_string()),
        answers: request.answer_count,
        agent: request.agent_name,
        at: instant(request.created_at),
    }
}

/// Returns searches to begin with: what the market has most of.
fn tries(market: search::Market) -> Vec<(String, String)> {
    let by = |name: &'static str| {
        move |value: String| {
            let query = Serializer::new(String::new()).append_pair(name, &value).finish();
            (format!("/find?{query}"), value)
        }
    };
    let tags = market.tags.into_iter().map(by("tag"));
    tags.chain(market.categories.into_iter().map(by("category"))).collect()
}

/// Returns the first of some datasets of which anybody sees rows, with some of them. One of a single row or column
/// comes last.
async fn example(cx: &Cx, projects: &[ProjectSummary]) -> Result<Option<pages::HomeExample>, ApiError> {
    let merged = projects.iter().filter(|project| project.version > Version::EMPTY);
    let mut small = None;
    for summary in merged.take(EXAMPLES_TRIED) {
        let Some(project) = cx.app.store.project_by_slug(&summary.slug, None).await? else {
            continue;
        };
        let shown = profiles::sampled(cx, &project).await?;
        let Some(rows) = shown.filter(|rows| !rows.is_empty()) else {
            continue;
        };
        let contract = documented_contract(&project)?;
        let columns: Vec<String> = contract
            .fields()
            .iter()
            .take(EXAMPLE_SIDE)
            .map(|field| field.name.clone())
            .collect();
        let row = |record: &Map<String, Value>| columns.iter().map(|name| cell(record.get(name))).collect();
        let rows: Vec<_> = rows.iter().take(EXAMPLE_SIDE).map(row).collect();
        let is_small = rows.len() < 2 || columns.len() < 2;
        let example = pages::HomeExample {
            rows,
            columns,
            dataset: dataset(summary.clone()),
        };
        if !is_small {
            return Ok(Some(example));
        }
        small = small.or(Some(example));
    }
    Ok(small)
}

/// Returns a value of a record as a cell.
fn cell(value: Option<&Value>) -> pages::TableCell {
    match value {
        None | Some(Value::Null) => pages::TableCell::Null,
        Some(Value::String(text)) => pages::TableCell::text(&text.chars().take(EXAMPLE_CHARS).collect::<String>()),
        Some(other) => pages::TableCell::literal(&other.to_string()),
    }
}

async fn terms(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let text = markdown(&text_of(&built_in_terms(&cx)?)?);
    let version = cx.app.config.terms_version.as_str();
    let page = pages::TermsPage::new(page_layout(&cx).await?, "Terms of service", version, &text);
    PageResponse::page(&page)
}

/// Returns the text of a compiled-in document.
fn text_of(bytes: &[u8]) -> Result<String, ApiError> {
    String::from_utf8(bytes.to_vec()).map_err(|error| ApiError::internal(format!("document: {error}")))
}

/// Returns the terms as Markdown: the line that begins a section becomes its heading. The page has title and version.
fn markdown(terms: &str) -> String {
    let is_heading = |line: &str| {
        let number = line.split_once(". ").map(|(number, _)| number);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let lines = terms.lines().skip(2);
    let lines = lines.map(|line| {
        if is_heading(line) {
            format!("## {line}\n\n")
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

/// Returns a text without its first line, which is its title.
fn without_title(text: &str) -> String {
    text.split_once('\n')
        .map_or_else(String::new, |(_, rest)| rest.to_owned())
}

async fn license(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let title = License::PlatformStandard.name();
    PageResponse::page(&pages::TermsPage::new(
        page_layout(&cx).await?,
        title,
        "",
        &without_title(&text_of(&license_text(&cx)?)?),
    ))
}

async fn licenses(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    PageResponse::page(&pages::LicensesPage {
        chrome: page_layout(&cx).await?,
        licenses: License::ALL
            .iter()
            .map(|license| pages::LicenseView {
                id: license.id().to_owned(),
                name: license.name().to_owned(),
                url: license.url().to_owned(),
            })
            .collect(),
    })
}
