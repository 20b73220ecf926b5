use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};
use store::{PaymentState, Store};
use types::money::MicroUsdc;
use types::{Clock, OperatorId};
use x402::builtin::{BuiltIn, Wallets as _};
use x402::conformance::{Buyer, asset, key};
use x402::facilitator::{SettlementDoubt, SettlementOrder};
use x402::wire::{self, Protocol};
use x402::{Bytes32, Facilitator, PaymentVerdict, SettledKind, Settlement, UnusableAnswer};

use super::*;
use crate::flow::PaymentReconciler;
use crate::state::payment_services::PaymentServices;
use crate::testing::{Got, Service, tariff};

mod extensions;
mod faucet;
mod paying;
mod payouts;
#[cfg(feature = "faults")]
mod planted;

/// Returns the plane of a service in tests: the built-in ledger.
pub(crate) fn plane(store: &Store, clock: &Arc<dyn Clock>) -> PaymentServices {
    let ledger = Arc::new(ledger(store, clock));
    PaymentServices {
        asset: asset(),
        facilitator: Arc::clone(&ledger) as _,
        chain: Some(ledger),
        is_built_in: true,
        has_v1: true,
        treasury: Some(key(200)),
        tariff: Arc::new(tariff()),
        payout_every: Duration::from_mins(10),
        patience: Duration::from_millis(250),
    }
}

fn ledger(store: &Store, clock: &Arc<dyn Clock>) -> BuiltIn {
    BuiltIn::new(Arc::new(StoredWallets(store.clone())), asset(), Arc::clone(clock))
}

/// Next behaviour of a facilitator.
#[derive(Clone, Debug)]
enum Act {
    /// As the ledger.
    Right,
    /// Nothing, and the request did not leave.
    Silent,
    /// It refuses for this reason and moves nothing.
    Refuse(&'static str),
    /// It moves the money, and the answer is lost.
    Lose,
    /// It moves nothing, and the answer is lost.
    Forget,
    /// It never answers.
    Hang,
}

/// The ledger behind a facilitator that acts by a script.
#[derive(Debug)]
struct Scripted {
    ledger: BuiltIn,
    acts: Mutex<VecDeque<Act>>,
    is_silent: Mutex<bool>,
    settles: Mutex<usize>,
}

#[async_trait]
impl Facilitator for Scripted {
    async fn supported(&self) -> Result<Vec<SettledKind>, UnusableAnswer> {
        self.ledger.supported().await
    }

    async fn verify(&self, order: &SettlementOrder) -> Result<PaymentVerdict, UnusableAnswer> {
        if *self.is_silent.lock() {
            return Err(UnusableAnswer {
                reason: "silent".to_owned(),
                is_unsent: true,
            });
        }
        self.ledger.verify(order).await
    }

    async fn settle(&self, order: &SettlementOrder) -> Settlement {
        let act = self.acts.lock().pop_front().unwrap_or(Act::Right);
        *self.settles.lock() += 1;
        let unknown = || {
            Settlement::Unknown(SettlementDoubt {
                reason: "lost".to_owned(),
                transaction: None,
                is_alarming: false,
            })
        };
        match act {
            Act::Right => self.ledger.settle(order).await,
            Act::Silent => Settlement::NotSent("silent".to_owned()),
            Act::Refuse(reason) => Settlement::Refused(reason.to_owned()),
            Act::Forget => unknown(),
            Act::Hang => std::future::pending().await,
            Act::Lose => {
                let settled = self.ledger.settle(order).await;
                assert!(matches!(settled, Settlement::Done(_)), "{settled:?}");
                unknown()
            }
        }
    }
}

/// A service with a facilitator that acts by a script, an operator, and a wallet with 10 test USDC.
struct Stage {
    service: Service,
    facilitator: Arc<Scripted>,
    operator: OperatorId,
}

impl Stage {
    async fn with(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::waiting(Duration::from_secs(2), acts).await
    }

    /// Starts a service whose callers wait for so long.
    async fn waiting(patience: Duration, acts: impl IntoIterator<Item = Act>) -> Self {
        let mut service = Service::start().await;
        let facilitator = Arc::new(Scripted {
            ledger: ledger(&service.app.store, &service.app.clock),
            acts: Mutex::new(acts.into_iter().collect()),
            is_silent: Mutex::new(false),
            settles: Mutex::new(0),
        });
        let mut plane = PaymentServices::clone(&service.app.payments);
        plane.facilitator = Arc::clone(&facilitator) as _;
        plane.patience = patience;
        service.app.payments = Arc::new(plane);
        service.router = crate::router(service.app.clone());
        service.operator_at("ada@example.org").await;
        let operator = service.app.store.operator_by_email("ada@example.org").await;
        let operator = operator.unwrap().unwrap().id;
        let wallet = key(1).address().to_string();
        service.app.store.wallets().give(&wallet, 10_000_000).await.unwrap();
        Self {
            service,
            facilitator,
            operator,
        }
    }

    fn now(&self) -> u64 {
        natural(self.service.app.clock.now().micros().div_euclid(1_000_000))
    }

    fn buyer(&self, nonce: u8) -> Buyer {
        Buyer::new(1_000_000, nonce, self.now())
    }

    fn pack(&self) -> String {
        format!("/paid/credits?operator={}", self.operator)
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, String)], from: &str) -> Got {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let peer = SocketAddr::new(from.parse::<IpAddr>().unwrap(), 40_000);
        request.extensions_mut().insert(ConnectInfo(peer));
        self.service.send(request).await
    }

    /// Sends a payment of version 2.
    async fn pay(&self, path: &str, message: &Value) -> Got {
        self.pay_from(path, message, "192.0.2.1").await
    }

    async fn pay_from(&self, path: &str, message: &Value, from: &str) -> Got {
        let headers = [("payment-signature", wire::header(message))];
        self.send("GET", path, &headers, from).await
    }

    async fn wallet(&self, number: u8) -> i64 {
        let wallet = key(number).address().to_string();
        self.service.app.store.wallets().balance(&wallet).await.unwrap()
    }

    async fn credits(&self) -> MicroUsdc {
        let money = self.service.app.store.money();
        money.balances(&asset().id(), self.operator).await.unwrap().credits
    }

    async fn states(&self) -> Vec<PaymentState> {
        let listed = self.service.app.store.payments().listed(None, 99).await.unwrap();
        listed.iter().map(|payment| payment.state).collect()
    }

    async fn reconcile(&self) -> usize {
        let app = &self.service.app;
        let reconciler = PaymentReconciler::new(app.store.clone(), Arc::clone(&app.payments), Arc::clone(&app.clock));
        reconciler.round().await.unwrap()
    }
}

/// Returns the message of a header of an answer.
fn message(got: &Got, name: &str) -> Option<Value> {
    let value = got.headers.get(name)?;
    let text = data_encoding::BASE64.decode(value.as_bytes()).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

#[track_caller]
fn refused(got: &Got, status: u16, code: &str) {
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (status, Some(code)),
        "{}",
        got.text()
    );
}
