use serde_json::json;

use crate::ops::knowledge::tests::World;
use crate::testing::Got;
use crate::testing::browser::{Browser, EMAIL, form};

/// A world whose author is an agent of the person of a browser.
async fn world() -> World {
    let mut world = World::start().await;
    let token = world.service.operator_at(EMAIL).await;
    world.author = world.service.agent(&token, "loess").await;
    world
}

async fn price(browser: &Browser<'_>, id: &str, seen: &str, price: &str) -> Got {
    let token = browser.form_token().await;
    let fields = [("form_token", token.as_str()), ("seen", seen), ("price", price)];
    browser
        .post(&format!("/console/knowledge/{id}/price"), &form(&fields))
        .await
}

async fn set(world: &World, id: &str, price: &str) -> Got {
    let path = format!("/knowledge/{id}/price");
    let body = json!({"price": price}).to_string();
    world.service.call("PUT", &path, Some(&world.author), &body).await
}

/// Returns the price of a unit as it is stored.
async fn stored(world: &World, id: &str) -> Option<i64> {
    let unit = world.service.app.store.knowledge().unit(id.parse().unwrap()).await;
    unit.unwrap().unwrap().chain.price_micro
}

#[tokio::test]
async fn a_price_is_changed_from_the_one_that_was_seen() {
    let world = world().await;
    let browser = Browser::signed_in_again(&world.service).await;
    let id = world.published("Measured twice.", 70).await;
    let page = browser.get(&format!("/console/knowledge/{id}")).await.text();
    assert!(
        page.contains("free with an account") && page.contains(&format!("/units/{id}")),
        "{page}"
    );
    for typed in ["a quarter", "0.123"] {
        let refused = price(&browser, &id, "", typed).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(
            refused.text().contains(&format!("value=\"{typed}\"")),
            "{}",
            refused.text()
        );
    }
    for _ in 0..2 {
        let saved = price(&browser, &id, "", "$0.25").await;
        assert_eq!(saved.status, 303, "{}", saved.text());
    }
    assert_eq!(stored(&world, &id).await, Some(250_000));
    let page = browser.get(&format!("/console/knowledge/{id}?saved=true")).await.text();
    assert!(page.contains("value=\"0.25\"") && page.contains("Saved."), "{page}");
    assert!(page.contains("One change in 24 hours;"), "{page}");
    // Within the day it is refused in the form.
    let soon = price(&browser, &id, "0.25", "0.30").await;
    assert_eq!(soon.status, 400, "{}", soon.text());
    assert!(soon.text().contains("once a day"), "{}", soon.text());
    // An agent changed it meanwhile.
    world.service.clock.advance(std::time::Duration::from_hours(25));
    let browser = Browser::signed_in_again(&world.service).await;
    assert_eq!(set(&world, &id, "0.40").await.status, 200);
    let stale = price(&browser, &id, "0.25", "0.30").await;
    assert_eq!(stale.status, 400, "{}", stale.text());
    assert!(stale.text().contains("it is $0.40 now"), "{}", stale.text());
    assert_eq!(stored(&world, &id).await, Some(400_000));
}

#[tokio::test]
async fn a_unit_is_retired_after_a_question() {
    let world = world().await;
    let browser = Browser::signed_in_again(&world.service).await;
    let first = world.published("Was right once.", 60).await;
    let second = world.revised(&first, "Is right now.").await;
    world.publish(&second, 65).await;
    // The page of an older version leads to the end of the whole unit.
    let path = format!("/console/knowledge/{first}/retire");
    let asked = browser.get(&path).await.text();
    assert!(asked.contains("There is no undo"), "{asked}");
    let token = browser.form_token().await;
    for _ in 0..2 {
        let retired = browser.post(&path, &form(&[("form_token", &token)])).await;
        assert_eq!(retired.status, 303, "{}", retired.text());
    }
    let page = browser.get(&format!("/console/knowledge/{second}")).await.text();
    assert!(page.contains("It was retired") && !page.contains("Retire …"), "{page}");
    assert_eq!(browser.get(&path).await.status, 303);
}

#[tokio::test]
async fn a_unit_of_another_is_missing() {
    let world = world().await;
    let id = world.published("Measured twice.", 70).await;
    world.service.operator_at("eve@example.org").await;
    let mut eve = Browser::signed_out(&world.service);
    assert_eq!(eve.post("/signin", "email=eve%40example.org").await.status, 200);
    let token = world.service.mailed_token().await;
    let entered = eve.post("/signin/link", &format!("token={token}")).await;
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    eve.session = Some(cookie.split_once(';').unwrap().0.to_owned());
    for step in ["", "/retire"] {
        assert_eq!(
            eve.get(&format!("/console/knowledge/{id}{step}")).await.status,
            404,
            "{step}"
        );
    }
    assert_eq!(price(&eve, &id, "", "0.01").await.status, 404);
    assert_eq!(stored(&world, &id).await, None);
    let token = eve.form_token().await;
    let retired = eve
        .post(
            &format!("/console/knowledge/{id}/retire"),
            &form(&[("form_token", &token)]),
        )
        .await;
    assert_eq!(retired.status, 404);
}
