use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::Request;
use serde_json::{Value, json};
use tokio::sync::Notify;
use types::{Clock as _, ContributionId, Size};
use uploads::UploadStore;

use crate::flow::UploadReaper;
use crate::testing::{Got, Service, config, count, limits};

mod address;
mod cancel;
mod damaged;
mod late;
mod readings;
mod reaper;
mod suspended;

/// A service with a public project `weather` and an agent of another operator.
struct Scene {
    service: Service,
    maintainer: String,
    contributor: String,
    key: String,
}

impl Scene {
    async fn set() -> Self {
        Self::with(limits()).await
    }

    async fn with(limits: crate::Limits) -> Self {
        let service = Service::with(config(), limits).await;
        let maintainer = service.operator().await;
        service.project(&maintainer, "weather", &json!({})).await;
        let contributor = service.operator().await;
        let key = service.agent(&contributor, "bob").await;
        Self {
            service,
            maintainer,
            contributor,
            key,
        }
    }

    async fn begin(&self, body: &Value) -> Got {
        let path = "/projects/weather/uploads";
        self.service
            .call("POST", path, Some(&self.key), &body.to_string())
            .await
    }

    /// An upload of 7 bytes in two parts of 4 and 3.
    async fn begun(&self) -> Value {
        let got = self.begin(&json!({"bytes": 7, "parts": 2, "partSize": 4})).await;
        assert_eq!(got.status, 201, "{}", got.json());
        got.json()
    }

    async fn put(&self, url: &str, bytes: &[u8]) -> Got {
        self.service
            .send(request(url, bytes.len(), Body::from(bytes.to_vec())))
            .await
    }

    /// Sends both parts and returns their tags.
    async fn put_both(&self, upload: &Value) -> Vec<Value> {
        let mut tags = Vec::new();
        for (part, bytes) in upload["partUrls"]
            .as_array()
            .unwrap()
            .iter()
            .zip([&b"abcd"[..], b"efg"])
        {
            let got = self.put(part["url"].as_str().unwrap(), bytes).await;
            assert_eq!(got.status, 200, "{}", got.json());
            let etag = got.headers["etag"].to_str().unwrap().to_owned();
            tags.push(json!({"n": part["n"], "etag": etag}));
        }
        tags
    }

    async fn complete(&self, upload: &Value, etags: &[Value]) -> Got {
        let path = format!("/projects/weather/uploads/{}/complete", upload["id"].as_str().unwrap());
        let body = json!({ "etags": etags }).to_string();
        self.service.call("POST", &path, Some(&self.key), &body).await
    }

    fn reaper(&self) -> UploadReaper {
        let app = &self.service.app;
        let objects = Arc::clone(&app.uploads.objects);
        UploadReaper::new(
            app.store.clone(),
            objects,
            Arc::clone(&app.clock),
            Duration::from_secs(1),
        )
    }
}

/// Returns the request that sends `body` to the address of a part, announcing `length` bytes.
fn request(url: &str, length: usize, body: Body) -> Request<Body> {
    let path = url.strip_prefix("http://sluice.test").unwrap();
    Request::put(path).header("content-length", length).body(body).unwrap()
}

fn code(got: &Got) -> (u16, String) {
    (
        got.status.as_u16(),
        got.json()["error"].as_str().unwrap_or_default().to_owned(),
    )
}

fn is(got: &Got, status: u16, error: &str) {
    assert_eq!(code(got), (status, error.to_owned()), "{}", got.json());
}

#[tokio::test]
async fn an_upload_that_was_completed_is_a_contribution_and_its_bytes_are_pinned() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    assert_eq!(
        (&upload["status"], &upload["compression"]),
        (&json!("open"), &json!("none"))
    );
    assert_eq!(upload["expiresAt"], "2026-11-21T13:00:00Z");
    let sizes: Vec<_> = upload["partUrls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["bytes"])
        .collect();
    assert_eq!(sizes, [4, 3]);
    let tags = scene.put_both(&upload).await;
    let got = scene.complete(&upload, &tags).await;
    assert_eq!(got.status, 201, "{}", got.json());
    let first = got.json();
    assert_eq!((&first["id"], &first["status"]), (&upload["id"], &json!("submitted")));
    // Again, in another order and without quotes.
    let bare = |tag: &Value| json!({"n": tag["n"], "etag": tag["etag"].as_str().unwrap().trim_matches('"')});
    let again = scene.complete(&upload, &[bare(&tags[1]), bare(&tags[0])]).await;
    assert_eq!((again.status.as_u16(), again.json()), (201, first));
    let id = upload["id"].as_str().unwrap();
    let path = format!("/projects/weather/contributions/{id}");
    let got = scene.service.get(&path, Some(&scene.key)).await;
    assert_eq!(got.json()["status"], "submitted");
    // The bytes are pinned.
    let late = scene.put(upload["partUrls"][0]["url"].as_str().unwrap(), b"ABCD").await;
    is(&late, 409, "upload_closed");
    let other = scene
        .complete(&upload, &[tags[0].clone(), json!({"n": 2, "etag": "x"})])
        .await;
    is(&other, 409, "upload_completed");
    // And in the outbox, once.
    let open = scene
        .service
        .app
        .store
        .contributions_open_at_start(9, None)
        .await
        .unwrap();
    assert_eq!(open.len(), 1);
    let message = messages::Submission::decode(&open[0].submission).unwrap();
    let messages::Source::Upload(layout) = message.source else {
        panic!("an upload");
    };
    assert_eq!(layout.upload.to_string(), id);
    assert_eq!(scene.reaper().reap().await, 0);
}

#[tokio::test]
async fn what_does_not_add_up_is_named() {
    let scene = Scene::set().await;
    for (body, path) in [
        (json!({"bytes": 0, "parts": 1, "partSize": 1}), "/bytes"),
        (json!({"bytes": 1, "parts": 0, "partSize": 1}), "/parts"),
        (json!({"bytes": 1, "parts": 1, "partSize": 0}), "/partSize"),
        (json!({"bytes": 1, "parts": 1}), "/partSize"),
        (json!({"bytes": 1, "parts": 1001, "partSize": 1}), "/parts"),
        (json!({"bytes": 7, "parts": 2, "partSize": 3}), "/parts"),
        (json!({"bytes": 6, "parts": 3, "partSize": 3}), "/parts"),
        (json!({"bytes": 5000, "parts": 1000, "partSize": 4}), "/partSize"),
        (
            json!({"bytes": 7, "parts": 2, "partSize": 4, "compression": "zip"}),
            "/compression",
        ),
        (
            json!({"bytes": 7, "parts": 2, "partSize": 4, "records": []}),
            "/records",
        ),
        (json!({"bytes": -1, "parts": 2, "partSize": 4}), "/bytes"),
        (json!({"bytes": 1.5, "parts": 2, "partSize": 4}), "/bytes"),
        (
            json!({"bytes": 1, "parts": 1, "partSize": 5_368_709_121_u64}),
            "/partSize",
        ),
    ] {
        let got = scene.begin(&body).await;
        assert_eq!(got.status, 400, "{body}: {}", got.json());
        assert_eq!(got.json()["details"][0]["path"], path, "{body}: {}", got.json());
    }
    let got = scene
        .begin(&json!({"bytes": 5_368_709_121_u64, "parts": 2, "partSize": 5_368_709_120_u64}))
        .await;
    is(&got, 413, "upload_too_large");
    assert_eq!(got.json()["limitBytes"], 5_368_709_120_u64);
    let message = "the upload has 5368709121 bytes, and one may have at most 5368709120: send its records in several uploads, \
                   or compress it with gzip";
    assert_eq!(got.json()["message"], message);
    let got = scene
        .begin(&json!({"bytes": 7, "parts": 2, "partSize": 4, "compression": "zip"}))
        .await;
    assert_eq!(got.json()["message"], "`/compression` must be one of `none`, `gzip`");
    let got = scene
        .begin(&json!({"bytes": 5_368_709_120_u64, "parts": 1, "partSize": 5_368_709_120_u64}))
        .await;
    assert_eq!(got.status, 201, "{}", got.json());
}

#[tokio::test]
async fn a_part_has_exactly_its_length_and_its_own_address() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let url = |n: usize| upload["partUrls"][n]["url"].as_str().unwrap().to_owned();
    is(&scene.put(&url(0), b"abc").await, 400, "length_mismatch");
    is(&scene.put(&url(0), b"abcde").await, 400, "length_mismatch");
    assert_eq!(scene.put(&url(0), b"abc").await.json()["expected"], 4);
    let path = url(0).replace("http://sluice.test", "");
    let unsized_request = Request::put(&path).body(Body::from("abcd")).unwrap();
    is(&scene.service.send(unsized_request).await, 411, "length_required");
    // The body differs in length from its Content-Length.
    let pieces = |bytes: &'static [u8]| {
        let stream = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(bytes))]);
        Request::put(&path)
            .header("content-length", 4)
            .body(Body::from_stream(stream))
            .unwrap()
    };
    is(&scene.service.send(pieces(b"ab")).await, 400, "part_broken");
    is(&scene.service.send(pieces(b"abcdef")).await, 400, "part_broken");
    // Other parts, other uploads, other times.
    for other in [
        url(0).replace("/1?", "/2?"),
        url(0).replace("/1?", "/3?"),
        url(0).replace("expires=", "expires=9"),
        url(0).replace("signature=", "signature=A"),
        url(0).split('?').next().unwrap().to_owned(),
        url(0).replace(upload["id"].as_str().unwrap(), "0197b3c0-0000-7000-8000-000000000001"),
    ] {
        is(&scene.put(&other, b"abcd").await, 403, "link_invalid");
    }
    // None of these requests has stored a part.
    let tags = [json!({"n": 1, "etag": "x"}), json!({"n": 2, "etag": "y"})];
    is(&scene.complete(&upload, &tags).await, 409, "parts_missing");
    // A part may be sent again; the last one counts.
    assert_eq!(scene.put(&url(0), b"wxyz").await.status, 200);
    let tags = scene.put_both(&upload).await;
    assert_eq!(scene.complete(&upload, &tags).await.status, 201);
}

#[tokio::test]
async fn parts_do_not_count_as_calls() {
    let limits = crate::Limits {
        calls_per_ip_per_minute: count(4),
        ..limits()
    };
    let scene = Scene::with(limits).await;
    let upload = scene.begun().await;
    for _ in 0..9 {
        scene.put_both(&upload).await;
    }
}

#[tokio::test]
async fn completing_names_what_is_wrong_with_the_tags() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let one = |n: u64, etag: &str| json!({"n": n, "etag": etag});
    is(&scene.complete(&upload, &[]).await, 400, "invalid_request");
    is(&scene.complete(&upload, &[one(0, "x")]).await, 400, "invalid_request");
    is(&scene.complete(&upload, &[one(1, "")]).await, 400, "invalid_request");
    is(&scene.complete(&upload, &[one(1, "x")]).await, 409, "parts_missing");
    let first = scene.put(upload["partUrls"][0]["url"].as_str().unwrap(), b"abcd").await;
    let etag = first.headers["etag"].to_str().unwrap().to_owned();
    let missing = scene.complete(&upload, &[one(1, &etag), one(2, "x")]).await;
    is(&missing, 409, "parts_missing");
    assert_eq!(missing.json()["parts"], json!([2]));
    let tags = scene.put_both(&upload).await;
    let twice = scene
        .complete(&upload, &[tags[0].clone(), tags[1].clone(), tags[0].clone()])
        .await;
    is(&twice, 400, "invalid_request");
    assert_eq!(twice.json()["details"][0]["path"], "/etags/2/n");
    let extra = scene
        .complete(&upload, &[tags[0].clone(), tags[1].clone(), one(3, "x")])
        .await;
    is(&extra, 409, "parts_extra");
    assert_eq!(extra.json()["parts"], json!([3]));
    // Each with the tag of the other.
    let swapped = [
        one(1, tags[1]["etag"].as_str().unwrap()),
        one(2, tags[0]["etag"].as_str().unwrap()),
    ];
    let swapped = scene.complete(&upload, &swapped).await;
    is(&swapped, 409, "etag_mismatch");
    assert_eq!(swapped.json()["parts"], json!([1, 2]));
    assert_eq!(scene.complete(&upload, &tags).await.status, 201);
}

#[tokio::test]
async fn an_upload_expires_and_its_storage_is_freed() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let folder = scene.service.uploads().join(upload["id"].as_str().unwrap());
    assert!(folder.join("1").exists());
    scene.service.clock.advance(Duration::from_hours(6));
    is(&scene.complete(&upload, &tags).await, 409, "upload_expired");
    let late = scene.put(upload["partUrls"][0]["url"].as_str().unwrap(), b"abcd").await;
    is(&late, 403, "link_expired");
    assert_eq!(scene.reaper().reap().await, 1);
    assert!(!folder.exists());
    assert_eq!(scene.reaper().reap().await, 0);
    is(&scene.complete(&upload, &tags).await, 409, "upload_expired");
    assert!(
        scene
            .service
            .app
            .store
            .contributions_open_at_start(9, None)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn an_operator_has_three_open_uploads() {
    let scene = Scene::set().await;
    let uploads = [scene.begun().await, scene.begun().await, scene.begun().await];
    let body = json!({"bytes": 7, "parts": 2, "partSize": 4});
    let refused = scene.begin(&body).await;
    is(&refused, 429, "too_many_uploads");
    assert!(refused.headers.contains_key("retry-after"));
    let tags = scene.put_both(&uploads[0]).await;
    assert_eq!(scene.complete(&uploads[0], &tags).await.status, 201);
    scene.begun().await;
    is(&scene.begin(&body).await, 429, "too_many_uploads");
    scene.service.clock.advance(Duration::from_hours(6));
    scene.begun().await;
}

#[tokio::test]
async fn storage_and_allowance_are_bounded() {
    let limits = crate::Limits {
        storage_per_operator: Size(10),
        public_contributions_per_day: 2,
        ..limits()
    };
    let scene = Scene::with(limits).await;
    let first = scene.begun().await;
    let full = scene.begin(&json!({"bytes": 7, "parts": 2, "partSize": 4})).await;
    is(&full, 402, "storage_quota");
    assert_eq!(full.json()["quota"]["storage"], json!({"used": 7, "allowed": 10}));
    let id = first["id"].as_str().unwrap().parse().unwrap();
    let operator = scene.service.app.store.upload(id).await.unwrap().unwrap().operator;
    let top_up = format!("http://sluice.test/paid/credits?operator={operator}");
    assert_eq!(full.json()["credits"]["topUp"], top_up);
    let small = json!({"bytes": 1, "parts": 1, "partSize": 1});
    assert_eq!(scene.begin(&small).await.status, 201);
    let spent = scene.begin(&small).await;
    is(&spent, 429, "allowance_spent");
    assert_eq!(spent.json()["allowance"]["limit"], 2);
    // The expired upload became no contribution.
    scene.service.clock.advance(Duration::from_hours(6));
    assert_eq!(scene.reaper().reap().await, 2);
    // A batch needs storage as well; credits for a day of a block cover it.
    let project = scene.service.app.store.project_by_slug("weather", None).await;
    scene.service.granted(project.unwrap().unwrap().operator, 40).await;
    for _ in 0..2 {
        let body = json!({"records": [{"name": "a"}]}).to_string();
        let path = "/projects/weather/contribute";
        let got = scene.service.call("POST", path, Some(&scene.key), &body).await;
        assert_eq!(got.status, 201, "{}", got.json());
    }
    is(&scene.begin(&small).await, 429, "allowance_spent");
}

#[tokio::test]
async fn what_is_uploaded_takes_the_storage_of_who_maintains_the_dataset() {
    let limits = crate::Limits {
        storage_per_operator: Size(5_000),
        ..limits()
    };
    let scene = Scene::with(limits).await;
    let maintainer = scene.service.agent(&scene.maintainer, "maintainer").await;
    scene
        .service
        .merged(&maintainer, "weather", &[json!({"name": "a"})])
        .await;
    let body = json!({"bytes": 4_900, "parts": 1, "partSize": 4_900});
    let full = scene.begin(&body).await;
    is(&full, 402, "storage_quota");
    assert_eq!(full.json()["quota"]["storage"], json!({"allowed": 5_000}));
    // Only the maintainer can buy storage for it, and the uploader must not learn the maintainer's id.
    let maintained = scene.service.app.store.project_by_slug("weather", None).await;
    let operator = maintained.unwrap().unwrap().operator.to_string();
    assert!(full.json().get("credits").is_none());
    assert!(!full.json().to_string().contains(&operator), "{}", full.json());
    scene.service.project(&scene.contributor, "mine", &json!({})).await;
    let mine = scene
        .service
        .call("POST", "/projects/mine/uploads", Some(&scene.key), &body.to_string())
        .await;
    assert_eq!(mine.status, 201, "what others store is not the uploader's");
}

#[tokio::test]
async fn uploads_follow_the_rules_of_contributions() {
    let scene = Scene::set().await;
    let body = json!({"bytes": 7, "parts": 2, "partSize": 4}).to_string();
    let service = &scene.service;
    let begin = |slug: &'static str, credential: Option<String>| {
        let body = body.clone();
        async move {
            let path = format!("/projects/{slug}/uploads");
            service
                .call("POST", &path, credential.as_deref(), &body)
                .await
                .status
                .as_u16()
        }
    };
    assert_eq!(begin("weather", None).await, 401);
    assert_eq!(begin("weather", Some(scene.maintainer.clone())).await, 401);
    assert_eq!(begin("nothing", Some(scene.key.clone())).await, 404);
    service
        .project(&scene.maintainer, "hidden", &json!({"visibility": "private"}))
        .await;
    assert_eq!(begin("hidden", Some(scene.key.clone())).await, 404);

    // An upload is found only by its own operator, and only in its own project.
    let upload = scene.begun().await;
    let tags = scene.put_both(&upload).await;
    let id = upload["id"].as_str().unwrap();
    let etags = json!({ "etags": tags }).to_string();
    let stranger = service.agent(&scene.maintainer, "eve").await;
    let sibling = service.agent(&scene.contributor, "carol").await;
    let path = format!("/projects/weather/uploads/{id}/complete");
    let got = service.call("POST", &path, Some(&stranger), &etags).await;
    is(&got, 404, "not_found");
    service.project(&scene.contributor, "other", &json!({})).await;
    let elsewhere = format!("/projects/other/uploads/{id}/complete");
    is(
        &service.call("POST", &elsewhere, Some(&scene.key), &etags).await,
        404,
        "not_found",
    );
    let unknown = ContributionId::new(service.clock.now());
    let unknown = format!("/projects/weather/uploads/{unknown}/complete");
    is(
        &service.call("POST", &unknown, Some(&scene.key), &etags).await,
        404,
        "not_found",
    );

    // A project that is closed meanwhile refuses the upload. After it is opened again, it accepts it.
    let pause = |status: &'static str| {
        let body = json!({ "status": status }).to_string();
        let maintainer = scene.maintainer.clone();
        async move {
            service
                .call("PATCH", "/projects/weather", Some(&maintainer), &body)
                .await
                .status
                .as_u16()
        }
    };
    assert_eq!(pause("paused").await, 200);
    is(
        &service.call("POST", &path, Some(&sibling), &etags).await,
        409,
        "project_not_open",
    );
    is(
        &scene.begin(&json!({"bytes": 1, "parts": 1, "partSize": 1})).await,
        409,
        "project_not_open",
    );
    assert_eq!(pause("open").await, 200);
    let got = service.call("POST", &path, Some(&sibling), &etags).await;
    assert_eq!(got.status, 201, "{}", got.json());
}

/// A store that takes the parts itself, and does not answer while `down`.
#[derive(Debug)]
struct Elsewhere {
    down: AtomicBool,
    /// True while the store does not answer a request to begin.
    silent: AtomicBool,
    asked: Notify,
    begun: AtomicUsize,
    inner: Arc<dyn UploadStore>,
}

#[async_trait]
impl UploadStore for Elsewhere {
    async fn begin(
        &self,
        cut: &uploads::UploadLayout,
        lasting: Duration,
    ) -> Result<Option<Vec<String>>, uploads::Error> {
        if self.down.load(Ordering::SeqCst) {
            return Err(uploads::Error::Io(std::io::Error::other("no answer")));
        }
        if self.silent.load(Ordering::SeqCst) {
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        assert_eq!(lasting, Duration::from_hours(6));
        let address = |n| format!("http://elsewhere.test/{}/{n}", cut.upload);
        Ok(Some((1..=cut.parts).map(address).collect()))
    }

    async fn complete(&self, cut: &uploads::UploadLayout, tags: &[uploads::PartTag]) -> Result<(), uploads::Error> {
        self.inner.complete(cut, tags).await
    }

    async fn read(&self, cut: &uploads::UploadLayout, n: u32, range: Range<u64>) -> Result<Bytes, uploads::Error> {
        self.inner.read(cut, n, range).await
    }

    async fn delete(&self, upload: ContributionId) -> Result<(), uploads::Error> {
        self.inner.delete(upload).await
    }
}

#[tokio::test]
async fn parts_go_to_the_store_that_takes_them_itself() {
    let mut scene = Scene::set().await;
    let mut app = scene.service.app.clone();
    let elsewhere = Arc::new(Elsewhere {
        down: AtomicBool::new(true),
        silent: AtomicBool::new(true),
        asked: Notify::new(),
        begun: AtomicUsize::new(0),
        inner: Arc::clone(&app.uploads.objects),
    });
    app.uploads.objects = Arc::clone(&elsewhere) as Arc<dyn UploadStore>;
    app.uploads.local = None;
    scene.service.router = crate::router(app);
    let body = json!({"bytes": 7, "parts": 2, "partSize": 4});
    // An upload that failed to begin does not count as open.
    for _ in 0..4 {
        is(&scene.begin(&body).await, 503, "unavailable");
    }
    elsewhere.down.store(false, Ordering::SeqCst);
    // Neither does one whose caller disconnected.
    for _ in 0..4 {
        tokio::select! {
            begun = scene.begin(&body) => panic!("{}", begun.status),
            () = elsewhere.asked.notified() => {}
        }
    }
    elsewhere.silent.store(false, Ordering::SeqCst);
    let refused = scene.begin(&json!({"bytes": 7, "parts": 3, "partSize": 4})).await;
    assert_eq!(
        (refused.status.as_u16(), elsewhere.begun.load(Ordering::SeqCst)),
        (400, 0)
    );
    for _ in 0..3 {
        let upload = scene.begun().await;
        let id = upload["id"].as_str().unwrap();
        let expected = [(1, 4), (2, 3)]
            .map(|(n, bytes)| json!({"n": n, "bytes": bytes, "url": format!("http://elsewhere.test/{id}/{n}")}));
        assert_eq!(upload["partUrls"], json!(expected));
        // The service takes none.
        let here = format!("http://sluice.test/uploads/{id}/1?expires=1&signature=x");
        is(&scene.put(&here, b"abcd").await, 403, "link_invalid");
    }
    is(&scene.begin(&body).await, 429, "too_many_uploads");
}
