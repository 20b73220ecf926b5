//! Uploads of an operator, one of whose tables is damaged.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::Scene;

#[tokio::test]
async fn a_damaged_table_does_not_stop_the_uploads_to_another() {
    let scene = Scene::set().await;
    let service = &scene.service;
    service.project(&scene.maintainer, "broken", &json!({})).await;
    let key = service.agent(&scene.maintainer, "maintainer").await;
    service.merged(&key, "broken", &[json!({"name": "a"})]).await;
    let project = service.app.store.project_by_slug("broken", None).await.unwrap();
    let commit = format!("{}/_delta_log/{:020}.json", project.unwrap().id, 1);
    let commit = service.tables().join(commit);
    let text = fs::read_to_string(&commit).unwrap();
    fs::write(&commit, &text[..text.len() / 2]).unwrap();
    // Later than the table counts as just confirmed.
    service.clock.advance(Duration::from_hours(1));
    let read = service.get("/projects/broken/data", Some(&key)).await;
    assert_eq!(read.status, 503, "{}", read.json());
    scene.begun().await;
}
