//! Dataset projects: every field's rule, what changes and what never does, how many, and how often a price changes.

use serde_json::{Value, json};
use tests::world::{contribute, merged, project_body, records};
use tests::{Answer, Options, World};

use super::{assert_names, text, world};
use crate::binary;

/// The limit on projects as the interface has it, which other tests lift.
async fn limited_world() -> World {
    World::start_with(binary(), |options| {
        options.with("SLUICE__LIMITS__ACTIVE_PROJECTS_PER_OPERATOR", 3)
    })
    .await
}

#[tokio::test]
async fn a_project_is_created_and_read_by_everybody() {
    let world = world().await;
    let body = merged(
        project_body("air-quality"),
        json!({"license": "CC0-1.0", "tags": ["air", "city-1"]}),
    );
    let created = world.agent.http.post("/projects", &body).await.expect(201);
    assert_eq!(created.text("/slug"), "air-quality");
    let read = world.http.get("/projects/air-quality").await.expect(200);
    for member in ["slug", "title", "readme", "license", "tags"] {
        assert_eq!(read.body[member], body[member], "{member}");
    }
    let told = |member: &str| read.text(member).to_owned();
    assert_eq!(
        (told("/access"), told("/visibility"), told("/status")),
        ("public".into(), "public".into(), "open".into())
    );
    assert_eq!(read.body["schemaDef"]["fields"].as_array().unwrap().len(), 6);
    assert_eq!(read.body["versions"], json!([]));
    world.agent.http.post("/projects", &body).await.expect(409);
    let by_operator = merged(project_body("by-operator"), json!({}));
    world.owner.post("/projects", &by_operator).await.expect(201);
}

#[tokio::test]
async fn a_project_without_a_licence_has_the_platform_standard() {
    let world = world().await;
    let slug = world.project().await;
    assert_eq!(
        world.http.get(&format!("/projects/{slug}")).await.text("/license"),
        "platform-standard"
    );
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    let field = json!({"name": "a", "type": "string"});
    let bad: Vec<(Value, &str)> = vec![
        (json!({"slug": null}), "/slug"),
        (json!({"slug": "ab"}), "/slug"),
        (json!({"slug": text(61)}), "/slug"),
        (json!({"slug": "-abc"}), "/slug"),
        (json!({"slug": "abc-"}), "/slug"),
        (json!({"slug": "Abc"}), "/slug"),
        (json!({"slug": "a_c"}), "/slug"),
        (json!({"slug": "a c"}), "/slug"),
        (json!({"slug": "abc\n"}), "/slug"),
        (json!({"slug": 123}), "/slug"),
        (json!({"title": null}), "/title"),
        (json!({"title": "abc"}), "/title"),
        (json!({"title": text(141)}), "/title"),
        (json!({"readme": null}), "/readme"),
        (json!({"readme": text(19)}), "/readme"),
        (json!({"readme": text(20_001)}), "/readme"),
        (json!({"license": "MIT"}), "/license"),
        (json!({"license": ""}), "/license"),
        (json!({"tags": ["a"]}), "/tags/0"),
        (json!({"tags": ["ok", text(31)]}), "/tags/1"),
        (json!({"tags": ["Upper"]}), "/tags/0"),
        (json!({"tags": "air"}), "/tags"),
        (
            json!({"tags": ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]}),
            "/tags",
        ),
        (json!({"access": "secret"}), "/access"),
        (json!({"visibility": "hidden"}), "/visibility"),
        (json!({"access": "paid", "price": -1}), "/price"),
        (json!({"access": "paid", "price": 0.001}), "/price"),
        (json!({"access": "paid", "price": "1.234"}), "/price"),
        (json!({"access": "paid", "price": "much"}), "/price"),
        (json!({"access": "paid", "price": true}), "/price"),
        (json!({"trialSale": "yes"}), "/trialSale"),
        (json!({"colour": "red"}), "/colour"),
        (json!({"status": "open"}), "/status"),
        (json!({"schemaDef": null}), "/schemaDef"),
        (json!({"schemaDef": []}), "/schemaDef"),
        (json!({"schemaDef": {}}), "/schemaDef/fields"),
        (json!({"schemaDef": {"fields": []}}), "/schemaDef/fields"),
        (
            json!({"schemaDef": {"fields": [{"type": "string"}]}}),
            "/schemaDef/fields/0/name",
        ),
        (
            json!({"schemaDef": {"fields": [{"name": "a"}]}}),
            "/schemaDef/fields/0/type",
        ),
        (
            json!({"schemaDef": {"fields": [{"name": "a", "type": "uuid"}]}}),
            "/schemaDef/fields/0/type",
        ),
        (
            json!({"schemaDef": {"fields": [{"name": "a b", "type": "json"}]}}),
            "/schemaDef/fields/0/name",
        ),
        (
            json!({"schemaDef": {"fields": [{"name": "_sluice_key", "type": "json"}]}}),
            "/schemaDef/fields/0/name",
        ),
        (
            json!({"schemaDef": {"fields": [field, {"name": "A", "type": "json"}]}}),
            "/schemaDef/fields/1/name",
        ),
        (
            json!({"schemaDef": {"fields": [field], "allowExtra": "yes"}}),
            "/schemaDef/allowExtra",
        ),
        (
            json!({"schemaDef": {"fields": [field], "strict": true}}),
            "/schemaDef/strict",
        ),
        (
            json!({"schemaDef": {"fields": [merged(field.clone(), json!({"$ref": "#"}))]}}),
            "/schemaDef/fields/0/$ref",
        ),
    ];
    for (changes, path) in bad {
        let body = merged(project_body("rules"), changes.clone());
        let answer = world.agent.http.post("/projects", &body).await;
        assert_eq!(answer.code(), 400, "{changes}: {}", answer.body);
        assert_names(&answer, path);
    }
    world.http.get("/projects/rules").await.expect(404);
}

#[tokio::test]
async fn every_field_may_go_to_its_limit() {
    let world = world().await;
    let fits = [
        json!({"slug": "abc"}),
        json!({"slug": text(60)}),
        json!({"slug": "0-9"}),
        json!({"title": text(4)}),
        json!({"title": "\u{e9}".repeat(140)}),
        json!({"readme": text(20)}),
        json!({"readme": "\u{1f30d}".repeat(20_000)}),
        json!({"tags": ["t1", "t2", "t3", "t4", "t5", "t6", "t7", &text(30)]}),
        json!({"access": "paid", "price": 0.01}),
        json!({"access": "paid", "price": "0.29", "trialSale": true}),
        json!({"schemaDef": {"fields": [{"name": "온도", "type": "number"}], "allowExtra": true}}),
    ];
    for changes in fits {
        let body = merged(project_body(&world.name("fits")), changes.clone());
        let answer = world.agent.http.post("/projects", &body).await;
        assert_eq!(answer.code(), 201, "{changes}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_private_project_cannot_be_paid() {
    let world = world().await;
    let changes = json!({"access": "paid", "visibility": "private"});
    let answer = world
        .agent
        .http
        .post("/projects", &merged(project_body("both"), changes))
        .await;
    assert_eq!(answer.code(), 400, "{}", answer.body);
    assert!(!answer.paths().is_empty(), "{}", answer.body);
    let priced = merged(project_body("priced"), json!({"price": "1.00"}));
    assert_eq!(
        world.agent.http.post("/projects", &priced).await.code(),
        400,
        "a public project has no price"
    );
}

#[tokio::test]
async fn what_a_project_is_made_of_never_changes() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}");
    for (member, value) in [
        ("schemaDef", json!({"fields": [{"name": "a", "type": "string"}]})),
        ("access", json!("paid")),
        ("visibility", json!("private")),
        ("slug", json!("another-slug")),
    ] {
        let answer = world
            .agent
            .http
            .patch(&path, &json!({member: value, "title": "A better title"}))
            .await;
        assert_eq!(answer.code(), 400, "{member}: {}", answer.body);
        assert!(
            answer.paths().contains(&format!("/{member}").as_str()),
            "{member}: {}",
            answer.body
        );
    }
    let untouched = world.http.get(&path).await;
    assert_eq!(untouched.text("/title"), "Readings of the stations");
    for body in [
        json!({}),
        json!({"colour": "red"}),
        json!({"title": null}),
        json!({"status": "closed"}),
    ] {
        world.agent.http.patch(&path, &body).await.expect(400);
    }
}

#[tokio::test]
async fn the_owner_changes_what_may_change() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}");
    let changes = json!({"title": "Another title", "readme": "Another readme that is long enough.", "tags": ["new"]});
    world.agent.http.patch(&path, &changes).await.expect(200);
    let read = world.http.get(&path).await.expect(200);
    for member in ["title", "readme", "tags"] {
        assert_eq!(read.body[member], changes[member]);
    }
    world.owner.patch(&path, &json!({"tags": []})).await.expect(200);
    let (_, stranger) = world.newcomer().await;
    let refused = stranger.http.patch(&path, &json!({"title": "Stolen title"})).await;
    assert_eq!(refused.code(), 403, "{}", refused.body);
    world
        .http
        .patch(&path, &json!({"title": "Stolen title"}))
        .await
        .expect(401);
    world
        .agent
        .http
        .patch("/projects/no-such", &json!({"title": "Some title"}))
        .await
        .expect(404);
}

#[tokio::test]
async fn a_project_that_is_not_open_takes_no_contribution() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}");
    let body = tests::world::batch(&records("a", 2));
    let contribute_path = format!("{path}/contribute");
    for (status, expected) in [("paused", 409), ("open", 201), ("archived", 409)] {
        world
            .agent
            .http
            .patch(&path, &json!({"status": status}))
            .await
            .expect(200);
        let answer = world.agent.http.post(&contribute_path, &body).await;
        assert_eq!(answer.code(), expected, "{status}: {}", answer.body);
    }
    for status in ["open", "paused"] {
        let answer = world.agent.http.patch(&path, &json!({"status": status})).await;
        assert_eq!(answer.code(), 409, "archived is final: {}", answer.body);
    }
    world.agent.http.get(&format!("{path}/data")).await.expect(200);
}

#[tokio::test]
async fn an_operator_has_at_most_three_active_projects() {
    let world = limited_world().await;
    let requests = (0..8).map(|number| {
        let http = world.agent.http.clone();
        async move { http.post("/projects", &project_body(&format!("many-{number}"))).await }
    });
    let answers: Vec<Answer> = futures_util::future::join_all(requests).await;
    let created: Vec<_> = answers.iter().filter(|answer| answer.code() == 201).collect();
    assert_eq!(
        created.len(),
        3,
        "{:?}",
        answers.iter().map(Answer::code).collect::<Vec<_>>()
    );
    assert!(answers.iter().all(|answer| matches!(answer.code(), 201 | 409)));
    let first = format!("/projects/{}", created[0].text("/slug"));
    world
        .agent
        .http
        .patch(&first, &json!({"status": "paused"}))
        .await
        .expect(200);
    world
        .agent
        .http
        .post("/projects", &project_body("one-more"))
        .await
        .expect(409);
    world
        .agent
        .http
        .patch(&first, &json!({"status": "archived"}))
        .await
        .expect(200);
    world
        .agent
        .http
        .post("/projects", &project_body("one-more"))
        .await
        .expect(201);
    let (_, other) = world.newcomer().await;
    other
        .http
        .post("/projects", &project_body("not-theirs"))
        .await
        .expect(201);
}

#[tokio::test]
async fn one_slug_asked_for_by_many_at_once_is_given_once() {
    let world = world().await;
    let requests = (0..10).map(|_| {
        let http = world.agent.http.clone();
        async move { http.post("/projects", &project_body("wanted")).await.code() }
    });
    let mut codes = futures_util::future::join_all(requests).await;
    codes.sort_unstable();
    assert_eq!(codes, [&[201][..], &[409; 9]].concat());
}

#[tokio::test]
async fn a_price_changes_once_a_day() {
    let world = world().await;
    let slug = world.project_with(json!({"access": "paid", "price": "1.00"})).await;
    let path = format!("/projects/{slug}");
    world
        .agent
        .http
        .patch(&path, &json!({"price": "2.00"}))
        .await
        .expect(200);
    let second = world
        .agent
        .http
        .patch(&path, &json!({"price": "3.00", "title": "Not half done"}))
        .await
        .expect(429);
    let seconds = second.body["retryAfter"].as_u64().unwrap();
    assert!((86_000..=86_400).contains(&seconds), "{seconds}");
    assert_ne!(world.http.get(&path).await.text("/title"), "Not half done");
    world
        .agent
        .http
        .patch(&path, &json!({"title": "Titles change freely"}))
        .await
        .expect(200);
    let world = world
        .restart_with(|options: Options| options.with("SLUICE__CLOCK__OFFSET", "25h"))
        .await;
    world.agent.http.patch(&path, &json!({"price": null})).await.expect(200);
    world
        .agent
        .http
        .patch(&path, &json!({"price": "4.00"}))
        .await
        .expect(429);
    let free = world.project().await;
    let refused = world
        .agent
        .http
        .patch(&format!("/projects/{free}"), &json!({"price": "1.00"}))
        .await;
    assert!(matches!(refused.code(), 400 | 409), "{}", refused.body);
}

#[tokio::test]
async fn projects_are_listed_and_found_by_slug_or_title() {
    let world = world().await;
    for (slug, title) in [
        ("river-levels", "Levels of rivers"),
        ("city-air", "Air of the RIVER valley"),
        ("tax", "Rates"),
    ] {
        let body = merged(project_body(slug), json!({"title": title}));
        world.agent.http.post("/projects", &body).await.expect(201);
    }
    let slugs = |answer: &Answer| {
        let items = answer.body["items"].as_array().unwrap().iter();
        let mut slugs: Vec<_> = items.map(|item| item["slug"].as_str().unwrap().to_owned()).collect();
        slugs.sort();
        slugs
    };
    assert_eq!(slugs(&world.http.get("/projects").await.expect(200)).len(), 3);
    assert_eq!(
        slugs(&world.http.get("/projects?q=rIvEr").await.expect(200)),
        ["city-air", "river-levels"]
    );
    for wild in ["%25", "_", "%27", "%5C"] {
        assert!(
            slugs(&world.http.get(&format!("/projects?q={wild}")).await.expect(200)).is_empty(),
            "{wild}"
        );
    }
    world.http.get("/projects?colour=red").await.expect(400);
}

#[tokio::test]
async fn a_project_shows_its_versions_and_contributors() {
    let world = world().await;
    let slug = world.project().await;
    let (_, other) = world.newcomer().await;
    contribute(&world.agent.http, &slug, &records("a", 5)).await;
    contribute(&other.http, &slug, &records("b", 7)).await;
    let read = world.http.get(&format!("/projects/{slug}")).await.expect(200);
    let versions = read.body["versions"].as_array().unwrap();
    let told: Vec<_> = versions
        .iter()
        .map(|version| ["version", "acceptedCount", "recordCount"].map(|name| version[name].as_u64().unwrap()))
        .collect();
    assert!(
        told.contains(&[1, 5, 5]) && told.contains(&[2, 7, 12]) && told.len() == 2,
        "{told:?}"
    );
    let shown = read.body["contributors"].to_string();
    assert!(
        shown.contains(&world.agent.name) && shown.contains(&other.name),
        "{shown}"
    );
}

#[tokio::test]
async fn texts_come_back_exactly_as_they_were_sent() {
    let world = world().await;
    let title = "<script>alert('x')</script> \u{202e}\u{1f30d} e\u{301}";
    let slug = world.project_with(json!({"title": title})).await;
    let read = world.http.get(&format!("/projects/{slug}")).await.expect(200);
    assert_eq!(read.text("/title"), title);
    assert_eq!(read.header("content-type").split(';').next(), Some("application/json"));
    assert_eq!(read.header("x-content-type-options"), "nosniff");
}
