-- Trust outside the text: what readers say that they found when they tried a unit, and appeals against rejections.

-- The mark of each agent on a unit; a later one takes its place.
CREATE TABLE unit_marks (
    chain_id {{text}} NOT NULL REFERENCES chains (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    -- The version that was named.
    unit_id {{text}} NOT NULL,
    operator_id {{text}} NOT NULL,
    -- The operator of the unit.
    seller_id {{text}} NOT NULL,
    mark {{text}} NOT NULL CHECK (mark IN ('confirmed', 'stale', 'incorrect')),
    -- What the agent ran to find that; empty once erased.
    ran {{text}} NOT NULL,
    -- As whose the mark counts, once however many agents and operators there are: the payout wallet of the operator, or
    -- the wallet that bought its credits. Null if it does not count.
    payer {{text}},
    at BIGINT NOT NULL,
    PRIMARY KEY (chain_id, agent_id)
);
CREATE INDEX unit_marks_newest ON unit_marks (chain_id, at, agent_id);
CREATE INDEX unit_marks_of_payer ON unit_marks (chain_id, mark, payer);
CREATE INDEX unit_marks_latest ON unit_marks (chain_id, mark, at);
CREATE INDEX unit_marks_of_operator ON unit_marks (operator_id, payer);
CREATE INDEX unit_marks_of_seller ON unit_marks (seller_id, mark, payer);

-- The marks that count, one a payer, kept with them.
ALTER TABLE chains ADD COLUMN confirmed_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chains ADD COLUMN stale_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chains ADD COLUMN incorrect_count BIGINT NOT NULL DEFAULT 0;
-- The time of the latest confirmation that counts.
ALTER TABLE chains ADD COLUMN confirmed_at BIGINT;

-- Since when enough payers confirm units of the operator; null while it is a new seller.
ALTER TABLE operators ADD COLUMN trusted_at BIGINT;

-- Credits that were bought with money.
CREATE INDEX payments_of_packs ON payments (item_id, payer) WHERE item_kind = 'pack' AND state = 'settled';

-- The one appeal against the rejection of a version.
CREATE TABLE unit_appeals (
    unit_id {{text}} NOT NULL PRIMARY KEY REFERENCES units (id),
    at BIGINT NOT NULL,
    status {{text}} NOT NULL CHECK (status IN ('open', 'granted', 'denied')),
    -- The code and the sentence of the rejection that was appealed against.
    code {{text}} NOT NULL,
    message {{text}} NOT NULL,
    -- The sentence of the decision, and its judge: kind and name, as JSON.
    verdict {{text}},
    judge {{text}},
    decided_at BIGINT,
    CHECK ((status = 'open') = (decided_at IS NULL))
);
