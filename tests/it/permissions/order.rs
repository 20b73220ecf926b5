//! Order of the checks: of several faults in one call, the answer names the one that is checked first.
//!
//! | Check | Status |
//! |-|-|
//! | calls of the address | 429 |
//! | path, then method | 404, 405 |
//! | credential | 401 |
//! | its kind | 403 |
//! | calls of the hour | 429 |
//! | visibility of the item, then right over it | 404, 403 |
//! | form of the input; a call that was made before | 400, 413, 422; 200 |
//! | state of the item | 409 |
//! | allowance of the day | 429 |
//! | existence of the version, then its price | 404, 402 |

use reqwest::Method;
use serde_json::json;
use tests::world::{batch, records};

use super::calls::{Items, Kind, project};
use super::site::{Call, Credential, Site};
use crate::accounts::on_each;

/// The largest body of most calls, and of a contribution.
const BODY: usize = 1 << 20;
const CONTRIBUTION: usize = 4 << 20;
/// An id that nothing has.
const ID: &str = "019a0000-0000-7000-8000-000000000000";

/// Caller of the table, call, and the status that outranks the others.
type Case = (&'static str, Call, u16);

fn patch(slug: &str, body: &str) -> Call {
    Call::new(Method::PATCH, format!("/projects/{slug}"), body)
}

fn post(path: String, body: impl Into<Vec<u8>>) -> Call {
    Call::new(Method::POST, path, body)
}

/// Calls about a project whose input is bad, each with the status for those who may make it.
fn bad_input(slug: &str) -> Vec<(Call, u16)> {
    let at = |rest: &str| format!("/projects/{slug}{rest}");
    let complete = at(&format!("/uploads/{ID}/complete"));
    vec![
        (post(at("/contribute"), "{}"), 400),
        (post(at("/contribute"), "{"), 400),
        (post(at("/contribute?wait=99"), r#"{"records": [{}]}"#), 400),
        (post(at("/contribute"), "{}").with("content-encoding", "gzip"), 400),
        (post(at("/contribute"), " ".repeat(CONTRIBUTION + 1)), 413),
        (post(at("/validate"), "{}"), 400),
        (post(at("/validate"), " ".repeat(CONTRIBUTION + 1)), 413),
        (post(at("/query"), "{}"), 400),
        (post(at("/query"), " ".repeat(BODY + 1)), 413),
        (post(at("/uploads"), "{}"), 400),
        (post(complete, "{}"), 400),
        (Call::get(at("/data?version=0")), 400),
        (Call::get(at("/data?colour=red")), 400),
        (Call::get(at("/manifest?version=0")), 400),
        (Call::get(at("/export")), 400),
        (Call::get(at("/contributions/1?wait=99")), 400),
        (Call::get(at("/contributions/1/verdicts?wait=1")), 400),
    ]
}

/// Patches that are bad: a member of the wrong form, a member that never changes, no member, too much.
fn bad_patches(slug: &str) -> Vec<(Call, u16)> {
    vec![
        (patch(slug, r#"{"title": 7}"#), 400),
        (patch(slug, r#"{"visibility": "public"}"#), 400),
        (patch(slug, "{}"), 400),
        (patch(slug, &" ".repeat(BODY + 1)), 413),
    ]
}

/// The text of an answer with the name of its project and the id of its call left out.
fn unnamed(answer: &tests::Answer, slug: &str) -> String {
    let text = String::from_utf8_lossy(&answer.bytes).replace(slug, "…");
    match answer.text("/requestId") {
        "" => text,
        id => text.replace(id, "…"),
    }
}

/// Sends each call and returns those that were answered otherwise.
async fn differing(site: &Site, cases: Vec<Case>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (caller, call, expected) in cases {
        let credential = &site.credentials(caller)[0];
        let sent = format!("{} {}", call.method, call.path);
        let answer = site.send(credential, call).await;
        if answer.code() != expected {
            let body: String = String::from_utf8_lossy(&answer.bytes).chars().take(160).collect();
            wrong.push(format!("{sent} | {caller} | {expected} | {} {body}", answer.code()));
        }
    }
    wrong
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "call | caller | expected | got\n{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_faults_the_one_that_is_checked_first_is_answered() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let items = Items::default();
        let public = &items.dataset(&site, Kind::Public).await.slug;
        let private = &items.dataset(&site, Kind::Private).await.slug;
        let missing = "dataset-none";
        let mut cases: Vec<Case> = Vec::new();
        for caller in ["none", "garbage", "suspended_key", "key"] {
            cases.push((caller, Call::get("/nothing"), 404));
            cases.push((caller, Call::new(Method::DELETE, "/projects", "{"), 405));
        }
        // The kind of a credential comes before the input.
        for (caller, status) in [
            ("none", 401),
            ("suspended_op_token", 401),
            ("key", 403),
            ("op_token", 400),
        ] {
            cases.push((caller, post("/agents".to_owned(), "{}"), status));
        }
        for slug in [public.as_str(), private, missing] {
            for (call, status) in bad_input(slug) {
                for caller in ["none", "pending_key", "suspended_key", "op_token"] {
                    cases.push((caller, call.clone(), 401));
                }
                let of_stranger = if slug == public { status } else { 404 };
                cases.push(("other_key", call.clone(), of_stranger));
                cases.push(("key", call, if slug == missing { 404 } else { status }));
            }
            for (call, status) in bad_patches(slug) {
                for caller in ["none", "pending_key", "suspended_key", "suspended_op_token"] {
                    cases.push((caller, call.clone(), 401));
                }
                for caller in ["other_key", "other_op_token"] {
                    cases.push((caller, call.clone(), if slug == public { 403 } else { 404 }));
                }
                for caller in ["key", "op_token"] {
                    cases.push((caller, call.clone(), if slug == missing { 404 } else { status }));
                }
            }
        }
        // The records of a difference need a key, whatever the project; the contributions alone do not.
        for slug in [public.as_str(), private, missing] {
            for caller in ["none", "op_token", "other_op_token"] {
                cases.push((caller, Call::get(format!("/projects/{slug}/diff?to=1&limit=1")), 401));
            }
            for caller in ["other_key", "key"] {
                let sees = slug == public || (slug == private && caller == "key");
                let diff = Call::get(format!("/projects/{slug}/diff?to=0&limit=1"));
                cases.push((caller, diff, if sees { 400 } else { 404 }));
            }
            let of_anybody = if slug == public { 400 } else { 404 };
            cases.push((
                "none",
                Call::get(format!("/projects/{slug}/diff?to=0&limit=0")),
                of_anybody,
            ));
        }
        none(&differing(&site, cases).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_about_a_private_project_is_answered_as_about_a_missing_one() {
    let site = Site::start(None, |options| options).await;
    let (private, missing) = (project(&site, Kind::Private).await, "dataset-none");
    let stranger = &site.credentials("other_key")[0];
    let calls = |slug: &str| [bad_input(slug), bad_patches(slug)].concat();
    for ((one, _), (other, _)) in calls(&private).into_iter().zip(calls(missing)) {
        let sent = format!("{} {}", one.method, one.path);
        let one = site.send(stranger, one).await;
        let other = site.send(stranger, other).await;
        assert_eq!((one.code(), other.code()), (404, 404), "{sent}");
        assert_eq!(unnamed(&one, &private), unnamed(&other, missing), "{sent}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_exists_before_it_has_a_price_and_an_id_is_one_before_it_is_somebodys() {
    let site = Site::start(None, |options| options).await;
    let items = Items::default();
    let (paid, public) = (
        items.dataset(&site, Kind::Paid).await,
        items.dataset(&site, Kind::Public).await,
    );
    let mut cases: Vec<Case> = Vec::new();
    for (version, status) in [(1, 402), (999, 404)] {
        let at = |rest: &str| format!("/projects/{}{rest}{version}", paid.slug);
        for rest in [
            "/data?version=",
            "/manifest?version=",
            "/export?version=",
            "/diff?limit=1&to=",
        ] {
            cases.push(("other_key", Call::get(at(rest)), status));
        }
        let query = json!({"sql": "SELECT 1 AS one FROM records", "version": version});
        let path = format!("/projects/{}/query", paid.slug);
        cases.push(("other_key", post(path, query.to_string()), status));
    }
    let complete = json!({"etags": [{"n": 1, "etag": "1"}]}).to_string();
    for (id, status) in [("1", 400), ("not-an-id", 400), (ID, 404)] {
        let at = |rest: &str| format!("/projects/{}{rest}", public.slug);
        for call in [
            Call::get(at(&format!("/contributions/{id}"))),
            Call::get(at(&format!("/contributions/{id}/verdicts"))),
            post(at(&format!("/uploads/{id}/complete")), complete.clone()),
            Call::new(Method::DELETE, at(&format!("/uploads/{id}")), ""),
        ] {
            cases.push(("none", call.clone(), 401));
            for caller in ["key", "other_key"] {
                cases.push((caller, call.clone(), status));
            }
        }
    }
    none(&differing(&site, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_is_answered_before_the_state_and_the_state_before_the_allowance() {
    let site = Site::start(None, |options| {
        options.with("SLUICE__LIMITS__PUBLIC_CONTRIBUTIONS_PER_DAY", 1)
    })
    .await;
    let slug = project(&site, Kind::Public).await;
    let good = batch(&records("first", 1)).to_string();
    let another = batch(&records("second", 1)).to_string();
    let contribute = |body: &str| post(format!("/projects/{slug}/contribute"), body);
    let keyed = |body: &str| contribute(body).with("idempotency-key", "once");
    let cases = vec![
        ("key", keyed(&good), 201),
        ("key", contribute("{}"), 400),
        ("key", contribute(&another), 429),
        ("key", keyed(&good), 200),
        ("key", keyed(&another), 422),
        ("key", patch(&slug, r#"{"status": "paused"}"#), 200),
        ("key", contribute("{}"), 400),
        ("key", contribute(&another), 409),
        ("other_key", contribute(&another), 409),
        ("key", keyed(&good), 200),
        ("key", keyed(&another), 422),
    ];
    none(&differing(&site, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_minute_come_before_the_path_and_those_of_an_hour_before_the_input() {
    const MINUTE: usize = 60;
    const HOUR: usize = 3;
    let site = Site::start(None, |options| {
        options
            .with("SLUICE__SERVER__TRUSTED_PROXIES", 1)
            .with("SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE", MINUTE)
            .with("SLUICE__LIMITS__AGENT_REGISTRATIONS_PER_IP_PER_HOUR", HOUR)
    })
    .await;
    let from = |address: &str, call: Call| call.with("x-forwarded-for", address);
    let first = |call| from("198.51.100.1", call);
    for _ in 0..=MINUTE {
        site.send(&Credential::Nothing, first(Call::get("/licenses"))).await;
    }
    let mut cases = vec![
        ("none", first(Call::get("/nothing")), 429),
        ("none", first(Call::new(Method::DELETE, "/projects", "{")), 429),
        ("garbage", first(Call::get("/projects")), 429),
        ("suspended_key", first(Call::get("/projects")), 429),
        ("none", first(Call::get("/healthz")), 200),
    ];
    let register = |path: &str| from("198.51.100.2", post(path.to_owned(), "{}"));
    for _ in 0..HOUR {
        cases.push(("op_token", register("/agents"), 400));
    }
    cases.extend([
        ("op_token", register("/agents"), 429),
        ("none", register("/agents/claim"), 429),
        ("key", register("/agents"), 403),
        ("none", register("/agents"), 401),
    ]);
    none(&differing(&site, cases).await);
}
