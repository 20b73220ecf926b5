//! Receipts that the service signs: of sales, and of payments by x402.
//!
//! Invariant: a receipt is signed when it is first asked for and kept, so everybody gets the same bytes. It is signed anew
//! only after its key was revoked, since nobody trusts the first one then.

use proof::jws::{CompactJws, ServiceDid};
use proof::sale::{SaleApprover, SaleFormat};
use proof::terms::{PaymentReceipt, PaymentTerms, VerifiedTerms};
use proof::{FileHash, KeyId, Keys, SaleReceipt, SignedStatement, VerifiedStatement};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use store::{MoneyFault, Payment, PaymentReceiptText, Sale, SaleFacts, Store};
use types::vocabulary::{ItemKind, PaidWith};
use types::{Clock, SaleId, mutate};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::keys::KeyRing;
use crate::rules::settlement::challenge::second;
use crate::rules::settlement::natural;

/// Receipts that are read at once.
const RECEIPTS: u32 = 200;
/// Attempts at keeping a receipt while others keep theirs.
const MAX_KEEP_ATTEMPTS: usize = 3;

/// A receipt of a sale, as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct SignedSale {
    /// Text of the receipt with its signature: canonical JSON.
    pub(crate) text: String,
    /// The statement that is signed.
    pub(crate) statement: SaleReceipt,
    /// Key that signed it.
    pub(crate) key: KeyId,
}

/// As the text, byte for byte.
impl Serialize for SignedSale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = RawValue::from_string(self.text.clone()).map_err(serde::ser::Error::custom)?;
        text.serialize(serializer)
    }
}

impl JsonSchema for SignedSale {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SignedStatement::<SaleReceipt>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SignedStatement::<SaleReceipt>::json_schema(generator)
    }
}

/// Member of a receipt that names the key, read before the signature is looked at.
#[derive(Deserialize)]
struct SignedBy {
    signature: SigningKeyName,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigningKeyName {
    key_id: KeyId,
}

/// Returns a sale, if the caller's operator bought it; otherwise a 404.
pub(crate) async fn bought(cx: &Cx, sale: SaleId) -> Result<Sale, ApiError> {
    let found = cx.app.store.money().sale(sale).await?;
    // A purchase by a wallet is its operator's once the wallet has proved itself.
    found
        .filter(|found| found.buyer.is_some() && found.buyer == cx.operator())
        .ok_or_else(|| no_receipt(sale))
}

/// Returns the 404 for a receipt. A missing one and that of another buyer get the same text.
pub(crate) fn no_receipt(sale: SaleId) -> ApiError {
    ApiError::not_found(format!("there is no receipt `{sale}`"))
}

/// Returns the receipt of a sale; signs it, if there is none that counts.
pub(crate) async fn of_sale(cx: &Cx, sale: SaleId) -> Result<SignedSale, ApiError> {
    let money = cx.app.store.money();
    for _ in 0..MAX_KEEP_ATTEMPTS {
        let facts = money.sale_facts(sale).await?.ok_or_else(|| no_receipt(sale))?;
        let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
        let earlier = facts.receipt.as_deref().map(read).transpose()?;
        if let Some(kept) = earlier.as_ref().filter(|kept| ring.counts(kept.key)) {
            return Ok(kept.clone());
        }
        let statement = stated(cx, &facts, &ring, earlier.as_ref().map(|earlier| &earlier.statement))?;
        let signed = SignedStatement::sign(statement, ring.signer(), ring.current()).map_err(ApiError::internal)?;
        let before = facts.receipt.unwrap_or_default();
        let text = signed.text().map_err(ApiError::internal)?;
        mutate!(Bug::ReceiptOfEachCall => return read(&text));
        let kept = money.keep_receipt(sale, &before, &text).await?;
        let kept = read(&kept.ok_or_else(|| no_receipt(sale))?)?;
        // A caller that was faster may have signed with a key that was revoked just now.
        if kept.text == text || ring.counts(kept.key) {
            return Ok(kept);
        }
    }
    Err(ApiError::unavailable("other calls keep signing the receipt of a sale"))
}

fn read(text: &str) -> Result<SignedSale, ApiError> {
    let SignedBy { signature } = serde_json::from_str(text).map_err(ApiError::internal)?;
    Ok(SignedSale {
        statement: serde_json::from_str(text).map_err(ApiError::internal)?,
        key: signature.key_id,
        text: text.to_owned(),
    })
}

/// Returns the statement about a sale, issued now.
fn stated(cx: &Cx, facts: &SaleFacts, ring: &KeyRing, earlier: Option<&SaleReceipt>) -> Result<SaleReceipt, ApiError> {
    let sale = &facts.sale;
    let mut statement = SaleReceipt {
        format: SaleFormat::V1,
        sale_id: sale.id,
        item: item_of(facts),
        version: sale.version,
        content_root: facts
            .root
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(ApiError::internal)?,
        body_sha256: facts.body.as_deref().map(hash_of),
        price_micro: natural(sale.price.0),
        fee_micro: natural(sale.fee.0),
        paid_with: sale.paid_with,
        buyer: buyer_of(sale)?,
        agent: sale.agent,
        approved_by: sale.approval.is_some().then_some(SaleApprover::Person),
        license: facts.license.clone(),
        ledger_event: facts.event,
        transaction: facts.transaction.clone(),
        at: sale.sold_at,
        issued_at: ring.issued_at(cx.now),
    };
    // What an earlier receipt said of a text stays said when the text is gone.
    if let Some(earlier) = earlier {
        statement.body_sha256 = statement.body_sha256.or(earlier.body_sha256);
        statement.content_root = statement.content_root.or(earlier.content_root);
    }
    Ok(statement)
}

fn hash_of(body: &str) -> FileHash {
    FileHash::from_bytes(Sha256::digest(body.as_bytes()).into())
}

/// Returns the name of what was sold.
fn item_of(facts: &SaleFacts) -> String {
    match facts.sale.kind {
        ItemKind::Dataset => SaleReceipt::dataset(facts.slug.as_deref().unwrap_or_default()),
        ItemKind::Unit => SaleReceipt::unit(&facts.sale.item),
    }
}

/// Returns who paid: a wallet with its checksum, or an operator.
fn buyer_of(sale: &Sale) -> Result<String, ApiError> {
    let named = match (sale.paid_with, &sale.wallet, sale.buyer) {
        (PaidWith::X402, Some(wallet), _) => wallet.rsplit_once(':').and_then(|(network, address)| {
            let address: x402::Address = address.parse().ok()?;
            Some(format!("{network}:{}", address.checksum()))
        }),
        (_, _, buyer) => buyer.map(|buyer| buyer.to_string()),
    };
    named.ok_or_else(|| ApiError::internal(format!("the sale {} has no buyer", sale.id)))
}

/// Returns the receipt of the sale of a purchase that is committed. Without one the answer to the purchase is still right:
/// the receipt is signed when it is asked for.
pub(crate) async fn after_purchase(cx: &Cx, sale: SaleId) -> Option<SignedSale> {
    match of_sale(cx, sale).await {
        Ok(receipt) => Some(receipt),
        Err(error) => {
            tracing::warn!(
                %sale,
                error = error.reason(),
                "cannot sign the receipt of a sale; it is signed when it is asked for"
            );
            None
        }
    }
}

/// Returns the receipt of a payment that was settled or not needed, for the address that it paid: a compact JWS.
/// `transaction` paid for the item first.
pub(crate) async fn of_payment(
    cx: &Cx,
    payment: &Payment,
    url: &str,
    transaction: Option<&str>,
) -> Result<String, ApiError> {
    let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
    let before = payment.receipt.clone().unwrap_or_default();
    if let Ok(kept) = CompactJws::parse(&before)
        && ring.counts(kept.key())
    {
        return Ok(before);
    }
    let payer: x402::Address = payment.payer.parse().map_err(ApiError::internal)?;
    let receipt = PaymentReceipt {
        version: PaymentReceipt::VERSION,
        network: payment.network.clone(),
        resource_url: url.to_owned(),
        payer: payer.checksum(),
        issued_at: second(ring.issued_at(cx.now)),
        transaction: transaction.map(str::to_owned),
    };
    let did = ServiceDid::of_origin(&cx.app.config.public_url);
    let signed = receipt.sign(&did, ring.signer()).map_err(ApiError::internal)?;
    let money = cx.app.store.money();
    let kept = money.keep_payment_receipt(&payment.id, &before, &signed);
    Ok(kept.await?.filter(|kept| !kept.is_empty()).unwrap_or(signed))
}

/// Returns up to `limit` receipts of sales and payments that no service key signed, or that state something else than
/// what was sold.
///
/// # Errors
/// A database that does not answer, or stored keys that cannot be used.
pub async fn faults(store: &Store, clock: &dyn Clock, limit: u32) -> Result<Vec<MoneyFault>, crate::keys::Error> {
    let mut faults = Vec::new();
    let document = |ring: &KeyRing| {
        let document = ring.document(ring.issued_at(clock.now()))?;
        let text = serde_json::to_vec(&document).unwrap_or_default();
        Ok::<_, crate::keys::Error>(Keys::parse(&text)?)
    };
    let mut fault = |subject: String, problem| {
        faults.push(MoneyFault {
            rule: "M19",
            subject,
            problem,
        });
    };
    let mut after = None;
    loop {
        let sales = store.money().receipted_sales(after, RECEIPTS).await?;
        let Some(last) = sales.last() else { break };
        after = Some(last.sale.id);
        // After the receipts: a key that signed one of them is in this document.
        let ring = KeyRing::load(store, clock).await?;
        let keys = document(&ring)?;
        for facts in &sales {
            if let Some(problem) = sale_problem(facts, &keys) {
                fault(facts.sale.id.to_string(), problem);
            }
        }
    }
    let mut after = String::new();
    loop {
        let payments = store.money().receipted_payments(&after, RECEIPTS).await?;
        let Some(last) = payments.last() else { break };
        after.clone_from(&last.payment);
        let keys = document(&KeyRing::load(store, clock).await?)?;
        for payment in &payments {
            if let Some(problem) = payment_problem(payment, &keys) {
                fault(payment.payment.clone(), problem);
            }
        }
    }
    faults.truncate(limit as usize);
    Ok(faults)
}

/// Returns true if an error says that the signing key was revoked. Such a receipt is signed anew when it is asked for.
const fn is_of_revoked(error: &proof::Error) -> bool {
    matches!(error, proof::Error::Revoked { .. })
}

fn sale_problem(facts: &SaleFacts, keys: &Keys) -> Option<&'static str> {
    let text = facts.receipt.as_deref().unwrap_or_default();
    let statement = match VerifiedStatement::<SaleReceipt>::parse(text.as_bytes(), keys) {
        Ok(verified) => verified.statement().clone(),
        Err(error) if is_of_revoked(&error) => return None,
        Err(_broken) => return Some("no service key signed the receipt of the sale"),
    };
    let sale = &facts.sale;
    let root = facts.root.as_deref().and_then(|root| root.parse().ok());
    let body = facts.body.as_deref().map(hash_of);
    let says_so = statement.sale_id == sale.id
        && statement.item == item_of(facts)
        && statement.version == sale.version
        // A text may have been erased since, and a version lost.
        && (root.is_none() || statement.content_root == root)
        && (body.is_none() || statement.body_sha256 == body)
        && statement.price_micro == natural(sale.price.0)
        && statement.fee_micro == natural(sale.fee.0)
        && statement.paid_with == sale.paid_with
        && buyer_of(sale).is_ok_and(|buyer| statement.buyer == buyer)
        && statement.agent == sale.agent
        && statement.approved_by.is_some() == sale.approval.is_some()
        && statement.ledger_event == facts.event
        && statement.transaction == facts.transaction
        && statement.at == sale.sold_at;
    (!says_so).then_some("the receipt states another sale")
}

fn payment_problem(payment: &PaymentReceiptText, keys: &Keys) -> Option<&'static str> {
    let receipt = match VerifiedTerms::parse(&payment.text, keys) {
        Ok(verified) => match verified.terms() {
            PaymentTerms::Receipt(receipt) => receipt.clone(),
            PaymentTerms::Offer(_) => return Some("the receipt of the payment is an offer"),
        },
        Err(error) if is_of_revoked(&error) => return None,
        Err(_broken) => return Some("no service key signed the receipt of the payment"),
    };
    let says_so = receipt.payer.eq_ignore_ascii_case(&payment.payer)
        && receipt.network == payment.network
        // A payment that was not needed names the transaction of the first purchase.
        && (payment.transaction.is_none() || receipt.transaction == payment.transaction);
    (!says_so).then_some("the receipt states another payment")
}
