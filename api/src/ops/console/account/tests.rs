use std::time::Duration;

use serde_json::{Value, json};

use crate::config::Limits;
use crate::rules::letters;
use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service, config, limits};

/// Returns a service whose limits on letters no test meets by chance.
async fn service() -> Service {
    let limits = Limits {
        resends_per_ip_per_hour: 1_000,
        ..limits()
    };
    Service::with(config(), limits).await
}

async fn send(browser: &Browser<'_>, step: &str, fields: &[(&str, &str)]) -> Got {
    let token = browser.form_token().await;
    let mut all = vec![("form_token", token.as_str())];
    all.extend(fields);
    browser.post(&format!("/console/settings/{step}"), &form(&all)).await
}

/// Returns the letters that are due: recipient, subject and text.
async fn letters(service: &Service) -> Vec<(String, String, String)> {
    let now = service.app.clock.now();
    let flow = service.app.store.flow();
    let mut sent = Vec::new();
    for job in flow.jobs_lease(now, Duration::from_hours(1), 99).await.unwrap() {
        let letter = letters::letter(&service.app, &job, now).await.unwrap();
        flow.job_done(&job.id).await.unwrap();
        sent.extend(letter.map(|letter| (letter.to, letter.subject, letter.text)));
    }
    sent
}

fn token_of(text: &str) -> String {
    let (_, rest) = text.split_once("?token=").unwrap();
    rest.lines().next().unwrap().to_owned()
}

fn location(got: &Got) -> &str {
    got.headers["location"].to_str().unwrap()
}

#[tokio::test]
async fn a_name_is_changed_once_and_never_over_another_window() {
    let service = service().await;
    let browser = Browser::signed_in(&service).await;
    for _ in 0..2 {
        let saved = send(&browser, "name", &[("name", " Harbour Lab "), ("seen", "Somebody")]).await;
        assert_eq!(
            (saved.status.as_u16(), location(&saved)),
            (303, "/console/settings?done=name")
        );
    }
    let page = browser.get("/console/settings?done=name").await.text();
    assert!(
        page.contains("The name is saved.") && page.contains("Harbour Lab"),
        "{page}"
    );
    for (name, seen) in [
        ("", "Harbour Lab"),
        (&*"x".repeat(81), "Harbour Lab"),
        ("Mooring <b>", "Somebody"),
    ] {
        let refused = send(&browser, "name", &[("name", name), ("seen", seen)]).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("name-error") && !refused.text().contains("<b>"));
    }
    assert!(browser.get("/console/settings").await.text().contains("Harbour Lab"));
}

#[tokio::test]
async fn an_address_is_confirmed_at_the_new_one_and_taken_back_at_the_old_one() {
    let service = service().await;
    let browser = Browser::signed_in(&service).await;
    for email in ["", "no address", EMAIL, "a@mailinator.com"] {
        let refused = send(&browser, "email", &[("email", email)]).await;
        assert_eq!(refused.status, 400, "{email}: {}", refused.text());
        assert!(refused.text().contains("email-error"), "{email}");
    }
    let asked = send(&browser, "email", &[("email", "ada@harbour.example")]).await;
    assert_eq!(
        (asked.status.as_u16(), location(&asked)),
        (303, "/console/settings?done=email")
    );
    let mut sent = letters(&service).await;
    sent.sort();
    let [(old, _, notice), (new, _, link)] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((old.as_str(), new.as_str()), (EMAIL, "ada@harbour.example"));
    assert!(
        !notice.contains("harbour.example"),
        "a letter has no text that a stranger chose: {notice}"
    );
    let (confirm, stop) = (token_of(link), token_of(notice));
    assert_ne!(confirm, stop);

    // A program that opens the link changes nothing, and neither link does the work of the other.
    let visitor = Browser::signed_out(&service);
    let opened = visitor.get(&format!("/verify/email?token={confirm}")).await.text();
    assert!(opened.contains("ada@harbour.example"), "{opened}");
    let crossed = visitor.post("/verify/email", &format!("token={stop}")).await;
    assert_eq!(crossed.status, 400, "{}", crossed.text());
    assert!(browser.get("/console/settings").await.text().contains(EMAIL));
    let confirmed = visitor.post("/verify/email", &format!("token={confirm}")).await;
    assert_eq!(confirmed.status, 200, "{}", confirmed.text());
    let twice = visitor.post("/verify/email", &format!("token={confirm}")).await;
    assert!(twice.text().contains("This link was used"), "{}", twice.text());
    let found = service
        .app
        .store
        .operator_by_email("ada@harbour.example")
        .await
        .unwrap();
    assert!(found.is_some());
    // No other change begins while this one can be taken back.
    let soon = send(&browser, "email", &[("email", "eve@example.org")]).await;
    assert_eq!(soon.status, 400, "{}", soon.text());

    let stopped = visitor.post("/verify/email/stop", &format!("token={stop}")).await;
    assert_eq!(stopped.status, 200, "{}", stopped.text());
    assert!(service.app.store.operator_by_email(EMAIL).await.unwrap().is_some());
    assert_eq!(
        browser.get("/console/settings").await.status,
        303,
        "every session ended"
    );
    let again = visitor.post("/verify/email/stop", &format!("token={stop}")).await;
    assert!(again.text().contains("This link was used"), "{}", again.text());
}

#[tokio::test]
async fn an_address_of_another_account_is_answered_like_a_free_one_and_gets_no_letter() {
    let service = service().await;
    service.operator_at("eve@example.org").await;
    let browser = Browser::signed_in(&service).await;
    let asked = send(&browser, "email", &[("email", "Eve+other@example.org")]).await;
    assert_eq!(
        (asked.status.as_u16(), location(&asked)),
        (303, "/console/settings?done=email")
    );
    let sent = letters(&service).await;
    let [(to, _, _)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(to, EMAIL);
    // An old session may not ask at all.
    service.clock.advance(Duration::from_mins(16));
    let old = send(&browser, "email", &[("email", "ada@harbour.example")]).await;
    assert_eq!(old.status, 403, "{}", old.text());
    assert!(
        browser
            .get("/console/settings")
            .await
            .text()
            .contains("sign in again first")
    );
}

#[tokio::test]
async fn a_person_chooses_letters_and_hides_the_name() {
    let service = service().await;
    let browser = Browser::signed_in(&service).await;
    let saved = send(&browser, "letters", &[("bought_items", "yes")]).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    let account = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap();
    assert_eq!(account.muted_letters, [store::LetterTopic::Approvals]);
    let page = browser.get("/console/settings").await.text();
    assert!(page.contains("name=\"approvals\" value=\"yes\">"), "{page}");
    assert!(page.contains("name=\"bought_items\" value=\"yes\" checked>"), "{page}");
    assert!(
        !page.contains("name=\"reports\""),
        "only moderators get letters about reports"
    );
    for (hidden, is_hidden) in [("yes", true), ("yes", true), ("no", false)] {
        let saved = send(&browser, "profile", &[("hidden", hidden)]).await;
        assert_eq!(saved.status, 303, "{}", saved.text());
        let account = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap();
        assert_eq!(account.profile_hidden, is_hidden);
    }
}

#[tokio::test]
async fn the_copy_has_every_row_and_no_secret() {
    let service = service().await;
    let token = service.operator_at(EMAIL).await;
    let key = service.agent(&token, "tide-gauge").await;
    service.project(&key, "tides", &json!({})).await;
    for number in 0..3 {
        service
            .merged(&key, "tides", &[json!({"name": format!("n{number}")})])
            .await;
    }
    let other = service.operator().await;
    let other = service.agent(&other, "other").await;
    service.project(&other, "prices", &json!({})).await;
    let report = json!({"kind": "dataset", "id": "prices", "reason": "spam", "detail": "It is no data."}).to_string();
    let reported = service.call("POST", "/reports", Some(&key), &report).await;
    assert_eq!(reported.status, 201, "{}", reported.text());
    let browser = Browser::signed_in_again(&service).await;
    let got = browser.get("/console/settings/account.json").await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(
        got.headers["content-disposition"],
        "attachment; filename=\"account.json\""
    );
    let copy: Value = serde_json::from_str(&got.text()).unwrap();
    assert_eq!(copy["account"]["email"], EMAIL);
    assert_eq!(copy["agents"][0]["name"], "tide-gauge");
    assert_eq!(copy["datasets"][0]["slug"], "tides");
    assert_eq!(copy["contributions"].as_array().unwrap().len(), 3);
    for list in [
        "knowledge",
        "comments",
        "requests",
        "purchases",
        "sales",
        "approvals",
        "approvalsWaiting",
        "disputesAsBuyer",
        "disputesAsSeller",
        "ratings",
        "marks",
        "takedowns",
        "ledger",
    ] {
        assert_eq!(copy[list], json!([]), "{list}");
    }
    assert_eq!(copy["reports"].as_array().unwrap().len(), 1, "{copy}");
    assert_eq!(copy["reports"][0]["detail"], "It is no data.");
    assert!(!copy["trail"].as_array().unwrap().is_empty(), "{copy}");
    assert!(!got.text().contains(&key) && !got.text().contains(&token));
    let out = Browser::signed_out(&service);
    assert_eq!(out.get("/console/settings/account.json").await.status, 303);
}

#[tokio::test]
async fn an_account_closes_when_nothing_of_it_is_open() {
    let service = service().await;
    let token = service.operator_at(EMAIL).await;
    let key = service.agent(&token, "tide-gauge").await;
    service.project(&key, "tides", &json!({})).await;
    let upload = json!({"bytes": 10, "parts": 1, "partSize": 10}).to_string();
    let begun = service
        .call("POST", "/projects/tides/uploads", Some(&key), &upload)
        .await;
    assert_eq!(begun.status, 201, "{}", begun.text());
    let upload = begun.json()["id"].as_str().unwrap().to_owned();
    let browser = Browser::signed_in_again(&service).await;
    let page = browser.get("/console/settings/close").await.text();
    assert!(page.contains("1 upload can still be completed"), "{page}");
    let open = send(&browser, "close", &[("confirm", EMAIL)]).await;
    assert_eq!(open.status, 400, "{}", open.text());
    let path = format!("/projects/tides/uploads/{upload}");
    assert!(service.call("DELETE", &path, Some(&key), "").await.status.is_success());
    let wrong = send(&browser, "close", &[("confirm", "eve@example.org")]).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    assert_eq!(service.get("/me", Some(&key)).await.status, 200);

    let closed = send(&browser, "close", &[("confirm", "ADA@example.org")]).await;
    assert_eq!(closed.status, 200, "{}", closed.text());
    assert!(closed.text().contains("Your account is closed"), "{}", closed.text());
    // A second press, the keys and the links find nobody.
    assert_eq!(browser.get("/console/settings").await.status, 303);
    service.clock.advance(Duration::from_secs(1));
    for secret in [&key, &token] {
        assert_eq!(service.get("/me", Some(secret)).await.status, 401);
    }
    assert!(service.app.store.operator_by_email(EMAIL).await.unwrap().is_none());
    let visitor = Browser::signed_out(&service);
    assert_eq!(visitor.post("/signin", "email=ada%40example.org").await.status, 200);
    assert_eq!(letters(&service).await, []);
    // What is published stays, and the address may sign up anew.
    assert_eq!(service.get("/projects/tides", None).await.status, 200);
    service.operator_at(EMAIL).await;
}
