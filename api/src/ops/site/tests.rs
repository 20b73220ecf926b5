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

#[tokio::test]
async fn pages_say_of_themselves_what_others_may_know() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service
        .project(&key, "tides", &json!({"title": "Tides </script>", "tags": ["sea"]}))
        .await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    let page = async |path: &str| {
        let request = http::Request::get(path).header("accept", "text/html");
        service
            .send(request.body(axum::body::Body::empty()).unwrap())
            .await
            .text()
    };
    let data = |text: &str| -> serde_json::Value {
        let (_, data) = text.split_once("<script type=\"application/ld+json\">").unwrap();
        serde_json::from_str(data.split("</script>").next().unwrap()).unwrap()
    };
    let noindex = "<meta name=\"robots\" content=\"noindex\">";

    let home = page("/").await;
    assert!(
        home.contains("<link rel=\"canonical\" href=\"http://sluice.test/\">"),
        "{home}"
    );
    assert_eq!(data(&home)["@type"], "WebSite");
    assert_eq!(
        data(&home)["potentialAction"]["target"],
        "http://sluice.test/find?q={q}"
    );
    let dataset = page("/projects/tides").await;
    assert!(
        dataset.contains("<link rel=\"canonical\" href=\"http://sluice.test/projects/tides\">"),
        "{dataset}"
    );
    let said = data(&dataset);
    assert_eq!(
        (&said["@type"], &said["name"], &said["identifier"], &said["keywords"]),
        (
            &json!("Dataset"),
            &json!("Tides </script>"),
            &json!("tides"),
            &json!(["sea"])
        )
    );
    assert!(dataset.contains("<dt>Rows a day</dt>"), "{dataset}");
    assert!(!dataset.contains("Sold"), "nothing was sold");
    for path in [
        "/find?q=tides",
        "/projects?q=tides",
        "/projects/none",
        "/projects/tides?reviews=2",
    ] {
        let text = page(path).await;
        assert!(text.contains(noindex) && !text.contains("canonical"), "{path}: {text}");
    }
    // A page that there is not offers to search for what its address names.
    assert!(
        page("/projects/tide-levels").await.contains("value=\"tide levels\""),
        "the words of the address"
    );
}

#[tokio::test]
async fn the_list_of_datasets_has_two_orders() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    for slug in ["first", "second"] {
        service.project(&key, slug, &json!({})).await;
        service.clock.advance(std::time::Duration::from_mins(1));
    }
    service.merged(&key, "first", &[json!({"name": "a"})]).await;
    let page = async |path: &str| {
        let request = http::Request::get(path).header("accept", "text/html");
        service.send(request.body(axum::body::Body::empty()).unwrap()).await
    };
    let begins_with_first =
        |text: &str| text.find("/projects/first\"").unwrap() < text.find("/projects/second\"").unwrap();
    assert!(begins_with_first(&page("/projects").await.text()));
    assert!(!begins_with_first(&page("/projects?sort=newest").await.text()));
    assert_eq!(page("/projects?sort=largest").await.status, 404);
}
