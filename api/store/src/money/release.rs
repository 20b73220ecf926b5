//! Release of shares whose dispute window is over.
//!
//! Invariant: a sale is released once, because its state is part of the condition of the statement that releases it.

use pay::Event;
use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, Timestamp, mutate};

use super::Money;
use super::post::{Posted, Posting, post};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;

/// Sales of one release.
const BATCH: i64 = 1_000;

impl Money<'_> {
    /// Makes the shares payable whose window is over at `now`: up to a thousand sales of each of up to `sellers`
    /// sellers. Returns the number of sales.
    pub async fn release(&self, asset: &str, now: Timestamp, sellers: u32) -> Result<u64, Error> {
        let due: Vec<OperatorId> = self
            .0
            .read(async {
                sql!(
                    "SELECT DISTINCT seller_operator FROM sales
                     WHERE state = 'held' AND release_at <= $1 AND asset = $2 ORDER BY seller_operator LIMIT $3",
                    now,
                    asset,
                    sellers
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(|row| row.get("seller_operator"))
                .collect()
            })
            .await?;
        let mut released = 0;
        for seller in due {
            released += self.release_of(asset, seller, now).await?;
        }
        Ok(released)
    }

    async fn release_of(&self, asset: &str, seller: OperatorId, now: Timestamp) -> Result<u64, Error> {
        let (id, asset) = (LedgerEventId::new(now), asset.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                // The state stands in the outer condition too: on PostgreSQL the subquery may see
                // rows that a dispute changes meanwhile, and only the outer condition is evaluated
                // again on the locked row.
                let rows = sql!(
                    "UPDATE sales SET state = 'payable', release_event = $1
                     WHERE state = 'held' AND id IN (
                         SELECT id FROM sales
                         WHERE seller_operator = $2 AND state = 'held' AND release_at <= $3 AND asset = $4
                         ORDER BY release_at, id LIMIT $5)
                     RETURNING share",
                    id,
                    seller,
                    now,
                    asset.as_str(),
                    BATCH
                )
                .rows(cx)
                .await?;
                if rows.is_empty() {
                    return Ok(Change::Nothing(0));
                }
                let mut sum = 0;
                for row in &rows {
                    sum += row.get::<i64>("share")?;
                }
                let key = id.to_string();
                let event = Event::release(&key, seller, MicroUsdc(sum));
                let posting = Posting {
                    id,
                    asset: &asset,
                    event: &event,
                    at: now,
                    subject: &key,
                    actor: "",
                };
                if post(cx, &posting).await? != Posted::Done {
                    // Nothing moves rather than a part of it; `check` names the account.
                    return Ok(Change::Undo(0));
                }
                mutate!(Bug::ReleasedTwice => super::faults::hold_again(cx, &key).await?);
                Ok(Change::Keep(rows.len() as u64))
            }))
            .await
    }
}
