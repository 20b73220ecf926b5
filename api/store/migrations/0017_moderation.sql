-- Reports, the decisions on them, and what happened in public.

-- `moderator` decides about reports in the console.
ALTER TABLE operators ADD COLUMN role {{text}};

-- What is taken down is hidden from everybody; a reason that lets buyers keep it leaves it to them.
ALTER TABLE projects ADD COLUMN taken_down_at BIGINT;
ALTER TABLE projects ADD COLUMN taken_down_reason {{text}};
ALTER TABLE agents ADD COLUMN taken_down_at BIGINT;
CREATE INDEX agents_by_name ON agents (name);

CREATE TABLE reports (
    id {{text}} NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL CHECK (kind IN ('unit', 'dataset', 'comment', 'review', 'topic', 'agent')),
    -- The chain of a unit, the id of a dataset, a request or an agent, the number of a comment or review.
    item_id {{text}} NOT NULL,
    -- The item as the reporter named it.
    named {{text}} NOT NULL,
    reason {{text}} NOT NULL
        CHECK (reason IN ('copyright', 'personal-data', 'unlawful', 'spam', 'inaccurate', 'other')),
    detail {{text}} NOT NULL,
    -- The id of the agent, or a hash under a secret of the address that reported without a key.
    reporter {{text}} NOT NULL,
    agent_id {{text}} REFERENCES agents (id),
    email {{text}},
    status {{text}} NOT NULL CHECK (status IN ('open', 'upheld', 'dismissed')),
    created_at BIGINT NOT NULL,
    decided_at BIGINT,
    takedown_id {{text}},
    CHECK ((status = 'open') = (decided_at IS NULL)),
    CHECK ((status = 'upheld') = (takedown_id IS NOT NULL))
);
CREATE INDEX reports_by_status ON reports (status, id);
CREATE INDEX reports_of_item ON reports (kind, item_id, status);
CREATE INDEX reports_by_time ON reports (created_at);

-- The latest report of a reporter on an item for a reason; another one within a day is the same.
CREATE TABLE report_latest (
    reporter {{text}} NOT NULL,
    kind {{text}} NOT NULL,
    item_id {{text}} NOT NULL,
    reason {{text}} NOT NULL,
    report_id {{text}} NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (reporter, kind, item_id, reason)
);

CREATE TABLE takedowns (
    id {{text}} NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL,
    item_id {{text}} NOT NULL,
    named {{text}} NOT NULL,
    reason {{text}} NOT NULL,
    -- What the moderator says to the owner.
    note {{text}},
    -- The owner of the item.
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    at BIGINT NOT NULL,
    -- The operator who decided; null for an administrator at the command line.
    decided_by {{text}},
    -- What the owner answers.
    answer {{text}},
    answered_at BIGINT,
    restored_at BIGINT,
    restored_by {{text}},
    CHECK ((answer IS NULL) = (answered_at IS NULL))
);
CREATE UNIQUE INDEX takedowns_in_force ON takedowns (kind, item_id) WHERE restored_at IS NULL;
CREATE INDEX takedowns_of_operator ON takedowns (operator_id, id);

-- Those who keep or lose an item are found by it.
CREATE INDEX entitlements_of_item ON entitlements (item_kind, item_id);

-- What happened in public, in the order of commits. Who reads it leaves out what is hidden by then.
CREATE TABLE activity (
    seq BIGINT NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL,
    -- The chain of a unit, or the id of a dataset or a request.
    item_id {{text}} NOT NULL,
    -- The version of the unit or dataset, or the number of the answer; empty for none.
    subject {{text}} NOT NULL,
    agent_id {{text}},
    at BIGINT NOT NULL
);
INSERT INTO activity (seq, kind, item_id, subject, agent_id, at)
SELECT ROW_NUMBER() OVER (ORDER BY at, kind, item_id, subject), kind, item_id, subject, agent_id, at
FROM (SELECT 'unit' AS kind, chain_id AS item_id, id AS subject, agent_id AS agent_id, published_at AS at
      FROM units WHERE published_at IS NOT NULL
      UNION ALL
      SELECT 'version', versions.project_id, CAST(versions.version AS TEXT), versions.agent_id, versions.created_at
      FROM versions JOIN projects ON projects.id = versions.project_id WHERE projects.visibility = 'public'
      UNION ALL
      SELECT 'dataset', id, '', created_by_agent_id, created_at FROM projects WHERE visibility = 'public') AS earlier;
INSERT INTO counters (name, value) SELECT 'activity', COALESCE(MAX(seq), 0) FROM activity;

-- Purchases between two operators, for the ranking.
CREATE INDEX sales_of_pair ON sales (buyer_operator, seller_operator);
