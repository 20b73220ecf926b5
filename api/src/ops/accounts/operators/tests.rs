use std::time::Duration;

use mail::Letter;
use serde_json::{Value, json};

use crate::rules::letters;
use crate::testing::{Got, Service, config, limits};

const HOUR: Duration = Duration::from_hours(1);

fn body(email: &str) -> Value {
    json!({"email": email, "displayName": "Ada", "acceptTerms": "2026-11-01"})
}

async fn post(service: &Service, path: &str, body: &Value) -> Got {
    service.call("POST", path, None, &body.to_string()).await
}

/// Returns the letters of all jobs that are due, and the number of jobs.
async fn letters(service: &Service) -> (Vec<Letter>, usize) {
    let app = &service.app;
    let now = app.clock.now();
    let jobs = app.store.flow().jobs_lease(now, HOUR, 99).await.unwrap();
    let mut letters = Vec::new();
    for job in &jobs {
        letters.extend(letters::letter(app, job, now).await.unwrap());
        assert!(!job.payload.contains("token"), "{}", job.payload);
        app.store.flow().job_done(&job.id).await.unwrap();
    }
    (letters, jobs.len())
}

/// Returns the token in a letter.
fn token(letter: &Letter) -> String {
    let (_, rest) = letter.text.split_once("?token=").unwrap();
    rest.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_signs_up_and_verifies() {
    let service = Service::start().await;
    let got = post(&service, "/operators", &body("ada@example.org")).await;
    assert_eq!(got.status, 201, "{}", got.json());
    assert_eq!(
        (&got.json()["status"], &got.json()["email"]),
        (&json!("unverified"), &json!("ada@example.org"))
    );
    let (sent, _) = letters(&service).await;
    assert_eq!((sent.len(), sent[0].to.as_str()), (1, "ada@example.org"));
    for part in [
        "http://sluice.test/verify?token=",
        "19 years old",
        "http://sluice.test/terms",
        "2026-11-22 07:00 UTC",
    ] {
        let words: Vec<&str> = sent[0].text.split_whitespace().collect();
        assert!(words.join(" ").contains(part), "{part}: {}", sent[0].text);
        assert!(sent[0].html.contains(part), "{part}: {}", sent[0].html);
    }
    // It says why it came, and has one button with its address in words.
    assert!(
        sent[0]
            .text
            .contains("\n-- \nSluice, http://sluice.test\nYou get this because"),
        "{}",
        sent[0].text
    );
    assert_eq!(sent[0].html.matches("class=\"btn-a\"").count(), 1);
    assert_eq!(sent[0].html.matches(&token(&sent[0])).count(), 2);
    // The name that somebody typed is not in a letter to somebody else.
    assert!(!sent[0].text.contains("Ada"), "{}", sent[0].text);

    let verified = post(&service, "/operators/verify", &json!({"token": token(&sent[0])})).await;
    assert_eq!(
        (verified.status.as_u16(), &verified.json()["status"]),
        (200, &json!("active"))
    );
    let operator = service
        .app
        .store
        .operator_by_email("ada@example.org")
        .await
        .unwrap()
        .unwrap();
    let now = Some(service.app.clock.now());
    assert_eq!((operator.verified_at, operator.adult_stated_at), (now, now));
    let again = post(&service, "/operators/verify", &json!({"token": token(&sent[0])})).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["error"]),
        (409, &json!("token_used"))
    );
}

#[tokio::test]
async fn a_mailbox_signs_up_once_and_gets_its_letters_where_it_said() {
    let service = Service::start().await;
    let written = "Ada.L+tides@googlemail.com";
    assert_eq!(post(&service, "/operators", &body(written)).await.status, 201);
    let (sent, _) = letters(&service).await;
    assert_eq!((sent.len(), sent[0].to.as_str()), (1, written));
    for other in ["adal@gmail.com", "a.d.a.l+2@gmail.com", "ADAL@googlemail.com"] {
        let got = post(&service, "/operators", &body(other)).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["error"]),
            (409, &json!("email_taken")),
            "{other}"
        );
    }
    for other in ["ada.l@example.org", "adal@example.org"] {
        assert_eq!(post(&service, "/operators", &body(other)).await.status, 201, "{other}");
    }
}

#[tokio::test]
async fn an_address_that_no_letter_reaches_is_refused_at_the_door() {
    let service = Service::start().await;
    for email in [
        "ada@192.0.2.1",
        "ada@[192.0.2.1]",
        "\"ada l\"@example.org",
        "ada@a_b.example.org",
        "ada@x-.example.org",
    ] {
        let got = post(&service, "/operators", &body(email)).await;
        assert_eq!(got.status, 400, "{email}: {}", got.json());
        let report = json!({
            "kind": "agent", "id": "nobody", "reason": "copyright", "detail": "A copy of mine.", "email": email,
        });
        let got = post(&service, "/reports", &report).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["details"][0]["path"]),
            (400, &json!("/email")),
            "{email}"
        );
    }
    assert_eq!(letters(&service).await.1, 0);
}

#[tokio::test]
async fn a_letter_that_is_rendered_again_is_the_same() {
    let service = Service::start().await;
    assert_eq!(post(&service, "/operators", &body("ada@example.org")).await.status, 201);
    let app = &service.app;
    let job = app
        .store
        .flow()
        .jobs_lease(app.clock.now(), HOUR, 1)
        .await
        .unwrap()
        .remove(0);
    service.clock.advance(HOUR);
    let later = app.clock.now();
    let first = letters::letter(app, &job, later).await.unwrap().unwrap();
    service.clock.advance(HOUR);
    let later = app.clock.now();
    assert_eq!(letters::letter(app, &job, later).await.unwrap(), Some(first));
    // A link that no longer works needs no letter.
    service.clock.advance(22 * HOUR);
    let later = app.clock.now();
    assert_eq!(letters::letter(app, &job, later).await.unwrap(), None);
}

#[tokio::test]
async fn terms_that_are_missing_or_old_are_named() {
    let service = Service::start().await;
    for accepted in [None, Some("2025-01-01"), Some("")] {
        let mut body = body("ada@example.org");
        match accepted {
            Some(version) => body["acceptTerms"] = json!(version),
            None => drop(body.as_object_mut().unwrap().remove("acceptTerms")),
        }
        let got = post(&service, "/operators", &body).await;
        let json = got.json();
        assert_eq!(
            (got.status.as_u16(), &json["error"]),
            (400, &json!("terms_not_accepted"))
        );
        assert_eq!(json["termsVersion"], "2026-11-01");
        assert_eq!(json["termsUrl"], "http://sluice.test/terms");
    }
    assert_eq!(letters(&service).await.1, 0);
}

#[tokio::test]
async fn fields_keep_their_limits() {
    let service = Service::with(
        config(),
        crate::Limits {
            sign_ups_per_ip_per_hour: 100,
            ..limits()
        },
    )
    .await;
    let of = |last: usize| {
        let labels = [63, 63, last].map(|length| "b".repeat(length)).join(".");
        format!("{}@{labels}.example.org", "a".repeat(64))
    };
    let (most, over) = (of(49), of(50));
    assert_eq!((most.len(), over.len()), (254, 255));
    for (member, value, status) in [
        ("email", json!(most), 201),
        ("email", json!(over), 400),
        ("email", json!("ada"), 400),
        ("email", json!("ada@localhost"), 400),
        ("email", json!("ada@example.org\r\nBcc: eve@example.net"), 400),
        ("email", json!(7), 400),
        ("displayName", json!("a".repeat(80)), 201),
        ("displayName", json!("é".repeat(80)), 201),
        ("displayName", json!("a".repeat(81)), 400),
        ("displayName", json!(""), 400),
        ("displayName", json!("  "), 400),
        ("displayName", json!("a\nb"), 400),
        ("acceptTerms", json!("a".repeat(41)), 400),
        ("points", json!(5), 400),
    ] {
        let mut body = body(&format!("{}@example.org", uuid::Uuid::now_v7()));
        body[member] = value.clone();
        let got = post(&service, "/operators", &body).await;
        assert_eq!(got.status, status, "{member} {value}: {}", got.json());
    }
}

#[tokio::test]
async fn an_address_for_some_minutes_is_refused() {
    let service = Service::start().await;
    let got = post(&service, "/operators", &body("ada@mailinator.com")).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (400, &json!("email_disposable"))
    );
}

#[tokio::test]
async fn an_address_signs_up_once_and_again_after_72_hours() {
    let service = Service::start().await;
    assert_eq!(post(&service, "/operators", &body("ada@example.org")).await.status, 201);
    let twin = post(&service, "/operators", &body("ADA@example.org")).await;
    assert_eq!(
        (twin.status.as_u16(), &twin.json()["error"]),
        (409, &json!("email_taken"))
    );
    service.clock.advance(72 * HOUR);
    assert_eq!(post(&service, "/operators", &body("ada@example.org")).await.status, 201);
}

#[tokio::test]
async fn without_an_invitation_the_answer_says_where_to_ask() {
    let closed = crate::Config {
        signup_open: false,
        ..config()
    };
    let service = Service::with(closed, limits()).await;
    let got = post(&service, "/operators", &body("ada@example.org")).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["invite"]),
        (403, &json!("http://sluice.test/invite"))
    );
    let now = service.app.clock.now();
    assert!(
        service
            .app
            .store
            .accounts()
            .invite("Ada@example.org", now)
            .await
            .unwrap()
    );
    assert_eq!(post(&service, "/operators", &body("ada@example.org")).await.status, 201);
}

#[tokio::test]
async fn a_resend_answers_the_same_for_every_address() {
    let limits = crate::Limits {
        resends_per_ip_per_hour: 100,
        ..limits()
    };
    let service = Service::with(config(), limits).await;
    for email in ["ada@example.org", "bob@example.org"] {
        assert_eq!(post(&service, "/operators", &body(email)).await.status, 201);
    }
    let (sent, _) = letters(&service).await;
    // Letters of one moment have no order.
    let of_bob = sent.iter().find(|letter| letter.to == "bob@example.org").unwrap();
    let bob = json!({"token": token(of_bob)});
    assert_eq!(post(&service, "/operators/verify", &bob).await.status, 200);
    let mut answers = Vec::new();
    for email in ["ada@example.org", "bob@example.org", "nobody@example.org"] {
        let got = post(&service, "/operators/resend", &json!({ "email": email })).await;
        answers.push((got.status.as_u16(), got.bytes));
    }
    assert_eq!(answers[0].0, 200);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    // Each left a job, and one of them is a letter.
    let (sent, jobs) = letters(&service).await;
    assert_eq!((sent.len(), sent[0].to.as_str(), jobs), (1, "ada@example.org", 3));
    let ada = json!({"token": token(&sent[0])});
    assert_eq!(post(&service, "/operators/verify", &ada).await.status, 200);
}

#[tokio::test]
async fn a_link_ends_after_24_hours() {
    let service = Service::start().await;
    assert_eq!(post(&service, "/operators", &body("ada@example.org")).await.status, 201);
    let (sent, _) = letters(&service).await;
    service.clock.advance(24 * HOUR);
    let late = post(&service, "/operators/verify", &json!({"token": token(&sent[0])})).await;
    assert_eq!(
        (late.status.as_u16(), &late.json()["error"]),
        (410, &json!("token_expired"))
    );
    for token in ["a", "a".repeat(200).as_str()] {
        let unknown = post(&service, "/operators/verify", &json!({ "token": token })).await;
        assert_eq!(
            (unknown.status.as_u16(), &unknown.json()["error"]),
            (400, &json!("token_unknown"))
        );
    }
    let long = post(&service, "/operators/verify", &json!({"token": "a".repeat(201)})).await;
    assert_eq!(long.json()["error"], "invalid_request");
}

#[tokio::test]
async fn when_the_letters_are_spent_no_account_is_made() {
    let config = crate::Config {
        mails_per_day: 1,
        ..config()
    };
    let service = Service::with(config, limits()).await;
    assert_eq!(post(&service, "/operators", &body("ada@example.org")).await.status, 201);
    for (path, body) in [
        ("/operators", body("bob@example.org")),
        ("/operators/resend", json!({"email": "ada@example.org"})),
        ("/operators/resend", json!({"email": "nobody@example.org"})),
    ] {
        let got = post(&service, path, &body).await;
        let json = got.json();
        assert_eq!(
            (got.status.as_u16(), &json["error"]),
            (503, &json!("mail_spent")),
            "{path}"
        );
        assert_eq!(json["retryAt"], "2026-11-22T00:00:00Z");
        assert_eq!(got.headers["retry-after"], "61200");
    }
    assert_eq!(
        service.app.store.operator_by_email("bob@example.org").await.unwrap(),
        None
    );
    service.clock.advance(17 * HOUR);
    assert_eq!(post(&service, "/operators", &body("bob@example.org")).await.status, 201);
}

#[tokio::test]
async fn attempts_of_an_address_are_limited_whatever_they_ask() {
    let service = Service::start().await;
    for _ in 0..10 {
        let refused = post(&service, "/operators", &json!({"email": "ada"})).await;
        assert_eq!(refused.status, 400);
    }
    let got = post(&service, "/operators", &body("ada@example.org")).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (429, &json!("sign_up_limit"))
    );
    assert!(got.headers.contains_key("retry-after"));
    for number in 0..5 {
        let email = format!("{number}@example.org");
        let got = post(&service, "/operators/resend", &json!({ "email": email })).await;
        assert_eq!(got.status, 200);
    }
    let got = post(&service, "/operators/resend", &json!({"email": "ada@example.org"})).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (429, &json!("resend_limit"))
    );
}

#[tokio::test]
async fn no_key_is_read_where_a_person_acts() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    for credential in [key.as_str(), token.as_str(), "nonsense"] {
        let body = body(&format!("{}@example.org", uuid::Uuid::now_v7())).to_string();
        let got = service.call("POST", "/operators", Some(credential), &body).await;
        // As without a credential: the account is another one, and waits for the reader of its mailbox.
        assert_eq!(
            (got.status.as_u16(), &got.json()["status"]),
            (201, &json!("unverified"))
        );
    }
}
