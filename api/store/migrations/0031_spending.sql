-- Limits on what agents and apps spend, the counters of it, and purchases that wait for a person's yes.

-- The limits of an agent (`ag:{id}`) or of the connection of an app (`con:{id}`), in micro-USDC. Null is no limit.
CREATE TABLE spend_limits (
    owner {{text}} NOT NULL PRIMARY KEY,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    per_purchase BIGINT CHECK (per_purchase >= 0),
    per_day BIGINT CHECK (per_day >= 0),
    per_month BIGINT CHECK (per_month >= 0),
    -- A purchase above it waits for a person; 0 asks always.
    approve_above BIGINT CHECK (approve_above >= 0),
    set_at BIGINT NOT NULL
);

-- What an owner has spent on a UTC day (`2026-11-28`) or in a UTC month (`2026-11`). Nothing lowers it.
CREATE TABLE spend_used (
    owner {{text}} NOT NULL,
    period {{text}} NOT NULL,
    used BIGINT NOT NULL CHECK (used >= 0),
    PRIMARY KEY (owner, period)
);

-- Each charge of an owner: its counters after it, and the limits that it was held against.
CREATE TABLE spends (
    event_id {{text}} NOT NULL REFERENCES ledger_events (id),
    owner {{text}} NOT NULL,
    kind {{text}} NOT NULL CHECK (kind IN ('purchase', 'usage')),
    amount BIGINT NOT NULL CHECK (amount > 0),
    day {{text}} NOT NULL,
    day_after BIGINT NOT NULL,
    month {{text}} NOT NULL,
    month_after BIGINT NOT NULL,
    per_purchase BIGINT,
    per_day BIGINT,
    per_month BIGINT,
    approve_above BIGINT,
    approval_id {{text}},
    PRIMARY KEY (event_id, owner)
);
CREATE INDEX spends_of_owner ON spends (owner, month, day);

{{append_only spends}}

-- Purchases above the line of an agent or an app, and those that a person makes on a page.
CREATE TABLE approvals (
    id {{text}} NOT NULL PRIMARY KEY,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    -- The connection of the app that asked; it may be gone.
    connection_id {{text}},
    asked_by {{text}} NOT NULL CHECK (asked_by IN ('agent', 'person')),
    -- The form that a person sent, which makes one row.
    form {{text}},
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    item_id {{text}} NOT NULL,
    -- The version of a dataset; for a unit 1, which means every version.
    version BIGINT NOT NULL CHECK (version >= 1),
    -- The price as it is shown; a yes never pays more.
    price BIGINT NOT NULL CHECK (price > 0),
    -- What the agent says of it.
    reason {{text}},
    state {{text}} NOT NULL CHECK (state IN ('waiting', 'bought', 'denied', 'expired', 'stale')),
    -- What had changed when a person said yes.
    why {{text}} CHECK (why IN ('price', 'item', 'agent', 'app', 'owned')),
    sale_id {{text}},
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    -- The session that decided.
    session_id {{text}},
    CHECK ((state = 'bought') = (sale_id IS NOT NULL)),
    CHECK ((state = 'stale') = (why IS NOT NULL)),
    UNIQUE (operator_id, form)
);
CREATE UNIQUE INDEX approvals_one_waiting ON approvals (agent_id, item_kind, item_id, version) WHERE state = 'waiting';
CREATE INDEX approvals_of_item ON approvals (agent_id, item_kind, item_id);
CREATE INDEX approvals_of_operator ON approvals (operator_id, id);
CREATE INDEX approvals_due ON approvals (expires_at) WHERE state = 'waiting';
CREATE INDEX approvals_waiting ON approvals (operator_id, expires_at) WHERE state = 'waiting' AND asked_by = 'agent';
CREATE INDEX approvals_of_day ON approvals (operator_id, asked_at) WHERE asked_by = 'agent';

-- The yes that bought it, if one did.
ALTER TABLE sales ADD COLUMN approval_id {{text}};
-- The signed receipt, once somebody asked for it.
ALTER TABLE sales ADD COLUMN receipt {{text}};

-- The limits that a person gave an app with the consent. They go to the connection that the code makes.
ALTER TABLE oauth_codes ADD COLUMN per_month BIGINT CHECK (per_month >= 0);
ALTER TABLE oauth_codes ADD COLUMN approve_above BIGINT CHECK (approve_above >= 0);

-- Charges until now were not counted, so the check of the counters begins behind them.
INSERT INTO service_state (name, value, generation, at)
SELECT 'spends', '{}', 0, COALESCE(MAX(at), 0) FROM ledger_events;
