use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::testing::{Service, config};
use crate::{App, Config};

mod deletion;
mod update;

const README: &str = "A readme of at least twenty characters.";

fn body(slug: &str) -> Value {
    json!({
        "slug": slug,
        "title": "Tide gauges",
        "readme": README,
        "schemaDef": {"fields": [{"name": "at", "type": "timestamp", "required": true}, {"name": "m", "type": "number"}]},
    })
}

fn with(member: &str, value: Value) -> String {
    let mut body = body("tides");
    body[member] = value;
    body.to_string()
}

#[tokio::test]
async fn a_project_reads_as_it_was_created() {
    let service = Service::start().await;
    let token = service.operator().await;
    let mut input = body("tides");
    input["license"] = json!("CC0-1.0");
    input["tags"] = json!(["sea-level", "hourly"]);
    input["schemaDef"]["allowExtra"] = json!(true);
    let got = service
        .call("POST", "/projects", Some(&token), &input.to_string())
        .await;
    assert_eq!(got.status, 201);
    let project = service.get("/projects/tides", None).await.json();
    for (member, expected) in [
        ("slug", json!("tides")),
        ("title", json!("Tide gauges")),
        ("readme", json!(README)),
        ("license", json!("CC0-1.0")),
        ("tags", json!(["sea-level", "hourly"])),
        ("access", json!("public")),
        ("visibility", json!("public")),
        ("status", json!("open")),
        ("trialSale", json!(false)),
        ("latestVersion", json!(0)),
        ("recordCount", json!(0)),
        ("versions", json!([])),
        ("versionCount", json!(0)),
        ("contributors", json!([])),
        ("contributorCount", json!(0)),
        ("createdAt", json!("2026-11-21T07:00:00Z")),
    ] {
        assert_eq!(project[member], expected, "{member}");
    }
    let fields = json!([
        {"name": "at", "type": "timestamp", "required": true},
        {"name": "m", "type": "number", "required": false},
    ]);
    assert_eq!(project["schemaDef"], json!({"fields": fields, "allowExtra": true}));
    assert!(project.get("price").is_none());
    for (member, value) in got.json().as_object().unwrap() {
        assert_eq!(&project[member], value, "{member}");
    }
}

/// Returns the body of a project with one field that has these members.
fn field(members: Value) -> String {
    let mut field = members;
    field["name"] = json!("a");
    with("schemaDef", json!({"fields": [field]}))
}

#[tokio::test]
async fn days_decimals_and_documentation_come_back_as_they_were_given() {
    let service = Service::start().await;
    let token = service.operator().await;
    let fields = json!([
        {"name": "day", "type": "date", "required": true},
        {"name": "price", "type": "decimal", "scale": 2, "required": false, "title": "Price (€)",
            "description": "what a buyer paid", "unit": "€"},
    ]);
    let input = with("schemaDef", json!({"fields": fields, "allowExtra": false}));
    service.call("POST", "/projects", Some(&token), &input).await;
    let project = service.get("/projects/tides", None).await.json();
    assert_eq!(project["schemaDef"], json!({"fields": fields, "allowExtra": false}));
}

#[tokio::test]
async fn types_that_workers_may_not_know_are_not_enabled() {
    let mut service = Service::start().await;
    let token = service.operator().await;
    let agent = service.agent(&token, "mine").await;
    service
        .project(
            &agent,
            "days",
            &json!({"schemaDef": {"fields": [{"name": "day", "type": "date"}]}}),
        )
        .await;
    let config = Config {
        write_format: 1,
        ..config()
    };
    service.router = crate::router(App {
        config: Arc::new(config),
        ..service.app.clone()
    });
    let upload = json!({"bytes": 10, "parts": 1, "partSize": 5_242_880, "compression": "none"}).to_string();
    for (path, body) in [
        ("/projects", field(json!({"type": "decimal", "scale": 0}))),
        (
            "/projects/days/contribute",
            json!({"records": [{"day": "2020-02-29"}]}).to_string(),
        ),
        ("/projects/days/uploads", upload),
    ] {
        let got = service.call("POST", path, Some(&agent), &body).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["error"]),
            (503, &json!("not_enabled")),
            "{path}"
        );
    }
    let documented = field(json!({"type": "number", "unit": "m"}));
    let got = service.call("POST", "/projects", Some(&agent), &documented).await;
    assert_eq!(got.status, 201);
}

#[tokio::test]
async fn every_rule_of_a_field_is_named() {
    let service = Service::start().await;
    let key = service.operator().await;
    for (body, path) in [
        (with("slug", json!("ab")), "/slug"),
        (with("slug", json!("-abc")), "/slug"),
        (with("slug", json!("Abc")), "/slug"),
        (with("slug", json!("abc-")), "/slug"),
        (with("slug", json!("a".repeat(61))), "/slug"),
        (with("title", json!("abc")), "/title"),
        (with("title", json!("a\u{7}bcd")), "/title"),
        (with("title", json!("가".repeat(141))), "/title"),
        (with("readme", json!("too short")), "/readme"),
        (with("readme", json!("x".repeat(20_001))), "/readme"),
        (with("license", json!("MIT")), "/license"),
        (with("license", json!(null)), "/license"),
        (with("tags", json!(["a"])), "/tags/0"),
        (with("tags", json!(["ok-tag", "Not"])), "/tags/1"),
        (
            with("tags", json!(["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"])),
            "/tags",
        ),
        (with("access", json!("free")), "/access"),
        (with("visibility", json!("hidden")), "/visibility"),
        (with("trialSale", json!("yes")), "/trialSale"),
        (with("price", json!("0.10")), "/price"),
        (with("colour", json!("red")), "/colour"),
        (with("schemaDef", json!({})), "/schemaDef/fields"),
        (with("schemaDef", json!({"fields": []})), "/schemaDef/fields"),
        (
            with("schemaDef", json!({"fields": [{"name": "a"}]})),
            "/schemaDef/fields/0/type",
        ),
        (
            with("schemaDef", json!({"fields": [{"name": "a", "type": "uuid"}]})),
            "/schemaDef/fields/0/type",
        ),
        (
            with("schemaDef", json!({"fields": [{"name": "a b", "type": "json"}]})),
            "/schemaDef/fields/0/name",
        ),
        (
            with(
                "schemaDef",
                json!({"fields": [{"name": "a", "type": "json"}, {"name": "A", "type": "json"}]}),
            ),
            "/schemaDef/fields/1/name",
        ),
        (
            with(
                "schemaDef",
                json!({"fields": [{"name": "a", "type": "json"}], "strict": true}),
            ),
            "/schemaDef/strict",
        ),
        (field(json!({"type": "decimal"})), "/schemaDef/fields/0/scale"),
        (
            field(json!({"type": "decimal", "scale": 19})),
            "/schemaDef/fields/0/scale",
        ),
        (
            field(json!({"type": "decimal", "scale": -1})),
            "/schemaDef/fields/0/scale",
        ),
        (field(json!({"type": "date", "scale": 2})), "/schemaDef/fields/0/scale"),
        (field(json!({"type": "date", "title": ""})), "/schemaDef/fields/0/title"),
        (
            field(json!({"type": "date", "unit": "x".repeat(41)})),
            "/schemaDef/fields/0/unit",
        ),
        (
            field(json!({"type": "date", "description": "a\nb"})),
            "/schemaDef/fields/0/description",
        ),
        (
            field(json!({"type": "date", "label": "a"})),
            "/schemaDef/fields/0/label",
        ),
    ] {
        let got = service.call("POST", "/projects", Some(&key), &body).await;
        assert_eq!(got.status, 400, "{body}");
        assert_eq!(got.json()["details"][0]["path"], path, "{body}");
    }
    assert_eq!(service.get("/projects/tides", None).await.status, 404);
}

#[tokio::test]
async fn lengths_at_their_limits_are_accepted() {
    let service = Service::start().await;
    let key = service.operator().await;
    let mut body = body(&format!("a{}9", "-".repeat(58)));
    body["title"] = json!("가".repeat(140));
    body["readme"] = json!("글\n".repeat(10_000));
    body["tags"] = json!([
        "t1",
        "t2",
        "t3",
        "t4",
        "t5",
        "t6",
        "t7",
        "--------------------------abcd"
    ]);
    assert_eq!(
        service
            .call("POST", "/projects", Some(&key), &body.to_string())
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn prices_are_for_paid_projects() {
    let service = Service::start().await;
    let key = service.operator().await;
    let create = async |more: Value| {
        let mut body = body("tides");
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        service.call("POST", "/projects", Some(&key), &body.to_string()).await
    };
    for more in [
        json!({"access": "paid", "visibility": "private"}),
        json!({"price": 1}),
        json!({"visibility": "private", "price": "1"}),
        json!({"access": "paid", "price": "0.001"}),
        json!({"access": "paid", "price": -1}),
        json!({"access": "paid", "price": true}),
    ] {
        assert_eq!(create(more.clone()).await.status, 400, "{more}");
    }
    let created = create(json!({"access": "paid"})).await;
    assert_eq!(created.json()["price"], "0.10");
    assert_eq!(created.json()["priceMicro"], 100_000);
}

#[tokio::test]
async fn a_paid_project_at_no_price_reads_freely() {
    let service = Service::start().await;
    let owner = service.operator().await;
    let stranger = service.operator().await;
    let reader = service.agent(&stranger, "reader").await;
    service
        .project(&owner, "tides", &json!({"access": "paid", "price": 0}))
        .await;
    let keeper = service.agent(&owner, "keeper").await;
    service.merged(&keeper, "tides", &[json!({"name": "a"})]).await;
    let counted = service.get("/projects/tides", None).await.json();
    assert_eq!(
        (&counted["contributorCount"], &counted["versionCount"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(service.get("/projects/tides/data", Some(&reader)).await.status, 200);
    let priced = service
        .call("PATCH", "/projects/tides", Some(&owner), r#"{"price": "0.01"}"#)
        .await;
    assert_eq!(
        (priced.status.as_u16(), priced.json()["price"].clone()),
        (200, json!("0.01"))
    );
    assert_eq!(service.get("/projects/tides/data", Some(&reader)).await.status, 402);
}

#[tokio::test]
async fn an_operator_has_three_active_projects_and_a_slug_is_never_freed() {
    let service = Service::start().await;
    let token = service.operator().await;
    for slug in ["one", "two", "three"] {
        service.project(&token, slug, &json!({})).await;
    }
    let fourth = body("four").to_string();
    let got = service.call("POST", "/projects", Some(&token), &fourth).await;
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (409, Some("project_limit"))
    );
    let got = service
        .call("PATCH", "/projects/one", Some(&token), r#"{"status": "archived"}"#)
        .await;
    assert_eq!(got.status, 200);
    assert_eq!(
        service.call("POST", "/projects", Some(&token), &fourth).await.status,
        201
    );
    let other = service.operator().await;
    let got = service
        .call("POST", "/projects", Some(&other), &body("one").to_string())
        .await;
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (409, Some("slug_taken"))
    );
}

#[tokio::test]
async fn a_taken_slug_is_refused_alike_whoever_can_see_its_project() {
    let service = Service::start().await;
    let (token, other) = (service.operator().await, service.operator().await);
    for (slug, visibility) in [("open-one", "public"), ("shut-one", "private")] {
        service.project(&token, slug, &json!({"visibility": visibility})).await;
    }
    let refused = async |slug: &str, more: &Value| {
        let mut body = json!({
            "slug": slug, "title": "A title", "readme": "A readme of twenty characters.",
            "schemaDef": {"fields": [{"name": "name", "type": "string"}]},
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = service.call("POST", "/projects", Some(&other), &body.to_string()).await;
        let names: Vec<_> = got.headers.keys().map(ToString::to_string).collect();
        (got.status.as_u16(), names, got.text().replace(slug, "SLUG"))
    };
    for more in [
        json!({}),
        json!({"visibility": "private"}),
        json!({"access": "paid"}),
        json!({"title": ""}),
    ] {
        let (public, private) = (refused("open-one", &more).await, refused("shut-one", &more).await);
        assert_eq!(public, private);
        assert!(matches!(public.0, 409 | 400), "{public:?}");
    }
}

#[tokio::test]
async fn a_private_project_answers_others_as_a_missing_one_does() {
    let service = Service::start().await;
    let (token, other) = (service.operator().await, service.operator().await);
    let (mine, theirs) = (
        service.agent(&token, "mine").await,
        service.agent(&other, "theirs").await,
    );
    service
        .project(&mine, "secret", &json!({"visibility": "private"}))
        .await;
    for credential in [&token, &mine] {
        assert_eq!(service.get("/projects/secret", Some(credential)).await.status, 200);
    }
    let id = types::ContributionId::new(types::Timestamp::from_micros(0));
    for (method, path, body) in [
        ("GET", "", ""),
        ("PATCH", "", r#"{"title": "Stolen title"}"#),
        ("GET", "/data", ""),
        ("POST", "/contribute", r#"{"records": [{"name": "a"}]}"#),
        ("POST", "/validate", r#"{"records": [{"name": "a"}]}"#),
        ("GET", &format!("/contributions/{id}"), ""),
        ("GET", &format!("/contributions/{id}/verdicts"), ""),
    ] {
        let hidden = service
            .call(method, &format!("/projects/secret{path}"), Some(&theirs), body)
            .await;
        let missing = service
            .call(method, &format!("/projects/nonesuch{path}"), Some(&theirs), body)
            .await;
        assert_eq!(
            (hidden.status.as_u16(), missing.status.as_u16()),
            (404, 404),
            "{method} {path}"
        );
        let text = String::from_utf8(missing.bytes).unwrap();
        assert_eq!(
            String::from_utf8(hidden.bytes).unwrap(),
            text.replace("nonesuch", "secret"),
            "{method} {path}"
        );
    }
    assert_eq!(service.get("/projects/secret", None).await.status, 404);
    let listed = async |credential| {
        service.get("/projects", credential).await.json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(listed(Some(mine.as_str())).await, 1);
    assert_eq!(listed(Some(theirs.as_str())).await, 0);
    assert_eq!(listed(None).await, 0);
}

#[tokio::test]
async fn the_list_is_searched_paged_and_its_searches_counted() {
    let service = Service::start().await;
    let token = service.operator().await;
    for slug in ["tides", "winds", "wind-farms"] {
        service
            .project(&token, slug, &json!({"title": format!("About {slug}")}))
            .await;
        service.clock.advance(Duration::from_secs(1));
    }
    let slugs = |page: &Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["slug"].as_str().unwrap().to_owned())
            .collect()
    };
    let found = service.get("/projects?q=WIND", None).await.json();
    assert_eq!(slugs(&found), ["wind-farms", "winds"]);
    assert_eq!((&found["total"], found.get("nextCursor")), (&json!(2), None));
    assert_eq!(
        slugs(&service.get("/projects?q=%25", None).await.json()),
        Vec::<String>::new()
    );
    let first = service.get("/projects?limit=2", None).await.json();
    assert_eq!(slugs(&first), ["wind-farms", "winds"]);
    assert_eq!(first["total"], 3);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = service
        .get(&format!("/projects?limit=2&cursor={cursor}"), None)
        .await
        .json();
    assert_eq!(slugs(&second), ["tides"]);
    assert_eq!(second["total"], 3);
    assert!(second.get("nextCursor").is_none());
    assert_eq!(service.get("/projects?cursor=x", None).await.status, 400);
    let (store, today) = (&service.app.store, service.app.clock.now().day());
    service.app.usage.store(store).await.unwrap();
    assert_eq!(store.usage(today).await.unwrap(), [("project_search".to_owned(), 2)]);
    service.app.usage.store(store).await.unwrap();
    assert_eq!(store.usage(today).await.unwrap(), [("project_search".to_owned(), 2)]);
}
