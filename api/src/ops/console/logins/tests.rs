use std::time::Duration;

use serde_json::{Value, json};

use crate::testing::browser::{Browser, form};
use crate::testing::{Got, Service};

/// A login that waits.
struct Waiting {
    code: String,
    key: String,
}

async fn begin(service: &Service, device: &str) -> Waiting {
    let body = json!({"device": device}).to_string();
    let got = service.call("POST", "/agents/login", None, &body).await;
    assert_eq!(got.status, 202, "{}", got.text());
    let begun = got.json();
    let text = |name: &str| begun[name].as_str().unwrap().to_owned();
    assert_eq!(
        (&begun["status"], &begun["pollSeconds"]),
        (&json!("pending"), &json!(5))
    );
    assert_eq!(text("approveAt"), "http://sluice.test/console/login");
    Waiting {
        code: text("code"),
        key: text("key"),
    }
}

/// Sends a form of the page.
async fn send(browser: &Browser<'_>, step: &str, fields: &[(&str, &str)]) -> Got {
    let token = browser.form_token().await;
    let mut all = vec![("form_token", token.as_str())];
    all.extend(fields);
    browser.post(&format!("/console/login{step}"), &form(&all)).await
}

async fn me(service: &Service, key: &str) -> (u16, Value) {
    let got = service.get("/me", Some(key)).await;
    (got.status.as_u16(), got.json())
}

fn location(got: &Got) -> &str {
    got.headers["location"].to_str().unwrap()
}

#[tokio::test]
async fn a_person_types_the_code_sees_who_asks_and_approves() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let login = begin(&service, "ada's <b>laptop</b>").await;
    let (status, answer) = me(&service, &login.key).await;
    assert_eq!(
        (status, &answer["error"], &answer["status"]),
        (401, &json!("login_not_approved"), &json!("pending"))
    );

    // No address has the code, not even after the form was sent.
    assert_eq!(browser.get("/console/login").await.status, 200);
    let asked = send(&browser, "", &[("code", &login.code.to_lowercase().replace('-', " "))]).await;
    let page = asked.text();
    assert_eq!(asked.status, 200, "{page}");
    for words in [
        "ada&#39;s &#60;b&#62;laptop",
        "all that the agent can",
        "spend your credits",
        "as you",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let unchosen = send(&browser, "/approve", &[("code", &login.code)]).await;
    assert_eq!(unchosen.status, 400);
    assert_eq!(me(&service, &login.key).await.0, 401);

    let fields = [
        ("code", login.code.as_str()),
        ("agent", "new"),
        ("new_name", "tide-gauge"),
    ];
    let approved = send(&browser, "/approve", &fields).await;
    assert_eq!(
        (approved.status.as_u16(), location(&approved)),
        (303, "/console/login?ended=approved")
    );
    assert!(
        browser
            .get("/console/login?ended=approved")
            .await
            .text()
            .contains("Approved.")
    );
    service.clock.advance(Duration::from_secs(1));
    let (status, caller) = me(&service, &login.key).await;
    assert_eq!((status, &caller["name"]), (200, &json!("tide-gauge")));
    let end = caller["expiresAt"].as_str().unwrap();
    let lasts = end.parse::<types::Timestamp>().unwrap().since(service.app.clock.now());
    assert!(
        lasts <= Duration::from_hours(90 * 24) && lasts > Duration::from_hours(90 * 24 - 1),
        "{end}"
    );

    // The code is dead.
    let again = send(&browser, "/approve", &fields).await;
    assert_eq!(again.status, 400, "{}", again.text());

    // The agents page names the device and ends its key, and no other.
    let agents = browser.get("/console/agents").await.text();
    assert!(agents.contains("login of <bdi>ada&#39;s &#60;b&#62;laptop"), "{agents}");
    let action = agents.split("action=\"").find(|rest| {
        let form = rest.split("</form>").next().unwrap_or_default();
        form.contains("/keys/") && form.contains("login of")
    });
    let action = action.unwrap().split('"').next().unwrap();
    let token = browser.form_token().await;
    let ended = browser.post(action, &form(&[("form_token", &token)])).await;
    assert_eq!(ended.status, 303, "{}", ended.text());
    service.clock.advance(Duration::from_secs(1));
    assert_eq!(me(&service, &login.key).await.1["error"], "unauthenticated");
    let left = browser.get("/console/agents").await.text();
    assert_eq!(
        (left.matches("/keys/").count(), left.contains("login of")),
        (1, false),
        "{left}"
    );
}

#[tokio::test]
async fn a_login_that_was_rejected_or_is_late_says_so() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let (rejected, late) = (begin(&service, "one").await, begin(&service, "two").await);
    let got = send(&browser, "/reject", &[("code", &rejected.code)]).await;
    assert_eq!(
        (got.status.as_u16(), location(&got)),
        (303, "/console/login?ended=rejected")
    );
    service.clock.advance(Duration::from_mins(15));
    for (login, expected) in [(&rejected, "rejected"), (&late, "expired")] {
        let (status, answer) = me(&service, &login.key).await;
        assert_eq!((status, &answer["status"]), (401, &json!(expected)));
        let fields = [("code", login.code.as_str()), ("agent", "new"), ("new_name", "gauge")];
        assert_eq!(send(&browser, "/approve", &fields).await.status, 400);
        // An endpoint that needs no credential refuses the key too.
        assert_eq!(service.get("/projects", Some(&login.key)).await.status, 401);
    }
}

#[tokio::test]
async fn the_sixth_wrong_code_of_an_hour_is_refused() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let login = begin(&service, "laptop").await;
    // A text that is no code is no try.
    for text in ["", "hello", "AEIOUAEI"] {
        assert_eq!(send(&browser, "", &[("code", text)]).await.status, 400, "{text}");
    }
    for _ in 0..5 {
        let wrong = if login.code.starts_with('B') {
            "CCCC-CCCC"
        } else {
            "BBBB-BBBB"
        };
        let got = send(&browser, "", &[("code", wrong)]).await;
        assert!(
            got.status == 400 && got.text().contains("No login waits"),
            "{}",
            got.text()
        );
    }
    for step in ["", "/approve", "/reject"] {
        let fields = [("code", login.code.as_str()), ("agent", "new"), ("new_name", "gauge")];
        let got = send(&browser, step, &fields).await;
        assert_eq!(got.status, 429, "{step}");
        assert_eq!(got.headers["retry-after"], "3600");
    }
    service.clock.advance(Duration::from_mins(10));
    assert_eq!(me(&service, &login.key).await.1["status"], "pending");
}

#[tokio::test]
async fn an_approval_needs_the_person_who_is_signed_in_and_a_form_of_the_page() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let login = begin(&service, "laptop").await;
    let fields = [("code", login.code.as_str()), ("agent", "new"), ("new_name", "gauge")];
    // Without the form token, and without a session.
    assert_eq!(browser.post("/console/login/approve", &form(&fields)).await.status, 403);
    let out = Browser::signed_out(&service);
    let got = out.post("/console/login/approve", &form(&fields)).await;
    assert!(
        got.status == 303 || got.status == 401 || got.status == 403,
        "{}",
        got.status
    );
    // An agent of somebody else is none.
    let token = service.operator_at("eve@example.org").await;
    service.agent(&token, "eves-agent").await;
    let hash = crate::secrets::hash(&token);
    let now = service.app.clock.now();
    let eve = service
        .app
        .store
        .accounts()
        .principal(&hash, now)
        .await
        .unwrap()
        .unwrap();
    let agents = service
        .app
        .store
        .accounts()
        .agents_of(eve.operator().unwrap(), now)
        .await
        .unwrap();
    let id = agents[0].id.to_string();
    let got = send(&browser, "/approve", &[("code", &login.code), ("agent", &id)]).await;
    assert_eq!(got.status, 400, "{}", got.text());
    assert_eq!(me(&service, &login.key).await.1["status"], "pending");
    // An address with a code leads nowhere: the page takes none from it.
    let got = browser.get(&format!("/console/login?code={}", login.code)).await;
    assert!(!got.text().contains("all that the agent can"), "{}", got.text());
}

#[tokio::test]
async fn a_device_names_itself_in_plain_letters() {
    let service = Service::start().await;
    for device in [
        json!(""),
        json!(" "),
        json!("a\u{202e}b"),
        json!("a\nb"),
        json!("x".repeat(61)),
        json!(7),
    ] {
        let body = json!({"device": device}).to_string();
        let got = service.call("POST", "/agents/login", None, &body).await;
        assert_eq!(got.status, 400, "{device}");
    }
}

#[tokio::test]
async fn a_page_of_a_site_begins_no_login_at_the_address_of_its_reader() {
    let service = Service::start().await;
    for origin in ["https://app.example", "http://sluice.test", "null"] {
        let request = http::Request::post("/agents/login")
            .header("content-type", "application/json")
            .header("origin", origin)
            .body(axum::body::Body::from(r#"{"device": "laptop"}"#))
            .unwrap();
        let got = service.send(request).await;
        assert_eq!(got.status, 400, "{origin}");
        assert_eq!(got.json()["details"][0]["path"], "/Origin", "{}", got.text());
        assert!(!got.text().contains("km_"), "{}", got.text());
    }
}
