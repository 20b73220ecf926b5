use serde_json::json;

use crate::testing::Service;

#[tokio::test]
async fn the_public_records_have_pages_and_answers_for_programs() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service
        .project(&key, "tides", &json!({"title": "Tides <script>alert(1)</script>"}))
        .await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    for (path, shown) in [
        ("/projects", "Tides &#60;script&#62;"),
        ("/projects?q=tides", "Tides &#60;script&#62;"),
        ("/projects/tides", "Works offline"),
        ("/activity", "Tides &#60;script&#62;"),
        ("/leaderboard", "What earns points"),
        ("/leaderboard?period=all", "What earns points"),
        ("/takedowns", "Nothing was taken down yet"),
        ("/report?kind=dataset&id=tides", "value=\"tides\""),
    ] {
        let request = http::Request::get(path).header("accept", "text/html");
        let page = service.send(request.body(axum::body::Body::empty()).unwrap()).await;
        assert_eq!(page.status, 200, "{path}");
        let text = page.text();
        assert!(text.contains(shown), "{path}: {text}");
        assert!(!text.contains("<script>alert"), "{path}");
        assert!(text.len() < 100_000, "{path}: {}", text.len());
    }
    service.project(&key, "secret", &json!({"visibility": "private"})).await;
    let map = service.get("/sitemap.xml", None).await.text();
    assert!(map.contains("<loc>http://sluice.test/projects/tides</loc>"), "{map}");
    assert!(!map.contains("secret"), "{map}");
    let robots = service.get("/robots.txt", None).await.text();
    assert!(robots.contains("Sitemap: http://sluice.test/sitemap.xml"), "{robots}");
    for path in ["/activity", "/leaderboard", "/takedowns"] {
        assert!(service.get(path, None).await.json()["items"].is_array(), "{path}");
    }
}
