use serde_json::{Value, json};
use types::{AgentId, ContributionId};

use crate::testing::Service;

async fn scene(more: &Value) -> (Service, String, String) {
    let service = Service::start().await;
    let (owner, other) = (service.operator().await, service.operator().await);
    let mine = service.agent(&owner, "mine").await;
    let theirs = service.agent(&other, "theirs").await;
    service.project(&mine, "weather", more).await;
    (service, mine, theirs)
}

fn named(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({ "name": name })).collect()
}

async fn diff(service: &Service, query: &str, key: Option<&str>) -> Value {
    let got = service.get(&format!("/projects/weather/diff?{query}"), key).await;
    assert_eq!(got.status, 200, "{query}");
    got.json()
}

fn names(diff: &Value) -> Vec<(&str, u64, &str)> {
    let items = diff["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let (name, by) = (&item["record"]["name"], &item["contributor"]);
            (
                name.as_str().unwrap(),
                item["version"].as_u64().unwrap(),
                by.as_str().unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_diff_is_what_was_appended_and_by_whom() {
    let (service, mine, theirs) = scene(&json!({})).await;
    let first = service.merged(&mine, "weather", &named(&["a", "b"])).await;
    let second = service.merged(&theirs, "weather", &named(&["b", "c"])).await;
    service.merged(&mine, "weather", &named(&["d"])).await;

    let all = diff(&service, "to=3", Some(&theirs)).await;
    assert_eq!(
        names(&all),
        [("a", 1, "mine"), ("b", 1, "mine"), ("c", 2, "theirs"), ("d", 3, "mine")]
    );
    assert_eq!(
        (&all["from"], &all["to"], &all["appendedCount"]),
        (&json!(0), &json!(3), &json!(4))
    );
    assert_eq!(all["items"][2]["contributionId"], second.contribution.to_string());
    let body = &all["contributions"];
    assert_eq!(body.as_array().unwrap().len(), 3);
    assert_eq!(
        (&body[0]["contributor"], &body[0]["acceptedCount"], &body[0]["root"]),
        (&json!("mine"), &json!(2), &json!(first.root))
    );

    let middle = diff(&service, "from=1&to=2", Some(&theirs)).await;
    assert_eq!(names(&middle), [("c", 2, "theirs")]);
    assert_eq!(middle["contributions"].as_array().unwrap().len(), 1);
    let nothing = diff(&service, "from=2&to=2", Some(&theirs)).await;
    assert_eq!((names(&nothing).len(), &nothing["contributions"]), (0, &json!([])));
}

#[tokio::test]
async fn pages_of_a_diff_follow_each_other() {
    let (service, mine, _) = scene(&json!({})).await;
    for names in [["a", "b"], ["c", "d"], ["e", "f"]] {
        service.merged(&mine, "weather", &named(&names)).await;
    }
    let mut found = Vec::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let page = diff(&service, &format!("from=1&to=3&limit=3&offset={from}"), Some(&mine)).await;
        found.extend(names(&page).iter().map(|(name, ..)| (*name).to_owned()));
        offset = page["nextOffset"].as_u64();
    }
    assert_eq!(found, ["c", "d", "e", "f"]);
    let beyond = diff(&service, "to=3&offset=9007199254740991", Some(&mine)).await;
    assert_eq!(names(&beyond), []);
}

#[tokio::test]
async fn contributions_need_no_key_and_records_do() {
    let (service, mine, theirs) = scene(&json!({"access": "paid", "price": "0.25"})).await;
    service.merged(&mine, "weather", &named(&["a", "b"])).await;
    for key in [None, Some(theirs.as_str()), Some(mine.as_str())] {
        let body = diff(&service, "to=1&limit=0", key).await;
        assert_eq!(
            (&body["contributions"][0]["contributor"], &body["items"]),
            (&json!("mine"), &json!([]))
        );
        assert!(body.get("nextOffset").is_none());
    }
    let token = service.operator().await;
    for (query, key, status) in [
        ("to=1", None, 401),
        ("to=1&limit=1", None, 401),
        ("to=1", Some(token.as_str()), 401),
        ("to=1", Some(theirs.as_str()), 402),
        ("to=1", Some(mine.as_str()), 200),
    ] {
        let got = service.get(&format!("/projects/weather/diff?{query}"), key).await;
        assert_eq!(got.status, status, "{query}");
    }
}

#[tokio::test]
async fn what_a_diff_is_asked_for_is_in_range() {
    let (service, mine, _) = scene(&json!({})).await;
    service.merged(&mine, "weather", &named(&["a"])).await;
    for (query, status) in [
        ("", 400),
        ("to=0", 400),
        ("to=1&from=-1", 400),
        ("to=1&from=2", 400),
        ("to=1&limit=501", 400),
        ("to=1&limit=-1", 400),
        ("to=1&limit=500", 200),
        ("to=1&offset=-1", 400),
        ("to=2", 404),
        ("to=2&from=2", 404),
        ("to=9007199254740991", 404),
        ("to=9007199254740992", 400),
    ] {
        let path = format!("/projects/weather/diff?{query}");
        let got = service.get(&path, Some(&mine)).await;
        assert_eq!(got.status, status, "{query}");
        // Records need a key, whatever else is wrong.
        assert_eq!(service.get(&path, None).await.status, 401, "{query}");
    }
    assert_eq!(
        service.get("/projects/weather/diff?to=0&limit=0", None).await.status,
        400
    );
}

#[tokio::test]
async fn a_private_project_has_no_diff_for_others() {
    let (service, mine, theirs) = scene(&json!({"visibility": "private"})).await;
    service.merged(&mine, "weather", &named(&["a"])).await;
    for key in [None, Some(theirs.as_str())] {
        for limit in [0, 1] {
            let path = format!("/projects/weather/diff?to=1&limit={limit}");
            let expected = service.get(&path.replace("weather", "no-such"), key).await;
            let got = service.get(&path, key).await;
            assert_eq!(got.status, expected.status);
            // Records need a key, whatever the project.
            let status = if key.is_none() && limit > 0 { 401 } else { 404 };
            assert_eq!(got.status, status, "{limit}");
        }
    }
    assert_eq!(names(&diff(&service, "to=1", Some(&mine)).await).len(), 1);
}

/// Covers a table that has a merge before the outcome that names the contributor is applied.
#[tokio::test]
async fn a_version_whose_outcome_is_not_published_yet_is_503() {
    let (service, mine, _) = scene(&json!({})).await;
    service.merged(&mine, "weather", &named(&["a"])).await;
    let now = service.app.clock.now();
    let (contribution, agent) = (ContributionId::new(now), AgentId::new(now));
    service
        .merged_in_the_table_only("weather", contribution, agent, &named(&["b"]))
        .await;
    for query in ["to=2", "to=2&limit=0", "from=1&to=2"] {
        let got = service
            .get(&format!("/projects/weather/diff?{query}"), Some(&mine))
            .await;
        assert_eq!(got.status, 503, "{query}");
    }
    assert_eq!(names(&diff(&service, "to=1", Some(&mine)).await), [("a", 1, "mine")]);
}
