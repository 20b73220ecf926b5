//! Reviews and questions by buyers, replies, comments on datasets, edits and withdrawals.

use types::vocabulary::{ReportKind, ReportReason};

use super::*;

#[tokio::test]
async fn only_a_buyer_reviews_and_once() {
    let board = Board::start().await;
    let (world, unit) = (&board.world, board.unit("Checkpoints", &json!("0.25")).await);
    let review = json!({"unitId": unit, "body": "It holds; I ran it twice."});
    let path = "/community/reviews";
    let none = world.post(path, None, &review).await;
    assert_eq!(none.status, 401);
    assert_eq!(code(&board.sells(path, &review).await), refused(403, "not_bought"));
    assert_eq!(code(&board.asks(path, &review).await), refused(403, "not_bought"));
    board.buys(&unit).await;
    let made = board.asks(path, &review).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let body = made.json();
    assert_eq!(
        (&body["kind"], &body["unitId"], &body["verifiedBuyer"], &body["agent"]),
        (&json!("review"), &json!(unit), &json!(true), &json!("stranger"))
    );
    assert_eq!(body["trialSale"], false);
    assert_eq!(code(&board.asks(path, &review).await), refused(409, "already_reviewed"));
    let question = json!({"unitId": unit, "kind": "question", "body": "Which file system was it?"});
    for _ in 0..2 {
        assert_eq!(board.asks(path, &question).await.status, 201);
    }
    // Any version names the unit, and the latest is answered.
    let next = world.revised(&unit, "Checkpoints, again.").await;
    world.publish(&next, 70).await;
    let listed = board.shown(&format!("{path}?unitId={unit}")).await;
    assert_eq!(
        (&listed["total"], &listed["pages"], &listed["items"][2]["unitId"]),
        (&json!(3), &json!(1), &json!(next))
    );
    assert_eq!(board.shown(path).await["total"], 3);
    assert_eq!(board.shown(&format!("{path}?page=2")).await["items"], json!([]));
    // A takedown hides them, byte for byte as a missing unit, and in the list of all.
    world.take_down(&unit, TakedownReason::Inaccurate).await;
    let hidden = world.get(&format!("{path}?unitId={unit}"), None).await;
    let missing = world
        .get(&format!("{path}?unitId=019a0000-0000-7000-8000-000000000000"), None)
        .await;
    assert_eq!((hidden.status.as_u16(), &hidden.bytes), (404, &missing.bytes));
    assert_eq!(board.shown(path).await["total"], 0);
    assert_eq!(code(&board.asks(path, &question).await), refused(404, "not_found"));
}

#[tokio::test]
async fn the_mark_of_a_buyer_says_that_it_was_a_trial_sale() {
    let board = Board::start().await;
    let (world, path) = (&board.world, "/community/reviews");
    let (service, now) = (&world.service, world.service.app.clock.now());
    let made = world
        .submit_with("Checkpoints, measured.", &json!({"price": "0.25", "trialSale": true}))
        .await;
    let unit = made.json()["id"].as_str().unwrap().to_owned();
    world.publish(&unit, 60).await;
    let event = types::LedgerEventId::new(now);
    let gift = store::NewGrant {
        event,
        asset: service.app.pay.asset.clone(),
        operator: board.buyer,
        amount: types::money::MicroUsdc(1_000_000),
        given: true,
        reference: event.to_string(),
        now,
    };
    assert_eq!(
        service.app.store.money().grant(gift).await.unwrap(),
        store::Granted::Done
    );
    let bought = board.asks(&format!("/knowledge/{unit}/buy"), &json!({})).await;
    assert_eq!(bought.json()["paidWith"], "given", "{}", bought.text());
    let review = json!({"unitId": unit, "body": "It holds; I ran it twice."});
    let made = board.asks(path, &review).await;
    assert_eq!((made.status.as_u16(), &made.json()["trialSale"]), (201, &json!(true)));
    let listed = board.shown(&format!("{path}?unitId={unit}")).await;
    assert_eq!(listed["items"][0]["trialSale"], true, "{listed}");
    let page = world.get(&format!("/units/{unit}"), None).await.text();
    assert!(page.contains("in a trial sale"), "{page}");
    // A unit that was paid with money has the plain mark.
    let other = board.unit("Other checkpoints", &json!("0.25")).await;
    board.buys(&other).await;
    let review = json!({"unitId": other, "body": "It holds; I ran it twice."});
    assert_eq!(board.asks(path, &review).await.json()["trialSale"], false);
    let page = world.get(&format!("/units/{other}"), None).await.text();
    assert!(
        page.contains("verified buyer") && !page.contains("in a trial sale"),
        "{page}"
    );
}

#[tokio::test]
async fn what_a_caller_may_not_know_of_is_missing() {
    let board = Board::start().await;
    let world = &board.world;
    let (queued, retired) = (
        world.submitted("Queued.").await,
        board.unit("Retired", &json!(null)).await,
    );
    let rejected = world.submitted("Rejected.").await;
    world.reject(&rejected).await;
    let ended = board.sells(&format!("/knowledge/{retired}/retire"), &json!({})).await;
    assert_eq!(ended.status, 200, "{}", ended.text());
    for id in [&queued, &rejected, &retired] {
        let review = json!({"unitId": id, "body": "It holds for me."});
        assert_eq!(code(&board.asks("/community/reviews", &review).await).0, 404, "{id}");
        assert_eq!(code(&board.sells("/community/reviews", &review).await).0, 403, "{id}");
    }
    assert_eq!(
        world
            .get(&format!("/community/reviews?unitId={queued}"), None)
            .await
            .status,
        404
    );
    assert_eq!(
        world
            .get(&format!("/community/reviews?unitId={retired}"), None)
            .await
            .status,
        200
    );
    world
        .service
        .project(&world.author, "secret", &json!({"visibility": "private"}))
        .await;
    let said = json!({"body": "Only for us."});
    let (path, reviews) = ("/projects/secret/comments", "/community/reviews?dataset=secret");
    assert_eq!(board.asks(path, &said).await.status, 404);
    assert_eq!(board.asks(path, &json!({})).await.status, 404, "a bad body too");
    let hidden = board.sells(path, &said).await;
    assert_eq!(hidden.status, 201);
    // Neither does the number of a comment that is hidden say that it is one.
    let number = hidden.json()["id"].to_string();
    for (method, rest, body) in [("PATCH", "", r#"{"body": "Mine now."}"#), ("POST", "/withdraw", "{}")] {
        let change = async |number: &str| {
            let path = format!("/community/comments/{number}{rest}");
            let got = world.service.call(method, &path, Some(&world.other), body).await;
            (got.status.as_u16(), got.text())
        };
        let missing = change("999999").await;
        assert_eq!((missing.0, change(&number).await), (404, missing), "{method}");
    }
    let stranger = world.get(path, Some(&world.other)).await;
    let missing = world.get("/projects/nobody/comments", Some(&world.other)).await;
    assert_eq!(
        stranger.text().replace("secret", ""),
        missing.text().replace("nobody", "")
    );
    assert_eq!(world.get(path, None).await.status, 404);
    let own = world.get(path, Some(&world.author)).await;
    assert_eq!((own.status.as_u16(), &own.json()["count"]), (200, &json!(1)));
    for key in [None, Some(world.author.as_str())] {
        assert_eq!(world.get(reviews, key).await.status, 404, "one answer for all");
    }
    let review = json!({"dataset": "secret", "body": "It holds for me."});
    assert_eq!(board.asks("/community/reviews", &review).await.status, 404);
    assert_eq!(board.sells("/community/reviews", &review).await.status, 403);
}

#[tokio::test]
async fn a_reply_is_shown_under_its_review_and_a_seller_is_marked() {
    let board = Board::start().await;
    let unit = board.unit("Checkpoints", &json!("0.25")).await;
    board.buys(&unit).await;
    let question = json!({"unitId": unit, "kind": "question", "body": "Which file system was it?"});
    let question = board.asks("/community/reviews", &question).await.json()["id"].clone();
    let path = format!("/knowledge/{unit}/comments");
    let reply = board
        .sells(&path, &json!({"body": "It was ext4.", "parentId": question}))
        .await
        .json();
    assert_eq!((&reply["kind"], &reply["isAuthor"]), (&json!("reply"), &json!(true)));
    let thanks = json!({"body": "Thank you, that helps.", "parentId": reply["id"]});
    assert_eq!(board.asks(&path, &thanks).await.status, 201);
    board.asks(&path, &json!({"body": "A comment beside it."})).await;
    let listed = board.shown(&format!("/community/reviews?unitId={unit}")).await;
    let replies = listed["items"][0]["replies"].as_array().unwrap();
    let shown: Vec<_> = replies
        .iter()
        .map(|reply| (&reply["body"], &reply["isAuthor"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!("It was ext4."), &json!(true)),
            (&json!("Thank you, that helps."), &json!(false))
        ]
    );
    let comments = board.shown(&path).await;
    assert_eq!(
        (&comments["count"], &comments["items"][0]["kind"]),
        (&json!(1), &json!("comment"))
    );
}

#[tokio::test]
async fn an_author_edits_and_withdraws_and_the_trace_stays() {
    let board = Board::start().await;
    let (world, unit) = (&board.world, board.unit("Checkpoints", &json!(null)).await);
    let path = format!("/knowledge/{unit}/comments");
    let said = board
        .asks(&path, &json!({"body": "Does it hold with two writers?"}))
        .await
        .json();
    let own = format!("/community/comments/{}", said["id"]);
    let patch = async |key: &str, text: &str| {
        let body = json!({ "body": text }).to_string();
        world.service.call("PATCH", &own, Some(key), &body).await
    };
    assert_eq!(
        code(&patch(&world.author, "It does.").await),
        refused(403, "not_author")
    );
    assert_eq!(
        code(&patch(&world.other, "Write to ada.lovelace@example.de.").await),
        refused(400, "refused_text")
    );
    world.service.clock.advance(Duration::from_secs(1));
    let edited = patch(&world.other, "Does it hold with three writers?").await.json();
    assert!(edited["editedAt"].is_string(), "{edited}");
    let shown = board.shown(&path).await;
    assert_eq!(shown["items"][0]["body"], "Does it hold with three writers?");
    let withdraw = format!("{own}/withdraw");
    assert_eq!(
        code(&board.sells(&withdraw, &json!({})).await),
        refused(403, "not_author")
    );
    assert_eq!(board.asks(&withdraw, &json!({})).await.status, 200);
    assert_eq!(
        code(&board.asks(&withdraw, &json!({})).await),
        refused(409, "comment_withdrawn")
    );
    assert_eq!(
        code(&patch(&world.other, "Again.").await),
        refused(409, "comment_withdrawn")
    );
    let shown = board.shown(&path).await;
    assert_eq!((&shown["items"][0]["body"], &shown["count"]), (&json!(""), &json!(1)));
    let earlier = world
        .service
        .app
        .store
        .comments()
        .earlier(said["id"].as_i64().unwrap())
        .await
        .unwrap();
    assert_eq!(earlier.len(), 2);
    let missing = world
        .service
        .call(
            "PATCH",
            "/community/comments/999",
            Some(&world.other),
            r#"{"body": "A."}"#,
        )
        .await;
    assert_eq!(code(&missing), refused(404, "not_found"));
    // A review that moderators hide is missing for its author too.
    let moderation = world.service.app.store.moderation();
    let (number, now) = (said["id"].as_i64().unwrap(), world.service.clock.now());
    let hidden = moderation
        .hide(ReportKind::Comment, number.to_string(), Some(ReportReason::Spam), now)
        .await;
    assert!(hidden.unwrap());
    assert_eq!(
        code(&board.asks(&withdraw, &json!({})).await),
        refused(404, "not_found")
    );
    assert_eq!(board.shown(&path).await["count"], 0);
}

#[tokio::test]
async fn a_chosen_answer_stays_and_another_can_be_taken_back() {
    let board = Board::start().await;
    let unit = board.unit("Checkpoints", &json!(null)).await;
    let path = board.request("knowledge", &json!({})).await;
    let answers = format!("{path}/answers");
    let first = board.sells(&answers, &json!({"unitId": unit})).await.json();
    let withdraw = |answer: &Value| format!("/community/comments/{}/withdraw", answer["id"]);
    assert_eq!(board.sells(&withdraw(&first), &json!({})).await.status, 200);
    let choose = format!("{path}/choose");
    let gone = board.asks(&choose, &json!({"answerId": first["id"]})).await;
    assert_eq!(code(&gone), refused(409, "answer_without_item"));
    let second = board.sells(&answers, &json!({"unitId": unit, "note": "Again."})).await;
    assert_eq!(second.status, 201, "{}", second.text());
    let second = second.json();
    let chosen = board.asks(&choose, &json!({"answerId": second["id"]})).await.json();
    assert_eq!(
        (
            &chosen["answer"]["chosen"],
            &chosen["answer"]["item"]["locked"],
            &chosen["chosenAnswerId"]
        ),
        (&json!(true), &json!(false), &second["id"])
    );
    assert_eq!(
        code(&board.sells(&withdraw(&second), &json!({})).await),
        refused(409, "answer_chosen")
    );
}
