//! Tests of the operations on units, over a service without a worker: outcomes are applied as the projector would.

use serde_json::{Value, json};
use store::{Language, TakedownReason, UnitOutcome};
use types::unit::{Judge, ReviewEntry, UnitResolution, UnitScores};
use types::vocabulary::{JudgeKind, ReviewStep, StepOutcome};
use types::{Clock as _, UnitId};

use crate::config::Limits;
use crate::testing::{Got, Service, config, count, limits};

mod copied;
mod discussion;
mod fields;
mod later_prints;
mod pages;
mod prints;
mod submissions;
mod table;
mod trust;

/// A service with an author and another operator, whose limits no test meets by chance.
pub(in crate::ops) struct World {
    pub(in crate::ops) service: Service,
    pub(in crate::ops) author: String,
    pub(in crate::ops) other: String,
}

/// Returns limits that no test meets by chance.
fn wide() -> Limits {
    Limits {
        calls_per_ip_per_minute: count(1_000_000),
        knowledge_per_day: 1_000_000,
        submissions_per_agent_per_hour: 1_000_000,
        revisions_per_agent_per_hour: 1_000_000,
        ratings_per_agent_per_hour: 1_000_000,
        validations_per_agent_per_hour: 1_000_000,
        comments_per_agent_per_hour: 1_000_000,
        requests_per_agent_per_hour: 1_000_000,
        answers_per_agent_per_hour: 1_000_000,
        decisions_per_agent_per_hour: 1_000_000,
        reviews_per_agent_per_hour: 1_000_000,
        ..limits()
    }
}

impl World {
    pub(in crate::ops) async fn start() -> Self {
        Self::with(wide()).await
    }

    pub(in crate::ops) async fn with(limits: Limits) -> Self {
        Self::of(Service::with(config(), limits).await).await
    }

    /// A service with a second judge, so that rejections can be appealed.
    async fn judged_twice(limits: Limits) -> Self {
        let config = crate::Config {
            has_second_judge: true,
            ..config()
        };
        Self::of(Service::with(config, limits).await).await
    }

    async fn of(service: Service) -> Self {
        let (one, two) = (service.operator().await, service.operator().await);
        Self {
            author: service.agent(&one, "author").await,
            other: service.agent(&two, "stranger").await,
            service,
        }
    }

    pub(in crate::ops) async fn submit(&self, body: &str) -> Got {
        self.submit_with(body, &json!({})).await
    }

    pub(in crate::ops) async fn submit_with(&self, body: &str, more: &Value) -> Got {
        let mut unit = unit(body);
        unit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = unit.to_string();
        let service = &self.service;
        service.call("POST", "/knowledge", Some(&self.author), &body).await
    }

    /// Submits a unit and returns its id.
    pub(in crate::ops) async fn submitted(&self, body: &str) -> String {
        let got = self.submit(body).await;
        assert_eq!(got.status, 201, "{}", got.text());
        got.json()["id"].as_str().unwrap().to_owned()
    }

    pub(in crate::ops) async fn revised(&self, id: &str, body: &str) -> String {
        let path = format!("/knowledge/{id}/revise");
        let got = self
            .service
            .call("POST", &path, Some(&self.author), &json!({"body": body}).to_string())
            .await;
        assert_eq!(got.status, 201, "{}", got.text());
        got.json()["id"].as_str().unwrap().to_owned()
    }

    /// Submits a unit and publishes it with this total.
    pub(in crate::ops) async fn published(&self, body: &str, total: u8) -> String {
        let id = self.submitted(body).await;
        self.publish(&id, total).await;
        id
    }

    pub(in crate::ops) async fn publish(&self, id: &str, total: u8) {
        assert!(self.apply(id, resolution(total)).await);
    }

    pub(in crate::ops) async fn reject(&self, id: &str) {
        let rejected = UnitResolution::Rejected {
            code: "score_below_55".to_owned(),
            message: "Total 51 of 100, 55 is needed.".to_owned(),
        };
        assert!(self.apply(id, rejected).await);
    }

    pub(in crate::ops) async fn apply(&self, id: &str, resolution: UnitResolution) -> bool {
        let id: UnitId = id.parse().unwrap();
        let at = self.service.clock.now();
        let outcome = UnitOutcome {
            id,
            generation: 0,
            at,
            resolution,
            report: vec![ReviewEntry {
                step: ReviewStep::Score,
                outcome: StepOutcome::Passed,
                code: "scored".to_owned(),
                detail: "Say more of the machine.".to_owned(),
                at,
                judge: Some(judge()),
                scores: Some(scores(60)),
                similar: None,
            }],
        };
        self.service.app.store.knowledge().apply(vec![outcome]).await.unwrap()[0].changed
    }

    pub(in crate::ops) async fn take_down(&self, id: &str, reason: TakedownReason) {
        let now = self.service.clock.now();
        let knowledge = self.service.app.store.knowledge();
        let taken = knowledge.take_down(id.parse().unwrap(), Some(reason), now);
        assert!(taken.await.unwrap());
    }

    pub(in crate::ops) async fn get(&self, path: &str, key: Option<&str>) -> Got {
        self.service.get(path, key).await
    }

    pub(in crate::ops) async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Got {
        self.service.call("POST", path, key, &body.to_string()).await
    }
}

fn unit(body: &str) -> Value {
    json!({
        "title": "A title",
        "body": body,
        "category": "tool-usage",
        "sourceDeclaration": "Ran here today.",
    })
}

fn scores(total: u8) -> UnitScores {
    UnitScores {
        accuracy: 62,
        novelty: 50,
        reproducibility: 71,
        specificity: 80,
        total,
    }
}

fn judge() -> Judge {
    Judge {
        kind: JudgeKind::Heuristic,
        name: "rubric-1".to_owned(),
    }
}

fn resolution(total: u8) -> UnitResolution {
    UnitResolution::Published {
        scores: scores(total),
        judge: judge(),
        language: Language::English,
        near: None,
        embedder: None,
    }
}
