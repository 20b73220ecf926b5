//! Tests of uploads whose operator is suspended, or which the service has no room for.

use types::OperatorId;

use super::*;

impl Scene {
    /// The scene of an operator that may contribute once a day.
    pub(super) async fn of_one_a_day() -> Self {
        Self::with(crate::Limits {
            public_contributions_per_day: 1,
            ..limits()
        })
        .await
    }
}

/// The operator that contributes.
async fn contributor(scene: &Scene, upload: &Value) -> OperatorId {
    let id = upload["id"].as_str().unwrap().parse().unwrap();
    scene.service.app.store.upload(id).await.unwrap().unwrap().operator
}

async fn suspend(scene: &Scene, operator: OperatorId) {
    let now = scene.service.app.clock.now();
    let suspended = scene
        .service
        .app
        .store
        .operator_suspend(operator, "spam".to_owned(), now)
        .await;
    assert!(suspended.is_ok(), "{suspended:?}");
}

#[tokio::test]
async fn no_part_is_taken_for_a_suspended_operator() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let url = upload["partUrls"][0]["url"].as_str().unwrap();
    assert_eq!(scene.put(url, b"abcd").await.status, 200);
    let operator = contributor(&scene, &upload).await;
    suspend(&scene, operator).await;
    is(&scene.put(url, b"abcd").await, 403, "account_suspended");
    // The operator is restored before its uploads expire, so they continue.
    scene.service.app.store.operator_restore(operator).await.unwrap();
    assert_eq!(scene.put(url, b"abcd").await.status, 200);
}

#[tokio::test]
async fn a_part_that_is_on_its_way_is_refused_once_its_operator_is_suspended() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let operator = contributor(&scene, &upload).await;
    let (store, clock) = (scene.service.app.store.clone(), Arc::clone(&scene.service.clock));
    let rest = stream::once(async move {
        store
            .operator_suspend(operator, "spam".to_owned(), clock.now())
            .await
            .unwrap();
        clock.advance(Duration::from_secs(1));
        Ok::<_, std::io::Error>(Bytes::from_static(b"cd"))
    });
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"ab"))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    let sent = request(upload["partUrls"][0]["url"].as_str().unwrap(), 4, body);
    is(&scene.service.send(sent).await, 403, "account_suspended");
}

#[tokio::test]
async fn uploads_of_a_suspended_operator_expire_and_their_bytes_are_freed() {
    let scene = Scene::of_one_a_day().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let operator = contributor(&scene, &upload).await;
    assert_eq!(scene.reaper().reap().await, 0);
    suspend(&scene, operator).await;
    assert_eq!(scene.reaper().reap().await, 1);
    scene.service.app.store.operator_restore(operator).await.unwrap();
    is(&scene.complete(&upload, &tags).await, 409, "upload_expired");
    // The expired upload became no contribution.
    scene.begun().await;
}

#[tokio::test]
async fn a_full_backlog_takes_no_uploads_either() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let etags = scene.put_both(&upload).await;
    scene.service.app.backlog.set_disk_has_space(false);
    let begun = scene.begin(&json!({"bytes": 7, "parts": 2, "partSize": 4})).await;
    is(&begun, 503, "storage_full");
    is(&scene.complete(&upload, &etags).await, 503, "storage_full");
    scene.service.app.backlog.set_disk_has_space(true);
    assert_eq!(scene.complete(&upload, &etags).await.status, 201);
}
