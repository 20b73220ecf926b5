use std::collections::VecDeque;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use types::unit::Judge;

use super::*;
use crate::testing::Service;

/// A model that follows a script.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<String, Unavailable>>>,
    asked: Mutex<Vec<DatasetText>>,
}

#[async_trait]
impl Summariser for Scripted {
    fn judge(&self) -> Judge {
        Judge::model("judge-x")
    }

    async fn summarise(&self, text: &DatasetText) -> Result<String, Unavailable> {
        self.asked.lock().push(text.clone());
        self.answers.lock().pop_front().unwrap()
    }
}

struct World {
    service: Service,
    model: Arc<Scripted>,
    task: Summaries,
    token: String,
    key: String,
}

impl World {
    async fn new(answers: Vec<Result<String, Unavailable>>) -> Self {
        let service = Service::start().await;
        let token = service.operator().await;
        let key = service.agent(&token, "ada").await;
        let model = Arc::new(Scripted {
            answers: Mutex::new(answers.into()),
            asked: Mutex::default(),
        });
        let (store, catalog) = (service.app.store.clone(), service.app.catalog.clone());
        let writer = Arc::clone(&model) as Arc<dyn Summariser>;
        let task = Summaries::new(store, catalog, Arc::clone(&service.app.clock), writer);
        Self {
            service,
            model,
            task,
            token,
            key,
        }
    }

    /// Makes a dataset with a version of these names.
    async fn dataset(&self, slug: &str, more: &Value, names: std::ops::Range<u32>) {
        self.service.project(&self.token, slug, more).await;
        let records: Vec<Value> = names.map(|number| json!({"name": format!("n{number}")})).collect();
        self.service.merged(&self.key, slug, &records).await;
    }

    async fn round(&self) -> RoundEnd {
        self.task.round().await.unwrap()
    }

    /// Returns the summary of the latest version as `GET /projects/{slug}` shows it.
    async fn shown(&self, slug: &str) -> Value {
        let got = self.service.get(&format!("/projects/{slug}"), Some(&self.key)).await;
        assert_eq!(got.status, 200);
        got.json()["versions"][0]["summary"].clone()
    }
}

fn held(reason: Cause, until: &str) -> Unavailable {
    Unavailable {
        reason,
        resumes_after: Some(until.parse().unwrap()),
    }
}

#[tokio::test]
async fn the_latest_version_of_a_public_dataset_gets_a_summary_by_the_model() {
    let world = World::new(vec![Ok("Names of stations.".to_owned())]).await;
    world.dataset("secret", &json!({"visibility": "private"}), 0..3).await;
    assert_eq!(world.round().await, RoundEnd::Idle);
    world.dataset("weather", &json!({}), 0..30).await;
    assert_eq!(world.shown("weather").await, Value::Null);
    assert_eq!(world.round().await, RoundEnd::Done);
    let expected = json!({"text": "Names of stations.", "model": "judge-x", "writtenAt": "2026-11-21T07:00:00Z"});
    assert_eq!(world.shown("weather").await, expected);
    assert_eq!(world.round().await, RoundEnd::Idle);
    // The model was shown the end of the version, and nothing of the private dataset.
    let asked = world.model.asked.lock().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].readme, "A readme of at least twenty characters.");
    assert_eq!(asked[0].contract["fields"][0]["name"], "name");
    let expected: Vec<Value> = (10..30).map(|number| json!({"name": format!("n{number}")})).collect();
    assert_eq!(asked[0].records, expected);
}

#[tokio::test]
async fn records_that_are_for_sale_are_not_given_away() {
    let world = World::new(vec![Ok("Prices by day.".to_owned())]).await;
    let paid = json!({"access": "paid", "price": "0.50"});
    world.dataset("prices", &paid, 0..3).await;
    assert_eq!(world.round().await, RoundEnd::Done);
    let asked = world.model.asked.lock().clone();
    assert_eq!((asked.len(), asked[0].records.len()), (1, 0));
    assert_eq!(world.shown("prices").await["text"], "Prices by day.");
}

#[tokio::test]
async fn a_hold_stops_the_questions_and_costs_the_version_nothing() {
    let until = "2026-11-22T00:00:00Z";
    let mut answers: Vec<_> = (0..4).map(|_| Err(held(Cause::Budget, until))).collect();
    answers.push(Ok("Names.".to_owned()));
    let world = World::new(answers).await;
    world.dataset("weather", &json!({}), 0..3).await;
    let until = until.parse::<Timestamp>().unwrap();
    assert_eq!(world.round().await, RoundEnd::Waits(until));
    assert_eq!(world.round().await, RoundEnd::Idle);
    // More tries than answers that cannot be used would give it up at.
    for _ in 0..3 {
        world.service.clock.advance(Duration::from_hours(24));
        assert!(matches!(world.round().await, RoundEnd::Waits(_)));
    }
    world.service.clock.advance(Duration::from_hours(24));
    assert_eq!(world.round().await, RoundEnd::Done);
    assert_eq!(world.shown("weather").await["text"], "Names.");
}

#[tokio::test]
async fn a_version_that_spoils_its_summaries_is_given_up() {
    let later = "2026-11-21T07:10:00Z";
    let personal = Ok("Write to kim@personal-mail.org for the rest.".to_owned());
    let world = World::new(vec![
        Err(held(Cause::Text, later)),
        personal,
        Err(held(Cause::Text, later)),
    ])
    .await;
    world.dataset("weather", &json!({}), 0..3).await;
    for _ in 0..3 {
        assert_eq!(world.round().await, RoundEnd::Done);
        assert_eq!(world.round().await, RoundEnd::Idle, "it waits");
        world.service.clock.advance(Duration::from_mins(11));
    }
    world.service.clock.advance(Duration::from_hours(48));
    assert_eq!(world.round().await, RoundEnd::Idle);
    assert_eq!(world.model.asked.lock().len(), 3);
    assert_eq!(world.shown("weather").await, Value::Null);
}
