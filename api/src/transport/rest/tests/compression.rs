//! Which answers are compressed, and for whom.

use std::io::Read as _;

use super::browsers::sent;
use super::*;
use crate::testing::Got;

const GZIP: (&str, &str) = ("accept-encoding", "gzip");

async fn coding(service: &Service, path: &str, headers: &[(&str, &str)]) -> Option<String> {
    let got = sent(service, "GET", path, headers).await;
    assert_eq!(got.status, 200, "{path}");
    let coding = got.headers.get(header::CONTENT_ENCODING);
    coding.map(|coding| coding.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn text_of_a_kibibyte_is_compressed_for_everybody_without_a_session() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    service.project(&key, "tides", &json!({})).await;
    let records: Vec<_> = (0..100)
        .map(|number| json!({"name": format!("gauge {number}")}))
        .collect();
    service.merged(&key, "tides", &records).await;
    let bearer = format!("Bearer {key}");
    let page = sent(&service, "GET", "/", &[("accept", "text/html")]).await.text();
    let css = page.split('"').find(|text| text.ends_with("/sluice.css")).unwrap();
    let of = async |path: &str, headers: &[(&str, &str)]| coding(&service, path, headers).await;
    let browser = ("accept-encoding", "gzip, deflate, br, zstd");
    for (path, best) in [
        ("/openapi.json", "zstd"),
        ("/guide/agents.md", "zstd"),
        ("/terms", "zstd"),
        (css, "br"),
    ] {
        assert_eq!(of(path, &[GZIP]).await.as_deref(), Some("gzip"), "{path}");
        assert_eq!(of(path, &[browser]).await.as_deref(), Some(best), "{path}");
        let refused = ("accept-encoding", "gzip;q=0");
        assert_eq!(of(path, &[refused]).await, None, "{path}");
        assert_eq!(of(path, &[]).await, None, "{path}");
        let signed_in = ("cookie", "theme=dark; __Host-sluice=abc");
        assert_eq!(of(path, &[GZIP, signed_in]).await, None, "{path}");
    }
    let read = [GZIP, ("authorization", bearer.as_str())];
    for path in ["/projects/tides/export?version=1", "/projects/tides/data?limit=100"] {
        assert_eq!(of(path, &read).await.as_deref(), Some("gzip"), "{path}");
    }
    // Small, sent as it happens, compressed already.
    assert_eq!(of("/healthz", &[GZIP]).await, None);
    assert_eq!(of("/activity/events?seconds=1", &[GZIP]).await, None);
    let fonts = css.rsplit_once('/').unwrap().0.to_owned() + "/atkinson-next-latin.woff2";
    assert_eq!(of(&fonts, &[browser]).await, None);
}

#[tokio::test]
async fn a_compressed_answer_has_the_bytes_and_the_tag_of_the_plain_one() {
    let service = Service::start().await;
    let plain = sent(&service, "GET", "/openapi.json", &[]).await;
    let small = sent(&service, "GET", "/openapi.json", &[GZIP]).await;
    assert!(small.bytes.len() * 3 < plain.bytes.len(), "{}", small.bytes.len());
    let mut read = Vec::new();
    flate2::read::GzDecoder::new(&small.bytes[..])
        .read_to_end(&mut read)
        .unwrap();
    assert!(read == plain.bytes, "other bytes");
    let varies = small.headers.get_all(header::VARY).iter();
    assert!(varies.map(|on| on.to_str().unwrap()).any(|on| on == "accept-encoding"));
    let tag = small.headers[header::ETAG].to_str().unwrap();
    assert_eq!(plain.headers[header::ETAG], tag);
    let known = sent(&service, "GET", "/openapi.json", &[GZIP, ("if-none-match", tag)]).await;
    assert_eq!((known.status.as_u16(), known.bytes.len()), (304, 0));
    assert_eq!(known.headers.get(header::CONTENT_ENCODING), None);
}

/// Asserts the status of an answer that is large enough, and that it is as it is.
fn assert_plain(got: &Got, status: u16) {
    assert_eq!(got.status, status, "{}", got.text());
    assert!(got.bytes.len() > 1_024, "{}", got.text());
    assert_eq!(got.headers.get(header::CONTENT_ENCODING), None, "{}", got.text());
}

#[tokio::test]
async fn what_changes_something_and_what_is_refused_is_not_compressed() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    let page = [GZIP, ("accept", "text/html")];
    assert_plain(&sent(&service, "GET", "/nothing", &page).await, 404);
    let paid = json!({"access": "paid", "price": "0.50"});
    service.project(&key, "tides", &paid).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    let priced = sent(&service, "GET", "/paid/dataset?slug=tides&version=1", &page).await;
    assert_plain(&priced, 402);
    let readme = "Levels of a quay. ".repeat(100);
    let request = Request::patch("/projects/tides")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header(GZIP.0, GZIP.1);
    let change = json!({"readme": readme}).to_string();
    let changed = service.send(request.body(Body::from(change)).unwrap()).await;
    assert_plain(&changed, 200);
    // A list of tools is 30 KiB, but its call is no read of the table.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let request = Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("authorization", format!("Bearer {key}"))
        .header(GZIP.0, GZIP.1);
    let listed = service.send(request.body(Body::from(list)).unwrap()).await;
    assert_plain(&listed, 200);
}
