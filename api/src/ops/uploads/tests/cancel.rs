//! Tests of the list of open uploads, and of their cancellation.

use std::convert::Infallible;

use futures_util::future::join_all;

use super::*;

impl Scene {
    async fn cancel(&self, slug: &str, id: &Value, key: &str) -> Got {
        let path = format!("/projects/{slug}/uploads/{}", id.as_str().unwrap());
        self.service.call("DELETE", &path, Some(key), "").await
    }

    async fn listed(&self, slug: &str, key: &str) -> Vec<Value> {
        let got = self.service.get(&format!("/projects/{slug}/uploads"), Some(key)).await;
        assert_eq!(got.status, 200, "{}", got.json());
        got.json()["items"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn an_operator_at_its_limit_sees_its_uploads_cancels_one_and_begins_another() {
    let scene = Scene::set().await;
    let body = json!({"bytes": 7, "parts": 2, "partSize": 4});
    let mut uploads = Vec::new();
    for _ in 0..3 {
        uploads.push(scene.begun().await);
        scene.service.clock.advance(Duration::from_secs(90));
    }
    let refused = scene.begin(&body).await;
    is(&refused, 429, "too_many_uploads");
    let open = |upload: &Value| json!({"id": upload["id"], "project": "weather", "bytes": 7, "expiresAt": upload["expiresAt"]});
    let expected: Vec<Value> = uploads.iter().map(open).collect();
    assert_eq!(refused.json()["uploads"], json!(expected));
    let message = "the operator has 3 open uploads, which is the limit: cancel one, or wait until 13:00 UTC";
    assert_eq!(refused.json()["message"], message);
    assert_eq!(refused.json()["retryAfter"], 6 * 3_600 - 270 + 1);

    let listed = scene.listed("weather", &scene.key).await;
    assert_eq!(listed.len(), 3);
    let first = json!({
        "id": uploads[0]["id"], "project": "weather", "agent": "bob", "bytes": 7, "parts": 2, "compression": "none",
        "createdAt": "2026-11-21T07:00:00Z", "expiresAt": "2026-11-21T13:00:00Z",
    });
    assert_eq!(listed[0], first);

    let got = scene.cancel("weather", &uploads[1]["id"], &scene.key).await;
    assert_eq!(got.status, 200, "{}", got.json());
    assert_eq!(
        got.json(),
        json!({"id": uploads[1]["id"], "project": "weather", "status": "cancelled"})
    );
    assert_eq!(scene.listed("weather", &scene.key).await.len(), 2);
    assert_eq!(scene.begin(&body).await.status, 201);
    is(&scene.begin(&body).await, 429, "too_many_uploads");
    // Tomorrow's time has its date.
    scene.service.clock.advance(Duration::from_hours(12));
    for _ in 0..3 {
        scene.begun().await;
    }
    let message = scene.begin(&body).await.json()["message"].to_string();
    assert!(message.contains("wait until 2026-11-22 01:05 UTC"), "{message}");
}

#[tokio::test]
async fn an_upload_that_was_cancelled_is_over_and_its_allowance_and_bytes_are_given_back() {
    let scene = Scene::of_one_a_day().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let folder = scene.service.uploads().join(upload["id"].as_str().unwrap());
    let body = json!({"bytes": 7, "parts": 2, "partSize": 4});
    is(&scene.begin(&body).await, 429, "allowance_spent");
    // A second call, as after an answer that was lost, changes nothing.
    for _ in 0..2 {
        assert_eq!(scene.cancel("weather", &upload["id"], &scene.key).await.status, 200);
    }
    let late = scene.put(upload["partUrls"][0]["url"].as_str().unwrap(), b"abcd").await;
    is(&late, 409, "upload_closed");
    let completed = scene.complete(&upload, &tags).await;
    is(&completed, 409, "upload_expired");
    assert_eq!(completed.json()["message"], "the upload was cancelled");
    assert_eq!(scene.reaper().reap().await, 1);
    assert!(!folder.exists());
    let second = scene.begun().await;
    is(&scene.begin(&body).await, 429, "allowance_spent");
    let tags = scene.put_both(&second).await;
    assert_eq!(scene.complete(&second, &tags).await.status, 201);
    let too_late = scene.cancel("weather", &second["id"], &scene.key).await;
    is(&too_late, 409, "upload_completed");
    assert_eq!(scene.listed("weather", &scene.key).await, [] as [Value; 0]);
    is(&scene.begin(&body).await, 429, "allowance_spent");
}

#[tokio::test]
async fn an_operator_sees_and_cancels_its_own_uploads_only() {
    let scene = Scene::set().await;
    let service = &scene.service;
    let upload = scene.begun().await;
    let stranger = service.agent(&scene.maintainer, "eve").await;
    let sibling = service.agent(&scene.contributor, "carol").await;
    assert_eq!(scene.listed("weather", &stranger).await, [] as [Value; 0]);
    is(
        &scene.cancel("weather", &upload["id"], &stranger).await,
        404,
        "not_found",
    );
    service.project(&scene.contributor, "other", &json!({})).await;
    is(
        &scene.cancel("other", &upload["id"], &scene.key).await,
        404,
        "not_found",
    );
    let unknown = json!(ContributionId::new(service.clock.now()).to_string());
    is(&scene.cancel("weather", &unknown, &scene.key).await, 404, "not_found");
    service
        .project(&scene.maintainer, "hidden", &json!({"visibility": "private"}))
        .await;
    let hidden = service.get("/projects/hidden/uploads", Some(&scene.key)).await;
    is(&hidden, 404, "not_found");
    // The limit is one of the operator, so the list is the same at each of its projects and for each of its agents.
    let listed = scene.listed("other", &sibling).await;
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &upload["id"]));
    assert_eq!(scene.cancel("weather", &upload["id"], &sibling).await.status, 200);
}

#[tokio::test]
async fn a_part_that_arrives_while_its_upload_is_cancelled_stays_nowhere() {
    for is_reaped in [false, true] {
        let scene = Arc::new(Scene::set().await);
        let upload = scene.begun().await;
        scene.put_both(&upload).await;
        let folder = scene.service.uploads().join(upload["id"].as_str().unwrap());
        let (during, id) = (Arc::clone(&scene), upload["id"].clone());
        let body = stream::once(async move {
            assert_eq!(during.cancel("weather", &id, &during.key).await.status, 200);
            if is_reaped {
                assert_eq!(during.reaper().reap().await, 1);
            }
            Ok::<_, Infallible>(Bytes::from_static(b"abcd"))
        });
        let url = upload["partUrls"][0]["url"].as_str().unwrap();
        let late = scene.service.send(request(url, 4, Body::from_stream(body))).await;
        is(&late, 409, "upload_closed");
        scene.reaper().reap().await;
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn of_cancellations_and_completions_at_once_one_kind_wins() {
    let scene = Scene::set().await;
    for _ in 0..8 {
        let upload = scene.begun().await;
        let tags = scene.put_both(&upload).await;
        let completions = join_all((0..3).map(|_| scene.complete(&upload, &tags)));
        let cancellations = join_all((0..3).map(|_| scene.cancel("weather", &upload["id"], &scene.key)));
        let (completed, cancelled) = tokio::join!(completions, cancellations);
        let completed: Vec<u16> = completed.iter().map(|got| got.status.as_u16()).collect();
        let cancelled: Vec<u16> = cancelled.iter().map(|got| got.status.as_u16()).collect();
        let expected = match completed[0] {
            201 => (vec![201; 3], vec![409; 3]),
            _ => (vec![409; 3], vec![200; 3]),
        };
        assert_eq!((completed, cancelled), expected);
    }
    scene.reaper().reap().await;
}
