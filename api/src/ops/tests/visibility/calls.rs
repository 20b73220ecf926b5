//! Calls of the doors of each kind of item.

use serde_json::{Value, json};

use super::scene::{Item, Scene};

/// Caller of a call that is not the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Caller,
    Nobody,
    /// The person behind a caller whom nothing ever happens to.
    Person,
}

/// Request at a door.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) by: By,
}

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            body: Value::Null,
            by: By::Caller,
        }
    }

    /// Returns a read without a credential, which an agent that is down sends like anybody.
    fn by_nobody(path: impl Into<String>) -> Self {
        Self {
            by: By::Nobody,
            ..Self::get(path)
        }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            method: "POST",
            body,
            ..Self::get(path)
        }
    }
}

/// Requests at a door, and the text by which the item shows in their answers.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) calls: Vec<Call>,
    pub(super) mark: String,
}

/// Returns the requests of a caller at a door of an item; `None` for a door that nobody wrote down.
pub(super) async fn door(scene: &Scene, item: &Item, caller: &str, door: &str) -> Option<Door> {
    let calls = match (item.kind, door) {
        ("agent", "its items") => {
            scene.refresh().await;
            let find = |path: &str| Call::by_nobody(format!("{path}{}", item.word));
            return Some(Door {
                calls: vec![find("/search?mode=keyword&q="), find("/projects?q=")],
                mark: item.word.clone(),
            });
        }
        (_, "search") => {
            scene.refresh().await;
            let calls = vec![Call::get(format!("/search?mode=keyword&limit=50&q={}", item.word))];
            // The later versions of a chain have the same words, and name the first one as their chain.
            let mark = match item.kind {
                "unit" => format!("\"id\":\"{}\"", item.name),
                _ => item.mark.clone(),
            };
            return Some(Door { calls, mark });
        }
        (_, "activity feed") => vec![Call::get("/activity?limit=100")],
        (_, "leaderboard") => {
            scene.wait_for_ranking();
            vec![Call::get("/leaderboard?limit=100")]
        }
        (_, "credential") => credential(item),
        (_, "report POST") => vec![report(item)],
        ("dataset", _) => dataset(scene, item, caller, door).await?,
        ("unit", _) => unit(scene, item, door).await?,
        ("comment" | "review (community)", _) => said(item, door)?,
        ("request" | "answer", _) => request(item, caller, door)?,
        ("agent", _) => agent(item, door)?,
        _ => return None,
    };
    Some(Door {
        calls,
        mark: item.mark.clone(),
    })
}

/// Returns calls that read a credential.
fn credential(item: &Item) -> Vec<Call> {
    let mut calls: Vec<Call> = ["/points", "/credits", "/quota", "/projects", "/community/requests"]
        .map(Call::get)
        .into();
    calls.push(report(item));
    calls
}

fn report(item: &Item) -> Call {
    let (kind, id) = match item.kind {
        "review (community)" => ("review", item.number.to_string()),
        "comment" | "answer" => ("comment", item.number.to_string()),
        "request" => ("topic", item.name.clone()),
        kind => (kind, item.name.clone()),
    };
    Call::post(
        "/reports",
        json!({"kind": kind, "id": id, "reason": "other", "detail": "It is not what it says."}),
    )
}

async fn dataset(scene: &Scene, item: &Item, caller: &str, door: &str) -> Option<Vec<Call>> {
    let slug = &item.name;
    let path = |rest: &str| format!("/projects/{slug}{rest}");
    let records = json!({"records": [{"name": scene.fresh("record")}]});
    let read = |version: u64| {
        [
            Call::get(path(&format!("/data?version={version}"))),
            Call::post(
                path("/query"),
                json!({"sql": "SELECT 1 FROM records", "version": version}),
            ),
            Call::get(path(&format!("/export?version={version}"))),
            Call::get(path(&format!("/diff?to={version}&limit=10"))),
            Call::get(path(&format!("/manifest?version={version}"))),
        ]
    };
    let latest = || {
        let [_, _, export, diff, _] = read(item.versions);
        vec![
            Call::get(path("/data")),
            Call::post(path("/query"), json!({"sql": "SELECT 1 FROM records"})),
            export,
            diff,
            Call::get(path("/manifest")),
        ]
    };
    Some(match door {
        "list" => vec![Call::get(format!("/projects?q={slug}"))],
        "item" => vec![Call::get(path(""))],
        "diff limit=0" => vec![Call::get(path("/diff?to=1&limit=0"))],
        "reads" | "reads of the latest" => latest(),
        "reads of the first" => read(1).into(),
        "data" => vec![Call::get(path("/data"))],
        "query" => vec![Call::post(path("/query"), json!({"sql": "SELECT 1 FROM records"}))],
        "export" => vec![Call::get(path("/export?version=1"))],
        "manifest" => vec![Call::get(path("/manifest"))],
        "part address" => vec![Call::by_nobody(item.address(caller))],
        "buy" => vec![Call::post(path("/buy"), json!({}))],
        "paid" => vec![Call::get(format!("/paid/dataset?slug={slug}"))],
        "comments GET" => vec![Call::get(path("/comments"))],
        "community reviews GET" => vec![Call::get(format!("/community/reviews?dataset={slug}"))],
        "comment POST" => vec![Call::post(path("/comments"), json!({"body": "A comment."}))],
        "community review POST" => vec![Call::post("/community/reviews", review("dataset", slug))],
        "answer POST linking it" | "answer POST" => {
            let request = scene.request("dataset").await;
            let answers = format!("/community/requests/{request}/answers");
            vec![Call::post(answers, json!({"dataset": slug, "note": "This one."}))]
        }
        "contribute" => vec![Call::post(path("/contribute"), records)],
        "uploads" => vec![Call::post(
            path("/uploads"),
            json!({"bytes": 7, "parts": 1, "partSize": 7}),
        )],
        "validate" => vec![Call::post(path("/validate"), records)],
        "contribution GET" => vec![Call::get(path(&format!("/contributions/{}", item.batch)))],
        "verdicts" => vec![Call::get(path(&format!("/contributions/{}/verdicts", item.batch)))],
        "PATCH" => vec![Call {
            method: "PATCH",
            ..Call::post(path(""), json!({"readme": "Another readme of twenty characters."}))
        }],
        _ => return None,
    })
}

fn review(member: &str, name: &str) -> Value {
    json!({member: name, "body": "It holds; I ran it twice."})
}

async fn unit(scene: &Scene, item: &Item, door: &str) -> Option<Vec<Call>> {
    let id = &item.name;
    let path = |rest: &str| format!("/knowledge/{id}{rest}");
    Some(match door {
        "item" => vec![Call::get(path(""))],
        "full" => vec![Call::get(path("/full"))],
        "buy" => vec![Call::post(path("/buy"), json!({}))],
        "paid" => vec![Call::get(format!("/paid/knowledge?id={id}"))],
        "price" => vec![Call {
            method: "PUT",
            ..Call::post(path("/price"), json!({"price": "0.50"}))
        }],
        "revise" => vec![Call::post(path("/revise"), json!({"body": scene.fresh("A text")}))],
        "retire" => vec![Call::post(path("/retire"), json!({}))],
        "rating POST" => vec![Call::post(path("/review"), json!({"rating": 4}))],
        "ratings GET" => vec![Call::get(path("/reviews"))],
        "comments GET" => vec![Call::get(path("/comments"))],
        "community reviews GET" => vec![Call::get(format!("/community/reviews?unitId={id}"))],
        "comment POST" => vec![Call::post(path("/comments"), json!({"body": "A comment."}))],
        "community review POST" => vec![Call::post("/community/reviews", review("unitId", id))],
        "answer POST linking it" | "answer POST" => {
            let request = scene.request("knowledge").await;
            let answers = format!("/community/requests/{request}/answers");
            vec![Call::post(answers, json!({"unitId": id, "note": "This one."}))]
        }
        _ => return None,
    })
}

/// Returns the calls of comments and reviews, which are about a dataset.
fn said(item: &Item, door: &str) -> Option<Vec<Call>> {
    let (slug, all) = (&item.name, "/community/reviews");
    Some(match door {
        "comments GET" => vec![Call::get(format!("/projects/{slug}/comments"))],
        "reply POST" => vec![Call::post(
            format!("/projects/{slug}/comments"),
            json!({"body": "A reply.", "parentId": item.number}),
        )],
        // The reviews of an item that is down are missing; the list of all lacks them.
        "community reviews GET" if item.state == "on an item taken down" => vec![Call::get(all)],
        "community reviews GET" => vec![Call::get(all), Call::get(format!("{all}?dataset={slug}"))],
        "community review POST again by its author" => vec![Call::post(all, review("dataset", slug))],
        _ => return None,
    })
}

fn request(item: &Item, caller: &str, door: &str) -> Option<Vec<Call>> {
    let path = |rest: &str| format!("/community/requests/{}{rest}", item.name);
    Some(match door {
        "list" => vec![Call {
            // The list refuses the key of a suspended operator.
            by: match (item.is_suspended(), caller) {
                (true, "owner") => By::Nobody,
                _ => By::Caller,
            },
            ..Call::get(format!("/community/requests?q={}", item.word))
        }],
        "item" => vec![Call::get(path(""))],
        "t/{id}/comments" => vec![Call::get(format!("/community/t/{}/comments", item.name))],
        "answer POST" => vec![Call::post(path("/answers"), json!({"note": "A note alone."}))],
        "choose POST" | "choose POST with its answerId" => {
            vec![Call::post(path("/choose"), json!({"answerId": item.number}))]
        }
        "close POST" => vec![Call::post(path("/close"), json!({}))],
        _ => return None,
    })
}

fn agent(item: &Item, door: &str) -> Option<Vec<Call>> {
    Some(match door {
        "its name" => item
            .places
            .iter()
            .map(|place| Call::by_nobody(place.as_str()))
            .collect(),
        "POST /agents with the same name" => vec![Call {
            by: By::Person,
            ..Call::post("/agents", json!({"name": item.name}))
        }],
        _ => return None,
    })
}
