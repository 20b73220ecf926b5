-- Money: a journal of movements between accounts, what was sold to whom, and what storage and egress cost.
-- Amounts are micro-USDC.

-- An entry on the own side of an account raises its balance. The id is `{asset}|{account}`.
CREATE TABLE ledger_accounts (
    id {{text}} NOT NULL PRIMARY KEY,
    asset {{text}} NOT NULL,
    kind {{text}} NOT NULL,
    operator_id {{text}},
    side {{text}} NOT NULL CHECK (side IN ('debit', 'credit')),
    balance BIGINT NOT NULL CHECK (balance >= 0),
    -- The number of movements so far.
    moves BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX ledger_accounts_of_kind ON ledger_accounts (asset, kind);

-- What happened. A kind and key happens once in an asset.
CREATE TABLE ledger_events (
    id {{text}} NOT NULL PRIMARY KEY,
    asset {{text}} NOT NULL,
    kind {{text}} NOT NULL,
    key {{text}} NOT NULL,
    at BIGINT NOT NULL,
    month BIGINT NOT NULL,
    -- The item, sale or reference of the event.
    subject {{text}} NOT NULL,
    -- The agent that acted; empty if none did.
    actor {{text}} NOT NULL,
    UNIQUE (kind, key)
);
CREATE INDEX ledger_events_of_month ON ledger_events (month, at);

-- Movements: each has one debit and one credit account, so every sum is zero, with the balances after it.
CREATE TABLE ledger_transfers (
    event_id {{text}} NOT NULL REFERENCES ledger_events (id),
    line BIGINT NOT NULL,
    amount BIGINT NOT NULL CHECK (amount > 0),
    debit_account {{text}} NOT NULL REFERENCES ledger_accounts (id),
    debit_seq BIGINT NOT NULL,
    debit_after BIGINT NOT NULL CHECK (debit_after >= 0),
    credit_account {{text}} NOT NULL REFERENCES ledger_accounts (id),
    credit_seq BIGINT NOT NULL,
    credit_after BIGINT NOT NULL CHECK (credit_after >= 0),
    month BIGINT NOT NULL,
    PRIMARY KEY (event_id, line),
    UNIQUE (debit_account, debit_seq),
    UNIQUE (credit_account, credit_seq),
    CHECK (debit_account <> credit_account)
);

{{append_only ledger_events}}
{{append_only ledger_transfers}}

-- The prices of an item since it had one; null is the platform's default.
CREATE TABLE item_prices (
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    item_id {{text}} NOT NULL,
    from_at BIGINT NOT NULL,
    price_micro BIGINT CHECK (price_micro >= 0),
    PRIMARY KEY (item_kind, item_id, from_at)
);

CREATE TABLE sales (
    id {{text}} NOT NULL PRIMARY KEY,
    asset {{text}} NOT NULL,
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    -- The chain of a unit, or the id of a dataset.
    item_id {{text}} NOT NULL,
    -- The number of the version.
    version BIGINT NOT NULL,
    -- The version of a unit, or null for a dataset.
    unit_version {{text}},
    seller_operator {{text}} NOT NULL REFERENCES operators (id),
    -- The agent that gets the points, if an agent made the item.
    seller_agent {{text}},
    buyer_operator {{text}},
    -- `{network}:{address}`, if a wallet paid.
    buyer_wallet {{text}},
    agent_id {{text}},
    paid_with {{text}} NOT NULL CHECK (paid_with IN ('credits', 'given', 'x402')),
    price BIGINT NOT NULL CHECK (price > 0),
    fee BIGINT NOT NULL CHECK (fee >= 0),
    share BIGINT NOT NULL CHECK (share >= 0),
    -- The brackets of the fee.
    fee_brackets {{text}} NOT NULL,
    sold_at BIGINT NOT NULL,
    release_at BIGINT NOT NULL,
    state {{text}} NOT NULL
        CHECK (state IN ('held', 'disputed', 'payable', 'refunded', 'trial', 'trial_disputed', 'trial_refunded')),
    payment_id {{text}} UNIQUE,
    release_event {{text}},
    CHECK (fee + share = price OR paid_with = 'given'),
    CHECK ((paid_with = 'given') = (state IN ('trial', 'trial_disputed', 'trial_refunded'))),
    CHECK (buyer_operator IS NOT NULL OR buyer_wallet IS NOT NULL)
);
CREATE INDEX sales_of_seller ON sales (seller_operator, state, release_at);
CREATE INDEX sales_due ON sales (state, release_at);
CREATE INDEX sales_of_buyer ON sales (buyer_operator, sold_at);
CREATE INDEX sales_of_item ON sales (item_kind, item_id);
CREATE INDEX sales_of_wallet ON sales (buyer_wallet) WHERE buyer_wallet IS NOT NULL;

-- What an operator (`op:{id}`) or a wallet (`w:{network}:{address}`) may read because it bought it. Units have version
-- 1, which means every version.
CREATE TABLE entitlements (
    owner {{text}} NOT NULL,
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    item_id {{text}} NOT NULL,
    max_version BIGINT NOT NULL CHECK (max_version >= 1),
    -- Written before the sale itself, because it is the lock between two buyers of an item.
    sale_id {{text}} NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (owner, item_kind, item_id)
);

-- Payments by x402: one row for each authorization.
CREATE TABLE payments (
    id {{text}} NOT NULL PRIMARY KEY,
    network {{text}} NOT NULL,
    asset {{text}} NOT NULL,
    payer {{text}} NOT NULL,
    nonce {{text}} NOT NULL,
    x402_version BIGINT NOT NULL,
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset', 'pack')),
    item_id {{text}} NOT NULL,
    version BIGINT NOT NULL,
    unit_version {{text}},
    amount BIGINT NOT NULL CHECK (amount > 0),
    pay_to {{text}} NOT NULL,
    valid_after BIGINT NOT NULL,
    valid_before BIGINT NOT NULL,
    payload_hash {{bytes}} NOT NULL,
    -- Null at a final state, because it has the signature.
    payload {{text}},
    has_secret BIGINT NOT NULL CHECK (has_secret IN (0, 1)),
    client_net {{text}} NOT NULL,
    buyer_operator {{text}},
    state {{text}} NOT NULL
        CHECK (state IN ('bound', 'refused', 'abandoned', 'settling', 'unknown', 'settled', 'failed', 'not_needed')),
    attempts BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    next_try_at BIGINT NOT NULL,
    transaction_hash {{text}},
    reason {{text}},
    bound_at BIGINT NOT NULL,
    settled_at BIGINT,
    settle_response {{text}},
    sale_id {{text}},
    UNIQUE (network, asset, payer, nonce)
);
CREATE UNIQUE INDEX payments_one_open ON payments (network, payer, item_kind, item_id)
    WHERE state IN ('bound', 'settling', 'unknown') AND item_kind <> 'pack';
CREATE INDEX payments_due ON payments (state, next_try_at);

-- Identifiers that payers gave their payments.
CREATE TABLE payment_ids (
    payer {{text}} NOT NULL,
    identifier {{text}} NOT NULL,
    payload_hash {{bytes}} NOT NULL,
    payment_id {{text}} NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (payer, identifier)
);

-- Payouts to sellers, and refunds to wallets.
CREATE TABLE payouts (
    id {{text}} NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL CHECK (kind IN ('payout', 'refund')),
    operator_id {{text}},
    address {{text}} NOT NULL,
    amount BIGINT NOT NULL CHECK (amount > 0),
    asset {{text}} NOT NULL,
    nonce {{text}} NOT NULL UNIQUE,
    valid_before BIGINT NOT NULL,
    state {{text}} NOT NULL CHECK (state IN ('picked', 'sending', 'unknown', 'done', 'failed')),
    attempts BIGINT NOT NULL,
    next_try_at BIGINT NOT NULL,
    transaction_hash {{text}},
    created_at BIGINT NOT NULL
);
CREATE INDEX payouts_due ON payouts (state, next_try_at);
CREATE UNIQUE INDEX payouts_one_open ON payouts (operator_id)
    WHERE kind = 'payout' AND state IN ('picked', 'sending', 'unknown');

CREATE TABLE disputes (
    id {{text}} NOT NULL PRIMARY KEY,
    sale_id {{text}} NOT NULL REFERENCES sales (id),
    reason {{text}} NOT NULL,
    opened_by {{text}} NOT NULL,
    opened_at BIGINT NOT NULL,
    state {{text}} NOT NULL CHECK (state IN ('open', 'refunded', 'released')),
    resolved_by {{text}},
    resolved_at BIGINT,
    answer {{text}}
);
CREATE UNIQUE INDEX disputes_one_open ON disputes (sale_id) WHERE state = 'open';
CREATE INDEX disputes_newest ON disputes (state, opened_at);

-- Days of storage that credits did not cover. They are not charged later.
CREATE TABLE storage_days (
    operator_id {{text}} NOT NULL,
    day BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    charged BIGINT NOT NULL,
    owed BIGINT NOT NULL,
    PRIMARY KEY (operator_id, day)
);

-- Bytes that replicas may send for an account in a UTC month, and the blocks that are paid.
CREATE TABLE egress_months (
    -- `op:{id}` or `w:{network}:{address}`.
    account {{text}} NOT NULL,
    month BIGINT NOT NULL,
    leased BIGINT NOT NULL CHECK (leased >= 0),
    paid_blocks BIGINT NOT NULL CHECK (paid_blocks >= 0),
    PRIMARY KEY (account, month)
);
CREATE TABLE platform_months (
    month BIGINT NOT NULL PRIMARY KEY,
    leased BIGINT NOT NULL CHECK (leased >= 0)
);

-- The built-in test ledger, which stands for a chain.
CREATE TABLE test_wallets (
    address {{text}} NOT NULL PRIMARY KEY,
    balance BIGINT NOT NULL CHECK (balance >= 0)
);
CREATE TABLE test_authorizations (
    address {{text}} NOT NULL,
    nonce {{text}} NOT NULL,
    kind {{text}} NOT NULL CHECK (kind IN ('used', 'cancelled')),
    transaction_hash {{text}},
    at BIGINT NOT NULL,
    PRIMARY KEY (address, nonce)
);

-- A number that rises when something bought is no longer readable, so that no process remembers it longer than a second.
CREATE TABLE entitlement_generation (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    generation BIGINT NOT NULL
);
INSERT INTO entitlement_generation (one, generation) VALUES (1, 0);

-- Prices that datasets have already hold from their creation on.
INSERT INTO item_prices (item_kind, item_id, from_at, price_micro)
SELECT 'dataset', id, created_at, price_micro FROM projects WHERE access = 'paid';
