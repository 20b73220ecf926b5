//! Texts for programs that walk through public pages: `robots.txt` (RFC 9309) and the map of the site (sitemaps.org, 0.9).
//!
//! Invariant: the map has only what anybody may see when it is made.

use std::fmt::Write as _;

use store::{ProjectCursor, ProjectFilter, RequestFilter};

use crate::answer::{Media, Plain, Streamed};
use crate::cx::Cx;
use crate::error::ApiError;
use crate::operation::{Operations, Spec};
use crate::wire::Nothing;

/// Pages that are always there.
const PAGES: [&str; 9] = [
    "/",
    "/projects",
    "/requests",
    "/activity",
    "/leaderboard",
    "/takedowns",
    "/guide/agents.md",
    "/licenses",
    "/terms",
];
/// Datasets and requests read at a time, and in the map.
const PER_READ: u32 = 1_000;
const MOST: usize = 20_000;

pub(super) fn add(table: &mut Operations) {
    let base = || Spec {
        tag: "service",
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
struct Xml;

impl Media for Xml {
    const TYPE: &'static str = "application/xml";
}

async fn robots(cx: Cx, _: Nothing) -> Result<Streamed<Plain>, ApiError> {
    let base = &cx.app.config.public_url;
    // These pages need a session, cost money, or have addresses that were given to one reader. The file
    // hides none of them; it keeps crawlers from asking.
    let text = format!(
        "User-agent: *\nDisallow: /console\nDisallow: /paid\nDisallow: /parts\nDisallow: /reports\nDisallow: \
         /signin\n\nSitemap: {base}/sitemap.xml\n"
    );
    Ok(Streamed::whole(text))
}

async fn map(cx: Cx, _: Nothing) -> Result<Streamed<Xml>, ApiError> {
    let base = &cx.app.config.public_url;
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    // Paths and slugs have no character that XML reserves, and writing to a text cannot fail.
    for page in PAGES {
        writeln!(text, "<url><loc>{base}{page}</loc></url>").ok();
    }
    let mut filter = ProjectFilter {
        q: None,
        viewer: None,
        after: None,
        limit: PER_READ,
    };
    let mut listed = 0;
    loop {
        let projects = cx.app.store.projects(&filter).await?;
        for project in &projects {
            let (slug, day) = (&project.slug, project.updated_at.to_string());
            let day = day.get(..10).unwrap_or_default();
            writeln!(
                text,
                "<url><loc>{base}/projects/{slug}</loc><lastmod>{day}</lastmod></url>"
            )
            .ok();
        }
        listed += projects.len();
        filter.after = projects.last().map(ProjectCursor::from);
        // A map has at most 50,000 addresses (sitemaps.org); both lists together stay below.
        if projects.len() < PER_READ as usize || listed >= MOST {
            break;
        }
    }
    let board = cx.app.store.community();
    let mut listed = 0;
    while listed < MOST {
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
    Ok(Streamed::whole(text))
}
