//! Credits that nobody bought: granted by an admin, or given for trial sales.

use pay::Event;
use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, Timestamp};

use super::Money;
use super::post::{Posted, Posting, post};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;

/// Credits to grant.
#[derive(Clone, Debug)]
pub struct NewGrant {
    /// Id of the event.
    pub event: LedgerEventId,
    /// Asset of the ledger.
    pub asset: String,
    /// Operator that gets them.
    pub operator: OperatorId,
    /// Amount, more than zero.
    pub amount: MicroUsdc,
    /// True for credits that only trial sales take.
    pub given: bool,
    /// Text that names the grant; one reference is one grant.
    pub reference: String,
    /// Time of the grant.
    pub now: Timestamp,
}

/// Result of [`Money::grant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Granted {
    /// The operator has the credits.
    Done,
    /// A grant with this reference exists.
    Repeated,
    /// The operator does not exist.
    NoOperator,
    /// The balance would be too large.
    Full,
}

impl Money<'_> {
    /// Gives the credits of a sign-up, once per operator. An amount of zero gives nothing.
    pub async fn gift(
        &self,
        asset: &str,
        operator: OperatorId,
        amount: MicroUsdc,
        now: Timestamp,
    ) -> Result<(), Error> {
        if amount.0 <= 0 {
            return Ok(());
        }
        let new = NewGrant {
            event: LedgerEventId::new(now),
            asset: asset.to_owned(),
            operator,
            amount,
            given: true,
            // The reference follows from the operator, so every path that gives the credits of a
            // sign-up gives them once.
            reference: format!("signup:{operator}"),
            now,
        };
        // A repeated gift is the same gift, and an operator that is gone needs none.
        self.grant(new).await.map(drop)
    }

    /// Returns operators who signed up and were verified since an instant, and have no gift.
    pub async fn without_gift(&self, since: Timestamp) -> Result<Vec<OperatorId>, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT operators.id AS id FROM operators
                     WHERE operators.verified_at >= $1 AND operators.adult_stated_at IS NOT NULL
                       AND NOT EXISTS (SELECT 1 FROM ledger_events
                                       WHERE ledger_events.kind = 'given'
                                         AND ledger_events.key = 'signup:' || operators.id)
                     ORDER BY operators.id LIMIT 1000",
                    since
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(|row| row.get("id"))
                .collect()
            })
            .await
    }

    /// Grants credits to an operator, once per reference.
    ///
    /// # Errors
    /// [`Error::Range`] for an amount of zero or less, [`Error::Text`].
    pub async fn grant(&self, new: NewGrant) -> Result<Granted, Error> {
        texts(&[("key", &new.reference)])?;
        if new.amount.0 <= 0 {
            return Err(Error::Range {
                column: "amount",
                value: 0,
            });
        }
        self.0
            .write_aside(tx!(async move |cx| {
                let known = sql!("SELECT id FROM operators WHERE id = $1", new.operator)
                    .row_if_any(cx)
                    .await?;
                if known.is_none() {
                    return Ok(Change::Undo(Granted::NoOperator));
                }
                let event = if new.given {
                    Event::given(&new.reference, new.operator, new.amount)
                } else {
                    Event::grant(&new.reference, new.operator, new.amount)
                };
                let posting = Posting {
                    id: new.event,
                    asset: &new.asset,
                    event: &event,
                    at: new.now,
                    subject: &new.reference,
                    actor: "",
                };
                Ok(match post(cx, &posting).await? {
                    Posted::Done => Change::Keep(Granted::Done),
                    // The reference is the key of the event: a command that is run again grants
                    // nothing again.
                    Posted::Repeated => Change::Undo(Granted::Repeated),
                    Posted::Short(_) | Posted::Full(_) => Change::Undo(Granted::Full),
                })
            }))
            .await
    }
}
