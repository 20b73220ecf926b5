//! A developer of agents reads the documents and connects a client.

use reqwest::Url;
use tests::apps::{App, Wish};
use tests::browser::{By, Look};
use tests::{Answer, Options};

use super::click;
use crate::accounts::Site;
use crate::console::browser;
use crate::moderation::published;
use crate::pages::{call_tools, run};
use crate::sql_page::Asker;

/// What the client asks for.
const READS: Wish<'static> = Wish {
    resource: "/mcp",
    scopes: "read",
    agent: "new",
};

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_reads_tries_a_call_and_connects_a_client() {
    let Some(browser) = browser("agent-developer") else {
        return;
    };
    let site = Site::start(None, |options: Options| options).await;
    let base = site.http.base().to_owned();
    let author = Asker::new(&site, "ada@example.org").await;
    let developer = Asker::new(&site, "bob@example.org").await;
    published(&author.agent.http).await;
    let is_found = |answer: &Answer| answer.body["items"].as_array().is_some_and(|items| !items.is_empty());
    site.http
        .comes_to_show("/search?q=simple%20case%20mappings", is_found)
        .await;

    // From the front page to a call, which is tried without a key.
    let person = browser.person(Look::default());
    let page = person.page();
    assert_eq!(page.goto(format!("{base}/")).status, 200);
    click(&page, By::Css("header nav a[href='/docs']"), "the documents");
    click(&page, By::Css("nav.toc a[href='/docs/api']"), "the reference");
    click(
        &page,
        By::Css("table a[href='/docs/api/search_knowledge']"),
        "an operation",
    );
    page.fill(By::Css("#t-q"), "simple case mappings");
    click(&page, By::Button("Send"), "an operation that was tried");
    page.see(By::Text("Simple case mappings of Unicode 15.0"));
    assert!(page.url().contains("try=1"), "{}", page.url());

    // The call runs as it is copied, in each form that needs no more than what is here.
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &developer.agent, "none", &page.read(By::Css("#op-curl")));
    assert!(said.contains("\"items\""), "{said}");
    page.click(By::Css(".tabs label:nth-of-type(4)"));
    let tool = page.read(By::Css("#op-mcp"));
    assert!(tool.starts_with("search_knowledge {"), "{tool}");

    // The page about clients names the address, and a client that has it signs the person in.
    click(&page, By::Css("nav.toc a[href='/docs']"), "the documents again");
    click(&page, By::Css("nav.toc a[href='/docs/connect']"), "the clients");
    let address = page.read(By::Css("#addr"));
    assert_eq!(address.trim(), format!("{base}/mcp"));
    assert_eq!(page.complaints(), Vec::<String>::new());
    let listening = browser.site("127.0.0.1", &[("/callback", "<h1>Connected</h1>")]);
    let app = App::register(&base, "Tide desk").await;
    let redirect = format!("{listening}/callback");
    let mut query = app.query(&READS);
    for (name, value) in &mut query {
        if *name == "redirect_uri" {
            value.clone_from(&redirect);
        }
    }
    person.put_cookie(&base.replace("http:", "https:"), "__Host-sluice", &developer.session);
    page.goto(format!("{base}{}", App::path(&query)));
    page.see(By::Heading("Connect Tide desk?"));
    page.submit(By::Button("Connect"));
    page.see(By::Heading("Connected"));
    let arrived = Url::parse(&page.url()).unwrap();
    let code = arrived.query_pairs().find(|(name, _)| name == "code").unwrap().1;
    let mut form = app.exchange(&code);
    for (name, value) in &mut form {
        if *name == "redirect_uri" {
            *value = redirect.as_str();
        }
    }
    let tokens = app.send("/oauth/token", &form).await.expect(200);
    let client = site.http.with(tokens.text("/access_token"));
    let found = call_tools(&client, &tool).await;
    assert!(found["result"]["content"].is_array(), "{found}");
    assert_eq!(found["result"]["isError"], false, "{found}");
    // The person sees the client where the page says that it ends.
    assert_eq!(page.goto(format!("{base}/console/apps")).status, 200);
    page.see(By::Text("Tide desk"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_tried_without_scripts() {
    let Some(browser) = browser("agent-developer-bare") else {
        return;
    };
    let site = Site::start(None, |options: Options| options).await;
    let page = browser
        .person(Look {
            scripts: false,
            ..Look::default()
        })
        .page();
    page.goto(format!("{}/docs/api/list_licenses", site.http.base()));
    assert_eq!(page.submit(By::Button("Send")).status, 200);
    let answer = page.read(By::Css("#try [aria-label=Answer]"));
    assert!(answer.contains("CC-BY-4.0"), "{answer}");
}
