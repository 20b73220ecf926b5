//! What the author of a refused copy is told about the unit that it copies.

use types::unit::SimilarUnit;

use super::*;

const ORIGINAL: &str = "On PostgreSQL 15.4 the nightly export of orders_2026 took 812 ms; with work_mem at 6418 it took 97.4 ms, \
                        and 1,204,331 rows were read. It was the plan of query_7731 that changed.";
const COPY: &str = "orders_2026을 야간에 내보내는 데 812ms가 걸렸다. work_mem을 6418로 올리자 97.4ms가 되었고 1204331행을 읽었다. \
                    query_7731의 계획이 바뀐 것이 원인이었고 port 5433도 확인했다.";

impl World {
    /// Submits a text of another operator, has it refused as a copy of `original`, and returns the sentence of that.
    async fn told(&self, original: &str) -> String {
        let body = json!({"title": "A copy", "body": COPY, "category": "tool-usage", "sourceDeclaration": "Ran here."});
        let got = self.post("/knowledge", Some(&self.other), &body).await;
        assert_eq!(got.status, 201, "{}", got.text());
        let id = got.json()["id"].as_str().unwrap().to_owned();
        let at = self.service.clock.now();
        let outcome = UnitOutcome {
            id: id.parse().unwrap(),
            generation: 0,
            at,
            resolution: UnitResolution::Rejected {
                code: "duplicate_meaning".to_owned(),
                message: "It is a copy.".to_owned(),
            },
            report: vec![ReviewEntry {
                step: ReviewStep::Embedding,
                outcome: StepOutcome::Refused,
                code: "duplicate_meaning".to_owned(),
                detail: "It is a copy.".to_owned(),
                at,
                judge: None,
                scores: None,
                similar: Some(SimilarUnit {
                    unit_id: original.parse().unwrap(),
                    similarity: 0.9,
                }),
            }],
        };
        assert!(self.service.app.store.knowledge().apply(vec![outcome]).await.unwrap()[0].changed);
        let shown = self.get(&format!("/knowledge/{id}"), Some(&self.other)).await.json();
        shown["validations"][0]["detail"].as_str().unwrap().to_owned()
    }

    /// Publishes the original with a price.
    async fn original(&self, price: &str) -> String {
        let got = self.submit_with(ORIGINAL, &json!({"price": price})).await;
        assert_eq!(got.status, 201, "{}", got.text());
        let id = got.json()["id"].as_str().unwrap().to_owned();
        self.publish(&id, 60).await;
        id
    }
}

#[tokio::test]
async fn of_a_free_unit_the_common_facts_are_counted_and_the_new_ones_named() {
    let world = World::start().await;
    let original = world.original("0").await;
    assert_eq!(
        world.told(&original).await,
        "It is a copy. 7 of 8 are there, such as `orders_2026`, `812ms`, `work_mem`, `6418`, `97.4ms`, `1204331`, `query_7731`. \
         New here: `5433`."
    );
}

#[tokio::test]
async fn of_a_priced_unit_only_the_public_part_is_named_and_nothing_is_counted() {
    let world = World::start().await;
    let original = world.original("0.50").await;
    let told = world.told(&original).await;
    // The preview of a priced unit ends long before the later figures.
    assert!(!told.contains(" of ") && !told.contains("New here"), "{told}");
    for hidden in ["97.4", "1204331", "query_7731", "6418"] {
        assert!(!told.contains(hidden), "{hidden}: {told}");
    }
}

#[tokio::test]
async fn of_a_unit_that_is_hidden_or_erased_nothing_is_named() {
    let world = World::start().await;
    let original = world.original("0").await;
    world.take_down(&original, TakedownReason::Copyright).await;
    assert_eq!(world.told(&original).await, "It is a copy.");
}
