//! Statement of an operator's credits: one line for each event, newest first.
//!
//! Invariant: the amount of a line is the sum of every movement of its event in the account, on whatever page it stands.

use pay::{Account, AccountKind, EventKind};
use types::money::MicroUsdc;
use types::{OperatorId, Timestamp};

use super::Money;
use super::journal::{Entry, EntryCursor, EntryFilter, merge};
use crate::Error;

/// Most movements of one event in one account: the share and the fee of a sale, or of its refund.
const MOVEMENTS: usize = 2;

/// An event in an account of credits, as its operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementLine {
    /// Time of the event.
    pub at: Timestamp,
    /// Kind of the event.
    pub kind: EventKind,
    /// Key of the event: of a sale its id.
    pub key: String,
    /// Item, sale or reference.
    pub subject: String,
    /// Agent that acted; empty if none did.
    pub actor: String,
    /// Kind of the account.
    pub account: AccountKind,
    /// Change of the balance.
    pub amount: MicroUsdc,
    /// Balance of the account after the event.
    pub after: MicroUsdc,
    /// Number of the first of its movements in the account.
    seq: i64,
}

impl StatementLine {
    fn of(entry: Entry) -> Self {
        Self {
            at: entry.at,
            kind: entry.kind,
            key: entry.key,
            subject: entry.subject,
            actor: entry.actor,
            account: entry.account,
            amount: entry.amount,
            after: entry.after,
            seq: entry.seq,
        }
    }
}

impl Money<'_> {
    /// Returns the lines of an operator's credits, bought and given, newest first, and the position after them if there are
    /// more.
    pub async fn statement(
        &self,
        asset: &str,
        operator: OperatorId,
        filter: EntryFilter,
        from: EntryCursor,
        limit: u32,
    ) -> Result<(Vec<StatementLine>, Option<EntryCursor>), Error> {
        let limit = limit as usize;
        let account = |kind| Account::of(kind, operator);
        let credits = self.lines(asset, account(AccountKind::Credits), filter, from.credits, limit);
        let credits = credits.await?;
        let given = self.lines(asset, account(AccountKind::Given), filter, from.given, limit);
        let given = given.await?;
        Ok(merge(credits, given, from, limit, |line| (line.at, line.seq)))
    }

    /// Returns the lines of an account before a movement, newest first: one more than `limit` if there are as many.
    async fn lines(
        &self,
        asset: &str,
        account: Account,
        filter: EntryFilter,
        before: i64,
        limit: usize,
    ) -> Result<Vec<StatementLine>, Error> {
        // As many movements as that many events may have. The last event may be cut, and is the one too many.
        let most = (limit + 1) * MOVEMENTS;
        let mut lines: Vec<StatementLine> = Vec::new();
        let mut last = None;
        for entry in self.entries(asset, account, filter, before, most).await? {
            // The movements of an event are posted together, so they have numbers that follow each other.
            let event = Some(entry.event);
            match lines.last_mut().filter(|_| last == event) {
                Some(line) => {
                    line.amount.0 = line.amount.0.saturating_add(entry.amount.0);
                    line.seq = entry.seq;
                }
                None => lines.push(StatementLine::of(entry)),
            }
            last = event;
        }
        lines.truncate(limit + 1);
        Ok(lines)
    }
}
