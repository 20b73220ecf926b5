//! Vectors of authorization requests.

use super::{ISSUER, REDIRECT, World, parameters};
use crate::authorize::{AuthorizeRefusal, RequestError, ShownProblem};
use crate::{AppBudget, Error, Resource, Scope, Scopes};

/// Expected outcome of a request.
#[derive(Debug, PartialEq)]
enum To {
    Consent,
    Shown(ShownProblem),
    Client(&'static str),
}

const VECTORS: [(&str, &[&str], To); 62] = [
    ("a good request", &[], To::Consent),
    ("without a state", &["-state"], To::Consent),
    ("without a scope", &["-scope"], To::Consent),
    ("every scope at /mcp", &["scope=spend write read"], To::Consent),
    (
        "the other resource",
        &["resource=https://sluice.example/mcp/directory"],
        To::Consent,
    ),
    ("an explicit response mode", &["response_mode=query"], To::Consent),
    (
        "a loopback port",
        &["redirect_uri=http://127.0.0.1:49152/cb"],
        To::Consent,
    ),
    // The client is not known: nothing is redirected.
    ("no client", &["-client_id"], To::Shown(ShownProblem::ClientMissing)),
    (
        "an empty client",
        &["client_id="],
        To::Shown(ShownProblem::ClientMissing),
    ),
    (
        "two clients",
        &["+client_id=app_x"],
        To::Shown(ShownProblem::ClientMissing),
    ),
    (
        "another client",
        &["client_id=app_x"],
        To::Shown(ShownProblem::ClientUnknown),
    ),
    // The redirect URI is not registered: nothing is redirected.
    (
        "no redirect",
        &["-redirect_uri"],
        To::Shown(ShownProblem::RedirectMissing),
    ),
    (
        "two redirects",
        &["+redirect_uri=https://evil.example/"],
        To::Shown(ShownProblem::RedirectMissing),
    ),
    (
        "another host",
        &["redirect_uri=https://evil.example/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a suffix",
        &["redirect_uri=https://app.example/cb?tenant=12"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a longer path",
        &["redirect_uri=https://app.example/cb/evil?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a prefix",
        &["redirect_uri=https://app.example/cb"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "one parameter more",
        &["redirect_uri=https://app.example/cb?tenant=1&a=b"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "another case of the host",
        &["redirect_uri=https://App.example/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "another case of the path",
        &["redirect_uri=https://app.example/CB?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "another port",
        &["redirect_uri=https://app.example:8443/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "the default port",
        &["redirect_uri=https://app.example:443/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "dots in the path",
        &["redirect_uri=https://app.example/x/../cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "an escape",
        &["redirect_uri=https://app.example/%63b?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a user",
        &["redirect_uri=https://app.example@evil.example/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a subdomain",
        &["redirect_uri=https://app.example.evil.example/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a fragment",
        &["redirect_uri=https://app.example/cb?tenant=1#a"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "plain http",
        &["redirect_uri=http://app.example/cb?tenant=1"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a script",
        &["redirect_uri=javascript:alert(1)"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a loopback of another path",
        &["redirect_uri=http://127.0.0.1:49152/evil"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    (
        "a loopback of another name",
        &["redirect_uri=http://localhost:49152/cb"],
        To::Consent,
    ),
    (
        "a loopback with a user",
        &["redirect_uri=http://127.0.0.1:80@evil.example/cb"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
    // From here the client learns of its error.
    ("no response type", &["-response_type"], To::Client("invalid_request")),
    (
        "the implicit flow",
        &["response_type=token"],
        To::Client("unsupported_response_type"),
    ),
    (
        "a hybrid flow",
        &["response_type=code id_token"],
        To::Client("unsupported_response_type"),
    ),
    (
        "two response types",
        &["+response_type=token"],
        To::Client("invalid_request"),
    ),
    (
        "no PKCE",
        &["-code_challenge", "-code_challenge_method"],
        To::Client("invalid_request"),
    ),
    ("no challenge", &["-code_challenge"], To::Client("invalid_request")),
    ("no method", &["-code_challenge_method"], To::Client("invalid_request")),
    (
        "the method plain",
        &["code_challenge_method=plain"],
        To::Client("invalid_request"),
    ),
    (
        "another method",
        &["code_challenge_method=s256"],
        To::Client("invalid_request"),
    ),
    ("two challenges", &["+code_challenge=a"], To::Client("invalid_request")),
    (
        "a short challenge",
        &["code_challenge=abc"],
        To::Client("invalid_request"),
    ),
    (
        "a padded challenge",
        &["code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM="],
        To::Client("invalid_request"),
    ),
    ("no resource", &["-resource"], To::Consent),
    (
        "another resource",
        &["resource=https://evil.example/mcp"],
        To::Client("invalid_target"),
    ),
    (
        "the issuer as resource",
        &["resource=https://sluice.example"],
        To::Client("invalid_target"),
    ),
    (
        "a resource with a slash",
        &["resource=https://sluice.example/mcp/"],
        To::Consent,
    ),
    (
        "a resource with a fragment",
        &["resource=https://sluice.example/mcp#a"],
        To::Client("invalid_target"),
    ),
    (
        "two resources",
        &["+resource=https://sluice.example/mcp/directory"],
        To::Client("invalid_target"),
    ),
    ("an unknown scope", &["scope=read admin"], To::Consent),
    ("unknown scopes only", &["scope=openid offline_access"], To::Consent),
    (
        "spending at the directory",
        &["resource=https://sluice.example/mcp/directory", "scope=read spend"],
        To::Consent,
    ),
    ("two scopes", &["+scope=spend"], To::Client("invalid_request")),
    ("two states", &["+state=b"], To::Client("invalid_request")),
    (
        "a request object",
        &["request=e30.e30."],
        To::Client("request_not_supported"),
    ),
    (
        "a request by reference",
        &["request_uri=https://evil.example/r"],
        To::Client("request_uri_not_supported"),
    ),
    (
        "an answer as a form",
        &["response_mode=form_post"],
        To::Client("invalid_request"),
    ),
    (
        "an answer as a fragment",
        &["response_mode=fragment"],
        To::Client("invalid_request"),
    ),
    (
        "two response modes",
        &["response_mode=query", "+response_mode=query"],
        To::Client("invalid_request"),
    ),
    (
        "an error before PKCE",
        &["response_type=token", "-code_challenge"],
        To::Client("unsupported_response_type"),
    ),
    (
        "an error of everything",
        &["redirect_uri=https://evil.example/", "response_type=token"],
        To::Shown(ShownProblem::RedirectUnknown),
    ),
];

#[tokio::test]
async fn each_request_comes_to_consent_to_the_person_or_to_the_client() {
    let world = World::new().await;
    for (name, changes, expected) in VECTORS {
        let found = match world.request(changes) {
            Ok(_) => To::Consent,
            Err(AuthorizeRefusal::Show(shown)) => To::Shown(shown),
            Err(AuthorizeRefusal::Redirect { to, error }) => {
                assert!(to.starts_with(&format!("{REDIRECT}&error=")), "{name}: {to}");
                let sent = parameters(&to);
                let get = |parameter| sent.get(parameter).unwrap();
                assert_eq!(get("error"), Some(error.code), "{name}");
                assert_eq!(get("error_description"), Some(error.description));
                assert_eq!(get("iss"), Some(ISSUER), "{name}: every answer has `iss`");
                assert_eq!(get("state"), (name != "two states").then_some("s&1"), "{name}");
                assert_eq!(get("code"), None);
                // RFC 6749 appendix A.8.
                let is_text = |byte: u8| matches!(byte, 0x20..=0x21 | 0x23..=0x5b | 0x5d..=0x7e);
                assert!(error.description.bytes().all(is_text), "{name}");
                To::Client(error.code)
            }
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn the_state_is_sent_back_as_it_came_or_not_at_all() {
    let world = World::new().await;
    let state = "a b&c=d%20\u{e9}#";
    let request = world.request(&[&format!("state={state}")]).unwrap();
    let url = request.error_url(world.server.issuer(), RequestError::DENIED);
    assert_eq!(parameters(&url).get("state").unwrap(), Some(state));
    assert_eq!(parameters(&url).get("error").unwrap(), Some("access_denied"));
    let without = world.request(&["-state"]).unwrap();
    let url = without.error_url(world.server.issuer(), RequestError::UNAVAILABLE);
    assert_eq!(parameters(&url).get("state").unwrap(), None);
    let most = world.request(&[&format!("state={}", "s".repeat(2_048))]);
    assert!(most.is_ok());
    let Err(AuthorizeRefusal::Redirect { to, error }) = world.request(&[&format!("state={}", "s".repeat(2_049))])
    else {
        panic!()
    };
    assert_eq!(
        (error.code, parameters(&to).get("state").unwrap()),
        ("invalid_request", None)
    );
}

#[tokio::test]
async fn a_person_grants_some_of_the_scopes_and_never_more() {
    let world = World::new().await;
    let request = world.request(&[]).unwrap();
    assert_eq!(request.scopes, Scopes::of(&[Scope::Read, Scope::Write]));
    assert_eq!(
        (request.resource, request.redirect_uri.as_str()),
        (Resource::Mcp, REDIRECT)
    );
    let now = types::Timestamp::default();
    let (operator, agent) = (types::OperatorId::new(now), types::AgentId::new(now));
    for more in [Scopes::NONE, Scopes::ALL, Scopes::of(&[Scope::Spend])] {
        let outcome = world
            .server
            .grant(&request, operator, agent, more, AppBudget::default())
            .await;
        assert!(matches!(outcome, Err(Error::Scopes)), "{more}");
    }
    let less = world
        .server
        .grant(
            &request,
            operator,
            agent,
            Scopes::of(&[Scope::Read]),
            AppBudget::default(),
        )
        .await
        .unwrap();
    assert!(less.starts_with(&format!("{REDIRECT}&code=wtg_")));
    let sent = parameters(&less);
    assert_eq!(
        (sent.get("iss").unwrap(), sent.get("state").unwrap()),
        (Some(ISSUER), Some("s&1"))
    );
    let tokens = world.exchange(sent.get("code").unwrap().unwrap(), &[]).await.unwrap();
    assert_eq!(tokens["scope"], "read");
}

#[tokio::test]
async fn a_request_has_the_scopes_that_exist_at_its_resource_whatever_was_registered() {
    let mut world = World::new().await;
    world.client.scopes = Scopes::of(&[Scope::Read]);
    let (read, write) = (Scopes::of(&[Scope::Read]), Scopes::of(&[Scope::Write]));
    let directory = "resource=https://sluice.example/mcp/directory";
    for (changes, expected) in [
        (&["-scope"][..], read),
        (&["scope=read write spend"], Scopes::ALL),
        (&["scope=openid write"], write),
        (&["scope=READ read,write openid"], read),
        (&["scope= write  read"], Scopes::of(&[Scope::Read, Scope::Write])),
        (&[directory, "scope=read spend"], read),
        (&[directory, "scope=spend"], read),
    ] {
        assert_eq!(world.request(changes).unwrap().scopes, expected, "{changes:?}");
    }
    assert_eq!(world.request(&["-resource"]).unwrap().resource, Resource::Mcp);
}
