use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};
use store::CONSOLE_LASTS;
use types::{AgentId, OperatorId};

use crate::call::visit::SESSION;
use crate::ops::tools::AT_CONSOLE;
use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service};

/// A person with a page that is connected to an agent.
struct Scene<'s> {
    browser: Browser<'s>,
    token: String,
    operator: OperatorId,
    agent: AgentId,
}

impl<'s> Scene<'s> {
    async fn connected(service: &'s Service) -> Self {
        let browser = Browser::signed_in(service).await;
        let operator = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap().id;
        let token = browser.form_token().await;
        let agent = connect(
            &browser,
            &token,
            &[("agent", "new"), ("name", "tide-gauge"), ("agreed", "yes")],
        )
        .await;
        Self {
            browser,
            token,
            operator,
            agent: agent.unwrap(),
        }
    }

    fn request(&self, operation: &str, body: &Value) -> http::Request<axum::body::Body> {
        let path = format!("/console/act/{operation}");
        let mut request = self.browser.request("POST", &path, &body.to_string());
        let headers = request.headers_mut();
        headers.insert("accept", HeaderValue::from_static("*/*"));
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("x-agent", HeaderValue::from_str(&self.agent.to_string()).unwrap());
        headers.insert("x-form-token", HeaderValue::from_str(&self.token).unwrap());
        request
    }

    async fn act(&self, operation: &str, body: &Value) -> Got {
        self.browser.service.send(self.request(operation, body)).await
    }

    /// Calls with other headers.
    async fn with(&self, operation: &str, change: impl FnOnce(&mut HeaderMap)) -> Got {
        let mut request = self.request(operation, &dataset("changed-headers"));
        change(request.headers_mut());
        self.browser.service.send(request).await
    }
}

/// Agrees on the page and returns the agent, or `None` if the form is shown again.
async fn connect(browser: &Browser<'_>, token: &str, fields: &[(&str, &str)]) -> Option<AgentId> {
    let fields: Vec<_> = fields.iter().copied().chain([("form_token", token)]).collect();
    let answer = browser.post("/console/publish/connect", &form(&fields)).await;
    let to = answer.headers.get(header::LOCATION)?.to_str().unwrap();
    Some(to.strip_prefix("/console/publish?agent=").unwrap().parse().unwrap())
}

fn dataset(slug: &str) -> Value {
    json!({
        "slug": slug, "title": "Tide levels", "readme": "Water levels read from gauges on site.",
        "visibility": "private", "schemaDef": {"fields": [{"name": "gauge", "type": "string"}]},
    })
}

fn refused(got: &Got, status: u16, error: &str) {
    let body = String::from_utf8_lossy(&got.bytes);
    assert_eq!(got.status, status, "{body}");
    assert_eq!(got.json()["error"], error, "{body}");
}

#[tokio::test]
async fn a_page_acts_as_the_agent_that_its_person_agreed_to_and_the_trail_names_both() {
    let service = Service::start().await;
    let scene = Scene::connected(&service).await;
    let made = scene.act("create_dataset", &dataset("tide-levels")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(
        made.headers.get("access-control-allow-origin"),
        None,
        "no other page reads it"
    );
    // Members of the path and the query are members of the body.
    let seen = scene.act("dataset_info", &json!({"slug": "tide-levels"})).await;
    assert_eq!(
        (seen.status.as_u16(), &seen.json()["slug"]),
        (200, &json!("tide-levels"))
    );
    let sent = json!({"slug": "tide-levels", "records": [{"gauge": "A"}]});
    let sent = scene.act("contribute_records", &sent).await;
    assert_eq!(sent.status, 201, "{}", sent.text());
    let followed = json!({"slug": "tide-levels", "id": sent.json()["id"], "wait": 0});
    assert_eq!(scene.act("contribution_status", &followed).await.status, 200);
    let bad = scene.act("create_dataset", &json!({"slug": "x"})).await;
    refused(&bad, 400, "invalid_request");

    let trail = service
        .app
        .store
        .flow()
        .audit_of(scene.operator, None, 10)
        .await
        .unwrap();
    let made = trail
        .iter()
        .find(|entry| entry.operation == "console/create_dataset")
        .unwrap();
    assert_eq!(made.actor, Some(scene.agent.to_string()));
    assert_eq!(made.operator, Some(scene.operator));
    assert_eq!(made.subject.as_deref(), Some("tide-levels"));
    assert!(!trail.iter().any(|entry| entry.operation == "create_dataset"));
}

#[tokio::test]
async fn only_the_own_page_with_the_token_of_its_session_acts_and_only_by_what_is_listed() {
    let service = Service::start().await;
    let scene = Scene::connected(&service).await;
    let value = HeaderValue::from_static;

    // An operation that is not listed is unknown, whoever asks; so is none at all.
    for operation in ["buy_dataset", "update_dataset", "my_quota", "delete_dataset", "nothing"] {
        assert!(!AT_CONSOLE.contains(&operation));
        refused(&scene.act(operation, &json!({})).await, 404, "not_found");
    }
    let mut get = scene.request("dataset_info", &json!({}));
    *get.method_mut() = http::Method::GET;
    refused(&service.send(get).await, 405, "method_not_allowed");

    // The browser names the page, once, and it is of this service.
    for origin in ["https://evil.example", "null", "http://sluice.test.evil.example"] {
        let got = scene.with("create_dataset", |headers| {
            headers.insert("origin", value(origin));
        });
        refused(&got.await, 403, "wrong_origin");
    }
    let got = scene.with("create_dataset", |headers| {
        headers.remove("origin");
        headers.insert("sec-fetch-site", value("same-origin"));
    });
    refused(&got.await, 403, "wrong_origin");
    let got = scene.with("create_dataset", |headers| {
        headers.append("origin", value("https://evil.example"));
    });
    refused(&got.await, 403, "wrong_origin");

    // A form sends no JSON, and says so.
    for media_type in [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
    ] {
        let got = scene.with("create_dataset", |headers| {
            headers.insert("content-type", value(media_type));
        });
        refused(&got.await, 415, "unsupported_media_type");
    }
    let got = scene.with("create_dataset", |headers| drop(headers.remove("content-type")));
    refused(&got.await, 415, "unsupported_media_type");

    // The token is that of the session, also where nothing is changed.
    for operation in ["create_dataset", "dataset_info", "list_uploads", "contribution_status"] {
        let got = scene.with(operation, |headers| drop(headers.remove("x-form-token")));
        refused(&got.await, 403, "foreign_form");
        let got = scene.with(operation, |headers| drop(headers.insert("x-form-token", value("AAAA"))));
        refused(&got.await, 403, "foreign_form");
    }
    // The session is that of the cookie and nothing else.
    let got = scene.with("create_dataset", |headers| drop(headers.remove("cookie")));
    refused(&got.await, 401, "unauthenticated");
    let unknown = HeaderValue::from_str(&format!("{SESSION}=wts_other")).unwrap();
    let got = scene.with("create_dataset", |headers| drop(headers.insert("cookie", unknown)));
    refused(&got.await, 401, "unauthenticated");
    assert_eq!(
        service
            .app
            .store
            .project_by_slug("changed-headers", Some(scene.operator))
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn a_session_is_no_agent_of_another_person_nor_one_that_it_is_not_connected_to() {
    let service = Service::start().await;
    let scene = Scene::connected(&service).await;
    // An agent of somebody else, connected or not, and ids of nothing.
    let token = service.operator_at("eve@example.org").await;
    service.agent(&token, "eves").await;
    let eve = service
        .app
        .store
        .operator_by_email("eve@example.org")
        .await
        .unwrap()
        .unwrap()
        .id;
    let accounts = service.app.store.accounts();
    let now = service.app.clock.now();
    let eves = accounts.agents_of(eve, now).await.unwrap().remove(0).id;
    for connected in [false, true] {
        if connected {
            assert!(service.app.store.oauth().console_connect(eve, eves, now).await.unwrap());
        }
        for id in [eves.to_string(), "new".to_owned(), String::new()] {
            let id = HeaderValue::from_str(&id).unwrap();
            let got = scene.with("create_dataset", |headers| drop(headers.insert("x-agent", id)));
            refused(&got.await, 403, "not_connected");
        }
    }
    let got = scene.with("create_dataset", |headers| drop(headers.remove("x-agent")));
    refused(&got.await, 403, "not_connected");
    // Consent for another's agent is none.
    assert_eq!(
        connect(
            &scene.browser,
            &scene.token,
            &[("agent", &eves.to_string()), ("agreed", "yes")]
        )
        .await,
        None
    );
    // An agent of the own without consent.
    let own = service
        .app
        .store
        .accounts()
        .agents_of(scene.operator, now)
        .await
        .unwrap();
    assert_eq!(own.len(), 1);
    assert_eq!(
        connect(&scene.browser, &scene.token, &[("agent", "new"), ("name", "second")]).await,
        None,
        "not ticked"
    );
    assert_eq!(
        accounts.agents_of(scene.operator, now).await.unwrap().len(),
        1,
        "nothing was made"
    );
}

#[tokio::test]
async fn the_end_of_a_connection_of_an_agent_or_of_an_account_ends_the_next_call() {
    let service = Service::start().await;
    let scene = Scene::connected(&service).await;
    let (store, read) = (&service.app.store, json!({"slug": "tide-levels"}));
    assert_eq!(scene.act("create_dataset", &dataset("tide-levels")).await.status, 201);
    assert_eq!(scene.act("dataset_info", &read).await.status, 200);

    // The person ends it on the page of apps, where it is shown.
    let apps = scene.browser.get("/console/apps").await.text();
    assert!(
        apps.contains("Console") && apps.contains("/console/act") && apps.contains("tide-gauge"),
        "{apps}"
    );
    let connection = store
        .oauth()
        .connections_of(scene.operator, service.app.clock.now())
        .await
        .unwrap()
        .remove(0);
    let body = form(&[("form_token", &scene.token)]);
    let ended = scene
        .browser
        .post(&format!("/console/apps/{}/revoke", connection.id), &body)
        .await;
    assert_eq!(ended.status, 303);
    refused(&scene.act("dataset_info", &read).await, 403, "not_connected");

    // Another consent, and 30 days without use.
    let again = [("agent", &*scene.agent.to_string()), ("agreed", "yes")];
    assert_eq!(connect(&scene.browser, &scene.token, &again).await, Some(scene.agent));
    assert_eq!(scene.act("dataset_info", &read).await.status, 200);
    service.clock.advance(CONSOLE_LASTS);
    let scene = Scene {
        browser: Browser::signed_in_again(&service).await,
        ..scene
    };
    let scene = Scene {
        token: scene.browser.form_token().await,
        ..scene
    };
    refused(&scene.act("dataset_info", &read).await, 403, "not_connected");

    // The agent is removed.
    assert_eq!(connect(&scene.browser, &scene.token, &again).await, Some(scene.agent));
    assert_eq!(scene.act("dataset_info", &read).await.status, 200);
    let now = service.app.clock.now();
    assert!(
        store
            .accounts()
            .agent_remove(scene.operator, scene.agent, now)
            .await
            .unwrap()
    );
    refused(&scene.act("dataset_info", &read).await, 403, "not_connected");

    // The account is suspended, which ends its sessions.
    let next = connect(
        &scene.browser,
        &scene.token,
        &[("agent", "new"), ("name", "next"), ("agreed", "yes")],
    )
    .await;
    let scene = Scene {
        agent: next.unwrap(),
        ..scene
    };
    assert_eq!(scene.act("dataset_info", &read).await.status, 200);
    store
        .operator_suspend(scene.operator, "spam".to_owned(), now)
        .await
        .unwrap();
    refused(&scene.act("dataset_info", &read).await, 401, "unauthenticated");
}

#[tokio::test]
async fn a_call_of_a_page_counts_as_a_call() {
    let limits = crate::config::Limits {
        calls_per_ip_per_minute: std::num::NonZeroU32::new(8).unwrap(),
        ..crate::testing::limits()
    };
    let service = Service::with(crate::testing::config(), limits).await;
    let browser = Browser::signed_out(&service);
    let scene = Scene {
        browser,
        token: String::new(),
        operator: OperatorId::new(service.app.clock.now()),
        agent: AgentId::new(service.app.clock.now()),
    };
    for _ in 0..8 {
        refused(&scene.act("nothing", &json!({})).await, 404, "not_found");
    }
    refused(&scene.act("nothing", &json!({})).await, 429, "rate_limited");
}
