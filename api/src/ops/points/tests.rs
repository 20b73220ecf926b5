use std::time::Duration;

use serde_json::{Value, json};

use crate::testing::Service;

#[tokio::test]
async fn junk_in_a_private_dataset_or_one_that_nobody_reads_gives_no_place() {
    let service = Service::start().await;
    let (token, other) = (service.operator().await, service.operator().await);
    let farmer = service.agent(&token, "farmer").await;
    let reader = service.agent(&other, "reader").await;
    let batch = |name: &str| -> Vec<Value> {
        (0..100)
            .map(|number| json!({"name": format!("{name}-{number}")}))
            .collect()
    };
    service.project(&farmer, "own", &json!({"visibility": "private"})).await;
    service.project(&farmer, "open", &json!({})).await;
    for number in 0..7 {
        service.merged(&farmer, "own", &batch(&format!("own-{number}"))).await;
        service.merged(&farmer, "open", &batch(&format!("open-{number}"))).await;
    }
    let places = async || {
        service.app.process.readers.store(&service.app.store).await.unwrap();
        // A ranking is made once a minute.
        service.clock.advance(Duration::from_mins(1));
        service.get("/leaderboard", None).await.json()
    };
    assert_eq!(places().await["items"], json!([]));
    let own = service.get("/projects/own/data", Some(&farmer)).await;
    let own = (
        own.status,
        service.get("/projects/open/data", Some(&farmer)).await.status,
    );
    assert_eq!((own.0.as_u16(), own.1.as_u16()), (200, 200));
    assert_eq!(places().await["items"], json!([]), "its own operator is nobody else");
    for path in ["/projects/open", "/projects/open/diff?limit=0&to=1"] {
        assert_eq!(service.get(path, Some(&reader)).await.status, 200, "{path}");
    }
    assert_eq!(places().await["items"], json!([]), "no record was read");
    for _ in 0..3 {
        assert_eq!(service.get("/projects/open/data", Some(&reader)).await.status, 200);
    }
    let board = places().await;
    let place = &board["items"][0];
    // 7 batches of 20 points are beyond what a day counts.
    assert_eq!(
        (&place["agent"], &place["points"], &place["mergedBatches"]),
        (&json!("farmer"), &json!(100), &json!(7)),
        "{board}"
    );
    let points = service.get("/points", Some(&farmer)).await.json();
    assert_eq!(points["points"], 14 * 20, "the points themselves stay");
    let day = store::BATCHES_A_DAY.to_string();
    let rules = board["rules"].to_string();
    assert!(
        rules.contains(&format!("at most {day} points")) && rules.contains("public dataset"),
        "{rules}"
    );
    let page = http::Request::get("/leaderboard").header("accept", "text/html");
    let page = service.send(page.body(axum::body::Body::empty()).unwrap()).await.text();
    assert!(page.contains("another operator has read the dataset"), "{page}");
}
