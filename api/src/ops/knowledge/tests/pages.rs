//! The page of a unit for the person behind its agent.

use super::*;
use crate::testing::browser::{Browser, EMAIL, form};

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

/// A text that is longer than its beginning, whose last word is in no beginning.
fn long(begin: &str) -> String {
    let middle = "It was measured again and again on the same machine, and the spread was small.\n\n".repeat(12);
    format!("{begin}\n\n## What was run\n\n{middle}| a | b |\n|-|-|\n| 1 | 2 |\n\nAnd this is the Tailword.\n")
}

async fn readers(world: &World, id: &str) -> u64 {
    let unit = world.service.app.store.knowledge().unit(id.parse().unwrap()).await;
    unit.unwrap().unwrap().chain.readers
}

/// Sends a form of the page of a unit, with the token of the session.
async fn send(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Got {
    let token = browser.form_token().await;
    let fields: Vec<_> = fields.iter().copied().chain([("form_token", token.as_str())]).collect();
    browser.post(path, &form(&fields)).await
}

fn leads_to(got: &Got) -> String {
    assert_eq!(got.status, 303, "{}", got.text());
    got.headers["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_closed_text_shows_its_beginning_its_outline_its_source_and_its_review() {
    let world = World::start().await;
    let priced = world
        .submit_with(&long("It begins."), &json!({"price": "0.25"}))
        .await
        .json();
    let id = priced["id"].as_str().unwrap();
    world.publish(id, 60).await;
    let page = world.get(&format!("/units/{id}"), None).await.text();
    for part in [
        "It begins.",
        "more characters",
        "What was run",
        "12 paragraphs, <b class=\"b\">table</b>, 1 row",
        "Ran here today.",
        "Score of the text",
        "Evidence",
        "New here",
        "nobody has said so yet",
        &format!("href=\"/units/{id}/buy\""),
        &format!("/report?kind=unit&amp;id={id}"),
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("Tailword") && !page.contains("Accuracy"), "{page}");
    // What a judge says may tell what the text says; its author alone reads it.
    assert!(!page.contains("Say more of the machine."), "{page}");
}

#[tokio::test]
async fn a_person_reads_through_an_agent_what_is_free_with_an_account_and_it_counts_once() {
    let world = World::start().await;
    let id = world.published(&long("It begins."), 60).await;
    let here = format!("/units/{id}");
    let visitor = world.get(&here, None).await.text();
    assert!(
        visitor.contains("Sign in and read it") && !visitor.contains("Tailword"),
        "{visitor}"
    );
    let browser = Browser::signed_in(&world.service).await;
    let closed = browser.get(&here).await.text();
    assert!(
        closed.contains("Name of your first agent") && !closed.contains("Tailword"),
        "{closed}"
    );
    assert_eq!(readers(&world, &id).await, 0, "opening the page is no read");
    let wrong = send(&browser, &format!("{here}/read"), &[("agent", "new"), ("name", "a b")]).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    assert!(wrong.text().contains("value=\"a b\""), "{}", wrong.text());
    let read = send(
        &browser,
        &format!("{here}/read"),
        &[("agent", "new"), ("name", "loess-9")],
    )
    .await;
    assert_eq!(leads_to(&read), format!("{here}?done=read"));
    assert_eq!(readers(&world, &id).await, 1);
    let open = browser.get(&here).await.text();
    assert!(open.contains("Tailword") && !open.contains("more characters"), "{open}");
    // From the page that the browser kept: the same agent, which read before.
    let again = send(
        &browser,
        &format!("{here}/read"),
        &[("agent", "new"), ("name", "loess-9")],
    )
    .await;
    assert_eq!(leads_to(&again), format!("{here}?done=read"));
    assert_eq!(readers(&world, &id).await, 1);
    let library = browser.get("/console/library").await.text();
    assert!(
        library.contains("Free and read, 1 of 1") && library.contains("Tailword"),
        "{library}"
    );
    let found = browser
        .get("/console/library?q=TAILWORD&kind=&of=read&sort=title")
        .await;
    assert!(found.text().contains("Tailword"), "{}", found.text());
    let none = browser.get("/console/library?q=nothing+of+it").await;
    assert!(
        none.text().contains("Nothing like this in the library"),
        "{}",
        none.text()
    );
    assert_eq!(browser.get("/console/library?sort=size").await.status, 400);
    // Who is not signed in is sent there.
    let other = Browser::signed_out(&world.service);
    assert!(leads_to(&other.get("/console/library").await).starts_with("/signin"));
}

#[tokio::test]
async fn a_person_says_through_an_agent_what_it_found() {
    let world = World::start().await;
    let id = world.published(&long("It begins."), 60).await;
    let here = format!("/units/{id}");
    let browser = Browser::signed_in(&world.service).await;
    send(
        &browser,
        &format!("{here}/read"),
        &[("agent", "new"), ("name", "loess-9")],
    )
    .await;
    let open = browser.get(&here).await.text();
    let (_, agent) = open.split_once("name=\"agent\" value=\"").unwrap();
    let agent = agent.split('"').next().unwrap().to_owned();
    // What was typed comes back.
    let path = format!("{here}/mark");
    for fields in [
        [("agent", agent.as_str()), ("mark", "stale"), ("ran", "too short")],
        [
            ("agent", agent.as_str()),
            ("mark", ""),
            ("ran", "Ran it on 3.47.1 here."),
        ],
    ] {
        let wrong = send(&browser, &path, &fields).await;
        assert_eq!(wrong.status, 400, "{}", wrong.text());
        assert!(wrong.text().contains(fields[2].1), "{}", wrong.text());
    }
    let fields = [
        ("agent", agent.as_str()),
        ("mark", "stale"),
        ("ran", "Ran it on 3.47.1:\r\nnot any more."),
    ];
    for _ in 0..2 {
        assert_eq!(
            leads_to(&send(&browser, &path, &fields).await),
            format!("{here}?done=mark#h-f")
        );
    }
    let shown = browser.get(&here).await.text();
    assert!(
        shown.contains("not any more</span>") && shown.contains("Ran it on 3.47.1") && shown.contains("does not count"),
        "{shown}"
    );
    // The words may tell what the text says.
    let visitor = world.get(&here, None).await.text();
    assert!(
        visitor.contains("not any more</span>") && !visitor.contains("Ran it on 3.47.1"),
        "{visitor}"
    );
    let path = format!("{here}/rate");
    let fields = [
        ("agent", agent.as_str()),
        ("rating", "4"),
        ("comment", "Repeated <b>it</b>."),
    ];
    assert_eq!(
        leads_to(&send(&browser, &path, &fields).await),
        format!("{here}?done=rate#h-r")
    );
    let again = send(&browser, &path, &fields).await;
    assert_eq!(again.status, 400);
    assert!(
        again.text().contains("The agent rated the unit before"),
        "{}",
        again.text()
    );
    let shown = world.get(&here, None).await.text();
    assert!(shown.contains("4.0</span>") && shown.contains("1 with 4"), "{shown}");
    assert!(shown.contains("Repeated &#60;b&#62;it&#60;/b&#62;."), "{shown}");
    // An agent of somebody else is not there.
    let stranger = world.get("/me", Some(&world.other)).await.json();
    let stranger = stranger["agentId"].as_str().unwrap();
    let refused = send(&browser, &path, &[("agent", stranger), ("rating", "1")]).await;
    assert_eq!(refused.status, 404, "{}", refused.text());
    // Both are in the copy of the account.
    let copy = browser.get("/console/settings/account.json").await.json();
    let (mark, rating) = (&copy["marks"][0], &copy["ratings"][0]);
    assert_eq!((&mark["mark"], &mark["unit"]), (&json!("stale"), &json!(id)), "{copy}");
    assert_eq!(
        (&rating["rating"], &rating["comment"]),
        (&json!(4), &json!("Repeated <b>it</b>.")),
        "{copy}"
    );
    let trail = browser.get("/console/activity").await.text();
    assert!(
        trail.contains("said if a write-up is still true, for you in the console"),
        "{trail}"
    );
}

#[tokio::test]
async fn an_owner_appeals_on_the_page_of_the_version() {
    let mut world = World::judged_twice(wide()).await;
    let token = world.service.operator_at(EMAIL).await;
    world.author = world.service.agent(&token, "loess").await;
    let browser = Browser::signed_in_again(&world.service).await;
    let id = world.submitted(&long("It begins.")).await;
    world.reject(&id).await;
    let here = format!("/units/{id}");
    let page = browser.get(&here).await.text();
    assert!(
        page.contains("Let a second judge decide") && page.contains("Tailword"),
        "{page}"
    );
    let (_, agent) = page.split_once("name=\"agent\" value=\"").unwrap();
    let agent = agent.split('"').next().unwrap().to_owned();
    let path = format!("{here}/appeal");
    let fields = [("agent", agent.as_str())];
    assert_eq!(
        leads_to(&send(&browser, &path, &fields).await),
        format!("{here}?done=appeal")
    );
    let page = browser.get(&format!("{here}?done=appeal")).await.text();
    assert!(
        page.contains("a second judge is reading it") && !page.contains("Let a second judge decide"),
        "{page}"
    );
    assert_eq!(send(&browser, &path, &fields).await.status, 400);
}
