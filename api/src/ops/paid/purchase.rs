//! A purchase by x402, from the header to the receipt.
//!
//! Invariant: the authorization is looked up right after its signature is checked. A known one gets the answer of its
//! state, whatever price, item and clock say now.

use std::net::IpAddr;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use store::{NewPayment, Payment, PaymentBound, PaymentMessage, PaymentState};
use types::{fault, mutate};
use x402::extensions::{echoed_challenge, identifier_of};
use x402::wire::{self, PaymentMismatch, Protocol};
use x402::{MalformedField, RefusalReason, check};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::receipts;
use crate::rules::settlement::answers::{self, PaidAnswer, PaymentOutcome};
use crate::rules::settlement::goods::{self, SaleItem};
use crate::rules::settlement::{self, DriveResult, PaymentMachine};

/// Pause between looks at a payment that another call settles.
const SETTLE_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for which nobody else binds the item for the wallet.
const LEASE: Duration = Duration::from_secs(30);
/// Seconds after the end of an authorization until which its answer is given again.
const REPLAYED_SECONDS: i64 = 600;
/// Time after a payment for which its answer is given again to who sends the whole message, which nobody else has.
const REPLAYED_WITH_SECRET: Duration = Duration::from_hours(24);

/// A payment that is settled, or that was not needed.
#[derive(Clone, Debug)]
pub(super) struct SettledPurchase {
    pub(super) payment: Payment,
    protocol: Protocol,
    /// Transaction of the purchase.
    transaction: Option<String>,
    /// Sale by which the wallet bought it; `None` for a pack.
    sale: Option<String>,
}

impl SettledPurchase {
    /// Returns the account that the bytes of what was bought count for.
    pub(super) fn account(&self) -> crate::state::links::GrantAccount {
        match self.payment.buyer {
            Some(operator) => crate::state::links::GrantAccount::Operator(operator),
            None => {
                crate::state::links::GrantAccount::Wallet(format!("{}:{}", self.payment.network, self.payment.payer))
            }
        }
    }

    /// Returns the header of a success, with the receipt that the service signs.
    async fn receipt(&self, cx: &Cx, goods: &SaleItem) -> Result<(HeaderName, HeaderValue), ApiError> {
        let (plane, transaction) = (&*cx.app.payments, self.transaction.as_deref());
        let signed = receipts::of_payment(cx, &self.payment, &goods.offer.url, transaction).await;
        if let Err(error) = &signed {
            // What was paid for is served all the same: the wallet asks again and gets its receipt then.
            tracing::warn!(
                payment = self.payment.id,
                error = error.reason(),
                "cannot sign the receipt of a payment; it is signed when the payment is sent again"
            );
        }
        let base = &cx.app.config.public_url;
        let sale = self.sale.as_ref().map(|sale| format!("{base}/receipts/{sale}"));
        let outcome = PaymentOutcome {
            transaction,
            error: None,
            signed: signed.as_deref().ok(),
            sale: sale.as_deref(),
        };
        answers::receipt(self.protocol, &self.payment, plane, outcome)
    }

    /// Returns the answer with its receipt.
    pub(super) async fn answer<T>(
        self,
        cx: &Cx,
        goods: &SaleItem,
        made: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<PaidAnswer<T>, ApiError> {
        let header = self.receipt(cx, goods).await?;
        match made.await {
            Ok(body) => {
                fault::point("pay.served");
                Ok(PaidAnswer {
                    headers: vec![header],
                    body,
                })
            }
            Err(cause) => Err(answers::not_ready(&cause, header)),
        }
    }
}

/// Buys a thing with the payment of a header, or says what to pay.
pub(super) async fn purchase(
    cx: &Cx,
    goods: &SaleItem,
    header: Option<(Protocol, String)>,
) -> Result<SettledPurchase, ApiError> {
    let plane = &*cx.app.payments;
    let asset = &plane.asset;
    let Some((protocol, header)) = header else {
        // The payer is not known, so the answer leaves out every fact that depends on it.
        return Err(goods.unsold.map_or_else(
            || answers::required(goods, plane, None),
            goods::UnavailableReason::error,
        ));
    };
    let sent = match wire::read_header(protocol, &header, asset) {
        Ok(sent) => sent,
        Err(PaymentMismatch::Malformed(MalformedField { field, problem })) => {
            return Err(answers::malformed(field, problem));
        }
        Err(PaymentMismatch::Refused(reason)) => return Err(answers::refused(goods, plane, reason)),
    };
    // Before the look-up: otherwise anybody could ask with a made-up signature what became of an
    // authorization.
    check::signed(&sent, asset).map_err(|reason| answers::refused(goods, plane, reason))?;
    fault::point("pay.received");
    let call = PaidCall { cx, goods, sent };
    mutate!(Bug::JudgesTimeFirst => call.timely().map_err(|reason| answers::refused(goods, plane, reason))?);
    // Before price, item and clock are looked at: a payment that was made gets the answer that it paid
    // for, whatever has changed since.
    match call.known().await? {
        Some(known) => call.again(known).await,
        None => call.first().await,
    }
}

/// A call with a payment whose signature is good.
struct PaidCall<'a> {
    cx: &'a Cx,
    goods: &'a SaleItem,
    sent: wire::Payment,
}

impl PaidCall<'_> {
    fn machine(&self) -> PaymentMachine {
        PaymentMachine {
            store: self.cx.app.store.clone(),
            plane: std::sync::Arc::clone(&self.cx.app.payments),
            clock: std::sync::Arc::clone(&self.cx.app.clock),
        }
    }

    async fn known(&self) -> Result<Option<Payment>, ApiError> {
        let asset = &self.cx.app.payments.asset;
        let authorization = &self.sent.authorization;
        let payments = self.cx.app.store.payments();
        let (network, token) = (asset.network.to_string(), asset.address.to_string());
        let (payer, nonce) = (authorization.from.to_string(), authorization.nonce.to_string());
        Ok(payments.of(&network, &token, &payer, &nonce).await?)
    }

    fn seconds(&self) -> i64 {
        self.cx.now.micros().div_euclid(1_000_000)
    }

    fn timely(&self) -> Result<(), RefusalReason> {
        check::timely(&self.sent, u64::try_from(self.seconds()).unwrap_or(0))
    }

    /// Binds an authorization that is not known, and settles it.
    async fn first(&self) -> Result<SettledPurchase, ApiError> {
        let Self { cx, goods, sent } = self;
        let (app, plane) = (&cx.app, &*cx.app.payments);
        let asset = &plane.asset;
        let refused = |reason| answers::refused(goods, plane, reason);
        if let Some(unsold) = goods.unsold {
            return Err(unsold.error());
        }
        let payer = sent.authorization.from;
        let owner = app
            .store
            .accounts()
            .operator_of_wallet(&payer.to_string(), goods.seller, cx.now)
            .await?;
        // A sale to oneself would move the fee for nothing, and make points.
        if let (Some(owner), Some(seller)) = (&owner, goods.seller)
            && owner.operator == seller
        {
            return Err(goods::own_item());
        }
        // A wallet that has the item reads it with any fresh authorization, which is then not settled.
        // So the amount need not be a price.
        let is_owned = goods::is_owned(cx, goods, &settlement::owner(asset, &payer)).await?;
        if !is_owned {
            let priced = check::priced(sent, &goods.prices);
            mutate!(Bug::TakesMore => let priced = crate::faults::take_more(priced, sent, &goods.prices));
            priced.map_err(refused)?;
        }
        self.timely().map_err(refused)?;
        let message = self.message().await?;
        let number = |number: u64| i64::try_from(number).map_err(ApiError::internal);
        // A wallet belongs to an operator only if it proved itself.
        let buyer = owner.as_ref().filter(|owner| owner.is_proved);
        mutate!(Bug::UnprovedOwner => let buyer = owner.as_ref());
        let id = types::PaymentId::new(cx.now).to_string();
        let new = NewPayment {
            id: id.clone(),
            network: asset.network.to_string(),
            asset: asset.address.to_string(),
            payer: payer.to_string(),
            nonce: sent.authorization.nonce.to_string(),
            protocol: sent.protocol.number().into(),
            bound: goods.bound.clone(),
            amount: number(sent.authorization.value)?,
            pay_to: sent.authorization.to.to_string(),
            valid_after: number(sent.authorization.valid_after)?,
            valid_before: number(sent.authorization.valid_before)?,
            message,
            client_net: net(cx.client),
            buyer: buyer.map(|owner| owner.operator),
            is_owned,
            now: cx.now,
            lease: LEASE,
        };
        if is_owned && sent.authorization.value == 0 {
            return Err(refused(RefusalReason::Value));
        }
        match app.store.payments().bind(new).await? {
            PaymentBound::New => {
                fault::point("pay.bound");
                self.go_on(self.read_again(&id).await?, true).await
            }
            // The same header arrived twice at once, and the other call was faster.
            PaymentBound::Known(known) => self.again(*known).await,
            PaymentBound::Open => Err(answers::pending(plane, sent.protocol, None)),
            PaymentBound::IdentifierReused => Err(answers::identifier_reused()),
        }
    }

    /// Returns the message of the payment, as its row keeps it.
    async fn message(&self) -> Result<PaymentMessage, ApiError> {
        let Self { cx, sent, .. } = self;
        let identifier = identifier_of(&sent.message)
            .map_err(|MalformedField { field, problem }| answers::malformed(field, problem))?;
        let echoes = match echoed_challenge(&sent.message) {
            Some((nonce, issued_at)) => {
                let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
                signer.is_sign_in_nonce(nonce, issued_at)
            }
            None => false,
        };
        Ok(PaymentMessage {
            payload: settlement::settlement_payload(&sent.message, &self.requirements()),
            payload_hash: self.hash(),
            has_secret: echoes || identifier.is_some(),
            identifier: identifier.map(str::to_owned),
        })
    }

    /// Returns the hash of the message as it arrived. It stays when the payload with its signature is deleted, so a dispute
    /// about what was sent can be settled.
    fn hash(&self) -> [u8; 32] {
        *blake3::hash(&self.sent.text).as_bytes()
    }

    fn requirements(&self) -> serde_json::Value {
        // The terms state the amount that was signed, which may be an earlier price.
        let offer = wire::Offer {
            amount: self.sent.authorization.value,
            ..self.goods.offer.clone()
        };
        offer.requirements(&self.sent, &self.cx.app.payments.asset)
    }

    /// Answers an authorization that is known.
    async fn again(&self, known: Payment) -> Result<SettledPurchase, ApiError> {
        let Self { cx, goods, sent } = self;
        let authorization = &sent.authorization;
        let is_same = |stored: i64, signed: u64| u64::try_from(stored) == Ok(signed);
        // One nonce can be signed for several transfers; only the one that is bound has an answer.
        let is_same = known.pay_to == authorization.to.to_string()
            && is_same(known.amount, authorization.value)
            && is_same(known.valid_after, authorization.valid_after)
            && is_same(known.valid_before, authorization.valid_before);
        let (bound, asked) = (&known.bound, &goods.bound);
        let is_bound = (bound.kind, &bound.id) == (asked.kind, &asked.id)
            && (!goods.names_version || bound.version == asked.version);
        if !is_same || !is_bound {
            return Err(answers::used_elsewhere());
        }
        if !matches!(known.state, PaymentState::Refused | PaymentState::Abandoned) {
            return self.go_on(known, false).await;
        }
        // Nothing was sent, so everything that can change with time is checked again.
        let plane = &*cx.app.payments;
        if let Some(unsold) = goods.unsold {
            return Err(unsold.error());
        }
        check::priced(sent, &goods.prices).map_err(|reason| answers::refused(goods, plane, reason))?;
        self.timely().map_err(|reason| answers::refused(goods, plane, reason))?;
        let payments = cx.app.store.payments();
        match payments.rebind(&known, self.message().await?, cx.now, LEASE).await? {
            PaymentBound::New | PaymentBound::Known(_) => {}
            PaymentBound::Open => return Err(answers::pending(plane, sent.protocol, Some(&known))),
            PaymentBound::IdentifierReused => return Err(answers::identifier_reused()),
        }
        let payment = payments.get(&known.id).await?;
        self.go_on(payment.unwrap_or(known), false).await
    }

    /// Drives a payment as far as it goes, and answers its state.
    async fn go_on(&self, mut payment: Payment, is_new: bool) -> Result<SettledPurchase, ApiError> {
        let Self { cx, goods, sent } = self;
        let (plane, protocol) = (&*cx.app.payments, sent.protocol);
        let payments = cx.app.store.payments();
        // Clients wait for a limited time. Later the answer is that the payment is pending, and the
        // machine goes on without the caller.
        let deadline = tokio::time::Instant::now() + plane.patience;
        if payment.state == PaymentState::Bound {
            let driving = self.machine().spawn(payment.clone());
            match tokio::time::timeout_at(deadline, driving).await {
                Ok(Ok(driven)) => {
                    if driven? == DriveResult::Unanswered {
                        return Err(answers::silent());
                    }
                }
                Ok(Err(panicked)) => return Err(ApiError::internal(panicked)),
                Err(_late) => {}
            }
            payment = self.read_again(&payment.id).await?;
        }
        // Another call may be settling it.
        while matches!(payment.state, PaymentState::Settling | PaymentState::Unknown)
            && tokio::time::Instant::now() + SETTLE_POLL_INTERVAL < deadline
        {
            tokio::time::sleep(SETTLE_POLL_INTERVAL).await;
            payment = self.read_again(&payment.id).await?;
        }
        let state = payment.state;
        mutate!(Bug::ServesUnsettled => let state = crate::faults::unknown_as(PaymentState::Settled, state));
        mutate!(Bug::AsksAgain => let state = crate::faults::unknown_as(PaymentState::Failed, state));
        match state {
            PaymentState::Settled | PaymentState::NotNeeded => {
                // The wallet had bought it before: its first payment says how.
                let first = match payment.state {
                    PaymentState::NotNeeded => {
                        payments
                            .first_of(&payment.network, &payment.payer, &payment.bound)
                            .await?
                    }
                    _ => Some(payment.clone()),
                };
                let (transaction, sale) = first.map_or((None, None), |first| (first.transaction, first.sale_id));
                let purchased = SettledPurchase {
                    payment,
                    protocol,
                    transaction,
                    sale,
                };
                // A settled signature is public on the chain, so anybody can rebuild the header of a payment
                // that holds nothing else.
                if !is_new && !self.may_replay(&purchased.payment) {
                    return Err(answers::used(purchased.receipt(cx, goods).await?));
                }
                Ok(purchased)
            }
            PaymentState::Failed => Err(answers::failed(goods, plane, protocol, &payment)),
            PaymentState::Refused => Err(answers::required(goods, plane, payment.reason.as_deref())),
            PaymentState::Settling | PaymentState::Unknown => Err(answers::pending(plane, protocol, Some(&payment))),
            PaymentState::Bound | PaymentState::Abandoned => Err(answers::silent()),
        }
    }

    async fn read_again(&self, id: &str) -> Result<Payment, ApiError> {
        let found = self.cx.app.store.payments().get(id).await?;
        found.ok_or_else(|| ApiError::internal("a payment that was bound is gone"))
    }

    /// Returns true if the answer of a payment is given again. The chain publishes signatures, so anybody could send
    /// one: the answer goes to whoever knows the secret of the payment, for a day, or to the network that sent it first,
    /// for a short time.
    fn may_replay(&self, payment: &Payment) -> bool {
        if payment.has_secret {
            let paid_at = payment.settled_at.unwrap_or(payment.bound_at);
            let is_same = payment.payload_hash == self.hash();
            mutate!(Bug::SecretIgnored => let is_same = true);
            return is_same && self.cx.now.since(paid_at) <= REPLAYED_WITH_SECRET;
        }
        let until = payment.valid_before.saturating_add(REPLAYED_SECONDS);
        let is_first_sender = payment.client_net == net(self.cx.client);
        mutate!(Bug::ReplayToAnybody => let is_first_sender = true);
        self.seconds() <= until && is_first_sender
    }
}

/// Returns the network of a client: its address, or the /64 of an IPv6 address.
fn net(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            // One customer has a /64 and changes the rest of the address by itself (RFC 8981).
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}
