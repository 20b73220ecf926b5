//! Rules of money that are one statement each.
//!
//! Invariant: the rows of a statement are the subjects that break its rule.

/// Rules that are one statement each: its rows are the subjects that break the rule.
pub(super) const STATEMENTS: [(&str, &str, &str); 23] = [
    (
        "M4",
        "the movement is of a month that is archived",
        "SELECT event_id AS subject FROM ledger_transfers
         WHERE EXISTS (SELECT 1 FROM ledger_openings) AND month <= (SELECT MAX(month) FROM ledger_openings)",
    ),
    (
        "M6",
        "the sale has no event of its kind, or one of another amount",
        "SELECT sales.id AS subject FROM sales
         LEFT JOIN ledger_events ON ledger_events.key = sales.id
              AND ledger_events.kind = CASE WHEN sales.paid_with = 'given' THEN 'trial_sale' ELSE 'sale' END
         WHERE ledger_events.id IS NULL
            OR (ledger_events.month > (SELECT COALESCE(MAX(month), -1) FROM ledger_openings)
                AND sales.price <> (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM ledger_transfers
                                    WHERE ledger_transfers.event_id = ledger_events.id))",
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
         LEFT JOIN (SELECT release_event, CAST(SUM(share) AS BIGINT) AS total FROM sales
                    WHERE release_event IS NOT NULL GROUP BY release_event) AS released
              ON released.release_event = ledger_events.id
         WHERE kind = 'release' AND ledger_events.month > (SELECT COALESCE(MAX(month), -1) FROM ledger_openings)
           AND (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM ledger_transfers
                WHERE ledger_transfers.event_id = ledger_events.id) <> COALESCE(released.total, 0)",
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
    (
        "M17",
        "an agent of another operator spent the credits",
        "SELECT ledger_events.id AS subject FROM ledger_events
         JOIN ledger_transfers ON ledger_transfers.event_id = ledger_events.id AND ledger_transfers.line = 0
         JOIN ledger_accounts ON ledger_accounts.id = ledger_transfers.debit_account
         LEFT JOIN agents ON agents.id = ledger_events.actor
         WHERE ledger_events.kind IN ('sale', 'trial_sale', 'egress_block') AND ledger_events.actor <> ''
           AND ledger_accounts.kind IN ('credits', 'given')
           AND (agents.id IS NULL OR agents.operator_id <> ledger_accounts.operator_id)",
    ),
    (
        // By the sale and not by the movements, which leave the database with their month.
        "M17",
        "what was counted is not what the event charged",
        "SELECT spends.event_id AS subject FROM spends JOIN ledger_events ON ledger_events.id = spends.event_id
         WHERE (spends.kind = 'purchase'
                AND NOT EXISTS (SELECT 1 FROM sales
                                WHERE sales.id = ledger_events.key AND sales.price = spends.amount
                                  AND ledger_events.kind IN ('sale', 'trial_sale')))
            OR (spends.kind = 'usage'
                AND (ledger_events.kind <> 'egress_block'
                     OR EXISTS (SELECT 1 FROM ledger_transfers
                                WHERE ledger_transfers.event_id = spends.event_id
                                  AND ledger_transfers.amount <> spends.amount)))
            OR (spends.owner LIKE 'ag:%' AND spends.owner <> 'ag:' || ledger_events.actor)",
    ),
    (
        "M17",
        "the counter is not the sum of what was counted",
        "WITH counted AS (
             SELECT owner, day AS period, CAST(SUM(amount) AS BIGINT) AS total, MAX(day_after) AS latest
             FROM spends GROUP BY owner, day
             UNION ALL
             SELECT owner, month, CAST(SUM(amount) AS BIGINT), MAX(month_after) FROM spends GROUP BY owner, month)
         SELECT spend_used.owner || ' ' || spend_used.period AS subject FROM spend_used
         LEFT JOIN counted ON counted.owner = spend_used.owner AND counted.period = spend_used.period
         WHERE counted.total IS NULL OR counted.total <> spend_used.used OR counted.latest <> spend_used.used
         UNION ALL
         SELECT counted.owner || ' ' || counted.period FROM counted
         WHERE NOT EXISTS (SELECT 1 FROM spend_used
                           WHERE spend_used.owner = counted.owner AND spend_used.period = counted.period)",
    ),
    (
        "M17",
        "the counts of the owner do not follow each other",
        "WITH steps AS (
             SELECT owner, amount, day_after AS after,
                    LAG(day_after, 1, CAST(0 AS BIGINT)) OVER (PARTITION BY owner, day ORDER BY day_after) AS before
             FROM spends
             UNION ALL
             SELECT owner, amount, month_after,
                    LAG(month_after, 1, CAST(0 AS BIGINT)) OVER (PARTITION BY owner, month ORDER BY month_after)
             FROM spends)
         SELECT DISTINCT owner AS subject FROM steps WHERE after <> before + amount",
    ),
    (
        "M17",
        "the charge does not fit a cap that it was held against",
        "SELECT event_id AS subject FROM spends
         WHERE (kind = 'purchase' AND amount > per_purchase) OR day_after > per_day OR month_after > per_month",
    ),
    (
        "M17",
        "the purchase is above the line, and no person said yes to it",
        "SELECT spends.event_id AS subject FROM spends JOIN ledger_events ON ledger_events.id = spends.event_id
         WHERE spends.kind = 'purchase' AND spends.amount > spends.approve_above
           AND NOT EXISTS (SELECT 1 FROM approvals
                           WHERE approvals.id = spends.approval_id AND approvals.state = 'bought'
                             AND approvals.sale_id = ledger_events.key)",
    ),
    (
        "M17",
        "the yes and its sale do not belong together",
        "SELECT approvals.id AS subject FROM approvals LEFT JOIN sales ON sales.id = approvals.sale_id
         WHERE approvals.state = 'bought'
           AND (sales.id IS NULL OR COALESCE(sales.approval_id, '') <> approvals.id
                OR sales.item_kind <> approvals.item_kind OR sales.item_id <> approvals.item_id
                OR (sales.item_kind = 'dataset' AND sales.version <> approvals.version)
                OR COALESCE(sales.agent_id, '') <> approvals.agent_id
                OR COALESCE(sales.buyer_operator, '') <> approvals.operator_id
                OR sales.price > approvals.price
                OR NOT EXISTS (SELECT 1 FROM spends JOIN ledger_events ON ledger_events.id = spends.event_id
                               WHERE ledger_events.key = sales.id AND spends.approval_id = approvals.id
                                 AND spends.owner = 'ag:' || approvals.agent_id)
                OR (approvals.connection_id IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM spends JOIN ledger_events ON ledger_events.id = spends.event_id
                                    WHERE ledger_events.key = sales.id
                                      AND spends.owner = 'con:' || approvals.connection_id)))
         UNION ALL
         SELECT sales.id FROM sales
         WHERE sales.approval_id IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM approvals
                           WHERE approvals.id = sales.approval_id AND approvals.sale_id = sales.id)",
    ),
];

/// Rules that depend on the time or the configuration: `:now` is the time of the check, `:forgotten` an
/// hour, `:quoted` the time for which an earlier price is taken, `:skew` the time by which clocks may differ, `:unit` and `:dataset` the default prices.
pub(super) const TIMED: [(&str, &str, &str); 6] = [
    (
        "M9",
        "the payment may have moved money, and nobody has looked at it for an hour",
        // Time in which the service was stopped does not count: nobody could look.
        "SELECT id AS subject FROM payments WHERE state IN ('settling', 'unknown') AND next_try_at <= :now - :forgotten
         AND next_try_at <= COALESCE((SELECT at FROM service_state WHERE name = 'payments'), :now) - :forgotten",
    ),
    (
        "M10",
        "the amount is no price that was in force when the payment was bound",
        "SELECT payments.id AS subject FROM payments
         WHERE payments.state = 'settled' AND payments.item_kind <> 'pack'
           AND EXISTS (SELECT 1 FROM item_prices
                       WHERE item_prices.item_kind = payments.item_kind AND item_prices.item_id = payments.item_id
                         AND item_prices.from_at <= payments.bound_at)
           AND NOT EXISTS (
               SELECT 1 FROM item_prices
               WHERE item_prices.item_kind = payments.item_kind AND item_prices.item_id = payments.item_id
                 AND item_prices.from_at <= payments.bound_at + :skew
                 AND item_prices.from_at >= COALESCE((
                     SELECT MAX(earlier.from_at) FROM item_prices AS earlier
                     WHERE earlier.item_kind = payments.item_kind AND earlier.item_id = payments.item_id
                       AND earlier.from_at <= payments.bound_at - :quoted - :skew), 0)
                 AND COALESCE(item_prices.price_micro,
                              CASE WHEN payments.item_kind = 'unit' THEN :unit ELSE :dataset END) = payments.amount)",
    ),
    (
        "M10",
        "the credits were charged another price than the one in force",
        // Sales until the time in `service_state` cost the lowest price of some minutes, and so do those of a replica
        // that was not restarted yet: an hour is time enough for that.
        "SELECT sales.id AS subject FROM sales
         WHERE sales.paid_with IN ('credits', 'given')
           AND (sales.sold_at > COALESCE((SELECT at FROM service_state WHERE name = 'prices_in_force'), 0) + :forgotten
                OR EXISTS (SELECT 1 FROM ledger_events JOIN spends ON spends.event_id = ledger_events.id
                           WHERE ledger_events.key = sales.id AND ledger_events.kind IN ('sale', 'trial_sale')))
           AND EXISTS (SELECT 1 FROM item_prices
                       WHERE item_prices.item_kind = sales.item_kind AND item_prices.item_id = sales.item_id
                         AND item_prices.from_at <= sales.sold_at)
           AND NOT EXISTS (
               SELECT 1 FROM item_prices
               WHERE item_prices.item_kind = sales.item_kind AND item_prices.item_id = sales.item_id
                 AND item_prices.from_at <= sales.sold_at + :skew
                 AND item_prices.from_at >= COALESCE((
                     SELECT MAX(earlier.from_at) FROM item_prices AS earlier
                     WHERE earlier.item_kind = sales.item_kind AND earlier.item_id = sales.item_id
                       AND earlier.from_at <= sales.sold_at - :skew), 0)
                 AND COALESCE(item_prices.price_micro,
                              CASE WHEN sales.item_kind = 'unit' THEN :unit ELSE :dataset END) = sales.price)",
    ),
    (
        "M17",
        "the charge of an agent was not counted",
        // Charges until the time in `service_state` were not, nor those of a replica that was not restarted yet: an
        // hour is time enough for that.
        "SELECT ledger_events.id AS subject FROM ledger_events
         WHERE ledger_events.kind IN ('sale', 'trial_sale', 'egress_block') AND ledger_events.actor <> ''
           AND ledger_events.at > COALESCE((SELECT at FROM service_state WHERE name = 'spends'), 0) + :forgotten
           AND NOT EXISTS (SELECT 1 FROM spends
                           WHERE spends.event_id = ledger_events.id AND spends.owner = 'ag:' || ledger_events.actor)",
    ),
    (
        "M20",
        "two operators have proved one wallet",
        "SELECT operators.id AS subject FROM operators
         JOIN operators AS other ON LOWER(other.payout_address) = LOWER(operators.payout_address)
              AND other.id <> operators.id
         WHERE operators.payout_proved_at IS NOT NULL AND other.payout_proved_at IS NOT NULL
           AND (operators.payout_next_at IS NULL OR operators.payout_next_at > :now)
           AND (other.payout_next_at IS NULL OR other.payout_next_at > :now)",
    ),
    (
        // A proof ends with its address, so only sales since the address is in force tell.
        "M20",
        "the operator has what a wallet bought that never proved itself",
        "SELECT sales.id AS subject FROM sales JOIN operators ON operators.id = sales.buyer_operator
         WHERE sales.buyer_wallet IS NOT NULL
           AND CASE WHEN operators.payout_next_at <= :now THEN NULL ELSE operators.payout_proved_at END IS NULL
           AND sales.buyer_wallet LIKE '%:' || LOWER(CASE WHEN operators.payout_next_at <= :now
                   THEN operators.payout_next_address ELSE operators.payout_address END)
           AND sales.sold_at >= CASE WHEN operators.payout_next_at <= :now
                   THEN operators.payout_next_at ELSE operators.payout_changed_at END",
    ),
];

/// Balances that other tables say: rule, kind of account, and what its balance must be.
pub(super) const BALANCES: [(&str, &str, &str); 5] = [
    (
        "M11",
        "held",
        "(SELECT CAST(COALESCE(SUM(share), 0) AS BIGINT) FROM sales
         WHERE sales.seller_operator = ledger_accounts.operator_id AND sales.state = 'held'
           AND sales.asset = ledger_accounts.asset)",
    ),
    (
        "M11",
        "disputed",
        "(SELECT CAST(COALESCE(SUM(share), 0) AS BIGINT) FROM sales
         WHERE sales.seller_operator = ledger_accounts.operator_id AND sales.state = 'disputed'
           AND sales.asset = ledger_accounts.asset)",
    ),
    (
        "M11",
        "payable",
        "(SELECT CAST(COALESCE(SUM(share), 0) AS BIGINT) FROM sales
          WHERE sales.seller_operator = ledger_accounts.operator_id AND sales.state = 'payable'
            AND sales.asset = ledger_accounts.asset)
         - (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM payouts
            WHERE payouts.operator_id = ledger_accounts.operator_id AND payouts.kind = 'payout'
              AND payouts.state <> 'failed' AND payouts.asset = ledger_accounts.asset)",
    ),
    (
        "M12",
        "payout_pending",
        "(SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM payouts
         WHERE payouts.operator_id = ledger_accounts.operator_id AND payouts.kind = 'payout'
           AND payouts.state IN ('picked', 'sending', 'unknown') AND payouts.asset = ledger_accounts.asset)",
    ),
    (
        "M12",
        "refund_pending",
        "(SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM payouts
         WHERE payouts.kind = 'refund' AND payouts.state <> 'done' AND payouts.asset = ledger_accounts.asset)",
    ),
];
