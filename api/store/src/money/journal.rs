//! Journal of an operator's credits, newest first.
//!
//! Invariant: a page is read by the two unique indexes of an account, so its cost does not grow with the journal.

use std::fmt;
use std::str::FromStr;

use pay::{Account, AccountKind, EventKind};
use types::money::MicroUsdc;
use types::{AgentId, LedgerEventId, OperatorId, Timestamp};

use super::Money;
use crate::Error;
use crate::query::sql;
use crate::row::Columns;

/// Movement of an account, as its operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time of the event.
    pub at: Timestamp,
    /// Kind of the event.
    pub kind: EventKind,
    /// Change of the balance.
    pub amount: MicroUsdc,
    /// Balance of the account after the movement.
    pub after: MicroUsdc,
    /// Kind of the account.
    pub account: AccountKind,
    /// Number of the movement in its account, from 1.
    pub seq: i64,
    /// Item, sale or reference.
    pub subject: String,
    /// Agent that acted; empty if none did.
    pub actor: String,
    /// Key of the event: of a sale its id.
    pub key: String,
    /// Id of the event.
    pub event: LedgerEventId,
}

/// Position in a journal: the numbers of the movements before which it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryCursor {
    /// Number in the account of bought credits.
    pub credits: i64,
    /// Number in the account of given credits.
    pub given: i64,
}

impl EntryCursor {
    /// Position before the newest movement.
    pub const NEWEST: Self = Self {
        credits: i64::MAX,
        given: i64::MAX,
    };
}

impl fmt::Display for EntryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.credits, self.given)
    }
}

impl FromStr for EntryCursor {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (credits, given) = text.split_once('.').unwrap_or((text, ""));
        Ok(Self {
            credits: credits.parse()?,
            given: given.parse()?,
        })
    }
}

/// Choice of movements.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryFilter {
    /// Kinds of the event; every kind if none is given.
    pub kinds: [Option<EventKind>; 3],
    /// Agent that acted.
    pub agent: Option<AgentId>,
    /// First instant.
    pub from: Option<Timestamp>,
    /// First instant after the last.
    pub to: Option<Timestamp>,
}

impl Money<'_> {
    /// Returns movements of an operator's credits, bought and given, newest first, and the position after them if there
    /// are more.
    pub async fn journal(
        &self,
        asset: &str,
        operator: OperatorId,
        filter: EntryFilter,
        from: EntryCursor,
        limit: u32,
    ) -> Result<(Vec<Entry>, Option<EntryCursor>), Error> {
        let limit = limit as usize;
        let (credits, given) = (
            Account::of(AccountKind::Credits, operator),
            Account::of(AccountKind::Given, operator),
        );
        // One more than a page of each account, because all entries of the page may come from one of
        // them, and to know if there is another page.
        let credits = self.entries(asset, credits, filter, from.credits, limit + 1).await?;
        let given = self.entries(asset, given, filter, from.given, limit + 1).await?;
        Ok(merge(credits, given, from, limit, |entry| (entry.at, entry.seq)))
    }

    /// Returns the instant before which the movements of an operator's credits are archived, if some are.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn archived_before(&self, asset: &str, operator: OperatorId) -> Result<Option<Timestamp>, Error> {
        let accounts = [AccountKind::Credits, AccountKind::Given].map(|kind| Account::of(kind, operator).id(asset));
        let [credits, given] = accounts;
        let reading = self.0.read(async {
            let newest: Option<i64> = sql!(
                "SELECT MAX(month) FROM ledger_openings WHERE account IN ($1, $2)",
                credits,
                given
            )
            .scalar(&mut self.0.readers())
            .await?;
            Ok(newest.map(|month| Timestamp::of_month(month).next_month()))
        });
        reading.await
    }

    pub(super) async fn entries(
        &self,
        asset: &str,
        account: Account,
        filter: EntryFilter,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let id = account.id(asset);
        let agent = filter.agent.map(|agent| agent.to_string()).unwrap_or_default();
        let kinds = filter.kinds.map(|kind| kind.map_or("", EventKind::as_str));
        self.0
            .read(async {
                let mut entries = Vec::new();
                for text in [DEBITS, CREDITS] {
                    let rows = sql!(
                        text,
                        id.as_str(),
                        before,
                        i64::try_from(limit).unwrap_or(i64::MAX),
                        kinds[0],
                        agent.as_str(),
                        filter.from.map_or(i64::MIN, Timestamp::micros),
                        filter.to.map_or(i64::MAX, Timestamp::micros),
                        kinds[1],
                        kinds[2]
                    )
                    .rows(&mut self.0.readers())
                    .await?;
                    for row in rows {
                        let amount = row.get::<i64>("amount")?;
                        let raises = (text == DEBITS) == (account.kind().side() == pay::AccountSide::Debit);
                        let word: String = row.get("kind")?;
                        entries.push(Entry {
                            at: row.get("at")?,
                            kind: EventKind::parse(&word).ok_or_else(|| Error::Malformed {
                                column: "kind",
                                problem: format!("`{word}` is no kind of an event"),
                            })?,
                            amount: MicroUsdc(if raises { amount } else { -amount }),
                            after: MicroUsdc(row.get("after")?),
                            account: account.kind(),
                            seq: row.get("seq")?,
                            subject: row.get("subject")?,
                            actor: row.get("actor")?,
                            key: row.get("key")?,
                            event: row.get("event")?,
                        });
                    }
                }
                entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.seq));
                entries.truncate(limit);
                Ok(entries)
            })
            .await
    }
}

/// Statement that reads the newest debits of an account.
const DEBITS: &str = "SELECT ledger_transfers.amount AS amount, ledger_transfers.debit_seq AS seq,
           ledger_transfers.debit_after AS after, ledger_events.at AS at, ledger_events.kind AS kind,
           ledger_events.subject AS subject, ledger_events.actor AS actor, ledger_events.key AS key,
           ledger_events.id AS event
    FROM ledger_transfers JOIN ledger_events ON ledger_events.id = ledger_transfers.event_id
    WHERE ledger_transfers.debit_account = $1 AND ledger_transfers.debit_seq < $2
      AND ($4 = '' OR ledger_events.kind IN ($4, $8, $9)) AND ($5 = '' OR ledger_events.actor = $5)
      AND ledger_events.at >= $6 AND ledger_events.at < $7
    ORDER BY ledger_transfers.debit_seq DESC LIMIT $3";

/// Statement that reads the newest credits of an account.
const CREDITS: &str = "SELECT ledger_transfers.amount AS amount, ledger_transfers.credit_seq AS seq,
           ledger_transfers.credit_after AS after, ledger_events.at AS at, ledger_events.kind AS kind,
           ledger_events.subject AS subject, ledger_events.actor AS actor, ledger_events.key AS key,
           ledger_events.id AS event
    FROM ledger_transfers JOIN ledger_events ON ledger_events.id = ledger_transfers.event_id
    WHERE ledger_transfers.credit_account = $1 AND ledger_transfers.credit_seq < $2
      AND ($4 = '' OR ledger_events.kind IN ($4, $8, $9)) AND ($5 = '' OR ledger_events.actor = $5)
      AND ledger_events.at >= $6 AND ledger_events.at < $7
    ORDER BY ledger_transfers.credit_seq DESC LIMIT $3";

/// Merges what stands in the two accounts of credits, each newest first, to one page. Returns the position after it if
/// there is more. `place` gives the time and the number in the account.
pub(super) fn merge<T>(
    credits: Vec<T>,
    given: Vec<T>,
    from: EntryCursor,
    limit: usize,
    place: impl Fn(&T) -> (Timestamp, i64),
) -> (Vec<T>, Option<EntryCursor>) {
    let (mut credits, mut given) = (credits.into_iter().peekable(), given.into_iter().peekable());
    let (mut page, mut next) = (Vec::with_capacity(limit), from);
    while page.len() < limit {
        let bought_first = match (credits.peek(), given.peek()) {
            // Each account has numbers of its own, so only the time orders entries of both. The
            // cursor has a number of each and stays exact whatever the clock does.
            (Some(bought), Some(given)) => place(bought).0 >= place(given).0,
            (bought, _) => bought.is_some(),
        };
        let entry = if bought_first { credits.next() } else { given.next() };
        let Some(entry) = entry else { break };
        let (_, seq) = place(&entry);
        if bought_first {
            next.credits = seq;
        } else {
            next.given = seq;
        }
        page.push(entry);
    }
    let more = credits.peek().is_some() || given.peek().is_some();
    (page, more.then_some(next))
}
