//! Checks of the ledger and of everything that follows from it.
//!
//! Invariant: read only. Each rule has a number that never changes, and names what breaks it.

use std::collections::BTreeMap;

use pay::{AccountKind, BLOCK_BYTES, Brackets, EventKind, Side};
use types::money::MicroUsdc;

use super::Money;
use crate::Error;
use crate::row::{Columns, bigint};

/// Broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyFault {
    /// Number of the rule, such as `M3`.
    pub rule: &'static str,
    /// Account, sale, event or other thing that breaks it.
    pub subject: String,
    /// Description of the fault.
    pub problem: &'static str,
}

/// Movements of every account: account, number, balance after, signed change.
// Each transfer is seen from both of its accounts, and by the side of the account it raises or lowers
// it.
const MOVES: &str = "
    WITH moves AS (
        SELECT debit_account AS account, debit_seq AS seq, debit_after AS after, amount AS debit, 0 AS credit
        FROM ledger_transfers
        UNION ALL
        SELECT credit_account, credit_seq, credit_after, 0, amount FROM ledger_transfers),
    signed AS (
        SELECT moves.account AS account, moves.seq AS seq, moves.after AS after,
               CASE WHEN ledger_accounts.side = 'debit' THEN moves.debit - moves.credit
                    ELSE moves.credit - moves.debit END AS effect
        FROM moves JOIN ledger_accounts ON ledger_accounts.id = moves.account)";

/// Rules that are one statement each: its rows are the subjects that break the rule.
const STATEMENTS: [(&str, &str, &str); 16] = [
    (
        "M1",
        "the event has no movement",
        "SELECT id AS subject FROM ledger_events
         WHERE NOT EXISTS (SELECT 1 FROM ledger_transfers WHERE ledger_transfers.event_id = ledger_events.id)",
    ),
    (
        "M6",
        "the sale has no event of its kind, or one of another amount",
        "SELECT sales.id AS subject FROM sales
         LEFT JOIN ledger_events ON ledger_events.key = sales.id
              AND ledger_events.kind = CASE WHEN sales.paid_with = 'given' THEN 'trial_sale' ELSE 'sale' END
         WHERE ledger_events.id IS NULL
            OR sales.price <> (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM ledger_transfers
                               WHERE ledger_transfers.event_id = ledger_events.id)",
    ),
    (
        "M6",
        "the event has no sale",
        "SELECT id AS subject FROM ledger_events
         WHERE kind IN ('sale', 'trial_sale') AND NOT EXISTS (SELECT 1 FROM sales WHERE sales.id = ledger_events.key)",
    ),
    (
        "M7",
        "the owner may read another version than its sales unlock",
        "SELECT entitlements.owner AS subject FROM entitlements
         LEFT JOIN (SELECT owner, item_kind, item_id,
                           MAX(CASE WHEN item_kind = 'unit' THEN 1 ELSE version END) AS highest
                    FROM (SELECT 'op:' || buyer_operator AS owner, item_kind, item_id, version, state FROM sales
                          WHERE buyer_operator IS NOT NULL
                          UNION ALL
                          SELECT 'w:' || buyer_wallet, item_kind, item_id, version, state FROM sales
                          WHERE buyer_wallet IS NOT NULL) AS bought
                    WHERE state NOT IN ('refunded', 'trial_refunded')
                    GROUP BY owner, item_kind, item_id) AS live
              ON live.owner = entitlements.owner AND live.item_kind = entitlements.item_kind
             AND live.item_id = entitlements.item_id
         WHERE live.highest IS NULL OR live.highest <> entitlements.max_version",
    ),
    (
        "M7",
        "the sale stands and its buyer may not read the item",
        "SELECT sales.id AS subject FROM sales
         WHERE sales.state NOT IN ('refunded', 'trial_refunded')
           AND NOT EXISTS (SELECT 1 FROM entitlements
                           WHERE entitlements.item_kind = sales.item_kind AND entitlements.item_id = sales.item_id
                             AND entitlements.owner = CASE WHEN sales.buyer_wallet IS NOT NULL
                                 THEN 'w:' || sales.buyer_wallet ELSE 'op:' || sales.buyer_operator END)",
    ),
    (
        "M7",
        "the operator bought its own item",
        "SELECT id AS subject FROM sales WHERE buyer_operator = seller_operator",
    ),
    (
        "M8",
        "the payment is settled and has neither a sale, nor a pack, nor a refund",
        "SELECT payments.id AS subject FROM payments
         WHERE payments.state = 'settled'
           AND NOT EXISTS (SELECT 1 FROM sales WHERE sales.payment_id = payments.id AND sales.price = payments.amount)
           AND NOT EXISTS (SELECT 1 FROM ledger_events
                           WHERE ledger_events.kind IN ('pack', 'unmatched') AND ledger_events.key = payments.id)",
    ),
    (
        "M8",
        "the sale or pack has no settled payment",
        "SELECT sales.id AS subject FROM sales WHERE paid_with = 'x402'
           AND NOT EXISTS (SELECT 1 FROM payments WHERE payments.id = sales.payment_id AND payments.state = 'settled')
         UNION ALL
         SELECT ledger_events.id FROM ledger_events WHERE kind = 'pack'
           AND NOT EXISTS (SELECT 1 FROM payments WHERE payments.id = ledger_events.key AND payments.state = 'settled')",
    ),
    (
        "M12",
        "the payout is open or done and was not picked, or is done and was not booked",
        "SELECT payouts.id AS subject FROM payouts
         WHERE (payouts.kind = 'payout' AND NOT EXISTS (SELECT 1 FROM ledger_events
                    WHERE ledger_events.kind = 'payout_pick' AND ledger_events.key = payouts.id))
            OR (payouts.state = 'done' AND NOT EXISTS (SELECT 1 FROM ledger_events
                    WHERE ledger_events.kind IN ('payout_done', 'refund_done') AND ledger_events.key = payouts.id))",
    ),
    (
        "M12",
        "the released sum is not that of the released sales",
        "SELECT ledger_events.id AS subject FROM ledger_events
         WHERE kind = 'release'
           AND (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM ledger_transfers
                WHERE ledger_transfers.event_id = ledger_events.id)
             <> (SELECT CAST(COALESCE(SUM(share), 0) AS BIGINT) FROM sales
                 WHERE sales.release_event = ledger_events.id)",
    ),
    (
        "M14",
        "the dispute and its sale are in different states",
        "SELECT disputes.id AS subject FROM disputes JOIN sales ON sales.id = disputes.sale_id
         WHERE (disputes.state = 'open') <> (sales.state IN ('disputed', 'trial_disputed'))
           AND NOT (disputes.state <> 'open' AND EXISTS (SELECT 1 FROM disputes AS later
                    WHERE later.sale_id = disputes.sale_id AND later.state = 'open'))",
    ),
    (
        "M14",
        "the sale is refunded without a dispute that ended for its buyer",
        "SELECT sales.id AS subject FROM sales WHERE state IN ('refunded', 'trial_refunded')
           AND NOT EXISTS (SELECT 1 FROM disputes WHERE disputes.sale_id = sales.id AND disputes.state = 'refunded')",
    ),
    (
        "M15",
        "the sale gave no points",
        "SELECT sales.id AS subject FROM sales WHERE seller_agent IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM points_events
                           WHERE points_events.key = sales.id AND points_events.kind IN ('sale', 'trial_sale'))",
    ),
    (
        "M15",
        "the sale is refunded and its points were not taken back, or the other way round",
        "SELECT sales.id AS subject FROM sales WHERE seller_agent IS NOT NULL
           AND (state IN ('refunded', 'trial_refunded'))
             <> (EXISTS (SELECT 1 FROM points_events
                         WHERE points_events.key = sales.id AND points_events.kind = 'reversal'))",
    ),
    (
        "M15",
        "the points are of no sale",
        "SELECT points_events.id AS subject FROM points_events WHERE kind IN ('sale', 'trial_sale')
           AND NOT EXISTS (SELECT 1 FROM sales WHERE sales.id = points_events.key)",
    ),
    (
        "M18",
        "the payment is over and still has its payload",
        "SELECT id AS subject FROM payments
         WHERE state IN ('settled', 'not_needed') AND payload IS NOT NULL",
    ),
];

/// Balances that the states of sales say, by kind of account.
const OF_SALES: [(&str, &str); 2] = [("held", "held"), ("disputed", "disputed")];

impl Money<'_> {
    /// Returns what breaks a rule, up to `limit` subjects of each.
    ///
    /// `free_egress` is the number of free bytes of an operator in a month.
    pub async fn faults(&self, free_egress: u64, limit: u32) -> Result<Vec<MoneyFault>, Error> {
        let mut faults = Vec::new();
        for (rule, problem, text) in STATEMENTS {
            // The limit is a number of the program; everything else is constant text, so the statement
            // is safe.
            self.collect(&mut faults, rule, problem, &format!("{text} LIMIT {limit}"))
                .await?;
        }
        self.moves(&mut faults, limit).await?;
        self.shapes(&mut faults).await?;
        self.sums(&mut faults).await?;
        self.fees(&mut faults, limit).await?;
        for (kind, state) in OF_SALES {
            let text = format!(
                "SELECT ledger_accounts.id AS subject FROM ledger_accounts
                 WHERE ledger_accounts.kind = '{kind}' AND ledger_accounts.balance <>
                     (SELECT CAST(COALESCE(SUM(share), 0) AS BIGINT) FROM sales
                      WHERE sales.seller_operator = ledger_accounts.operator_id AND sales.state = '{state}'
                        AND sales.asset = ledger_accounts.asset)
                 LIMIT {limit}"
            );
            let problem = "the balance is not the sum of the sales in its state";
            self.collect(&mut faults, "M11", problem, &text).await?;
        }
        let free = bigint("leased", free_egress)?;
        let text = format!(
            "SELECT account AS subject FROM egress_months
             WHERE account LIKE 'op:%' AND leased > {free} + paid_blocks * {BLOCK_BYTES} LIMIT {limit}"
        );
        self.collect(
            &mut faults,
            "M16",
            "more bytes are leased than are free and paid",
            &text,
        )
        .await?;
        Ok(faults)
    }

    async fn collect(
        &self,
        faults: &mut Vec<MoneyFault>,
        rule: &'static str,
        problem: &'static str,
        text: &str,
    ) -> Result<(), Error> {
        let text = sqlx::AssertSqlSafe(text.to_owned());
        let found = self.0.read(async {
            let rows = sqlx::query(text).fetch_all(self.0.readers()).await?;
            rows.iter()
                .map(|row| {
                    Ok(MoneyFault {
                        rule,
                        subject: row.value("subject")?,
                        problem,
                    })
                })
                .collect::<Result<Vec<_>, Error>>()
        });
        faults.extend(found.await?);
        Ok(())
    }

    /// Proves each account: its movements are numbered without a gap, each balance follows from the one before, and the
    /// last one is that of the account.
    async fn moves(&self, faults: &mut Vec<MoneyFault>, limit: u32) -> Result<(), Error> {
        // Numbers from 1 without a gap prove that no movement was removed; the balance before proves
        // each amount.
        let broken = format!(
            "{MOVES},
             steps AS (
                 SELECT account, seq, after, effect,
                        LAG(after, 1, CAST(0 AS BIGINT)) OVER (PARTITION BY account ORDER BY seq) AS before,
                        ROW_NUMBER() OVER (PARTITION BY account ORDER BY seq) AS number
                 FROM signed)
             SELECT DISTINCT account AS subject FROM steps WHERE seq <> number OR after <> before + effect LIMIT {limit}"
        );
        self.collect(
            faults,
            "M2",
            "the movements of the account do not follow each other",
            &broken,
        )
        .await?;
        let unequal = format!(
            "{MOVES},
             totals AS (SELECT account, COUNT(*) AS moves, CAST(SUM(effect) AS BIGINT) AS balance
                        FROM signed GROUP BY account)
             SELECT ledger_accounts.id AS subject FROM ledger_accounts
             LEFT JOIN totals ON totals.account = ledger_accounts.id
             WHERE ledger_accounts.balance <> COALESCE(totals.balance, 0)
                OR ledger_accounts.moves <> COALESCE(totals.moves, 0) LIMIT {limit}"
        );
        self.collect(faults, "M2", "the balance is not that of the movements", &unequal)
            .await
    }

    /// Checks that every kind of event moves between the kinds of accounts that it may.
    async fn shapes(&self, faults: &mut Vec<MoneyFault>) -> Result<(), Error> {
        let pairs: Vec<(String, String, String)> = self
            .0
            .read(async {
                let rows = sqlx::query(
                    "SELECT DISTINCT ledger_events.kind AS kind, debits.kind AS debit, credits.kind AS credit
                     FROM ledger_transfers JOIN ledger_events ON ledger_events.id = ledger_transfers.event_id
                     JOIN ledger_accounts AS debits ON debits.id = ledger_transfers.debit_account
                     JOIN ledger_accounts AS credits ON credits.id = ledger_transfers.credit_account",
                )
                .fetch_all(self.0.readers())
                .await?;
                rows.iter()
                    .map(|row| Ok((row.value("kind")?, row.value("debit")?, row.value("credit")?)))
                    .collect::<Result<Vec<_>, Error>>()
            })
            .await?;
        // Compared by the code that posts, so that a kind of event has its shape in one place.
        let account = |word: &str| AccountKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        for (kind, debit, credit) in pairs {
            let allowed = match (EventKind::parse(&kind), account(&debit), account(&credit)) {
                (Some(kind), Some(debit), Some(credit)) => kind.allows(debit, credit),
                _ => false,
            };
            if !allowed {
                faults.push(MoneyFault {
                    rule: "M1",
                    subject: format!("{kind}: {debit} to {credit}"),
                    problem: "an event of this kind has no such movement",
                });
            }
        }
        Ok(())
    }

    /// Checks that what the platform has is what it owes and has earned, in each asset.
    async fn sums(&self, faults: &mut Vec<MoneyFault>) -> Result<(), Error> {
        let balances: Vec<(String, String, i64)> = self
            .0
            .read(async {
                let rows = sqlx::query(
                    "SELECT asset, kind, CAST(SUM(balance) AS BIGINT) AS balance FROM ledger_accounts
                     GROUP BY asset, kind",
                )
                .fetch_all(self.0.readers())
                .await?;
                rows.iter()
                    .map(|row| Ok((row.value("asset")?, row.value("kind")?, row.value("balance")?)))
                    .collect::<Result<Vec<_>, Error>>()
            })
            .await?;
        // In 128 bits, since the sum over all operators may exceed what one account can hold.
        let mut sums: BTreeMap<String, (i128, i128)> = BTreeMap::new();
        for (asset, word, balance) in balances {
            let (money, given) = sums.entry(asset).or_default();
            match AccountKind::ALL.into_iter().find(|kind| kind.as_str() == word) {
                // Given credits have a circle of their own. Counted together, an error in them could
                // hide one of money.
                Some(AccountKind::Promo) => *given += i128::from(balance),
                Some(AccountKind::Given) => *given -= i128::from(balance),
                Some(kind) if kind.side() == Side::Debit => *money += i128::from(balance),
                _ => *money -= i128::from(balance),
            }
        }
        for (asset, (money, given)) in sums {
            if money != 0 || given != 0 {
                faults.push(MoneyFault {
                    rule: "M3",
                    subject: asset,
                    problem: "what the platform has is not what it owes and has earned",
                });
            }
        }
        Ok(())
    }

    /// Computes fee and share of every sale again.
    async fn fees(&self, faults: &mut Vec<MoneyFault>, limit: u32) -> Result<(), Error> {
        let prices: Vec<(i64, i64, i64, String)> = self
            .0
            .read(async {
                let rows = sqlx::query(
                    "SELECT DISTINCT price, fee, share, fee_brackets FROM sales WHERE paid_with <> 'given'",
                )
                .fetch_all(self.0.readers())
                .await?;
                rows.iter()
                    .map(|row| {
                        Ok((
                            row.value("price")?,
                            row.value("fee")?,
                            row.value("share")?,
                            row.value("fee_brackets")?,
                        ))
                    })
                    .collect::<Result<Vec<_>, Error>>()
            })
            .await?;
        // By the brackets that were stored with the sale: the fee of the configuration may have changed
        // since.
        let wrong = prices.into_iter().filter(|(price, fee, share, brackets)| {
            let split = brackets.parse::<Brackets>().map(|set| set.split(MicroUsdc(*price)));
            !split.is_ok_and(|split| (split.fee.0, split.share.0) == (*fee, *share))
        });
        faults.extend(wrong.take(limit as usize).map(|(price, fee, _, _)| MoneyFault {
            rule: "M5",
            subject: format!("price {price}, fee {fee}"),
            problem: "the fee is not the one of the brackets",
        }));
        Ok(())
    }
}
