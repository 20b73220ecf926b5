//! Charges for storage and egress beyond the free bytes.
//!
//! Invariant: bytes are leased before they are sent, and a block is paid before it is leased: sent ≤ leased ≤ free and
//! paid, always. A day of storage is charged or written off once.

use pay::{Account, AccountKind, BLOCK_BYTES, Event};
use types::money::MicroUsdc;
use types::vocabulary::SpendKind;
use types::{LedgerEventId, OperatorId, Timestamp};

use super::Money;
use super::post::{Posted, Posting, locked_balance, post};
use super::spending::{self, SpendCapped, SpendCharge, Spender};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::{Columns, bigint};
use crate::writer::Change;

/// Bytes to lease for an account in a month.
#[derive(Clone, Debug)]
pub struct EgressLease {
    /// Account: `op:{id}` or `w:{network}:{address}`.
    pub account: String,
    /// UTC month, counted from January 1970.
    pub month: i64,
    /// Number of bytes that are leased.
    pub bytes: u64,
    /// Free bytes of the account.
    pub free: u64,
    /// Bytes of the whole platform in the month.
    pub platform: u64,
    /// Operator whose bought credits pay for blocks beyond the free bytes; `None` if the caller may not spend.
    pub payer: Option<OperatorId>,
    /// Asset of the ledger.
    pub asset: String,
    /// Price of a block.
    pub block: MicroUsdc,
    /// Id of the event of the ledger, should blocks be paid.
    pub event: LedgerEventId,
    /// Agent that reads, with its app; `None` if none does. Its counters of the day and the month take what is paid.
    pub spender: Option<Spender>,
    /// Time of the lease.
    pub now: Timestamp,
}

/// Result of [`Money::egress_lease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EgressLeased {
    /// The bytes may be sent.
    Leased,
    /// The free and paid bytes are used up, and credits do not cover, or may not pay, the blocks that are missing.
    Short {
        /// Charge that was missing.
        need: MicroUsdc,
        /// Bought credits; 0 if the caller may not spend.
        balance: MicroUsdc,
    },
    /// The blocks that are missing do not fit a cap of the agent or the app.
    Capped {
        /// Charge that was missing.
        need: MicroUsdc,
        /// The cap.
        capped: SpendCapped,
    },
    /// The platform sends no more this month.
    PlatformFull,
}

/// Result of [`Money::storage_charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum StorageCharged {
    /// The day is paid.
    Charged,
    /// Credits did not cover the day; it is written off.
    WrittenOff,
    /// The day was charged or written off before.
    Already,
}

impl Money<'_> {
    /// Leases bytes of egress, and charges the blocks that are missing for them.
    pub async fn egress_lease(&self, lease: EgressLease) -> Result<EgressLeased, Error> {
        let (bytes, free) = (bigint("leased", lease.bytes)?, bigint("leased", lease.free)?);
        let platform = bigint("leased", lease.platform)?;
        self.0
            .write_aside(tx!(async move |cx| {
                let row = sql!(
                    "INSERT INTO egress_months (account, month, leased, paid_blocks) VALUES ($1, $2, $3, 0)
                     ON CONFLICT (account, month) DO UPDATE SET leased = egress_months.leased + excluded.leased
                     RETURNING leased, paid_blocks",
                    lease.account.as_str(),
                    lease.month,
                    bytes
                )
                .row(cx)
                .await?;
                // The row is locked by the update, so what follows decides on a figure that stays.
                let (leased, paid): (i64, i64) = (row.get("leased")?, row.get("paid_blocks")?);
                // Counted by what is leased and not by what was sent: a lease that is not used is
                // given back, and no byte leaves before it is leased.
                let needed = missing_blocks(leased, free, paid);
                if needed > 0 {
                    let need = MicroUsdc(lease.block.0.saturating_mul(needed));
                    let Some(payer) = lease.payer else {
                        let balance = MicroUsdc(0);
                        return Ok(Change::Undo(EgressLeased::Short { need, balance }));
                    };
                    let charge = SpendCharge {
                        kind: SpendKind::Usage,
                        amount: need,
                        now: lease.now,
                    };
                    let counted = match spending::count(cx, lease.spender, charge).await? {
                        Ok(counted) => counted,
                        Err(capped) => return Ok(Change::Undo(EgressLeased::Capped { need, capped })),
                    };
                    let credits = Account::of(AccountKind::Credits, payer);
                    let balance = locked_balance(cx, &lease.asset, credits).await?;
                    if balance < need.0 {
                        let balance = MicroUsdc(balance);
                        return Ok(Change::Undo(EgressLeased::Short { need, balance }));
                    }
                    sql!(
                        "UPDATE egress_months SET paid_blocks = paid_blocks + $3 WHERE account = $1 AND month = $2",
                        lease.account.as_str(),
                        lease.month,
                        needed
                    )
                    .run(cx)
                    .await?;
                    // The last block names the event; one event pays all blocks of a lease.
                    let event = Event::egress_block(payer, lease.month, paid + needed, need);
                    let posting = Posting {
                        id: lease.event,
                        asset: &lease.asset,
                        event: &event,
                        at: lease.now,
                        subject: "",
                        actor: &lease
                            .spender
                            .map(|spender| spender.agent.to_string())
                            .unwrap_or_default(),
                    };
                    if post(cx, &posting).await? != Posted::Done {
                        let balance = MicroUsdc(balance);
                        return Ok(Change::Undo(EgressLeased::Short { need, balance }));
                    }
                    counted.note(cx, lease.event, None).await?;
                }
                // The row of the platform is the busiest, so it is locked last.
                sql!(
                    "INSERT INTO platform_months (month, leased) VALUES ($1, 0) ON CONFLICT DO NOTHING",
                    lease.month
                )
                .run(cx)
                .await?;
                let fits = sql!(
                    "UPDATE platform_months SET leased = leased + $2 WHERE month = $1 AND leased + $2 <= $3",
                    lease.month,
                    bytes,
                    platform
                )
                .run(cx)
                .await?;
                Ok(if fits == 0 {
                    Change::Undo(EgressLeased::PlatformFull)
                } else {
                    Change::Keep(EgressLeased::Leased)
                })
            }))
            .await
    }

    /// Gives back leased bytes that were not sent.
    pub async fn egress_return(&self, account: &str, month: i64, bytes: u64) -> Result<(), Error> {
        let (account, bytes) = (account.to_owned(), bigint("leased", bytes)?);
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    "UPDATE egress_months SET leased = leased - $3
                     WHERE account = $1 AND month = $2 AND leased >= $3",
                    account,
                    month,
                    bytes
                )
                .run(cx)
                .await?;
                sql!(
                    "UPDATE platform_months SET leased = leased - $2 WHERE month = $1 AND leased >= $2",
                    month,
                    bytes
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the bytes leased for an account in a month and the blocks paid.
    pub async fn egress_month(&self, account: &str, month: i64) -> Result<(u64, u64), Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT leased, paid_blocks FROM egress_months WHERE account = $1 AND month = $2",
                    account,
                    month
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                row.map_or(Ok((0, 0)), |row| Ok((row.get("leased")?, row.get("paid_blocks")?)))
            })
            .await
    }

    /// Returns the bytes leased for the whole platform in a month.
    pub async fn platform_month(&self, month: i64) -> Result<u64, Error> {
        self.0
            .read(async {
                sql!("SELECT leased FROM platform_months WHERE month = $1", month)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map_or(Ok(0), |row| row.get("leased"))
            })
            .await
    }

    /// Returns the operators that maintain a dataset.
    pub async fn maintainers(&self) -> Result<Vec<OperatorId>, Error> {
        self.0
            .read(async {
                sql!("SELECT DISTINCT operator_id FROM projects WHERE deleted_at IS NULL ORDER BY operator_id")
                    .rows(&mut self.0.readers())
                    .await?
                    .iter()
                    .map(|row| row.get("operator_id"))
                    .collect()
            })
            .await
    }

    /// Charges a day of storage beyond the free bytes, or writes it off if credits do not cover it.
    pub async fn storage_charge(
        &self,
        asset: &str,
        operator: OperatorId,
        day: i64,
        stored: u64,
        amount: MicroUsdc,
        now: Timestamp,
    ) -> Result<StorageCharged, Error> {
        let (asset, stored, id) = (asset.to_owned(), bigint("byte_count", stored)?, LedgerEventId::new(now));
        self.0
            .write_aside(tx!(async move |cx| {
                let credits = Account::of(AccountKind::Credits, operator);
                // Locked before the day is written: the row says if the day was paid, and a
                // purchase in between could spend the credits.
                let covered = locked_balance(cx, &asset, credits).await? >= amount.0;
                let (charged, owed) = if covered { (amount.0, 0) } else { (0, amount.0) };
                let added = sql!(
                    "INSERT INTO storage_days (operator_id, day, byte_count, charged, owed)
                     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (operator_id, day) DO NOTHING",
                    operator,
                    day,
                    stored,
                    charged,
                    owed
                )
                .run(cx)
                .await?;
                // The key of operator and day decides, so a repeated job charges nothing again and
                // writes nothing off twice.
                if added == 0 {
                    return Ok(Change::Undo(StorageCharged::Already));
                }
                if !covered || amount.0 == 0 {
                    return Ok(Change::Keep(if covered {
                        StorageCharged::Charged
                    } else {
                        StorageCharged::WrittenOff
                    }));
                }
                let event = Event::storage_day(operator, day, amount);
                let posting = Posting {
                    id,
                    asset: &asset,
                    event: &event,
                    at: now,
                    subject: "",
                    actor: "",
                };
                Ok(match post(cx, &posting).await? {
                    Posted::Done => Change::Keep(StorageCharged::Charged),
                    Posted::Repeated | Posted::Short(_) | Posted::Full(_) => Change::Undo(StorageCharged::Already),
                })
            }))
            .await
    }
}

/// Returns the blocks that must be paid so that `leased` bytes are covered.
fn missing_blocks(leased: i64, free: i64, paid: i64) -> i64 {
    let block = i64::try_from(BLOCK_BYTES).unwrap_or(i64::MAX);
    let beyond = leased.saturating_sub(free).max(0);
    // Rounded up: a block that was begun is paid.
    let blocks = beyond / block + i64::from(beyond % block > 0);
    (blocks - paid).max(0)
}
