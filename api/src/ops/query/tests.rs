use std::time::Duration;

use proof::{Keys, QueryReceipt, SigningKey, VerifiedStatement};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use types::{Clock as _, Size, Version, canonical};

use crate::keys::KeyRing;
use crate::testing::{Got, Service, config, during, limits};

async fn scene() -> (Service, String, String) {
    scene_with(limits()).await
}

async fn scene_with(limits: crate::config::Limits) -> (Service, String, String) {
    let service = Service::with(config(), limits).await;
    let (owner, other) = (service.operator().await, service.operator().await);
    let mine = service.agent(&owner, "mine").await;
    let theirs = service.agent(&other, "theirs").await;
    service.project(&mine, "weather", &json!({})).await;
    for name in ["a", "b"] {
        service.merged(&mine, "weather", &[json!({ "name": name })]).await;
    }
    (service, mine, theirs)
}

async fn ask(service: &Service, key: &str, body: &Value) -> Got {
    service
        .call("POST", "/projects/weather/query", Some(key), &body.to_string())
        .await
}

#[tokio::test]
async fn an_answer_has_typed_columns_and_names_its_version() {
    let (service, _, theirs) = scene().await;
    let got = ask(&service, &theirs, &json!({"sql": "count"})).await;
    assert_eq!(got.status, 200);
    assert_eq!(
        got.json(),
        json!({
            "version": 2, "columns": [{"name": "n", "type": "Int64", "nullable": false}], "rows": [[2], [200]],
            "rowCount": 2, "truncated": false,
        })
    );
    let old = ask(&service, &theirs, &json!({"sql": "count", "version": 1, "limit": 7}))
        .await
        .json();
    assert_eq!((&old["version"], &old["rows"]), (&json!(1), &json!([[1], [7]])));
}

#[tokio::test]
async fn what_goes_wrong_in_a_query_says_what() {
    let (service, _, theirs) = scene().await;
    for (sql, status, code) in [
        ("refuse", 400, "query_refused"),
        ("fail", 400, "query_failed"),
        ("time out", 408, "query_timeout"),
        ("wait", 429, "queries_busy"),
        ("explode", 413, "query_too_large"),
        ("be gone", 503, "unavailable"),
    ] {
        let got = ask(&service, &theirs, &json!({ "sql": sql })).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["error"]),
            (status, &json!(code)),
            "{sql}"
        );
    }
    let busy = ask(&service, &theirs, &json!({"sql": "wait"})).await;
    assert_eq!(
        (&busy.headers["retry-after"], &busy.json()["retryAfter"]),
        (&"5".parse().unwrap(), &json!(5))
    );
    let gone = ask(&service, &theirs, &json!({"sql": "be gone"})).await;
    assert_eq!(
        (&gone.headers["retry-after"], &gone.json()["retryAfter"]),
        (&"2".parse().unwrap(), &json!(2))
    );
    let refused = ask(&service, &theirs, &json!({"sql": "refuse"})).await.json();
    assert_eq!(refused["details"][0]["path"], "/sql");
    assert!(refused["message"].as_str().unwrap().contains("EXPLAIN"), "{refused}");
    // However a query ends, the next one runs.
    assert_eq!(ask(&service, &theirs, &json!({"sql": "count"})).await.status, 200);
}

#[tokio::test]
async fn a_question_is_in_range() {
    let (service, _, theirs) = scene().await;
    for (body, status) in [
        (json!({}), 400),
        (json!({"sql": ""}), 400),
        (json!({"sql": "x".repeat(4_000)}), 200),
        (json!({"sql": "é".repeat(4_000)}), 200),
        (json!({"sql": "x".repeat(4_001)}), 400),
        (json!({"sql": 1}), 400),
        (json!({"sql": "count", "limit": 0}), 400),
        (json!({"sql": "count", "limit": 1}), 200),
        (json!({"sql": "count", "limit": 1_000}), 200),
        (json!({"sql": "count", "limit": 1_001}), 400),
        (json!({"sql": "count", "version": 0}), 400),
        (json!({"sql": "count", "version": 3}), 404),
        (json!({"sql": "count", "offset": 1}), 200),
        (json!({"sql": "count", "offset": -1}), 400),
        (json!({"sql": "count", "from": 1}), 400),
    ] {
        assert_eq!(ask(&service, &theirs, &body).await.status, status, "{body}");
    }
    assert_eq!(
        service
            .call("POST", "/projects/weather/query", None, r#"{"sql": "count"}"#)
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn one_query_of_an_operator_runs_at_a_time() {
    let (service, mine, theirs) = scene().await;
    let hang = json!({"sql": "hang"});
    let hanging = ask(&service, &mine, &hang);
    let meanwhile = async {
        service.sandbox.hanging.next().await;
        let refused = ask(&service, &mine, &json!({"sql": "count"})).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["error"]),
            (429, &json!("query_running"))
        );
        assert_eq!(refused.headers["retry-after"], "1");
        assert_eq!(ask(&service, &theirs, &json!({"sql": "count"})).await.status, 200);
    };
    tokio::select! {
        got = hanging => panic!("it answered {}", got.status),
        () = meanwhile => {}
    }
    // The client disconnected, so the lease is ended in the background. The database applies changes in order.
    let mut status = ask(&service, &mine, &json!({"sql": "count"})).await.status;
    while status == 429 {
        tokio::task::yield_now().await;
        status = ask(&service, &mine, &json!({"sql": "count"})).await.status;
    }
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_dead_query_blocks_no_longer_than_its_time() {
    let (service, mine, _) = scene().await;
    let operators = service.app.store.contribution(contributed(&service, &mine).await).await;
    let operator = operators.unwrap().unwrap().operator;
    let now = service.app.clock.now();
    // The lease of a process that died during a query.
    let taken = service
        .app
        .store
        .query_lease_take(operator, "dead".to_owned(), now.plus(Duration::from_secs(25)), now)
        .await;
    assert_eq!(taken.unwrap(), store::LeaseTaken::Taken);
    service.clock.advance(Duration::from_secs(24));
    assert_eq!(ask(&service, &mine, &json!({"sql": "count"})).await.status, 429);
    service.clock.advance(Duration::from_secs(1));
    assert_eq!(ask(&service, &mine, &json!({"sql": "count"})).await.status, 200);
}

async fn contributed(service: &Service, key: &str) -> types::ContributionId {
    let body = json!({"records": [{"name": "z"}]}).to_string();
    let got = service
        .call("POST", "/projects/weather/contribute", Some(key), &body)
        .await;
    got.json()["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_version_that_is_too_large_is_refused_with_a_hint() {
    let mut small = limits();
    small.query_version = Size(2_000);
    let (service, mine, _) = scene_with(small).await;
    let got = ask(&service, &mine, &json!({"sql": "count"})).await;
    let body = got.json();
    assert_eq!(
        (got.status.as_u16(), &body["error"], &body["limitBytes"]),
        (413, &json!("version_too_large"), &json!(2_000))
    );
    assert!(
        body["message"].as_str().unwrap().contains("sluice pull weather"),
        "{body}"
    );
}

/// Returns the receipt of an answer, proven with the keys that the service shows.
async fn proven(service: &Service, answer: &Value) -> QueryReceipt {
    let keys = service.get("/.well-known/service-keys", None).await;
    let keys = Keys::parse(&keys.bytes).unwrap();
    let text = answer["receipt"].to_string();
    let verified = VerifiedStatement::<QueryReceipt>::parse(text.as_bytes(), &keys).unwrap();
    verified.statement().clone()
}

/// Returns the SHA-256 of the canonical JSON of an answer, by another way than the service's.
fn hash_of(answer: &Value) -> String {
    let hashed = json!({"columns": answer["columns"], "rows": answer["rows"], "truncated": answer["truncated"]});
    let mut text = Vec::new();
    canonical::write_value(&mut text, &hashed);
    data_encoding::HEXLOWER.encode(&Sha256::digest(&text))
}

#[tokio::test]
async fn a_receipt_says_what_was_asked_of_which_records_and_answered() {
    let (service, _, theirs) = scene().await;
    let plain = ask(&service, &theirs, &json!({"sql": "count", "limit": 7}))
        .await
        .json();
    assert_eq!(plain.get("receipt"), None);
    let manifest = service
        .get("/projects/weather/manifest?version=1", Some(&theirs))
        .await
        .json();
    let mut answer = ask(
        &service,
        &theirs,
        &json!({"sql": "count", "version": 1, "limit": 7, "receipt": true}),
    )
    .await
    .json();
    let receipt = proven(&service, &answer).await;
    assert_eq!(
        (receipt.dataset.to_string(), receipt.root.to_string()),
        (
            manifest["dataset"].as_str().unwrap().to_owned(),
            manifest["root"].as_str().unwrap().to_owned()
        )
    );
    assert_eq!(
        (
            receipt.slug.as_str(),
            receipt.version,
            receipt.sql.as_str(),
            receipt.limit
        ),
        ("weather", Version(1), "count", 7)
    );
    assert_eq!((receipt.row_count, receipt.answer.to_string()), (2, hash_of(&answer)));
    assert_eq!((receipt.reproducible, receipt.why.is_empty()), (true, true));
    assert_eq!(
        (receipt.now, receipt.issued_at),
        (service.clock.now(), service.clock.now())
    );
    // It is the same statement again at another time, and beside it the answer is as always.
    service.clock.advance(Duration::from_secs(5));
    let body = json!({"sql": "count", "version": 1, "limit": 7, "receipt": true});
    let later = proven(&service, &ask(&service, &theirs, &body).await.json()).await;
    assert_eq!(later.now, receipt.now.plus(Duration::from_secs(5)));
    assert_eq!(later.answer, receipt.answer);
    answer.as_object_mut().unwrap().remove("receipt");
    let body = json!({"sql": "count", "version": 1, "limit": 7});
    assert_eq!(answer, ask(&service, &theirs, &body).await.json());
}

#[tokio::test]
async fn a_receipt_of_a_page_says_which_rows_it_has_and_what_cannot_be_repeated() {
    let (service, _, theirs) = scene().await;
    let body = json!({"sql": "list", "limit": 20, "offset": 15, "receipt": true});
    let answer = ask(&service, &theirs, &body).await.json();
    let receipt = proven(&service, &answer).await;
    assert_eq!((receipt.offset, receipt.row_count, receipt.next_offset), (15, 5, None));
    assert_eq!(receipt.answer.to_string(), hash_of(&answer));
    assert_eq!((receipt.reproducible, receipt.why), (false, vec!["order".to_owned()]));
}

#[tokio::test]
async fn what_goes_wrong_gives_no_receipt_and_without_a_key_there_is_no_answer() {
    let (service, _, theirs) = scene().await;
    for sql in ["refuse", "fail", "time out", "explode", "be gone"] {
        let got = ask(&service, &theirs, &json!({"sql": sql, "receipt": true})).await;
        assert!(
            got.status.as_u16() >= 400 && got.json().get("receipt").is_none(),
            "{sql}"
        );
    }
    // The public half of the next key is another one, so nothing can be signed.
    let ring = KeyRing::load(&service.app.store, &*service.app.clock).await.unwrap();
    let foreign = SigningKey::generate().unwrap();
    let now = service.clock.now();
    let endorsement = ring.signer().endorse(&foreign.public_key(), now);
    let broken = store::NewServiceKey {
        key_id: foreign.key_id().to_string(),
        public_key: *foreign.public_key().as_bytes(),
        secret: [9; 32],
        created_at: now,
        endorsement: Some(store::KeyEndorsement {
            by: endorsement.by.to_string(),
            value: *endorsement.value.as_bytes(),
        }),
    };
    let current = ring.current().key_id.to_string();
    let added = service
        .app
        .store
        .service_key_add(Some(current), broken, now)
        .await
        .unwrap();
    assert_eq!(added, store::KeyAdded::Added);
    let got = ask(&service, &theirs, &json!({"sql": "count", "receipt": true})).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]),
        (503, &json!("unavailable"))
    );
    assert_eq!(got.json().get("rows"), None);
    assert_eq!(ask(&service, &theirs, &json!({"sql": "count"})).await.status, 200);
}

#[tokio::test]
async fn a_receipt_of_no_records_has_the_root_of_version_0() {
    let service = Service::with(config(), limits()).await;
    let owner = service.operator().await;
    let mine = service.agent(&owner, "mine").await;
    service.project(&mine, "weather", &json!({})).await;
    let answer = ask(&service, &mine, &json!({"sql": "count", "receipt": true}))
        .await
        .json();
    let receipt = proven(&service, &answer).await;
    assert_eq!((receipt.version, receipt.root), (Version::EMPTY, catalog::Root::EMPTY));
}

/// What can end the right to read while a statement runs.
#[derive(Clone, Copy, Debug)]
enum RightEnded {
    Takedown,
    Refund,
    Suspension,
}

#[tokio::test]
async fn a_right_that_ends_while_a_query_runs_ends_its_answer() {
    for (end, status, code) in [
        (RightEnded::Takedown, 404, "not_found"),
        (RightEnded::Refund, 402, "payment_required"),
        (RightEnded::Suspension, 401, "account_suspended"),
    ] {
        // An error of a statement can name values, too.
        for sql in ["pause count", "pause fail"] {
            let service = Service::start().await;
            let seller = service.operator_at("seller@example.org").await;
            let buyer = service.operator_at("buyer@example.org").await;
            let operator = async |email: &str| service.app.store.operator_by_email(email).await.unwrap().unwrap().id;
            let mine = service.agent(&seller, "mine").await;
            let theirs = service.agent(&buyer, "theirs").await;
            let paid = json!({"access": "paid", "price": "0.25"});
            service.project(&mine, "weather", &paid).await;
            service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
            let buyer = operator("buyer@example.org").await;
            service.granted(buyer, 1_000_000).await;
            let bought = service.call("POST", "/projects/weather/buy", Some(&theirs), "{}").await;
            assert_eq!(bought.status, 200);
            let asked = json!({ "sql": sql });
            let ended = async {
                service.sandbox.hanging.next().await;
                match end {
                    RightEnded::Takedown => service.took_down("weather").await,
                    RightEnded::Refund => service.refunded(operator("seller@example.org").await).await,
                    RightEnded::Suspension => {
                        let (store, now) = (&service.app.store, service.app.clock.now());
                        store.operator_suspend(buyer, "spam".to_owned(), now).await.unwrap();
                    }
                }
                service.sandbox.going_on.notify_one();
            };
            let got = during(ask(&service, &theirs, &asked), ended).await;
            assert_eq!(
                (got.status.as_u16(), &got.json()["error"]),
                (status, &json!(code)),
                "{end:?} during `{sql}`: {}",
                got.text()
            );
        }
    }
}
