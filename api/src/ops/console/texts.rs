//! Texts as pages: the front page, the terms, the licences.
//!
//! Invariant: a program that asks at the same address gets the same text as JSON or plain text.

use store::{ContributionSum, ProjectFilter};

use super::overview::flow;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::pages::{TERMS, built_in_terms, license_text};
use crate::ops::site::row;

/// Datasets and entries of the feed on the front page.
const NEWEST: u32 = 8;
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
    let store = &cx.app.store;
    let (projects, total) = tokio::try_join!(store.projects(&filter), store.project_count(&filter))?;
    let (records, versions) = store.console().public_totals().await?;
    let latest = store.console().contributions_in_public(FLOWING).await?;
    let latest: Vec<_> = latest.iter().map(ContributionSum::from).collect();
    let feed = store.feed().before(i64::MAX, NEWEST).await?;
    PageResponse::page(&pages::HomePage {
        flow: (!latest.is_empty()).then(|| flow(&latest)).transpose()?,
        feed: feed.into_iter().map(row).collect(),
        chrome: page_layout(&cx).await?,
        datasets: total,
        records,
        versions,
        newest: projects
            .into_iter()
            .map(|project| pages::HomeDataset {
                slug: project.slug,
                title: project.title,
                records: project.record_count,
                version: project.version.0,
                merged_at: instant(project.updated_at),
            })
            .collect(),
    })
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
