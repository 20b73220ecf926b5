use std::time::Duration;

use serde_json::{Value, json};
use store::{Approval, ClaimCodeAdded, NewClaimCode, SpendLimits};
use types::{ClaimCodeId, ClaimId, OperatorId};

use crate::rules::accounts::{ClaimCodeParts, ClaimCodeText};
use crate::testing::{Got, Service};

const HOUR: Duration = Duration::from_hours(1);

/// Returns a claim code of the operator with this token.
async fn code(service: &Service, operator: OperatorId) -> String {
    let text = ClaimCodeText::generate().unwrap().reveal();
    let parts = ClaimCodeParts::of(&text).unwrap();
    let now = service.app.clock.now();
    let new = NewClaimCode {
        id: ClaimCodeId::new(now),
        operator,
        lookup: parts.lookup,
        secret_hash: parts.secret_hash,
        expires_at: now.plus(HOUR / 4),
        now,
    };
    let added = service.app.store.accounts().claim_code_add(new, 99).await.unwrap();
    assert_eq!(added, ClaimCodeAdded::Added);
    text
}

async fn operator(service: &Service) -> OperatorId {
    let token = service.operator().await;
    let hash = crate::secrets::hash(&token);
    let owner = service
        .app
        .store
        .accounts()
        .principal(&hash, service.app.clock.now())
        .await;
    owner.unwrap().unwrap().operator().unwrap()
}

async fn claim(service: &Service, code: &str, name: &str) -> Got {
    let body = json!({"code": code, "name": name, "description": "Reads gauges."});
    service.call("POST", "/agents/claim", None, &body.to_string()).await
}

fn refused(got: &Got) -> (u16, Value) {
    (got.status.as_u16(), got.json()["error"].clone())
}

async fn approve(service: &Service, operator: OperatorId, phrase: &str) -> Approval {
    let accounts = service.app.store.accounts();
    let now = service.app.clock.now();
    let id: ClaimId = accounts.claims_of(operator, 1, now).await.unwrap()[0].id;
    accounts
        .claim_approve(operator, id, phrase, SpendLimits::default(), now)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_agent_claims_and_its_key_works_once_approved() {
    let service = Service::start().await;
    let operator = operator(&service).await;
    let code = code(&service, operator).await;
    let got = claim(&service, &code, "gauge").await;
    let claimed = got.json();
    assert_eq!((got.status.as_u16(), &claimed["status"]), (202, &json!("pending")));
    let (key, phrase) = (claimed["key"].as_str().unwrap(), claimed["phrase"].as_str().unwrap());
    assert!(key.starts_with("km_") && phrase.split('-').count() == 4, "{phrase}");

    // Every call that reads the key says that it waits; calls that read none answer.
    for path in ["/projects", "/projects/none/data"] {
        let got = service.get(path, Some(key)).await;
        let json = got.json();
        assert_eq!(
            (got.status.as_u16(), &json["status"]),
            (401, &json!("pending")),
            "{path}"
        );
        assert!(json["hint"].is_string() && json["getKey"].is_string());
    }
    assert_eq!(service.get("/licenses", Some(key)).await.status, 200);
    let status = service.get("/agents/claim/status", Some(key)).await;
    assert_eq!(
        (status.status.as_u16(), &status.json()["status"]),
        (200, &json!("pending"))
    );
    let soon = service.get("/agents/claim/status", Some(key)).await;
    assert_eq!(refused(&soon), (429, json!("status_polled")));
    assert_eq!(soon.headers["retry-after"], "60");
    service.clock.advance(Duration::from_mins(1));

    assert_eq!(approve(&service, operator, "wrong words").await, Approval::WrongPhrase);
    assert!(matches!(
        approve(&service, operator, phrase).await,
        Approval::Approved(_)
    ));
    assert_eq!(service.get("/projects", Some(key)).await.status, 200);
    let status = service.get("/agents/claim/status", Some(key)).await;
    assert_eq!(
        (status.status.as_u16(), &status.json()["status"]),
        (200, &json!("approved"))
    );
    assert_eq!(status.json()["id"], claimed["id"]);
}

#[tokio::test]
async fn the_status_is_for_keys_of_claims() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    let path = "/agents/claim/status";
    assert_eq!(service.get(path, Some(&key)).await.status, 404);
    for credential in [None, Some("nonsense"), Some(token.as_str())] {
        assert_eq!(service.get(path, credential).await.status, 401, "{credential:?}");
    }
}

#[tokio::test]
async fn a_claim_expires_after_24_hours_and_its_key_says_so() {
    let service = Service::start().await;
    let operator = operator(&service).await;
    let code = code(&service, operator).await;
    let got = claim(&service, &code, "gauge").await.json();
    let key = got["key"].as_str().unwrap();
    service.clock.advance(24 * HOUR);
    let late = approve(&service, operator, got["phrase"].as_str().unwrap()).await;
    assert!(matches!(late, Approval::Decided(_)), "{late:?}");
    let status = service.get("/agents/claim/status", Some(key)).await;
    assert_eq!(
        (status.status.as_u16(), &status.json()["status"]),
        (200, &json!("expired"))
    );
    let got = service.get("/projects", Some(key)).await;
    assert_eq!((got.status.as_u16(), &got.json()["status"]), (401, &json!("expired")));
}

#[tokio::test]
async fn a_code_is_refused_when_used_over_wrong_or_locked() {
    let service = Service::start().await;
    let operator = operator(&service).await;
    let used = code(&service, operator).await;
    assert_eq!(claim(&service, &used, "gauge").await.status, 202);
    assert_eq!(
        refused(&claim(&service, &used, "other").await),
        (409, json!("claim_code_used"))
    );

    let over = code(&service, operator).await;
    service.clock.advance(HOUR / 4);
    assert_eq!(
        refused(&claim(&service, &over, "other").await),
        (410, json!("claim_code_expired"))
    );

    let code = code(&service, operator).await;
    let wrong = format!("{}{}", &code[..20], "A".repeat(32));
    let unknown = (400, json!("claim_code_unknown"));
    for _ in 0..5 {
        assert_eq!(refused(&claim(&service, &wrong, "other").await), unknown);
    }
    assert_eq!(
        refused(&claim(&service, &code, "other").await),
        (423, json!("claim_code_locked"))
    );
    for text in ["wtc_", "km_abc", "x"] {
        assert_eq!(refused(&claim(&service, text, "other").await), unknown, "{text}");
    }
    assert_eq!(
        refused(&claim(&service, &"x".repeat(65), "other").await),
        (400, json!("invalid_request"))
    );
}

#[tokio::test]
async fn a_stranger_locks_no_code() {
    let service = Service::start().await;
    let operator = operator(&service).await;
    let code = code(&service, operator).await;
    for number in 0..10 {
        // Right second part, wrong first part.
        let guess = format!("wtc_{number:016}{}", &code[20..]);
        assert_eq!(refused(&claim(&service, &guess, "gauge").await).0, 400);
    }
    assert_eq!(claim(&service, &code, "gauge").await.status, 202);
}

#[tokio::test]
async fn attempts_to_claim_count_as_registrations() {
    let service = Service::start().await;
    for _ in 0..20 {
        assert_eq!(claim(&service, "wtc_", "gauge").await.status, 400);
    }
    assert_eq!(
        refused(&claim(&service, "wtc_", "gauge").await),
        (429, json!("registration_limit"))
    );
}

#[tokio::test]
async fn names_keep_the_rules_of_agents_and_leave_the_code_usable() {
    let service = Service::start().await;
    let token = service.operator().await;
    service.agent(&token, "modern-lab1").await;
    let operator = operator(&service).await;
    let code = code(&service, operator).await;
    for (name, status, error) in [
        ("M0dem-labl", 409, "name_taken"),
        ("sluice-official", 400, "name_reserved"),
        ("", 400, "invalid_request"),
        ("a b", 400, "invalid_request"),
        ("x".repeat(61).as_str(), 400, "invalid_request"),
    ] {
        assert_eq!(
            refused(&claim(&service, &code, name).await),
            (status, json!(error)),
            "{name}"
        );
    }
    let long = json!({"code": code, "name": "gauge", "description": "x".repeat(281)}).to_string();
    assert_eq!(service.call("POST", "/agents/claim", None, &long).await.status, 400);
    let most = json!({"code": code, "name": "x".repeat(60), "description": "x".repeat(280)}).to_string();
    assert_eq!(service.call("POST", "/agents/claim", None, &most).await.status, 202);
}

#[tokio::test]
async fn waiting_claims_count_toward_the_limit() {
    let service = Service::start().await;
    let operator = operator(&service).await;
    for number in 0..5 {
        let code = code(&service, operator).await;
        assert_eq!(claim(&service, &code, &format!("gauge-{number}")).await.status, 202);
    }
    let code = code(&service, operator).await;
    assert_eq!(
        refused(&claim(&service, &code, "sixth").await),
        (403, json!("agent_limit"))
    );
    service.clock.advance(24 * HOUR);
}

#[tokio::test]
async fn a_code_of_a_suspended_operator_does_not_work() {
    let service = Service::start().await;
    let operator = operator(&service).await;
    let before = code(&service, operator).await;
    let claimed = claim(&service, &before, "gauge").await.json();
    let key = claimed["key"].as_str().unwrap();
    let second = code(&service, operator).await;
    let now = service.app.clock.now();
    service
        .app
        .store
        .operator_suspend(operator, "spam".to_owned(), now)
        .await
        .unwrap();
    assert_eq!(
        refused(&claim(&service, &second, "other").await),
        (400, json!("claim_code_unknown"))
    );
    for path in ["/projects", "/agents/claim/status"] {
        assert_eq!(
            refused(&service.get(path, Some(key)).await),
            (401, json!("account_suspended")),
            "{path}"
        );
    }
}
