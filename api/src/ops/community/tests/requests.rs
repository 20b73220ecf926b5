//! Requests, answers and choices, and who is told.

use std::time::Duration;

use x402::conformance::{Buyer, asset, key};
use x402::wire::{self, Protocol};

use super::*;

#[tokio::test]
async fn an_answer_links_a_published_unit_of_its_operator() {
    let board = Board::start().await;
    let (world, path) = (&board.world, board.request("knowledge", &json!({})).await);
    let answers = format!("{path}/answers");
    let mine = board.unit("Checkpoints", &json!("0.25")).await;
    let queued = world.submitted("Another text.").await;
    let theirs = json!({
        "title": "A title", "body": "Theirs.", "category": "tool-usage", "sourceDeclaration": "Ran here.",
    });
    let foreign = world.post("/knowledge", Some(&world.other), &theirs).await;
    let foreign = foreign.json()["id"].as_str().unwrap().to_owned();
    world.publish(&foreign, 60).await;
    let link = async |unit: &str| board.sells(&answers, &json!({"unitId": unit})).await;
    assert_eq!(code(&link(&queued).await), refused(404, "not_found"));
    assert_eq!(code(&link(&foreign).await), refused(403, "not_owner"));
    world.service.project(&world.author, "tides", &json!({})).await;
    let other_kind = board.sells(&answers, &json!({"dataset": "tides"})).await;
    assert_eq!(code(&other_kind), refused(400, "invalid_request"));
    let got = link(&mine).await;
    assert_eq!(got.status, 201, "{}", got.text());
    let item = &got.json()["item"];
    assert_eq!(
        (&item["unitId"], &item["priceMicro"], &item["locked"]),
        (&json!(mine), &json!(250_000), &json!(true))
    );
    // Another version of the same unit is the same item; a version that was superseded is none.
    let next = world.revised(&mine, "Checkpoints, measured again.").await;
    world.publish(&next, 70).await;
    assert_eq!(code(&link(&mine).await), refused(404, "not_found"));
    assert_eq!(code(&link(&next).await), refused(409, "already_answered"));
    let shown = board.shown(&path).await;
    assert_eq!(
        (
            &shown["answers"][0]["item"]["unitId"],
            &shown["status"],
            &shown["answerCount"]
        ),
        (&json!(next), &json!("answered"), &json!(1))
    );
    // A unit that was taken down is not named, and its answer cannot be chosen.
    let choice = json!({"answerId": got.json()["id"]});
    world.take_down(&mine, TakedownReason::Spam).await;
    let shown = board.shown(&path).await;
    assert_eq!(shown["answers"][0].get("item"), None);
    assert!(!shown.to_string().contains(&mine), "{shown}");
    assert_eq!(
        code(&board.asks(&format!("{path}/choose"), &choice).await),
        refused(409, "answer_without_item")
    );
}

/// An answer outlives the sale of its item: nobody is left to buy a retired unit from. The request is public, so it names
/// the unit to nobody, and still says that it was bought.
#[tokio::test]
async fn a_retired_unit_is_not_chosen_and_not_named() {
    let board = Board::start().await;
    let path = board.request("knowledge", &json!({})).await;
    let unit = board.unit("Checkpoints", &json!("0.25")).await;
    let answer = json!({"unitId": unit, "note": "Measured last week."});
    let answered = board.sells(&format!("{path}/answers"), &answer).await;
    let choice = json!({"answerId": answered.json()["id"]});
    board.buys(&unit).await;
    assert_eq!(board.shown(&path).await["answers"][0]["item"]["unitId"], unit.as_str());
    let retired = board.sells(&format!("/knowledge/{unit}/retire"), &json!({})).await;
    assert_eq!(retired.status, 200, "{}", retired.text());
    let chosen = board.asks(&format!("{path}/choose"), &choice).await;
    assert_eq!(code(&chosen), refused(409, "answer_without_item"));
    let shown = board.shown(&path).await;
    assert_eq!(shown["status"], "answered");
    let answer = &shown["answers"][0];
    assert_eq!(answer.get("item"), None);
    assert_eq!(
        (&answer["note"], &answer["bought"], &answer["boughtWith"]),
        (&json!("Measured last week."), &json!(true), &json!("credits"))
    );
    assert!(!shown.to_string().contains(&unit), "{shown}");
}

#[tokio::test]
async fn an_answer_links_a_public_dataset_of_its_operator() {
    let board = Board::start().await;
    let (world, path) = (&board.world, board.request("dataset", &json!({})).await);
    let answers = format!("{path}/answers");
    let service = &world.service;
    service
        .project(&world.author, "tides", &json!({"access": "paid", "price": "0.50"}))
        .await;
    service
        .project(&world.author, "secret", &json!({"visibility": "private"}))
        .await;
    service.project(&world.other, "theirs", &json!({})).await;
    service.merged(&world.author, "tides", &[json!({"name": "a"})]).await;
    for (body, expected) in [
        (json!({"dataset": "secret"}), refused(404, "not_found")),
        (json!({"dataset": "missing"}), refused(404, "not_found")),
        (json!({"dataset": "theirs"}), refused(403, "not_owner")),
        (json!({"dataset": "tides", "version": 2}), refused(404, "not_found")),
        (
            json!({"unitId": "019a0000-0000-7000-8000-000000000000"}),
            refused(400, "invalid_request"),
        ),
    ] {
        assert_eq!(code(&board.sells(&answers, &body).await), expected, "{body}");
    }
    // A version that is not named is the latest at the time.
    let got = board.sells(&answers, &json!({"dataset": "tides"})).await.json();
    assert_eq!(
        (&got["item"]["version"], &got["item"]["locked"]),
        (&json!(1), &json!(true))
    );
    let again = board.sells(&answers, &json!({"dataset": "tides", "version": 1})).await;
    assert_eq!(code(&again), refused(409, "already_answered"));
}

/// A purchase counts from the payout wallet that the operator proved, also if it was made before the proof.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purchase_by_the_proved_payout_wallet_is_the_requesters() {
    let board = Board::start().await;
    let (world, path) = (&board.world, board.request("dataset", &json!({})).await);
    let service = &world.service;
    service
        .project(&world.author, "tides", &json!({"access": "paid", "price": "0.50"}))
        .await;
    service.merged(&world.author, "tides", &[json!({"name": "a"})]).await;
    let answered = board
        .sells(&format!("{path}/answers"), &json!({"dataset": "tides"}))
        .await;
    assert_eq!(answered.status, 201, "{}", answered.text());
    let wallet = key(1).address().to_string();
    let store = &service.app.store;
    store.wallets().give(&wallet, 10_000_000).await.unwrap();
    let now = service.clock.now();
    let seconds = u64::try_from(now.micros() / 1_000_000).unwrap();
    let message = Buyer::new(500_000, 1, seconds).message(Protocol::V2);
    let request = http::Request::get("/paid/dataset?slug=tides&version=1")
        .header("payment-signature", wire::header(&message))
        .body(axum::body::Body::empty());
    let paid = service.send(request.unwrap()).await;
    assert_eq!(paid.status, 200, "{}", paid.text());
    let bought = async || board.shown(&path).await["answers"][0]["boughtWith"].clone();
    assert_eq!(bought().await, Value::Null, "a wallet is nobody's before its proof");
    let review = json!({"dataset": "tides", "body": "Complete, as far as it goes."});
    let unproved = board.asks("/community/reviews", &review).await;
    assert_eq!(code(&unproved), refused(403, "not_bought"));
    let place = "http://sluice.test/console/settings#proof";
    assert!(unproved.text().contains(place), "{}", unproved.text());
    let accounts = store.accounts();
    service.paid_out_at(board.buyer, &wallet, Duration::ZERO).await;
    assert!(accounts.payout_prove(board.buyer, &wallet, now).await.unwrap());
    let owner = crate::rules::settlement::owner(&asset(), &key(1).address());
    assert_eq!(store.money().adopt_wallet(&owner, board.buyer).await.unwrap(), 1);
    assert_eq!(bought().await, "x402");
    let made = board.asks("/community/reviews", &review).await;
    assert_eq!(made.status, 201, "{}", made.text());
}

#[tokio::test]
async fn requests_are_counted_under_the_other_conditions() {
    let board = Board::start().await;
    let first = board.request("knowledge", &json!({"category": "tool-usage"})).await;
    board
        .request("dataset", &json!({"title": "Tide gauges of the QUAY"}))
        .await;
    let closed = board.request("dataset", &json!({"category": "tool-usage"})).await;
    assert_eq!(board.asks(&format!("{closed}/close"), &json!({})).await.status, 200);
    let all = board.shown("/community/requests").await;
    assert_eq!(
        (&all["total"], &all["pages"], &all["page"]),
        (&json!(3), &json!(1), &json!(1))
    );
    assert_eq!(
        all["counts"],
        json!({
            "status": {"open": 2, "answered": 0, "fulfilled": 0, "closed": 1, "expired": 0},
            "kind": {"knowledge": 1, "dataset": 2},
            "category": {"general": 1, "tool-usage": 2},
        })
    );
    let some = board.shown("/community/requests?status=open&category=tool-usage").await;
    assert_eq!(
        (&some["total"], &some["counts"]),
        (
            &json!(1),
            &json!({
                "status": {"open": 1, "answered": 0, "fulfilled": 0, "closed": 1, "expired": 0},
                "kind": {"knowledge": 1, "dataset": 0},
                "category": {"general": 1, "tool-usage": 1},
            })
        )
    );
    assert!(first.ends_with(some["items"][0]["id"].as_str().unwrap()));
    assert_eq!(some["items"][0].get("body"), None);
    assert_eq!(some["items"][0]["excerpt"], "Measured ones, please.");
    let found = board.shown("/community/requests?q=quay%20GAUGES%20measured").await;
    assert_eq!(
        (&found["total"], &found["items"][0]["kind"]),
        (&json!(1), &json!("dataset"))
    );
    assert_eq!(board.shown("/community/requests?q=quay%20sand").await["total"], 0);
    for _ in 0..4 {
        board.request("knowledge", &json!({})).await;
    }
    let page = board.shown("/community/requests?per=5&page=2").await;
    assert_eq!(
        (&page["total"], &page["pages"], page["items"].as_array().unwrap().len()),
        (&json!(7), &json!(2), 2)
    );
    let beyond = board.shown("/community/requests?per=5&page=3").await;
    assert_eq!((&beyond["total"], &beyond["items"]), (&json!(7), &json!([])));
}

#[tokio::test]
async fn a_request_ends_at_its_deadline_and_its_job_writes_that_down() {
    let board = Board::start().await;
    let (service, now) = (&board.world.service, board.world.service.clock.now());
    let deadline = now.plus(Duration::from_hours(2)).to_string();
    let path = board.request("knowledge", &json!({"deadline": deadline})).await;
    let store = service.app.store.clone();
    let ends = RequestEndJob::new(store.clone(), std::sync::Arc::clone(&service.app.clock));
    let runner = JobRunner::new(store, std::sync::Arc::clone(&service.app.clock))
        .with(RequestEndJob::KIND, std::sync::Arc::new(ends));
    service.clock.advance(Duration::from_hours(2));
    let late = board.sells(&format!("{path}/answers"), &json!({"note": "Late."})).await;
    assert_eq!(code(&late), refused(409, "request_over"));
    assert_eq!(late.json()["status"], "expired");
    // The state of the request is judged after the caller's right and its input.
    let answers = format!("{path}/answers");
    assert_eq!(
        code(&board.asks(&answers, &json!({})).await),
        refused(403, "own_request")
    );
    for (body, expected) in [
        (json!({}), refused(400, "invalid_request")),
        (json!({"note": "Late.", "version": 1}), refused(400, "invalid_request")),
        (
            json!({"unitId": "019a0000-0000-7000-8000-000000000000"}),
            refused(404, "not_found"),
        ),
    ] {
        assert_eq!(code(&board.sells(&answers, &body).await), expected, "{body}");
    }
    assert_eq!(board.shown(&path).await["status"], "expired");
    runner.run_due().await;
    let shown = board.shown(&path).await;
    assert_eq!(
        (&shown["status"], &shown["decidedAt"]),
        (&json!("expired"), &json!(deadline))
    );
    let close = board.asks(&format!("{path}/close"), &json!({})).await;
    assert_eq!(code(&close), refused(409, "request_over"));
}

/// Sellers whose items match are told once, also those whose item appears later; the requester and others are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sellers_whose_items_match_are_told_once() {
    let board = Board::start().await;
    let service = &board.world.service;
    let store = service.app.store.clone();
    let seller = service.get("/credits", Some(&board.world.author)).await.json();
    let seller = seller["topUp"].as_str().unwrap().split("operator=").nth(1).unwrap();
    let seller: OperatorId = seller.parse().unwrap();
    let clock = std::sync::Arc::clone(&service.app.clock);
    let matches = MatchJob::new(service.app.clone());
    let runner = JobRunner::new(store.clone(), clock).with(MatchJob::KIND, std::sync::Arc::new(matches));
    let path = board
        .request("knowledge", &json!({"title": "SQLite checkpoints of WAL"}))
        .await;
    let told = async |operator| {
        let told = store.community().told(operator, service.clock.now(), 9).await.unwrap();
        told.into_iter().map(|told| told.title).collect::<Vec<_>>()
    };
    // Without an index the job is tried again.
    assert_eq!(runner.run_due().await, 1);
    assert_eq!(told(seller).await, [""; 0]);
    service.app.process.searching.refresh(&store).await.unwrap();
    service.clock.advance(Duration::from_mins(1));
    runner.run_due().await;
    assert_eq!(told(seller).await, [""; 0], "nobody sells it yet");
    board.unit("Checkpoints of SQLite in WAL mode", &json!("0.25")).await;
    board.unit("Boats on a river", &json!("0.25")).await;
    service.app.process.searching.refresh(&store).await.unwrap();
    for _ in 0..3 {
        service.clock.advance(Duration::from_hours(1));
        runner.run_due().await;
    }
    assert_eq!(told(seller).await, ["SQLite checkpoints of WAL"]);
    assert_eq!(told(board.buyer).await, [""; 0]);
    assert_eq!(board.asks(&format!("{path}/close"), &json!({})).await.status, 200);
    assert_eq!(told(seller).await, [""; 0], "a closed request needs nobody");
}

#[tokio::test]
async fn a_budget_above_the_greatest_is_told_the_greatest() {
    let board = Board::start().await;
    let wish = json!({"title": "Levels wanted", "body": "Hourly levels of the quay.", "budget": "9999999999999999"});
    let got = board.asks("/community/requests", &wish).await;
    assert_eq!(got.status, 400, "{}", got.text());
    assert!(
        got.text().contains("must be at most 9223372036854.77 dollars"),
        "{}",
        got.text()
    );
}
