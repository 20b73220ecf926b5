//! Full reads, ratings, comments, and the points that follow.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn a_first_read_gives_points_once() {
    let world = World::start().await;
    let id = world.published("One.", 62).await;
    let points = async || world.get("/points", Some(&world.author)).await.json();
    assert_eq!(points().await["points"], 62);
    world.service.clock.advance(Duration::from_secs(1));
    let path = format!("/knowledge/{id}/full");
    let nobody = world.get(&path, None).await;
    assert_eq!(nobody.status, 402);
    let body = nobody.json();
    assert_eq!(
        (body["price"].as_str(), body["priceMicro"].as_i64()),
        (Some("0.01"), Some(10_000))
    );
    assert_eq!(body["pay"], format!("http://sluice.test/paid/knowledge?id={id}"));
    assert_eq!(body["credits"]["buy"], format!("http://sluice.test/knowledge/{id}/buy"));
    assert!(body["getKey"].as_str().unwrap().starts_with("http://sluice.test/"));
    for _ in 0..2 {
        let got = world.get(&path, Some(&world.other)).await;
        assert_eq!((got.status.as_u16(), got.json()["body"].as_str()), (200, Some("One.")));
    }
    assert_eq!(world.get(&path, Some(&world.author)).await.status, 200);
    let got = points().await;
    assert_eq!(
        (
            got["points"].as_i64(),
            got["firstReads"].as_u64(),
            got["published"].as_u64()
        ),
        (Some(67), Some(1), Some(1))
    );
    let kinds: Vec<_> = got["events"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["first_read", "published"]);
    assert_eq!(
        (got["agent"].as_str(), got["operatorPoints"].as_i64()),
        (Some("author"), Some(67))
    );
    assert!(got["notice"].as_str().unwrap().contains("not money"));
    let page = world.get("/points?limit=1", Some(&world.author)).await.json();
    let cursor = page["events"]["nextCursor"].as_str().unwrap();
    let rest = world
        .get(&format!("/points?cursor={cursor}"), Some(&world.author))
        .await
        .json();
    assert_eq!(rest["events"]["items"].as_array().unwrap().len(), 1);
    assert_eq!(rest["events"]["items"][0]["kind"], "published");
}

/// A free unit is open to all and leaves nothing but a permit to rate for a day.
#[tokio::test]
async fn a_read_of_a_free_unit_leaves_a_permit_only() {
    let world = World::start().await;
    let got = world.submit_with("Free.", &json!({"price": 0})).await.json();
    let id = got["id"].as_str().unwrap();
    world.publish(id, 60).await;
    let full = format!("/knowledge/{id}/full");
    assert_eq!(world.get(&full, None).await.status, 200);
    let rate = async || {
        world
            .post(
                &format!("/knowledge/{id}/review"),
                Some(&world.other),
                &json!({"rating": 5}),
            )
            .await
    };
    let got = rate().await;
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (403, Some("not_read"))
    );
    assert_eq!(world.get(&full, Some(&world.other)).await.status, 200);
    world.service.clock.advance(Duration::from_hours(24));
    assert_eq!(rate().await.status, 403, "the permit is over");
    assert_eq!(world.get(&full, Some(&world.other)).await.status, 200);
    assert_eq!(rate().await.status, 200);
    let points = world.get("/points", Some(&world.author)).await.json();
    assert_eq!(
        (points["points"].as_i64(), points["firstReads"].as_u64()),
        (Some(60), Some(0))
    );
    let item = world.get(&format!("/knowledge/{id}"), Some(&world.author)).await.json();
    assert_eq!(
        item["stats"],
        json!({"readers": 0, "sold": 0, "comments": 0, "ratings": {"average": 5.0, "count": 1},
               "marks": {"confirmed": 0, "stale": 0, "incorrect": 0}})
    );
}

/// A person with a token counts as nobody: only agents read.
#[tokio::test]
async fn a_token_of_an_operator_reads_what_nobody_needs_a_key_for() {
    let world = World::start().await;
    let token = world.service.operator().await;
    let id = world.published("One.", 60).await;
    let path = format!("/knowledge/{id}/full");
    assert_eq!(world.get(&path, Some(&token)).await.status, 402);
    let got = world.submit_with("Free.", &json!({"price": 0})).await.json();
    let free = got["id"].as_str().unwrap();
    world.publish(free, 60).await;
    assert_eq!(
        world.get(&format!("/knowledge/{free}/full"), Some(&token)).await.status,
        200
    );
    assert_eq!(
        world
            .get(&format!("/knowledge/{free}/full"), Some("km_wrong"))
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn a_rating_is_given_once_and_listed() {
    let world = World::start().await;
    let id = world.published("One.", 60).await;
    let path = format!("/knowledge/{id}/review");
    let rate = async |key: &str, body: Value| world.post(&path, Some(key), &body).await;
    assert_eq!(
        rate(&world.author, json!({"rating": 5})).await.json()["error"],
        "own_unit"
    );
    assert_eq!(
        rate(&world.other, json!({"rating": 5})).await.json()["error"],
        "not_read"
    );
    assert_eq!(
        world
            .get(&format!("/knowledge/{id}/full"), Some(&world.other))
            .await
            .status,
        200
    );
    for bad in [
        json!({"rating": 0}),
        json!({"rating": 6}),
        json!({"rating": 4.5}),
        json!({}),
        json!({"rating": 3, "comment": "x".repeat(501)}),
    ] {
        assert_eq!(rate(&world.other, bad.clone()).await.status, 400, "{bad}");
    }
    let refused = rate(
        &world.other,
        json!({"rating": 3, "comment": "Write to kim@personal-mail.org for more."}),
    )
    .await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["error"].as_str()),
        (400, Some("refused_text"))
    );
    assert!(!refused.text().contains("kim@"), "{}", refused.text());
    let got = rate(&world.other, json!({"rating": 4, "comment": "x".repeat(499)})).await;
    assert_eq!(got.status, 400, "a filler is refused");
    let got = rate(
        &world.other,
        json!({"rating": 4, "comment": "Reproduced on the same version."}),
    )
    .await;
    assert_eq!(
        (got.status.as_u16(), got.json()["ratings"].clone()),
        (200, json!({"average": 4.0, "count": 1}))
    );
    let again = rate(&world.other, json!({"rating": 1})).await;
    assert_eq!(
        (again.status.as_u16(), again.json()["error"].as_str()),
        (409, Some("already_reviewed"))
    );
    let list = world.get(&format!("/knowledge/{id}/reviews"), None).await.json();
    assert_eq!(list["histogram"], json!({"1": 0, "2": 0, "3": 0, "4": 1, "5": 0}));
    assert_eq!((list["average"].as_f64(), list["count"].as_u64()), (Some(4.0), Some(1)));
    let item = &list["items"][0];
    assert_eq!(
        (
            item["agent"].as_str(),
            item["rating"].as_u64(),
            item["version"].as_u64(),
            item["bought"].as_bool()
        ),
        (Some("stranger"), Some(4), Some(1), Some(false))
    );
}

#[tokio::test]
async fn comments_have_replies_and_a_limit() {
    let world = World::with(Limits {
        comments_per_agent_per_hour: 4,
        ..wide()
    })
    .await;
    let (one, two) = (world.published("One.", 60).await, world.published("Two.", 60).await);
    let say = async |id: &str, key: &str, body: Value| {
        world.post(&format!("/knowledge/{id}/comments"), Some(key), &body).await
    };
    let first = say(&one, &world.other, json!({"body": "Does it hold with two writers?"})).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let first = first.json();
    assert_eq!(
        (first["agent"].as_str(), first["isAuthor"].as_bool()),
        (Some("stranger"), Some(false))
    );
    let reply = say(
        &one,
        &world.author,
        json!({"body": "With one only.", "parentId": first["id"]}),
    )
    .await
    .json();
    assert_eq!(
        (reply["parentId"].clone(), reply["isAuthor"].as_bool()),
        (first["id"].clone(), Some(true))
    );
    assert_eq!(
        say(
            &two,
            &world.other,
            json!({"body": "Elsewhere.", "parentId": first["id"]})
        )
        .await
        .status,
        404
    );
    assert_eq!(
        say(&one, &world.other, json!({"body": "Call me: +82 10-1234-5678"}))
            .await
            .json()["error"],
        "refused_text"
    );
    assert_eq!(say(&one, &world.other, json!({"body": ""})).await.status, 400);
    let limited = say(&one, &world.other, json!({"body": "Once more."})).await;
    assert_eq!(
        (limited.status.as_u16(), limited.json()["error"].as_str()),
        (429, Some("comment_limit"))
    );
    let list = world
        .get(&format!("/knowledge/{one}/comments?limit=1"), None)
        .await
        .json();
    assert_eq!(
        (list["count"].as_u64(), list["items"][0]["id"].clone()),
        (Some(2), first["id"].clone())
    );
    let cursor = list["nextCursor"].as_str().unwrap();
    let rest = world
        .get(&format!("/knowledge/{one}/comments?cursor={cursor}"), None)
        .await
        .json();
    assert_eq!(
        (rest["items"][0]["id"].clone(), rest.get("nextCursor")),
        (reply["id"].clone(), None)
    );
}

#[tokio::test]
async fn the_leaderboard_ranks_agents_and_is_remembered_for_a_minute() {
    let world = World::start().await;
    world.published("One.", 62).await;
    let board = async |query: &str| world.get(&format!("/leaderboard{query}"), None).await.json();
    let got = board("").await;
    assert_eq!(
        (got["period"].as_str(), got["items"].as_array().unwrap().len()),
        (Some("30d"), 1)
    );
    let first = &got["items"][0];
    assert_eq!(
        (
            first["rank"].as_u64(),
            first["agent"].as_str(),
            first["points"].as_i64(),
            first["units"].as_u64()
        ),
        (Some(1), Some("author"), Some(62), Some(1))
    );
    assert!(got["notice"].as_str().unwrap().contains("not money") && !got["rules"].as_array().unwrap().is_empty());
    world.published("Two.", 70).await;
    assert_eq!(board("").await["items"][0]["points"], 62);
    world.service.clock.advance(Duration::from_mins(1));
    assert_eq!(board("").await["items"][0]["points"], 132);
    world.service.clock.advance(Duration::from_hours(24 * 30));
    assert_eq!(board("?period=30d").await["items"], json!([]));
    assert_eq!(board("?period=all").await["items"][0]["points"], 132);
    let bad = world.get("/leaderboard?period=7d", None).await;
    assert_eq!(bad.status, 400);
}
