//! OAuth 2.1: apps of others connect by the published endpoints, and attacks on each step fail.
//!
//! Invariant: the service is the process with its database; the person acts by the pages of the console.

use std::path::Path;

use reqwest::Url;
use serde_json::json;
use tests::agents::Agents;
use tests::apps::{App, REDIRECT, Wish, parameter};
use tests::browser::{Browser, By, Look};
use tests::{Answer, Http, Options};

use types::OperatorId;

use crate::accounts::{Site, on_each};
use crate::console::judge_answer;

/// Scopes of an app that reads and writes with a new agent.
const READ_WRITE: Wish<'static> = Wish {
    resource: "/mcp",
    scopes: "read write",
    agent: "new",
};

/// Starts a service with a person, and returns the session of the person.
async fn start(url: Option<&str>) -> (Site, OperatorId, String) {
    let site = Site::start(url, |options: Options| options).await;
    let (operator, session) = site.signed_in("ada@example.org").await;
    (site, operator, session)
}

/// Asks for the tools at an endpoint with a token.
async fn tools(http: &Http, path: &str) -> Answer {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    http.post(path, &message).await
}

/// Calls a tool at `/mcp`.
async fn create_dataset(http: &Http, slug: &str) -> Answer {
    let arguments = tests::world::project_body(slug);
    let params = json!({"name": "create_dataset", "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    http.post("/mcp", &message).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_others_complete_the_flows() {
    let Some(agents) = Agents::installed() else { return };
    on_each(async |url| {
        let (site, _, session) = start(url.as_deref()).await;
        for (script, scope, resource) in [
            ("openid_client.mjs", "read write", "/mcp"),
            ("oauth4webapi.mjs", "read", "/mcp/directory"),
            ("authlib_app.py", "read write", "/mcp"),
        ] {
            let mut client = agents.start(script, &json!({"base": site.http.base()})).await;
            let asked = client.hear("authorize").await;
            let callback = agree(&site, &session, asked.as_str().unwrap()).await;
            client.tell(&json!({"callback": callback})).await;
            let done = client.hear("done").await;
            assert_eq!(
                (&done["scope"], &done["before"], &done["after"]),
                (&json!(scope), &json!(200), &json!(401)),
                "{script} at {resource}: {done}"
            );
        }
    })
    .await;
}

/// Lets the person agree to a request, and returns the address that the browser goes to.
pub(crate) async fn agree(site: &Site, session: &str, asked: &str) -> String {
    let url = Url::parse(asked).unwrap();
    // A request without scopes asks to read, and a person who changes nothing lets no app spend.
    let scope = url.query_pairs().find(|(name, _)| name == "scope");
    let scope = scope.map_or_else(|| "read".to_owned(), |(_, scope)| scope.into_owned());
    agree_to(site, session, asked, &scope.replace(" spend", "")).await
}

/// Lets the person tick scopes and agree, and returns the address that the browser goes to.
pub(crate) async fn agree_to(site: &Site, session: &str, asked: &str, scope: &str) -> String {
    let asked = Url::parse(asked).unwrap();
    let app = App::known(site.http.base(), "");
    let path = format!("{}?{}", asked.path(), asked.query().unwrap());
    let fields = app.fields(session, &path, scope, "new").await;
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = app.browse(session, "/oauth/authorize", Some(&fields)).await.expect(303);
    answer.header("location").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_acts_as_its_agent_within_its_scopes_until_it_ends() {
    on_each(async |url| {
        let (site, operator, session) = start(url.as_deref()).await;
        let base = site.http.base().to_owned();
        let app = App::register(&base, "Tide desk").await;
        let answer = app.answer(&session, &READ_WRITE).await;
        assert_eq!(parameter(&answer, "iss"), base);
        assert_eq!(parameter(&answer, "state"), "s t&a=te");
        let tokens = app
            .send("/oauth/token", &app.exchange(parameter(&answer, "code")))
            .await
            .expect(200);
        assert_eq!(tokens.header("cache-control"), "no-store");
        assert_eq!(
            (
                tokens.text("/token_type"),
                tokens.text("/scope"),
                &tokens.body["expires_in"]
            ),
            ("Bearer", "read write", &json!(3_600))
        );
        let access = site.http.with(tokens.text("/access_token"));
        let made = create_dataset(&access, "tides").await.expect(200);
        assert_eq!(made.body["result"]["isError"], false, "{}", made.body);
        let agents = app.browse(&session, "/console/agents", None).await.expect(200);
        assert!(String::from_utf8_lossy(&agents.bytes).contains("tide-desk"));
        // The token is for tools of one endpoint, and for no row of REST but those that name it.
        tools(&access, "/mcp/directory").await.expect(401);
        access.get("/projects").await.expect(401);
        // Fewer scopes do less.
        let reader = app
            .connect(
                &session,
                &Wish {
                    scopes: "read",
                    ..READ_WRITE
                },
            )
            .await;
        let refused = create_dataset(&site.http.with(reader.text("/access_token")), "more")
            .await
            .expect(403);
        assert!(
            refused.header("www-authenticate").contains("scope=\"read write\""),
            "{refused:?}"
        );
        // An agent that is removed takes its connections along.
        let page = app.browse(&session, "/console/apps", None).await.expect(200);
        assert!(String::from_utf8_lossy(&page.bytes).contains("Tide desk"));
        site.remove_agents(operator).await;
        tools(&access, "/mcp").await.expect(401);
        assert_eq!(
            app.renew(tokens.text("/refresh_token")).await.expect(400).error(),
            "invalid_grant"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_and_refresh_tokens_work_once_and_their_theft_ends_the_connection() {
    on_each(async |url| {
        let (site, _, session) = start(url.as_deref()).await;
        let app = App::register(site.http.base(), "Tide desk").await;
        let other = App::register(site.http.base(), "Thief").await;
        // A code is for its client, its verifier and its redirect.
        let code = app.code(&session, &READ_WRITE).await;
        let with = |name: &'static str, value: &'static str| {
            let form = app.exchange(&code).into_iter();
            form.map(move |(other, kept)| (other, if other == name { value } else { kept }))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            other.send("/oauth/token", &other.exchange(&code)).await.error(),
            "invalid_grant"
        );
        let wrong = "another-verifier-that-also-has-more-than-43-characters";
        assert_eq!(
            app.send("/oauth/token", &with("code_verifier", wrong)).await.error(),
            "invalid_grant"
        );
        let elsewhere = "http://127.0.0.1:4712/callback";
        assert_eq!(
            app.send("/oauth/token", &with("redirect_uri", elsewhere)).await.error(),
            "invalid_grant"
        );
        // A client that redeems a code sixty-four times at once gets tokens once, which stay good. Another with its code,
        // but not its verifier, ends them.
        let code = app.code(&session, &READ_WRITE).await;
        let form = app.exchange(&code);
        let tries = (0..64).map(|_| app.send("/oauth/token", &form));
        let answers = futures_util::future::join_all(tries).await;
        let given: Vec<_> = answers.iter().filter(|answer| answer.code() == 200).collect();
        assert_eq!(given.len(), 1, "{answers:?}");
        let access = site.http.with(given[0].text("/access_token"));
        tools(&access, "/mcp").await.expect(200);
        let mut stolen = form.clone();
        for (name, value) in &mut stolen {
            if *name == "code_verifier" {
                *value = wrong;
            }
        }
        assert_eq!(app.send("/oauth/token", &stolen).await.error(), "invalid_grant");
        tools(&access, "/mcp").await.expect(401);
        // A refresh token that was used twice, with a call of its successor between, ends the family.
        let first = app.connect(&session, &READ_WRITE).await;
        let second = app.renew(first.text("/refresh_token")).await.expect(200);
        let third = app.renew(second.text("/refresh_token")).await.expect(200);
        tools(&site.http.with(third.text("/access_token")), "/mcp")
            .await
            .expect(200);
        assert_eq!(
            app.renew(first.text("/refresh_token")).await.expect(400).error(),
            "invalid_grant"
        );
        tools(&site.http.with(third.text("/access_token")), "/mcp")
            .await
            .expect(401);
        assert_eq!(
            app.renew(third.text("/refresh_token")).await.expect(400).error(),
            "invalid_grant"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_between_consent_and_tokens_lets_the_app_start_again() {
    for point in ["consent.code", "token.rows", "token.commit"] {
        let site = Site::start(None, |options| options.with("SLUICE_FAULT_POINT", point)).await;
        let (_, session) = site.signed_in("ada@example.org").await;
        let app = App::register(site.http.base(), "Tide desk").await;
        let cut = async |path: &str, form: &[(&str, &str)]| {
            let sent = app.try_browse(site.http.base(), &session, path, Some(form)).await;
            assert!(sent.is_err(), "{point}: {sent:?}");
        };
        let mut code = None;
        if point == "consent.code" {
            let fields = app.consent(&session, &READ_WRITE).await;
            let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            cut("/oauth/authorize", &fields).await;
        } else {
            let given = app.code(&session, &READ_WRITE).await;
            cut("/oauth/token", &app.exchange(&given)).await;
            code = Some(given);
        }
        let site = site.start_again().await;
        let app = App::known(site.http.base(), &app.id);
        // A code that was not used works; one whose tokens nobody got is used up.
        if let Some(code) = code {
            let again = app.send("/oauth/token", &app.exchange(&code)).await;
            if point == "token.rows" {
                let access = site.http.with(again.expect(200).text("/access_token"));
                tools(&access, "/mcp").await.expect(200);
            } else {
                assert_eq!(again.expect(400).error(), "invalid_grant");
            }
        }
        let tokens = app.connect(&session, &READ_WRITE).await.expect(200);
        let access = site.http.with(tokens.text("/access_token"));
        create_dataset(&access, "tides").await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_leads_nowhere_that_the_app_did_not_register() {
    let (site, _, session) = start(None).await;
    let app = App::register(site.http.base(), "Tide desk").await;
    let asked = |name: &str, value: &str| {
        let mut query = app.query(&READ_WRITE);
        query.retain(|(other, _)| *other != name);
        let name = [
            "client_id",
            "redirect_uri",
            "code_challenge_method",
            "resource",
            "scope",
            "response_type",
            "code_challenge",
        ]
        .into_iter()
        .find(|known| *known == name)
        .unwrap();
        query.push((name, value.to_owned()));
        App::path(&query)
    };
    // Until the client and the address are known to be good, nobody is sent anywhere.
    for (name, value) in [
        ("client_id", "app_nobody"),
        ("client_id", ""),
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:4711/callback/../evil"),
        ("redirect_uri", "http://127.0.0.1:4711/callback?next=evil"),
        ("redirect_uri", "http://127.0.0.1@evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1.evil.example/callback"),
        ("redirect_uri", "//evil.example/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", ""),
    ] {
        let answer = app.browse(&session, &asked(name, value), None).await.expect(400);
        assert_eq!(answer.header("location"), "", "{name}={value}");
    }
    // A loopback port may differ (RFC 8252 section 7.3).
    let other_port = app
        .browse(&session, &asked("redirect_uri", "http://127.0.0.1:9/callback"), None)
        .await;
    other_port.expect(200);
    // After that, the app learns of a wrong request, and each answer says who gave it.
    for (name, value, error) in [
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("response_type", "token", "unsupported_response_type"),
    ] {
        let answer = app.browse(&session, &asked(name, value), None).await.expect(303);
        let location = Url::parse(answer.header("location")).unwrap();
        assert!(location.as_str().starts_with(REDIRECT), "{location}");
        let pairs: Vec<(String, String)> = location.query_pairs().into_owned().collect();
        assert_eq!(
            (
                parameter(&pairs, "error"),
                parameter(&pairs, "iss"),
                parameter(&pairs, "code")
            ),
            (error, site.http.base(), ""),
            "{name}={value}"
        );
    }
    // What does not exist is left out, as spending is at the directory, and no person spends unasked.
    for (resource, scopes, offered) in [
        ("/mcp", "openid read everything", &["read"][..]),
        ("/mcp", "read spend", &["read", "spend"]),
        ("/mcp/directory", "read write spend", &["read", "write"]),
    ] {
        let query = app.query(&Wish {
            resource,
            scopes,
            ..READ_WRITE
        });
        let page = app.browse(&session, &App::path(&query), None).await.expect(200);
        let page = String::from_utf8_lossy(&page.bytes).into_owned();
        for scope in ["read", "write", "spend"] {
            let offer = format!("name=\"scopes\" value=\"{scope}\"");
            assert_eq!(
                page.contains(&offer),
                offered.contains(&scope),
                "{scopes} at {resource}: {scope}"
            );
        }
        assert!(!page.contains("value=\"spend\" checked"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_grants_what_the_app_asked_for_and_no_more() {
    let (site, _, session) = start(None).await;
    let app = App::register(site.http.base(), "Tide desk").await;
    // The person's choice is held against the request, which the form carries as it was.
    let query = app.query(&Wish {
        scopes: "read",
        ..READ_WRITE
    });
    let fields = app.fields(&session, &App::path(&query), "read", "new").await;
    let change = |name: &str, value: &str| {
        let mut changed = fields.clone();
        for (other, kept) in &mut changed {
            if *other == name {
                *kept = value.to_owned();
            }
        }
        changed
    };
    let send = async |fields: Vec<(&'static str, String)>| {
        let form: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        app.browse(&session, "/oauth/authorize", Some(&form)).await
    };
    send(change("scopes", "write")).await.expect(400);
    send(change("form_token", "stolen")).await.expect(403);
    send(change("agent", "01a20be9-a44e-70cd-961f-6c792beebef2"))
        .await
        .expect(404);
    let denied = send(change("decision", "deny")).await.expect(303);
    assert!(
        denied.header("location").contains("error=access_denied"),
        "{}",
        denied.header("location")
    );
    // A page of another site can neither frame the question nor send the form.
    let page = app.browse(&session, &App::path(&query), None).await.expect(200);
    assert_eq!(page.header("x-frame-options"), "DENY");
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self' http://127.0.0.1:4711;"),
        "{policy}"
    );
    let form: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let foreign = app
        .browse_from("https://evil.example", &session, "/oauth/authorize", Some(&form))
        .await;
    foreign.expect(403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_connects_and_disconnects_an_app_in_a_browser() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser/apps");
    let Some(browser) = Browser::start(&folder) else { return };
    let (site, _, session) = start(None).await;
    let base = site.http.base().to_owned();
    let app = App::register(&base, "Tide desk").await;
    // The app listens, as a program on the person's machine does.
    let listening = browser.site("127.0.0.1", &[("/callback", "<h1>Connected</h1>")]);
    let mut query = app.query(&READ_WRITE);
    for (name, value) in &mut query {
        if *name == "redirect_uri" {
            *value = format!("{listening}/callback");
        }
    }
    let person = browser.person(Look::default());
    let page = person.page();
    // Without a session the person signs in first, and comes back to the question.
    let visit = page.goto(format!("{base}{}", App::path(&query)));
    assert!(visit.url.starts_with(&format!("{base}/signin?next=")), "{}", visit.url);
    person.put_cookie(&base.replace("http:", "https:"), "__Host-sluice", &session);
    page.goto(format!("{base}{}", App::path(&query)));
    page.see(By::Heading("Connect Tide desk?"));
    judge_answer(&page, "consent");
    page.picture(&folder.join("consent.png"));
    page.submit(By::Button("Connect"));
    page.see(By::Heading("Connected"));
    let arrived = Url::parse(&page.url()).unwrap();
    let code = arrived
        .query_pairs()
        .find(|(name, _)| name == "code")
        .unwrap()
        .1
        .into_owned();
    let redirect = format!("{listening}/callback");
    let form = app.exchange(&code).into_iter();
    let form: Vec<_> = form
        .map(|(name, value)| {
            (
                name,
                if name == "redirect_uri" {
                    redirect.as_str()
                } else {
                    value
                },
            )
        })
        .collect();
    let tokens = app.send("/oauth/token", &form).await.expect(200);
    let access = site.http.with(tokens.text("/access_token"));
    tools(&access, "/mcp").await.expect(200);
    page.goto(format!("{base}/console/apps"));
    page.see(By::Text("Tide desk"));
    judge_answer(&page, "connected apps");
    page.picture(&folder.join("apps.png"));
    page.submit(By::Button("Revoke"));
    page.see(By::Heading("No app is connected"));
    tools(&access, "/mcp").await.expect(401);
}
