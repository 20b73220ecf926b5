//! Marks of readers on units: confirmed, stale or incorrect, with what they ran.
//!
//! Invariants:
//! - An agent has one mark on a unit, the latest, and only after a recorded read. The own operator has none.
//! - A mark counts if its operator paid with real money by then, once for each wallet, and never from a wallet of the
//!   seller. Sums change in the transaction of the mark.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{ItemKind, MarkKind};
use types::{AgentId, OperatorId, Timestamp, UnitId};

use super::{Chain, Knowledge, lock};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::{Columns, is_set, row, texts};
use crate::service_state;
use crate::writer::Change;

/// Payers that must confirm units of an operator before it is no new seller any more.
const CONFIRMATIONS: u32 = 3;

/// A mark to set.
#[derive(Clone, Debug)]
pub struct NewMark {
    /// Chain of the unit.
    pub chain: UnitId,
    /// Version that was named.
    pub unit: UnitId,
    /// Agent that marks.
    pub agent: AgentId,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// What the agent found.
    pub mark: MarkKind,
    /// What the agent ran to find it.
    pub ran: String,
    /// Time of the mark.
    pub now: Timestamp,
}

/// Numbers of the marks on a unit that count, one a payer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkCounts {
    /// Payers that confirm the unit.
    pub confirmed: u64,
    /// Payers that say that it does not hold any more.
    pub stale: u64,
    /// Payers that say that it does not hold.
    pub incorrect: u64,
    /// Time of the latest confirmation.
    pub confirmed_at: Option<Timestamp>,
}

impl MarkCounts {
    pub(crate) fn of(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            confirmed: row.get("confirmed_count")?,
            stale: row.get("stale_count")?,
            incorrect: row.get("incorrect_count")?,
            confirmed_at: row.get("confirmed_at")?,
        })
    }

    /// Returns the payers that say that the unit does not hold, or not any more.
    pub const fn flagged(&self) -> u64 {
        self.stale + self.incorrect
    }

    /// Returns true if at least as many payers flag the unit as confirm it.
    // A revision ends no flag: else a seller would lose them by changing a word.
    pub const fn is_doubted(&self) -> bool {
        self.flagged() > 0 && self.flagged() >= self.confirmed
    }
}

/// The result of [`Knowledge::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Marked {
    /// The mark is set, in place of an earlier one of the agent.
    Set {
        /// Time of the mark; that of the earlier one if it said the same.
        at: Timestamp,
        /// True if it counts.
        counts: bool,
        /// The counts of the unit with it.
        marks: MarkCounts,
    },
    /// The unit is of the agent's own operator; nothing changed.
    Own,
    /// No full read of the agent is recorded; nothing changed.
    NotRead,
}

row! {
    /// A mark as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WrittenMark {
        /// Name of the agent.
        pub agent_name: String,
        /// What the agent found.
        pub mark: MarkKind,
        /// What the agent ran; empty once erased.
        pub ran: String,
        /// Number of the version that was named.
        pub version: Option<u32> = "number",
        /// True if the mark counts.
        pub counts: bool = "payer" => is_set,
        /// Time of the mark.
        pub at: Timestamp,
    }
}

row! {
    /// The mark that an agent has.
    struct EarlierMark {
        unit: UnitId = "unit_id",
        mark: MarkKind,
        ran: String,
        payer: Option<String>,
        at: Timestamp,
    }
}

row! {
    /// The wallets of an operator, and whether it paid from them.
    struct PayingOperator {
        id: OperatorId,
        payout: Option<String>,
        topped_up_from: Option<String>,
        has_paid: bool,
    }
}

impl Knowledge<'_> {
    /// Sets the mark of an agent on a unit, unless the unit is the operator's own or was not read, checked in this order.
    /// The same mark again changes nothing, but that it counts from now on if the operator has paid since.
    ///
    /// # Errors
    /// [`Error::Missing`] if the chain does not exist; [`Error::Text`].
    pub async fn mark(&self, new: NewMark) -> Result<Marked, Error> {
        texts(&[("ran", &new.ran)])?;
        self.0
            .write_aside(tx!(async move |cx| {
                // The lock of the chain, whose counts change with the mark.
                let chain = lock(cx, new.chain)
                    .await?
                    .ok_or_else(|| super::changes::missing(new.chain))?;
                if chain.operator == new.operator {
                    return Ok(Change::Undo(Marked::Own));
                }
                // A permit is no record: it is given for a read that nobody can prove, and lasts a day.
                let read = sql!(
                    "SELECT 1 AS one FROM unit_reads WHERE chain_id = $1 AND agent_id = $2",
                    new.chain,
                    new.agent
                )
                .row_if_any(cx)
                .await?;
                if read.is_none() {
                    return Ok(Change::Undo(Marked::NotRead));
                }
                let earlier: Option<EarlierMark> = sql!(
                    "SELECT unit_id, mark, ran, payer, at FROM unit_marks WHERE chain_id = $1 AND agent_id = $2",
                    new.chain,
                    new.agent
                )
                .optional(cx)
                .await?;
                let payer = payer(cx, new.operator, chain.operator, new.now).await?;
                if let Some(earlier) = &earlier
                    && (earlier.unit, earlier.mark) == (new.unit, new.mark)
                    && earlier.ran == new.ran
                    && earlier.payer == payer
                {
                    let (at, counts) = (earlier.at, payer.is_some());
                    return Ok(Change::Nothing(Marked::Set {
                        at,
                        counts,
                        marks: chain.marks,
                    }));
                }
                put(cx, &new, chain.operator, payer.as_deref()).await?;
                let counted = earlier
                    .filter(|earlier| earlier.payer.is_some())
                    .map(|earlier| earlier.mark);
                let kinds = [counted, payer.is_some().then_some(new.mark)];
                let marks = if kinds == [None, None] {
                    chain.marks
                } else {
                    count(cx, &chain, kinds.contains(&Some(MarkKind::Confirmed)), new.now).await?
                };
                Ok(Change::Keep(Marked::Set {
                    at: new.now,
                    counts: payer.is_some(),
                    marks,
                }))
            }))
            .await
    }

    /// Returns the latest marks on a unit, newest first, at most `limit`.
    pub async fn marks(&self, chain: UnitId, limit: u32) -> Result<Vec<WrittenMark>, Error> {
        self.0
            .all(sql!(
                "SELECT CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name,
                        mark, ran, number, payer, at
                 FROM unit_marks JOIN agents ON agents.id = unit_marks.agent_id
                 JOIN units ON units.id = unit_marks.unit_id
                 WHERE unit_marks.chain_id = $1 ORDER BY at DESC, unit_marks.agent_id DESC LIMIT $2",
                chain,
                limit
            ))
            .await
    }
}

/// Returns as whose a mark of an operator counts, or `None` if it does not.
async fn payer(
    cx: &mut AnyConnection,
    operator: OperatorId,
    seller: OperatorId,
    now: Timestamp,
) -> Result<Option<String>, Error> {
    // Given credits and those of a grant cost nothing, so only a purchase by money that came in counts: from a wallet, or
    // by credits of a pack.
    let found: Vec<PayingOperator> = sql!(
        "SELECT id, payout, topped_up_from,
                CASE WHEN EXISTS (SELECT 1 FROM sales WHERE sales.buyer_operator = wallets.id
                                  AND state IN ('held', 'disputed', 'payable')
                                  AND (paid_with = 'x402' OR (paid_with = 'credits' AND topped_up_from IS NOT NULL)))
                     THEN CAST(1 AS BIGINT) ELSE 0 END AS has_paid
         FROM (SELECT id,
                      LOWER(CASE WHEN payout_next_at <= $3 THEN payout_next_address ELSE payout_address END) AS payout,
                      (SELECT MIN(LOWER(payer)) FROM payments WHERE item_kind = 'pack' AND state = 'settled'
                          AND item_id = operators.id) AS topped_up_from
               FROM operators WHERE id IN ($1, $2)) AS wallets",
        operator,
        seller,
        now
    )
    .all(cx)
    .await?;
    let of = |id: OperatorId| found.iter().find(|found| found.id == id);
    let Some(marks) = of(operator).filter(|operator| operator.has_paid) else {
        return Ok(None);
    };
    // An operator stays the payer that it was, or another address for each of its agents would make it many.
    let earlier: Option<String> = sql!(
        "SELECT payer FROM unit_marks WHERE operator_id = $1 AND payer IS NOT NULL LIMIT 1",
        operator
    )
    .scalar_if_any(cx)
    .await?;
    let wallets = |operator: &PayingOperator| [operator.payout.clone(), operator.topped_up_from.clone()];
    let of_seller: Vec<String> = of(seller).map(wallets).into_iter().flatten().flatten().collect();
    let mut of_payer = earlier
        .into_iter()
        .chain(wallets(marks).into_iter().flatten())
        .peekable();
    let payer = of_payer.peek().cloned();
    if of_payer.any(|wallet| of_seller.contains(&wallet)) {
        return Ok(None);
    }
    // A purchase from a wallet is the operator's only if the wallet was its payout address, which it may not be any more.
    Ok(Some(payer.unwrap_or_else(|| format!("op:{operator}"))))
}

/// Writes the mark of an agent.
async fn put(cx: &mut AnyConnection, new: &NewMark, seller: OperatorId, payer: Option<&str>) -> Result<(), Error> {
    sql!(
        "INSERT INTO unit_marks (chain_id, agent_id, unit_id, operator_id, seller_id, mark, ran, payer, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (chain_id, agent_id) DO UPDATE
         SET unit_id = excluded.unit_id, operator_id = excluded.operator_id, mark = excluded.mark, ran = excluded.ran,
             payer = excluded.payer, at = excluded.at",
        new.chain,
        new.agent,
        new.unit,
        new.operator,
        seller,
        new.mark,
        new.ran.as_str(),
        payer,
        new.now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Counts the marks of a chain again, and if confirmations changed, the payers that confirm units of its seller. Returns
/// the counts.
async fn count(
    cx: &mut AnyConnection,
    chain: &Chain,
    is_about_confirmations: bool,
    now: Timestamp,
) -> Result<MarkCounts, Error> {
    let row = sql!(
        "UPDATE chains
         SET confirmed_count = (SELECT COUNT(DISTINCT payer) FROM unit_marks
                                WHERE chain_id = $1 AND mark = 'confirmed' AND payer IS NOT NULL),
             stale_count = (SELECT COUNT(DISTINCT payer) FROM unit_marks
                            WHERE chain_id = $1 AND mark = 'stale' AND payer IS NOT NULL),
             incorrect_count = (SELECT COUNT(DISTINCT payer) FROM unit_marks
                                WHERE chain_id = $1 AND mark = 'incorrect' AND payer IS NOT NULL),
             confirmed_at = (SELECT MAX(at) FROM unit_marks
                             WHERE chain_id = $1 AND mark = 'confirmed' AND payer IS NOT NULL)
         WHERE id = $1 RETURNING confirmed_count, stale_count, incorrect_count, confirmed_at",
        chain.id
    )
    .row(cx)
    .await?;
    let marks = MarkCounts::of(&row)?;
    // The search knows of a unit only if it is doubted, and of its seller only if it is new.
    if is_about_confirmations && trust(cx, chain.operator, now).await? {
        service_state::search_changed_of_seller(cx, chain.operator, now).await?;
    } else if marks.is_doubted() != chain.marks.is_doubted() {
        service_state::search_changed(cx, ItemKind::Unit, &chain.id.to_string(), now).await?;
    }
    Ok(marks)
}

/// Notes if enough payers confirm units of an operator. Returns true if that changed.
async fn trust(cx: &mut AnyConnection, seller: OperatorId, now: Timestamp) -> Result<bool, Error> {
    // The lock of the operator: two marks on different units would each miss the other.
    let before: Option<Timestamp> = sql!(
        "UPDATE operators SET id = id WHERE id = $1 RETURNING trusted_at",
        seller
    )
    .row(cx)
    .await?
    .get("trusted_at")?;
    let payers: i64 = sql!(
        "SELECT COUNT(*) AS payers FROM (SELECT DISTINCT payer FROM unit_marks
                                         WHERE seller_id = $1 AND mark = 'confirmed' AND payer IS NOT NULL
                                         LIMIT $2) AS confirming",
        seller,
        CONFIRMATIONS
    )
    .row(cx)
    .await?
    .get("payers")?;
    let is_trusted = payers >= i64::from(CONFIRMATIONS);
    if is_trusted == before.is_some() {
        return Ok(false);
    }
    sql!(
        "UPDATE operators SET trusted_at = $2 WHERE id = $1",
        seller,
        is_trusted.then_some(now)
    )
    .run(cx)
    .await?;
    Ok(true)
}
