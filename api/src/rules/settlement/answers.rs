//! Answers of the paths under `/paid`: challenges, receipts, and refusals with the headers that clients act on.
//!
//! Invariant: only an answer after which a new payment is right has the header `PAYMENT-REQUIRED`: clients sign again
//! when they see it.

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::Payment;
use x402::RefusalReason;
use x402::sign_in::SignInProblem;
use x402::wire::{self, Protocol, Receipt};

use super::goods::SaleItem;
use crate::call::answer::{JSON, OperationOutput, OperationResult};
use crate::call::schema;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::payment_services::PaymentServices;

/// Header of a challenge in version 2.
pub(crate) const REQUIRED: HeaderName = HeaderName::from_static("payment-required");
/// Headers of a receipt in version 2 and version 1.
const RESPONSE: HeaderName = HeaderName::from_static("payment-response");
const RESPONSE_V1: HeaderName = HeaderName::from_static("x-payment-response");
/// Seconds after which a payment that is not known is worth another look.
const PENDING_SECONDS: u64 = 2;
/// Seconds after which a facilitator that did not answer is asked again.
const SILENT_SECONDS: u64 = 5;
/// Seconds after which a body that could not be made is asked for again.
const NOT_READY_SECONDS: u64 = 2;

/// A JSON answer with headers.
#[derive(Debug)]
pub(crate) struct PaidAnswer<T> {
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: T,
}

impl<T: Serialize + JsonSchema + Send + 'static> OperationResult for PaidAnswer<T> {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema() -> Value {
        schema::of_output::<T>()
    }

    fn named() -> Value {
        schema::named_output::<T>()
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        let body = serde_json::to_vec(&self.body).map_err(|error| ApiError::internal(format!("answer: {error}")))?;
        Ok(OperationOutput::Whole {
            status: StatusCode::OK,
            headers: self.headers,
            content_type: JSON,
            body: body.into(),
        })
    }
}

fn value(message: &Value) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(&wire::header(message)).map_err(ApiError::internal)
}

/// Adds the challenge for both versions: the header is of version 2, the body of version 1.
fn challenged(error: ApiError, goods: &SaleItem, plane: &PaymentServices, why: &str) -> Result<ApiError, ApiError> {
    let asset = &plane.asset;
    // Clients of version 1 read the body only. Where that version is off, they find an empty list and
    // sign nothing.
    let v1 = Value::from_iter(plane.has_v1.then(|| goods.offer.v1(asset)));
    let mut error = error
        .header(REQUIRED, value(&goods.offer.challenge(asset, why, &goods.extensions))?)
        .field("x402Version", 1)
        .field("accepts", v1)
        .field("price", goods.price.to_string())
        .field("priceMicro", goods.price.0)
        .field("pay", goods.offer.url.clone());
    if let Some(buy) = &goods.buy {
        // An agent may have a key beside its wallet, and prepaid credits need no signature.
        error = error.field("credits", serde_json::json!({"buy": buy}));
    }
    Ok(error)
}

/// Returns the challenge: there is no payment, or one that is not taken for this reason.
pub(crate) fn required(goods: &SaleItem, plane: &PaymentServices, reason: Option<&str>) -> ApiError {
    demanded(goods, plane, reason, goods.message.clone())
}

fn demanded(goods: &SaleItem, plane: &PaymentServices, reason: Option<&str>, message: String) -> ApiError {
    let error = ApiError::new(ErrorCode::PaymentRequired, message);
    let made = match reason {
        None => challenged(error, goods, plane, "PAYMENT-SIGNATURE header is required"),
        Some(reason) => challenged(error.field("reason", reason), goods, plane, reason),
    };
    made.unwrap_or_else(|error| error)
}

/// Returns the challenge after a payment that is not taken.
pub(crate) fn refused(goods: &SaleItem, plane: &PaymentServices, reason: RefusalReason) -> ApiError {
    let message = format!("{}; the payment was not taken: {}", goods.message, reason.rule());
    demanded(goods, plane, Some(reason.word()), message)
}

/// Outcome of a payment, as its header says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaymentOutcome<'a> {
    /// Transaction that paid; none if it is not known.
    pub(crate) transaction: Option<&'a str>,
    /// Reason for which it is no success.
    pub(crate) error: Option<&'a str>,
    /// Receipt that the service signed.
    pub(crate) signed: Option<&'a str>,
    /// Address of the receipt of the sale.
    pub(crate) sale: Option<&'a str>,
}

impl<'a> PaymentOutcome<'a> {
    fn failed(transaction: Option<&'a str>, reason: &'a str) -> Self {
        Self {
            transaction,
            error: Some(reason),
            signed: None,
            sale: None,
        }
    }
}

/// Returns the header that says what became of a payment.
pub(crate) fn receipt(
    protocol: Protocol,
    payment: &Payment,
    plane: &PaymentServices,
    outcome: PaymentOutcome<'_>,
) -> Result<(HeaderName, HeaderValue), ApiError> {
    let PaymentOutcome {
        transaction,
        error,
        signed,
        sale,
    } = outcome;
    let is_free = payment.state == store::PaymentState::NotNeeded;
    let receipt = Receipt {
        protocol,
        payer: payment.payer.parse().map_err(ApiError::internal)?,
        transaction,
        // A wallet that had bought before is not charged, although its payment names an amount.
        amount: if is_free { 0 } else { super::natural(payment.amount) },
        error,
        signed,
        sale,
    };
    let name = match protocol {
        Protocol::V1 => RESPONSE_V1,
        Protocol::V2 => RESPONSE,
    };
    Ok((name, value(&receipt.message(&plane.asset))?))
}

fn with(error: ApiError, header: Result<(HeaderName, HeaderValue), ApiError>) -> ApiError {
    match header {
        Ok((name, value)) => error.header(name, value),
        Err(broken) => broken,
    }
}

/// Returns the answer to a payment that moved nothing, which is proved.
pub(crate) fn failed(goods: &SaleItem, plane: &PaymentServices, protocol: Protocol, payment: &Payment) -> ApiError {
    let reason = payment.reason.as_deref().unwrap_or("settlement_failed");
    let error = ApiError::new(
        ErrorCode::PaymentFailed,
        "the payment was not settled and nothing was charged; sign a new one",
    );
    let error = match challenged(error.field("reason", reason), goods, plane, reason) {
        Ok(error) => error,
        Err(broken) => return broken,
    };
    with(
        error,
        receipt(protocol, payment, plane, PaymentOutcome::failed(None, reason)),
    )
}

/// Returns the answer to a payment whose settlement is not known.
pub(crate) fn pending(plane: &PaymentServices, protocol: Protocol, payment: Option<&Payment>) -> ApiError {
    let message = "it is not known yet if the payment was settled; send the same payment again, do not sign a new one";
    // Without a challenge: a client that signs anew while the first payment may still settle would pay
    // twice.
    let error = later(message, PENDING_SECONDS).with_code(ErrorCode::SettlementPending);
    match payment {
        Some(payment) => with(
            error,
            receipt(
                protocol,
                payment,
                plane,
                PaymentOutcome::failed(payment.transaction.as_deref(), ErrorCode::SettlementPending.word()),
            ),
        ),
        None => error,
    }
}

/// Returns the answer while the facilitator is silent.
pub(crate) fn silent() -> ApiError {
    let message = "the payment could not be checked and nothing was sent; send the same payment again";
    later(message, SILENT_SECONDS).with_code(ErrorCode::FacilitatorUnavailable)
}

/// Returns the answer to a payment that is settled while its body cannot be made.
pub(crate) fn not_ready(cause: &ApiError, header: (HeaderName, HeaderValue)) -> ApiError {
    let message = "the payment is settled and what it paid for cannot be read now; send the same payment again";
    later(message, NOT_READY_SECONDS)
        .with_code(ErrorCode::PaidNotReady)
        .header(header.0, header.1)
        .context(cause.reason())
}

fn later(message: &str, seconds: u64) -> ApiError {
    ApiError::new(ErrorCode::Unavailable, message).retry_after(seconds)
}

/// Returns the challenge after a sign-in that does not read the item.
pub(crate) fn not_signed_in(goods: &SaleItem, plane: &PaymentServices, problem: Option<SignInProblem>) -> ApiError {
    let (word, rule) = problem.map_or(("not_bought", "the wallet has not bought this"), |problem| {
        (problem.word(), problem.rule())
    });
    let message = format!("{}; the sign-in was not taken: {rule}", goods.message);
    demanded(goods, plane, Some(word), message)
}

/// Returns the answer to an identifier that the payer gave to another payment.
pub(crate) fn identifier_reused() -> ApiError {
    ApiError::new(
        ErrorCode::IdentifierReused,
        "the `payment-identifier` was sent with another payment; choose another, or send that payment again",
    )
}

/// Returns the answer to an authorization that pays for something else.
pub(crate) fn used_elsewhere() -> ApiError {
    ApiError::new(
        ErrorCode::AuthorizationUsed,
        "this authorization was sent for something else; sign a new one",
    )
}

/// Returns the answer to an authorization whose answer is not given any more.
pub(crate) fn used(header: (HeaderName, HeaderValue)) -> ApiError {
    // The receipt stays, so that a client which lost the first answer has the proof of its payment.
    let message = "this payment was settled before, and its answer is not given again; sign a new payment with the same \
                   wallet, which is not charged for what it has bought";
    ApiError::new(ErrorCode::PaymentUsed, message).header(header.0, header.1)
}

/// Returns the answer to a header that is no payment.
pub(crate) fn malformed(field: &str, problem: &str) -> ApiError {
    ApiError::new(
        ErrorCode::MalformedPayment,
        format!("`{field}` of the payment {problem}"),
    )
    .field("field", field)
}

/// Returns the member of the input that carries a payment which came as a message, in the form of its header.
pub(crate) fn sent(message: &Value) -> (String, Value) {
    let member = match message["x402Version"].as_u64() {
        Some(1) => "payment",
        _ => "paymentSignature",
    };
    (member.to_owned(), Value::from(vec![wire::header(message)]))
}

/// Returns the message of a header among these.
fn message_of(headers: &[(HeaderName, HeaderValue)], names: &[HeaderName]) -> Option<Value> {
    let (_, value) = headers.iter().find(|(name, _)| names.contains(name))?;
    let text = data_encoding::BASE64.decode(value.as_bytes()).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the terms of a challenge, as the message that its header carries.
pub(crate) fn terms_of(headers: &[(HeaderName, HeaderValue)]) -> Option<Value> {
    message_of(headers, &[REQUIRED])
}

/// Returns the receipt of a payment, as the message that its header carries.
pub(crate) fn receipt_of(headers: &[(HeaderName, HeaderValue)]) -> Option<Value> {
    message_of(headers, &[RESPONSE, RESPONSE_V1])
}
