use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::testing::{Got, Service, count};

struct Scene {
    service: Service,
    manifest: Value,
}

async fn scene() -> Scene {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "mine").await;
    service.project(&key, "weather", &json!({})).await;
    for name in ["a", "b"] {
        service.merged(&key, "weather", &[json!({ "name": name })]).await;
    }
    let manifest = service.get("/projects/weather/manifest", Some(&key)).await.json();
    Scene { service, manifest }
}

impl Scene {
    /// The address of a part without the origin.
    fn address(&self, part: usize) -> String {
        let url = self.manifest["parts"][part]["url"].as_str().unwrap();
        url.strip_prefix("http://sluice.test").unwrap().to_owned()
    }

    async fn ranged(&self, range: &str) -> Got {
        let request = Request::get(self.address(0)).header("range", range);
        self.service.send(request.body(Body::empty()).unwrap()).await
    }
}

#[tokio::test]
async fn a_part_is_the_file_that_its_manifest_names() {
    let scene = scene().await;
    for part in 0..2 {
        let got = scene.service.get(&scene.address(part), None).await;
        let named = &scene.manifest["parts"][part];
        assert_eq!(got.status, 200);
        let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&got.bytes));
        assert_eq!(
            (&named["sha256"], &named["size"]),
            (&json!(hash), &json!(got.bytes.len()))
        );
        assert_eq!(got.headers["content-length"], got.bytes.len().to_string());
        assert_eq!(got.headers["accept-ranges"], "bytes");
        assert_eq!(got.headers["content-type"], "application/vnd.apache.parquet");
    }
    let head = scene.service.call("HEAD", &scene.address(0), None, "").await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
    assert_eq!(
        head.headers["content-length"],
        scene.manifest["parts"][0]["size"].to_string()
    );
}

#[tokio::test]
async fn a_range_is_that_part_of_the_file() {
    let scene = scene().await;
    let whole = scene.service.get(&scene.address(0), None).await.bytes;
    let size = whole.len();
    for (range, expected) in [
        ("bytes=0-0".to_owned(), 0..1),
        ("bytes=4-".to_owned(), 4..size),
        (format!("bytes={}-", size - 1), size - 1..size),
        (format!("bytes=7-{size}"), 7..size),
        ("bytes=-8".to_owned(), size - 8..size),
        (format!("bytes=-{}", size + 1), 0..size),
        ("BYTES=1-99999999999999999999999".to_owned(), 1..size),
    ] {
        let got = scene.ranged(&range).await;
        assert_eq!(got.status, 206, "{range}");
        assert_eq!(got.bytes, whole[expected.clone()], "{range}");
        let content_range = format!("bytes {}-{}/{size}", expected.start, expected.end - 1);
        assert_eq!(got.headers["content-range"], content_range, "{range}");
    }
    for range in [
        format!("bytes={size}-"),
        format!("bytes={size}-{size}"),
        "bytes=-0".to_owned(),
    ] {
        let got = scene.ranged(&range).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["error"]),
            (416, &json!("range_not_satisfiable")),
            "{range}"
        );
        assert_eq!(got.headers["content-range"], format!("bytes */{size}"), "{range}");
    }
    for range in [
        "bytes=5-4",
        "bytes=0-1,4-5",
        "rows=0-1",
        "bytes",
        "bytes=a-b",
        "bytes=-",
        "bytes=1",
        "",
    ] {
        let got = scene.ranged(range).await;
        assert_eq!((got.status.as_u16(), got.bytes.len()), (200, size), "{range}");
    }
}

#[tokio::test]
async fn an_address_that_was_changed_is_refused() {
    let scene = scene().await;
    let (one, other) = (scene.address(0), scene.address(1));
    let name = |address: &str| address.split(['/', '?']).nth(3).unwrap().to_owned();
    let member = |address: &str, member: &str| {
        let text = address.split(&format!("{member}=")).nth(1).unwrap();
        text.split('&').next().unwrap().to_owned()
    };
    let (expires, account, signature) = (
        member(&one, "expires"),
        member(&one, "account"),
        member(&one, "signature"),
    );
    let later = (expires.parse::<u64>().unwrap() + 1).to_string();
    for changed in [
        one.replace(&name(&one), &name(&other)),
        one.replace(&expires, &later),
        one.replace(&account, "00000000-0000-7000-8000-000000000000"),
        one.replace(&signature, &member(&other, "signature")),
        one.replace(&signature, &signature[..42]),
        one.replace(&signature, ""),
        one.replace(&name(&one), "_delta_log"),
    ] {
        let got = scene.service.get(&changed, None).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["error"]),
            (403, &json!("link_invalid")),
            "{changed}"
        );
    }
    for (changed, status) in [
        (one.split('?').next().unwrap().to_owned(), 400),
        (format!("{one}&x=1"), 400),
        (format!("{one}&expires={expires}"), 400),
        (one.replace(&expires, "-1"), 400),
        (one.replace("/parts/", "/parts/x"), 400),
    ] {
        assert_eq!(scene.service.get(&changed, None).await.status, status, "{changed}");
    }
}

#[tokio::test]
async fn an_address_is_good_for_its_time_and_then_the_manifest_gives_another() {
    let scene = scene().await;
    let address = scene.address(0);
    let end = scene.manifest["urlsExpireAt"].as_str().unwrap().parse().unwrap();
    let lasting = types::Timestamp::since(end, scene.service.app.clock.now());
    assert_eq!(lasting, std::time::Duration::from_mins(15));
    scene
        .service
        .clock
        .advance(lasting.checked_sub(std::time::Duration::from_micros(1)).unwrap());
    assert_eq!(scene.service.get(&address, None).await.status, 200);
    scene.service.clock.advance(std::time::Duration::from_micros(1));
    let got = scene.service.get(&address, None).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (403, &json!("link_expired"))
    );
}

#[tokio::test]
async fn a_suspension_ends_addresses_and_what_they_began() {
    let scene = scene().await;
    let (service, address) = (&scene.service, scene.address(0));
    let project = service.app.store.project_by_slug("weather", None).await.unwrap();
    let owner = project.unwrap().operator;
    let other = service.operator().await;
    let theirs = service.agent(&other, "theirs").await;
    let others = service.get("/projects/weather/manifest", Some(&theirs)).await.json();
    let others = others["parts"][0]["url"]
        .as_str()
        .unwrap()
        .replace("http://sluice.test", "");
    assert_eq!(service.get(&address, None).await.status, 200);
    let begun = service.untaken(&address, "none").await;
    let now = service.app.clock.now();
    let suspended = service.app.store.operator_suspend(owner, "spam".to_owned(), now).await;
    assert!(suspended.is_ok(), "{suspended:?}");
    let got = service.get(&address, None).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (403, &json!("account_suspended"))
    );
    service.clock.advance(std::time::Duration::from_secs(1));
    assert!(begun.into_body().collect().await.is_err(), "the transfer went on");
    // The items stay, and so do the addresses of others.
    assert_eq!(service.get(&others, None).await.status, 200);
    let listed = service.get("/projects", None).await.json();
    assert_eq!(listed["items"][0]["slug"], "weather");
    let read = service.get("/projects/weather/data", Some(&theirs)).await.json();
    assert_eq!(read["total"], 2);
    service.app.store.operator_restore(owner).await.unwrap();
    assert_eq!(service.get(&address, None).await.status, 200);
}

#[tokio::test]
async fn a_transfer_that_has_begun_outlives_the_database() {
    let scene = scene().await;
    let whole = scene.service.get(&scene.address(0), None).await.bytes;
    let begun = scene.service.untaken(&scene.address(0), "none").await;
    scene.service.app.store.close().await;
    scene.service.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(begun.into_body().collect().await.unwrap().to_bytes(), whole);
    assert_eq!(scene.service.get(&scene.address(0), None).await.status, 503);
}

#[tokio::test]
async fn transfers_are_not_calls() {
    let mut few = crate::testing::limits();
    few.calls_per_ip_per_minute = count(5);
    let service = Service::with(crate::testing::config(), few).await;
    let token = service.operator().await;
    let key = service.agent(&token, "mine").await;
    service.project(&key, "weather", &json!({})).await;
    service.merged(&key, "weather", &[json!({"name": "a"})]).await;
    let manifest = service.get("/projects/weather/manifest", Some(&key)).await.json();
    let scene = Scene { service, manifest };
    for _ in 0..20 {
        assert_eq!(scene.service.get(&scene.address(0), None).await.status, 200);
    }
}

/// Condition, with the status and the length of its answer; `TAG` stands for the part's tag.
type Condition = (&'static [(&'static str, &'static str)], u16, Option<usize>);

#[tokio::test]
async fn conditions_are_held_against_the_tag_of_a_part() {
    let scene = scene().await;
    let whole = scene.service.get(&scene.address(0), None).await;
    let (tag, size) = (whole.headers["etag"].to_str().unwrap().to_owned(), whole.bytes.len());
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    let cases: [Condition; 26] = [
        (&[("if-match", "TAG")], 200, None),
        (&[("if-match", "*")], 200, None),
        (&[("if-match", "\"x\", ,TAG")], 200, None),
        (&[("if-match", "\"x\""), ("if-match", "TAG")], 200, None),
        (&[("if-match", "\"x\"")], 412, None),
        (&[("if-match", "W/TAG")], 412, None),
        (&[("if-match", "")], 412, None),
        (&[("if-match", "x")], 400, None),
        (&[("if-none-match", "TAG")], 304, None),
        (&[("if-none-match", "W/TAG")], 304, None),
        (&[("if-none-match", "*")], 304, None),
        (&[("if-none-match", "\"x\", W/TAG")], 304, None),
        (&[("if-none-match", "\"x\""), ("if-none-match", "TAG")], 304, None),
        (&[("if-none-match", "\"x\"")], 200, None),
        (&[("if-none-match", "TAG x")], 400, None),
        (&[("if-match", "\"x\""), ("if-none-match", "TAG")], 412, None),
        (&[("if-match", "TAG"), ("if-none-match", "TAG")], 304, None),
        (&[("if-none-match", "TAG"), ("range", "bytes=0-3")], 304, None),
        (&[("if-match", "TAG"), ("range", "bytes=0-3")], 206, Some(4)),
        (&[("if-range", "TAG"), ("range", "bytes=0-3")], 206, Some(4)),
        (&[("if-range", "\"x\""), ("range", "bytes=0-3")], 200, None),
        (&[("if-range", "W/TAG"), ("range", "bytes=0-3")], 200, None),
        (
            &[("if-range", "Sat, 21 Nov 2026 07:00:00 GMT"), ("range", "bytes=0-3")],
            200,
            None,
        ),
        (&[("if-range", "TAG"), ("range", "bytes=999999999-")], 416, None),
        (&[("if-range", "\"x\""), ("range", "bytes=999999999-")], 200, None),
        (&[("if-modified-since", "Sat, 21 Nov 2099 07:00:00 GMT")], 200, None),
    ];
    for (headers, status, length) in cases {
        for method in ["GET", "HEAD"] {
            let mut request = Request::builder().method(method).uri(scene.address(0));
            for (name, value) in headers {
                request = request.header(*name, value.replace("TAG", &tag));
            }
            let got = scene.service.send(request.body(Body::empty()).unwrap()).await;
            // `Range` applies to GET only.
            let (status, length) = match (method, status) {
                ("HEAD", 206 | 416) => (200, None),
                _ => (status, length),
            };
            assert_eq!(got.status, status, "{method} {headers:?}");
            if matches!(status, 200 | 206) {
                let length = length.unwrap_or(size).to_string();
                assert_eq!(got.headers["content-length"], length, "{method} {headers:?}");
            }
            if status != 400 {
                assert_eq!(got.headers["etag"], tag, "{method} {headers:?}");
            }
            if status == 304 {
                assert!(got.bytes.is_empty() && !got.headers.contains_key("content-type"));
            }
            if method == "GET" && status == 412 {
                assert_eq!(got.json()["error"], "precondition_failed");
            }
        }
    }
}
