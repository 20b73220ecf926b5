//! The first screen of a dataset as a browser loads it that has nothing yet: bytes on the wire, and the time of the server.

use std::collections::BTreeSet;
use std::time::Instant;

use reqwest::Method;

use super::scene::{FEW, LARGE, MANY, Scene};
use crate::report::Report;
use crate::{percentile, sorted};

/// What Chromium takes.
const ENCODINGS: &str = "gzip, deflate, br, zstd";
/// Visits of each dataset.
const VISITS: usize = 200;
/// Goals: bytes with fonts and without, and milliseconds of the server.
const BYTES_GOAL: usize = 100 << 10;
const FONTLESS_GOAL: usize = 40 << 10;
const MILLIS_GOAL: f64 = 50.0;

/// Bytes of an answer to somebody who is not signed in, as they were sent.
async fn sent(scene: &Scene, path: &str) -> usize {
    let headers = [("accept-encoding", ENCODINGS), ("accept", "text/html,*/*")];
    let anybody = scene.own.anonymous();
    let answer = anybody.send(Method::GET, path, &headers, None).await.unwrap();
    answer.expect(200).bytes.len()
}

async fn text(scene: &Scene, path: &str) -> String {
    let headers = [("accept", "text/html,*/*")];
    let anybody = scene.own.anonymous();
    let answer = anybody.send(Method::GET, path, &headers, None).await.unwrap();
    String::from_utf8(answer.expect(200).bytes).unwrap()
}

/// Addresses between `before` and a quotation mark.
fn addresses<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    text.split(before)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// Files that a page has the browser load, by kind: style and scripts, icon, and fonts of the style. A font of letters that
/// the page has not is not loaded by a browser; it is not counted.
async fn files(scene: &Scene, page: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (head, _) = page.split_once("</head>").unwrap();
    let mut plain = BTreeSet::new();
    plain.extend(
        addresses(head, "rel=\"stylesheet\" href=\"")
            .into_iter()
            .map(str::to_owned),
    );
    plain.extend(addresses(head, "src=\"").into_iter().map(str::to_owned));
    let mut fonts = BTreeSet::new();
    for style in plain.iter().filter(|path| path.contains(".css")) {
        let folder = style.rsplit_once('/').map_or("", |(folder, _)| folder);
        let css = text(scene, style).await;
        let of_latin = addresses(&css, "url(\"")
            .into_iter()
            .filter(|name| name.contains("woff2") && !name.contains("latin-ext"));
        fonts.extend(of_latin.map(|name| {
            if name.starts_with('/') {
                name.to_owned()
            } else {
                format!("{folder}/{name}")
            }
        }));
    }
    plain.extend(
        addresses(head, "type=\"image/svg+xml\" href=\"")
            .into_iter()
            .map(str::to_owned),
    );
    (plain, fonts)
}

pub(super) async fn run(report: &mut Report, scene: &Scene) {
    let mut rows = Vec::new();
    for slug in [FEW, MANY, LARGE] {
        let path = format!("/projects/{slug}");
        let page = text(scene, &path).await;
        let (plain, fonts) = files(scene, &page).await;
        assert!(plain.len() >= 2 && !fonts.is_empty(), "{plain:?} {fonts:?}");
        let mut bytes = [sent(scene, &path).await, 0, 0];
        for (kind, files) in [(1, plain), (2, fonts)] {
            for file in files {
                bytes[kind] += sent(scene, &file).await;
            }
        }
        let mut times = Vec::new();
        for _ in 0..VISITS {
            let begun = Instant::now();
            sent(scene, &path).await;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let times = sorted(times);
        let (version, _) = scene.size(slug).await;
        let fontless = bytes[0] + bytes[1];
        rows.push((
            format!("`{slug}`, {version} versions: bytes (goal {BYTES_GOAL}, without fonts {FONTLESS_GOAL})"),
            format!(
                "{}, without fonts {fontless}; page {} sent, {} as text",
                fontless + bytes[2],
                bytes[0],
                page.len()
            ),
        ));
        rows.push((
            format!("`{slug}`: the page over HTTP (goal p99 {MILLIS_GOAL} ms)"),
            format!(
                "p50 {:.1}, p99 {:.1} ms",
                percentile(&times, 50),
                percentile(&times, 99)
            ),
        ));
    }
    report.table("first load of a dataset by a visitor", &rows);
}
