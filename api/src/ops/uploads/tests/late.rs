//! Tests of parts that arrive late, slowly or never.

use std::convert::Infallible;
use std::task::Poll;

use futures_util::future::join_all;
use store::{OutcomeRow, Resolution};
use tokio::sync::{mpsc, oneshot};

use super::*;

impl Scene {
    /// Decides a completed upload.
    async fn reject(&self, id: ContributionId) {
        let outcome = OutcomeRow {
            id,
            generation: 0,
            at: self.service.app.clock.now(),
            resolution: Resolution::Rejected {
                code: "refused".to_owned(),
                message: "1 of 2 records".to_owned(),
            },
            tallies: "[]".to_owned(),
            verdicts: "[]".to_owned(),
        };
        let applied = self.service.app.store.outcomes_apply(vec![outcome]).await.unwrap();
        assert!(applied[0].changed);
    }
}

#[tokio::test]
async fn a_part_that_comes_too_late_deletes_only_what_has_expired() {
    for expires in [false, true] {
        let scene = Scene::set().await;
        let upload = scene.begun().await;
        scene.put_both(&upload).await;
        let folder = scene.service.uploads().join(upload["id"].as_str().unwrap());
        let (clock, reaper) = (Arc::clone(&scene.service.clock), scene.reaper());
        let body = stream::once(async move {
            clock.advance(Duration::from_hours(6));
            if expires {
                assert_eq!(reaper.reap().await, 1);
            }
            Ok::<_, Infallible>(Bytes::from_static(b"abcd"))
        });
        let url = upload["partUrls"][0]["url"].as_str().unwrap();
        let late = scene.service.send(request(url, 4, Body::from_stream(body))).await;
        is(&late, 409, "upload_closed");
        // The other part was taken, and may just be completed while nothing has expired.
        assert_eq!(folder.join("2").exists(), !expires);
        scene.reaper().reap().await;
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn a_part_that_comes_when_its_upload_is_decided_and_freed_stays_nowhere() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let folder = scene.service.uploads().join(upload["id"].as_str().unwrap());
    let ((begins, begun), (ends, ended)) = (oneshot::channel(), oneshot::channel());
    let body = stream::once(async move {
        begins.send(()).unwrap();
        ended.await.unwrap();
        Ok::<_, Infallible>(Bytes::from_static(b"abcd"))
    });
    let url = upload["partUrls"][0]["url"].as_str().unwrap();
    let late = scene.service.send(request(url, 4, Body::from_stream(body)));
    let decided = async {
        begun.await.unwrap();
        assert_eq!(scene.complete(&upload, &tags).await.status, 201);
        scene.reject(upload["id"].as_str().unwrap().parse().unwrap()).await;
        assert_eq!(scene.reaper().reap().await, 1);
        assert!(!folder.exists());
        ends.send(()).unwrap();
    };
    let (late, ()) = tokio::join!(late, decided);
    is(&late, 409, "upload_closed");
    assert!(!folder.exists());
}

#[tokio::test]
async fn an_operator_whose_parts_never_come_keeps_no_other_from_sending() {
    let scene = Scene::set().await;
    let upload = scene
        .begin(&json!({"bytes": 20, "parts": 20, "partSize": 1}))
        .await
        .json();
    let (waits, mut waiting) = mpsc::unbounded_channel();
    let silent = upload["partUrls"].as_array().unwrap().iter().map(|part| {
        let waits = waits.clone();
        let body = stream::poll_fn(move |_| {
            waits.send(()).unwrap();
            Poll::<Option<Result<Bytes, Infallible>>>::Pending
        });
        let url = part["url"].as_str().unwrap();
        scene.service.send(request(url, 1, Body::from_stream(body)))
    });
    let another = async {
        for _ in 0..8 {
            waiting.recv().await.unwrap();
        }
        let key = scene.service.agent(&scene.maintainer, "ann").await;
        let body = json!({"bytes": 1, "parts": 1, "partSize": 1}).to_string();
        let path = "/projects/weather/uploads";
        let upload = scene.service.call("POST", path, Some(&key), &body).await.json();
        scene
            .put(upload["partUrls"][0]["url"].as_str().unwrap(), b"a")
            .await
            .status
    };
    let patient = tokio::time::timeout(Duration::from_secs(30), another);
    tokio::select! {
        _answers = join_all(silent) => panic!("a part that never came was answered"),
        status = patient => assert_eq!(status.unwrap(), 200),
    }
}
