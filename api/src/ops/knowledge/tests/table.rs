//! Every status × price × caller × endpoint: what each answers.

use std::time::Duration;

use types::HumanDuration;

use super::*;

/// Status of a version as callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Queued,
    Waiting,
    Rejected,
    Published,
    Superseded,
    Retired,
    TakenDown(TakedownReason),
}

const STATUSES: [Status; 13] = [
    Status::Queued,
    Status::Waiting,
    Status::Rejected,
    Status::Published,
    Status::Superseded,
    Status::Retired,
    Status::TakenDown(TakedownReason::Checking),
    Status::TakenDown(TakedownReason::Copyright),
    Status::TakenDown(TakedownReason::PersonalData),
    Status::TakenDown(TakedownReason::Unlawful),
    Status::TakenDown(TakedownReason::Spam),
    Status::TakenDown(TakedownReason::Inaccurate),
    Status::TakenDown(TakedownReason::Other),
];

/// Prices: free, none, and one.
const PRICES: [Option<i64>; 3] = [Some(0), None, Some(250_000)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Nobody,
    Stranger,
    Reader,
    Owner,
}

const CALLERS: [Caller; 4] = [Caller::Nobody, Caller::Stranger, Caller::Reader, Caller::Owner];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Full,
    Item,
    Reviews,
    Comments,
    Comment,
    Rate,
    Mark,
    Appeal,
    Price,
    Revise,
    Retire,
}

const ENDPOINTS: [Endpoint; 11] = [
    Endpoint::Full,
    Endpoint::Item,
    Endpoint::Reviews,
    Endpoint::Comments,
    Endpoint::Comment,
    Endpoint::Rate,
    Endpoint::Mark,
    Endpoint::Appeal,
    Endpoint::Price,
    Endpoint::Revise,
    Endpoint::Retire,
];

/// The status of the answer, with the code where the table names one.
fn expected(status: Status, price: Option<i64>, caller: Caller, endpoint: Endpoint) -> (u16, &'static str) {
    use Status::{Published, Queued, Rejected, Retired, Superseded, TakenDown, Waiting};
    let (owns, reads) = (caller == Caller::Owner, caller == Caller::Reader);
    let missing = (404, "not_found");
    match endpoint {
        Endpoint::Full => match (status, price) {
            (TakenDown(_), _) => missing,
            _ if owns => (200, ""),
            (Published | Superseded, Some(0)) => (200, ""),
            (Published | Superseded, None) if caller != Caller::Nobody => (200, ""),
            (Published | Superseded, _) => (402, "payment_required"),
            (Retired, _) if reads => (200, ""),
            _ => missing,
        },
        Endpoint::Reviews | Endpoint::Comments => match status {
            Published | Superseded | Retired => (200, ""),
            _ => missing,
        },
        _ if caller == Caller::Nobody => (401, "unauthenticated"),
        Endpoint::Item if owns => (200, ""),
        Endpoint::Comment => match status {
            Published | Superseded => (201, ""),
            Retired if owns || reads => (201, ""),
            _ => missing,
        },
        Endpoint::Rate | Endpoint::Mark => match status {
            TakenDown(_) => missing,
            _ if owns => (403, "own_unit"),
            Published | Superseded | Retired if reads => (200, ""),
            Published | Superseded => (403, "not_read"),
            _ => missing,
        },
        _ if !owns => missing,
        Endpoint::Item => (200, ""),
        Endpoint::Appeal => match status {
            Rejected => (200, ""),
            _ => (409, "not_rejected"),
        },
        Endpoint::Price => match status {
            Rejected | Retired | TakenDown(_) => (409, "not_published"),
            _ => (200, ""),
        },
        Endpoint::Revise => match status {
            Published => (201, ""),
            Superseded => (409, "not_latest"),
            Queued | Waiting => (409, "revision_in_validation"),
            Rejected | Retired | TakenDown(_) => (409, "not_published"),
        },
        Endpoint::Retire => match status {
            Published => (200, ""),
            Superseded => (409, "not_latest"),
            _ => (409, "not_published"),
        },
    }
}

/// Makes a version with this status and price that the reader read in full, where anybody could.
async fn make(world: &World, number: usize, status: Status, price: Option<i64>) -> String {
    let id = world.submitted(&format!("Text number {number}.")).await;
    match status {
        Status::Queued => {}
        Status::Waiting => {
            let waiting = UnitResolution::Waiting {
                reason: "provider".to_owned(),
                resumes_after: None,
            };
            assert!(world.apply(&id, waiting).await);
        }
        Status::Rejected => world.reject(&id).await,
        Status::Published | Status::Superseded | Status::Retired | Status::TakenDown(_) => {
            world.publish(&id, 60).await;
            // Read while it has no price, because a read of a free unit leaves no record.
            let got = world.get(&format!("/knowledge/{id}/full"), Some(&world.other)).await;
            assert_eq!(got.status, 200, "{}", got.text());
        }
    }
    let (store, now) = (&world.service.app.store, world.service.clock.now());
    if status != Status::Rejected && price.is_some() {
        let window = Duration::ZERO;
        let priced = store
            .knowledge()
            .price(id.parse().unwrap(), price, now, window)
            .await
            .unwrap();
        assert!(matches!(priced, store::PriceChanged::Changed(_)));
    }
    match status {
        Status::Superseded => {
            let next = world.revised(&id, &format!("Text number {number}, again.")).await;
            world.publish(&next, 61).await;
        }
        Status::Retired => {
            let got = world
                .post(&format!("/knowledge/{id}/retire"), Some(&world.author), &json!({}))
                .await;
            assert_eq!(got.status, 200, "{}", got.text());
        }
        Status::TakenDown(reason) => world.take_down(&id, reason).await,
        _ => {}
    }
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_answers_as_the_table_says() {
    let world = World::judged_twice(Limits {
        // The price was changed for the item just now.
        price_change_window: HumanDuration(Duration::ZERO),
        ..wide()
    })
    .await;
    let token = world.service.operator().await;
    let stranger = world.service.agent(&token, "third").await;
    let (mut wrong, mut number, mut cells) = (Vec::new(), 0, 0);
    for status in STATUSES {
        for price in PRICES {
            let mut id = None;
            for (caller, endpoint) in CALLERS
                .iter()
                .flat_map(|caller| ENDPOINTS.map(|endpoint| (*caller, endpoint)))
            {
                cells += 1;
                let (code, word) = expected(status, price, caller, endpoint);
                let item = if let Some(item) = id.take() {
                    item
                } else {
                    number += 1;
                    make(&world, number, status, price).await
                };
                let key = match caller {
                    Caller::Nobody => None,
                    Caller::Stranger => Some(stranger.as_str()),
                    Caller::Reader => Some(world.other.as_str()),
                    Caller::Owner => Some(world.author.as_str()),
                };
                let path = |rest: &str| format!("/knowledge/{item}{rest}");
                let got = match endpoint {
                    Endpoint::Full => world.get(&path("/full"), key).await,
                    Endpoint::Item => world.get(&path(""), key).await,
                    Endpoint::Reviews => world.get(&path("/reviews"), key).await,
                    Endpoint::Comments => world.get(&path("/comments"), key).await,
                    Endpoint::Comment => {
                        world
                            .post(&path("/comments"), key, &json!({"body": "A question."}))
                            .await
                    }
                    Endpoint::Rate => world.post(&path("/review"), key, &json!({"rating": 4})).await,
                    Endpoint::Mark => {
                        let mark = json!({"mark": "stale", "ran": "The commands of the text."});
                        world.post(&path("/mark"), key, &mark).await
                    }
                    Endpoint::Appeal => world.post(&path("/appeal"), key, &json!({})).await,
                    Endpoint::Price => {
                        let body = json!({"price": "0.50"}).to_string();
                        world.service.call("PUT", &path("/price"), key, &body).await
                    }
                    Endpoint::Revise => {
                        number += 1;
                        let body = json!({"body": format!("Text number {number}.")});
                        world.post(&path("/revise"), key, &body).await
                    }
                    Endpoint::Retire => world.post(&path("/retire"), key, &json!({})).await,
                };
                let told = if got.status.is_success() {
                    String::new()
                } else {
                    got.json()["error"].as_str().unwrap().to_owned()
                };
                if (got.status.as_u16(), told.as_str()) != (code, word) {
                    wrong.push(format!(
                        "{status:?} {price:?} {caller:?} {endpoint:?}: {code} {word}, got {} {told}",
                        got.status
                    ));
                }
                // A change, and a read that leaves something, takes the item with it.
                let is_spent = got.status.is_success()
                    && matches!(
                        endpoint,
                        Endpoint::Rate | Endpoint::Appeal | Endpoint::Price | Endpoint::Revise | Endpoint::Retire
                    )
                    || (endpoint == Endpoint::Full && caller == Caller::Stranger);
                id = (!is_spent).then_some(item);
            }
        }
    }
    assert_eq!(cells, 13 * 3 * 4 * 11);
    assert!(wrong.is_empty(), "{} cells differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(world.service.app.store.knowledge().faults(10).await.unwrap(), []);
}

/// A unit that a caller may not know of is answered like one that does not exist, byte for byte.
#[tokio::test]
async fn a_hidden_unit_is_answered_like_a_missing_one() {
    let world = World::start().await;
    let hidden = world.submitted("Not for strangers.").await;
    let taken = world.published("Taken down.", 60).await;
    world.take_down(&taken, TakedownReason::Copyright).await;
    let missing = "01890000-0000-7000-8000-000000000000";
    for (method, rest, key, body) in [
        ("GET", "", Some(&world.other), ""),
        ("GET", "/full", None, ""),
        ("GET", "/full", Some(&world.other), ""),
        ("GET", "/reviews", None, ""),
        ("GET", "/comments", None, ""),
        ("POST", "/comments", Some(&world.other), r#"{"body":"A question."}"#),
        ("POST", "/review", Some(&world.other), r#"{"rating":3}"#),
        (
            "POST",
            "/mark",
            Some(&world.other),
            r#"{"mark":"stale","ran":"The commands of the text."}"#,
        ),
        ("POST", "/appeal", Some(&world.other), "{}"),
        ("POST", "/revise", Some(&world.other), r#"{"body":"Mine now."}"#),
        ("POST", "/retire", Some(&world.other), "{}"),
        ("PUT", "/price", Some(&world.other), r#"{"price":0}"#),
        // A bad body tells nothing either.
        ("PUT", "/price", Some(&world.other), r#"{"price":-1}"#),
        ("POST", "/review", Some(&world.other), r#"{"rating":9}"#),
        ("POST", "/mark", Some(&world.other), r#"{"mark":"wrong"}"#),
        ("POST", "/appeal", Some(&world.other), r#"{"why":"It is good."}"#),
        ("POST", "/comments", Some(&world.other), "{}"),
        ("POST", "/revise", Some(&world.other), "{}"),
    ] {
        let answer = async |id: &str| {
            let path = format!("/knowledge/{id}{rest}");
            let got = world.service.call(method, &path, key.map(String::as_str), body).await;
            (got.status, got.bytes)
        };
        let expected = answer(missing).await;
        assert_eq!(expected.0, 404, "{method} {rest}");
        for id in [&hidden, &taken] {
            assert_eq!(answer(id).await, expected, "{method} {rest} {body}");
        }
    }
}

#[tokio::test]
async fn a_path_that_is_no_id_is_refused_for_everybody() {
    let world = World::start().await;
    for key in [&world.author, &world.other] {
        for id in ["x", "01890000-0000-7000-8000-00000000000", "%00"] {
            let got = world.get(&format!("/knowledge/{id}"), Some(key)).await;
            assert_eq!(got.status, 400, "{id}");
        }
    }
}
