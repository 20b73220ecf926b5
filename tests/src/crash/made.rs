//! What clients send: projects, records, and uploads part by part.
//!
//! Invariant: no two requests make the same record by themselves.

use reqwest::Method;
use serde_json::{Value, json};

use crate::history::{Event, History};
use crate::random::Random;
use crate::world::{contract, merged, project_body};
use crate::{Answer, Http};

/// A project that batches go to.
#[derive(Clone, Debug)]
pub(super) struct Dataset {
    pub(super) slug: String,
    pub(super) contract: Value,
    /// Whether only the first operator's agents see it.
    pub(super) private: bool,
}

impl Dataset {
    pub(super) fn new(slug: &str, private: bool, allow_extra: bool) -> Self {
        let contract = merged(contract(), json!({"allowExtra": allow_extra}));
        Self {
            slug: slug.to_owned(),
            contract,
            private,
        }
    }

    /// Creates the project; whether an answer came.
    pub(super) async fn create(&self, history: &History, owner: &Http) -> bool {
        let visibility = if self.private { "private" } else { "public" };
        let changes = json!({"schemaDef": self.contract, "visibility": visibility});
        let body = merged(project_body(&self.slug), changes).to_string();
        let slug = self.slug.clone();
        history.write(&Event::Create {
            slug: slug.clone(),
            contract: self.contract.clone(),
        });
        match owner.send(Method::POST, "/projects", &[], Some(body.into())).await {
            Ok(answer) => {
                let status = answer.code();
                history.write(&Event::Created { slug, status });
                true
            }
            Err(_) => false,
        }
    }
}

/// Uploads records in two parts and completes the upload: the last answer, or none where the connection broke.
pub(super) async fn upload(caller: &Http, slug: &str, records: &[Value]) -> Option<Answer> {
    let lines: Vec<_> = records.iter().map(|record| format!("{record}\n")).collect();
    let bytes = lines.concat().into_bytes();
    let part = bytes.len().div_ceil(2);
    let body = json!({"bytes": bytes.len(), "parts": bytes.len().div_ceil(part), "partSize": part});
    let path = format!("/projects/{slug}/uploads");
    let begun = caller
        .send(Method::POST, &path, &[], Some(body.to_string().into()))
        .await
        .ok()?;
    if begun.code() != 201 {
        return Some(begun);
    }
    let mut tags = Vec::new();
    for (piece, place) in bytes
        .chunks(part)
        .zip(begun.body["partUrls"].as_array().expect("parts"))
    {
        let url = place["url"].as_str().expect("a URL");
        let path = &url[url.find("/uploads/").expect("a path")..];
        let put = caller
            .anonymous()
            .send(Method::PUT, path, &[], Some(piece.to_vec()))
            .await
            .ok()?;
        if put.code() != 200 {
            return Some(put);
        }
        tags.push(json!({"n": place["n"], "etag": put.header("etag")}));
    }
    let path = format!("{path}/{}/complete", begun.text("/id"));
    let body = json!({ "etags": tags }).to_string();
    caller.send(Method::POST, &path, &[], Some(body.into())).await.ok()
}

/// A record that no other request has.
pub(super) fn record(number: u64, row: usize, dataset: &Dataset, random: &mut Random) -> Value {
    const WORDS: [&str; 4] = ["alpha", "beta", "gamma", "delta \"quoted\""];
    let quarters = i32::try_from(random.below(400)).unwrap_or(0);
    let mut record = json!({"station": format!("station {number}"), "sample": row});
    if random.chance(80) {
        record["value"] = json!(f64::from(quarters) / 4.0);
    }
    if random.chance(50) {
        record["at"] = json!(format!("2026-01-02T03:04:{:02}Z", random.below(60)));
    }
    if random.chance(50) {
        record["good"] = json!(random.chance(50));
    }
    if random.chance(30) {
        record["more"] = json!({"word": random.pick(&WORDS), "list": [1, 2.5, null]});
    }
    if dataset.contract["allowExtra"] == true && random.chance(50) {
        record["remark"] = json!(random.pick(&WORDS));
    }
    record
}
