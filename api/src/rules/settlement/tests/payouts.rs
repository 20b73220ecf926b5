//! Payouts: one nonce for each, booked once.

use super::*;
use crate::flow::PayoutTask;

#[test]
fn a_nonce_is_of_its_id_alone() {
    let nonce = payout_nonce("a").to_string();
    assert_eq!((nonce.len(), &nonce), (66, &payout_nonce("a").to_string()));
    assert_ne!(nonce, payout_nonce("b").to_string());
}

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
pub(super) async fn address(stage: &Stage, operator: OperatorId, number: u8, wait: Duration) {
    let address = key(number).address().checksum();
    stage.service.paid_out_at(operator, &address, wait).await;
}

fn payouts(stage: &Stage) -> PayoutTask {
    let app = &stage.service.app;
    PayoutTask::new(app.store.clone(), Arc::clone(&app.payments), Arc::clone(&app.clock))
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
async fn a_refund_that_is_never_taken_waits_for_an_administrator() {
    let stage = Stage::with([]).await;
    let owner = stage.service.operator_at("seller@example.org").await;
    let agent = stage.service.agent(&owner, "seller").await;
    let paid = json!({"access": "paid", "price": "0.50"});
    stage.service.project(&agent, "tides", &paid).await;
    stage.service.merged(&agent, "tides", &[json!({"name": "a"})]).await;
    let payment = Buyer::new(500_000, 1, stage.now()).message(Protocol::V2);
    assert_eq!(stage.pay("/paid/dataset?slug=tides", &payment).await.status, 200);
    let (money, now) = (stage.service.app.store.money(), stage.service.app.clock.now());
    let sold = stage.service.app.store.payments().listed(None, 9).await.unwrap();
    let refund = types::PaymentId::new(now).to_string();
    let wallet = store::WalletRefund {
        nonce: payout_nonce(&refund).to_string(),
        id: refund.clone(),
        event: types::LedgerEventId::new(now),
    };
    let refunded = store::DisputeResolution::Refund { wallet: Some(wallet) };
    let sale = sold[0].sale_id.as_ref().unwrap().parse().unwrap();
    stage.service.resolved(sale, refunded).await;
    stage
        .facilitator
        .acts
        .lock()
        .extend(std::iter::repeat_n(Act::Refuse("insufficient_funds"), 12));
    let payouts = payouts(&stage);
    for _ in 0..14 {
        payouts.send_due().await.unwrap();
        stage.service.clock.advance(Duration::from_hours(7));
    }
    let row = async || money.payout_row(&refund).await.unwrap().unwrap();
    assert_eq!(
        (row().await.state, row().await.attempts),
        (store::PayoutState::Failed, 12)
    );
    assert_eq!(stage.wallet(1).await, 9_500_000);
    // A refund that is owed is paid once an administrator asks for it again.
    assert!(
        money
            .payout_retry(&refund, stage.service.app.clock.now())
            .await
            .unwrap()
    );
    for _ in 0..2 {
        payouts.send_due().await.unwrap();
        stage.service.clock.advance(Duration::from_hours(7));
    }
    assert_eq!(
        (row().await.state, stage.wallet(1).await),
        (store::PayoutState::Done, 10_000_000)
    );
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
