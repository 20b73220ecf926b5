//! Uploads that are completed with a reading.

use messages::{BASE_FORMAT, SUBMISSION_FORMAT, Submission};
use serde_json::{Value, json};

use super::{Scene, code, is};
use crate::testing::Got;

/// A reading that fits the contract of the project.
fn fitting() -> Value {
    json!({"format": "csv", "columns": [{"from": "City", "to": "name"}, {"from": "x", "to": null}]})
}

impl Scene {
    async fn complete_with(&self, upload: &Value, etags: &[Value], reading: &Value) -> Got {
        let path = format!("/projects/weather/uploads/{}/complete", upload["id"].as_str().unwrap());
        let body = json!({"etags": etags, "reading": reading}).to_string();
        self.service.call("POST", &path, Some(&self.key), &body).await
    }

    /// The message of the only contribution.
    async fn message(&self) -> Submission {
        let open = self
            .service
            .app
            .store
            .contributions_open_at_start(9, None)
            .await
            .unwrap();
        assert_eq!(open.len(), 1);
        Submission::decode(&open[0].submission).unwrap()
    }
}

#[tokio::test]
async fn a_reading_that_does_not_fit_leaves_the_upload_open_and_another_completes_it() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    for (reading, path) in [
        (
            json!({"format": "csv", "columns": [{"from": "City", "to": "town"}]}),
            "/reading/columns/0/to",
        ),
        (json!({"format": "csv"}), "/reading/columns"),
        (json!({"format": "csv", "colums": []}), "/reading/colums"),
        (json!({"delimiter": ";"}), "/reading/delimiter"),
        (json!({"encoding": "utf-9"}), "/reading/encoding"),
    ] {
        let got = scene.complete_with(&upload, &tags, &reading).await;
        is(&got, 400, "invalid_request");
        assert_eq!(got.json()["details"][0]["path"], path, "{}", got.json());
    }
    let got = scene.complete_with(&upload, &tags, &fitting()).await;
    assert_eq!(got.status, 201, "{}", got.json());
    let message = scene.message().await;
    assert_eq!(message.format, SUBMISSION_FORMAT);
    assert_eq!(message.reading, Some(serde_json::from_value(fitting()).unwrap()));
}

#[tokio::test]
async fn a_repeated_completion_has_the_same_reading() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let first = scene.complete_with(&upload, &tags, &fitting()).await;
    assert_eq!(first.status, 201, "{}", first.json());
    // Members with their usual value say nothing.
    let mut spelled = fitting();
    spelled["delimiter"] = json!(",");
    spelled["emptyText"] = json!(false);
    let again = scene.complete_with(&upload, &tags, &spelled).await;
    assert_eq!(
        (again.status.as_u16(), again.json()["id"].clone()),
        (201, first.json()["id"].clone())
    );
    let mut other = fitting();
    other["delimiter"] = json!(";");
    is(
        &scene.complete_with(&upload, &tags, &other).await,
        409,
        "upload_completed",
    );
    is(&scene.complete(&upload, &tags).await, 409, "upload_completed");
}

#[tokio::test]
async fn a_reading_that_says_what_holds_without_one_is_none() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let got = scene
        .complete_with(&upload, &tags, &json!({"format": "json-lines"}))
        .await;
    assert_eq!(got.status, 201, "{}", got.json());
    let message = scene.message().await;
    assert_eq!((message.format, message.reading), (BASE_FORMAT, None));
    assert_eq!(scene.complete(&upload, &tags).await.status, 201);
}

#[tokio::test]
async fn a_reading_needs_workers_that_know_it_and_one_compression() {
    let scene = Scene::set().await;
    let upload = scene
        .begin(&json!({"bytes": 7, "parts": 2, "partSize": 4, "compression": "gzip"}))
        .await
        .json();
    let tags = scene.put_both(&upload).await;
    let mut packed = fitting();
    packed["compression"] = json!("zstd");
    let got = scene.complete_with(&upload, &tags, &packed).await;
    assert_eq!(code(&got), (400, "invalid_request".to_owned()));
    assert_eq!(got.json()["details"][0]["path"], "/reading/compression");
}
