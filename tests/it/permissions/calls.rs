//! Requests of the rows: each valid in everything but the caller, on an item that it may have for itself.
//!
//! Invariant: an item that a call changes is new for each call. Items that are only read are shared, because no answer
//! can depend on who read them before.

use api::operation::{ParamLocation, Spec};
use reqwest::Url;
use serde_json::{Map, Value, json};
use tests::world::{batch, decided, merged, project_body, records};
use tokio::sync::OnceCell;

use super::site::{Call, Site, sign_up};
use super::table::Row;

/// Bytes of an upload.
const LINE: &[u8] = b"{\"station\": \"uploaded\", \"sample\": 1}\n";

/// Visibility and access of the project that a row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Public,
    Private,
    Paid,
}

impl Kind {
    fn of(fixture: &str) -> Self {
        match fixture.split(' ').next() {
            Some("private") => Self::Private,
            Some("paid") => Self::Paid,
            _ => Self::Public,
        }
    }

    fn members(self) -> Value {
        match self {
            Self::Public => json!({}),
            Self::Private => json!({"visibility": "private"}),
            Self::Paid => json!({"access": "paid", "price": "0.10"}),
        }
    }
}

/// Project of the owner with one version, and the contribution that became it.
#[derive(Clone, Debug)]
pub(super) struct Dataset {
    pub(super) slug: String,
    pub(super) contribution: String,
}

/// Items that many calls read.
#[derive(Debug, Default)]
pub(super) struct Items {
    datasets: [OnceCell<Dataset>; 3],
}

impl Items {
    /// A project of this kind with one version.
    pub(super) async fn dataset(&self, site: &Site, kind: Kind) -> &Dataset {
        let make = async || {
            let slug = project(site, kind).await;
            let http = site.author();
            let path = format!("/projects/{slug}/contribute?wait=20");
            let sent = http.post(&path, &batch(&records("first", 3))).await.expect(201);
            let contribution = sent.text("/id").to_owned();
            assert_eq!(decided(&http, &slug, &contribution).await.text("/status"), "merged");
            Dataset { slug, contribution }
        };
        self.datasets[kind as usize].get_or_init(make).await
    }
}

/// A new project of the owner without a version.
pub(super) async fn project(site: &Site, kind: Kind) -> String {
    let slug = site.name("dataset");
    let body = merged(project_body(&slug), kind.members());
    site.author().post("/projects", &body).await.expect(201);
    slug
}

/// Begins an upload of [`LINE`] as the owner.
async fn upload(site: &Site, slug: &str) -> Value {
    let path = format!("/projects/{slug}/uploads");
    site.author().post(&path, &upload_body()).await.expect(201).body
}

fn upload_body() -> Value {
    json!({"bytes": LINE.len(), "parts": 1, "partSize": LINE.len()})
}

/// Path and query of a signed address.
fn path_of(site: &Site, url: &Value) -> String {
    let url = url.as_str().unwrap();
    url.strip_prefix(site.server.base())
        .unwrap_or_else(|| panic!("{url}"))
        .to_owned()
}

/// The input of an operation as a row wants it; `None` if nobody has written it down.
pub(super) async fn input(site: &Site, items: &Items, operation: &str, row: &Row) -> Option<Value> {
    let kind = Kind::of(row.fixture);
    let slug = async || items.dataset(site, kind).await.slug.clone();
    Some(match operation {
        "sign_up" => sign_up(&site.email()),
        "resend_verification" => json!({"email": site.email()}),
        "verify_operator" => json!({"token": site.verification_token().await}),
        "create_agent" => json!({"name": site.name("made")}),
        "claim_agent" => json!({"code": site.claim_code().await, "name": site.name("claimant")}),
        "create_dataset" => project_body(&site.name("made")),
        "update_dataset" => json!({"slug": project(site, kind).await, "title": "Another title"}),
        "dataset_info" | "read_dataset" | "dataset_manifest" => json!({"slug": slug().await}),
        "query_dataset" => json!({"slug": slug().await, "sql": "SELECT count(*) AS n FROM records"}),
        "export_dataset" => json!({"slug": slug().await, "version": 1}),
        "dataset_diff" => {
            let limit = if row.operation.ends_with("limit=0") { 0 } else { 10 };
            json!({"slug": slug().await, "to": 1, "limit": limit})
        }
        "contribute_records" | "validate_records" => {
            json!({"slug": slug().await, "records": records(&site.name("series"), 1)})
        }
        "contribution_status" | "contribution_verdicts" => {
            let dataset = items.dataset(site, kind).await;
            json!({"slug": dataset.slug, "id": dataset.contribution})
        }
        "begin_upload" => merged(upload_body(), json!({"slug": slug().await})),
        "complete_upload" => {
            let slug = slug().await;
            let begun = upload(site, &slug).await;
            let path = path_of(site, &begun["partUrls"][0]["url"]);
            let (http, line) = (site.http(), Some(LINE.to_vec()));
            let put = http.send(reqwest::Method::PUT, &path, &[], line);
            let etag = put.await.unwrap().expect(200).text("/etag").to_owned();
            json!({"slug": slug, "id": begun["id"], "etags": [{"n": 1, "etag": etag}]})
        }
        _ => return None,
    })
}

/// A call of an operation with this input.
pub(super) fn call(spec: &Spec, input: &Value) -> Call {
    let (mut path, mut query, mut body) = (spec.path.to_owned(), Vec::new(), Map::new());
    let mut headers = Vec::new();
    for (name, value) in input.as_object().unwrap() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match spec.location_of(name) {
            ParamLocation::Path => path = path.replace(&format!("{{{name}}}"), &text),
            ParamLocation::Query => query.push((name, text)),
            ParamLocation::Header(header) => headers.push((header, text)),
            ParamLocation::Body => {
                body.insert(name.clone(), value.clone());
            }
        }
    }
    if !query.is_empty() {
        let url = Url::parse_with_params("http://host", query).unwrap();
        path = format!("{path}?{}", url.query().unwrap());
    }
    let mut call = if spec.method == reqwest::Method::GET {
        Call::get(path)
    } else {
        Call::new(spec.method.clone(), path, Value::Object(body).to_string())
    };
    call.headers.extend(headers);
    call
}

/// A download by an address that a manifest names.
pub(super) async fn download(site: &Site, items: &Items) -> Call {
    let slug = &items.dataset(site, Kind::Public).await.slug;
    let manifest = site
        .author()
        .get(&format!("/projects/{slug}/manifest"))
        .await
        .expect(200);
    let url = manifest
        .body
        .pointer("/manifest/parts/0/url")
        .or_else(|| manifest.body.pointer("/parts/0/url"));
    Call::get(path_of(site, url.unwrap_or_else(|| panic!("{}", manifest.body))))
}

/// A part sent to an address that the beginning of an upload named.
pub(super) async fn part(site: &Site, items: &Items) -> Call {
    let begun = upload(site, &items.dataset(site, Kind::Public).await.slug).await;
    let path = path_of(site, &begun["partUrls"][0]["url"]);
    Call::new(reqwest::Method::PUT, path, LINE)
}

/// A message to an endpoint of tools (JSON-RPC 2.0).
pub(super) fn message(endpoint: &str, method: &str, params: &Value) -> Call {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Call::post(endpoint, &body).with("accept", "application/json, text/event-stream")
}
