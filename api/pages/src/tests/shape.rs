use std::collections::BTreeSet;

use super::html::{Element, elements};
use crate::testing::{Sample, samples};
use crate::{CONTENT_SECURITY_POLICY, asset};

/// Paths of the service that pages may lead to.
const PATHS: [&str; 29] = [
    "/activity",
    "/activity.atom",
    "/agents",
    "/assets",
    "/collectors",
    "/console",
    "/docs",
    "/find",
    "/guide/agents.md",
    "/invite",
    "/leaderboard",
    "/licenses",
    "/llms.txt",
    "/oauth/authorize",
    "/openapi.json",
    "/operators",
    "/paid",
    "/pricing",
    "/projects",
    "/report",
    "/requests",
    "/signin",
    "/signout",
    "/signup",
    "/skill.md",
    "/takedowns",
    "/terms",
    "/test-usdc",
    "/units",
];

/// Fails with every problem of every sample at once.
#[track_caller]
fn each(problems: impl Fn(&Sample, &[Element]) -> Vec<String>) {
    let mut found = Vec::new();
    for sample in samples().unwrap() {
        let elements = elements(&sample.html);
        let here = problems(&sample, &elements).into_iter();
        found.extend(here.map(|problem| format!("{}: {problem}", sample.name)));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_page_has_one_title_and_skips_no_level_of_heading() {
    each(|_, elements| {
        let headings = elements.iter().filter_map(|element| {
            let level = element.name.strip_prefix('h')?.parse::<u32>().ok()?;
            Some((level, element.text.trim()))
        });
        let headings: Vec<_> = headings.collect();
        let titles = headings.iter().filter(|(level, _)| *level == 1).count();
        let mut problems = Vec::new();
        if titles != 1 {
            problems.push(format!("{titles} elements h1"));
        }
        for pair in headings.windows(2) {
            if pair[1].0 > pair[0].0 + 1 {
                problems.push(format!("h{} follows h{}: {}", pair[1].0, pair[0].0, pair[1].1));
            }
        }
        let empty = headings.iter().filter(|(_, text)| text.is_empty());
        problems.extend(empty.map(|(level, _)| format!("an empty h{level}")));
        problems
    });
}

#[test]
fn a_field_has_a_label() {
    each(|_, elements| {
        let labelled: BTreeSet<&str> = elements
            .iter()
            .filter(|element| element.name == "label")
            .filter_map(|label| label.get("for"))
            .collect();
        let fields = elements.iter().filter(|element| {
            let is_field = ["input", "select", "textarea"].contains(&element.name.as_str());
            is_field && element.get("type") != Some("hidden")
        });
        let bare = fields.filter(|field| {
            let named = field.get("id").is_some_and(|id| labelled.contains(id));
            !named && !field.is_in(elements, "label")
        });
        bare.map(|field| format!("no label: {:?}", field.attributes)).collect()
    });
}

#[test]
fn a_form_is_posted_with_the_token() {
    each(|_, elements| {
        let mut problems = Vec::new();
        for (place, form) in elements
            .iter()
            .enumerate()
            .filter(|(_, element)| element.name == "form")
        {
            let tokens = elements.iter().filter(|element| {
                let is_token = element.get("name") == Some("form_token") && element.get("type") == Some("hidden");
                is_token && element.around.contains(&place)
            });
            let tokens: Vec<_> = tokens.map(|token| token.get("value")).collect();
            // A form that only asks has nothing to forge.
            let asks = form.get("method") == Some("get") && tokens.is_empty();
            if !asks && (form.get("method") != Some("post") || tokens != [Some("ZmFrZS10b2tlbg")]) {
                problems.push(format!("{:?}: tokens {tokens:?}", form.attributes));
            }
        }
        let lost = elements.iter().filter(|element| {
            let is_field = ["button", "input", "select", "textarea"].contains(&element.name.as_str());
            is_field
                && !element.is_in(elements, "form")
                && !["button", "radio"].contains(&element.get("type").unwrap_or_default())
                && element.get("form").is_none()
        });
        problems.extend(lost.map(|field| format!("a field of no form: {:?}", field.attributes)));
        problems
    });
}

#[test]
fn a_page_obeys_its_content_security_policy() {
    assert!(!CONTENT_SECURITY_POLICY.contains("unsafe"));
    each(|_, elements| {
        let mut problems = Vec::new();
        for element in elements {
            let own = element
                .attributes
                .iter()
                .filter(|(name, _)| name == "style" || name.starts_with("on"));
            problems.extend(own.map(|(name, value)| format!("{name}={value}")));
            let rel = element.get("rel").unwrap_or_default();
            // Neither is fetched: one says which address is meant, one leads to the feed, and data is not run.
            if ["canonical", "alternate"].contains(&rel) || element.get("type") == Some("application/ld+json") {
                continue;
            }
            let loads = match element.name.as_str() {
                "script" => element.get("src"),
                "link" => element.get("href"),
                "style" | "iframe" | "object" | "embed" | "base" | "img" => None,
                _ => continue,
            };
            if loads.and_then(asset).is_none() {
                problems.push(format!("{} loads {loads:?}", element.name));
            }
        }
        problems
    });
}

#[test]
fn what_an_element_names_is_on_the_page_once() {
    each(|_, elements| {
        let ids: Vec<&str> = elements.iter().filter_map(|element| element.get("id")).collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        let mut problems = Vec::new();
        if unique.len() < ids.len() {
            problems.push(format!("an id stands twice: {ids:?}"));
        }
        for element in elements {
            let named = ["aria-describedby", "aria-labelledby", "data-copy", "for", "form"];
            let names = named
                .iter()
                .filter_map(|name| element.get(name))
                .flat_map(str::split_whitespace);
            let anchor = element.get("href").and_then(|href| href.strip_prefix('#'));
            let missing = names.chain(anchor).filter(|name| !unique.contains(name));
            problems.extend(missing.map(|name| format!("nothing is called {name}")));
        }
        problems
    });
}

#[test]
fn a_page_says_of_itself_what_others_can_read() {
    each(|_, elements| {
        let mut problems = Vec::new();
        let named = |name: &str| -> Vec<String> {
            let found = elements
                .iter()
                .filter(|element| element.name == "meta" && element.get("name") == Some(name));
            found
                .map(|element| element.get("content").unwrap_or_default().to_owned())
                .collect()
        };
        let described = named("description");
        if described.len() != 1
            || described
                .iter()
                .any(|text| text.is_empty() || text.chars().count() > 200)
        {
            problems.push(format!("descriptions: {described:?}"));
        }
        let listed = elements
            .iter()
            .filter(|element| element.get("rel") == Some("canonical"))
            .count();
        let robots = named("robots");
        if listed + robots.len() != 1 {
            problems.push(format!("{listed} addresses, robots {robots:?}"));
        }
        let data = elements
            .iter()
            .filter(|element| element.get("type") == Some("application/ld+json"));
        let broken = data.filter(|data| serde_json::from_str::<serde_json::Value>(&data.own).is_err());
        problems.extend(broken.map(|data| format!("no JSON: {}", data.own)));
        problems
    });
}

#[test]
fn a_link_leads_to_a_page_that_there_is() {
    each(|sample, elements| {
        let links = elements
            .iter()
            // Nobody follows it: it names the page itself for others.
            .filter(|element| element.get("rel") != Some("canonical"))
            .filter_map(|element| element.get("href").or_else(|| element.get("action")));
        let known = |link: &str| {
            let below = |path: &str| {
                link.strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            link == "/" || PATHS.iter().any(|path| below(path))
        };
        // Documents may lead anywhere, and forms have paths that the console does not link to.
        let is_document = sample.name.ends_with("terms") || sample.name.ends_with("licenses");
        let others = [
            "/theme",
            "/verify",
            "/.well-known/service-keys",
            "/guide/errors.md",
            "/llms.txt",
            "/pricing.json",
            "/skill.md",
            "/verify/email",
            "/verify/email/stop",
        ];
        let strange = links.filter(|link| {
            let path = link.split(['?', '#']).next().unwrap();
            !(path.is_empty() || known(path) || others.contains(&path) || is_document)
        });
        strange.map(|link| format!("leads to {link}")).collect()
    });
}

#[test]
fn every_field_of_a_refused_form_points_to_its_error() {
    let samples = samples().unwrap();
    let page = samples.iter().find(|sample| sample.name == "signup-errors").unwrap();
    let elements = elements(&page.html);
    let email = elements
        .iter()
        .find(|element| element.get("id") == Some("email"))
        .unwrap();
    assert_eq!(email.get("aria-invalid"), Some("true"));
    assert_eq!(email.get("aria-describedby"), Some("email-error"));
    assert_eq!(email.get("value"), Some("ops@harbour-lab.example"), "the input is kept");
    let error = elements
        .iter()
        .find(|element| element.get("id") == Some("email-error"))
        .unwrap();
    assert!(error.text.contains("addresses for some minutes"));
    let summary = elements
        .iter()
        .find(|element| element.get("role") == Some("alert"))
        .unwrap();
    assert!(summary.text.contains("2 things to mend"));
    assert!(
        elements
            .iter()
            .any(|element| element.get("href") == Some("#accept_terms"))
    );
    let name = elements
        .iter()
        .find(|element| element.get("id") == Some("display_name"))
        .unwrap();
    assert_eq!(name.get("aria-invalid"), None, "a field without an error has no mark");
}

#[test]
fn an_asset_is_found_only_under_the_hash_of_all() {
    let page = samples().unwrap().swap_remove(0);
    let link = page.html.split('"').find(|part| part.ends_with("sluice.css")).unwrap();
    let css = asset(link).unwrap();
    assert_eq!(css.media_type, "text/css; charset=utf-8");
    assert!(css.bytes.starts_with(b"/* Sluice."));
    for path in [
        "/assets/0123456789abcdef/sluice.css",
        "/assets/sluice.css",
        "/sluice.css",
        "",
    ] {
        assert!(asset(path).is_none(), "{path}");
    }
    let folder = link.trim_end_matches("sluice.css");
    assert!(asset(&format!("{folder}../build.rs")).is_none());
    // The style sheet names its fonts by paths beside its own.
    let text = std::str::from_utf8(css.bytes).unwrap();
    let fonts = text.split("url(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let fonts: Vec<_> = fonts
        .map(|name| asset(&format!("{folder}{name}")).map(|font| font.media_type))
        .collect();
    assert_eq!(fonts, [Some("font/woff2"), Some("font/woff2")]);
}
