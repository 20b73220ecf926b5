//! Purchases from a header to a grant, with facilitators that answer right, wrong and not at all.

use super::*;
use crate::flow::PaymentReconciler;

#[tokio::test]
async fn a_challenge_serves_both_versions_and_reads_no_credential() {
    let stage = Stage::with([]).await;
    let got = stage.send("GET", &stage.pack(), &[], "192.0.2.1").await;
    refused(&got, 402, "payment_required");
    let body = got.json();
    assert_eq!(
        (&body["x402Version"], &body["priceMicro"]),
        (&json!(1), &json!(1_000_000))
    );
    assert_eq!(body["accepts"][0]["maxAmountRequired"], "1000000");
    assert_eq!(body["accepts"][0]["network"], "base-sepolia");
    let terms = message(&got, "payment-required").unwrap();
    assert_eq!(
        (&terms["x402Version"], &terms["accepts"][0]["amount"]),
        (&json!(2), &json!("1000000"))
    );
    assert_eq!(terms["resource"]["url"], format!("http://sluice.test{}", stage.pack()));
    assert_eq!(got.headers["access-control-allow-origin"], "*");
    assert_eq!(got.headers["cache-control"], "no-store");
    // Requests that a page of another site may send.
    let allowed = stage.send("OPTIONS", &stage.pack(), &[], "192.0.2.1").await;
    assert_eq!(allowed.status, 204);
    let names = allowed.headers["access-control-allow-headers"].to_str().unwrap();
    assert!(
        names.contains("PAYMENT-SIGNATURE") && names.contains("X-PAYMENT"),
        "{names}"
    );
    let posted = stage.send("POST", &stage.pack(), &[], "192.0.2.1").await;
    assert_eq!(posted.status, 405);
    // A forged host changes no address.
    let forged = [("x-forwarded-host", "evil.example".to_owned())];
    let got = stage.send("GET", &stage.pack(), &forged, "192.0.2.1").await;
    assert!(!got.text().contains("evil"), "{}", got.text());
    let missing = format!("/paid/credits?operator={}", OperatorId::from_bytes([7; 16]));
    refused(&stage.send("GET", &missing, &[], "192.0.2.1").await, 404, "not_found");
    let odd = stage.send("GET", "/paid/credits?operator=x", &[], "192.0.2.1").await;
    refused(&odd, 400, "invalid_request");
}

#[tokio::test]
pub(super) async fn a_pack_is_credited_once_per_authorization() {
    for protocol in [Protocol::V1, Protocol::V2] {
        let stage = Stage::with([]).await;
        let text = wire::header(&stage.buyer(1).message(protocol));
        let (name, receipt) = match protocol {
            Protocol::V1 => ("x-payment", "x-payment-response"),
            Protocol::V2 => ("payment-signature", "payment-response"),
        };
        let sent = [(name, text)];
        let from = "192.0.2.1";
        // A HEAD settles nothing.
        let head = stage.send("HEAD", &stage.pack(), &sent, from).await;
        assert_eq!((head.status.as_u16(), stage.states().await.len()), (402, 0));
        let first = stage.send("GET", &stage.pack(), &sent, from).await;
        assert_eq!(first.status, 200, "{}", first.text());
        assert_eq!(first.json()["creditedMicro"], 1_000_000);
        let said = message(&first, receipt).unwrap();
        assert_eq!((&said["success"], &said["amount"]), (&json!(true), &json!("1000000")));
        assert_eq!(said["payer"], key(1).address().checksum());
        let again = stage.send("GET", &stage.pack(), &sent, from).await;
        assert_eq!((again.status.as_u16(), again.bytes), (200, first.bytes));
        // The signature is public on the chain by now.
        let stranger = stage.send("GET", &stage.pack(), &sent, "198.51.100.1").await;
        refused(&stranger, 409, "payment_used");
        assert_eq!(message(&stranger, receipt).unwrap()["success"], true);
        assert!(!stranger.headers.contains_key("payment-required"));
        stage.service.clock.advance(Duration::from_secs(300 + 601));
        let late = stage.send("GET", &stage.pack(), &sent, from).await;
        refused(&late, 409, "payment_used");
        assert_eq!((stage.wallet(1).await, stage.wallet(200).await), (9_000_000, 1_000_000));
        assert_eq!(stage.credits().await, MicroUsdc(1_000_000));
    }
}

#[tokio::test]
async fn one_authorization_sent_many_times_at_once_settles_once() {
    let stage = Stage::waiting(PATIENCE, []).await;
    let (path, message) = (stage.pack(), stage.buyer(1).message(Protocol::V2));
    let calls = (0..50).map(|_| stage.pay(&path, &message));
    let answers = futures_util::future::join_all(calls).await;
    for got in &answers {
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(got.bytes, answers[0].bytes);
    }
    assert_eq!(
        (stage.wallet(1).await, stage.credits().await),
        (9_000_000, MicroUsdc(1_000_000))
    );
    assert_eq!(*stage.facilitator.settles.lock(), 1);
    assert_eq!(stage.states().await, [PaymentState::Settled]);
}

#[tokio::test]
async fn an_authorization_pays_for_one_thing() {
    let stage = Stage::with([]).await;
    stage.service.operator_at("bob@example.org").await;
    let other = stage.service.app.store.operator_by_email("bob@example.org").await;
    let other = format!("/paid/credits?operator={}", other.unwrap().unwrap().id);
    let good = stage.buyer(1).message(Protocol::V2);
    assert_eq!(stage.pay(&stage.pack(), &good).await.status, 200);
    refused(&stage.pay(&other, &good).await, 409, "authorization_used");
    // The same nonce, signed for another time.
    let mut twin = stage.buyer(1);
    twin.authorization.valid_before += 1;
    let twin = stage.pay(&stage.pack(), &twin.message(Protocol::V2)).await;
    refused(&twin, 409, "authorization_used");
    assert_eq!(stage.wallet(1).await, 9_000_000);
}

/// Clients that know both versions send one authorization in both headers, as two messages or as one under both names.
#[tokio::test]
async fn one_authorization_in_both_headers_is_one_payment() {
    for (of_v1, of_v2) in [
        (Protocol::V1, Protocol::V2),
        (Protocol::V2, Protocol::V2),
        (Protocol::V1, Protocol::V1),
    ] {
        let stage = Stage::with([]).await;
        let header = |protocol| wire::header(&stage.buyer(1).message(protocol));
        let sent = [("x-payment", header(of_v1)), ("payment-signature", header(of_v2))];
        for _ in 0..2 {
            let got = stage.send("GET", &stage.pack(), &sent, "192.0.2.1").await;
            assert_eq!(got.status, 200, "{}", got.text());
        }
        assert_eq!((stage.wallet(1).await, stage.states().await.len()), (9_000_000, 1));
    }
}

#[tokio::test]
async fn a_refusal_names_the_rule_that_a_payment_breaks() {
    let stage = Stage::with([]).await;
    let now = stage.now();
    let rule = "6 to 900 seconds after now";
    for change in [3_600, 1] {
        let mut long = stage.buyer(1);
        long.authorization.valid_before = now + change;
        let got = stage.pay(&stage.pack(), &long.message(Protocol::V2)).await;
        refused(&got, 402, "payment_required");
        let told = got.json()["message"].as_str().unwrap().to_owned();
        assert!(told.contains("`validBefore`") && told.contains(rule), "{told}");
        assert!(got.json()["reason"].as_str().unwrap().ends_with("_valid_before"));
    }
}

#[tokio::test]
pub(super) async fn a_header_that_is_no_payment_leaves_no_row() {
    let stage = Stage::with([]).await;
    let good = wire::header(&stage.buyer(1).message(Protocol::V2));
    let v1 = wire::header(&stage.buyer(1).message(Protocol::V1));
    let another = wire::header(&stage.buyer(2).message(Protocol::V1));
    let sent = |name: &'static str, text: &str| (name, text.to_owned());
    for headers in [
        vec![sent("payment-signature", "")],
        vec![sent("payment-signature", "%%%")],
        vec![sent("payment-signature", &v1)],
        vec![sent("x-payment", &good)],
        vec![sent("x-payment", &another), sent("payment-signature", &good)],
        vec![sent("x-payment", "%%%"), sent("payment-signature", &good)],
        vec![sent("x-payment", &good), sent("x-payment", &good)],
        vec![sent("payment-signature", &good), sent("payment-signature", &good)],
    ] {
        let got = stage.send("GET", &stage.pack(), &headers, "192.0.2.1").await;
        refused(&got, 400, "malformed_payment");
        assert!(!got.headers.contains_key("payment-required"));
    }
    for amount in [999_999, 1_000_001] {
        let payment = Buyer::new(amount, 2, stage.now()).message(Protocol::V2);
        let got = stage.pay(&stage.pack(), &payment).await;
        refused(&got, 402, "payment_required");
        let reason = "invalid_exact_evm_payload_authorization_value_mismatch";
        assert_eq!(got.json()["reason"], reason);
        assert_eq!(message(&got, "payment-required").unwrap()["error"], reason);
    }
    assert_eq!((stage.states().await.len(), stage.wallet(1).await), (0, 10_000_000));
}

#[tokio::test]
async fn an_empty_wallet_is_refused_and_may_try_again() {
    let stage = Stage::with([]).await;
    let mut buyer = stage.buyer(1);
    buyer.key = key(3);
    buyer.authorization.from = key(3).address();
    let payment = buyer.message(Protocol::V2);
    let got = stage.pay(&stage.pack(), &payment).await;
    refused(&got, 402, "payment_required");
    assert_eq!(got.json()["reason"], "insufficient_funds");
    assert_eq!(stage.states().await, [PaymentState::Refused]);
    let wallet = key(3).address().to_string();
    stage
        .service
        .app
        .store
        .wallets()
        .give(&wallet, 1_000_000)
        .await
        .unwrap();
    assert_eq!(stage.pay(&stage.pack(), &payment).await.status, 200);
    assert_eq!(stage.credits().await, MicroUsdc(1_000_000));
}

#[tokio::test]
async fn a_silent_facilitator_was_sent_nothing() {
    let stage = Stage::with([Act::Silent]).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    *stage.facilitator.is_silent.lock() = true;
    let got = stage.pay(&stage.pack(), &payment).await;
    refused(&got, 503, "facilitator_unavailable");
    assert_eq!(got.headers["retry-after"], "5");
    assert_eq!(stage.states().await, [PaymentState::Bound]);
    *stage.facilitator.is_silent.lock() = false;
    // It verifies, and then the request to settle does not leave.
    let got = stage.pay(&stage.pack(), &payment).await;
    refused(&got, 503, "facilitator_unavailable");
    assert_eq!(stage.states().await, [PaymentState::Bound]);
    assert_eq!(stage.pay(&stage.pack(), &payment).await.status, 200);
    assert_eq!(
        (stage.wallet(1).await, stage.credits().await),
        (9_000_000, MicroUsdc(1_000_000))
    );
}

#[tokio::test]
pub(super) async fn a_lost_answer_is_found_on_the_chain() {
    let stage = Stage::with([Act::Lose]).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    let got = stage.pay(&stage.pack(), &payment).await;
    refused(&got, 503, "settlement_pending");
    // A client signs again when it is challenged, so it is not.
    assert!(!got.headers.contains_key("payment-required"));
    assert_eq!(
        message(&got, "payment-response").unwrap()["errorReason"],
        "settlement_pending"
    );
    assert_eq!(stage.states().await, [PaymentState::Unknown]);
    assert_eq!(stage.credits().await, MicroUsdc(0));
    stage.service.clock.advance(Duration::from_secs(3));
    assert_eq!(stage.reconcile().await, 1);
    assert_eq!(stage.states().await, [PaymentState::Settled]);
    assert_eq!(stage.pay(&stage.pack(), &payment).await.status, 200);
    assert_eq!(
        (stage.wallet(1).await, stage.credits().await),
        (9_000_000, MicroUsdc(1_000_000))
    );
    assert_eq!(*stage.facilitator.settles.lock(), 1);
}

#[tokio::test]
pub(super) async fn what_was_not_taken_is_sent_again_unchanged_while_it_is_valid() {
    // A later refusal proves nothing about the first attempt.
    let stage = Stage::with([Act::Forget, Act::Refuse("insufficient_funds"), Act::Right]).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    refused(&stage.pay(&stage.pack(), &payment).await, 503, "settlement_pending");
    stage.service.clock.advance(Duration::from_secs(3));
    assert_eq!(stage.reconcile().await, 1);
    assert_eq!(stage.states().await, [PaymentState::Unknown]);
    stage.service.clock.advance(Duration::from_mins(1));
    assert_eq!(stage.reconcile().await, 1);
    assert_eq!(stage.states().await, [PaymentState::Settled]);
    assert_eq!(
        (stage.wallet(1).await, stage.credits().await),
        (9_000_000, MicroUsdc(1_000_000))
    );
}

#[tokio::test]
async fn a_payment_whose_owner_is_gone_is_looked_at_within_a_callers_patience() {
    let stage = Stage::waiting(Duration::from_millis(200), [Act::Hang]).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    refused(&stage.pay(&stage.pack(), &payment).await, 503, "settlement_pending");
    let payments = stage.service.app.store.payments();
    let id = payments.listed(None, 9).await.unwrap()[0].id.clone();
    // For as long as its owner says that it lives, nobody else sends it.
    stage.service.clock.advance(Duration::from_secs(9));
    assert_eq!(stage.reconcile().await, 0);
    let lease = stage.service.app.clock.now().plus(Duration::from_secs(10));
    assert!(payments.hold(&id, lease).await.unwrap());
    stage.service.clock.advance(Duration::from_secs(9));
    assert_eq!(stage.reconcile().await, 0);
    stage.service.clock.advance(Duration::from_secs(2));
    assert_eq!(stage.reconcile().await, 1);
    assert!(PATIENCE > Duration::from_secs(12));
    assert_eq!(stage.pay(&stage.pack(), &payment).await.status, 200);
    assert_eq!(
        (stage.wallet(1).await, stage.credits().await),
        (9_000_000, MicroUsdc(1_000_000))
    );
}

#[tokio::test]
async fn a_payment_whose_owner_says_nothing_waits_for_seconds_only() {
    let stage = Stage::waiting(Duration::from_millis(200), [Act::Hang]).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    refused(&stage.pay(&stage.pack(), &payment).await, 503, "settlement_pending");
    stage.service.clock.advance(Duration::from_secs(11));
    assert_eq!(stage.reconcile().await, 1);
    assert_eq!(stage.pay(&stage.pack(), &payment).await.status, 200);
}

#[tokio::test]
async fn a_restart_looks_at_once_at_what_the_last_process_left() {
    let stage = Stage::waiting(Duration::from_millis(200), [Act::Hang]).await;
    tides(&stage).await;
    let path = "/paid/dataset?slug=tides";
    let pay = |nonce: u8| Buyer::new(500_000, nonce, stage.now()).message(Protocol::V2);
    refused(&stage.pay(path, &pay(1)).await, 503, "settlement_pending");
    let app = &stage.service.app;
    let reconciler = PaymentReconciler::new(app.store.clone(), Arc::clone(&app.payments), Arc::clone(&app.clock));
    assert_eq!(reconciler.round().await.unwrap(), 0);
    reconciler.take_over().await.unwrap();
    assert_eq!(reconciler.round().await.unwrap(), 1);
    assert_eq!(stage.pay(path, &pay(1)).await.status, 200);
    assert_eq!(stage.wallet(1).await, 9_500_000);
}

#[tokio::test]
async fn an_authorization_that_ran_out_unused_failed() {
    let stage = Stage::with([Act::Forget]).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    refused(&stage.pay(&stage.pack(), &payment).await, 503, "settlement_pending");
    stage.service.clock.advance(Duration::from_secs(301));
    stage.reconcile().await;
    let got = stage.pay(&stage.pack(), &payment).await;
    refused(&got, 402, "payment_failed");
    assert!(got.headers.contains_key("payment-required") && got.headers.contains_key("payment-response"));
    let listed = stage.service.app.store.payments().listed(None, 9).await.unwrap();
    assert_eq!((listed[0].state, &listed[0].payload), (PaymentState::Failed, &None));
    assert_eq!(
        (stage.wallet(1).await, stage.credits().await),
        (10_000_000, MicroUsdc(0))
    );
}

#[tokio::test]
pub(super) async fn a_refusal_before_sending_is_final_unless_the_chain_says_otherwise() {
    for is_used_later in [false, true] {
        let stage = Stage::with([Act::Refuse("insufficient_funds")]).await;
        let buyer = stage.buyer(1);
        let got = stage.pay(&stage.pack(), &buyer.message(Protocol::V2)).await;
        refused(&got, 402, "payment_failed");
        if is_used_later {
            // Somebody else who saw the signature sends it.
            let wallets = StoredWallets(stage.service.app.store.clone());
            let moved = wallets
                .transfer(&buyer.authorization, stage.service.app.clock.now())
                .await;
            moved.unwrap();
        }
        stage.service.clock.advance(Duration::from_secs(300 + 31));
        assert_eq!(stage.reconcile().await, 1);
        let credits = if is_used_later { 1_000_000 } else { 0 };
        assert_eq!(stage.credits().await, MicroUsdc(credits));
        assert_eq!(stage.reconcile().await, 0, "it is looked at once more, not for ever");
    }
}

#[tokio::test]
pub(super) async fn a_wallet_that_never_proved_itself_is_no_operators() {
    let stage = Stage::with([]).await;
    payouts::address(&stage, stage.operator, 1, Duration::ZERO).await;
    let payment = stage.buyer(1).message(Protocol::V2);
    assert_eq!(stage.pay(&stage.pack(), &payment).await.status, 200);
    let listed = stage.service.app.store.payments().listed(None, 9).await.unwrap();
    assert_eq!((listed.len(), listed[0].buyer), (1, None));
}

#[tokio::test]
async fn a_nonce_that_paid_somebody_else_is_never_a_grant() {
    let stage = Stage::with([Act::Forget]).await;
    let buyer = stage.buyer(1);
    let got = stage.pay(&stage.pack(), &buyer.message(Protocol::V2)).await;
    refused(&got, 503, "settlement_pending");
    let mut elsewhere = buyer.authorization.clone();
    elsewhere.to = key(8).address();
    let wallets = StoredWallets(stage.service.app.store.clone());
    let moved = wallets.transfer(&elsewhere, stage.service.app.clock.now()).await;
    moved.unwrap();
    stage.service.clock.advance(Duration::from_secs(3));
    stage.reconcile().await;
    assert_eq!(stage.states().await, [PaymentState::Unknown]);
    assert_eq!(stage.credits().await, MicroUsdc(0));
}

#[tokio::test]
async fn a_cancelled_authorization_failed() {
    let stage = Stage::with([Act::Forget]).await;
    let buyer = stage.buyer(1);
    let got = stage.pay(&stage.pack(), &buyer.message(Protocol::V2)).await;
    refused(&got, 503, "settlement_pending");
    let wallets = StoredWallets(stage.service.app.store.clone());
    let now = stage.service.app.clock.now();
    let cancelled = wallets.cancel(buyer.authorization.from, Bytes32([1; 32]), now).await;
    assert!(cancelled.unwrap());
    stage.service.clock.advance(Duration::from_secs(3));
    stage.reconcile().await;
    assert_eq!(stage.states().await, [PaymentState::Failed]);
}

/// Puts a dataset on sale for half a dollar, with one version, and returns its seller's agent.
pub(super) async fn tides(stage: &Stage) -> String {
    let owner = stage.service.operator().await;
    let agent = stage.service.agent(&owner, "seller").await;
    let paid = json!({"access": "paid", "price": "0.50"});
    stage.service.project(&agent, "tides", &paid).await;
    stage.service.merged(&agent, "tides", &[json!({"name": "a"})]).await;
    agent
}

#[tokio::test]
pub(super) async fn a_dataset_is_bought_once_by_a_wallet_and_read_again_for_nothing() {
    let stage = Stage::with([]).await;
    let agent = tides(&stage).await;
    let path = "/paid/dataset?slug=tides&version=1";
    let pay = |nonce: u8| Buyer::new(500_000, nonce, stage.now()).message(Protocol::V2);
    let next = "/paid/dataset?slug=tides&version=2";
    refused(&stage.send("GET", next, &[], "192.0.2.1").await, 404, "not_found");
    refused(
        &stage.send("GET", path, &[], "192.0.2.1").await,
        402,
        "payment_required",
    );
    let got = stage.pay(path, &pay(1)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let manifest = got.json();
    let parts = manifest
        .pointer("/manifest/parts")
        .or_else(|| manifest.pointer("/parts"));
    let url = parts.unwrap()[0]["url"].as_str().unwrap();
    let part = stage
        .service
        .get(url.strip_prefix("http://sluice.test").unwrap(), None)
        .await;
    assert_eq!(part.status, 200, "{url}");
    let bought = message(&got, "payment-response").unwrap();
    // Fifty fresh authorizations are answered, and none is settled.
    for nonce in 2..52 {
        let again = stage.pay(path, &pay(nonce)).await;
        assert_eq!(again.status, 200, "{}", again.text());
        let said = message(&again, "payment-response").unwrap();
        assert_eq!(
            (&said["amount"], &said["transaction"]),
            (&json!("0"), &bought["transaction"])
        );
    }
    assert_eq!(stage.wallet(1).await, 9_500_000);
    assert_eq!(*stage.facilitator.settles.lock(), 1);
    // The next version costs again, and an authorization is for the version that it bought.
    stage.service.merged(&agent, "tides", &[json!({"name": "b"})]).await;
    refused(&stage.pay(next, &pay(1)).await, 409, "authorization_used");
    assert_eq!(stage.pay(next, &pay(60)).await.status, 200);
    assert_eq!(stage.wallet(1).await, 9_000_000);
}

#[tokio::test]
async fn a_wallet_has_one_open_payment_for_an_item() {
    let stage = Stage::with([Act::Forget]).await;
    tides(&stage).await;
    let path = "/paid/dataset?slug=tides";
    let pay = |nonce: u8| Buyer::new(500_000, nonce, stage.now()).message(Protocol::V2);
    refused(&stage.pay(path, &pay(1)).await, 503, "settlement_pending");
    // A second authorization would pay twice.
    let second = stage.pay(path, &pay(2)).await;
    refused(&second, 503, "settlement_pending");
    assert!(!second.headers.contains_key("payment-required"));
    assert_eq!(stage.states().await.len(), 1);
}

#[tokio::test]
async fn what_is_not_for_sale_is_said_before_it_is_paid() {
    let stage = Stage::with([]).await;
    let owner = stage.service.operator().await;
    let agent = stage.service.agent(&owner, "seller").await;
    for (slug, more) in [
        ("free", json!({"access": "paid", "price": 0})),
        ("public", json!({})),
        ("private", json!({"visibility": "private"})),
    ] {
        stage.service.project(&agent, slug, &more).await;
        stage.service.merged(&agent, slug, &[json!({"name": slug})]).await;
    }
    // Projects without a version: what is free is free, and what is paid is not there yet.
    let owner = stage.service.operator().await;
    let another = stage.service.agent(&owner, "starter").await;
    for (slug, more) in [
        ("free-empty", json!({"access": "paid", "price": 0})),
        ("public-empty", json!({})),
        ("paid-empty", json!({"access": "paid", "price": "0.50"})),
    ] {
        stage.service.project(&another, slug, &more).await;
    }
    let payment = stage.buyer(1).message(Protocol::V2);
    for (slug, status, code) in [
        ("free", 409, "free_item"),
        ("public", 409, "free_item"),
        ("private", 404, "not_found"),
        ("free-empty", 409, "free_item"),
        ("public-empty", 409, "free_item"),
        ("paid-empty", 404, "not_found"),
        ("public&version=7", 409, "free_item"),
    ] {
        let path = format!("/paid/dataset?slug={slug}");
        refused(&stage.send("GET", &path, &[], "192.0.2.1").await, status, code);
        refused(&stage.pay(&path, &payment).await, status, code);
    }
    assert_eq!((stage.states().await.len(), stage.wallet(1).await), (0, 10_000_000));
}

#[tokio::test]
async fn a_price_of_a_moment_ago_is_taken_and_no_other() {
    let stage = Stage::with([]).await;
    let agent = tides(&stage).await;
    stage.service.clock.advance(Duration::from_hours(25));
    let cheaper = json!({"price": "0.40"}).to_string();
    let changed = stage
        .service
        .call("PATCH", "/projects/tides", Some(&agent), &cheaper)
        .await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let path = "/paid/dataset?slug=tides";
    let pay = |amount: u64, nonce: u8| Buyer::new(amount, nonce, stage.now()).message(Protocol::V2);
    stage.service.clock.advance(Duration::from_secs(299));
    refused(&stage.pay(path, &pay(450_000, 1)).await, 402, "payment_required");
    assert_eq!(stage.pay(path, &pay(500_000, 2)).await.status, 200);
    let stage_of_another = Stage::with([]).await;
    let agent = tides(&stage_of_another).await;
    stage_of_another.service.clock.advance(Duration::from_hours(25));
    let patch = stage_of_another
        .service
        .call("PATCH", "/projects/tides", Some(&agent), &cheaper);
    assert_eq!(patch.await.status, 200);
    stage_of_another.service.clock.advance(Duration::from_secs(302));
    let late = Buyer::new(500_000, 1, stage_of_another.now()).message(Protocol::V2);
    refused(&stage_of_another.pay(path, &late).await, 402, "payment_required");
}
