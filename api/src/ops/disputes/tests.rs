use std::time::Duration;

use serde_json::{Value, json};

use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service};

/// A seller, and a buyer who has bought a version and signed in.
struct Scene {
    service: Service,
    seller: String,
    buyer: String,
    sale: String,
}

impl Scene {
    async fn start() -> Self {
        let service = Service::start().await;
        let (owner, other) = (service.operator().await, service.operator_at(EMAIL).await);
        let seller = service.agent(&owner, "mine").await;
        let buyer = service.agent(&other, "theirs").await;
        service
            .project(&seller, "weather", &json!({"access": "paid", "price": "0.50"}))
            .await;
        service.merged(&seller, "weather", &[json!({"name": "a"})]).await;
        let credits = service.get("/credits", Some(&buyer)).await.json();
        let link = credits["topUp"].as_str().unwrap();
        let operator = link.split("operator=").nth(1).unwrap().parse().unwrap();
        service.granted(operator, 1_000_000).await;
        let bought = service.call("POST", "/projects/weather/buy", Some(&buyer), "{}").await;
        let sale = bought.json()["saleId"].as_str().unwrap().to_owned();
        Self {
            service,
            seller,
            buyer,
            sale,
        }
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> Got {
        self.service.call("POST", path, Some(key), &body.to_string()).await
    }

    /// Opens the dispute as the buyer's agent.
    async fn open(&self) -> Got {
        let body = json!({"saleId": self.sale, "reason": "Half of the <b>rows</b> are made up."});
        self.post("/disputes", &self.buyer, &body).await
    }
}

fn code(got: &Got) -> (u16, Value) {
    (got.status.as_u16(), got.json()["error"].clone())
}

#[tokio::test]
async fn a_dispute_has_two_sides_and_is_missing_for_others() {
    let scene = Scene::start().await;
    let service = &scene.service;
    let body = json!({"saleId": scene.sale, "reason": "It is not what the readme says."});
    assert_eq!(
        code(&scene.post("/disputes", &scene.seller, &body).await),
        (404, json!("not_found"))
    );
    for reason in ["", "too short", "          "] {
        let body = json!({"saleId": scene.sale, "reason": reason});
        let refused = scene.post("/disputes", &scene.buyer, &body).await;
        assert_eq!(code(&refused), (400, json!("invalid_request")), "{reason:?}");
    }
    let opened = scene.open().await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let dispute = opened.json();
    let id = dispute["id"].as_str().unwrap();
    assert_eq!(
        (
            &dispute["side"],
            &dispute["state"],
            &dispute["openedBy"],
            &dispute["dataset"]
        ),
        (&json!("buyer"), &json!("open"), &json!("buyer"), &json!("weather"))
    );
    assert!(dispute.get("shareMicro").is_none(), "{dispute}");
    let again = scene.open().await;
    assert_eq!((again.status.as_u16(), &again.json()["id"]), (200, &json!(id)));
    let path = format!("/disputes/{id}");
    let seen = service.get(&path, Some(&scene.seller)).await.json();
    assert_eq!(
        (&seen["side"], &seen["shareMicro"]),
        (&json!("seller"), &json!(380_000))
    );
    let stranger = service.operator_at("eve@example.org").await;
    assert_eq!(service.get(&path, Some(&stranger)).await.status, 404);
    assert_eq!(service.get(&path, None).await.status, 401);
    for (query, key, count) in [
        ("", &scene.seller, 1),
        ("?side=buyer", &scene.seller, 0),
        ("?side=buyer&limit=1", &scene.buyer, 1),
        ("", &stranger, 0),
    ] {
        let list = service.get(&format!("/disputes{query}"), Some(key)).await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), count, "{query}");
    }

    // The seller answers once; later than asked counts.
    let answer = format!("{path}/answer");
    let words = json!({"answer": "The readme says which rows are estimates."});
    service.clock.advance(Duration::from_hours(80));
    assert_eq!(scene.post(&answer, &scene.buyer, &words).await.status, 404);
    for _ in 0..2 {
        let answered = scene.post(&answer, &scene.seller, &words).await;
        assert_eq!(
            (answered.status.as_u16(), &answered.json()["answer"]),
            (200, &words["answer"])
        );
    }
    let other = json!({"answer": "And something else beside that."});
    let refused = scene.post(&answer, &scene.seller, &other).await;
    assert_eq!(code(&refused), (409, json!("dispute_answered")));
    // Long after every deadline nothing has moved.
    service.clock.advance(Duration::from_hours(24 * 30));
    let earnings = service.get("/earnings", Some(&scene.seller)).await.json();
    assert_eq!(earnings["disputed"]["totalMicro"], 380_000);

    let refund = format!("{path}/refund");
    assert_eq!(scene.post(&refund, &scene.buyer, &json!({})).await.status, 404);
    for _ in 0..2 {
        let refunded = scene.post(&refund, &scene.seller, &json!({})).await;
        assert_eq!(refunded.status, 200, "{}", refunded.text());
        assert_eq!(
            (&refunded.json()["state"], &refunded.json()["decidedBy"]),
            (&json!("refunded"), &json!("seller"))
        );
    }
    let credits = service.get("/credits", Some(&scene.buyer)).await.json();
    assert_eq!(credits["boughtMicro"], 1_000_000);
    assert_eq!(scene.open().await.json()["state"], "refunded");
}

#[tokio::test]
async fn a_sale_is_disputed_within_its_window_only() {
    let scene = Scene::start().await;
    scene.service.clock.advance(Duration::from_hours(24 * 8));
    let late = scene.open().await;
    assert_eq!(code(&late), (409, json!("not_disputable")));
}

#[tokio::test]
async fn a_person_opens_a_dispute_from_the_receipt_and_sees_how_it_stands() {
    let scene = Scene::start().await;
    let browser = Browser::signed_in_again(&scene.service).await;
    let receipt = format!("/console/receipts/{}", scene.sale);
    let path = format!("/console/sales/{}/dispute", scene.sale);
    assert!(browser.get(&receipt).await.text().contains(&format!("href=\"{path}\"")));
    let page = browser.get(&path).await.text();
    assert!(page.contains("Open the dispute"), "{page}");
    let token = browser.form_token().await;
    // What was typed comes back with what is wrong.
    let refused = browser
        .post(&path, &form(&[("form_token", &token), ("reason", "<i>x</i>")]))
        .await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let typed = refused.text();
    assert!(
        typed.contains("&#60;i&#62;x&#60;/i&#62;") && typed.contains("Must say something"),
        "{typed}"
    );
    let short = browser
        .post(&path, &form(&[("form_token", &token), ("reason", "<i>bad</i>")]))
        .await;
    assert_eq!(short.status, 303, "ten characters are enough: {}", short.text());
    let place = short.headers["location"].to_str().unwrap().to_owned();
    let again = browser
        .post(&path, &form(&[("form_token", &token), ("reason", "sent twice")]))
        .await;
    assert_eq!(again.headers["location"].to_str().unwrap(), place);
    let shown = browser.get(&place).await.text();
    assert!(
        shown.contains("&#60;i&#62;bad&#60;/i&#62;") && !shown.contains("<i>bad"),
        "{shown}"
    );
    assert!(
        !shown.contains("Send the answer") && !shown.contains("/decide"),
        "{shown}"
    );
    assert_eq!(browser.get(&path).await.headers["location"].to_str().unwrap(), place);
    assert!(browser.get(&receipt).await.text().contains("How it stands"));
    let list = browser.get("/console/disputes").await.text();
    assert!(
        list.contains(&format!("href=\"{place}\"")) && !list.contains("To decide"),
        "{list}"
    );
    let copy = browser.get("/console/settings/account.json").await.json();
    let disputed = &copy["disputesAsBuyer"][0];
    assert_eq!(
        (&disputed["sale"], &disputed["reason"], &disputed["state"]),
        (&json!(scene.sale), &json!("<i>bad</i>"), &json!("open")),
        "{copy}"
    );
    assert_eq!(copy["disputesAsSeller"], json!([]));
    assert_eq!(copy["purchases"][0]["id"], json!(scene.sale));
    // The forms of the seller and of the administrator are nothing to the buyer.
    for form_path in ["answer", "refund", "decide"] {
        let fields = form(&[
            ("form_token", &token),
            ("answer", "an answer of mine"),
            ("end", "refund"),
        ]);
        let fields = match form_path {
            "answer" => form(&[("form_token", &token), ("answer", "an answer of mine")]),
            "refund" => form(&[("form_token", &token)]),
            _ => fields.replace("answer=an+answer+of+mine&", "words=an+answer+of+mine&"),
        };
        let refused = browser.post(&format!("{place}/{form_path}"), &fields).await;
        assert_eq!(refused.status, 404, "{form_path}: {}", refused.text());
    }
    // Without the token, and from an earlier session, nothing happens.
    let bare = browser
        .post(&format!("{place}/answer"), "answer=an+answer+of+mine")
        .await;
    assert_eq!(bare.status, 403);
    // Who is signed out is led to the page of the dispute.
    let signed_out = Browser::signed_out(&scene.service);
    let led = signed_out
        .post(&format!("{place}/answer"), "answer=an+answer+of+mine")
        .await;
    let next = led.headers["location"].to_str().unwrap();
    assert_eq!(
        (led.status.as_u16(), next),
        (303, format!("/signin?next={place}").as_str())
    );
}
