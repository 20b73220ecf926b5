//! Payouts: one nonce for each, booked once.

use super::*;

/// Sells a dataset, lets the window pass, and returns the seller, who is paid at the address of key 5.
async fn sold(stage: &Stage) -> OperatorId {
    let owner = stage.service.operator_at("seller@example.org").await;
    let agent = stage.service.agent(&owner, "seller").await;
    let paid = json!({"access": "paid", "price": "0.50"});
    stage.service.project(&agent, "tides", &paid).await;
    stage.service.merged(&agent, "tides", &[json!({"name": "a"})]).await;
    let payment = Buyer::new(500_000, 1, stage.now()).message(Protocol::V2);
    assert_eq!(stage.pay("/paid/dataset?slug=tides", &payment).await.status, 200);
    let app = &stage.service.app;
    let seller = app.store.operator_by_email("seller@example.org").await.unwrap();
    let seller = seller.unwrap().id;
    address(stage, seller, 5, Duration::ZERO).await;
    stage.service.clock.advance(Duration::from_hours(24 * 7));
    let released = app.store.money().release(&asset().id(), app.clock.now(), 9).await;
    released.unwrap();
    seller
}

/// Sets the address of an operator from some time on.
async fn address(stage: &Stage, operator: OperatorId, number: u8, wait: Duration) {
    let app = &stage.service.app;
    let (now, address) = (app.clock.now(), key(number).address().checksum());
    let payload = crate::letters::Payload::PayoutChanged {
        operator,
        address: address.clone(),
        effective_at: now.plus(wait).micros(),
    };
    let letter = crate::letters::mail(&payload, Some(operator), None, now);
    let accounts = app.store.accounts();
    let set = accounts
        .payout_set(operator, address, now.plus(wait), letter, now)
        .await;
    set.unwrap();
}

fn payouts(stage: &Stage) -> Payouts {
    let app = &stage.service.app;
    Payouts::new(app.store.clone(), Arc::clone(&app.payments), Arc::clone(&app.clock))
}

#[tokio::test]
async fn a_seller_is_paid_its_share_once() {
    for acts in [
        vec![],
        vec![Act::Lose],
        vec![Act::Forget],
        vec![Act::Refuse("insufficient_funds")],
        vec![Act::Silent, Act::Lose],
    ] {
        let stage = Stage::with([]).await;
        let seller = sold(&stage).await;
        stage.facilitator.acts.lock().extend(acts.clone());
        let payouts = payouts(&stage);
        assert_eq!(payouts.pick().await.unwrap(), 1, "{acts:?}");
        assert_eq!(payouts.pick().await.unwrap(), 0, "one payout is open");
        for _ in 0..3 {
            payouts.send_due().await.unwrap();
            stage.service.clock.advance(Duration::from_mins(10));
        }
        assert_eq!(stage.wallet(5).await, 380_000, "{acts:?}");
        let money = stage.service.app.store.money();
        let balances = money.balances(&asset().id(), seller).await.unwrap();
        assert_eq!(
            (balances.payable, balances.payout_pending),
            (MicroUsdc(0), MicroUsdc(0)),
            "{acts:?}"
        );
        let rows = money.payouts_of(seller, 9).await.unwrap();
        assert_eq!((rows.len(), rows[0].state), (1, store::PayoutState::Done), "{acts:?}");
    }
}

#[tokio::test]
async fn a_payout_that_is_never_taken_is_payable_again() {
    let stage = Stage::with([]).await;
    let seller = sold(&stage).await;
    stage
        .facilitator
        .acts
        .lock()
        .extend(std::iter::repeat_n(Act::Forget, 40));
    let payouts = payouts(&stage);
    assert_eq!(payouts.pick().await.unwrap(), 1);
    for _ in 0..14 {
        payouts.send_due().await.unwrap();
        stage.service.clock.advance(Duration::from_hours(7));
    }
    let money = stage.service.app.store.money();
    let balances = money.balances(&asset().id(), seller).await.unwrap();
    assert_eq!(
        (balances.payable, balances.payout_pending),
        (MicroUsdc(380_000), MicroUsdc(0))
    );
    assert_eq!(stage.wallet(5).await, 0);
}

#[tokio::test]
async fn a_change_of_the_address_pauses_payouts() {
    let stage = Stage::with([]).await;
    let seller = sold(&stage).await;
    address(&stage, seller, 6, Duration::from_hours(72)).await;
    let payouts = payouts(&stage);
    assert_eq!(payouts.pick().await.unwrap(), 0);
    stage.service.clock.advance(Duration::from_hours(72));
    assert_eq!(payouts.pick().await.unwrap(), 1);
    payouts.send_due().await.unwrap();
    assert_eq!((stage.wallet(5).await, stage.wallet(6).await), (0, 380_000));
}
