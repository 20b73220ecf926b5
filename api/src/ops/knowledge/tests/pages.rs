//! The page of a unit for the person behind its agent.

use super::*;

/// Opens a page with these headers beside those of a browser, and sends a form if there is one.
async fn opened(world: &World, path: &str, session: Option<&str>, form: Option<&str>) -> Got {
    let method = if form.is_some() { "POST" } else { "GET" };
    let mut request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("accept", "text/html")
        .header("origin", "http://sluice.test")
        .header("content-type", "application/x-www-form-urlencoded");
    if let Some(session) = session {
        request = request.header("cookie", session);
    }
    let body = axum::body::Body::from(form.unwrap_or_default().to_owned());
    world.service.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn every_link_of_the_console_to_an_own_unit_opens() {
    let mut world = World::start().await;
    let token = world.service.operator_at("ada@example.org").await;
    world.author = world.service.agent(&token, "loess").await;
    let asked = opened(&world, "/signin", None, Some("email=ada%40example.org")).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    let form = format!("token={}", world.service.mailed_token().await);
    let entered = opened(&world, "/signin/link", None, Some(&form)).await;
    let cookies = entered.headers.get_all("set-cookie").iter();
    let cookies = cookies.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap());
    let session = cookies.collect::<Vec<_>>().join("; ");

    let queued = world.submitted("Is in the queue.").await;
    let rejected = world.submitted("Says nothing.").await;
    world.reject(&rejected).await;
    let retired = world.published("Was right once.", 60).await;
    let path = format!("/knowledge/{retired}/retire");
    let ended = world.post(&path, Some(&world.author), &json!({})).await;
    assert_eq!(ended.status, 200, "{}", ended.text());
    let down = world.published("Copied from a book.", 60).await;
    world.take_down(&down, TakedownReason::Copyright).await;

    let list = opened(&world, "/console/knowledge", Some(&session), None).await;
    assert_eq!(list.status, 200, "{}", list.text());
    for (id, text) in [
        (&queued, "Is in the queue."),
        (&rejected, "Says nothing."),
        (&retired, "Was right once."),
        (&down, "Hidden after a report: copyright."),
    ] {
        let here = format!("/units/{id}");
        assert!(list.text().contains(&here), "{here}");
        let shown = opened(&world, &here, Some(&session), None).await;
        assert_eq!(shown.status, 200, "{here}: {}", shown.text());
        assert!(shown.text().contains(text), "{here}: {}", shown.text());
        assert!(!shown.text().contains("Copied from a book."), "{here}");
        assert_eq!(opened(&world, &here, None, None).await.status, 404, "{here}");
    }
}
