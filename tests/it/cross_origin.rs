//! A page of another site in Chromium: it reads what no cookie opens, and nothing that one opens.

use std::path::Path;

use serde_json::{Value, json};
use tests::World;
use tests::browser::{Browser, Look};

use crate::binary;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_site_reads_what_no_cookie_opens_and_nothing_else() {
    let artefacts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser/cross-origin");
    let Some(browser) = Browser::start(&artefacts) else {
        return;
    };
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let page = browser.person(Look::default()).page();
    page.goto(browser.site("localhost", &[("/", "<p>another site</p>")]));
    let calls = json!([
        ["/.well-known/oauth-protected-resource/mcp", {}],
        ["/.well-known/oauth-authorization-server", {}],
        ["/openapi.json", {}],
        ["/pricing.json", {}],
        ["/.well-known/service-keys", {}],
        ["/.well-known/did.json", {}],
        ["/guide/agents.md", {}],
        ["/search?q=x", {}],
        [format!("/projects/{slug}/data"), {"headers": {"authorization": format!("Bearer {}", world.agent.key)}}],
        [format!("/projects/{slug}/data"), {}],
        [format!("/projects/{slug}/contribute"), {
            "method": "POST",
            "headers": {
                "authorization": format!("Bearer {}", world.agent.key),
                "content-type": "application/json",
                "idempotency-key": "from-a-page",
            },
            "body": json!({"records": tests::world::records("a", 1)}).to_string(),
        }],
        ["/mcp", {
            "method": "POST",
            "headers": {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2025-06-18",
            },
            "body": r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        }],
        ["/oauth/register", {
            "method": "POST",
            "headers": {"content-type": "application/json"},
            "body": r#"{"redirect_uris":["https://app.example/cb"],"client_name":"A page"}"#,
        }],
        ["/oauth/token", {"method": "POST", "body": "grant_type=none", "headers": {"content-type": "application/x-www-form-urlencoded"}}],
        ["/paid/knowledge?id=01a21360-9106-7232-b3fb-3d629a9178b8", {
            "headers": {"content-type": "application/json", "PAYMENT-SIGNATURE": "e30="},
        }],
        // Doors of people, and calls that would carry their cookies.
        ["/console", {"headers": {"accept": "text/html"}}],
        ["/signin", {"headers": {"accept": "text/html"}}],
        ["/projects", {"headers": {"accept": "text/html"}}],
        ["/openapi.json", {"credentials": "include"}],
    ]);
    let script = format!(
        "(async () => {{
            const statuses = [];
            for (const [path, asked] of {calls})
                statuses.push(await fetch('{base}' + path, asked).then((got) => got.status, () => 'blocked'));
            statuses.push(await new Promise((done) => {{
                const stream = new EventSource('{base}/activity/events?after=999');
                stream.addEventListener('reset', (event) => {{ stream.close(); done(event.lastEventId); }});
                stream.onerror = () => done('blocked');
            }}));
            const found = await fetch('{base}/projects/{slug}/data');
            statuses.push(found.headers.has('www-authenticate') && found.headers.has('x-request-id'));
            return statuses;
        }})()",
        base = world.server.base()
    );
    let newest = world.http.get("/activity?limit=1").await.expect(200).body["items"][0]["cursor"].clone();
    let got = page.evaluate(&script);
    let got: Vec<Value> = got.as_array().unwrap().clone();
    let reads = json!([
        200, 200, 200, 200, 200, 200, 200, 200, 200, 401, 201, 200, 201, 401, 404
    ]);
    let doors = json!(["blocked", "blocked", "blocked", "blocked"]);
    assert_eq!(got[..15], *reads.as_array().unwrap(), "{got:?}");
    assert_eq!(got[15..19], *doors.as_array().unwrap(), "{got:?}");
    // Neither is a number if the stream was blocked.
    let number = |cursor: &Value| cursor.as_str().and_then(|cursor| cursor.parse::<u64>().ok());
    assert!(
        number(&got[19]).is_some_and(|at| Some(at) >= number(&newest)),
        "{got:?} {newest}"
    );
    assert_eq!(got[20], true, "{got:?}");
}
