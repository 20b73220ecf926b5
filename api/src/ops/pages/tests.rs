use serde_json::{Value, json};
use std::time::Duration;
use types::HumanDuration;

use crate::testing::{Got, Service, config, limits};

const BASE: &str = "http://sluice.test";

/// Returns the text behind a link of an answer.
async fn behind(service: &Service, link: &str) -> Got {
    let path = link.strip_prefix(BASE).unwrap().split('#').next().unwrap().to_owned();
    service.get(&path, None).await
}

fn text(got: &Got, media: &str) -> String {
    assert_eq!(
        (got.status.as_u16(), &got.headers["content-type"]),
        (200, &media.parse().unwrap())
    );
    String::from_utf8(got.bytes.clone()).unwrap()
}

#[tokio::test]
async fn the_terms_are_where_their_version_says_and_name_it() {
    let service = Service::start().await;
    let version = service.get("/terms/version", None).await.json();
    let got = behind(&service, version["url"].as_str().unwrap()).await;
    let terms = text(&got, "text/plain; charset=utf-8");
    for expected in [
        version["version"].as_str().unwrap(),
        "19 years old or older",
        "testnet preview",
        "test USDC",
        "no token",
        "they are not money",
        "is data",
        "takes the item",
    ] {
        assert!(terms.contains(expected), "{expected}");
    }
    assert!(!terms.contains('{'), "a place was left open");
}

#[tokio::test]
async fn terms_that_are_elsewhere_are_not_claimed_to_be_here() {
    let elsewhere = crate::Config {
        terms_url: "https://example.org/terms".to_owned(),
        ..config()
    };
    let service = Service::with(elsewhere, limits()).await;
    let got = service.get("/terms", None).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["url"]),
        (404, &json!("https://example.org/terms"))
    );
}

#[tokio::test]
async fn the_documents_for_agents_name_what_a_seller_needs() {
    let service = Service::start().await;
    let guide = text(
        &service.get("/guide/agents.md", None).await,
        "text/markdown; charset=utf-8",
    );
    let categories = "infra-measurement api-limits compat-matrix integration-procedure failure-postmortem model-behavior \
                      korea-domain performance-tuning security-hardening cost-analysis incident-response migration-guide \
                      model-eval prompt-technique agent-workflow tool-usage data-source data-quality dataset-recipe \
                      finance-domain commerce-domain healthcare-domain legal-domain";
    for category in categories.split(' ') {
        assert!(guide.contains(&format!("`{category}`")), "{category}");
    }
    for expected in [
        "| Units that an operator submits and revises in a UTC day | 10 |",
        "`GET` and `POST /community/requests`",
    ] {
        assert!(guide.contains(expected), "{expected}");
    }
    let index = text(&service.get("/llms.txt", None).await, "text/plain; charset=utf-8");
    for expected in ["/pricing.json)", "There is no token", "unit bodies"] {
        assert!(index.contains(expected), "{expected}");
    }
}

#[tokio::test]
async fn the_limits_are_those_in_force() {
    let other = crate::Limits {
        knowledge_per_day: 7,
        upload_window: HumanDuration(Duration::from_hours(1)),
        ..limits()
    };
    let service = Service::with(config(), other).await;
    let guide = service.get("/guide/agents.md", None).await.text();
    let (_, told) = guide.split_once("\n## Limits\n").unwrap();
    let (told, _) = told.split_once("\n## ").unwrap();
    for expected in [
        "from a total of 55 of 100 on",
        "each of 0 to 10",
        "| Units that an operator submits and revises in a UTC day | 7 |",
        "| An upload expires after | 1 hour |",
        "| A claim code works, once | 15 minutes |",
        "| Requests in an hour from this agent | 20 |",
        "| Comments in an hour from this agent | 30 |",
        "| `POST /knowledge` | ",
        "`title` 1 to 200",
        "`tags` 0 to 8",
        "| The same report is one report within | 24 hours |",
    ] {
        assert!(told.contains(expected), "{expected} is not in {told}");
    }
    // The axes are the members of a score.
    let world = crate::ops::knowledge::tests::World::start().await;
    let id = world.published("A text about one thing.", 80).await;
    let unit = world.get(&format!("/knowledge/{id}"), Some(&world.author)).await.json();
    let members = unit["scores"].as_object().unwrap();
    for (axis, _) in types::knowledge::AXES {
        assert!(
            members.contains_key(axis) && told.contains(&format!("| `{axis}` | ")),
            "{axis}"
        );
    }
    assert_eq!(members.len(), types::knowledge::AXES.len() + 3, "{members:?}");
}

#[tokio::test]
async fn every_job_has_a_page_with_a_whole_program() {
    let service = Service::start().await;
    let index = service.get("/llms.txt", None).await.text();
    let (_, jobs) = index.split_once("\n## Jobs\n").unwrap();
    let (jobs, _) = jobs.split_once("\n## ").unwrap();
    let links: Vec<&str> = jobs
        .split("](")
        .skip(1)
        .map(|rest| rest.split_once(')').unwrap().0)
        .collect();
    assert_eq!(links.len(), 5, "{jobs}");
    let guide = service.get("/guide/agents.md", None).await.text();
    for link in links {
        assert!(guide.contains(&format!("({link})")), "{link}");
        let page = text(&behind(&service, link).await, "text/markdown; charset=utf-8");
        let program = page.split("```python\n").nth(1).unwrap();
        let program = program.split_once("```").unwrap().0;
        assert!(program.starts_with("import "), "{link}");
        assert!(program.contains(&format!("BASE = \"{BASE}\"")), "{link}");
    }
}

#[tokio::test]
async fn the_rules_of_personal_data_are_those_of_the_gate() {
    let service = Service::start().await;
    let rules = text(
        &service.get("/guide/personal-data.md", None).await,
        "text/markdown; charset=utf-8",
    );
    assert_eq!(rules, operators::gates::personal_data_guide());
    for link in ["/guide/agents.md", "/llms.txt"] {
        let linking = String::from_utf8(service.get(link, None).await.bytes).unwrap();
        assert!(linking.contains(&format!("({BASE}/guide/personal-data.md)")), "{link}");
    }
}

#[tokio::test]
async fn the_licence_of_the_platform_has_its_text() {
    let service = Service::start().await;
    let listed = service.get("/licenses", None).await.json();
    let own = |license: &&Value| license["url"].as_str().unwrap().starts_with(BASE);
    let own: Vec<&Value> = listed["items"].as_array().unwrap().iter().filter(own).collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0]["id"], "platform-standard");
    let got = behind(&service, own[0]["url"].as_str().unwrap()).await;
    let licence = text(&got, "text/plain; charset=utf-8");
    assert!(licence.contains("may not resell, republish"), "{licence}");
}

#[tokio::test]
async fn a_refusal_leads_to_the_section_of_the_guide_that_helps() {
    let service = Service::start().await;
    let token = service.operator().await;
    service.project(&token, "weather", &json!({})).await;
    let maintained = service.app.store.project_by_slug("weather", None).await;
    let operator = maintained.unwrap().unwrap().operator;
    let section = async |credential: Option<&str>, code: &str, section: &str| {
        let refused = service.call("POST", "/agents", credential, "{}").await;
        let body = refused.json();
        assert_eq!((refused.status.as_u16(), &body["error"]), (401, &json!(code)));
        let link = body["getKey"].as_str().unwrap();
        let guide = text(&behind(&service, link).await, "text/markdown; charset=utf-8");
        assert!(link.ends_with(&format!("#{}", section.to_lowercase())), "{link}");
        assert!(guide.contains(&format!("\n## {section}\n")), "{section}");
        assert!(guide.contains(&format!("POST {BASE}/agents")), "{guide}");
        body["hint"].as_str().unwrap().to_owned()
    };
    let hint = section(None, "unauthenticated", "Keys").await;
    assert!(hint.contains("Bearer"), "{hint}");
    let now = service.app.clock.now();
    let suspended = service
        .app
        .store
        .operator_suspend(operator, "spam".to_owned(), now)
        .await;
    assert!(suspended.is_ok(), "{suspended:?}");
    let hint = section(Some(&token), "account_suspended", "Suspension").await;
    assert!(!hint.contains("Bearer"), "another credential does not help: {hint}");
}
