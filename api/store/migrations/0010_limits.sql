-- Counts of limits that hold for an hour or longer, so that a restart does not forget them. A subject has one row for
-- each limit.
CREATE TABLE limit_counters (
    rule {{text}} NOT NULL,
    -- A hash, so that no address or name is kept.
    subject {{text}} NOT NULL,
    -- The window that is counted, as its number since 1970.
    number BIGINT NOT NULL,
    used BIGINT NOT NULL,
    -- The count of the window before.
    used_before BIGINT NOT NULL,
    -- From this time on the counts no longer matter.
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (rule, subject)
);
CREATE INDEX limit_counters_ended ON limit_counters (ends_at);

-- One row for each call that changed something, written in the transaction of the change.
CREATE TABLE audit (
    id {{text}} NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    -- The operator that may read the row.
    operator_id {{text}},
    actor_kind {{text}} NOT NULL CHECK (actor_kind IN ('agent', 'person', 'anonymous')),
    -- The agent's id, where an agent acted.
    actor {{text}},
    operation {{text}} NOT NULL,
    -- The thing that was changed, as the call named it.
    subject {{text}},
    request_id {{text}} NOT NULL
);
CREATE INDEX audit_of_operator ON audit (operator_id, id);
