//! Permissions: every operation, called by every kind of caller, answers with the status that the table gives it.
//!
//! Invariant: an operation without a row fails, and so does a row of an operation that exists but that nobody wrote a
//! call for. Rows of what the service does not have yet are printed.

mod calls;
mod order;
mod purchases;
mod site;
mod table;

use std::collections::BTreeSet;

use api::call::spec::{ApiKind, Spec};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::Answer;

use self::calls::Items;
use self::site::{Call, Credential, Site};
use self::table::{Expected, Row, rows};
use crate::accounts::on_each;

/// Paths of pages for people, which programs do not call, beside the pages of a dataset.
const PAGES: [&str; 15] = [
    "/console",
    "/docs",
    "/pricing",
    "/report",
    "/requests",
    "/find",
    "/units",
    "/signin",
    "/signup",
    "/verify",
    "/invite",
    "/signout",
    "/theme",
    "/assets",
    "/test-usdc",
];
/// Rows that name a kind of address, with the routes that serve them.
const SIGNED: [(&str, &str, &str); 2] = [
    ("GET a signed part address", "GET", "/parts/{dataset}/{name}"),
    ("PUT a signed part address", "PUT", "/uploads/{id}/{n}"),
];

/// Rows that name an endpoint of OAuth, with the operations behind them.
const OAUTH: [(&str, &str); 4] = [
    ("GET authorization endpoint", "authorize_app_page"),
    ("POST authorization endpoint (consent)", "authorize_app_form"),
    ("POST token endpoint", "oauth_token"),
    ("POST revocation endpoint", "oauth_revoke"),
];

/// Operation of a row, as far as the service has it.
enum Target<'a> {
    /// An operation of the table.
    Operation(&'a Spec),
    /// A signed address.
    Signed(&'static str),
    /// A route beside the table.
    Route(&'static str, &'static str),
    /// The door of the console.
    Act,
    /// Messages to an endpoint of tools.
    Messages(&'static str),
    /// A tool at an endpoint; without an operation it must be unknown there.
    Tool(&'static str, &'static str, Option<&'a Spec>),
}

/// Differences between the table and the service.
#[derive(Default)]
struct Found {
    wrong: Vec<String>,
    missing: Vec<String>,
    skipped: BTreeSet<&'static str>,
    calls: usize,
}

fn is_page(spec: &Spec) -> bool {
    let begins = |prefix: &&str| {
        spec.path
            .strip_prefix(*prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Its forms read for a person and have rows.
    let is_of_dataset = spec.surface == ApiKind::Page
        && spec.method == reqwest::Method::GET
        && spec.path.starts_with("/projects/{slug}/");
    let is_list_of_units = spec.surface == ApiKind::Page && spec.path == "/units";
    spec.path == "/" || is_of_dataset || is_list_of_units || PAGES.iter().any(begins)
}

/// Finds the operation of a row; none if the service does not have it.
async fn target<'a>(site: &'a Site, row: &Row) -> Option<Target<'a>> {
    if let Some((_, rest)) = row.operation.split_once(" tools/call ") {
        let endpoint = endpoint(row)?;
        let spec = site.operations.get(rest).map(|operation| &operation.spec);
        let must_be_unknown = row.fixture == "must be an unknown tool";
        let is_there = (spec.is_some() || must_be_unknown) && site.has_route("POST", endpoint).await;
        return is_there.then_some(Target::Tool(endpoint, rest, spec.filter(|_| !must_be_unknown)));
    }
    if row.group == "mcp" {
        let (endpoint, is_message) = (endpoint(row)?, row.operation.starts_with("POST"));
        let target = if is_message {
            Target::Messages(endpoint)
        } else {
            Target::Route("GET", endpoint)
        };
        return site.has_route("POST", endpoint).await.then_some(target);
    }
    if row.group == "console" {
        return Some(Target::Act);
    }
    if SIGNED.iter().any(|(signed, ..)| *signed == row.operation) {
        return Some(Target::Signed(row.operation));
    }
    if let Some((_, name)) = OAUTH.iter().find(|(named, _)| *named == row.operation) {
        return site
            .operations
            .get(name)
            .map(|operation| Target::Operation(&operation.spec));
    }
    let (method, path) = row.route()?;
    let mut specs = site.operations.iter().map(|operation| &operation.spec);
    if let Some(spec) = specs.find(|spec| spec.method == method && spec.path == path) {
        return Some(Target::Operation(spec));
    }
    let is_there = !path.contains('{') && site.has_route(method, path).await;
    is_there.then_some(Target::Route(method, path))
}

/// Path of the endpoint of tools in a row.
fn endpoint(row: &Row) -> Option<&'static str> {
    row.operation.split(' ').nth(1)
}

/// The calls of a row; `None` if nobody has written them down.
async fn calls(site: &Site, items: &Items, row: &Row, target: &Target<'_>) -> Option<Vec<Call>> {
    let call = match target {
        Target::Operation(spec) if OAUTH.iter().any(|(_, name)| *name == spec.name) => {
            calls::oauth(site, spec.name).await
        }
        Target::Operation(spec) => {
            let input = input(site, items, spec, row).await?;
            if spec.surface == ApiKind::Page && spec.method == reqwest::Method::POST {
                calls::form(site, spec, &input).await
            } else {
                calls::call(spec, &input)
            }
        }
        Target::Act => calls::act(site, items).await,
        Target::Signed(operation) if operation.starts_with("GET") => calls::download(site, items).await,
        Target::Signed(_) => calls::part(site, items).await,
        Target::Route("GET", path) => Call::get(*path),
        Target::Route(..) => return None,
        Target::Messages(endpoint) => {
            let hello = json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
            });
            return Some(vec![
                calls::message(endpoint, "initialize", &hello),
                calls::message(endpoint, "ping", &json!({})),
                calls::message(endpoint, "tools/list", &json!({})),
            ]);
        }
        Target::Tool(endpoint, name, spec) => {
            let input = match spec {
                Some(spec) => input(site, items, spec, row).await?,
                None => json!({}),
            };
            calls::message(endpoint, "tools/call", &json!({"name": name, "arguments": input}))
        }
    };
    Some(vec![call])
}

async fn input(site: &Site, items: &Items, spec: &Spec, row: &Row) -> Option<Value> {
    let written = calls::input(site, items, spec.name, row).await;
    let operation = site.operations.get(spec.name)?;
    let mut members = operation.input.properties();
    // An operation that needs no input is called without one, so that most new reads need no line here.
    let needs_none =
        spec.effect == api::call::spec::Effect::Read && !members.any(|(name, _)| operation.input.requires(name));
    written.or_else(|| needs_none.then(|| json!({})))
}

/// Violations of the rules on what an answer carries beside its status.
fn further_rules(caller: &str, row: &Row, answer: &Answer) -> Option<&'static str> {
    let authenticate = answer.header("www-authenticate");
    let text = |member: &str| !answer.text(member).is_empty();
    let is_at_tools = matches!(row.group, "tool" | "tool-directory" | "mcp");
    let (is_met, rule) = match answer.code() {
        401 if is_at_tools => (
            authenticate.contains("resource_metadata=")
                && (row.scope == "-" || scopes(authenticate).contains(&row.scope)),
            "a 401 names the metadata and the scope in WWW-Authenticate",
        ),
        // The door of the console reads no key.
        401 if caller == "pending_key" && row.group != "console" => (
            answer.text("/status") == "pending" && text("/hint") && text("/getKey"),
            "a 401 of a claim that waits has `status`, `hint` and `getKey`",
        ),
        401 => (
            answer.body.get("status").is_none() && text("/hint") && text("/getKey"),
            "a 401 has `hint` and `getKey`, and no `status`",
        ),
        403 if caller.starts_with("oauth_") => (
            answer.error() == "insufficient_scope" && authenticate.contains("insufficient_scope"),
            "the refusal of an app names `insufficient_scope`",
        ),
        300..=399 if row.group == "oauth" && caller != "console_session" => (
            !answer.header("location").contains("code="),
            "a code is for a person who is signed in",
        ),
        200 if row.fixture == "must be an unknown tool" => (
            message_of(answer)["error"]["code"] == -32_602,
            "a tool that spends is not known at the directory",
        ),
        _ => (true, ""),
    };
    (!is_met).then_some(rule)
}

/// The words of `scope` in a `WWW-Authenticate` header.
fn scopes(authenticate: &str) -> Vec<&str> {
    let (_, rest) = authenticate.split_once("scope=\"").unwrap_or_default();
    rest.split('"').next().unwrap_or_default().split(' ').collect()
}

/// The message of an answer, which is the body or its first event.
fn message_of(answer: &Answer) -> Value {
    let text = String::from_utf8_lossy(&answer.bytes);
    let event = text.lines().find_map(|line| line.strip_prefix("data:"));
    event.map_or_else(
        || answer.body.clone(),
        |data| serde_json::from_str(data).unwrap_or(Value::Null),
    )
}

/// Parts of an operation's answer that its published description lacks.
fn undescribed(document: &Value, spec: &Spec, answer: &Answer) -> Option<String> {
    // Headers of every message of HTTP, and those that forbid its storage and its misuse.
    const GENERAL: [&str; 10] = [
        // Every answer of this surface has them, for browsers.
        "access-control-allow-origin",
        "access-control-expose-headers",
        "cache-control",
        "connection",
        "content-length",
        "content-type",
        "date",
        "pragma",
        "transfer-encoding",
        "x-content-type-options",
    ];
    // Pages are for people.
    if spec.surface != ApiKind::Rest {
        return None;
    }
    let (method, status) = (spec.method.as_str().to_ascii_lowercase(), answer.code());
    let response = &document["paths"][spec.path][method]["responses"][status.to_string()];
    if response.is_null() {
        return Some(format!("{status} is not described"));
    }
    let empty = serde_json::Map::new();
    let described = response["headers"].as_object().unwrap_or(&empty);
    let is_described = |name: &str| described.keys().any(|other| other.eq_ignore_ascii_case(name));
    let names = answer.headers.keys().map(reqwest::header::HeaderName::as_str);
    let mut missing = names.filter(|name| !GENERAL.contains(name) && !is_described(name));
    missing
        .next()
        .map(|name| format!("the header {name} of {status} is not described"))
}

fn judge(found: &mut Found, row: &Row, caller: &str, expected: &Expected, answer: &Answer) {
    found.calls += 1;
    let status = answer.code();
    let wrong = if expected.allows(status) {
        further_rules(caller, row, answer)
    } else {
        Some("")
    };
    if let Some(wrong) = wrong {
        let body: String = String::from_utf8_lossy(&answer.bytes).chars().take(160).collect();
        let fixture = row.fixture;
        found.wrong.push(format!(
            "{row} | {fixture} | {caller} | {expected} | {status} | {wrong} {body}"
        ));
    }
}

async fn walk(site: &Site, items: &Items) -> Found {
    let mut found = Found::default();
    let document = site.http().get("/openapi.json").await.expect(200).body;
    for row in rows() {
        let Some(target) = target(site, &row).await else {
            found.missing.push(row.to_string());
            continue;
        };
        let mut asked: Vec<(&'static str, &Expected, Credential)> = Vec::new();
        for (caller, expected) in &row.cells {
            let credentials = site.credentials(caller);
            if credentials.is_empty() {
                found.skipped.insert(caller);
            }
            asked.extend(
                credentials
                    .into_iter()
                    .map(|credential| (*caller, expected, credential)),
            );
        }
        // Items are made at once. The calls go out one after the other, so that no two of an operator meet.
        let made = join_all(asked.iter().map(|_| calls(site, items, &row, &target))).await;
        for ((caller, expected, credential), calls) in asked.into_iter().zip(made) {
            let Some(calls) = calls else {
                found
                    .wrong
                    .push(format!("{row} | nobody wrote a call for it in calls.rs"));
                break;
            };
            for call in calls {
                let answer = site.send(&credential, call).await;
                judge(&mut found, &row, caller, expected, &answer);
                if let Target::Operation(spec) = &target
                    && let Some(lacks) = undescribed(&document, spec, &answer)
                {
                    found.wrong.push(format!(
                        "{row} | | {caller} | /openapi.json | {status} | {lacks}",
                        status = answer.code()
                    ));
                }
            }
        }
    }
    found
}

/// Operations without a row.
fn without_row(site: &Site) -> Vec<String> {
    let rows = rows();
    let routes: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(Row::route)
        .chain(SIGNED.map(|(_, method, path)| (method, path)))
        .collect();
    let specs = site.operations.iter().map(|operation| &operation.spec);
    specs
        .filter(|spec| !is_page(spec) && !OAUTH.iter().any(|(_, name)| *name == spec.name))
        .filter(|spec| !routes.contains(&(spec.method.as_str(), spec.path)))
        .map(|spec| format!("{} {} has no row", spec.method, spec.path))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_gets_the_status_of_the_table_from_every_operation() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let items = Items::default();
        let found = walk(&site, &items).await;
        eprintln!("{} calls; not there yet, {} rows:", found.calls, found.missing.len());
        for row in &found.missing {
            eprintln!("    {row}");
        }
        assert!(found.skipped.is_empty(), "{:?} have no credential", found.skipped);
        let mut wrong = without_row(&site);
        wrong.extend(found.wrong);
        assert!(
            wrong.is_empty(),
            "group | operation | item | caller | expected | got | body\n{}\n{} differences",
            wrong.join("\n"),
            wrong.len()
        );
    })
    .await;
}
