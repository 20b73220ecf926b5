//! Requests of the rows: each valid in everything but the caller, on an item that it may have for itself.
//!
//! Invariant: an item that a call changes is new for each call. Items that are only read are shared, because no answer
//! can depend on who read them before.

use api::call::spec::{ParamLocation, Spec};
use data_encoding::BASE64;
use reqwest::Url;
use serde_json::{Map, Value, json};
use tests::apps::{App, FORM, Wish, encoded};
use tests::world::{batch, decided, merged, project_body, records};
use tokio::sync::OnceCell;

use super::purchases::Purchases;
use super::site::{Call, Person, Site, sign_up};
use super::table::Row;

/// Bytes of an upload.
const LINE: &[u8] = b"{\"station\": \"uploaded\", \"sample\": 1}\n";

/// What a buyer says of a unit.
const DISPUTED: &str = "It does not say on which version it ran.";

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
    unit: OnceCell<String>,
    free_unit: OnceCell<String>,
    sale: OnceCell<String>,
    dispute: OnceCell<String>,
    purchases: Purchases,
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

    /// A published unit of the owner without a price.
    pub(super) async fn unit(&self, site: &Site) -> &String {
        self.unit.get_or_init(|| site.unit(None)).await
    }

    /// A sale of a unit of the other operator to the owner.
    pub(super) async fn sale(&self, site: &Site) -> &String {
        let make = async || bought_unit(site, &site.other, &site.owner).await.1;
        self.sale.get_or_init(make).await
    }

    /// A dispute of a sale of the other operator to the owner.
    pub(super) async fn dispute(&self, site: &Site) -> &String {
        let make = async || dispute(site, self.sale(site).await).await;
        self.dispute.get_or_init(make).await
    }

    /// A published unit of the owner whose price is 0.
    pub(super) async fn free_unit(&self, site: &Site) -> &String {
        self.free_unit.get_or_init(|| site.unit(Some(0))).await
    }
}

/// A new project of the owner without a version.
pub(super) async fn project(site: &Site, kind: Kind) -> String {
    let slug = site.name("dataset");
    let body = merged(project_body(&slug), kind.members());
    site.author().post("/projects", &body).await.expect(201);
    slug
}

/// Body of a submission with a text that nothing here has had.
pub(super) fn unit_body(site: &Site) -> Value {
    json!({
        "title": "A title",
        "body": site.name("A text"),
        "category": "tool-usage",
        "sourceDeclaration": "Ran here today.",
    })
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

/// A new request of the owner, and its id.
async fn request(site: &Site) -> String {
    let body = json!({"title": "A request", "body": "Something to buy."});
    let made = site.author().post("/community/requests", &body).await.expect(201);
    made.text("/id").to_owned()
}

/// A priced unit of `seller` that `buyer` bought, and the id of the sale.
async fn bought_unit(site: &Site, seller: &Person, buyer: &Person) -> (String, String) {
    // First, since the command may take longer than the service keeps a connection without any request.
    let operator = buyer.operator.to_string();
    let options = site.server.options();
    options.admin(&[
        "credits",
        "grant",
        &operator,
        "--cents",
        "1",
        "--reference",
        &site.name("grant"),
    ]);
    let id = site.unit_of(seller, Some(10_000)).await;
    let http = site.http().with(&buyer.key);
    let bought = http.post(&format!("/knowledge/{id}/buy"), &json!({})).await.expect(200);
    (id, bought.text("/saleId").to_owned())
}

/// Id of the dispute that the owner has about a sale.
async fn dispute(site: &Site, sale: &str) -> String {
    let body = json!({"saleId": sale, "reason": DISPUTED});
    let opened = site.author().post("/disputes", &body).await;
    opened.text("/id").to_owned()
}

/// Number of a new comment of the owner.
async fn comment(site: &Site, items: &Items) -> String {
    let path = format!("/knowledge/{}/comments", items.unit(site).await);
    let made = site
        .author()
        .post(&path, &json!({"body": "Holds with two writers."}))
        .await;
    made.expect(201).body["id"].to_string()
}

/// A file of one row.
const PARQUET: &[u8] = include_bytes!("../../../catalog/tabular/tests/files/duckdb.parquet");

/// A report by the owner, and its id.
async fn report(site: &Site, items: &Items) -> String {
    let report = json!({
        "kind": "unit",
        "id": items.free_unit(site).await,
        "reason": "inaccurate",
        "detail": "The figures are of another machine.",
    });
    let sent = site.author().post("/reports", &report).await;
    sent.text("/id").to_owned()
}

/// What two readers of a unit may say of it.
async fn said_of_read_unit(site: &Site, operation: &str) -> Value {
    let id = site.unit(None).await;
    for key in [&site.owner.key, &site.other.key] {
        let read = site.http().with(key).get(&format!("/knowledge/{id}/full")).await;
        read.expect(200);
    }
    if operation == "rate_knowledge" {
        json!({"id": id, "rating": 4})
    } else {
        json!({"id": id, "mark": "confirmed", "ran": "The commands of the text."})
    }
}

/// The input of an operation as a row wants it; `None` if nobody has written it down.
pub(super) async fn input(site: &Site, items: &Items, operation: &str, row: &Row) -> Option<Value> {
    let kind = Kind::of(row.fixture);
    let slug = async || items.dataset(site, kind).await.slug.clone();
    Some(match operation {
        "sign_up" => sign_up(&site.email()),
        "resend_verification" => json!({"email": site.email()}),
        "verify_operator" => json!({"token": site.verification_token().await}),
        "register_app" => json!({"client_name": "an app", "redirect_uris": ["http://127.0.0.1/callback"]}),
        "create_agent" => json!({"name": site.name("made")}),
        "claim_agent" => json!({"code": site.claim_code().await, "name": site.name("claimant")}),
        "begin_login" => json!({"device": "a laptop"}),
        "search_knowledge" => json!({"q": "tide"}),
        "create_dataset" => project_body(&site.name("made")),
        "dataset_page" => json!({"slug": slug().await}),
        "update_dataset" => json!({"slug": project(site, kind).await, "title": "Another title"}),
        "delete_dataset" => json!({"slug": project(site, kind).await}),
        "dataset_info" | "dataset_profile" | "preview_dataset" | "read_dataset" | "dataset_manifest"
        | "buy_dataset" => {
            json!({"slug": slug().await})
        }
        "buy_knowledge" | "buy_knowledge_with_credits" => json!({"id": items.free_unit(site).await}),
        "pay_credits" => json!({"operator": site.owner.operator.to_string()}),
        "prove_payout_address" => json!({"signature": "0x"}),
        "faucet" => json!({"wallet": "0x7a3F0b6E5d2C4A19885fE0C3B8d1F6a2E4b591cE", "usdc": 1}),
        "sql_page" | "buy_dataset_page" | "pay_dataset" => json!({"slug": slug().await}),
        "sql_form" => json!({"slug": slug().await, "q": "SELECT count(*) AS n FROM records"}),
        "download_form" => json!({"slug": slug().await, "format": "csv", "version": "1"}),
        "query_dataset" => json!({"slug": slug().await, "sql": "SELECT count(*) AS n FROM records"}),
        "export_dataset" => json!({"slug": slug().await, "version": 1}),
        "dataset_diff" => {
            let limit = if row.operation.ends_with("limit=0") { 0 } else { 10 };
            json!({"slug": slug().await, "to": 1, "limit": limit})
        }
        "infer_file" => json!({"text": "station,sample\nA,1\n"}),
        "convert_file" => json!({"base64": BASE64.encode(PARQUET)}),
        "contribute_records" | "validate_records" => {
            json!({"slug": slug().await, "records": records(&site.name("series"), 1)})
        }
        "contribution_status" | "contribution_verdicts" => {
            let dataset = items.dataset(site, kind).await;
            json!({"slug": dataset.slug, "id": dataset.contribution})
        }
        "submit_knowledge" | "validate_knowledge" => unit_body(site),
        "appeal_rejection" => json!({"id": items.unit(site).await}),
        "revise_knowledge" => json!({"id": site.unit(None).await, "body": site.name("Another text")}),
        "check_submission" => json!({"id": items.unit(site).await}),
        "set_knowledge_price" => json!({"id": site.unit(None).await, "price": "0.25"}),
        "report_content" => json!({
            "kind": "unit",
            "id": items.free_unit(site).await,
            "reason": "spam",
            "detail": "It advertises another unit.",
            "email": site.email(),
        }),
        "report_outcome" => json!({"id": report(site, items).await}),
        "activity_events" => json!({"seconds": 1}),
        "retire_knowledge" => json!({"id": site.unit(None).await}),
        "get_knowledge_full" => json!({"id": items.free_unit(site).await}),
        "rate_knowledge" | "mark_knowledge" => said_of_read_unit(site, operation).await,
        "knowledge_reviews" | "knowledge_comments" => json!({"id": items.unit(site).await}),
        "comment_on_knowledge" => json!({"id": items.unit(site).await, "body": "Does it hold with two writers?"}),
        "post_request" => json!({"title": site.name("A request"), "body": "Something to buy."}),
        "get_request" | "request_comments" | "close_request" => json!({"id": request(site).await}),
        "answer_request" => json!({"id": request(site).await, "note": "Ask the harbour office."}),
        "choose_answer" => chosen_answer(site).await,
        "review_item" => {
            json!({"unitId": bought_unit(site, &site.owner, &site.other).await.0, "body": "It holds; I ran it twice."})
        }
        "comment_on_dataset" => json!({"slug": slug().await, "body": "Are gaps marked?"}),
        "dataset_comments" => json!({"slug": slug().await}),
        "edit_comment" => json!({"number": comment(site, items).await, "body": "Holds with three, too."}),
        "withdraw_comment" => json!({"number": comment(site, items).await}),
        "begin_upload" => merged(upload_body(), json!({"slug": slug().await})),
        "list_uploads" => json!({"slug": slug().await}),
        "cancel_upload" => {
            let slug = slug().await;
            json!({"slug": slug, "id": upload(site, &slug).await["id"]})
        }
        "complete_upload" => {
            let slug = slug().await;
            let begun = upload(site, &slug).await;
            let path = path_of(site, &begun["partUrls"][0]["url"]);
            let (http, line) = (site.http(), Some(LINE.to_vec()));
            let put = http.send(reqwest::Method::PUT, &path, &[], line);
            let etag = put.await.unwrap().expect(200).text("/etag").to_owned();
            json!({"slug": slug, "id": begun["id"], "etags": [{"n": 1, "etag": etag}]})
        }
        operation => {
            let pages = [
                of_staff(site, items, operation).await,
                of_owner(site, items, kind, operation).await,
                of_sides(site, items, operation).await,
            ];
            match pages.into_iter().flatten().next() {
                Some(input) => input,
                None => return items.purchases.input(site, operation, row).await,
            }
        }
    })
}

/// The choice of an answer to a request.
async fn chosen_answer(site: &Site) -> Value {
    let id = request(site).await;
    let unit = site.unit_of(&site.other, None).await;
    let path = format!("/community/requests/{id}/answers");
    let http = site.http().with(&site.other.key);
    let answer = http.post(&path, &json!({"unitId": unit})).await.expect(201);
    json!({"id": id, "answerId": answer.body["id"]})
}

/// The input of an operation of the owner of an account or an item; `None` for any other operation.
async fn of_owner(site: &Site, items: &Items, kind: Kind, operation: &str) -> Option<Value> {
    Some(match operation {
        "hide_steps_form" => json!({}),
        "account_copy_file" => json!({}),
        "choose_letters_form" => json!({"approvals": "yes", "bought_items": "yes"}),
        "archive_dataset_form" => json!({"slug": project(site, kind).await}),
        // As it is, so that the form of any edition is none of a change.
        "edit_dataset_form" => {
            let slug = project(site, kind).await;
            let body = project_body(&slug);
            json!({"slug": slug, "title": body["title"], "readme": body["readme"], "status": "open"})
        }
        "own_unit_page" => json!({"id": items.free_unit(site).await}),
        "unit_price_form" => json!({"id": items.free_unit(site).await, "seen": "0.00", "price": "0.00"}),
        _ => return None,
    })
}

/// The input of an operation about a sale or about who is on a side of one; `None` for any other operation.
async fn of_sides(site: &Site, items: &Items, operation: &str) -> Option<Value> {
    Some(match operation {
        "sale_receipt" => json!({"id": items.sale(site).await}),
        "open_dispute" => json!({"saleId": items.sale(site).await, "reason": DISPUTED}),
        "get_dispute" => json!({"id": items.dispute(site).await}),
        "answer_dispute" => json!({"id": items.dispute(site).await, "answer": "It says so in its second line."}),
        // What was given back is answered no more, so the sale is of its own.
        "refund_dispute" => {
            let sale = bought_unit(site, &site.other, &site.owner).await.1;
            json!({"id": dispute(site, &sale).await})
        }
        "agent_page" => json!({"name": site.author().get("/me").await.expect(200).text("/name")}),
        "account_page" => json!({"id": site.owner.operator.to_string()}),
        "collector_page" => json!({"name": "none"}),
        _ => return None,
    })
}

/// The input of an operation of the staff; `None` for any other operation.
async fn of_staff(site: &Site, items: &Items, operation: &str) -> Option<Value> {
    let reason = "The figures are those of another item.";
    Some(match operation {
        "staff_accounts_page" | "invitations_page" | "figures_page" => json!({}),
        "staff_account_page" => json!({"id": site.other.operator.to_string()}),
        "suspend_account_form" | "restore_account_form" => {
            json!({"id": site.other.operator.to_string(), "reason": reason, "confirm": "Ada"})
        }
        "confirm_decision_page" | "decide_report_form" => {
            json!({"id": report(site, items).await, "decision": "uphold", "note": reason})
        }
        "reopen_report_form" => json!({"id": report(site, items).await}),
        "undo_takedown_form" | "restore_item_page" => json!({"id": report(site, items).await}),
        "restore_item_form" => json!({"id": report(site, items).await, "note": reason}),
        "invite_account_form" | "withdraw_invitation_form" => json!({"email": "eve@example.org"}),
        "retry_job_form" => json!({"id": "none"}),
        _ => return None,
    })
}

/// A call of an endpoint of OAuth, with a code or a token of its own.
pub(super) async fn oauth(site: &Site, operation: &str) -> Call {
    let (app, agent) = (site.app().await, site.agent_of_owner().await);
    let session = &site.owner.session;
    let wish = Wish {
        resource: "/mcp",
        scopes: "read",
        agent: &agent,
    };
    let form = |path: &str, fields: &[(&str, &str)]| form_call(site, path, fields);
    match operation {
        "authorize_app_page" => Call::get(App::path(&app.query(&wish))),
        "authorize_app_form" => {
            let fields = app.consent(session, &wish).await;
            let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            form("/oauth/authorize", &fields)
        }
        "oauth_token" => {
            let code = app.code(session, &wish).await;
            form("/oauth/token", &app.exchange(&code))
        }
        _ => {
            let tokens = app.connect(session, &wish).await;
            let token = tokens.text("/refresh_token");
            form("/oauth/revoke", &[("token", token), ("client_id", &app.id)])
        }
    }
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

/// The form of a page with this input, as a page of the owner's session sends it.
pub(super) async fn form(site: &Site, spec: &Spec, input: &Value) -> Call {
    let token = site.form_token().await;
    let (mut path, mut fields) = (spec.path.to_owned(), vec![("form_token", token.as_str())]);
    for (name, value) in input.as_object().unwrap() {
        let text = value.as_str().unwrap();
        if spec.location_of(name) == ParamLocation::Path {
            path = path.replace(&format!("{{{name}}}"), text);
        } else {
            fields.push((name, text));
        }
    }
    form_call(site, &path, &fields)
}

fn form_call(site: &Site, path: &str, fields: &[(&str, &str)]) -> Call {
    Call {
        method: reqwest::Method::POST,
        path: path.to_owned(),
        headers: vec![
            ("content-type", FORM.to_owned()),
            ("origin", site.server.base().to_owned()),
        ],
        body: Some(encoded(fields).into_bytes()),
    }
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

/// A call of a page as an agent, valid in everything but its session.
pub(super) async fn act(site: &Site, items: &Items) -> Call {
    let slug = &items.dataset(site, Kind::Public).await.slug;
    let (agent, token) = site.connected_console().await;
    Call::post("/console/act/dataset_info", &json!({"slug": slug}))
        .with("origin", site.server.base())
        .with("x-agent", agent)
        .with("x-form-token", token)
}
