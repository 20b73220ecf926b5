use serde_json::{Value, json};
use store::Project;

use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service};

/// A paid dataset of the person of a browser.
async fn paid(service: &Service) -> (Browser<'_>, String) {
    let token = service.operator_at(EMAIL).await;
    let key = service.agent(&token, "tide-gauge").await;
    let more = json!({"access": "paid", "price": "0.50", "tags": ["tides"]});
    service.project(&key, "tides", &more).await;
    (Browser::signed_in_again(service).await, key)
}

async fn project(service: &Service) -> Project {
    let found = service.app.store.project_by_slug("tides", None).await.unwrap();
    found.unwrap()
}

/// Returns the value of a hidden or a text field of a page.
fn field(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\"")).unwrap();
    let (_, rest) = rest.split_once("value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

/// Sends the form about the dataset, with fields in the place of those that it has.
async fn send(browser: &Browser<'_>, seen: &str, fields: &[(&str, &str)]) -> Got {
    let token = browser.form_token().await;
    let mut all = vec![
        ("form_token", token.as_str()),
        ("seen", seen),
        ("title", "Tides of the coast"),
        ("readme", "Measured every ten minutes,\r\nat fourteen gauges."),
        ("tags", "tides, hourly tides"),
        ("price", "0.50"),
        ("status", "open"),
    ];
    for (name, value) in fields {
        all.retain(|(other, _)| other != name);
        all.push((name, value));
    }
    browser.post("/console/datasets/tides", &form(&all)).await
}

async fn seen(browser: &Browser<'_>) -> String {
    field(&browser.get("/console/datasets/tides").await.text(), "seen")
}

#[tokio::test]
async fn a_person_edits_a_dataset_and_a_second_press_changes_nothing() {
    let service = Service::start().await;
    let (browser, _) = paid(&service).await;
    let edition = seen(&browser).await;
    for _ in 0..2 {
        let saved = send(&browser, &edition, &[("price", "$0.75"), ("trial", "yes")]).await;
        assert_eq!(saved.status, 303, "{}", saved.text());
        assert_eq!(saved.headers["location"], "/console/datasets/tides?saved=true#edit");
        let now = project(&service).await;
        assert_eq!(
            (now.title.as_str(), now.readme.as_str(), now.price_micro, now.trial_sale),
            (
                "Tides of the coast",
                "Measured every ten minutes,\nat fourteen gauges.",
                Some(750_000),
                true
            )
        );
        assert_eq!(now.tags, ["tides", "hourly"]);
    }
    let page = browser.get("/console/datasets/tides?saved=true").await.text();
    assert!(
        page.contains("Saved.") && page.contains("href=\"/projects/tides\""),
        "{page}"
    );
    assert!(
        service
            .get("/projects/tides", None)
            .await
            .text()
            .contains("Tides of the coast")
    );
}

#[tokio::test]
async fn what_another_window_changed_is_shown_and_not_overwritten() {
    let service = Service::start().await;
    let (browser, key) = paid(&service).await;
    let edition = seen(&browser).await;
    let other = json!({"title": "Tides <b>by an agent</b>"}).to_string();
    let changed = service.call("PATCH", "/projects/tides", Some(&key), &other).await;
    assert_eq!(changed.status, 200);
    let refused = send(&browser, &edition, &[]).await;
    let page = refused.text();
    assert_eq!(refused.status, 400, "{page}");
    assert!(
        page.contains("Tides &#60;b&#62;by an agent") && page.contains("Tides of the coast"),
        "{page}"
    );
    assert_eq!(project(&service).await.title, "Tides <b>by an agent</b>");
    // The form is of what there is now, so the person decides by saving once more.
    let again = send(&browser, &field(&page, "seen"), &[]).await;
    assert_eq!(again.status, 303, "{}", again.text());
    assert_eq!(project(&service).await.title, "Tides of the coast");
}

#[tokio::test]
async fn what_breaks_a_rule_stays_in_the_form() {
    let service = Service::start().await;
    let (browser, _) = paid(&service).await;
    let edition = seen(&browser).await;
    for (name, value, error) in [
        ("title", "abc", "title-error"),
        ("readme", "short", "readme-error"),
        ("tags", "Not A Tag!", "tags-error"),
        ("price", "fifty cents", "price-error"),
    ] {
        let refused = send(&browser, &edition, &[(name, value)]).await;
        let page = refused.text();
        assert_eq!(refused.status, 400, "{name}: {page}");
        assert!(page.contains(error) && page.contains(value), "{name}: {page}");
    }
    assert_eq!(project(&service).await.title, "A title");
    // A second price of the day is an error of its field, and nothing else is saved.
    let first = send(&browser, &edition, &[("price", "0.60")]).await;
    assert_eq!(first.status, 303, "{}", first.text());
    let second = send(
        &browser,
        &seen(&browser).await,
        &[("price", "0.70"), ("title", "Kept words")],
    )
    .await;
    let page = second.text();
    assert_eq!(second.status, 400, "{page}");
    assert!(page.contains("price-error") && page.contains("Kept words"), "{page}");
    assert_eq!(project(&service).await.title, "Tides of the coast");
}

#[tokio::test]
async fn a_form_of_somebody_who_was_signed_out_keeps_what_was_typed() {
    let service = Service::start().await;
    let (browser, _) = paid(&service).await;
    let edition = seen(&browser).await;
    let token = browser.form_token().await;
    let typed = |token: &str| {
        form(&[
            ("form_token", token),
            ("seen", &edition),
            ("title", "Words of an hour"),
            ("readme", "Typed for an hour, and then the session ended."),
            ("tags", "tides"),
            ("price", "0.50"),
            ("status", "open"),
        ])
    };
    let out = Browser::signed_out(&service);
    let kept = out.post("/console/datasets/tides", &typed(&token)).await;
    let page = kept.text();
    assert_eq!(kept.status, 400, "{page}");
    for words in [
        "Words of an hour",
        "Typed for an hour",
        "/signin?next=/console/datasets/tides",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(project(&service).await.title, "A title");
    // Signed in again in another tab, with the token of the session before: asked once more, then saved.
    let again = Browser::signed_in_again(&service).await;
    let kept = again.post("/console/datasets/tides", &typed(&token)).await;
    assert_eq!(kept.status, 400, "{}", kept.text());
    let fresh = field(&kept.text(), "form_token");
    assert_ne!(fresh, token);
    let saved = again.post("/console/datasets/tides", &typed(&fresh)).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    assert_eq!(project(&service).await.title, "Words of an hour");
}

#[tokio::test]
async fn a_dataset_of_another_is_missing() {
    let service = Service::start().await;
    let (_, _) = paid(&service).await;
    service.operator_at("eve@example.org").await;
    let mut eve = Browser::signed_out(&service);
    let asked = eve.post("/signin", "email=eve%40example.org").await;
    assert_eq!(asked.status, 200);
    let token = service.mailed_token().await;
    let entered = eve.post("/signin/link", &format!("token={token}")).await;
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    eve.session = Some(cookie.split_once(';').unwrap().0.to_owned());
    for path in [
        "/console/datasets/tides",
        "/console/datasets/tides/archive",
        "/console/datasets/none",
    ] {
        assert_eq!(eve.get(path).await.status, 404, "{path}");
    }
    assert_eq!(send(&eve, "", &[]).await.status, 404);
    let form_token = eve.form_token().await;
    let archived = eve
        .post("/console/datasets/tides/archive", &form(&[("form_token", &form_token)]))
        .await;
    assert_eq!(archived.status, 404);
    assert_eq!(project(&service).await.title, "A title");
}

#[tokio::test]
async fn a_dataset_is_archived_after_a_question() {
    let service = Service::start().await;
    let (browser, _) = paid(&service).await;
    let asked = browser.get("/console/datasets/tides/archive").await.text();
    assert!(asked.contains("There is no undo"), "{asked}");
    let token = browser.form_token().await;
    for _ in 0..2 {
        let archived = browser
            .post("/console/datasets/tides/archive", &form(&[("form_token", &token)]))
            .await;
        assert_eq!(archived.status, 303, "{}", archived.text());
    }
    assert_eq!(project(&service).await.status, store::ProjectStatus::Archived);
    // Its words can still be mended; it has no status to choose.
    let saved = send(&browser, &seen(&browser).await, &[("status", "open")]).await;
    assert_eq!(saved.status, 400, "{}", saved.text());
    let page = browser.get("/console/datasets/tides").await.text();
    assert!(!page.contains("name=\"status\""), "{page}");
}

#[tokio::test]
async fn the_owner_sees_each_sale_with_its_fee_and_state() {
    let service = Service::start().await;
    let (browser, key) = paid(&service).await;
    service.merged(&key, "tides", &[json!({"name": "wick"})]).await;
    let empty = browser.get("/console/datasets/tides").await.text();
    assert!(empty.contains("Nobody has bought it yet."), "{empty}");
    let other = service.operator().await;
    let buyer = service.agent(&other, "buyer").await;
    let credits: Value = service.get("/credits", Some(&buyer)).await.json();
    let link = credits["topUp"].as_str().unwrap();
    let operator = link.split("operator=").nth(1).unwrap().parse().unwrap();
    service.granted(operator, 1_000_000).await;
    let bought = service.call("POST", "/projects/tides/buy", Some(&buyer), "{}").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    let page = browser.get("/console/datasets/tides").await.text();
    for words in [
        "an account, with credit",
        "$0.50",
        "$0.12",
        "$0.38",
        "on hold until",
        "Sales a day: 1 in 30 days",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("buyer</bdi>"), "who bought is not named");
}
