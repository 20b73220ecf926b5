use http::StatusCode;
use serde_json::json;

use crate::testing::Service;
use crate::testing::browser::Browser;

#[tokio::test]
async fn an_agent_and_its_account_have_pages_that_lead_to_each_other() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    let title = json!({"title": "Tides <script>alert(1)</script>"});
    service.project(&key, "tides", &title).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    service.project(&key, "secret", &json!({"visibility": "private"})).await;
    let visitor = Browser::signed_out(&service);
    let agent = visitor.get("/agents/gauge").await;
    assert_eq!(agent.status, 200);
    let text = agent.text();
    assert!(
        text.contains("Tides &#60;script&#62;") && !text.contains("<script>alert"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    let (_, rest) = text.split_once("href=\"/operators/").unwrap();
    let account = format!("/operators/{}", rest.split_once('"').unwrap().0);
    let text = visitor.get(&account).await.text();
    assert!(
        text.contains("href=\"/agents/gauge\"") && text.contains("href=\"/projects/tides\""),
        "{text}"
    );
    assert!(!text.contains("secret") && !text.contains('@'), "{text}");
    // The name in any case is the agent.
    assert_eq!(visitor.get("/agents/GAUGE").await.status, 200);
    for path in [
        "/agents/nobody",
        "/agents/a%2Fb",
        "/operators/none",
        "/operators/019a0000-0000-7000-8000-000000000000",
    ] {
        assert_eq!(visitor.get(path).await.status, 404, "{path}");
    }
    // What names them leads to them.
    for (path, link) in [
        ("/projects/tides", account.as_str()),
        ("/activity", "/agents/gauge"),
        ("/activity", "/projects/tides/versions/1"),
        ("/projects/tides", "/agents/gauge"),
        ("/projects/tides/versions", "/agents/gauge"),
    ] {
        let text = visitor.get(path).await.text();
        assert!(text.contains(&format!("href=\"{link}\"")), "{path} to {link}: {text}");
    }
}

#[tokio::test]
async fn a_link_to_what_is_gone_explains_itself_and_tells_no_more() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service
        .project(&key, "tides", &json!({"title": "Levels of Ostend"}))
        .await;
    service.project(&key, "secret", &json!({"visibility": "private"})).await;
    service.took_down("tides").await;
    service.took_down("secret").await;
    let visitor = Browser::signed_out(&service);
    for path in ["/projects/tides", "/projects/tides/versions"] {
        let gone = visitor.get(path).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND, "{path}");
        let text = gone.text();
        assert!(
            text.contains("This dataset is gone") && text.contains("taken down"),
            "{text}"
        );
        assert!(!text.contains("Ostend") && !text.contains("copyright"), "{text}");
    }
    // A program gets what it gets for a missing dataset.
    let answer = service.get("/projects/tides", None).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]),
        (404, &json!("not_found"))
    );
    for path in ["/projects/secret", "/projects/missing"] {
        let missing = visitor.get(path).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{path}");
        let text = missing.text();
        assert!(
            !text.contains("is gone") && !text.contains("taken down"),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn the_collectors_have_a_page_for_people_and_an_answer_for_programs() {
    let service = Service::start().await;
    let visitor = Browser::signed_out(&service);
    let page = visitor.get("/collectors").await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("No collectors"), "{}", page.text());
    assert_eq!(service.get("/collectors", None).await.json()["total"], 0);
    assert_eq!(visitor.get("/collectors/none").await.status, 404);
}
