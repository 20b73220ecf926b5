//! Texts for programs that walk through public pages: `robots.txt` (RFC 9309) and the map of the site (sitemaps.org, 0.9).
//!
//! Invariant: the map has only what anybody may see when it is made, and nothing that was taken down since.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use store::{ProjectCursor, ProjectFilter, RequestFilter};
use types::Timestamp;

use crate::call::answer::{BodyMedia, PlainMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::wire::NoInput;
use crate::error::ApiError;

/// Pages that are always there.
const PAGES: [&str; 17] = [
    "/",
    "/docs",
    "/docs/api",
    "/docs/connect",
    "/docs/glossary",
    "/docs/guide",
    "/pricing",
    "/projects",
    "/units",
    "/requests",
    "/activity",
    "/leaderboard",
    "/takedowns",
    "/collectors",
    "/guide/agents.md",
    "/licenses",
    "/terms",
];
/// Datasets, units and requests read at a time.
const PER_READ: u32 = 1_000;
/// Datasets in the map, units, and requests. A map has at most 50,000 addresses (sitemaps.org).
const MAX_SITEMAP_URLS: usize = 16_000;
/// Difference between the clocks of two replicas, one of which takes down what the map of the other names.
const SKEW: Duration = Duration::from_secs(5);

pub(super) fn add(table: &mut Operations) {
    let base = || Spec {
        tag: "service",
        lenient: true,
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "robots",
            path: "/robots.txt",
            summary: "What programs that walk through pages may open",
            ..base()
        },
        &[],
        robots,
    );
    table.add(
        Spec {
            name: "sitemap",
            path: "/sitemap.xml",
            summary: "Addresses of the public pages",
            ..base()
        },
        &[],
        map,
    );
}

/// Media type of XML (RFC 7303).
struct XmlMedia;

impl BodyMedia for XmlMedia {
    const TYPE: &'static str = "application/xml";
}

async fn robots(cx: Cx, _: NoInput) -> Result<StreamedAnswer<PlainMedia>, ApiError> {
    let base = &cx.app.config.public_url;
    // These pages need a session, cost money, or have addresses that were given to one reader. The file
    // hides none of them; it keeps crawlers from asking.
    let text = format!(
        "User-agent: *\nDisallow: /console\nDisallow: /paid\nDisallow: /parts\nDisallow: /reports\nDisallow: \
         /signin\n\nSitemap: {base}/sitemap.xml\n"
    );
    Ok(StreamedAnswer::whole(text))
}

async fn map(cx: Cx, _: NoInput) -> Result<StreamedAnswer<XmlMedia>, ApiError> {
    let moderation = cx.app.store.moderation();
    let is_outdated = |at: Timestamp| moderation.fell_since(at.minus(SKEW));
    let kept = &cx.app.process.site_map;
    let text = kept.get(cx.now, is_outdated, || made(&cx)).await?;
    Ok(StreamedAnswer::whole(text))
}

async fn made(cx: &Cx) -> Result<Bytes, store::Error> {
    let base = &cx.app.config.public_url;
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    // Paths and slugs have no character that XML reserves, and writing to a text cannot fail.
    for page in PAGES {
        writeln!(text, "<url><loc>{base}{page}</loc></url>").ok();
    }
    let mut dated = |path: &str, name: &str, changed: Timestamp| {
        let day = changed.to_string();
        let day = day.get(..10).unwrap_or_default();
        writeln!(
            text,
            "<url><loc>{base}/{path}/{name}</loc><lastmod>{day}</lastmod></url>"
        )
        .ok();
    };
    let mut filter = ProjectFilter {
        q: None,
        viewer: None,
        after: None,
        limit: PER_READ,
    };
    let mut listed = 0;
    while listed < MAX_SITEMAP_URLS {
        let projects = cx.app.store.projects(&filter).await?;
        for project in &projects {
            dated("projects", &project.slug, project.updated_at);
        }
        listed += projects.len();
        filter.after = projects.last().map(ProjectCursor::from);
        if projects.len() < PER_READ as usize {
            break;
        }
    }
    let (mut listed, mut last) = (0, None);
    while listed < MAX_SITEMAP_URLS {
        let units = cx.app.store.searching().units_before(last, PER_READ).await?;
        for unit in &units {
            dated("units", &unit.id.to_string(), unit.published_at);
        }
        listed += units.len();
        last = units.last().copied();
        if units.len() < PER_READ as usize {
            break;
        }
    }
    let board = cx.app.store.community();
    let mut listed = 0;
    while listed < MAX_SITEMAP_URLS {
        let offset = u64::try_from(listed).unwrap_or(u64::MAX);
        let requests = board
            .requests(&RequestFilter::default(), cx.now, offset, PER_READ)
            .await?;
        for request in &requests {
            writeln!(text, "<url><loc>{base}/requests/{}</loc></url>", request.id).ok();
        }
        listed += requests.len();
        if requests.len() < PER_READ as usize {
            break;
        }
    }
    text.push_str("</urlset>\n");
    Ok(text.into())
}
