use serde_json::json;

use crate::testing::{Service, config, limits};

async fn create(service: &Service, token: &str, name: &str) -> (u16, serde_json::Value) {
    let got = service
        .call("POST", "/agents", Some(token), &json!({"name": name}).to_string())
        .await;
    (got.status.as_u16(), got.json())
}

#[tokio::test]
async fn an_agent_is_created_with_a_key_that_works() {
    let service = Service::start().await;
    let token = service.operator().await;
    let body = json!({"name": "Bob.the-2nd_", "walletAddress": "0xabc"}).to_string();
    let got = service.call("POST", "/agents", Some(&token), &body).await;
    assert_eq!(got.status, 201);
    let created = got.json();
    assert_eq!(
        (&created["name"], &created["walletAddress"]),
        (&json!("Bob.the-2nd_"), &json!("0xabc"))
    );
    let key = created["key"].as_str().unwrap();
    assert!(key.starts_with("km_"));
    assert_eq!(service.get("/projects", Some(key)).await.status, 200);
}

#[tokio::test]
async fn a_name_that_looks_like_another_is_taken_for_every_operator() {
    let service = Service::start().await;
    let (one, two) = (service.operator().await, service.operator().await);
    assert_eq!(create(&service, &one, "modern-lab1").await.0, 201);
    for name in ["modern-lab1", "Modern-Lab1", "modem-labl", "M0dern-lab1"] {
        let (status, body) = create(&service, &two, name).await;
        assert_eq!((status, &body["error"]), (409, &json!("name_taken")), "{name}");
    }
}

#[tokio::test]
async fn names_that_only_resemble_each_other_are_two_names() {
    let service = Service::start().await;
    let token = service.operator().await;
    for name in ["fiat-bot", "flat-bot", "wave", "vvave"] {
        let (status, body) = create(&service, &token, name).await;
        assert_eq!(status, 201, "{name}: {body}");
    }
}

#[tokio::test]
async fn an_empty_wallet_address_is_none() {
    let service = Service::start().await;
    let token = service.operator().await;
    let body = json!({"name": "bob", "walletAddress": ""}).to_string();
    let got = service.call("POST", "/agents", Some(&token), &body).await;
    assert_eq!((got.status.as_u16(), got.json().get("walletAddress")), (201, None));
}

#[tokio::test]
async fn a_name_that_breaks_a_rule_is_refused_by_that_rule() {
    let service = Service::start().await;
    let token = service.operator().await;
    for name in ["", "a b", "é", "a/b", &"x".repeat(61)] {
        let (status, body) = create(&service, &token, name).await;
        assert_eq!((status, &body["details"][0]["path"]), (400, &json!("/name")), "{name}");
    }
    for name in ["admin", "Sluice", "s1uice", "0fficial"] {
        let (status, body) = create(&service, &token, name).await;
        assert_eq!((status, &body["error"]), (400, &json!("name_reserved")), "{name}");
    }
}

#[tokio::test]
async fn an_operator_has_at_most_five_agents() {
    let service = Service::start().await;
    let token = service.operator().await;
    for number in 0..5 {
        assert_eq!(create(&service, &token, &format!("agent-{number}x")).await.0, 201);
    }
    let (status, body) = create(&service, &token, "one-more").await;
    assert_eq!((status, &body["error"]), (403, &json!("agent_limit")));
}

#[tokio::test]
async fn every_attempt_to_register_counts_toward_the_limit_of_an_address() {
    let mut few = limits();
    few.agent_registrations_per_ip_per_hour = 4;
    let service = Service::with(config(), few).await;
    let token = service.operator().await;
    assert_eq!(create(&service, &token, "one").await.0, 201);
    for _ in 0..2 {
        assert_eq!(create(&service, &token, "one").await.0, 409);
    }
    assert_eq!(create(&service, &token, "admin").await.0, 400);
    for name in ["one", "admin", "two"] {
        assert_eq!(create(&service, &token, name).await.0, 429, "{name}");
    }
    let (status, body) = create(&service, &token, "three").await;
    assert_eq!((status, &body["error"]), (429, &json!("registration_limit")));
    assert_eq!(body["retryAfter"], 3_601);
}
