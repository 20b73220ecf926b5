use http::Request;
use oauth::client::{ClientAuth, OAuthClient};
use oauth::redirect::Application;
use oauth::{Scope, Scopes, Storage as _};

use super::*;
use crate::call::visit::SESSION;
use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service, config, limits};

fn location(got: &Got) -> &str {
    got.headers[header::LOCATION].to_str().unwrap()
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let token = browser.form_token().await;
    let body = format!("form_token={token}&label=mine");
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let mut request = browser.request("POST", "/console/tokens", &body);
        request.headers_mut().remove("origin");
        request.headers_mut().insert(name, HeaderValue::from_static(value));
        assert_eq!(service.send(request).await.status, 403, "{name}: {value}");
    }
    for body in ["label=mine", "form_token=&label=mine", "form_token=AAAA&label=mine"] {
        assert_eq!(browser.post("/console/tokens", body).await.status, 403, "{body}");
    }
    // The token of another session is as good as none.
    let other = Browser {
        service: &service,
        session: Some(format!("{SESSION}=wts_other")),
    };
    assert_ne!(
        BrowserRequest::of(&other.request("GET", "/", "").into_parts().0, "").form_token(),
        token
    );
    let operator = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap();
    let accounts = service.app.store.accounts();
    assert_eq!(accounts.tokens_of(operator.id).await.unwrap().len(), 1);
    let made = browser.post("/console/tokens", &body).await;
    assert_eq!(made.status, 200);
    assert!(made.text().contains("wto_"));
    assert_eq!(accounts.tokens_of(operator.id).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_session_is_read_on_pages_only_and_a_header_never_is() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    assert_eq!(browser.get(CONSOLE).await.status, 200);
    // An operation of programs sees no cookie.
    let mut request = browser.request("POST", "/agents", r#"{"name": "tide-1"}"#);
    request
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/json"));
    assert_eq!(service.send(request).await.status, 401);
    // A page sees no header.
    let token = service.operator_at("eve@example.org").await;
    let mut request = Request::builder().uri(CONSOLE).body(axum::body::Body::empty()).unwrap();
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    request.headers_mut().insert("authorization", bearer);
    let refused = service.send(request).await;
    assert_eq!(
        (refused.status.as_u16(), location(&refused)),
        (303, "/signin?next=/console")
    );
}

#[tokio::test]
async fn a_session_ends_with_sign_out_and_with_a_suspension() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let body = format!("form_token={}", browser.form_token().await);
    let operator = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap();
    let now = service.app.clock.now();
    let left = browser.post("/signout", &body).await;
    assert_eq!((left.status.as_u16(), location(&left)), (303, "/"));
    assert!(left.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(left.headers["clear-site-data"], "\"storage\"");
    assert_eq!(browser.get(CONSOLE).await.status, 303);

    let again = Browser::signed_in_again(&service).await;
    assert_eq!(again.get(CONSOLE).await.status, 200);
    service
        .app
        .store
        .operator_suspend(operator.id, "spam".to_owned(), now)
        .await
        .unwrap();
    assert_eq!(again.get(CONSOLE).await.status, 303);
}

#[tokio::test]
async fn pages_cannot_be_framed_kept_or_given_scripts() {
    let service = Service::start().await;
    let browser = Browser {
        service: &service,
        session: None,
    };
    for path in ["/", "/signup", "/signin", "/terms", "/licenses", "/nothing"] {
        let got = browser.get(path).await;
        let header = |name: &str| got.headers[name].to_str().unwrap().to_owned();
        assert!(
            header("content-security-policy").contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert!(!header("content-security-policy").contains("unsafe"), "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        assert!(header("content-type").starts_with("text/html"), "{path}");
    }
    // A program gets the same as before.
    let got = service.get("/licenses", None).await;
    assert_eq!(got.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_link_of_a_letter_changes_nothing_until_its_button_is_pressed() {
    let service = Service::start().await;
    service.operator_at(EMAIL).await;
    let browser = Browser {
        service: &service,
        session: None,
    };
    let asked = browser
        .post("/signin", "email=ada%40example.org&next=%2Fconsole%2Fagents")
        .await;
    assert_eq!(asked.status, 200);
    // The letter cannot carry the path, so the browser does.
    let next = asked.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(next.starts_with("__Host-next=/console/agents;"), "{next}");
    let token = service.mailed_token().await;
    for _ in 0..2 {
        let page = browser
            .get(&format!("/signin/link?token={token}&utm_source=mail"))
            .await;
        assert_eq!(page.status, 200);
        assert!(page.headers.get(header::SET_COOKIE).is_none());
        assert!(page.text().contains(&token));
    }
    let entered = browser.post("/signin/link", &format!("token={token}")).await;
    assert_eq!(entered.status, 303);
    let again = browser.post("/signin/link", &format!("token={token}")).await;
    assert_eq!(again.status, 400);
    assert!(again.headers.get(header::SET_COOKIE).is_none());
}

#[tokio::test]
async fn a_person_comes_back_to_the_request_of_an_app_by_way_of_signing_in() {
    let service = Service::start().await;
    service.operator_at(EMAIL).await;
    let browser = Browser {
        service: &service,
        session: None,
    };
    // A state of the longest length that is sent back, with what a cookie cannot have.
    let state = format!("a,b;{}", "c".repeat(2_044));
    let asked = browser
        .get(&format!("/oauth/authorize?client_id=app_1&state={state}"))
        .await;
    assert_eq!(asked.status, 303);
    let page = browser.get(location(&asked)).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let next = location(&asked).split_once("?next=").unwrap().1;
    let asked = browser
        .post("/signin", &format!("email=ada%40example.org&next={next}"))
        .await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    let cookie = asked.headers[header::SET_COOKIE].to_str().unwrap();
    let path = cookie.split_once('=').unwrap().1.split(';').next().unwrap();
    let escaped = state.replace(',', "%2C").replace(';', "%3B");
    assert_eq!(path, format!("/oauth/authorize?client_id=app_1&state={escaped}"));
}

/// Registers an app and returns its request for the consent of a person.
async fn registered_request(service: &Service) -> String {
    let metadata = r#"{"client_name": "Tide desk", "redirect_uris": ["https://app.example/callback"]}"#;
    let registered = service.call("POST", "/oauth/register", None, metadata).await.json();
    form(&[
        ("client_id", registered["client_id"].as_str().unwrap()),
        ("redirect_uri", "https://app.example/callback"),
        ("response_type", "code"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
        ("resource", "http://sluice.test/mcp"),
    ])
}

/// Returns the form of a person who lets an app act as an agent.
async fn approval(browser: &Browser<'_>, request: &str, agent: &str) -> String {
    form(&[
        ("form_token", &browser.form_token().await),
        ("request", request),
        ("agent", agent),
        ("scopes", "read"),
        ("decision", "approve"),
    ])
}

#[tokio::test]
async fn a_consent_offers_agents_that_can_act_and_places_that_are_left() {
    let mut few = limits();
    few.agents_per_operator = 4;
    let service = Service::with(config(), few).await;
    let token = service.operator_at(EMAIL).await;
    for name in ["tide-1", "surge-1"] {
        service.agent(&token, name).await;
    }
    let browser = Browser::signed_in_again(&service).await;
    let request = registered_request(&service).await;
    let asked = format!("/oauth/authorize?{request}");
    let page = browser.get(&asked).await.text();
    assert!(page.contains("tide-1") && page.contains("surge-1"));
    assert!(page.contains("takes one of 2 places"), "{page}");

    // A claim that waits takes a place.
    let code = form(&[("form_token", &browser.form_token().await)]);
    let code = browser.post("/console/codes", &code).await.text();
    let (_, code) = code.split_once("wtc_").unwrap();
    let code: String = code
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
        .collect();
    let claim = serde_json::json!({"code": format!("wtc_{code}"), "name": "ebb-1"});
    let claimed = service.call("POST", "/agents/claim", None, &claim.to_string()).await;
    assert_eq!(claimed.status, 202, "{}", claimed.text());
    let page = browser.get(&asked).await.text();
    assert!(page.contains("takes the last of your places"), "{page}");

    // An agent that was taken down is not offered, and a form that names it is refused.
    let (store, now) = (&service.app.store, service.app.clock.now());
    let operator = store.operator_by_email(EMAIL).await.unwrap().unwrap().id;
    let agents = store.accounts().agents_of(operator, now).await.unwrap();
    let down = agents
        .iter()
        .find(|agent| agent.name == "tide-1")
        .unwrap()
        .id
        .to_string();
    let report = serde_json::json!({"kind": "agent", "id": "tide-1", "reason": "spam", "detail": "It repeats itself."});
    let reported = service.call("POST", "/reports", None, &report.to_string()).await.json();
    let takedown = types::TakedownId::new(now);
    let uphold = store::Uphold {
        report: reported["id"].as_str().unwrap().parse().unwrap(),
        takedown,
        note: None,
        by: None,
        letters: crate::rules::letters::decision(takedown),
        now,
    };
    drop(store.moderation().uphold(uphold).await.unwrap());
    let page = browser.get(&asked).await.text();
    assert!(!page.contains("tide-1") && page.contains("surge-1"), "{page}");
    let refused = browser
        .post("/oauth/authorize", &approval(&browser, &request, &down).await)
        .await;
    assert_eq!(refused.status, 404, "{}", refused.text());
}

#[tokio::test]
async fn an_agent_that_is_made_with_a_consent_is_a_registration() {
    let mut few = limits();
    few.agent_registrations_per_ip_per_hour = 1;
    let service = Service::with(config(), few).await;
    let browser = Browser::signed_in(&service).await;
    let request = registered_request(&service).await;
    let consent = approval(&browser, &request, "new").await;
    // The same form four times, as from a button that was pressed again, is one registration.
    for _ in 0..4 {
        let agreed = browser.post("/oauth/authorize", &consent).await;
        assert_eq!(agreed.status, 303, "{}", agreed.text());
        assert!(location(&agreed).starts_with("https://app.example/callback?code="));
    }
    let another = approval(&browser, &format!("{request}&state=2"), "new").await;
    assert_eq!(browser.post("/oauth/authorize", &another).await.status, 429);
}

/// Returns the names of the agents of the operator at [`EMAIL`], sorted: those of one instant have no order.
async fn names_of_agents(service: &Service) -> Vec<String> {
    let (store, now) = (&service.app.store, service.app.clock.now());
    let operator = store.operator_by_email(EMAIL).await.unwrap().unwrap().id;
    let agents = store.accounts().agents_of(operator, now).await.unwrap();
    let mut names: Vec<String> = agents.into_iter().map(|agent| agent.name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_consent_that_is_sent_four_times_makes_one_agent() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let request = registered_request(&service).await;
    let consent = approval(&browser, &request, "new").await;
    let sent = (0..4).map(|_| browser.post("/oauth/authorize", &consent));
    for agreed in futures_util::future::join_all(sent).await {
        assert_eq!(agreed.status, 303, "{}", agreed.text());
        assert!(location(&agreed).starts_with("https://app.example/callback?code="));
    }
    assert_eq!(names_of_agents(&service).await, ["tide-desk"]);
    // Another request of the app is another consent.
    let another = approval(&browser, &format!("{request}&state=2"), "new").await;
    assert_eq!(browser.post("/oauth/authorize", &another).await.status, 303);
    assert_eq!(names_of_agents(&service).await, ["tide-desk", "tide-desk-2"]);
    // So is the same request on another day.
    service.clock.advance(std::time::Duration::from_hours(24));
    let browser = Browser::signed_in_again(&service).await;
    let consent = approval(&browser, &request, "new").await;
    assert_eq!(browser.post("/oauth/authorize", &consent).await.status, 303);
    assert_eq!(names_of_agents(&service).await.len(), 3);
}

#[tokio::test]
async fn an_app_that_is_called_like_the_service_is_refused() {
    let service = Service::start().await;
    for name in ["Sluice", "\u{405}luice Support", "admin", "S|uice"] {
        let metadata = serde_json::json!({"client_name": name, "redirect_uris": ["https://app.example/callback"]});
        let refused = service
            .call("POST", "/oauth/register", None, &metadata.to_string())
            .await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["error"]),
            (400, &serde_json::json!("invalid_client_metadata")),
            "{name}"
        );
    }
    // One that registered before the name was reserved, and before hosts had to be plain, gets no consent.
    service.operator_at(EMAIL).await;
    let browser = Browser::signed_in_again(&service).await;
    for (id, name, host) in [
        ("app_a", "Sluice", "app.example"),
        ("app_b", "Tide desk", "a;b.example"),
    ] {
        let client = OAuthClient {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            uri: None,
            redirect_uris: vec![format!("https://{host}/callback")],
            application: Application::Native,
            scopes: Scopes::of(&[Scope::Read]),
            may_refresh: true,
            auth: ClientAuth::None,
            registered_at: service.app.clock.now(),
        };
        service.app.store.add_client(&client).await.unwrap();
        let request = form(&[
            ("client_id", id),
            ("redirect_uri", &format!("https://{host}/callback")),
            ("response_type", "code"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
            ("resource", "http://sluice.test/mcp"),
        ]);
        let asked = browser.get(&format!("/oauth/authorize?{request}")).await;
        assert_eq!(asked.status, 400, "{id}: {}", asked.text());
        let policy = asked.headers["content-security-policy"].to_str().unwrap();
        assert!(!policy.contains("b.example"), "{policy}");
    }
}

#[tokio::test]
async fn a_person_is_told_what_to_do_about_an_app_that_is_not_known_any_more() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let asked = browser.get("/oauth/authorize?client_id=app_nobody").await;
    assert_eq!(asked.status, 400);
    let page = asked.text();
    assert!(
        page.contains("remove this service in the app and add it again"),
        "{page}"
    );
}

#[tokio::test]
async fn a_person_is_told_why_the_description_of_an_app_cannot_be_used() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let asked = browser
        .get("/oauth/authorize?client_id=https%3A%2F%2Fapp.invalid%2Fapp.json")
        .await;
    assert_eq!(asked.status, 400);
    let page = asked.text();
    assert!(page.contains("description at app.invalid cannot be used"), "{page}");
    assert!(page.contains("its host is a name of private networks"), "{page}");
}

#[tokio::test]
async fn a_program_that_an_answer_goes_to_is_named_by_its_scheme() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let uri = "com.evil.app://github.com/callback";
    let metadata = serde_json::json!({"client_name": "Tide desk", "redirect_uris": [uri]});
    let registered = service
        .call("POST", "/oauth/register", None, &metadata.to_string())
        .await
        .json();
    let request = form(&[
        ("client_id", registered["client_id"].as_str().unwrap()),
        ("redirect_uri", uri),
        ("response_type", "code"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
        ("resource", "http://sluice.test/mcp"),
    ]);
    let page = browser.get(&format!("/oauth/authorize?{request}")).await.text();
    let (_, told) = page.split_once("Sends you back to").unwrap();
    let told: String = told.chars().take(60).collect();
    assert!(told.contains(">com.evil.app:<"), "{told}");
}

#[tokio::test]
async fn an_address_without_account_is_answered_like_one_with() {
    let service = Service::start().await;
    service.operator_at(EMAIL).await;
    let browser = Browser {
        service: &service,
        session: None,
    };
    let known = browser.post("/signin", "email=ada%40example.org").await;
    let unknown = browser.post("/signin", "email=eve%40example.org").await;
    assert_eq!(known.status, unknown.status);
    assert_eq!(known.text().replace("ada@", "eve@"), unknown.text());
}

#[test]
fn who_was_signed_out_comes_back_to_the_page_of_the_form() {
    for (form, page) in [
        ("/console/approvals/019a/yes", Some("/console/approvals/019a")),
        ("/console/settings/name", Some("/console/settings")),
        ("/console/datasets/tides/archive", Some("/console/datasets/tides")),
        ("/console/datasets/tides", Some("/console/datasets/tides")),
        ("/console/knowledge/019a/price", Some("/console/knowledge/019a")),
        ("/console/tokens", None),
        ("/projects/tides/sql", None),
    ] {
        assert_eq!(page_of_form(form), page, "{form}");
    }
}
