//! Settlement of payments by x402.
//!
//! Invariant: the final state of a payment, its sale or pack, the entitlement, the movements and the points are one
//! transaction. A settled payment that buys nothing, because its wallet has the item already, is refunded.

use pay::Event;
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{LedgerEventId, OperatorId, SaleId, Timestamp, mutate};

use super::post::{Posted, Posting, post};
use super::sales::{NewSale, Recorded, record};
use super::{Money, Sale, SaleTerms, disputes, entitlements, items};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _};
use crate::writer::Change;

/// Payment that the facilitator, or the chain, says was settled.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Id of the payment.
    pub payment: String,
    /// Hash of the transaction.
    pub transaction: String,
    /// Id of the sale, if an item was bought.
    pub sale: SaleId,
    /// Id of the event of the ledger.
    pub event: LedgerEventId,
    /// Terms of the sale. The asset is that of the payment.
    pub terms: SaleTerms,
    /// Refund, should the payment buy nothing.
    pub refund: WalletRefund,
    /// Time of the settlement.
    pub now: Timestamp,
}

/// Refund to a wallet.
#[derive(Clone, Debug)]
pub struct WalletRefund {
    /// Id of the payout row.
    pub id: String,
    /// Nonce of its authorization.
    pub nonce: String,
    /// Id of a second event.
    pub event: LedgerEventId,
}

/// Result of [`Money::settle`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum Settled {
    /// The item is sold.
    Sold(Sale),
    /// The pack is credited.
    Credited {
        /// Operator that has the credits.
        operator: OperatorId,
        /// Amount that was settled, in micro-USDC.
        amount: MicroUsdc,
    },
    /// The wallet has the item already: the amount goes back to it.
    Refunding,
    /// The payment is not open: it was settled by another call, or never sent.
    NotOpen,
}

impl Money<'_> {
    /// Settles a payment that is `settling`, `unknown` or `failed`.
    ///
    /// # Errors
    /// [`Error::Missing`] if the payment or its item does not exist.
    pub async fn settle(&self, new: Settlement) -> Result<Settled, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let row = sql!(
                    "UPDATE payments
                     SET state = 'settled', transaction_hash = $2, settled_at = $3, payload = NULL, reason = NULL,
                         sale_id = CASE WHEN item_kind = 'pack' THEN NULL ELSE $4 END
                     WHERE id = $1 AND state IN ('settling', 'unknown', 'failed')
                     RETURNING network, asset, payer, item_kind, item_id, version, unit_version, amount,
                               buyer_operator",
                    new.payment.as_str(),
                    new.transaction.as_str(),
                    new.now,
                    new.sale
                )
                .row_if_any(cx)
                .await?;
                // A payment that failed is settled too, if the chain shows later that it was made:
                // the money is here.
                let Some(row) = row else {
                    return Ok(Change::Undo(Settled::NotOpen));
                };
                let network: String = row.get("network")?;
                let asset = format!("{network}/{}", row.get::<String>("asset")?);
                let payer: String = row.get("payer")?;
                let amount = MicroUsdc(row.get("amount")?);
                let item: String = row.get("item_id")?;
                if row.value::<&str>("item_kind")? == "pack" {
                    let operator: OperatorId = row.get("item_id")?;
                    let event = Event::pack(&new.payment, operator, amount);
                    let posting = Posting {
                        id: new.event,
                        asset: &asset,
                        event: &event,
                        at: new.now,
                        subject: &new.payment,
                        actor: "",
                    };
                    if post(cx, &posting).await? != Posted::Done {
                        return Ok(Change::Undo(Settled::NotOpen));
                    }
                    mutate!(Bug::SettledTwice => super::faults::credit_again(cx, &posting).await?);
                    return Ok(Change::Keep(Settled::Credited { operator, amount }));
                }
                let kind: ItemKind = row.get("item_kind")?;
                // Price and state of the item are not asked again: the payer was quoted, and the
                // transfer is made.
                let offer = items::find(cx, kind, &item).await?.ok_or_else(|| Error::Missing {
                    what: "item",
                    id: item.clone(),
                })?;
                let sale = NewSale {
                    id: new.sale,
                    asset: &asset,
                    kind,
                    item: &item,
                    version: row.get("version")?,
                    unit_version: row.get("unit_version")?,
                    seller: offer.seller,
                    seller_agent: offer.seller_agent,
                    buyer: row.get("buyer_operator")?,
                    wallet: Some(format!("{network}:{payer}")),
                    agent: None,
                    paid_with: PaidWith::X402,
                    price: amount,
                    fee: &new.terms.fee,
                    window: new.terms.dispute_window,
                    payment: Some(new.payment.clone()),
                    approval: None,
                    now: new.now,
                }
                .sale();
                match record(cx, &sale, new.event).await? {
                    Recorded::Done => Ok(Change::Keep(Settled::Sold(sale))),
                    // The first owner of `record` is the wallet, and nothing was written for it.
                    Recorded::Owned if refund(cx, &new, &asset, &payer, amount).await? => {
                        Ok(Change::Keep(Settled::Refunding))
                    }
                    // The treasury only grows here, so this says that a sum is too large.
                    Recorded::Owned | Recorded::Short | Recorded::Full => Ok(Change::Undo(Settled::NotOpen)),
                }
            }))
            .await
    }

    /// Grants the earlier purchases of a wallet, `{network}:{address}`, that belong to no operator to the operator that
    /// has proved the wallet. Returns their number.
    pub async fn adopt_wallet(&self, wallet: &str, operator: OperatorId) -> Result<u64, Error> {
        let wallet = wallet.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                let rows = sql!(
                    text!(
                        "UPDATE sales SET buyer_operator = $2
                         WHERE buyer_wallet = $1 AND buyer_operator IS NULL AND state <> 'refunded'
                           AND seller_operator <> $2
                         RETURNING ",
                        Sale::COLUMNS
                    ),
                    wallet,
                    operator
                )
                .rows(cx)
                .await?;
                let sales = rows.iter().map(Sale::of).collect::<Result<Vec<_>, _>>()?;
                // The sales of the wallet before it was proved. Granting keeps the highest version
                // if the operator owns one.
                for sale in &sales {
                    entitlements::grant(cx, &entitlements::Owner::Operator(operator), sale).await?;
                    disputes::adopt(cx, sale.id, operator).await?;
                }
                Ok(Change::Keep(sales.len() as u64))
            }))
            .await
    }
}

/// Books money that bought nothing, and queues its way back to the wallet. It came in just now, so the treasury covers
/// it. Returns false if it cannot be booked; then the change must be undone.
async fn refund(
    cx: &mut sqlx::AnyConnection,
    new: &Settlement,
    asset: &str,
    payer: &str,
    amount: MicroUsdc,
) -> Result<bool, Error> {
    // In through the account of unmatched money and out again, so that the ledger shows what came and why it goes.
    for (id, event) in [
        (new.event, Event::unmatched(&new.payment, amount)),
        (new.refund.event, Event::assigned(&new.payment, None, amount)),
    ] {
        let posting = Posting {
            id,
            asset,
            event: &event,
            at: new.now,
            subject: &new.payment,
            actor: "",
        };
        if post(cx, &posting).await? != Posted::Done {
            return Ok(false);
        }
    }
    sql!(
        "UPDATE payments SET sale_id = NULL, reason = 'refunded' WHERE id = $1",
        new.payment.as_str()
    )
    .run(cx)
    .await?;
    queue_refund(cx, &new.refund, asset, payer, amount, new.now).await?;
    Ok(true)
}

/// Queues a refund to a wallet.
pub(super) async fn queue_refund(
    cx: &mut sqlx::AnyConnection,
    refund: &WalletRefund,
    asset: &str,
    address: &str,
    amount: MicroUsdc,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO payouts (id, kind, operator_id, address, amount, asset, nonce, valid_before, state, attempts,
                              next_try_at, created_at)
         VALUES ($1, 'refund', NULL, $2, $3, $4, $5, 0, 'picked', 0, $6, $6)",
        refund.id.as_str(),
        address,
        amount.0,
        asset,
        refund.nonce.as_str(),
        now
    )
    .run(cx)
    .await?;
    Ok(())
}
