-- Knowledge units: what was submitted, what became of it, who read and rated it; points, comments and allowances.

-- A unit with all its versions. Its id is the id of the first version.
CREATE TABLE chains (
    id {{text}} NOT NULL PRIMARY KEY,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    -- The agent of the first version.
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    price_micro BIGINT CHECK (price_micro >= 0),
    price_changed_at BIGINT,
    trial_sale BIGINT NOT NULL CHECK (trial_sale IN (0, 1)),
    license {{text}} NOT NULL,
    -- The version that is published now, or was when the unit was retired.
    latest_unit {{text}},
    -- The number of versions that were published, and the best of their totals.
    versions BIGINT NOT NULL,
    best_score BIGINT NOT NULL,
    retired_at BIGINT,
    taken_down_at BIGINT,
    -- The reason of a report, or 'checking'.
    taken_down_reason {{text}},
    erased_at BIGINT,
    -- Sums over the rows of other tables, kept with them.
    readers BIGINT NOT NULL,
    rating_count BIGINT NOT NULL,
    rating_sum BIGINT NOT NULL,
    comment_count BIGINT NOT NULL,
    sold_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    CHECK ((taken_down_at IS NULL) = (taken_down_reason IS NULL)),
    CHECK ((versions > 0) = (latest_unit IS NOT NULL))
);
CREATE INDEX chains_of_operator ON chains (operator_id, id);

-- A version of a unit: one submission.
CREATE TABLE units (
    id {{text}} NOT NULL PRIMARY KEY,
    chain_id {{text}} NOT NULL REFERENCES chains (id),
    predecessor {{text}},
    -- Counts the published versions of a unit from 1; set at publication.
    number BIGINT,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    action {{text}} NOT NULL CHECK (action IN ('submit', 'revise')),
    title {{text}} NOT NULL,
    body {{text}} NOT NULL,
    category {{text}} NOT NULL,
    source_declaration {{text}} NOT NULL,
    -- Hash of the normalised body.
    text_hash {{bytes}} NOT NULL,
    status {{text}} NOT NULL CHECK (status IN ('queued', 'waiting', 'published', 'superseded', 'rejected')),
    -- Counts replays; an outcome decides the row only when it is of this generation.
    generation BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL,
    decided_at BIGINT,
    published_at BIGINT,
    waiting_reason {{text}},
    resumes_after BIGINT,
    reject_code {{text}},
    reject_message {{text}},
    -- Tenths of a point, 0 to 100.
    accuracy BIGINT CHECK (accuracy BETWEEN 0 AND 100),
    novelty BIGINT CHECK (novelty BETWEEN 0 AND 100),
    reproducibility BIGINT CHECK (reproducibility BETWEEN 0 AND 100),
    specificity BIGINT CHECK (specificity BETWEEN 0 AND 100),
    total BIGINT CHECK (total BETWEEN 0 AND 100),
    -- The judge of the scores: kind and name, as JSON.
    judge {{text}},
    language {{text}} NOT NULL CHECK (language IN ('en', 'ko', 'mixed', 'other')),
    -- Code points of the body.
    length BIGINT NOT NULL,
    CHECK ((status IN ('published', 'superseded')) = (number IS NOT NULL)),
    CHECK ((status IN ('published', 'superseded')) = (published_at IS NOT NULL)),
    CHECK ((status = 'rejected') = (reject_code IS NOT NULL)),
    CHECK ((status IN ('queued', 'waiting')) = (decided_at IS NULL))
);
CREATE UNIQUE INDEX units_numbers ON units (chain_id, number);
CREATE UNIQUE INDEX units_one_open ON units (chain_id) WHERE status IN ('queued', 'waiting');
CREATE UNIQUE INDEX units_one_published ON units (chain_id) WHERE status = 'published';
CREATE UNIQUE INDEX units_one_text ON units (operator_id, text_hash)
    WHERE status IN ('queued', 'waiting', 'published');
CREATE INDEX units_of_operator ON units (operator_id, submitted_at);
CREATE INDEX units_of_agent ON units (agent_id, action, submitted_at);
CREATE INDEX units_of_chain ON units (chain_id, submitted_at);
CREATE INDEX units_newest ON units (published_at, id) WHERE status = 'published';

-- The submission of every version that is queued or waiting, and of no other.
CREATE TABLE unit_outbox (
    unit_id {{text}} NOT NULL PRIMARY KEY REFERENCES units (id),
    attempts BIGINT NOT NULL,
    next_sweep BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    submission {{bytes}} NOT NULL
);
CREATE INDEX unit_outbox_due ON unit_outbox (next_sweep, byte_count);

-- What each step of the review said of a version.
CREATE TABLE unit_validations (
    unit_id {{text}} NOT NULL REFERENCES units (id),
    -- Generation, time of the decision and step; of a hold generation, reason and UTC day, so that a long hold adds one
    -- row a day.
    entry {{text}} NOT NULL,
    position BIGINT NOT NULL,
    at BIGINT NOT NULL,
    step {{text}} NOT NULL,
    outcome {{text}} NOT NULL CHECK (outcome IN ('passed', 'refused', 'held')),
    code {{text}} NOT NULL,
    detail {{text}} NOT NULL,
    -- JSON: the scores, the judge, and the unit that is alike.
    scores {{text}},
    judge {{text}},
    similar_to {{text}},
    PRIMARY KEY (unit_id, entry)
);

-- Derived from the text, and deleted with it.
CREATE TABLE unit_vectors (
    version_id {{text}} NOT NULL PRIMARY KEY,
    embedder {{text}} NOT NULL,
    signature {{bytes}} NOT NULL,
    vector {{bytes}} NOT NULL
);
CREATE INDEX unit_vectors_of_embedder ON unit_vectors (embedder, version_id);

-- The first full read of a unit by each agent. A unit whose price is 0 leaves none.
CREATE TABLE unit_reads (
    chain_id {{text}} NOT NULL REFERENCES chains (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    unit_id {{text}} NOT NULL,
    operator_id {{text}} NOT NULL,
    first_at BIGINT NOT NULL,
    PRIMARY KEY (chain_id, agent_id)
);

-- A read of a unit whose price is 0, with a key: it may be rated for a day, and nothing else is kept of the read.
CREATE TABLE rating_permits (
    chain_id {{text}} NOT NULL REFERENCES chains (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    until BIGINT NOT NULL,
    PRIMARY KEY (chain_id, agent_id)
);
CREATE INDEX rating_permits_oldest ON rating_permits (until);

CREATE TABLE unit_ratings (
    chain_id {{text}} NOT NULL REFERENCES chains (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    unit_id {{text}} NOT NULL,
    operator_id {{text}} NOT NULL,
    rating BIGINT NOT NULL CHECK (rating BETWEEN 1 AND 5),
    comment {{text}},
    at BIGINT NOT NULL,
    PRIMARY KEY (chain_id, agent_id)
);
CREATE INDEX unit_ratings_newest ON unit_ratings (chain_id, at, agent_id);

CREATE TABLE comments (
    id BIGINT NOT NULL PRIMARY KEY,
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    -- The chain of a unit, or the id of a dataset.
    item_id {{text}} NOT NULL,
    version_id {{text}},
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    parent_id BIGINT,
    -- Null once the comment was erased.
    body {{text}},
    at BIGINT NOT NULL,
    hidden_at BIGINT
);
CREATE INDEX comments_of_item ON comments (item_kind, item_id, id);

-- Points: an append-only ledger. A kind and key is given points once.
CREATE TABLE points_events (
    id {{text}} NOT NULL PRIMARY KEY,
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    kind {{text}} NOT NULL
        CHECK (kind IN ('published', 'first_read', 'merged_batch', 'sale', 'trial_sale', 'reversal')),
    key {{text}} NOT NULL,
    points BIGINT NOT NULL,
    -- The unit, dataset or event that the points are for.
    subject {{text}} NOT NULL,
    at BIGINT NOT NULL,
    UNIQUE (kind, key)
);
CREATE INDEX points_events_of_agent ON points_events (agent_id, id);

-- Sums of the events by agent, and by agent and UTC day.
CREATE TABLE points_agents (
    agent_id {{text}} NOT NULL PRIMARY KEY REFERENCES agents (id),
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    points BIGINT NOT NULL,
    published BIGINT NOT NULL,
    first_reads BIGINT NOT NULL,
    sales BIGINT NOT NULL,
    batches BIGINT NOT NULL,
    last_at BIGINT NOT NULL
);
CREATE INDEX points_agents_of_operator ON points_agents (operator_id);
CREATE INDEX points_agents_best ON points_agents (points);

CREATE TABLE points_days (
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    day BIGINT NOT NULL,
    points BIGINT NOT NULL,
    published BIGINT NOT NULL,
    first_reads BIGINT NOT NULL,
    sales BIGINT NOT NULL,
    batches BIGINT NOT NULL,
    PRIMARY KEY (agent_id, day)
);
CREATE INDEX points_days_by_day ON points_days (day);

-- Events that the leaderboard leaves out.
CREATE TABLE points_exclusions (
    event_id {{text}} NOT NULL PRIMARY KEY REFERENCES points_events (id),
    rule {{text}} NOT NULL,
    at BIGINT NOT NULL
);

-- Allowances have a kind now; those of before are of contributions.
CREATE TABLE allowances_by_kind (
    operator_id {{text}} NOT NULL,
    kind {{text}} NOT NULL CHECK (kind IN ('knowledge', 'contribution')),
    day BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (operator_id, kind, day)
);
INSERT INTO allowances_by_kind (operator_id, kind, day, used)
SELECT operator_id, 'contribution', day, used FROM allowances;
DROP TABLE allowances;
ALTER TABLE allowances_by_kind RENAME TO allowances;

-- A dead letter may be of a version of a unit.
ALTER TABLE dead_letters ADD COLUMN unit_id {{text}};

-- Numbers that are given in the order of commits, because taking one locks its row until the commit.
CREATE TABLE counters (
    name {{text}} NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('comment', 0), ('search', 0);

-- What a search index must read again, in the order of commits.
CREATE TABLE search_changes (
    seq BIGINT NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL CHECK (kind IN ('unit', 'dataset')),
    -- The chain of a unit, or the id of a dataset.
    item_id {{text}} NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX search_changes_by_time ON search_changes (at);

-- The state of a part of the service that every process must know, as JSON.
CREATE TABLE service_state (
    name {{text}} NOT NULL PRIMARY KEY,
    value {{text}} NOT NULL,
    generation BIGINT NOT NULL,
    at BIGINT NOT NULL
);
INSERT INTO service_state (name, value, generation, at)
VALUES ('validation', '{"paused":false}', 0, 0);

-- Batches that were merged before there were points get theirs by a job.
INSERT INTO jobs (id, kind, dedupe, payload, due_at, attempts, created_at)
SELECT '00000000-0000-7000-8000-00000000000d', 'points_of_batches', 'points_of_batches', '{"after":""}', 0, 0, 0
WHERE EXISTS (SELECT 1 FROM contributions WHERE status = 'merged');
