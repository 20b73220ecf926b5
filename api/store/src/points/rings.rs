//! Purchases that the ranking leaves out: those among one wallet, and those that come back in a cycle.
//!
//! Invariant: the excluded events are those that the rules name for the sales as they are now. A sale that was refunded
//! counts for neither rule, and an event is excluded again or no more when the sales around it change.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::AnyConnection;
use types::Timestamp;

use super::Points;
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::Columns;
use crate::writer::Change;

/// Rule of a sale whose buyer and seller are paid at, or pay from, one wallet.
const SAME_WALLET: &str = "same-wallet";
/// Rule of a sale by which money comes back to its buyer through the sales of others.
const CYCLE: &str = "cycle";

/// Buyers and sellers with their wallets. Refunded sales are none.
const SALES: &str = "SELECT DISTINCT COALESCE(sales.buyer_operator, '') AS buyer, COALESCE(buyer_wallet, '') AS wallet,
           seller_operator AS seller, COALESCE(LOWER(bought.payout_address), '') AS buyer_payout,
           COALESCE(LOWER(sold.payout_address), '') AS seller_payout,
           CAST(CASE WHEN bought.payout_proved_at IS NULL THEN 0 ELSE 1 END AS BIGINT) AS buyer_proved,
           CAST(CASE WHEN sold.payout_proved_at IS NULL THEN 0 ELSE 1 END AS BIGINT) AS seller_proved
    FROM sales
    LEFT JOIN operators AS bought ON bought.id = sales.buyer_operator
    JOIN operators AS sold ON sold.id = sales.seller_operator
    WHERE state NOT IN ('refunded', 'trial_refunded')";

/// Sales between a buyer and a seller.
#[derive(Clone, Debug)]
struct Pair {
    /// Operator that buys; empty for a wallet of nobody.
    buyer: String,
    /// Wallet that paid, `{network}:{address}`; empty for credits.
    wallet: String,
    seller: String,
    /// The buyer and the seller in the graph of purchases: the wallet that proved itself, otherwise the operator. A wallet
    /// that somebody merely names joins nobody to another.
    from: String,
    to: String,
    /// True if buyer and seller are paid at one wallet, or the buyer pays from the seller's.
    is_one_wallet: bool,
}

impl Pair {
    /// Returns what no other pair has: the buyer, its wallet and the seller.
    fn parties(&self) -> [String; 3] {
        [self.buyer.clone(), self.wallet.clone(), self.seller.clone()]
    }
}

impl Points<'_> {
    /// Excludes the events of sales that a rule names, and includes those that none names any more. Returns the number
    /// of excluded events that changed.
    pub async fn exclude(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let pairs = pairs(cx).await?;
                let component = components(&pairs);
                let excluded = excluded(cx).await?;
                let mut changed = 0;
                for pair in &pairs {
                    let rule = if pair.is_one_wallet || pair.from == pair.to {
                        Some(SAME_WALLET)
                    } else if component.get(&pair.from) == component.get(&pair.to) {
                        Some(CYCLE)
                    } else {
                        None
                    };
                    changed += match rule {
                        Some(rule) => leave_out(cx, pair, rule, now).await?,
                        // Nearly every pair is neither excluded nor was: a statement for each would
                        // hold the writer for all sales that there are.
                        None if !excluded.contains(&pair.parties()) => 0,
                        None => count_again(cx, pair).await?,
                    };
                }
                // Refunded sales are in none of the pairs above, so their exclusions are dropped
                // apart from them.
                changed += forget_refunded(cx).await?;
                Ok(if changed == 0 {
                    Change::Undo(0)
                } else {
                    Change::Keep(changed)
                })
            }))
            .await
    }
}

async fn pairs(cx: &mut AnyConnection) -> Result<Vec<Pair>, Error> {
    let rows = sql!(SALES).rows(cx).await?;
    rows.iter()
        .map(|row| {
            let text = |column| row.value::<String>(column);
            let (buyer, wallet, seller) = (text("buyer")?, text("wallet")?, text("seller")?);
            let (buyer_payout, seller_payout) = (text("buyer_payout")?, text("seller_payout")?);
            let party = |is_proved: bool, payout: &str, operator: &str| {
                // Only a proved wallet joins operators: an address that somebody merely names could
                // draw a rival into a ring.
                let is_wallet = is_proved && !payout.is_empty();
                if is_wallet { payout } else { operator }.to_owned()
            };
            // The address of a wallet follows its network, `eip155:84532:0x…`.
            let paid_from = wallet.rsplit(':').next().unwrap_or_default().to_lowercase();
            let from = if buyer.is_empty() {
                paid_from.clone()
            } else {
                party(row.get("buyer_proved")?, &buyer_payout, &buyer)
            };
            Ok(Pair {
                is_one_wallet: !seller_payout.is_empty()
                    && (seller_payout == buyer_payout || seller_payout == paid_from),
                from,
                to: party(row.get("seller_proved")?, &seller_payout, &seller),
                buyer,
                wallet,
                seller,
            })
        })
        .collect()
}

/// Returns the pairs of which a sale is excluded, as [`Pair::parties`] gives them.
async fn excluded(cx: &mut AnyConnection) -> Result<BTreeSet<[String; 3]>, Error> {
    let rows = sql!(
        "SELECT DISTINCT COALESCE(sales.buyer_operator, '') AS buyer, COALESCE(sales.buyer_wallet, '') AS wallet,
                sales.seller_operator AS seller
         FROM points_exclusions JOIN points_events ON points_events.id = points_exclusions.event_id
         JOIN sales ON sales.id = points_events.key"
    )
    .rows(cx)
    .await?;
    rows.iter()
        .map(|row| Ok([row.get("buyer")?, row.get("wallet")?, row.get("seller")?]))
        .collect()
}

/// Parties, each with those that its money goes to.
type Graph<'p> = BTreeMap<&'p str, BTreeSet<&'p str>>;

/// Returns the strongly connected component of every party: two parties are in one if money flows from each to the
/// other, directly or through others (Kosaraju's algorithm, without recursion).
fn components(pairs: &[Pair]) -> BTreeMap<String, usize> {
    let (mut ahead, mut back) = (Graph::new(), Graph::new());
    for pair in pairs {
        ahead.entry(&pair.from).or_default().insert(&pair.to);
        ahead.entry(&pair.to).or_default();
        back.entry(&pair.to).or_default().insert(&pair.from);
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for &start in ahead.keys() {
        // With a stack of its own and not by recursion: a chain of purchases may be longer than a
        // thread's stack.
        let mut stack = vec![(start, false)];
        while let Some((party, is_done)) = stack.pop() {
            if is_done {
                order.push(party);
            } else if seen.insert(party) {
                stack.push((party, true));
                stack.extend(ahead.get(party).into_iter().flatten().map(|next| (*next, false)));
            }
        }
    }
    // The second pass of Kosaraju: in the reverse order of their ends, each party reaches against the
    // arrows exactly its component.
    let mut component = BTreeMap::new();
    for (number, &start) in order.iter().rev().enumerate() {
        let mut stack = vec![start];
        while let Some(party) = stack.pop() {
            if !component.contains_key(party) {
                component.insert(party.to_owned(), number);
                stack.extend(back.get(party).into_iter().flatten());
            }
        }
    }
    component
}

/// Condition on the events of the sales of a pair.
const OF_PAIR: &str = "kind IN ('sale', 'trial_sale') AND key IN (
        SELECT id FROM sales WHERE COALESCE(buyer_operator, '') = $1 AND COALESCE(buyer_wallet, '') = $2
           AND seller_operator = $3 AND state NOT IN ('refunded', 'trial_refunded'))";

async fn leave_out(cx: &mut AnyConnection, pair: &Pair, rule: &'static str, now: Timestamp) -> Result<u64, Error> {
    let excluded = sql!(
        text!(
            "INSERT INTO points_exclusions (event_id, rule, at)
             SELECT id, CAST($4 AS TEXT), CAST($5 AS BIGINT) FROM points_events WHERE ",
            OF_PAIR,
            "
         ON CONFLICT (event_id) DO NOTHING"
        ),
        pair.buyer.as_str(),
        pair.wallet.as_str(),
        pair.seller.as_str(),
        rule,
        now
    )
    .run(cx)
    .await?;
    Ok(excluded)
}

async fn count_again(cx: &mut AnyConnection, pair: &Pair) -> Result<u64, Error> {
    let included = sql!(
        text!(
            "DELETE FROM points_exclusions WHERE rule IN ('",
            SAME_WALLET,
            "', '",
            CYCLE,
            "')
             AND event_id IN (SELECT id FROM points_events WHERE ",
            OF_PAIR,
            ")"
        ),
        pair.buyer.as_str(),
        pair.wallet.as_str(),
        pair.seller.as_str()
    )
    .run(cx)
    .await?;
    Ok(included)
}

/// Includes the events of refunded sales: their reversals count too, and both are nothing together.
async fn forget_refunded(cx: &mut AnyConnection) -> Result<u64, Error> {
    sql!(text!(
        "DELETE FROM points_exclusions WHERE rule IN ('",
        SAME_WALLET,
        "', '",
        CYCLE,
        "')
         AND event_id IN (SELECT points_events.id FROM points_events
                          JOIN sales ON sales.id = points_events.key
                          WHERE kind IN ('sale', 'trial_sale') AND state IN ('refunded', 'trial_refunded'))"
    ))
    .run(cx)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(from: &str, to: &str) -> Pair {
        Pair {
            buyer: from.to_owned(),
            wallet: String::new(),
            seller: to.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            is_one_wallet: false,
        }
    }

    #[test]
    fn parties_are_together_if_money_flows_both_ways() {
        let pairs = [
            pair("a", "b"),
            pair("b", "c"),
            pair("c", "a"),
            pair("c", "d"),
            pair("e", "a"),
        ];
        let found = components(&pairs);
        assert_eq!(found["a"], found["b"]);
        assert_eq!(found["b"], found["c"]);
        for (one, other) in [("c", "d"), ("e", "a"), ("d", "e")] {
            assert_ne!(found[one], found[other], "{one} {other}");
        }
    }

    #[test]
    fn a_long_chain_is_no_cycle_until_it_closes() {
        let party = |number: usize| format!("p{number:05}");
        let mut pairs: Vec<_> = (0..20_000)
            .map(|number| pair(&party(number), &party(number + 1)))
            .collect();
        let open = components(&pairs);
        assert_ne!(open[&party(0)], open[&party(20_000)]);
        pairs.push(pair(&party(20_000), &party(0)));
        let closed = components(&pairs);
        assert_eq!(closed[&party(0)], closed[&party(20_000)]);
    }
}
